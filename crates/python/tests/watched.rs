//! Futures that wake a loop, which need no Python.

#![cfg(unix)]

#[path = "../src/watched.rs"]
mod watched;

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use watched::Watched;

/// The latest waker, and the outcome.
#[derive(Clone, Default)]
struct Step(Arc<Mutex<(Option<Waker>, Option<u32>)>>);

impl Future for Step {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<u32> {
        let mut state = self.0.lock().unwrap();
        state.0 = Some(task.waker().clone());
        state.1.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Step {
    fn wake(&self, outcome: Option<u32>) {
        let mut state = self.0.lock().unwrap();
        state.1 = outcome;
        let waker = state.0.clone();
        drop(state);
        waker.expect("it was polled").wake();
    }
}

/// How many bytes wait in the socket of the loop. It takes them.
fn bytes(watched: &Watched<Step>) -> usize {
    // SAFETY: the socket is open as long as `watched`, which is borrowed.
    let socket = unsafe { BorrowedFd::borrow_raw(watched.fileno()) };
    let mut socket = UnixStream::from(socket.try_clone_to_owned().unwrap());
    socket.read(&mut [0; 64]).unwrap_or(0)
}

/// It is waited for again, and the next wake counts.
#[test]
fn a_wake_before_the_outcome_ends_no_wait() {
    let watched = Watched::new().unwrap();
    let (early, other) = (Step::default(), Step::default());
    assert_eq!(watched.add(3, early.clone()), None);
    assert_eq!(watched.add(4, other.clone()), None);
    for _ in 0..3 {
        early.wake(None);
        early.wake(None);
        assert_eq!(bytes(&watched), 1);
        assert_eq!(watched.take_ready(), []);
    }
    other.wake(Some(40));
    early.wake(Some(30));
    assert_eq!(bytes(&watched), 1);
    assert_eq!(watched.take_ready(), [(3, 30), (4, 40)]);
    // Both are over.
    early.wake(Some(31));
    assert_eq!(watched.take_ready(), []);
}

#[test]
fn what_has_its_outcome_or_is_removed_is_not_waited_for() {
    let watched = Watched::new().unwrap();
    let (done, removed) = (Step::default(), Step::default());
    done.0.lock().unwrap().1 = Some(10);
    assert_eq!(watched.add(1, done), Some(10));
    assert_eq!(watched.add(2, removed.clone()), None);
    watched.remove(2);
    removed.wake(Some(20));
    assert_eq!(watched.take_ready(), []);
}
