//! Codes, their texts, and the guard around every function.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_events::foundation::is_forked_child;
use cuda_events::sys::Function;
use cuda_events::{Error as CudaError, Progress};
use cuda_timelines::{Error, SharedTimelineError as Sharing};

use cutl_result::*;

/// The result of a call. 0 and 1 are no errors; errors are negative. cutl_error_text has the
/// reason of an error and what to do.
#[repr(i32)]
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum cutl_result {
    /// The call has succeeded. For a query or a wait: the work is done.
    CUTL_OK = 0,
    /// The work is not done. For a wait: the time is up.
    CUTL_PENDING = 1,
    /// An argument is NULL or has a wrong value. Nothing was done.
    CUTL_ERROR_ARGUMENT = -1,
    /// The handle is destroyed, belongs to an object of another kind, or never was a handle.
    CUTL_ERROR_HANDLE = -2,
    /// The point was not made in this process.
    CUTL_ERROR_POINT = -3,
    /// The CUDA driver cannot be loaded or initialised.
    CUTL_ERROR_NO_DRIVER = -4,
    /// A driver call failed: cutl_error_driver_code has its code.
    CUTL_ERROR_DRIVER = -5,
    /// The driver, the device or the system does not have what the call needs.
    CUTL_ERROR_UNSUPPORTED = -6,
    /// The process was forked after the driver was initialised.
    CUTL_ERROR_FORKED = -7,
    /// Two objects belong to different contexts, devices or drivers, or no context is current.
    CUTL_ERROR_CONTEXT = -8,
    /// The last share of the timeline's context is gone before the point was reached.
    CUTL_ERROR_CONTEXT_DROPPED = -9,
    /// The stream captures, and the call cannot be captured.
    CUTL_ERROR_CAPTURE = -10,
    /// A timeline cannot belong to the per-thread default stream.
    CUTL_ERROR_PER_THREAD_STREAM = -11,
    /// The timeline was poisoned or destroyed before it reached the value.
    CUTL_ERROR_POISONED = -12,
    /// The process that had to signal has ended.
    CUTL_ERROR_EXPORTER_GONE = -13,
    /// The system starts no thread.
    CUTL_ERROR_NO_THREAD = -14,
    /// The descriptor's bytes are refused.
    CUTL_ERROR_DESCRIPTOR = -15,
    /// The file or the memory is not the one that the descriptor belongs to, or none of timelines.
    CUTL_ERROR_FILE = -16,
    /// The file or the memory has no place left for a timeline.
    CUTL_ERROR_FULL = -17,
    /// The operating system refused a file.
    CUTL_ERROR_SYSTEM = -18,
    /// A fault of this library. The call may have been made in part.
    CUTL_ERROR_INTERNAL = -19,
}

/// A call that failed.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub(crate) code: cutl_result,
    driver: i32,
    text: String,
}

impl Fail {
    pub(crate) fn new(code: cutl_result, text: impl Into<String>) -> Self {
        Self { code, driver: 0, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(CUTL_ERROR_ARGUMENT, text)
    }

    pub(crate) fn null(name: &str) -> Self {
        Self::argument(format!("{name} is NULL"))
    }

    /// The text, also if it should have a NUL inside.
    pub(crate) fn c_text(&self) -> CString {
        CString::new(self.text.replace('\0', " ")).unwrap_or_default()
    }

    /// Keeps it for the calling thread, and returns the code.
    pub(crate) fn note(self) -> cutl_result {
        let last = (self.c_text(), self.driver);
        // At the thread's end there is no place any more.
        let _ = LAST.try_with(|place| place.replace(last));
        self.code
    }
}

impl From<CudaError> for Fail {
    fn from(error: CudaError) -> Self {
        let code = match &error {
            CudaError::Load(_) | CudaError::Init { .. } => CUTL_ERROR_NO_DRIVER,
            CudaError::Unsupported { .. } => CUTL_ERROR_UNSUPPORTED,
            CudaError::ForkedChild { .. } => CUTL_ERROR_FORKED,
            CudaError::DriverMismatch { .. } | CudaError::ContextMismatch { .. } => {
                CUTL_ERROR_CONTEXT
            }
            CudaError::ExporterGone => CUTL_ERROR_EXPORTER_GONE,
            CudaError::Descriptor(_) => CUTL_ERROR_DESCRIPTOR,
            _ if error.code().is_some() => CUTL_ERROR_DRIVER,
            _ => CUTL_ERROR_ARGUMENT,
        };
        // The number as the driver's header has it.
        let driver = error.code().map_or(0, |code| code.0 as i32);
        Self { code, driver, text: error.to_string() }
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Cuda(error) => return error.clone().into(),
            Error::TimelineInCapture { .. } => CUTL_ERROR_CAPTURE,
            Error::PerThreadTimeline => CUTL_ERROR_PER_THREAD_STREAM,
            Error::ContextMismatch { .. } => CUTL_ERROR_CONTEXT,
            Error::Poisoned => CUTL_ERROR_POISONED,
            Error::ContextDropped => CUTL_ERROR_CONTEXT_DROPPED,
            Error::ExporterGone => CUTL_ERROR_EXPORTER_GONE,
            Error::NoThread => CUTL_ERROR_NO_THREAD,
            Error::SharedTimeline(reason) => match reason {
                Sharing::FileFull => CUTL_ERROR_FULL,
                Sharing::System { .. } => CUTL_ERROR_SYSTEM,
                Sharing::Platform => CUTL_ERROR_UNSUPPORTED,
                Sharing::MemoryOfOtherDevice { .. } => CUTL_ERROR_CONTEXT,
                Sharing::DescriptorLength { .. }
                | Sharing::DescriptorMagic
                | Sharing::DescriptorVersion { .. }
                | Sharing::DescriptorChecksum
                | Sharing::NoSuchTimeline { .. }
                | Sharing::OtherKind { .. }
                | Sharing::SameProcess { .. } => CUTL_ERROR_DESCRIPTOR,
                _ => CUTL_ERROR_FILE,
            },
            _ => CUTL_ERROR_INTERNAL,
        };
        let driver = error.code().map_or(0, |code| code.0 as i32);
        Self { code, driver, text: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<(CString, i32)> = RefCell::default();
}

/// Runs the body of a function: nothing unwinds into C, and nothing runs in a forked child.
pub(crate) fn guard(body: impl FnOnce() -> Result<cutl_result, Fail>) -> cutl_result {
    guarded(body).unwrap_or_else(|fail| fail.note())
}

/// Runs the body as [`guard`] does, and returns the failure as a value.
pub(crate) fn guarded<T>(body: impl FnOnce() -> Result<T, Fail>) -> Result<T, Fail> {
    if is_forked_child() {
        // What a call of the driver would return.
        return Err(CudaError::ForkedChild { function: Function::cuInit }.into());
    }
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // The payload's drop may panic again.
        core::mem::forget(payload);
        let text = "a fault of cuda-timelines; its message is on the standard error: report it";
        Err(Fail::new(CUTL_ERROR_INTERNAL, text))
    })
}

pub(crate) fn result_of(progress: Progress) -> Result<cutl_result, Fail> {
    Ok(if progress.is_done() { CUTL_OK } else { CUTL_PENDING })
}

/// The place for a result, before anything is done.
pub(crate) fn place<'a, T>(
    out: Option<&'a mut MaybeUninit<T>>,
    name: &str,
) -> Result<&'a mut MaybeUninit<T>, Fail> {
    out.ok_or_else(|| Fail::null(name))
}

/// Returns the text of the last error of the calling thread: which driver call failed, its code,
/// and what to do. An empty text if no call of this thread has failed. Calls that succeed leave it.
///
/// The library owns the text. It is valid until the next error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_error_text() -> *const c_char {
    let text = LAST.try_with(|last| last.try_borrow().map(|last| last.0.as_ptr()));
    text.ok().and_then(Result::ok).unwrap_or(c"".as_ptr())
}

/// Returns the driver's code (CUresult) of the last error of the calling thread; 0 if that was not
/// an error of a driver call.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_error_driver_code() -> i32 {
    LAST.try_with(|last| last.try_borrow().map_or(0, |last| last.1)).unwrap_or(0)
}

/// Returns the name of a code, such as "CUTL_ERROR_HANDLE". It never fails, and the text is
/// valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_result_name(result: i32) -> *const c_char {
    macro_rules! names {
        ($($name:ident)*) => { [$(($name as i32, concat!(stringify!($name), "\0"))),*] };
    }
    let names = names!(
        CUTL_OK CUTL_PENDING CUTL_ERROR_ARGUMENT CUTL_ERROR_HANDLE CUTL_ERROR_POINT
        CUTL_ERROR_NO_DRIVER CUTL_ERROR_DRIVER CUTL_ERROR_UNSUPPORTED CUTL_ERROR_FORKED
        CUTL_ERROR_CONTEXT CUTL_ERROR_CONTEXT_DROPPED CUTL_ERROR_CAPTURE
        CUTL_ERROR_PER_THREAD_STREAM CUTL_ERROR_POISONED CUTL_ERROR_EXPORTER_GONE
        CUTL_ERROR_NO_THREAD CUTL_ERROR_DESCRIPTOR CUTL_ERROR_FILE CUTL_ERROR_FULL
        CUTL_ERROR_SYSTEM CUTL_ERROR_INTERNAL
    );
    let name = names.iter().find(|(code, _)| *code == result).map(|(_, name)| *name);
    let name = name.and_then(|name| CStr::from_bytes_with_nul(name.as_bytes()).ok());
    name.unwrap_or(c"no code of cuda_timelines").as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload of a panic whose drop panics again.
    struct Twice;

    impl Drop for Twice {
        fn drop(&mut self) {
            panic!("again");
        }
    }

    #[test]
    fn nothing_unwinds() {
        let text = || {
            // SAFETY: the text of this thread, which no other call replaces meanwhile.
            unsafe { CStr::from_ptr(cutl_error_text()) }.to_str().unwrap().to_owned()
        };
        assert_eq!(text(), "");
        assert_eq!(guard(|| std::panic::panic_any(Twice)), CUTL_ERROR_INTERNAL);
        assert!(text().starts_with("a fault of cuda-timelines"));
        assert_eq!(guard(|| Err(Fail::argument("nul\0inside"))), CUTL_ERROR_ARGUMENT);
        assert_eq!(text(), "nul inside");
        assert_eq!(guard(|| Ok(CUTL_PENDING)), CUTL_PENDING);
        assert_eq!(text(), "nul inside");
    }

    /// The code of each error, as the header has it, and the driver's code beside it.
    #[test]
    fn codes_of_errors() {
        use cuda_events::Version;
        use cuda_events::ipc::DescriptorError;
        use cuda_events::sys::CUresult;

        let function = Function::cuEventQuery;
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        let version = Version::new(12, 0);
        // SAFETY: there is no such file.
        let load = unsafe { cuda_events::Driver::load_from("/nowhere/libcuda.so") };
        let cuda = [
            (load.map(drop).expect_err("there is none"), CUTL_ERROR_NO_DRIVER, 0),
            (CudaError::Init { code, library: None }, CUTL_ERROR_NO_DRIVER, 700),
            (CudaError::Driver { function, code }, CUTL_ERROR_DRIVER, 700),
            (
                CudaError::Unsupported { function, since: version, driver: version },
                CUTL_ERROR_UNSUPPORTED,
                0,
            ),
            (CudaError::ForkedChild { function }, CUTL_ERROR_FORKED, 0),
            (CudaError::DriverMismatch { function }, CUTL_ERROR_CONTEXT, 0),
            (
                CudaError::ContextMismatch { function, code: None, device: 0, other_device: 1 },
                CUTL_ERROR_CONTEXT,
                0,
            ),
            (
                CudaError::ContextMismatch {
                    function,
                    code: Some(code),
                    device: 0,
                    other_device: 1,
                },
                CUTL_ERROR_CONTEXT,
                700,
            ),
            (CudaError::ExporterGone, CUTL_ERROR_EXPORTER_GONE, 0),
            (DescriptorError::Checksum.into(), CUTL_ERROR_DESCRIPTOR, 0),
            (CudaError::TimingWithInterprocess, CUTL_ERROR_ARGUMENT, 0),
        ];
        for (error, expected, driver) in cuda {
            let text = format!("{error:?}");
            for fail in [Fail::from(error.clone()), Fail::from(Error::Cuda(error))] {
                assert_eq!((fail.code, fail.driver), (expected, driver), "{text}");
            }
        }
        let own = [
            (Error::TimelineInCapture { function }, CUTL_ERROR_CAPTURE),
            (Error::PerThreadTimeline, CUTL_ERROR_PER_THREAD_STREAM),
            (Error::ContextMismatch { device: 0, other_device: 1 }, CUTL_ERROR_CONTEXT),
            (Error::Poisoned, CUTL_ERROR_POISONED),
            (Error::ContextDropped, CUTL_ERROR_CONTEXT_DROPPED),
            (Error::ExporterGone, CUTL_ERROR_EXPORTER_GONE),
            (Error::NoThread, CUTL_ERROR_NO_THREAD),
        ];
        let (found, expected, index) = (1, 2, 3);
        let shared = [
            (Sharing::DescriptorLength { found: 1, expected: 2 }, CUTL_ERROR_DESCRIPTOR),
            (Sharing::DescriptorMagic, CUTL_ERROR_DESCRIPTOR),
            (Sharing::DescriptorVersion { found, expected }, CUTL_ERROR_DESCRIPTOR),
            (Sharing::DescriptorChecksum, CUTL_ERROR_DESCRIPTOR),
            (Sharing::NoSuchTimeline { index }, CUTL_ERROR_DESCRIPTOR),
            (Sharing::OtherKind { in_memory: true }, CUTL_ERROR_DESCRIPTOR),
            (Sharing::SameProcess { pid: 1 }, CUTL_ERROR_DESCRIPTOR),
            (Sharing::NotMemory, CUTL_ERROR_FILE),
            (Sharing::Unsealed, CUTL_ERROR_FILE),
            (Sharing::FileSize { found: 1, expected: 2 }, CUTL_ERROR_FILE),
            (Sharing::FileMagic, CUTL_ERROR_FILE),
            (Sharing::FileVersion { found, expected }, CUTL_ERROR_FILE),
            (Sharing::OtherFile, CUTL_ERROR_FILE),
            (Sharing::OtherMemory, CUTL_ERROR_FILE),
            (Sharing::FileFull, CUTL_ERROR_FULL),
            (Sharing::MemoryOfOtherDevice { exported: None, context: 0 }, CUTL_ERROR_CONTEXT),
            (Sharing::System { errno: 1 }, CUTL_ERROR_SYSTEM),
            (Sharing::Platform, CUTL_ERROR_UNSUPPORTED),
        ];
        let shared = shared.map(|(error, code)| (Error::from(error), code));
        for (error, expected) in own.into_iter().chain(shared) {
            let text = format!("{error:?}");
            let fail = Fail::from(error);
            let driver = if text.starts_with("cuIpcOpenMemHandle_v2 failed") { 201 } else { 0 };
            assert_eq!((fail.code, fail.driver), (expected, driver), "{text}");
        }
    }

    #[test]
    fn names_of_codes() {
        let name = |code| {
            // SAFETY: the function returns constants.
            unsafe { CStr::from_ptr(cutl_result_name(code)) }.to_str().unwrap()
        };
        assert_eq!(name(-19), "CUTL_ERROR_INTERNAL");
        for code in -19..=1 {
            assert!(name(code).starts_with("CUTL_"), "{code}");
        }
        assert_eq!(name(2), "no code of cuda_timelines");
    }
}
