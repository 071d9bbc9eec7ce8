//! Accesses of the host to pages that copies read and write.

use std::os::fd::AsRawFd;
use std::sync::{Barrier, mpsc};

use super::calls::pipe;
use super::{LARGE, PAGE, Program};

pub(super) fn refill(p: &Program) {
    p.upload(0, LARGE);
    p.read(5); // It only reads as well.
    p.wait();
    p.write(5);
}

pub(super) fn result(p: &Program) {
    p.download(0, LARGE);
    let mut event = 0;
    p.cuda.cuEventCreate(&mut event, 2);
    p.cuda.cuEventRecord(event, p.stream);
    if p.good {
        p.cuda.cuEventSynchronize(event);
        assert_eq!(p.read(LARGE - 1), 7);
    }
    p.read(LARGE - 1);
}

pub(super) fn small_result(p: &Program) {
    p.write(64);
    p.download(64, 4);
    p.wait();
    p.read(66);
}

/// The bytes before the first one and after the last one are nobody else's.
pub(super) fn next_bytes(p: &Program) {
    for at in [63, 192] {
        p.download(64, 128);
        p.read(at);
        p.synchronize();
        // With the pages as the copy of another size has them.
        p.download(64, 128);
        p.write(at);
        p.synchronize();
    }
}

/// The driver writes a handle there: that is no access of the program's own, whose first one comes
/// later.
pub(super) fn handle_in_pinned_memory(p: &Program) {
    p.download(0, LARGE);
    p.cuda.cuEventCreate(p.at(64).cast(), 2);
    p.wait();
    p.read(LARGE - 1);
}

/// The driver has read it when the call returns, but only if the stream has nothing to do.
pub(super) fn small_source(p: &Program) {
    p.upload(0, 512);
    p.wait();
    p.write(5);
}

pub(super) fn other_thread(p: &Program) {
    p.download(0, LARGE);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            receiver.recv().expect("the other thread lives");
            p.read(PAGE);
        });
        p.wait();
        sender.send(()).expect("the other thread lives");
    });
}

/// A copy has the first bytes of a page.
pub(super) fn shared_page(p: &Program) {
    p.download(0, 256);
    p.write(1024);
    assert_eq!(p.read(1024), 9);
    // From here on the page is protected anew.
    p.any_call();
    p.write(2048);
    p.any_call();
    p.wait();
    p.read(255);
}

/// Many threads fault at the same pages at the same time.
pub(super) fn crowd(p: &Program) {
    let barrier = Barrier::new(4);
    for _ in 0..50 {
        p.download(0, LARGE);
        p.wait();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    (0..LARGE).step_by(PAGE).for_each(|at| _ = p.read(at));
                });
            }
        });
        p.synchronize();
    }
}

/// Threads with streams of their own, and buffers that share pages.
pub(super) fn neighbours(p: &Program) {
    let rounds = std::env::var("ROUNDS").map_or(30, |rounds| rounds.parse().expect("a number"));
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let barrier = &barrier;
            scope.spawn(move || {
                let (mut stream, bytes) = (0, 3 * PAGE - 1000);
                let own = thread * bytes;
                let device = p.device + own as u64;
                p.cuda.cuCtxSetCurrent(p.context);
                p.cuda.cuStreamCreate(&mut stream, 1);
                barrier.wait();
                for round in 0..rounds {
                    let size = if round % 3 == 0 { 20 } else { bytes };
                    p.cuda.cuMemcpyDtoHAsync_v2(p.at(own), device, size, stream);
                    p.cuda.cuStreamSynchronize(stream);
                    (0..size).step_by(700).for_each(|at| _ = p.read(own + at));
                    (0..bytes).step_by(900).for_each(|at| p.write(own + at));
                    p.cuda.cuMemcpyHtoDAsync_v2(device, p.at(own), size, stream);
                    (0..size).step_by(500).for_each(|at| _ = p.read(own + at));
                    p.cuda.cuStreamSynchronize(stream);
                }
            });
        }
    });
}

/// A call that has nothing to read, and so does not write the buffer, is no access.
pub(super) fn nothing_to_read(p: &Program) {
    let [read, _write] = pipe();
    // SAFETY: a descriptor of this program.
    unsafe { libc::fcntl(read.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    p.download(0, LARGE);
    p.wait();
    // SAFETY: pinned memory.
    assert_eq!(unsafe { libc::read(read.as_raw_fd(), p.pinned.cast(), 8192) }, -1);
    p.any_call();
    p.read(5);
}

/// The program ends, and makes no other call.
pub(super) fn last_access(p: &Program) {
    p.download(0, LARGE);
    p.wait();
    p.read(5);
    if !p.good {
        std::process::exit(0);
    }
}

/// More than can be watched.
pub(super) fn too_many_copies(p: &Program) {
    (0..260).for_each(|at| p.download(496 * at, 16));
    p.synchronize();
}

/// The same copy again and again: its pages are protected once, and lifted once.
pub(super) fn same_copy(p: &Program) {
    (0..10).for_each(|_| p.download(0, LARGE));
    p.synchronize();
}

/// Each copy is protected and lifted by one call each.
pub(super) fn ten_copies(p: &Program) {
    for _ in 0..5 {
        p.download(0, LARGE);
        p.synchronize();
        p.read(0);
        p.upload(0, LARGE);
        p.synchronize();
        p.write(0);
    }
}
