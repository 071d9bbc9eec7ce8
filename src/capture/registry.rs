//! The captures that this crate began: a list for the whole process (`docs/architecture.md`).
//!
//! [`record_external`](crate::StreamRef::record_external) and
//! [`wait_external`](crate::StreamRef::wait_external) put an event into the graph of a capture. The
//! graph must keep the event: the driver crashes if the event of a node is gone. The same is
//! assumed of [semaphores](crate::external#captures). The arguments are a stream and an event or a
//! semaphore, not a capture. The stream may have joined the capture by a wait, in
//! another thread than that of the guard, and unseen by this crate. Then the driver returns only
//! the number of the stream's capture and the graph's handle, and a program cannot attach data to
//! either. The driver's user objects live as long as a graph, but their destructors must not make
//! driver calls, so they cannot destroy an event. Therefore the number is looked up here. The guard
//! has its own number and does not need the list.

use std::sync::{Arc, Mutex, Weak};

use crate::driver::Driver;
use crate::graph::retained::Retained;
use crate::sync::lock;

/// The kept values of each capture, by its number. Numbers are never reused, so an entry that
/// outlives its graph is never found, and is removed when the next one is added.
static CAPTURES: Mutex<Vec<(Driver, u64, Weak<Retained>)>> = Mutex::new(Vec::new());

pub(super) fn add(driver: Driver, id: u64, retained: &Arc<Retained>) {
    let mut captures = lock(&CAPTURES);
    captures.retain(|(_, _, retained)| retained.strong_count() > 0);
    captures.push((driver, id, Arc::downgrade(retained)));
}

pub(super) fn find(driver: Driver, id: u64) -> Option<Arc<Retained>> {
    let captures = lock(&CAPTURES);
    captures
        .iter()
        .find(|entry| entry.0.is_same_library(driver) && entry.1 == id)
        .and_then(|(_, _, retained)| retained.upgrade())
}
