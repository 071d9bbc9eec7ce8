//! Captures that cudarc began.

use core::any::Any;
use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

use cuda_events::Result;
use cuda_events::foundation::ForeignCapture;
use cudarc::driver::{CudaGraph, DriverError, sys};

use crate::AdoptedStream;

/// A capture that cudarc began, from [`adopt_capture`].
#[derive(Debug)]
pub struct AdoptedCapture<'a> {
    stream: &'a AdoptedStream,
    capture: ForeignCapture,
}

/// Adopts the capture that the stream takes part in. Returns `None` if the stream does not capture.
///
/// Call it after cudarc's `begin_capture`. While the result exists, pools of cuda-events reuse no
/// event of the capture, and timelines refuse signals in all streams of the capture.
///
/// One driver call: that of [`capture_info`](cuda_events::StreamRef::capture_info).
///
/// # Errors
///
/// The errors of [`capture_info`](cuda_events::StreamRef::capture_info).
pub fn adopt_capture(stream: &AdoptedStream) -> Result<Option<AdoptedCapture<'_>>> {
    Ok(ForeignCapture::of(stream)?.map(|capture| AdoptedCapture { stream, capture }))
}

impl AdoptedCapture<'_> {
    /// Ends the capture by cudarc's `end_capture`. The graph keeps the events, contexts and
    /// timelines that its nodes refer to.
    ///
    /// If you call cudarc's `end_capture` instead, these objects are never dropped.
    ///
    /// One driver call before those of cudarc: that of
    /// [`capture_info`](cuda_events::StreamRef::capture_info).
    ///
    /// # Errors
    ///
    /// The errors of cudarc's `end_capture`. The capture ends even if there is an error.
    pub fn end(
        self,
        flags: sys::CUgraphInstantiate_flags,
    ) -> Result<Option<AdoptedGraph>, DriverError> {
        let Self { stream, capture } = self;
        // It may have been ended, and another one begun.
        let same = stream.capture_info().is_ok_and(|info| info.id == Some(capture.id()));
        let Some(graph) = stream.owner().end_capture(flags)? else { return Ok(None) };
        let values: Arc<dyn Any + Send + Sync> = if same {
            // SAFETY: the graph is that of this capture, as the id was looked at right before; a
            // thread that ends it and begins another in between is the open hole of the crate's
            // page. It and its executable graph are dropped before the values, because that is the
            // order of the fields.
            unsafe { capture.end() }
        } else {
            Arc::new(())
        };
        Ok(Some(AdoptedGraph { graph, _values: values }))
    }
}

/// A graph of cudarc with the values that its nodes refer to, from [`AdoptedCapture::end`]. Its
/// methods are those of [`CudaGraph`].
pub struct AdoptedGraph {
    graph: CudaGraph,
    _values: Arc<dyn Any + Send + Sync>,
}

impl Deref for AdoptedGraph {
    type Target = CudaGraph;

    fn deref(&self) -> &CudaGraph {
        &self.graph
    }
}

impl fmt::Debug for AdoptedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdoptedGraph")
            .field("graph", &self.graph.cu_graph())
            .finish_non_exhaustive()
    }
}
