//! What reports and warnings say, and what is reported once.

mod once;
mod order;
mod texts;
mod warnings;

use crate::common::Do;
use cuda_order_check_engine::{
    Access, Call, Checker, ContextId, Finding, Op, Options, StreamId, StreamKind, ThreadId,
};

/// Operations of thread 1, each with its name and number.
struct Program {
    checker: Checker,
    number: u64,
}

impl Program {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let mut checker = Checker::new(options);
        // Without a name, so reports do not name it.
        let main = Call::new("", 0, ThreadId(1));
        checker.apply(main.clone(), Op::ThreadName { thread: ThreadId(1), name: "main" });
        let create = |stream, kind, name| Op::StreamCreate {
            stream,
            context: ContextId(0),
            kind,
            name: Some(name),
        };
        checker.apply(main.clone(), create(StreamId(1), StreamKind::NonBlocking, "copies"));
        checker.apply(main.clone(), create(StreamId(2), StreamKind::Blocking, "work"));
        checker.apply(main, create(StreamId(9), StreamKind::Legacy, "default"));
        Self { checker, number: 0 }
    }

    fn apply(&mut self, name: &'static str, does: Do) -> &mut Self {
        self.number += 1;
        self.checker.apply(Call::new(name, self.number, ThreadId(1)), does.op());
        self
    }

    fn findings(&mut self) -> Vec<String> {
        self.checker.take_findings().iter().map(text).collect()
    }
}

/// The text of a finding, and a line with the order that there is.
fn text(found: &Finding) -> String {
    let order = found.report().map(|report| format!("\n  order    {}", report.order));
    format!("{found}{}", order.unwrap_or_default())
}

fn write(stream: u64) -> Do {
    Do::Work(stream, vec![Access::write(0x1000, 64)])
}

fn read(stream: u64) -> Do {
    Do::Work(stream, vec![Access::read(0x1000, 64)])
}

/// The line of a report that begins with `word`.
fn line(text: &str, word: &str) -> String {
    let found = text.lines().find_map(|line| line.trim_start().strip_prefix(word));
    found.unwrap_or_else(|| panic!("no line {word} in {text}")).trim().to_owned()
}
