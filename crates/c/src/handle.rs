//! Handles: numbers that name objects, so that a dead handle is an error and no access.

use std::any::Any;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::result::cutl_result::{self, *};
use crate::result::{Fail, guard};

type Objects = HashMap<usize, Arc<dyn Any + Send + Sync>>;

/// The objects that C has handles of.
static OBJECTS: LazyLock<RwLock<Objects>> = LazyLock::new(RwLock::default);
/// The next handle. None is used twice.
static NEXT: AtomicUsize = AtomicUsize::new(16);

/// A type that C sees as an incomplete struct.
pub(crate) trait Handle: Sized {
    type Object: Any + Send + Sync;
    /// The name in texts.
    const NAME: &'static str;
}

/// Gives C a handle of an object.
pub(crate) fn put<H: Handle>(
    place: &mut MaybeUninit<*mut H>,
    object: H::Object,
) -> Result<cutl_result, Fail> {
    let handle = NEXT.fetch_add(16, Relaxed);
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    objects.insert(handle, Arc::new(object));
    place.write(std::ptr::without_provenance_mut(handle));
    Ok(CUTL_OK)
}

/// The object of a handle. It lives until the call ends, also if another thread destroys it.
pub(crate) fn get<H: Handle>(handle: *const H) -> Result<Arc<H::Object>, Fail> {
    check(handle)?;
    let objects = OBJECTS.read().unwrap_or_else(PoisonError::into_inner);
    let object = objects.get(&handle.addr()).ok_or_else(dead::<H>)?;
    Arc::clone(object).downcast().map_err(|_| other::<H>())
}

/// Takes the object away from C.
pub(crate) fn take<H: Handle>(handle: *const H) -> Result<Arc<H::Object>, Fail> {
    // Looked at first: a handle of another kind stays.
    drop(get(handle)?);
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    let object = objects.remove(&handle.addr()).ok_or_else(dead::<H>)?;
    object.downcast().map_err(|_| other::<H>())
}

/// The body of each `destroy`. What it drops is dropped with nothing locked.
pub(crate) fn destroy<H: Handle>(handle: *mut H) -> cutl_result {
    guard(|| take(handle.cast_const()).map(drop).map(|()| CUTL_OK))
}

fn check<H: Handle>(handle: *const H) -> Result<(), Fail> {
    if handle.is_null() {
        return Err(Fail::new(CUTL_ERROR_HANDLE, format!("the handle of {} is NULL", H::NAME)));
    }
    Ok(())
}

fn dead<H: Handle>() -> Fail {
    let text = format!(
        "there is no {} with this handle: it was destroyed, or the value never was a handle",
        H::NAME
    );
    Fail::new(CUTL_ERROR_HANDLE, text)
}

fn other<H: Handle>() -> Fail {
    let text = format!("the handle is not that of {}, but of an object of another kind", H::NAME);
    Fail::new(CUTL_ERROR_HANDLE, text)
}
