//! Objects that are dropped while the process and the driver shut down.

use crate::common;

use common::Gpu;
use common::child::{self, Child};
use cuda_events::EventFlags;
#[cfg(unix)]
use cuda_events::{Event, Stream};

/// An event, its stream and their context, dropped where the destructor runs.
#[cfg(unix)]
struct Held {
    _event: Event,
    _stream: Stream,
    _last: Dropped,
}

/// Says that what is above it was dropped.
#[cfg(unix)]
struct Dropped;

#[cfg(unix)]
impl Drop for Dropped {
    fn drop(&mut self) {
        child::say("dropped");
    }
}

#[cfg(unix)]
fn held(gpu: &Gpu) -> Held {
    let stream = gpu.stream();
    let event = stream.record_event(EventFlags::empty()).expect("an event");
    Held { _event: event, _stream: stream, _last: Dropped }
}

// On Windows an exit runs no destructor and no handler of the program, and with musl no destructor.
#[cfg(all(unix, not(target_env = "musl")))]
#[test]
fn a_thread_local_is_dropped_at_exit() {
    thread_local! {
        static HELD: std::cell::RefCell<Option<Held>> = const { std::cell::RefCell::new(None) };
    }
    const NAME: &str = "a_thread_local_is_dropped_at_exit";
    if child::role().is_some() {
        let gpu = Gpu::new();
        HELD.with_borrow_mut(|held_here| *held_here = Some(held(&gpu)));
        // The thread-locals of this thread are destroyed by exit, after or among the driver's own
        // exit handlers.
        std::mem::forget(gpu);
        std::process::exit(0);
    }
    let mut child = Child::start(NAME, "exits");
    assert_eq!(child.receive(), "dropped");
    child.finish();
}

// On Windows an exit runs no destructor and no handler of the program.
#[cfg(unix)]
#[test]
fn an_exit_handler_drops_after_the_driver_is_gone() {
    const NAME: &str = "an_exit_handler_drops_after_the_driver_is_gone";
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> i32;
    }
    static HELD: std::sync::Mutex<Option<Held>> = std::sync::Mutex::new(None);
    extern "C" fn drop_it() {
        let held = HELD.lock().expect("nobody panics with it").take();
        drop(held);
    }
    if child::role().is_some() {
        // Handlers run in the reverse order of their registration: this one, made before the driver
        // is loaded, runs after the driver's own, when every call answers CUDA_ERROR_DEINITIALIZED.
        // SAFETY: the handler is a function of this program and does not unwind.
        assert_eq!(unsafe { atexit(drop_it) }, 0);
        let gpu = Gpu::new();
        *HELD.lock().expect("nobody panics with it") = Some(held(&gpu));
        std::mem::forget(gpu);
        std::process::exit(0);
    }
    let mut child = Child::start(NAME, "exits");
    assert_eq!(child.receive(), "dropped");
    child.finish();
}

#[test]
fn threads_at_work_at_exit_see_an_error() {
    const NAME: &str = "threads_at_work_at_exit_see_an_error";
    if child::role().is_some() {
        let gpu: &Gpu = Box::leak(Box::new(Gpu::new()));
        let (ready, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let stream = gpu.stream();
            let event = stream.record_event(EventFlags::empty()).expect("an event");
            ready.send(()).expect("the test waits");
            loop {
                // Either answer is right, depending on how far the shutdown is; a crash is not.
                let _ = event.query();
            }
        });
        started.recv().expect("the thread started");
        std::process::exit(0);
    }
    for _ in 0..5 {
        Child::start(NAME, "exits").finish();
    }
}
