//! Calls of the driver's functions, where the image says which function it is: of one that never returns,
//! which ends the thread, and of those that print, and that get memory and give it back.

mod common;

use common::{cubin_of, cubin_with};
use cuda_kernel_access::code::{Code, Launch, NoCode};
use cuda_kernel_access::container::{Cubin, Error};
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::flow::NoGraph;
use cuda_kernel_access::parameters::bytes_read;
use cuda_kernel_access::ptx::Module;
use cuda_kernel_access::touch::{may_touch, summary, surely_touched};

/// Instructions of sm_90.
const NUMBER: u128 = 0x000f_e200_0000_0f00_0000_0000_0000_7802; // MOV R0, 0x0
const LOAD: u128 = 0x0010_6200_0000_0a00_0100_0000_0002_7b82; // LDC.64 R2, c[0x4][R0]
const HERE: u128 = 0x000f_ce00_0000_0000_0000_0000_1014_794e; // LEPC R20
const CALL: u128 = 0x002f_ea00_03c0_0000_0000_0000_0200_7343; // CALL.ABS.NOINC R2
const MAYBE_CALL: u128 = CALL & !0xf000 | 0x8000; // @!P0 CALL.ABS.NOINC R2
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT
const OTHER: u128 = NUMBER | 3 << 16; // MOV R3, 0x0

/// MOV R0, `number`
fn number(number: u32) -> u128 {
    NUMBER | u128::from(number) << 32
}

/// `@!P0 BRA` to an instruction, by how many there are between.
fn branch(distance: u128) -> u128 {
    0x000f_ea00_0380_0000_0000_0000_0000_8947 | (distance * 4) << 16
}

const SYMBOLS: [&str; 7] = ["", "__assertfail", "vprintf", "malloc", "free", "$str", "variable"];

/// A cubin whose bank of addresses has at each place that of a symbol: its number, whether it is
/// outside of the image, the relocation's kind and what is added to it.
fn image(code: &[u128], table: &[(u64, u64, bool, u64, u64)], added: bool) -> Vec<u8> {
    image_with(code, table, added, b"")
}

/// The same with what is in each variable.
fn image_with(
    code: &[u128],
    table: &[(u64, u64, bool, u64, u64)],
    added: bool,
    text: &[u8],
) -> Vec<u8> {
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut names = Vec::new();
    let mut symbols = vec![0; 24];
    for name in SYMBOLS {
        if !name.is_empty() {
            let inside = table.iter().any(|entry| SYMBOLS[entry.1 as usize] == name && !entry.2);
            symbols.extend((names.len() as u32).to_le_bytes());
            // The sixth section has all variables.
            symbols.extend([0x12, 0, if inside { 6 } else { 0 }, 0]);
            symbols.extend([1, text.len() as u64].map(u64::to_le_bytes).concat());
        }
        names.extend(name.as_bytes());
        names.push(0);
    }
    let mut relocations = Vec::new();
    for &(place, symbol, _, kind, sum) in table {
        relocations.extend(place.to_le_bytes());
        relocations.extend((symbol << 32 | kind).to_le_bytes());
        if added {
            relocations.extend(sum.to_le_bytes());
        }
    }
    let section = if added { ".rela.nv.constant4" } else { ".rel.nv.constant4" };
    let init = [b"x", text].concat();
    let more: [(&str, &[u8]); 4] = [
        (".symtab", &symbols),
        (".strtab", &names),
        (section, &relocations),
        (".nv.global.init", &init),
    ];
    cubin_with(90, 7, &[("kernel", &code, &[(0, 8)])], &more)
}

const ASSERT: (u64, u64, bool, u64, u64) = (0x30, 1, true, 2, 0);
const PRINT: (u64, u64, bool, u64, u64) = (0x28, 2, true, 2, 0);

fn code(program: &[u128], table: &[(u64, u64, bool, u64, u64)]) -> Result<Code, NoCode> {
    let image = image(program, table, true);
    let cubin = Cubin::parse(&image).expect("an image");
    Code::new(90, &cubin.kernels[0])
}

const UNKNOWN: NoCode = NoCode::Graph(NoGraph::Call(3 * 16));

#[test]
fn a_failed_assertion_ends_the_thread() {
    let program = [number(0x30), LOAD, HERE, CALL, END];
    for added in [false, true] {
        let image = image(&program, &[PRINT, ASSERT], added);
        let cubin = Cubin::parse(&image).expect("an image");
        assert_eq!(cubin.kernels[0].never_return, [0x30]);
        let code = Code::new(90, &cubin.kernels[0]).expect("known");
        let text = format!("{code:?}");
        assert!(
            text.contains("blocks: [Block { instructions: 0..4, next: [], ends: true }]"),
            "{text}"
        );
        assert_eq!(bytes_read(90, &cubin.kernels[0]), Ok(Vec::new()));
    }
    // On a condition, the others go on.
    let code = code(&[number(0x30), LOAD, HERE, MAYBE_CALL, END], &[ASSERT]).expect("known");
    let text = format!("{code:?}");
    assert!(text.contains("Block { instructions: 0..4, next: [1], ends: true }"), "{text}");
}

#[test]
fn other_functions_are_not_known() {
    let program = [number(0x30), LOAD, HERE, CALL, END];
    for (table, why) in [
        (vec![(0x30, 6, true, 2, 0)], "it is another function"),
        (vec![(0x30, 1, true, 2, 0), (0x30, 2, true, 2, 0)], "it is one of two"),
        (vec![(0x30, 1, false, 2, 0)], "a function of that name is in the image"),
        (vec![(0x30, 1, true, 3, 0)], "it is another kind of address"),
        (vec![(0x30, 1, true, 2, 16)], "it is a place in the function"),
        (vec![(0x28, 1, true, 2, 0)], "it is at another place"),
        (vec![], "nothing is said"),
    ] {
        assert_eq!(code(&program, &table).err(), Some(UNKNOWN), "{why}");
    }
}

#[test]
fn an_address_that_may_be_another_is_not_known() {
    let bank = 0b11 << 54;
    let guarded = |word: u128| word & !0xf000;
    for (program, why) in [
        ([number(0x30), LOAD, OTHER, CALL, END], "half of the address is written again"),
        ([number(0x30), guarded(LOAD), HERE, CALL, END], "it is loaded on a condition"),
        ([guarded(number(0x30)), LOAD, HERE, CALL, END], "the place is chosen"),
        ([number(0x30), LOAD ^ bank, HERE, CALL, END], "it is in another bank"),
        ([number(0x30), LOAD | 8 << 38, HERE, CALL, END], "it is eight bytes further"),
        ([HERE, LOAD, HERE, CALL, END], "the place is not known"),
        ([number(0x30), HERE, LOAD, END, CALL], "nothing is called"),
    ] {
        let result = code(&program, &[ASSERT]);
        if program[3] == END {
            assert!(result.is_ok(), "{why}");
        } else {
            assert_eq!(result.err(), Some(UNKNOWN), "{why}");
        }
    }
    // A thread may come from elsewhere, and have another address.
    for (distance, known) in [(1, false), (2, false), (3, false), (4, true)] {
        let program = [branch(distance), number(0x30), LOAD, HERE, CALL, END];
        let expected = NoCode::Graph(NoGraph::Call(4 * 16));
        assert_eq!(code(&program, &[ASSERT]).err(), (!known).then_some(expected), "{distance}");
    }
}

/// What is behind a call without return has what was loaded before it.
#[test]
fn calls_follow_each_other() {
    let program = [number(0x30), LOAD, CALL, LOAD, CALL, LOAD, CALL, END];
    let image = image(&program, &[ASSERT], true);
    let cubin = Cubin::parse(&image).expect("an image");
    assert_eq!(bytes_read(90, &cubin.kernels[0]), Ok(Vec::new()));
}

const MALLOC: (u64, u64, bool, u64, u64) = (0x38, 3, true, 2, 0);
const FREE: (u64, u64, bool, u64, u64) = (0x40, 4, true, 2, 0);
const TEXT: (u64, u64, bool, u64, u64) = (0x8, 5, false, 2, 0);
const VARIABLE: (u64, u64, bool, u64, u64) = (0x10, 6, false, 2, 0);

const OUT: u128 = 0x000e_2200_0000_0a00_0000_8400_ff10_7b82; // LDC.64 R16, c[0x0][0x210]
const SIZE: u128 = OUT & !(0xff << 16) | 4 << 16; // LDC.64 R4, c[0x0][0x210]
const FORMAT: u128 = 0x000f_e400_0000_0a00_0100_0200_0004_7ab9; // ULDC.64 UR4, c[0x4][0x8]
const LOWER: u128 = 0x000f_e400_0f8e_00ff_0000_0004_ff04_7e24; // IMAD.U32 R4, RZ, RZ, UR4
const UPPER: u128 = 0x000f_e400_0f8e_00ff_0000_0005_ff05_7e24; // IMAD.U32 R5, RZ, RZ, UR5
const STORE: u128 = 0x000f_e200_0c10_1906_0000_0006_1000_7986; // STG.E desc[UR6][R16.64], R6
const STORE_THERE: u128 = STORE & !(0xff << 24) | 4 << 24; // STG.E desc[UR6][R4.64], R6
const OUT_AT: u64 = 0x7f12_0000_0000;

/// Of each access of a launch: its kind, its bytes, and whether one is surely made.
fn accesses(
    program: &[u128],
    table: &[(u64, u64, bool, u64, u64)],
    text: &[u8],
) -> Vec<(AccessKind, Option<std::ops::Range<u64>>, bool)> {
    let image = image_with(program, table, true, text);
    let cubin = Cubin::parse(&image).expect("an image");
    let code = Code::new(90, &cubin.kernels[0]).expect("known");
    let launch = Launch::new([1; 3], [1; 3], OUT_AT.to_le_bytes());
    let sure = surely_touched(&code, &launch);
    let spans = may_touch(&code, &launch).expect("known").into_iter();
    spans
        .map(|span| {
            let is_sure = sure.iter().any(|touch| touch.at == span.at);
            (span.kind, span.bytes, is_sure)
        })
        .collect()
}

const WRITES: (AccessKind, Option<std::ops::Range<u64>>, bool) =
    (AccessKind::Write, Some(OUT_AT..OUT_AT + 4), true);
const READS: (AccessKind, Option<std::ops::Range<u64>>, bool) = (AccessKind::Read, None, false);

/// What is printed is read if it is a text, which may be anywhere.
#[test]
fn printing_numbers_touches_nothing() {
    let program = [OUT, number(0x28), LOAD, FORMAT, LOWER, UPPER, HERE, CALL, STORE, END];
    let table = [PRINT, TEXT];
    for numbers in ["", "i", "%d\n", "100 %%", "%5.2f%-+ #0*.*llx%c%p%hhu"] {
        assert_eq!(accesses(&program, &table, numbers.as_bytes()), [WRITES], "{numbers}");
        let whole = format!("{numbers}\0%s");
        assert_eq!(accesses(&program, &table, whole.as_bytes()), [WRITES], "{numbers}");
    }
    for texts in ["%s", "%d %s", "%-10s", "%%%s", "%.*s", "%n", "%ls", "%", "%5", "%S", "%@"] {
        assert_eq!(accesses(&program, &table, texts.as_bytes()), [READS, WRITES], "{texts}");
    }
    // A variable may have been changed, and of another format nothing is known.
    let elsewhere = FORMAT ^ 6 << 40;
    for (at, one, why) in [
        (3, elsewhere, "it is a variable"),
        (3, HERE, "nothing is loaded"),
        (4, LOWER ^ 1 << 32, "the halves are swapped"),
        (5, LOWER & !(0xff << 16) | 5 << 16, "both halves are the same"),
        (4, LOWER & !0xf000, "it is moved on a condition"),
        (6, SIZE, "it is overwritten"),
    ] {
        let mut program = program;
        program[at] = one;
        let table = [PRINT, TEXT, VARIABLE];
        assert_eq!(accesses(&program, &table, b"%d"), [READS, WRITES], "{why}");
    }
}

/// The result is no address of the caller's, and the registers of the caller stay.
#[test]
fn memory_of_the_driver_is_that_of_no_parameter() {
    let program = [OUT, SIZE, number(0x38), LOAD, HERE, CALL, STORE, STORE_THERE, END];
    let anywhere = (AccessKind::Write, None, false);
    assert_eq!(accesses(&program, &[MALLOC], b""), [WRITES, anywhere.clone()]);
    let image = image(&program, &[MALLOC], true);
    let cubin = Cubin::parse(&image).expect("an image");
    let found = summary(&Code::new(90, &cubin.kernels[0]).expect("known")).expect("known");
    let word = found.words[0];
    assert!(word.as_base.written && !word.uses.other && found.memory.written, "{found:?}");
    let program = [OUT, SIZE, number(0x40), LOAD, HERE, CALL, STORE, END];
    assert_eq!(accesses(&program, &[FREE], b""), [WRITES]);
    // Without the call the second store is where the parameter says.
    let program = [OUT, SIZE, STORE, STORE_THERE, END];
    assert_eq!(accesses(&program, &[], b""), [WRITES, WRITES]);
}

/// The same of PTX.
#[test]
fn text_calls_functions_of_the_driver() {
    let spans = |call: &str| {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64
            .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
            .extern .func (.param .b64 r) malloc (.param .b64 a);
            .extern .func free (.param .b64 a);
            .visible .entry k(.param .u64 out) {{ .reg .b64 %rd<5>; .reg .b32 %r<5>;
            ld.param.u64 %rd1, [out]; mov.u64 %rd2, %rd1; mov.u32 %r1, 1;
            {{ .param .b64 p; st.param.b64 [p], %rd1; .param .b64 q; st.param.b64 [q], %rd1;
            .param .b32 s; .param .b64 w; {call} }}
            st.global.u32 [%rd1], 5; st.global.u32 [%rd2], %r1; ret; }}"
        );
        let module = Module::parse(&text).expect("a module");
        let code = Code::from_ptx(&module, "k")?;
        let launch = Launch::new([1; 3], [1; 3], OUT_AT.to_le_bytes());
        let spans = may_touch(&code, &launch).expect("known").into_iter();
        Ok::<_, NoCode>(spans.map(|span| (span.kind, span.bytes)).collect::<Vec<_>>())
    };
    let write = (WRITES.0, WRITES.1);
    let printing = "call.uni (s), vprintf, (p, q); ld.param.b32 %r1, [s];";
    let expected = vec![(READS.0, None), write.clone(), write.clone()];
    assert_eq!(spans(printing), Ok(expected));
    let getting = "call.uni (w), malloc, (p); ld.param.b64 %rd2, [w];";
    assert_eq!(spans(getting), Ok(vec![write.clone(), (WRITES.0, None)]));
    assert_eq!(spans("call.uni free, (p);"), Ok(vec![write.clone(), write]));
    for other in [
        "call.uni (s), other, (p);",
        "call.uni (p, q), malloc, (p);",
        "call.uni (w), malloc, (p); ld.param.b32 %r1, [w];",
        "call.uni (s), free, (p);",
    ] {
        assert!(spans(other).is_err(), "{other}");
    }
}

#[test]
fn a_damaged_table_is_an_error() {
    let damaged = Err(Error::Damaged("a cubin's table of addresses"));
    for symbol in [7, 0xffff_ffff] {
        let mut whole = image(&[END], &[ASSERT], true);
        let relocation = (0x30_u64.to_le_bytes(), (1_u64 << 32 | 2).to_le_bytes());
        let wanted = [relocation.0, relocation.1].concat();
        let at = whole.windows(16).position(|bytes| bytes == wanted).expect("there");
        whole[at + 12..at + 16].copy_from_slice(&u32::to_le_bytes(symbol));
        assert_eq!(Cubin::parse(&whole), damaged, "{symbol:#x}");
    }
    let whole = cubin_with(90, 7, &[], &[(".rela.nv.constant4", &[0; 24])]);
    assert_eq!(Cubin::parse(&whole), damaged);
}

/// An attribute with these words.
fn branches(words: &[u32]) -> Vec<u8> {
    let mut attribute = vec![4, 0x34];
    attribute.extend((words.len() as u16 * 4).to_le_bytes());
    attribute.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    attribute
}

#[test]
fn an_image_says_where_branches_to_computed_places_may_go() {
    let of = |attributes: &[u8]| {
        let image = cubin_of(90, 7, &[("kernel", &END.to_le_bytes(), &[(0, 8)])], &[], attributes);
        Cubin::parse(&image).map(|cubin| cubin.kernels[0].indirect_branches.clone())
    };
    let all = [0x20, 0, 2, 0x30, 0x50, 0x60, 0, 0, 0x80, 7, 1, 0x10];
    let expected = vec![(0x20, vec![0x30, 0x50]), (0x60, vec![]), (0x80, vec![0x10])];
    assert_eq!(of(&branches(&all)), Ok(expected.clone()));
    // In several attributes.
    assert_eq!(of(&[branches(&all[..5]), branches(&all[5..])].concat()), Ok(expected));
    assert_eq!(of(&branches(&[])), Ok(Vec::new()));
    for cut in [1, 2, 3, 4, 6, 7, 9, 10, 11] {
        let damaged = Err(Error::Damaged("a list of branches"));
        assert_eq!(of(&branches(&all[..cut])), damaged, "{cut}");
    }
    assert!(of(&branches(&[0x20, 0, u32::MAX, 0x30])).is_err());
}

/// A thread may come to what such a branch names, and have another address there.
#[test]
fn a_call_that_such_a_branch_goes_to_is_not_known() {
    const INDIRECT: u128 = 0x000f_ea00_0383_ffff_ffff_fffe_0400_7949; // BRX R4
    let program = [INDIRECT, number(0x30), LOAD, HERE, CALL, END];
    for (place, known) in [(0x10, true), (0x20, false), (0x30, false), (0x40, false)] {
        let with_table = image(&program, &[ASSERT], true);
        let cubin = Cubin::parse(&with_table).expect("an image");
        let mut kernel = cubin.kernels[0].clone();
        kernel.indirect_branches = vec![(0, vec![place, 0x10])];
        assert_eq!(Code::new(90, &kernel).is_ok(), known, "{place}");
    }
}
