use std::sync::mpsc;

use super::threads::{ENDED, HAVE_ENDED};
use super::*;

/// The tests that begin to watch take turns.
pub(super) static TURN: Mutex<()> = Mutex::new(());

/// A signal handler may make the call, on the thread that is about to note its end.
#[test]
fn a_call_does_not_wait_for_a_thread_that_ends() {
    let _turn = TURN.lock();
    start(&|_| core::ptr::null_mut(), &Settings::default());
    let call = || _ = begin(&Call { name: "cuInit", per_thread: false }, |_| ());
    let ends = ENDED.lock().expect("nobody panics with it");
    HAVE_ENDED.store(true, Ordering::Release);
    let (sender, receiver) = mpsc::channel();
    let other = std::thread::spawn(move || {
        call();
        let _ = sender.send(());
    });
    let came = receiver.recv_timeout(Duration::from_secs(5)).is_ok();
    assert!(came && HAVE_ENDED.load(Ordering::Acquire), "the call waits: {came}");
    drop(ends);
    other.join().expect("it has ended, and noted that");
    call();
    assert!(!HAVE_ENDED.load(Ordering::Acquire), "the end is noted by the next call");
}
