//! Findings as JSON, for programs that read them.

use std::fmt::{self, Write as _};

use crate::op::{AccessKind, Call};
use crate::report::{Finding, Problem, Report, Side, Warning};

/// A JSON object that is written field by field.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn field(&mut self, name: &str, value: impl fmt::Display) -> &mut Self {
        let comma = if self.0.len() == 1 { "" } else { "," };
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
        self
    }

    fn text(&mut self, name: &str, text: impl fmt::Display) -> &mut Self {
        self.field(name, quoted(&text.to_string()))
    }

    fn end(&mut self) -> String {
        std::mem::take(&mut self.0) + "}"
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

fn list(items: impl Iterator<Item = String>) -> String {
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

fn side(side: &Side) -> String {
    let mut object = call(&side.call);
    let kind = match side.kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::AtomicRead => "atomic read",
        AccessKind::AtomicWrite => "atomic write",
        AccessKind::Wait => "wait",
        AccessKind::Allocate => "allocate",
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

fn report(report: &Report) -> String {
    let kind = match report.problem {
        Problem::Race => "race",
        Problem::UseAfterFree => "use_after_free",
        Problem::DestroyedWhileUsed => "destroyed_while_used",
        Problem::UseAfterDestroy => "use_after_destroy",
        Problem::RecordedWhileAwaited => "recorded_while_awaited",
    };
    let mut object = Object::new();
    object.text("severity", "error").text("kind", kind);
    object.field("first", side(&report.first)).field("second", side(&report.second));
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
    object.text("order", &report.order).text("missing", &report.missing).text("text", report).end()
}

fn warning(warning: &Warning) -> String {
    let calls = warning.calls().into_iter().map(|made| call(made).end());
    let mut object = Object::new();
    object.text("severity", "warning").text("kind", warning.name());
    object.field("calls", list(calls)).text("text", warning).end()
}

impl Finding {
    /// The finding as a JSON object in one line.
    ///
    /// `severity` is `error` or `warning`, `kind` the kind of the problem, and `text` the text of
    /// the `Display`. An error has `first` and `second`: objects with the call, its number, the
    /// access, the stream with its name and the call that created it, the thread, and the location
    /// and the backtrace if they are known. It also has `bytes`, pairs of the first address and the
    /// one after the last, `allocation` with its call, address and size and the bytes' offset,
    /// `order` and `missing`. A warning has `calls`. Addresses and handles are text, such as `"0x7000"`.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::Report(found) => report(found),
            Self::Warning(found) => warning(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(quoted("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }
}
