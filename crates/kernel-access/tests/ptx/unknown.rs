//! What is not understood.

use cuda_kernel_access::code::{Code, Launch, NoCode};
use cuda_kernel_access::execute::execute;
use cuda_kernel_access::ptx::{Module, PtxError};
use cuda_kernel_access::touch::{Word, may_touch, summary};

use crate::text::code;

/// A text as large as is read is read, and one that is larger says so.
#[test]
fn what_is_too_large_is_unknown() {
    let of = |body: &str| code(&format!(".visible .entry k()\n{{\n{body}\nret;\n}}")).err();
    let large = Some(NoCode::Ptx(PtxError::TooLarge));
    let nested = |depth: usize| format!("{}{}", "{ ".repeat(depth), "} ".repeat(depth));
    assert_eq!((of(&nested(64)), of(&nested(65))), (None, large));
    // A register for each, but for the three that have a meaning in machine code.
    let wide = |count: usize| format!(".reg .b64 %r<{count}>;");
    let written = |count: usize| {
        let each: Vec<String> = (0..count).map(|at| format!("mov.u64 %r{at}, {at};")).collect();
        format!("{}\n{}", wide(count), each.join("\n"))
    };
    assert_eq!((of(&written(200)), of(&written(33_000))), (None, large));
    assert_eq!(of(&"membar.gl;\n".repeat((1 << 18) + 1)), large);
    assert_eq!(of(&"membar.gl;\n".repeat(1 << 17)), None);
    // A label is at one place in its scope, and may be in another scope.
    let twice = of("a:\nmembar.gl;\na:\nbra a;");
    assert!(matches!(twice, Some(NoCode::Ptx(PtxError::Damaged(_)))), "{twice:?}");
    assert_eq!(of("{ a: bra a; } { a: bra a; }"), None);
}

/// What is not understood is unknown.
#[test]
fn unknown_instructions_make_a_kernel_unknown() {
    let of = |body: &str| {
        code(&format!(
            ".global .align 4 .b8 v[16];\n.extern .func f(.param .b64 x);\n.visible .entry k(.param .u64 p)\n{{\n\
             .shared .b8 s[8];\n.reg .pred %p<3>; .reg .b16 %rs<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n\
             {body}\nret;\n}}"
        ))
    };
    for body in [
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 16, [s];",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [s];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [s], 16;",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [v, {%f0, %f1}];",
        "sust.b.1d.b32.trap [v, {%r1}], %r2;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0}, %rd1, %rd2, 1, 1, 1, 0, 0;",
        "discard.global.L2 [%rd1], 128;",
        "red.async.relaxed.cluster.global.add.u32 [%rd1], %r1;",
        "frobnicate.u32 %r1, %r2;",
        "st.bulk.weak.shared::cta [s], 8, 0;",
    ] {
        assert_eq!(of(body).err(), Some(NoCode::Ptx(PtxError::Instruction(10))), "{body}");
    }
    let cvta = of("cvta.param.u64 %rd1, p;").err();
    assert_eq!(cvta, Some(NoCode::Ptx(PtxError::Address(10))));
    let passed = "{ .param .b64 x; st.param.b64 [x], %rd1; call f, (x); }";
    assert_eq!(of(passed).err(), Some(NoCode::Ptx(PtxError::Call(10))));
    let by_pointer = "{ call (%r1), %rd1, (%r2), x; }";
    assert_eq!(of(by_pointer).err(), Some(NoCode::Ptx(PtxError::Call(10))));
    for body in [
        "add.u32 %r1, %r2;",
        "add.u32 %rd1, %r2, %r2;",
        "add.u64 %rd1, %r2, %rd2;",
        "ld.global.u32 %r1, [nowhere];",
        "mov.u32 %r4, 1;",
        "mov.u32 %r1, %unknown;",
        "selp.b32 %r1, %r2, %r3, %r1;",
        "shf.wrap.b32 %r1, %r2, %r3, %r1;",
        "ld.global.v2.u32 {%r1}, [%rd1];",
        "ld.global.b128 %rd1, [%rd2];",
    ] {
        assert_eq!(of(body).err(), Some(NoCode::Ptx(PtxError::Operands(10))), "{body}");
    }
    for body in ["add.u32 %r1, %r2", "bra nowhere;", "}", "@%p1;", "ld [;", "mov.u32 %r1, 0f12;"] {
        assert!(matches!(of(body).err(), Some(NoCode::Ptx(PtxError::Damaged(_)))), "{body}");
    }
    // An atomic operation whose address comes from a variable is somewhere.
    let somewhere = of("mov.u64 %rd1, v; atom.global.add.u32 %r1, [%rd1], 1;").expect("known");
    let summary = summary(&somewhere).expect("known");
    assert!(summary.memory.atomic && summary.words[0].uses.none());
    let spans = may_touch(&somewhere, &Launch::new([1; 3], [1; 3], [0; 8])).expect("known");
    assert_eq!(spans.iter().map(|span| span.bytes.clone()).collect::<Vec<_>>(), [None]);
}

/// What is computed in a way that is not followed is any number that depends on its sources.
#[test]
fn words_flow_through_what_is_not_followed() {
    let uses = |body: &str| {
        let text = format!(
            ".visible .entry k(.param .u64 p, .param .u64 q, .param .u64 r)\n{{\n.reg .pred %p<3>;\n\
             .reg .b16 %rs<5>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 %d<4>;\n\
             ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u64 %rd3, [r];\n\
             cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; mov.b64 {{%r4, %r3}}, %rd2;\n\
             {body}\nld.global.u8 %rs1, [%rd0];\nret;\n}}"
        );
        let code = code(&text).unwrap_or_else(|error| panic!("{body}: {error}"));
        let summary = summary(&code).expect("known");
        // `?`: by this word, or by another.
        let used = |word: &Word| match (word.uses.none(), word.as_base.read) {
            (true, _) => '-',
            (false, true) => 'r',
            (false, false) => '?',
        };
        summary.words.iter().map(used).collect::<String>()
    };
    for (body, expected) in [
        ("mov.b64 %rd0, %rd2;", "-r-"),
        ("add.s64 %rd0, %rd2, %rd3;", "-rr"),
        ("mul.hi.u64 %rd0, %rd1, %rd3;", "?-?"),
        ("prmt.b32 %r5, %r1, %r2, %r3; cvt.u64.u32 %rd0, %r5;", "??-"),
        ("add.cc.u32 %r5, %r1, %r2; addc.u32 %r6, 0, 0; mov.b64 %rd0, {%r5, %r6};", "??-"),
        ("add.cc.u32 %r5, %r1, 1; addc.u32 %r6, 0, 0; mov.b64 %rd0, {%r6, %r6};", "?--"),
        ("shfl.sync.bfly.b32 %r5|%p1, %r3, 1, 31, -1; mov.b64 %rd0, {%r1, %r5};", "r?-"),
        (".local .b8 l[8]; st.local.u64 [l], %rd3; ld.local.u64 %rd0, [l];", "--?"),
    ] {
        assert_eq!(uses(body), expected, "{body}");
    }
}

/// A sum of more numbers than are kept apart, in which the last registers take part.
#[test]
fn a_sum_that_is_too_long_is_any_number() {
    let parts = |count: u32| {
        let mut text = String::from("ld.param.u64 %rd1, [p]; mov.u64 %rd0, 0;");
        for at in 0..count {
            text += &format!("ld.global.u64 %rd2, [%rd1+{}]; add.u64 %rd0, %rd0, %rd2;", 8 * at);
        }
        text + "ld.global.v2.u32 {%r0, %r1}, [%rd1+4]; mad.wide.u32 %rd0, %r0, %r1, %rd0;
            ld.param.u64 %rd1, [q]; add.u64 %rd1, %rd1, %rd0; st.global.u8 [%rd1], 1;"
    };
    for count in 8..16 {
        let text = format!(
            ".visible .entry k(.param .u64 p, .param .u64 q)
            {{ .reg .b32 %r<2>; .reg .b64 %rd<3>; {} ret; }}",
            parts(count)
        );
        let summary = summary(&code(&text).expect("code")).expect("known");
        assert!(summary.words[0].uses.read && summary.words[1].uses.written, "{count}");
    }
}

/// Whatever is cut out of a text or changed in it is an error or another kernel.
#[test]
fn damaged_text_is_no_panic() {
    let text = include_str!("../shapes.ptx");
    let mut state = 3_u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut damaged, mut unknown, mut known) = (0, 0, 0);
    for turn in 0..600 {
        let mut bytes = text.as_bytes().to_vec();
        match turn % 3 {
            0 => bytes.truncate(random(bytes.len())),
            1 => {
                let from = random(bytes.len());
                let to = (from + random(40)).min(bytes.len());
                bytes.drain(from..to);
            }
            _ => {
                for _ in 0..=random(4) {
                    let at = random(bytes.len());
                    bytes[at] = b" ,;{}[]().%$_:@!09azAZ+-<>/*\"\n"[random(30)];
                }
            }
        }
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let Ok(module) = Module::parse(&text) else {
            damaged += 1;
            continue;
        };
        for entry in &module.entries {
            match Code::from_ptx(&module, entry.name) {
                Ok(code) => {
                    let launch = Launch::new([2; 3], [2; 3], [3; 48]);
                    let steps = 200;
                    execute(&code, &launch, [0; 3], [1; 3], &mut |_, _| None, steps);
                    known += 1;
                }
                Err(_) => unknown += 1,
            }
        }
    }
    assert!(damaged > 100 && unknown > 40 && known > 1000, "{damaged} {unknown} {known}");
}

/// A call that calls itself.
#[test]
fn ways_that_are_not_followed_are_said() {
    let recursive = "
.func f() { call f; ret; }
.visible .entry k() { call f; ret; }";
    assert!(matches!(code(recursive), Err(NoCode::Graph(_))));
}
