//! What a future and the poller share.

use std::sync::Arc;
use std::task::{Wake, Waker};

use loom::sync::{Mutex, Notify};
use loom::thread;

use super::entry::{Entry, Watch};
use crate::handle::EventHandle;
use crate::sync::{AtomicBool, lock};
use crate::{Check, Driver, Event};

pub const ALL: &[Check] = &[
    ("completion_wakes_its_task", completion_wakes_its_task),
    ("completion_is_not_asked_for_after_its_drop", completion_is_not_asked_for_after_its_drop),
];

struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

fn entry(event: &Event) -> Arc<Entry> {
    let watch = Watch { event: Some(EventHandle::of(event)), result: None, waker: None };
    let registered = AtomicBool::new(true);
    Arc::new(Entry { driver: Driver::new(), registered, watch: Mutex::new(watch) })
}

/// As the destructor of the future does.
fn drop_future(entry: &Entry, event: Event) {
    let mut watch = lock(&entry.watch);
    watch.event = None;
    let waker = watch.waker.take();
    drop(watch);
    drop((waker, event));
}

/// The task is woken, or `poll` gives it the result.
fn completion_wakes_its_task() {
    let event = Event::new(&crate::Context, crate::EventFlags::empty()).unwrap();
    let entry = entry(&event);
    let poller = {
        let (entry, probe) = (Arc::clone(&entry), event.probe());
        thread::spawn(move || {
            let is_over = entry.ask(Ok(()));
            assert!(!is_over);
            probe.finish();
            assert!(entry.ask(Ok(())));
        })
    };
    let woken = Arc::new(Woken(Notify::new()));
    let waker = Waker::from(Arc::clone(&woken));
    let (result, known) = entry.look(true, &waker);
    let result = result.or_else(|| entry.wake_later(waker.clone()).0);
    assert!(!known);
    if result.is_none() {
        // Without a reason at times, and then it waits on.
        woken.0.wait();
        while entry.look(true, &waker).0.is_none() {
            woken.0.wait();
        }
    }
    drop_future(&entry, event);
    poller.join().unwrap();
}

fn completion_is_not_asked_for_after_its_drop() {
    let event = Event::new(&crate::Context, crate::EventFlags::empty()).unwrap();
    let entry = entry(&event);
    let poller = {
        let entry = Arc::clone(&entry);
        thread::spawn(move || {
            entry.ask(Ok(()));
            entry.ask(Ok(()));
        })
    };
    drop_future(&entry, event);
    poller.join().unwrap();
}
