//! A system that starts no thread.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::Gpu;
use crate::child::is_emulated;
use crate::futures::wait_until;

#[repr(C)]
#[derive(Clone, Copy)]
struct Limit {
    now: u64,
    most: u64,
}

unsafe extern "C" {
    fn getrlimit(resource: i32, limit: *mut Limit) -> i32;
    fn setrlimit(resource: i32, limit: *const Limit) -> i32;
}

/// The addresses that a process may use.
const ADDRESSES: i32 = 9;

/// Whether [`without_new_threads`] does what it promises here. If not, this prints the reason.
pub fn starts_can_fail(gpu: &Gpu) -> bool {
    let reason = if gpu.soft().is_none() {
        "a driver may need memory where there is none"
    } else if is_emulated() {
        "an emulator does not limit the addresses"
    } else {
        return true;
    };
    super::say_not_run(reason);
    false
}

/// Whether all other threads of this process have started and sleep. One that is starting takes
/// room and gives most of it back, and has the name of its maker.
fn others_sleep() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).expect("this process's threads");
    let own = read("/proc/thread-self/stat");
    let name = |stat: &str| stat.split(['(', ')']).nth(1).map(str::to_owned);
    let mut others =
        std::fs::read_dir("/proc/self/task").expect("this process's threads").flatten();
    others.all(|task| {
        let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { return false };
        let own_number = stat.split(' ').next() == own.split(' ').next();
        own_number || (stat.contains(") S ") && name(&stat) != name(&own))
    })
}

/// Does `work` while the system starts no thread for this process, because there is no room for its
/// stack. The process must be the test's own.
#[track_caller]
pub fn without_new_threads<T>(work: impl FnOnce() -> T) -> T {
    wait_until("the other threads sleep", others_sleep);
    let mut before = Limit { now: 0, most: 0 };
    // SAFETY: a place for the limit.
    assert_eq!(unsafe { getrlimit(ADDRESSES, &raw mut before) }, 0);
    // There is room for small things, and for half a stack.
    let pages = std::fs::read_to_string("/proc/self/statm").expect("this process's memory");
    let pages = pages.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    let limit = Limit { now: pages.expect("a number") * 4096 + (1 << 20), ..before };
    // SAFETY: a limit of this layout.
    assert_eq!(unsafe { setrlimit(ADDRESSES, &raw const limit) }, 0);
    // Stacks of threads that have ended may still be there, and serve these.
    let mut spare: Vec<(Sender<()>, JoinHandle<bool>)> = Vec::with_capacity(64);
    loop {
        let (end, ends) = channel::<()>();
        let started = std::thread::Builder::new().spawn(move || ends.recv().is_err());
        let Ok(thread) = started else { break };
        spare.push((end, thread));
    }
    let result = work();
    // SAFETY: as above.
    assert_eq!(unsafe { setrlimit(ADDRESSES, &raw const before) }, 0);
    // A thread that ends later would leave its stack to one that must not start in the next call.
    for (end, thread) in spare {
        drop(end);
        thread.join().expect("no panic");
    }
    result
}
