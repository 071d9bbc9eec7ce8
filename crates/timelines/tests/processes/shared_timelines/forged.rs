//! Files and descriptors that are damaged, forged or not safe.

use crate::common;

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use common::futures::{Unpark, block_on, wait_until};
use common::memory::{self, Mapping, PAGE, Shared, reading};
#[cfg(target_os = "linux")]
use common::timelines::error;
use common::timelines::{PATIENCE, each_damage_is_refused, gpu, idle, poll, reached};
use common::{Gpu, Latch};
use cuda_events::sys::CUresult;
use cuda_events::{Progress, Stream};
use cuda_timelines::{
    CudaStreamExt, Error, HostTimeline, ImportedTimeline, Result, SharedTimelineError as Refusal,
    Timeline, TimelineDescriptor, TimelineFile,
};

use super::{Peer, WAYS, open};

/// Random numbers, the same ones for a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// Somebody writes any bytes, all the time. Points seem reached, pending, or at an end; nothing
/// else happens, and at the maker's end everybody is released.
#[test]
fn any_bytes_in_the_file_do_no_harm() {
    const ROUNDS: usize = 150;
    for way in WAYS {
        let Some(gpu) = gpu() else { return };
        let mut peer = Peer::start();
        let (file, descriptor) = peer.make("writable");
        let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
        let file = if way == "reading" { reading(&file) } else { file };
        let imported = open(&gpu, (file, descriptor));
        let over = AtomicBool::new(false);
        let streams: Vec<Stream> = (0..3).map(|_| gpu.stream()).collect();
        std::thread::scope(|scope| {
            let (words, over) = (raw.words(), &over);
            let scribble = scope.spawn(move || {
                let mut random = Random(0x5EED);
                while !over.load(Ordering::SeqCst) {
                    for word in words {
                        let interesting =
                            [0, 1, random.next(), 1 << 62, (1 << 62) - 1, u64::MAX, 1 << 63, 7];
                        let value = interesting[random.next() as usize % interesting.len()];
                        word.store(value, Ordering::Relaxed);
                    }
                }
            });
            let mut random = Random(0xF00D);
            let allowed = |result: Result<Progress>| {
                let expected = [
                    Ok(Progress::Done),
                    Ok(Progress::Pending),
                    Err(Error::Poisoned),
                    Err(Error::ExporterGone),
                ];
                assert!(expected.contains(&result), "{result:?}");
            };
            let mut futures = Vec::new();
            for round in 0..ROUNDS {
                let point = imported.point(random.next() >> (round % 64)).expect("a point");
                let _ = (point.is_done(), imported.completed(), format!("{point:?} {imported:?}"));
                allowed(point.query());
                allowed(point.wait_timeout(Duration::from_micros(50)));
                allowed(point.spin_timeout(Duration::from_micros(50)));
                allowed(streams[round % streams.len()].wait_point(point).map(|()| Progress::Done));
                let mut future = point.into_future();
                if let Poll::Ready(result) = poll(&mut future, Waker::noop()) {
                    allowed(result.map(|()| Progress::Done));
                }
                futures.push(future);
            }
            // The last words: nobody is released by them.
            over.store(true, Ordering::SeqCst);
            scribble.join().expect("no panic");
            words.iter().for_each(|word| word.store(0, Ordering::SeqCst));
            peer.child.kill();
            // A value that was reached and taken back is nobody's to look after, until one asks. A
            // query asks seldom.
            let last = imported.point(u64::MAX).expect("a point");
            wait_until("somebody asks", || last.query().is_err());
            for stream in &streams {
                idle(stream);
            }
            for future in futures {
                let result = block_on(future).map(|()| Progress::Done);
                allowed(result.clone());
                assert_ne!(result, Ok(Progress::Pending));
            }
        });
    }
}

/// The maker has ended, and somebody erases the poison before a stream comes to its wait. A
/// query of a point then releases the stream again.
#[test]
fn a_query_puts_erased_poison_back() {
    common::own_process!("order=off");
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("writable");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let imported = open(&gpu, (file, descriptor));
    peer.step("hold");
    let lost = imported.point(peer.number("signal")).expect("a point");
    let stream = gpu.stream();
    let latch = Latch::hold(&stream);
    stream.wait_point(lost).expect("a wait");
    peer.child.kill();
    wait_until("somebody asks", || lost.query() == Err(Error::ExporterGone));
    // For a second the crate's thread would put it back.
    std::thread::sleep(Duration::from_millis(1500));
    raw.words()[8..10].iter().for_each(|word| word.store(0, Ordering::SeqCst));
    latch.release();
    assert_eq!(lost.query(), Err(Error::ExporterGone));
    idle(&stream);
}

/// A process that has the file can write any reason for which the timeline is poisoned. The maker
/// does not believe that its own driver has reported it.
#[test]
fn a_forged_reason_is_not_believed() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    let (value, reason) = (&raw.words()[8], &raw.words()[9]);
    let other = gpu.stream();
    let untouched = value.load(Ordering::SeqCst);
    let unpark = Unpark::new();
    let mut future = point.into_future();
    assert_eq!(poll(&mut future, &Waker::from(Arc::clone(&unpark))), Poll::Pending);
    let errors = || {
        [
            point.query(),
            point.wait().map(|()| Progress::Done),
            point.spin().map(|()| Progress::Done),
            point.spin_timeout(PATIENCE),
            other.wait_point(point).map(|()| Progress::Done),
            timeline.wait_ahead(&other, point.value() + 1).map(|()| Progress::Done),
        ]
    };
    // Errors of the driver, of which some are sticky; the marks of this crate; and nothing but the
    // bit in the value.
    for forged in [700, 719, 600, 4, 0xFFFF_FFFF, u64::MAX - 1, u64::MAX, 1 << 40, 0] {
        reason.store(forged, Ordering::SeqCst);
        value.fetch_or(1 << 62, Ordering::SeqCst);
        assert!(errors().iter().all(|seen| *seen == Err(Error::Poisoned)), "{forged}");
    }
    wait_until("the future is woken", || unpark.woken() > 0);
    assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Err(Error::Poisoned)));
    // All of it is taken back.
    reason.store(0, Ordering::SeqCst);
    value.store(untouched, Ordering::SeqCst);
    assert_eq!(point.query(), Ok(Progress::Pending));
    if let Some(soft) = gpu.soft() {
        let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
        soft.fail_contexts(code);
        // What this process has found by itself stays so, whatever is written there.
        for forged in [0, 719, u64::MAX] {
            let codes = errors().map(|seen| seen.map_err(|error| error.code()));
            assert!(codes.iter().all(|seen| *seen == Err(Some(code))), "{codes:?}");
            reason.store(forged, Ordering::SeqCst);
            value.store(untouched, Ordering::SeqCst);
        }
    }
    drop(latch);
}

/// Somebody takes a value back after a future was woken for it, and before the task has looked. It
/// waits anew.
#[test]
fn a_future_waits_anew_for_a_value_taken_back() {
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("writable");
    let raw = Mapping::new(&file, PAGE).expect("it can be mapped");
    let word = &raw.words()[8];
    let imported = open(&gpu, (file, descriptor));
    let unpark = Unpark::new();
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = imported.point(5).expect("a point").into_future();
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    word.store(5, Ordering::SeqCst);
    wait_until("the future is woken", || unpark.woken() == 1);
    word.store(4, Ordering::SeqCst);
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    // It has asked to be polled again, at once.
    assert_eq!(unpark.woken(), 2);
    assert_eq!(poll(&mut future, &waker), Poll::Pending);
    word.store(5, Ordering::SeqCst);
    wait_until("the future is woken again", || unpark.woken() == 3);
    assert_eq!(poll(&mut future, &waker), Poll::Ready(Ok(())));
    peer.end();
}

fn refused(gpu: &Gpu, file: Shared, descriptor: &TimelineDescriptor) -> Refusal {
    match ImportedTimeline::open(&gpu.context, file, descriptor) {
        Err(Error::SharedTimeline(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// What is not safe to look at, and why it is refused.
#[cfg(target_os = "linux")]
fn unsafe_files() -> Vec<(Shared, Refusal)> {
    use common::memory::{ALL_SEALS, SealFlags};
    // A socket and this program's file are no shared memory.
    let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("a socket");
    let exe = std::fs::File::open("/proc/self/exe").expect("this binary");
    let mut files = vec![(socket.into(), Refusal::NotMemory), (exe.into(), Refusal::NotMemory)];
    // Without one of the seals.
    for missing in [SealFlags::SHRINK, SealFlags::GROW, SealFlags::SEAL] {
        files.push((memory::file(PAGE as u64, ALL_SEALS - missing), Refusal::Unsealed));
    }
    // Of another size, also one that was truncated before it was sealed.
    for bytes in [0, 64, PAGE as u64 - 1, PAGE as u64 + 1, 1 << 33] {
        let found = u32::try_from(bytes).unwrap_or(u32::MAX);
        let expected = Refusal::FileSize { found, expected: PAGE as u32 };
        files.push((memory::file(bytes, ALL_SEALS), expected));
    }
    files
}

#[cfg(windows)]
fn unsafe_files() -> Vec<(Shared, Refusal)> {
    // Not memory at all, and memory of a file on a disk.
    let exe =
        || std::fs::File::open(std::env::current_exe().expect("a path")).expect("this binary");
    let named = std::env::temp_dir().join(format!("cuda-events-test-{}", std::process::id()));
    let mut disk = std::fs::File::options();
    let disk =
        disk.read(true).write(true).create(true).truncate(true).open(&named).expect("a file");
    disk.set_len(PAGE as u64).expect("a file");
    let of_disk = memory::of_file(&disk, PAGE as u64);
    let mut files = vec![(exe().into(), Refusal::NotMemory), (of_disk, Refusal::NotMemory)];
    // With pages that are not there.
    let reserved = memory::of_kind(PAGE as u64, memory::RESERVED);
    files.push((reserved, Refusal::Unsealed));
    // Of another size. The system counts in pages.
    for pages in [2, 16, 1 << 12] {
        let found = pages * PAGE as u32;
        let expected = Refusal::FileSize { found, expected: PAGE as u32 };
        files.push((memory::plain(found as usize), expected));
    }
    files
}

/// Each reason for which a file is refused is its own error.
#[test]
fn files_that_are_not_safe_are_refused() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let timeline = Timeline::shared(gpu.stream(), &file).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    for (number, (bad, refusal)) in unsafe_files().into_iter().enumerate() {
        assert_eq!(refused(&gpu, bad, &descriptor), refusal, "{number}");
    }
    // Of the right size, and something else.
    assert_eq!(refused(&gpu, memory::safe(&[]), &descriptor), Refusal::FileMagic);
    let strange = memory::safe(&[u64::from(u32::from_le_bytes(*b"CUTL")) | 9 << 32]);
    let version = Refusal::FileVersion { found: 9, expected: 1 };
    assert_eq!(refused(&gpu, strange, &descriptor), version);
    // Another file than the descriptor's.
    let other = TimelineFile::writable(&gpu.context).expect("a file");
    let copy = memory::copy(&other);
    assert_eq!(refused(&gpu, copy, &descriptor), Refusal::OtherFile);
    // The right file is accepted after all that was refused.
    let copy = memory::copy(&file);
    let imported = open(&gpu, (copy, descriptor));
    let point = imported.point(timeline.signal().expect("a signal").value()).expect("a point");
    reached(point);
}

#[test]
fn damaged_descriptors_are_refused() {
    let Some(gpu) = gpu() else { return };
    let file = TimelineFile::writable(&gpu.context).expect("a file");
    let timeline = HostTimeline::shared(&file).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    let bytes = descriptor.to_bytes();
    assert_eq!(TimelineDescriptor::from_bytes(&bytes), Ok(descriptor));
    each_damage_is_refused(&bytes);
    assert_eq!(Timeline::new(gpu.stream()).expect("a timeline").descriptor(), None);
}

/// The kernel holds importers to what they may do.
#[cfg(target_os = "linux")]
#[test]
fn importers_cannot_change_the_file() {
    use common::memory::SealFlags;
    use std::os::fd::{AsFd as _, AsRawFd as _};
    let Some(gpu) = gpu() else { return };
    let exposed = TimelineFile::writable(&gpu.context).expect("a file");
    let sealed = TimelineFile::new(&gpu.context).expect("a file");
    // As it is lent, and opened again for writing, which root and the same user may do.
    let path = format!("/proc/self/fd/{}", sealed.as_fd().as_raw_fd());
    let again = std::fs::File::options().read(true).write(true).open(path).ok();
    let again = again.as_ref().map(|file| (file.as_fd(), false));
    let files = [(exposed.as_fd(), true), (sealed.as_fd(), false)];
    for (file, writable) in files.into_iter().chain(again) {
        for bytes in [0, 64, 2 * PAGE as u64] {
            assert!(rustix::fs::ftruncate(file, bytes).is_err(), "{bytes}");
        }
        assert!(rustix::fs::fcntl_add_seals(file, SealFlags::WRITE).is_err());
        assert_eq!(Mapping::new(file, PAGE).is_ok(), writable);
        assert_eq!(rustix::io::pwrite(file, &[0; 8], 64).is_ok(), writable);
        let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        assert_eq!(rustix::fs::fallocate(file, punch, 0, PAGE as u64).is_ok(), writable);
    }
    // Another user who is given it for reading cannot open it for writing.
    for file in [&exposed, &sealed] {
        let mode = rustix::fs::fstat(file).expect("an open file").st_mode;
        assert_eq!(mode & 0o777, 0o400);
    }
    let read_only = reading(&exposed);
    assert!(Mapping::new(&read_only, PAGE).is_err());
}

/// The system holds importers to what they may do, and gives them no stronger handle.
#[cfg(windows)]
#[test]
fn importers_cannot_change_the_file() {
    let Some(gpu) = gpu() else { return };
    let exposed = TimelineFile::writable(&gpu.context).expect("a file");
    let sealed = TimelineFile::new(&gpu.context).expect("a file");
    assert!(Mapping::new(&exposed, PAGE).is_ok());
    for file in [memory::copy(&sealed), reading(&exposed), reading(&sealed)] {
        assert!(Mapping::for_reading(&file, PAGE).is_ok());
        assert!(Mapping::new(&file, PAGE).is_err());
        for (what, access) in memory::STRONGER {
            assert!(memory::with_access(&file, access).is_err(), "{what}");
        }
    }
    // One with the same words that is another: what was seen of the first is not taken for it.
    let timeline = HostTimeline::shared(&sealed).expect("a timeline");
    let descriptor = timeline.descriptor().expect("it is shared");
    let forged = Mapping::for_reading(&sealed, PAGE).expect("it can be mapped");
    let words: Vec<u64> = forged.words().iter().map(|word| word.load(Ordering::SeqCst)).collect();
    let forged = memory::safe(&words);
    let mapped = Mapping::new(&forged, PAGE).expect("it is ours");
    let seen = open(&gpu, (forged, descriptor));
    mapped.words()[8].store(7, Ordering::SeqCst);
    assert_eq!(seen.completed(), 7);
    assert_eq!(open(&gpu, (memory::copy(&sealed), descriptor)).completed(), 0);
}

/// A process that is given a sealed file cannot pass for its maker: it gets no lock, now or later,
/// and the maker's end is seen.
#[cfg(target_os = "linux")]
#[test]
fn nobody_passes_for_the_maker_of_a_sealed_file() {
    use rustix::fs::OFlags;
    use std::os::fd::AsFd as _;
    let Some(gpu) = gpu() else { return };
    let mut peer = Peer::start();
    let (file, descriptor) = peer.make("sealed");
    let flags = rustix::fs::fcntl_getfl(&file).expect("an open file");
    assert_eq!(flags & OFlags::ACCMODE, OFlags::RDONLY);
    let imported = open(&gpu, (file.try_clone().expect("a file"), descriptor));
    peer.step("hold");
    let pending = imported.point(peer.number("signal")).expect("a point");
    let stream = gpu.stream();
    stream.wait_point(pending).expect("a wait");
    let mine = reading(&file);
    for (what, file) in [("the description", &file), ("another", &mine)] {
        let refused = lock(file.as_fd(), 1).expect_err(what);
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()), "{what}");
    }
    // A lock for reading keeps nobody from asking.
    lock(file.as_fd(), 0).expect_err("the maker has its own");
    peer.child.kill();
    wait_until("the maker's lock is gone", || lock(mine.as_fd(), 0).is_ok());
    assert_eq!(error(pending.wait_timeout(PATIENCE)), Error::ExporterGone);
    idle(&stream);
}

/// Takes a lock of the whole file's description, for reading (0) or writing (1), if it is free.
#[cfg(target_os = "linux")]
fn lock(file: std::os::fd::BorrowedFd<'_>, kind: i16) -> std::io::Result<()> {
    /// `struct flock`, with 64-bit offsets.
    #[repr(C)]
    struct Lock {
        kind: i16,
        whence: i16,
        start: i64,
        length: i64,
        process: i32,
    }
    unsafe extern "C" {
        fn fcntl(file: i32, command: i32, ...) -> i32;
    }
    const SET_LOCK: i32 = 37;
    let lock = Lock { kind, whence: 0, start: 0, length: 0, process: 0 };
    // SAFETY: the command takes a lock of this layout.
    match unsafe { fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), SET_LOCK, &raw const lock) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
