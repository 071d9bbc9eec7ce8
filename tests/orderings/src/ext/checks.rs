//! The pool and the inbox.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread::{self, JoinHandle};

use super::event_pool::EventPool;
use super::inbox::Inbox;
use crate::{Check, Context, EventFlags, StreamRef};

pub const ALL: &[Check] = &[
    ("pool_hands_over", pool_hands_over),
    ("pool_is_cleared", pool_is_cleared),
    ("pool_is_closed", pool_is_closed),
    ("pool_is_closed_when_full", pool_is_closed_when_full),
    ("inbox_sleeps_through_nothing", inbox_sleeps_through_nothing),
    ("inbox_naps_through_nothing", inbox_naps_through_nothing),
];

/// A pool with so many events, of which a slot holds one. Loom finds what is never freed.
fn pool(events: usize) -> EventPool {
    let pool = EventPool::new(&Context, EventFlags::empty()).unwrap();
    pool.reserve(events).unwrap();
    pool
}

/// An event has one owner at each time, who sees what the one before has done with it.
fn pool_hands_over() {
    let pool = pool(1);
    let users = [(); 2].map(|()| {
        let pool = pool.clone();
        thread::spawn(move || {
            let event = pool.take().unwrap();
            event.record(&StreamRef).unwrap();
        })
    });
    users.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Who destroys the free events sees what was done with them.
fn pool_is_cleared() {
    let pool = pool(1);
    let other = {
        let pool = pool.clone();
        thread::spawn(move || pool.take().unwrap().record(&StreamRef).unwrap())
    };
    pool.clear();
    other.join().unwrap();
}

/// Nothing stays in a pool that is closed while its last event comes back.
fn pool_is_closed() {
    let pool = pool(1);
    let event = pool.take().unwrap();
    let other = thread::spawn(move || {
        event.record(&StreamRef).unwrap();
        drop(event);
    });
    drop(pool);
    other.join().unwrap();
}

/// As before, where the slot is full and the list takes the event.
fn pool_is_closed_when_full() {
    let pool = pool(2);
    let [event, other] = [pool.take().unwrap(), pool.take().unwrap()];
    drop(other);
    let other = thread::spawn(move || drop(event));
    drop(pool);
    other.join().unwrap();
}

/// A place where things arrive.
type Seat = Mutex<u32>;

/// A thread as in `poller.rs`, which ends once so many have arrived. `idle` says how it sleeps.
fn receive(inbox: &Inbox<Seat>, seats: [&'static Seat; 2], idle: bool) {
    let (mut called, mut arrived) = (Vec::new(), 0);
    while arrived < seats.len() as u32 {
        inbox.take(idle, &mut called);
        for seat in called.drain(..) {
            arrived += core::mem::take(&mut *seat.lock().unwrap());
        }
        if !idle && arrived < seats.len() as u32 {
            inbox.sleep(core::time::Duration::MAX);
        }
    }
}

fn all_arrive(idle: bool) {
    let inbox = Arc::new(Inbox::<Seat>::new());
    let seats = [(); 2].map(|()| &*Box::leak(Box::new(Mutex::new(0))));
    let receiver: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::new(Mutex::new(Vec::new()));
    let call = move |seat: &'static Seat, inbox: &Arc<Inbox<Seat>>, receiver: &Mutex<Vec<_>>| {
        let put = || *seat.lock().unwrap() += 1;
        assert!(inbox.call(seat, put, || {
            let own = Arc::clone(inbox);
            receiver.lock().unwrap().push(thread::spawn(move || receive(&own, seats, idle)));
            true
        }));
    };
    let other = {
        let (inbox, receiver) = (Arc::clone(&inbox), Arc::clone(&receiver));
        thread::spawn(move || call(seats[0], &inbox, &receiver))
    };
    call(seats[1], &inbox, &receiver);
    other.join().unwrap();
    let mut threads = core::mem::take(&mut *receiver.lock().unwrap());
    threads.pop().unwrap().join().unwrap();
    assert!(threads.is_empty(), "two threads were started");
}

fn inbox_sleeps_through_nothing() {
    all_arrive(true);
}

/// With a limit, which never ends here.
fn inbox_naps_through_nothing() {
    all_arrive(false);
}
