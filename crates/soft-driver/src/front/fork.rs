//! `fork` and the end of the process: their handlers, which hold the locks and set the switches.
//!
//! The locks are taken around the fork, so that the child never finds one held by a thread that it
//! does not have. Nor does it find a start that is half done: a fork waits for its end. In the child
//! every machine that was initialised answers from then on as the real driver does there.

#[cfg(all(unix, not(miri)))]
mod unix {
    use core::any::Any;
    use core::cell::{Cell, RefCell, UnsafeCell};
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::sync::MutexGuard;

    use crate::front::exit;
    use crate::front::hooks::{self, Control};
    use crate::machine::places::PLACES;
    use crate::machine::switches::FORKED;
    use crate::machine::{Locked, MACHINES};
    use crate::processes;
    use crate::threads;
    use crate::threads::idle;

    /// A lock that handlers of forks take and give, each in a function of its own.
    struct Lock(UnsafeCell<libc::pthread_mutex_t>);

    // SAFETY: only the functions for such locks touch it.
    unsafe impl Sync for Lock {}

    /// Who has it is in [`whole`], or forks.
    static START: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

    #[derive(Default)]
    struct Held {
        tables: Vec<Box<dyn Any>>,
        machines: Vec<(MutexGuard<'static, Control>, Locked)>,
        start: bool,
    }

    impl Held {
        fn release(&mut self) {
            self.tables.clear();
            self.machines.clear();
            if core::mem::take(&mut self.start) {
                give();
            }
        }
    }

    thread_local! {
        static HELD: RefCell<Held> = const {
            RefCell::new(Held { tables: Vec::new(), machines: Vec::new(), start: false })
        };
        /// Whether this thread is in [`whole`].
        static STARTS: Cell<bool> = const { Cell::new(false) };
    }

    fn take() {
        // SAFETY: a lock that lives as long as the process, and that this thread does not have.
        unsafe { libc::pthread_mutex_lock(START.0.get()) };
    }

    fn give() {
        // SAFETY: this thread, or the one that has become it in the child, has it by `take`.
        unsafe { libc::pthread_mutex_unlock(START.0.get()) };
    }

    extern "C" fn before() {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            // Two threads may have registered the handlers at a time.
            if !held.machines.is_empty() {
                return;
            }
            if !STARTS.get() {
                take();
                held.start = true;
            }
            // The log and the faults first, as everywhere, and last what is locked in the midst of
            // a machine's work.
            held.machines.extend(
                MACHINES.iter().map(|machine| (hooks::of(machine).control(), machine.lock())),
            );
            held.tables.push(Box::new(PLACES.lock()));
            held.tables.extend(processes::hold());
            held.tables.push(Box::new(idle::hold()));
            held.tables.push(Box::new(threads::hold()));
        });
    }

    extern "C" fn in_parent() {
        let _ = HELD.try_with(|held| held.borrow_mut().release());
    }

    extern "C" fn in_child() {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            for ((_, state), machine) in held.machines.iter().zip(&MACHINES) {
                if state.life.initialised {
                    machine.switches.set(FORKED, true);
                }
            }
            held.release();
        });
    }

    /// From here on every call answers that the driver is gone. Handlers run in the reverse order
    /// of their registration: what the program registered before it made its first driver finds
    /// none, what came later does.
    extern "C" fn at_exit() {
        for machine in &MACHINES {
            machine.switches.shut_down(true);
        }
        exit::summaries();
    }

    /// A second time does no harm. So there is no state of a thread that is about to do it, which a
    /// child would wait for.
    fn watch() {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if WATCHED.load(Ordering::Acquire) {
            return;
        }
        // SAFETY: the function is never unloaded, as below, and sets a flag in statics.
        unsafe { libc::atexit(at_exit) };
        // SAFETY: the three functions are never unloaded: this crate is linked into the program, or
        // into a library that a driver's user never closes. What they do in the child is to set a
        // flag and to release locks that this very thread holds.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        WATCHED.store(true, Ordering::Release);
    }

    /// The work that makes a driver, and what drivers have in common. It takes turns, and no fork
    /// of another thread comes in between: the child has all of it or nothing.
    pub(crate) fn whole<R>(work: impl FnOnce() -> R) -> R {
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                STARTS.set(false);
                give();
            }
        }
        if STARTS.get() {
            return work();
        }
        // It takes the loader's lock, and a library's constructor that starts a driver has that.
        threads::ready();
        // A fork under way may have the lock that this needs.
        watch();
        take();
        STARTS.set(true);
        let _end = End;
        work()
    }
}

#[cfg(all(unix, not(miri)))]
pub(crate) use unix::whole;

/// Miri has no handlers of either, and does not fork.
#[cfg(not(all(unix, not(miri))))]
pub(crate) fn whole<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use core::time::Duration;
    use std::any::Any;
    use std::sync::mpsc::channel;

    use crate::machine::places::PLACES;
    use crate::processes;
    use crate::threads;
    use crate::threads::idle;

    /// The place of the lock of starts.
    const START: usize = 4;

    fn tables() -> Vec<fn() -> Box<dyn Any>> {
        vec![
            || Box::new(PLACES.lock()),
            || Box::new(processes::hold()),
            || Box::new(idle::hold()),
            || Box::new(threads::hold()),
            || super::whole(|| Box::new(())),
        ]
    }

    /// Another thread has a table's lock, or is in a start, while this one forks.
    #[test]
    fn a_child_finds_no_lock_taken() {
        let _soft = crate::SoftDriver::new();
        for at in 0..tables().len() {
            let (sender, taken) = channel();
            let other = std::thread::spawn(move || {
                let hold = || {
                    let held = (at < START).then(|| tables()[at]());
                    sender.send(()).expect("the test waits");
                    std::thread::sleep(Duration::from_millis(50));
                    drop(held);
                };
                if at == START { super::whole(hold) } else { hold() }
            });
            taken.recv().expect("it sends");
            // SAFETY: the child takes locks that a fork keeps free, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: neither has preconditions.
                unsafe {
                    libc::alarm(10);
                    drop(tables()[at]());
                    libc::_exit(0);
                }
            }
            let mut status = 0;
            // SAFETY: a place for the status; the child is this test's.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "table {at}");
            other.join().expect("it ends");
        }
    }
}
