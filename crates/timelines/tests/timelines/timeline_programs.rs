//! Random programs of timelines: whether one hangs.

use crate::common;

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::counting::{calls_with_arguments, counted_context};
use common::timelines::{PATIENCE, gpu, idle, reached, timeline, timeline as timeline_of};
use common::{Gpu, Latch, TestDriver, cases};
use cuda_events::{Context, EventFlags, Progress, Stream, StreamOptions};
use cuda_timelines::{CudaStreamExt, HostTimeline, Point, Timeline};

/// Random numbers, the same ones for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// A program that did not come to its end in time.
#[derive(Debug, PartialEq, Eq)]
struct Hang {
    seed: u64,
}

/// What random programs have to work with.
struct Stage {
    streams: Vec<Arc<Stream>>,
    context: Context,
}

impl Stage {
    fn new(gpu: &Gpu) -> Self {
        // As many as make a GPU's channels be shared.
        let streams = if TestDriver::chosen() == TestDriver::Native { 64 } else { 12 };
        let streams = (0..streams).map(|_| Arc::new(gpu.stream())).collect();
        Self { streams, context: gpu.context.clone() }
    }

    /// Some threads submit signals and waits for points, each chosen at random among those that
    /// exist by then, and stages of the host that wait for one point and signal another. With
    /// `planted` two streams also wait ahead for each other, each before its own signal.
    fn run(&self, seed: u64, limit: Duration, planted: bool) -> Result<(), Hang> {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let threads = 1 + random.below(3);
        let operations = 8 + random.below(24);
        let timelines: Vec<Timeline> = (0..2 + random.below(self.streams.len()))
            .map(|_| {
                let stream = &self.streams[random.below(self.streams.len())];
                Timeline::new(Arc::clone(stream)).expect("a timeline")
            })
            .collect();
        let host = HostTimeline::new(&self.context).expect("a timeline");
        let points = Mutex::new(Vec::new());
        if planted {
            let [first, second] = [&timelines[0], &timelines[1]];
            let (one, other) = (&self.streams[0], &self.streams[1]);
            let (one, other) = (
                Timeline::new(Arc::clone(one)).expect("a timeline"),
                Timeline::new(Arc::clone(other)).expect("a timeline"),
            );
            let ahead = other.submitted().expect("no fork") + 1;
            other.wait_ahead(one.stream(), ahead).expect("a wait");
            let point = one.signal().expect("a signal");
            other.stream().wait_point(point).expect("a wait");
            let end = other.signal().expect("a signal");
            points.lock().expect("no panic").extend([point, end]);
            // Work of these streams is held up as well.
            drop((first.signal(), second.signal()));
            let result = self.submit(seed, limit, 1, 4, &timelines, &host, &points);
            // Breaks the circle: the streams are released, and can be used again.
            other.poison().expect("a write");
            return result;
        }
        self.submit(seed, limit, threads, operations, &timelines, &host, &points)
    }

    #[allow(clippy::too_many_arguments)]
    fn submit(
        &self,
        seed: u64,
        limit: Duration,
        threads: usize,
        operations: usize,
        timelines: &[Timeline],
        host: &HostTimeline,
        points: &Mutex<Vec<Point>>,
    ) -> Result<(), Hang> {
        let hang = || Err(Hang { seed });
        let results: Vec<Result<(), Hang>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|thread| {
                    let mut random =
                        Random((seed << 8 | thread as u64).wrapping_mul(0xD134_2543_DE82_EF95) | 1);
                    scope.spawn(move || {
                        for _ in 0..operations {
                            let chosen = {
                                let points = points.lock().expect("no panic");
                                (!points.is_empty()).then(|| points[random.below(points.len())])
                            };
                            match (random.below(8), chosen) {
                                (0..=2, _) | (_, None) => {
                                    let timeline = &timelines[random.below(timelines.len())];
                                    let point = timeline.signal().expect("a signal");
                                    points.lock().expect("no panic").push(point);
                                }
                                (3..=6, Some(point)) => {
                                    let stream = &self.streams[random.below(self.streams.len())];
                                    stream.wait_point(point).expect("a wait");
                                }
                                (_, Some(point)) => {
                                    // A stage of the host.
                                    if point.wait_timeout(limit) != Ok(Progress::Done) {
                                        return hang();
                                    }
                                    let point = host.signal().expect("a signal");
                                    points.lock().expect("no panic").push(point);
                                }
                            }
                        }
                        Ok(())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        results.into_iter().collect::<Result<(), Hang>>()?;
        let until = Instant::now() + limit;
        for point in points.lock().expect("no panic").iter() {
            let left = until.saturating_duration_since(Instant::now());
            if point.wait_timeout(left) != Ok(Progress::Done) {
                return hang();
            }
        }
        Ok(())
    }
}

#[test]
fn no_random_program_of_points_hangs() {
    let Some(gpu) = gpu() else { return };
    let stage = Stage::new(&gpu);
    let first = std::env::var("CUDA_EVENTS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..cases(1000, 10_000), |seed: u64| seed..seed + 1);
    for seed in seeds {
        if let Err(Hang { seed }) = stage.run(seed, PATIENCE, false) {
            let _ =
                writeln!(std::io::stderr(), "the program of CUDA_EVENTS_TEST_SEED={seed} hangs");
            std::process::abort();
        }
    }
}

/// The same programs hang when one wait ahead closes a circle, and the test names it. Poison
/// breaks the circle.
#[test]
fn a_wait_ahead_that_closes_a_circle_hangs() {
    common::own_process!("deadlock=hang");
    let Some(gpu) = gpu() else { return };
    let stage = Stage::new(&gpu);
    for seed in 0..5 {
        assert_eq!(stage.run(seed, Duration::from_millis(100), true), Err(Hang { seed }));
        for stream in &stage.streams {
            idle(stream);
        }
        assert_eq!(stage.run(seed, PATIENCE, false), Ok(()));
    }
}

/// It takes no event, and works together with events.
#[test]
fn points_and_events_order_one_program() {
    let Some(gpu) = gpu() else { return };
    let timeline = timeline(&gpu);
    let (middle, last) = (gpu.stream(), timeline_of(&gpu));
    let latch = Latch::hold(timeline.stream());
    let point = timeline.signal().expect("a signal");
    middle.wait_point(point).expect("a wait");
    let event = middle.record_event(EventFlags::empty()).expect("a record");
    last.stream().wait_event(&event).expect("a wait");
    let end = last.signal().expect("a signal");
    assert!(!end.is_done());
    latch.release();
    reached(end);
    assert_eq!(event.query(), Ok(Progress::Done));
    // The driver is given each value once, at one address.
    let context = counted_context(gpu.driver);
    let counted = Timeline::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let counted = counted.expect("a timeline");
    let ((), made) = calls_with_arguments(|| (0..3).for_each(|_| drop(counted.signal())));
    let written: Vec<_> = made.iter().map(|(_, arguments)| (arguments[1], arguments[2])).collect();
    assert!(written.windows(2).all(|pair| pair[1] == (pair[0].0, pair[0].1 + 1)), "{written:?}");
}
