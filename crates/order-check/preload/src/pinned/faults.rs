//! The handler of SIGSEGV, in front of the program's own.
//!
//! A fault in a protected page comes from an instruction that touches pinned memory. So the
//! interrupted thread is not within this library's changes of the tables, and not in an allocator.
//! The handler takes no lock and allocates nothing all the same.

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::OnceLock;

use cuda_order_check_engine::trace::print_python;

use super::accesses::{self, EarlyAccess, FRAMES};
use super::protection::{self, By, Fault};

/// What stands in the place of the default action of a signal that ends the process.
pub(crate) struct Ends {
    /// What is there instead of this action, if it is the default of such a signal.
    pub(crate) instead_of: fn(c_int, libc::sighandler_t) -> Option<libc::sigaction>,
    /// Whether this is that handler, which is the default for the program.
    pub(crate) is_own: fn(libc::sighandler_t) -> bool,
}

static ENDS: OnceLock<Ends> = OnceLock::new();

/// It is set before the first of these handlers is there.
pub(crate) fn ends_by(ends: Ends) {
    let _ = ENDS.set(ends);
}

fn instead_of(signal: c_int, handler: libc::sighandler_t) -> Option<libc::sigaction> {
    ENDS.get().and_then(|ends| (ends.instead_of)(signal, handler))
}

fn is_own(handler: libc::sighandler_t) -> bool {
    ENDS.get().is_some_and(|ends| (ends.is_own)(handler))
}

thread_local! {
    /// Whether this thread is in this library, or in the driver.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
    /// The last fault that no entry explains: its address, and how many entries were removed.
    static LAST: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// While it lives, faults of this thread are not the program's.
pub(crate) struct Inside;

impl Inside {
    pub(crate) fn new() -> Self {
        let _ = INSIDE.try_with(|inside| inside.set(inside.get() + 1));
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(inside.get().saturating_sub(1)));
    }
}

pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(|inside| inside.get() > 0).unwrap_or(true)
}

type Register = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type Mask = unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;

/// The C library's functions, or 0.
static REGISTER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static MASK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// Whether the handler is the process's.
static INSTALLED: AtomicBool = AtomicBool::new(false);

fn next(cache: &AtomicPtr<c_void>, name: &core::ffi::CStr) -> *mut c_void {
    let found = cache.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    cache.store(found, Ordering::Relaxed);
    found
}

/// Looks the functions up, so that no later call does.
pub fn look_up() {
    next(&REGISTER, c"sigaction");
    next(&MASK, c"pthread_sigmask");
    // The loader looks up what the unwinder calls.
    let mut access = EarlyAccess::NONE;
    take_stack(&mut access, 0);
}

/// The C library's `sigaction`.
pub(crate) fn register(
    signal: c_int,
    action: Option<&libc::sigaction>,
    old: *mut libc::sigaction,
) -> c_int {
    let real = next(&REGISTER, c"sigaction");
    let action = action.map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the C library's function, with an action that lives, and a place for the old one or
    // NULL.
    unsafe { core::mem::transmute::<*mut c_void, Register>(real)(signal, action, old) }
}

/// The program's action for SIGSEGV: the last of these, which nobody changes while a signal may be
/// delivered.
struct Actions([UnsafeCell<MaybeUninit<libc::sigaction>>; 32]);

// SAFETY: a place is written by one thread, and read only after `CURRENT` names it.
unsafe impl Sync for Actions {}

static ACTIONS: Actions = Actions([const { UnsafeCell::new(MaybeUninit::uninit()) }; 32]);
static CURRENT: AtomicUsize = AtomicUsize::new(usize::MAX);
static TAKEN: AtomicUsize = AtomicUsize::new(0);

fn publish(action: libc::sigaction) {
    let index = TAKEN.fetch_add(1, Ordering::Relaxed) % ACTIONS.0.len();
    if let Some(place) = ACTIONS.0.get(index) {
        // SAFETY: a signal that reads this place has been delivered 31 changes ago.
        unsafe { (*place.get()).write(action) };
        CURRENT.store(index, Ordering::Release);
    }
}

pub(crate) fn default_action() -> libc::sigaction {
    // SAFETY: all zero is SIG_DFL without flags and with an empty mask.
    unsafe { core::mem::zeroed() }
}

/// What the program has asked for.
fn program_action() -> libc::sigaction {
    match ACTIONS.0.get(CURRENT.load(Ordering::Acquire)) {
        // SAFETY: it was written before `CURRENT` named it.
        Some(place) => unsafe { (*place.get()).assume_init_read() },
        None => default_action(),
    }
}

/// This library's handler, with the flags and the mask of the program's action, so that the system
/// calls it as it would call the program's.
fn own_action(theirs: &libc::sigaction) -> libc::sigaction {
    let mut own = *theirs;
    own.sa_sigaction = on_fault as *const () as usize;
    if matches!(theirs.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        own.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: a set of signals.
        unsafe { libc::sigemptyset(&mut own.sa_mask) };
    }
    own.sa_flags &= !libc::SA_RESETHAND;
    own.sa_flags |= libc::SA_SIGINFO;
    own
}

/// Puts the handler in front of the program's. `false` if that is not possible, or if the program
/// has since replaced it by a system call of its own.
pub(crate) fn install() -> bool {
    if INSTALLED.load(Ordering::Acquire) {
        return is_ours();
    }
    let mut theirs = default_action();
    if register(libc::SIGSEGV, None, &mut theirs) != 0 {
        return false;
    }
    publish(theirs);
    if register(libc::SIGSEGV, Some(&own_action(&theirs)), core::ptr::null_mut()) != 0 {
        return false;
    }
    INSTALLED.store(true, Ordering::Release);
    is_ours()
}

/// The system's form of an action.
#[repr(C)]
struct Kernel {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

fn is_ours() -> bool {
    let mut now = Kernel { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let none: *const Kernel = core::ptr::null();
    // SAFETY: a place for the action, with the system's size of a set of signals.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, libc::SIGSEGV, none, &raw mut now, size_of::<u64>());
    }
    now.handler == on_fault as *const () as usize
}

/// `sigaction` of the program: for SIGSEGV it is kept, and the handler of this library stays. Handlers
/// of other signals do not block SIGSEGV, as a fault that is blocked ends the process. Where this
/// library has a handler for the end by a signal, the program has the default.
///
/// # Safety
///
/// As for `sigaction`.
pub unsafe fn sigaction(
    signal: c_int,
    action: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: NULL or the program's action.
    let action = unsafe { action.as_ref() }.copied();
    if signal != libc::SIGSEGV || !INSTALLED.load(Ordering::Acquire) {
        let mut action = action;
        if let Some(action) = action.as_mut().filter(|_| super::may_be_on()) {
            // SAFETY: a set of signals.
            unsafe { libc::sigdelset(&mut action.sa_mask, libc::SIGSEGV) };
        }
        let own = action.and_then(|action| instead_of(signal, action.sa_sigaction));
        let code = register(signal, own.or(action).as_ref(), old);
        // SAFETY: NULL, or a place that a success has filled.
        if let (0, Some(old)) = (code, unsafe { old.as_mut() })
            && is_own(old.sa_sigaction)
        {
            *old = default_action();
        }
        return code;
    }
    let before = program_action();
    if let Some(action) = action {
        let code = register(signal, Some(&own_action(&action)), core::ptr::null_mut());
        if code != 0 {
            return code;
        }
        publish(action);
    }
    // SAFETY: NULL or a place for the old action.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = before;
    }
    0
}

/// Libraries of the program have the C library's own functions, and not the wrappers.
static AROUND: AtomicBool = AtomicBool::new(false);

/// The program opens a library that finds the C library's functions before the wrappers: its system
/// calls would fail in protected pages.
pub fn go_around() {
    AROUND.store(true, Ordering::Relaxed);
    protection::lift_all();
}

pub(crate) fn is_around() -> bool {
    AROUND.load(Ordering::Relaxed)
}

/// `signal` of the program. Returns the old handler or `SIG_ERR`. `real` is the C library's
/// function, which knows what `siginterrupt` has set; only what must be another action is set with
/// `flags`.
///
/// # Safety
///
/// As for `signal`.
pub unsafe fn signal(
    signal: c_int,
    handler: usize,
    flags: c_int,
    real: impl FnOnce() -> usize,
) -> usize {
    let is_fault = signal == libc::SIGSEGV && INSTALLED.load(Ordering::Acquire);
    if !is_fault && instead_of(signal, handler).is_none() {
        let old = real();
        return if is_own(old) { libc::SIG_DFL } else { old };
    }
    let (action, mut old) = (action_of(signal, handler, flags), default_action());
    // SAFETY: as the caller says.
    if unsafe { sigaction(signal, &action, &mut old) } != 0 {
        return libc::SIG_ERR;
    }
    old.sa_sigaction
}

/// The action that the C library sets for a handler by `signal`, with these flags.
fn action_of(signal: c_int, handler: usize, flags: c_int) -> libc::sigaction {
    let mut action = default_action();
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    if flags & libc::SA_NODEFER == 0 {
        // SAFETY: a set of signals.
        unsafe { libc::sigaddset(&mut action.sa_mask, signal) };
    }
    action
}

/// `pthread_sigmask` of the program: SIGSEGV stays unblocked, as a fault that is blocked ends the
/// process.
///
/// # Safety
///
/// As for `pthread_sigmask`.
pub unsafe fn mask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    let real = next(&MASK, c"pthread_sigmask");
    // SAFETY: the C library's function.
    let real = unsafe { core::mem::transmute::<*mut c_void, Mask>(real) };
    // SAFETY: NULL or the program's set, and its place for the old one.
    unsafe {
        let blocks = how != libc::SIG_UNBLOCK && super::may_be_on();
        let Some(mut own) = set.as_ref().copied().filter(|_| blocks) else {
            return real(how, set, old);
        };
        libc::sigdelset(&mut own, libc::SIGSEGV);
        real(how, &own, old)
    }
}

/// The parent may have blocked SIGSEGV.
pub(crate) fn unblock() {
    let real = next(&MASK, c"pthread_sigmask");
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the C library's function, and a set that is made here.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGSEGV);
        let real = core::mem::transmute::<*mut c_void, Mask>(real);
        real(libc::SIG_UNBLOCK, set.as_ptr(), core::ptr::null_mut());
    }
}

const SEGV_ACCERR: c_int = 2;
/// The bit of the page fault's error code that says that it is a write.
const WRITES: i64 = 2;

unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: what the system gives to a handler.
    let goes_on = unsafe { is_explained(info, context.cast()) };
    // SAFETY: as above.
    unsafe { *errno = before };
    if !goes_on {
        // SAFETY: the handler's own arguments.
        unsafe { chain(signal, info, context) };
    }
}

/// Whether the interrupted instruction is to be tried again.
///
/// # Safety
///
/// The arguments of a handler of SIGSEGV.
unsafe fn is_explained(info: *const libc::siginfo_t, context: *const libc::ucontext_t) -> bool {
    // SAFETY: as the caller says.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if code != SEGV_ACCERR {
        return false;
    }
    // SAFETY: as the caller says.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    let register = |index: c_int| registers.get(index as usize).copied().unwrap_or_default();
    let writes = register(libc::REG_ERR) & WRITES != 0;
    let bytes = [address, address + 1];
    let by = if is_inside() { By::Library } else { By::Program };
    match protection::lift(bytes, writes, by) {
        Fault::Other => {
            // Another thread may have lifted the page meanwhile. Then the next try succeeds.
            let now = (address, protection::removed());
            LAST.try_with(|last| last.replace(now) != now).unwrap_or(false)
        }
        Fault::Beside => true,
        Fault::Early => {
            let instruction = register(libc::REG_RIP) as usize;
            note(bytes, writes, if writes { "a store" } else { "a load" }, instruction);
            true
        }
    }
}

/// Notes an access of the calling thread. `instruction` is where it is; 0 for the caller.
pub(crate) fn note(bytes: [usize; 2], writes: bool, name: &'static str, instruction: usize) {
    accesses::note(|access| {
        (access.bytes, access.writes, access.name) = (bytes, writes, name);
        access.thread = crate::call::thread();
        access.frames = [0; FRAMES];
        if WALKS.fetch_add(1, Ordering::Relaxed) < MOST_WALKS {
            take_stack(access, instruction);
        } else if let Some(first) = access.frames.first_mut() {
            *first = instruction;
        }
    });
}

/// How many stacks are taken: a program may be wrong in each round of a long loop.
const MOST_WALKS: usize = 1000;
static WALKS: AtomicUsize = AtomicUsize::new(0);

struct Walk<'a> {
    access: &'a mut EarlyAccess,
    count: usize,
    /// Frames before this one are the handler's.
    from: usize,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

unsafe extern "C" fn walk(context: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: the data that `take_frames` gives.
    let walk = unsafe { &mut *data.cast::<Walk<'_>>() };
    // SAFETY: the unwinder's own context.
    let at = unsafe { _Unwind_GetIP(context) };
    if walk.count == 0 && walk.from != 0 && walk.from != at {
        return 0;
    }
    let Some(place) = walk.access.frames.get_mut(walk.count) else { return 5 };
    (*place, walk.count) = (at, walk.count + 1);
    0
}

/// Stacks for the walk: that of a handler may have a few KiB only.
struct Stack {
    taken: AtomicBool,
    bytes: UnsafeCell<[u128; 4096]>,
}

// SAFETY: who has set `taken` has the bytes alone.
unsafe impl Sync for Stack {}

static STACKS: [Stack; 4] =
    [const { Stack { taken: AtomicBool::new(false), bytes: UnsafeCell::new([0; 4096]) } }; 4];

/// Calls `function` with `data` on the stack that ends at `end`.
///
/// # Safety
///
/// The stack must be free, and its end aligned to 16 bytes.
#[unsafe(naked)]
unsafe extern "C" fn call_on(
    end: *mut u128,
    function: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        // The walk goes on with the caller, on its stack.
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

unsafe extern "C" fn walk_all(data: *mut c_void) {
    // SAFETY: the function and its data, which live until the call returns.
    unsafe { _Unwind_Backtrace(walk, data) };
    // SAFETY: a name, and flags of the call.
    let file = unsafe { libc::memfd_create(c"stack".as_ptr(), libc::MFD_CLOEXEC) };
    if file >= 0 && !print_python(file) {
        // SAFETY: it was created here, and nobody has it.
        unsafe { libc::close(file) };
    } else {
        // SAFETY: the data that `take_stack` gives.
        unsafe { (*data.cast::<Walk<'_>>()).access.python = file };
    }
}

fn take_stack(access: &mut EarlyAccess, from: usize) {
    let free = |stack: &&Stack| !stack.taken.swap(true, Ordering::Acquire);
    // Other threads take some microseconds.
    let stack = (0..1000).find_map(|_| {
        let found = STACKS.iter().find(free);
        if found.is_none() {
            // SAFETY: it has no preconditions.
            unsafe { libc::sched_yield() };
        }
        found
    });
    let mut walked = Walk { access, count: 0, from };
    if let Some(stack) = stack {
        // SAFETY: this thread has set `taken`; the function takes the data, which live until the
        // call returns.
        unsafe {
            let end = stack.bytes.get().cast::<u128>().add(4096);
            call_on(end, walk_all, (&raw mut walked).cast());
        }
        stack.taken.store(false, Ordering::Release);
    }
    if walked.count == 0
        && let Some(first) = access.frames.first_mut()
    {
        *first = from;
    }
}

/// The fault is none of this library's: what the system would do without it.
///
/// # Safety
///
/// The arguments of a handler.
unsafe fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let mut action = program_action();
    // SAFETY: as the caller says.
    let by_system = unsafe { (*info).si_code } > 0;
    match action.sa_sigaction {
        libc::SIG_IGN if !by_system => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The next fault, or the signal that is sent anew, ends the process.
            register(signal, Some(&default_action()), core::ptr::null_mut());
            if !by_system {
                // SAFETY: the signal as it came, to this thread.
                unsafe {
                    let thread = libc::syscall(libc::SYS_gettid);
                    let process = libc::getpid();
                    libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info);
                }
            }
        }
        handler => {
            // It may look at anything, and faults may be blocked while it runs.
            protection::lift_all();
            if action.sa_flags & libc::SA_RESETHAND != 0 {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags &= !libc::SA_RESETHAND;
                publish(action);
            }
            // SAFETY: the program's handler, of the type that its flags name.
            unsafe {
                if action.sa_flags & libc::SA_SIGINFO != 0 {
                    type Long = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
                    core::mem::transmute::<usize, Long>(handler)(signal, info, context);
                } else {
                    core::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(handler)(signal);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_int;
    use core::sync::atomic::Ordering;

    use super::{
        MOST_WALKS, SEGV_ACCERR, WALKS, accesses, action_of, is_explained, note, on_fault,
        own_action, protection,
    };
    use crate::pinned::protection::{PAGE, Use};

    /// Where the address of a fault is.
    const ADDRESS: usize = 16;

    /// An entry for a page that can be closed to stores and not be opened again, until it is removed.
    fn with_entry<R>(run: impl FnOnce(usize) -> R) -> R {
        let file = std::fs::File::open("/proc/self/exe").expect("Linux has it");
        let (file, read) = (std::os::fd::AsRawFd::as_raw_fd(&file), libc::PROT_READ);
        // SAFETY: a new mapping of a file, which nobody else has.
        unsafe {
            let page = libc::mmap(core::ptr::null_mut(), PAGE, read, libc::MAP_SHARED, file, 0);
            let at = page.expose_provenance();
            let used = Use { bytes: [at, at + 8], writes: false, rows: false };
            let entry = protection::add(used, [at, at + PAGE]).expect("there is place");
            let result = run(at);
            protection::remove(entry);
            libc::munmap(page, PAGE);
            result
        }
    }

    fn has(action: &libc::sigaction, signal: c_int) -> bool {
        // SAFETY: a set of signals.
        unsafe { libc::sigismember(&action.sa_mask, signal) == 1 }
    }

    /// The system calls it as it would call the program's, and never but once.
    #[test]
    fn the_handler_has_the_flags_and_the_mask_of_the_programs() {
        let always = libc::SA_SIGINFO;
        for (handler, flags, expected, masked) in [
            (libc::SIG_DFL, libc::SA_NODEFER, libc::SA_ONSTACK | libc::SA_RESTART, false),
            (libc::SIG_IGN, 0, libc::SA_ONSTACK | libc::SA_RESTART, false),
            (0x1000, libc::SA_RESETHAND | libc::SA_NODEFER, libc::SA_NODEFER, true),
            (0x1000, libc::SA_ONSTACK, libc::SA_ONSTACK, true),
        ] {
            let mut theirs = action_of(libc::SIGUSR1, handler, flags & !libc::SA_NODEFER);
            theirs.sa_flags = flags;
            let own = own_action(&theirs);
            assert_eq!(own.sa_flags, expected | always, "{handler:#x} {flags:#x}");
            assert_eq!(has(&own, libc::SIGUSR1), masked, "{handler:#x} {flags:#x}");
            assert_eq!(own.sa_sigaction, on_fault as *const () as usize);
        }
        // As System V's `signal` has it, and as others do.
        for (flags, masked) in [(libc::SA_RESETHAND | libc::SA_NODEFER, false), (0, true)] {
            let action = action_of(libc::SIGSEGV, 0x1000, flags);
            assert_eq!((has(&action, libc::SIGSEGV), action.sa_flags), (masked, flags));
        }
    }

    /// The program may be about to look at the error of its last call.
    #[test]
    fn a_fault_leaves_the_error_as_it_is() {
        let _turn = crate::lock::TURN.lock();
        let error = with_entry(|page| {
            let mut info = [0_usize; size_of::<libc::siginfo_t>() / size_of::<usize>()];
            (info[1], info[ADDRESS / size_of::<usize>()]) = (SEGV_ACCERR as usize, page);
            // SAFETY: the system's structure for a fault, and registers that are all 0.
            unsafe {
                let mut registers = core::mem::zeroed::<libc::ucontext_t>();
                *libc::__errno_location() = libc::EDOM;
                on_fault(libc::SIGSEGV, info.as_mut_ptr().cast(), (&raw mut registers).cast());
                *libc::__errno_location()
            }
        });
        assert_eq!(error, libc::EDOM);
    }

    /// An access that no entry explains is tried again once, and again once an entry has gone: another
    /// thread may have lifted the page.
    #[test]
    fn a_fault_without_a_cause_is_tried_again_once() {
        let _turn = crate::lock::TURN.lock();
        let explained = |code: c_int, address: usize| {
            let mut info = [0_usize; size_of::<libc::siginfo_t>() / size_of::<usize>()];
            info[1] = code as usize;
            info[ADDRESS / size_of::<usize>()] = address;
            // SAFETY: the system's structure for a fault, and registers that are all 0.
            unsafe { is_explained(info.as_ptr().cast(), &core::mem::zeroed()) }
        };
        let all = [(SEGV_ACCERR, 0x10), (SEGV_ACCERR, 0x10), (1, 0x30), (SEGV_ACCERR, 0x20)];
        let tried = std::thread::spawn(move || {
            let before = all.map(|(code, at)| explained(code, at));
            with_entry(|_| ());
            (before, explained(SEGV_ACCERR, 0x20))
        });
        assert_eq!(tried.join().expect("no panic"), ([true, false, false, true], true));
    }

    /// The stack begins with the instruction, or has it alone: if it is not there, and after many.
    #[test]
    fn an_access_has_its_instruction() {
        let _turn = crate::lock::TURN.lock();
        accesses::take();
        let before = WALKS.swap(0, Ordering::Relaxed);
        let frames = |instruction| {
            note([0, 1], false, "a load", instruction);
            accesses::take().pop().expect("it was noted").1.frames
        };
        let whole = frames(0);
        let from = whole[2];
        assert!(whole[..4].iter().all(|frame| *frame != 0), "{whole:x?}");
        assert_eq!(frames(from)[..2], whole[2..4]);
        assert_eq!(frames(0x1234)[..2], [0x1234, 0]);
        // The file for Python's stack is closed where there is no Python.
        let files = || std::fs::read_dir("/proc/self/fd").expect("Linux has it").count();
        let few = files();
        (0..200).for_each(|_| _ = frames(0));
        assert!(files() < few + 100);
        WALKS.store(MOST_WALKS, Ordering::Relaxed);
        assert_eq!(frames(from)[..2], [from, 0]);
        WALKS.store(before, Ordering::Relaxed);
    }
}
