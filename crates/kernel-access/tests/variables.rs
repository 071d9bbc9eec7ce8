//! The variables of its module that a kernel uses, where the driver says that they are.

mod common;
#[path = "common/shapes.rs"]
mod shapes;

use std::collections::BTreeSet;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::AccessKind::{self, Read, Write};
use cuda_kernel_access::threads::{Sought, every_touch, seek};
use cuda_kernel_access::touch::{Span, joined, may_touch, summary, surely_touched};

const OUT: u64 = 0x7f12_0000_0000;
const VARIABLE: u64 = 0x7f20_0000_1004;
const WEIGHTS: u64 = 0x7f30_0000_2000;
/// Where `last` is behind `weights`.
const BEHIND: u64 = 256;

/// A symbol: its name, its section, where it begins there, and how many bytes it has.
type Symbol = (&'static str, u16, u64, u64);

const CONSTANT: u16 = 3;
const GLOBAL: u16 = 4;
const SYMBOLS: [Symbol; 3] = [
    ("variable", GLOBAL, 4, 512),
    ("weights", CONSTANT, 0, BEHIND),
    ("last", CONSTANT, BEHIND, 16),
];

/// `out[i] = variable[i] + weights[i & 63]; variable[i] = 0`, in a module with these symbols, of which the
/// first has its address in constant bank 4.
fn code(architecture: u32, bytes: &[u8], size: u16, symbols: &[Symbol]) -> Code {
    let (mut table, mut names) = (vec![0; 24], vec![0]);
    for (name, section, value, bytes) in symbols {
        table.extend((names.len() as u32).to_le_bytes());
        table.extend([1, 0]);
        table.extend(section.to_le_bytes());
        table.extend(value.to_le_bytes());
        table.extend(bytes.to_le_bytes());
        names.extend(name.bytes().chain([0]));
    }
    let address = [0, 1 << 32 | 2, 0_u64].map(u64::to_le_bytes).concat();
    let constants = vec![0; BEHIND as usize + 16];
    let more: [(&str, &[u8]); 5] = [
        (".nv.constant3", &constants),
        (".nv.global", &[0; 516]),
        (".rela.nv.constant4", &address),
        (".symtab", &table),
        (".strtab", &names),
    ];
    let image = common::cubin_with(architecture, 7, &[("kernel", bytes, &[])], &more);
    let mut kernel = Cubin::parse(&image).expect("a cubin").kernels[0].clone();
    let base = match architecture {
        80 => 0x160,
        90 => 0x210,
        _ => 0x380,
    };
    kernel.parameter_bank = Some((base, size.into()));
    Code::new(architecture, &kernel).expect("known")
}

fn codes(symbols: &[Symbol]) -> Vec<(String, Code)> {
    let all = shapes::shapes().into_iter().filter(|shape| shape.name == "module_variables");
    let all = all.filter(|shape| shape.architecture != shapes::PTX);
    let codes: Vec<_> = all
        .map(|shape| {
            let name = format!("sm_{}", shape.architecture);
            (name, code(shape.architecture, shape.bytes(), 8, symbols))
        })
        .collect();
    assert!(codes.len() >= 3, "{}", codes.len());
    codes
}

fn launch(code: &Code, named: &[(&str, u64)]) -> Launch {
    let address = |name: &str| named.iter().find(|(of, _)| *of == name).map(|(_, at)| *at);
    Launch::new([1, 1, 1], [128, 1, 1], OUT.to_le_bytes()).with_variables(code, &address)
}

type Bytes = Vec<(AccessKind, std::ops::Range<u64>)>;

/// What is touched, without the instructions.
fn sorted(mut all: Bytes) -> Bytes {
    all.sort_by_key(|(kind, bytes)| (bytes.start, *kind == Write));
    all
}

#[test]
fn variables_are_where_the_driver_says() {
    let expected = sorted(vec![
        (Write, OUT..OUT + 512),
        (Read, VARIABLE..VARIABLE + 512),
        (Write, VARIABLE..VARIABLE + 512),
        (Read, WEIGHTS..WEIGHTS + 256),
    ]);
    for (name, code) in codes(&SYMBOLS) {
        // One constant variable says where all of them are.
        let launch = launch(&code, &[("variable", VARIABLE), ("last", WEIGHTS + BEHIND)]);
        let spans = may_touch(&code, &launch).expect("known");
        // Of a word of constants that is read some bytes may be those of variables that are not used.
        let constants = WEIGHTS..WEIGHTS + 256;
        let is_constant = |span: &Span| span.bytes.as_ref() == Some(&constants);
        let is_right = |span: &Span| span.from_memory == is_constant(span);
        assert!(spans.iter().all(is_right), "{name}: {spans:x?}");
        let bounds = spans.iter().map(|span| (span.kind, span.bytes.clone().expect("bounds")));
        assert_eq!(sorted(bounds.collect()), expected, "{name}");
        let every = every_touch(&code, &launch, 1 << 19).expect("few threads");
        let at = spans.iter().find(|span| is_constant(span)).expect("a read").at;
        let unsure = [&every.missing, &every.conditional];
        assert_eq!(unsure, [&BTreeSet::from([at]); 2], "{name}");
        assert!(every.perhaps.is_empty(), "{name}: {every:x?}");
        let sure = every.sure.iter().map(|one| (one.kind, one.bytes.clone()));
        assert_eq!(sorted(sure.collect()), expected[..3], "{name}");
        let corners = surely_touched(&code, &launch).into_iter();
        let corners = corners.map(|one| one.address..one.address + u64::from(one.bytes));
        let ends = |at: u64, count: u64| [at..at + 4, at + count - 4..at + count];
        let ends = [ends(OUT, 512), ends(VARIABLE, 512)].concat();
        assert_eq!(joined(corners.collect()), joined(ends), "{name}");
        let bytes = WEIGHTS + 124..WEIGHTS + 128;
        let found = seek(&code, &launch, at, &bytes, &mut { 1 << 18 });
        assert_eq!(found, Sought::Conditional, "{name}");
    }
}

/// What is not known of an address is not known of the accesses there, and of no others.
#[test]
fn variables_without_an_address_may_be_anywhere() {
    for (given, unknown) in [
        (&[][..], 3),
        (&[("variable", VARIABLE)], 1),
        (&[("weights", WEIGHTS)], 2),
        // They would not be side by side.
        (&[("variable", VARIABLE), ("weights", WEIGHTS), ("last", WEIGHTS + BEHIND + 8)], 1),
        (&[("variable", VARIABLE), ("last", BEHIND - 8)], 1),
    ] {
        for (name, code) in codes(&SYMBOLS) {
            let launch = launch(&code, given);
            let spans = may_touch(&code, &launch).expect("known");
            let unbounded = spans.iter().filter(|span| span.bytes.is_none());
            assert_eq!(unbounded.count(), unknown, "{name} {given:x?}: {spans:x?}");
            // Constants are reads of no sure bytes in any case.
            let is_constant = |bytes: &std::ops::Range<u64>| *bytes == (WEIGHTS..WEIGHTS + 256);
            let is_unknown = |span: &&Span| span.bytes.as_ref().is_none_or(is_constant);
            let missing: BTreeSet<usize> =
                spans.iter().filter(is_unknown).map(|span| span.at).collect();
            let is_right = |span: &Span| span.from_memory == missing.contains(&span.at);
            assert!(spans.iter().all(is_right), "{name}: {spans:x?}");
            let every = every_touch(&code, &launch, 1 << 19).expect("few threads");
            assert_eq!(every.missing, missing, "{name} {given:x?}");
        }
    }
}

/// A variable counts as a word behind those of the parameters, and as memory of no parameter.
#[test]
fn a_summary_has_a_word_for_each_variable() {
    for (name, code) in codes(&SYMBOLS) {
        let found = summary(&code).expect("known");
        let uses = found.words.iter().map(|word| (word.uses.read, word.uses.written, word.as_base));
        let uses: Vec<_> = uses.map(|(read, written, base)| [read, written, base.read]).collect();
        let expected = [[false, true, false], [true, true, true], [true, false, true]];
        assert_eq!(uses, expected, "{name}");
        assert!(found.memory.read && found.memory.written, "{name}");
        let names = [(8, "variable"), (16, "weights"), (16, "last")];
        assert_eq!(code.variables().collect::<Vec<_>>(), names, "{name}");
    }
}

/// Names that do not say which variable is meant say nothing.
#[test]
fn a_name_of_two_variables_is_none() {
    let twice = [SYMBOLS[0], SYMBOLS[1], ("weights", CONSTANT, BEHIND, 16)];
    let outside = [("variable", 0, 0, 0), SYMBOLS[1], SYMBOLS[2]];
    let of_compiler = [("$str", GLOBAL, 4, 512), SYMBOLS[1], SYMBOLS[2]];
    for (symbols, names) in [
        (twice, &[(8, "variable")][..]),
        (outside, &[(8, "weights"), (8, "last")]),
        (of_compiler, &[(8, "weights"), (8, "last")]),
    ] {
        for (name, code) in codes(&symbols) {
            assert_eq!(code.variables().collect::<Vec<_>>(), names, "{name}");
        }
    }
}
