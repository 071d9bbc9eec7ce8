//! The pool.

use loom::thread;

use super::event_pool::EventPool;
use crate::{Check, Context, EventFlags, StreamRef};

pub const ALL: &[Check] = &[
    ("pool_hands_over", pool_hands_over),
    ("pool_is_cleared", pool_is_cleared),
    ("pool_is_closed", pool_is_closed),
    ("pool_is_closed_when_full", pool_is_closed_when_full),
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
