//! The thread's work for the shared timelines of this process.
//!
//! A failed context writes nothing any more, and its process may have no reason to ask: a server
//! sleeps between two requests. Other processes cannot ask. So while a signal of a shared timeline
//! is pending, the thread asks, and poisons what will not be signalled.

use std::sync::{Arc, Mutex};

use super::followed::Called;
use super::foreign::Follow;
use super::rounds;
use super::slot::Slot;
use crate::error::Result;
use crate::handle::EventHandle;
use crate::sync::lock;
use crate::time::Moment;
use cuda_events::capture::{CaptureMode, ThreadCaptureMode};
use cuda_events::foundation::deferring_observers;
use cuda_events::{Driver, Event};

/// The timelines of one file that streams of this process signal.
pub(super) struct Watch {
    slots: Mutex<Vec<&'static Slot>>,
    driver: Driver,
    /// An event of the file's context, which is never recorded, as long as there is the file.
    health: Mutex<Option<EventHandle>>,
    /// Whether the thread has it.
    called: Called,
}

impl Watch {
    /// The event must be kept until [`end`](Self::end).
    pub(super) fn new(health: &Event) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            driver: health.context().driver(),
            health: Mutex::new(Some(EventHandle::of(health))),
            called: Called::new(),
        })
    }

    pub(super) fn add(&self, slot: &'static Slot) {
        lock(&self.slots).push(slot);
    }

    /// A signal was submitted, and its timeline's state unlocked. [`Called`] explains why the
    /// thread misses none.
    #[inline(always)]
    pub(super) fn signalled(self: &Arc<Self>) {
        if self.called.is_off() {
            self.call();
        }
    }

    #[cold]
    #[inline(never)]
    fn call(self: &Arc<Self>) {
        let first = self.called.begin();
        // There is a thread: it was started when the timeline was made.
        let _ = rounds::follow(Arc::clone(self) as Arc<dyn Follow>, first);
    }

    /// The file ends: its context is not queried any more.
    pub(super) fn end(&self) {
        *lock(&self.health) = None;
    }

    /// Whether there is nothing to ask for.
    fn is_over(&self) -> bool {
        lock(&self.health).is_none() || !lock(&self.slots).iter().any(|slot| slot.is_pending())
    }

    /// Asks the driver once whether the context works.
    #[allow(unsafe_code)]
    fn ask(&self) -> Result<()> {
        let health = deferring_observers(lock(&self.health));
        let Some(event) = &**health else { return Ok(()) };
        // Otherwise the query would invalidate another thread's capture.
        let relaxed = ThreadCaptureMode::exchange(self.driver, CaptureMode::Relaxed)?;
        // SAFETY: the event is alive: `end` takes the handle out under the lock that is held here
        // before the event is dropped.
        let asked = unsafe { event.query() }.map(drop);
        drop(relaxed);
        Ok(asked?)
    }
}

impl Follow for Watch {
    fn is_relayed(&self) -> bool {
        false
    }

    /// `since` is when a signal was first seen to be pending: most are over by the next question,
    /// and take none.
    fn follow(&self, ask: bool, now: Moment, since: &mut Option<Moment>) -> bool {
        if !ask {
            return true;
        }
        if self.called.is_over(|| self.is_over()) {
            return false;
        }
        if since.replace(now).is_some()
            && let Err(error) = self.ask()
        {
            let pending = |slot: &&&Slot| slot.is_pending();
            lock(&self.slots).iter().filter(pending).for_each(|slot| slot.condemn(&error));
        }
        true
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::time::now;
    use crate::{Timeline, TimelineFile};
    use cuda_events::sys::{CUresult, Function};
    use cuda_events::{Context, Device, Progress, Stream, StreamOptions};

    /// The driver is asked while a signal is pending, and not at the first look.
    #[test]
    fn it_asks_only_while_pending() {
        // Not an observer: a process has places for a few only.
        let soft = cuda_soft_driver::SoftDriver::builder().log(1000).build();
        let driver = soft.driver();
        let asked = || {
            let log = soft.log();
            log.iter().filter(|call| call.function == Function::cuEventQuery.name()).count()
        };
        let context = Device::new(driver, 0).and_then(Context::primary).unwrap();
        let file = TimelineFile::writable(&context).unwrap();
        let stream = Stream::new(&context, StreamOptions::new()).unwrap();
        let timeline = Timeline::shared(stream, &file).unwrap();
        // One that is idle is no reason to stop.
        let idle = Stream::new(&context, StreamOptions::new()).unwrap();
        let idle = Timeline::shared(idle, &file).unwrap();
        let watch = Arc::clone(file.shared().watch());
        let hold = || {
            let (release, released) = std::sync::mpsc::channel::<()>();
            let wait = move || {
                let _ = released.recv();
            };
            timeline.stream().launch_host_function(wait).unwrap();
            release
        };
        let captured = Stream::new(&context, StreamOptions::new()).unwrap();
        // The time of the crate's own thread does not go on here, so that it asks nobody. A
        // capture is under way, which goes on.
        let look = |ask: bool, since: &mut Option<Moment>| {
            let before = asked();
            let mode = CaptureMode::Global;
            let capture = cuda_events_test_support::begin_capture(&captured, mode);
            let looked = watch.follow(ask, now(), since);
            if let Ok(capture) = capture {
                capture.end().unwrap();
            }
            (looked, asked() - before)
        };
        let mut since = None;
        assert_eq!(look(true, &mut since), (false, 0), "no signal");
        let release = hold();
        let first = timeline.signal().unwrap();
        let mut since = None;
        let looks = [true, true, false, true].map(|ask| look(ask, &mut since));
        assert_eq!(looks, [(true, 0), (true, 1), (true, 0), (true, 1)]);
        drop(release);
        timeline.stream().synchronize().unwrap();
        assert!(first.is_done());
        assert_eq!(look(true, &mut since), (false, 0), "reached");
        let release = hold();
        let lost = timeline.signal().unwrap();
        let failed = CUresult::CUDA_ERROR_LAUNCH_FAILED;
        soft.fail_contexts(cuda_soft_driver::abi::CUresult(failed.0));
        let mut since = None;
        assert_eq!(look(true, &mut since), (true, 0));
        assert_eq!(look(true, &mut since), (true, 1));
        let code = lost.look().map_err(|error| error.code());
        assert_eq!(code, Err(Some(failed)));
        assert_eq!(first.look(), Ok(Progress::Done));
        assert_eq!(look(true, &mut since), (false, 0), "it is poisoned");
        drop(release);
        // The handle is gone before the event is.
        drop((timeline, idle, file));
        assert!(watch.ask().is_ok() && watch.is_over());
    }
}
