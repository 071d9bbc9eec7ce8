//! Who does something: a stream, a node of a graph, a host function or a thread.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::op::{Call, ContextId, StreamId, StreamKind};

/// A stream as reports name it.
#[derive(Debug)]
pub(crate) struct StreamName {
    pub(crate) id: StreamId,
    name: String,
    /// The name that the program gave it later.
    given: RwLock<Option<Arc<str>>>,
    created: OnceLock<Arc<Call>>,
    pub(crate) context: ContextId,
    pub(crate) kind: StreamKind,
}

impl StreamName {
    pub(crate) fn new(id: StreamId, name: String, context: ContextId, kind: StreamKind) -> Self {
        let (given, created) = (RwLock::default(), OnceLock::new());
        Self { id, name, given, created, context, kind }
    }

    pub(crate) fn set_created(&self, call: &Arc<Call>) {
        let _ = self.created.set(call.clone());
    }

    pub(crate) fn set_given(&self, name: &str) {
        *self.given.write().unwrap_or_else(PoisonError::into_inner) = Some(name.into());
    }

    pub(crate) fn given(&self) -> Option<Arc<str>> {
        self.given.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The same stream, also if it got a name in between.
impl PartialEq for StreamName {
    fn eq(&self, other: &Self) -> bool {
        (self.id, &self.name, self.context) == (other.id, &other.name, other.context)
    }
}

/// `0x51`, `0x51 "copies"`.
impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.given() {
            // Reports are read line by line.
            Some(given) => write!(f, "{} {given:?}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Work,
    Node(usize),
    Function,
}

/// The place of an access: a stream, a node of a graph or a host function in a stream, or a thread
/// of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent(pub(crate) Who);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Who {
    Stream(Arc<StreamName>, Part),
    Thread(Arc<str>),
}

impl Agent {
    /// The stream of the access; `None` for an access of a thread.
    #[must_use]
    pub fn stream_id(&self) -> Option<StreamId> {
        self.stream().map(|stream| stream.id)
    }

    /// The name of the stream, if the program gave it one
    /// ([`Op::StreamName`](crate::Op::StreamName)).
    #[must_use]
    pub fn stream_name(&self) -> Option<Arc<str>> {
        self.stream().and_then(|stream| stream.given())
    }

    /// The call that created the stream. A default stream has none.
    #[must_use]
    pub fn stream_created(&self) -> Option<&Arc<Call>> {
        self.stream().and_then(|stream| stream.created.get())
    }

    pub(crate) fn stream(&self) -> Option<&Arc<StreamName>> {
        match &self.0 {
            Who::Stream(stream, _) => Some(stream),
            Who::Thread(_) => None,
        }
    }
}

/// `stream 0x51`, `node 2 of a graph in stream 0x51 "copies"`, `a host function in stream 0x51`,
/// `thread main`.
impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Who::Stream(stream, Part::Work) => write!(f, "stream {}", stream),
            Who::Stream(stream, Part::Node(index)) => {
                write!(f, "node {index} of a graph in stream {}", stream)
            }
            Who::Stream(stream, Part::Function) => {
                write!(f, "a host function in stream {}", stream)
            }
            Who::Thread(name) => write!(f, "thread {name}"),
        }
    }
}
