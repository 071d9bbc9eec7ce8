//! What accesses cost, in the ranges that they come to.

use cuda_order_check_engine::{
    Access, Call, Cell, Checker, Compare, EventId, Op, StreamId, Stride, ThreadId,
};

struct Program(Checker, u64);

impl Program {
    fn new() -> Self {
        Self(Checker::default(), 0)
    }

    fn apply(&mut self, op: Op<'_>) {
        self.1 += 1;
        self.0.apply(Call::new("call", self.1, ThreadId(1)), op);
    }

    fn work(&mut self, access: Access) {
        self.work_in(1, access);
    }

    fn work_in(&mut self, stream: u64, access: Access) {
        self.apply(Op::Work { stream: StreamId(stream), accesses: &[access] });
    }

    /// Later work of `to` is after the work of `from`.
    fn hand(&mut self, from: u64, to: u64) {
        let event = EventId(1);
        self.apply(Op::Record { event, stream: StreamId(from), external: false });
        self.apply(Op::Wait { stream: StreamId(to), event, external: false });
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
    // The gaps around what is there are wholes as well.
    let mut program = Program::new();
    program.work(Access::write(1 << 19, 4));
    assert!(program.ranges_of_each(1, &rows) <= 16);
}

/// Now a piece is written, and then the whole is read: only the pieces are touched again.
#[test]
fn a_piece_is_written_and_then_the_whole_is_read() {
    const PIECES: u64 = 1024;
    for (streams, pieces) in [(1, 1), (2, 1), (1, 5), (2, 5)] {
        let mut program = Program::new();
        for piece in 0..PIECES {
            program.work(Access::write(piece * 64, 64));
        }
        let mut before = 0;
        for turn in 0..2000 {
            if turn == 1000 {
                before = program.0.size().touched;
            }
            for piece in 0..pieces {
                program.work(Access::write((turn * 7 + piece * 31) % PIECES * 64, 64));
            }
            for stream in 1..=streams {
                program.hand(1, stream);
                program.work_in(stream, Access::read(0, PIECES * 64));
                program.hand(stream, 1);
            }
        }
        assert_eq!(program.0.take_findings().len(), 0);
        let each = (program.0.size().touched - before) / 1000;
        // A clean-up comes to all pieces now and then.
        assert!(each <= 8 * pieces * streams + 8, "{each} of {pieces} pieces, {streams} streams");
    }
}

/// Parts of what was read as a whole are read by others, and then more of it around them: each read
/// stays.
#[test]
fn reads_of_a_part_stay_when_more_is_read() {
    for (others, expected) in [(false, 0), (true, 1)] {
        let mut program = Program::new();
        (0..4).for_each(|piece| program.work(Access::write(piece * 64, 64)));
        (0..2).for_each(|_| program.work(Access::read(0, 256)));
        (2..=3).for_each(|stream| program.hand(1, stream));
        if others {
            program.work_in(2, Access::read(64, 64));
        }
        program.work_in(3, Access::read(0, 192));
        program.hand(3, 1);
        // It is after all but the second stream's.
        program.work(Access::write(64, 64));
        assert_eq!(program.0.take_findings().len(), expected, "{others}");
    }
}

/// Rows of one pitch, and rows of another one.
#[test]
fn rows_of_two_pitches() {
    for (one, two) in [(16, 32), (32, 16), (24, 16), (64, 1024)] {
        let mut program = Program::new();
        let (bytes, width) = (1 << 20, 4);
        let rows = |pitch| Access::write(0, 0).rows(bytes / pitch, Stride { width, pitch });
        program.work(rows(one));
        for _ in 0..2 {
            program.work(rows(two));
            program.work(rows(one));
        }
        let (first, second) =
            (program.ranges_of_each(100, &rows(one)), program.ranges_of_each(100, &rows(two)));
        assert!(first + second <= 300, "{first} and {second}: {one} and {two}");
    }
}

/// A counter that a stream writes again and again: a write and a wait come to the last writes of
/// each stream, and not to all that are kept.
#[test]
fn a_counter_is_written_and_waited_for() {
    let mut program = Program::new();
    let cell = Cell { address: 0x10, bytes: 8 };
    let mut apply = |op: Op<'_>| {
        program.1 += 1;
        program.0.apply(Call::new("call", program.1, ThreadId(1)), op);
        program.0.size().touched
    };
    let compare = Compare::GreaterOrEqual;
    let mut value = 0;
    for streams in [1, 2] {
        let mut before = 0;
        for turn in 0..2000 {
            if turn == 1000 {
                before = apply(Op::Work { stream: StreamId(1), accesses: &[] });
            }
            value += 1;
            apply(Op::WriteValue { stream: StreamId(1 + turn % streams), cell, value });
        }
        let touched = apply(Op::Work { stream: StreamId(1), accesses: &[] }) - before;
        // Each also comes to the bytes of the value.
        assert!(touched <= 1000 * (2 * streams + 1), "{touched} of {streams}");
    }
    for _ in 0..2 {
        let before = program.0.size().touched;
        program.1 += 1;
        let wait = Op::WaitValue { stream: StreamId(9), cell, value, compare };
        program.0.apply(Call::new("call", program.1, ThreadId(1)), wait);
        assert!(program.0.size().touched - before <= 256 + 2);
    }
}
