//! Memory of this process that may go away, or may never have been there.

/// So many bytes of this process, or fewer if there are no more. They may be no longer there.
#[must_use]
pub fn read(address: u64, count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    if bytes.try_reserve_exact(count).is_err() {
        return bytes;
    }
    // A page that is not there ends a read after the whole parts before it.
    let to = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: count };
    let from = libc::iovec {
        iov_base: core::ptr::without_provenance_mut(address as usize),
        iov_len: count,
    };
    // SAFETY: the system writes at most `count` bytes to the vector's own memory, and looks at the
    // other side itself: an address of nothing is an error.
    let done = unsafe { libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0) };
    if let Ok(done) = usize::try_from(done)
        && done <= count
    {
        // SAFETY: so many were written.
        unsafe { bytes.set_len(done) };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_read() {
        let here = [1_u8, 2, 3];
        assert_eq!(read((&raw const here) as u64, 3), [1, 2, 3]);
        assert_eq!(read(0, 8), [0; 0]);
        assert_eq!(read(u64::MAX - 8, 64), [0; 0]);
    }
}
