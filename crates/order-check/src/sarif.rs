//! Findings in the format of code review tools: SARIF 2.1.0.

use std::io::{self, Write};

use crate::files;
use crate::form::{Form, Place, With};
use crate::json::{Object, list};
use crate::op::Call;
use crate::report::Finding;

/// The schema of the format.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The most results of a file, as all of it is written for each.
const MAX: usize = 200;

/// The rules of findings without a class, each with a sentence about it.
const MISSING_ORDER: (&str, &str) =
    ("missing-order", "two accesses to the same bytes, or to an object, that nothing orders");
const WARNING: (&str, &str) = ("warning", "a call that may not do what it was written for");

/// A file that is whole after each finding. It is open only while it is written, as the program may
/// close all descriptors.
#[derive(Debug)]
pub(crate) struct Sarif {
    path: String,
    /// The rules of all findings, as JSON.
    rules: String,
    results: Vec<Finished>,
}

/// A result, but for how often it came, and whether it is an error.
#[derive(Debug)]
struct Finished(String, bool);

impl Sarif {
    pub(crate) fn new(path: &str, classes: &[(&str, &str)]) -> io::Result<Self> {
        let path = path.replace("%p", &std::process::id().to_string());
        let rule = |(id, about): &(&str, &str)| {
            Object::new().text("id", id).field("shortDescription", message(about)).end()
        };
        let rules = list(classes.iter().chain(&[MISSING_ORDER, WARNING]).map(rule));
        let new = Self { path, rules, results: Vec::new() };
        new.write(&[])?;
        Ok(new)
    }

    /// If the file cannot be written any more, it is left as it is.
    pub(crate) fn add(&mut self, finding: &Finding, with: With<'_>) {
        if self.results.len() < MAX {
            let result = result(finding, with).unfinished();
            self.results.push(Finished(result, finding.report().is_some()));
            let _ = self.write(&[]);
        }
    }

    /// `times` has how often each error was found.
    pub(crate) fn write(&self, times: &[u64]) -> io::Result<()> {
        let mut times = times.iter();
        let results = self.results.iter().map(|Finished(result, is_error)| {
            match is_error.then(|| times.next()).flatten() {
                Some(times) => format!("{result},\"occurrenceCount\":{times}}}"),
                None => format!("{result}}}"),
            }
        });
        let mut driver = Object::new();
        driver.text("name", "cuda-order-check").text("version", env!("CARGO_PKG_VERSION"));
        driver.field("rules", &self.rules);
        let (mut tool, mut run, mut file) = (Object::new(), Object::new(), Object::new());
        tool.field("driver", driver.end());
        run.field("tool", tool.end()).field("results", list(results));
        file.text("$schema", SCHEMA).text("version", "2.1.0");
        file.field("runs", list([run.end()].into_iter()));
        files::anew(&self.path)?.write_all((file.end() + "\n").as_bytes())
    }
}

fn message(text: &str) -> String {
    Object::new().text("text", text).end()
}

/// A place with a line in a file.
fn location(place: &Place, text: &str) -> Option<String> {
    let (file, line) = place.source.as_ref()?;
    let (mut artifact, mut region) = (Object::new(), Object::new());
    artifact.text("uri", uri(file));
    region.field("startLine", (*line).max(1));
    let (mut physical, mut location) = (Object::new(), Object::new());
    physical.field("artifactLocation", artifact.end()).field("region", region.end());
    location.field("physicalLocation", physical.end()).field("message", message(text));
    Some(location.end())
}

/// Relative to the current folder if the file is in it, as code review tools need it.
fn uri(file: &str) -> String {
    let folder = std::env::current_dir().ok();
    let inside =
        folder.as_ref().and_then(|folder| file.strip_prefix(folder.to_str()?)?.strip_prefix('/'));
    let path = inside.or_else(|| file.strip_prefix("./")).unwrap_or(file);
    let mut uri = if path.starts_with('/') { "file://" } else { "" }.to_owned();
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

fn result(finding: &Finding, with: With<'_>) -> Object {
    let mut result = Object::new();
    let Finding::Report(report) = finding else {
        let text = finding.text(With::default());
        let text = text.trim_start_matches("warning: ");
        let calls = finding.calls();
        let at = |call: &&std::sync::Arc<Call>| crate::form::way(call).place;
        let place = calls.iter().rev().find_map(at);
        let locations = place.iter().filter_map(|place| location(place, text));
        result.text("ruleId", if with.class.is_empty() { WARNING.0 } else { with.class });
        result.text("level", "warning").field("message", message(text));
        result.field("locations", list(locations));
        return result;
    };
    let form = Form::new(report);
    let [one, two] = &form.ways;
    let does = |index: usize| format!("{} here", form.verb_of(index));
    let at = |way: &crate::form::Way, index| {
        way.place.as_ref().and_then(|place| location(place, &does(index)))
    };
    // The later of the two is where the wait is missing.
    let (first, second) = (at(one, 0), at(two, 1));
    let notes = form.already();
    let text: Vec<String> = [form.head(), format!("To mend: {}", form.to_mend())]
        .into_iter()
        .chain(notes)
        .map(|line| line + ".")
        .collect();
    result.text("ruleId", if with.class.is_empty() { MISSING_ORDER.0 } else { with.class });
    result.text("level", "error").field("message", message(&text.join(" ")));
    let main = second.or(first.clone());
    result.field("locations", list(main.into_iter()));
    result.field("relatedLocations", list(first.into_iter()));
    let mut bag = Object::new();
    result.field("properties", bag.text("certainty", with.word()).end());
    result
}

#[cfg(test)]
mod tests {
    use super::{Finished, Sarif, uri};

    #[test]
    fn errors_have_counts_and_warnings_none() {
        let path = std::env::temp_dir().join(format!("counts-{}.sarif", std::process::id()));
        let mut sarif = Sarif::new(path.to_str().expect("it is text"), &[]).expect("it is written");
        let level = ["warning", "error", "warning", "error"];
        let result = |level| Finished(format!("{{\"level\":\"{level}\""), level == "error");
        sarif.results = level.map(result).into();
        sarif.write(&[7, 8]).expect("it is written");
        let text = std::fs::read_to_string(&path).expect("it is there");
        let _ = std::fs::remove_file(&path);
        let (_, results) = text.split_once("\"results\":").expect("it has results");
        let warning = "{\"level\":\"warning\"}";
        let error = |times| format!("{{\"level\":\"error\",\"occurrenceCount\":{times}}}");
        let all = format!("[{warning},{},{warning},{}]", error(7), error(8));
        assert!(results.starts_with(&all), "{results}");
    }

    #[test]
    fn a_path_is_a_uri() {
        assert_eq!(uri("./a b/c#.py"), "a%20b/c%23.py");
        assert_eq!(uri("/a/ü.py"), "file:///a/%C3%BC.py");
        let here = std::env::current_dir().expect("it is there");
        assert_eq!(uri(&format!("{}/src/a.rs", here.display())), "src/a.rs");
    }
}
