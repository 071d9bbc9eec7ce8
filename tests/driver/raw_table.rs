//! The list of entry points, and the table that is resolved from it.

use crate::common;

use std::collections::HashSet;
use std::ffi::{CStr, c_void};

use common::{Door, check, load};
use cuda_events::sys::{CUresult, ENTRY_POINTS, EntryPoint, Function, RESULT_CODES, Symbols};
use cuda_events::{Driver, LoadOptions, Version};

const HEADER: &str = include_str!("../../wrapper.h");

/// A line of the one list: the exported name, its typedef and the twin's.
type Line = (&'static str, &'static str, Option<&'static str>);

macro_rules! lines {
    ($($page:ident { $(
        $need:ident $function:ident $(($header:ident))? $typedef:ident $($twin:ident)?
            $(, $creates:ident)?;
    )* })*) => {
        const LINES: &[Line] = &[$($((
            stringify!($function),
            stringify!($typedef),
            {
                let twins: &[&str] = &[$(stringify!($twin))?];
                twins.first().copied()
            },
        ),)*)*];

        /// What the table's fields hold, by name.
        fn fields(symbols: &Symbols) -> Vec<(&'static str, *mut c_void)> {
            vec![$($((stringify!($function), word(symbols.$function)),)*)*]
        }
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

/// A function pointer, or an `Option` of one, as an address.
fn word<F: Copy>(field: F) -> *mut c_void {
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the sizes are equal, and both types of fields are an address or NULL.
    unsafe { std::mem::transmute_copy(&field) }
}

fn name(entry: &EntryPoint) -> &'static str {
    entry.name.to_str().expect("an exported name is ASCII")
}

/// Nothing is declared for nobody. The other way round the compiler sees it.
#[test]
fn every_entry_point_of_the_headers_is_in_the_list() {
    let listed: HashSet<_> =
        LINES.iter().flat_map(|(_, typedef, twin)| [Some(*typedef), *twin]).flatten().collect();
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

/// That the list is right besides is known from the software driver's own: see its test
/// `everything_that_cuda_events_binds_is_exported`; and from a real driver: see
/// `tests/driver/lookups.rs`.
#[test]
fn a_line_is_of_one_function() {
    assert_eq!(LINES.len(), ENTRY_POINTS.len());
    for ((function, typedef, twin), entry) in LINES.iter().zip(ENTRY_POINTS) {
        let at = format!("the line of {function} in src/sys/symbols.rs");
        assert_eq!((*function, *function), (name(entry), entry.function.name()), "{at}");
        let (base, version, is_twin) = parse(typedef);
        assert!(!is_twin, "{at}: the first typedef is that of the legacy default stream");
        assert_eq!((entry.base, entry.version), (base, Version::from_raw(version)), "{at}");
        let parsed = twin.map(parse);
        assert!(
            parsed.is_none_or(|(of, _, twin)| of == base && twin),
            "{at}: {twin:?} is no twin of {base}"
        );
        assert_eq!(
            entry.per_thread_version,
            parsed.map(|(_, version, _)| Version::from_raw(version)),
            "{at}"
        );
    }
}

/// A later ABI of a function has a higher number in its exported name.
#[test]
fn names_of_one_function_rise_with_its_versions() {
    let number = |entry: &EntryPoint| match name(entry)
        .strip_prefix(entry.base)
        .map(|suffix| suffix.strip_prefix("_v"))
    {
        Some(Some(number)) => number.parse().unwrap_or(0),
        _ => 1,
    };
    for one in ENTRY_POINTS {
        for other in ENTRY_POINTS.iter().filter(|other| other.base == one.base) {
            let versions = one.version.cmp(&other.version);
            assert_eq!(
                number(one).cmp(&number(other)),
                versions,
                "{} and {}",
                one.function,
                other.function
            );
        }
    }
}

#[test]
fn names_are_unique_and_in_order() {
    let names: HashSet<_> = ENTRY_POINTS.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), ENTRY_POINTS.len());
    // One ABI is one pair of base name and version.
    let asked: HashSet<_> = ENTRY_POINTS.iter().map(|entry| (entry.base, entry.version)).collect();
    assert_eq!(asked.len(), ENTRY_POINTS.len());
    assert!(ENTRY_POINTS.is_sorted_by(|one, next| one.function < next.function));
}

#[test]
fn exported_names_are_base_names_and_suffixes() {
    for entry in ENTRY_POINTS {
        let suffix = name(entry).strip_prefix(entry.base).unwrap_or_else(|| panic!("{entry:?}"));
        let plain = suffix.is_empty();
        let numbered = suffix
            .strip_prefix("_v")
            .is_some_and(|digits| digits.parse::<u8>().is_ok_and(|n| n >= 2));
        assert!(plain || numbered, "{entry:?}");
        // The resolver appends these itself.
        assert!(!name(entry).ends_with("_ptsz") && !name(entry).ends_with("_ptds"), "{entry:?}");
    }
}

#[test]
fn versions_are_versions() {
    for entry in ENTRY_POINTS {
        for version in [Some(entry.version), entry.per_thread_version].into_iter().flatten() {
            assert!((2..=13).contains(&version.major()), "{entry:?}");
            assert_eq!(Version::new(version.major(), version.minor()), version, "{entry:?}");
        }
        if let Some(twin) = entry.per_thread_version {
            // Per-thread default streams came with CUDA 7.0.
            assert!(twin >= entry.version && twin >= Version::new(7, 0), "{entry:?}");
        }
    }
}

#[test]
fn no_driver_since_cuda_11_0_lacks_what_is_required() {
    for entry in ENTRY_POINTS.iter().filter(|entry| entry.required) {
        assert!(entry.version <= Version::new(11, 0), "{entry:?}");
        assert!(
            entry.per_thread_version.is_none_or(|twin| twin <= Version::new(11, 0)),
            "{entry:?}"
        );
    }
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
fn the_address_of_a_function_is_its_field() {
    let (driver, _soft) = load(&LoadOptions::new());
    let fields = fields(driver.symbols());
    assert_eq!(fields.len(), ENTRY_POINTS.len());
    for (field, address) in fields {
        let entry = ENTRY_POINTS
            .iter()
            .find(|entry| name(entry) == field)
            .expect("the field is in the list");
        assert_eq!(driver.symbols().address(entry.function), address, "{field}");
        assert!(!(entry.required && address.is_null()), "{field}");
    }
}

#[test]
fn a_driver_has_all_that_is_not_newer() {
    let (driver, _soft) = load(&LoadOptions::new());
    let missing: Vec<_> = ENTRY_POINTS
        .iter()
        .filter(|entry| {
            (entry.version <= driver.version())
                == driver.symbols().address(entry.function).is_null()
        })
        .map(name)
        .collect();
    assert!(
        missing.is_empty(),
        "CUDA driver {}: absent though old enough, or there though newer: {missing:?}",
        driver.version()
    );
}

#[test]
fn every_field_holds_what_was_resolved() {
    let (real, _soft) = load(&LoadOptions::new());
    let mut given = Vec::new();
    let mut resolve = |asked: &CStr| {
        let entry = ENTRY_POINTS.iter().find(|entry| entry.name == asked);
        let address = match entry {
            // Without these, all others are asked for by their exported names.
            Some(entry) if entry.base != "cuGetProcAddress" => {
                real.symbols().address(entry.function)
            }
            _ => std::ptr::null_mut(),
        };
        given.push((asked.to_owned(), address));
        address
    };
    // SAFETY: the addresses are those of a driver's table, by their names.
    let driver = unsafe { Driver::from_resolver(&mut resolve, &LoadOptions::new()) }
        .expect("the same table");
    let mut checked = 0;
    for entry in ENTRY_POINTS.iter().filter(|entry| entry.version <= driver.version()) {
        let (_, address) = given
            .iter()
            .find(|(asked, _)| asked.as_c_str() == entry.name)
            .expect("it was asked for");
        assert_eq!(driver.symbols().address(entry.function), *address, "{entry:?}");
        checked += usize::from(!address.is_null());
    }
    let distinct: HashSet<_> =
        given.iter().map(|(_, address)| address).filter(|address| !address.is_null()).collect();
    assert_eq!(
        distinct.len(),
        checked,
        "two names have one address, so this test cannot tell them apart"
    );
}

#[test]
fn the_table_is_the_driver() {
    let (driver, _soft) = load(&LoadOptions::new());
    let symbols: Symbols = *driver.symbols();
    let mut version = 0;
    // SAFETY: a place for the one integer.
    check(Function::cuDriverGetVersion, unsafe { (symbols.cuDriverGetVersion)(&mut version) });
    assert_eq!(Version::from_raw(version.unsigned_abs()), driver.version());

    let mut text = std::ptr::null();
    // SAFETY: a place for the C string's address.
    let code = unsafe { (symbols.cuGetErrorName)(CUresult::CUDA_ERROR_NOT_READY, &mut text) };
    check(Function::cuGetErrorName, code);
    // SAFETY: on success the driver gives a C string that is never freed.
    let text = unsafe { CStr::from_ptr(text.cast()) };
    assert_eq!(text.to_str(), Ok(CUresult::CUDA_ERROR_NOT_READY.name().expect("a known code")));
    assert_eq!(driver.library().is_none(), Door::chosen() == Door::Soft);
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

#[test]
fn an_unknown_code_keeps_its_number() {
    assert_eq!(CUresult(4242).name(), None);
    assert_eq!(CUresult(4242).to_string(), "an unknown CUDA error (4242)");
    assert_eq!(CUresult(400).to_string(), "CUDA_ERROR_INVALID_HANDLE (400)");
}
