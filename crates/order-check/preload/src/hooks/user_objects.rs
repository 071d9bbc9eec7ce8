//! The calls that create user objects, and that give them to graphs.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::call::{Call, Code, Function, Handle, OK, read};
use crate::callbacks::run_destructor;
use crate::state::user_objects::Destructor;
use crate::walk::{after_success, begin_call, caught_up};

/// # Safety
///
/// `object` must be NULL or a place for a handle, which a success has written.
pub(crate) unsafe fn create(
    call: &Call,
    real: impl FnOnce(Function, Handle) -> Code,
    object: *mut Handle,
    function: Function,
    data: Handle,
) -> Code {
    let number = begin_call(call, |watch| watch.next_id()).unwrap_or_default();
    let destructor = Destructor { function, data, number, object: AtomicUsize::new(0) };
    let raw = Box::into_raw(Box::new(destructor));
    let code = real(Some(run_destructor), raw.expose_provenance());
    if code == OK {
        // SAFETY: as the caller says.
        let object = unsafe { read(object) };
        // SAFETY: the program has the only references, and does not know of them yet.
        unsafe { (*raw).object.store(object, Ordering::Relaxed) };
        caught_up(|watch| watch.user_objects.numbers.insert(object, number));
    } else {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Box::from_raw(raw) });
    }
    code
}

pub(crate) fn retain(
    call: &Call,
    real: impl FnOnce() -> Code,
    graph: Handle,
    object: Handle,
) -> Code {
    after_success(call, real, |watch| {
        let number = watch.user_objects.numbers.get(&object).copied();
        watch.user_objects.of_graphs.entry(graph).or_default().extend(number);
    })
}
