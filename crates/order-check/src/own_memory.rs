//! Memory of this process that may go away, or may never have been there.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

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
    match usize::try_from(done) {
        // SAFETY: so many were written.
        Ok(done) if done <= count => unsafe { bytes.set_len(done) },
        // Emulators lack the call, and a container may forbid it.
        _ => bytes = of_file(address, count),
    }
    bytes
}

/// Reads the process's own memory by the file `/proc/self/mem`.
fn of_file(address: u64, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(file) = File::open("/proc/self/mem") else { return bytes };
    let mut part = [0; 4096];
    while bytes.len() < count {
        let wanted = part.len().min(count - bytes.len());
        let Some(at) = address.checked_add(bytes.len() as u64) else { break };
        let read = part.get_mut(..wanted).map(|part| file.read_at(part, at));
        let Some(read @ 1..) = read.and_then(Result::ok) else { break };
        bytes.extend(part.iter().take(read));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{of_file, read};

    #[test]
    fn what_is_not_there_is_not_read() {
        let here: Vec<u8> = (0..9000_u32).map(|at| at as u8).collect();
        for read in [read, of_file] {
            assert_eq!(read(here.as_ptr().addr() as u64, 9000), here);
            assert_eq!(read(0, 8), [0; 0]);
            assert_eq!(read(u64::MAX - 8, 64), [0; 0]);
        }
    }
}
