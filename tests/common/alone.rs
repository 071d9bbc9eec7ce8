//! Cases in a process of their own, where it is known how many driver libraries the process has.
//!
//! The library looks closer at its objects from the second driver library in a process on, and each
//! software driver of a test is a library of its own. So a test binary whose tests run side by side
//! takes the cold way everywhere, and what is wrong with the plain one passes.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use cuda_events::sys::{CUevent, CUresult, CUstream, ENTRY_POINTS, Function};
use cuda_events::{Context, Device, Driver, Event, EventFlags, LoadOptions, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

use super::Gpu;
use super::child::{Child, role, say, turn};

/// How many driver libraries a process has loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Libraries {
    One,
    Two,
}

/// Makes two tests of each case, a function that takes a [`Gpu`]: one in a process with one
/// library, one with two.
#[macro_export]
macro_rules! in_processes {
    ($($case:ident,)*) => {
        mod one {
            use $crate::alone::{Libraries, run};

            $(#[test]
            fn $case() {
                run(concat!("one::", stringify!($case)), Libraries::One, super::$case);
            })*
        }

        mod two {
            use $crate::alone::{Libraries, run};

            $(#[test]
            fn $case() {
                run(concat!("two::", stringify!($case)), Libraries::Two, super::$case);
            })*
        }
    };
}

/// Runs the case in a process of its own that has so many libraries. `test` is the name of the
/// calling test, as the harness knows it.
///
/// The driver's clock stands still where that can be had, see [`Gpu::with_virtual_time`].
#[track_caller]
pub fn run(test: &str, libraries: Libraries, case: fn(&Gpu)) {
    const DONE: &str = "done";
    if role().is_none() {
        let _turn = turn();
        let mut child = Child::start(test, DONE);
        // A child that ran no test, as none has that name, ends in peace and says nothing.
        assert_eq!(child.receive(), DONE);
        child.finish();
        return;
    }
    let gpu = Gpu::with_virtual_time();
    let second = (libraries == Libraries::Two).then(SoftDriver::new);
    let _ = second.as_ref().map(SoftDriver::driver);
    case(&gpu);
    assert_eq!(noticed(&gpu), libraries, "the case did not run in the process that it is for");
    say(DONE);
}

/// How many libraries the crate has noticed in this process so far. It loads one more, so it is the
/// last thing to ask.
///
/// No public item tells. But from the second library on the driver is called on another way, with
/// more functions on the stack. If one more library changes nothing there, it was not the first
/// that came beside another.
fn noticed(gpu: &Gpu) -> Libraries {
    let stub = stub(gpu.driver);
    let context = Device::new(stub, 0).and_then(Context::primary).expect("the primary context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = Event::new(&context, EventFlags::TIMING).expect("an event");
    let before = depths(&event, &stream);
    let more = SoftDriver::new();
    more.driver();
    let after = depths(&event, &stream);
    let longer = [0, 1].map(|at| after[at] > before[at]);
    match longer {
        [true, true] => Libraries::One,
        [false, false] if before == after => Libraries::Two,
        _ => panic!("{before:?} functions on the stack, and {after:?} with one more library"),
    }
}

/// `real`, but for the two calls, which note how deep they are.
fn stub(real: Driver) -> Driver {
    let mut resolve = |name: &CStr| {
        let entry = ENTRY_POINTS.iter().find(|entry| entry.name == name);
        match entry.map(|entry| entry.function) {
            // Without these, all others are asked for by their exported names.
            None | Some(Function::cuGetProcAddress | Function::cuGetProcAddress_v2) => null_mut(),
            Some(Function::cuEventRecord) => {
                record as unsafe extern "C" fn(CUevent, CUstream) -> CUresult as *mut c_void
            }
            Some(Function::cuEventElapsedTime | Function::cuEventElapsedTime_v2) => {
                elapsed as unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult
                    as *mut c_void
            }
            Some(function) => real.symbols().address(function),
        }
    };
    // SAFETY: each address is one of `real`'s table or a function below of the same type.
    unsafe { Driver::from_resolver(&mut resolve, &LoadOptions::new()) }.expect("the same table")
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" fn record(_: CUevent, _: CUstream) -> CUresult {
    DEPTH.set(depth());
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn elapsed(milliseconds: *mut f32, _: CUevent, _: CUevent) -> CUresult {
    DEPTH.set(depth());
    // SAFETY: a place for the number.
    unsafe { milliseconds.write(0.0) };
    CUresult::CUDA_SUCCESS
}

/// How many functions are on the stack. The numbered lines of a trace are counted, which are there
/// without symbols too.
fn depth() -> usize {
    let trace = format!("{:#}", Backtrace::force_capture());
    let numbered = |line: &&str| {
        line.trim_start().split_once(": ").is_some_and(|(at, _)| at.parse::<u32>().is_ok())
    };
    trace.lines().filter(numbered).count()
}

/// The depth at which a record calls the driver, and that of asking for the time.
#[inline(never)]
fn depths(event: &Event, stream: &Stream) -> [usize; 2] {
    event.record(stream).expect("it succeeds");
    let record = DEPTH.take();
    assert_eq!(event.elapsed_ms(event), Ok(0.0));
    [record, DEPTH.take()]
}
