//! The guides' Rust code is compiled as documentation tests, except for the tables of verbs and the
//! code with cudarc. These name only items that exist, and are a part of the example.

use cuda_events_test_support::public_api::Items;

const CUDARC: &str = include_str!("../../docs/guide/from-cudarc.md");
const PYTHON: &str = include_str!("../../docs/guide/from-python.md");

/// The last cell of each row of the first table, without the heads.
fn verbs(page: &str) -> Vec<&str> {
    let table = page.lines().skip_while(|line| !line.starts_with('|')).skip(2);
    table
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.trim_end_matches('|').rsplit('|').next())
        .collect()
}

/// Items and methods that a cell names and the crate does not have.
fn unknown(cell: &str) -> Vec<String> {
    let items = Items::of_the_crate();
    let mut unknown = Vec::new();
    let mut before = ' ';
    for code in cell.split('`').skip(1).step_by(2) {
        for word in code.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let end = word.chars().last().unwrap_or(' ');
            let name = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
            let known = if before == '.' && end == '(' {
                items.names.iter().any(|item| item.ends_with(&format!("::{name}")))
            } else if let Some(name) = name.strip_prefix("ext::") {
                items.has(name)
            } else {
                !name.contains("::") || items.has(name)
            };
            if !known {
                unknown.push(name.to_owned());
            }
            before = end;
        }
    }
    unknown
}

#[test]
fn the_verbs_are_there() {
    for page in [CUDARC, PYTHON] {
        let verbs = verbs(page);
        assert!(verbs.len() > 12, "{verbs:?}");
        for verb in verbs {
            assert_eq!(unknown(verb), [""; 0], "{verb}");
        }
    }
    for (cell, name) in [
        ("`event.wait_for_ever(&stream)?`", "wait_for_ever"),
        ("`Event::nothing(&context)?`", "Event::nothing"),
        ("`end.query()?`, then `ext::Nothing::new()`", "Nothing::new"),
    ] {
        assert!(unknown(cell).iter().any(|unknown| unknown.ends_with(name)), "{cell}");
    }
}

#[test]
fn the_code_with_cudarc_is_a_part_of_the_example() {
    let trimmed = |text: &str| -> String { text.lines().map(|line| line.trim()).collect() };
    let example = trimmed(include_str!("../../examples/cudarc/src/main.rs"));
    let shown: Vec<_> = CUDARC.split("```rust,ignore\n").skip(1).collect();
    assert_eq!(shown.len(), 4);
    for block in shown {
        let block = trimmed(block.split_once("```").expect("it ends").0);
        assert!(block.len() > 100 && example.contains(&block), "{block}");
    }
}
