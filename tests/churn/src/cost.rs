//! What the process holds over time, and how long its calls take.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuda_events::sys::CUresult;
use cuda_events::{Context, Driver};

/// How long the calls of a thread took.
pub struct Clock {
    /// When the present call began, in milliseconds since `epoch`, plus 1; 0 outside of calls.
    since: AtomicU64,
    state: Mutex<(&'static str, &'static str, Duration)>,
    epoch: Instant,
}

impl Clock {
    /// Makes a call, and keeps it if it takes longer than all before.
    pub fn time<T>(&self, name: &'static str, call: impl FnOnce() -> T) -> T {
        self.state.lock().expect("no panic").0 = name;
        let began = Instant::now();
        let millis = (began - self.epoch).as_millis() as u64;
        self.since.store(millis + 1, Ordering::Relaxed);
        let result = call();
        self.since.store(0, Ordering::Relaxed);
        let took = began.elapsed();
        let mut state = self.state.lock().expect("no panic");
        if took > state.2 {
            (state.1, state.2) = (name, took);
        }
        result
    }
}

pub struct Clocks(Vec<Clock>);

impl Clocks {
    pub fn new(threads: usize) -> Self {
        let epoch = Instant::now();
        let clock = || Clock {
            since: AtomicU64::new(0),
            state: Mutex::new(("", "", Duration::ZERO)),
            epoch,
        };
        Self((0..threads).map(|_| clock()).collect())
    }

    pub fn of(&self, thread: usize) -> &Clock {
        &self.0[thread]
    }

    /// Ends the process if a call hangs.
    pub fn hung(&self, limit: Duration) {
        for (thread, clock) in self.0.iter().enumerate() {
            let since = clock.since.load(Ordering::Relaxed);
            let now = clock.epoch.elapsed().as_millis() as u64;
            if since != 0 && now.saturating_sub(since) > limit.as_millis() as u64 {
                let name = clock.state.lock().map_or("", |state| state.0);
                eprintln!("churn: HUNG: thread {thread} is in {name} for more than {limit:?}");
                std::process::abort();
            }
        }
    }

    pub fn longest(&self) -> (&'static str, Duration) {
        let each = self.0.iter().map(|clock| clock.state.lock().expect("no panic"));
        let each = each.map(|state| (state.1, state.2));
        each.max_by_key(|(_, took)| *took).unwrap_or_default()
    }
}

/// What is counted, with the growth over the run that is no leak, and the unit.
const KINDS: [(&str, f64, &str); 5] = [
    ("resident memory without files of timelines", 16.0, "MiB"),
    ("file descriptors", 8.0, ""),
    ("threads", 6.0, ""),
    ("old files in /dev/shm", 2.0, ""),
    ("memory of the driver", 8.0, "MiB"),
];

/// What a file of timelines keeps until the process ends, in bytes: a page, and what is known of
/// the file and its timelines.
const KEPT: f64 = 4096.0 + 640.0;

#[derive(Default)]
pub struct Samples(Vec<(f64, [f64; KINDS.len()])>);

impl Samples {
    pub fn take(&mut self, at: Duration, driver: Driver, context: &Context, kept: u64) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            number.unwrap_or(0.0)
        };
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.0.push((
            at.as_secs_f64(),
            [
                field("VmRSS:") / 1024.0 - kept as f64 * KEPT / f64::from(1 << 20),
                descriptors as f64,
                field("Threads:"),
                old_files() as f64,
                memory(driver, context).unwrap_or(0.0),
            ],
        ));
    }

    /// A line through each count: without the start, where all is made for the first time.
    pub fn fits(&self, length: Duration) -> Vec<Fit> {
        let skip = length.as_secs_f64() * 0.2;
        let fitted: Vec<_> = self.0.iter().filter(|(at, _)| *at >= skip).collect();
        let count = fitted.len().max(1) as f64;
        let mean_at = fitted.iter().map(|(at, _)| at).sum::<f64>() / count;
        let span = fitted.last().map_or(0.0, |last| last.0) - fitted.first().map_or(0.0, |it| it.0);
        let square = fitted.iter().map(|(at, _)| (at - mean_at).powi(2)).sum::<f64>();
        let fit = |kind: usize| {
            let mean = fitted.iter().map(|(_, values)| values[kind]).sum::<f64>() / count;
            let product = fitted.iter().map(|(at, values)| (at - mean_at) * (values[kind] - mean));
            let slope = if square > 0.0 { product.sum::<f64>() / square } else { 0.0 };
            let largest = fitted.iter().map(|(_, values)| values[kind]).fold(0.0, f64::max);
            Fit { kind, mean, largest, slope, growth: slope * span, samples: fitted.len() }
        };
        (0..KINDS.len()).map(fit).collect()
    }

    pub fn json(&self) -> String {
        // At most 600 of them.
        let step = self.0.len().div_ceil(600).max(1);
        let lines =
            self.0.iter().step_by(step).map(|(at, [memory, files, threads, old, device])| {
                format!(
                    "{{\"kind\":\"sample\",\"s\":{at:.1},\"rss_mib\":{memory:.2},\"fds\":{files},\
                 \"threads\":{threads},\"old_shm\":{old},\"driver_mib\":{device:.2}}}\n"
                )
            });
        lines.collect()
    }
}

/// A line through a count.
pub struct Fit {
    kind: usize,
    mean: f64,
    largest: f64,
    /// A second.
    slope: f64,
    /// What the line grows by over the run.
    growth: f64,
    samples: usize,
}

impl Fit {
    pub fn is_flat(&self) -> bool {
        self.growth <= KINDS[self.kind].1
    }

    pub fn json(&self) -> String {
        format!(
            "{{\"kind\":\"fit\",\"of\":\"{}\",\"mean\":{:.2},\"largest\":{:.2},\
             \"slope_per_hour\":{:.3},\"growth\":{:.3},\"bound\":{}}}\n",
            KINDS[self.kind].0,
            self.mean,
            self.largest,
            self.slope * 3600.0,
            self.growth,
            KINDS[self.kind].1
        )
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bound, unit) = KINDS[self.kind];
        write!(
            f,
            "{name}: {:.1} {unit} on average, {:.1} at most; the line through {} samples grows by \
             {:.2}, and may by {bound}{}",
            self.mean,
            self.largest,
            self.samples,
            self.growth,
            if self.is_flat() { "" } else { ": FAILED" }
        )
    }
}

/// How many files of killed exporters are in shared memory that are older than all that this run
/// lets them be: they are swept up after a minute by the next process.
fn old_files() -> usize {
    const OLD: Duration = Duration::from_secs(120);
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let dead = files.filter(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        let mut parts = name.split('.');
        let process = (parts.next() == Some("cuda-soft-driver")).then(|| parts.next()).flatten();
        let ended = process.is_some_and(|it| !std::path::Path::new("/proc").join(it).exists());
        let age =
            file.metadata().and_then(|it| it.modified()).ok().and_then(|it| it.elapsed().ok());
        ended && age.is_some_and(|age| age > OLD)
    });
    dead.count()
}

/// What is taken of the device's memory, in MiB.
fn memory(driver: Driver, context: &Context) -> Option<f64> {
    let _current = context.make_current().ok()?;
    let info = driver.symbols().cuMemGetInfo_v2;
    let (mut free, mut total) = (0, 0);
    // SAFETY: places for both; a context is current.
    let code = unsafe { info(&mut free, &mut total) };
    (code == CUresult::CUDA_SUCCESS).then(|| (total - free) as f64 / f64::from(1 << 20))
}
