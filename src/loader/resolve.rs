//! Resolving the symbol table from exported names.

use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;

use super::error::LoadFailure;
use super::platform;
use crate::Version;
use crate::sys::{
    CU_GET_PROC_ADDRESS_LEGACY_STREAM, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
    CUdriverProcAddressQueryResult, CUresult, EntryPoint, PFN_cuDriverGetVersion_v2020,
    PFN_cuGetProcAddress_v11030, PFN_cuGetProcAddress_v12000, Symbols,
};

#[cfg(doc)]
use crate::sys::calls::*;

/// The way to look up an entry point of a version in this driver.
enum Lookup {
    /// [`cuGetProcAddress_v2`], from 12.0.
    WithStatus(PFN_cuGetProcAddress_v12000),
    /// [`cuGetProcAddress`] of four arguments, from 11.3.
    WithoutStatus(PFN_cuGetProcAddress_v11030),
    /// The exported, suffixed name.
    Export,
}

/// Resolves the whole table through `export`, which returns the address of an exported name or
/// NULL.
///
/// # Safety
///
/// Each address that `export` returns must be that of a function of the CUDA driver API with the
/// exported name's ABI, valid for the rest of the process.
pub(crate) unsafe fn resolve(
    export: &mut dyn FnMut(&CStr) -> *mut c_void,
    per_thread: bool,
) -> Result<(Symbols, Version), LoadFailure> {
    if !platform::supported() {
        return Err(LoadFailure::Platform);
    }
    // SAFETY: the caller vouches for the address; NULL is `None`.
    let get_version: PFN_cuDriverGetVersion_v2020 =
        unsafe { transmute(export(c"cuDriverGetVersion")) };
    let get_version = get_version.ok_or(LoadFailure::NotADriver)?;
    let mut version: c_int = 0;
    // SAFETY: the argument is a place for the one integer; the call needs no initialised driver.
    match unsafe { get_version(&mut version) } {
        CUresult::CUDA_SUCCESS => {}
        CUresult::CUDA_ERROR_STUB_LIBRARY => return Err(LoadFailure::Stub),
        code => return Err(LoadFailure::Version(code)),
    }
    let version = Version::from_raw(version.unsigned_abs());

    let with_status = export(c"cuGetProcAddress_v2");
    let lookup = if !with_status.is_null() {
        // SAFETY: the caller vouches for the address.
        Lookup::WithStatus(unsafe {
            transmute::<*mut c_void, PFN_cuGetProcAddress_v12000>(with_status)
        })
    } else {
        let without_status = export(c"cuGetProcAddress");
        if without_status.is_null() {
            Lookup::Export
        } else {
            // SAFETY: the caller vouches for the address.
            Lookup::WithoutStatus(unsafe {
                transmute::<*mut c_void, PFN_cuGetProcAddress_v11030>(without_status)
            })
        }
    };

    let mut find = |entry: &EntryPoint| find(&lookup, export, entry, version, per_thread);
    // SAFETY: each address is the driver's result for the entry point's own name and version, or
    // the caller's for its exported name.
    let symbols = unsafe { Symbols::resolve(&mut find) };
    let symbols =
        symbols.map_err(|functions| LoadFailure::MissingSymbols { driver: version, functions })?;
    Ok((symbols, version))
}

fn find(
    lookup: &Lookup,
    export: &mut dyn FnMut(&CStr) -> *mut c_void,
    entry: &EntryPoint,
    driver: Version,
    per_thread: bool,
) -> *mut c_void {
    // A lookup with the per-thread flag finds nothing at a version older than the twin's, so each
    // of the two has its own version.
    let (version, flags, suffix) = match entry.per_thread_version {
        Some(version) if per_thread => {
            (version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "_ptsz")
        }
        _ => (entry.version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, ""),
    };
    // A driver refuses to look up a version newer than itself.
    if version > driver {
        return null_mut();
    }
    let (Ok(number), flags) = (c_int::try_from(version.as_raw()), u64::from(flags)) else {
        return null_mut();
    };
    let mut name = Name::new();
    ask(lookup, name.set(entry.base, ""), number, flags)
        .unwrap_or_else(|| export(name.set(entry.name.to_str().unwrap_or_default(), suffix)))
}

/// Looks up any function through a table that was resolved. NULL if the driver has none of this name
/// and version, or no [`cuGetProcAddress`].
pub(crate) fn find_by_name(
    symbols: &Symbols,
    name: &CStr,
    version: Version,
    per_thread: bool,
) -> *mut c_void {
    let flags = match per_thread {
        true => CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
        false => CU_GET_PROC_ADDRESS_LEGACY_STREAM,
    };
    let (Ok(number), flags) = (c_int::try_from(version.as_raw()), u64::from(flags)) else {
        return null_mut();
    };
    let lookup = match (symbols.cuGetProcAddress_v2, symbols.cuGetProcAddress) {
        (Some(get), _) => Lookup::WithStatus(Some(get)),
        (None, Some(get)) => Lookup::WithoutStatus(Some(get)),
        (None, None) => return null_mut(),
    };
    ask(&lookup, name, number, flags).unwrap_or(null_mut())
}

/// The address that [`cuGetProcAddress`] returns; `None` if the driver does not have the function.
fn ask(lookup: &Lookup, name: &CStr, version: c_int, flags: u64) -> Option<*mut c_void> {
    let mut address = null_mut();
    let found = match lookup {
        Lookup::WithStatus(Some(get)) => {
            let mut status = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
            // SAFETY: a C string, and places for the address and the status.
            let code =
                unsafe { get(name.as_ptr().cast(), &mut address, version, flags, &mut status) };
            code == CUresult::CUDA_SUCCESS
                && status == CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS
        }
        Lookup::WithoutStatus(Some(get)) => {
            // SAFETY: a C string, and a place for the address.
            let code = unsafe { get(name.as_ptr().cast(), &mut address, version, flags) };
            code == CUresult::CUDA_SUCCESS
        }
        _ => return None,
    };
    Some(if found { address } else { null_mut() })
}

/// Space for a symbol's name with its terminator; the longest in the list has 47 characters.
struct Name([u8; 64]);

impl Name {
    fn new() -> Self {
        Self([0; 64])
    }

    /// The two parts as one C string, or an empty one if they do not fit.
    fn set(&mut self, name: &str, suffix: &str) -> &CStr {
        self.0 = [0; 64];
        if let Some((first, rest)) = self.0.split_at_mut_checked(name.len())
            && let Some(second) = rest.get_mut(..suffix.len())
        {
            first.copy_from_slice(name.as_bytes());
            second.copy_from_slice(suffix.as_bytes());
        }
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}
