//! Bytes of the program as the system reads them: what cannot be read is an error, and no fault.

use core::mem::MaybeUninit;

/// So many bytes, at most eight, as the system reads them: a page may be closed at any time.
pub(crate) fn read(first: usize, bytes: usize) -> Option<u64> {
    let mut value = [0_u8; 8];
    let bytes = bytes.min(value.len());
    let (place, _) = value.split_at_mut(bytes);
    // SAFETY: bytes that have values may get others.
    let place = unsafe { &mut *(core::ptr::from_mut(place) as *mut [MaybeUninit<u8>]) };
    copy(first, place).then(|| u64::from_ne_bytes(value))
}

/// So many bytes, if all of them can be read.
pub(crate) fn read_all(first: usize, bytes: usize) -> Option<Vec<u8>> {
    let mut all: Vec<u8> = Vec::with_capacity(bytes);
    let place = all.spare_capacity_mut().get_mut(..bytes)?;
    if !copy(first, place) {
        return None;
    }
    // SAFETY: so many were written, within the capacity.
    unsafe { all.set_len(bytes) };
    Some(all)
}

/// Fills a place with bytes as the system reads them; `false` if it cannot. `process_vm_readv`
/// refuses memory of the driver.
pub(crate) fn copy(first: usize, to: &mut [MaybeUninit<u8>]) -> bool {
    let (to, bytes) = (to.as_mut_ptr(), to.len());
    // SAFETY: system calls on a place for the bytes, and on a file of their own. What cannot be read
    // is an error. They are not the functions of the C library, which this library has hooks for.
    unsafe {
        let errno = *libc::__errno_location();
        let own = libc::iovec { iov_base: to.cast(), iov_len: bytes };
        let from = core::ptr::without_provenance_mut(first);
        let from = libc::iovec { iov_base: from, iov_len: bytes };
        let process = libc::getpid();
        let count = libc::syscall(libc::SYS_process_vm_readv, process, &own, 1, &from, 1, 0);
        let mut done = count == bytes as libc::c_long;
        let file = if done { -1 } else { libc::memfd_create(c"word".as_ptr(), libc::MFD_CLOEXEC) };
        if file >= 0 {
            let written = libc::syscall(libc::SYS_write, file, first, bytes);
            let read = libc::syscall(libc::SYS_pread64, file, to, bytes, 0_i64);
            libc::syscall(libc::SYS_close, file);
            done = [written, read] == [bytes as libc::c_long; 2];
        }
        *libc::__errno_location() = errno;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    /// A handler may look while the program is about to look at its error.
    #[test]
    fn a_look_leaves_the_error_as_it_is() {
        let value = 0x1122_3344_5566_7788_u64;
        let place = core::ptr::from_ref(&value).expose_provenance();
        let values = [(place, Some(value)), (0x10, None)];
        for (place, expected) in values {
            // SAFETY: the thread's own place.
            unsafe { *libc::__errno_location() = libc::EDOM };
            let found = read(place, 8);
            // SAFETY: as above.
            let error = unsafe { *libc::__errno_location() };
            assert_eq!((found, error), (expected, libc::EDOM));
        }
        assert_eq!(read(place, 3), Some(0x0066_7788));
        // Nor does it leave files.
        let files = || std::fs::read_dir("/proc/self/fd").expect("Linux has it").count();
        let before = files();
        (0..1000).for_each(|_| assert_eq!(read(0x10, 8), None));
        assert!(files() < before + 500);
    }
}
