//! Each instruction of numbers, with many numbers.

use cuda_kernel_access::code::Launch;
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::execute::{End, execute};
use cuda_kernel_access::touch::{may_touch, summary};

use crate::text::code;

/// What an instruction leaves in its result, by three numbers.
type Judge = fn(u64, u64, u64) -> u64;

/// The numbers are in `%rd1` to `%rd3`, their lower parts in `%r1` and `%rs1` and so on. The result
/// is in `%rd0`, `%r0` or `%rs0`, by its bits. `by_type` has the others.
const COMPUTED: &[(&str, u32, Judge)] = &[
    ("brev.b32 %r0, %r1;", 32, |a, _, _| (a as u32).reverse_bits().into()),
    ("popc.b32 %r0, %r1;", 32, |a, _, _| (a as u32).count_ones().into()),
    ("brev.b64 %rd1, %rd1; mov.u64 %rd0, 5;", 64, |_, _, _| 5),
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

pub(crate) fn s32(number: u64) -> i64 {
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
/// What a thread has of its place, in a launch whose sides all differ.
#[test]
fn a_thread_knows_its_place() {
    let (grid, block) = ([5_u32, 7, 3], [9_u32, 4, 2]);
    let axes = ["x", "y", "z"];
    for thread in [[0; 3], [8, 0, 0], [0, 3, 0], [0, 0, 1], [5, 2, 1], [8, 3, 1]] {
        let own = [4, 6, 2];
        let lane = ((thread[2] * block[1] + thread[1]) * block[0] + thread[0]) % 32;
        let mut rows = vec![("%laneid".to_owned(), lane)];
        for (axis, name) in axes.iter().enumerate() {
            rows.push((format!("%tid.{name}"), thread[axis]));
            rows.push((format!("%ntid.{name}"), block[axis]));
            rows.push((format!("%ctaid.{name}"), own[axis]));
            rows.push((format!("%nctaid.{name}"), grid[axis]));
        }
        for (name, expected) in rows {
            let text = format!(
                ".visible .entry k()\n{{\n.reg .b32 %r<2>; .reg .b64 %rd<3>;\nmov.u32 %r1, {name};\n\
                 cvt.u64.u32 %rd1, %r1; st.global.u8 [%rd1+4096], %r1; ret;\n}}"
            );
            let code = code(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let launch = Launch::new(grid, block, []);
            let run = execute(&code, &launch, own, thread, &mut |_, _| None, 100);
            let address = run.touched.first().map(|touch| touch.address);
            assert_eq!(address, Some(4096 + u64::from(expected)), "{name} {thread:?}");
        }
    }
}

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

/// A thread's number is taken apart into a column, a row and a picture, by numbers of the launch: the
/// rows of all pictures lie in as many as a picture has.
#[test]
fn the_row_of_a_place_is_one_of_a_picture() {
    let text = |bits: u32, taken: &str| {
        let wide = if bits == 64 { "" } else { "cvt.u64.u32 %rd0, %r0;" };
        format!(
            ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{{\n.reg .b16 %rs<5>;\n\
             .reg .b32 %r<9>;\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [a];\n\
             ld.param.u64 %rd2, [b];\nld.param.u64 %rd3, [c];\ncvt.u32.u64 %r2, %rd2;\n\
             cvt.u32.u64 %r3, %rd3;\nmov.u32 %r5, %ctaid.x;\nmov.u32 %r6, %ntid.x;\n\
             mov.u32 %r4, %tid.x;\nmad.lo.s32 %r4, %r5, %r6, %r4;\ncvt.u64.u32 %rd4, %r4;\n\
             {taken}\n{wide}\nadd.s64 %rd1, %rd1, %rd0;\nld.global.u8 %rs4, [%rd1];\nret;\n}}\n"
        )
    };
    let (first, width, height) = (0x7f12_0000_0000_u64, 100, 50);
    for (bits, taken) in [
        (32, "div.u32 %r0, %r4, %r2; rem.u32 %r0, %r0, %r3;"),
        (64, "div.s64 %rd0, %rd4, %rd2; rem.s64 %rd0, %rd0, %rd3;"),
        // As compilers write it for machine code, which has no remainders.
        (
            32,
            "div.u32 %r0, %r4, %r2; div.u32 %r1, %r0, %r3; mul.lo.u32 %r1, %r1, %r3; sub.u32 %r0, %r0, %r1;",
        ),
    ] {
        let code = code(&text(bits, taken)).unwrap_or_else(|error| panic!("{taken}: {error}"));
        let parameters = [first, width, height].map(u64::to_le_bytes).concat();
        let launch = Launch::new([400, 1, 1], [256, 1, 1], parameters);
        let spans = may_touch(&code, &launch).expect(taken);
        let found: Vec<_> = spans.iter().map(|span| span.bytes.clone()).collect();
        assert_eq!(found, [Some(first..first + height)], "{taken}");
    }
}
