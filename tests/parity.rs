//! `vendor-docs/parity.md` names only items and tests that are there, a row without either says why, and whatever is public
//! has a row.

use std::collections::HashSet;

use cuda_events::sys::ENTRY_POINTS;

/// Files by their path in the repository, with their text.
macro_rules! texts {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../", $folder, "/", $name, ".rs")))),*]
    };
}

const SOURCES: &[(&str, &str)] = texts!("src":
    "lib" "attributes" "capture" "capture/external" "completion" "context" "device" "driver" "error" "event" "graph"
    "graph/exec" "graph/kept" "green" "host" "ipc" "lazy" "lease" "loader" "loader/platform" "loader/resolve"
    "observer" "pool" "clock" "forms"
    "process" "progress" "scope" "stream" "stream/foreign" "stream/options" "stream/order" "timer" "values" "version"
);

const TESTS: &[(&str, &str)] = texts!("tests":
    "attributes" "capture" "completions" "context_events" "contexts" "current_stream" "descriptor" "descriptor_text"
    "errors" "events" "foreign_streams" "fork" "graphs" "green" "guards" "host_functions" "hot_path" "interprocess"
    "lazy_events" "lease" "loading" "lookups" "observer" "parity_behaviour" "pool" "pool_and_captures" "raw_table"
    "shutdown" "stream_flags" "stream_values" "streams" "last_drop" "poller" "observers" "handles"
    "timers" "two_drivers"
);

const PAGE: &str = include_str!("../vendor-docs/parity.md");

/// What users can name, by a scan that relies on rustfmt: a block ends at the brace that stands where its first line began.
#[derive(Default)]
struct Items {
    /// `Type`, `function`, `Type::method`, `Type::CONSTANT`, `Enum::Variant`, `Struct::field`, `Type: Trait`.
    names: HashSet<String>,
    /// Those of them that are not a trait or a trait's method.
    own: HashSet<String>,
}

impl Items {
    fn of_the_crate() -> Self {
        let public = re_exported();
        let mut items = Self::default();
        for (_, text) in SOURCES {
            items.scan(text, &public);
        }
        items
    }

    fn scan(&mut self, text: &str, public: &HashSet<String>) {
        let mut lines = text.lines().peekable();
        let mut derives: Vec<String> = Vec::new();
        // The block that the scan is in: its type, its indentation, and what begins one of its members.
        let mut block: Option<(String, usize, Kind)> = None;
        while let Some(line) = lines.next() {
            let (indent, mut code) = (line.len() - line.trim_start().len(), line.trim().to_owned());
            if let Some((owner, outer, kind)) = &block {
                if indent == *outer && code.starts_with('}') {
                    block = None;
                } else if indent == *outer + 4
                    && let Some(member) = kind.member(&code)
                {
                    let member = format!("{owner}::{member}");
                    if !matches!(kind, Kind::Trait) {
                        self.own.insert(member.clone());
                    }
                    self.names.insert(member);
                }
                continue;
            }
            if let Some(list) = code.strip_prefix("#[derive(") {
                derives.extend(list.trim_end_matches(")]").split(", ").map(str::to_owned));
                continue;
            }
            if code.starts_with("impl") || code.starts_with("unsafe impl") {
                while !code.contains('{') {
                    let Some(next) = lines.next() else { break };
                    code = format!("{code} {}", next.trim());
                }
                let header = code.split('{').next().unwrap_or_default().trim_start_matches("unsafe ");
                let header = without_generics(header.trim_start_matches("impl")).trim();
                let (implemented, owner) = match header.split_once(" for ") {
                    Some((implemented, owner)) => (Some(implemented), owner),
                    None => (None, header),
                };
                let owner = name(owner);
                if public.contains(&owner) {
                    if let Some(implemented) = implemented {
                        let implemented = implemented.rsplit_once("::").map_or(implemented, |(_, last)| last);
                        self.names.insert(format!("{owner}: {implemented}"));
                    }
                    if !code.ends_with("{}") {
                        block = Some((owner, indent, if implemented.is_some() { Kind::Trait } else { Kind::Inherent }));
                    }
                }
            } else if let Some(declared) = code.strip_prefix("pub ") {
                let (what, rest) = declared.split_once(' ').unwrap_or((declared, ""));
                let owner = name(rest);
                if matches!(what, "fn" | "const" | "struct" | "enum") && public.contains(&owner) {
                    self.names.extend(derives.iter().map(|derived| format!("{owner}: {derived}")));
                    self.names.insert(owner.clone());
                    self.own.insert(owner.clone());
                    let kind = if what == "enum" { Kind::Variants } else { Kind::Fields };
                    if matches!(what, "struct" | "enum") && code.ends_with('{') {
                        block = Some((owner, indent, kind));
                    }
                }
            }
            if !code.starts_with("#[") && !code.starts_with("///") {
                derives.clear();
            }
        }
    }

    fn has(&self, item: &str) -> bool {
        self.names.contains(item)
            || ENTRY_POINTS.iter().any(|entry| entry.function.name() == item || entry.base == item)
    }
}

enum Kind {
    Inherent,
    Trait,
    Variants,
    /// And the flags of `bitflags!`.
    Fields,
}

impl Kind {
    fn member(&self, code: &str) -> Option<String> {
        let declared = match self {
            Self::Inherent => code.strip_prefix("pub ")?,
            Self::Fields if code.starts_with("const ") => code,
            Self::Fields => return Some(name(code.strip_prefix("pub ")?)),
            Self::Variants => return code.starts_with(char::is_uppercase).then(|| name(code)),
            Self::Trait => code,
        };
        let mut words = declared.split(' ').skip_while(|word| matches!(*word, "unsafe")).peekable();
        match words.next()? {
            "fn" => words.next().map(name),
            // A constant, or a `const fn`.
            "const" => match words.next()? {
                "fn" | "unsafe" => words.find(|word| *word != "fn").map(name),
                constant => Some(name(constant)),
            },
            _ => None,
        }
    }
}

/// The identifier that the code begins with.
fn name(code: &str) -> String {
    code.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
}

fn without_generics(code: &str) -> &str {
    let mut depth = 0;
    for (at, character) in code.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if character == '>' { &code[at + 1..] } else { code };
        }
    }
    code
}

/// The names that `lib.rs` makes public.
fn re_exported() -> HashSet<String> {
    let (_, lib) = SOURCES[0];
    let statements = lib.split(';').filter_map(|statement| statement.trim().strip_prefix("pub use "));
    let lists = statements.map(|statement| statement.split_once("::").expect("a path").1);
    lists.flat_map(|list| list.split(['{', '}', ',']).map(|name| name.trim().to_owned())).collect()
}

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
        listed.into_iter().flat_map(|(list, _)| list.split(',').map(str::trim)).filter(|name| !name.is_empty()),
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
            let cells = line.trim_end().trim_start_matches('|').trim_end_matches('|').split('|').map(str::trim);
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
            match TESTS.iter().find(|(name, _)| *name == file) {
                None => say(&format!("tests/{file}.rs is not in the list of this test")),
                Some((_, text)) if !tests(text).contains(function) => say(&format!("no test `{test}`")),
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
    let owners: Vec<_> = named.iter().filter_map(|item| item.split_once(':')).map(|(owner, _)| owner).collect();
    named.extend(owners);
    let items = Items::of_the_crate().own;
    let mut without: Vec<_> = items.into_iter().filter(|item| !named.contains(item.as_str())).collect();
    without.sort();
    without
}

#[test]
fn each_item_has_a_row() {
    assert_eq!(without_a_row(PAGE), Vec::<String>::new());
}

#[test]
fn each_model_has_its_table() {
    let tables: Vec<&str> = PAGE.split("\n## ").skip(1).collect();
    let titles =
        ["cuda.core", "torch.cuda.Event", "torch.Event", "torch.Stream", "torch.mps.Event", "What none of them"];
    for title in titles {
        let table =
            tables.iter().find(|table| table.starts_with(title)).unwrap_or_else(|| panic!("no table of {title}"));
        assert!(rows(table).len() >= 5, "{title}");
    }
}

/// A module that is not in the list would be one whose items are not found.
#[test]
fn the_list_of_sources_is_complete() {
    for (file, text) in SOURCES {
        for module in text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')) {
            let path = if *file == "lib" { module.to_owned() } else { format!("{file}/{module}") };
            assert!(SOURCES.iter().any(|(name, _)| *name == path), "src/{path}.rs is not in the list");
        }
    }
}

#[test]
fn what_is_wrong_is_found() {
    let page = |row: &str| format!("| theirs | ours | tests | why |\n| --- | --- | --- | --- |\n{row}\n");
    let test = "`events::flags_are_what_was_asked_for`";
    for right in [
        format!("| x | `Event::new` | {test} | |"),
        format!("| x | `EventRef::query`, `StreamRef::wait_event` | {test}, {test} | |"),
        format!(
            "| x | `Error::ContextMismatch`, `PriorityRange::least`, `EventFlags::TIMING`, `EventFlags` | {test} | |"
        ),
        format!("| x | `current_stream`, `DRIVER_VARIABLE`, `IpcEventDescriptor::LEN`, `Version::new` | {test} | |"),
        format!("| x | `EventRef: Hash`, `Device: Copy`, `Event: Drop`, `PooledEvent: IntoFuture` | {test} | |"),
        format!("| x | `IpcEventDescriptor: FromStr`, `Completion: Future`, `LazyEvent: From<Event>` | {test} | |"),
        format!("| x | `EventRef::from_raw`, `ForeignStream::new`, `cuEventRecord`, `cuStreamGetCtx` | {test} | |"),
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
        ("| x | `Event::new` | `events::processor_time` | |".to_owned(), "no test `events::processor_time`"),
        // Ignored, as it is a child process of other tests.
        ("| x | `Event::new` | `interprocess::peer` | |".to_owned(), "no test `interprocess::peer`"),
        ("| x | `Event::new` | `streams::flags_are_what_was_asked_for` | |".to_owned(), "no test `streams::"),
        ("| x | `Event::new` | `nothing::nothing` | |".to_owned(), "tests/nothing.rs is not in the list"),
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
    for item in ["Event", "Event::new", "Error::NotReady", "EventFlags::TIMING", "Call::result", "current_stream"] {
        assert!(all.iter().any(|without| without == item), "{item}");
    }
    let row = "| theirs | ours | tests | why |\n| --- | --- | --- | --- |\n| x | `Event::new`, `Event: Drop` | | |\n";
    assert_eq!(without_a_row(row).len(), all.len() - 2, "the method and its type have one");
}
