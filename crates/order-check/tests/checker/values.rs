//! Which work a wait for a value comes after.

use crate::common;
use crate::common::Do::{self, HandOver, Record, TakeOver, Wait, WaitValue, Work, Write};
use cuda_order_check_engine::{
    Access, Call, Cell, Checker, Compare, HostOrder, Op, Options, StreamId, ThreadId,
};

const VALUE: Cell = Cell { address: 0x10, bytes: 8 };
const OTHER: Cell = Cell { address: 0x20, bytes: 8 };

fn writes(stream: u64) -> Do {
    Work(stream, vec![Access::write(0x1000, 64)])
}

fn reads(stream: u64) -> Do {
    Work(stream, vec![Access::read(0x1000, 64)])
}

fn waits(stream: u64, cell: Cell) -> Do {
    WaitValue(stream, cell, 5, Compare::Equal)
}

/// The number of reports of a program, of which each call has its thread.
fn reports(host_order: HostOrder, program: &[(u64, Do)]) -> usize {
    let mut checker = Checker::new(Options::new().host_order(host_order));
    for (number, (thread, does)) in (1..).zip(program) {
        checker.apply(Call::new("call", number, ThreadId(*thread)), does.op());
    }
    checker.take_findings().len()
}

fn in_one_thread(program: Vec<Do>) -> usize {
    let program: Vec<_> = program.into_iter().map(|does| (1, does)).collect();
    reports(HostOrder::Submission, &program)
}

/// Work that is after a write of a part of the value cannot see the value from before. So what it
/// waits for is the later write, whose work it is after.
#[test]
fn a_part_of_a_value_is_overwritten() {
    let program = |part: Option<(u64, u64)>| {
        let mut program = vec![Write(1, VALUE, 5)];
        program.extend(part.map(|(start, bytes)| Work(1, vec![Access::write(start, bytes)])));
        program.extend([
            Record(1, 1),
            Wait(2, 1),
            Wait(3, 1),
            waits(2, VALUE),
            writes(3),
            Write(3, VALUE, 5),
            reads(2),
        ]);
        in_one_thread(program)
    };
    assert_eq!(program(None), 1, "the first write is seen");
    for part in [(0x10, 8), (0x10, 1), (0x14, 4), (0x17, 1), (0x17, 64), (0, 0x11)] {
        assert_eq!(program(Some(part)), 0, "{part:x?}");
    }
    for beside in [(0x18, 8), (0x8, 8)] {
        assert_eq!(program(Some(beside)), 1, "{beside:x?}");
    }
}

/// The rows of a memset are bytes of the value, or beside it.
#[test]
fn a_row_overwrites_a_value() {
    use cuda_order_check_engine::Stride;
    let program = |start: u64, width: u64| {
        let rows = Access::write(start, width).rows(9, Stride { width, pitch: 16 });
        let set = Work(1, vec![rows]);
        let all = [Write(1, VALUE, 5), set, Record(1, 1), Wait(2, 1), Wait(3, 1)];
        let later = [waits(2, VALUE), writes(3), Write(3, VALUE, 5), reads(2)];
        in_one_thread(all.into_iter().chain(later).collect())
    };
    assert_eq!([program(0, 1), program(7, 1), program(4, 8)], [0; 3]);
    assert_eq!([program(8, 8), program(0x18, 4), program(0x20, 1)], [1; 3]);
}

/// A write of another value does not end the wait, and the next one may still do so.
#[test]
fn a_wait_goes_on_until_a_write_ends_it() {
    for (values, expected) in [(&[][..], 0), (&[4], 0), (&[5], 1), (&[4, 5], 1), (&[4, 3, 5], 1)] {
        let mut program = vec![waits(2, VALUE), writes(2)];
        program.extend(values.iter().map(|value| Write(1, VALUE, *value)));
        // What is held back cannot be unordered with it.
        program.push(writes(3));
        assert_eq!(in_one_thread(program), expected, "{values:?}");
    }
}

/// Of two streams that write the value either may be the one that is seen: the wait is after neither.
#[test]
fn a_wait_is_after_what_all_writers_have_in_common() {
    for (streams, ordered, expected) in [
        (&[1][..], false, 0),
        (&[1, 3], false, 1),
        (&[3, 1], false, 1),
        // The second one is after the first one's work.
        (&[1, 3], true, 0),
    ] {
        let mut program = vec![writes(1), Record(1, 1)];
        for stream in streams {
            if ordered {
                program.push(Wait(*stream, 1));
            }
            program.push(Write(*stream, VALUE, 5));
        }
        program.extend([waits(2, VALUE), reads(2)]);
        let races = in_one_thread(program.clone());
        // The writes of one word are atomic, and need no order.
        assert_eq!(races, expected, "{streams:?} {ordered}");
    }
}

/// A copy of known bytes ends a wait that was there before, if it has the value.
#[test]
fn a_wait_goes_on_until_a_copy_ends_it() {
    for (content, expected) in [(None, 0), (Some(4), 0), (Some(5), 1)] {
        for range in [(0x10, 8), (0, 64)] {
            let copy = Access::write(range.0, range.1);
            let copy = content.map_or(copy.clone(), |content| copy.filled(content));
            let program = vec![waits(2, VALUE), writes(2), Work(1, vec![copy]), writes(3)];
            assert_eq!(in_one_thread(program), expected, "{content:?} {range:x?}");
        }
    }
}

/// A word of four bytes at the same place leaves the whole one as long as it is.
#[test]
fn a_part_of_a_value_may_be_a_value() {
    let half = Cell { bytes: 4, ..VALUE };
    let program = |part: u64| {
        in_one_thread(vec![
            Write(1, VALUE, 5),
            Write(1, half, 5),
            Work(1, vec![Access::write(part, 4)]),
            Record(1, 1),
            Wait(2, 1),
            Wait(3, 1),
            waits(2, VALUE),
            writes(3),
            Write(3, VALUE, 5),
            reads(2),
        ])
    };
    assert_eq!([0x10, 0x14, 0x18].map(program), [0, 0, 1]);
}

/// A kernel, or another device, has written the value: that may have been after all work so far.
#[test]
fn a_wait_may_be_ended_by_what_nobody_sees() {
    let with = |unseen, late: bool, copied: Option<Access>| {
        let mut checker = Checker::new(Options::new().unseen_writers(unseen));
        let mut number = 0;
        let mut apply = |op: Op<'_>| {
            number += 1;
            checker.apply(Call::new("call", number, ThreadId(1)), op);
        };
        apply(Do::Host(vec![Access::allocate(0, 64)]).op());
        if let Some(copy) = copied {
            apply(Op::Work { stream: StreamId(3), accesses: &[copy] });
        }
        if !late {
            apply(writes(1).op());
        }
        apply(waits(2, VALUE).op());
        apply(reads(2).op());
        apply(Do::Sync(cuda_order_check_engine::What::Stream(StreamId(2))).op());
        if late {
            apply(writes(1).op());
            apply(reads(2).op());
        }
        checker.take_findings().len()
    };
    let copy = || Access::write(0, 64);
    let program = |unseen, late, copied: bool| with(unseen, late, copied.then(copy));
    assert_eq!(program(false, false, false), 1);
    assert_eq!(program(true, false, false), 0);
    assert_eq!(program(true, true, false), 1, "what comes after its end is not before it");
    assert_eq!(program(true, false, true), 1, "it may have been the copy");
    assert_eq!(with(true, false, Some(copy().filled(4))), 0, "it was not the copy");
}

/// An unreported writer ended the wait. It may have seen any value that a stream wrote, and it may
/// be any thread.
#[test]
fn a_wait_is_ended_from_outside() {
    let program = |host_order, seen: bool, others: bool| {
        let mut checker = Checker::new(Options::new().host_order(host_order));
        let mut number = 0;
        let mut apply = |thread, op: Op<'_>| {
            number += 1;
            checker.apply(Call::new("call", number, ThreadId(thread)), op);
            number
        };
        apply(1, HandOver(1).op());
        apply(2, TakeOver(1).op());
        apply(1, writes(1).op());
        if seen {
            apply(1, Write(1, OTHER, 1).op());
        }
        let wait = apply(2, waits(2, VALUE).op());
        apply(2, reads(2).op());
        if others {
            apply(1, Do::Sync(cuda_order_check_engine::What::Stream(StreamId(1))).op());
        }
        apply(2, Op::WaitEnded { call: wait, cell: VALUE });
        checker.take_findings().len()
    };
    for host_order in [HostOrder::Submission, HostOrder::Reported] {
        assert_eq!(program(host_order, false, false), 1);
        assert_eq!(program(host_order, true, false), 0, "after all written values");
        assert_eq!(program(host_order, false, true), 0, "after what each thread is after");
    }
}

/// A flag inside a larger copy, for which no stream has waited before: the wait is after the copy,
/// and after what comes before it.
#[test]
fn a_flag_inside_a_larger_copy() {
    let program = |first: bool, copy: Access| {
        let mut checker = Checker::default();
        let mut number = 0;
        let mut apply = |op: Op<'_>| {
            number += 1;
            checker.apply(Call::new("call", number, ThreadId(1)), op);
            number
        };
        let copies = Work(1, vec![copy]);
        if first {
            apply(copies.op());
        }
        apply(writes(1).op());
        if !first {
            apply(copies.op());
        }
        let wait = apply(waits(2, VALUE).op());
        apply(reads(2).op());
        apply(Op::WaitEnded { call: wait, cell: VALUE });
        checker.take_findings().len()
    };
    let rows = |at, count, width, pitch| {
        let stride = cuda_order_check_engine::Stride { width, pitch };
        Access::write(at, 0).rows(count, stride)
    };
    let small = rows(0x14, 2, 1, 3);
    for copy in [Access::write(0, 64), Access::write(0x10, 9), rows(0, 4, 24, 64), small] {
        assert_eq!(program(false, copy.clone()), 0, "{copy:x?}");
        assert_eq!(program(true, copy.clone()), 1, "{copy:x?}");
    }
    assert_eq!(program(false, Access::write(0x18, 64)), 1, "beside it");
}

/// A value from before, which a copy or a memset of known bytes wrote, ends a wait at once.
#[test]
fn a_stale_value_that_a_memset_wrote() {
    let program = |stale: Access, reset: Option<Do>| {
        let mut program = vec![Work(3, vec![stale]), Record(1, 3), Wait(1, 1), Wait(2, 1)];
        if let Some(reset) = reset {
            program.extend([reset, Record(1, 1), Wait(2, 1)]);
        }
        program.extend([writes(1), Write(1, VALUE, 5), waits(2, VALUE), reads(2)]);
        in_one_thread(program)
    };
    let set = |start, bytes, content| Access::write(start, bytes).filled(content);
    for stale in [set(0x10, 8, 5), set(0, 64, 5)] {
        assert_eq!(program(stale.clone(), None), 1, "{stale:x?}");
        assert_eq!(program(stale.clone(), Some(Write(1, VALUE, 0))), 0);
        assert_eq!(program(stale.clone(), Some(Work(1, vec![set(0x10, 8, 0)]))), 0);
        assert_eq!(program(stale.clone(), Some(Work(1, vec![set(0x10, 8, 5)]))), 1);
    }
    // Other bytes, and bytes that are not known.
    for stale in [set(0x10, 8, 4), set(0xC, 64, 5), Access::write(0x10, 8)] {
        assert_eq!(program(stale.clone(), None), 0, "{stale:x?}");
    }
}

/// Memory that is allocated anew has no value, whatever a stream wrote there before, and without an
/// order as well: the program may have waited where nobody sees it.
#[test]
fn no_value_outlives_an_allocation() {
    let program = |stale: Access, anew: bool| {
        let mut program = vec![Work(3, vec![stale])];
        program.extend(anew.then(|| Do::Host(vec![Access::allocate(0, 64)])));
        program.extend([writes(1), Write(1, VALUE, 5), waits(2, VALUE), reads(2)]);
        in_one_thread(program)
    };
    for stale in [Access::write(0x10, 8), Access::write(0, 64)] {
        let stale = stale.filled(5);
        // The two writes of the value have no order either.
        assert_eq!([true, false].map(|anew| program(stale.clone(), anew)), [0, 2], "{stale:x?}");
    }
}

/// A copy of known bytes that all have waited for is still what a wait sees.
#[test]
fn a_stale_value_is_not_forgotten() {
    let program = |stale: Option<Do>| {
        let mut checker = Checker::new(Options::new().retire_every(1));
        let mut number = 0;
        let mut apply = |does: Do| {
            number += 1;
            checker.apply(Call::new("call", number, ThreadId(1)), does.op());
        };
        stale.into_iter().for_each(&mut apply);
        apply(Do::Sync(cuda_order_check_engine::What::Stream(StreamId(3))));
        (0..64).for_each(|_| apply(Work(4, Vec::new())));
        [writes(1), Write(1, VALUE, 5), waits(2, VALUE), reads(2)].into_iter().for_each(apply);
        checker.take_findings().len()
    };
    let copy = |access| Work(3, vec![access]);
    let set = |start, bytes, content| copy(Access::write(start, bytes).filled(content));
    for stale in [set(0, 64, 5), set(0x10, 16, 5), set(0, 0x18, 5), Write(3, VALUE, 5)] {
        assert_eq!(program(Some(stale.clone())), 1, "{stale:x?}");
    }
    let unknown = copy(Access::write(0, 64));
    let others = [None, Some(set(0, 64, 4)), Some(unknown), Some(set(0x18, 64, 5))];
    for other in others {
        assert_eq!(program(other.clone()), 0, "{other:x?}");
    }
}

/// If others may write values, a wait that nothing reported has ended is after all that is over and
/// after all that the host has done: one of these may have been the writer, or before it.
#[test]
fn a_wait_that_an_unseen_writer_ended_is_after_everything() {
    let store = || Do::Host(vec![Access::write(0x1000, 64)]);
    let sync = || Do::Sync(cuda_order_check_engine::What::Stream(StreamId(2)));
    for (name, other, thread) in
        [("a stream", writes(1), 1), ("the host", store(), 1), ("another thread", store(), 2)]
    {
        for order in [HostOrder::Submission, HostOrder::Reported] {
            let found = [true, false].map(|unseen| {
                let options = Options::new().host_order(order).unseen_writers(unseen);
                let mut checker = Checker::new(options);
                let program = [(1, waits(2, VALUE)), (1, reads(2)), (thread, other.clone())];
                for (number, (thread, does)) in (1..).zip(program.into_iter().chain([(1, sync())]))
                {
                    checker.apply(Call::new("call", number, ThreadId(thread)), does.op());
                }
                checker.take_findings().len()
            });
            assert_eq!(found, [0, 1], "{name}, {order:?}");
        }
    }
}

/// A stream is destroyed while its work waits for a value. A wait for its context is after that work,
/// also long after the value was written.
#[test]
fn the_held_back_work_of_a_destroyed_stream_is_waited_for() {
    use cuda_order_check_engine::{ContextId, What};
    for waits_for in [0, 1] {
        let mut checker = Checker::new(Options::new().retire_every(1));
        let mut program = vec![waits(1, VALUE), writes(1), Do::Destroy(1), Write(2, VALUE, 5)];
        program.extend((0..64).map(|_| Work(4, Vec::new())));
        program.push(Do::Sync(What::Context(ContextId(waits_for))));
        program.push(Do::Host(vec![Access::read(0x1000, 64)]));
        for (number, does) in (1..).zip(program) {
            checker.apply(Call::new("call", number, ThreadId(1)), does.op());
        }
        assert_eq!(checker.take_findings().len() as u64, waits_for, "context {waits_for}");
    }
}

/// As many copies are kept that may be what a later wait sees: the wait is after none before them.
#[test]
fn the_last_copies_are_kept() {
    const COPIES: u64 = 64;
    for (others, expected) in [(0, 0), (COPIES - 1, 0), (COPIES, 1)] {
        let mut program = vec![writes(1), Work(1, vec![Access::write(0, 64).filled(5)])];
        program.extend((0..others).map(|at| Work(3, vec![Access::write(0x8000 + 64 * at, 64)])));
        let sync = Do::Sync(cuda_order_check_engine::What::Stream(StreamId(2)));
        program.extend([waits(2, VALUE), reads(2), sync]);
        assert_eq!(in_one_thread(program), expected, "{others} others");
    }
}

/// Of the many writes of a value the oldest are forgotten, whichever stream they are of.
#[test]
fn the_last_writes_of_a_value_are_kept() {
    for others in [10, 255, 256, 300] {
        let old = (0..others).map(|value| Write(1, VALUE, value + 1000));
        // Nothing orders the two streams, so a wait may see the value of either.
        let new = [writes(3), Write(3, VALUE, 5), Write(1, VALUE, 7), waits(2, VALUE), reads(2)];
        let end = [Do::Sync(cuda_order_check_engine::What::Stream(StreamId(2)))];
        let found = in_one_thread(old.chain(new).chain(end).collect());
        assert_eq!(found, 0, "after {others} others");
    }
}

/// The host has reset a value by a store, which is found later.
#[test]
fn a_found_value_replaces_what_the_host_has_waited_for() {
    let program = |found: bool| {
        let mut checker = Checker::default();
        let mut number = 0;
        let mut apply = |op: Op<'_>| {
            number += 1;
            checker.apply(Call::new("call", number, ThreadId(1)), op);
        };
        apply(Write(1, VALUE, 5).op());
        apply(Do::Sync(cuda_order_check_engine::What::Stream(StreamId(1))).op());
        if found {
            apply(Op::FoundValue { cell: VALUE, value: 0 });
        }
        for does in [writes(1), Write(1, VALUE, 5), waits(2, VALUE), reads(2)] {
            apply(does.op());
        }
        checker.take_findings().len()
    };
    assert_eq!([program(true), program(false)], [0, 1]);
}

/// A wait that another thread has submitted before is after what the thread that stored the value
/// has waited for.
#[test]
fn a_found_value_orders_what_its_thread_has_waited_for() {
    let program = |waited: bool| {
        let mut program = vec![(1, HandOver(1)), (2, TakeOver(1)), (2, waits(2, VALUE))];
        program.extend([(2, reads(2)), (1, writes(1))]);
        if waited {
            program.push((1, Do::Sync(cuda_order_check_engine::What::Stream(StreamId(1)))));
        }
        let mut checker = Checker::new(Options::new());
        let mut calls = 1..;
        let mut call = |thread| Call::new("call", calls.next().unwrap(), ThreadId(thread));
        for (thread, does) in program {
            checker.apply(call(thread), does.op());
        }
        checker.apply(call(1), Op::FoundValue { cell: VALUE, value: 5 });
        checker.take_findings().len()
    };
    assert_eq!([program(true), program(false)], [0, 1]);
}

/// An allocation writes no value. So a wait that something unreported ends is not after it, even if
/// its bytes contain the value.
#[test]
fn an_allocation_is_no_write_of_a_value() {
    use cuda_order_check_engine::{AccessKind, By, Stride, What};
    let pairs = |allocated: Access| {
        let program = [
            Work(2, vec![Access::read(0x40, 4), allocated]),
            Write(1, VALUE, 5),
            // No work of the stream sees the value any more.
            Work(1, vec![Access::write(0x12, 2)]),
            waits(1, VALUE),
            Do::Query(What::Stream(StreamId(1)), true),
            Work(1, vec![Access::write(0x40, 4)]),
        ];
        let mut checker = Checker::default();
        for (line, does) in (1..).zip(program) {
            common::apply(&mut checker, line, &common::Step { by: By::Thread(ThreadId(1)), does });
        }
        checker.take_findings().iter().filter_map(crate::common::lines).collect::<Vec<_>>()
    };
    let rows = Access::new(AccessKind::Allocate, 0, 0).rows(9, Stride { width: 1, pitch: 4 });
    for allocated in [Access::new(AccessKind::Allocate, 0, 0x20), rows] {
        let found = pairs(allocated.clone());
        assert!(found.contains(&(1, 4)) && found.contains(&(1, 6)), "{found:?}: {allocated:x?}");
    }
}
