//! Accesses with gaps, kernels that wait, and what bounds alone say.

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, Cell, StreamId, Stride};

use super::corpus::{
    CALL, INPUT, MEMORY, NONE, PART, PART_OF_CUBE, RING, WAITS, found, launch, launch_of, order,
    possible, touch, upload, with_image,
};
use crate::call::{Address, Call, Handle};
use crate::hooks::declare::take_findings;
use crate::model::copies;
use crate::walk::begin_call;

pub(super) fn image() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-access/tests/order.ptx");
    let mut text = std::fs::read(path).expect("the kernels");
    text.push(0);
    text
}

/// A part of the memory as planes of eight columns and four rows of floats.
fn cube(stream: Handle, [x, wide, y, high]: [u64; 4]) {
    let values = [MEMORY, x, wide, y, high, 8, 4];
    launch_of(PART_OF_CUBE, stream, [1, 1, 8, 8, 4, 1], &values);
}

/// Tiles and the faces of a cube lie between each other, and need no order.
pub(super) fn parts_that_interleave() {
    let none = || assert_eq!((found(), possible()), (vec![], vec![]));
    let [a, b] = with_image("", image());
    // Two columns and the others, a row and the others, and the other way round.
    for [one, two] in [
        [[0, 2, 0, 4], [2, 6, 0, 4]],
        [[0, 8, 0, 1], [0, 8, 1, 3]],
        [[3, 1, 0, 4], [4, 4, 0, 4]],
        [[0, 8, 2, 1], [0, 8, 3, 1]],
        [[0, 4, 0, 2], [4, 4, 1, 3]],
    ] {
        cube(a, one);
        cube(b, two);
        none();
        order([a, b]);
        cube(a, two);
        cube(b, one);
        none();
        order([a, b]);
    }
    cube(a, [0, 3, 0, 4]);
    cube(b, [2, 6, 0, 4]);
    assert_eq!(found().len(), 1);
    // A copy of columns: of each row the same bytes.
    let columns = |stream, first: u64, wide: u64| {
        let rows = Access::write(MEMORY + 4 * first, 4 * wide);
        let access = rows.rows(32, Stride { width: 4 * wide, pitch: 32 });
        touch(stream, "cuMemcpy2DAsync_v2", access);
    };
    let [a, b] = with_image("", image());
    columns(a, 0, 3);
    cube(b, [3, 5, 0, 4]);
    none();
    order([a, b]);
    columns(b, 3, 5);
    cube(a, [0, 3, 0, 4]);
    none();
    order([a, b]);
    columns(a, 0, 3);
    cube(b, [2, 5, 0, 4]);
    assert_eq!(found().len(), 1);
}

/// More rows than are compared one by one.
pub(super) fn many_rows() {
    const BEGIN: Address = MEMORY + (1 << 20);
    let columns = |first: u64| {
        let rows = Access::write(BEGIN + 4 * first, 8);
        rows.rows(5000, Stride { width: 8, pitch: 32 })
    };
    for (first, expected) in [(2, 1), (6, 0)] {
        let [a, b] = with_image("", image());
        begin_call(&CALL, |watch| watch.allocated(BEGIN, 160_000, Memory::Device));
        touch(a, "cuMemcpy2DAsync_v2", columns(first));
        // The first six columns. Neither thread at the corners writes the third and the fourth.
        let sizes = [1, 1, 1250, 8, 4, 1];
        // It gets the address of the copy, and a negative column.
        let back = u64::from((first as u32).wrapping_neg());
        launch_of(PART_OF_CUBE, b, sizes, &[BEGIN + 4 * first, back, 6, 0, 4, 8, 4]);
        assert_eq!(found().len(), expected, "{first}");
    }
}

/// What a kernel waits for in memory is an order that is not seen.
pub(super) fn kernels_that_wait() {
    let values = [INPUT, INPUT + 1024, MEMORY];
    let waits = "waits: it may wait for other work through memory";
    for upload_first in [true, false] {
        let [a, b] = with_image("", image());
        let does = [
            |stream| upload(stream, 0),
            |stream| launch(WAITS, stream, &[INPUT, INPUT + 1024, MEMORY]),
        ];
        let (one, two) = if upload_first { (does[0], does[1]) } else { (does[1], does[0]) };
        one(a);
        two(b);
        assert_eq!(found(), NONE);
        let lines = possible();
        assert!(lines.len() == 2 && lines[1].contains(waits), "{lines:?}");
    }
    // The kernel that may wait is the first or the second of two.
    for first in [true, false] {
        let [a, b] = with_image("", image());
        let [one, two] = if first { [a, b] } else { [b, a] };
        if first {
            launch(WAITS, one, &values);
        }
        cube(two, [0, 8, 0, 4]);
        if !first {
            launch(WAITS, one, &values);
        }
        assert_eq!(found(), NONE);
        assert!(possible()[1].contains(waits), "{:?}", possible());
    }
    // A kernel that writes other bytes than the upload has no conflict.
    let [a, b] = with_image("", image());
    upload(a, 0);
    launch(WAITS, b, &[INPUT, MEMORY + 1024, INPUT + 2048]);
    assert_eq!((found(), possible()), (vec![], vec![]));
    // A kernel that loads its flag as any other memory waits for nobody, so the conflict is
    // certain.
    let text = String::from_utf8(image()).expect("text").replace("ld.volatile.global", "ld.global");
    let [a, b] = with_image("", text.into_bytes());
    upload(a, 0);
    launch(WAITS, b, &values);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
    // It waits only if there is a flag.
    let text = String::from_utf8(image()).expect("text");
    let text = text
        .replacen("LOOP:\n", "    setp.eq.u64 %again, %flag, 0;\n    @%again bra DONE;\nLOOP:\n", 1)
        .replacen("    mov.u32 %thread, %tid.x;", "DONE:\n    mov.u32 %thread, %tid.x;", 1);
    for (flag, waits) in [(INPUT, true), (0, false)] {
        let [a, b] = with_image("", text.clone().into_bytes());
        upload(a, 0);
        launch(WAITS, b, &[flag, INPUT + 1024, MEMORY]);
        assert_eq!(found().len(), usize::from(!waits), "{flag:x}");
    }
}

/// An order by a signal that comes later is one of those two calls, and of no others at the same places.
pub(super) fn a_signal_for_one_finding_only() {
    let [a, b] = with_image("", image());
    launch(WAITS, b, &[INPUT, INPUT + 1024, INPUT + 2048]);
    for signal in [true, false] {
        upload(a, 0);
        cube(b, [0, 8, 0, 4]);
        if signal {
            launch(WAITS, a, &[INPUT, INPUT + 1024, INPUT + 4096]);
        }
        assert_eq!(found().len(), usize::from(!signal));
        order([a, b]);
    }
}

/// A kernel whose blocks wait for each other, as those of a scan, is in no order with others by that,
/// unless these have the place of its flags.
pub(super) fn blocks_that_wait_for_each_other() {
    const FLAGS: u64 = INPUT + 0x1000;
    let text = String::from_utf8(image()).expect("text");
    let poll = "LOOP:\n    ld.volatile.global.u32 %seen, [%flag];";
    assert!(text.contains(poll));
    let text = text.replacen("%seen, %thread;", "%seen, %thread, %block;\n    .reg .b64 %own;", 1);
    let signals = "    mov.u32 %block, %ctaid.x;\n    mul.wide.u32 %own, %block, 4;\n    \
         add.s64 %own, %flag, %own;\n    st.release.gpu.global.u32 [%own+4], %block;\n    \
         setp.eq.s32 %again, %block, 0;\n    @%again bra NEXT;\nLOOP:\n    \
         ld.acquire.gpu.global.u32 %seen, [%own];";
    let again = "@%again bra LOOP;\n";
    let text = text.replacen(again, &format!("{again}NEXT:\n"), 1);
    let text = text.replacen(poll, signals, 1).into_bytes();
    fn scan(stream: Handle, flags: u64, to: u64) {
        launch_of(WAITS, stream, [64, 1, 1, 256, 1, 1], &[flags, INPUT, to]);
    }
    let waits = "waits: it may wait for other work through memory";
    let is_possible = || {
        assert_eq!(found(), NONE);
        assert!(possible()[1].contains(waits), "{:?}", possible());
    };
    let written = ["certain: 0..4 1020..1024 writes writes"];
    for upload_first in [true, false] {
        let [a, b] = with_image("", text.clone());
        let does = [|stream| upload(stream, 0), |stream| scan(stream, FLAGS, MEMORY)];
        let (one, two) = if upload_first { (does[0], does[1]) } else { (does[1], does[0]) };
        one(a);
        two(b);
        assert_eq!(found(), written);
        assert_eq!(possible(), NONE);
        // The other work has the place of the flags, so the kernel may wait for it.
        let [a, b] = with_image("", text.clone());
        let does = [|stream| upload(stream, 0), |stream| scan(stream, MEMORY + 4, INPUT + 2048)];
        let (one, two) = if upload_first { (does[0], does[1]) } else { (does[1], does[0]) };
        one(a);
        two(b);
        is_possible();
    }
    // The flags are behind the other work's allocation, in which nobody looks for them, or in it.
    const LAST: u64 = MEMORY + 3 * PART;
    let check = |is_in_it: bool| match is_in_it {
        false => assert_eq!(found(), ["certain: 3072..3076 4092..4096 writes writes"]),
        true => is_possible(),
    };
    for (flags, is_in_it) in [(LAST + PART - 4, false), (LAST - 4, true), (LAST + PART - 8, true)] {
        let [a, b] = with_image("", text.clone());
        upload(a, 3);
        scan(b, flags, LAST);
        check(is_in_it);
        let [a, b] = with_image("", text.clone());
        scan(a, FLAGS + 0x3000, LAST);
        scan(b, flags, LAST);
        check(is_in_it);
    }
    // Another kernel, with flags elsewhere and with the same.
    for (flags, shared) in [(FLAGS + 0x1000, false), (FLAGS, true), (FLAGS + 4, true)] {
        let [a, b] = with_image("", text.clone());
        scan(a, FLAGS, MEMORY);
        scan(b, flags, MEMORY);
        if shared {
            is_possible();
        } else {
            assert_eq!(found().len(), 1, "{flags:x}");
        }
    }
    // It waits for an answer at the place of its own signal: who gives it is not known.
    let mailbox = String::from_utf8(text.clone()).expect("text");
    let mailbox = mailbox.replace("u32 %seen, [%own];", "u32 %seen, [%own+4];").into_bytes();
    assert_ne!(mailbox, text);
    let [a, b] = with_image("", mailbox);
    upload(a, 0);
    scan(b, FLAGS, MEMORY);
    is_possible();
    // Those that were evaluated before have signals elsewhere.
    const NEW: u64 = FLAGS + 0x2000;
    // A launch that may signal anywhere, and one that may signal there and is on neither side.
    let strong = String::from_utf8(text).expect("text");
    let strong = strong.replace("st.global.u32 [%slots]", "st.release.gpu.global.u32 [%slots]");
    let anywhere = strong.replace("and.b32 %at, %at, 3;", "");
    assert_ne!(anywhere, strong);
    let [a, b] = with_image("", anywhere.into_bytes());
    launch(RING, a, &[MEMORY, INPUT]);
    scan(b, NEW, MEMORY);
    is_possible();
    for (slots, shared) in [(INPUT + 0x8000, false), (NEW - 0x40, true)] {
        let [a, b] = with_image("", strong.clone().into_bytes());
        upload(a, 0);
        launch(RING, b, &[MEMORY, slots]);
        assert_eq!(found().len(), 1);
        order([a, b]);
        upload(a, 0);
        scan(b, NEW, MEMORY);
        if shared {
            is_possible();
        } else {
            assert_eq!(found(), written);
        }
    }
}

/// Strong accesses of two kernels are those of a flag, and so are a kernel's beside a stream that writes a
/// value.
pub(super) fn strong_accesses() {
    let text = String::from_utf8(image()).expect("text");
    let reads = text.replace("    @%again bra LOOP;\n", "");
    let weak = reads.replace("ld.volatile.global", "ld.global");
    let writes = |text: &str| text.replace("st.global.f32", "st.release.gpu.global.f32");
    assert!(reads != text && weak != reads && writes(&weak) != weak);
    for (text, ordered) in [(writes(&reads), true), (writes(&weak), false), (reads.clone(), false)]
    {
        for first in [0, 1] {
            let streams = with_image("", text.clone().into_bytes());
            let values = [[INPUT, INPUT, MEMORY], [MEMORY, INPUT, INPUT + 2048]];
            for at in [first, 1 - first] {
                launch(WAITS, streams[at], &values[at]);
            }
            assert_eq!(found().len(), usize::from(!ordered), "{text}");
            assert_eq!(possible(), NONE);
        }
    }
    for (text, ordered) in [(reads, true), (weak, false)] {
        let [a, b] = with_image("", text.into_bytes());
        launch(WAITS, b, &[MEMORY, INPUT, INPUT + 2048]);
        begin_call(&CALL, |watch| {
            let (stream, cell) = (StreamId(a as u64), Cell { address: MEMORY, bytes: 4 });
            watch.feed.write_value(stream, None, cell, 1);
        });
        assert_eq!(found().len(), usize::from(!ordered));
        let is_flag = |line: &String| line.contains("a flag or a counter, which others may share");
        assert_eq!(possible().iter().any(is_flag), ordered);
    }
}

/// Where a thread surely is, and where the other kernel may be. Bounds of both are not enough.
pub(super) fn bounds_alone() {
    // It writes where the flag is set, and does not wait for it.
    let text = String::from_utf8(image()).expect("text");
    let (waits, store) = ("    @%again bra LOOP;\n", "st.global.f32 [%out]");
    assert!(text.contains(waits) && text.contains(store));
    let text = text.replace(waits, "").replace("ld.volatile.global", "ld.global");
    let text = text.replace(store, "@%again st.global.f32 [%out]").into_bytes();
    let perhaps = |stream| launch(WAITS, stream, &[INPUT, INPUT + 1024, MEMORY]);
    let is_conditional = || {
        assert_eq!(found(), NONE);
        let lines = possible();
        let reason = "waits: values in memory decide whether it touches these bytes, or any";
        assert!(lines.len() == 2 && lines[1].contains(reason), "{lines:?}");
    };
    let [a, b] = with_image("", text.clone());
    upload(a, 0);
    perhaps(b);
    is_conditional();
    for cube_first in [true, false] {
        let [a, b] = with_image("", text.clone());
        let does = [|stream| cube(stream, [0, 8, 0, 4]), perhaps];
        let (one, two) = if cube_first { (does[0], does[1]) } else { (does[1], does[0]) };
        one(a);
        two(b);
        is_conditional();
    }
    // Here the thread goes on or not.
    let text = String::from_utf8(text).expect("text");
    let ends = text
        .replace("    mov.u32 %thread, %tid.x;", "    @%again ret;\n    mov.u32 %thread, %tid.x;");
    let ends = ends.replace("@%again st.global", "st.global");
    assert!(ends.contains("@%again ret") && !ends.contains("@%again st"));
    let [a, b] = with_image("", ends.into_bytes());
    upload(a, 0);
    perhaps(b);
    is_conditional();
    let text = text.into_bytes();
    let [a, b] = with_image("", text);
    perhaps(a);
    perhaps(b);
    assert_eq!(found(), NONE);
    let lines = possible();
    let reason = "only where its accesses and the other kernel's may be is known";
    assert!(lines.len() == 2 && lines[1].contains(reason), "{lines:?}");
}

/// Each of two kernels writes what the other one surely writes if a number that it takes says so. Only one of
/// them may be told so, as the last block of two grids is.
pub(super) fn work_that_a_counter_divides() {
    let text = String::from_utf8(image()).expect("text");
    let store = "mov.f32 %value, 0f3f800000;\n    @%again st.global.f32 [%in], %value;";
    let text = text.replace("    @%again bra LOOP;\n", "");
    let text = text.replace("ld.global.f32 %value, [%in];", store);
    let atom = "atom.global.add.u32 %seen, [%flag], 1;";
    for takes in [atom, "ld.global.u32 %seen, [%flag];"] {
        let text = text.replace("ld.volatile.global.u32 %seen, [%flag];", takes);
        assert!(text.contains(takes) && text.contains(store));
        for further in [0, 4, 2048] {
            let [a, b] = with_image("", text.clone().into_bytes());
            launch(WAITS, a, &[INPUT, MEMORY, INPUT + 1024]);
            launch(WAITS, b, &[INPUT + further, INPUT + 1024, MEMORY]);
            assert_eq!(found(), NONE, "{takes} {further}");
            let reason = "values in memory decide whether it touches these bytes, or any";
            assert!(possible().iter().any(|line| line.contains(reason)), "{takes} {further}");
        }
    }
}

/// An index from memory has bounds, and the program may know more of it: only what meets all of them
/// is likely.
pub(super) fn a_slot_that_memory_names() {
    for (bytes, is_likely) in [(PART, false), (3 * PART, false), (4 * PART, true)] {
        for upload_first in [true, false] {
            let [a, b] = with_image("", image());
            let upload = || touch(a, "cuMemcpyHtoDAsync_v2", Access::write(MEMORY, bytes));
            if upload_first {
                upload();
            }
            launch(RING, b, &[INPUT, MEMORY]);
            if !upload_first {
                upload();
            }
            match is_likely {
                true => assert_eq!(found(), ["likely: 0..4096 writes writes"]),
                false => {
                    assert_eq!(found(), NONE, "{bytes}");
                    assert!(possible()[1].contains("ring: an address comes from memory"));
                }
            }
        }
    }
    // Two kernels, of which one writes the slot that the other surely does not name.
    let [a, b] = with_image("", image());
    cube(a, [0, 8, 0, 4]);
    launch(RING, b, &[INPUT, MEMORY]);
    launch(RING, a, &[INPUT, MEMORY]);
    assert_eq!(found(), NONE);
    assert_eq!(possible().len(), 3, "{:?}", possible());
}

/// A kernel waits for a flag, and what is behind it is after what is before the flag.
pub(super) fn work_behind_a_kernel_that_waits() {
    let text = String::from_utf8(image()).expect("text");
    let weak = text.replace("ld.volatile.global", "ld.global");
    assert!(weak != text);
    let waits = |stream: Handle| launch(WAITS, stream, &[INPUT, INPUT + 1024, INPUT + 2048]);
    let sets = |stream: Handle| launch(RING, stream, &[INPUT + 1024, INPUT]);
    let few = |stream: Handle| {
        let copy = Call { name: "cuMemcpyDtoDAsync_v2", per_thread: false };
        begin_call(&copy, |watch| {
            copies::submitted(watch, StreamId(stream as u64), None, &[Access::write(INPUT, 4)]);
        });
    };
    let [fills, reads] = [Access::write(MEMORY, 64), Access::read(MEMORY, 64)];
    let fills = |stream| touch(stream, "cuMemcpyDtoDAsync_v2", fills.clone());
    let reads = |stream| touch(stream, "cuMemcpyDtoHAsync_v2", reads.clone());
    type Step<'a> = &'a dyn Fn([Handle; 2]);
    let [fill, read]: [Step<'_>; 2] = [&|[a, _]| fills(a), &|[_, b]| reads(b)];
    let [wait, set]: [Step<'_>; 2] = [&|[_, b]| waits(b), &|[a, _]| sets(a)];
    let wait_first: Step<'_> = &|[a, _]| waits(a);
    let [write, set_last]: [Step<'_>; 2] = [&|[a, _]| few(a), &|[_, b]| sets(b)];
    for (what, text, steps, is_ordered) in [
        ("nothing waits", &text, &[fill, set, read][..], false),
        ("it waits", &text, &[fill, set, wait, read], true),
        ("the flag comes last", &text, &[fill, wait, read, set], true),
        ("the work comes last", &text, &[wait, read, fill, set], true),
        ("a copy sets the flag", &text, &[fill, write, wait, read], true),
        ("a copy sets another one", &text, &[write, fill, wait, read], false),
        ("nothing sets the flag", &text, &[fill, wait, read], false),
        ("it is set before", &text, &[set, fill, wait, read], false),
        ("it is set behind", &text, &[fill, wait, read, set_last], false),
        ("the first one waits", &text, &[fill, wait_first, set, read], false),
        ("it waits later", &text, &[fill, set, read, wait], false),
        ("it does not wait", &weak, &[fill, set, wait, read], false),
    ] {
        let streams = with_image("", text.clone().into_bytes());
        steps.iter().for_each(|step| step(streams));
        let (found, possible) = (found(), possible());
        assert_eq!(found.len(), usize::from(!is_ordered), "{what}: {found:?} {possible:?}");
        let is_it = |line: &String| line.contains("a kernel may wait for it through memory");
        assert_eq!(possible.iter().any(is_it), is_ordered, "{what}: {possible:?}");
    }
    // The host polls the flag of a kernel by copies, and goes on once it is set.
    let strong = weak.replace("st.global.u32 [%slots]", "st.release.gpu.global.u32 [%slots]");
    let sum = weak.replace("st.global.u32 [%slots]", "red.global.add.f32 [%slots]");
    assert_ne!(sum, weak);
    for (text, polls, is_ordered) in
        [(&weak, true, false), (&strong, true, true), (&strong, false, false), (&sum, true, false)]
    {
        let [a, b] = with_image("", text.clone().into_bytes());
        fills(a);
        launch(RING, a, &[INPUT + 1024, MEMORY + 1024]);
        if polls {
            touch(b, "cuMemcpyDtoHAsync_v2", Access::read(MEMORY + 1024, 4));
        }
        take_findings();
        reads(b);
        let found = found();
        assert_eq!(found.len(), usize::from(!is_ordered), "{polls}: {found:?}");
    }
}
