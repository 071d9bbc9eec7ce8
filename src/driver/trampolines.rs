//! Functions of the same types as the driver's, which call the driver's and then an observer.
//!
//! A C function pointer carries no data, so a trampoline has its entry point and its slot in its
//! type.

use core::any::TypeId;
use core::ffi::c_void;
use core::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Instant;

use crate::sys::for_each_entry_point;
use crate::sys::*;

/// The number of tables that can be observed in one process.
pub(crate) const SLOTS: usize = 16;
const _: () = assert!(SLOTS == 16, "each slot has an arm in `observable`");

/// The table and the observer of the trampolines of one slot. A slot has one table forever:
/// objects may still hold the addresses of its trampolines, and their calls must reach the driver
/// that they came from.
pub(crate) struct Target {
    pub(crate) symbols: &'static Symbols,
    pub(crate) notify: fn(usize, &Returned<'_>),
}

/// A call that has returned.
pub(crate) struct Returned<'a> {
    pub(crate) function: Function,
    pub(crate) arguments: &'a [u64],
    pub(crate) result: CUresult,
    pub(crate) created: Option<u64>,
    pub(crate) started: Instant,
}

pub(crate) static TARGETS: [OnceLock<Target>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// A function type for which a trampoline can be made.
#[diagnostic::on_unimplemented(
    message = "no trampoline takes the arguments of `{Self}`",
    note = "src/driver/trampolines.rs has a line `observable!(...);` for each number of arguments: \
        add one"
)]
pub(crate) trait Observable {
    /// The address of the trampoline for the entry point of this index in [`Function`]'s list, in
    /// this slot.
    fn trampoline<const FUNCTION: usize>(slot: usize) -> *mut c_void;

    /// Whether an argument points to a place for a handle.
    #[cfg(test)]
    fn has_place() -> bool;
}

macro_rules! observable {
    ($($argument:ident: $type:ident),*) => {
        impl<$($type: Copy + 'static),*> Observable for unsafe extern "C" fn($($type),*)
            -> CUresult {
            fn trampoline<const FUNCTION: usize>(slot: usize) -> *mut c_void {
                // One copy exists for each entry point and slot, so the work is in `observe`.
                unsafe extern "C" fn observed<const FUNCTION: usize, const SLOT: usize,
                $($type: Copy + 'static),*>(
                    $($argument: $type),*
                ) -> CUresult {
                    // SAFETY: the caller's arguments, passed on; `trampoline` takes the entry point
                    // and its type from one line of the list.
                    unsafe { observe(FUNCTION, SLOT, $($argument),*) }
                }

                /// # Safety
                ///
                /// The duties of the entry point with this index, whose type must be this one.
                #[inline(never)]
                #[allow(clippy::too_many_arguments, reason = "they are the entry point's")]
                unsafe fn observe<$($type: Copy + 'static),*>(
                    index: usize, slot: usize, $($argument: $type),*
                ) -> CUresult {
                    let target = TARGETS.get(slot).and_then(OnceLock::get);
                    let (Some(target), Some(entry)) = (target, ENTRY_POINTS.get(index)) else {
                        // This cannot happen: `observe` fills a slot before it makes a table with
                        // its trampolines, every caller has the address from that table, and `get`
                        // acquires.
                        return CUresult::CUDA_ERROR_UNKNOWN;
                    };
                    let function = entry.function;
                    // SAFETY: the table's address for this entry point, whose type this is, as the
                    // caller guarantees. It is not NULL: only existing entry points get a
                    // trampoline.
                    let real = unsafe {
                        core::mem::transmute::<*mut c_void,
                        unsafe extern "C" fn($($type),*) -> CUresult>(
                            target.symbols.address(function),
                        )
                    };
                    let started = Instant::now();
                    // SAFETY: the caller's arguments, passed on.
                    let result = unsafe { real($($argument),*) };
                    let mut created = None;
                    if entry.creates && result == CUresult::CUDA_SUCCESS {
                        let places: &[Option<*const usize>] = &[$(place(&$argument)),*];
                        let place = places.iter().flatten().next().filter(|place| !place.is_null());
                        // SAFETY: a call that creates has succeeded, so the driver has written a
                        // handle there.
                        created = place.map(|place| unsafe { **place } as u64);
                    }
                    let arguments = &[$(word(&$argument)),*];
                    (target.notify)(slot, &Returned { function, arguments, result, created,
                        started });
                    result
                }
                // The match is here and not in the list of entry points, where it would have about
                // two thousand lines.
                let trampoline: unsafe extern "C" fn($($type),*) -> CUresult = match slot {
                    0 => observed::<FUNCTION, 0, $($type),*>,
                    1 => observed::<FUNCTION, 1, $($type),*>,
                    2 => observed::<FUNCTION, 2, $($type),*>,
                    3 => observed::<FUNCTION, 3, $($type),*>,
                    4 => observed::<FUNCTION, 4, $($type),*>,
                    5 => observed::<FUNCTION, 5, $($type),*>,
                    6 => observed::<FUNCTION, 6, $($type),*>,
                    7 => observed::<FUNCTION, 7, $($type),*>,
                    8 => observed::<FUNCTION, 8, $($type),*>,
                    9 => observed::<FUNCTION, 9, $($type),*>,
                    10 => observed::<FUNCTION, 10, $($type),*>,
                    11 => observed::<FUNCTION, 11, $($type),*>,
                    12 => observed::<FUNCTION, 12, $($type),*>,
                    13 => observed::<FUNCTION, 13, $($type),*>,
                    14 => observed::<FUNCTION, 14, $($type),*>,
                    15 => observed::<FUNCTION, 15, $($type),*>,
                    _ => return null_mut(),
                };
                trampoline as *mut c_void
            }

            #[cfg(test)]
            fn has_place() -> bool {
                let places: &[bool] = &[$(is_place::<$type>()),*];
                places.contains(&true)
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

/// The argument as a number: its value, or the first eight of the 64 bytes of an interprocess
/// handle.
fn word<T: Copy>(argument: &T) -> u64 {
    let mut word = [0; 8];
    let length = size_of::<T>().min(word.len());
    // SAFETY: `length` bytes are within both; an argument is an integer, a pointer or the handle,
    // which have no padding.
    unsafe {
        core::ptr::copy_nonoverlapping(
            core::ptr::from_ref(argument).cast::<u8>(),
            word.as_mut_ptr(),
            length,
        )
    };
    u64::from_le_bytes(word)
}

/// The trampolines of `slot` for this table. The slot must be filled with this table.
pub(crate) fn observed(symbols: &Symbols, slot: usize) -> Symbols {
    let mut trampoline = |entry: &EntryPoint| {
        if symbols.address(entry.function).is_null() {
            null_mut()
        } else {
            trampoline(entry.function, slot)
        }
    };
    // SAFETY: a trampoline has the type of its entry point, and is a function of this program.
    unsafe { Symbols::resolve(&mut trampoline) }.unwrap_or(*symbols)
}

macro_rules! trampolines {
    ($($page:ident { $(
        $need:ident $function:ident $(($header:ident))? $typedef:ident $($twin:ident)?
            $(, $creates:ident)?;
    )* })*) => {
        fn trampoline(function: Function, slot: usize) -> *mut c_void {
            match function {
                $($(Function::$function => {
                    type Pointer = <$typedef as EntryPointType>::Pointer;
                    const INDEX: usize = Function::$function.place();
                    Pointer::trampoline::<INDEX>(slot)
                })*)*
                _ => null_mut(),
            }
        }

        /// Whether an argument points to a place for a handle.
        #[cfg(test)]
        fn has_place(function: Function) -> bool {
            match function {
                $($(Function::$function
                    => <<$typedef as EntryPointType>::Pointer as Observable>::has_place(),)*)*
                _ => false,
            }
        }
    };
}

for_each_entry_point!(trampolines);

macro_rules! handles {
    ($($handle:ident)*) => {
        /// Whether an argument of this type points to a place for a handle.
        fn is_place<T: 'static>() -> bool {
            [$(TypeId::of::<*mut $handle>()),*].contains(&TypeId::of::<T>())
        }

        #[cfg(test)]
        const HANDLES: &[&str] = &[$(stringify!($handle)),*];
    };
}

// The handles of wrapper.h.
handles! {
    CUasyncCallbackHandle CUcheckpointOperationHandle CUcontext CUcoredumpCallbackHandle CUevent
    CUexternalMemory CUexternalSemaphore CUgraph CUgraphExec CUgraphNode CUgreenCtx
    CUlogsCallbackHandle CUstream
}

/// The place to which an argument points, if it is a place for a handle.
fn place<T: Copy + 'static>(argument: &T) -> Option<*const usize> {
    // SAFETY: the argument is a pointer to a handle, which is a pointer.
    is_place::<T>().then(|| unsafe { core::mem::transmute_copy::<T, *const usize>(argument) })
}

#[cfg(test)]
mod tests {
    use super::ENTRY_POINTS;

    /// The list of entry points marks the calls that create, from the text of `wrapper.h`. The types
    /// must agree: such a call has a place for a handle, and does not merely look a handle up, pop
    /// one, or take a list.
    #[test]
    fn the_list_marks_what_creates() {
        for entry in ENTRY_POINTS {
            let looks_up = ["Get", "Pop", "Update"].iter().any(|part| entry.base.contains(part));
            let expected = super::has_place(entry.function) && !looks_up;
            assert_eq!(entry.creates, expected, "{}", entry.function);
        }
        assert!(ENTRY_POINTS.iter().any(|entry| entry.creates));
    }

    #[test]
    fn every_handle_type_is_listed() {
        let header = include_str!("../../wrapper.h");
        let mut found = 0;
        for (at, line) in header.lines().enumerate() {
            let Some((_, handle)) =
                line.split_once("_st *").filter(|(start, _)| start.starts_with("typedef struct"))
            else {
                continue;
            };
            let handle = handle.trim_end_matches(';');
            // The description of a green context is not an object: no call ends it.
            let is_listed = super::HANDLES.contains(&handle) || handle == "CUdevResourceDesc";
            assert!(
                is_listed,
                "wrapper.h:{}: add {handle} to `handles!` in src/driver/trampolines.rs",
                at + 1
            );
            found += 1;
        }
        assert_eq!(found, super::HANDLES.len() + 1);
    }
}
