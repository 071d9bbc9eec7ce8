//! Findings as JSON, for programs that read them.

use std::fmt::{self, Write as _};

use crate::form::{Form, Place, Way, With};
use crate::op::{AccessKind, Call};
use crate::report::{Finding, Problem, Report, Side, Warning};

/// A JSON object that is written field by field.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    pub(crate) fn field(&mut self, name: &str, value: impl fmt::Display) -> &mut Self {
        let comma = if self.0.len() == 1 { "" } else { "," };
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
        self
    }

    pub(crate) fn text(&mut self, name: &str, text: impl fmt::Display) -> &mut Self {
        self.field(name, quoted(&text.to_string()))
    }

    pub(crate) fn end(&mut self) -> String {
        self.unfinished() + "}"
    }

    /// The text without its last brace: the caller adds further fields.
    pub(crate) fn unfinished(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for at in text.chars() {
        match at {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn call(call: &Call) -> Object {
    let mut object = Object::new();
    object.text("call", &call.name).field("number", call.number);
    if let Some(location) = &call.location {
        object.text("location", location);
    }
    if let Some(backtrace) = &call.backtrace {
        let text = backtrace.to_string();
        object.field("backtrace", list(text.lines().map(quoted)));
    }
    object
}

/// A place in the program.
fn place(place: &Place) -> String {
    let mut object = Object::new();
    if !place.function.is_empty() {
        object.text("function", &place.function);
    }
    if let Some((file, line)) = &place.source {
        object.text("file", file).field("line", line);
    }
    object.text("text", place).end()
}

fn side(side: &Side, way: &Way) -> String {
    let mut object = call(&side.call);
    if let Some(found) = &way.place {
        object.field("place", place(found));
        object.field("callers", list(way.callers.iter().map(place)));
    }
    if let Some(region) = &way.region {
        object.text("region", region);
    }
    let kind = match side.kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::AtomicRead => "atomic read",
        AccessKind::AtomicWrite => "atomic write",
        AccessKind::Wait => "wait",
        AccessKind::Allocate | AccessKind::Forget => "allocate",
        AccessKind::Free => "free",
    };
    object.text("access", kind).text("on", &side.agent).text("thread", &side.thread);
    if let Some(stream) = side.agent.stream_id() {
        object.text("stream", format_args!("{:#x}", stream.0));
    }
    if let Some(name) = side.agent.stream_name() {
        object.text("stream_name", name);
    }
    if let Some(created) = side.agent.stream_created() {
        object.field("stream_created", call(created).end());
    }
    object.end()
}

fn report(report: &Report, with: With<'_>) -> String {
    let form = Form::new(report);
    let [one, two] = &form.ways;
    let kind = match report.problem {
        Problem::Race => "race",
        Problem::UseAfterFree => "use_after_free",
        Problem::DestroyedWhileUsed => "destroyed_while_used",
        Problem::UseAfterDestroy => "use_after_destroy",
        Problem::RecordedWhileAwaited => "recorded_while_awaited",
    };
    let mut object = begin(with);
    object.text("severity", "error").text("kind", kind).text("head", form.head());
    object.field("first", side(&report.first, one)).field("second", side(&report.second, two));
    if !report.problem.is_of_an_object() {
        let ranges = report.shared.iter();
        let ranges = ranges.map(|at| format!("[\"{:#x}\",\"{:#x}\"]", at.start, at.end));
        object.field("bytes", list(ranges));
    }
    if let (Some(memory), Some(bytes)) = (&report.allocation, report.shared.first()) {
        let mut allocation = call(&memory.call);
        allocation.text("address", format_args!("{:#x}", memory.range.start));
        allocation.field("size", memory.range.end - memory.range.start);
        allocation.field("offset", bytes.start - memory.range.start);
        object.field("allocation", allocation.end());
    }
    object.text("order", &report.order).text("to_mend", form.to_mend());
    object.field("already", list(form.already().iter().map(|note| quoted(note))));
    object.text("certainty", with.word()).text("text", form.text(with)).end()
}

/// The class, if there is one.
fn begin(with: With<'_>) -> Object {
    let mut object = Object::new();
    if !with.class.is_empty() {
        object.text("class", with.class);
    }
    object
}

fn warning(warning: &Warning, with: With<'_>) -> String {
    let calls = warning.calls().into_iter().map(|made| call(made).end());
    let mut object = begin(with);
    object.text("severity", "warning").text("kind", warning.name());
    object.field("calls", list(calls)).text("text", warning).end()
}

impl Finding {
    /// The finding as a JSON object in one line.
    ///
    /// `severity` is `error` or `warning`, `kind` the kind of the problem, and `text` the text of
    /// the `Display`. An error has its `certainty`, `head`, the first line, and `first` and `second`:
    /// objects with the call, its number, the access, the place in the program and its callers, the
    /// stream with its name and the call that created it, the thread, and the location and the
    /// backtrace if they are known. It also has `bytes`, pairs of the first address and the one after
    /// the last, `allocation` with its call, address and size and the bytes' offset, `order`,
    /// `to_mend`, and `already`: what order there was. A warning has `calls`. Addresses and handles
    /// are text, such as `"0x7000"`.
    /// `finding.schema.json`, in the package, describes all of it.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.json(With::default())
    }

    pub(crate) fn json(&self, with: With<'_>) -> String {
        match self {
            Self::Report(found) => report(found, with),
            Self::Warning(found) => warning(found, with),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn text_is_escaped() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }
}
