//! The stand-in for `libcuda.so.1`: every function that the driver exports, each a jump to the real
//! function or to the hook in front of it.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::collections::HashMap;
use std::ffi::CString;
use std::path::PathBuf;

use cuda_order_check_preload::{
    Settings, VARIABLE, before_exit, count_by, exported, faults, find, for_each_name, install, open, summary,
    target, variable, watch_forks, watch_host, watch_process, whole,
};

use crate::{calls, say};

/// A function of the driver.
#[repr(C)]
struct Slot {
    /// Where it leads. From the begin on: constructors of other libraries may come before this one's.
    target: AtomicPtr<c_void>,
    /// How often it was called.
    count: AtomicU64,
    /// Whether it leads to a hook.
    hooked: AtomicBool,
}

macro_rules! trampolines {
    ($($name:ident $($version:literal)?),*) => {
        #[allow(non_upper_case_globals)]
        mod slots {
            use super::{AtomicBool, AtomicPtr, AtomicU64, Slot, c_void, first_call};
            $(pub(super) static $name: Slot = Slot {
                target: AtomicPtr::new(first_call as *const () as *mut c_void),
                count: AtomicU64::new(0),
                hooked: AtomicBool::new(false),
            };)*
        }

        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                core::arch::naked_asm!(
                    // No argument is in r11, nor in the flags.
                    "lea r11, [rip + {slot}]",
                    "lock inc qword ptr [r11 + 8]",
                    "jmp qword ptr [r11]",
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
    // `CUDA_ERROR_NOT_SUPPORTED`: programs treat the function as one of a newer driver.
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
    cuda_order_check_engine::exit::leave();
}

/// The process ends by `quick_exit`, which leaves out the handlers of the exit.
extern "C" fn at_quick_exit() {
    unsafe extern "C" {
        fn quick_exit(status: c_int) -> !;
    }
    // It may be called by a handler of a signal, as `_exit` may.
    before_exit();
    let status = cuda_order_check_engine::exit::status(-1);
    if status >= 0 {
        // SAFETY: the C library goes on with the handlers that are left.
        unsafe { quick_exit(status) };
    }
}

extern "C" fn at_load() {
    if is_program() {
        return;
    }
    watch_forks();
    // By LD_PRELOAD it is in programs that have nothing to do with CUDA as well.
    match is_preloaded() {
        true => calls::look_up(),
        false => _ = started(),
    }
}

/// Whether `LD_PRELOAD` names this file.
fn is_preloaded() -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |path: &std::path::Path| {
        std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
    };
    let all = variable("LD_PRELOAD").unwrap_or_default();
    let own = file_of(missing as *const c_void).and_then(|(_, path)| number(&path));
    own.is_some() && all.to_string_lossy().split([':', ' ']).any(|path| number(path.as_ref()) == own)
}

/// The start has not come to its end, or it has, and the checker is in front of the driver or not.
const FRESH: u8 = 0;
const GOOD: u8 = 1;
const BAD: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(FRESH);

thread_local! {
    /// Whether this thread is in the start.
    static STARTS: Cell<bool> = const { Cell::new(false) };
}

/// Starts, once. Whether that is done, and the checker is in front of the driver.
///
/// In a constructor a thread has the loader's lock, and it may come here. So no lock is held while
/// the loader is asked: each thread that comes before the end asks by itself, with the same result.
fn started() -> bool {
    // The start opens the driver's library, and that may look for itself.
    if STATE.load(Ordering::Acquire) == FRESH && !STARTS.replace(true) {
        let found = ask();
        whole(|| {
            if STATE.load(Ordering::Acquire) == FRESH {
                let good = found.map(start).map_err(without).is_ok();
                STATE.store(if good { GOOD } else { BAD }, Ordering::Release);
            }
        });
        STARTS.set(false);
    }
    STATE.load(Ordering::Acquire) == GOOD
}

/// Where a function leads that is called before the start.
extern "C" fn leads(slot: &Slot) -> *mut c_void {
    started();
    match slot.target.load(Ordering::Acquire) {
        // The start has called it.
        target if target == first_call as *const () as *mut c_void => missing as *mut c_void,
        target => target,
    }
}

/// A function is called before the start: r11 has its slot.
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    core::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 192",
        "and rsp, -16",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "movups [rsp + 64], xmm0",
        "movups [rsp + 80], xmm1",
        "movups [rsp + 96], xmm2",
        "movups [rsp + 112], xmm3",
        "movups [rsp + 128], xmm4",
        "movups [rsp + 144], xmm5",
        "movups [rsp + 160], xmm6",
        "movups [rsp + 176], xmm7",
        "mov rdi, r11",
        "call {leads}",
        "mov r11, rax",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "movups xmm0, [rsp + 64]",
        "movups xmm1, [rsp + 80]",
        "movups xmm2, [rsp + 96]",
        "movups xmm3, [rsp + 112]",
        "movups xmm4, [rsp + 128]",
        "movups xmm5, [rsp + 144]",
        "movups xmm6, [rsp + 160]",
        "movups xmm7, [rsp + 176]",
        "leave",
        "jmp r11",
        leads = sym leads,
    )
}

/// What the loader is asked for in the place of what the program asks for.
#[repr(C)]
struct Opens {
    loader: *mut c_void,
    name: *const c_char,
}

/// The program opens a library. If it is the driver's, what it looks up there must be right from
/// the begin, as functions that the driver lacks are hidden; and a full path is one to this file.
extern "C" fn opens(name: *const c_char, flags: c_int) -> Opens {
    if flags & libc::RTLD_DEEPBIND != 0 {
        faults::go_around();
    }
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    if NEXT.load(Ordering::Relaxed).is_null() {
        // SAFETY: a C string.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) };
        NEXT.store(next, Ordering::Relaxed);
    }
    let loader = NEXT.load(Ordering::Relaxed);
    // SAFETY: NULL, or the program's C string.
    let path = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes());
    let file = path.and_then(|path| path.rsplit(|sign| *sign == b'/').next());
    // Some open it by its version, as `libcuda.so.580.65.06`.
    let version = file.and_then(|file| file.strip_prefix(b"libcuda.so"));
    let is_number = |sign: &u8| sign.is_ascii_digit() || *sign == b'.';
    let is_driver = version.is_some_and(|version| version.iter().all(is_number));
    let name = if is_driver && !is_program() && started() { c"libcuda.so.1".as_ptr() } else { name };
    Opens { loader, name }
}

/// In front of the loader's function, which must see the program's return address: where a library
/// is looked for depends on who asks.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {opens}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "mov rdi, rdx",
        "jmp rax",
        opens = sym opens,
    )
}

/// Each export leads to a function. Those without one are hidden.
fn fill(
    function: impl Fn(&CStr) -> *mut c_void,
    each: impl Fn(&CStr, *mut c_void, &Slot, unsafe extern "C" fn()),
) {
    let mut lacks = Vec::new();
    let mut targets = Vec::new();
    for (name, slot, own) in EXPORTS {
        let Ok(text) = CString::new(*name) else { continue };
        match function(&text) {
            function if function.is_null() => {
                lacks.push(*name);
                targets.push((slot, missing as *mut c_void));
            }
            function => {
                each(&text, function, slot, *own);
                targets.push((slot, function));
            }
        }
    }
    cuda_order_check_engine::hide::hide(&lacks);
    // Other threads call them from here on.
    for (slot, target) in targets {
        slot.target.store(target, Ordering::Release);
    }
}

/// What only the loader knows, and what depends on it.
struct Found {
    settings: Settings,
    /// What is wrong with the settings.
    wrong: Option<String>,
    own: PathBuf,
    /// The real functions, by their names.
    real: HashMap<CString, *mut c_void>,
    /// Why the class `host` cannot work.
    behind: Option<&'static str>,
}

impl Found {
    fn resolve(&self, name: &CStr) -> *mut c_void {
        let real = self.real.get(name);
        debug_assert!(real.is_some(), "{name:?} was not looked up");
        real.copied().unwrap_or(core::ptr::null_mut())
    }
}

/// Asks the loader. Several threads may do so at once.
fn ask() -> Result<Found, String> {
    // First, and also where nothing will be checked: a message goes through the functions for masks
    // of signals, which would look up the C library's under the lock of the start.
    faults::look_up();
    let text = variable(VARIABLE).and_then(|text| text.into_string().ok()).unwrap_or_default();
    // A child may not find the files that its parent found.
    let (settings, wrong) = match Settings::from_text(&text) {
        Ok(settings) => (settings, None),
        Err(what) => (Settings::of_library(&text), Some(what)),
    };
    let (_, own) = file_of(missing as *const c_void).ok_or("the loader does not know this file")?;
    let path = find(&settings)?;
    let resolve = open(&path).ok_or_else(|| format!("{} cannot be opened", path.display()))?;
    let exports = EXPORTS.iter().filter_map(|(name, ..)| CString::new(*name).ok());
    let names = exports.chain([c"cuda_soft_driver_alias".to_owned()]);
    let real = names.map(|name| {
        let real = resolve(&name);
        (name, real)
    });
    let real = real.collect();
    let behind = calls::ready(|address| file_of(address).map(|(begin, _)| begin));
    Ok(Found { settings, wrong, own, real, behind })
}

/// As if there were no driver.
fn without(what: String) {
    say(&what);
    fill(|_| core::ptr::null_mut(), |_, _, _, _| ());
}

/// Puts the checker in front of the driver. The loader is not asked: others wait, and one of them
/// may have its lock.
fn start(found: Found) {
    let resolve = |name: &CStr| found.resolve(name);
    if let Some(what) = &found.wrong {
        say(&format!("{VARIABLE}: {what}. Nothing is checked in this process"));
        fill(resolve, |_, _, _, _| ());
        return;
    }
    count_by(counted);
    install(&resolve, &found.settings);
    if found.behind.is_none() {
        cuda_order_check_engine::trace::hook_writes();
    }
    let off = (!found.settings.checks_host()).then_some("the class `host` is off");
    watch_host(off.or(found.behind), &resolve);
    watch_process();
    fill(
        |name| target(name, &resolve),
        |name, function, slot, own| {
            let real = resolve(name);
            slot.hooked.store(function != real, Ordering::Relaxed);
            exported(real, own as *const c_void);
        },
    );
    cuda_order_check_engine::trace::leave_out(found.own);
    unsafe extern "C" {
        #[link_name = "at_quick_exit"]
        fn register_quick(handler: extern "C" fn()) -> c_int;
    }
    // SAFETY: the handlers are part of this library, which is linked as one that stays loaded.
    unsafe {
        libc::atexit(at_exit);
        register_quick(at_quick_exit);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
