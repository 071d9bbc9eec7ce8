//! Host functions and destructors begin and end, on threads of the driver.

pub(crate) mod nodes;

use crate::state::executions::Posted;
use crate::watch::Watch;

/// A function begins or ends on a thread of the driver.
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
