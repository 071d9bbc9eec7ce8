//! The inbox of the thread.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread::{self, JoinHandle};

use crate::Check;
use crate::inbox::Inbox;

pub const ALL: &[Check] = &[
    ("inbox_sleeps_through_nothing", inbox_sleeps_through_nothing),
    ("inbox_naps_through_nothing", inbox_naps_through_nothing),
];

/// A place where things arrive.
type Seat = Mutex<u32>;

/// A thread as in `thread.rs`, which ends once so many have arrived. `idle` says how it sleeps.
fn receive(inbox: &Inbox<Seat>, seats: [&'static Seat; 2], idle: bool) {
    let (mut called, mut arrived) = (Vec::new(), 0);
    while arrived < seats.len() as u32 {
        inbox.take(idle, &mut called);
        for seat in called.drain(..) {
            arrived += core::mem::take(&mut *seat.lock().unwrap());
        }
        if !idle && arrived < seats.len() as u32 {
            inbox.sleep(core::time::Duration::MAX);
        }
    }
}

fn all_arrive(idle: bool) {
    let inbox = Arc::new(Inbox::<Seat>::new());
    let seats = [(); 2].map(|()| &*Box::leak(Box::new(Mutex::new(0))));
    let receiver: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::new(Mutex::new(Vec::new()));
    let call = move |seat: &'static Seat, inbox: &Arc<Inbox<Seat>>, receiver: &Mutex<Vec<_>>| {
        let put = || *seat.lock().unwrap() += 1;
        assert!(inbox.call(seat, put, || {
            let own = Arc::clone(inbox);
            receiver.lock().unwrap().push(thread::spawn(move || receive(&own, seats, idle)));
            true
        }));
    };
    let other = {
        let (inbox, receiver) = (Arc::clone(&inbox), Arc::clone(&receiver));
        thread::spawn(move || call(seats[0], &inbox, &receiver))
    };
    call(seats[1], &inbox, &receiver);
    other.join().unwrap();
    let mut threads = core::mem::take(&mut *receiver.lock().unwrap());
    threads.pop().unwrap().join().unwrap();
    assert!(threads.is_empty(), "two threads were started");
}

fn inbox_sleeps_through_nothing() {
    all_arrive(true);
}

/// With a limit, which never ends here.
fn inbox_naps_through_nothing() {
    all_arrive(false);
}
