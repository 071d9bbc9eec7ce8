//! Timelines: those of streams, those of the host, and those of other processes.

use std::mem::MaybeUninit;
use std::sync::Arc;

use cuda_events::ipc::ExporterState;
use cuda_events::{ForeignStream, StreamRef};
use cuda_timelines::{
    HostTimeline, ImportedTimeline, Timeline, TimelineDescriptor, TimelineFile, TimelineMemory,
};

use crate::adopt::{self, CUctx_st, cutl_stream};
use crate::bytes;
use crate::handle::{self, Handle};
use crate::point::{self, cutl_point};
use crate::result::cutl_result::{self, *};
use crate::result::{Fail, guard, place};
use crate::share::{cutl_file, cutl_memory};

/// A counter that a stream, the host or another process advances.
pub struct cutl_timeline;

pub(crate) enum Any {
    Stream(Box<Timeline>),
    Host(HostTimeline),
    Imported(ImportedTimeline),
}

use Any::{Host, Imported, Stream};

impl Handle for cutl_timeline {
    type Object = Any;
    const NAME: &'static str = "cutl_timeline";
}

/// The length of the descriptor of a timeline in a file.
pub const CUTL_FILE_TIMELINE_BYTES: usize = 20;
/// The length of the descriptor of a timeline in memory.
pub const CUTL_MEMORY_TIMELINE_BYTES: usize = 136;
const _: () = assert!(CUTL_FILE_TIMELINE_BYTES == TimelineDescriptor::FILE_LEN);
const _: () = assert!(CUTL_MEMORY_TIMELINE_BYTES == TimelineDescriptor::MEMORY_LEN);

/// The state of the process that made an imported timeline.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum cutl_exporter {
    /// It runs, as far as this process sees.
    CUTL_EXPORTER_RUNNING = 0,
    /// It has ended.
    CUTL_EXPORTER_ENDED = 1,
    /// This process cannot see it. Wait with a limit.
    CUTL_EXPORTER_UNKNOWN = 2,
}

/// The stream, for a timeline of its own.
fn named(stream: *const cutl_stream) -> Result<StreamRef, Fail> {
    let stream: Arc<ForeignStream<()>> = handle::get(stream)?;
    // SAFETY: whoever adopted the stream keeps it until its timelines are gone.
    Ok(unsafe { StreamRef::from_raw(stream.context(), stream.as_raw()) })
}

/// Makes a timeline that the stream advances. A stream may have several.
///
/// Errors: CUTL_ERROR_PER_THREAD_STREAM; CUTL_ERROR_UNSUPPORTED; CUTL_ERROR_DRIVER;
/// CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_create(
    stream: *const cutl_stream,
    out: Option<&mut MaybeUninit<*mut cutl_timeline>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        handle::put(out, Stream(Box::new(Timeline::new(named(stream)?)?)))
    })
}

/// Makes a timeline of the stream that every process with the file sees. The file may be destroyed
/// before it.
///
/// Errors: those of cutl_timeline_create; CUTL_ERROR_FULL; CUTL_ERROR_CONTEXT if the file is of
/// another context than the stream; CUTL_ERROR_NO_THREAD.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_create_in_file(
    stream: *const cutl_stream,
    file: *const cutl_file,
    out: Option<&mut MaybeUninit<*mut cutl_timeline>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        let file: Arc<TimelineFile> = handle::get(file)?;
        handle::put(out, Stream(Box::new(Timeline::shared(named(stream)?, &file)?)))
    })
}

/// Makes a timeline of the stream in device memory, which other processes of the same user on the
/// same device open by the bytes of its descriptor.
///
/// Errors: those of cutl_timeline_create; CUTL_ERROR_FULL; CUTL_ERROR_CONTEXT if the memory is of
/// another context than the stream.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_create_in_memory(
    stream: *const cutl_stream,
    memory: *const cutl_memory,
    out: Option<&mut MaybeUninit<*mut cutl_timeline>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        let memory: Arc<TimelineMemory> = handle::get(memory)?;
        handle::put(out, Stream(Box::new(Timeline::in_memory(named(stream)?, &memory)?)))
    })
}

/// Makes a timeline that the host advances, in a context; NULL is the current one.
///
/// Errors: CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// `context` must be NULL or a context that lives until the timeline is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_timeline_create_host(
    context: *mut CUctx_st,
    out: Option<&mut MaybeUninit<*mut cutl_timeline>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        // SAFETY: the duties are those of the caller.
        handle::put(out, Host(HostTimeline::new(&unsafe { adopt::context(context) }?)?))
    })
}

/// Makes a timeline that the host advances and that every process with the file sees.
///
/// Errors: CUTL_ERROR_FULL; CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_create_host_in_file(
    file: *const cutl_file,
    out: Option<&mut MaybeUninit<*mut cutl_timeline>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        let file: Arc<TimelineFile> = handle::get(file)?;
        handle::put(out, Host(HostTimeline::shared(&file)?))
    })
}

/// Opens a timeline of another process by its file: `file` is the file descriptor that was received
/// (on Windows the HANDLE), `bytes` the timeline's descriptor. Streams of `context`, and of others,
/// can wait for it; NULL is the current context. The file descriptor stays the caller's, who may
/// close it at once. Any bytes and any file are refused or harmless.
///
/// Errors: CUTL_ERROR_DESCRIPTOR; CUTL_ERROR_FILE; CUTL_ERROR_SYSTEM; CUTL_ERROR_CONTEXT;
/// CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_UNSUPPORTED; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// `context` as for cutl_timeline_create_host. `bytes` must be NULL or have `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_timeline_open(
    context: *mut CUctx_st,
    file: isize,
    bytes: *const u8,
    length: usize,
    out: Option<&mut MaybeUninit<*mut cutl_timeline>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        // SAFETY: the duties are those of the caller.
        let (bytes, context) = unsafe { (bytes::read(bytes, length)?, adopt::context(context)?) };
        let descriptor = TimelineDescriptor::from_bytes(&bytes)?;
        #[cfg(any(unix, windows))]
        {
            let file = duplicate(file)?;
            handle::put(out, Imported(ImportedTimeline::open(&context, file, &descriptor)?))
        }
        #[cfg(not(any(unix, windows)))]
        {
            let _ = (out, context, descriptor, file);
            Err(cuda_timelines::Error::from(cuda_timelines::SharedTimelineError::Platform).into())
        }
    })
}

#[cfg(unix)]
fn duplicate(file: isize) -> Result<std::os::fd::OwnedFd, Fail> {
    use std::os::fd::BorrowedFd;
    let Ok(raw @ 0..) = i32::try_from(file) else {
        return Err(Fail::argument(format!("{file} is no file descriptor")));
    };
    // SAFETY: it is not -1. It is borrowed for one call, which the kernel refuses if it is not open.
    let copy = unsafe { BorrowedFd::borrow_raw(raw) }.try_clone_to_owned();
    copy.map_err(|error| Fail::new(CUTL_ERROR_SYSTEM, format!("file descriptor {file}: {error}")))
}

#[cfg(windows)]
fn duplicate(file: isize) -> Result<std::os::windows::io::OwnedHandle, Fail> {
    use std::os::windows::io::BorrowedHandle;
    // SAFETY: it is borrowed for one call, which the system refuses if it is not open.
    let copy = unsafe { BorrowedHandle::borrow_raw(file as _) }.try_clone_to_owned();
    copy.map_err(|error| Fail::new(CUTL_ERROR_SYSTEM, format!("handle {file}: {error}")))
}

/// Opens a timeline of another process by the bytes of its descriptor alone, in a context of its
/// device; NULL is the current one.
///
/// Errors: CUTL_ERROR_DESCRIPTOR, also for a timeline of this process; CUTL_ERROR_FILE if the memory
/// was freed; CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// `context` and `bytes` as for cutl_timeline_open. The bytes must come from a process that you
/// trust, and that keeps its cutl_memory until this timeline is destroyed or that process ends: the
/// driver does not detect a forged descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_timeline_open_memory(
    context: *mut CUctx_st,
    bytes: *const u8,
    length: usize,
    out: Option<&mut MaybeUninit<*mut cutl_timeline>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        // SAFETY: the duties are those of the caller.
        let opened = unsafe {
            let descriptor = TimelineDescriptor::from_bytes(&bytes::read(bytes, length)?)?;
            ImportedTimeline::open_memory(&adopt::context(context)?, &descriptor)
        }?;
        handle::put(out, Imported(opened))
    })
}

/// Signals the next value, and writes its point to `out`: a timeline of a stream after all work that
/// is in the stream now, a timeline of the host at once. Any thread may signal.
///
/// Errors: CUTL_ERROR_CAPTURE if the stream captures; CUTL_ERROR_POISONED beside
/// cutl_timeline_poison; CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE, also for an imported timeline;
/// CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_signal(
    timeline: *const cutl_timeline,
    out: Option<&mut MaybeUninit<cutl_point>>,
) -> cutl_result {
    guard(|| {
        let (timeline, out) = (handle::get(timeline)?, place(out, "out")?);
        let signalled = match &*timeline {
            Stream(timeline) => timeline.signal()?,
            Host(timeline) => timeline.signal()?,
            Imported(_) => return Err(only("signal", "a timeline of this process")),
        };
        Ok(point::put(out, signalled))
    })
}

/// Writes the point of a value to `out`, for an imported timeline. The value is one that the other
/// process has sent after its signal; a wait for a value that it never signals ends when that
/// process ends or destroys the timeline. By memory the call submits work, and blocks while 256
/// points are pending.
///
/// Errors: CUTL_ERROR_EXPORTER_GONE and CUTL_ERROR_POISONED (by memory); CUTL_ERROR_NO_THREAD;
/// CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE, also for a timeline of this process; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_point(
    timeline: *const cutl_timeline,
    value: u64,
    out: Option<&mut MaybeUninit<cutl_point>>,
) -> cutl_result {
    guard(|| {
        let (timeline, out) = (handle::get(timeline)?, place(out, "out")?);
        Ok(point::put(out, imported(&timeline)?.point(value)?))
    })
}

/// Writes the value of the last point that was reached to `out`, with one load.
///
/// Errors: CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_completed(
    timeline: *const cutl_timeline,
    out: Option<&mut MaybeUninit<u64>>,
) -> cutl_result {
    guard(|| {
        let (timeline, out) = (handle::get(timeline)?, place(out, "out")?);
        out.write(match &*timeline {
            Stream(timeline) => timeline.completed(),
            Host(timeline) => timeline.completed(),
            Imported(timeline) => timeline.completed(),
        });
        Ok(CUTL_OK)
    })
}

/// Makes all later work in the stream wait for a value of a timeline of this process that may not be
/// signalled yet. It can deadlock: streams share hardware channels, and work that must run before
/// the signal may be queued after this wait. For most uses cutl_stream_wait is right.
///
/// Errors: those of cutl_stream_wait; CUTL_ERROR_HANDLE also for an imported timeline.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_wait_ahead(
    timeline: *const cutl_timeline,
    stream: *const cutl_stream,
    value: u64,
) -> cutl_result {
    guard(|| {
        let (timeline, stream) = (handle::get(timeline)?, handle::get(stream)?);
        match &*timeline {
            Stream(timeline) => timeline.wait_ahead(&stream, value)?,
            Host(timeline) => timeline.wait_ahead(&stream, value)?,
            Imported(_) => return Err(only("wait ahead", "a timeline of this process")),
        }
        Ok(CUTL_OK)
    })
}

/// Copies the descriptor, which names the timeline in other processes, to `buffer`, and its length
/// to `length`: CUTL_FILE_TIMELINE_BYTES or CUTL_MEMORY_TIMELINE_BYTES. It holds no pointers.
///
/// Errors: CUTL_ERROR_ARGUMENT if `capacity` is too small (`length` is written), or if the timeline
/// is not shared; CUTL_ERROR_HANDLE.
///
/// # Safety
///
/// `buffer` must be NULL or have room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_timeline_descriptor(
    timeline: *const cutl_timeline,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> cutl_result {
    guard(|| {
        let descriptor = match &*handle::get(timeline)? {
            Stream(timeline) => timeline.descriptor(),
            Host(timeline) => timeline.descriptor(),
            Imported(_) => None,
        };
        let descriptor = descriptor.ok_or_else(|| {
            Fail::argument("the timeline is not shared; make it in a cutl_file or a cutl_memory")
        })?;
        // SAFETY: the duties are those of the caller.
        unsafe { bytes::write(&descriptor.to_bytes(), buffer, capacity, length) }
    })
}

/// Writes the state of the process that made an imported timeline to `out`. Waits look for its end
/// by themselves.
///
/// Errors: CUTL_ERROR_HANDLE, also for a timeline of this process; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_exporter(
    timeline: *const cutl_timeline,
    out: Option<&mut MaybeUninit<cutl_exporter>>,
) -> cutl_result {
    guard(|| {
        let (timeline, out) = (handle::get(timeline)?, place(out, "out")?);
        out.write(match imported(&timeline)?.exporter_state() {
            ExporterState::Running => cutl_exporter::CUTL_EXPORTER_RUNNING,
            ExporterState::Ended => cutl_exporter::CUTL_EXPORTER_ENDED,
            _ => cutl_exporter::CUTL_EXPORTER_UNKNOWN,
        });
        Ok(CUTL_OK)
    })
}

/// Reports that the process which made an imported timeline has ended, and releases all waits. For
/// timelines opened by memory in another pid namespace, where the end cannot be seen. It releases
/// other importers as well: call it only after that end.
///
/// Errors: CUTL_ERROR_HANDLE, also for a timeline of this process.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_exporter_ended(timeline: *const cutl_timeline) -> cutl_result {
    guard(|| {
        imported(&*handle::get(timeline)?)?.exporter_ended()?;
        Ok(CUTL_OK)
    })
}

/// Ends a timeline of this process now, releases all waits for values that are not reached with
/// CUTL_ERROR_POISONED, and destroys the handle, also if an error is returned. A signal of another
/// thread may be under way, even one that the driver blocks until this call releases a stream.
///
/// Errors: CUTL_ERROR_HANDLE, also for an imported timeline, which stays; CUTL_ERROR_DRIVER.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_poison(timeline: *mut cutl_timeline) -> cutl_result {
    guard(|| {
        if matches!(&*handle::get(timeline.cast_const())?, Imported(_)) {
            return Err(only("poison", "a timeline of this process"));
        }
        match &*handle::take(timeline.cast_const())? {
            Stream(timeline) => timeline.poison()?,
            Host(timeline) => timeline.poison(),
            Imported(_) => {}
        }
        Ok(CUTL_OK)
    })
}

/// Destroys a timeline. It never waits for work. Points with a pending signal are reached when the
/// stream gets there; waits ahead, and waits in other processes, end after the last signal. If it
/// holds the last share of a primary context, the driver destroys that, which waits for its work.
///
/// Errors: CUTL_ERROR_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_timeline_destroy(timeline: *mut cutl_timeline) -> cutl_result {
    handle::destroy(timeline)
}

fn imported(timeline: &Any) -> Result<&ImportedTimeline, Fail> {
    match timeline {
        Imported(timeline) => Ok(timeline),
        _ => Err(only("this", "an imported timeline")),
    }
}

fn only(what: &str, whose: &str) -> Fail {
    Fail::new(CUTL_ERROR_HANDLE, format!("{what}: only {whose} can do that"))
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::time::Duration;

    use cuda_events::{Context, Device, Progress, Stream, StreamOptions};
    use cuda_soft_driver::SoftDriver;
    use cuda_timelines::HostTimeline;

    use super::{Any, cutl_timeline, cutl_timeline_poison};
    use crate::adopt::tests::driver;
    use crate::handle;
    use crate::result::cutl_result::CUTL_OK;

    /// The drop would release the stream only once that call has ended.
    #[test]
    fn poison_releases_while_a_call_of_another_thread_is_under_way() {
        let soft = SoftDriver::builder().build();
        let device = Device::new(driver(&soft), 0).expect("a device");
        let context = Context::primary(device).expect("a context");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let host = HostTimeline::new(&context).expect("a timeline");
        host.wait_ahead(&stream, host.completed() + 1).expect("a wait");
        let mut place = MaybeUninit::<*mut cutl_timeline>::uninit();
        assert!(matches!(handle::put(&mut place, Any::Host(host)), Ok(CUTL_OK)));
        // SAFETY: it was put there.
        let timeline = unsafe { place.assume_init() };
        let Ok(under_way) = handle::get(timeline.cast_const()) else { panic!("no handle") };
        assert_eq!(stream.query(), Ok(Progress::Pending));
        assert_eq!(cutl_timeline_poison(timeline), CUTL_OK);
        assert_eq!(stream.synchronize_timeout(Duration::from_secs(60)), Ok(Progress::Done));
        drop(under_way);
    }
}
