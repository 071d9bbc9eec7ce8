//! The part of NCCL that this program calls, loaded at run time.

use std::error::Error as _;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fmt;
use std::sync::Arc;

use cuda_events::StreamRef;
use cuda_events::sys::{CUdeviceptr, CUstream};
use libloading::Library;

/// Where the linker finds NCCL if it is installed as a package.
pub const NAME: &str = "libnccl.so.2";

const SUCCESS: c_int = 0;
const UINT32: c_int = 3;
const SUM: c_int = 0;

#[repr(C)]
struct RawComm {
    _private: [u8; 0],
}

/// The functions, as NCCL 2 declares them.
struct Table {
    get_version: unsafe extern "C" fn(*mut c_int) -> c_int,
    comm_init_all: unsafe extern "C" fn(*mut *mut RawComm, c_int, *const c_int) -> c_int,
    comm_destroy: unsafe extern "C" fn(*mut RawComm) -> c_int,
    comm_abort: unsafe extern "C" fn(*mut RawComm) -> c_int,
    comm_get_async_error: unsafe extern "C" fn(*mut RawComm, *mut c_int) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        *mut RawComm,
        CUstream,
    ) -> c_int,
    get_error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    get_last_error: unsafe extern "C" fn(*mut RawComm) -> *const c_char,
}

/// NCCL, loaded for the life of the process: its threads outlive what they were started for.
#[derive(Clone)]
pub struct Nccl(Arc<Table>);

/// A code that NCCL returned, and the function that returned it.
#[derive(Debug)]
pub struct NcclError {
    function: &'static str,
    code: c_int,
    text: String,
    last: String,
}

impl fmt::Display for NcclError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} failed: {} ({})", self.function, self.text, self.code)?;
        if !self.last.is_empty() {
            write!(formatter, ": {}", self.last.trim_end())?;
        }
        Ok(())
    }
}

impl std::error::Error for NcclError {}

impl Nccl {
    /// Loads the library: by a path, or by the name that the linker knows.
    pub fn load(library: &OsStr) -> Result<Self, String> {
        let name = library.display();
        // The system's reason is the source.
        let why = |error: libloading::Error| {
            error.source().map_or_else(|| error.to_string(), ToString::to_string)
        };
        // SAFETY: NCCL's initialisers have no demands.
        let library = unsafe { Library::new(library) };
        let library = library.map_err(|error| {
            format!(
                "{name} cannot be opened: {}; install NCCL, or give its path by --library (of the \
                 wheel nvidia-nccl-cu13: site-packages/nvidia/nccl/lib/{NAME})",
                why(error)
            )
        })?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the type is that of NCCL 2's header, and the library is never unloaded.
                *unsafe { library.get($name) }
                    .map_err(|error| format!("{name} is not NCCL: {}", why(error)))?
            };
        }
        let table = Table {
            get_version: symbol!(b"ncclGetVersion\0"),
            comm_init_all: symbol!(b"ncclCommInitAll\0"),
            comm_destroy: symbol!(b"ncclCommDestroy\0"),
            comm_abort: symbol!(b"ncclCommAbort\0"),
            comm_get_async_error: symbol!(b"ncclCommGetAsyncError\0"),
            group_start: symbol!(b"ncclGroupStart\0"),
            group_end: symbol!(b"ncclGroupEnd\0"),
            all_reduce: symbol!(b"ncclAllReduce\0"),
            get_error_string: symbol!(b"ncclGetErrorString\0"),
            get_last_error: symbol!(b"ncclGetLastError\0"),
        };
        std::mem::forget(library);
        Ok(Self(Arc::new(table)))
    }

    fn check(&self, function: &'static str, code: c_int) -> Result<(), NcclError> {
        if code == SUCCESS {
            return Ok(());
        }
        let text = |text: *const c_char| match text.is_null() {
            true => String::new(),
            // SAFETY: NCCL's texts end with a zero, and are read before its next call.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        // SAFETY: it takes any code.
        let name = text(unsafe { (self.0.get_error_string)(code) });
        // SAFETY: it ignores its argument, which may be NULL.
        let last = text(unsafe { (self.0.get_last_error)(std::ptr::null_mut()) });
        Err(NcclError { function, code, text: name, last })
    }

    pub fn version(&self) -> Result<c_int, NcclError> {
        let mut version = 0;
        // SAFETY: a place for the number.
        self.check("ncclGetVersion", unsafe { (self.0.get_version)(&mut version) })?;
        Ok(version)
    }

    /// All parts of a job, on the GPUs 0, 1, and so on.
    pub fn init_all(&self, ranks: usize) -> Result<Vec<Comm>, NcclError> {
        let mut raw = vec![std::ptr::null_mut(); ranks];
        // SAFETY: a place for so many handles; NULL stands for the first GPUs.
        let code =
            unsafe { (self.0.comm_init_all)(raw.as_mut_ptr(), ranks as c_int, std::ptr::null()) };
        self.check("ncclCommInitAll", code)?;
        Ok(raw.into_iter().map(|raw| Comm { nccl: self.clone(), raw }).collect())
    }

    /// Starts the operations that `start` asks for together: one thread that has several GPUs would
    /// otherwise wait at the first one for the others.
    pub fn group<E: From<NcclError>>(
        &self,
        start: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        // SAFETY: no demands.
        self.check("ncclGroupStart", unsafe { (self.0.group_start)() })?;
        let started = start();
        // SAFETY: it ends the group of above.
        let ended = self.check("ncclGroupEnd", unsafe { (self.0.group_end)() });
        started?;
        Ok(ended?)
    }
}

/// One GPU's part of a job.
pub struct Comm {
    nccl: Nccl,
    raw: *mut RawComm,
}

impl Comm {
    /// Puts an all-reduce of words into a stream: `to` becomes the sum of all ranks' `from`.
    ///
    /// # Safety
    ///
    /// Both are device memory of this GPU, of `count` words, until the stream has done it. The
    /// stream is of the GPU of this communicator.
    pub unsafe fn all_reduce(
        &self,
        from: CUdeviceptr,
        to: CUdeviceptr,
        count: usize,
        stream: &StreamRef,
    ) -> Result<(), NcclError> {
        // SAFETY: the caller's promise; the communicator lives.
        let code = unsafe {
            (self.nccl.0.all_reduce)(
                from as usize as *const c_void,
                to as usize as *mut c_void,
                count,
                UINT32,
                SUM,
                self.raw,
                stream.as_raw(),
            )
        };
        self.nccl.check("ncclAllReduce", code)
    }

    /// Returns an error that has occurred since: a peer that has died, for example.
    pub fn async_error(&self) -> Result<(), NcclError> {
        let mut code = SUCCESS;
        // SAFETY: the communicator lives, and a place for the code.
        let asked = unsafe { (self.nccl.0.comm_get_async_error)(self.raw, &mut code) };
        self.nccl.check("ncclCommGetAsyncError", asked)?;
        self.nccl.check("an operation of NCCL", code)
    }

    /// Ends this part normally, after its operations have ended.
    pub fn destroy(self) -> Result<(), NcclError> {
        let comm = std::mem::ManuallyDrop::new(self);
        // SAFETY: it is not used again.
        let code = unsafe { (comm.nccl.0.comm_destroy)(comm.raw) };
        comm.nccl.check("ncclCommDestroy", code)
    }
}

impl Drop for Comm {
    /// After an error: operations that wait for a peer that will not come are given up.
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { (self.nccl.0.comm_abort)(self.raw) };
    }
}
