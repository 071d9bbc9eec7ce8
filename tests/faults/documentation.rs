//! What the documentation of the sources must keep to.

use std::collections::BTreeSet;

use cuda_events::sys::{ENTRY_POINTS, EntryPoint, Version};

use super::sources::{ROOT, all};

/// The calls that documentation names without making the first mention a link, each with its line.
fn without_a_link(text: &str) -> Vec<(usize, &str)> {
    let known: BTreeSet<&str> =
        ENTRY_POINTS.iter().flat_map(|entry| [entry.function.name(), entry.base]).collect();
    let mut without = Vec::new();
    let mut seen = BTreeSet::new();
    let mut in_example = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            // The next lines are those of another item.
            seen.clear();
            in_example = false;
            continue;
        };
        in_example ^= line.trim_start().starts_with("```");
        if in_example {
            continue;
        }
        let parts: Vec<&str> = line.split('`').collect();
        for around in parts.windows(3).step_by(2) {
            let [before, name, after] = around else { continue };
            let is_link = before.ends_with('[') && after.starts_with(']');
            if known.contains(name) && seen.insert(*name) && !is_link {
                without.push((index + 1, *name));
            }
        }
    }
    without
}

/// The link leads to `sys::Function`, which has the address of NVIDIA's page. That each name leads
/// there is seen when the documentation is built.
#[test]
fn a_call_in_documentation_is_a_link() {
    let raw = [
        ("lib", ROOT),
        ("sys/mod", include_str!("../../src/sys/mod.rs")),
        ("sys/symbols", include_str!("../../src/sys/symbols.rs")),
    ];
    let mut wrong = Vec::new();
    let mut links = 0;
    for (file, text) in all().chain(raw) {
        links += text.matches("[`cu").count();
        wrong.extend(without_a_link(text).into_iter().map(|(line, name)| {
            format!("src/{file}.rs:{line}: write [`{name}`], with `crate::sys::calls::*` imported")
        }));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(links > 200, "{links} links were found");
}

#[test]
fn a_call_without_a_link_is_found() {
    for (text, wrong) in [
        ("/// One driver call: [`cuEventRecord`].", None),
        ("/// [`cuEventRecord`](Function::cuEventRecord), and `cuEventRecord` again.", None),
        ("/// ```\n/// // `cuEventRecord`\n/// ```", None),
        ("// The driver's `cuEventRecord`.", None),
        ("/// `cuEventNothing` is no entry point.", None),
        ("/// One driver call: `cuEventRecord`.", Some((1, "cuEventRecord"))),
        ("/// [`cuEventQuery`] and `cuEventDestroy`.", Some((1, "cuEventDestroy"))),
        ("//! Text.\n//! `cuEventDestroy_v2`", Some((2, "cuEventDestroy_v2"))),
        ("/// ```\n/// ```\n/// `cuInit`", Some((3, "cuInit"))),
        ("/// [`cuInit`]\nfn one() {}\n    /// `cuInit`", Some((3, "cuInit"))),
    ] {
        assert_eq!(without_a_link(text), Vec::from_iter(wrong), "{text}");
    }
}

/// The calls that a public function's documentation names as its driver calls without the CUDA
/// version that introduced them, each with the function's line. Every driver has those of 11.0.
fn without_a_version(text: &str) -> Vec<(usize, &'static EntryPoint)> {
    let mut without = Vec::new();
    let mut documentation = String::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(line) = line.strip_prefix("///") {
            documentation.push_str(line);
        } else if !line.starts_with("#[") {
            let calls = documentation.split_once("river call").filter(|_| {
                line.starts_with("pub ") && line.split('(').any(|part| part.contains("fn "))
            });
            for entry in ENTRY_POINTS.iter().filter(|entry| entry.version > Version::new(11, 0)) {
                let name = entry.function.name();
                let is_named = |(_, calls): (&str, &str)| calls.contains(&format!("[`{name}`]"));
                if calls.is_some_and(is_named)
                    && !documentation.contains(&entry.version.to_string())
                {
                    without.push((index + 1, entry));
                }
            }
            documentation.clear();
        }
    }
    without
}

#[test]
fn a_newer_call_is_documented_with_its_version() {
    let mut wrong = Vec::new();
    for (file, text) in all() {
        wrong.extend(without_a_version(text).into_iter().map(|(line, entry)| {
            format!("src/{file}.rs:{line}: {} needs CUDA {}", entry.function, entry.version)
        }));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let named =
        |text: &str| without_a_version(text).first().map(|(_, entry)| entry.function.name());
    let one = "/// One driver call: [`cuStreamGetId`].\n#[inline]\npub fn id(&self) {}";
    assert_eq!(named(one), Some("cuStreamGetId"));
    assert_eq!(named(&one.replace("].", "] (CUDA 12.0).")), None);
    assert_eq!(named(&one.replace("cuStreamGetId", "cuStreamQuery")), None);
    assert_eq!(named(&one.replace("pub fn", "fn")), None);
}

/// The names that an example's hidden lines define for its visible ones, each with its line. The
/// driver is that of the page of the crate; a visible comment may explain another name.
fn hidden_names(text: &str) -> Vec<(usize, String)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut used = Vec::new();
    let mut example: Option<(bool, Vec<(usize, &str)>)> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let line = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(line) = line.map(str::trim_start) else {
            example = None;
            continue;
        };
        let Some(kind) = line.strip_prefix("```") else {
            if let Some((_, lines)) = &mut example {
                lines.push((index + 1, line));
            }
            continue;
        };
        let Some((runs, lines)) = example.take() else {
            example = Some((!kind.starts_with("compile_fail"), Vec::new()));
            continue;
        };
        for (at, &(number, hidden)) in lines.iter().enumerate().filter(|_| runs) {
            let Some(hidden) = hidden.strip_prefix("# ") else { continue };
            let defined = match hidden.split_once(' ') {
                Some(("let", rest)) => rest.split('=').next().unwrap_or(rest),
                Some(("fn", rest)) => rest.split(['(', '<']).next().unwrap_or(rest),
                Some(("use", rest)) => rest,
                _ => continue,
            };
            for name in defined.split(|c| !is_word(c)).filter(|name| name.len() > 1) {
                let visible =
                    || lines.iter().map(|(_, line)| *line).filter(|line| !line.starts_with("# "));
                let explained = visible()
                    .any(|line| line.starts_with("//") && line.contains(&format!("`{name}`")));
                let later = lines.iter().skip(at).map(|(_, line)| *line);
                let needed = later
                    .filter(|line| !line.starts_with("# ") && !line.starts_with("//"))
                    .any(|line| line.split(|c| !is_word(c)).any(|word| word == name));
                let given = ["driver", "cuda_events", "std"].contains(&name);
                if needed && !explained && !given {
                    used.push((number, name.to_owned()));
                }
            }
        }
    }
    used
}

#[test]
fn an_example_shows_its_setup() {
    let mut wrong = Vec::new();
    for (file, text) in all().chain([("lib", ROOT)]) {
        wrong.extend(hidden_names(text).into_iter().map(|(line, name)| {
            format!("src/{file}.rs:{line}: the hidden line defines {name} for visible lines")
        }));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let found = |text: &str| -> Vec<String> {
        hidden_names(text).into_iter().map(|(line, name)| format!("{line} {name}")).collect()
    };
    assert_eq!(found("/// ```\n/// # let a1 = 1;\n/// f(a1);\n/// ```"), ["2 a1"]);
    assert_eq!(found("/// ```\n/// # let (mut a1, b) = g();\n/// f(a1);\n/// ```"), ["2 a1"]);
    assert_eq!(found("/// ```\n/// # use a::Event;\n/// Event::new();\n/// ```"), ["2 Event"]);
    assert_eq!(found("/// ```\n/// # fn ff() {}\n/// ff();\n/// ```"), ["2 ff"]);
    for text in [
        "/// ```\n/// # let driver = 1;\n/// f(driver);\n/// ```",
        "/// ```\n/// let a1 = 1;\n/// # let a1 = 2;\n/// ```",
        "/// ```\n/// # let a1 = 1;\n/// // `a1` is given.\n/// f(a1);\n/// ```",
        "/// ```compile_fail\n/// # let a1 = 1;\n/// f(a1);\n/// ```",
    ] {
        assert!(found(text).is_empty(), "{text}");
    }
}
