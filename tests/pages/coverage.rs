//! `docs/coverage.md` matches the symbol table.

use std::fmt::Write;

use cuda_events::sys::ENTRY_POINTS;

fn page() -> String {
    let mut page = String::from(
        "# Bound entry points\n\n\
         This page is written by `CUDA_EVENTS_WRITE=1 cargo test --test pages` from the one list \
         in\n\
         `src/sys/symbols.rs`; the same test fails if this page differs. \"Requested as\" is the \
         base name and\n\
         the CUDA version for the symbol lookup. A per-thread twin is the same function for the \
         per-thread\n\
         default stream. Loading fails on a driver that lacks a required entry point. An optional \
         entry point\n\
         that the driver lacks is `None` in the table, and calls that need it return \
         `Unsupported`.\n\n\
         | exported name | requested as | per-thread twin | |\n| --- | --- | --- | --- |\n",
    );
    for entry in ENTRY_POINTS {
        let name = entry.function;
        let need = if entry.required { "required" } else { "optional" };
        let twin = entry
            .per_thread_version
            .map(|version| format!("`{name}_ptsz` at {version}"))
            .unwrap_or_default();
        writeln!(page, "| `{name}` | `{}` at {} | {twin} | {need} |", entry.base, entry.version)
            .expect("a String grows");
    }
    let required = ENTRY_POINTS.iter().filter(|entry| entry.required).count();
    let twins = ENTRY_POINTS.iter().filter(|entry| entry.per_thread_version.is_some()).count();
    let all = ENTRY_POINTS.len();
    writeln!(
        page,
        "\n{all} entry points, {required} of them required, {twins} with a per-thread twin."
    )
    .expect("a String grows");
    page
}

#[test]
fn the_coverage_page_is_that_of_the_list() {
    if std::env::var_os("CUDA_EVENTS_WRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/coverage.md");
        std::fs::write(path, page()).expect("the page can be written");
        return;
    }
    let committed = include_str!("../../docs/coverage.md");
    assert!(
        committed == page(),
        "docs/coverage.md is old: run CUDA_EVENTS_WRITE=1 cargo test --test pages"
    );
}
