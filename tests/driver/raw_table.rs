//! The list of entry points, and the table that is resolved from it.

use std::collections::HashSet;

use cuda_events::sys::{CUresult, ENTRY_POINTS, EntryPoint, RESULT_CODES};

const HEADER: &str = include_str!("../../wrapper.h");

/// A line of the one list: the typedef and the twin's.
type Line = (&'static str, Option<&'static str>);

macro_rules! lines {
    ($($page:ident { $(
        $need:ident $function:ident $(($header:ident))? $typedef:ident $($twin:ident)?
            $(, $creates:ident)?;
    )* })*) => {
        const LINES: &[Line] = &[$($((
            stringify!($typedef),
            {
                let twins: &[&str] = &[$(stringify!($twin))?];
                twins.first().copied()
            },
        ),)*)*];
    };
}

cuda_events::for_each_entry_point!(lines);

/// The base name and the version of `PFN_cuEventRecord_v7000_ptsz`, and whether it is a twin's.
fn parse(typedef: &str) -> (&str, u32, bool) {
    let (rest, twin) = typedef.strip_suffix("_ptsz").map_or((typedef, false), |rest| (rest, true));
    let parts = rest.strip_prefix("PFN_").and_then(|rest| rest.rsplit_once("_v"));
    let (base, version) =
        parts.unwrap_or_else(|| panic!("{typedef} is not PFN_<function>_v<version>[_ptsz]"));
    (base, version.parse().unwrap_or_else(|_| panic!("{typedef} has no version")), twin)
}

fn name(entry: &EntryPoint) -> &'static str {
    entry.name.to_str().expect("an exported name is ASCII")
}

/// Nothing is declared for nobody. The other way round the compiler sees it.
#[test]
fn every_entry_point_of_the_headers_is_in_the_list() {
    let listed: HashSet<_> =
        LINES.iter().flat_map(|(typedef, twin)| [Some(*typedef), *twin]).flatten().collect();
    let mut declared = 0;
    for (at, line) in HEADER.lines().enumerate() {
        let Some((_, rest)) = line.split_once("typedef CUresult (*PFN_") else { continue };
        let (name, _) =
            rest.split_once(')').unwrap_or_else(|| panic!("wrapper.h:{}: no name", at + 1));
        let typedef = format!("PFN_{name}");
        let (base, _, twin) = parse(&typedef);
        declared += 1;
        let how = if twin {
            format!("put it after the first typedef in the line of {base}")
        } else {
            format!(
                "add `optional {base} {typedef};`, with {base}_v2 and its like for the exported \
                    name of a later ABI"
            )
        };
        assert!(
            listed.contains(typedef.as_str()),
            "wrapper.h:{} declares {typedef}, which the list in src/sys/symbols.rs lacks: {how}",
            at + 1
        );
    }
    assert_eq!(declared, listed.len(), "a typedef stands in two lines of src/sys/symbols.rs");
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
