//! A limit for each test: one that hangs is named, and ends its process.
//!
//! The harness has no limit. It tells of a test that takes long, but only where it runs several at
//! a time, and then waits forever. Here a thread looks once a second at the tests that have shown
//! themselves: by taking a driver, a child, or a child's answer. What counts is the time since a
//! test did that last.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::io::Write;
use std::sync::{LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::child::role;

/// On a machine that does nothing else. No test needs a quarter of it there.
const LIMIT: Duration = Duration::from_secs(180);
/// Another limit, in seconds: for the test of this.
pub const LIMIT_VARIABLE: &str = "CUDA_EVENTS_TEST_LIMIT";

/// The tests that run, by thread, with their last sign of life.
static TESTS: LazyLock<Mutex<Tests>> = LazyLock::new(Mutex::default);

type Tests = HashMap<ThreadId, (String, Instant)>;

fn tests() -> MutexGuard<'static, Tests> {
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a test off the list when its thread ends: the harness runs each in a thread of its own.
struct Ends(ThreadId);

impl Drop for Ends {
    fn drop(&mut self) {
        tests().remove(&self.0);
    }
}

thread_local! {
    /// Whether this thread's test waits for one that has a limit.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// This thread's test has no limit while it waits for a child that runs a test, and so has one, or
/// for another test that waits for such a child.
pub fn without_limit<T>(wait: impl FnOnce() -> T) -> T {
    tests().remove(&thread::current().id());
    WAITS.set(true);
    let result = wait();
    WAITS.set(false);
    alive();
    result
}

/// This thread's test is alive.
pub fn alive() {
    if WAITS.get() {
        return;
    }
    thread_local! {
        static ENDS: OnceCell<Ends> = const { OnceCell::new() };
    }
    static WATCH: Once = Once::new();
    let (Some(name), thread) = (test(), thread::current().id()) else { return };
    // Not in a thread that is ending.
    if ENDS.try_with(|ends| _ = ends.get_or_init(|| Ends(thread))).is_ok() {
        tests().insert(thread, (name, Instant::now()));
        WATCH.call_once(|| _ = thread::Builder::new().name("watch".to_owned()).spawn(watch));
    }
}

/// The name of this thread's test. A thread without a name is none of the harness's.
pub fn test() -> Option<String> {
    match thread::current().name() {
        // One at a time, as in children, which run one.
        Some("main") => {
            let named = std::env::args().skip_while(|argument| argument != "--exact").nth(1);
            Some(named.unwrap_or_else(|| "in the main thread".to_owned()))
        }
        name => name.map(str::to_owned),
    }
}

/// How many times longer than on an idle machine something takes, at most: what wants to run, by
/// what can.
fn stretch() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load = load.and_then(|text| text.split(' ').next()?.parse::<f64>().ok()).unwrap_or(1.0);
    (load / thread::available_parallelism().map_or(1.0, |all| all.get() as f64)).max(1.0)
}

fn watch() {
    let limit =
        std::env::var(LIMIT_VARIABLE).ok().map(|text| text.parse().expect("a number of seconds"));
    let limit = limit.map_or(LIMIT, Duration::from_secs);
    // A child's parent waits for it, and has the more to tell when the child ends first.
    let limit = if role().is_some() { limit / 2 } else { limit };
    loop {
        thread::sleep(Duration::from_secs(1).min(limit));
        let stretch = stretch();
        let late = |since: &Instant| since.elapsed() > limit.mul_f64(stretch);
        if let Some((name, since)) = tests().values().find(|(_, since)| late(since)) {
            // Past the harness, which keeps what tests print to itself, and which ends here.
            let message = format!(
                "\nHUNG: test {name} has shown no sign of life for {:.0} s; the limit is {:.0} s, \
                 {stretch:.1} times as long on this busy machine",
                since.elapsed().as_secs_f64(),
                limit.as_secs_f64()
            );
            let _ = writeln!(std::io::stderr(), "{message}");
            std::process::abort();
        }
    }
}
