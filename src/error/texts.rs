//! The errors as texts.

use core::fmt;

#[cfg(feature = "safe")]
use super::DescriptorError;
use super::Error;
use super::advice::{PROBABLY, advice};
use crate::Version;
use crate::sys::{CUresult, Function};

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Init { code, library } => {
                write!(f, "{}", Function::cuInit)?;
                if let Some(library) = library {
                    write!(f, " of {}", library.display())?;
                }
                failed(f, Function::cuInit, *code)
            }
            Self::Driver { function, code } => {
                write!(f, "{function}")?;
                failed(f, *function, *code)
            }
            Self::Unsupported { function, since, driver } => {
                unsupported(f, *function, *since, *driver)
            }
            Self::ForkedChild { function } => write!(
                f,
                "{function} was not called: this process was forked after CUDA was initialised, \
                 and CUDA does not survive a fork; fork before the first use of a device, or start \
                 the child with exec"
            ),
            Self::DriverMismatch { function } => write!(
                f,
                "{function} was not called: its objects belong to two different driver libraries \
                 of this process; use objects of the same library"
            ),
            Self::ClosureInCapture { function } => write!(
                f,
                "{function} was not called: the stream is capturing, and a closure can run only \
                 once, but a graph can be launched many times; call it outside of the capture, or \
                 capture a function with launch_host_function_raw"
            ),
            Self::NoSuchDevice { ordinal, count } => no_such_device(f, *ordinal, *count),
            Self::ContextMismatch { function, code, device, other_device } => {
                other_context(f, *function, *code, (*device, *other_device))
            }
            Self::TimingDisabled { function, code } => {
                function_and_code(f, *function, *code)?;
                probably(f, *code)?;
                f.write_str(
                    "one of the two events takes no time stamps; create both with \
                     EventFlags::TIMING, which interprocess events cannot have",
                )?;
                same_code(f, *code, "event")
            }
            Self::NotRecorded { function: Function::cuStreamWaitEvent, code } => {
                function_and_code(f, Function::cuStreamWaitEvent, *code)?;
                probably(f, *code)?;
                f.write_str(
                    "the event was never recorded, and a wait does not include a later record; \
                     record it first",
                )?;
                same_code(f, *code, "event")
            }
            Self::NotRecorded { function, code } => {
                function_and_code(f, *function, *code)?;
                probably(f, *code)?;
                f.write_str("one of the two events was never recorded; record both first")?;
                same_code(f, *code, "event")
            }
            Self::NotReady { function, code } => write!(
                f,
                "{function} failed with {code}: the work before one of the two events is not done; \
                 synchronize with the later event first"
            ),
            Self::EndBeforeStart => f.write_str(
                "the end was recorded before the start; exchange the two events, or use \
                 elapsed_ms, which returns negative times too",
            ),
            Self::GraphMismatch { function } => {
                write!(f, "{function} was not called: the node belongs to another graph")
            }
            Self::CaptureMismatch { function } => write!(
                f,
                "{function} was not called: the stream does not take part in this capture; make it \
                 wait for an event that was recorded in the capture"
            ),
            Self::ResourceMismatch { function } => write!(
                f,
                "{function} was not called: a green context takes one resource of its device, or \
                 several different parts of one split"
            ),
            Self::SemaphoreOfOtherDevice { function, semaphore, context } => {
                semaphore_of_other_device(f, *function, *semaphore, *context)
            }
            Self::NotASemaphore { function, code } => not_a_semaphore(f, *function, *code),
            Self::TimingWithInterprocess => f.write_str(
                "an event cannot be both TIMING and INTERPROCESS: the driver does not time \
                 interprocess events; create one event for each",
            ),
            Self::NotInterprocess => f.write_str(
                "only an event created with EventFlags::INTERPROCESS has an IPC \
                    descriptor",
            ),
            Self::ExportOfImport => f.write_str(
                "an imported event cannot be exported again; pass on the IPC descriptor from which \
                 it was imported",
            ),
            Self::BlockingInGreenContext => f.write_str(
                "a green context has no blocking streams: they would synchronize with a legacy \
                 default stream that works on other multiprocessors; create the stream without \
                 StreamOptions::blocking, and order it by events",
            ),
            Self::ExporterGone => f.write_str(
                "the process that had to complete the event's record has ended before it did; \
                 import from its successor",
            ),
            Self::TooManyObservers => f.write_str(
                "this process has no place left for an observer of this driver; remove one with \
                 stop_observing, or combine two into one",
            ),
            Self::InterprocessPool => f.write_str(
                "a pool cannot hold interprocess events: an event that was returned to the pool \
                 may still be open in another process",
            ),
            Self::PriorityOutOfRange { priority, least, greatest } => write!(
                f,
                "stream priority {priority} is out of range: this context has {least} (least \
                 important) to {greatest} (most important)"
            ),
            #[cfg(feature = "safe")]
            Self::Descriptor(error) => error.fmt(f),
        }
    }
}

/// The beginning of a text: the call, and its result.
fn function_and_code(
    f: &mut fmt::Formatter<'_>,
    function: Function,
    code: Option<CUresult>,
) -> fmt::Result {
    match code {
        Some(code) => write!(f, "{function} failed with {code}: "),
        None => write!(f, "{function} was not called: "),
    }
}

fn unsupported(
    f: &mut fmt::Formatter<'_>,
    function: Function,
    since: Version,
    driver: Version,
) -> fmt::Result {
    if !function.is_in_table() {
        return not_found(f, function, since, driver);
    }
    if driver < since {
        write!(
            f,
            "{function} needs CUDA {since}, and the driver supports CUDA {driver}: update the \
             driver"
        )
    } else {
        write!(
            f,
            "{function} is missing from the driver, although the driver reports CUDA {driver} and \
             the call exists since CUDA {since}"
        )
    }
}

/// The text for a function that the table lacks, and that the driver did not find. Whether CUDA has
/// such a function is not known.
fn not_found(
    f: &mut fmt::Formatter<'_>,
    function: Function,
    since: Version,
    driver: Version,
) -> fmt::Result {
    let name = function.name();
    if name.is_empty() {
        return f.write_str(
            "the driver was not asked for a function without a name; give the name of a typedef \
             PFN_* of NVIDIA's, such as cuMemAlloc of PFN_cuMemAlloc_v3020",
        );
    }
    write!(f, "the driver, which supports CUDA {driver}, has no {name} of CUDA {since}")?;
    if let Some((base, suffix)) = suffix(name) {
        return write!(
            f,
            "; ask for {base} without {suffix}, as the version alone chooses the function: {since} \
             if its typedef is PFN_{base}_v{}",
            since.as_raw()
        );
    }
    if driver < Version::new(11, 3) {
        f.write_str(", or cannot report it: it needs CUDA 11.3 for that")
    } else if driver < since {
        f.write_str("; update the driver")
    } else {
        f.write_str("; name and version are those of a typedef PFN_* of NVIDIA's")
    }
}

/// The name that the driver takes, and what an exported name has behind it.
fn suffix(name: &str) -> Option<(&str, &str)> {
    let of_stream = ["_ptsz", "_ptds"].iter().find_map(|end| name.strip_suffix(end));
    let base = of_stream.unwrap_or(name);
    let of_version = base
        .rsplit_once("_v")
        .filter(|(_, digits)| !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()));
    let base = of_version.map_or(base, |(base, _)| base);
    let suffix = name.get(base.len()..)?;
    (!suffix.is_empty()).then_some((base, suffix))
}

fn no_such_device(f: &mut fmt::Formatter<'_>, ordinal: u32, count: u32) -> fmt::Result {
    let code = CUresult::CUDA_ERROR_INVALID_DEVICE;
    write!(f, "{} failed with {code}: there is no device {ordinal}: ", Function::cuDeviceGet)?;
    match count {
        0 => f.write_str("this process sees none; look at nvidia-smi and at CUDA_VISIBLE_DEVICES"),
        1 => f.write_str("the only device is device 0"),
        _ => write!(f, "the devices are 0 to {}", count - 1),
    }
}

fn semaphore_of_other_device(
    f: &mut fmt::Formatter<'_>,
    function: Function,
    semaphore: Option<u16>,
    context: u16,
) -> fmt::Result {
    match semaphore {
        Some(semaphore) => {
            write!(
                f,
                "{function} was not called: the semaphore belongs to device {semaphore}, and \
                 the context to device {context}; import it in a context of device {semaphore}"
            )
        }
        None => write!(
            f,
            "{function} was not called: the semaphore belongs to a device that this process \
             does not see, and the context to device {context}; create it on the device whose \
             UUID is Device::uuid, and look at CUDA_VISIBLE_DEVICES"
        ),
    }
}

/// The driver's code has several causes, and this one is left when those that can be excluded are:
/// by flags and contexts that other code may have asserted. Without a code this crate refused the
/// call, and knows why.
fn probably(f: &mut fmt::Formatter<'_>, code: Option<CUresult>) -> fmt::Result {
    if code.is_some() { f.write_str(PROBABLY) } else { Ok(()) }
}

/// The cause that can never be excluded: other code has destroyed an object.
fn same_code(
    f: &mut fmt::Formatter<'_>,
    code: Option<CUresult>,
    object: &'static str,
) -> fmt::Result {
    match code {
        Some(_) => write!(f, " (a destroyed {object} has the same code)"),
        None => Ok(()),
    }
}

fn not_a_semaphore(
    f: &mut fmt::Formatter<'_>,
    function: Function,
    code: Option<CUresult>,
) -> fmt::Result {
    match function {
        Function::cuSignalExternalSemaphoresAsync | Function::cuWaitExternalSemaphoresAsync => {
            write!(
                f,
                "{function} was not called: the batch has one binary semaphore twice, but each \
             wait needs its own signal before it, and two signals need a wait between them; \
             give each binary semaphore once"
            )
        }
        _ => {
            function_and_code(f, function, code)?;
            probably(f, code)?;
            f.write_str(
                "the driver cannot import this handle as a semaphore of that kind; export an \
                 opaque file descriptor or NT handle with NVIDIA's driver, a new one for each \
                 import, and import timeline semaphores as timeline and binary ones as binary",
            )
        }
    }
}

/// The text for objects of two contexts that must belong to one.
fn other_context(
    f: &mut fmt::Formatter<'_>,
    function: Function,
    code: Option<CUresult>,
    (device, other_device): (u16, u16),
) -> fmt::Result {
    match (function, code) {
        (function, Some(code)) => {
            write!(f, "{function} failed with {code}: {PROBABLY}")?;
            event_of_other_context(f, function, device, other_device)
        }
        (Function::cuStreamGetCtx, None) => stream_of_other_context(f, device, other_device),
        (Function::cuStreamCopyAttributes, None) => {
            write!(
                f,
                "{} was not called: the streams belong to ",
                Function::cuStreamCopyAttributes
            )?;
            if device == other_device {
                write!(f, "two contexts of device {device}")?;
            } else {
                write!(f, "contexts of device {device} and of device {other_device}")?;
            }
            f.write_str("; both must belong to one context")
        }
        (Function::cuSignalExternalSemaphoresAsync, None)
        | (Function::cuWaitExternalSemaphoresAsync, None) => {
            write!(f, "{function} was not called: the semaphore was imported in ")?;
            if device == other_device {
                write!(f, "another context of device {device} than the stream's")?;
            } else {
                write!(
                    f,
                    "a context of device {device}, and the stream belongs to one of device \
                     {other_device}"
                )?;
            }
            f.write_str(
                "; import it in the stream's context. If that is a green context, use a \
                         stream of the primary context",
            )
        }
        (Function::cuImportExternalSemaphore, None) => f.write_str(
            "cuImportExternalSemaphore was not called: streams of a green context cannot \
                 use semaphores; import the semaphore in the primary context, use it in a \
                 stream of that context, and order the streams of the green context with \
                 events",
        ),
        (_, None) => {
            write!(f, "{function} was not called: the interprocess event belongs to ")?;
            if device == other_device {
                write!(f, "another context of device {device}")?;
            } else {
                write!(f, "a context of device {device}, not {other_device}")?;
            }
            f.write_str(
                ", and the driver would crash; wait in a stream of the event's context, and \
                 make the other stream wait for that stream with wait_stream",
            )
        }
    }
}

fn event_of_other_context(
    f: &mut fmt::Formatter<'_>,
    function: Function,
    device: u16,
    other: u16,
) -> fmt::Result {
    let (what, objects) = match function {
        Function::cuEventRecord | Function::cuEventRecordWithFlags => ("stream", "event or stream"),
        Function::cuCtxRecordEvent => ("work", "event or context"),
        _ => ("other event", "event"),
    };
    if device == other {
        write!(f, "the event belongs to another context of device {device} than the {what}")?;
    } else {
        write!(
            f,
            "the event belongs to a context of device {device}, the {what} to one of device {other}"
        )?;
    }
    write!(f, "; both must belong to one context (a destroyed {objects} has the same code)")
}

fn stream_of_other_context(f: &mut fmt::Formatter<'_>, device: u16, other: u16) -> fmt::Result {
    if device == other {
        write!(
            f,
            "the stream belongs to another context of device {device} than the one given; get the \
             stream's own context with Context::from_raw_with_owner"
        )
    } else {
        write!(
            f,
            "the stream belongs to a context of device {other}, and the context given belongs to \
             device {device}; give a context of the stream's own device"
        )
    }
}

/// The end of a text: the code, and the advice for it.
fn failed(f: &mut fmt::Formatter<'_>, function: Function, code: CUresult) -> fmt::Result {
    write!(f, " failed with {code}")?;
    match advice(function, code) {
        Some(advice) => write!(f, ": {advice}"),
        None => Ok(()),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        let lines = self.driver_log().unwrap_or_default();
        lines.lines().try_for_each(|line| write!(f, "\n  the driver: {line}"))
    }
}

#[cfg(feature = "safe")]
impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IPC event descriptor refused: ")?;
        match self {
            Self::Length { found, expected } => write!(f, "it has {found} bytes, not {expected}"),
            Self::Magic => f.write_str(
                "it begins neither like the text nor like the bytes of an IpcEventDescriptor; for \
                 the driver's own 64 bytes use IpcEventDescriptor::from_raw",
            ),
            Self::Version { found, expected } => write!(
                f,
                "it is of version {found}, and this cuda-events reads version {expected}; use the \
                 same release in both processes"
            ),
            Self::Text => f.write_str(
                "its text has characters that are not hexadecimal digits, or an odd number of them",
            ),
            Self::Checksum => {
                f.write_str("it was damaged on the way (its checksum does not match)")
            }
            Self::Flags { unknown } => write!(
                f,
                "it has flags that this cuda-events does not know ({unknown:#x}); use the same \
                    release in both processes"
            ),
            Self::SameProcess { pid } => write!(
                f,
                "{} failed with {}: {PROBABLY}this process (id {pid}) exported it, and an \
                 interprocess event can be opened only in another one; if it comes from a process \
                 in another pid namespace, the two must not have the same id",
                Function::cuIpcOpenEventHandle,
                CUresult::CUDA_ERROR_INVALID_CONTEXT,
            ),
            Self::DeviceMismatch { exported: Some(exported), context } => write!(
                f,
                "its event belongs to device {exported}, and the context to device {context}; open \
                 it in a context of device {exported}"
            ),
            Self::DeviceMismatch { exported: None, context } => write!(
                f,
                "its event belongs to a device that this process does not see, and the context to \
                 device {context}; look at CUDA_VISIBLE_DEVICES in both processes"
            ),
        }
    }
}

#[cfg(feature = "safe")]
impl fmt::Debug for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
