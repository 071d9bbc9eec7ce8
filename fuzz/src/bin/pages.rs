//! The shared pages of timelines and of interprocess events, rewritten by somebody else while this
//! process uses them. Nothing crashes or hangs; what is said may be wrong.
#![no_main]

use std::ffi::c_void;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuda_events::ipc::IpcEventDescriptor;
use cuda_events::{Context, Device, Event, Progress, Stream, StreamOptions};
use cuda_events_fuzz::bytes::Bytes;
use cuda_events_fuzz::crc32;
use cuda_soft_driver::SoftDriver;
use cuda_timelines::{
    CudaStreamExt, Error, HostTimeline, ImportedTimeline, Point, Result, Timeline,
    TimelineDescriptor, TimelineFile,
};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

const PAGE: usize = 4096;
/// A slot of an interprocess event, and what is before the first.
const EVENT_FILE: usize = 64 + 16 * 4096;

/// What somebody else has mapped, too.
struct Words(&'static [AtomicU64]);

impl Words {
    fn of(file: impl AsFd, bytes: usize) -> Self {
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, which is never unmapped; no existing memory is named.
        let memory = unsafe { rustix::mm::mmap(null_mut(), bytes, rights, flags, file, 0) };
        let memory: *mut c_void = memory.expect("it can be mapped");
        // SAFETY: so many bytes, which are changed by atomics only.
        Self(unsafe { std::slice::from_raw_parts(memory.cast(), bytes / 8) })
    }

    fn write(&self, at: usize, value: u64) {
        self.0[at % self.0.len()].store(value, Ordering::SeqCst);
    }
}

/// A file as one of this crate's that another process has made.
fn file(timeline: &TimelineFile) -> OwnedFd {
    let mut header = [0; 16];
    assert_eq!(rustix::io::pread(timeline, &mut header, 0), Ok(header.len()));
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("hostile", flags).expect("memory");
    rustix::fs::ftruncate(&file, PAGE as u64).expect("memory");
    assert_eq!(rustix::io::pwrite(&file, &header, 0), Ok(header.len()));
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals).expect("it is ours");
    file
}

/// All that lives as long as this process: a file that is mapped stays mapped.
struct World {
    soft: SoftDriver,
    context: Context,
    streams: [Stream; 4],
    own: HostTimeline,
    own_words: Words,
    own_points: TimelineFile,
    imports: Vec<ImportedTimeline>,
    words: Words,
    events: Vec<Event>,
    event_words: Words,
    _timeline: Timeline,
}

// SAFETY: libFuzzer calls from one thread.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let soft = SoftDriver::builder().build();
    let context = Context::primary(Device::new(soft.driver(), 0).expect("a device")).expect("it");
    let stream = || Stream::new(&context, StreamOptions::new()).expect("a stream");
    let own_points = TimelineFile::writable(&context).expect("a file");
    let own = HostTimeline::shared(&own_points).expect("a timeline");
    let timeline = Timeline::shared(stream(), &own_points).expect("a timeline");
    let own_words = Words::of(&own_points, PAGE);
    let theirs = file(&own_points);
    // The lock that says that the maker lives.
    let words = Words::of(&theirs, PAGE);
    let imports = (1..=4_u16).map(|place| {
        let mut bytes = own.descriptor().expect("it is shared").to_bytes();
        bytes[6..8].copy_from_slice(&place.to_le_bytes());
        let check = crc32(&bytes[..16]).to_le_bytes();
        bytes[16..].copy_from_slice(&check);
        let name = TimelineDescriptor::from_bytes(&bytes).expect("a descriptor");
        let file = theirs.try_clone().expect("a descriptor");
        ImportedTimeline::open(&context, file, &name).expect("an import")
    });
    let imports = imports.collect();
    let (events, event_words) = events(&context);
    World {
        streams: [stream(), stream(), stream(), stream()],
        soft,
        context,
        own,
        own_words,
        own_points,
        imports,
        words,
        events,
        event_words,
        _timeline: timeline,
    }
});

/// Events of a process that is none: a file as the software driver makes them.
fn events(context: &Context) -> (Vec<Event>, Words) {
    const MAGIC: u32 = 0x4543_5303;
    let (process, nonce) = (1_u32, u128::from(std::process::id()) << 64 | 0x1234_5678);
    let path = format!("/dev/shm/cuda-soft-driver.{process}.0.{nonce:032x}");
    let options = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CREATE;
    let file = rustix::fs::open(&path, options, rustix::fs::Mode::from_raw_mode(0o600));
    let file = file.expect("a file");
    rustix::fs::ftruncate(&file, EVENT_FILE as u64).expect("memory");
    let words = Words::of(&file, EVENT_FILE);
    words.write(0, u64::from(MAGIC));
    words.write(2, (nonce >> 64) as u64);
    words.write(3, nonce as u64);
    let events = (0..4_u32).map(|slot| {
        let mut handle = [0; 64];
        handle[..4].copy_from_slice(&process.to_le_bytes());
        handle[16..20].copy_from_slice(&slot.to_le_bytes());
        handle[32..48].copy_from_slice(&nonce.to_be_bytes());
        let descriptor = IpcEventDescriptor::from_raw(handle, slot.is_multiple_of(2));
        // SAFETY: the software driver takes any slot; what it is of is what is attacked here.
        unsafe { Event::from_ipc_descriptor(context, &descriptor) }.expect("it opens")
    });
    let events = events.collect();
    rustix::fs::unlink(path).expect("it is ours");
    (events, words)
}

/// What may be said of a point.
fn may(result: Result<Progress>) {
    match result {
        Ok(_) | Err(Error::ExporterGone | Error::Poisoned | Error::ContextDropped) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Returns in time, whatever somebody else writes.
fn bounded<T>(call: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = call();
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    result
}

fn value(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << 62,
        3 => 1 << 63,
        4 => (1 << 62) - 1,
        5 => u64::from(bytes.byte()),
        _ => bytes.word(),
    }
}

fuzz_target!(|data: &[u8]| {
    let world = &*WORLD;
    let mut bytes = Bytes(data);
    let mut points: Vec<Point> = Vec::new();
    while !bytes.is_empty() {
        let (operation, at) = (bytes.byte() % 16, usize::from(bytes.byte()));
        let import = &world.imports[at % world.imports.len()];
        let stream = &world.streams[at / 16 % 2];
        let event = &world.events[at % world.events.len()];
        match operation {
            0..=2 => world.words.write(8 * (at % 6), value(&mut bytes)),
            3 => world.words.write(at * 2, value(&mut bytes)),
            4 => world.own_words.write(8 * (at % 6), value(&mut bytes)),
            5 | 6 => points.push(import.point(value(&mut bytes)).expect("a point")),
            7 => {
                if let Some(point) = points.get(at % points.len().max(1)) {
                    may(bounded(|| point.query()));
                    may(bounded(|| point.wait_timeout(Duration::from_micros(at as u64))));
                    may(bounded(|| point.spin_timeout(Duration::from_micros(at as u64 % 8))));
                    let _ = (point.is_done(), import.completed());
                }
            }
            8 => {
                if let Some(point) = points.get(at % points.len().max(1)) {
                    may(bounded(|| stream.wait_point(*point)).map(|()| Progress::Done));
                }
            }
            9 => match bounded(|| world.own.signal()) {
                Ok(point) => may(bounded(|| point.query())),
                Err(error) => drop(error),
            },
            10 => drop(bounded(|| HostTimeline::new(&world.context))),
            // The events' memory.
            11 | 12 => world.event_words.write(8 + at % 8, value(&mut bytes)),
            13 => world.event_words.write(at, value(&mut bytes)),
            14 => {
                // Not waited for by a stream: that may be for ever, as with any event whose
                // exporter has been killed.
                let _ = bounded(|| event.query());
                let _ = bounded(|| event.synchronize_timeout(Duration::from_micros(at as u64)));
            }
            _ => {
                let _ = bounded(|| event.ipc_descriptor());
                let _ = (world.soft.live(), world.own_points.as_fd());
            }
        }
    }
    // Each wait that is left ends: the largest value there is.
    for place in 1..=4 {
        world.words.write(8 * place, (1 << 62) - 1);
    }
    for stream in &world.streams {
        let drained = bounded(|| stream.synchronize_timeout(Duration::from_secs(20)));
        assert_eq!(drained, Ok(Progress::Done), "a stream is drained when its value comes");
    }
});
