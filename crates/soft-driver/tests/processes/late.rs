//! What outlives its driver, and a driver that is made after it. The tests need all places there
//! are, each in a process of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, Result, Stream, StreamOptions,
};
use cuda_events_test_support::own_process;
use cuda_soft_driver::abi::CUresult;
use cuda_soft_driver::{Fault, SLOTS, SoftDriver, waits_for_places};

fn primary(driver: Driver) -> Context {
    Context::primary(Device::new(driver, 0).unwrap()).unwrap()
}

/// Has the place of a dropped driver taken by the next one, if it is free at all.
fn next_ones() -> Vec<SoftDriver> {
    // So that it is not the last one to be taken.
    for _ in 0..SLOTS / 2 {
        drop(SoftDriver::new());
    }
    // A thread's first driver leaves some places free, later ones do not.
    (0..SLOTS - 1).map(|_| SoftDriver::builder().devices(3).build()).collect()
}

fn gone<T: std::fmt::Debug>(result: Result<T>) -> bool {
    result.is_err_and(|error| {
        matches!(error, Error::Driver { code: CUresult::CUDA_ERROR_DEINITIALIZED, .. })
    })
}

#[test]
fn a_late_context_releases_nobody_elses() {
    own_process!();
    let soft = SoftDriver::new();
    let old = soft.driver();
    let context = primary(old);
    let event = Event::new(&context, EventFlags::empty()).unwrap();
    drop(soft);
    assert!(gone(Device::count(old)));
    assert!(gone(event.query()));

    let others = next_ones();
    assert!(gone(Device::count(old)), "another driver has its place");
    let theirs: Vec<_> = others.iter().map(|soft| primary(soft.driver())).collect();
    drop((event, context));
    for (soft, context) in others.iter().zip(&theirs) {
        assert_eq!(soft.live().retains, 1, "released by what another driver's program had");
        assert!(Event::new(context, EventFlags::empty()).is_ok());
    }
    // Now that nothing is owed to it any more, the place is there again, as the only one.
    let last = SoftDriver::new();
    assert!(
        !gone(Device::count(old)),
        "it is not initialised, and this is what cannot be told apart"
    );
    drop(last);
}

#[test]
fn a_release_that_is_not_heard_is_one_all_the_same() {
    own_process!();
    let before = waits_for_places().1;
    // If places were not given back, each tenth one or so would have to wait for one.
    for way in (0..3).cycle().take(6 * SLOTS) {
        let soft = SoftDriver::new();
        let context = primary(soft.driver());
        match way {
            0 => soft.inject(Fault::on("*")),
            1 => soft.shut_down(),
            _ => soft.pretend_forked(true),
        }
        drop(context);
    }
    assert_eq!(waits_for_places().1, before, "places were not given back");
}

#[test]
fn leaks_hold_up_others_for_a_while_only() {
    own_process!();
    for _ in 0..SLOTS + 1 {
        let soft = SoftDriver::new();
        let _leaked = primary(soft.driver()).leak();
    }
}

#[test]
fn drivers_dropped_first_disturb_nobody() {
    own_process!();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250 {
                    let soft = SoftDriver::new();
                    let context = primary(soft.driver());
                    let event =
                        Event::new(&context, EventFlags::empty()).expect("nobody else's business");
                    let stream = Stream::new(&context, StreamOptions::new())
                        .expect("nobody else's business");
                    event.record(&stream).expect("nobody else's business");
                    context.synchronize().expect("nobody else's business");
                    drop(soft);
                }
            });
        }
    });
}

#[test]
fn dropping_a_driver_ends_its_blocked_calls() {
    own_process!();
    let soft = SoftDriver::new();
    let context = primary(soft.driver());
    let event = Event::new(&context, EventFlags::empty()).unwrap();
    soft.inject(Fault::on("cuEventQuery").block());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let answer = event.query();
            ended.store(true, Ordering::Relaxed);
            answer
        });
        while soft.blocked() == 0 {
            std::thread::yield_now();
        }
        drop(soft);
        // Others that hold calls, and let them go, have nothing to do with it.
        let others: Vec<_> = next_ones();
        for other in &others {
            other.inject(Fault::on("cuEventQuery").block());
            assert_eq!((other.blocked(), other.release()), (0, 0));
        }
        let until = Instant::now() + Duration::from_secs(60);
        while !ended.load(Ordering::Relaxed) {
            assert!(Instant::now() < until, "it is still blocked");
            std::thread::yield_now();
        }
        assert!(gone(waiter.join().unwrap()));
    });
}

#[test]
fn a_drop_ends_a_function_in_a_blocked_call() {
    own_process!();
    let soft = SoftDriver::new();
    let context = primary(soft.driver());
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let event = std::sync::Arc::new(Event::new(&context, EventFlags::empty()).unwrap());
    soft.inject(Fault::on("cuEventQuery").block());
    let (asked, its) = (std::sync::Arc::new(AtomicBool::new(false)), std::sync::Arc::clone(&event));
    let ended = std::sync::Arc::clone(&asked);
    stream
        .launch_host_function(move || {
            ended.store(its.query().is_err(), Ordering::Relaxed);
        })
        .unwrap();
    while soft.blocked() == 0 {
        std::thread::yield_now();
    }
    drop(soft);
    assert!(asked.load(Ordering::Relaxed), "its call answered before the driver was gone");
}
