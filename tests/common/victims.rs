//! Processes that are killed at each of their calls, exporters and importers of timelines, and what
//! the one that survives sees.
//!
//! A test starts a victim, which goes through all that its side does and is killed at its first
//! driver call; then one that is killed at a later one; and so on, until one comes to its end. It is
//! killed by the software driver, by the fault `kill` that the environment names. On a real driver
//! an observer does it, after the call.

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_events::{
    Context, Device, Driver, Event, EventFlags, LoadOptions, Progress, Result, Stream,
    StreamOptions,
};

use crate::child::{Child, end_after, read_line, role, say, starts_are_made_up};
use crate::handover::Handover;
use crate::timelines::{WAIT, WRITE, idle};
use crate::{Gpu, TestDriver, cases, load, needs, soft_settings};

/// Which side of what the victim is, and at which of its calls it is killed.
const PART: &str = "CUDA_EVENTS_TEST_VICTIM";

/// The thread that is killed, and with it the process.
const VICTIM: &str = "victim";

/// In the process that is killed: what its side (`exporter` or `importer`) does with this kind of
/// object. The role says how files come to it.
pub fn be_a_victim<E: std::fmt::Debug + Send>(
    work: impl FnOnce(&str, &str, Driver, &Handover) -> Result<(), E> + Send,
) {
    let role = role().expect("this is no test of its own");
    let part = std::env::var(PART).expect("a victim has a part");
    let words: Vec<&str> = part.split(' ').collect();
    let [side, kind, nth] = words[..] else { panic!("{part:?} is no part") };
    let nth = nth.parse().expect("a number");
    let handover = Handover::of_role(&role);
    end_after(150);
    let (driver, _soft) = load(&LoadOptions::new());
    let driver =
        if TestDriver::chosen() == TestDriver::Native { mortal(driver, nth) } else { driver };
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name(VICTIM.to_owned());
        let work = || work(side, kind, driver, &handover);
        let thread = named.spawn_scoped(scope, work).expect("a thread");
        thread.join().expect("no panic").expect("no call fails");
    });
    say("end");
}

/// The driver with an observer that kills the process after that call of the victim's thread.
pub fn mortal(driver: Driver, nth: u64) -> Driver {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let observed = driver.observe(move |_| {
        let is_victim = std::thread::current().name() == Some(VICTIM);
        if is_victim && CALLS.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            kill_this_process();
        }
    });
    observed.expect("the first observer of this process")
}

pub fn kill_this_process() {
    unsafe extern "C" {
        fn kill(process: i32, signal: i32) -> i32;
    }
    // SAFETY: it is this process.
    unsafe { kill(std::process::id() as i32, 9) };
}

/// In the victim: says where it is, and hears what comes next.
pub fn report(line: &str) -> String {
    say(line);
    read_line()
}

pub fn stream_of(driver: Driver) -> Result<(Context, Stream)> {
    let context = Context::primary(Device::new(driver, 0)?)?;
    let stream = Stream::new(&context, StreamOptions::new())?;
    Ok((context, stream))
}

/// In a test: the process that is killed.
pub struct Victim {
    pub child: Child,
    pub handover: Handover,
}

impl Victim {
    #[track_caller]
    pub fn start(side: &str, kind: &str, nth: u64) -> Self {
        let (child, handover) = Handover::start("victim", |command| {
            command.env(PART, format!("{side} {kind} {nth}"));
            if TestDriver::chosen() != TestDriver::Native {
                let fault = format!("fault=*:thread={VICTIM}:nth={nth}:kill");
                command.env("CUDA_SOFT_DRIVER", soft_settings(&fault));
            }
        });
        Self { child, handover }
    }

    /// What it says next, as a word and the rest; none when it was killed.
    #[track_caller]
    pub fn next_line(&mut self) -> Option<(String, String)> {
        match self.child.receive_or_end() {
            Ok(line) => {
                let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
                Some((word.to_owned(), rest.to_owned()))
            }
            Err(status) => {
                assert_eq!(status.signal(), Some(9), "it failed: {}", self.child.errors());
                None
            }
        }
    }
}

/// The survivor can do all that it could before.
pub fn works(gpu: &Gpu) {
    let (stream, other) = (gpu.stream(), gpu.stream());
    let event = Event::new(&gpu.context, EventFlags::INTERPROCESS).expect("an event");
    event.record(&stream).expect("a record");
    other.wait_event(&event).expect("a wait");
    idle(&other);
    assert_eq!(event.query(), Ok(Progress::Done));
}

/// Kills a victim at each of its calls, or at some of them, and gives how many those are. `survive`
/// returns whether the victim came to its end.
#[track_caller]
pub fn at_every_call(
    side: &str,
    kind: &str,
    survive: fn(&Gpu, &mut Victim, &str) -> bool,
) -> Option<u64> {
    for nth in (1..).step_by(cases(4, 1)) {
        let gpu = Gpu::new();
        if !(needs(gpu.driver, WRITE) && needs(gpu.driver, WAIT)) {
            return None;
        }
        if kind == "handle" && starts_are_made_up() {
            return None;
        }
        let mut victim = Victim::start(side, kind, nth);
        let ended = survive(&gpu, &mut victim, kind);
        works(&gpu);
        if ended {
            victim.child.finish();
            return Some(nth - 1);
        }
    }
    unreachable!("there is an end of numbers")
}

/// How many calls were fatal, which a scenario that shrinks would not notice.
#[track_caller]
pub fn at_least(least: u64, side: &str, kind: &str, calls: Option<u64>) {
    let Some(calls) = calls else { return };
    println!("{calls:4} calls of an {side} of {kind}, at each of which it was killed");
    assert!(calls >= least, "{calls} calls of an {side} of {kind}, and {least} are expected");
}
