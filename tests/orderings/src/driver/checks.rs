//! The flag, the list of what lives as long as the process, and initialising the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use loom::sync::Mutex;
use loom::thread;

use super::{Driver, flag, fork, libraries};
use crate::Check;
use crate::growing_list::List;
use crate::world::Probe;

pub const ALL: &[Check] = &[
    ("flag_of_two_libraries", flag_of_two_libraries),
    ("flag_of_two_bits", flag_of_two_bits),
    ("init_after_the_fork_handler", init_after_the_fork_handler),
    ("list_of_whole_items", list_of_whole_items),
    ("list_without_doubles", list_without_doubles),
];

/// A thread that has a driver of each library sees the flag.
fn flag_of_two_libraries() {
    let drivers = Arc::new(Mutex::new(Vec::new()));
    let load = |library: usize| {
        let drivers = Arc::clone(&drivers);
        thread::spawn(move || {
            libraries::note(library);
            drivers.lock().unwrap().push(library);
        })
    };
    let loading = [load(1), load(2)];
    let has_both = drivers.lock().unwrap().len() == 2;
    assert!(!has_both || flag::unusual());
    loading.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(flag::is(flag::SEVERAL_LIBRARIES) && !flag::is(flag::FORKED));
}

fn flag_of_two_bits() {
    let other = thread::spawn(|| flag::set(flag::SEVERAL_LIBRARIES));
    flag::set(flag::FORKED);
    other.join().unwrap();
    assert!(flag::is(flag::FORKED) && flag::is(flag::SEVERAL_LIBRARIES));
}

/// No thread uses the driver before the fork handler is there.
fn init_after_the_fork_handler() {
    let driver = Driver::new();
    let init = move || {
        driver.init().unwrap();
        assert!(fork::is_registered());
    };
    let other = thread::spawn(init);
    init();
    other.join().unwrap();
}

/// An item with something that its maker has written.
struct Item {
    key: usize,
    probe: &'static Probe,
}

impl Item {
    fn new(key: usize) -> Self {
        let probe = Probe::new();
        probe.change();
        Self { key, probe }
    }
}

fn add(list: &List<Item>, key: usize) -> &'static Item {
    list.add(Item::new(key), |known, new| known.key == new.key)
}

fn list_of_whole_items() {
    let list = Arc::new(List::new());
    let adding = [1, 2].map(|key| {
        let list = Arc::clone(&list);
        thread::spawn(move || _ = add(&list, key))
    });
    let sum = || list.items().map(|item| item.key * item.probe.look() as usize).sum::<usize>();
    assert!(sum() <= 3);
    adding.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(sum(), 3);
}

fn list_without_doubles() {
    let list = Arc::new(List::new());
    let other = {
        let list = Arc::clone(&list);
        thread::spawn(move || core::ptr::from_ref(add(&list, 1)).addr())
    };
    let mine = core::ptr::from_ref(add(&list, 1)).addr();
    assert_eq!(other.join().unwrap(), mine);
    assert_eq!(list.items().count(), 1);
}
