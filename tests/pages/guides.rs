//! The guides' Rust code is compiled as documentation tests, except for the code with cudarc: it is a
//! part of the example.

const CUDARC: &str = include_str!("../../docs/guide/from-cudarc.md");

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
