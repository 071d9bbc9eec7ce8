//! Forked children, and processes in containers.

use crate::common;

use std::future::IntoFuture;
use std::process::Command;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use common::Latch;
use common::child::end_after;
use common::memory;
use common::timelines::{PATIENCE, error, gpu, idle, poll, reached};
use cuda_events::Error::ForkedChild;
use cuda_events::Progress;
use cuda_timelines::{
    CudaStreamExt, Error, HostTimeline, ImportedTimeline, Point, Result, Timeline, TimelineFile,
};

use super::{Peer, make_and_open, open};

unsafe extern "C" {
    fn fork() -> i32;
    fn pause() -> i32;
    fn unshare(flags: i32) -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn prctl(option: i32, ...) -> i32;
    fn kill(process: i32, signal: i32) -> i32;
    fn close(file: i32) -> i32;
    fn mount(
        source: *const std::ffi::c_char,
        target: *const std::ffi::c_char,
        kind: *const std::ffi::c_char,
        flags: u64,
        data: *const std::ffi::c_void,
    ) -> i32;
}

/// A child that goes on living with all that it was given.
pub(super) fn fork_one_that_stays() -> i32 {
    // SAFETY: the child makes system calls only.
    let child = unsafe { fork() };
    if child == 0 {
        end_after(300);
        loop {
            // SAFETY: it has no preconditions.
            unsafe { pause() };
        }
    }
    child
}

/// A forked child of the maker has all that the maker had, and does not pass for it.
#[test]
fn a_forked_child_of_the_maker_is_none() {
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let imported = make_and_open(&gpu.context, &mut peer, "writable");
    peer.step("hold");
    let pending = imported.point(peer.number("signal")).expect("a point");
    let child = peer.number("fork");
    assert_eq!(pending.query(), Ok(Progress::Pending), "the maker lives");
    peer.child.kill();
    let found = pending.wait_timeout(PATIENCE);
    // SAFETY: it is the process that the peer has forked, which ends by this or by its alarm.
    let killed = unsafe { kill(child as i32, 9) };
    assert_eq!((found, killed), (Err(Error::ExporterGone), 0));
}

/// In a forked child nothing of it works, and dropping does nothing to the parent.
#[test]
fn a_forked_child_imports_nothing() {
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (theirs, descriptor) = peer.make("sealed");
    let copy = theirs.try_clone().expect("a file");
    let imported = open(&gpu, (theirs, descriptor));
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let own = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    let copy_of_own = memory::copy(&file);
    let seen = open(&gpu, (copy_of_own, own.descriptor().expect("it is shared")));
    peer.step("hold");
    let value = peer.number("signal");
    let stream = gpu.stream();
    stream.wait_point(imported.point(value).expect("a point")).expect("a wait");
    // One that no stream waits for, so that nobody else has a share of it.
    let mut second = Peer::start();
    let quiet = make_and_open(&gpu.context, &mut second, "sealed");
    let mut inherited = Some((imported, file, own, copy, quiet));
    let (output, status) = common::fork::in_child(|| {
        let (imported, file, own, copy, quiet) = inherited.take().expect("it was there");
        let forked = |result: Result<()>| match result {
            Err(error @ Error::Cuda(ForkedChild { .. })) => error.is_sticky(),
            other => panic!("{other:?}"),
        };
        let point = imported.point(value).expect("a point");
        assert!(forked(TimelineFile::writable(&gpu.context).map(drop)));
        assert!(forked(HostTimeline::shared(&file).map(drop)));
        assert!(forked(ImportedTimeline::open(&gpu.context, copy, &descriptor).map(drop)));
        assert!(forked(point.query().map(drop)));
        assert!(forked(point.wait()));
        assert!(forked(stream.wait_point(point)));
        let polled = poll(&mut point.into_future(), Waker::noop());
        assert!(matches!(polled, Poll::Ready(Err(Error::Cuda(ForkedChild { .. })))));
        drop((imported, file, own, quiet));
        String::from("well")
    });
    assert_eq!((output.as_str(), status), ("well", 0));
    let (imported, file, own, _, quiet) = inherited.expect("the child took its own");
    let late = gpu.stream();
    late.wait_point(quiet.point(1).expect("a point")).expect("a wait");
    assert_eq!(late.synchronize_timeout(Duration::from_millis(20)), Ok(Progress::Pending));
    assert_eq!(second.number("signal"), 1);
    idle(&late);
    second.end();
    // The parent's files live, and nobody is released.
    assert_eq!(stream.query(), Ok(Progress::Pending));
    assert_eq!(
        seen.point(1).expect("a point").query(),
        Ok(Progress::Pending),
        "this process lives"
    );
    peer.step("release");
    idle(&stream);
    assert!(imported.point(value).expect("a point").is_done());
    let point = own.signal().expect("a signal");
    reached(seen.point(point.value()).expect("a point"));
    drop(file);
    peer.end();
}

/// A forked child that drops an import leaves the line alone for which the parent's streams waited.
/// The parent may have given that line to another timeline.
#[test]
fn a_forked_child_settles_no_line_of_the_parent() {
    use std::io::{Read as _, Write as _};
    /// More than a page has.
    const MANY: usize = 65;
    common::own_process!();
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::new(&gpu.context).expect("a file");
    let maker = HostTimeline::shared(&file).expect("a timeline");
    let imported = open(&gpu, (memory::copy(&file), maker.descriptor().expect("it is shared")));
    let imported = std::sync::Mutex::new(Some(imported));
    let (mut forked, mut has_forked) = std::io::pipe().expect("a pipe");
    let (mut dropped, mut has_dropped) = std::io::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        let child = scope.spawn(|| {
            common::fork::in_child(|| {
                let imported = imported.lock().expect("nobody has it").take();
                has_forked.write_all(&[1]).expect("the parent reads");
                dropped.read_exact(&mut [0]).expect("the parent writes");
                drop(imported);
                String::from("well")
            })
        });
        forked.read_exact(&mut [0]).expect("the child writes");
        // Another timeline gets its line, and is poisoned.
        drop(imported.lock().expect("nobody has it").take());
        let stream = Arc::new(gpu.stream());
        let latch = Latch::hold(&stream);
        let points: Vec<Point> = (0..MANY)
            .map(|_| {
                let timeline = Timeline::new(Arc::clone(&stream)).expect("a timeline");
                let point = timeline.signal().expect("a signal");
                timeline.poison().expect("the stream works");
                point
            })
            .collect();
        has_dropped.write_all(&[1]).expect("the child reads");
        assert_eq!(child.join().expect("no panic"), (String::from("well"), 0));
        for point in points {
            assert_eq!(point.query(), Err(Error::Poisoned));
        }
        latch.release();
        idle(&stream);
    });
}

/// Puts a process that is about to start into mounts, process ids and interprocess objects of its
/// own, as a container does.
fn contain() -> std::io::Result<()> {
    const NEW_MOUNTS: i32 = 0x0002_0000;
    const NEW_IPC: i32 = 0x0800_0000;
    const NEW_PIDS: i32 = 0x2000_0000;
    const DIE_WITH_THE_PARENT: i32 = 1;
    let (recursive, private) = (1 << 14, 1 << 18);
    let (none, nothing) = (std::ptr::null(), std::ptr::null());
    // SAFETY: C strings and NULL where nothing is meant; only this process's own surroundings
    // change.
    let done = unsafe {
        unshare(NEW_MOUNTS | NEW_IPC | NEW_PIDS) == 0
            && mount(none, c"/".as_ptr(), none, recursive | private, nothing) == 0
            && mount(c"tmpfs".as_ptr(), c"/dev/shm".as_ptr(), c"tmpfs".as_ptr(), 0, nothing) == 0
    };
    if !done {
        return Err(std::io::Error::last_os_error());
    }
    // The first process of the new ids is a child; this one ends with it, and it with this one.
    // SAFETY: this process has one thread, and both go on with system calls only.
    unsafe {
        let child = fork();
        if child > 0 {
            // So that nobody waits for this one to close them.
            for file in 0..1024 {
                close(file);
            }
            let mut status = 0;
            waitpid(child, &mut status, 0);
            _exit(if status == 0 { 0 } else { 1 });
        }
        prctl(DIE_WITH_THE_PARENT, 9);
        // Its own view of the process ids.
        mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, nothing);
    }
    Ok(())
}

fn contained(command: &mut Command) {
    // SAFETY: it makes system calls only.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, contain) };
}

/// Two processes that share nothing but a socket, as two containers do: the one is in namespaces of
/// its own, where the other's process id means nothing. Orders go both ways, and a killed one is
/// noticed.
#[test]
fn two_containers_share_timelines() {
    let mut command = Command::new("true");
    contained(&mut command);
    if let Err(error) = command.status() {
        return common::say_not_run(&format!("no namespaces can be made here: {error}"));
    }
    let Some(gpu) = gpu() else { return };
    for kind in ["writable", "sealed"] {
        let mut peer = Peer::start_with(contained);
        peer.step("signals-nothing");
        // It stays as long as it is open here.
        let shm = std::fs::File::open(format!("/proc/{}/root/dev/shm", peer.child.id()));
        let shm = shm.expect("its own");
        let names = || {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&shm));
            let entries = std::fs::read_dir(path).expect("a folder").flatten();
            entries.map(|entry| entry.file_name()).collect::<std::collections::BTreeSet<_>>()
        };
        let before = names();
        let imported = make_and_open(&gpu.context, &mut peer, kind);
        let file = TimelineFile::writable(&gpu.context).expect("a file");
        let own = Timeline::shared(gpu.stream(), &file).expect("a timeline");
        peer.give(&file, &own.descriptor().expect("it is shared"));
        for way in ["stream", "wait", "await"] {
            let latch = Latch::hold(own.stream());
            let value = own.signal().expect("a signal").value();
            peer.begin(&format!("{way} {value}"));
            latch.release();
            let reply = peer.child.receive();
            assert!(matches!(reply.as_str(), "Ok(Done)" | "Ok(\"Done\")"), "{way}: {reply}");
            let point = imported.point(peer.number("signal")).expect("a point");
            let stream = gpu.stream();
            stream.wait_point(point).expect("a wait");
            idle(&stream);
            reached(point);
        }
        peer.step("hold");
        let pending = imported.point(peer.number("signal")).expect("a point");
        let stream = gpu.stream();
        stream.wait_point(pending).expect("a wait");
        assert_eq!(pending.query(), Ok(Progress::Pending));
        // It dies with its parent. Its input is open until then: the end of that would end it, too,
        // and not by a signal.
        peer.child.kill_only();
        assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::ExporterGone);
        idle(&stream);
        assert_eq!(names(), before, "nothing stays in /dev/shm");
    }
}
