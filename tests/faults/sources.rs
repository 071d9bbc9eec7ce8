//! What the sources themselves must keep to.

use std::collections::{BTreeMap, BTreeSet};

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
    let ends = ["#[cfg(test)]\nmod ", "\nmod tests {"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
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
            // A part of a longer name, or in a text.
            if before.ends_with(is_word) || before.matches('"').count() % 2 == 1 {
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
    (
        "ext/completion/mod",
        Function::cuEventQuery,
        "the poller would make it, and is not in a forked child",
    ),
    (
        "ext/event_pool",
        Function::cuEventCreate,
        "a free event saves it, and not the look for a fork",
    ),
    (
        "ext/lazy_event",
        Function::cuStreamWaitEvent,
        "which call was not made, as there is no record",
    ),
    (
        "ext/lazy_event",
        Function::cuEventElapsedTime_v2,
        "which call was not made, as there is no event",
    ),
    ("ext/timeline/crossing", Function::cuStreamWaitValue64_v2, "which call was not made"),
    ("ext/timeline/import", Function::cuStreamWaitValue64_v2, "which call was not made"),
    ("ext/timeline/line", Function::cuEventQuery, "the call that told why a line is poisoned"),
    ("ext/timeline/mod", Function::cuStreamWriteValue64_v2, "which call was not made"),
    ("ext/timeline/point", Function::cuStreamWaitValue64_v2, "a reached point saves it"),
    ("ext/timeline/slot", Function::cuMemHostRegister_v2, "what fails without memory for it"),
    ("ext/timeline/wait", Function::cuEventQuery, "which call would tell a failure"),
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
        let functions: Vec<usize> = code(text)
            .filter(|(_, code)| code.contains("fn ") && code.contains('('))
            .map(|(line, _)| line)
            .collect();
        let mut times: BTreeMap<(usize, Function), Vec<usize>> = BTreeMap::new();
        for Named { function, line, how } in named(text) {
            let body = functions.partition_point(|start| *start <= line);
            times.entry((body, function)).or_default().push(line);
            let allowed =
                NAMED_ONLY.iter().any(|(place, named, _)| place == file && *named == function);
            if how == How::Field || how == How::Name && !allowed {
                wrong.push(format!(
                    "src/{file}, line {line}: {function} is not named by call!, ask! or entry!"
                ));
            }
        }
        for ((_, function), lines) in times.into_iter().filter(|(_, lines)| lines.len() > 1) {
            wrong.push(format!(
                "src/{file}, lines {lines:?}: {function} is named {} times",
                lines.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let count: usize = SOURCES.iter().map(|(_, text)| calls(text).len()).sum();
    assert!(count > 70, "{count} calls were found");
    for (file, function, why) in NAMED_ONLY {
        let (_, text) = SOURCES.iter().find(|(known, _)| known == file).expect("it is a source");
        let there =
            named(text).iter().any(|named| named.function == *function && named.how == How::Name);
        assert!(there, "{file} no longer names {function} ({why})");
    }
}

/// Sources without methods of the safe layer.
const REST: &[(&str, &str)] = &[
    ("driver/trampolines", include_str!("../../src/driver/trampolines.rs")),
    ("loader/platform", include_str!("../../src/loader/platform.rs")),
    ("loader/resolve", include_str!("../../src/loader/resolve.rs")),
];

pub const ROOT: &str = include_str!("../../src/lib.rs");
const EXT: &str = include_str!("../../src/ext/mod.rs");

pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES.iter().chain(REST).copied()
}

/// What is there once for the process or for a thread, and where the page says so: the root's, or
/// for `ext` its own.
const KEPT: &[(&str, &str, &str)] = &[
    ("driver/flag", "UNUSUAL", "| a flag: the process was forked"),
    ("driver/fork", "HANDLER", "| a flag: the process was forked"),
    ("driver/libraries", "FIRST", "or has loaded several driver libraries |"),
    ("driver/mod", "KNOWN", "| the drivers that were loaded |"),
    ("capture/registry", "CAPTURES", "| a list of the captures that"),
    ("capture/guard", "UNDER_WAY", "| the number of these captures in progress"),
    ("stream/host_functions", "WAITING", "| the closures of"),
    ("driver/observer", "PLACES", "| the sixteen places for [observers]"),
    ("driver/observer", "OBSERVING", "| the sixteen places for [observers]"),
    ("driver/trampolines", "TARGETS", "| the sixteen places for [observers]"),
    ("graph/kept", "LAST", "Each graph also has a number, taken from a counter"),
    ("ext/completion/poller", "ARRIVED", "| a list of the pending futures |"),
    ("ext/completion/poller", "SEAT", "| a list of the pending futures |"),
    ("ext/poller", "INBOX", "one for the thread's inbox"),
    ("ext/timeline/poller", "ARRIVED", "a list of the timelines that futures wait for"),
    ("ext/timeline/poller", "SEAT", "a list of the timelines that futures wait for"),
    ("ext/timeline/slot", "PAGES", "pages of pinned host memory"),
    ("ext/timeline/slot", "FRESH", "pages of pinned host memory for copied values"),
    ("ext/timeline/poller", "IMPORTS", "the imports that streams wait for"),
    ("ext/timeline/import", "IMPORTED", "the files of other processes"),
    ("ext/timeline/file", "ENDING", "a list of its own dropped files"),
    ("ext/timeline/memory/linux", "LIVES", "the descriptors that a forked child must close"),
    ("ext/timeline/memory/linux", "HANDLER", "the descriptors that a forked child must close"),
    ("ext/timeline/memory/linux", "FORKS", "the descriptors that a forked child must close"),
    ("ext/timeline/crossing", "CROSSINGS", "a list of the pending waits between contexts"),
    ("ext/current_stream", "ENTERED", "for each thread, a list of the scopes"),
    ("ext/event_pool", "NEXT", "a number for each thread that uses a pool"),
    ("ext/event_pool", "OWN", "a number for each thread that uses a pool"),
    // Never written: its address is a mark.
    ("ext/event_pool", "CLOSED", "the pool's free events"),
];

/// Files with a lock, all of which the pages name.
const LOCKS: &[&str] = &[
    "capture/registry",
    "driver/observer",
    "ext/completion/entry",
    "ext/completion/mod",
    "ext/completion/poller",
    "ext/event_pool",
    "ext/inbox",
    "ext/timeline/crossing",
    "ext/timeline/file",
    "ext/timeline/foreign",
    "ext/timeline/import",
    "ext/timeline/opened",
    "ext/timeline/poller",
    "ext/timeline/queue",
    "ext/timeline/slot",
    "ext/timeline/watch",
    "graph/kept",
    "stream/host_functions",
    // It names the types.
    "sync",
];

#[test]
fn whatever_is_kept_for_the_process_is_on_a_page() {
    let mut found = BTreeSet::new();
    for (file, text) in all() {
        for (line, code) in code(text) {
            let words =
                code.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            let name = words.strip_prefix("static ").and_then(|rest| rest.split(':').next());
            // A macro's own are those of who uses it.
            if let Some(name) = name.filter(|name| !name.starts_with('$')) {
                let known = KEPT.iter().any(|(place, known, _)| (*place, *known) == (file, name));
                assert!(
                    known,
                    "src/{file}, line {line}: {name} is kept for the process, and on no page"
                );
                found.insert((file, name));
            }
            let locks = ["Mutex", "RwLock", "Condvar"].iter().any(|lock| code.contains(lock));
            assert!(
                !locks || LOCKS.contains(&file),
                "src/{file}, line {line}: a lock that no page tells of"
            );
            let starts = code.contains("spawn(") || code.contains("thread::Builder");
            assert!(
                !starts || file == "ext/poller",
                "src/{file}, line {line}: a thread that no page tells of"
            );
        }
    }
    for (file, name, words) in KEPT {
        assert!(found.contains(&(*file, *name)), "{name} is no longer in src/{file}");
        let page = if file.starts_with("ext/") { EXT } else { ROOT };
        assert!(page.contains(words), "the page does not say {words:?}, for {name} in src/{file}");
    }
}

/// The names that the root exports: modules and items.
fn root() -> BTreeSet<&'static str> {
    let end = ROOT.find("#[cfg(doctest)]").expect("the README is tested");
    let mut names = BTreeSet::new();
    for statement in ROOT[..end].split(';') {
        let statement =
            statement.lines().filter(|line| !line.starts_with("//")).collect::<Vec<_>>();
        let Some(first) = statement.iter().position(|line| line.starts_with("pub ")) else {
            continue;
        };
        // Only documentation has the guides.
        if statement[..first].contains(&"#[cfg(doc)]") {
            continue;
        }
        if let Some(module) = statement[first].strip_prefix("pub mod ") {
            names.insert(module);
        }
        for line in &statement[first..] {
            let list = line
                .split_once('{')
                .map_or_else(|| line.rsplit("::").next(), |(_, list)| Some(list));
            if statement[first].starts_with("pub use ") {
                names.extend(
                    list.unwrap_or_default().split([',', '}', ' ']).filter(|name| !name.is_empty()),
                );
            }
        }
    }
    names
}

#[test]
fn the_root_exports_at_most_32_names() {
    let names = root();
    assert!(
        ["Stream", "Event", "Version", "capture", "sys"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    assert!(names.len() <= 32, "{} names: {names:?}", names.len());
}

/// `ext` uses what any other crate could use; what more it needs is in one file, with the reasons.
#[test]
fn ext_uses_the_public_api_and_what_it_says_it_needs() {
    let public = root();
    // Methods that only this crate can call, by names that nothing public has and nothing in `ext`.
    let functions = |start: &str, ext: bool| -> BTreeSet<&'static str> {
        let sources = all().filter(|(file, _)| file.starts_with("ext/") == ext);
        let lines = sources.flat_map(|(_, text)| code(text)).map(|(_, line)| line.trim_start());
        let rest = lines.filter_map(|line| {
            line.strip_prefix(start).map(|rest| rest.trim_start_matches("const "))
        });
        let rest = rest
            .map(|rest| rest.trim_start_matches("unsafe "))
            .filter_map(|rest| rest.strip_prefix("fn "));
        rest.filter_map(|rest| rest.split(['(', '<']).next()).collect()
    };
    let private: BTreeSet<_> =
        &(&functions("pub(crate) ", false) - &functions("pub ", false)) - &functions("", true);
    // So is one of a `LocalKey`. Methods of what is needed are named with the reason.
    let (_, needs) = all().find(|(file, _)| *file == "ext/needs").expect("it is a source");
    let private: BTreeSet<_> = private
        .into_iter()
        .filter(|name| *name != "with" && !needs.contains(&format!("`{name}`")))
        .collect();
    assert!(private.contains("check_fork") && !private.contains("query"), "{private:?}");
    let mut wrong = Vec::new();
    for (file, text) in all().filter(|(file, _)| file.starts_with("ext/") && *file != "ext/needs") {
        for (line, code) in code(text) {
            for (at, _) in code.match_indices("crate::") {
                let rest = &code[at + "crate::".len()..];
                let segments: Vec<&str> = match rest.strip_prefix('{') {
                    Some(list) => list
                        .split([',', '}', ';'])
                        .map(str::trim)
                        .filter(|name| !name.is_empty())
                        .collect(),
                    None => rest
                        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                        .take(1)
                        .collect(),
                };
                for segment in segments.into_iter().filter(|segment| !public.contains(segment)) {
                    wrong.push(format!("src/{file}, line {line}: crate::{segment} is not public"));
                }
            }
            let called = private.iter().filter(|name| code.contains(&format!(".{name}(")));
            wrong.extend(
                called.map(|name| format!("src/{file}, line {line}: {name} is not public")),
            );
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
