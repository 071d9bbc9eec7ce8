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

fn call(of: &Call) -> Object {
    let mut object = Object::new();
    object.text("call", &of.name).field("number", of.number);
    if let Some(location) = &of.location {
        object.text("location", location);
    }
    if let Some(backtrace) = &of.backtrace {
        let text = backtrace.to_string();
        object.field("backtrace", list(text.lines().map(quoted)));
    }
    object
}

fn side(of: &Side) -> String {
    let mut object = call(&of.call);
    let kind = match of.kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::AtomicRead => "atomic read",
        AccessKind::AtomicWrite => "atomic write",
        AccessKind::Wait => "wait",
        AccessKind::Allocate => "allocate",
        AccessKind::Free => "free",
    };
    object.text("access", kind).text("on", &of.agent).text("thread", &of.thread);
    if let Some(stream) = of.agent.stream_id() {
        object.text("stream", format_args!("{:#x}", stream.0));
    }
    if let Some(name) = of.agent.stream_name() {
        object.text("stream_name", name);
    }
    if let Some(created) = of.agent.stream_created() {
        object.field("stream_created", call(created).end());
    }
    object.end()
}

fn report(of: &Report) -> String {
    let kind = match of.problem {
        Problem::Race => "race",
        Problem::UseAfterFree => "use_after_free",
        Problem::DestroyedWhileUsed => "destroyed_while_used",
        Problem::UseAfterDestroy => "use_after_destroy",
        Problem::RecordedWhileAwaited => "recorded_while_awaited",
    };
    let mut object = Object::new();
    object.text("severity", "error").text("kind", kind);
    object.field("first", side(&of.first)).field("second", side(&of.second));
    if !of.problem.is_of_an_object() {
        let ranges = of.shared.iter();
        let ranges = ranges.map(|at| format!("[\"{:#x}\",\"{:#x}\"]", at.start, at.end));
        object.field("bytes", list(ranges));
    }
    if let (Some(of), Some(bytes)) = (&of.allocation, of.shared.first()) {
        let mut allocation = call(&of.call);
        allocation.text("address", format_args!("{:#x}", of.range.start));
        allocation.field("size", of.range.end - of.range.start);
        allocation.field("offset", bytes.start - of.range.start);
        object.field("allocation", allocation.end());
    }
    object.text("order", &of.order).text("missing", &of.missing).text("text", of).end()
}

fn warning(of: &Warning) -> String {
    let calls = of.calls().into_iter().map(|of| call(of).end());
    let mut object = Object::new();
    object.text("severity", "warning").text("kind", of.name());
    object.field("calls", list(calls)).text("text", of).end()
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
            Self::Report(of) => report(of),
            Self::Warning(of) => warning(of),
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
