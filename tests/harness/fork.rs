//! A forked child that does some work and tells.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::child::end_at_once;

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn pipe(ends: *mut i32) -> i32;
}

/// Runs `work` in a forked child: what it returned, and the child's wait status.
pub fn in_child(work: impl FnOnce() -> String) -> (String, i32) {
    let mut ends = [0; 2];
    // SAFETY: a place for the two descriptors.
    assert_eq!(unsafe { pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: both descriptors are new and owned here.
    let (mut reader, mut writer) =
        unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    // SAFETY: the tests that fork are alone in their process, so that no other thread holds a lock
    // that the child needs; the child ends without the parent's exit handlers.
    let child = unsafe { fork() };
    if child == 0 {
        end_at_once(match catch_unwind(AssertUnwindSafe(work)) {
            Ok(reply) => i32::from(writer.write_all(reply.as_bytes()).is_err()),
            Err(_) => 101,
        });
    }
    drop(writer);
    let mut reply = String::new();
    reader.read_to_string(&mut reply).expect("the child writes text");
    let mut status = 0;
    // SAFETY: a place for the status; the child is ours.
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    (reply, status)
}
