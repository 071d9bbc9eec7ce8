//! The stand-in for `libcuda.so.1`: every function that the driver exports, each a jump to the real
//! function or to the hook in front of it.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::ffi::CString;
use std::path::PathBuf;

use cuda_order_check_preload::{
    Settings, VARIABLE, count_by, exported, find, for_each_name, install, open, summary, target,
    watch_host, watch_process,
};

use crate::{calls, hide};

/// A function of the driver.
#[repr(C)]
struct Slot {
    /// Where it leads.
    target: AtomicPtr<c_void>,
    /// How often it was called.
    count: AtomicU64,
    /// Whether it leads to a hook.
    hooked: AtomicBool,
}

macro_rules! trampolines {
    ($($name:ident)*) => {
        #[allow(non_upper_case_globals)]
        mod slots {
            use super::*;
            $(pub(super) static $name: Slot = Slot {
                target: AtomicPtr::new(core::ptr::null_mut()),
                count: AtomicU64::new(0),
                hooked: AtomicBool::new(false),
            };)*
        }

        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                core::arch::naked_asm!(
                    // No argument is in the flags.
                    "lock inc qword ptr [rip + {slot} + 8]",
                    "jmp qword ptr [rip + {slot}]",
                    slot = sym slots::$name,
                )
            }
        )*

        /// The names, and what is exported under each.
        static EXPORTS: &[(&str, &Slot, unsafe extern "C" fn())] =
            &[$((stringify!($name), &slots::$name, $name),)*];
    };
}

for_each_name!(trampolines);

/// A function that the real library lacks, and that the program has found all the same.
extern "C" fn missing() -> u32 {
    // CUDA_ERROR_NOT_SUPPORTED
    801
}

/// The begin and the path of the file with an address.
fn file_of(address: *const c_void) -> Option<(usize, PathBuf)> {
    use std::os::unix::ffi::OsStrExt;
    let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is only compared, and there is a place for the result.
    if unsafe { libc::dladdr(address, found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: the call has filled it; the name lasts as long as the file is loaded.
    let (begin, name) = unsafe {
        let found = found.assume_init();
        (found.dli_fbase.addr(), CStr::from_ptr(found.dli_fname))
    };
    Some((begin, PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()))))
}

/// Whether this code is part of the program itself: of the command, or of a test.
fn is_program() -> bool {
    // SAFETY: it has no preconditions.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    let program = file_of(core::ptr::without_provenance(headers)).map(|(begin, _)| begin);
    program.is_some() && program == file_of(missing as *const c_void).map(|(begin, _)| begin)
}

/// Gives the functions that are not hooked, and how often each was called.
fn counted(each: &mut dyn FnMut(&'static str, u64)) {
    for (name, slot, _) in EXPORTS {
        if !slot.hooked.load(Ordering::Relaxed) {
            each(name, slot.count.load(Ordering::Relaxed));
        }
    }
}

extern "C" fn at_exit() {
    summary();
    cuda_order_check::exit::leave();
}

extern "C" fn at_load() {
    if is_program() {
        return;
    }
    for (_, slot, _) in EXPORTS {
        slot.target.store(missing as *mut c_void, Ordering::Relaxed);
    }
    if let Err(what) = start() {
        eprintln!("cuda-order-check: {what}");
        // As if there were no driver.
        let names: Vec<_> = EXPORTS.iter().map(|(name, ..)| *name).collect();
        hide::hide(&names);
    }
}

fn start() -> Result<(), String> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let settings = Settings::from_text(&text).map_err(|what| format!("{VARIABLE}: {what}"))?;
    let (_, own) = file_of(missing as *const c_void).ok_or("the loader does not know this file")?;
    let path = find(&own, &settings).ok_or_else(|| {
        format!("there is no libcuda.so.1 here; {VARIABLE}=library=PATH names one elsewhere")
    })?;
    let resolve = open(&path).ok_or_else(|| format!("{} cannot be opened", path.display()))?;
    count_by(counted);
    install(&resolve, &settings);
    let base = |address| file_of(address).map(|(begin, _)| begin);
    let off = (!settings.checks_host()).then_some("the class `host` is off");
    watch_host(off.or_else(|| calls::ready(base)), &resolve);
    let mut lacks = Vec::new();
    for (name, slot, own) in EXPORTS {
        let Ok(text) = CString::new(*name) else { continue };
        match target(&text, &resolve) {
            function if function.is_null() => lacks.push(*name),
            function => {
                let real = resolve(&text);
                slot.target.store(function, Ordering::Relaxed);
                slot.hooked.store(function != real, Ordering::Relaxed);
                exported(real, *own as *const c_void);
            }
        }
    }
    hide::hide(&lacks);
    cuda_order_check::trace::leave_out(own);
    watch_process();
    // SAFETY: the handler is part of this library, which is linked as one that stays loaded.
    unsafe { libc::atexit(at_exit) };
    Ok(())
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
