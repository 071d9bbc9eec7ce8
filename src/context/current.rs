//! The context that is current on a thread.

use core::marker::PhantomData;
use core::ptr::null_mut;

use super::Context;
use crate::driver::Driver;
use crate::driver::call::call;
use crate::error::Result;
use crate::sys::CUcontext;

/// The current context of this thread, or NULL.
#[allow(unsafe_code)]
#[inline(always)]
pub(super) fn current(driver: Driver) -> Result<CUcontext> {
    let mut current = null_mut();
    // SAFETY: a place for the handle.
    unsafe { call!(driver, cuCtxGetCurrent(&mut current)) }?.check()?;
    Ok(current)
}

#[allow(unsafe_code)]
pub(super) fn push(driver: Driver, raw: CUcontext) -> Result<()> {
    // SAFETY: the context is alive: a `Context` keeps it, or the caller of `from_raw` vouched for
    // it.
    unsafe { call!(driver, cuCtxPushCurrent_v2(raw)) }?.check()
}

#[allow(unsafe_code)]
fn pop(driver: Driver) -> Result<()> {
    let mut popped = null_mut();
    // SAFETY: a place for the handle.
    unsafe { call!(driver, cuCtxPopCurrent_v2(&mut popped)) }?.check()
}

#[inline(always)]
pub(super) fn with_current<T>(
    driver: Driver,
    raw: CUcontext,
    f: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if current(driver)? == raw { f() } else { with_pushed(driver, raw, f) }
}

#[inline(never)]
fn with_pushed<T>(driver: Driver, raw: CUcontext, f: impl FnOnce() -> Result<T>) -> Result<T> {
    push(driver, raw)?;
    let pushed = Pushed { driver, raw };
    let made = f();
    core::mem::forget(pushed);
    let restored = restore(driver, raw);
    // The operation's own error comes first. If the driver refused to restore the stack, the result
    // is dropped.
    let made = made?;
    restored.map(|()| made)
}

/// Restores the thread's context stack if an operation panics, which one of another crate may.
struct Pushed {
    driver: Driver,
    raw: CUcontext,
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let _ = restore(self.driver, self.raw);
    }
}

/// Pops `raw`, which was pushed over another context. If the driver refuses and `raw` is still
/// current, it is popped once more; otherwise the thread would continue with it. The first refusal
/// is returned.
///
/// Out of line, as callers have copies of their own for each closure.
#[inline(never)]
pub(super) fn restore(driver: Driver, raw: CUcontext) -> Result<()> {
    let popped = pop(driver);
    if popped.is_err() && current(driver) == Ok(raw) {
        let _ = pop(driver);
    }
    popped
}

/// Keeps a context current on this thread; [`Context::make_current`] returns it.
///
/// Dropping the guard restores the previous context. The guard cannot leave its thread.
#[must_use = "the context is current only as long as the guard lives"]
#[derive(Debug)]
pub struct CurrentContext<'a> {
    context: &'a Context,
    /// Whether the context was already current before.
    nested: bool,
    _not_send: PhantomData<*mut ()>,
}

impl<'a> CurrentContext<'a> {
    pub(super) fn new(context: &'a Context, nested: bool) -> Self {
        Self { context, nested, _not_send: PhantomData }
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let (driver, raw) = (self.context.driver(), self.context.as_raw());
        // An error cannot be handled here. A nested context is current afterwards in any case, so
        // `restore` could not see whether its pop failed.
        let _ = if self.nested { pop(driver) } else { restore(driver, raw) };
    }
}

static_assertions::assert_not_impl_any!(CurrentContext<'static>: Send, Sync);
