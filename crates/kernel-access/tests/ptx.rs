//! PTX that is written here, against what its instructions are said to do.

mod common;
#[path = "common/shapes.rs"]
mod shapes;

use cuda_kernel_access::code::{Code, Launch, NoCode};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::{End, Touch, execute};
use cuda_kernel_access::ptx::{Module, PtxError};
use cuda_kernel_access::touch::{Span, Unknown, Uses, Word, may_touch, summary, surely_touched};
use shapes::case;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel of the name `k`.
fn code(text: &str) -> Result<Code, NoCode> {
    let text = format!("{HEAD}{text}");
    let module = Module::parse(&text).map_err(NoCode::Ptx)?;
    Code::from_ptx(&module, "k")
}

/// What an instruction leaves in its result, by three numbers.
type Judge = fn(u64, u64, u64) -> u64;

/// The numbers are in `%rd1` to `%rd3`, their lower parts in `%r1` and `%rs1` and so on. The result
/// is in `%rd0`, `%r0` or `%rs0`, by its bits. `by_type` has the others.
const COMPUTED: &[(&str, u32, Judge)] = &[
    ("sub.s32 %r0, 9, %r2;", 32, |_, b, _| 9_u64.wrapping_sub(b)),
    ("shr.u64 %rd1, %rd1, 7; mov.u64 %rd0, %rd1;", 64, |a, _, _| a >> 7),
    ("and.b64 %rd0, %rd1, 0xffffffff00000;", 64, |a, _, _| a & 0xf_ffff_fff0_0000),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0xe8;", 32, |a, b, c| a & b | a & c | b & c),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0xd8;", 32, |a, b, c| a & !c | b & c),
    ("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 32, |a, b, c| both(a, b) << (c & 31) >> 32),
    ("shf.l.clamp.b32 %r0, %r1, %r2, %r3;", 32, |a, b, c| {
        ((u128::from(both(a, b)) << u32(c).min(32)) >> 32) as u64
    }),
    ("shf.r.wrap.b32 %r0, %r1, %r2, %r3;", 32, |a, b, c| both(a, b) >> (c & 31)),
    ("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", 32, |a, b, c| both(a, b) >> u32(c).min(32)),
    ("bfe.u32 %r0, %r1, 5, 9;", 32, |a, _, _| a >> 5 & 0x1ff),
    ("bfe.s32 %r0, %r1, 5, 9;", 32, |a, _, _| (s32(a << 18) >> 23) as u64),
    ("mov.b64 %rd0, {%r1, %r2};", 64, |a, b, _| both(a, b)),
    ("mov.b64 {%r4, %r0}, %rd1;", 32, |a, _, _| a >> 32),
    ("mov.b64 {%r0, _}, %rd1;", 32, |a, _, _| a),
    ("mov.u64 %rd0, 0x123456789abcdef0;", 64, |_, _, _| 0x1234_5678_9abc_def0),
    ("mov.u32 %r0, WARP_SZ;", 32, |_, _, _| 32),
    ("setp.lo.s32 %p1, %r1, %r2; selp.b64 %rd0, %rd1, %rd3, %p1;", 64, |a, b, c| {
        if u32(a) < u32(b) { a } else { c }
    }),
    ("setp.ne.b32 %p1|%p2, %r1, %r2; selp.u32 %r0, 1, 2, %p2;", 32, |a, b, _| {
        if u32(a) == u32(b) { 1 } else { 2 }
    }),
    (
        "setp.eq.u32 %p1, %r1, %r2; setp.lt.and.s32 %p2, %r1, %r3, !%p1; selp.u32 %r0, 1, 2, %p2;",
        32,
        |a, b, c| if s32(a) < s32(c) && u32(a) != u32(b) { 1 } else { 2 },
    ),
    (
        "setp.hi.u32 %p1, %r1, %r2; setp.gt.s32 %p2, %r1, %r3; xor.pred %p3, %p1, %p2;\
         selp.u32 %r0, 1, 2, %p3;",
        32,
        |a, b, c| if (u32(a) > u32(b)) != (s32(a) > s32(c)) { 1 } else { 2 },
    ),
    (
        "setp.ls.u32 %p1, %r1, %r2; mov.u32 %r0, 7; @%p1 add.s32 %r0, %r1, 1;\
         @!%p1 mov.u32 %r0, %r3;",
        32,
        |a, b, c| if u32(a) <= u32(b) { a.wrapping_add(1) } else { c },
    ),
    ("setp.lt.u32 %p1, %r1, %r2; mov.u64 %rd0, 5; @%p1 shl.b64 %rd0, %rd1, 40;", 64, |a, b, _| {
        if u32(a) < u32(b) { a << 40 } else { 5 }
    }),
    (
        "and.b32 %r0, %r1, 3; L: .branchtargets L0, L1, L2, L3; brx.idx %r0, L;\
         L0: mov.u32 %r0, 10; bra E; L1: mov.u32 %r0, 21; bra.uni E; L2: mov.u32 %r0, 32; bra E;\
         L3: mov.u32 %r0, 43; E:",
        32,
        |a, _, _| [10, 21, 32, 43][(a & 3) as usize],
    ),
    (
        "{ .reg .b32 %r0; mov.u32 %r0, 1; L: add.u32 %r0, %r0, %r0; setp.lt.u32 %p1, %r0, 100;\
         @%p1 bra L; st.global.u32 [%rd1], %r0; } mov.u32 %r0, %r2;",
        32,
        |_, b, _| b,
    ),
];

fn u32(number: u64) -> u64 {
    number & 0xffff_ffff
}

fn s32(number: u64) -> i64 {
    number as i32 as i64
}

fn both(low: u64, high: u64) -> u64 {
    u32(low) | high << 32
}

/// The number that these bits are.
fn number(signed: bool, bits: u32, of: u64) -> i128 {
    let above = 64 - bits;
    if signed { ((of << above) as i64 >> above).into() } else { (of << above >> above).into() }
}

type Judged = Box<dyn Fn(u64, u64, u64) -> u64>;

/// Instructions, each with the bits of its result and what that is.
#[derive(Default)]
struct Rows(Vec<(String, u32, Judged)>);

impl Rows {
    fn add(&mut self, bits: u32, text: String, judge: impl Fn(u64, u64, u64) -> u64 + 'static) {
        self.0.push((text, bits, Box::new(judge)));
    }
}

type Two = fn(i128, i128) -> i128;
type Compare = fn(&i128, &i128) -> bool;

const TWO: [(&str, Two); 10] = [
    ("add", |a, b| a + b),
    ("sub", |a, b| a - b),
    ("mul.lo", i128::wrapping_mul),
    ("div", |a, b| a / b),
    ("rem", |a, b| a % b),
    ("min", i128::min),
    ("max", i128::max),
    ("and", |a, b| a & b),
    ("or", |a, b| a | b),
    ("xor", |a, b| a ^ b),
];

/// The last four are of numbers without sign, whatever the type.
const COMPARED: [(&str, Compare); 10] = [
    ("eq", i128::eq),
    ("ne", i128::ne),
    ("lt", i128::lt),
    ("le", i128::le),
    ("gt", i128::gt),
    ("ge", i128::ge),
    ("lo", i128::lt),
    ("ls", i128::le),
    ("hi", i128::gt),
    ("hs", i128::ge),
];

/// Each instruction of whole numbers for each type and width.
fn by_type(rows: &mut Rows) {
    let register = |bits, at| format!("%{}{at}", ["rs", "r", "rd"][bits as usize / 32]);
    let letter = |signed| if signed { 's' } else { 'u' };
    for (bits, signed) in [16, 32, 64].into_iter().flat_map(|bits| [(bits, false), (bits, true)]) {
        let [to, a, b, c] = [0, 1, 2, 3].map(|at| register(bits, at));
        let kind = format!("{}{bits}", letter(signed));
        let of = move |x| number(signed, bits, x);
        for (name, judge) in TWO {
            let letter = if ["and", "or", "xor"].contains(&name) { 'b' } else { letter(signed) };
            let text = format!("{name}.{letter}{bits} {to}, {a}");
            rows.add(bits, format!("{text}, {b};"), move |a, b, _| judge(of(a), of(b)) as u64);
            for by in [3, if signed { -7 } else { 1000 }] {
                rows.add(bits, format!("{text}, {by};"), move |a, _, _| judge(of(a), by) as u64);
            }
        }
        for (at, (name, judge)) in COMPARED.into_iter().enumerate() {
            let select = format!("selp.b{bits} {to}, {b}, {c}, %p1;");
            let text = format!("setp.{name}.{kind} %p1, {a}, {b}; {select}");
            rows.add(bits, text, move |a, b, c| {
                let of = |x| number(signed && at < 6, bits, x);
                if judge(&of(a), &of(b)) { b } else { c }
            });
        }
        if bits < 64 {
            let wide = bits * 2;
            let [to, c] = [0, 3].map(|at| register(wide, at));
            rows.add(wide, format!("mul.wide.{kind} {to}, {a}, {b};"), move |a, b, _| {
                (of(a) * of(b)) as u64
            });
            rows.add(wide, format!("mad.wide.{kind} {to}, {a}, {b}, {c};"), move |a, b, c| {
                (of(a) * of(b) + i128::from(c)) as u64
            });
        }
        rows.add(bits, format!("mad.lo.{kind} {to}, {a}, {b}, {c};"), |a, b, c| {
            a.wrapping_mul(b).wrapping_add(c)
        });
        if bits == 32 {
            let high = move |a, b| ((of(a) * of(b)) >> 32) as u64;
            rows.add(bits, format!("mul.hi.{kind} {to}, {a}, {b};"), move |a, b, _| high(a, b));
            rows.add(bits, format!("mad.hi.{kind} {to}, {a}, {b}, {c};"), move |a, b, c| {
                high(a, b).wrapping_add(c)
            });
            rows.add(bits, format!("bfe.{kind} {to}, {a}, 5, 9;"), move |a, _, _| {
                number(signed, 9, a >> 5) as u64
            });
        }
        rows.add(bits, format!("not.b{bits} {to}, {a};"), |a, _, _| !a);
        if signed {
            rows.add(bits, format!("neg.{kind} {to}, {a};"), |a, _, _| a.wrapping_neg());
        }
        if signed && bits < 64 {
            rows.add(bits, format!("abs.{kind} {to}, {a};"), move |a, _, _| {
                of(a).unsigned_abs() as u64
            });
        }
        // By a number of 32 bits without sign, which may be larger than the width.
        let numbers = [0, 5, 30, 31, 32, 33, 63, 64, 200].map(Some);
        for fixed in numbers.into_iter().chain([None]) {
            let shift = fixed.map_or("%r2".to_owned(), |by| by.to_string());
            let by = move |b| fixed.unwrap_or(u32(b)).min(64);
            rows.add(bits, format!("shr.{kind} {to}, {a}, {shift};"), move |a, b, _| {
                (of(a) >> by(b)) as u64
            });
            rows.add(bits, format!("shl.b{bits} {to}, {a}, {shift};"), move |a, b, _| {
                (of(a) << by(b)) as u64
            });
        }
    }
    // From each type to each, in registers that may be wider than either.
    let types = || [8, 16, 32, 64].into_iter().flat_map(|bits| [(false, bits), (true, bits)]);
    for (into, of) in types().flat_map(|into| types().map(move |of| (into, of))) {
        let [to, from] = [into, of].map(|(signed, bits)| format!("{}{bits}", letter(signed)));
        for (result, source) in [16, 32, 64].map(|to| [16, 32, 64].map(|of| (to, of))).concat() {
            if result < into.1 || source < of.1 {
                continue;
            }
            let operands = format!("{}, {};", register(result, 0), register(source, 1));
            rows.add(result, format!("cvt.{to}.{from} {operands}"), move |a, _, _| {
                number(into.0, into.1, number(of.0, of.1, a) as u64) as u64
            });
        }
    }
}

/// A kernel that reads the byte at the address that the result of these instructions is. To the first
/// number the thread's place is added.
fn reading(instructions: &str, bits: u32) -> String {
    let widened = match bits {
        16 => "cvt.u64.u16 %rd0, %rs0;",
        32 => "cvt.u64.u32 %rd0, %r0;",
        _ => "",
    };
    format!(
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{{\n.reg .pred %p<5>;\n\
         .reg .b16 %rs<5>;\n.reg .b32 %r<5>;\n.reg .b64 %rd<6>;\n\
         ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u64 %rd3, [c];\n\
         mov.u32 %r1, %tid.x;\ncvt.u64.u32 %rd4, %r1;\nadd.s64 %rd1, %rd1, %rd4;\n\
         cvt.u32.u64 %r1, %rd1;\ncvt.u32.u64 %r2, %rd2;\ncvt.u32.u64 %r3, %rd3;\n\
         cvt.u16.u64 %rs1, %rd1;\ncvt.u16.u64 %rs2, %rd2;\ncvt.u16.u64 %rs3, %rd3;\n\
         {instructions}\n{widened}\nld.global.u8 %rs4, [%rd0];\nret;\n}}\n"
    )
}

const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    3,
    31,
    32,
    37,
    64,
    1000,
    0x7fff_fff0,
    0x8000_0000,
    0xffff_fffe,
    0x1234_5678_9abc_def0,
    0x7fff_ffff_ffff_fff0,
    0xffff_ffff_ffff_fff9,
    0x8000_0000_0000_7fff,
];

/// Each instruction of the table, with many numbers: what a thread reads is what the instruction
/// says, and in what is said of all threads.
#[test]
fn instructions_compute_what_they_say() {
    const THREADS: u32 = 5;
    let (mut compared, mut exact) = (0, 0);
    let mut rows = Rows::default();
    by_type(&mut rows);
    for &(text, bits, judge) in COMPUTED {
        rows.add(bits, text.to_owned(), judge);
    }
    for (row, (instructions, bits, judge)) in rows.0.into_iter().enumerate() {
        let code = code(&reading(&instructions, bits))
            .unwrap_or_else(|error| panic!("{instructions}: {error}"));
        // Whatever the parameters are: they may be any numbers then.
        summary(&code).unwrap_or_else(|error| panic!("{instructions}: {error}"));
        for at in (row % 29..NUMBERS.len() * NUMBERS.len()).step_by(29) {
            let (a, b) = (NUMBERS[at % 16], NUMBERS[at / 16]);
            let c = NUMBERS[(at * 7 + at / 16 * 3) % 16];
            // What a division by zero gives is not said.
            let divides = instructions.starts_with("div") || instructions.starts_with("rem");
            if divides && (b as u32 == 0 || bits == 16 && b as u16 == 0) {
                continue;
            }
            let parameters = [a, b, c].map(u64::to_le_bytes).concat();
            for threads in [1, THREADS] {
                let launch = Launch::new([1; 3], [threads, 1, 1], parameters.clone());
                let place = format!("{instructions} {a:#x} {b:#x} {c:#x} {threads}");
                let spans = may_touch(&code, &launch).expect(&place);
                for thread in 0..threads {
                    let result = judge(a.wrapping_add(thread.into()), b, c);
                    let result = if bits == 64 { result } else { result & ((1 << bits) - 1) };
                    let place = format!("{place} {thread}");
                    let run =
                        execute(&code, &launch, [0; 3], [thread, 0, 0], &mut |_, _| None, 1000);
                    assert_eq!(run.end, End::Exit, "{place}");
                    let read = run.touched.last().expect(&place);
                    assert_eq!((read.kind, read.bytes), (AccessKind::Read, 1), "{place}");
                    assert_eq!(read.address, result, "{place}: {:#x} {result:#x}", read.address);
                    let span = spans.iter().find(|span| span.at == read.at).expect(&place);
                    if let Some(bytes) = &span.bytes {
                        assert!(bytes.contains(&result), "{place}: {result:#x} {bytes:x?}");
                        exact += u32::from(threads == 1 && *bytes == (result..result + 1));
                    }
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 7_000 && exact > 3_000, "{compared} {exact}");
}

/// An instruction that saturates is not the one that does not: where its result is not followed, no
/// thread is said to be where the other one would lead it.
#[test]
fn what_saturates_does_not_wrap() {
    let clamped = |signed: bool, bits: u32, of: i128| {
        let most = (1_i128 << (bits - u32::from(signed))) - 1;
        of.clamp(if signed { -most - 1 } else { 0 }, most) as u64
    };
    type Judge = fn(i128, i128, i128) -> i128;
    let rows: [(&str, (bool, u32), Judge); 8] = [
        ("add.sat.s32 %r0, %r1, %r2;", (true, 32), |a, b, _| a + b),
        ("sub.sat.s32 %r0, %r1, %r2;", (true, 32), |a, b, _| a - b),
        ("add.sat.s32 %r0, %r1, 2147483647;", (true, 32), |a, _, _| a + 0x7fff_ffff),
        ("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", (true, 32), |a, b, c| ((a * b) >> 32) + c),
        ("cvt.sat.u8.s32 %r0, %r1;", (false, 8), |a, _, _| a),
        ("cvt.sat.s16.s32 %r0, %r1;", (true, 16), |a, _, _| a),
        ("cvt.sat.u16.s32 %rs0, %r1; cvt.u32.u16 %r0, %rs0;", (false, 16), |a, _, _| a),
        ("cvt.sat.u32.s32 %r0, %r1;", (false, 32), |a, _, _| a),
    ];
    let numbers = [0, 1, 200, 300, 0xffff, 0x7fff_fff0, 0x8000_0000, 0xffff_fff0];
    for (text, (signed, bits), judge) in rows {
        let Ok(code) = code(&reading(text, 32)) else { continue };
        for at in 0..512 {
            let [a, b, c] = [at % 8, at / 8 % 8, at / 64].map(|at: usize| numbers[at]);
            let [x, y, z] = [a, b, c].map(|of| number(true, 32, of));
            let result = u32(clamped(signed, bits, judge(x, y, z)));
            let parameters = [a, b, c].map(u64::to_le_bytes).concat();
            let launch = Launch::new([1; 3], [1; 3], parameters);
            let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 1000);
            let place = format!("{text} {a:#x} {b:#x} {c:#x}: {result:#x}");
            for read in run.touched.iter().filter(|of| of.kind == AccessKind::Read) {
                assert_eq!(read.address, result, "{place}");
            }
            for span in may_touch(&code, &launch).expect(&place) {
                let bytes = span.bytes.unwrap_or(0..u64::MAX);
                assert!(bytes.contains(&result), "{place} {bytes:x?}");
            }
        }
    }
}

/// The accesses of a thread, each with its first byte and how many there are.
fn touched(text: &str, parameters: &[u8]) -> Vec<(AccessKind, u64, u8)> {
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
    let text = include_str!("shapes.ptx");
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

/// A branch back into a loop's middle, and a call that calls itself.
#[test]
fn ways_that_are_not_followed_are_said() {
    let irreducible = "
.visible .entry k(.param .u64 p)
{
    .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0; @%p1 bra B;
A:  ld.global.u32 %r1, [%rd1];
B:  st.global.u32 [%rd1], %r1; setp.eq.u32 %p2, %r1, 5; @%p2 bra A;
    ret;
}";
    let irreducible = code(irreducible).expect("code");
    assert_eq!(summary(&irreducible), Err(Unknown::Irreducible));
    let recursive = "
.func f() { call f; ret; }
.visible .entry k() { call f; ret; }";
    assert!(matches!(code(recursive), Err(NoCode::Graph(_))));
}

/// Whether each sure access lies in what may happen by the other code of the same kernel.
fn within(sure: &[Touch], spans: &[Span], place: &str) -> usize {
    let class = |kind| match kind {
        AccessKind::CopyToShared => AccessKind::Read,
        AccessKind::Reduce => AccessKind::Atomic,
        other => other,
    };
    for touch in sure {
        let bytes = touch.address..touch.address + u64::from(touch.bytes);
        // One access may be several in the other code.
        let is_in = |byte: u64| {
            spans.iter().any(|span| {
                class(span.kind) == class(touch.kind)
                    && span.bytes.as_ref().is_none_or(|bytes| bytes.contains(&byte))
            })
        };
        assert!(bytes.clone().all(is_in), "{place}: {touch:x?} is not in {spans:x?}");
    }
    sure.len()
}

/// Of the kernels that `tools/kernels` compiles, to machine code and to PTX: both say the same.
#[test]
fn compiled_text_is_as_its_machine_code() {
    let (mut parameters, mut words, mut touches) = (0, 0, 0);
    for path in shapes::compiled("ptx") {
        let text = std::fs::read_to_string(&path).expect("a text");
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let image = std::fs::read(path.with_extension("cubin")).expect("a file");
        let cubin = Cubin::parse(&image).expect("a cubin");
        for entry in &module.entries {
            let place = format!("{} {}", entry.name, path.display());
            let kernel = cubin.kernel(entry.name).expect(&place);
            assert_eq!(entry.parameters, kernel.parameters, "{place}");
            parameters += entry.parameters.len();
            let both = Code::from_ptx(&module, entry.name)
                .ok()
                .zip(Code::new(cubin.architecture, kernel).ok());
            let Some((own, machine)) = both else { continue };
            let class = |uses: Uses| [uses.read, uses.written, uses.atomic];
            if let (Ok(one), Ok(two)) = (summary(&own), summary(&machine)) {
                for (one, two) in one.words.iter().zip(&two.words) {
                    // Numbers from memory count there.
                    if entry.name != "branches" && entry.name != "many_tensors" {
                        assert_eq!(class(one.uses), class(two.uses), "{place} {one:?} {two:?}");
                    }
                    words += 1;
                }
            }
            for which in 0..3 {
                let Some((launch, ..)) = case(entry.name, which) else { continue };
                let spans = [&own, &machine].map(|code| may_touch(code, &launch));
                let sure = [&own, &machine].map(|code| surely_touched(code, &launch));
                if let [Ok(first), Ok(second)] = spans {
                    touches += within(&sure[0], &second, &place);
                    touches += within(&sure[1], &first, &place);
                }
            }
        }
    }
    let none = std::env::var_os("CUDA_KERNEL_ACCESS_CORPUS").is_none();
    assert!(
        none || parameters > 100 && words > 80 && touches > 500,
        "{parameters} {words} {touches}"
    );
}

/// An address that is chosen by one condition and then by another may be each that was not surely
/// replaced, and by one condition and its opposite it is none of those before.
#[test]
fn addresses_chosen_by_several_conditions() {
    const GUARDS: [&str; 4] = ["@%p1", "@!%p1", "@%p2", "@!%p2"];
    let holds = |guard: usize, thread: usize| {
        let bit = thread >> (guard / 2) & 1 != 0;
        bit == guard.is_multiple_of(2)
    };
    let parameters: Vec<u8> = (1..5_u64).flat_map(|array| (array << 32).to_le_bytes()).collect();
    let launch = Launch::new([1; 3], [4, 1, 1], parameters);
    for number in 0..64 {
        let guards = [number % 4, number / 4 % 4, number / 16];
        let moves: Vec<String> = guards
            .iter()
            .zip(["%rd2", "%rd3", "%rd4"])
            .map(|(guard, from)| format!("{} mov.u64 %rd5, {from};\n", GUARDS[*guard]))
            .collect();
        let text = format!(
            ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{{\n\
             .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<6>;\n\
             ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n\
             ld.param.u64 %rd3, [c]; ld.param.u64 %rd4, [d];\n\
             mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; and.b32 %r3, %r1, 2;\n\
             setp.ne.s32 %p1, %r2, 0; setp.ne.s32 %p2, %r3, 0;\n\
             mov.u64 %rd5, %rd1;\n{}st.global.u32 [%rd5], 1; ret;\n}}",
            moves.concat()
        );
        let code = code(&text).expect("known");
        let words = summary(&code).expect("known").words;
        let spans = may_touch(&code, &launch).expect("known");
        let mut chosen = [false; 4];
        for thread in 0..4 {
            let last = (0..3).rev().find(|at| holds(guards[*at], thread));
            let word = last.map_or(0, |at| at + 1);
            chosen[word] = true;
            let place = [thread as u32, 0, 0];
            let run = execute(&code, &launch, [0; 3], place, &mut |_, _| None, 100);
            assert_eq!(run.touched[0].address >> 32, word as u64 + 1, "{guards:?} {thread}");
            let bytes = run.touched[0].address..run.touched[0].address + 4;
            assert!(spans.iter().any(|span| span.may_touch(&bytes)), "{guards:?} {thread}");
        }
        for (at, chosen) in chosen.iter().enumerate() {
            assert!(!chosen || words[at].uses.written, "{guards:?} {at}");
        }
        // The last two are of one condition, one for each way: nothing else is left.
        if guards[1] ^ 1 == guards[2] {
            let written: Vec<bool> = words.iter().map(|word| word.uses.written).collect();
            assert_eq!(written, [false, false, true, true], "{guards:?}");
        }
    }
}

/// A branch by an index goes to one of its targets, and never on to what comes behind it.
#[test]
fn a_branch_by_an_index_goes_to_one_of_its_targets() {
    let code = code(
        ".entry k(.param .u64 to, .param .u32 i)\n{ .reg .b64 %a; .reg .b32 %i;\
         ld.param.u64 %a, [to]; ld.param.u32 %i, [i]; L: .branchtargets A, B; brx.idx %i, L;\
         st.global.u8 [%a], 1; A: ret; B: ret; }\n",
    );
    let found = summary(&code.expect("it is known")).expect("it is known");
    assert_eq!(found.words[0].uses, Uses::default(), "nothing stores there");
}

/// A function may get and return registers in place of parameters.
#[test]
fn registers_are_passed_to_functions() {
    let code = code(
        ".func (.reg .b64 %r) f(.reg .b64 %a) { st.global.u32 [%a], 7; add.u64 %r, %a, 16; ret; }\n\
         .entry k(.param .u64 to)\n{ .reg .b64 %rd<4>; ld.param.u64 %rd0, [to];\
         add.u64 %rd1, %rd0, 16; call (%rd2), f, (%rd1); st.global.u32 [%rd2], 1; ret; }\n",
    );
    let launch = Launch::new([1; 3], [1; 3], 0x7000_u64.to_le_bytes().to_vec());
    let touched = surely_touched(&code.expect("it is known"), &launch);
    let addresses: Vec<u64> = touched.iter().map(|touch| touch.address).collect();
    assert_eq!(addresses, [0x7010, 0x7020], "{touched:?}");
}
