//! Executable graphs.

use core::cell::Cell;
use core::fmt;
use core::mem::replace;
use core::ptr::null_mut;
use std::sync::Arc;

use super::Graph;
use super::node::GraphNode;
use super::retained::Values;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::call::{Answer, Entry, call, entry};
use crate::error::{Error, Result};
use crate::event::{Event, EventFlags};
use crate::stream::StreamRef;
use crate::sys::{CUevent, CUgraphExec, CUgraphNode, CUresult, Function};

#[cfg(doc)]
use crate::sys::calls::*;

/// An executable graph, made by [`Graph::instantiate`]; dropping it destroys it.
///
/// The executable graph keeps the events and the captured semaphores of its nodes alive. So the
/// graph from which it was made may be dropped.
///
/// The executable graph may be dropped during a launch: the launch runs to its end. A captured
/// [semaphore](crate::external#captures) is the exception: then keep the executable graph until the
/// launch is done.
///
/// The executable graph also keeps its context alive, but a launch does not. If nothing else keeps
/// the context, dropping the executable graph [waits](Context#dropping-the-last-share) for its
/// launches, in streams of any context.
///
/// The driver does not allow two threads to use one executable graph. So it may be sent to another
/// thread, but not shared.
///
/// Drop ignores errors from the driver; [`close`](Self::close) returns them. Drop does nothing in a
/// forked child.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::graph::Graph;
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let one = Event::new(&context, EventFlags::empty())?;
/// let another = Event::new(&context, EventFlags::empty())?;
/// let (one, another) = (Arc::new(one), Arc::new(another));
///
/// let mut graph = Graph::new(&context)?;
/// let node = graph.add_event_record_node(&[], &one)?;
/// let wait = graph.add_event_wait_node(&[], &another)?;
/// let mut exec = graph.instantiate()?;
/// exec.launch(&stream)?; // records `one`, and waits for `another`
/// exec.set_record_node_event(&graph, node, &another)?;
/// exec.set_wait_node_event(&graph, wait, &one)?;
/// exec.launch(&stream)?; // records `another`, and waits for `one`
/// another.synchronize()?;
/// assert_eq!(exec.context(), &context);
/// assert!(!exec.as_raw().is_null()); // the handle, for other bindings
/// exec.close()?; // a drop would ignore an error
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct GraphExec {
    /// NULL once it is destroyed.
    raw: CUgraphExec,
    context: Context,
    /// The number of the graph from which it was made.
    graph: u64,
    retained: Values,
    /// Whether one of the kept events is an interprocess event.
    interprocess: bool,
    /// Whether the kept values are prepared for launches. The cell also makes the type not Sync.
    prepared: Cell<bool>,
}

// SAFETY: as for `Graph`.
#[allow(unsafe_code)]
unsafe impl Send for GraphExec {}

#[allow(unsafe_code)]
impl Graph {
    /// The method [`instantiate`](Self::instantiate).
    pub(super) fn make_exec(&self) -> Result<GraphExec> {
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

    /// Makes it with a call that gets a place for the handle.
    fn instantiate_by<F: Copy>(
        &self,
        entry: Entry<F>,
        instantiate: impl FnOnce(F, *mut CUgraphExec) -> CUresult,
    ) -> Result<GraphExec> {
        // Before the lock of the kept values, which in a forked child may stay locked forever.
        self.driver().check_alone(entry.function)?;
        let retained = self.retained.all();
        for event in retained.events() {
            event.check_wait(entry.function, &self.context)?;
        }
        self.context.with_current(|| {
            let mut raw = null_mut();
            entry.call(self.driver(), |pointer| instantiate(pointer, &mut raw))?.check()?;
            // Made in the closure, so it is dropped if the caller's context cannot be restored.
            Ok(GraphExec::new(self, raw, retained))
        })
    }
}

#[allow(unsafe_code)]
impl GraphExec {
    fn new(graph: &Graph, raw: CUgraphExec, retained: Values) -> Self {
        let interprocess =
            retained.events().any(|event| event.flags().contains(EventFlags::INTERPROCESS));
        let prepared = Cell::new(!retained.has_prepared());
        let context = graph.context.clone();
        Self { raw, context, graph: graph.retained.graph(), retained, interprocess, prepared }
    }

    /// Launches the graph: puts its work into the stream, after the work that is there.
    ///
    /// Launches of one executable graph run one after another, even in different streams.
    ///
    /// One driver call: [`cuGraphLaunch`].
    ///
    /// The stream may belong to another context than the graph.
    ///
    /// # Errors
    ///
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: the stream is capturing. The call invalidates the
    ///   capture.
    /// * [`Error::ContextMismatch`]: the graph has an interprocess event, and the stream belongs to
    ///   another context.
    /// * Errors of work that was launched earlier.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuGraphLaunch")]
    #[doc(alias = "replay")]
    pub fn launch(&self, stream: &StreamRef) -> Result<()> {
        // From the stream's table, because the table decides what NULL means.
        if self.interprocess {
            for event in self.retained.events() {
                event.check_wait(Function::cuGraphLaunch, stream.context())?;
            }
        }
        if !self.prepared.get() {
            self.prepare()?;
        }
        // SAFETY: the executable graph is alive and used by this thread alone, the stream alive as
        // long as its reference.
        unsafe { call!(stream, self.context.driver(); cuGraphLaunch(self.raw, stream.as_raw())) }?
            .check()
    }

    #[cold]
    fn prepare(&self) -> Result<()> {
        self.context.driver().check_alone(Function::cuGraphLaunch)?;
        self.retained.prepare();
        self.prepared.set(true);
        Ok(())
    }

    /// Makes a record node record another event, from the next launch on. Needs CUDA 11.1.
    ///
    /// `graph` is the graph from which this executable graph was made, and `node` one of its nodes.
    /// One driver call: [`cuGraphExecEventRecordNodeSetEvent`].
    ///
    /// # Errors
    ///
    /// * [`Error::GraphMismatch`]: the node does not belong to `graph`, or this executable graph
    ///   was made from another graph.
    /// * `CUDA_ERROR_INVALID_VALUE`: the node is of another kind, or was added later.
    /// * [`Error::ContextMismatch`]: the event is an interprocess event of another context.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 11.1.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuGraphExecEventRecordNodeSetEvent")]
    #[doc(alias = "update")]
    pub fn set_record_node_event(
        &mut self,
        graph: &Graph,
        node: GraphNode,
        event: &Arc<Event>,
    ) -> Result<()> {
        let set = entry!(self.context.driver(), cuGraphExecEventRecordNodeSetEvent?)?;
        self.set(set, graph, node, event)
    }

    /// Makes a wait node wait for another event, from the next launch on. Needs CUDA 11.1.
    ///
    /// `graph` is the graph from which this executable graph was made, and `node` one of its nodes.
    /// One driver call: [`cuGraphExecEventWaitNodeSetEvent`].
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
        let set = entry!(self.context.driver(), cuGraphExecEventWaitNodeSetEvent?)?;
        self.set(set, graph, node, event)
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
        driver.check(graph.driver(), function)?;
        driver.check(event.driver(), function)?;
        if graph.retained.graph() != self.graph {
            // The driver cannot always detect this: it identifies nodes by handle, and reuses the
            // handles of destroyed graphs. The events in `retained` are found by the same handles.
            return Err(Error::GraphMismatch { function });
        }
        let node = graph.retained.handle(function, node)?;
        event.check_wait(function, &self.context)?;
        // SAFETY: the executable graph is alive and used by this thread alone, and so are the
        // node's graph and with it the node, all of one library; the event is of that library too,
        // is alive, and is kept from the next statements on, whatever the result.
        let answer =
            set.call(driver, |set| unsafe { set(self.raw, node, event.as_raw()) })?.check();
        self.interprocess |= event.flags().contains(EventFlags::INTERPROCESS);
        drop(self.retained.settle(node, event, &answer));
        answer
    }

    /// Destroys the executable graph and returns the driver's error, if any. A launch in progress
    /// runs to its end.
    ///
    /// One driver call, between two of [`cuThreadExchangeStreamCaptureMode`], so captures go on:
    /// [`cuGraphExecDestroy`]. It can block only if [nothing else keeps the
    /// context](Context#dropping-the-last-share).
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`]. After an error, do not use a copy of the raw handle: the driver may
    /// have destroyed the executable graph.
    #[doc(alias = "cuGraphExecDestroy")]
    pub fn close(mut self) -> Result<()> {
        let raw = replace(&mut self.raw, null_mut());
        // SAFETY: the executable graph is owned, and as it is given up above this is the one
        // destruction.
        unsafe { destroy(self.context.driver(), raw) }?.check()
    }

    /// Returns the context in which the executable graph was made.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the driver's handle, for other bindings. It is valid as long as the executable graph
    /// is.
    pub fn as_raw(&self) -> CUgraphExec {
        self.raw
    }
}

type SetExecEvent = unsafe extern "C" fn(CUgraphExec, CUgraphNode, CUevent) -> CUresult;

/// Measured: a capture that forbids queries forbids this call as well, and would be invalidated.
///
/// # Safety
///
/// The executable graph is alive, and nothing uses it during the call or afterwards.
#[allow(unsafe_code)]
unsafe fn destroy(driver: Driver, raw: CUgraphExec) -> Result<Answer> {
    // SAFETY: the caller vouches for the executable graph.
    driver.while_relaxed(|| unsafe { call!(driver, cuGraphExecDestroy(raw)) })
}

impl Drop for GraphExec {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the executable graph is owned and not used afterwards. An error cannot be
            // handled here.
            let _ = unsafe { destroy(self.context.driver(), self.raw) };
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
