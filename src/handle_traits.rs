//! Traits that a handle shares with its owners: comparison, hash, debug output, `Borrow` and
//! `AsRef`.

/// Implements for a type that dereferences to a handle's type the traits of the handle's type.
///
/// `Borrow` requires that both hash and compare alike. They do, because each implementation calls
/// the handle's.
macro_rules! impl_handle_traits {
    ($handle:ty: $owner:ident $(<$parameter:ident>)?) => {
        impl$(<$parameter>)? PartialEq for $owner$(<$parameter>)? {
            fn eq(&self, other: &Self) -> bool {
                **self == **other
            }
        }

        impl$(<$parameter>)? Eq for $owner$(<$parameter>)? {}

        impl$(<$parameter>)? PartialEq<$handle> for $owner$(<$parameter>)? {
            fn eq(&self, other: &$handle) -> bool {
                **self == *other
            }
        }

        impl$(<$parameter>)? PartialEq<$owner$(<$parameter>)?> for $handle {
            fn eq(&self, other: &$owner$(<$parameter>)?) -> bool {
                *self == **other
            }
        }

        impl$(<$parameter>)? core::hash::Hash for $owner$(<$parameter>)? {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                (**self).hash(state);
            }
        }

        impl$(<$parameter>)? core::borrow::Borrow<$handle> for $owner$(<$parameter>)? {
            fn borrow(&self) -> &$handle {
                self
            }
        }

        impl$(<$parameter>)? AsRef<$handle> for $owner$(<$parameter>)? {
            fn as_ref(&self) -> &$handle {
                self
            }
        }

        impl$(<$parameter>)? core::fmt::Debug for $owner$(<$parameter>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.show(stringify!($owner), f)
            }
        }
    };
}

pub(crate) use impl_handle_traits;
