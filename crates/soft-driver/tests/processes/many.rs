//! Drivers side by side.

use crate::common;

use common::*;
use cuda_events_test_support::own_process;
use cuda_soft_driver::{SLOTS, SoftDriver, waits_for_places};

#[test]
fn drivers_have_nothing_in_common_and_wait_for_each_other() {
    own_process!();
    let all: Vec<Raw> = (0..SLOTS).map(|_| Raw::new()).collect();
    let events: Vec<_> = all.iter().map(|raw| raw.event(0)).collect();
    for (at, raw) in all.iter().enumerate() {
        assert_eq!(raw.soft.live().events, 1);
        assert_eq!(raw.query(events[at]), OK);
        assert_eq!(raw.query(events[(at + 1) % SLOTS]), INVALID_HANDLE, "another driver's");
    }
    // A thread that has none waits until there is room; the last places are for threads that have
    // one.
    std::thread::scope(|scope| {
        let other = scope.spawn(|| SoftDriver::new().live().is_empty());
        while waits_for_places().0 == 0 {
            assert!(!other.is_finished(), "it did not wait");
            std::thread::yield_now();
        }
        drop(all);
        assert!(other.join().unwrap());
    });
}
