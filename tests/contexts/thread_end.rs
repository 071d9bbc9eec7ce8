//! Events, guards and scopes in thread-locals: a thread drops them while it ends.

use crate::common;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use common::{Gpu, current};
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::ext::{StreamScope, current_stream};
use cuda_events::{Context, CurrentContext, Driver, Event, EventFlags, Progress, Result, Stream};

/// What a thread-local holds. Fields are dropped from the top, guards in the reverse of the order
/// in which they were made.
struct Held {
    last_words: LastWords,
    _scope: StreamScope,
    _mode: ThreadCaptureMode,
    _current: CurrentContext<'static>,
}

/// Uses its event and stream while the thread ends, and says how that went.
struct LastWords {
    event: Event,
    stream: Arc<Stream>,
    driver: Driver,
    sender: Sender<(Result<()>, bool)>,
}

impl Drop for LastWords {
    fn drop(&mut self) {
        let used = self.event.record(&self.stream).and_then(|()| self.event.synchronize());
        let is_current = !current(self.driver).is_null();
        self.sender.send((used, is_current)).expect("the test waits");
    }
}

thread_local! {
    static EARLY: RefCell<Option<Held>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<Held>> = const { RefCell::new(None) };
}

impl Held {
    fn new(
        context: &'static Context,
        stream: &Arc<Stream>,
        event: Event,
        sender: Sender<(Result<()>, bool)>,
    ) -> Self {
        let driver = context.driver();
        let current = context.make_current().expect("a guard");
        let mode = ThreadCaptureMode::exchange(driver, CaptureMode::Relaxed).expect("a guard");
        let scope = StreamScope::enter(Arc::clone(stream));
        assert_eq!(current_stream(context).as_raw(), stream.as_raw());
        let last_words = LastWords { event, stream: Arc::clone(stream), driver, sender };
        Self { last_words, _scope: scope, _mode: mode, _current: current }
    }
}

/// Whether the thread's own first driver call comes before what it holds, or after: the driver's
/// thread-locals are older than the program's, or younger, and are dropped on the other side of
/// them.
#[test]
fn thread_locals_are_dropped_with_their_thread() {
    let gpu = Gpu::new();
    let stream = Arc::new(gpu.stream());
    // SAFETY: `gpu`, and with it the context, lives until the end of this function. What has
    // this reference is a thread that is joined before that, and joining a thread waits until its
    // thread-locals are dropped.
    let context: &'static Context = unsafe { &*std::ptr::from_ref(&gpu.context) };
    for call_first in [true, false] {
        let (sender, receiver) = channel();
        let make = || Event::new(&gpu.context, EventFlags::empty()).expect("an event");
        let (early, late) = (make(), make());
        let stream = Arc::clone(&stream);
        let thread = std::thread::spawn(move || {
            if call_first {
                assert!(current(context.driver()).is_null(), "a thread begins without a context");
            }
            // The two are dropped one after the other, whichever order the platform has.
            EARLY.with(|held| assert!(held.borrow().is_none()));
            LATE.with(|held| {
                *held.borrow_mut() = Some(Held::new(context, &stream, late, sender.clone()))
            });
            EARLY.with(|held| {
                let early = Held::new(context, &stream, early, sender);
                assert_eq!(early.last_words.event.query(), Ok(Progress::Done));
                *held.borrow_mut() = Some(early);
            });
        });
        thread.join().expect("the thread ends");
        let received: Vec<_> = receiver.into_iter().collect();
        // On Windows a driver of a file of its own has forgotten the thread by then.
        let known = cfg!(not(windows)) || gpu.soft().is_some();
        assert_eq!(received, [(Ok(()), known), (Ok(()), known)]);
    }
    // Without thread-locals of the platform's own the record of scopes may be gone before them.
    if cfg!(not(all(windows, target_env = "gnu"))) {
        assert_eq!(Arc::strong_count(&stream), 1, "the scopes let go of their stream");
    }
    // This thread's own state is as it was, and everything works.
    let event = Event::new(&gpu.context, EventFlags::empty()).expect("an event");
    event.record(&stream).expect("a record");
    event.synchronize().expect("it is done");
    if let Some(soft) = gpu.soft() {
        let live = soft.live();
        assert_eq!((live.events, live.streams), (1, 1), "{}", soft.leak_report());
    }
}
