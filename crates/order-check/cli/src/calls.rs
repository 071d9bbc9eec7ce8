//! Functions of the C library in front of the C library's own, for the class `host`: with buffers
//! in protected pages system calls would fail, and the program's handlers of SIGSEGV come after the
//! library's own. Others are those by which a process ends without the handlers of the exit.
//!
//! They are in front only if the library is loaded before the C library, as with `LD_PRELOAD`.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use cuda_order_check::trace;
use cuda_order_check_preload::{before_exec, before_exit, calls, faults};
use libc::timespec;
use libc::{FILE, iovec, mmsghdr, msghdr, off_t, sigset_t, size_t, sockaddr, socklen_t, ssize_t};

/// The address of the C library's function. It is looked up when this library is loaded, as the
/// program may call from the handler of a signal.
fn next(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = cache.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
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
            use super::*;
            $(pub(super) static $name: AtomicPtr<c_void> =
                AtomicPtr::new(core::ptr::null_mut());)*
        }

        #[allow(non_upper_case_globals)]
        mod names {
            use super::*;
            $(pub(super) const $name: &CStr =
                // SAFETY: the text ends with the one zero.
                unsafe {
                    CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
                };)*
        }

        pub(crate) fn look_up() {
            $(next(&places::$name, names::$name);)*
        }
    };
}

/// One buffer.
fn one(first: *const c_void, bytes: size_t) -> core::array::IntoIter<calls::Buffer, 1> {
    [(first.addr(), bytes)].into_iter()
}

/// Functions that count elements, and that are not made anew: `real` is called once.
fn elements(
    name: &'static str,
    writes: bool,
    first: *const c_void,
    [size, count]: [size_t; 2],
    real: impl Fn() -> size_t,
) -> size_t {
    let bytes = size.saturating_mul(count);
    let read = |_: ()| isize::try_from(real().saturating_mul(size)).unwrap_or(isize::MAX);
    let done = calls::call(name, writes, || one(first, bytes), || read(()));
    usize::try_from(done).unwrap_or(0).checked_div(size).unwrap_or(0)
}

/// The buffers of messages.
///
/// # Safety
///
/// So many messages.
unsafe fn messages(of: *const mmsghdr, count: c_uint) -> impl Iterator<Item = calls::Buffer> {
    let count = if of.is_null() { 0 } else { count as usize };
    // SAFETY: as the caller says.
    (0..count.min(1024))
        .flat_map(move |at| unsafe { calls::message(&raw const (*of.add(at)).msg_hdr) })
}

functions! {
    read(file: c_int, to: *mut c_void, bytes: size_t) -> ssize_t, real
        => calls::call("read", true, || one(to, bytes), real);
    write(file: c_int, from: *const c_void, bytes: size_t) -> ssize_t, real => {
        // SAFETY: the program's bytes.
        match unsafe { trace::takes_write(file, from, bytes) } {
            true => bytes as ssize_t,
            false => calls::call("write", false, || one(from, bytes), real),
        }
    };
    pread(file: c_int, to: *mut c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pread", true, || one(to, bytes), real);
    pread64(file: c_int, to: *mut c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pread64", true, || one(to, bytes), real);
    pwrite(file: c_int, from: *const c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pwrite", false, || one(from, bytes), real);
    pwrite64(file: c_int, from: *const c_void, bytes: size_t, at: off_t) -> ssize_t, real
        => calls::call("pwrite64", false, || one(from, bytes), real);
    readv(file: c_int, to: *const iovec, count: c_int) -> ssize_t, real
        // SAFETY: the program's list, here and below.
        => calls::call("readv", true, || unsafe { calls::list(to, count as usize) }, real);
    writev(file: c_int, from: *const iovec, count: c_int) -> ssize_t, real
        // SAFETY: as above.
        => calls::call("writev", false, || unsafe { calls::list(from, count as usize) }, real);
    preadv(file: c_int, to: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        // SAFETY: as above.
        => calls::call("preadv", true, || unsafe { calls::list(to, count as usize) }, real);
    preadv64(file: c_int, to: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        // SAFETY: as above.
        => calls::call("preadv64", true, || unsafe { calls::list(to, count as usize) }, real);
    pwritev(file: c_int, from: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        // SAFETY: as above.
        => calls::call("pwritev", false, || unsafe { calls::list(from, count as usize) }, real);
    pwritev64(file: c_int, from: *const iovec, count: c_int, at: off_t) -> ssize_t, real
        // SAFETY: as above.
        => calls::call("pwritev64", false, || unsafe { calls::list(from, count as usize) }, real);
    preadv2(file: c_int, to: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t, real
        // SAFETY: as above.
        => calls::call("preadv2", true, || unsafe { calls::list(to, count as usize) }, real);
    preadv64v2(file: c_int, to: *const iovec, count: c_int, at: off_t, flags: c_int)
        -> ssize_t, real
        // SAFETY: as above.
        => calls::call("preadv64v2", true, || unsafe { calls::list(to, count as usize) }, real);
    pwritev2(file: c_int, from: *const iovec, count: c_int, at: off_t, flags: c_int)
        -> ssize_t, real
        // SAFETY: as above.
        => calls::call("pwritev2", false, || unsafe { calls::list(from, count as usize) }, real);
    pwritev64v2(file: c_int, from: *const iovec, count: c_int, at: off_t, flags: c_int)
        -> ssize_t, real
        // SAFETY: as above.
        => calls::call("pwritev64v2", false, || unsafe { calls::list(from, count as usize) }, real);
    getrandom(to: *mut c_void, bytes: size_t, flags: c_uint) -> ssize_t, real
        => calls::call("getrandom", true, || one(to, bytes), real);

    recv(socket: c_int, to: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t, real
        => calls::call("recv", true, || one(to, bytes), real);
    recvfrom(socket: c_int, to: *mut c_void, bytes: size_t, flags: c_int, address: *mut sockaddr,
        length: *mut socklen_t) -> ssize_t, real
        => calls::call("recvfrom", true, || one(to, bytes), real);
    recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t, real
        // SAFETY: the program's message, here and below.
        => calls::call("recvmsg", true, || unsafe { calls::message(message) }, real);
    send(socket: c_int, from: *const c_void, bytes: size_t, flags: c_int) -> ssize_t, real
        => calls::call("send", false, || one(from, bytes), real);
    sendto(socket: c_int, from: *const c_void, bytes: size_t, flags: c_int,
        address: *const sockaddr, length: socklen_t) -> ssize_t, real
        => calls::call("sendto", false, || one(from, bytes), real);
    sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t, real
        // SAFETY: as above.
        => calls::call("sendmsg", false, || unsafe { calls::message(message) }, real);
    // These return how many messages: of the buffers, only so many bytes count as accessed.
    recvmmsg(socket: c_int, of: *mut mmsghdr, count: c_uint, flags: c_int, time: *mut timespec)
        -> c_int, real => {
        // SAFETY: the program's messages, here and below.
        let buffers = || unsafe { messages(of, count) };
        calls::call("recvmmsg", true, buffers, || real() as ssize_t) as c_int
    };
    sendmmsg(socket: c_int, of: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int, real => {
        // SAFETY: as above.
        let buffers = || unsafe { messages(of, count) };
        calls::call("sendmmsg", false, buffers, || real() as ssize_t) as c_int
    };

    // What a compiler calls in their places where it knows a buffer's size.
    __read_chk(file: c_int, to: *mut c_void, bytes: size_t, size: size_t) -> ssize_t, real
        => calls::call("read", true, || one(to, bytes), real);
    __pread_chk(file: c_int, to: *mut c_void, bytes: size_t, at: off_t, size: size_t)
        -> ssize_t, real => calls::call("pread", true, || one(to, bytes), real);
    __pread64_chk(file: c_int, to: *mut c_void, bytes: size_t, at: off_t, size: size_t)
        -> ssize_t, real => calls::call("pread64", true, || one(to, bytes), real);
    __recv_chk(socket: c_int, to: *mut c_void, bytes: size_t, size: size_t, flags: c_int)
        -> ssize_t, real => calls::call("recv", true, || one(to, bytes), real);
    __recvfrom_chk(socket: c_int, to: *mut c_void, bytes: size_t, size: size_t, flags: c_int,
        address: *mut sockaddr, length: *mut socklen_t) -> ssize_t, real
        => calls::call("recvfrom", true, || one(to, bytes), real);

    // The C library's own calls go around the ones above.
    fread(to: *mut c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t, real
        => elements("fread", true, to, [size, count], real);
    fread_unlocked(to: *mut c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t, real
        => elements("fread", true, to, [size, count], real);
    fwrite(from: *const c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t, real
        => elements("fwrite", false, from, [size, count], real);
    fwrite_unlocked(from: *const c_void, size: size_t, count: size_t, file: *mut FILE)
        -> size_t, real => elements("fwrite", false, from, [size, count], real);
    __fread_chk(to: *mut c_void, room: size_t, size: size_t, count: size_t, file: *mut FILE)
        -> size_t, real => elements("fread", true, to, [size, count], real);

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
        unsafe { libc::syscall(libc::SYS_exit_group, cuda_order_check::exit::status(status)) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the same function.
    unsafe { _exit(status) }
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
