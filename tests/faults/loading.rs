//! Loading, with every call that it makes failing.

use std::ffi::{CStr, c_void};

use cuda_events::loader::LoadFailure;
use cuda_events::sys::{CUresult, ENTRY_POINTS, Function};
use cuda_events::{Driver, Error, LoadOptions};
use cuda_soft_driver::exports::NEWEST;
use cuda_soft_driver::{Fault, SoftDriver};

use crate::exhaustive::soft_driver;

fn load(soft: &SoftDriver) -> Result<Driver, LoadFailure> {
    let mut resolve = |name: &CStr| -> *mut c_void { soft.resolve(name) };
    // SAFETY: the software driver has the driver's ABI, and its functions are part of this program.
    match unsafe {
        Driver::from_resolver(&mut resolve, &LoadOptions::new().per_thread_default_stream(false))
    } {
        Ok(driver) => Ok(driver),
        Err(Error::Load(error)) => {
            let [attempt] = error.attempts() else {
                panic!("one resolver is one attempt: {error}")
            };
            assert_eq!(attempt.candidate(), None);
            Err(attempt.failure().clone())
        }
        Err(error) => panic!("loading fails with a load error, not {error:?}"),
    }
}

#[test]
fn every_call_of_loading_fails() {
    let mut runs = 0;
    // By cuGetProcAddress of five and of four arguments, and by exported names alone.
    for version in [NEWEST, (11, 4), (11, 0)] {
        let healthy = soft_driver(version);
        let whole = load(&healthy).expect("nothing fails");
        for code in [CUresult::CUDA_ERROR_INVALID_VALUE, CUresult(4242)] {
            for from_then_on in [false, true] {
                for nth in 1.. {
                    let soft = soft_driver(version);
                    let fault = Fault::on("*").nth(nth).answer(code);
                    soft.inject(if from_then_on { fault.from_then_on() } else { fault.once() });
                    let loaded = load(&soft);
                    soft.clear_faults();
                    if soft.injected() == 0 {
                        break;
                    }
                    runs += 1;
                    check(&whole, loaded, nth, code, from_then_on);
                    soft.assert_no_leaks();
                    assert!(soft.misuses().is_empty());
                }
            }
        }
    }
    println!("{runs:6} injected runs of loading");
    assert!(runs > 900);
}

fn check(
    whole: &Driver,
    loaded: Result<Driver, LoadFailure>,
    nth: u64,
    code: CUresult,
    from_then_on: bool,
) {
    if nth == 1 {
        // The driver is asked for its version first of all.
        assert_eq!(loaded.err(), Some(LoadFailure::Version(code)));
        return;
    }
    // Then one lookup for each entry point that the version has, in the order of the list.
    let there: Vec<_> =
        ENTRY_POINTS.iter().filter(|entry| entry.version <= whole.version()).collect();
    let at = usize::try_from(nth - 2).expect("a small number");
    let (found, lost) = there.split_at(at);
    let lost = if from_then_on { lost } else { &lost[..1] };
    let required: Vec<Function> =
        lost.iter().filter(|entry| entry.required).map(|entry| entry.function).collect();
    match loaded {
        Err(LoadFailure::MissingSymbols { driver, functions }) => {
            assert_eq!(driver, whole.version());
            assert_eq!(functions, required, "all that are missing are named, and no other");
            assert!(!required.is_empty());
        }
        Ok(driver) => {
            assert!(required.is_empty(), "{required:?} are required");
            for entry in lost {
                assert!(driver.symbols().address(entry.function).is_null(), "{}", entry.function);
            }
            for entry in found {
                let there = driver.symbols().address(entry.function).is_null();
                assert_eq!(
                    there,
                    whole.symbols().address(entry.function).is_null(),
                    "{}",
                    entry.function
                );
            }
        }
        Err(failure) => panic!("{failure}"),
    }
}
