//! The nodes that the next work in a capturing stream depends on.

use core::ptr::{null, null_mut};

use super::guard::Capture;
use crate::driver::Driver;
use crate::driver::call::{Through, call, entry};
use crate::error::{Error, Result};
use crate::graph::GraphNode;
use crate::stream::StreamRef;
use crate::stream::capture_info::CaptureStatus;
use crate::sys::{
    CU_STREAM_ADD_CAPTURE_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES, CUgraphEdgeData,
    CUgraphNode, CUresult, CUstreamCaptureStatus, Function, Symbols,
};

/// A node that the next work in a capturing stream will depend on, and how.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::{Event, EventFlags};
/// use cuda_events::capture::{Capture, CaptureMode, DependencyUpdate};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
/// # let event = Arc::new(Event::new(&context, EventFlags::empty())?);
///
/// // SAFETY: no other thread has this stream or this event.
/// let capture = unsafe { Capture::begin(&stream, CaptureMode::ThreadLocal) }?;
/// stream.record_external(&event)?;
/// // SAFETY: as above.
/// let after_the_record = unsafe { capture.dependencies(&stream) }?;
/// assert_eq!(after_the_record.len(), 1);
/// // What follows shall not wait for the record: it begins at the root of the graph.
/// capture.update_dependencies(&stream, &[], DependencyUpdate::Set)?;
/// capture.end()?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CaptureDependency {
    /// The node.
    pub node: GraphNode,
    /// How it depends; all zero as a rule. Anything else takes CUDA 12.3.
    pub edge: CUgraphEdgeData,
}

impl From<GraphNode> for CaptureDependency {
    fn from(node: GraphNode) -> Self {
        Self { node, edge: CUgraphEdgeData::default() }
    }
}

/// What becomes of the dependencies that a capturing stream has. Shown at [`CaptureDependency`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DependencyUpdate {
    /// They stay, and more are added (`CU_STREAM_ADD_CAPTURE_DEPENDENCIES`).
    Add,
    /// They are replaced (`CU_STREAM_SET_CAPTURE_DEPENDENCIES`).
    Set,
}

#[allow(unsafe_code)]
impl Capture<'_> {
    /// The nodes that the next work in a stream of this capture will depend on.
    ///
    /// Driver calls: two of `cuStreamGetCaptureInfo_v3` (CUDA 12.3), on older drivers `_v2` (11.3):
    /// one tells whether the stream is of this capture.
    ///
    /// # Errors
    ///
    /// [`Error::CaptureMismatch`] for a stream that is not of this capture; [`Error::Unsupported`];
    /// what the driver returns; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// No other thread may make a call for `stream` meanwhile: the driver names memory of its own,
    /// which such a call may change while it is copied.
    #[doc(alias = "cuStreamGetCaptureInfo")]
    pub unsafe fn dependencies(&self, stream: &StreamRef) -> Result<Vec<CaptureDependency>> {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut nodes, mut edges, mut count) = (null(), null(), 0);
        let (raw, id, graph) = (stream.as_raw(), null_mut(), null_mut());
        // SAFETY: the stream is alive as long as its reference is; places for what is wanted, NULL
        // for what is not.
        unsafe {
            call!(OfCapture { stream, capture: self },
                cuStreamGetCaptureInfo_v3(raw, &mut status, id, graph, &mut nodes, &mut edges,
                    &mut count)
                or cuStreamGetCaptureInfo_v2?(raw, &mut status, id, graph, &mut nodes, &mut count)
            )
        }?;
        if CaptureStatus::from_driver(status) != CaptureStatus::Active || nodes.is_null() {
            return Ok(Vec::new());
        }
        let dependency = |at: usize| {
            // SAFETY: the driver has said that `count` nodes are there, and as many edges if any;
            // they stay until the next call for the stream, of which the caller promises that it is
            // not before this one is over.
            let (node, edge) =
                unsafe { (nodes.add(at).read(), (!edges.is_null()).then(|| edges.add(at).read())) };
            CaptureDependency { node: self.kept.node(node), edge: edge.unwrap_or_default() }
        };
        Ok((0..count).map(dependency).collect())
    }

    /// Changes what the next work in a stream of this capture will depend on. CUDA 11.3.
    ///
    /// Driver calls: that of [`capture_info`](StreamRef::capture_info), and
    /// `cuStreamUpdateCaptureDependencies_v2` (CUDA 12.3), on older drivers the first, which takes
    /// plain edges only.
    ///
    /// # Errors
    ///
    /// [`Error::GraphMismatch`]; [`Error::CaptureMismatch`] for a stream that is not of this
    /// capture; [`Error::Unsupported`]; what the driver returns; [`Error::ForkedChild`].
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
                    .ask(stream, |update| unsafe {
                        update(raw, nodes, edges.as_ptr(), count, flags)
                    })?
                    .check()
            }
            Err(_) if plain => {
                // Through the capture: that a stream is of another one is told before that the
                // driver is too old.
                let update = entry!(
                    OfCapture { stream, capture: self },
                    cuStreamUpdateCaptureDependencies?
                )?;
                let mut nodes = self.nodes(stream, update.function, dependencies)?;
                let nodes = nodes.as_mut_ptr();
                // SAFETY: as above.
                update.ask(stream, |update| unsafe { update(raw, nodes, count, flags) })?.check()
            }
            Err(unsupported) => Err(unsupported),
        }
    }

    /// The handles of the nodes, which must be of this capture, as the stream must.
    fn nodes(
        &self,
        stream: &StreamRef,
        function: Function,
        dependencies: &[CaptureDependency],
    ) -> Result<Vec<CUgraphNode>> {
        self.check(stream, function)?;
        self.kept.handles(function, dependencies.iter().map(|dependency| dependency.node))
    }

    /// An error unless the stream is of this capture; then it stays one at least as long as `self`
    /// is borrowed.
    fn check(&self, stream: &StreamRef, function: Function) -> Result<()> {
        let info = stream.capture_info()?;
        let own =
            |id| self.id == Some(id) && stream.driver().is_same_library(self.stream().driver());
        match info.status {
            // Such a capture does not tell its id. It is what the driver answers whatever is done
            // with it.
            CaptureStatus::Invalidated => {
                Err(Error::driver(function, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED))
            }
            CaptureStatus::Active if info.id.is_some_and(own) => Ok(()),
            _ => Err(Error::CaptureMismatch { function }),
        }
    }
}

/// A stream that must be of a capture.
struct OfCapture<'a> {
    stream: &'a StreamRef,
    capture: &'a Capture<'a>,
}

impl Through for OfCapture<'_> {
    fn driver(&self) -> Driver {
        self.stream.driver()
    }

    fn check(&self, function: Function) -> Result<()> {
        self.capture.check(self.stream, function)
    }

    fn make(
        self,
        function: Function,
        call: impl FnOnce(&'static Symbols) -> CUresult,
    ) -> Result<CUresult> {
        self.check(function)?;
        self.stream.make(function, call)
    }
}
