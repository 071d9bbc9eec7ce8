//! Callbacks, which one thread calls.

use std::ffi::{CString, c_char, c_void};
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, Wake};

use crate::result::cutl_result::{self, *};
use crate::result::{Fail, guarded};

/// A function that is called once for each call that was given it: with `user`, with CUTL_OK or an
/// error, and with the error's text, which is empty for CUTL_OK and valid until the function
/// returns. After CUTL_ERROR_DRIVER cutl_error_driver_code returns the driver's code there.
///
/// It is called on a thread of the library, never on the calling one, and one at a time: one that
/// takes long delays the others. It may call any function of this library, and of the driver. It
/// must not throw, longjmp or end the thread. `user` must stay valid until then; the library does
/// nothing else with it. A forked child calls none.
pub type cutl_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, result: cutl_result, text: *const c_char)>;

type Future = Pin<Box<dyn std::future::Future<Output = Result<(), Fail>> + Send>>;

struct Task {
    /// The future; none once it has resolved.
    future: Mutex<Option<Future>>,
    callback: unsafe extern "C" fn(*mut c_void, cutl_result, *const c_char),
    user: User,
}

struct User(*mut c_void);

// SAFETY: nothing here uses it. Whoever gives it has promised that it may be handed to the function
// on another thread.
unsafe impl Send for User {}
// SAFETY: the same.
unsafe impl Sync for User {}

/// The way to the thread, once it runs.
static THREAD: Mutex<Option<Sender<Arc<Task>>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the function called once the future resolves.
pub(crate) fn start<F, E>(
    callback: cutl_callback,
    user: *mut c_void,
    future: impl FnOnce() -> Result<F, Fail>,
) -> Result<cutl_result, Fail>
where
    F: std::future::IntoFuture<Output = Result<(), E>>,
    F::IntoFuture: Send + 'static,
    E: Into<Fail>,
{
    let callback = callback.ok_or_else(|| Fail::null("the callback"))?;
    // A system that refuses the thread is noticed before anything is recorded.
    run_thread()?;
    let future = future()?.into_future();
    let future: Future = Box::pin(async { future.await.map_err(Into::into) });
    Arc::new(Task { future: Mutex::new(Some(future)), callback, user: User(user) }).wake();
    Ok(CUTL_OK)
}

fn run_thread() -> Result<(), Fail> {
    let mut thread = lock(&THREAD);
    if thread.is_none() {
        let (sender, tasks) = channel::<Arc<Task>>();
        let run = move || tasks.into_iter().for_each(|task| task.run());
        let started = std::thread::Builder::new().name("cuda-timelines".to_owned()).spawn(run);
        started.map_err(|_| Fail::from(cuda_timelines::Error::NoThread))?;
        *thread = Some(sender);
    }
    Ok(())
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if let Some(thread) = &*lock(&THREAD) {
            // The thread never ends.
            let _ = thread.send(self);
        }
    }
}

impl Task {
    /// Looks at the future, and calls the function once.
    fn run(self: Arc<Self>) {
        let mut place = lock(&self.future);
        let Some(future) = place.as_mut() else { return };
        let waker = Arc::clone(&self).into();
        let mut task = TaskContext::from_waker(&waker);
        let result = match guarded(|| Ok(future.as_mut().poll(&mut task))) {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(result)) => result,
            Err(fault) => Err(fault),
        };
        let future = place.take();
        drop(place);
        // What the future holds may be the last share of a context.
        let _ = guarded(|| {
            drop(future);
            Ok(())
        });
        let (code, text) = match result {
            Ok(()) => (CUTL_OK, CString::default()),
            Err(fail) => {
                // A text of its own: the next error of this thread replaces the noted one.
                let text = fail.c_text();
                (fail.note(), text)
            }
        };
        // SAFETY: the caller of `start` has promised that it may be called like this, once.
        unsafe { (self.callback)(self.user.0, code, text.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn count(user: *mut c_void, result: cutl_result, _: *const c_char) {
        assert_eq!(result, CUTL_OK);
        // SAFETY: the test gives its counter, which outlives the call.
        unsafe { *user.cast::<u32>() += 1 };
    }

    /// A task may be woken more often than it has to be.
    #[test]
    fn it_is_called_once() {
        let mut calls = 0_u32;
        let future: Future = Box::pin(async { Ok(()) });
        let user = User((&raw mut calls).cast());
        let task = Arc::new(Task { future: Mutex::new(Some(future)), callback: count, user });
        Arc::clone(&task).run();
        task.run();
        assert_eq!(calls, 1);
    }
}
