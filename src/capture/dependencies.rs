//! The dependencies of the next work in a capturing stream.

use core::ptr::{null, null_mut};

use super::guard::Capture;
use crate::driver::call::{call, entry};
use crate::error::{Error, Result};
use crate::graph::GraphNode;
use crate::stream::StreamRef;
use crate::stream::capture_info::CaptureStatus;
use crate::sys::{
    CU_STREAM_ADD_CAPTURE_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES, CUgraphEdgeData,
    CUgraphNode, CUresult, CUstreamCaptureStatus, Function,
};

#[cfg(doc)]
use crate::sys::calls::*;

/// A node on which the next work in a capturing stream will depend, and the kind of the edge to the
/// node.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::capture::{Capture, CaptureMode, DependencyUpdate};
/// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
/// let event = Arc::new(Event::new(&context, EventFlags::empty())?);
///
/// // SAFETY: no other thread has this stream or this event.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// stream.record_external(&event)?;
/// // SAFETY: as above.
/// let after_the_record = unsafe { capture.dependencies(&stream) }?;
/// assert_eq!(after_the_record.len(), 1);
/// // Later work does not wait for the record: it starts at the root of the graph.
/// capture.update_dependencies(&stream, &[], DependencyUpdate::Set)?;
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CaptureDependency {
    /// The node.
    pub node: GraphNode,
    edge: CUgraphEdgeData,
}

impl CaptureDependency {
    /// A dependency with edge data. Other values than zeros need CUDA 12.3;
    /// [`from`](Self::from) makes a dependency without.
    pub const fn with_edge(node: GraphNode, edge: CUgraphEdgeData) -> Self {
        Self { node, edge }
    }

    /// Returns the edge data; usually all zero.
    pub const fn edge(self) -> CUgraphEdgeData {
        self.edge
    }
}

impl From<GraphNode> for CaptureDependency {
    fn from(node: GraphNode) -> Self {
        Self { node, edge: CUgraphEdgeData::default() }
    }
}

/// Whether new dependencies of a capturing stream are added to the old ones, or replace them.
/// [`CaptureDependency`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DependencyUpdate {
    /// The old dependencies stay, and the new ones are added
    /// (`CU_STREAM_ADD_CAPTURE_DEPENDENCIES`).
    Add,
    /// The new dependencies replace the old ones (`CU_STREAM_SET_CAPTURE_DEPENDENCIES`).
    Set,
}

#[allow(unsafe_code)]
impl Capture<'_> {
    /// Returns the nodes on which the next work in a stream of this capture will depend. Needs CUDA
    /// 11.3.
    ///
    /// Driver calls: the call of [`capture_info`](StreamRef::capture_info), to check that the
    /// stream takes part in this capture, and [`cuStreamGetCaptureInfo_v3`] (CUDA 12.3), on older
    /// drivers [`cuStreamGetCaptureInfo_v2`] (11.3). [`CaptureDependency`] has an example.
    ///
    /// # Errors
    ///
    /// * [`Error::CaptureMismatch`]: the stream does not take part in this capture.
    /// * `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`: an earlier call invalidated the capture.
    /// * `CUDA_ERROR_LOSSY_QUERY`: there is edge data, and the driver is older than CUDA 12.3.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 11.3.
    /// * [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// During this call no other thread may make a call for `stream`. The driver returns the
    /// address of its own memory, and a call of another thread may change that memory while this
    /// method copies it.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    pub unsafe fn dependencies(&self, stream: &StreamRef) -> Result<Vec<CaptureDependency>> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut nodes, mut edges, mut count) = (null(), null(), 0);
        let (raw, id, graph) = (stream.as_raw(), null_mut(), null_mut());
        let function = if stream.driver().symbols().cuStreamGetCaptureInfo_v3.is_some() {
            Function::cuStreamGetCaptureInfo_v3
        } else {
            Function::cuStreamGetCaptureInfo_v2
        };
        self.check(stream, function)?;
        // SAFETY: the stream is alive as long as its reference is; places for the results, NULL
        // for those that are not needed.
        unsafe {
            call!(stream,
                cuStreamGetCaptureInfo_v3(raw, &mut status, id, graph, &mut nodes, &mut edges,
                    &mut count)
                or cuStreamGetCaptureInfo_v2?(raw, &mut status, id, graph, &mut nodes, &mut count)
            )
        }?
        .check()?;
        if CaptureStatus::from_driver(status) != CaptureStatus::Active || nodes.is_null() {
            return Ok(Vec::new());
        }
        let dependency = |at: usize| {
            // SAFETY: the driver returned `count` nodes, and as many edges if any. They stay until
            // the next call for the stream, and the caller promises that there is none before this
            // one returns.
            let (node, edge) =
                unsafe { (nodes.add(at).read(), (!edges.is_null()).then(|| edges.add(at).read())) };
            CaptureDependency { node: self.retained.node(node), edge: edge.unwrap_or_default() }
        };
        Ok((0..count).map(dependency).collect())
    }

    /// Changes the dependencies of the next work in a stream of this capture. Needs CUDA 11.3.
    ///
    /// Driver calls: the call of [`capture_info`](StreamRef::capture_info), and
    /// [`cuStreamUpdateCaptureDependencies_v2`] (CUDA 12.3), on older drivers
    /// [`cuStreamUpdateCaptureDependencies`], which takes only edges without edge data.
    /// [`CaptureDependency`] has an example.
    ///
    /// # Errors
    ///
    /// * [`Error::CaptureMismatch`]: the stream does not take part in this capture.
    /// * [`Error::GraphMismatch`]: a node belongs to another graph.
    /// * `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`: an earlier call invalidated the capture.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 11.3, or, if an edge has edge data,
    ///   than 12.3.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuStreamUpdateCaptureDependencies")]
    pub fn update_dependencies(
        &self,
        stream: &StreamRef,
        dependencies: &[CaptureDependency],
        update: DependencyUpdate,
    ) -> Result<()> {
        let flags = match update {
            DependencyUpdate::Add => CU_STREAM_ADD_CAPTURE_DEPENDENCIES,
            DependencyUpdate::Set => CU_STREAM_SET_CAPTURE_DEPENDENCIES,
        };
        let edges: Vec<_> = dependencies.iter().map(|dependency| dependency.edge).collect();
        let plain = edges.iter().all(|edge| *edge == CUgraphEdgeData::default());
        let raw = stream.as_raw();
        let count = dependencies.len();
        match entry!(stream, cuStreamUpdateCaptureDependencies_v2?) {
            Ok(update) => {
                let mut nodes = self.nodes(stream, update.function, dependencies)?;
                let nodes = nodes.as_mut_ptr();
                // SAFETY: the stream is alive as long as its reference is; as many edges as nodes;
                // the nodes are of the graph that the stream is captured into, which lives as long
                // as the capture, and so longer than `self`'s borrow.
                update
                    .call(stream, |update| unsafe {
                        update(raw, nodes, edges.as_ptr(), count, flags)
                    })?
                    .check()
            }
            Err(_) if plain => {
                // The error for a stream of another capture comes before that for an old driver.
                self.check(stream, Function::cuStreamUpdateCaptureDependencies)?;
                let update = entry!(stream, cuStreamUpdateCaptureDependencies?)?;
                let mut nodes = self.nodes(stream, update.function, dependencies)?;
                let nodes = nodes.as_mut_ptr();
                // SAFETY: as above.
                update.call(stream, |update| unsafe { update(raw, nodes, count, flags) })?.check()
            }
            Err(unsupported) => Err(unsupported),
        }
    }

    /// The handles of the nodes. The nodes and the stream must belong to this capture.
    fn nodes(
        &self,
        stream: &StreamRef,
        function: Function,
        dependencies: &[CaptureDependency],
    ) -> Result<Vec<CUgraphNode>> {
        self.check(stream, function)?;
        self.retained.handles(function, dependencies.iter().map(|dependency| dependency.node))
    }

    /// An error unless the stream takes part in this capture. It then does so at least as long as
    /// `self` is borrowed.
    fn check(&self, stream: &StreamRef, function: Function) -> Result<()> {
        let info = stream.capture_info()?;
        let own =
            |id| self.id == Some(id) && stream.driver().is_same_library(self.stream().driver());
        match info.status {
            // The id of such a capture is not available. The driver returns this error for every
            // use of it.
            CaptureStatus::Invalidated => {
                Err(Error::driver(function, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED))
            }
            CaptureStatus::Active if info.id.is_some_and(own) => Ok(()),
            _ => Err(Error::CaptureMismatch { function }),
        }
    }
}
