//! This process's state of a line of another process.

use std::sync::{Arc, Weak};

use crate::error::{Error, Result};
use crate::sync::{AtomicBool, Mutex, Ordering, lock};
use crate::time::Moment;
use cuda_events::{Progress, StreamRef};

/// This process's state of a line of another process.
pub(super) struct Foreign {
    /// Whether the exporter has ended.
    gone: AtomicBool,
    /// How the exporter is asked for.
    links: Mutex<Vec<Weak<dyn Link>>>,
}

/// A way to the exporter of a line: an import.
pub(super) trait Link: Follow + core::panic::RefUnwindSafe {
    /// An error if the exporter has ended.
    fn ask(&self) -> Result<()>;

    /// Whether a share exists of the context that it was imported in.
    fn is_held(&self) -> bool;

    /// Has the stream wait. The thread follows the exporter until the wait is over.
    fn submit_wait(self: Arc<Self>, stream: &StreamRef, value: u64) -> Result<()>;
}

/// Something that the thread follows: while streams wait for another process, or while others wait
/// for signals of this one.
pub(super) trait Follow: Send + Sync {
    /// Whether the thread must look as often as for a future, and not only for the exporter's end.
    fn is_relayed(&self) -> bool;

    /// One round of the thread; returns whether to continue. `gone` is the time at which the
    /// exporter was first seen to have ended, or another time that the thread must remember.
    fn follow(&self, ask: bool, now: Moment, gone: &mut Option<Moment>) -> bool;
}

impl Foreign {
    pub(super) fn new() -> Self {
        Self { gone: AtomicBool::new(false), links: Mutex::default() }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Interprets a look at the line, if the value was not reached. `again` looks once more.
    #[cold]
    pub(super) fn judge(
        &self,
        seen: Result<Progress>,
        again: impl FnOnce() -> Result<Progress>,
    ) -> Result<Progress> {
        let seen = match seen {
            Ok(Progress::Pending) if self.is_gone() => {
                // Another process that can write the file may have erased the poison, for which
                // streams wait.
                if let Ok(link) = self.link() {
                    let _ = link.ask();
                }
                // The exporter may have reached it after that look, or have dropped the timeline,
                // and ended then.
                match again() {
                    Ok(Progress::Pending) => Err(Error::ExporterGone),
                    seen => seen,
                }
            }
            seen => seen,
        };
        match seen {
            // The code of another process's driver does not apply to this one's.
            Err(error) if error.code().is_some() => Err(Error::Poisoned),
            seen => seen,
        }
    }

    /// How the exporter is asked for, unless all imports were dropped. One that the thread still
    /// follows may be there after its context; streams can wait by the others alone.
    pub(super) fn link(&self) -> Result<Arc<dyn Link>> {
        let links: Vec<_> = lock(&self.links).iter().filter_map(Weak::upgrade).collect();
        // With nothing locked: this may be the end of those that are not chosen.
        let held = links.iter().find(|link| link.is_held());
        held.or(links.first()).cloned().ok_or(Error::ContextDropped)
    }

    /// Notes one more way to ask.
    pub(super) fn link_by(&self, link: &Arc<dyn Link>) {
        let mut links = lock(&self.links);
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(link));
    }

    /// Notes that the exporter has ended.
    pub(super) fn note_end(&self) {
        self.gone.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    use crate::timeline::line::Line;
    use crate::timeline::slot::{Slot, Whose};
    use crate::timeline::wait::{ASK, Rest, wait};

    /// An exporter that has dropped the timeline and ended, just before it is asked for.
    struct Leaves {
        line: &'static Line,
        reaches: bool,
    }

    impl Follow for Leaves {
        fn is_relayed(&self) -> bool {
            false
        }

        fn follow(&self, _ask: bool, _now: Moment, _gone: &mut Option<Moment>) -> bool {
            false
        }
    }

    impl Link for Leaves {
        fn ask(&self) -> Result<()> {
            if self.reaches {
                self.line.raise(1);
            }
            self.line.end();
            Err(Error::ExporterGone)
        }

        fn is_held(&self) -> bool {
            true
        }

        fn submit_wait(self: Arc<Self>, _stream: &StreamRef, _value: u64) -> Result<()> {
            Ok(())
        }
    }

    fn pending(reaches: bool) -> (&'static Slot, Arc<dyn Link>) {
        // As the library does, so that Miri does not take them for leaked.
        static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
        let line: &Line = Box::leak(Box::new(Line::default()));
        let slot: &Slot = Box::leak(Box::new(Slot::new(line, Whose::Foreign(Foreign::new()))));
        lock(&SLOTS).push(slot);
        let link: Arc<dyn Link> = Arc::new(Leaves { line, reaches });
        slot.foreign().unwrap().link_by(&link);
        (slot, link)
    }

    /// What an exporter did before it ended counts for those who ask when it has ended.
    #[test]
    fn a_maker_leaves_between_a_look_and_the_question() {
        let waited = |reaches| {
            let (slot, _link) = pending(reaches);
            // Short waits ask, too, but not the first one.
            assert_eq!(wait(slot, 1, Duration::ZERO, Rest::Spin), Ok(Progress::Pending));
            crate::time::sleep(ASK);
            wait(slot, 1, Duration::ZERO, Rest::Spin)
        };
        assert_eq!((waited(true), waited(false)), (Ok(Progress::Done), Err(Error::Poisoned)));
        let queried = |reaches| {
            let (slot, _link) = pending(reaches);
            crate::timeline::point::Point::new(slot, 1).query()
        };
        assert_eq!((queried(true), queried(false)), (Ok(Progress::Done), Err(Error::Poisoned)));
    }

    /// The thread may have seen the end after the look.
    #[test]
    fn a_maker_leaves_between_a_look_and_its_end() {
        let looked = |reaches| {
            let (slot, link) = pending(reaches);
            slot.foreign().unwrap().note_end();
            let seen = slot.look(1);
            drop(link);
            seen
        };
        assert_eq!((looked(true), looked(false)), (Ok(Progress::Done), Err(Error::Poisoned)));
    }
}
