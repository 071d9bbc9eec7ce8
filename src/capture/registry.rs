//! The captures that this crate began: a list for the whole process, of which the root of the crate
//! tells.
//!
//! [`record_external`](crate::StreamRef::record_external) and
//! [`wait_external`](crate::StreamRef::wait_external) put an event into the graph of a capture, and
//! the graph must keep it: a node without its event crashes the driver. They are given a stream and
//! an event, and no capture. The stream may be one that joined the capture by a wait, in another
//! thread than the one that has the guard, and which no code of this crate saw join. All that can
//! be had then is what the driver tells of a stream: the number of its capture, and the graph's
//! handle. Nothing of the program's can be attached to either. The driver's user objects live as
//! long as a graph, but their destructors must make no driver call, and so cannot destroy an event.
//! So the number is looked up here. Nothing else uses the list: the guard knows its own number.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::driver::Driver;
use crate::graph::kept::Kept;

/// What keeps the events of each capture, by its number. Numbers are never used again, so an entry
/// that outlives its graph is found by nobody, and goes when the next one is made.
static CAPTURES: Mutex<Vec<(Driver, u64, Weak<Kept>)>> = Mutex::new(Vec::new());

pub(super) fn add(driver: Driver, id: u64, kept: &Arc<Kept>) {
    let mut captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    captures.retain(|(_, _, kept)| kept.strong_count() > 0);
    captures.push((driver, id, Arc::downgrade(kept)));
}

pub(super) fn find(driver: Driver, id: u64) -> Option<Arc<Kept>> {
    let captures = CAPTURES.lock().unwrap_or_else(PoisonError::into_inner);
    captures
        .iter()
        .find(|known| known.0.is_same_library(driver) && known.1 == id)
        .and_then(|(_, _, kept)| kept.upgrade())
}
