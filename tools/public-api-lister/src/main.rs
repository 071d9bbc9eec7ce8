//! Prints the public items that rustdoc's JSON files name, a line each. tools/public-api runs it.

use std::process::ExitCode;

use public_api::{Builder, Result};

fn main() -> ExitCode {
    for file in std::env::args().skip(1) {
        if let Err(error) = list(&file) {
            eprintln!("public-api-lister: {file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Blanket and auto-trait implementations are left out: they follow from the rest, and static
/// assertions in the library hold those that are promised.
///
/// Of the raw layer only the functions written by hand are listed. Its types, constants and
/// pointers are those of wrapper.h and of the list of symbols, and what becomes of them is
/// committed already, as the bindings.
fn list(file: &str) -> Result<()> {
    let lines = |derived: bool| -> Result<Vec<String>> {
        let api = Builder::from_rustdoc_json(file)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(!derived)
            .build()?;
        Ok(api.items().map(ToString::to_string).collect())
    };
    let safe = lines(true)?.into_iter().filter(|line| !raw(line));
    let functions = lines(false)?.into_iter().filter(|line| raw(line) && line.contains(" fn "));
    let functions = functions.filter(|line| !line.contains("::default() -> Self"));
    safe.chain(functions).for_each(|line| println!("{line}"));
    Ok(())
}

/// Whether the item itself is of the raw layer, and not only something in its signature.
fn raw(line: &str) -> bool {
    let subject = match line.split_once(" for ") {
        Some((start, subject)) if start.contains("impl") => subject,
        _ => line,
    };
    let path = subject.split_whitespace().find(|word| word.contains("::")).unwrap_or_default();
    path.starts_with("cuda_events::sys::")
}
