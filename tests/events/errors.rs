//! What each error says, and that the cause it names is the cause.

use crate::common;

use std::collections::HashSet;
use std::error::Error as _;
use std::mem::discriminant;
use std::path::PathBuf;
use std::sync::OnceLock;

use common::Gpu;
use cuda_events::ipc::DescriptorError;
use cuda_events::loader::LoadFailure;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Device, Driver, Error, Version};

pub const RECORD: Function = Function::cuEventRecord;
pub const ELAPSED: Function = Function::cuEventElapsedTime_v2;
pub const HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;

/// A plain refusal by the driver.
pub fn refused(function: Function, code: CUresult) -> Error {
    Error::Driver { function, code }
}

fn library() -> &'static PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| PathBuf::from("/opt/libcuda.so.1"))
}

/// Every kind of error with its whole text.
#[expect(clippy::too_many_lines, reason = "a table")]
fn texts() -> Vec<(Error, &'static str)> {
    vec![
        (
            refused(Function::cuEventQuery, CUresult::CUDA_ERROR_UNKNOWN),
            "cuEventQuery failed with CUDA_ERROR_UNKNOWN (999)",
        ),
        (
            Error::Init { code: CUresult::CUDA_ERROR_INVALID_IMAGE, library: Some(library()) },
            "cuInit of /opt/libcuda.so.1 failed with CUDA_ERROR_INVALID_IMAGE (200)",
        ),
        (
            Error::Init { code: CUresult::CUDA_ERROR_NO_DEVICE, library: Some(library()) },
            "cuInit of /opt/libcuda.so.1 failed with CUDA_ERROR_NO_DEVICE (100): no CUDA device is \
             visible; look at nvidia-smi and at CUDA_VISIBLE_DEVICES; run cuda-events-doctor for \
             details",
        ),
        (
            Error::Init { code: CUresult(4242), library: None },
            "cuInit failed with an unknown CUDA error (4242)",
        ),
        (
            refused(Function::cuEventQuery, CUresult(4242)),
            "cuEventQuery failed with an unknown CUDA error (4242)",
        ),
        (
            Error::Unsupported {
                function: Function::cuStreamGetId,
                since: Version::new(12, 0),
                driver: Version::new(11, 8),
            },
            "cuStreamGetId needs CUDA 12.0, and the driver supports CUDA 11.8: update the driver",
        ),
        (
            Error::Unsupported {
                function: Function::cuStreamGetId,
                since: Version::new(12, 0),
                driver: Version::new(12, 0),
            },
            "cuStreamGetId is missing from the driver, although the driver reports CUDA 12.0 and \
             the call exists since CUDA 12.0",
        ),
        (
            Error::ForkedChild { function: RECORD },
            "cuEventRecord was not called: this process was forked after CUDA was initialised, and \
             CUDA does not survive a fork; fork before the first use of a device, or start the \
             child with exec",
        ),
        (
            Error::DriverMismatch { function: RECORD },
            "cuEventRecord was not called: its objects belong to two different driver libraries of \
             this process; use objects of the same library",
        ),
        (
            Error::NoSuchDevice { ordinal: 0, count: 0 },
            "there is no device 0: this process sees none; look at nvidia-smi and at \
                CUDA_VISIBLE_DEVICES",
        ),
        (
            Error::NoSuchDevice { ordinal: 1, count: 1 },
            "there is no device 1: the only device is device 0",
        ),
        (
            Error::NoSuchDevice { ordinal: 9, count: 8 },
            "there is no device 9: the devices are 0 to 7",
        ),
        (
            Error::ContextMismatch {
                function: RECORD,
                code: Some(HANDLE),
                device: 0,
                other_device: 0,
            },
            "cuEventRecord failed with CUDA_ERROR_INVALID_HANDLE (400): the event belongs to \
             another context of device 0 than the stream; both must belong to one context",
        ),
        (
            Error::ContextMismatch {
                function: RECORD,
                code: Some(HANDLE),
                device: 0,
                other_device: 1,
            },
            "cuEventRecord failed with CUDA_ERROR_INVALID_HANDLE (400): the event belongs to a \
             context of device 0, the stream to one of device 1; both must belong to one context",
        ),
        (
            Error::ContextMismatch {
                function: ELAPSED,
                code: Some(HANDLE),
                device: 2,
                other_device: 2,
            },
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): the event belongs \
             to another context of device 2 than the other event; both must belong to one context",
        ),
        (
            Error::ContextMismatch {
                function: ELAPSED,
                code: Some(HANDLE),
                device: 2,
                other_device: 1,
            },
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): the event belongs \
             to a context of device 2, the other event to one of device 1; both must belong to one \
             context",
        ),
        (
            Error::ContextMismatch {
                function: Function::cuCtxRecordEvent,
                code: Some(HANDLE),
                device: 0,
                other_device: 1,
            },
            "cuCtxRecordEvent failed with CUDA_ERROR_INVALID_HANDLE (400): the event belongs to a \
             context of device 0, the work to one of device 1; both must belong to one context",
        ),
        (
            Error::ContextMismatch {
                function: Function::cuStreamWaitEvent,
                code: None,
                device: 0,
                other_device: 0,
            },
            "cuStreamWaitEvent was not called: the interprocess event belongs to another context \
             of device 0, and the driver would crash; wait in a stream of the event's context, and \
             make the other stream wait for that stream with wait_stream",
        ),
        (
            Error::ContextMismatch {
                function: Function::cuCtxWaitEvent,
                code: None,
                device: 0,
                other_device: 1,
            },
            "cuCtxWaitEvent was not called: the interprocess event belongs to a context of device \
             0, not 1, and the driver would crash; wait in a stream of the event's context, and \
             make the other stream wait for that stream with wait_stream",
        ),
        (
            Error::TimingDisabled { function: ELAPSED, code: Some(HANDLE) },
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): one of the two \
             events takes no time stamps; create both with EventFlags::TIMING, which interprocess \
             events cannot have",
        ),
        (
            Error::NotRecorded { function: ELAPSED, code: Some(HANDLE) },
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_INVALID_HANDLE (400): one of the two \
             events was never recorded; record both first",
        ),
        (
            Error::NotReady { function: ELAPSED, code: CUresult::CUDA_ERROR_NOT_READY },
            "cuEventElapsedTime_v2 failed with CUDA_ERROR_NOT_READY (600): the work before one of \
             the two events is not done; synchronize with the later event first",
        ),
        (
            Error::EndBeforeStart,
            "the end was recorded before the start; exchange the two events, or use elapsed_ms, \
             which returns negative times too",
        ),
        (
            Error::NotRecorded { function: ELAPSED, code: None },
            "cuEventElapsedTime_v2 was not called: one of the two events was never recorded; \
                record both first",
        ),
        (
            Error::NotRecorded { function: Function::cuStreamWaitEvent, code: None },
            "cuStreamWaitEvent was not called: the event was never recorded, and a wait does not \
             include a later record; record it first",
        ),
        (
            Error::TimingDisabled { function: ELAPSED, code: None },
            "cuEventElapsedTime_v2 was not called: one of the two events takes no time stamps; \
             create both with EventFlags::TIMING, which interprocess events cannot have",
        ),
        (
            Error::ContextMismatch {
                function: Function::cuStreamGetCtx,
                code: None,
                device: 1,
                other_device: 1,
            },
            "the stream belongs to another context of device 1 than the one given; get the \
             stream's own context with Context::from_raw_with_owner",
        ),
        (
            Error::ContextMismatch {
                function: Function::cuStreamGetCtx,
                code: None,
                device: 1,
                other_device: 2,
            },
            "the stream belongs to a context of device 2, and the context given belongs to device \
             1; give a context of the stream's own device",
        ),
        (
            Error::GraphMismatch { function: Function::cuGraphAddEventRecordNode },
            "cuGraphAddEventRecordNode was not called: the node belongs to another graph",
        ),
        (
            Error::CaptureMismatch { function: Function::cuStreamUpdateCaptureDependencies },
            "cuStreamUpdateCaptureDependencies was not called: the stream does not take part in \
             this capture; make it wait for an event that was recorded in the capture",
        ),
        (
            Error::ResourceMismatch { function: Function::cuDevResourceGenerateDesc },
            "cuDevResourceGenerateDesc was not called: a green context takes one resource of its \
             device, or several different parts of one split",
        ),
        (
            Error::ContextMismatch {
                function: Function::cuStreamCopyAttributes,
                code: None,
                device: 0,
                other_device: 1,
            },
            "cuStreamCopyAttributes was not called: the streams belong to contexts of device 0 and \
             of device 1; both must belong to one context",
        ),
        (
            Error::ContextMismatch {
                function: Function::cuStreamCopyAttributes,
                code: None,
                device: 2,
                other_device: 2,
            },
            "cuStreamCopyAttributes was not called: the streams belong to two contexts of device \
             2; both must belong to one context",
        ),
        (
            Error::ClosureInCapture { function: Function::cuLaunchHostFunc },
            "cuLaunchHostFunc was not called: the stream is capturing, and a closure can run only \
             once, but a graph can be launched many times; call it outside of the capture, or \
             capture a function with launch_host_function_raw",
        ),
        (
            Error::BlockingInGreenContext,
            "a green context has no blocking streams: they would synchronize with a legacy default \
             stream that works on other multiprocessors; create the stream without \
             StreamOptions::blocking, and order it by events",
        ),
        (
            Error::ExporterGone,
            "the process that had to complete the event's record has ended before it did; import \
             from its successor",
        ),
        (
            Error::SemaphoreOfOtherDevice {
                function: Function::cuImportExternalSemaphore,
                semaphore: Some(1),
                context: 0,
            },
            "cuImportExternalSemaphore was not called: the semaphore belongs to device 1, and the \
             context to device 0; import it in a context of device 1",
        ),
        (
            Error::SemaphoreOfOtherDevice {
                function: Function::cuImportExternalSemaphore,
                semaphore: None,
                context: 0,
            },
            "cuImportExternalSemaphore was not called: the semaphore belongs to a device that this \
             process does not see, and the context to device 0; create it on the device whose UUID \
             is Device::uuid, and look at CUDA_VISIBLE_DEVICES",
        ),
        (
            Error::NotASemaphore {
                function: Function::cuImportExternalSemaphore,
                code: Some(CUresult::CUDA_ERROR_UNKNOWN),
            },
            "cuImportExternalSemaphore failed with CUDA_ERROR_UNKNOWN (999): the driver cannot \
             import this handle as a semaphore of that kind; export an opaque file descriptor or \
             NT handle with NVIDIA's driver, a new one for each import, and import timeline \
             semaphores as timeline and binary ones as binary",
        ),
        (
            Error::TooManyObservers,
            "this process has no place left for an observer of this driver; remove one with \
             stop_observing, or combine two into one",
        ),
        (
            Error::InterprocessPool,
            "a pool cannot hold interprocess events: an event that was returned to the pool may \
             still be open in another process",
        ),
        (
            Error::TimingWithInterprocess,
            "an event cannot be both TIMING and INTERPROCESS: the driver does not time \
             interprocess events; create one event for each",
        ),
        (
            Error::NotInterprocess,
            "only an event created with EventFlags::INTERPROCESS has an IPC descriptor",
        ),
        (
            Error::ExportOfImport,
            "an imported event cannot be exported again; pass on the IPC descriptor from which it \
             was imported",
        ),
        (
            Error::PriorityOutOfRange { priority: -6, least: 0, greatest: -5 },
            "stream priority -6 is out of range: this context has 0 (least important) to -5 (most \
                important)",
        ),
        (
            DescriptorError::Length { found: 64, expected: 128 }.into(),
            "IPC event descriptor refused: it has 64 bytes, not 128",
        ),
        (
            DescriptorError::Magic.into(),
            "IPC event descriptor refused: it begins neither like the text nor like the bytes of \
             an IpcEventDescriptor; for the driver's own 64 bytes use IpcEventDescriptor::from_raw",
        ),
        (
            DescriptorError::Version { found: 2, expected: 1 }.into(),
            "IPC event descriptor refused: it is of version 2, and this cuda-events reads version \
             1; use the same release in both processes",
        ),
        (
            DescriptorError::Text.into(),
            "IPC event descriptor refused: its text has characters that are not hexadecimal \
             digits, or an odd number of them",
        ),
        (
            DescriptorError::Checksum.into(),
            "IPC event descriptor refused: it was damaged on the way (its checksum does not match)",
        ),
        (
            DescriptorError::Flags { unknown: 0x8004 }.into(),
            "IPC event descriptor refused: it has flags that this cuda-events does not know \
             (0x8004); use the same release in both processes",
        ),
        (
            DescriptorError::SameProcess { pid: 17 }.into(),
            "IPC event descriptor refused: it was exported by this process (id 17), and an \
             interprocess event can be opened only in another one; if it comes from a process in \
             another pid namespace, the two must not have the same id",
        ),
        (
            DescriptorError::DeviceMismatch { exported: Some(1), context: 0 }.into(),
            "IPC event descriptor refused: its event belongs to device 1, and the context to \
             device 0; open it in a context of device 1",
        ),
        (
            DescriptorError::DeviceMismatch { exported: None, context: 0 }.into(),
            "IPC event descriptor refused: its event belongs to a device that this process does \
             not see, and the context to device 0; look at CUDA_VISIBLE_DEVICES in both processes",
        ),
    ]
}

/// What is said beside a code, where it tells what to do.
#[expect(clippy::too_many_lines, reason = "a table")]
fn advice() -> Vec<(Function, u32, &'static str)> {
    let open = Function::cuIpcOpenEventHandle;
    let failed_work =
        "work on the device failed, and the context with it; only a new process can use CUDA again";
    let ipc_memory =
        "the device's memory, or the context's interprocess events (a few thousand), are used up";
    let no_ipc = "this device or platform has no interprocess events (WSL, for one, has none)";
    let captured = "the event was last recorded in a capture, and that capture has ended; record \
                    it again, or capture the record with record_external";
    let not_capturing = "the stream is not capturing";
    let legacy = "the legacy default stream cannot be captured";
    let captures_already = "the stream is already capturing, or another stream is capturing into \
                            this graph";
    let in_context = "a stream of the context is capturing; this call invalidated the capture";
    let retain = Function::cuDevicePrimaryCtxRetain;
    let system = "the operating system refused a request of the driver; check this process's \
                  limits (ulimit -v, ulimit -n) and those of its container or sandbox";
    let no_cuda = "this device or platform is not set up for CUDA; a virtual GPU needs a type, a \
                   licence and settings with CUDA";
    vec![
        (Function::cuInit, 2, system),
        (Function::cuInit, 304, system),
        (Function::cuInit, 801, no_cuda),
        (retain, 801, no_cuda),
        (
            retain,
            2,
            "there is no room for the context, which takes some hundred megabytes of the device's \
             memory; nvidia-smi lists the processes that use it; check this process's limits \
             (ulimit -v) too",
        ),
        (
            Function::cuInit,
            4,
            "the driver has ended: the process is ending, or, with a driver in software, the \
             SoftDriver was dropped before the objects that use it",
        ),
        (
            Function::cuStreamQuery,
            800,
            "a host function may make no driver call; have another thread make it, after the \
             function has told it so",
        ),
        (
            Function::cuEventDestroy_v2,
            400,
            "the driver has no such object; other code, or a raw handle, may have destroyed it \
             before",
        ),
        (
            Function::cuInit,
            34,
            "this is the CUDA toolkit's stub library, which is for linking only; install the \
                NVIDIA display driver",
        ),
        (
            Function::cuInit,
            100,
            "no CUDA device is visible; look at nvidia-smi and at CUDA_VISIBLE_DEVICES; run \
             cuda-events-doctor for details",
        ),
        (
            Function::cuInit,
            3,
            "CUDA does not survive a fork; perhaps other code of this program used CUDA before \
             this process was forked",
        ),
        (Function::cuInit, 36, "update the NVIDIA display driver"),
        (
            Function::cuInit,
            46,
            "another process uses the device exclusively, or its compute mode prohibits CUDA; look \
             at nvidia-smi -q -d COMPUTE",
        ),
        (
            Function::cuInit,
            101,
            "a device that this process was given cannot be used; look at nvidia-smi -L and at \
                CUDA_VISIBLE_DEVICES",
        ),
        (
            Function::cuInit,
            802,
            "the machine is not ready for CUDA; one with NVSwitch needs nvidia-fabricmanager of \
                the driver's own version",
        ),
        (
            Function::cuInit,
            803,
            "the driver library does not fit the kernel module; after a driver update, reboot, and \
             start containers again; run cuda-events-doctor for details",
        ),
        (
            Function::cuInit,
            804,
            "the library belongs to a forward-compatibility package (cuda-compat), which this \
             device does not support; take its folder out of the library search path; run \
             cuda-events-doctor for details",
        ),
        (
            Function::cuInit,
            999,
            "the driver does not reach its kernel module; run nvidia-modprobe -u -c 0, give the \
             container its devices (/dev/nvidia-uvm among them), or reboot; run cuda-events-doctor \
             for details",
        ),
        (Function::cuEventCreate, 801, no_ipc),
        (Function::cuIpcGetEventHandle, 801, no_ipc),
        (open, 801, no_ipc),
        (Function::cuEventQuery, 1, captured),
        (Function::cuEventSynchronize, 1, captured),
        (Function::cuEventElapsedTime, 1, captured),
        (ELAPSED, 1, captured),
        (Function::cuStreamWaitEvent, 1, captured),
        (
            open,
            205,
            "the exporting process has ended or belongs to another user, or the two processes do \
                not share /dev/shm and process ids",
        ),
        (open, 201, "an event cannot be opened in the process that exported it"),
        (open, 2, ipc_memory),
        (Function::cuIpcGetEventHandle, 2, ipc_memory),
        (Function::cuEventCreate, 2, ipc_memory),
        (Function::cuEventCreate, 201, "no context is current on this thread"),
        (RECORD, 709, "the context was destroyed"),
        (
            Function::cuEventQuery,
            907,
            "the event was last recorded in a capture; only waits in that capture can use it until \
             it is recorded again outside",
        ),
        (Function::cuStreamBeginCapture_v2, 900, legacy),
        (Function::cuStreamBeginCaptureToGraph, 900, legacy),
        (Function::cuStreamBeginCapture_v2, 401, captures_already),
        (Function::cuStreamBeginCaptureToGraph, 401, captures_already),
        (Function::cuStreamEndCapture, 401, not_capturing),
        (Function::cuStreamUpdateCaptureDependencies, 401, not_capturing),
        (Function::cuStreamUpdateCaptureDependencies_v2, 401, not_capturing),
        (Function::cuEventRecordWithFlags, 401, not_capturing),
        (Function::cuStreamWaitEvent, 401, not_capturing),
        (
            Function::cuGraphLaunch,
            900,
            "a graph cannot be launched in a capturing stream; this call invalidated the capture",
        ),
        (Function::cuCtxRecordEvent, 900, in_context),
        (Function::cuCtxWaitEvent, 900, in_context),
        (
            RECORD,
            900,
            "a stream capture in progress does not allow this call; see CaptureMode and \
            ThreadCaptureMode",
        ),
        (
            RECORD,
            901,
            "an earlier call invalidated the stream's capture; end it, then capture again",
        ),
        (
            Function::cuStreamWaitEvent,
            902,
            "the event was recorded in another capture, and two captures cannot be joined",
        ),
        (
            Function::cuStreamEndCapture,
            903,
            "the capture began in another stream; end it in that \
                                             stream",
        ),
        (
            Function::cuStreamEndCapture,
            904,
            "the stream in which the capture began does not wait for all work of the other streams \
                in it",
        ),
        (
            Function::cuStreamWaitEvent,
            905,
            "a capturing stream can wait only for events of its own capture, unless the wait is \
                external",
        ),
        (
            Function::cuStreamEndCapture,
            908,
            "only the thread that began a capture can end it, unless its mode is relaxed",
        ),
        (
            Function::cuStreamGetCaptureInfo_v2,
            402,
            "the dependencies carry edge data, and a query older than CUDA 12.3 cannot return it",
        ),
        (RECORD, 906, "the legacy default stream cannot be used while a blocking stream captures"),
        (
            RECORD,
            810,
            "the MPS server has ended this process's connection; only a new process can use CUDA \
             again",
        ),
    ]
    .into_iter()
    .chain(STICKY.iter().filter(|code| **code != 810).map(|code| (RECORD, *code, failed_work)))
    .collect()
}

/// The codes after which only a new process can use the device.
const STICKY: &[u32] = &[214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911];

#[test]
fn errors_fit_in_two_registers() {
    assert!(size_of::<Error>() <= 16);
    assert!(size_of::<Result<(), Error>>() <= 16);
    assert!(size_of::<Result<bool, Error>>() <= 16);
    assert!(size_of::<Result<f32, Error>>() <= 16);
}

#[test]
fn every_error_has_its_text() {
    for (error, text) in texts() {
        assert_eq!(error.to_string(), text);
        // What `unwrap` and `main` print.
        assert_eq!(format!("{error:?}"), text);
        if let Error::Descriptor(error) = error {
            assert_eq!(
                (error.to_string(), format!("{error:?}")),
                (text.to_owned(), text.to_owned())
            );
        }
    }
    for (function, code, advice) in advice() {
        let code = CUresult(code);
        let name = code.name().expect("a known code");
        let text = format!("{function} failed with {name} ({}): {advice}", code.0);
        assert_eq!(refused(function, code).to_string(), text);
        if function == Function::cuInit {
            assert_eq!(Error::Init { code, library: None }.to_string(), text);
        }
    }
    // Other calls give some of these codes for other reasons.
    let retain = Function::cuDevicePrimaryCtxRetain;
    for (function, code) in [
        (Function::cuEventQuery, 101),
        (Function::cuEventQuery, 999),
        (Function::cuEventQuery, 3),
        (Function::cuEventQuery, 801),
        (Function::cuEventQuery, 304),
        (Function::cuStreamCreate, 2),
        (retain, 304),
        (Function::cuStreamQuery, 1),
        (RECORD, 1),
        (Function::cuStreamQuery, 401),
    ] {
        let code = CUresult(code);
        assert_eq!(refused(function, code).to_string(), format!("{function} failed with {code}"));
    }
}

#[test]
fn a_code_shows_its_name() {
    for (code, text) in [
        (CUresult::CUDA_SUCCESS, "CUDA_SUCCESS (0)"),
        (CUresult::CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE (100)"),
        (CUresult(4242), "an unknown CUDA error (4242)"),
    ] {
        assert_eq!((code.to_string(), format!("{code:?}")), (text.to_owned(), text.to_owned()));
    }
    let error = Driver::load_from("/nowhere/libcuda.so.1").expect_err("there is no such file");
    let Error::Load(load) = &error else { panic!("{error}") };
    let text = error.to_string();
    assert_eq!(
        [format!("{error:?}"), format!("{load:?}"), load.to_string()],
        [&*text, &*text, &*text]
    );
}

#[test]
fn after_some_codes_only_a_new_process_recovers() {
    for code in 0..1100 {
        for error in [
            refused(RECORD, CUresult(code)),
            Error::Init { code: CUresult(code), library: None },
            Error::NotReady { function: ELAPSED, code: CUresult(code) },
        ] {
            assert_eq!(error.is_sticky(), STICKY.contains(&code), "{error}");
            if !matches!(error, Error::NotReady { .. }) {
                assert_eq!(
                    error.to_string().contains("only a new process can use CUDA again"),
                    STICKY.contains(&code),
                    "{error}"
                );
            }
        }
    }
    for (error, text) in texts() {
        assert_eq!(error.is_sticky(), matches!(error, Error::ForkedChild { .. }), "{text}");
    }
}

#[test]
fn no_kind_of_error_is_forgotten_here() {
    let kinds = |source: &'static str, declaration: &str| {
        let (_, after) = source.split_once(declaration).expect("the file declares it");
        let (variants, _) = after.split_once("\n}").expect("the declaration ends");
        // The names of variants stand four spaces in, and nothing else that begins with a capital
        // does.
        let names = variants.lines().filter_map(|line| line.strip_prefix("    "));
        let names = names.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
        names
            .map(|line| line.split(|c: char| !c.is_alphanumeric()).next().expect("a name"))
            .collect::<Vec<_>>()
    };
    // A load error cannot be made up here; its parts have a test of their own.
    let errors = kinds(include_str!("../../src/error/mod.rs"), "pub enum Error {");
    let refusals =
        kinds(include_str!("../../src/error/descriptor.rs"), "pub enum DescriptorError {");
    assert!(errors.len() > 20 && refusals.len() > 5, "{errors:?}, {refusals:?}");
    let here: HashSet<_> = texts().iter().map(|(error, _)| discriminant(error)).collect();
    assert_eq!(here.len(), errors.len() - 1, "one of {errors:?} has no text in this test");
    let here: HashSet<_> = texts()
        .iter()
        .filter_map(|(error, _)| {
            if let Error::Descriptor(error) = error { Some(discriminant(error)) } else { None }
        })
        .collect();
    assert_eq!(here.len(), refusals.len(), "one of {refusals:?} has no text in this test");
}

#[test]
fn every_load_failure_has_its_text() {
    let functions =
        vec![Function::cuInit, Function::cuEventQuery, RECORD, Function::cuStreamQuery, ELAPSED];
    for (failure, text) in [
        (
            LoadFailure::Open("libcuda.so.1: what the system says".to_owned()),
            "libcuda.so.1: what the system says",
        ),
        (LoadFailure::RelativePath, "the path is relative; use an absolute path"),
        (
            LoadFailure::NotAFunction("cuGetProcAddress".to_owned()),
            "not a CUDA driver: its cuGetProcAddress is data and not a function",
        ),
        (LoadFailure::Platform, "NVIDIA has no driver for this platform"),
        (LoadFailure::NotADriver, "not a CUDA driver: it exports no cuDriverGetVersion"),
        (
            LoadFailure::Stub,
            "the CUDA toolkit's stub library (CUDA_ERROR_STUB_LIBRARY, 34), which is for linking \
             only; take its folder out of the library search path and install the NVIDIA display \
             driver",
        ),
        (
            LoadFailure::Version(CUresult::CUDA_ERROR_UNKNOWN),
            "cuDriverGetVersion failed with CUDA_ERROR_UNKNOWN (999)",
        ),
        (
            LoadFailure::MissingSymbols {
                driver: Version::new(10, 2),
                functions: functions[..2].to_vec(),
            },
            "the driver supports CUDA 10.2, and this crate needs 11.0 or newer: update the driver \
             (it lacks cuInit, cuEventQuery)",
        ),
        (
            LoadFailure::MissingSymbols {
                driver: Version::new(12, 4),
                functions: functions[..3].to_vec(),
            },
            "the driver reports CUDA 12.4, but is not complete (it lacks cuInit, cuEventQuery, \
             cuEventRecord)",
        ),
        (
            LoadFailure::MissingSymbols {
                driver: Version::new(11, 0),
                functions: functions[..1].to_vec(),
            },
            "the driver reports CUDA 11.0, but is not complete (it lacks cuInit)",
        ),
        (
            LoadFailure::MissingSymbols { driver: Version::new(9, 0), functions },
            "the driver supports CUDA 9.0, and this crate needs 11.0 or newer: update the driver \
             (it lacks cuInit, cuEventQuery, cuEventRecord and 2 more)",
        ),
    ] {
        assert_eq!(failure.to_string(), text);
    }
    let error = Driver::load_from("/nowhere/libcuda.so.1").expect_err("there is no such file");
    let of = if cfg!(target_env = "musl") { "Error loading shared library " } else { "" };
    let named = format!("no usable CUDA driver library: {of}/nowhere/libcuda.so.1: ");
    assert!(error.to_string().starts_with(&named), "{error}");
}

#[test]
fn a_text_is_one_line_and_says_nothing_twice() {
    let load = Driver::load_from("/nowhere/libcuda.so.1").expect_err("there is no such file");
    for error in texts().into_iter().map(|(error, _)| error).chain([load]) {
        let text = error.to_string();
        assert!(!text.contains('\n') && !text.contains("  ") && !text.ends_with('.'), "{text}");
        let mut source = error.source();
        while let Some(error) = source {
            assert!(!text.contains(&error.to_string()), "{text}");
            source = error.source();
        }
    }
}

#[test]
fn every_error_names_the_call_and_the_code() {
    for (error, text) in texts() {
        // What the text names first is the call, where one call is to blame.
        if let Some(named) = text.split(' ').next().filter(|word| word.starts_with("cu")) {
            assert_eq!(error.function().expect("the call that the text names").name(), named);
        }
        let named = text
            .split_once("failed with ")
            .map(|_| error.code().expect("the code that the text names"));
        if let Some(code) = named {
            assert!(text.contains(&code.to_string()), "{text}");
        }
    }
    let calls = |error: Error| (error.function(), error.code());
    assert_eq!(calls(refused(RECORD, CUresult(4242))), (Some(RECORD), Some(CUresult(4242))));
    assert_eq!(calls(Error::ForkedChild { function: RECORD }), (Some(RECORD), None));
    assert_eq!(
        calls(Error::Init { code: CUresult(4242), library: None }),
        (Some(Function::cuInit), Some(CUresult(4242)))
    );
    assert_eq!(
        calls(Error::NoSuchDevice { ordinal: 1, count: 1 }),
        (Some(Function::cuDeviceGet), Some(CUresult::CUDA_ERROR_INVALID_DEVICE))
    );
    assert_eq!(
        calls(DescriptorError::SameProcess { pid: 17 }.into()),
        (Some(Function::cuIpcOpenEventHandle), Some(CUresult::CUDA_ERROR_INVALID_CONTEXT))
    );
    for nobody_was_asked in [
        Error::TimingWithInterprocess,
        Error::NotInterprocess,
        Error::ExportOfImport,
        Error::PriorityOutOfRange { priority: 1, least: 0, greatest: 0 },
        DescriptorError::Checksum.into(),
        Driver::load_from("/nowhere/libcuda.so.1").expect_err("there is no such file"),
    ] {
        assert_eq!(calls(nobody_was_asked), (None, None));
    }
}

// Causes, on the driver under test.

#[test]
fn a_device_that_is_not_there() {
    let gpu = Gpu::new();
    let count = Device::count(gpu.driver).expect("a count");
    for ordinal in [count, count + 1, i32::MAX as u32, u32::MAX] {
        assert_eq!(Device::new(gpu.driver, ordinal), Err(Error::NoSuchDevice { ordinal, count }));
    }
}
