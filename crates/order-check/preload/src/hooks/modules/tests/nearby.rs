//! Kernels with the address of an allocation, and work elsewhere in it.

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::findings::counted;
use cuda_order_check_engine::{Access, StreamId, Stride};

use super::corpus::{
    CALL, GATHER, INPUT, MEMORY, NONE, OFFSET, PART, RING, UNUSED, WAITS, anew, found, launch,
    launch_of, log, order, part, possible, touch, upload, whole, with_image,
};
use crate::call::{Address, Call, Handle, OK};
use crate::code::kernel::KernelCode;
use crate::code::launch::Values;
use crate::code::nearby::uncompared;
use crate::code::time::{NEARBY, set_spent_on_nearby as set_spent, spent_on_nearby as spent};
use crate::hooks::{graphs, memory, streams};
use crate::summary::sum_up;
use crate::walk::{begin_call, locked};

const PART_1: Address = MEMORY + PART;
const PART_2: Address = MEMORY + 2 * PART;

/// What a copy or a memset does, by the kinds of calls that there are, to bytes from a place on.
type Work = fn(Handle, Address, u64);

const WRITES: [Work; 4] = [
    |stream, at, bytes| touch(stream, "cuMemcpyHtoDAsync_v2", Access::write(at, bytes)),
    |stream, at, bytes| touch(stream, "cuMemsetD8Async", Access::write(at, bytes).filled(0)),
    // To there from another allocation.
    |stream, at, bytes| {
        let both = [Access::read(INPUT + 2 * PART, bytes), Access::write(at, bytes)];
        works(stream, "cuMemcpyDtoDAsync_v2", &both);
    },
    |stream, at, bytes| {
        let rows = Access::write(at, 1).rows(2, Stride { width: bytes, pitch: 8 * PART });
        works(stream, "cuMemcpy2DAsync_v2", &[rows]);
    },
];

const READS: [Work; 2] = [
    |stream, at, bytes| touch(stream, "cuMemcpyDtoHAsync_v2", Access::read(at, bytes)),
    |stream, at, bytes| {
        let both = [Access::read(at, bytes), Access::write(INPUT + 2 * PART, bytes)];
        works(stream, "cuMemcpyDtoDAsync_v2", &both);
    },
];

fn works(stream: Handle, name: &'static str, accesses: &[Access]) {
    begin_call(&Call { name, per_thread: false }, |watch| {
        watch.feed.work(StreamId(stream as u64), accesses)
    });
}

/// The two in either order, in streams that nothing orders. The text is of the kernel and then of the
/// work.
fn both_ways(image: &[u8], kernel: &dyn Fn(Handle), work: &dyn Fn(Handle), expected: Option<&str>) {
    for kernel_first in [true, false] {
        let [a, b] = with_image("", image.to_vec());
        if kernel_first {
            kernel(b);
            work(a);
        } else {
            work(a);
            kernel(b);
        }
        let turned = |text: &str| {
            let mut words: Vec<_> = text.split(' ').collect();
            if !kernel_first {
                let last = words.len() - 1;
                words.swap(last - 1, last);
            }
            words.join(" ")
        };
        let expected = Vec::from_iter(expected.map(turned));
        assert_eq!(found(), expected, "the kernel first: {kernel_first}");
        assert_eq!(possible(), NONE);
    }
}

/// A ring of slots: `kernel(base, slot)` beside a copy to or from a slot.
pub(super) fn slots_of_a_ring() {
    let image = whole();
    for slot in 0..4 {
        let end = (slot + 1) * PART;
        let kernel = |stream| part(stream, slot);
        // The first slot has the address.
        for other in 1..4 {
            let at = MEMORY + other * PART;
            let certain = |kinds: &str| {
                let (first, last) = (slot * PART, end - 4);
                let text = format!("certain: {first}..{} {last}..{end} {kinds}", first + 4);
                (slot == other).then_some(text)
            };
            for work in WRITES {
                let expected = certain("writes writes");
                both_ways(&image, &kernel, &|stream| work(stream, at, PART), expected.as_deref());
            }
            for work in READS {
                let expected = certain("writes reads");
                both_ways(&image, &kernel, &|stream| work(stream, at, PART), expected.as_deref());
            }
        }
    }
    // A kernel that only reads.
    let kernel = |stream| launch(OFFSET, stream, &[MEMORY, INPUT, 0, 1, 256]);
    let half = MEMORY + PART / 2;
    let expected = Some("certain: 1020..1024 reads writes");
    both_ways(&image, &kernel, &|stream| WRITES[0](stream, half, PART / 2), expected);
    both_ways(&image, &kernel, &|stream| READS[0](stream, half, PART / 2), None);
    both_ways(&image, &kernel, &|stream| WRITES[0](stream, MEMORY + PART, PART), None);
}

/// Each byte counts, at both ends and between them.
pub(super) fn bytes_at_the_ends() {
    let image = whole();
    let kernel = |stream| part(stream, 2);
    for (from, bytes, expected) in [
        (2047, 1, None),
        (2047, 2, Some("certain: 2048..2049 writes writes")),
        (3071, 1, Some("certain: 3071..3072 writes writes")),
        (3072, 1, None),
        (2052, 1, Some("certain: 2052..2053 writes writes")),
        (2052, 1016, Some("certain: 2052..3068 writes writes")),
    ] {
        let work = |stream| WRITES[0](stream, MEMORY + from, bytes);
        both_ways(&image, &kernel, &work, expected);
    }
    // The last threads have nothing to do.
    let kernel = |stream| launch(OFFSET, stream, &[INPUT, MEMORY, PART / 2, 1, 64]);
    for (from, expected) in [
        (0, Some("certain: 2048..2052 writes writes")),
        (4, Some("certain: 2052..2056 writes writes")),
        (252, Some("certain: 2300..2304 writes writes")),
        (256, None),
    ] {
        let work = |stream| WRITES[0](stream, PART_2 + from, 4);
        both_ways(&image, &kernel, &work, expected);
    }
    // A kernel that writes every other element conflicts with a write to one of those, and with
    // none between.
    let kernel = |stream| launch(OFFSET, stream, &[INPUT, MEMORY, PART / 4, 2, 256]);
    for (from, expected) in [(512, Some("certain: 1536..1540 writes writes")), (516, None)] {
        let work = |stream| WRITES[0](stream, PART_1 + from, 4);
        both_ways(&image, &kernel, &work, expected);
    }
}

/// Another allocation is nobody's neighbour, wherever it is.
pub(super) fn memory_of_others() {
    const NEXT: Address = MEMORY + 4 * PART;
    let image = whole();
    // The kernel leaves the allocation of its address.
    let kernel = |stream| part(stream, 4);
    let work = |stream| {
        begin_call(&CALL, |watch| watch.allocated(NEXT, PART as usize, Memory::Device));
        WRITES[0](stream, NEXT, PART);
    };
    both_ways(&image, &kernel, &work, None);
    let work = |stream| {
        memory::allocate_async(&CALL, || OK, &mut { NEXT }, PART as usize, None, stream);
        WRITES[0](stream, NEXT, PART);
    };
    both_ways(&image, &kernel, &work, None);
    both_ways(&image, &kernel, &|stream| WRITES[0](stream, INPUT + PART, PART), None);

    // It was freed, and other memory is in its place: the free is wrong, and nothing else.
    for kernel_first in [true, false] {
        let [a, b] = with_image("", image.clone());
        if kernel_first {
            part(b, 2);
        } else {
            WRITES[0](b, PART_2, PART);
        }
        memory::free_async(&CALL, || OK, MEMORY, a);
        assert_eq!(found().len(), 1, "the free");
        memory::allocate_async(&CALL, || OK, &mut { MEMORY }, 4 * PART as usize, None, a);
        if kernel_first {
            WRITES[0](a, PART_2, PART);
        } else {
            part(a, 2);
        }
        assert_eq!((found(), possible()), (vec![], vec![]));
        // What comes now is in the new one.
        order([a, b]);
        part(b, 2);
        WRITES[0](a, PART_2, PART);
        assert_eq!(found(), ["certain: 2048..2052 3068..3072 writes writes"]);
    }
}

/// Order, and what it costs not to have it.
pub(super) fn pairs_with_an_order() {
    let [a, b] = with_image("", whole());
    let before = spent();
    for slot in 1..4 {
        part(b, slot);
        order([a, b]);
        WRITES[0](a, MEMORY + slot * PART, PART);
        order([a, b]);
    }
    assert_eq!(found(), NONE);
    assert_eq!(spent(), before, "nothing was compared");
    // With other slots, all is compared once.
    let round = |each: &dyn Fn()| {
        for slot in 1..4 {
            part(b, slot);
            WRITES[0](a, MEMORY + (slot % 3 + 1) * PART, PART);
            each();
            order([a, b]);
        }
        begin_call(&CALL, |_| ());
    };
    round(&|| ());
    round(&|| ());
    let before = spent();
    round(&|| ());
    assert_eq!((found(), possible()), (vec![], vec![]));
    assert_eq!(spent(), before, "it is known");
    // The same calls, and the wrong slot.
    part(b, 3);
    WRITES[0](a, MEMORY + 3 * PART, PART);
    assert_eq!(found(), ["certain: 3072..3076 4092..4096 writes writes"]);
    // Each pair of places once. Another pair of them is looked at once more.
    for (slot, again) in [(3, false), (2, false), (2, true), (3, true)] {
        order([a, b]);
        let before = spent();
        part(b, slot);
        WRITES[0](a, MEMORY + slot * PART, PART);
        assert_eq!(found(), NONE);
        assert_eq!(spent() == before, again, "{slot}");
    }
}

/// What is known of a pair is known of no other one.
pub(super) fn pairs_that_are_alike() {
    let rows = |stream, rows, pitch| {
        let access = Access::write(MEMORY + 1028, 0).rows(rows, Stride { width: 4, pitch });
        works(stream, "cuMemcpy2DAsync_v2", &[access]);
    };
    let writes: fn(Handle, u64) = |stream, slot| part(stream, slot);
    let reads: fn(Handle, u64) =
        |stream, _| launch(OFFSET, stream, &[MEMORY, INPUT + PART, 0, 1, 256]);
    let second = |stream, at, first: u32| {
        launch(OFFSET, stream, &[INPUT + PART, at, first.into(), 1, 256]);
    };
    // The work that the kernel does not meet, and that which it meets.
    type Pair<'a> = [&'a dyn Fn(Handle); 2];
    let kind: Pair = [&|stream| READS[0](stream, MEMORY + 512, 512), &|stream| {
        WRITES[0](stream, MEMORY + 512, 512)
    }];
    let end: Pair =
        [&|stream| WRITES[0](stream, PART_1, PART), &|stream| WRITES[0](stream, PART_1, PART + 1)];
    let start: Pair = [&|stream| WRITES[0](stream, PART_2 + PART, 1), &|stream| {
        WRITES[0](stream, PART_2 + PART - 1, 2)
    }];
    let pitch: Pair = [&|stream| rows(stream, 2, 2048), &|stream| rows(stream, 3, 1024)];
    let another: Pair =
        [&|stream| second(stream, PART_1, 0), &|stream| second(stream, PART_1, 256)];
    let batch = |stream, second| {
        let all = [MEMORY + 3 * PART, second].map(|at| Access::write(at, 64));
        works(stream, "cuMemcpyBatchAsync_v2", &all);
    };
    let of_two: Pair = [&|stream| batch(stream, PART_1), &|stream| batch(stream, PART_2)];
    for (kernel, [apart, meets]) in [
        (reads, kind),
        (writes, end),
        (writes, start),
        (writes, pitch),
        (writes, another),
        (writes, of_two),
    ] {
        for kernel_first in [true, false] {
            let [a, b] = with_image("", whole());
            let pair = |work: &dyn Fn(Handle)| {
                if kernel_first {
                    kernel(b, 2);
                }
                work(a);
                if !kernel_first {
                    kernel(b, 2);
                }
            };
            for _ in 0..3 {
                pair(apart);
                order([a, b]);
            }
            assert_eq!((found(), possible()), (vec![], vec![]));
            // A pair that meets is found, after others of the same calls that did not.
            meets(a);
            order([a, b]);
            pair(meets);
            assert_eq!(found().len(), 1);
        }
    }
}

/// Of two kernels each has an address of its own.
pub(super) fn two_kernels() {
    let image = whole();
    let writes = |at, first: u64| {
        move |stream| launch(OFFSET, stream, &[INPUT, at, u64::from(first as u32), 1, 256])
    };
    let reads = |at, to| move |stream| launch(OFFSET, stream, &[at, to, 0, 1, 256]);
    let back = 0_u64.wrapping_sub(256);
    let expected = Some("certain: 1024..1028 2044..2048 writes writes");
    both_ways(&image, &writes(MEMORY, 256), &writes(PART_2, back), expected);
    both_ways(&image, &writes(MEMORY, 256), &writes(PART_2, 0), None);
    both_ways(&image, &writes(MEMORY, 0), &writes(PART_2, back), None);
    let expected = Some("certain: 1024..1028 2044..2048 writes reads");
    both_ways(&image, &writes(MEMORY, 256), &reads(PART_1, INPUT + PART), expected);
    both_ways(&image, &writes(MEMORY, 256), &reads(PART_2, INPUT + PART), None);
    both_ways(&image, &reads(PART_1, INPUT), &reads(PART_1 + 4, INPUT + PART), None);
    // One is surely where the other one is between two of its threads.
    let one = |stream| launch(OFFSET, stream, &[INPUT, PART_1 + 512, 0, 1, 1]);
    let expected = Some("certain: 1536..1540 writes writes");
    both_ways(&image, &writes(MEMORY, 256), &one, expected);
    let one = |stream| launch(OFFSET, stream, &[INPUT, PART_2 + 512, 0, 1, 1]);
    both_ways(&image, &writes(MEMORY, 256), &one, None);
}

/// `out[i] = 1` for 1 to 254, of very many threads: neither the first nor the last one does anything.
fn inside() -> Vec<u8> {
    let mut text = ".version 8.0\n.target sm_90\n.address_size 64\n\
         .entry waits(.param .u64 in, .param .u64 no, .param .u64 out)\n\
         { .reg .b64 %a, %w; .reg .b32 %i, %b, %s; .reg .pred %p;\n\
         ld.param.u64 %a, [out];\n\
         mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %b, %s, %i;\n\
         setp.eq.u32 %p, %i, 0; @%p bra DONE; setp.ge.u32 %p, %i, 255; @%p bra DONE;\n\
         mul.wide.u32 %w, %i, 4; add.u64 %a, %a, %w; st.global.u32 [%a], 1;\nDONE: ret; }\n"
        .to_owned()
        .into_bytes();
    text.push(0);
    text
}

/// A thread that is looked for says that the kernel is there if those at the corners are nowhere.
pub(super) fn threads_between_the_corners() {
    let image = inside();
    let kernel =
        |stream| launch_of(WAITS, stream, [1 << 16, 1, 1, 256, 1, 1], &[INPUT, INPUT, MEMORY]);
    for (from, bytes, expected) in [
        (4, 1, Some("certain: 4..5 writes writes")),
        (512, 4, Some("certain: 512..516 writes writes")),
        (1019, 9, Some("certain: 1019..1020 writes writes")),
        (1020, 4, None),
    ] {
        let work = |stream| WRITES[0](stream, MEMORY + from, bytes);
        both_ways(&image, &kernel, &work, expected);
    }
    let other = |from| {
        let to = MEMORY + from;
        move |stream| launch_of(WAITS, stream, [1, 1, 1, 2, 1, 1], &[INPUT, INPUT, to])
    };
    both_ways(&image, &kernel, &other(508), Some("certain: 512..516 writes writes"));
    both_ways(&image, &kernel, &other(1016), None);
}

/// Nothing is said, and nothing counted, where the code says nothing for sure.
pub(super) fn code_that_says_little() {
    for settings in ["", ",possible=on"] {
        // Without an image there is nothing to evaluate.
        let [a, b] = anew(settings);
        let mut before = spent();
        for _ in 0..4 {
            before = spent();
            part(b, 2);
            WRITES[0](a, PART_2, PART);
            part(b, 2);
            order([a, b]);
        }
        assert_eq!((found(), possible()), (vec![], vec![]), "{settings}");
        assert_eq!(spent(), before, "it is known that nothing is known");
        // What is read depends on memory.
        let [a, b] = with_image(settings, whole());
        launch(GATHER, b, &[INPUT, MEMORY, INPUT + PART, 256]);
        WRITES[0](a, PART_2, PART);
        launch(GATHER, b, &[INPUT, MEMORY, INPUT + PART, 256]);
        assert_eq!((found(), possible()), (vec![], vec![]), "{settings}");
        // It waits for a flag, and then surely writes there.
        let [a, b] = with_image(settings, super::order::image());
        launch(WAITS, b, &[INPUT, INPUT + PART, PART_2]);
        WRITES[0](a, PART_2 + 512, 512);
        launch(WAITS, b, &[INPUT, INPUT + PART, PART_2]);
        assert_eq!((found(), possible()), (vec![], vec![]), "{settings}");
        // A loop with two entries: there are no bounds, and what is sure is elsewhere.
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n
            .visible .entry unused_word(.param .u64 no, .param .u64 out, .param .u32 n) {
                .reg .pred %p;
                .reg .b32 %t;
                .reg .b64 %out;
                ld.param.u64 %out, [out];
                mov.u32 %t, %tid.x;
                setp.eq.s32 %p, %t, 7;
                @%p bra B;
            A:
                add.s32 %t, %t, 1;
            B:
                setp.lt.s32 %p, %t, 3;
                @%p bra A;
                st.global.u32 [%out], %t;
                ret;
            }\n\0";
        for (at, expected) in [(PART_2, 0), (PART_1 + 2, 1)] {
            let [a, b] = with_image(settings, text.as_bytes().to_vec());
            launch(UNUSED, b, &[INPUT, PART_1, 256]);
            WRITES[0](a, at, PART);
            launch(UNUSED, b, &[INPUT, PART_1, 256]);
            assert_eq!((found().len(), possible()), (expected, vec![]), "{settings}");
        }
        let text = String::from_utf8(super::order::image()).expect("text");
        let text = text.replace("ld.volatile", "ld");
        let [a, b] = with_image(settings, text.into_bytes());
        launch(WAITS, b, &[INPUT, INPUT + PART, PART_2]);
        WRITES[0](a, PART_2 + 512, 512);
        assert_eq!(found(), ["certain: 3068..3072 writes writes"]);
        // A slot that memory names: any of the ring, but for all that is known not this one.
        let [a, b] = with_image(settings, super::order::image());
        launch(RING, b, &[INPUT, MEMORY]);
        WRITES[0](a, MEMORY + 4, 4 * PART - 4);
        assert_eq!((found(), possible()), (vec![], vec![]), "{settings}");
    }
}

/// Nodes of graphs, and their copies.
pub(super) fn nodes_of_graphs() {
    for (captured, slot) in [(true, 2), (true, 1), (false, 2), (false, 1)] {
        let [a, b] = with_image("", whole());
        let (mut graph, mut exec) = (300, 301);
        streams::capture_begin(&CALL, || OK, b);
        match captured {
            true => part(b, slot),
            false => WRITES[0](b, MEMORY + slot * PART, PART),
        }
        streams::capture_end(&CALL, || OK, b, &mut graph);
        graphs::instantiate(&CALL, || OK, &mut exec, graph, 0);
        match captured {
            true => WRITES[0](a, PART_2, PART),
            false => part(a, 2),
        }
        let call = Call { name: "cuGraphLaunch", per_thread: false };
        graphs::launch(&call, || OK, exec, b);
        let expected = ["certain: 2048..2052 3068..3072 writes writes"];
        assert_eq!(found(), expected[..usize::from(slot == 2)], "{captured}");
        assert_eq!(possible(), NONE);
    }
}

/// Nothing is compared once the time for it is used up, and findings by addresses are as before.
pub(super) fn an_allowance_that_is_used_up() {
    for work_first in [false, true] {
        let [a, b] = with_image("", whole());
        let pair = || {
            if work_first {
                WRITES[1](a, PART_1 + PART / 2, PART);
            }
            launch(OFFSET, b, &[INPUT, MEMORY, 384, 1, 256]);
            if !work_first {
                WRITES[1](a, PART_1 + PART / 2, PART);
            }
        };
        // Neither what is evaluated then, nor what was before.
        for evaluated in [false, true] {
            set_spent(true);
            let before = uncompared();
            pair();
            assert_eq!((found(), possible()), (vec![], vec![]), "{evaluated}");
            assert!(uncompared() > before, "the summary says that something was not compared");
            locked(sum_up).expect("it watches");
            let text = std::fs::read_to_string(log()).expect("it is written");
            let _ = std::fs::write(log(), "");
            let line = format!(
                "order check: {} a kernel was not compared with work elsewhere in its \
                 allocation, for want of time",
                counted(uncompared(), "times")
            );
            assert!(text.lines().any(|text| text == line), "{line}: {text}");
            order([a, b]);
            set_spent(false);
            launch(OFFSET, b, &[INPUT, MEMORY, 384, 1, 256]);
            WRITES[1](a, MEMORY + 3 * PART, PART);
            order([a, b]);
        }
        set_spent(true);
        upload(a, 0);
        part(b, 0);
        assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
        order([a, b]);
        set_spent(false);
        let before = uncompared();
        pair();
        assert_eq!(found(), ["certain: 1536..1540 2556..2560 writes writes"]);
        assert_eq!(uncompared(), before);
    }
}

/// Kernels that were not evaluated are not evaluated then, either.
pub(super) fn kernels_without_an_allowance() {
    let code = || std::sync::Arc::new(KernelCode::new("of_no_image".into(), 90, None));
    let reason = |all| {
        set_spent(all);
        let launch = Values::new(code(), [1; 6], &[], false);
        launch.evaluate(NEARBY).expect_err("it has no image").into_owned()
    };
    assert_eq!(reason(true), "it would take too much time");
    assert_eq!(reason(false), "its image was not seen");
}

/// The classes are those of other findings.
pub(super) fn classes() {
    for (settings, kinds) in
        [("", 3), (",class=-reads", 2), (",class=-kernels", 2), (",class=-copy", 2)]
    {
        let [a, b] = with_image(settings, whole());
        part(b, 2);
        READS[0](a, PART_2, PART);
        order([a, b]);
        part(b, 2);
        WRITES[0](a, PART_2, PART);
        order([a, b]);
        part(b, 2);
        launch(OFFSET, a, &[INPUT, PART_1, 256, 1, 256]);
        assert_eq!(found().len(), kinds, "{settings}");
    }
    // The same call reads, which is of no class that is on, and then writes.
    let [a, b] = with_image(",class=-reads", whole());
    part(b, 2);
    READS[1](a, PART_2, PART);
    order([a, b]);
    part(b, 2);
    WRITES[2](a, PART_2, PART);
    assert_eq!(found(), ["certain: 2048..2052 3068..3072 writes writes"]);
}
