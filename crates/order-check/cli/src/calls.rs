//! Functions of the C library in front of the C library's own, for the class `host`: with buffers
//! in protected pages system calls would fail, and the program's handlers of SIGSEGV come after the
//! library's own. Others are those by which a process ends without the handlers of the exit.
//!
//! They are in front only if the library is loaded before the C library, as with `LD_PRELOAD`.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use cuda_order_check_engine::trace;
use cuda_order_check_preload::{before_exec, before_exit, calls, faults};
use libc::timespec;
use libc::{FILE, iovec, mmsghdr, msghdr, off_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t};

/// The address of the C library's function. It is looked up when this library is loaded, as the
/// program may call from the handler of a signal.
fn next(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let cached = cache.load(Ordering::Relaxed);
    if !cached.is_null() {
        return cached;
    }
    // SAFETY: a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    cache.store(found, Ordering::Relaxed);
    found
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $result:ty, $real:ident => $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $ty),*) -> $result {
                let $real = || {
                    // SAFETY: the C library's function of this name with the program's arguments.
                    unsafe {
                        let real = next(&places::$name, names::$name);
                        core::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($ty),*) -> $result,
                        >(real)($($argument),*)
                    }
                };
                $body
            }
        )*

        #[allow(non_upper_case_globals)]
        mod places {
            use super::{AtomicPtr, c_void};
            $(pub(super) static $name: AtomicPtr<c_void> =
                AtomicPtr::new(core::ptr::null_mut());)*
        }

        #[allow(non_upper_case_globals)]
        mod names {
            use super::CStr;
            $(pub(super) const $name: &CStr =
                // SAFETY: the text ends with the one zero.
                unsafe {
                    CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
                };)*
        }

        fn look_up_functions() {
            $(next(&places::$name, names::$name);)*
        }
    };
}

/// The list of the one buffer that a call like `read` has.
fn one(first: *const c_void, bytes: size_t) -> core::array::IntoIter<calls::Buffer, 1> {
    [(first.addr(), bytes)].into_iter()
}

/// Functions that count elements, and that are not made anew: `real` is called once.
fn elements(
    name: &'static str,
    first: *const c_void,
    [size, count]: [size_t; 2],
    real: impl Fn() -> size_t,
) -> size_t {
    let bytes = size.saturating_mul(count);
    let read = |_: ()| isize::try_from(real().saturating_mul(size)).unwrap_or(isize::MAX);
    let done = calls::call(name, || one(first, bytes), || read(()));
    usize::try_from(done).unwrap_or(0).checked_div(size).unwrap_or(0)
}

/// How many elements a list of the program has.
fn length(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

functions! {
    read(file: c_int, to: *mut c_void, bytes: size_t) -> ssize_t, real
        => calls::call("read", || one(to, bytes), real);
    write(file: c_int, from: *const c_void, bytes: size_t) -> ssize_t, real => {
        // SAFETY: the program's bytes.
        match unsafe { trace::takes_write(file, from, bytes) } {
            true => bytes as ssize_t,
            false => calls::call("write", || one(from, bytes), real),
        }
    };
    pread(file: c_int, to: *mut c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pread", || one(to, bytes), real);
    pread64(file: c_int, to: *mut c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pread64", || one(to, bytes), real);
    pwrite(file: c_int, from: *const c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pwrite", || one(from, bytes), real);
    pwrite64(file: c_int, from: *const c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pwrite64", || one(from, bytes), real);
    readv(file: c_int, to: *const iovec, count: c_int) -> ssize_t, real
        => calls::call("readv", || calls::list(to, length(count)), real);
    writev(file: c_int, from: *const iovec, count: c_int) -> ssize_t, real
        => calls::call("writev", || calls::list(from, length(count)), real);
    preadv(file: c_int, to: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        => calls::call("preadv", || calls::list(to, length(count)), real);
    preadv64(file: c_int, to: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        => calls::call("preadv64", || calls::list(to, length(count)), real);
    pwritev(file: c_int, from: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        => calls::call("pwritev", || calls::list(from, length(count)), real);
    pwritev64(file: c_int, from: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        => calls::call("pwritev64", || calls::list(from, length(count)), real);
    preadv2(file: c_int, to: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t, real
        => calls::call("preadv2", || calls::list(to, length(count)), real);
    preadv64v2(file: c_int, to: *const iovec, count: c_int, at: off_t, flags: c_int)
        -> ssize_t, real
        => calls::call("preadv64v2", || calls::list(to, length(count)), real);
    pwritev2(file: c_int, from: *const iovec, count: c_int, at: off_t, flags: c_int)
        -> ssize_t, real
        => calls::call("pwritev2", || calls::list(from, length(count)), real);
    pwritev64v2(file: c_int, from: *const iovec, count: c_int, at: off_t, flags: c_int)
        -> ssize_t, real
        => calls::call("pwritev64v2", || calls::list(from, length(count)), real);
    getrandom(to: *mut c_void, bytes: size_t, flags: c_uint) -> ssize_t, real
        => calls::call("getrandom", || one(to, bytes), real);

    recv(socket: c_int, to: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t, real
        => calls::call("recv", || one(to, bytes), real);
    recvfrom(socket: c_int, to: *mut c_void, bytes: size_t, flags: c_int, address: *mut sockaddr,
        length: *mut socklen_t) -> ssize_t, real
        => calls::call("recvfrom", || one(to, bytes), real);
    recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t, real
        => calls::call("recvmsg", || calls::message(message), real);
    send(socket: c_int, from: *const c_void, bytes: size_t, flags: c_int) -> ssize_t, real
        => calls::call("send", || one(from, bytes), real);
    sendto(socket: c_int, from: *const c_void, bytes: size_t, flags: c_int,
        address: *const sockaddr, length: socklen_t) -> ssize_t, real
        => calls::call("sendto", || one(from, bytes), real);
    sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t, real
        => calls::call("sendmsg", || calls::message(message), real);
    // These return how many messages: of the buffers, only so many bytes count as accessed.
    recvmmsg(socket: c_int, list: *mut mmsghdr, count: c_uint, flags: c_int, time: *mut timespec)
        -> c_int, real => {
        let buffers = || calls::messages(list, count as usize);
        calls::call("recvmmsg", buffers, || real() as ssize_t) as c_int
    };
    sendmmsg(socket: c_int, list: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int, real => {
        let buffers = || calls::messages(list, count as usize);
        calls::call("sendmmsg", buffers, || real() as ssize_t) as c_int
    };

    // What a compiler calls in their places where it knows a buffer's size.
    __read_chk(file: c_int, to: *mut c_void, bytes: size_t, size: size_t) -> ssize_t, real
        => calls::call("read", || one(to, bytes), real);
    __pread_chk(file: c_int, to: *mut c_void, bytes: size_t, at: off_t, size: size_t)
        -> ssize_t, real => calls::call("pread", || one(to, bytes), real);
    __pread64_chk(file: c_int, to: *mut c_void, bytes: size_t, at: off_t, size: size_t)
        -> ssize_t, real => calls::call("pread64", || one(to, bytes), real);
    __recv_chk(socket: c_int, to: *mut c_void, bytes: size_t, size: size_t, flags: c_int)
        -> ssize_t, real => calls::call("recv", || one(to, bytes), real);
    __recvfrom_chk(socket: c_int, to: *mut c_void, bytes: size_t, size: size_t, flags: c_int,
        address: *mut sockaddr, length: *mut socklen_t) -> ssize_t, real
        => calls::call("recvfrom", || one(to, bytes), real);

    // The C library's own calls go around the ones above.
    fread(to: *mut c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t, real
        => elements("fread", to, [size, count], real);
    fread_unlocked(to: *mut c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t, real
        => elements("fread", to, [size, count], real);
    fwrite(from: *const c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t, real
        => elements("fwrite", from, [size, count], real);
    fwrite_unlocked(from: *const c_void, size: size_t, count: size_t, file: *mut FILE)
        -> size_t, real => elements("fwrite", from, [size, count], real);
    __fread_chk(to: *mut c_void, room: size_t, size: size_t, count: size_t, file: *mut FILE)
        -> size_t, real => elements("fread", to, [size, count], real);

    munmap(memory: *mut c_void, bytes: size_t) -> c_int, real => {
        calls::unmaps(memory, bytes);
        real()
    };

    // The program that takes this one's place has nothing of what waits for the next call.
    execve(path: *const c_char, words: List, variables: List) -> c_int, real => {
        before_exec();
        real()
    };
    execv(path: *const c_char, words: List) -> c_int, real => {
        before_exec();
        real()
    };
    execvp(path: *const c_char, words: List) -> c_int, real => {
        before_exec();
        real()
    };
    execvpe(path: *const c_char, words: List, variables: List) -> c_int, real => {
        before_exec();
        real()
    };
    fexecve(file: c_int, words: List, variables: List) -> c_int, real => {
        before_exec();
        real()
    };

    signal(number: c_int, handler: usize) -> usize, real
        // SAFETY: the program's arguments, here and below.
        => unsafe { faults::signal(number, handler, libc::SA_RESTART, real) };
    bsd_signal(number: c_int, handler: usize) -> usize, real
        // SAFETY: as above.
        => unsafe { faults::signal(number, handler, libc::SA_RESTART, real) };
    sysv_signal(number: c_int, handler: usize) -> usize, real
        // SAFETY: as above.
        => unsafe { faults::signal(number, handler, ONCE, real) };
    __sysv_signal(number: c_int, handler: usize) -> usize, real
        // SAFETY: as above.
        => unsafe { faults::signal(number, handler, ONCE, real) };

    // As an exception does that nobody catches. It does not return, nor do those below: the C
    // library's own calls of `abort` go around this one.
    abort() -> (), real => {
        before_exit();
        real()
    };
    __assert_fail(what: *const c_char, file: *const c_char, line: c_uint, function: *const c_char)
        -> (), real => {
        before_exit();
        real()
    };
    __assert_perror_fail(error: c_int, file: *const c_char, line: c_uint, function: *const c_char)
        -> (), real => {
        before_exit();
        real()
    };
}

/// The C library's function of so many arguments as a call has, after [`before_exec`].
macro_rules! variadic {
    ($($name:ident $text:literal $place:ident $real:ident;)*) => {
        $(
        static $place: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

        extern "C" fn $real() -> *mut c_void {
            before_exec();
            next(&$place, $text)
        }

        /// Arguments in registers are as they were, and those on the stack are where they were.
        ///
        /// # Safety
        ///
        /// As for the C library's function.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() -> c_int {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                // The last one is there for the alignment of the stack.
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "push rax",
                "push r10",
                "call {real}",
                "mov r11, rax",
                "pop r10",
                "pop rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "pop rbp",
                ".cfi_def_cfa rsp, 8",
                "jmp r11",
                ".cfi_endproc",
                real = sym $real,
            )
        }
        )*

        fn look_up_variadic() {
            $(next(&$place, $text);)*
        }
    };
}

variadic! {
    execl c"execl" EXECL real_execl;
    execlp c"execlp" EXECLP real_execlp;
    execle c"execle" EXECLE real_execle;
}

/// The C library has it since 2.34, and does no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execveat(
    folder: c_int,
    path: *const c_char,
    words: List,
    variables: List,
    flags: c_int,
) -> c_int {
    before_exec();
    // SAFETY: the program's arguments.
    unsafe { libc::syscall(libc::SYS_execveat, folder, path, words, variables, flags) as c_int }
}

/// How System V's `signal` sets a handler.
const ONCE: c_int = libc::SA_RESETHAND | libc::SA_NODEFER;

/// The arguments, or the environment, of a program.
type List = *const *const c_char;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    action: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the program's arguments, here and below.
    unsafe { faults::sigaction(signal, action, old) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe { faults::mask(how, set, old) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: as above.
    match unsafe { faults::mask(how, set, old) } {
        0 => 0,
        code => {
            // SAFETY: the thread's own.
            unsafe { *libc::__errno_location() = code };
            -1
        }
    }
}

/// Ends the process without the handlers of the exit, as Python's `os._exit` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    before_exit();
    loop {
        // SAFETY: it does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, cuda_order_check_engine::exit::status(status)) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the same function.
    unsafe { _exit(status) }
}

/// Looks the C library's functions up, so that no later call does.
pub(crate) fn look_up() {
    look_up_functions();
    look_up_variadic();
}

/// Looks the C library's functions up. Why the class `host` cannot work, if so. `base` gives the
/// library of an address.
pub(crate) fn ready(base: impl Fn(*const c_void) -> Option<usize>) -> Option<&'static str> {
    look_up();
    // SAFETY: a C string.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"write".as_ptr()) };
    (base(first) != base(here as *const c_void))
        .then_some("the library was not loaded by LD_PRELOAD")
}

/// It is in this library, and has no name outside.
fn here() {}
