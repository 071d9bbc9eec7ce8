//! What accesses cost, in the ranges that they come to.
#![allow(missing_docs)]

use cuda_order_check::{Access, Call, Checker, Op, StreamId, Stride, ThreadId};

struct Program(Checker, u64);

impl Program {
    fn new() -> Self {
        Self(Checker::default(), 0)
    }

    fn work(&mut self, access: Access) {
        self.1 += 1;
        let call = Call::new("call", self.1, ThreadId(1));
        self.0.apply(call, Op::Work { stream: StreamId(1), accesses: &[access] });
    }

    /// The ranges that an access comes to, of so many of them.
    fn ranges_of_each(&mut self, count: u64, access: &Access) -> u64 {
        let before = self.0.size().touched;
        (0..count).for_each(|_| self.work(access.clone()));
        assert_eq!(self.0.take_findings().len(), 0);
        (self.0.size().touched - before) / count
    }
}

#[test]
fn a_buffer_of_many_pieces_is_read_as_one() {
    let mut program = Program::new();
    for piece in 0..1024 {
        program.work(Access::write(piece * 64, 64));
    }
    assert!(program.ranges_of_each(20_000, &Access::read(0, 1 << 16)) <= 2);
    assert!(program.ranges_of_each(20_000, &Access::write(0, 1 << 16)) <= 1);
}

#[test]
fn rows_are_one_access() {
    let mut program = Program::new();
    let stride = Stride { width: 4, pitch: 16 };
    let rows = Access::write(0, 0).rows(1 << 16, stride);
    assert!(program.ranges_of_each(1000, &rows) <= 4);
    program.work(Access::write(0, 1 << 20));
    assert!(program.ranges_of_each(1000, &rows) <= 4);
}
