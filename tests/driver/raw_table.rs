//! The list of entry points, and the table that is resolved from it.

use cuda_events::sys::{CUresult, ENTRY_POINTS, EntryPoint, RESULT_CODES};

const HEADER: &str = include_str!("../../wrapper.h");

fn name(entry: &EntryPoint) -> &'static str {
    entry.name.to_str().expect("an exported name is ASCII")
}

#[test]
fn a_function_prints_as_its_exported_name() {
    for entry in ENTRY_POINTS {
        assert_eq!(entry.function.name(), name(entry));
        assert_eq!(entry.function.to_string(), name(entry));
        assert_eq!(format!("{:?}", entry.function), name(entry));
        assert_eq!(entry.function.entry_point(), *entry);
    }
}

#[test]
fn every_code_of_the_header_has_its_name() {
    let mut codes = 0;
    for (at, line) in HEADER.lines().enumerate() {
        let constant = line.trim().trim_end_matches(',').split_once(" = ");
        let Some((name, value)) =
            constant.filter(|(name, _)| name.starts_with("CUDA_") && !name.contains("FLAG"))
        else {
            continue;
        };
        let code =
            CUresult(value.parse().unwrap_or_else(|_| panic!("wrapper.h:{}: no number", at + 1)));
        assert_eq!(
            code.name(),
            Some(name),
            "wrapper.h:{} names it: run tools/bindings --write",
            at + 1
        );
        codes += 1;
    }
    assert!(codes > 100, "only {codes} codes were found in wrapper.h");
    assert_eq!(
        codes,
        RESULT_CODES.len(),
        "bindings.rs has codes that wrapper.h has not: run tools/bindings --write"
    );
}
