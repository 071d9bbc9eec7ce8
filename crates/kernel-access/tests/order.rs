//! Which launches may meet, and which kernels may wait for others.

use std::collections::BTreeSet;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::decode::{Operation, decode};
use cuda_kernel_access::ptx::Module;
use cuda_kernel_access::touch::{Rows, Span, may_touch, summary};

const TEXT: &str = include_str!("order.ptx");
const WIDTH: u32 = 12;
const HEIGHT: u32 = 7;
const DEPTH: u32 = 3;
const TO: u64 = 0x7f12_0000_0004;

fn code(text: &str, name: &str) -> Code {
    let module = Module::parse(text).expect("PTX");
    Code::from_ptx(&module, name).unwrap_or_else(|error| panic!("{error}"))
}

/// Of one plane: from column and row, and how many.
type Part = [u32; 4];

fn span(code: &Code, [x, wide, y, high]: Part) -> Span {
    let mut parameters = TO.to_le_bytes().to_vec();
    parameters.extend([x, wide, y, high, WIDTH, HEIGHT].iter().flat_map(|of| of.to_le_bytes()));
    // More threads than there are columns and rows.
    let launch = Launch::new([3, 2, DEPTH], [5, 4, 1], parameters);
    let mut spans = may_touch(code, &launch).expect("known");
    assert_eq!(spans.len(), 1);
    spans.remove(0)
}

fn bytes([x, wide, y, high]: Part) -> BTreeSet<u64> {
    let rows = (0..DEPTH).flat_map(|z| (y..y + high).map(move |y| z * HEIGHT + y));
    let elements = rows.flat_map(|row| (x..x + wide).map(move |x| row * WIDTH + x));
    elements.flat_map(|at| (0..4).map(move |byte| TO + u64::from(at) * 4 + byte)).collect()
}

#[test]
fn parts_of_a_cube_meet_if_they_share_a_byte() {
    let code = code(TEXT, "part_of_cube");
    let columns = [(0, 12), (0, 1), (11, 1), (1, 10), (0, 6), (6, 6), (3, 5)];
    let rows = [(0, 7), (0, 1), (6, 1), (1, 5), (0, 3), (3, 4)];
    let all = columns.iter().flat_map(|x| rows.iter().map(|y| [x.0, x.1, y.0, y.1]));
    let all: Vec<(Part, Span)> = all.map(|part| (part, span(&code, part))).collect();
    let (mut apart, mut meet) = (0, 0);
    for (one, own) in &all {
        let touched = bytes(*one);
        for (two, other) in &all {
            let share = !touched.is_disjoint(&bytes(*two));
            assert_eq!(own.may_meet(other), share, "{one:?} {two:?} {own:x?} {other:x?}");
            *(if share { &mut meet } else { &mut apart }) += 1;
            // Whole columns, as a copy of rows has them.
            if let [x, wide, 0, HEIGHT] = *two {
                let [first, width, pitch] = [x, wide, WIDTH].map(|of| u64::from(of) * 4);
                let rows = Rows::new(TO + first, width, pitch);
                let end = TO + pitch * u64::from(HEIGHT * DEPTH);
                assert_eq!(own.may_touch_rows(&(TO + first..end), &rows), share, "{one:?} {two:?}");
            }
        }
        // Ranges of bytes before, at, and behind each byte of the cube.
        let end = u64::from(WIDTH * HEIGHT * DEPTH) * 4;
        for start in TO - 4..TO + end + 4 {
            for length in [1, 3, 4, 5, 4 * u64::from(WIDTH)] {
                let range = start..start + length;
                let expected = touched.range(range.clone()).next().is_some();
                assert_eq!(own.may_touch(&range), expected, "{one:?} {range:x?} {own:x?}");
            }
        }
    }
    assert!(apart > 300 && meet > 300, "{apart} {meet}");
}

#[test]
fn a_kernel_with_a_fence_or_a_strong_store_may_signal() {
    let store = "    st.global.f32 [%out], %value;";
    for (other, signals) in [
        (store, false),
        ("    st.relaxed.gpu.global.f32 [%out], %value;", true),
        ("    st.global.wt.f32 [%out], %value;", true),
        ("    st.global.cg.f32 [%out], %value;", true),
        ("    st.global.cs.f32 [%out], %value;", false),
        ("    st.volatile.shared.f32 [%out], %value;", false),
        ("    red.global.add.u32 [%out], 1;", true),
        ("    red.global.add.f32 [%out], %value;", false),
        ("    membar.sys;\n    st.global.f32 [%out], %value;", true),
        ("    fence.acq_rel.sys;\n    st.global.f32 [%out], %value;", true),
    ] {
        assert_eq!(code(&TEXT.replace(store, other), "waits").may_signal(), signals, "{other}");
    }
}

#[test]
fn a_kernel_that_polls_may_wait() {
    assert!(code(TEXT, "waits").may_wait());
    assert!(!code(TEXT, "part_of_cube").may_wait());
    let load = "ld.volatile.global.u32 %seen, [%flag];";
    assert!(TEXT.contains(load));
    for (other, waits) in [
        ("ld.relaxed.sys.global.u32 %seen, [%flag];", true),
        ("ld.acquire.gpu.global.u32 %seen, [%flag];", true),
        ("atom.global.add.u32 %seen, [%flag], 0;", true),
        ("atom.global.cas.b32 %seen, [%flag], 0, 1;", true),
        ("ld.global.u32 %seen, [%flag];", false),
        ("ld.global.nc.u32 %seen, [%flag];", false),
        ("ld.volatile.shared.u32 %seen, [%flag];", false),
    ] {
        assert_eq!(code(&TEXT.replace(load, other), "waits").may_wait(), waits, "{other}");
    }
    // A loop with two entries.
    let entered =
        TEXT.replace("LOOP:\n", "    setp.eq.u64 %again, %in, 0;\n    @%again bra ALSO;\nLOOP:\n");
    let entered = entered
        .replace("    setp.eq.s32 %again, %seen, 0;", "ALSO:\n    setp.eq.s32 %again, %seen, 0;");
    let entered = code(&entered, "waits");
    let launch = Launch::new([1; 3], [1; 3], [0; 24]);
    assert!(!may_touch(&entered, &launch).expect("known").is_empty());
    assert!(entered.may_wait());
    // What it stores does not make it wait.
    let polls = TEXT.replace(load, "ld.global.u32 %seen, [%flag];");
    let stores = polls.replace(
        "    @%again bra LOOP;",
        "    st.release.gpu.global.u32 [%flag], %seen;\n    @%again bra LOOP;",
    );
    assert!(stores != polls && !code(&stores, "waits").may_wait());
    // A fence in the loop makes it load each time.
    let branch = "    @%again bra LOOP;";
    for (load, more, waits) in [
        ("ld.global.u32 %seen, [%flag];", "membar.gl;", true),
        ("ld.u32 %seen, [%flag];", "fence.acq_rel.sys;", true),
        ("ld.global.u32 %seen, [%flag];", "bar.sync 0;", false),
        ("ld.shared.u32 %seen, [%flag];", "membar.gl;", false),
        ("mov.u32 %seen, %clock;", "membar.gl;", false),
    ] {
        let fence = TEXT.replace("ld.volatile.global.u32 %seen, [%flag];", load);
        let fence = fence.replace(branch, &format!("    {more}\n{branch}"));
        assert_eq!(code(&fence, "waits").may_wait(), waits, "{load} {more}");
        let behind =
            fence.replace(&format!("    {more}\n{branch}"), &format!("{branch}\n    {more}"));
        assert!(!code(&behind, "waits").may_wait(), "{load} {more}");
    }
    // A flag that is looked at once, and one that decides nothing.
    let once = |load: &str| {
        let text = TEXT.replace(branch, "    @%again ret;");
        code(&text.replace("ld.volatile.global.u32 %seen, [%flag];", load), "waits").may_wait()
    };
    assert!(once(load) && once("ld.acquire.gpu.global.u32 %seen, [%flag];"));
    assert!(!once("ld.global.u32 %seen, [%flag];"));
    assert!(!once("atom.global.add.u32 %seen, [%flag], 1;"), "a number of the block");
    let guarded = TEXT.replace(branch, "").replace("ld.global.f32", "@!%again ld.global.f32");
    assert!(code(&guarded, "waits").may_wait());
    let unused = TEXT.replace(branch, "");
    assert!(unused != TEXT && !code(&unused, "waits").may_wait());
    // It says which buffer is to be read or written, and no way is decided.
    let index = "    mul.wide.u32 %offset, %seen, 1024;\n    add.s64 %in, %in, %offset;\n";
    for place in ["    ld.global.f32", "    st.global.f32"] {
        let chased = unused.replace(
            place,
            &format!(
                "{}{place}",
                match place.contains("st") {
                    true => index.replace("%in", "%out"),
                    false => index.to_owned(),
                }
            ),
        );
        let with = |other| code(&chased.replacen(load, other, 1), "waits").may_wait();
        assert!(with(load) && with("ld.acquire.gpu.global.u32 %seen, [%flag];"), "{place}");
        assert!(!with("ld.global.u32 %seen, [%flag];"), "{place}");
        assert!(!with("atom.global.add.u32 %seen, [%flag], 1;"), "{place}: a place of its own");
    }
}

/// Loads that decide nothing, in a loop that is too long to look it through for each of them.
#[test]
fn what_is_not_looked_at_may_be_waited_by() {
    let load = "LOOP:\n    ld.volatile.global.u32 %seen, [%flag];";
    assert!(TEXT.contains(load));
    let waits = |loads: usize| {
        let all = "    ld.volatile.global.u32 %value, [%in];\n".repeat(loads)
            + &"    add.f32 %value, %value, %value;\n".repeat(2000 - loads);
        let text = TEXT.replace(load, &format!("LOOP:\n{all}    mov.u32 %seen, %clock;"));
        code(&text, "waits").may_wait()
    };
    assert_eq!([1, 20, 200].map(waits), [false, false, true]);
}

/// A load in a loop is waited by only if what it reads may decide how the loop goes on, by whichever way.
#[test]
fn what_is_read_in_a_loop_and_decides_nothing_is_not_waited_for() {
    let text = TEXT
        .replacen(
            ".reg .pred %again;",
            ".reg .pred %again, %also;\n    .shared .align 4 .b8 place[8];",
            1,
        )
        .replacen("%seen, %thread;", "%seen, %thread, %turn, %sum, %more;", 1)
        .replacen("LOOP:\n", "    mov.u32 %turn, 0;\n    mov.u32 %sum, 0;\nLOOP:\n", 1)
        .replacen(
            "    mov.u32 %thread, %tid.x;",
            "    st.global.u32 [%out], %sum;\n    mov.u32 %thread, %tid.x;",
            1,
        );
    let decision = "    setp.eq.s32 %again, %seen, 0;";
    let counted = "    add.s32 %turn, %turn, 1;\n    setp.lt.s32 %again, %turn, 10;";
    for (body, waits) in [
        ("    add.s32 %sum, %sum, %seen;\nCOUNT", false),
        ("COUNT\n    add.s32 %turn, %turn, %seen;", true),
        ("    add.s32 %sum, %sum, %seen;\nCOUNT\n    add.s32 %turn, %turn, %sum;", true),
        ("    st.global.u32 [%out], %seen;\nCOUNT", false),
        ("    st.shared.u32 [place], %seen;\nCOUNT", false),
        ("    st.shared.u32 [place], %seen;\n    ld.shared.u32 %more, [place];\nCOUNT", false),
        (
            "    st.shared.u32 [place], %seen;\n    ld.shared.u32 %more, [place];\n\
                 setp.eq.s32 %again, %more, 0;",
            true,
        ),
        (
            "    setp.eq.s32 %also, %seen, 0;\n    selp.b32 %more, 1, 0, %also;\n\
                 setp.eq.s32 %again, %more, 0;",
            true,
        ),
        ("    setp.eq.s32 %also, %seen, 0;\nCOUNT\n    @%also mov.u32 %turn, 0;", true),
        ("    setp.eq.s32 %also, %seen, 0;\n    @%also bra OUT;\nCOUNT", true),
        ("    setp.eq.s32 %also, %seen, 0;\n    @%also ret;\nCOUNT", true),
        (
            "    cvt.u64.u32 %offset, %seen;\n    add.s64 %offset, %in, %offset;\n    \
                 ld.global.u32 %more, [%offset];\n    setp.eq.s32 %again, %more, 0;",
            true,
        ),
    ] {
        let body = body.replace("COUNT", counted);
        let text = text.replacen(decision, &body, 1).replacen(
            "    mov.u32 %thread, %tid.x;",
            "OUT:\n    mov.u32 %thread, %tid.x;",
            1,
        );
        assert_eq!(code(&text, "waits").may_wait(), waits, "{body}");
    }
}

/// Blocks that look at what earlier ones of the same launch stored, as those of a scan, are told from others
/// that wait: for an answer at their own place, for all of them, or for work elsewhere.
#[test]
fn blocks_that_wait_for_blocks_of_the_same_launch_are_told_from_others() {
    const STORE: &str = "    st.release.gpu.global.u32 [%own+4], %block;\n";
    const LOAD: &str = "    ld.acquire.gpu.global.u32 %seen, [%own];";
    const LOOP: &str = "    @%again bra LOOP;\n";
    const FIRST: &str = "    setp.eq.s32 %again, %block, 0;\n    @%again bra NEXT;\n";
    let text = TEXT
        .replacen("%seen, %thread;", "%seen, %thread, %block;\n    .reg .b64 %own, %all;", 1)
        .replacen(
            "LOOP:\n    ld.volatile.global.u32 %seen, [%flag];",
            &format!(
                "    mov.u32 %block, %ctaid.x;\n    mul.wide.u32 %own, %block, 4;\n    \
                 add.s64 %own, %flag, %own;\n    mov.u32 %thread, %tid.x;\n    \
                 mul.wide.u32 %all, %thread, 4;\n    add.s64 %all, %flag, %all;\n    \
                 mul.wide.u32 %offset, %thread, 4;\n    sub.s64 %offset, %own, %offset;\n\
                 {STORE}{FIRST}LOOP:\n{LOAD}"
            ),
            1,
        )
        .replacen(LOOP, &format!("{LOOP}NEXT:\n"), 1);
    let [flags, memory] = [TO + 0xffc, TO + 0x1_0000];
    let ask_of = |text: &str, blocks: u32| {
        let code = code(text, "waits");
        assert!(code.may_wait(), "{text}");
        let parameters = [flags, memory, memory].map(u64::to_le_bytes).concat();
        let launch = Launch::new([blocks, 1, 1], [16, 1, 1], parameters);
        let spans = may_touch(&code, &launch).expect("known");
        let summary = summary(&code).expect("known");
        let table = summary.signals_in(&code, &launch, &spans);
        (summary.signals, table.map(|of| (of.first, of.places)))
    };
    let ask = |text: &str| ask_of(text, 16);
    // With what each thread of the first block may look at.
    let table = Some((flags + 4 - 64, flags + 4..flags + 68));
    assert_eq!(ask(&text), (Some(0), table.clone()));
    assert_eq!(ask_of(&text, 1), (Some(0), None), "it has no earlier block");
    // A first look is bounded; the others count down.
    let counted = format!(
        "    mov.u32 %thread, %block;\nFIRST:\n{LOAD}\n    setp.eq.s32 %again, %seen, 0;\n    \
         @%again bra FIRST;\nLOOP:\n    sub.s32 %thread, %thread, 32;\n    \
         mul.wide.s32 %own, %thread, 4;\n    add.s64 %own, %flag, %own;\n{LOAD}"
    );
    let alone = counted.replacen(LOAD, "    mov.u32 %seen, %clock;", 1);
    let loop_and_load = format!("LOOP:\n{LOAD}");
    let after = format!("{LOOP}{STORE}");
    let load = |of: &str| format!("    ld.acquire.gpu.global.{of}];");
    let more =
        |address: &str| format!("{STORE}    st.release.gpu.global.u32 [{address}], %block;\n");
    for (part, other, word, is_table) in [
        (LOAD, load("u32 %seen, [%offset"), Some(0), true),
        (LOAD, format!("{LOAD}\n{}", load("u32 %seen, [%offset")), Some(0), true),
        (&loop_and_load, counted, Some(0), true),
        (&loop_and_load, alone, Some(0), false),
        (LOOP, after.clone(), Some(0), true),
        // What it waits for is set back, or is another one's.
        (STORE, String::new(), None, false),
        (STORE, STORE.replace("release.gpu.", ""), None, false),
        (STORE, STORE.replace("%own+4", "%in"), None, false),
        (STORE, "    red.release.gpu.global.add.u32 [%own+4], 1;\n".to_owned(), None, false),
        (LOAD, "    atom.acquire.gpu.global.or.b32 %seen, [%own], 0;".to_owned(), None, false),
        (LOAD, load("u32 %seen, [%in"), None, false),
        // An answer at the same place, the next block, all that have come, and work elsewhere.
        (LOAD, load("u32 %seen, [%own+4"), Some(0), false),
        (LOAD, load("u32 %seen, [%own+8"), Some(0), false),
        (LOAD, load("u32 %seen, [%all+4"), Some(0), false),
        (LOAD, load("u32 %seen, [%all+64"), Some(0), false),
        (LOAD, load("u32 %seen, [%own+-64"), Some(0), false),
        // The first block waits as well: for that of another launch.
        (FIRST, String::new(), Some(0), false),
        (FIRST, FIRST.replace(", 0;", ", 1;"), Some(0), false),
        // Within two of the places.
        (LOAD, load("u32 %seen, [%own+2"), Some(0), false),
        (LOAD, load("u32 %seen, [%own+-2"), Some(0), false),
        (LOAD, load("u16 %seen, [%own"), Some(0), false),
        // One place for all, another column of the same table, and stores elsewhere, too.
        (STORE, STORE.replace("%own+4", "%flag"), Some(0), false),
        ("%own, %block, 4;", "%own, %block, 8;".to_owned(), Some(0), false),
        (STORE, more("%own+68"), Some(0), false),
        (STORE, more("%own+5").replacen("u32 [%own+5", "u8 [%own+5", 1), Some(0), false),
        (STORE, more("%in"), Some(0), false),
    ] {
        let changed = text.replacen(part, &other, 1);
        assert_ne!(changed, text, "{other}");
        let found = ask(&changed);
        assert_eq!(found, (word, table.clone().filter(|_| is_table)), "{part} {other}");
    }
    let after = text.replacen(STORE, "", 1).replacen(LOOP, &after, 1);
    assert_eq!(ask(&after), (None, None));
}

/// A kernel that polls only if its parameters say so, as a matrix product that is split.
#[test]
fn a_launch_that_leaves_the_loop_out_does_not_wait() {
    let text = TEXT
        .replacen("LOOP:\n", "    setp.eq.u64 %again, %flag, 0;\n    @%again bra DONE;\nLOOP:\n", 1)
        .replacen("    mov.u32 %thread, %tid.x;", "DONE:\n    mov.u32 %thread, %tid.x;", 1);
    assert_eq!(text.matches("DONE").count(), 2);
    let code = code(&text, "waits");
    assert!(code.may_wait());
    let waits = |flag: u64| {
        let parameters = [flag, 0x1_0000, 0x2_0000].map(u64::to_le_bytes).concat();
        let launch = Launch::new([1; 3], [32, 1, 1], parameters);
        code.may_wait_in(&may_touch(&code, &launch).expect("known"))
    };
    assert_eq!([0, 0x3_0000].map(waits), [false, true]);
    // A plain load in front of it is none by which it waits.
    let before = "    ld.volatile.global.u32 %seen, [%in];\nDONE:";
    let before = self::code(&text.replace("DONE:", before), "waits");
    let launch = Launch::new([1; 3], [1; 3], [0; 24]);
    assert!(!before.may_wait_in(&may_touch(&before, &launch).expect("known")));
}

/// Loads, stores and others by nvcc 13.5, and what they are.
#[test]
fn strong_accesses_are_told_from_weak_ones() {
    let weak = [
        (80, 0x000e_a200_0c1e_1900_0000_0404_0402_7981_u128, "LDG.E"),
        (80, 0x000e_a800_0c0e_1900_0000_0c04_0209_7981, "LDG.E.EF"),
        (90, 0x000e_a200_0c1e_9900_0000_0004_0203_7981, "LDG.E.CONSTANT"),
        (100, 0x000e_ee00_0c1e_9900_0000_0004_0203_7981, "LDG.E.CONSTANT"),
        (80, 0x000f_e200_0c10_1904_0000_0005_0200_7986, "STG.E"),
        (90, 0x001f_e200_0c00_1904_0000_0005_0200_7986, "STG.E.EF"),
        (120, 0x002f_e200_0c10_1904_0000_0007_0200_7986, "STG.E"),
        (80, 0x000e_a200_081e_e7c4_0000_0007_0203_79a8, "ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU"),
        (80, 0x000e_a200_0810_e9c4_0000_0005_0205_798a, "ATOM.E.ADD.F16x2.RN.STRONG.GPU"),
        (80, 0x000f_e200_0c10_ed84_0000_0004_0200_798e, "RED.E.ADD.F64.RN.STRONG.GPU"),
        (90, 0x0011_6200_0810_e1c4_0000_0005_0205_79a2, "ATOM.E.ADD.F16x2.RN.STRONG.GPU"),
        (90, 0x001e_ac00_081e_f3c4_0000_0007_0203_79a3, "ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU"),
        (120, 0x001f_e200_0c12_ff04_0000_0004_0200_79a6, "REDG.E.ADD.F64.RN.STRONG.GPU"),
    ];
    let strong = [
        (80, 0x000e_a400_0c1f_5900_0000_0004_0200_7981, "LDG.E.STRONG.SYS"),
        (80, 0x000e_a200_0c1e_f900_0000_0004_0207_7981, "LDG.E.STRONG.GPU"),
        (90, 0x000e_a400_0c10_f900_0000_0004_0205_7980, "LD.E.STRONG.GPU"),
        (100, 0x000e_a400_0c11_5900_0000_0004_0205_7980, "LD.E.STRONG.SYS"),
        (90, 0x000e_a800_081e_e1c4_0000_00ff_0207_09a8, "ATOMG.E.ADD.STRONG.GPU"),
        (80, 0x000f_e200_0c11_5904_0000_0005_0200_7986, "STG.E.STRONG.SYS"),
        (90, 0x001f_e200_0c10_f904_0000_0005_0200_7986, "STG.E.STRONG.GPU"),
        (80, 0x000f_e200_0c10_e584_0000_0004_0200_098e, "RED.E.ADD.64.STRONG.GPU"),
        (80, 0x000e_6400_001e_e106_0000_0005_0206_738b, "ATOM.E.CAS.STRONG.GPU"),
        (100, 0x001f_e200_0811_8904_0000_0000_ff00_7986, "STG.E.MMIO.SYS"),
        (120, 0x004e_a200_081e_f104_8000_0009_0203_09a8, "ATOMG.E.ADD.STRONG.GPU"),
        (120, 0x001f_e200_0c10_b904_0000_0005_0200_7986, "STG.E.STRONG.SM"),
    ];
    let all = weak.map(|of| (of, false)).into_iter().chain(strong.map(|of| (of, true)));
    for ((architecture, bits, name), is_strong) in all {
        let one = decode(architecture, &bits.to_le_bytes()).expect("known").remove(0);
        let Operation::Access(access) = one.operation else { panic!("{name}: {one:?}") };
        assert_eq!(access.strong, is_strong, "{name}");
    }
}

/// A negative offset as a number without sign: the sum is more than an address.
#[test]
fn rows_are_those_of_the_address() {
    let text = "
        .version 8.0
        .target sm_80
        .address_size 64
        .entry column(.param .u64 to, .param .u64 offset)
        {
            .reg .b32 %row;
            .reg .b64 %to, %offset;
            ld.param.u64 %to, [to];
            ld.param.u64 %offset, [offset];
            add.s64 %to, %to, %offset;
            mov.u32 %row, %tid.x;
            mul.wide.u32 %offset, %row, 48;
            add.s64 %to, %to, %offset;
            st.global.u32 [%to], %row;
            ret;
        }";
    let code = code(text, "column");
    for offset in [0_i64, 336, -336, -4] {
        let parameters = [TO.to_le_bytes(), offset.to_le_bytes()].concat();
        let launch = Launch::new([1; 3], [10, 1, 1], parameters);
        let spans = may_touch(&code, &launch).expect("known");
        let begin = TO.wrapping_add_signed(offset);
        for at in begin..begin + 10 * 48 {
            let expected = (at - begin) % 48 < 4;
            assert_eq!(spans[0].may_touch(&(at..at + 1)), expected, "{offset} {at:x} {spans:x?}");
        }
    }
}
