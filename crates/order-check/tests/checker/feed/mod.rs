//! The feed without a driver: what it adds to the checker's operations.

mod events;
mod graphs;
mod host;
mod reports;

use cuda_order_check_engine::feed::{Feed, Memory, Observer};
use cuda_order_check_engine::{EventId, Finding, Options, StreamId, ThreadId};

/// The thread that makes the calls, and what was found.
struct Caller {
    thread: ThreadId,
    findings: Vec<Finding>,
    /// Their texts, each as it was when it was found.
    text: String,
}

impl Default for Caller {
    fn default() -> Self {
        Self { thread: ThreadId(1), findings: Vec::new(), text: String::new() }
    }
}

impl Observer for Caller {
    fn thread(&self) -> ThreadId {
        self.thread
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        thread.0.to_string()
    }

    fn finding(&mut self, finding: Finding) {
        self.text += &finding.to_string();
        self.findings.push(finding);
    }
}

const A: StreamId = StreamId(0xa);
const B: StreamId = StreamId(0xb);
const EVENT: EventId = EventId(0xe);
const DEVICE: u64 = 0x7000;
const PINNED: u64 = 0x9000;

/// How many findings a program has: its calls, with device memory and a pinned page.
fn findings(calls: impl FnOnce(&mut Feed<Caller>)) -> usize {
    let mut feed = Feed::new(Options::default(), Caller::default());
    feed.begin("calls", 1, None);
    feed.allocate(DEVICE, 4096, Memory::Device);
    feed.allocate(PINNED, 4096, Memory::Host);
    feed.event_create(EVENT, false);
    calls(&mut feed);
    feed.observer().findings.len()
}
