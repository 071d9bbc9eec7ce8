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

/// The driver may call it with a lock, for which another thread waits with the watch's.
#[test]
fn a_host_function_does_not_wait_for_a_call_that_asks_the_driver() {
    let _turn = TURN.lock();
    start(&|_| core::ptr::null_mut(), &Settings::default());
    let call = Call { name: "cuLaunchHostFunc", per_thread: false };
    let submitted = begin(&call, |watch| {
        let stream = watch.stream(&call, 0x100);
        watch.feed.function(stream, 7);
        watch.feed.await_stream(stream)
    });
    let work = submitted.expect("it is seen");
    let asks = WATCH.lock().expect("nobody panics with it");
    let (sender, receiver) = mpsc::channel();
    let function = std::thread::spawn(move || {
        hosts::tell(hosts::Told::Begins(7));
        hosts::tell(hosts::Told::Ends(7));
        let _ = sender.send(());
    });
    let came = receiver.recv_timeout(Duration::from_secs(5)).is_ok();
    assert!(came && hosts::have_told(), "the function waits: {came}");
    drop(asks);
    function.join().expect("it has ended");
    let after = enter(|watch| {
        let before = watch.feed.host_is_after(&work);
        watch.catch_up();
        (before, watch.feed.host_is_after(&work), watch.feed.caller().by)
    });
    let (before, after, by) = after.expect("it is seen");
    assert!(!before && after && !hosts::have_told(), "it counts with the next call");
    let own = cuda_order_check::By::Thread(ThreadId(thread()));
    assert!(by != own, "the function has run on a thread of its own");
}
