//! `docs/parity.md` names only items and tests that are there, a row without either says why, and
//! whatever is public has a row.

use std::collections::HashSet;

use cuda_events_test_support::public_api::Items;

/// Test files of a folder, with their text.
macro_rules! texts {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../", $folder, "/", $name, ".rs")))),*]
    };
}

const TESTS: &[&[(&str, &str)]] = &[
    texts!("contexts": "contexts" "context_events" "green" "last_drop"),
    texts!("driver": "fork" "loading" "requirements" "search" "lookups" "observer" "observers"
        "raw_table" "requirements" "search" "shutdown" "two_drivers"),
    texts!("events": "causes" "errors" "events" "handles" "parity_behaviour"),
    texts!("ext": "completions" "poller" "pool" "pool_and_captures" "lazy_events" "timelines"
        "timeline_captures" "timeline_failures" "timeline_futures" "timeline_pages"
        "timeline_programs" "timers" "current_stream"),
    texts!("graphs": "capture" "capture_info" "graphs" "kept"),
    texts!("ipc": "interprocess" "descriptor" "descriptor_text" "lease" "opened_timelines"
        "shared_timelines"),
    texts!("streams": "streams" "stream_flags" "stream_values" "attributes" "external"
        "foreign_streams" "host_functions"),
    texts!("costs": "hot_path" "guards"),
];

const PAGE: &str = include_str!("../../docs/parity.md");

/// The test functions of a file that run by themselves.
fn tests(text: &str) -> HashSet<&str> {
    let mut tests = HashSet::new();
    let mut attributes = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            attributes.push(line);
            continue;
        }
        if let Some(function) = line.strip_prefix("fn ")
            && attributes.contains(&"#[test]")
            && !attributes.iter().any(|attribute| attribute.starts_with("#[ignore"))
        {
            tests.extend(function.split('(').next());
        }
        attributes.clear();
    }
    // Cases that a macro makes tests of, by their names in its list.
    let listed = text.split_once("\nin_processes! {").and_then(|(_, rest)| rest.split_once("\n}"));
    tests.extend(
        listed
            .into_iter()
            .flat_map(|(list, _)| list.split(',').map(str::trim))
            .filter(|name| !name.is_empty()),
    );
    tests
}

/// What stands in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The rows of all tables, each as its line and its cells.
fn rows(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut rows = Vec::new();
    let mut line_of_table = 0;
    for line in page.lines() {
        line_of_table = if line.starts_with('|') { line_of_table + 1 } else { 0 };
        // The first is the head, the second the line below it.
        if line_of_table > 2 {
            let cells = line
                .trim_end()
                .trim_start_matches('|')
                .trim_end_matches('|')
                .split('|')
                .map(str::trim);
            rows.push((line, cells.collect()));
        }
    }
    rows
}

/// What is wrong with a page, a line each.
fn wrong(page: &str) -> Vec<String> {
    let items = Items::of_the_crate();
    let mut wrong = Vec::new();
    for (line, cells) in rows(page) {
        let mut say = |what: &str| wrong.push(format!("{what}: {line}"));
        let [theirs, ours, shown, why] = cells[..] else {
            say("not four cells");
            continue;
        };
        if theirs.is_empty() {
            say("no name");
        }
        for item in quoted(ours).filter(|item| !items.has(item)) {
            say(&format!("no item `{item}`"));
        }
        if quoted(ours).next().is_none() && why.is_empty() {
            say("neither an item nor a reason");
        }
        if quoted(shown).next().is_none() && why.is_empty() {
            say("neither a test nor a reason");
        }
        for test in quoted(shown) {
            let Some((file, function)) = test.split_once("::") else {
                say(&format!("`{test}` is not file::test"));
                continue;
            };
            match TESTS.iter().copied().flatten().find(|(name, _)| *name == file) {
                None => say(&format!("tests/*/{file}.rs is not in the list of this test")),
                Some((_, text)) if !tests(text).contains(function) => {
                    say(&format!("no test `{test}`"))
                }
                Some(_) => {}
            }
        }
    }
    wrong
}

#[test]
fn each_row_names_what_is_there() {
    let wrong = wrong(PAGE);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Of what is public, that which no row names. A type is named by its members too.
fn without_a_row(page: &str) -> Vec<String> {
    let rows = rows(page);
    let mut named: HashSet<&str> =
        rows.iter().filter_map(|(_, cells)| cells.get(1)).flat_map(|ours| quoted(ours)).collect();
    let owners: Vec<_> =
        named.iter().filter_map(|item| item.split_once(':')).map(|(owner, _)| owner).collect();
    named.extend(owners);
    let items = Items::of_the_crate().own.iter().map(|item| &item.name);
    let mut without: Vec<_> =
        items.filter(|item| !named.contains(item.as_str())).cloned().collect();
    without.sort();
    without.dedup();
    without
}

#[test]
fn each_item_has_a_row() {
    let without = without_a_row(PAGE);
    let last =
        PAGE.lines().position(|line| line.starts_with("## In none of them")).map_or(1, |at| at + 1);
    assert!(
        without.is_empty(),
        "add a row to docs/parity.md (to the table of the model that has it, or to that of \
         docs/parity.md:{last}), with `item` in its second column, for each of: {}",
        without.join(", ")
    );
}

#[test]
fn each_model_has_its_table() {
    let tables: Vec<&str> = PAGE.split("\n## ").skip(1).collect();
    let titles = [
        "cuda.core",
        "torch.cuda.Event",
        "torch.Event",
        "torch.Stream",
        "torch.mps.Event",
        "In none of them",
    ];
    for title in titles {
        let table = tables
            .iter()
            .find(|table| table.starts_with(title))
            .unwrap_or_else(|| panic!("no table of {title}"));
        assert!(rows(table).len() >= 5, "{title}");
    }
}

#[test]
fn what_is_wrong_is_found() {
    let page =
        |row: &str| format!("| theirs | ours | tests | why |\n| --- | --- | --- | --- |\n{row}\n");
    let test = "`events::flags_are_what_was_asked_for`";
    for right in [
        format!("| x | `Event::new` | {test} | |"),
        format!("| x | `EventRef::query`, `StreamRef::wait_event` | {test}, {test} | |"),
        format!(
            "| x | `Error::ContextMismatch`, `PriorityRange::least`, `EventFlags::TIMING`, \
                `EventFlags` | {test} | |"
        ),
        format!(
            "| x | `current_stream`, `DRIVER_VARIABLE`, `IpcEventDescriptor::LEN`, `Version::new` \
                | {test} | |"
        ),
        format!(
            "| x | `EventRef: Hash`, `Device: Copy`, `Event: Drop`, `PooledEvent: IntoFuture` | \
                {test} | |"
        ),
        format!(
            "| x | `IpcEventDescriptor: FromStr`, `Completion: Future`, `LazyEvent: From<Event>` | \
                {test} | |"
        ),
        format!(
            "| x | `EventRef::from_raw`, `ForeignStream::new`, `cuEventRecord`, `cuStreamGetCtx` | \
                {test} | |"
        ),
        "| x | — | — | a reason |".to_owned(),
        "| x | `Event` | — | a reason |".to_owned(),
    ] {
        assert_eq!(wrong(&page(&right)), Vec::<String>::new());
    }
    for (row, what) in [
        (format!("| x | `Event::nothing` | {test} | |"), "no item `Event::nothing`"),
        (format!("| x | `Event::query` | {test} | |"), "no item `Event::query`"),
        (format!("| x | `Stream::wait_event` | {test} | |"), "no item `Stream::wait_event`"),
        (format!("| x | `StreamRef::call` | {test} | |"), "no item `StreamRef::call`"),
        (format!("| x | `Nothing` | {test} | |"), "no item `Nothing`"),
        (format!("| x | `Symbols` | {test} | |"), "no item `Symbols`"),
        (format!("| x | `Kept` | {test} | |"), "no item `Kept`"),
        (format!("| x | `Error::Nothing` | {test} | |"), "no item `Error::Nothing`"),
        (format!("| x | `EventFlags::EXTERNAL` | {test} | |"), "no item `EventFlags::EXTERNAL`"),
        (format!("| x | `Event: Clone` | {test} | |"), "no item `Event: Clone`"),
        (format!("| x | `cuEventNothing` | {test} | |"), "no item `cuEventNothing`"),
        ("| x | `Event::new` | `events::nothing` | |".to_owned(), "no test `events::nothing`"),
        (
            "| x | `Event::new` | `events::processor_time` | |".to_owned(),
            "no test `events::processor_time`",
        ),
        // Ignored, as it is a child process of other tests.
        (
            "| x | `Event::new` | `interprocess::peer` | |".to_owned(),
            "no test `interprocess::peer`",
        ),
        (
            "| x | `Event::new` | `streams::flags_are_what_was_asked_for` | |".to_owned(),
            "no test `streams::",
        ),
        (
            "| x | `Event::new` | `nothing::nothing` | |".to_owned(),
            "tests/*/nothing.rs is not in the list",
        ),
        ("| x | `Event::new` | `nothing` | |".to_owned(), "`nothing` is not file::test"),
        ("| x | `Event::new` | — | |".to_owned(), "neither a test nor a reason"),
        (format!("| x | — | {test} | |"), "neither an item nor a reason"),
        (format!("| x | `Event::new` | {test} |"), "not four cells"),
        (format!("| | `Event::new` | {test} | |"), "no name"),
    ] {
        let wrong = wrong(&page(&row));
        assert!(wrong.len() == 1 && wrong[0].starts_with(what), "{wrong:?} for {row}");
    }
}

#[test]
fn what_has_no_row_is_found() {
    let all = without_a_row("");
    for item in [
        "Event",
        "Event::new",
        "Error::NotReady",
        "EventFlags::TIMING",
        "Call::result",
        "current_stream",
    ] {
        assert!(all.iter().any(|without| without == item), "{item}");
    }
    let row = "| theirs | ours | tests | why |\n| --- | --- | --- | --- |\n| x | `Event::new`, \
        `Event: Drop` | | |\n";
    assert_eq!(without_a_row(row).len(), all.len() - 2, "the method and its type have one");
}
