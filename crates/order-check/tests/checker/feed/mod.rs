//! The feed without a driver: what it adds to the checker's operations.

mod events;
mod graphs;
mod host;
mod reports;

use cuda_order_check_engine::feed::{Feed, Memory, Observer};
use cuda_order_check_engine::{EventId, Finding, Options, StreamId, ThreadId};

/// How many findings there were, and their texts.
#[derive(Default)]
struct Count(usize, String);

impl Observer for Count {
    fn thread(&self) -> ThreadId {
        ThreadId(1)
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        thread.0.to_string()
    }

    fn finding(&mut self, finding: Finding) {
        self.0 += 1;
        self.1 += &finding.to_string();
    }
}

const A: StreamId = StreamId(0xa);
const B: StreamId = StreamId(0xb);
const EVENT: EventId = EventId(0xe);
const DEVICE: u64 = 0x7000;
const PINNED: u64 = 0x9000;

/// How many findings a program has: its calls, with device memory and a pinned page.
fn findings(calls: impl FnOnce(&mut Feed<Count>)) -> usize {
    let mut feed = Feed::new(Options::default(), Count::default());
    feed.begin("calls", 1, None);
    feed.allocate(DEVICE, 4096, Memory::Device);
    feed.allocate(PINNED, 4096, Memory::Host);
    feed.event_create(EVENT, false);
    calls(&mut feed);
    feed.observer().0
}
