//! Graphs: work that is defined once, by a capture or node by node, and launched many times.
//!
//! * [`Graph`] is the definition. [`Capture::end`](crate::capture::Capture::end) returns one.
//!   [`Graph::new`] makes an empty one, to which you can add nodes that record events or wait for
//!   them. Nodes of kernels and copies come from a capture, or from another library.
//! * [`GraphExec`] is the executable form, which a stream launches.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cuda_events::graph::Graph;
//! use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! let done = Arc::new(Event::new(&context, EventFlags::empty())?);
//! let mut graph = Graph::new(&context)?;
//! graph.add_event_record_node(&[], &done)?;
//! let exec = graph.instantiate()?;
//! exec.launch(&stream)?;
//! done.synchronize()?; // the first launch is done
//! exec.launch(&stream)?;
//! # Ok::<(), cuda_events::Error>(())
//! ```

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::replace;
use core::ptr::null_mut;
use std::sync::Arc;

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::call::{Entry, call, entry};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::event::Event;
use crate::sys::{CUevent, CUgraph, CUgraphNode, CUresult};

mod exec;
mod node;
pub(crate) mod retained;

use retained::Retained;

pub use exec::GraphExec;
pub use node::GraphNode;

#[cfg(doc)]
use crate::sys::calls::*;

/// A graph, made by a [capture](crate::capture::Capture) or node by node; dropping it destroys it.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// use cuda_events::graph::Graph;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let start = Arc::new(Event::new(&context, EventFlags::TIMING)?);
/// let end = Arc::new(Event::new(&context, EventFlags::TIMING)?);
///
/// let mut graph = Graph::new(&context)?;
/// let first = graph.add_event_record_node(&[], &start)?;
/// graph.add_event_record_node(&[first], &end)?;
/// let exec = graph.instantiate()?;
/// for _ in 0..3 {
///     exec.launch(&stream)?;
///     stream.synchronize()?;
///     println!("{:?}", start.elapsed(&end)?);
/// }
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// A graph and its [executable graphs](GraphExec) keep the events of their nodes alive. So such
/// events are passed as `Arc<Event>`, and the program may drop its own
/// references at any time. Other crates can make a graph keep objects of their own: see
/// [`OwnCapture`](crate::foundation::OwnCapture).
///
/// A graph also keeps captured [semaphores](crate::external#captures) alive. A launch does not: keep
/// the graph or the executable graph until the launch is done.
///
/// The driver does not allow two threads to use one graph. So a graph may be sent to another
/// thread, but not shared.
///
/// Drop ignores errors from the driver; [`close`](Self::close) returns them. Drop does nothing in a
/// forked child.
pub struct Graph {
    /// NULL once this value no longer owns the graph.
    raw: CUgraph,
    context: Context,
    retained: Arc<Retained>,
    _not_sync: PhantomData<Cell<()>>,
}

// SAFETY: any thread may use a graph, but only one at a time: the type is not Sync. The handle is
// an address that this crate never dereferences.
#[allow(unsafe_code)]
unsafe impl Send for Graph {}

#[allow(unsafe_code)]
impl Graph {
    /// Creates an empty graph. Its executable graphs will be made in the context.
    ///
    /// One driver call: [`cuGraphCreate`].
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuGraphCreate")]
    #[doc(alias = "GraphDefinition")]
    pub fn new(context: &Context) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: a place for the handle; the flags must be 0.
        unsafe { call!(context.driver(), cuGraphCreate(&mut raw, 0)) }?.check()?;
        Ok(Self::with(context, raw, Retained::new()))
    }

    /// Adds a node that records the event at each launch. Needs CUDA 11.1.
    ///
    /// The node runs after the work of the nodes in `after`.
    ///
    /// One driver call: [`cuGraphAddEventRecordNode`].
    ///
    /// # Errors
    ///
    /// * [`Error::GraphMismatch`]: a node in `after` belongs to another graph.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 11.1.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuGraphAddEventRecordNode")]
    #[doc(alias = "EventRecordNode")]
    pub fn add_event_record_node(
        &mut self,
        after: &[GraphNode],
        event: &Arc<Event>,
    ) -> Result<GraphNode> {
        self.add(entry!(self.driver(), cuGraphAddEventRecordNode?)?, after, event)
    }

    /// Adds a node that waits for the event. Needs CUDA 11.1.
    ///
    /// Record the event before you launch the graph: the launch waits for the event's last record.
    ///
    /// The node runs after the work of the nodes in `after`.
    ///
    /// One driver call: [`cuGraphAddEventWaitNode`].
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
    /// let other = Stream::new(&context, StreamOptions::new())?;
    /// let ready = Arc::new(Event::new(&context, EventFlags::empty())?);
    /// let done = Arc::new(Event::new(&context, EventFlags::empty())?);
    ///
    /// let mut graph = Graph::new(&context)?;
    /// let wait = graph.add_event_wait_node(&[], &ready)?;
    /// graph.add_event_record_node(&[wait], &done)?;
    /// let exec = graph.instantiate()?;
    /// // Each launch waits for the work that is in `other` at the last record before it.
    /// ready.record(&other)?;
    /// exec.launch(&stream)?;
    /// done.synchronize()?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add_event_record_node`](Self::add_event_record_node).
    #[doc(alias = "cuGraphAddEventWaitNode")]
    #[doc(alias = "EventWaitNode")]
    pub fn add_event_wait_node(
        &mut self,
        after: &[GraphNode],
        event: &Arc<Event>,
    ) -> Result<GraphNode> {
        self.add(entry!(self.driver(), cuGraphAddEventWaitNode?)?, after, event)
    }

    /// Makes an executable graph in the graph's context. The graph itself can be changed and used
    /// again.
    ///
    /// One driver call with the context current: [`cuGraphInstantiateWithFlags`] (CUDA 11.4), on
    /// older drivers [`cuGraphInstantiate`].
    ///
    /// # Errors
    ///
    /// * [`Error::ContextMismatch`]: the graph waits for or records an interprocess event of
    ///   another context.
    /// * `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`: a capture forbids it, as it forbids
    ///   [queries](crate::capture::CaptureMode). The call invalidates the capture.
    /// * `CUDA_ERROR_OUT_OF_MEMORY`: the memory for the executable graph is used up.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cuGraphInstantiateWithFlags")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        self.make_exec()
    }

    /// Returns the event that a record node records; `None` if other code put the event into the
    /// graph. Needs CUDA 11.1.
    ///
    /// One driver call: [`cuGraphEventRecordNodeGetEvent`]. [`GraphNode`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for a node of another kind; otherwise as
    /// [`add_event_record_node`](Self::add_event_record_node).
    #[doc(alias = "cuGraphEventRecordNodeGetEvent")]
    pub fn record_node_event(&self, node: GraphNode) -> Result<Option<Arc<Event>>> {
        self.get(entry!(self.driver(), cuGraphEventRecordNodeGetEvent?)?, node)
    }

    /// Returns the event that a wait node waits for; `None` if other code put the event into the
    /// graph. Needs CUDA 11.1.
    ///
    /// One driver call: [`cuGraphEventWaitNodeGetEvent`]. [`GraphNode`] has an example.
    ///
    /// # Errors
    ///
    /// As [`record_node_event`](Self::record_node_event).
    #[doc(alias = "cuGraphEventWaitNodeGetEvent")]
    pub fn wait_node_event(&self, node: GraphNode) -> Result<Option<Arc<Event>>> {
        self.get(entry!(self.driver(), cuGraphEventWaitNodeGetEvent?)?, node)
    }

    /// Makes a record node record another event. Needs CUDA 11.1.
    ///
    /// Existing executable graphs do not change: for them use [`GraphExec::set_record_node_event`].
    ///
    /// One driver call: [`cuGraphEventRecordNodeSetEvent`]. [`GraphNode`] has an example.
    ///
    /// # Errors
    ///
    /// As [`record_node_event`](Self::record_node_event).
    #[doc(alias = "cuGraphEventRecordNodeSetEvent")]
    #[doc(alias = "update")]
    pub fn set_record_node_event(&mut self, node: GraphNode, event: &Arc<Event>) -> Result<()> {
        self.set(entry!(self.driver(), cuGraphEventRecordNodeSetEvent?)?, node, event)
    }

    /// Makes a wait node wait for another event. Needs CUDA 11.1.
    ///
    /// Existing executable graphs do not change: for them use [`GraphExec::set_wait_node_event`].
    ///
    /// One driver call: [`cuGraphEventWaitNodeSetEvent`]. [`GraphNode`] has an example.
    ///
    /// # Errors
    ///
    /// As [`record_node_event`](Self::record_node_event).
    #[doc(alias = "cuGraphEventWaitNodeSetEvent")]
    #[doc(alias = "update")]
    pub fn set_wait_node_event(&mut self, node: GraphNode, event: &Arc<Event>) -> Result<()> {
        self.set(entry!(self.driver(), cuGraphEventWaitNodeSetEvent?)?, node, event)
    }

    /// Returns the context in which executable graphs are made.
    ///
    /// [`from_raw`](Self::from_raw) has an example.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the driver's handle, for other bindings. It is valid as long as the graph is.
    ///
    /// [`from_raw`](Self::from_raw) has an example.
    pub fn as_raw(&self) -> CUgraph {
        self.raw
    }

    /// Takes ownership of a graph that other code made. Its executable graphs will be made in the
    /// context.
    ///
    /// ```
    /// use cuda_events::foundation::call;
    /// use cuda_events::graph::Graph;
    /// use cuda_events::{Context, Device};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let mut raw = std::ptr::null_mut();
    /// // SAFETY: the driver writes only the handle.
    /// unsafe { call!(driver, cuGraphCreate(&mut raw, 0)) }?;
    /// // SAFETY: the graph is alive and empty, and nothing else owns it.
    /// let graph = unsafe { Graph::from_raw(&context, raw) };
    /// assert_eq!((graph.as_raw(), graph.context()), (raw, &context));
    /// graph.close()?; // a drop would ignore an error
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// `raw` must be a live graph of the context's driver. From now on no other code may use or
    /// destroy it, and no capture may be adding to it. The events and the
    /// [semaphores](crate::external) of its nodes must outlive the result, and all executable
    /// graphs made of the result.
    ///
    /// While one thread launches an executable graph made of the result, no other thread may do one
    /// of these:
    ///
    /// * record an event of the graph's nodes in a capture,
    /// * end a capture in which an event of the graph's nodes was recorded.
    ///
    /// Threads of the events' owner count too: see
    /// [`Capture::begin`](crate::capture::Capture::begin).
    pub unsafe fn from_raw(context: &Context, raw: CUgraph) -> Self {
        Self::with(context, raw, Retained::new())
    }

    /// Destroys the graph and returns the driver's error, if any. Its executable graphs stay valid.
    ///
    /// One driver call: [`cuGraphDestroy`]. It can block only if [nothing else keeps the
    /// context](Context#dropping-the-last-share). [`from_raw`](Self::from_raw) has an example.
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`]. After an error, do not use a copy of the raw handle: the driver may
    /// have destroyed the graph.
    #[doc(alias = "cuGraphDestroy")]
    pub fn close(mut self) -> Result<()> {
        let raw = replace(&mut self.raw, null_mut());
        // SAFETY: the graph is owned, and as it is given up above this is the one destruction.
        unsafe { call!(self.driver(), cuGraphDestroy(raw)) }?.check()
    }

    pub(crate) fn with(context: &Context, raw: CUgraph, retained: Arc<Retained>) -> Self {
        Self { raw, context: context.clone(), retained, _not_sync: PhantomData }
    }

    /// Gives the graph up to the driver, which has destroyed it or will do so.
    pub(crate) fn disarm(mut self) {
        self.raw = null_mut();
    }

    fn add(
        &mut self,
        add: Entry<AddNode>,
        after: &[GraphNode],
        event: &Arc<Event>,
    ) -> Result<GraphNode> {
        let driver = self.driver();
        driver.check(event.driver(), add.function)?;
        let after = self.retained.handles(add.function, after.iter().copied())?;
        let mut node = null_mut();
        // SAFETY: a place for the handle; the graph is alive and used by this thread alone; the
        // dependencies are nodes of it; the event is alive, and kept as long as the graph from the
        // next statement on, whatever the result.
        let answer = add.call(driver, |add| unsafe {
            add(&mut node, self.raw, after.as_ptr(), after.len(), event.as_raw())
        })?;
        self.retained.settle(node, event, answer.check())?;
        Ok(self.retained.node(node))
    }

    fn get(&self, get: Entry<GetEvent>, node: GraphNode) -> Result<Option<Arc<Event>>> {
        let driver = self.driver();
        driver.check_alone(get.function)?;
        let raw = self.retained.handle(get.function, node)?;
        let mut event = null_mut();
        // SAFETY: a node of this graph, which is alive and used by this thread alone; a place for
        // the handle.
        get.call(driver, |get| unsafe { get(raw, &mut event) })?.check()?;
        Ok(self.retained.by_handle(event))
    }

    fn set(&mut self, set: Entry<SetEvent>, node: GraphNode, event: &Arc<Event>) -> Result<()> {
        let driver = self.driver();
        driver.check(event.driver(), set.function)?;
        let raw = self.retained.handle(set.function, node)?;
        // SAFETY: a node of this graph, which is alive and used by this thread alone; the event is
        // alive, and kept as long as the graph from the next statement on, whatever the result.
        let answer = set.call(driver, |set| unsafe { set(raw, event.as_raw()) })?;
        self.retained.settle(raw, event, answer.check())
    }

    pub(crate) fn retained(&self) -> &Arc<Retained> {
        &self.retained
    }

    fn driver(&self) -> Driver {
        self.context.driver()
    }
}

type AddNode =
    unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, CUevent) -> CUresult;
type GetEvent = unsafe extern "C" fn(CUgraphNode, *mut CUevent) -> CUresult;
type SetEvent = unsafe extern "C" fn(CUgraphNode, CUevent) -> CUresult;

#[allow(unsafe_code)]
impl GraphNode {
    /// Wraps a node that other code put into the graph.
    ///
    /// # Safety
    ///
    /// `raw` must be a node of `graph` until the last use of the graph and of all executable graphs
    /// made of it. While this crate uses the node or the graph, no other code may use either in
    /// another thread.
    pub unsafe fn from_raw(graph: &Graph, raw: CUgraphNode) -> Self {
        graph.retained.node(raw)
    }
}

impl Drop for Graph {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the graph is owned and not used afterwards. An error cannot be handled here.
            let _ = unsafe { call!(self.driver(), cuGraphDestroy(self.raw)) };
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("raw", &self.raw)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(Graph: Send);
static_assertions::assert_not_impl_any!(Graph: Sync, Clone);
