//! The arguments of an entry point, on their way from C.

use core::ffi::{c_uchar, c_void};

use crate::abi::*;

/// A pointer argument of a C call: an out-parameter, an array, or a handle.
///
/// It is made in one place only, the shim around each entry point, from an argument whose caller
/// promises what the C declaration says of it: NULL where the function accepts that, else a pointer
/// to readable or writable values. That promise is what makes `put` and `get` safe to offer to the
/// rest of the crate.
pub(crate) struct Ptr<T>(*mut T);

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> Ptr<T> {
    pub(crate) const NULL: Self = Self(core::ptr::null_mut());

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
        Self(handle)
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

impl Ptr<c_uchar> {
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
            core::ptr::copy_nonoverlapping(text.as_ptr(), self.0, kept);
            self.0.add(kept).write(0);
        }
        Ok(())
    }

    /// The bytes of a C string without the terminator. NULL must have been dealt with.
    pub(crate) fn text(self) -> &'static [u8] {
        // SAFETY: a C string by the contract of the call, alive for the call; nothing keeps the
        // slice longer.
        unsafe { core::ffi::CStr::from_ptr(self.0.cast()) }.to_bytes()
    }
}

/// An argument type of an entry point: how it is logged, and what the body gets.
pub(crate) trait Arg: Sized {
    /// What the body gets.
    type As;

    /// The argument as a number, for the call log.
    fn word(&self) -> u64;

    /// Fills what a small out-parameter points to with garbage.
    ///
    /// # Safety
    ///
    /// As for [`take`](Self::take).
    unsafe fn poison(&self) {}

    /// What a creating call has written to an out-parameter for a handle or an address.
    ///
    /// # Safety
    ///
    /// As for [`take`](Self::take), and the call has succeeded.
    unsafe fn given(&self) -> Option<u64> {
        None
    }

    /// # Safety
    ///
    /// A pointer must be what the C declaration of the called function says.
    unsafe fn take(self) -> Self::As;
}

impl<T> Arg for *mut T {
    type As = Ptr<T>;

    unsafe fn poison(&self) {
        // Handles point to nothing, and text and memory have other sizes than the type tells.
        if !self.is_null() && (2..=16).contains(&size_of::<T>()) {
            // SAFETY: an out-parameter with room for a `T`, by the contract of the C call.
            unsafe { self.cast::<u8>().write_bytes(0xA5, size_of::<T>()) };
        }
    }

    unsafe fn given(&self) -> Option<u64> {
        // Handles point to nothing, and have types of other sizes.
        let there = !self.is_null() && size_of::<T>() == size_of::<u64>();
        // SAFETY: an out-parameter of this size, which the call has written.
        there.then(|| unsafe { self.cast::<u64>().read_unaligned() })
    }

    fn word(&self) -> u64 {
        self.addr() as u64
    }

    unsafe fn take(self) -> Ptr<T> {
        Ptr(self)
    }
}

impl<T> Arg for *const T {
    type As = Ptr<T>;

    fn word(&self) -> u64 {
        self.addr() as u64
    }

    unsafe fn take(self) -> Ptr<T> {
        Ptr(self.cast_mut())
    }
}

macro_rules! plain {
    ($($ty:ty: $value:ident => $word:expr;)*) => {$(
        impl Arg for $ty {
            type As = $ty;

            fn word(&self) -> u64 {
                let $value = self;
                $word
            }

            unsafe fn take(self) -> $ty {
                self
            }
        }
    )*};
}

plain! {
    u8: value => u64::from(*value);
    u16: value => u64::from(*value);
    u32: value => u64::from(*value);
    u64: value => *value;
    usize: value => *value as u64;
    i32: value => i64::from(*value) as u64;
    CUresult: value => u64::from(value.0);
    CUdevice_attribute: value => u64::from(value.0);
    CUdevResourceType: value => u64::from(value.0);
    CUstreamAttrID: value => u64::from(value.0);
    CUstreamCaptureMode: value => u64::from(value.0);
    CUipcEventHandle: value => u64::from(value.reserved[16]);
    Location: value => u64::from(value.kind) << 32 | u64::from(value.id as u32);
    MemHandle: value => u64::from(value.reserved[24]);
    CUhostFn: value => value.map_or(0, |f| f as usize as u64);
    CUstreamCallback: value => value.map_or(0, |f| f as usize as u64);
}

/// What a handle argument is called here.
pub(crate) type EventArg = Ptr<CUevent_st>;
pub(crate) type StreamArg = Ptr<CUstream_st>;
pub(crate) type ContextArg = Ptr<CUctx_st>;
pub(crate) type Memory = Ptr<c_void>;
