//! System calls of the program with buffers in protected pages: the system refuses these with
//! EFAULT.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use super::protection::{self, By, Fault, PAGE};
use super::{bytes, faults};

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
        let found = protection::lift(range(buffer), writes, by);
        (any || found != Fault::Other, early || found == Fault::Early)
    })
}

/// Whether the system writes to the buffers of this call: all calls that fetch begin so.
const fn writes_to_buffers(name: &str) -> bool {
    matches!(name.as_bytes(), [b'r' | b'g', ..] | [b'p' | b'f', b'r', ..])
}

/// Makes a call whose buffers the system reads or writes. It returns how many bytes, or -1.
pub fn call<I: Iterator<Item = Buffer>>(
    name: &'static str,
    buffers: impl Fn() -> I,
    real: impl Fn() -> isize,
) -> isize {
    let writes = writes_to_buffers(name);
    let mut early = protection::any() && lift(&mut buffers(), writes).1;
    let mut result = real();
    // A copy may be submitted while the call waits for its data.
    for _ in 0..100 {
        // SAFETY: the thread's own.
        let is_fault = || unsafe { *libc::__errno_location() } == libc::EFAULT;
        if result != -1 || !is_fault() || !protection::any() {
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
            buffers().for_each(|buffer| protection::rearm(range(buffer), writes));
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
        if let Some(both) = protection::conflict(range((first, done)), writes) {
            faults::note(both, writes, name, 0);
            noted = true;
        }
    }
    noted
}

/// The elements of a list of the program. It ends where the system cannot read it: then the call
/// fails with EFAULT, and this must not crash before it. A handler of a signal may make the call, so
/// nothing is allocated.
fn elements<T: Copy>(first: *const T, count: usize) -> impl Iterator<Item = T> {
    let first = first.addr();
    // The system takes no more.
    (0..count.min(1024)).map_while(move |at| {
        let mut one = MaybeUninit::<T>::uninit();
        let place = first.checked_add(at.checked_mul(size_of::<T>())?)?;
        let bytes = one.as_mut_ptr().cast::<MaybeUninit<u8>>();
        // SAFETY: the bytes of the element, which nothing else refers to meanwhile.
        let bytes = unsafe { core::slice::from_raw_parts_mut(bytes, size_of::<T>()) };
        // SAFETY: all bytes are there, and each pattern is an element of the system's lists.
        bytes::copy(place, bytes).then(|| unsafe { one.assume_init() })
    })
}

/// The buffers of a list, which may be anywhere.
pub fn list(first: *const libc::iovec, count: usize) -> impl Iterator<Item = Buffer> {
    elements(first, count).map(|one| (one.iov_base.addr(), one.iov_len))
}

/// The buffers of messages, which may be anywhere.
pub fn messages(first: *const libc::mmsghdr, count: usize) -> impl Iterator<Item = Buffer> {
    elements(first, count).flat_map(|one| buffers(one.msg_hdr))
}

/// The buffers of a message, which may be anywhere.
pub fn message(message: *const libc::msghdr) -> impl Iterator<Item = Buffer> {
    elements(message, 1).flat_map(buffers)
}

fn buffers(message: libc::msghdr) -> impl Iterator<Item = Buffer> {
    #[allow(clippy::unnecessary_cast, reason = "musl has an `int`")]
    list(message.msg_iov.cast_const(), message.msg_iovlen as usize)
}

/// The program is about to unmap memory. What the system refuses to unmap stays protected.
pub fn unmaps(address: *mut c_void, bytes: usize) {
    let end = address.addr().checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE));
    if let Some(end) = end.filter(|_| bytes > 0 && address.addr().is_multiple_of(PAGE))
        && protection::any()
    {
        protection::unmapped([address.addr(), end]);
    }
}

#[cfg(test)]
mod tests {
    /// As many as the system takes, and not those that it cannot read.
    #[test]
    fn a_list_has_the_elements_that_the_system_takes() {
        let all: Vec<u64> = (0..2000).collect();
        for count in [0, 1, 1023, 1024, 1025, 2000] {
            let taken: Vec<u64> = super::elements(all.as_ptr(), count).collect();
            assert_eq!(taken, all[..count.min(1024)], "{count}");
        }
        let nowhere = core::ptr::without_provenance::<u64>(0x10);
        assert_eq!(super::elements(nowhere, 3).count(), 0);
    }

    #[test]
    fn calls_that_fetch_write_to_their_buffers() {
        for (names, expected) in [
            ("read pread pread64 readv preadv preadv64 preadv2 preadv64v2 fread", true),
            ("recv recvfrom recvmsg recvmmsg getrandom", true),
            ("write pwrite pwrite64 writev pwritev pwritev64 pwritev2 pwritev64v2 fwrite", false),
            ("send sendto sendmsg sendmmsg", false),
        ] {
            for name in names.split(' ') {
                assert_eq!(super::writes_to_buffers(name), expected, "{name}");
            }
        }
    }
}
