//! System calls of the program with buffers in protected pages: the system refuses these with
//! EFAULT.

use core::ffi::c_void;

use super::faults;
use super::table::{self, By, Fault};

/// A buffer of a system call: its first byte, and how many.
pub type Buffer = (usize, usize);

fn range((first, bytes): Buffer) -> [usize; 2] {
    [first, first.saturating_add(bytes)]
}

/// Lifts what the call needs. Whether anything was lifted, and whether that was too early.
fn lift(buffers: &mut dyn Iterator<Item = Buffer>, writes: bool) -> (bool, bool) {
    // The driver makes system calls as well.
    let by = if faults::is_inside() { By::Library } else { By::Program };
    buffers.fold((false, false), |(any, early), buffer| {
        let found = table::lift(range(buffer), writes, by);
        (any || found != Fault::Other, early || found == Fault::Early)
    })
}

/// Makes a call whose buffers the system reads, or writes if `writes` is set. It returns how many
/// bytes, or -1.
pub fn call<I: Iterator<Item = Buffer>>(
    name: &'static str,
    writes: bool,
    buffers: impl Fn() -> I,
    real: impl Fn() -> isize,
) -> isize {
    let mut early = table::any() && lift(&mut buffers(), writes).1;
    let mut result = real();
    // A copy may be submitted while the call waits for its data.
    for _ in 0..100 {
        // SAFETY: the thread's own.
        if result != -1 || unsafe { *libc::__errno_location() } != libc::EFAULT || !table::any() {
            break;
        }
        let (lifted, too_early) = lift(&mut buffers(), writes);
        if !lifted {
            break;
        }
        early |= too_early;
        result = real();
    }
    if early {
        // SAFETY: the thread's own.
        let errno = unsafe { *libc::__errno_location() };
        let noted = note(name, writes, &mut buffers(), usize::try_from(result).unwrap_or(0));
        if !noted {
            buffers().for_each(|buffer| table::rearm(range(buffer), writes));
        }
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
    }
    result
}

/// So many bytes were read or written. What a copy has that the host is now ordered after is left
/// out. Says whether any are of a copy.
fn note(
    name: &'static str,
    writes: bool,
    buffers: &mut dyn Iterator<Item = Buffer>,
    bytes: usize,
) -> bool {
    let (mut left, mut noted) = (bytes, false);
    for (first, size) in buffers {
        let done = size.min(left);
        left -= done;
        if let Some(both) = table::conflict(range((first, done)), writes) {
            faults::note(both, writes, name, 0);
            noted = true;
        }
    }
    noted
}

/// The buffers of a list.
///
/// # Safety
///
/// NULL or the address of so many elements.
pub unsafe fn list(of: *const libc::iovec, count: usize) -> impl Iterator<Item = Buffer> {
    let count = if of.is_null() { 0 } else { count.min(1024) };
    (0..count).map(move |at| {
        // SAFETY: as the caller says. What is no memory of the program is refused by the call.
        let one = unsafe { of.add(at).read() };
        (one.iov_base.addr(), one.iov_len)
    })
}

/// The buffers of a message.
///
/// # Safety
///
/// NULL or a message.
pub unsafe fn message(of: *const libc::msghdr) -> impl Iterator<Item = Buffer> {
    // SAFETY: as the caller says.
    let of = unsafe { of.as_ref() };
    #[allow(clippy::unnecessary_cast, reason = "musl has an `int`")]
    let (first, count) =
        of.map_or((core::ptr::null(), 0), |of| (of.msg_iov.cast_const(), of.msg_iovlen as usize));
    // SAFETY: as the caller says.
    unsafe { list(first, count as _) }
}

/// The program is about to unmap memory.
pub fn unmaps(address: *mut c_void, bytes: usize) {
    if table::any() {
        table::unmapped(range((address.addr(), bytes.next_multiple_of(table::PAGE))));
    }
}
