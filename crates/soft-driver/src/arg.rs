//! The arguments of an entry point, on their way from C.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;

use crate::abi::*;

/// A pointer argument of a C call: a place for a result, or a handle.
///
/// It is made in one place only, the C function of each entry point, from an argument whose caller
/// promises what the C declaration says of it: NULL where the function accepts that, otherwise a pointer
/// to readable or writable values. That promise is what makes `put` and `get` safe to offer to the
/// rest of the crate.
pub(crate) struct Ptr<T, P = Place>(*mut T, PhantomData<P>);

/// A pointer argument that a call only reads: `const T *`.
pub(crate) type In<T> = Ptr<T, Const>;

/// A pointer to as many values as another argument says, which may be none.
pub(crate) type Array<T> = Ptr<T, Many>;

/// What a pointer argument points to.
pub(crate) trait Pointee {
    /// The pointer in C.
    type C<T>: Copy;

    /// Whether it is a place for one result.
    const IS_PLACE: bool;

    fn pointer<T>(c: Self::C<T>) -> *mut T;
}

macro_rules! pointees {
    ($($name:ident: *$constness:ident, $is_place:literal;)*) => {$(
        pub(crate) struct $name;

        impl Pointee for $name {
            type C<T> = *$constness T;

            const IS_PLACE: bool = $is_place;

            fn pointer<T>(c: *$constness T) -> *mut T {
                c as *mut T
            }
        }
    )*};
}

pointees! {
    Place: *mut, true;
    Many: *mut, false;
    Const: *const, false;
}

impl<T, P> Clone for Ptr<T, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, P> Copy for Ptr<T, P> {}

impl<T, P> Ptr<T, P> {
    pub(crate) const NULL: Self = Self(core::ptr::null_mut(), PhantomData);

    /// The number that a handle argument carries.
    pub(crate) fn addr(self) -> u64 {
        self.0.addr() as u64
    }

    pub(crate) fn raw(self) -> *mut T {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// `INVALID_VALUE` for NULL: what nearly every function answers before it looks at anything
    /// else.
    pub(crate) fn required(self) -> Answer {
        if self.0.is_null() { Err(INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes a result; NULL is `INVALID_VALUE`.
    pub(crate) fn put(self, value: T) -> Answer {
        self.required()?;
        // SAFETY: not NULL, so by the contract of the C call it is a place for a `T`.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes a result that the caller may not want; NULL is skipped.
    pub(crate) fn put_if(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `put`.
            unsafe { self.0.write(value) };
        }
    }

    /// Writes one of several results; NULL is skipped. The C call's count says how many there is
    /// room for.
    pub(crate) fn put_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, and the caller keeps to the count, so this is within the array of
            // the C call.
            unsafe { self.0.add(index).write(value) };
        }
    }

    /// What another call is given for a handle.
    pub(crate) fn of_handle(handle: *mut T) -> Self {
        Self(handle, PhantomData)
    }

    /// Reads an in-parameter; NULL is `INVALID_VALUE`.
    pub(crate) fn get(self) -> Result<T, CUresult>
    where
        T: Copy,
    {
        self.required()?;
        // SAFETY: not NULL, so by the contract of the C call a `T` is there.
        Ok(unsafe { self.0.read() })
    }

    /// Reads `count` values; NULL is `INVALID_VALUE` unless the count is 0.
    pub(crate) fn read_array(self, count: usize) -> Result<Vec<T>, CUresult>
    where
        T: Copy,
    {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.required()?;
        // SAFETY: not NULL, and the C call's count says how many values are there.
        Ok(unsafe { core::slice::from_raw_parts(self.0, count) }.to_vec())
    }
}

impl<P> Ptr<c_char, P> {
    /// Copies text with its terminator, cut to the room there is.
    pub(crate) fn put_text(self, text: &str, room: i32) -> Answer {
        let Ok(room) = usize::try_from(room) else { return Err(INVALID_VALUE) };
        if self.is_null() || room == 0 {
            return Err(INVALID_VALUE);
        }
        let kept = text.len().min(room - 1);
        // SAFETY: not NULL with `room` bytes by the contract of the C call; `kept + 1` is at most
        // `room`.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr().cast(), self.0, kept);
            self.0.add(kept).write(0);
        }
        Ok(())
    }

    /// The bytes of a C string without the terminator. NULL must have been dealt with.
    pub(crate) fn text(self) -> &'static [u8] {
        // SAFETY: a C string by the contract of the call, alive for the call; nothing keeps the
        // slice longer.
        unsafe { core::ffi::CStr::from_ptr(self.0) }.to_bytes()
    }
}

/// A parameter type of the bodies: what C passes for it, and how it is logged.
pub(crate) trait Arg: Copy {
    /// The type of the C function's parameter.
    type C: Copy;

    /// # Safety
    ///
    /// A pointer must be what the C declaration of the called function says.
    unsafe fn take(c: Self::C) -> Self;

    /// The argument as a number, for the call log.
    fn word(self) -> u64;

    /// Fills the place of a small result with garbage.
    fn poison(self) {}

    /// What a creating call that succeeded has written to a place for a handle or an address.
    fn given(self) -> Option<u64> {
        None
    }
}

impl<T, P: Pointee> Arg for Ptr<T, P> {
    type C = P::C<T>;

    unsafe fn take(c: P::C<T>) -> Self {
        Self(P::pointer(c), PhantomData)
    }

    fn word(self) -> u64 {
        self.addr()
    }

    fn poison(self) {
        // Handles point to nothing, and text and memory have other sizes than the type tells.
        if P::IS_PLACE && !self.is_null() && (2..=16).contains(&size_of::<T>()) {
            // SAFETY: a place for a `T`, by the contract of the C call.
            unsafe { self.0.cast::<u8>().write_bytes(0xA5, size_of::<T>()) };
        }
    }

    fn given(self) -> Option<u64> {
        // Handles point to nothing, and have types of other sizes.
        let there = P::IS_PLACE && !self.is_null() && size_of::<T>() == size_of::<u64>();
        // SAFETY: a place of this size, which the call has written.
        there.then(|| unsafe { self.0.cast::<u64>().read_unaligned() })
    }
}

macro_rules! plain {
    ($($ty:ty: $value:ident => $word:expr;)*) => {$(
        impl Arg for $ty {
            type C = $ty;

            unsafe fn take(c: $ty) -> $ty {
                c
            }

            fn word(self) -> u64 {
                let $value = self;
                $word
            }
        }
    )*};
}

plain! {
    u8: value => u64::from(value);
    u16: value => u64::from(value);
    u32: value => u64::from(value);
    u64: value => value;
    usize: value => value as u64;
    i32: value => i64::from(value) as u64;
    CUresult: value => u64::from(value.0);
    CUdevice_attribute: value => u64::from(value.0);
    CUdevResourceType: value => u64::from(value.0);
    CUstreamAttrID: value => u64::from(value.0);
    CUstreamCaptureMode: value => u64::from(value.0);
    CUipcEventHandle: value => u64::from(value.reserved[16]);
    CUmemLocation: value => u64::from(value.type_.0) << 32 | u64::from(value.id as u32);
    CUipcMemHandle: value => u64::from(value.reserved[24]);
    CUhostFn: value => value.map_or(0, |f| f as usize as u64);
    CUstreamCallback: value => value.map_or(0, |f| f as usize as u64);
}

/// What a handle argument is called here.
pub(crate) type EventArg = Ptr<CUevent_st>;
pub(crate) type StreamArg = Ptr<CUstream_st>;
pub(crate) type ContextArg = Ptr<CUctx_st>;
pub(crate) type Memory = Ptr<c_void>;
