//! Calls of the system that read and write pinned memory.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc;

use super::{LARGE, Program};

pub(super) fn pipe() -> [OwnedFd; 2] {
    let mut files = [0; 2];
    // SAFETY: a place for two descriptors, which nobody else has.
    unsafe {
        assert_eq!(libc::pipe(files.as_mut_ptr()), 0);
        files.map(|file| OwnedFd::from_raw_fd(file))
    }
}

pub(super) fn written(p: &Program) {
    let [_read, write] = pipe();
    p.download(0, 8192);
    p.wait();
    // SAFETY: pinned memory.
    let written = unsafe { libc::write(write.as_raw_fd(), p.pinned.cast(), 8192) };
    assert_eq!(written, 8192, "{}", std::io::Error::last_os_error());
}

pub(super) fn read_into(p: &Program) {
    let [read, write] = pipe();
    // SAFETY: so many bytes.
    assert_eq!(unsafe { libc::write(write.as_raw_fd(), [1u8; 100].as_ptr().cast(), 100) }, 100);
    p.upload(0, LARGE);
    p.wait();
    // SAFETY: pinned memory.
    let got = unsafe { libc::read(read.as_raw_fd(), p.pinned.cast(), 8192) };
    assert_eq!(got, 100, "{}", std::io::Error::last_os_error());
    assert_eq!(p.read(99), 1);
}

/// The buffers are in one page with a copy, and none of its bytes.
pub(super) fn read_beside(p: &Program) {
    let [read, write] = pipe();
    p.download(0, 100);
    let vector = |at: usize| libc::iovec { iov_base: p.at(at).cast(), iov_len: 10 };
    let list = [vector(1000), vector(2000)];
    // SAFETY: pinned memory.
    unsafe {
        assert_eq!(libc::writev(write.as_raw_fd(), list.as_ptr(), 2), 20);
        assert_eq!(libc::readv(read.as_raw_fd(), list.as_ptr(), 2), 20);
        p.any_call();
        assert_eq!(libc::pwritev2(write.as_raw_fd(), list.as_ptr(), 2, -1, 0), 20);
        p.any_call();
        assert_eq!(libc::preadv2(read.as_raw_fd(), list.as_ptr(), 2, -1, 0), 20);
        p.any_call();
        assert_eq!(libc::getrandom(p.at(1000).cast(), 10, 0), 10);
    }
}

/// A copy is submitted while a thread waits for data in the same page.
pub(super) fn read_beside_a_later_copy(p: &Program) {
    read_at(p, 1000, |p| p.download(0, 100));
}

/// The copy reads the bytes for which a thread waits.
pub(super) fn read_into_a_later_copy(p: &Program) {
    read_at(p, 50, |p| {
        p.upload(0, LARGE);
        p.wait();
    });
}

/// A thread reads ten bytes into pinned memory. While it waits for them, this is done.
fn read_at(p: &Program, at: usize, meanwhile: fn(&Program)) {
    let [read, write] = pipe();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            // SAFETY: it has no preconditions.
            sender.send(unsafe { libc::gettid() }).expect("the other thread lives");
            // SAFETY: pinned memory.
            let got = unsafe { libc::read(read.as_raw_fd(), p.at(at).cast(), 10) };
            assert_eq!(got, 10, "{}", std::io::Error::last_os_error());
        });
        let thread = receiver.recv().expect("the other thread lives");
        let call = format!("/proc/self/task/{thread}/syscall");
        // The thread is within `read`, system call 0.
        while !fs::read_to_string(&call).is_ok_and(|call| call.starts_with("0 ")) {
            std::thread::yield_now();
        }
        meanwhile(p);
        // SAFETY: so many bytes.
        assert_eq!(unsafe { libc::write(write.as_raw_fd(), [1u8; 10].as_ptr().cast(), 10) }, 10);
        reader.join().expect("it has read");
    });
}

/// Large parts go around the buffer of a file.
pub(super) fn stored(p: &Program) {
    p.download(0, LARGE);
    p.wait();
    // SAFETY: a file, and pinned memory.
    unsafe {
        let file = libc::tmpfile();
        assert_eq!(libc::fwrite(p.pinned.cast(), 4, LARGE / 4, file), LARGE / 4);
        assert_eq!(libc::fclose(file), 0);
    }
}

/// A system call that no library is in front of.
pub(super) fn direct_write(memory: *const u8) -> libc::c_long {
    let [_read, write] = pipe();
    // SAFETY: what is no memory is an error.
    unsafe { libc::syscall(libc::SYS_write, write.as_raw_fd(), memory, 8192) }
}

/// Of the buffers of a call only those are touched that its bytes reach.
pub(super) fn short_read(p: &Program) {
    let [read, write] = pipe();
    p.download(0, 100);
    let vector = |at: usize, bytes| libc::iovec { iov_base: p.at(at).cast(), iov_len: bytes };
    let list = [vector(1000, 10), vector(200, 10), vector(50, 10)];
    for bytes in [10, 15] {
        // SAFETY: pinned memory.
        unsafe {
            assert_eq!(
                libc::write(write.as_raw_fd(), [1u8; 20].as_ptr().cast(), bytes),
                bytes as isize
            );
            assert_eq!(libc::readv(read.as_raw_fd(), list.as_ptr(), 3), bytes as isize);
        }
        p.any_call();
    }
}

/// The same, and one byte more than the call may write.
pub(super) fn long_read(p: &Program) {
    let [read, write] = pipe();
    p.download(0, 100);
    p.wait();
    let vector = |at: usize, bytes| libc::iovec { iov_base: p.at(at).cast(), iov_len: bytes };
    let list = [vector(1000, 10), vector(50, 10)];
    // SAFETY: pinned memory.
    unsafe {
        assert_eq!(libc::write(write.as_raw_fd(), [1u8; 20].as_ptr().cast(), 11), 11);
        assert_eq!(libc::readv(read.as_raw_fd(), list.as_ptr(), 2), 11);
    }
}
