//! What errors say where it depends on something, their calls and codes, and the advice for codes.

use std::path::PathBuf;
use std::sync::OnceLock;

use cuda_events::ipc::DescriptorError;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Error, Version};

pub const RECORD: Function = Function::cuEventRecord;
pub const ELAPSED: Function = Function::cuEventElapsedTime_v2;
pub const HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

/// A plain refusal by the driver.
pub fn refused(function: Function, code: CUresult) -> Error {
    Error::Driver { function, code }
}

fn mismatch(function: Function, code: Option<CUresult>, devices: [u16; 2]) -> Error {
    let [device, other_device] = devices;
    Error::ContextMismatch { function, code, device, other_device }
}

/// Those of things that belong to two contexts.
#[rustfmt::skip] // A row in few lines.
fn mismatches() -> Vec<(Error, &'static str)> {
    let (wait, get) = (Function::cuStreamWaitEvent, Function::cuStreamGetCtx);
    let (copy, all) = (Function::cuStreamCopyAttributes, Function::cuCtxRecordEvent);
    let signal = Function::cuSignalExternalSemaphoresAsync;
    vec![
        (mismatch(ELAPSED, Some(HANDLE), [2, 1]),
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): probably the \
             event belongs to a context of device 2, the other event to one of device 1; both must \
             belong to one context (a destroyed event has the same code)"),
        (mismatch(all, Some(HANDLE), [0, 1]),
            "cuCtxRecordEvent failed with CUDA_ERROR_INVALID_HANDLE (400): probably the event \
             belongs to a context of device 0, the work to one of device 1; both must belong to \
             one context (a destroyed event or context has the same code)"),
        (mismatch(wait, None, [0, 0]),
            "cuStreamWaitEvent was not called: the interprocess event belongs to another context"),
        (mismatch(Function::cuCtxWaitEvent, None, [0, 1]),
            "cuCtxWaitEvent was not called: the interprocess event belongs to a context of device \
             0, not 1"),
        (mismatch(get, None, [1, 1]), "the stream belongs to another context of device 1 than"),
        (
            mismatch(get, None, [1, 2]),
            "the stream belongs to a context of device 2, and the context given belongs to device 1",
        ),
        (
            mismatch(copy, None, [0, 1]),
            "cuStreamCopyAttributes was not called: the streams belong to contexts of device 0 and of \
             device 1; both must",
        ),
        (
            mismatch(copy, None, [2, 2]),
            "cuStreamCopyAttributes was not called: the streams belong to two contexts of device 2",
        ),
        (mismatch(signal, None, [3, 3]),
            "cuSignalExternalSemaphoresAsync was not called: the semaphore was imported in another \
             context of device 3 than the stream's; import it in the stream's context."),
        (mismatch(signal, None, [1, 2]),
            "cuSignalExternalSemaphoresAsync was not called: the semaphore was imported in a \
             context of device 1, and the stream belongs to one of device 2; import it"),
        (mismatch(Function::cuWaitExternalSemaphoresAsync, None, [1, 2]),
            "cuWaitExternalSemaphoresAsync was not called: the semaphore was imported in a \
             context of device 1, and the stream belongs to one of device 2; import it"),
    ]
}

/// Errors whose text depends on what they hold, each with the beginning of its text.
#[rustfmt::skip] // A row in few lines.
fn texts() -> Vec<(Error, &'static str)> {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let library = Some(LIBRARY.get_or_init(|| PathBuf::from("/opt/libcuda.so.1")));
    let needs = |driver| Error::Unsupported {
        function: Function::cuStreamGetId,
        since: Version::new(12, 0),
        driver,
    };
    let (wait, import) = (Function::cuStreamWaitEvent, Function::cuImportExternalSemaphore);
    let mut texts = mismatches();
    texts.extend([
        (refused(Function::cuEventQuery, CUresult(4242)),
            "cuEventQuery failed with an unknown CUDA error (4242)"),
        (
            Error::Init { code: CUresult::CUDA_ERROR_NO_DEVICE, library },
            "cuInit of /opt/libcuda.so.1 failed with CUDA_ERROR_NO_DEVICE (100): no CUDA device is",
        ),
        (Error::Init { code: CUresult(4242), library: None },
            "cuInit failed with an unknown CUDA error (4242)"),
        (needs(Version::new(11, 8)),
            "cuStreamGetId needs CUDA 12.0, and the driver supports CUDA 11.8: update the driver"),
        (needs(Version::new(12, 0)),
            "cuStreamGetId is missing from the driver, although the driver reports CUDA 12.0"),
        (
            Error::NoSuchDevice { ordinal: 0, count: 0 },
            "cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE (101): there is no device 0: this process",
        ),
        (
            Error::NoSuchDevice { ordinal: 1, count: 1 },
            "cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE (101): there is no device 1: the only",
        ),
        (Error::NoSuchDevice { ordinal: 9, count: 8 },
            "cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE (101): there is no device 9: the \
             devices are 0 to 7"),
        (mismatch(RECORD, Some(HANDLE), [0, 0]),
            "cuEventRecord failed with CUDA_ERROR_INVALID_HANDLE (400): probably the event \
             belongs to another context of device 0 than the stream; both must belong to one \
             context (a destroyed event or stream has the same code)"),
        (Error::NotRecorded { function: ELAPSED, code: Some(HANDLE) },
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): probably one of \
             the two events was never recorded; record both first (a destroyed event has the same \
             code)"),
        (Error::TimingDisabled { function: ELAPSED, code: Some(HANDLE) },
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): probably one of \
             the two events takes no time stamps; create both with EventFlags::TIMING, which \
             interprocess events cannot have (a destroyed event has the same code)"),
        (Error::NotRecorded { function: ELAPSED, code: None },
            "cuEventElapsedTime_v2 was not called: one of the two events was never recorded"),
        (Error::NotRecorded { function: wait, code: None },
            "cuStreamWaitEvent was not called: the event was never recorded"),
        (Error::TimingDisabled { function: ELAPSED, code: None },
            "cuEventElapsedTime_v2 was not called: one of the two events takes no time stamps"),
        (Error::NotASemaphore { function: import, code: Some(CUresult(1)) },
            "cuImportExternalSemaphore failed with CUDA_ERROR_INVALID_VALUE (1): probably the \
             driver cannot import"),
        (Error::NotASemaphore { function: import, code: None },
            "cuImportExternalSemaphore was not called: the driver cannot import"),
        (DescriptorError::SameProcess { pid: 17 }.into(),
            "IPC event descriptor refused: cuIpcOpenEventHandle failed with \
             CUDA_ERROR_INVALID_CONTEXT (201): probably this process (id 17) exported it"),
        (Error::SemaphoreOfOtherDevice { function: import, semaphore: Some(1), context: 0 },
            "cuImportExternalSemaphore was not called: the semaphore belongs to device 1, and the \
             context to device 0; import it in a context of device 1"),
        (Error::SemaphoreOfOtherDevice { function: import, semaphore: None, context: 0 },
            "cuImportExternalSemaphore was not called: the semaphore belongs to a device that this \
             process does not see, and the context to device 0;"),
        (Error::PriorityOutOfRange { priority: -6, least: 0, greatest: -5 },
            "stream priority -6 is out of range: this context has 0 (least important) to -5"),
        (
            DescriptorError::DeviceMismatch { exported: Some(1), context: 0 }.into(),
            "IPC event descriptor refused: its event belongs to device 1, and the context to device 0; \
             open it in a context of device 1",
        ),
        (
            DescriptorError::DeviceMismatch { exported: None, context: 0 }.into(),
            "IPC event descriptor refused: its event belongs to a device that this process does not \
             see, and the context to device 0;",
        ),
    ]);
    texts
}

#[test]
fn texts_name_what_is_wrong() {
    for (error, text) in texts() {
        assert!(error.to_string().starts_with(text), "{error}, and not {text}");
        assert_eq!(format!("{error:?}"), error.to_string());
    }
    let load = cuda_events_test_support::load_from("/nowhere/libcuda.so.1")
        .expect_err("there is no such file");
    let cause = if cfg!(target_env = "musl") { "Error loading shared library " } else { "" };
    let named = format!("no usable CUDA driver library: {cause}/nowhere/libcuda.so.1: ");
    assert!(load.to_string().starts_with(&named), "{load}");
}

/// One code means different things for different calls. What the code does not say by itself is
/// said as probable.
#[test]
fn advice_fits_the_call() {
    use cuda_events::sys::functions::*;
    const PROBABLY: bool = true;
    const SURELY: bool = false;
    for (function, code, advice) in [
        (cuInit, 2, Some((PROBABLY, "the operating system refused"))),
        (cuDevicePrimaryCtxRetain, 2, Some((PROBABLY, "there is no room for the context"))),
        (cuIpcOpenEventHandle, 2, Some((PROBABLY, "the context's interprocess events"))),
        (cuStreamCreate, 2, None),
        (cuInit, 304, Some((PROBABLY, "the operating system refused"))),
        (cuEventQuery, 304, None),
        (cuInit, 801, Some((PROBABLY, "is not set up for CUDA"))),
        (cuEventCreate, 801, Some((PROBABLY, "has no interprocess events"))),
        (cuEventQuery, 801, None),
        (cuInit, 3, Some((PROBABLY, "does not survive a fork"))),
        (cuEventQuery, 3, None),
        (cuInit, 101, Some((PROBABLY, "nvidia-smi -L"))),
        (cuEventQuery, 101, None),
        (cuInit, 999, Some((PROBABLY, "does not reach its kernel module"))),
        (cuEventQuery, 999, None),
        (cuStreamQuery, 46, Some((PROBABLY, "uses the device exclusively"))),
        (cuIpcOpenEventHandle, 201, Some((PROBABLY, "exported the event"))),
        (cuIpcOpenEventHandle, 205, Some((PROBABLY, "the exporting process has ended"))),
        (cuEventCreate, 201, Some((PROBABLY, "no context is current"))),
        (cuEventDestroy_v2, 400, Some((PROBABLY, "has destroyed the object"))),
        (cuEventQuery, 400, Some((PROBABLY, "has destroyed the object"))),
        (cuEventSynchronize, 1, Some((PROBABLY, "last recorded in a capture"))),
        (cuStreamWaitEvent, 1, Some((PROBABLY, "a wrong argument of a raw call has the same"))),
        (cuStreamQuery, 1, None),
        (cuStreamBeginCapture_v2, 401, Some((PROBABLY, "is already capturing"))),
        (cuStreamEndCapture, 401, Some((PROBABLY, "is not capturing"))),
        (cuStreamQuery, 401, None),
        (cuEventQuery, 800, Some((PROBABLY, "a host function made the call"))),
        (cuStreamBeginCapture_v2, 900, Some((PROBABLY, "which cannot be captured"))),
        (cuGraphLaunch, 900, Some((PROBABLY, "a graph cannot be launched"))),
        (cuCtxWaitEvent, 900, Some((PROBABLY, "a stream of the context is capturing"))),
        (cuEventRecord, 900, Some((SURELY, "see CaptureMode"))),
        (cuEventRecord, 810, Some((SURELY, "the MPS server"))),
        (cuEventQuery, 907, Some((SURELY, "was last recorded in a capture"))),
        (cuInit, 100, Some((SURELY, "no CUDA device is visible"))),
        (cuStreamQuery, 719, Some((SURELY, "work on the device failed"))),
    ] {
        let code = CUresult(code);
        let (text, plain) =
            (refused(function, code).to_string(), format!("{function} failed with {code}"));
        match advice {
            None => assert_eq!(text, plain),
            Some((probably, advice)) => {
                let said = text.strip_prefix(&format!("{plain}: ")).expect("advice");
                assert!(said.contains(advice), "{text}");
                assert_eq!(said.starts_with("probably "), probably, "{text}");
            }
        }
        if function == cuInit {
            assert_eq!(Error::Init { code, library: None }.to_string(), text);
        }
    }
}

/// The driver's code comes first in every text, and a destroyed handle is one of the causes
/// wherever the driver refused a handle.
#[test]
fn a_refused_handle_may_be_destroyed() {
    let wait = Function::cuStreamWaitEvent;
    for error in [
        mismatch(RECORD, Some(HANDLE), [0, 0]),
        mismatch(RECORD, Some(HANDLE), [0, 1]),
        mismatch(ELAPSED, Some(HANDLE), [0, 1]),
        mismatch(Function::cuCtxRecordEvent, Some(HANDLE), [0, 1]),
        Error::TimingDisabled { function: ELAPSED, code: Some(HANDLE) },
        Error::NotRecorded { function: ELAPSED, code: Some(HANDLE) },
        Error::NotRecorded { function: wait, code: Some(HANDLE) },
        refused(wait, HANDLE),
        refused(Function::cuStreamSynchronize, HANDLE),
    ] {
        let text = error.to_string();
        assert!(text.contains("failed with CUDA_ERROR_INVALID_HANDLE (400): probably "), "{text}");
        assert!(text.contains("destroyed"), "{text}");
    }
}

#[test]
fn after_some_codes_only_a_new_process_recovers() {
    const STICKY: &[u32] =
        &[214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911];
    for code in 0..1100 {
        for error in
            [refused(RECORD, CUresult(code)), Error::Init { code: CUresult(code), library: None }]
        {
            let advised = error.to_string().contains("only a new process can use CUDA again");
            assert_eq!([error.is_sticky(), advised], [STICKY.contains(&code); 2], "{error}");
        }
    }
    assert!(Error::ForkedChild { function: RECORD }.is_sticky());
    assert!(texts().iter().all(|(error, _)| !error.is_sticky()));
}

#[test]
fn errors_give_the_call_and_the_code() {
    for (error, text) in texts() {
        let text = text.strip_prefix("IPC event descriptor refused: ").unwrap_or(text);
        if let Some(named) = text.split(' ').next().filter(|word| word.starts_with("cu")) {
            assert_eq!(error.function().expect("the call that the text names").name(), named);
        }
        assert_eq!(
            error.code().filter(|_| text.contains("failed with")).is_some(),
            text.contains("failed with"),
            "{text}"
        );
    }
    let calls = |error: Error| (error.function(), error.code());
    assert_eq!(calls(Error::ForkedChild { function: RECORD }), (Some(RECORD), None));
    assert_eq!(
        calls(Error::NoSuchDevice { ordinal: 1, count: 1 }),
        (Some(Function::cuDeviceGet), Some(CUresult::CUDA_ERROR_INVALID_DEVICE))
    );
    assert_eq!(
        calls(DescriptorError::SameProcess { pid: 17 }.into()),
        (Some(Function::cuIpcOpenEventHandle), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT))
    );
    for without_a_call in [
        Error::TimingWithInterprocess,
        Error::PriorityOutOfRange { priority: 1, least: 0, greatest: 0 },
        DescriptorError::Checksum.into(),
        cuda_events_test_support::load_from("/nowhere/libcuda.so.1")
            .expect_err("there is no such file"),
    ] {
        assert_eq!(calls(without_a_call), (None, None));
    }
}
