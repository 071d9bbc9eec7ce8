//! What holds timelines that other processes see.

use std::mem::MaybeUninit;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, AsRawHandle};

use cuda_timelines::{TimelineFile, TimelineMemory};

use crate::adopt::{self, CUctx_st};
use crate::handle::{self, Handle};
use crate::result::cutl_result::{self, *};
use crate::result::{guard, place};

/// A memory file with room for 63 timelines. A process that has its file descriptor sees them.
pub struct cutl_file;

impl Handle for cutl_file {
    type Object = TimelineFile;
    const NAME: &'static str = "cutl_file";
}

/// Device memory with room for 63 timelines. A process that has a timeline's bytes can open it.
pub struct cutl_memory;

impl Handle for cutl_memory {
    type Object = TimelineMemory;
    const NAME: &'static str = "cutl_memory";
}

/// Makes a file in a context; NULL is the current one. With `writable` 0 only this process can
/// write it: the kernel refuses others. Otherwise importers can write it, and their streams wait
/// for it directly, which is faster: choose that only for importers that you trust as yourself.
///
/// Errors: CUTL_ERROR_SYSTEM; CUTL_ERROR_UNSUPPORTED; CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER;
/// CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// `context` must be NULL or a context that lives until the file and its timelines are destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_file_create(
    context: *mut CUctx_st,
    writable: i32,
    out: Option<&mut MaybeUninit<*mut cutl_file>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        // SAFETY: the duties are those of the caller.
        let context = unsafe { adopt::context(context) }?;
        let made = if writable == 0 { TimelineFile::new } else { TimelineFile::writable };
        handle::put(out, made(&context)?)
    })
}

/// Writes the file descriptor to `out` (on Windows the HANDLE), to be sent with SCM_RIGHTS or
/// inherited. It stays the library's, and is open until the file is destroyed: do not close it.
///
/// Errors: CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT; CUTL_ERROR_UNSUPPORTED.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_file_descriptor(
    file: *const cutl_file,
    out: Option<&mut MaybeUninit<isize>>,
) -> cutl_result {
    guard(|| {
        let (file, out) = (handle::get(file)?, place(out, "out")?);
        #[cfg(unix)]
        out.write(file.as_fd().as_raw_fd() as isize);
        #[cfg(windows)]
        out.write(file.as_handle().as_raw_handle() as isize);
        #[cfg(not(any(unix, windows)))]
        return Err(
            cuda_timelines::Error::from(cuda_timelines::SharedTimelineError::Platform).into()
        );
        #[cfg(any(unix, windows))]
        Ok(CUTL_OK)
    })
}

/// Destroys the handle. The file lives until its timelines are destroyed as well.
///
/// Errors: CUTL_ERROR_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_file_destroy(file: *mut cutl_file) -> cutl_result {
    handle::destroy(file)
}

/// Makes device memory for timelines that other processes open by bytes alone. Prefer a file where
/// a file descriptor can be sent: it guarantees more.
///
/// Errors: CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// As for cutl_file_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_memory_create(
    context: *mut CUctx_st,
    out: Option<&mut MaybeUninit<*mut cutl_memory>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        // SAFETY: the duties are those of the caller.
        handle::put(out, TimelineMemory::new(&unsafe { adopt::context(context) }?)?)
    })
}

/// Destroys the handle. Keep it until no process uses its timelines. The memory serves the next
/// cutl_memory of the context, and is freed with the context.
///
/// Errors: CUTL_ERROR_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_memory_destroy(memory: *mut cutl_memory) -> cutl_result {
    handle::destroy(memory)
}
