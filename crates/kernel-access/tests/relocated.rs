//! Code that was linked from several files: the driver puts the addresses of variables and functions into
//! its instructions.

mod common;

use cuda_kernel_access::code::{Code, Launch, NoCode};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::AccessKind::{Read, Write};
use cuda_kernel_access::flow::NoGraph;
use cuda_kernel_access::threads::every_touch;
use cuda_kernel_access::touch::{may_touch, surely_touched};

const OUT: u64 = 0x7f12_0000_0000;
const OTHER: u64 = 0x7f13_0000_0000;

/// The kernels of this name, each with tables of both kinds, and with one more place that is filled in.
fn codes(wanted: &str, more: &[u64]) -> Vec<(String, Result<Code, NoCode>)> {
    let mut codes = Vec::new();
    for line in include_str!("relocated.txt").lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(' ').collect();
        let &[architecture, name, base, size, text, places] = parts.as_slice() else {
            panic!("{line}")
        };
        if name != wanted {
            continue;
        }
        let number = |text| u64::from_str_radix(text, 16).expect("a number");
        let bytes = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte");
        let bytes: Vec<u8> = (0..text.len()).step_by(2).map(bytes).collect();
        let places: Vec<u64> = places.split(',').map(number).chain(more.iter().copied()).collect();
        for (section, words) in [(".rel.text.k", 2), (".rela.text.k", 3)] {
            let entry = |place: &u64| [*place, 1 << 32 | 0x38, 0][..words].to_vec();
            let table: Vec<u8> =
                places.iter().flat_map(entry).flat_map(|word| word.to_le_bytes()).collect();
            let image = common::cubin_with(0, 7, &[("k", &bytes, &[])], &[(section, &table)]);
            let mut kernel = Cubin::parse(&image).expect("a cubin").kernels[0].clone();
            kernel.parameter_bank = Some((number(base) as u32, size.parse().expect("a size")));
            let architecture = architecture.parse().expect("a number");
            let name = format!("sm_{architecture} {section}");
            codes.push((name, Code::new(architecture, &kernel)));
        }
    }
    assert_eq!(codes.len(), 6);
    codes
}

fn launch(words: [u64; 2]) -> Launch {
    Launch::new([1, 1, 1], [128, 1, 1], words.map(u64::to_le_bytes).concat())
}

/// Which of two parameters is written to depends on the address of a variable.
#[test]
fn what_the_driver_fills_in_decides_nothing() {
    for (name, code) in codes("select", &[]) {
        let (code, launch) = (code.expect("known"), launch([OUT, OTHER]));
        assert_eq!(surely_touched(&code, &launch), [], "{name}");
        let every = every_touch(&code, &launch, 1 << 19).expect("few threads");
        assert_eq!((every.sure, every.missing.len()), (vec![], 1), "{name}");
        let spans = may_touch(&code, &launch).expect("known");
        assert_eq!(spans.len(), 1, "{name}");
        for address in [OUT, OUT + 508, OTHER, OTHER + 508] {
            assert!(spans[0].may_touch(&(address..address + 4)), "{name}: {spans:x?}");
        }
    }
}

#[test]
fn a_variable_that_the_driver_fills_in_may_be_anywhere() {
    for (name, code) in codes("index", &[]) {
        let (code, launch) = (code.expect("known"), launch([OUT, 5]));
        let spans = may_touch(&code, &launch).expect("known");
        let found: Vec<_> =
            spans.iter().map(|span| (span.kind, span.bytes.clone(), span.from_memory)).collect();
        assert_eq!(found, [(Read, None, true), (Write, Some(OUT..OUT + 512), false)], "{name}");
        let sure = surely_touched(&code, &launch);
        assert!(!sure.is_empty() && sure.iter().all(|one| one.kind == Write), "{name}: {sure:x?}");
        let every = every_touch(&code, &launch, 1 << 19).expect("few threads");
        assert_eq!(every.missing.into_iter().collect::<Vec<_>>(), [spans[0].at], "{name}");
    }
}

/// A call goes elsewhere than the file says, and what else is filled in is not known.
#[test]
fn code_that_the_driver_fills_in_is_unknown() {
    for (name, code) in codes("call", &[]) {
        assert!(matches!(code, Err(NoCode::Graph(NoGraph::Instruction(0x80 | 0x90)))), "{name}");
    }
    for (name, code) in codes("index", &[0x10]) {
        let expected = Some(NoCode::Graph(NoGraph::Instruction(0x10)));
        assert_eq!(code.err(), expected, "{name}");
    }
}
