//! Functions that stand in front of the driver's, of the same types, and tell an observer of each call.
//!
//! A C function pointer carries no data, so a trampoline knows its entry point and its slot by its type.

use core::ffi::c_void;
use std::sync::OnceLock;
use std::time::Instant;

use super::{CUresult, Function, Symbols};

/// How many tables can be observed in one process.
pub(crate) const SLOTS: usize = 4;

/// What the trampolines of one slot call, and whom they tell: entry point, arguments, result, start.
pub(crate) struct Target {
    pub(crate) symbols: &'static Symbols,
    pub(crate) tell: Box<Tell>,
}

pub(crate) type Tell = dyn Fn(Function, &[u64], CUresult, Instant) + Send + Sync;

pub(crate) static TARGETS: [OnceLock<Target>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// A function type that a trampoline can be made for.
pub(crate) trait Observable {
    /// The address of the trampoline for the entry point of this index in [`Function`]'s list, in this slot.
    fn trampoline<const FUNCTION: usize, const SLOT: usize>() -> *mut c_void;
}

macro_rules! observable {
    ($($argument:ident: $type:ident),*) => {
        impl<$($type: Copy),*> Observable for unsafe extern "C" fn($($type),*) -> CUresult {
            fn trampoline<const FUNCTION: usize, const SLOT: usize>() -> *mut c_void {
                unsafe extern "C" fn observed<const FUNCTION: usize, const SLOT: usize, $($type: Copy),*>(
                    $($argument: $type),*
                ) -> CUresult {
                    let target = TARGETS.get(SLOT).and_then(OnceLock::get);
                    let function = super::ENTRY_POINTS.get(FUNCTION).map(|entry| entry.function);
                    let (Some(target), Some(function)) = (target, function) else {
                        // Nobody has this address before the slot is filled.
                        return CUresult::CUDA_ERROR_UNKNOWN;
                    };
                    // SAFETY: the table's address for this entry point, whose type this is: `Symbols::trampoline` names
                    // both in one line of the list. It is not NULL, or this trampoline would not stand in for it.
                    let real = unsafe {
                        core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> CUresult>(
                            target.symbols.address(function),
                        )
                    };
                    let started = Instant::now();
                    // SAFETY: the caller's arguments, passed on.
                    let result = unsafe { real($($argument),*) };
                    (target.tell)(function, &[$(word(&$argument)),*], result, started);
                    result
                }
                observed::<FUNCTION, SLOT, $($type),*> as unsafe extern "C" fn($($type),*) -> CUresult as *mut c_void
            }
        }
    };
}

observable!();
observable!(a: A);
observable!(a: A, b: B);
observable!(a: A, b: B, c: C);
observable!(a: A, b: B, c: C, d: D);
observable!(a: A, b: B, c: C, d: D, e: E);
observable!(a: A, b: B, c: C, d: D, e: E, f: F);
observable!(a: A, b: B, c: C, d: D, e: E, f: F, g: G);

/// The argument as a number: what it holds, or of the 64 bytes of an interprocess handle the first eight.
fn word<T: Copy>(argument: &T) -> u64 {
    let mut word = [0; 8];
    let length = size_of::<T>().min(word.len());
    // SAFETY: `length` bytes are within both; an argument is an integer, a pointer or the handle, which have no padding.
    unsafe { core::ptr::copy_nonoverlapping(core::ptr::from_ref(argument).cast::<u8>(), word.as_mut_ptr(), length) };
    u64::from_le_bytes(word)
}
