//! Sixteen threads that use all of the crate at random, with processes beside them that are killed.
//!
//! It runs in generations of some seconds. On the software driver each has a driver of its own,
//! and some of them end with a failed context, or have calls that fail at random. Whatever the data
//! can show is looked at: what streams wrote in order, what a wait was for, what a point says. At
//! the end a line is fitted to each count of what the process holds.

mod ahead;
mod children;
mod cost;
mod worker;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, RwLock};
use std::time::{Duration, Instant};

use cuda_events::ext::EventPool;
use cuda_events::sys::CUresult;
use cuda_events::{Context, Device, Driver, Event, EventFlags};
use cuda_soft_driver::{Fault, Scheduler, SoftDriver};
use lexopt::Arg::Long;
use lexopt::{Parser, ValueExt};

use crate::cost::{Clocks, Samples};

const USAGE: &str = "\
usage: churn [--minutes N | --seconds N] [--driver soft|native] [--seed N] [--longest SECONDS]
             [--out FILE]
       churn --seeds N [--seed N] [--driver soft|native] [--longest SECONDS]

Sixteen threads use all of the crate at random. The exit code is 1 when something was wrong. The
seed is printed, and chooses what the threads do; which of them is first is the machine's choice.
--longest is the bound for a call, 10 s unless told. FILE gets the samples and the result as lines
of JSON.

With --seeds: that many random programs beside streams that wait ahead, from --seed on. The exit
code is 1 when one of them does not come to its end within --longest.
";

/// How many threads there are.
const THREADS: usize = 16;
/// Of those, which look after a process beside them.
const WITH_CHILDREN: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestDriver {
    Soft,
    Native,
}

impl TestDriver {
    pub fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Native => "native",
        }
    }
}

/// What the threads of a generation have in common.
pub struct Generation {
    pub context: Context,
    pub pool: EventPool,
    /// Events that any of them may use.
    pub table: Mutex<Vec<Arc<Event>>>,
    /// Held by who captures, and alone by who synchronizes the context, which a capture forbids.
    pub captures: RwLock<()>,
    pub seed: u64,
    pub chosen: TestDriver,
    /// Whether the threads are to end.
    pub stop: AtomicBool,
    /// Whether the context fails or is about to.
    pub failed: AtomicBool,
    /// Whether calls fail at random, with `CUDA_ERROR_OUT_OF_MEMORY`.
    pub faulty: bool,
}

impl Generation {
    pub fn ends(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.failed.load(Ordering::Acquire)
    }

    /// Whether an error with this code may be: nothing else is accepted.
    pub fn expects(&self, code: Option<CUresult>) -> bool {
        self.failed.load(Ordering::Acquire)
            || (self.faulty && code == Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY))
    }
}

/// What is counted over the whole run.
#[derive(Default)]
pub struct Totals {
    pub operations: AtomicU64,
    pub checked: AtomicU64,
    pub killed: AtomicU64,
    pub refused: AtomicU64,
    /// Files of timelines that this process has made or imported. Each keeps a page, and a mapping
    /// of which the system gives a process some ten thousands, until the process ends: points of it
    /// may be looked at forever. What they take is taken off the resident memory.
    pub kept: AtomicU64,
}

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, many: u64) -> bool {
        self.number().is_multiple_of(many)
    }
}

struct Arguments {
    length: Duration,
    chosen: TestDriver,
    seed: u64,
    seeds: Option<u64>,
    longest: Duration,
    out: Option<String>,
}

/// The value of an option, in units of so many seconds.
fn duration(given: &mut Parser, unit: f64) -> Result<Duration, lexopt::Error> {
    given.value()?.parse_with(|text| {
        let number = text.parse::<f64>().map_err(|error| error.to_string())?;
        Duration::try_from_secs_f64(number * unit).map_err(|error| error.to_string())
    })
}

fn arguments() -> Result<Arguments, lexopt::Error> {
    let fresh = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
    let mut read = Arguments {
        length: Duration::from_secs(60),
        chosen: TestDriver::Soft,
        seed: fresh,
        seeds: None,
        longest: Duration::from_secs(10),
        out: None,
    };
    let mut given = Parser::from_env();
    while let Some(option) = given.next()? {
        match option {
            Long("minutes") => read.length = duration(&mut given, 60.0)?,
            Long("seconds") => read.length = duration(&mut given, 1.0)?,
            Long("longest") => read.longest = duration(&mut given, 1.0)?,
            Long("seed") => read.seed = given.value()?.parse()?,
            Long("seeds") => read.seeds = Some(given.value()?.parse()?),
            Long("driver") => {
                read.chosen = given.value()?.parse_with(|name| match name {
                    "soft" => Ok(TestDriver::Soft),
                    "native" => Ok(TestDriver::Native),
                    _ => Err("use soft or native"),
                })?;
            }
            Long("out") => read.out = Some(given.value()?.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(read)
}

fn main() -> ExitCode {
    // A thread that panics ends all: the others would wait for it.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        std::process::exit(1);
    }));
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given.first().is_some_and(|first| first == "child") {
        children::main(&given[1..]);
        return ExitCode::SUCCESS;
    }
    if given.first().is_some_and(|first| first == "ahead") {
        ahead::child(&given[1..]);
        return ExitCode::SUCCESS;
    }
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprint!("churn: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let Arguments { chosen, seed, longest, .. } = arguments;
    match arguments.seeds {
        Some(seeds) => ahead::run(chosen, seed, seeds, longest),
        None => run(&arguments),
    }
}

/// The driver of a generation.
fn driver(chosen: TestDriver, random: &mut Random) -> (Driver, Option<SoftDriver>, bool) {
    match chosen {
        TestDriver::Native => {
            (Driver::load().expect("this machine has an NVIDIA driver"), None, false)
        }
        TestDriver::Soft => {
            let mut builder = SoftDriver::builder().devices(2);
            if random.one_in(3) {
                builder = builder.scheduler(Scheduler::Seeded(random.number()));
            }
            let soft = builder.build();
            let faulty = random.one_in(3);
            if faulty {
                for call in
                    ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuStreamCreate*"]
                {
                    let seed = random.number();
                    let fault = format!("{call}:chance=0.003/{seed}:code=2");
                    soft.inject(Fault::from_text(&fault).expect("a fault"));
                }
            }
            (soft.driver(), Some(soft), faulty)
        }
    }
}

fn run(arguments: &Arguments) -> ExitCode {
    let Arguments { length, chosen, seed, longest, .. } = *arguments;
    // Now, and not after an hour.
    if let Some(Err(error)) = arguments.out.as_ref().map(std::fs::File::create) {
        eprintln!("churn: --out {}: {error}", arguments.out.as_deref().unwrap_or_default());
        return ExitCode::from(2);
    }
    println!("churn: {} for {} s, seed {seed}", chosen.name(), length.as_secs());
    let started = Instant::now();
    let (clocks, totals) = (Clocks::new(THREADS + 1), Totals::default());
    let mut samples = Samples::default();
    let mut random = Random::new(seed);
    let current: Mutex<Option<Arc<Generation>>> = Mutex::new(None);
    let (begin, end) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let (mut generations, mut failures) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (begin, end, current, clocks, totals) = (&begin, &end, &current, &clocks, &totals);
            let work = move || {
                loop {
                    begin.wait();
                    let Some(generation) = current.lock().expect("no panic").clone() else {
                        return;
                    };
                    let clock = clocks.of(number);
                    if number < WITH_CHILDREN {
                        children::look_after(&generation, number, clock, totals);
                    } else {
                        worker::work(&generation, number, clock, totals);
                    }
                    drop(generation);
                    end.wait();
                }
            };
            let named = std::thread::Builder::new().name(format!("churn-{number}"));
            named.spawn_scoped(scope, work).expect("a thread");
        }
        while started.elapsed() < length {
            generations += 1;
            let (driver, soft, faulty) = driver(chosen, &mut random);
            let context = Device::new(driver, 0).and_then(Context::primary).expect("a context");
            let pool = EventPool::new(&context, EventFlags::empty()).expect("a pool");
            let generation = Arc::new(Generation {
                context,
                pool,
                table: Mutex::default(),
                captures: RwLock::new(()),
                seed: random.number(),
                chosen,
                stop: AtomicBool::new(false),
                failed: AtomicBool::new(false),
                faulty,
            });
            *current.lock().expect("no panic") = Some(Arc::clone(&generation));
            begin.wait();
            let fails = soft.is_some() && random.one_in(4);
            let lasts = Duration::from_millis(2000 + random.number() % 4000);
            let until = started.elapsed() + lasts;
            while started.elapsed() < until.min(length) {
                std::thread::sleep(Duration::from_millis(200));
                let kept = totals.kept.load(Ordering::Relaxed);
                samples.take(started.elapsed(), driver, &generation.context, kept);
                clocks.hung(Duration::from_secs(120));
            }
            if let Some(soft) = soft.as_ref().filter(|_| fails) {
                failures += 1;
                generation.failed.store(true, Ordering::Release);
                soft.fail_contexts(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
            }
            generation.stop.store(true, Ordering::Release);
            let watched = AtomicBool::new(true);
            std::thread::scope(|watch| {
                let (clocks, watched) = (&clocks, &watched);
                watch.spawn(move || {
                    while watched.load(Ordering::Acquire) {
                        std::thread::sleep(Duration::from_millis(20));
                        clocks.hung(Duration::from_secs(120));
                    }
                });
                end.wait();
                watched.store(false, Ordering::Release);
            });
            *current.lock().expect("no panic") = None;
            let generation = Arc::into_inner(generation).expect("the threads have dropped theirs");
            let Generation { context, pool, table, .. } = generation;
            let clock = clocks.of(THREADS);
            clock.time("the last drops", || drop((table, pool)));
            clock.time("the last drop of the context", || drop(context));
            if let Some(soft) = soft {
                if !fails {
                    settles(&soft);
                }
                clock.time("the end of the driver", || drop(soft));
            }
        }
        begin.wait();
    });
    println!(
        "{generations} generations, {failures} of them failed; {} operations, {} looks at data, \
         {} processes killed, {} refusals that were expected, {} files of timelines",
        totals.operations.load(Ordering::Relaxed),
        totals.checked.load(Ordering::Relaxed),
        totals.killed.load(Ordering::Relaxed),
        totals.refused.load(Ordering::Relaxed),
        totals.kept.load(Ordering::Relaxed),
    );
    let (name, took) = clocks.longest();
    println!(
        "the longest call: {name}, {:.3} s; the bound is {} s",
        took.as_secs_f64(),
        longest.as_secs_f64()
    );
    let mut good = took <= longest;
    let fits = samples.fits(started.elapsed());
    for fit in &fits {
        println!("{fit}");
        good &= fit.is_flat();
    }
    if let Some(out) = &arguments.out {
        let mut text = samples.json();
        text.push_str(&format!(
            "{{\"kind\":\"churn\",\"driver\":\"{}\",\"seed\":{seed},\"seconds\":{:.0},\
             \"generations\":{generations},\"failed_generations\":{failures},\"operations\":{},\
             \"looks\":{},\"killed\":{},\"refusals\":{},\"files\":{},\"longest_call\":\"{name}\",\
             \"longest_ms\":{:.3},\"bound_ms\":{:.0},\"good\":{good}}}\n",
            chosen.name(),
            started.elapsed().as_secs_f64(),
            totals.operations.load(Ordering::Relaxed),
            totals.checked.load(Ordering::Relaxed),
            totals.killed.load(Ordering::Relaxed),
            totals.refused.load(Ordering::Relaxed),
            totals.kept.load(Ordering::Relaxed),
            took.as_secs_f64() * 1e3,
            longest.as_secs_f64() * 1e3,
        ));
        for fit in &fits {
            text.push_str(&fit.json());
        }
        std::fs::write(out, text).expect("the file can be written");
    }
    println!("{}", if good { "churn: all is well" } else { "churn: FAILED" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Nothing of the generation is left. What the crate's thread or the driver's have is given back by
/// and by.
fn settles(soft: &SoftDriver) {
    let until = Instant::now() + Duration::from_secs(60);
    while soft.live() != cuda_soft_driver::Live::default() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    soft.assert_no_leaks();
}
