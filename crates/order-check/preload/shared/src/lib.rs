//! The stand-in for `libcuda.so.1`: every function that the driver exports, each a jump to the real
//! function or to the hook in front of it.
//!
//! `CUDA_ORDER_CHECK_LIBRARY` names the real library, otherwise it is found as the loader does.
//! `CUDA_ORDER_CHECK_LOG` names a file for the findings, where `%p` is the number of the process.
//! `CUDA_ORDER_CHECK_TRACE` names a file for a line for each hooked call.
//! `CUDA_ORDER_CHECK_HOST=off` leaves the host's accesses to pinned memory unchecked.

#![allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::ffi::CString;
use std::path::PathBuf;

use cuda_order_check_preload::{
    NAMES, count_by, exported, find, install, open, summary, target, watch_host,
};

mod calls;
#[path = "../../../../soft-driver/shared/src/hide.rs"]
mod hide;

macro_rules! slots {
    ($count:literal) => {
        /// Where each name leads, in the order of the list.
        static SLOTS: [AtomicPtr<c_void>; $count] =
            [const { AtomicPtr::new(core::ptr::null_mut()) }; $count];

        /// How often each was called.
        static COUNTS: [AtomicU64; $count] = [const { AtomicU64::new(0) }; $count];

        /// Whether it leads to a hook.
        static HOOKED: [AtomicBool; $count] = [const { AtomicBool::new(false) }; $count];
    };
}

macro_rules! trampoline {
    ($name:ident $index:literal) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                // No argument is in the flags.
                "lock inc qword ptr [rip + {counts} + 8 * {index}]",
                "jmp qword ptr [rip + {slots} + 8 * {index}]",
                counts = sym COUNTS,
                slots = sym SLOTS,
                index = const $index,
            )
        }
    };
}

macro_rules! exports {
    ($($address:expr,)*) => {
        /// The addresses of the exports, in the order of the list.
        fn exports() -> impl Iterator<Item = *const c_void> {
            [$($address,)*].into_iter()
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/trampolines.rs"));

/// A function that the real library lacks, and that the program has found all the same.
extern "C" fn missing() -> u32 {
    // CUDA_ERROR_NOT_SUPPORTED
    801
}

/// The library that an address is in.
fn library(address: *const c_void) -> Option<libc::Dl_info> {
    let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address, and a place for the answer, which a success has filled.
    unsafe { (libc::dladdr(address, found.as_mut_ptr()) != 0).then(|| found.assume_init()) }
}

/// The path of this library.
fn own() -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let found = library(missing as *const c_void)?;
    // SAFETY: the name lasts as long as this library.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}

/// Gives the functions that are not hooked, and how often each was called.
fn counted(each: &mut dyn FnMut(&'static str, u64)) {
    for ((name, count), hooked) in NAMES.lines().zip(&COUNTS).zip(&HOOKED) {
        if !hooked.load(Ordering::Relaxed) {
            each(name, count.load(Ordering::Relaxed));
        }
    }
}

extern "C" fn at_exit() {
    summary();
}

extern "C" fn at_load() {
    let absent = missing as *mut c_void;
    SLOTS.iter().for_each(|slot| slot.store(absent, Ordering::Relaxed));
    let Some(path) = find(own().as_deref()) else {
        eprintln!("cuda-order-check: no libcuda.so.1; CUDA_ORDER_CHECK_LIBRARY can name it");
        return;
    };
    let Some(resolve) = open(&path) else {
        eprintln!("cuda-order-check: {} cannot be opened", path.display());
        return;
    };
    let log = std::env::var("CUDA_ORDER_CHECK_LOG").ok();
    let trace = std::env::var("CUDA_ORDER_CHECK_TRACE").ok();
    count_by(counted);
    install(&resolve, log.as_deref(), trace.as_deref());
    let not_asked = std::env::var("CUDA_ORDER_CHECK_HOST").is_ok_and(|value| value == "off");
    let base = |address| library(address).map(|of| of.dli_fbase.addr());
    let off = not_asked.then_some("CUDA_ORDER_CHECK_HOST=off").or_else(|| calls::ready(base));
    watch_host(off, &resolve);
    let mut lacks = Vec::new();
    let all = NAMES.lines().zip(&SLOTS).zip(&HOOKED).zip(exports());
    for (((name, slot), hooked), own) in all {
        let Ok(text) = CString::new(name) else { continue };
        match target(&text, &resolve) {
            function if function.is_null() => lacks.push(name),
            function => {
                let real = resolve(&text);
                slot.store(function, Ordering::Relaxed);
                hooked.store(function != real, Ordering::Relaxed);
                exported(real, own);
            }
        }
    }
    hide::hide(&lacks);
    // SAFETY: the handler is part of this library, which nothing unloads.
    unsafe { libc::atexit(at_exit) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
