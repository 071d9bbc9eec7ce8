//! Graphs that signal a timeline in the middle of each launch.

use core::fmt;
use core::ptr::null_mut;

use cuda_events::foundation::call;
use cuda_events::graph::{Graph, GraphExec, GraphNode};
use cuda_events::sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUdeviceptr, CUgraphNode, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpType, CUstreamMemOpWriteValueParams, CUstreamMemOpWriteValueParams_u,
    Function,
};

use super::file::same_context;
use super::{Point, Timeline};
use crate::error::Result;

#[cfg(doc)]
use crate::calls::*;

/// An executable graph with nodes that signal a timeline, from [`Timeline::in_graph`].
///
/// A capture cannot contain a signal, because each launch would write the same value. A
/// [`launch`](Self::launch) of this type first gives the nodes their next values. Earlier launches
/// that are pending keep their values.
///
/// Use it for points within a launch: the host, other streams and other processes go on while the
/// rest of the graph runs. For a point after the whole launch, signal the timeline after the launch
/// instead.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::graph::Graph;
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
/// use cuda_timelines::Timeline;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let timeline = Timeline::new(Stream::new(&context, StreamOptions::new())?)?;
/// let done = Arc::new(Event::new(&context, EventFlags::empty())?);
///
/// // Stands for two layers, captured or added node by node.
/// let mut graph = Graph::new(&context)?;
/// let first = graph.add_event_record_node(&[], &done)?;
/// let second = graph.add_event_record_node(&[first], &done)?;
///
/// let replay = timeline.in_graph(graph, &[&[first], &[second]])?;
/// for _ in 0..3 {
///     for point in replay.launch()? {
///         point.wait()?; // this layer is done
///     }
/// }
/// assert_eq!(replay.timeline().completed(), 6);
/// # Ok::<(), cuda_timelines::Error>(())
/// ```
pub struct SignalGraph {
    // In the order of dropping.
    exec: GraphExec,
    /// The graph keeps the handles of its nodes valid.
    _graph: Graph,
    signals: Vec<GraphNode>,
    timeline: Timeline,
}

#[allow(unsafe_code)]
impl Timeline {
    /// The method [`in_graph`](Self::in_graph).
    pub(super) fn sign_graph(self, graph: Graph, after: &[&[GraphNode]]) -> Result<SignalGraph> {
        let function = Function::cuGraphAddBatchMemOpNode;
        same_context(&self.stream, graph.context())?;
        let mut signals: Vec<GraphNode> = Vec::with_capacity(after.len());
        for nodes in after {
            if !nodes.iter().all(|node| node.is_of(&graph)) {
                return Err(cuda_events::Error::GraphMismatch { function }.into());
            }
            let nodes = nodes.iter().chain(signals.last());
            let nodes: Vec<CUgraphNode> = nodes.map(|node| node.as_raw()).collect();
            let mut node = null_mut();
            self.with_writes(0, |writes| {
                // SAFETY: this function owns the graph, to which the nodes belong; a place for the
                // new node. A launch gives it a value before it can run.
                unsafe {
                    call!(
                        self.stream.context().driver(),
                        cuGraphAddBatchMemOpNode?(
                            &mut node,
                            graph.as_raw(),
                            nodes.as_ptr(),
                            nodes.len(),
                            writes,
                        )
                    )
                }
            })?;
            // SAFETY: the driver has just made it in this graph.
            signals.push(unsafe { GraphNode::from_raw(&graph, node) });
        }
        let exec = graph.instantiate()?;
        Ok(SignalGraph { exec, _graph: graph, signals, timeline: self })
    }

    /// Calls `f` with the parameters of a node that signals the value: like a signal, it writes the
    /// word in device memory first.
    fn with_writes<T>(
        &self,
        value: u64,
        f: impl FnOnce(*const CUDA_BATCH_MEM_OP_NODE_PARAMS) -> T,
    ) -> T {
        let line = self.slot.address();
        let mut writes = [self.word.as_ref().map_or(line, |word| word.address), line]
            .map(|address| write(address, value));
        let params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: self.stream.context().as_raw(),
            count: if self.word.is_some() { 2 } else { 1 },
            paramArray: writes.as_mut_ptr(),
            flags: 0,
        };
        f(&params)
    }
}

fn write(address: CUdeviceptr, value: u64) -> CUstreamBatchMemOpParams {
    let value = CUstreamMemOpWriteValueParams {
        operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64,
        address,
        u: CUstreamMemOpWriteValueParams_u { value64: value },
        flags: 0,
        alias: 0,
    };
    // The driver may read all of it.
    let mut write = CUstreamBatchMemOpParams { pad: [0; 6] };
    write.writeValue = value;
    write
}

#[allow(unsafe_code)]
impl SignalGraph {
    /// Launches the graph in the timeline's stream, and returns the points of its signals, in their
    /// order.
    ///
    /// Driver calls: [`cuGraphExecBatchMemOpNodeSetParams`] for each signal, and
    /// [`cuGraphLaunch`]. If [other code may capture in the stream](Timeline#captures),
    /// [`cuStreamIsCapturing`] comes before them.
    ///
    /// # Errors
    ///
    /// The errors of [`Timeline::signal`] and [`GraphExec::launch`]. The values of a failed launch are
    /// skipped.
    #[doc(alias = "cuGraphExecBatchMemOpNodeSetParams")]
    pub fn launch(&self) -> Result<impl ExactSizeIterator<Item = Point> + use<>> {
        let Self { exec, signals, timeline, .. } = self;
        let first = timeline.submit(signals.len() as u64, |first| {
            for (value, signal) in (first..).zip(signals) {
                timeline.with_writes(value, |writes| {
                    // SAFETY: the executable graph is alive and used by this thread alone, and so
                    // is the graph with the node. The addresses are those of a plain signal; the
                    // timeline keeps them, and is dropped after the executable graph.
                    unsafe {
                        call!(
                            timeline.stream.context().driver(),
                            cuGraphExecBatchMemOpNodeSetParams?(
                                exec.as_raw(),
                                signal.as_raw(),
                                writes,
                            )
                        )
                    }
                })?;
            }
            exec.launch(&timeline.stream)
        })?;
        let slot = timeline.slot;
        Ok((0..signals.len()).map(move |at| Point::new(slot, first + at as u64)))
    }

    /// Returns the timeline, for plain signals and its stream.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }
}

impl fmt::Debug for SignalGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalGraph")
            .field("timeline", &self.timeline)
            .field("signals", &self.signals.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::TimelineMemory;
    use cuda_events::{Context, Device, Stream, StreamOptions};

    /// Whoever sees the value in this process's line may rely on the word in device memory.
    #[test]
    #[allow(unsafe_code)]
    fn a_node_writes_the_word_before_the_line() {
        let soft = cuda_soft_driver::SoftDriver::new();
        let context = Device::new(soft.driver(), 0).and_then(Context::primary).unwrap();
        let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
        let memory = TimelineMemory::new(&context).unwrap();
        let plain = Timeline::new(stream()).unwrap();
        let in_memory = Timeline::in_memory(stream(), &memory).unwrap();
        let word = in_memory.word.as_ref().unwrap().address;
        for (timeline, expected) in [
            (&plain, vec![plain.slot.address()]),
            (&in_memory, vec![word, in_memory.slot.address()]),
        ] {
            let written = timeline.with_writes(7, |params| {
                // SAFETY: the parameters and their writes live for the call, and are of this kind.
                unsafe {
                    let writes =
                        core::slice::from_raw_parts((*params).paramArray, (*params).count as usize);
                    let write = |write: &CUstreamBatchMemOpParams| {
                        assert_eq!(write.writeValue.u.value64, 7);
                        write.writeValue.address
                    };
                    writes.iter().map(write).collect::<Vec<_>>()
                }
            });
            assert_eq!(written, expected);
        }
    }
}
