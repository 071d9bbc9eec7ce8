//! Programs with handlers, masks and children of their own.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::calls::direct_write;
use super::{LARGE, PAGE, Program};

pub(super) static FAULTS: AtomicUsize = AtomicUsize::new(0);

pub(super) extern "C" fn own_handler(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    FAULTS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the page of the fault, which is the program's.
    unsafe { libc::mprotect((*info).si_addr(), PAGE, libc::PROT_READ | libc::PROT_WRITE) };
}

/// The program protects pages of its own as well.
pub(super) fn own_faults(p: &Program) {
    // SAFETY: a new page, an action for SIGSEGV, and its place.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let page = libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_NONE, flags, -1, 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = own_handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
        p.download(0, LARGE);
        // Again, now that there is another handler in front of it.
        let mut old: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, &mut old), 0);
        assert_eq!(old.sa_sigaction, action.sa_sigaction);
        assert_eq!(old.sa_flags & libc::SA_SIGINFO, libc::SA_SIGINFO);
        // What another one replaces is what was there, and that one has the flags that it is set with.
        let own = action.sa_sigaction;
        let other: extern "C" fn(c_int) = reads_in_handler;
        assert_eq!(libc::signal(libc::SIGSEGV, other as *const () as usize), own);
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, &mut old), 0);
        let is_other = old.sa_sigaction == other as *const () as usize;
        assert_eq!((is_other, old.sa_flags & libc::SA_RESTART), (true, libc::SA_RESTART));
        page.cast::<u8>().write_volatile(1);
        assert_eq!(FAULTS.load(Ordering::Relaxed), 1);
        p.any_call();
    }
    p.wait();
    p.read(3);
    assert_eq!(FAULTS.load(Ordering::Relaxed), 1);
}

/// A child has the pages as they would be.
pub(super) fn forked(p: &Program) {
    p.download(0, LARGE);
    // SAFETY: the child only reads, and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let written = direct_write(p.pinned);
            p.write(LARGE - 1);
            libc::_exit(if written == 8192 { 3 } else { 4 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 3, "{status:#x}");
    }
    p.wait();
    p.read(3);
}

pub(super) fn block_signals() {
    // SAFETY: a set of signals.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}

/// A thread blocks all signals.
pub(super) fn blocked(p: &Program) {
    p.download(0, LARGE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_signals();
            p.wait();
            p.read(0);
        });
    });
}

pub(super) static HANDLED: AtomicUsize = AtomicUsize::new(0);

/// Reads the byte whose address it finds.
extern "C" fn reads_in_handler(_: c_int) {
    let at: *const u8 = std::ptr::with_exposed_provenance(HANDLED.load(Ordering::Relaxed));
    // SAFETY: pinned memory.
    unsafe { at.read_volatile() };
}

/// The program's own handler of faults looks at what a copy writes: it cannot have another fault.
pub(super) fn handler_of_faults_reads(p: &Program) {
    extern "C" fn reads_too(signal: c_int, info: *mut libc::siginfo_t, more: *mut c_void) {
        reads_in_handler(signal);
        own_handler(signal, info, more);
    }
    // SAFETY: a new page, and an action for SIGSEGV.
    let page = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = reads_too as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
        libc::mmap(std::ptr::null_mut(), PAGE, libc::PROT_NONE, flags, -1, 0)
    };
    HANDLED.store(p.pinned.expose_provenance(), Ordering::Relaxed);
    p.download(0, LARGE);
    // SAFETY: the program's page, which its handler opens.
    unsafe { page.cast::<u8>().write_volatile(1) };
    assert_eq!(FAULTS.load(Ordering::Relaxed), 1);
    p.synchronize();
}

/// A handler that blocks all signals has a fault like any other code.
pub(super) fn full_mask(p: &Program) {
    HANDLED.store(p.pinned.expose_provenance(), Ordering::Relaxed);
    p.download(0, LARGE);
    p.wait();
    // SAFETY: an action for a signal, and a call of its handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = reads_in_handler as *const () as usize;
        libc::sigfillset(&mut action.sa_mask);
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        assert_eq!(libc::raise(libc::SIGUSR1), 0);
    }
}
