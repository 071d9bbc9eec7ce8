//! A kernel that reads a table which was uploaded, and work where the table leads.

use cuda_order_check_engine::{Cell, Compare};

use super::corpus::{
    CALL, GATHER, INPUT, MEMORY, NONE, OFFSET, PART, RING, UNUSED, WAITS, found, launch, order,
    upload, whole, with_image,
};
use crate::call::{Address, Call, Handle, OK};
use crate::hooks::unmodelled::unmodelled;
use crate::hooks::{copies, declare, graphs, memory, streams, values};
use crate::state::blocks::Block;
use crate::state::values::Value;

/// The last of 256 elements from the begin of the memory on is its first.
const TABLE: Address = INPUT + 1020;

/// A table of which each element is in this part of the memory.
fn table(stream: Handle, part: u32) {
    let all: Vec<u32> = (0..256).map(|at| part * PART as u32 / 4 + at).collect();
    let from = all.as_ptr().expose_provenance() as u64;
    let call = Call { name: "cuMemcpyHtoDAsync_v2", per_thread: false };
    let blocks = [Block::device(TABLE), Block::host(from)];
    copies::copy(&call, || OK, blocks, [1024, 1, 1], Some(stream));
}

/// A stream writes a word, or waits for it.
fn value(stream: Handle, address: Address, wait: Option<Compare>) {
    let value = Value { cell: Cell { address, bytes: 4 }, value: 1, wait };
    values::apply(&CALL, || OK, stream, &[value]);
}

fn gather(stream: Handle) {
    launch(GATHER, stream, &[TABLE, MEMORY, INPUT + 2048, 256]);
}

/// What is found of a gather by a table of part 2, and an upload of a part, with this between the table and
/// the gather.
fn after(between: impl Fn([Handle; 2]), part: u64) -> Vec<String> {
    let streams = with_image("", whole());
    let [a, b] = streams;
    table(b, 2);
    between(streams);
    gather(b);
    upload(a, part);
    found()
}

/// The part that the table names, and no other. The kernel may be the second one.
pub(super) fn blocks_of_a_table() {
    let likely = ["likely: 2048..2052 3068..3072 reads writes"];
    assert_eq!(after(|_| (), 2), likely);
    for other in [0, 1, 3] {
        assert_eq!(after(|_| (), other), NONE, "{other}");
    }
    let [a, b] = with_image("", whole());
    table(b, 2);
    upload(a, 2);
    gather(b);
    assert_eq!(found(), ["likely: 2048..2052 3068..3072 writes reads"]);

    // An engine that loads what no table of a request names, and then says so.
    let [a, b] = with_image("", whole());
    for round in 0..8 {
        table(b, round % 2);
        gather(b);
        upload(a, u64::from(2 + round % 2));
        gather(b);
    }
    assert_eq!(found(), NONE);
    table(b, 3);
    gather(b);
    assert_eq!(found().len(), 1);
}

/// What may change the table, and what does not.
pub(super) fn tables_that_change() {
    let written = |at: u64, bytes: usize| {
        move |[a, _]: [Handle; 2]| {
            let call = Call { name: "cuMemsetD8Async", per_thread: false };
            copies::set(&call, || OK, Block::device(at), (0, 1), [bytes, 1], Some(a));
        }
    };
    // Kernels: one that writes there, one beside it, one of which memory says where it writes, and one that
    // has the address and does not use it.
    let launched =
        |kernel, values: &'static [u64]| move |[a, _]: [Handle; 2]| launch(kernel, a, values);
    let is_there = |found: Vec<String>| found.iter().any(|line| line.starts_with("likely: 2048"));
    for (what, between, stays) in [
        ("a memset", &written(TABLE + 1020, 4) as &dyn Fn([Handle; 2]), false),
        ("a memset beside it", &written(TABLE + 1024, 4), true),
        ("a kernel", &launched(OFFSET, &[MEMORY, TABLE, 0, 1, 16]), false),
        ("the end of a kernel's array", &launched(OFFSET, &[MEMORY, INPUT, 0, 1, 256]), false),
        ("a kernel beside it", &launched(OFFSET, &[MEMORY, INPUT, 0, 1, 255]), true),
        ("a kernel that reads it", &launched(OFFSET, &[TABLE, INPUT + 2048, 0, 1, 16]), true),
        ("a kernel that does not use it", &launched(UNUSED, &[TABLE, INPUT + 2048, 16]), true),
        ("a kernel without code", &launched(RING, &[INPUT + 2048, MEMORY]), false),
        (
            "a graph",
            &|[a, _]| {
                let (mut graph, mut exec) = (300, 301);
                streams::capture_begin(&CALL, || OK, a);
                streams::capture_end(&CALL, || OK, a, &mut graph);
                graphs::instantiate(&CALL, || OK, &mut exec, graph, 0);
                graphs::launch(&CALL, || OK, exec, a);
            },
            false,
        ),
        ("a free", &|[a, _]| _ = memory::free_async(&CALL, || OK, INPUT + (1 << 20), a), false),
        (
            "what the program reports",
            &|[a, _]| declare::declare("x", Some(a), TABLE, 4, true),
            false,
        ),
        ("a value", &|[a, _]| value(a, TABLE, None), false),
        ("a call without a rule", &|_| unmodelled("cuNothing", &[0; 6]), false),
    ] {
        assert_eq!(is_there(after(between, 2)), stays, "{what}");
    }
    // The table comes in the other stream.
    let [a, b] = with_image("", whole());
    table(a, 2);
    order([a, b]);
    gather(b);
    upload(a, 2);
    assert_eq!(found(), NONE);
    // So many launches are remembered.
    for (launches, stays) in [(32, true), (33, false)] {
        let many = |[a, _]: [Handle; 2]| {
            for at in 0..launches {
                launch(OFFSET, a, &[MEMORY, INPUT, at, 1, 16]);
                launch(OFFSET, a, &[MEMORY, INPUT + 64, at, 1, 16]);
            }
        };
        assert_eq!(is_there(after(many, 2)), stays, "{launches}");
    }
}

/// A kernel that goes through the table in a loop, and of which the code does not tell what all is done with
/// the table's address: where all its stores are says that it does not change the table.
pub(super) fn table_in_a_loop() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .entry gather(.param .u64 index, .param .u64 from, .param .u64 to, .param .u32 n)\n\
        { .reg .b64 %x, %f, %t, %w, %z; .reg .b32 %i, %n, %v, %r; .reg .pred %p;\n\
        ld.param.u64 %x, [index]; ld.param.u64 %f, [from]; ld.param.u64 %t, [to];\n\
        ld.param.u32 %n, [n]; mov.u32 %i, %tid.x; mul.wide.u32 %w, %i, 4; add.u64 %t, %t, %w;\n\
        AGAIN: ld.global.u32 %v, [%x]; mul.wide.u32 %w, %v, 4; add.u64 %w, %w, %f;\n\
        shr.u64 %z, %x, 60; add.u64 %w, %w, %z;\n\
        ld.global.u32 %r, [%w]; add.u64 %x, %x, 4; and.b64 %x, %x, -4; sub.u32 %n, %n, 1;\n\
        setp.ne.u32 %p, %n, 0; @%p bra AGAIN; st.global.u32 [%t], %r; ret; }\n\0";
    for (part, to, expected) in [
        (2, INPUT + 2048, &["likely: 2048..2064 reads writes"][..]),
        (1, INPUT + 2048, &NONE),
        // The end of its results is the begin of the table.
        (2, TABLE - 1020, &NONE),
    ] {
        let [a, b] = with_image("", text.into());
        table(b, 2);
        launch(GATHER, b, &[TABLE, MEMORY, to, 4]);
        upload(a, part);
        assert_eq!(found(), expected, "{part} {to:x}");
    }
}

/// A kernel stores where a pointer in memory says, which may be in the table, and another one loads there.
pub(super) fn table_behind_a_pointer() {
    let text = |access: &str| {
        let gather = ".entry gather(.param .u64 index, .param .u64 from, .param .u64 to, .param .u32 n)\n\
            { .reg .b64 %x, %f, %t, %w; .reg .b32 %i, %v, %r;\n\
            ld.param.u64 %x, [index]; ld.param.u64 %f, [from]; ld.param.u64 %t, [to];\n\
            mov.u32 %i, %tid.x; mul.wide.u32 %w, %i, 4; add.u64 %t, %t, %w; add.u64 %x, %x, %w;\n\
            ld.global.u32 %v, [%x]; mul.wide.u32 %w, %v, 4; add.u64 %w, %w, %f;\n\
            ld.global.u32 %r, [%w]; st.global.u32 [%t], %r; ret; }\n";
        let pointer = ".entry waits(.param .u64 all, .param .u64 no, .param .u64 out)\n\
            { .reg .b64 %a, %p, %o; .reg .b32 %r;\n\
            ld.param.u64 %a, [all]; ld.param.u64 %o, [out]; ld.global.u64 %p, [%a]; mov.u32 %r, 0;\n";
        let head = ".version 8.0\n.target sm_90\n.address_size 64\n";
        [head, gather, pointer, access, " ret; }\n\0"].concat().into_bytes()
    };
    for (access, expected) in [
        (
            "ld.global.u32 %r, [%p]; st.global.u32 [%o], %r;",
            &["likely: 2048..2052 3068..3072 reads writes"][..],
        ),
        ("st.global.u32 [%p], %r;", &NONE),
        ("red.global.add.u32 [%p], %r;", &NONE),
    ] {
        // The pointer is in the table's allocation, or in another one.
        for memory in [INPUT, MEMORY] {
            let [a, b] = with_image("", text(access));
            table(b, 2);
            launch(WAITS, b, &[memory + 3072, memory, memory + 3080]);
            gather(b);
            upload(a, 2);
            assert_eq!(found(), expected, "{access}");
        }
    }
}

/// Pinned memory has what a copy reads, unless something may write there before that.
pub(super) fn tables_in_pinned_memory() {
    let all: Vec<u32> = (0..256).map(|at| 2 * PART as u32 / 4 + at).collect();
    let first = all.as_ptr().expose_provenance() as u64;
    let copied = |to, from, stream| {
        copies::copy(&CALL, || OK, [to, from].map(Block::any), [1024, 1, 1], Some(stream));
    };
    let found_after = |before: &dyn Fn([Handle; 2])| {
        let streams = with_image("", whole());
        let [a, b] = streams;
        memory::register(&CALL, || OK, first, 1024, 0);
        before(streams);
        copied(TABLE, first, b);
        gather(b);
        upload(a, 2);
        found().iter().any(|line| line.starts_with("likely: 2048"))
    };
    assert!(found_after(&|_| ()));
    assert!(!found_after(&|[_, b]| copied(first, INPUT, b)), "a stream writes it");
    assert!(!found_after(&|[_, b]| launch(OFFSET, b, &[INPUT, first, 0, 1, 4])), "a kernel may");
    let other = first + 4096;
    assert!(
        !found_after(&|[_, b]| value(b, other, Some(Compare::Equal))),
        "the host may end a wait"
    );
    assert!(found_after(&|[_, b]| value(b, other, None)), "a write of a value elsewhere");
}
