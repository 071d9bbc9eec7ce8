//! The count of what is alive on a machine, for tests that look for leaks.

use core::fmt;

use crate::context;
use crate::external_semaphore;
use crate::front::hooks;
use crate::machine::{Machine, State};

/// The counts of objects that a program must release or destroy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Live {
    /// Retains of primary contexts that were not released.
    pub retains: usize,
    /// Contexts that were created and not destroyed. Primary contexts are counted by their retains.
    pub contexts: usize,
    /// Streams that were created and not destroyed. In a failed context the destruction returns the
    /// context's error; streams that the program tried to destroy there are not counted.
    pub streams: usize,
    /// Events that were created or imported, and not destroyed; counted like streams.
    pub events: usize,
    /// Slots of interprocess events that are in use.
    pub ipc_slots: usize,
    /// Captures that were begun and not ended.
    pub captures: usize,
    /// Graphs that were not destroyed.
    pub graphs: usize,
    /// Executable graphs that were not destroyed.
    pub graph_execs: usize,
    /// User objects that are still referenced.
    pub user_objects: usize,
    /// External semaphores that were imported and not destroyed; counted like streams.
    pub external_semaphores: usize,
    /// Allocations of device and host memory that were not freed. Memory that the program
    /// registered is not counted: it belongs to the program, and its registration ends with the
    /// context.
    pub allocations: usize,
    /// Streams, events, external semaphores and allocations that were destroyed only with their
    /// context, at its last release or its destruction: leaks that the end of the context hides.
    ///
    /// Objects that the program tried to destroy are not counted, if a [fault](crate::Fault)
    /// prevented that call or the context had failed. Objects that `cuDevicePrimaryCtxReset`
    /// destroys are not counted either, because that is its purpose. Memory that was exported to
    /// other processes, or opened from one, may end with its context, and is not counted.
    pub lost: usize,
}

impl Live {
    /// Returns whether all counts are zero.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.retains, "retain of a primary context", "retains of primary contexts"),
            (self.contexts, "context", "contexts"),
            (self.streams, "stream", "streams"),
            (self.events, "event", "events"),
            (self.ipc_slots, "interprocess slot", "interprocess slots"),
            (self.captures, "capture", "captures"),
            (self.graphs, "graph", "graphs"),
            (self.graph_execs, "executable graph", "executable graphs"),
            (self.user_objects, "user object", "user objects"),
            (self.external_semaphores, "external semaphore", "external semaphores"),
            (self.allocations, "piece of memory", "pieces of memory"),
            (
                self.lost,
                "object destroyed only with its context",
                "objects destroyed only with their context",
            ),
        ];
        let mut separator = "";
        for (count, one, many) in parts.into_iter().filter(|(count, ..)| *count > 0) {
            write!(f, "{separator}{count} {}", if count == 1 { one } else { many })?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}

/// The number of objects of each kind that a report lists.
const NAMED: usize = 8;

/// Counts what is alive.
pub(crate) fn count(state: &State) -> Live {
    Live {
        retains: context::live_retains(state),
        contexts: state
            .contexts
            .live(|index, _| context::is_live_created_context(state, index))
            .len(),
        streams: state.streams.live(|index, _| state.is_live_stream(index)).len(),
        events: state.events.live(|index, _| state.is_live_event(index)).len(),
        ipc_slots: context::live_ipc_slots(state),
        captures: state.captures.len(),
        graphs: state.graphs.live().len(),
        graph_execs: state.graphs.execs.len(),
        user_objects: state.engine.objects.len(),
        external_semaphores: state
            .semaphores
            .live(|index, _| external_semaphore::is_live_semaphore(state, index))
            .len(),
        allocations: state.memory.len(),
        lost: state.misuses.losses.count(),
    }
}

/// Counts and lists what is alive.
pub(crate) fn look(machine: &'static Machine) -> (Live, String) {
    let control = hooks::of(machine).control();
    let origin = |born: u64| match control.log.find(born) {
        Some(record) => format!(", made by {record}"),
        // Of memory it is not kept.
        None if born == 0 => String::new(),
        None => format!(", made by call {born}"),
    };
    let state = machine.lock();
    let live = count(&state);
    let mut text = String::new();
    let mut name = |kind: &str, handles: Vec<(u64, u64)>| {
        for (handle, born) in handles.iter().take(NAMED) {
            text.push_str(&format!("\n  {kind} {handle:#x}{}", origin(*born)));
        }
        if handles.len() > NAMED {
            text.push_str(&format!("\n  and {} more of that kind", handles.len() - NAMED));
        }
    };
    name(
        "context",
        state.contexts.live(|index, _| context::is_live_created_context(&state, index)),
    );
    name("stream", state.streams.live(|index, _| state.is_live_stream(index)));
    name("event", state.events.live(|index, _| state.is_live_event(index)));
    name("graph", state.graphs.live());
    name("executable graph", state.graphs.execs.live(|_, _| true));
    name(
        "external semaphore",
        state.semaphores.live(|index, _| external_semaphore::is_live_semaphore(&state, index)),
    );
    for (kind, what) in [
        ("stream", "lost stream"),
        ("event", "lost event"),
        ("external semaphore", "lost external semaphore"),
        ("piece of memory", "lost piece of memory"),
    ] {
        name(what, state.misuses.losses.of_kind(kind));
    }
    (live, text)
}
