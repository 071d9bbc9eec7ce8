//! Executable graphs.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::replace;
use core::ptr::null_mut;
use std::sync::Arc;

use super::Graph;
use super::kept::{Events, settle};
use super::node::GraphNode;
use crate::context::Context;
use crate::driver::call::{Entry, ask, call, entry};
use crate::error::{Error, Result};
use crate::event::{Event, EventFlags};
use crate::stream::StreamRef;
use crate::sys::{CUevent, CUgraphExec, CUgraphNode, CUresult};

/// An executable graph, made by [`Graph::instantiate`]. Dropping it destroys it; a launch that is
/// under way runs to its end.
///
/// It keeps the events that its nodes refer to alive; the graph that it was made of may be dropped.
///
/// The driver does not allow two threads in one executable graph: it may be sent to another thread,
/// but not shared.
///
/// Drop ignores what the driver returns, and does nothing in a forked child; [`close`](Self::close)
/// reports.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Event, EventFlags};
/// use cuda_events::graph::Graph;
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// # let one = Event::new(&context, EventFlags::empty())?;
/// # let another = Event::new(&context, EventFlags::empty())?;
/// # let (one, another) = (Arc::new(one), Arc::new(another));
///
/// let mut graph = Graph::new(&context)?;
/// let node = graph.add_event_record_node(&[], &one)?;
/// let mut exec = graph.instantiate()?;
/// exec.launch(&stream)?; // records `one`
/// exec.set_record_node_event(&graph, node, &another)?;
/// exec.launch(&stream)?; // records `another`
/// another.synchronize()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct GraphExec {
    /// NULL once it is destroyed.
    raw: CUgraphExec,
    context: Context,
    /// The graph that it was made of.
    graph: u64,
    kept: Events,
    /// Whether an event among these is an interprocess event.
    interprocess: bool,
    _not_sync: PhantomData<Cell<()>>,
}

// SAFETY: as for `Graph`.
#[allow(unsafe_code)]
unsafe impl Send for GraphExec {}

#[allow(unsafe_code)]
impl Graph {
    /// Makes an executable graph of it, in the graph's context. The graph itself can be changed and
    /// used again.
    ///
    /// It asks `cuGraphInstantiateWithFlags` (CUDA 11.4), on older drivers `cuGraphInstantiate`.
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] for an interprocess event of another context; what the driver
    /// answers; [`Error::ForkedChild`].
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cuGraphInstantiateWithFlags")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        match entry!(self.driver(), cuGraphInstantiateWithFlags?) {
            // SAFETY: a place for the handle; the graph is alive and used by this thread alone, and
            // so are the events that it refers to; the context is current.
            Ok(newest) => self.instantiate_by(newest, |instantiate, exec| unsafe {
                instantiate(exec, self.raw, 0)
            }),
            Err(_) => {
                let older = entry!(self.driver(), cuGraphInstantiate_v2?)?;
                let mut failed = null_mut();
                // SAFETY: as above; a place for the node that could not be instantiated, and none
                // for a text.
                self.instantiate_by(older, |instantiate, exec| unsafe {
                    instantiate(exec, self.raw, &mut failed, null_mut(), 0)
                })
            }
        }
    }

    /// Makes it by a call that is given a place for the handle.
    fn instantiate_by<F: Copy>(
        &self,
        entry: Entry<F>,
        instantiate: impl FnOnce(F, *mut CUgraphExec) -> CUresult,
    ) -> Result<GraphExec> {
        // Before the lock of what is kept, which a thread of the parent may hold for ever.
        self.driver().check_fork(entry.function)?;
        let kept = self.kept.all();
        for event in kept.iter() {
            event.check_wait(entry.function, &self.context)?;
        }
        self.context.with_current(|ready| {
            let mut raw = null_mut();
            entry.ask(ready, |pointer| instantiate(pointer, &mut raw))?.check()?;
            // In the closure, so that it is dropped when the caller's context cannot be restored.
            Ok(GraphExec::new(self, raw, kept))
        })
    }
}

#[allow(unsafe_code)]
impl GraphExec {
    fn new(graph: &Graph, raw: CUgraphExec, kept: Events) -> Self {
        let interprocess =
            kept.iter().any(|event| event.flags().contains(EventFlags::INTERPROCESS));
        let context = graph.context.clone();
        Self { raw, context, graph: graph.kept.graph(), kept, interprocess, _not_sync: PhantomData }
    }

    /// Puts the graph's work into the stream, behind what is there. It is one driver call,
    /// `cuGraphLaunch`.
    ///
    /// Launches of one executable graph run one after another, also in different streams.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` in a capturing stream, whose capture that
    /// invalidates; [`Error::ContextMismatch`] for an interprocess event in the graph and a stream
    /// of another context; what the driver returns, among it errors of work that was launched
    /// before; [`Error::ForkedChild`].
    #[doc(alias = "cuGraphLaunch")]
    #[doc(alias = "replay")]
    pub fn launch(&self, stream: &StreamRef) -> Result<()> {
        // Of the stream's table, which says what NULL means.
        let launch = entry!(stream, cuGraphLaunch);
        if self.interprocess {
            for event in self.kept.iter() {
                event.check_wait(launch.function, stream.context())?;
            }
        }
        let driver = self.context.driver();
        // SAFETY: the executable graph is alive and used by this thread alone, the stream alive as
        // long as its reference.
        launch
            .ask(stream.with(&driver), |launch| unsafe { launch(self.raw, stream.as_raw()) })?
            .check()
    }

    /// Lets a record node of the graph that this was made of record another event, from the next
    /// launch on. CUDA 11.1.
    ///
    /// One driver call: `cuGraphExecEventRecordNodeSetEvent`.
    ///
    /// # Errors
    ///
    /// [`Error::GraphMismatch`] when the node is not of `graph`, or this was not made of `graph`;
    /// `CUDA_ERROR_INVALID_VALUE` for a node of another kind, or one that was added later;
    /// [`Error::ContextMismatch`] for an interprocess event of another context;
    /// [`Error::Unsupported`]; [`Error::ForkedChild`].
    #[doc(alias = "cuGraphExecEventRecordNodeSetEvent")]
    #[doc(alias = "update")]
    pub fn set_record_node_event(
        &mut self,
        graph: &Graph,
        node: GraphNode,
        event: &Arc<Event>,
    ) -> Result<()> {
        self.set(
            entry!(self.context.driver(), cuGraphExecEventRecordNodeSetEvent?)?,
            graph,
            node,
            event,
        )
    }

    /// Lets a wait node of the graph that this was made of wait for another event, from the next
    /// launch on. CUDA 11.1.
    ///
    /// One driver call: `cuGraphExecEventWaitNodeSetEvent`.
    ///
    /// # Errors
    ///
    /// As [`set_record_node_event`](Self::set_record_node_event).
    #[doc(alias = "cuGraphExecEventWaitNodeSetEvent")]
    #[doc(alias = "update")]
    pub fn set_wait_node_event(
        &mut self,
        graph: &Graph,
        node: GraphNode,
        event: &Arc<Event>,
    ) -> Result<()> {
        self.set(
            entry!(self.context.driver(), cuGraphExecEventWaitNodeSetEvent?)?,
            graph,
            node,
            event,
        )
    }

    fn set(
        &mut self,
        set: Entry<SetExecEvent>,
        graph: &Graph,
        node: GraphNode,
        event: &Arc<Event>,
    ) -> Result<()> {
        let driver = self.context.driver();
        let function = set.function;
        driver.check_same(graph.driver(), function)?;
        driver.check_same(event.driver(), function)?;
        if graph.kept.graph() != self.graph {
            // Also where the driver would refuse it: it knows nodes by handles, and uses the
            // handles of a graph that is gone again. The events in `kept` are known by the same
            // handles.
            return Err(Error::GraphMismatch { function });
        }
        let node = graph.kept.handle(function, node)?;
        event.check_wait(function, &self.context)?;
        // SAFETY: the executable graph is alive and used by this thread alone, and so are the
        // node's graph and with it the node, all of one library; the event is of it too, is alive,
        // and is kept from the next statements on, whatever is answered.
        let answer = set.ask(driver, |set| unsafe { set(self.raw, node, event.as_raw()) })?.check();
        self.interprocess |= event.flags().contains(EventFlags::INTERPROCESS);
        drop(settle(&mut self.kept, node, event, &answer));
        answer
    }

    /// Destroys the executable graph and returns what the driver returns. A launch that is under
    /// way runs to its end.
    ///
    /// One driver call: `cuGraphExecDestroy`. It does not wait, unless the executable graph holds
    /// [the last share](Context#dropping-the-last-share) of its context.
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`]. Whatever it is, do not use the handle
    /// again: this was the one destruction.
    #[doc(alias = "cuGraphExecDestroy")]
    pub fn close(mut self) -> Result<()> {
        let raw = replace(&mut self.raw, null_mut());
        // SAFETY: the executable graph is owned, and as it is given up above this is the one
        // destruction.
        unsafe { call!(self.context.driver(), cuGraphExecDestroy(raw)) }
    }

    /// The context that it was made in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The driver's handle, for other bindings. It is valid as long as the executable graph is.
    pub fn as_raw(&self) -> CUgraphExec {
        self.raw
    }
}

type SetExecEvent = unsafe extern "C" fn(CUgraphExec, CUgraphNode, CUevent) -> CUresult;

impl Drop for GraphExec {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the executable graph is owned and not used afterwards. What it answers cannot
            // be acted on here.
            let _ = unsafe { ask!(self.context.driver(), cuGraphExecDestroy(self.raw)) };
        }
    }
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphExec")
            .field("raw", &self.raw)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(GraphExec: Send);
static_assertions::assert_not_impl_any!(GraphExec: Sync, Clone);
