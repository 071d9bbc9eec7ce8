//! Each public function and each public module has an example, or its documentation names the item
//! that has one.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use cuda_events_test_support::public_api::{Items, PUBLIC};

/// Functions and modules without an example, each with the reason. The methods that `bitflags!`
/// adds and those of traits are no items of the crate's own; functions of Windows alone are not in
/// docs/public-api.txt.
const WITHOUT: &[(&str, &str)] = &[
    ("guide", "its pages are text"),
    ("choosing", "a guide with its own code"),
    ("from_cudarc", "a guide with its own code"),
    ("from_python", "a guide with its own code"),
    ("more_than_one_gpu", "a guide with its own code"),
    ("processes", "a guide with its own code"),
    ("testing", "a guide with its own code"),
    ("tokio", "a guide with its own code"),
];

/// The documentation of one item.
struct Page {
    file: String,
    line: usize,
    /// The public module that the item is in, or that the page is of.
    module: String,
    /// The text, with the attributes among it.
    text: String,
}

/// The documentation in the source: of a module under `name::`, of others under `Type`, `function`
/// or `Type::function`. A macro's function, which several types have, is `*::function`.
struct Pages {
    modules: HashSet<&'static str>,
    by_name: HashMap<String, Vec<Page>>,
}

/// The Rust files of a folder and of those in it, without the generated one.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of the source").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("sys/bindings.rs")
        {
            found.push(path);
        }
    }
    found
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The name at the start of a text.
fn name(text: &str) -> &str {
    text.split(|character| !is_of_name(character)).next().unwrap_or_default()
}

/// The type of `impl<'a> Timer<'a> {`, `*` for a macro's; none for any other line.
fn owner(line: &str) -> Option<&str> {
    if line.starts_with("macro_rules!") {
        return Some("*");
    }
    let header = line.strip_prefix("impl").filter(|_| !line.contains(" for "))?;
    let mut depth = 0;
    let end = header.find(|character| {
        depth += match character {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        depth == 0 && character == ' '
    })?;
    // A type's generics are those of `impl` once more, or none.
    Some(name(header[if header.starts_with('<') { end + 1 } else { 1 }..].trim_start()))
}

impl Pages {
    fn of_the_source() -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut pages = Self::new();
        for path in files(&source) {
            let text = std::fs::read_to_string(&path).expect("it is text");
            let file = path.strip_prefix(&source).expect("it is there").to_string_lossy();
            pages.add(&format!("src/{}", file.replace('\\', "/")), &text);
        }
        pages
    }

    fn new() -> Self {
        let modules = PUBLIC.lines().filter_map(|line| line.strip_prefix("pub mod cuda_events::"));
        let modules = modules.map(|path| path.rsplit("::").next().unwrap_or(path)).collect();
        Self { modules, by_name: HashMap::new() }
    }

    fn add(&mut self, file: &str, source: &str) {
        let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = path.split('/').find(|part| self.modules.contains(part));
        let module = format!("{}::", module.unwrap_or_default());
        let mut put = |name: String, at: usize, text: String| {
            let page = Page { file: file.to_owned(), line: at + 1, module: module.clone(), text };
            self.by_name.entry(name).or_default().push(page);
        };
        if path.ends_with(module.trim_end_matches(':')) {
            let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
            put(module.clone(), 0, lines.fold(String::new(), |text, line| text + line + "\n"));
        }

        let mut block = None;
        let mut text = String::new();
        let mut in_attribute = false;
        for (at, line) in source.lines().enumerate() {
            if line == "}" || line.starts_with("impl") || line.starts_with("macro_rules!") {
                block = owner(line);
            }
            let line = line.trim();
            let doc = line.strip_prefix("///");
            in_attribute |= line.starts_with("#[");
            if doc.is_some() || in_attribute {
                text += doc.unwrap_or(line);
                text.push('\n');
                in_attribute &= !line.ends_with(']');
                continue;
            }
            let mut words = line.split(' ').filter(|word| !["const", "unsafe"].contains(word));
            if words.next() == Some("pub")
                && let (Some(kind), Some(declared)) = (words.next(), words.next())
            {
                match (kind, block) {
                    ("fn", Some(owner)) => {
                        put(format!("{owner}::{}", name(declared)), at, std::mem::take(&mut text));
                    }
                    ("fn" | "struct" | "enum", _) => {
                        put(name(declared).to_owned(), at, std::mem::take(&mut text));
                    }
                    _ => {}
                }
            }
            text.clear();
        }
    }

    fn get(&self, item: &str) -> &[Page] {
        let shared = || format!("*::{}", item.rsplit("::").next().unwrap_or_default());
        let pages = self.by_name.get(item).or_else(|| self.by_name.get(&shared()));
        pages.map_or(&[], Vec::as_slice)
    }

    /// Whether an example of the item uses the function.
    fn shows(&self, item: &str, function: &str) -> bool {
        self.get(item).iter().any(|page| uses(&code(&page.text), function))
    }

    /// A line for a public function without an example.
    fn missing(&self, function: &str) -> Option<String> {
        let [page] = self.get(function) else {
            let found = self.get(function).len();
            return Some(format!("{function}: this test finds {found} of it in src/, not one"));
        };
        let owner = function.rsplit_once("::").map_or("", |(owner, _)| owner);
        let here = [function, owner, &page.module];
        let named = pointers(&page.text, owner, &page.module);
        let is_shown = here.into_iter().any(|item| self.shows(item, function))
            || named.iter().any(|item| self.shows(item, function));
        let wrong = if named.is_empty() {
            String::new()
        } else {
            format!(" (it names {}, whose examples do not use it)", named.join(" and "))
        };
        (!is_shown).then(|| format!("{}:{}: {function}{wrong}", page.file, page.line))
    }

    /// A line for a public module without an example.
    fn bare(&self, module: &str) -> Option<String> {
        match self.get(&format!("{module}::")) {
            [page] if !code(&page.text).is_empty() => None,
            [page] => Some(format!("{}:{}: the page of {module}", page.file, page.line)),
            pages => Some(format!("{module}: this test finds {} of it in src/", pages.len())),
        }
    }
}

/// The code of a text's Rust blocks that compile, without comments.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut block = None;
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            block = if block.is_none() { Some(kind) } else { None };
        } else if matches!(block, Some("" | "no_run" | "should_panic")) {
            code += line.split("//").next().unwrap_or_default();
            code.push('\n');
        }
    }
    code
}

/// Whether code names the function: as a method, or after its type.
fn uses(code: &str, function: &str) -> bool {
    let (owner, name) = function.rsplit_once("::").unwrap_or(("", function));
    let of_type = format!("{owner}::");
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let is_called = after.starts_with('(') || after.starts_with("::");
        let of_its_own = owner.is_empty() && !before.ends_with(is_of_name);
        (before.ends_with('.') || of_its_own) && is_called
            || !owner.is_empty() && before.ends_with(&of_type) && !after.starts_with(is_of_name)
    })
}

/// The items that a text names as those with an example: the links in a sentence that has the word.
fn pointers(text: &str, owner: &str, module: &str) -> Vec<String> {
    let mut items = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in paragraph.split(". ").filter(|sentence| sentence.contains("example")) {
            for link in sentence.split('[').skip(1) {
                let Some((label, rest)) = link.split_once(']') else { continue };
                let target = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
                let target = target.map_or(label.trim_matches('`'), |(target, _)| target);
                let parts: Vec<_> = target.split("::").collect();
                let is_type = |part: &str| part.starts_with(char::is_uppercase);
                items.push(match parts[..] {
                    ["Self"] => owner.to_owned(),
                    ["Self", function] => format!("{owner}::{function}"),
                    ["self"] => module.to_owned(),
                    [.., of, function] if is_type(of) => format!("{of}::{function}"),
                    [.., last] if is_type(last) => last.to_owned(),
                    [.., last] => format!("{last}::"),
                    [] => continue,
                });
            }
        }
    }
    items
}

fn is_excepted(item: &str) -> bool {
    WITHOUT.iter().any(|(without, _)| *without == item)
}

#[test]
fn each_function_has_an_example() {
    let pages = Pages::of_the_source();
    let own = Items::of_the_crate().own.iter();
    let functions: HashSet<_> =
        own.filter(|item| item.arguments().is_some()).map(|item| &item.name[..]).collect();
    assert!(functions.len() > 280, "{}", functions.len());
    let listed = functions.iter().filter(|function| !is_excepted(function));
    let mut missing: Vec<_> = listed.filter_map(|function| pages.missing(function)).collect();
    missing.sort();
    assert!(
        missing.is_empty(),
        "These functions have no example. Add a code block to the documentation of the function, \
         use it in a code block of its type or module, or add the sentence \"[`Item`] has an \
         example.\" with an item whose code block uses it:\n{}",
        missing.join("\n")
    );
}

#[test]
fn each_module_has_an_example() {
    let pages = Pages::of_the_source();
    let listed = pages.modules.iter().filter(|module| !is_excepted(module));
    let bare: Vec<_> = listed.filter_map(|module| pages.bare(module)).collect();
    assert!(bare.is_empty(), "Add a code block to the `//!` comment:\n{}", bare.join("\n"));
}

const THING: &str = r#"//! Text.

use x;

/// A type.
///
/// TYPE
pub struct Thing<'a>(&'a u8);

impl<'a, T: Into<u8>> Thing<'a> {
    /// Other.
    ///
    /// ```
    /// thing.used();
    /// ```
    pub fn other(&self) {}

    /// Does.
    ///
    /// FUNCTION
    #[doc(alias = "x")]
    pub const unsafe fn used(&self) {}
}
"#;

#[test]
fn what_has_no_example_is_found() {
    let missing = |module: &str, of_type: &str, of_function: &str| {
        let mut pages = Pages::new();
        let source = THING.replace("/// TYPE", of_type).replace("/// FUNCTION", of_function);
        pages.add("src/ext/thing.rs", &source);
        pages.add("src/ext/mod.rs", module);
        pages.missing("Thing::used")
    };
    let block = "/// ```\n/// Thing::new().used();\n/// ```";
    for (module, of_type, of_function) in [
        ("", "", block),
        ("", block, ""),
        ("//! ```\n//! Thing::used(1);\n//! ```", "", ""),
        ("", "", "/// [`other`](Self::other) has an example."),
        ("", "", "/// One call: [`x`]. [`Thing::other`] has an\n    /// example."),
        ("", block, "/// The [type](Self) has an example."),
    ] {
        assert_eq!(missing(module, of_type, of_function), None, "{of_type}{of_function}");
    }
    for (of_type, of_function, end) in [
        ("", "", "Thing::used"),
        // A link without the sentence, and a sentence whose item does not use the function.
        ("", "/// See [`other`](Self::other).", "Thing::used"),
        ("", "/// [`Thing`] has an example.", "(it names Thing, whose examples do not use it)"),
        // Other functions, a comment, and code that does not compile.
        ("/// ```\n/// thing.used_up();\n/// reused();\n/// ```", "", "Thing::used"),
        ("/// ```\n/// Other::used(1);\n/// ```", "", "Thing::used"),
        ("/// ```\n/// let x = 1; // thing.used()\n/// ```", "", "Thing::used"),
        ("/// ```compile_fail\n/// thing.used();\n/// ```", "", "Thing::used"),
        ("/// thing.used()", "", "Thing::used"),
    ] {
        let missing = missing("", of_type, of_function).expect("it has none");
        assert!(missing.starts_with("src/ext/thing.rs:") && missing.ends_with(end), "{missing}");
    }
    let mut pages = Pages::new();
    pages.add("src/green.rs", "//! Text.\n\nuse x;\n");
    pages.add("src/ipc/mod.rs", "//! Text.\n//!\n//! ```\n//! x();\n//! ```\n");
    assert_eq!(pages.bare("ipc"), None);
    assert_eq!(pages.bare("green"), Some("src/green.rs:1: the page of green".to_owned()));
    assert!(pages.bare("graph").is_some() && pages.missing("Nothing::new").is_some());
}
