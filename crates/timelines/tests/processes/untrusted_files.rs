//! Files of timelines between processes that do not trust each other, and what a maker and an
//! importer depend on.

use crate::common;

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use common::counting::{calls, counted_context, counting, fail_next};
use common::futures::{Unpark, block_on, wait_until};
use common::memory::{self, Mapping, PAGE, Shared};
use common::threads::{starts_can_fail, without_new_threads};
use common::timelines::{PATIENCE, WRITE, gpu, idle, poll, reached};
use common::{Latch, Other};
use cuda_events::capture::CaptureMode;
use cuda_events::ipc::ExporterState;
use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Progress, Stream, StreamOptions};
use cuda_timelines::{
    CudaStreamExt, Error, HostTimeline, ImportedTimeline, Point, Result,
    SharedTimelineError as Refusal, Timeline, TimelineFile,
};
use rustix::fs::FallocateFlags;

/// A timeline of the host in this file, and its import.
fn shared_in(context: &Context, file: &TimelineFile) -> (HostTimeline, ImportedTimeline) {
    let timeline = HostTimeline::shared(file).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    let imported = ImportedTimeline::open(context, memory::copy(file), &descriptor);
    (timeline, imported.expect("an import"))
}

/// The marks of a line: the bit in the value, and the reason of a given-up timeline.
const POISON: u64 = 1 << 62;
const GIVEN_UP: u64 = u64::MAX;
/// Where the first line has its value and its reason.
const VALUE: usize = 8;
const REASON: usize = 9;

/// Removes a page from a file.
const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// How many files of timelines this process has open.
pub fn open_files() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").expect("this process's files").flatten();
    let paths = open.flat_map(|file| std::fs::read_link(file.path()));
    paths.filter(|path| path.to_string_lossy().contains("memfd:cuda-events")).count()
}

/// What another process writes to a file decides nothing about the end of a timeline: streams that
/// wait ahead are released after the last signal, and not before, and nothing stays open.
#[test]
fn the_end_of_a_timeline_depends_on_no_peer() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    // A forged end, an erased value, one that no signal has reached, and a page that is gone.
    let forgeries = [
        (POISON, GIVEN_UP, false),
        (0, GIVEN_UP, false),
        (0, 0, false),
        (1 << 40, 0, false),
        (0, 0, true),
    ];
    for (value, reason, hole) in forgeries {
        for pending in [false, true] {
            let what = format!("{value:#x} {reason:#x} {hole} {pending}");
            let file = TimelineFile::writable(&context).expect("a file");
            let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
            let waiter = stream();
            let timeline = Timeline::shared(stream(), &file).expect("a timeline");
            timeline.signal().expect("a signal");
            idle(timeline.stream());
            timeline.wait_ahead(&waiter, 3).expect("a wait");
            let latch = pending.then(|| {
                let latch = Latch::hold(timeline.stream());
                timeline.signal().expect("a signal");
                latch
            });
            // The first and the fourth release a stream at once.
            raw.words()[REASON].store(reason, Ordering::SeqCst);
            raw.words()[VALUE].store(value, Ordering::SeqCst);
            if hole {
                rustix::fs::fallocate(&file, PUNCH, 0, PAGE as u64).expect("it is not sealed");
            }
            let ((), made) = calls(|| drop((timeline, file)));
            let of_stream = [Function::cuStreamIsCapturing, WRITE, WRITE];
            assert!(made.starts_with(&of_stream), "{what}: {made:?}");
            if let Some(latch) = latch {
                assert_eq!(open_files(), 1, "{what}: a signal is pending");
                latch.release();
            }
            idle(&waiter);
            wait_until(&what, || open_files() == 0);
        }
    }
}

/// The points of a host's timeline, and the streams of its process that wait for it, do not depend
/// on a file that others can write. Not even its page must be there.
#[test]
fn a_hosts_timeline_depends_on_no_peer() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let (timeline, imported) = shared_in(&gpu.context, &file);
    assert_eq!(imported.completed(), timeline.completed());
    let first = timeline.signal().expect("a signal");
    assert_eq!(imported.completed(), first.value(), "others see it");
    let meddle: [&dyn Fn(); 4] = [
        &|| raw.words()[VALUE].store(0, Ordering::SeqCst),
        &|| raw.words()[VALUE].store(u64::MAX, Ordering::SeqCst),
        &|| raw.words()[REASON].store(700, Ordering::SeqCst),
        &|| rustix::fs::fallocate(&file, PUNCH, 0, PAGE as u64).expect("it is not sealed"),
    ];
    let waiter = gpu.stream();
    for meddle in meddle {
        let next = timeline.completed() + 1;
        timeline.wait_ahead(&waiter, next).expect("a wait");
        meddle();
        assert_eq!(waiter.query(), Ok(Progress::Pending));
        assert!(first.is_done());
        let point = timeline.signal().expect("a signal");
        assert_eq!((point.value(), point.query()), (next, Ok(Progress::Done)));
        idle(&waiter);
    }
    // The end of the timeline ends waits, too.
    timeline.wait_ahead(&waiter, timeline.completed() + 5).expect("a wait");
    timeline.poison();
    idle(&waiter);
}

/// A stream of the same process that waits for a signal of a host sees all that any thread wrote
/// before that signal; so does an importer. The value for others never runs ahead of this
/// process's own, and reaches it.
#[test]
fn the_copy_of_a_hosts_timeline_has_the_value_of_the_last_signal() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let (timeline, imported) = shared_in(&gpu.context, &file);
    let start = timeline.completed();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let value = timeline.signal().expect("a signal").value();
                    assert!(imported.completed() >= value);
                    assert!(imported.completed() <= timeline.completed());
                }
            });
        }
    });
    assert_eq!((imported.completed(), timeline.completed()), (start + 4000, start + 4000));
    let last = imported.point(start + 4001).expect("a point");
    drop(timeline);
    assert_eq!(last.query(), Err(Error::Poisoned), "others see the end");
}

/// What another process scribbles on a line that nobody has yet is no timeline's start.
#[test]
fn scribbles_are_no_start() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    for word in &raw.words()[VALUE..] {
        word.store(7 | POISON, Ordering::SeqCst);
    }
    let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    assert_eq!((timeline.completed(), timeline.submitted()), (0, Ok(0)));
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    assert_eq!((point.value(), point.query()), (1, Ok(Progress::Pending)));
    latch.release();
    reached(point);
    let (host, imported) = shared_in(&gpu.context, &file);
    assert_eq!(imported.completed(), host.completed());
    assert_eq!(
        imported.point(host.completed() + 1).expect("a point").query(),
        Ok(Progress::Pending)
    );
}

/// A process may be sent any number of files that it refuses. None stays mapped. One that is mapped
/// serves the next import, whatever was refused before that.
#[test]
fn a_refused_file_is_not_left_mapped() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("this process's memory");
        maps.lines().filter(|line| line.contains("/memfd:")).count()
    };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let descriptor = HostTimeline::shared(&file).expect("a timeline").descriptor();
    let descriptor = descriptor.expect("it is shared");
    let magic = u64::from(u32::from_le_bytes(*b"CUTL"));
    let before = mapped();
    for _ in 0..100 {
        let files = [
            (memory::safe(&[]), Refusal::FileMagic),
            (memory::safe(&[magic | 9 << 32]), Refusal::FileVersion { found: 9, expected: 1 }),
            (memory::safe(&[magic | 1 << 32, 5]), Refusal::OtherFile),
        ];
        for (bad, refusal) in files {
            let refused = ImportedTimeline::open(&gpu.context, bad, &descriptor).map(drop);
            assert_eq!(refused, Err(Error::SharedTimeline(refusal)));
        }
    }
    assert_eq!(mapped(), before);
    let context = counted_context(gpu.driver);
    let open = |named| ImportedTimeline::open(&context, memory::copy(&file), named).map(drop);
    // The relay needs a page.
    fail_next(Function::cuMemHostRegister_v2, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let code = open(&descriptor).map_err(|error| error.code());
    assert_eq!(code, Err(Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY)));
    assert_eq!(mapped(), before + 1);
    let other = TimelineFile::new(&gpu.context).expect("a file");
    let of_other = HostTimeline::shared(&other).expect("a timeline").descriptor();
    let of_other = of_other.expect("it is shared");
    for _ in 0..2 {
        assert_eq!(open(&of_other), Err(Error::SharedTimeline(Refusal::OtherFile)));
        assert_eq!(open(&descriptor), Ok(()));
    }
    assert_eq!(mapped(), before + 2, "one is that of the other file's exporter");
}

/// The system starts no thread when a future is first polled. The future asks to be polled again,
/// and that starts it.
#[test]
fn a_future_outlives_a_failed_start_of_the_thread() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    if !starts_can_fail(&gpu) {
        return;
    }
    let timeline = Timeline::new(gpu.stream()).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    // No thread of the driver's may be starting below.
    latch.reached();
    let point = timeline.signal().expect("a signal");
    let unpark = Unpark::new();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut completion = timeline.stream().completion().expect("an event");
    without_new_threads(|| {
        assert!(Pin::new(&mut completion).poll(&mut TaskContext::from_waker(&waker)).is_pending())
    });
    assert_eq!(unpark.woken(), 1, "it asks to be polled again, too");
    let unpark = Unpark::new();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = point.into_future();
    for polls in 1..4 {
        without_new_threads(|| assert_eq!(poll(&mut future, &waker), Poll::Pending));
        assert_eq!(unpark.woken(), polls, "it asks to be polled again");
    }
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    assert_eq!(unpark.woken(), 3, "there is a thread");
    latch.release();
    wait_until("the future is woken", || unpark.woken() == 4);
    assert_eq!(block_on(future), Ok(()));
    assert_eq!(block_on(completion), Ok(()));
}

/// The system starts no thread for the end of a timeline: its last signal is not waited for.
#[test]
fn a_drop_without_the_thread_releases_waits_at_once() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    if !starts_can_fail(&gpu) {
        return;
    }
    let (timeline, waits) = (Timeline::new(gpu.stream()).expect("a timeline"), gpu.stream());
    let latch = Latch::hold(timeline.stream());
    // No thread of the driver's may be starting below.
    latch.reached();
    let point = timeline.signal().expect("a signal");
    timeline.wait_ahead(&waits, point.value() + 1).expect("a wait");
    without_new_threads(|| drop(timeline));
    idle(&waits);
    latch.release();
    wait_until("the signal comes", || point.is_done());
}

/// The system starts no thread when a stream is to wait for another process: that is an error each
/// time, and no wait is submitted that nobody looks after.
#[test]
fn no_stream_waits_for_a_peer_without_the_thread() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    if !starts_can_fail(&gpu) {
        return;
    }
    let files = [TimelineFile::new(&gpu.context), TimelineFile::writable(&gpu.context)];
    let [sealed, exposed] = files.map(|file| {
        let file = file.expect("a file");
        let (maker, imported) = shared_in(&gpu.context, &file);
        (file, maker, imported)
    });
    let stream = gpu.stream();
    for (_, maker, imported) in [&sealed, &exposed] {
        let point = imported.point(maker.completed() + 1).expect("a point");
        for _ in 0..3 {
            let refused = without_new_threads(|| stream.wait_point(point));
            assert_eq!(refused, Err(Error::NoThread));
        }
        // Nothing waits in a capture, but in a launch, which cannot return this error.
        let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
        for _ in 0..3 {
            let refused = without_new_threads(|| stream.wait_point(point));
            assert_eq!(refused, Err(Error::NoThread));
        }
        capture.end().expect("the capture goes on");
    }
    // A shared timeline of a stream uses it, too.
    for (file, ..) in [&sealed, &exposed] {
        let own = gpu.stream();
        let refused = without_new_threads(|| Timeline::shared(own, file).map(drop));
        assert_eq!(refused, Err(Error::NoThread));
    }
    assert_eq!(stream.query(), Ok(Progress::Done), "no wait was submitted");
    for (_, maker, imported) in [sealed, exposed] {
        let point = imported.point(maker.completed() + 1).expect("a point");
        stream.wait_point(point).expect("a wait");
        assert_eq!(stream.query(), Ok(Progress::Pending));
        let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
        stream.wait_point(point).expect("a wait");
        let exec = capture.end().and_then(|graph| graph.instantiate()).expect("a graph");
        exec.launch(&stream).expect("a launch");
        drop(maker);
        idle(&stream);
    }
}

/// As above, for a stream that is to wait for a signal of another context: nobody would notice the
/// failure of that context.
#[test]
fn no_stream_waits_for_another_context_without_the_thread() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    if !starts_can_fail(&gpu) {
        return;
    }
    let other = Other::new(&gpu);
    let there = Stream::new(&other, StreamOptions::new()).expect("a stream");
    let timeline = Timeline::new(gpu.stream()).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    // No thread of the driver's may be starting below.
    latch.reached();
    let point = timeline.signal().expect("a signal");
    for _ in 0..3 {
        let refused = without_new_threads(|| there.wait_point(point));
        assert_eq!(refused, Err(Error::NoThread));
    }
    assert_eq!(there.query(), Ok(Progress::Done), "no wait was submitted");
    there.wait_point(point).expect("a wait");
    assert_eq!(there.query(), Ok(Progress::Pending));
    latch.release();
    idle(&there);
}

/// The page of a file is registered anew in each context that comes after another one at the same
/// place.
#[test]
fn a_page_is_registered_again_after_its_context() {
    common::own_process!("devices=2");
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let timeline = HostTimeline::shared(&file).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    let other = Device::new(driver, 1).ok();
    let Some(other) = other else { return common::say_not_run("this machine has one device") };
    let there = Context::primary(other).and_then(|it| Stream::new(&it, StreamOptions::new()));
    let refused = Timeline::shared(there.expect("a stream"), &file).map(drop);
    assert_eq!(refused, Err(Error::ContextMismatch { device: 1, other_device: 0 }));
    let registers = |made: &[Function]| {
        made.iter().filter(|made| **made == Function::cuMemHostRegister_v2).count()
    };
    // What another context has is nothing to this one.
    let elsewhere = ImportedTimeline::open(&gpu.context, memory::copy(&file), &descriptor);
    let _elsewhere = elsewhere.expect("an import");
    for round in 0..3 {
        // The last share goes at the end of the round.
        let context = Context::primary(other).expect("a context");
        let open = |file: Shared| ImportedTimeline::open(&context, file, &descriptor);
        let (imported, made) = calls(|| open(memory::copy(&file)));
        let imported = imported.expect("an import");
        assert_eq!(registers(&made), 1, "{round}: {made:?}");
        let (again, made) = calls(|| open(memory::copy(&file)));
        assert_eq!(registers(&made), 0, "{round}: {made:?}");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        stream
            .wait_point(imported.point(timeline.completed() + 1).expect("a point"))
            .expect("a wait");
        assert_eq!(stream.query(), Ok(Progress::Pending));
        timeline.signal().expect("a signal");
        idle(&stream);
        drop((again, imported, stream));
    }
}

/// A relay is a line that an earlier timeline may have had. Its streams wait for the maker's values
/// all the same, and not for what that line has.
#[test]
fn a_relay_continues_from_the_value_of_its_line() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    // Whichever line of the page it gets.
    let used: Vec<_> =
        (0..64).map(|_| HostTimeline::new(&gpu.context).expect("a timeline")).collect();
    for timeline in &used {
        for _ in 0..9 {
            timeline.signal().expect("a signal");
        }
    }
    drop(used);
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let maker = HostTimeline::shared(&file).expect("a timeline");
    let descriptor = maker.descriptor().expect("it is shared");
    for first in [0, 3] {
        let imported = ImportedTimeline::open(&gpu.context, memory::copy(&file), &descriptor);
        let imported = imported.expect("an import");
        let stream = gpu.stream();
        stream.wait_point(imported.point(first + 3).expect("a point")).expect("a wait");
        for value in first..first + 3 {
            assert_eq!(stream.query(), Ok(Progress::Pending), "{value}");
            assert_eq!(maker.signal().expect("a signal").value(), value + 1);
        }
        idle(&stream);
    }
}

/// The line of a relay goes to nobody else while a stream waits for it, though the import is gone.
#[test]
fn a_relay_rests_while_a_stream_waits() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let (maker, imported) = shared_in(&gpu.context, &file);
    let stream = gpu.stream();
    stream.wait_point(imported.point(3).expect("a point")).expect("a wait");
    drop(imported);
    let all: Vec<_> =
        (0..64).map(|_| HostTimeline::new(&gpu.context).expect("a timeline")).collect();
    let values = || all.iter().map(HostTimeline::completed).collect::<Vec<_>>();
    let before = values();
    for _ in 0..3 {
        assert_eq!(stream.query(), Ok(Progress::Pending));
        maker.signal().expect("a signal");
    }
    idle(&stream);
    assert_eq!(values(), before);
}

/// A file lives until the last of its timelines has ended, and not only the first.
#[test]
fn a_file_ends_with_its_last_timeline() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let make = || Timeline::shared(gpu.stream(), &file).expect("a timeline");
    let (ended, pending) = (make(), make());
    let descriptor = pending.descriptor().expect("it is shared");
    let imported = ImportedTimeline::open(&gpu.context, memory::copy(&file), &descriptor);
    let imported = imported.expect("an import");
    let latch = Latch::hold(pending.stream());
    let last = imported.point(pending.signal().expect("a signal").value()).expect("a point");
    drop((ended, pending, file));
    assert_eq!(imported.exporter_state(), ExporterState::Running);
    latch.release();
    reached(last);
    wait_until("the end", || imported.exporter_state() == ExporterState::Ended);
}

/// What a full file refuses takes no line of this process.
#[test]
fn a_full_file_costs_nothing() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let file = TimelineFile::writable(&context).expect("a file");
    let stream = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let _all: Vec<_> = (0..63).map(|_| HostTimeline::shared(&file).expect("a timeline")).collect();
    let full = Some(Error::SharedTimeline(Refusal::FileFull));
    let ((), made) = calls(|| {
        for _ in 0..200 {
            assert_eq!(HostTimeline::shared(&file).err(), full);
            assert_eq!(Timeline::shared(Arc::clone(&stream), &file).err(), full);
        }
    });
    let pages = made.iter().filter(|made| **made == Function::cuMemHostRegister_v2).count();
    assert!(pages <= 1, "{pages}");
}

/// The question whether the context works fails while the value comes. The wait is over, and has no
/// error.
#[test]
fn a_value_that_comes_with_an_error_is_reached() {
    type Wait = fn(Point) -> Result<Progress>;
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let maker = HostTimeline::shared(&file).expect("a timeline");
    let descriptor = maker.descriptor().expect("it is shared");
    let value = &raw.words()[VALUE];
    let driver = counting(gpu.driver).observe(move |call| {
        if call.function == Function::cuEventQuery {
            value.store(5, Ordering::SeqCst);
        }
    });
    let driver = driver.expect("there is room");
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let imported = ImportedTimeline::open(&context, memory::copy(&file), &descriptor);
    let imported = imported.expect("an import");
    let waits: [(&str, Wait); 4] = [
        ("wait", |point| point.wait().map(|()| Progress::Done)),
        ("spin", |point| point.spin().map(|()| Progress::Done)),
        ("wait_timeout", |point| point.wait_timeout(PATIENCE)),
        // The question is that of a loop of short waits.
        ("short waits", |point| {
            loop {
                let seen = point.wait_timeout(Duration::ZERO)?;
                if seen.is_done() {
                    return Ok(seen);
                }
            }
        }),
    ];
    for (what, wait) in waits {
        value.store(0, Ordering::SeqCst);
        fail_next(Function::cuEventQuery, CUresult::CUDA_ERROR_LAUNCH_FAILED);
        assert_eq!(wait(imported.point(5).expect("a point")), Ok(Progress::Done), "{what}");
    }
    // Without the value it is the error.
    fail_next(Function::cuEventQuery, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    let error = imported.point(6).expect("a point").wait().expect_err("the question fails");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    // Larger values than there are stand for the largest.
    assert_eq!(
        imported.point(u64::MAX).expect("a point"),
        imported.point((1 << 62) - 1).expect("a point")
    );
    assert_ne!(
        imported.point(u64::MAX).expect("a point"),
        imported.point((1 << 62) - 2).expect("a point")
    );
}

/// The driver calls of a maker: those of one page for a file, and for each timeline in it none; a
/// file that others can write takes a line of this process more for each.
#[test]
fn what_a_file_costs_in_driver_calls() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    // Its page has room for those of a writable file.
    let other = HostTimeline::new(&context).expect("a timeline");
    let count = |made: &[Function], of| made.iter().filter(|function| **function == of).count();
    for sealed in [true, false] {
        let make = if sealed { TimelineFile::new } else { TimelineFile::writable };
        let (file, made) = calls(|| make(&context).expect("a file"));
        assert_eq!(count(&made, Function::cuMemHostRegister_v2), 1, "{made:?}");
        assert_eq!(count(&made, Function::cuEventCreate), 1, "{made:?}");
        let (host, made) = calls(|| HostTimeline::shared(&file).expect("a timeline"));
        assert_eq!(made, [], "{sealed}");
        let own = stream();
        let (timeline, made) = calls(|| Timeline::shared(own, &file).expect("a timeline"));
        assert_eq!(made, [], "{sealed}");
        let (point, made) = calls(|| timeline.signal().expect("a signal"));
        assert_eq!(made, [WRITE]);
        idle(timeline.stream());
        assert_eq!(calls(|| point.wait()), (Ok(()), vec![]));
        assert_eq!(calls(|| host.signal().is_ok()), (true, vec![]));
        let ((), made) = calls(|| drop(host));
        assert_eq!(made, []);
        let ((), made) = calls(|| drop(timeline));
        let end = if sealed {
            vec![Function::cuStreamDestroy_v2]
        } else {
            vec![Function::cuStreamIsCapturing, WRITE, WRITE, Function::cuStreamDestroy_v2]
        };
        assert_eq!(made, end);
        let ((), made) = calls(|| drop(file));
        assert_eq!(made, [Function::cuEventDestroy_v2]);
    }
    drop(other);
}

/// The drop of an import gives back the shares of a wait between contexts that is over.
#[test]
fn the_drop_of_an_import_gives_back_the_shares_of_waits() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let driver = counting(gpu.driver);
    let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
    let other = Other::new(&gpu);
    // SAFETY: it lives until the end of the test.
    let theirs = unsafe { Context::from_raw(driver, other.as_raw()) }.expect("a context");
    let there = Stream::new(&theirs, StreamOptions::new()).expect("a stream");
    let file = TimelineFile::new(&context).expect("a file");
    let (maker, imported) = shared_in(&context, &file);
    there.wait_point(imported.point(1).expect("a point")).expect("a wait");
    assert_eq!(there.query(), Ok(Progress::Pending));
    maker.signal().expect("a signal");
    idle(&there);
    let ((), made) = calls(|| drop(imported));
    assert!(made.contains(&Function::cuEventDestroy_v2), "{made:?}");
}
