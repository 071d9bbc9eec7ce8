//! The stream captures under way: their streams, their graph, and the marks of events in them.

use std::collections::BTreeMap;

/// The id of a capture, which nothing else of the machine has.
pub(crate) type CaptureKey = u64;

/// Where in a capture an event was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) capture: CaptureKey,
    pub(crate) nodes: Vec<u32>,
}

/// A capture under way.
pub(crate) struct Capture {
    /// The stream that it began in.
    pub(crate) origin: u32,
    pub(crate) mode: u32,
    pub(crate) thread: u32,
    pub(crate) context: u32,
    pub(crate) graph: u32,
    pub(crate) invalid: bool,
    /// All its streams, with the nodes that their next work depends on.
    pub(crate) streams: BTreeMap<u32, Vec<u32>>,
    /// The nodes that joined streams ended with which were destroyed since: they have to be joined
    /// all the same.
    pub(crate) left: Vec<u32>,
}

/// The captures under way.
pub(crate) struct Captures {
    pub(crate) active: BTreeMap<CaptureKey, Capture>,
    pub(crate) last: CaptureKey,
}

impl Captures {
    pub(crate) const fn new() -> Self {
        Self { active: BTreeMap::new(), last: 0 }
    }

    /// Whether a capture into a graph is under way.
    pub(crate) fn has_graph(&self, graph: u32) -> bool {
        self.active.values().any(|capture| capture.graph == graph)
    }

    pub(crate) fn invalidate(&mut self, key: CaptureKey) {
        if let Some(capture) = self.active.get_mut(&key) {
            capture.invalid = true;
        }
    }
}
