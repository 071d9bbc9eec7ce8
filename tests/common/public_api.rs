//! The public items of the crate, as docs/public-api.txt lists them: for the checks of pages and of
//! lists.

use std::collections::HashSet;
use std::sync::OnceLock;

use cuda_events::sys::ENTRY_POINTS;

/// The list, which `tools/public-api` makes of rustdoc's JSON.
pub const PUBLIC: &str = include_str!("../../docs/public-api.txt");

/// What users can name.
#[derive(Default)]
pub struct Items {
    /// `Type`, `function`, `Type::method`, `Type::CONSTANT`, `Enum::Variant`, `Struct::field`,
    /// `Type: Trait`.
    pub names: HashSet<String>,
    /// Those of them that are not a trait or a trait's method.
    pub own: Vec<Own>,
}

/// An item of the crate's own.
pub struct Own {
    pub name: String,
    /// The line of docs/public-api.txt, counted from 1, and what it says.
    pub at: usize,
    pub line: &'static str,
}

impl Own {
    /// The arguments of a function as they are declared, none for anything else.
    pub fn arguments(&self) -> Option<&'static str> {
        let (_, path) = self.line.split_once("fn cuda_events::")?;
        // The name may have generics before the arguments, and types in them have parentheses.
        let mut depth = 0;
        let start = path.find(|character| {
            depth += match character {
                '<' => 1,
                '>' => -1,
                _ => 0,
            };
            depth == 0 && character == '('
        })?;
        let end = path.find(") -> ").unwrap_or(path.len().checked_sub(1)?);
        path.get(start + 1..end)
    }
}

impl Items {
    pub fn of_the_crate() -> &'static Self {
        static ITEMS: OnceLock<Items> = OnceLock::new();
        ITEMS.get_or_init(Self::read)
    }

    fn read() -> Self {
        let mut items = Self::default();
        let modules: Vec<&str> =
            PUBLIC.lines().filter_map(|line| line.strip_prefix("pub mod ")).collect();
        let flags: HashSet<&str> = PUBLIC
            .lines()
            .filter_map(|line| line.strip_prefix("impl bitflags::traits::Flags for "))
            .collect();
        let is_flags = |owner: &str| flags.contains(owner);
        let mut in_trait = false;
        for (at, all) in PUBLIC.lines().enumerate() {
            let line = all;
            if let Some(header) = line.strip_prefix("impl").map(without_generics).map(str::trim) {
                in_trait = header.contains(" for ");
                if let Some((implemented, owner)) = header.split_once(" for ")
                    && let Some(owner) = item(owner, &modules)
                {
                    let (implemented, of) =
                        implemented.split_once('<').unwrap_or((implemented, ""));
                    let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
                    items.names.insert(format!("{owner}: {}", last(implemented)));
                    items.names.insert(format!("{owner}: {}<{}", last(implemented), last(of)));
                }
                continue;
            }
            let line = line
                .trim_start_matches("#[non_exhaustive] ")
                .trim_start_matches("#[repr(transparent)] ");
            let Some(declared) = line.strip_prefix("pub ") else { continue };
            let kinds = ["unsafe", "const", "fn", "struct", "enum", "type"];
            let is_constant = declared.starts_with("const cuda_events");
            in_trait &= !(declared.starts_with("struct ") || declared.starts_with("enum "));
            let path = declared.split(' ').find(|word| !kinds.contains(word)).unwrap_or_default();
            let Some(name) = item(path, &modules) else { continue };
            // What `bitflags!` adds has no row of its own.
            let added = name.contains("::")
                && !is_constant
                && path.rsplit_once("::").is_some_and(|(of, _)| is_flags(of));
            // A function of a module, or the field of an enum's variant.
            let parts = name.split("::").count();
            in_trait &= parts > 1;
            if !in_trait && parts < 3 && !added && !declared.starts_with("type ") {
                items.own.push(Own { name: name.clone(), at: at + 1, line: all });
            }
            items.names.insert(name);
        }
        items
    }

    pub fn has(&self, item: &str) -> bool {
        self.names.contains(item)
            || ENTRY_POINTS.iter().any(|entry| entry.function.name() == item || entry.base == item)
    }
}

/// The name of an item of the safe layer, without its modules, generics and arguments.
fn item(path: &str, modules: &[&str]) -> Option<String> {
    let path = path.trim_start_matches('&');
    let module = modules
        .iter()
        .filter(|module| path.starts_with(&format!("{module}::")))
        .max_by_key(|name| name.len())?;
    if *module == "cuda_events::sys" {
        return None;
    }
    let mut name = String::new();
    let mut depth = 0;
    for character in path[module.len() + 2..].chars() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' | ' ' | '{' if depth == 0 => break,
            _ if depth == 0 => name.push(character),
            _ => {}
        }
    }
    Some(name.trim_end_matches(':').to_owned())
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
