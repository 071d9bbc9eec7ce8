//! The end of a maker, of its file and of its timelines.

use crate::common;

use std::future::IntoFuture;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use common::counting::{calls, counted_context};
use common::futures::{Unpark, wait_until};
#[cfg(target_os = "linux")]
use common::memory::AsShared;
use common::memory::{self, reading};
use common::timelines::{PATIENCE, error, forged, gpu, idle, poll, reached};
use cuda_events::Progress;
use cuda_events::capture::CaptureMode;
#[cfg(target_os = "linux")]
use cuda_timelines::Timeline;
use cuda_timelines::{
    CudaStreamExt, Error, HostTimeline, ImportedTimeline, Point, Result, TimelineDescriptor,
    TimelineFile,
};

use super::{Peer, WAYS, make_and_open, open};

trait Minute {
    fn wait_minute(&self) -> Result<Progress>;
    fn spin_minute(&self) -> Result<Progress>;
}

impl Minute for Point {
    fn wait_minute(&self) -> Result<Progress> {
        self.wait_timeout(PATIENCE)
    }

    fn spin_minute(&self) -> Result<Progress> {
        self.spin_timeout(PATIENCE)
    }
}

/// The maker is killed: every wait ends, streams go on, and all can be dropped.
#[test]
fn a_killed_maker_releases_all_who_wait() {
    // Other tests' files would be seen.
    common::own_process!();
    for way in WAYS {
        let Some(gpu) = gpu() else { return };
        let mut peer = Peer::start();
        peer.step("signals-nothing");
        let before = [in_shm(std::process::id()), in_shm(peer.child.id())];
        let imported = make_and_open(&gpu.context, &mut peer, way);
        let done = imported.point(peer.number("signal")).expect("a point");
        reached(done);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let (stream, other) = (gpu.stream(), gpu.stream());
        stream.wait_point(pending).expect("a wait");
        other.wait_point(pending).expect("a wait");
        let unpark = Unpark::new();
        let mut future = pending.into_future();
        assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
        assert_eq!(pending.query(), Ok(Progress::Pending));
        let now = [in_shm(std::process::id()), in_shm(peer.child.id())];
        assert_eq!(now, before, "{way}: what the two have of /dev/shm");
        std::thread::scope(|scope| {
            let waiters = [Point::wait_timeout, Point::spin_timeout]
                .map(|wait| scope.spawn(move || wait(&pending, PATIENCE)));
            peer.child.kill();
            for waiter in waiters {
                let found = error(waiter.join().expect("no panic"));
                assert_eq!(found, Error::ExporterGone, "{way}");
            }
        });
        wait_until("the future is woken", || unpark.woken() == 1);
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::ExporterGone)));
        idle(&stream);
        idle(&other);
        // They get the error at once from now on, and what was reached stays reached.
        assert_eq!(pending.query(), Err(Error::ExporterGone));
        assert_eq!(stream.wait_point(pending), Err(Error::ExporterGone));
        assert!(done.is_done() && !pending.is_done());
        assert_eq!((done.query(), stream.wait_point(done)), (Ok(Progress::Done), Ok(())));
        drop((imported, stream, other, future));
        assert!(done.is_done());
        drop(gpu);
    }
}

/// What a process has of /dev/shm, open or mapped. (What a maker leaves there is looked at in
/// `two_containers_share_timelines`, where it has one of its own.)
#[cfg(target_os = "linux")]
fn in_shm(process: u32) -> Vec<String> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).expect("the process lives");
    let files = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    let files = files.map(|file| file.to_string_lossy().into_owned());
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("it lives");
    let maps = maps.lines().filter_map(|line| line.split_once('/').map(|(_, path)| path));
    let mut all: Vec<_> = files.chain(maps.map(|path| format!("/{path}"))).collect();
    all.retain(|path| path.starts_with("/dev/shm"));
    all.sort();
    all
}

/// Only on Linux is the memory in this folder.
#[cfg(not(target_os = "linux"))]
fn in_shm(_: u32) -> [String; 0] {
    []
}

/// Streams alone wait: nobody on the host asks. They are released all the same, also when nothing
/// of the import is left.
#[test]
fn streams_alone_are_released() {
    for way in WAYS {
        for dropped in [false, true] {
            let Some(gpu) = gpu() else { return };
            let mut peer = Peer::start();
            let imported = make_and_open(&gpu.context, &mut peer, way);
            peer.step("hold");
            let pending = imported.point(peer.number("signal")).expect("a point");
            let stream = gpu.stream();
            stream.wait_point(pending).expect("a wait");
            let open = if dropped {
                drop(imported);
                None
            } else {
                Some(imported)
            };
            assert_eq!(stream.query(), Ok(Progress::Pending), "the maker lives");
            peer.child.kill();
            idle(&stream);
            drop(open);
        }
    }
}

/// The bound, in counts: a wait ends the first time that it asks, by no call of the
/// driver.
#[test]
fn the_first_query_finds_the_end() {
    let Some(gpu) = gpu() else { return };
    let context = counted_context(gpu.driver);
    for way in WAYS {
        for wait in [Point::query, Point::wait_minute, Point::spin_minute] {
            let mut peer = Peer::start();
            let (file, descriptor) = peer.make(if way == "sealed" { way } else { "writable" });
            let file = if way == "reading" { reading(&file) } else { file };
            let imported = ImportedTimeline::open(&context, file, &descriptor).expect("an import");
            peer.step("hold");
            let pending = imported.point(peer.number("signal")).expect("a point");
            peer.child.kill();
            assert_eq!(calls(|| wait(&pending)), (Err(Error::ExporterGone), vec![]), "{way}");
        }
    }
}

/// A loop of short waits ends, too.
#[test]
fn short_waits_learn_of_the_end() {
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&gpu.context, &mut peer, way);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let wait = || pending.spin_timeout(Duration::ZERO);
        assert_eq!(wait(), Ok(Progress::Pending));
        peer.child.kill();
        wait_until("the end is found", || wait() != Ok(Progress::Pending));
        assert_eq!(wait(), Err(Error::ExporterGone), "{way}");
    }
}

/// Who says that the maker has ended has it looked at, though nobody waits. That of one that lives has
/// no effect.
#[test]
fn an_import_by_a_file_is_asked_when_its_maker_is_said_to_have_ended() {
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let imported = make_and_open(&gpu.context, &mut peer, "writable");
    let is_gone = || format!("{imported:?}").contains("exporter_gone: true");
    assert_eq!(imported.exporter_ended(), Ok(()));
    assert!(!is_gone(), "{imported:?}");
    peer.child.kill();
    assert!(!is_gone(), "nobody has asked: {imported:?}");
    assert_eq!(imported.exporter_ended(), Ok(()));
    assert!(is_gone(), "{imported:?}");
}

/// In peace: who waits for signals gets them, and then an end.
#[test]
fn a_dropped_timeline_ends_after_its_signals() {
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let mut peer = Peer::start();
        let imported = make_and_open(&gpu.context, &mut peer, way);
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let never = imported.point(pending.value() + 1).expect("a point");
        let (stream, other) = (gpu.stream(), gpu.stream());
        stream.wait_point(pending).expect("a wait");
        other.wait_point(never).expect("a wait");
        peer.step("drop");
        // The maker has nothing of it any more, and the signal will come.
        assert_eq!(pending.query(), Ok(Progress::Pending), "{way}");
        assert_eq!(never.wait_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
        assert_eq!(stream.query(), Ok(Progress::Pending));
        peer.step("release");
        reached(pending);
        idle(&stream);
        assert_eq!(error(never.wait_timeout(PATIENCE)), Error::Poisoned);
        idle(&other);
        peer.end();
        assert_eq!((pending.query(), never.query()), (Ok(Progress::Done), Err(Error::Poisoned)));
    }
}

/// The maker drops the whole file, and lives. A wait for a place that never was a timeline
/// ends, too.
#[test]
fn a_dropped_file_is_an_end() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let timeline = HostTimeline::shared(&file).expect("a timeline");
    let bytes = timeline.descriptor().expect("it is shared").to_bytes();
    let empty = forged(bytes, |body| body[6] = 63);
    let empty = TimelineDescriptor::from_bytes(&empty).expect("a descriptor");
    let imported = open(&gpu, (memory::copy(&file), empty));
    drop(timeline);
    assert_eq!(
        imported.point(1).expect("a point").query(),
        Ok(Progress::Pending),
        "the file is there"
    );
    drop(file);
    // At once, unless another test starts a child at this moment: until its `exec`, the child has
    // the file open as well.
    let point = imported.point(1).expect("a point");
    assert_eq!(error(point.wait_timeout(PATIENCE)), Error::ExporterGone);
}

/// Counts this process's descriptors of `file`. Those of other files do not count: the thread may
/// still close what the maker has of a file that ended before.
#[cfg(target_os = "linux")]
fn descriptors(file: &TimelineFile) -> impl Fn() -> usize {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;
    let inode = |path: &Path| std::fs::metadata(path).map(|data| (data.dev(), data.ino()));
    let number = file.as_fd().as_raw_fd();
    let this = inode(&Path::new("/proc/self/fd").join(number.to_string())).expect("it is open");
    move || {
        let open = std::fs::read_dir("/proc/self/fd").expect("this process's files").flatten();
        open.flat_map(|file| inode(&file.path())).filter(|file| *file == this).count()
    }
}

/// After the end of a timeline nobody looks after those who waited for it: the thread lets go of
/// the import, and so of the file, while the maker lives.
#[cfg(target_os = "linux")]
#[test]
fn an_ended_timeline_is_let_go() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let file = match way {
            "sealed" => TimelineFile::new(&gpu.context),
            _ => TimelineFile::writable(&gpu.context),
        };
        let file = file.expect("a file");
        let files = descriptors(&file);
        let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let descriptor = timeline.descriptor().expect("it is shared");
        let own = files();
        let given = match way {
            "reading" => reading(&file),
            _ => file.as_fd().try_clone_to_owned().expect("a file"),
        };
        let imported = open(&gpu, (given, descriptor));
        let stream = gpu.stream();
        stream
            .wait_point(imported.point(timeline.completed() + 1).expect("a point"))
            .expect("a wait");
        drop(imported);
        assert_eq!(files(), own + 1, "{way}: a stream waits");
        drop(timeline);
        idle(&stream);
        wait_until(&format!("{way}: the file is closed"), || files() == own);
    }
}

/// A graph that is never launched has captured a wait for an import. The file is open as long as
/// the graph may be launched, and no longer, while the maker lives.
#[cfg(target_os = "linux")]
#[test]
fn an_import_goes_with_the_graph_that_captured_it() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    for way in WAYS {
        let file = match way {
            "sealed" => TimelineFile::new(&gpu.context),
            _ => TimelineFile::writable(&gpu.context),
        };
        let file = file.expect("a file");
        let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        let stream = gpu.stream();
        let files = descriptors(&file);
        let own = files();
        let captured = || {
            let given = match way {
                "reading" => reading(&file),
                _ => file.as_fd().try_clone_to_owned().expect("a file"),
            };
            let imported = open(&gpu, (given, timeline.descriptor().expect("it is shared")));
            let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
            stream
                .wait_point(imported.point(timeline.completed() + 1).expect("a point"))
                .expect("a wait");
            capture
        };
        for _ in 0..50 {
            drop(captured());
        }
        assert_eq!(files(), own, "{way}: no graph came about");
        let graph = captured().end().expect("a graph");
        let exec = graph.instantiate().expect("it is instantiated");
        drop(graph);
        assert_eq!(files(), own + 1, "{way}: it may be launched");
        drop(exec);
        assert_eq!(files(), own, "{way}: no launch can come");
        // A launch is a wait like any other.
        let exec = captured().end().and_then(|graph| graph.instantiate()).expect("a graph");
        exec.launch(&stream).expect("a launch");
        drop(exec);
        assert_eq!(files(), own + 1, "{way}: a stream waits");
        timeline.signal().expect("a signal");
        idle(&stream);
        wait_until("the file is closed", || files() == own);
    }
}

/// The maker is killed while a launch waits for it, or before the launch. The stream goes on, also
/// when nothing is left of the import and the graph.
#[test]
fn a_killed_maker_releases_launches() {
    for way in WAYS {
        for launched_before in [false, true] {
            let Some(gpu) = gpu() else { return };
            let mut peer = Peer::start();
            let imported = make_and_open(&gpu.context, &mut peer, way);
            peer.step("hold");
            let pending = imported.point(peer.number("signal")).expect("a point");
            let stream = gpu.stream();
            let capture = common::begin_capture(&stream, CaptureMode::Relaxed).expect("a capture");
            stream.wait_point(pending).expect("a wait");
            let exec = capture.end().and_then(|graph| graph.instantiate()).expect("a graph");
            drop(imported);
            if launched_before {
                exec.launch(&stream).expect("a launch");
                assert_eq!(stream.query(), Ok(Progress::Pending), "{way}");
            }
            peer.child.kill();
            if !launched_before {
                exec.launch(&stream).expect("a launch");
            }
            drop(exec);
            idle(&stream);
        }
    }
}

/// The crate's thread looks after what processes share. Where none shares anything, there is none.
/// Only Linux has a file with the number of threads of a process.
#[cfg(target_os = "linux")]
#[test]
fn only_what_is_shared_has_a_thread() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let threads = || {
        let all = std::fs::read_dir("/proc/self/task").expect("this process's threads").flatten();
        let names = all.flat_map(|thread| std::fs::read_to_string(thread.path().join("comm")));
        names.filter(|name| name.trim_end() == "cuda-events").count()
    };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let own = Timeline::new(gpu.stream()).expect("a timeline");
    let host = HostTimeline::shared(&file).expect("a timeline");
    for _ in 0..100 {
        reached(own.signal().expect("a signal"));
        reached(host.signal().expect("a signal"));
    }
    assert_eq!(threads(), 0);
    let shared = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    wait_until("the thread starts", || threads() == 1);
    reached(shared.signal().expect("a signal"));
}
