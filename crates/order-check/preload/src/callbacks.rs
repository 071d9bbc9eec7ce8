//! The functions that the driver calls in the place of the program's: of host functions, callbacks and
//! destructors. Each posts its begin and its end, and calls the program's own in between.

use core::ffi::c_void;
use core::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};

use crate::call::{Code, Handle, thread};
use crate::guard;
use crate::model::host_functions::apply_posted;
use crate::model::pinned::settle_copies;
use crate::pinned::accesses::next_order;
use crate::pinned::faults::Inside;
use crate::state::executions::{HAVE_POSTED, Host, POSTED, Post, Posted};
use crate::state::user_objects::Destructor;
use crate::watch::WATCH;

/// Runs what the program has given.
///
/// # Safety
///
/// `data` is what a hook gave to the driver, which calls it as often as it is
/// submitted.
pub(crate) unsafe fn run(data: *mut c_void, function: impl FnOnce(&Host)) {
    let raw = data.cast_const().cast::<Host>();
    // SAFETY: as the caller says; the driver has a reference until the last execution begins.
    let host = unsafe {
        Arc::increment_strong_count(raw);
        Arc::from_raw(raw)
    };
    let id = {
        let mut runs = host.runs();
        let id = runs.ids.pop_front();
        if id.is_some() && runs.last && runs.ids.is_empty() {
            // SAFETY: the driver's reference, which it will not use again.
            unsafe { Arc::decrement_strong_count(raw) };
        }
        id
    };
    if let Some(id) = id {
        post(Posted::Begins(id));
    }
    function(&host);
    if let Some(id) = id {
        post(Posted::Ends(id));
    }
}

/// Posts something without waiting for the watch's lock. The driver may have a lock of its own while
/// it calls a function of the program, and another thread may ask the driver with the watch's.
pub(crate) fn post(posted: Posted) {
    let _inside = Inside::new();
    let thread = thread();
    guard::own(|| match WATCH.try_lock() {
        Ok(mut watch) => {
            if let Some(watch) = &mut *watch {
                watch.catch_up();
                apply_posted(watch, thread, posted);
                settle_copies(watch);
            }
        }
        Err(TryLockError::WouldBlock) => {
            let mut all = POSTED.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(Post { order: next_order(), thread, posted });
            HAVE_POSTED.store(true, Ordering::Release);
        }
        // An error has switched the checker off.
        Err(TryLockError::Poisoned(_)) => {}
    });
}

/// In the place of the program's host function.
pub(crate) unsafe extern "C" fn run_host(data: *mut c_void) {
    let function = |host: &Host| {
        let data = core::ptr::with_exposed_provenance_mut(host.data);
        if let Some(function) = host.function {
            // SAFETY: the program's function with its own data.
            unsafe { function(data) };
        }
    };
    // SAFETY: what a hook has given.
    unsafe { run(data, function) };
}

/// In the place of the program's callback.
pub(crate) unsafe extern "C" fn run_callback(stream: Handle, status: Code, data: *mut c_void) {
    let function = |host: &Host| {
        let data = core::ptr::with_exposed_provenance_mut(host.data);
        if let Some(callback) = host.callback {
            // SAFETY: the program's function with its own data.
            unsafe { callback(stream, status, data) };
        }
    };
    // SAFETY: what a hook has given.
    unsafe { run(data, function) };
}

/// In the place of the program's destructor.
pub(crate) unsafe extern "C" fn run_destructor(data: *mut c_void) {
    // SAFETY: the box that `user_objects::create` gave away, which the driver gives back once.
    let destructor = unsafe { Box::from_raw(data.cast::<Destructor>()) };
    let (function, data) = (destructor.function, destructor.data);
    post(Posted::DestructorBegins(destructor));
    if let Some(function) = function {
        // SAFETY: the program's destructor with its own data.
        unsafe { function(core::ptr::with_exposed_provenance_mut(data)) };
    }
    post(Posted::DestructorEnds);
}
