//! Functions of the program, and the data that is handed back to them.

use core::ffi::c_void;

use crate::abi::*;

/// The program's function behind a pointer argument that is only handed back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserData(pub(crate) *mut c_void);

// SAFETY: never dereferenced here; the program gave it for another thread to get.
unsafe impl Send for UserData {}

/// A function of the program, to be called in stream order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostCall {
    Function(unsafe extern "C" fn(*mut c_void), UserData),
    Callback(unsafe extern "C" fn(CUstream, CUresult, *mut c_void), u64, UserData),
}

/// What destroys a user object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destroy(pub(crate) unsafe extern "C" fn(*mut c_void), pub(crate) UserData);
