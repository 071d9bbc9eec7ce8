//! Candidates that the threads of a launch decide, and not its bounds.

use cuda_order_check_engine::Access;

use super::corpus::{
    INPUT, MEMORY, NONE, OFFSET, WAITS, found, launch_of, order, possible, touch, whole, with_image,
};
use crate::code::time::set_spent_on_candidates;

const FEW: [u32; 6] = [4, 1, 1, 256, 1, 1];
const MANY: [u32; 6] = [1 << 16, 1, 1, 256, 1, 1];

/// `out[i % 1024] = 1` for 8 and 1023 alone; and then only where memory says so, if it `asks`.
fn ends(asks: bool) -> Vec<u8> {
    let asks = match asks {
        true => "ld.global.u32 %b, [%in]; setp.eq.u32 %p, %b, 0; @%p bra DONE;",
        false => "",
    };
    let mut text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .entry waits(.param .u64 in, .param .u64 no, .param .u64 out)\n\
         {{ .reg .b64 %in, %a, %w; .reg .b32 %i, %b, %s; .reg .pred %p, %q;\n\
         ld.param.u64 %in, [in]; ld.param.u64 %a, [out];\n\
         mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %b, %s, %i;\n\
         {asks} and.b32 %i, %i, 1023; setp.eq.u32 %p, %i, 8; setp.eq.u32 %q, %i, 1023;\n\
         or.pred %p, %p, %q; @!%p bra DONE;\n\
         mul.wide.u32 %w, %i, 4; add.u64 %a, %a, %w; st.global.u32 [%a], 1;\nDONE: ret; }}\n"
    )
    .into_bytes();
    text.push(0);
    text
}

/// Some bytes of the memory are copied to, and the kernel runs beside that.
fn beside_a_copy(
    image: Vec<u8>,
    sizes: [u32; 6],
    from: u64,
    bytes: u64,
) -> (Vec<String>, Vec<String>) {
    let mut all = Vec::new();
    for copy_first in [true, false] {
        let [a, b] = with_image("", image.clone());
        let copy = || touch(a, "cuMemcpyHtoDAsync_v2", Access::write(MEMORY + from, bytes));
        if copy_first {
            copy();
        }
        launch_of(WAITS, b, sizes, &[INPUT, INPUT, MEMORY]);
        if !copy_first {
            copy();
        }
        all.push((found(), possible()));
    }
    assert_eq!(all[0], all[1], "{sizes:?} {from} {bytes}");
    all.swap_remove(0)
}

/// What no thread touches is no finding, though it is within the bounds.
pub(super) fn few_threads_are_run() {
    let none = (vec![], vec![]);
    for (from, bytes) in [(0, 32), (0, 1), (36, 4056), (4091, 1)] {
        assert_eq!(beside_a_copy(ends(false), FEW, from, bytes), none, "{from} {bytes}");
    }
    for (from, bytes, at) in [(0, 33, "32..33"), (100, 3993, "4092..4093"), (0, 4096, "4092..4096")]
    {
        let (found, possible) = beside_a_copy(ends(false), FEW, from, bytes);
        assert_eq!(found, [format!("certain: {at} writes writes")], "{possible:?}");
    }
    // If memory decides, no thread does for certain.
    let (found, possible) = beside_a_copy(ends(true), FEW, 0, 32);
    assert_eq!(found, NONE);
    assert!(possible[1].contains("waits: values in memory decide whether"), "{possible:?}");
}

/// Of many threads those are looked for that may touch the bytes.
pub(super) fn threads_are_looked_for() {
    let (found, possible) = beside_a_copy(ends(false), MANY, 0, 32);
    assert_eq!(found, NONE);
    let reason = "waits: no thread was found that touches these bytes";
    assert!(possible.len() == 2 && possible[1].contains(reason), "{possible:?}");
    let (found, possible) = beside_a_copy(ends(true), MANY, 0, 32);
    assert_eq!(found, NONE);
    assert!(possible[1].contains("waits: values in memory decide whether"), "{possible:?}");
    // From 767 down to 256: the last threads that write are neither first nor last.
    for copy_first in [true, false] {
        let [a, b] = with_image("", whole());
        let copy = || touch(a, "cuMemcpyHtoDAsync_v2", Access::write(MEMORY, 1200));
        if copy_first {
            copy();
        }
        launch_of(OFFSET, b, MANY, &[INPUT, MEMORY, 767, u64::from(u32::MAX), 512]);
        if !copy_first {
            copy();
        }
        assert_eq!(found_in(1024, 1200), 1);
    }
}

/// A loop whose turns are not known has no bounds within the memory: the thread that touches the bytes
/// is looked for, which is neither the first nor the last one.
pub(super) fn threads_of_a_loop_without_bounds() {
    let mut text = ".version 8.0\n.target sm_90\n.address_size 64\n\
         .entry waits(.param .u64 in, .param .u64 no, .param .u64 out)\n\
         { .reg .b64 %a, %w; .reg .b32 %i, %b, %s; .reg .pred %p;\n\
         ld.param.u64 %a, [out];\n\
         mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %b, %s, %i;\n\
         setp.ge.u32 %p, %i, 256; @%p bra DONE;\n\
         xor.b32 %i, %i, 128; mul.wide.u32 %w, %i, 16; add.u64 %a, %a, %w;\n\
         and.b32 %s, %i, 1; add.u32 %s, %s, 1; mov.u32 %i, 0;\n\
         LOOP: setp.ge.u32 %p, %s, 200; @%p bra DONE; mad.lo.u32 %s, %s, 5, 3;\n\
         mul.wide.u32 %w, %i, 4; add.u64 %w, %a, %w; st.global.u32 [%w], 1;\n\
         add.u32 %i, %i, 1; bra LOOP;\nDONE: ret; }\n"
        .to_owned()
        .into_bytes();
    text.push(0);
    let (found, possible) = beside_a_copy(text, MANY, 0, 40);
    assert!(found.len() == 1 && found[0].starts_with("certain: "), "{found:?} {possible:?}");
}

/// Without time nothing is said of threads that would have to be looked for.
pub(super) fn threads_that_there_is_no_time_for() {
    let [a, b] = with_image("", ends(false));
    let copy = |bytes| touch(a, "cuMemcpyHtoDAsync_v2", Access::write(MEMORY, bytes));
    let writes = |stream| launch_of(WAITS, stream, MANY, &[INPUT, INPUT, MEMORY]);
    // The launch is known then.
    copy(32);
    writes(b);
    order([a, b]);
    set_spent_on_candidates(true);
    copy(24);
    writes(b);
    order([a, b]);
    set_spent_on_candidates(false);
    assert_eq!(found(), NONE);
}

/// How many certain findings there are, which must be within these bytes.
fn found_in(start: u64, end: u64) -> usize {
    let all = found();
    for one in &all {
        let bytes = one.strip_prefix("certain: ").unwrap_or_else(|| panic!("{one}"));
        for range in bytes.split(' ').filter_map(|word| word.split_once("..")) {
            let number = |text: &str| text.parse::<u64>().expect("a number");
            assert!(start <= number(range.0) && number(range.1) <= end, "{one}");
        }
    }
    all.len()
}

/// Two kernels whose corners are elsewhere, and whose middles meet.
pub(super) fn two_kernels() {
    // To 0..512, and from 767 down to 256: the first and the last threads are not in the other's.
    let down = u64::from(u32::MAX);
    for sizes in [[2, 1, 1, 256, 1, 1], MANY] {
        for forth in [true, false] {
            let [a, b] = with_image("", whole());
            let up = |stream| launch_of(OFFSET, stream, sizes, &[INPUT, MEMORY, 0, 1, 512]);
            let back = |stream| launch_of(OFFSET, stream, sizes, &[INPUT, MEMORY, 767, down, 512]);
            if forth {
                (up(a), back(b))
            } else {
                (back(a), up(b))
            };
            assert_eq!(found_in(1024, 2048), 1, "{sizes:?}");
        }
        // Every second one, and those between.
        let [a, b] = with_image("", whole());
        launch_of(OFFSET, a, sizes, &[INPUT, MEMORY, 0, 2, 512]);
        launch_of(OFFSET, b, sizes, &[INPUT, MEMORY, 1, 2, 512]);
        assert_eq!((found(), possible()), (vec![], vec![]));
    }
    // The ends, and all between them.
    for sizes in [FEW, MANY] {
        let [a, b] = with_image("", ends(false));
        launch_of(WAITS, a, sizes, &[INPUT, INPUT, MEMORY]);
        launch_of(WAITS, b, sizes, &[INPUT, INPUT, MEMORY]);
        assert_eq!(found(), ["certain: 4092..4096 writes writes"]);
    }
}
