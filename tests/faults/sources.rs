//! What the sources themselves must keep to.

use std::collections::BTreeMap;

use cuda_events::sys::{ENTRY_POINTS, Function};

use super::methods::SOURCES;

/// An entry point that a source names.
pub struct Named {
    pub function: Function,
    line: usize,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// For a call: `cuEventRecord(...)` in one of the macros of `driver/call.rs`.
    Call,
    /// As a field of the table.
    Field,
    /// As `Function::cuEventRecord`.
    Name,
}

/// The text without comments and tests, line by line.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.map(|(number, line)| (number, line.split_once("//").map_or(line, |(code, _)| code)))
}

fn named(text: &str) -> Vec<Named> {
    let functions: BTreeMap<&str, Function> =
        ENTRY_POINTS.iter().map(|entry| (entry.function.name(), entry.function)).collect();
    let mut named = Vec::new();
    for (line, code) in code(text) {
        for (at, _) in code.match_indices("cu") {
            let (before, rest) = code.split_at(at);
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
            let Some(&function) = functions.get(word) else { continue };
            if before.ends_with(|c| is_word(c) || c == '"' || c == '`') {
                continue;
            }
            let how = match before {
                _ if before.ends_with("Function::") => How::Name,
                _ if before.ends_with('.') => How::Field,
                _ => How::Call,
            };
            named.push(Named { function, line, how });
        }
    }
    named
}

/// The calls in a source.
pub fn calls(text: &str) -> Vec<Named> {
    named(text).into_iter().filter(|named| named.how == How::Call).collect()
}

/// Where an entry point is named without being called, and why.
const NAMED_ONLY: &[(&str, Function, &str)] = &[
    ("capture/external", Function::cuEventRecordWithFlags, "which call an error is of"),
    ("capture/external", Function::cuStreamWaitEvent, "which call an error is of"),
    ("capture/external", Function::cuCtxPopCurrent_v2, "which call an error is of"),
    ("ext/completion/mod", Function::cuEventQuery, "the poller would make it, and is not in a forked child"),
    ("ext/event_pool", Function::cuEventCreate, "a free event saves it, and not the look for a fork"),
    ("ext/lazy_event", Function::cuEventElapsedTime, "what the driver would say of events that are not there"),
    ("loader/mod", Function::cuDriverGetVersion, "its address tells libraries apart"),
];

/// One call, one line: `driver/call.rs` ties name, pointer, checks and error together.
#[test]
fn a_call_is_named_once() {
    let mut wrong = Vec::new();
    for (file, text) in SOURCES {
        // It says what errors mean, for each call that they may come from.
        if file.starts_with("error") {
            continue;
        }
        let functions: Vec<usize> =
            code(text).filter(|(_, code)| code.contains("fn ") && code.contains('(')).map(|(line, _)| line).collect();
        let mut times: BTreeMap<(usize, Function), Vec<usize>> = BTreeMap::new();
        for Named { function, line, how } in named(text) {
            let body = functions.partition_point(|start| *start <= line);
            times.entry((body, function)).or_default().push(line);
            let allowed = NAMED_ONLY.iter().any(|(place, named, _)| place == file && *named == function);
            if how == How::Field || how == How::Name && !allowed {
                wrong.push(format!("src/{file}, line {line}: {function} is not named by call!, ask! or entry!"));
            }
        }
        for ((_, function), lines) in times.into_iter().filter(|(_, lines)| lines.len() > 1) {
            wrong.push(format!("src/{file}, lines {lines:?}: {function} is named {} times", lines.len()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let count: usize = SOURCES.iter().map(|(_, text)| calls(text).len()).sum();
    assert!(count > 70, "{count} calls were found");
    for (file, function, why) in NAMED_ONLY {
        let (_, text) = SOURCES.iter().find(|(known, _)| known == file).expect("it is a source");
        let there = named(text).iter().any(|named| named.function == *function && named.how == How::Name);
        assert!(there, "{file} no longer names {function} ({why})");
    }
}
