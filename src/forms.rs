//! Traits that all forms of a handle share: comparison, hash, debug output, `Borrow` and `AsRef`.

/// Implements for a type that dereferences to a handle's type the traits of the handle's type.
///
/// `Borrow` requires that both hash and compare alike. They do, because each implementation calls
/// the handle's.
macro_rules! form_of {
    ($handle:ty: $form:ty $(, $parameter:ident)?) => {
        impl$(<$parameter>)? PartialEq for $form {
            fn eq(&self, other: &Self) -> bool {
                **self == **other
            }
        }

        impl$(<$parameter>)? Eq for $form {}

        impl$(<$parameter>)? PartialEq<$handle> for $form {
            fn eq(&self, other: &$handle) -> bool {
                **self == *other
            }
        }

        impl$(<$parameter>)? PartialEq<$form> for $handle {
            fn eq(&self, other: &$form) -> bool {
                *self == **other
            }
        }

        impl$(<$parameter>)? core::hash::Hash for $form {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                (**self).hash(state);
            }
        }

        impl$(<$parameter>)? core::borrow::Borrow<$handle> for $form {
            fn borrow(&self) -> &$handle {
                self
            }
        }

        impl$(<$parameter>)? AsRef<$handle> for $form {
            fn as_ref(&self) -> &$handle {
                self
            }
        }

        impl$(<$parameter>)? core::fmt::Debug for $form {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&**self, f)
            }
        }
    };
}

pub(crate) use form_of;
