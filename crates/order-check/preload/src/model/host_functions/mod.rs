//! Host functions and destructors begin and end, on threads of the driver.

pub(crate) mod nodes;
pub(crate) mod state;

use core::sync::atomic::Ordering;
use std::sync::PoisonError;

use crate::model::host_functions::state::{HAVE_POSTED, POSTED, Posted};
use crate::watch::Watch;

/// Takes the posts since the last call.
pub(crate) fn take_posted(watch: &mut Watch) {
    if HAVE_POSTED.swap(false, Ordering::Acquire) {
        let all = std::mem::take(&mut *POSTED.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().for_each(|(thread, posted)| apply_posted(watch, thread, posted));
    }
}

pub(crate) fn apply_posted(watch: &mut Watch, thread: u64, posted: Posted) {
    watch.feed.observer_mut().thread_of_host_function = Some(thread);
    match posted {
        Posted::Begins(id) => {
            watch.accept_with(id);
            watch.feed.function_begins(id);
        }
        Posted::Ends(id) => watch.feed.function_ends(id),
        Posted::DestructorBegins(destructor) => {
            watch.user_objects.ended(&destructor);
            watch.feed.object_released(destructor.number);
            watch.feed.destructor_begins();
        }
        Posted::DestructorEnds => watch.feed.destructor_ends(),
    }
    watch.feed.observer_mut().thread_of_host_function = None;
}
