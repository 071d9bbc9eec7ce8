//! Accesses and parameters.

use cuda_kernel_access::code::{Code, Launch, NoCode};
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::{End, execute};
use cuda_kernel_access::ptx::{Module, PtxError};
use cuda_kernel_access::touch::{may_touch, surely_touched};

use crate::arithmetic::s32;
use crate::text::{HEAD, code};

/// The accesses of a thread, each with its first byte and how many there are.
fn touched(text: &str, parameters: &[u8]) -> Vec<(AccessKind, u64, u32)> {
    let code = code(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let launch = Launch::new([1; 3], [1; 3], parameters);
    let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 1000);
    assert_eq!(run.end, End::Exit);
    let spans = may_touch(&code, &launch).expect("known");
    for touch in &run.touched {
        let span = spans.iter().find(|span| span.at == touch.at).expect("one");
        let all = touch.address..touch.address + u64::from(touch.bytes);
        assert_eq!((span.kind, span.bytes.clone()), (touch.kind, Some(all)), "{touch:?}");
    }
    run.touched.iter().map(|touch| (touch.kind, touch.address, touch.bytes)).collect()
}

#[test]
fn accesses_have_their_kind_and_size() {
    use AccessKind::{Atomic, CopyToShared, Read, Reduce, Write};
    let text = "
.global .align 4 .b8 table[16] = {1, 2};
.visible .entry k(.param .u64 p)
{
    .shared .align 8 .b8 s[64];
    .local .align 8 .b8 l[64];
    .reg .b16 %rs<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f64 d;
    ld.param.u64 %rd1, [p];
    ld.global.v4.u8 {%rs1, %rs2, %rs3, %rs4}, [%rd1+16];
    ld.v2.u64 {%rd1, %rd2}, [%rd1+-8];
    ld.param.u64 %rd1, [p];
    ld.global.nc.L1::no_allocate.L2::128B.b32 %r1, [%rd1];
    ld.volatile.global.s16 %r2, [%rd1+2];
    ld.relaxed.gpu.global.f64 d, [%rd1];
    st.global.v2.b64 [%rd1+32], {%rd1, %rd2};
    st.shared.u32 [s+4], %r1;
    ld.shared::cta.u32 %r3, [s];
    st.local.u64 [l], %rd1;
    atom.global.add.u32 %r4, [%rd1+64], 1;
    atom.acq_rel.gpu.cas.b64 %rd4, [%rd1+72], %rd2, %rd1;
    atom.shared.add.u32 %r4, [s], 1;
    red.global.add.f32 [%rd1+80], 0f3F800000;
    cp.async.ca.shared.global [s], [%rd1+96], 8;
    prefetch.global.L2 [%rd1+500];
    ld.const.u32 %r5, [table];
    st.global.b8 [%rd1+7], %r1;
    ret;
}";
    let first = 0x7f00_0000_1000_u64;
    let mut expected: Vec<_> = (0..4).map(|at| (Read, 16 + at, 1)).collect();
    expected.extend([(Read, -8, 8), (Read, 0, 8), (Read, 0, 4), (Read, 2, 2), (Read, 0, 8)]);
    expected.extend([(Write, 32, 8), (Write, 40, 8), (Atomic, 64, 4), (Atomic, 72, 8)]);
    expected.extend([(Reduce, 80, 4), (CopyToShared, 96, 8), (Write, 7, 1)]);
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(kind, at, bytes)| (kind, first.wrapping_add_signed(at), bytes))
        .collect();
    assert_eq!(touched(text, &first.to_le_bytes()), expected);
}

#[test]
fn parameters_lie_by_their_alignment() {
    let text = format!(
        "{HEAD}.visible .entry k(
    .param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 4 .b8 c[5], .param .u16 d,
    .param .align 16 .b8 e[12], .param .f32 f, .param .v2 .u32 g, .param .u32 h[3]
)
.maxntid 128, 1, 1
.minnctapersm 2
{{ ret; }}"
    );
    let module = Module::parse(&text).expect("one");
    assert_eq!((module.architecture, module.entries.len()), (80, 1));
    let found: Vec<(u16, u32, u32)> = module.entries[0]
        .parameters
        .iter()
        .map(|one| (one.ordinal, one.offset, one.size))
        .collect();
    let expected = [
        (0, 0, 1),
        (1, 8, 8),
        (2, 16, 5),
        (3, 22, 2),
        (4, 32, 12),
        (5, 44, 4),
        (6, 48, 8),
        (7, 56, 12),
    ];
    assert_eq!(found, expected);
}

/// A part of a parameter has its own offset, width and sign.
#[test]
fn parameters_are_read_in_parts() {
    let text = |load: &str| {
        format!(
            ".visible .entry k(.param .u32 first, .param .align 8 .b8 s[24])\n{{\n.reg .b16 %rs<4>;\n\
             .reg .b32 %r<4>; .reg .b64 %rd<4>;\n{load}\nld.global.u8 %rs3, [%rd0]; ret;\n}}"
        )
    };
    let parameters: Vec<u8> = (0..32).map(|at| if at % 3 == 0 { 0x80 + at } else { at }).collect();
    let number = |at: usize, bytes: usize| {
        parameters[at..at + bytes].iter().rev().fold(0, |all, &one| all << 8 | u64::from(one))
    };
    for (load, expected) in [
        ("ld.param.u64 %rd0, [s];", number(8, 8)),
        ("ld.param.u64 %rd0, [s+8];", number(16, 8)),
        ("ld.param.u32 %rd0, [s+4];", number(12, 4)),
        ("ld.param.s32 %rd0, [s+12];", s32(number(20, 4)) as u64),
        ("ld.param.u8 %rd0, [s+1];", number(9, 1)),
        ("ld.param.s8 %rd0, [s+1];", number(9, 1) as i8 as u64),
        ("ld.param.s16 %r0, [s+4]; cvt.s64.s32 %rd0, %r0;", number(12, 2) as i16 as u64),
        ("ld.param.u16 %rs0, [s+6]; cvt.u64.u16 %rd0, %rs0;", number(14, 2)),
        ("ld.param.v2.u32 {%r0, %r1}, [s+8]; cvt.u64.u32 %rd0, %r1;", number(20, 4)),
        ("mov.b64 %rd1, s; add.s64 %rd1, %rd1, 4; ld.param.u64 %rd0, [%rd1+4];", number(16, 8)),
    ] {
        assert_eq!(touched(&text(load), &parameters), [(AccessKind::Read, expected, 1)], "{load}");
    }
    assert!(number(9, 1) > 0x7f && number(21, 1) > 0x7f && number(15, 1) > 0x7f);
}

/// A read of which nothing depends may be left out by the driver's compiler.
#[test]
fn a_read_of_no_use_is_not_sure() {
    let text = "
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [%rd1];
    ld.global.u32 %r2, [%rd1+4];
    ld.volatile.global.u32 %r3, [%rd1+8];
    ld.global.u32 %r4, [%rd1+12];
    add.u32 %r5, %r1, %r4;
    add.u32 %r6, %r2, 1;
    st.global.u32 [%rd1+16], %r6;
    ret;
}";
    let code = code(text).expect("known");
    let launch = Launch::new([1; 3], [1; 3], 0x1000_u64.to_le_bytes());
    let sure: Vec<u64> =
        surely_touched(&code, &launch).iter().map(|touch| touch.address - 0x1000).collect();
    assert_eq!(sure, [4, 8, 16]);
    assert_eq!(may_touch(&code, &launch).expect("known").len(), 5);
    assert_eq!(code.line(0), Some(8));
}

/// A thread whose assertion fails does nothing more; the others go on.
#[test]
fn a_failed_assertion_ends_the_thread() {
    let of = |guard: &str, function: &str| {
        code(&format!(
            ".extern .func {function}(.param .b64 x);\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<2>;\n\
             ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 1;\n\
             mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 7;\n\
             {{ .param .b64 x; st.param.b64 [x], %rd1; {guard}call.uni {function}, (x); }}\n\
             st.global.u32 [%rd1+8], 1;\nret;\n}}"
        ))
    };
    let places = |code: &Code, threads| -> Vec<u64> {
        let launch = Launch::new([1, 1, 1], [threads, 1, 1], 0x1000_u64.to_le_bytes());
        surely_touched(code, &launch).iter().map(|touch| touch.address - 0x1000).collect()
    };
    let every = of("", "__assertfail").expect("known");
    assert_eq!(places(&every, 32), [0]);
    let launch = Launch::new([1, 1, 1], [32, 1, 1], 0x1000_u64.to_le_bytes());
    assert_eq!(may_touch(&every, &launch).expect("known").len(), 1);
    let some = of("@%p1 ", "__assertfail").expect("known");
    assert_eq!(places(&some, 32), [0, 8]);
    assert_eq!(may_touch(&some, &launch).expect("known").len(), 2);
    assert_eq!(of("", "__assertfails").err(), Some(NoCode::Ptx(PtxError::Call(12))));
}

/// A condition leaves out threads behind the end of an array, of one axis or two; the last one before
/// them is found, wherever the end is in its block.
#[test]
fn the_last_thread_before_an_end_is_run() {
    let text = ".visible .entry k(.param .u64 p, .param .u32 w, .param .u32 h)\n{\n\
         .reg .pred %p<3>; .reg .b32 %r<12>; .reg .b64 %rd<4>;\n\
         ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [w];\nld.param.u32 %r2, [h];\n\
         mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\n\
         mad.lo.s32 %r6, %r3, %r4, %r5;\n\
         mov.u32 %r7, %ctaid.y;\nmov.u32 %r8, %ntid.y;\nmov.u32 %r9, %tid.y;\n\
         mad.lo.s32 %r10, %r7, %r8, %r9;\n\
         setp.ge.u32 %p1, %r6, %r1;\n@%p1 bra END;\nsetp.ge.u32 %p2, %r10, %r2;\n@%p2 bra END;\n\
         mad.lo.s32 %r11, %r10, 100, %r6;\ncvt.u64.u32 %rd2, %r11;\nadd.u64 %rd3, %rd1, %rd2;\n\
         st.global.u8 [%rd3], 1;\nEND:\nret;\n}";
    let code = code(text).expect("known");
    let last = |[w, h]: [u32; 2]| {
        let mut parameters = 0x1000_u64.to_le_bytes().to_vec();
        [w, h].into_iter().for_each(|number| parameters.extend(number.to_le_bytes()));
        let launch = Launch::new([6, 5, 1], [8, 4, 1], parameters);
        let touched = surely_touched(&code, &launch);
        touched.iter().map(|touch| touch.address - 0x1000).max()
    };
    assert_eq!(last([0, 20]), None);
    for w in 1..=48 {
        for h in 1..=20 {
            assert_eq!(last([w, h]), Some(u64::from(100 * (h - 1) + w - 1)), "{w} {h}");
        }
    }
}

/// A number from memory is as small as what was loaded: that says how far from an address it leads.
#[test]
fn a_loaded_number_has_the_bounds_of_its_type() {
    let base = 0x7f00_0000_0000_u64;
    for (kind, low, high) in [
        ("u8", 0, 0xff),
        ("s8", -0x80, 0x7f),
        ("u16", 0, 0xffff),
        ("s16", -0x8000, 0x7fff),
        ("u32", -1 << 31, (1 << 31) - 1),
        ("s32", -1 << 31, (1 << 31) - 1),
    ] {
        for scale in [1, 4] {
            let text = format!(
                ".visible .entry k(.param .u64 p, .param .u64 q)\n{{\n.reg .b32 %r<4>;\n\
                 .reg .b64 %rd<8>;\nld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n\
                 ld.global.{kind} %r1, [%rd1];\nmul.wide.s32 %rd3, %r1, {scale};\n\
                 add.s64 %rd4, %rd2, %rd3; st.global.u8 [%rd4], %r1; ret;\n}}"
            );
            let code = code(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let parameters = [base - 0x100, base].map(u64::to_le_bytes).concat();
            let launch = Launch::new([1; 3], [1; 3], parameters);
            let spans = may_touch(&code, &launch).expect("known");
            let write = spans.iter().find(|span| span.kind == AccessKind::Write).expect("one");
            let at = |number: i64| base.wrapping_add_signed(scale * number);
            let all = at(low)..at(high) + 1;
            let found = write.bytes.clone().expect("bounds");
            assert!(found.start <= all.start && all.end <= found.end, "{kind} {found:x?}");
            let is_exact = !kind.ends_with("32");
            assert!(!is_exact || found == all, "{kind} {scale} {found:x?} {all:x?}");
        }
    }
}

/// What crosses zero is as far from it as its farther end.
#[test]
fn an_absolute_value_is_bounded_on_both_sides() {
    const OUT: u64 = 0x7f12_0000_0000;
    let body = "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nsub.s32 %r2, %r1, FROM;\n\
                abs.s32 %r3, %r2;\nmul.wide.u32 %rd2, %r3, 4;\nadd.u64 %rd3, %rd1, %rd2;\n\
                st.global.u32 [%rd3], %r1;\nret;\n";
    let head = ".visible .entry k(.param .u64 out) {\n.reg .u64 %rd<5>;\n.reg .u32 %r<5>;\n";
    for (from, last) in [(0, 127), (27, 100), (100, 100), (127, 127), (200, 200)] {
        let code = code(&format!("{head}{}}}\n", body.replace("FROM", &from.to_string())));
        let launch = Launch::new([1; 3], [128, 1, 1], OUT.to_le_bytes());
        let spans = may_touch(&code.expect("it is understood"), &launch).expect("it has bounds");
        let [span] = &spans[..] else { panic!("{spans:?}") };
        let bytes = span.bytes.clone().expect("both ends are known");
        assert_eq!(bytes.end, OUT + 4 * (last + 1), "{from}");
        assert!(bytes.start <= OUT + 4 * u64::from(from == 200) * 73, "{from}: {bytes:x?}");
    }
}
