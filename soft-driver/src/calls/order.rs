//! What a program tells the order checker of accesses that no driver sees.

use core::panic::Location;

use cuda_order_check::Access;

use crate::abi::*;
use crate::arg::StreamArg;
use crate::model::call_frame::CallFrame;
use crate::model::graph::NodeKind;

/// The bytes are touched in stream order, or by the host itself. While the stream is captured it is
/// a node of the graph, which looks like an empty one.
pub(crate) fn tell_access(
    call: &CallFrame,
    stream: Option<StreamArg>,
    access: Access,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let mut state = call.ready()?;
    if state.order.is_none() {
        return Ok(());
    }
    state.order_call_at(call, location.map(Into::into));
    let Some(stream) = stream else {
        state.order_told(None, access);
        return Ok(());
    };
    let stream = state.stream(call, stream)?;
    if state.captured(stream, NodeKind::Told(vec![access.clone()]))? {
        return Ok(());
    }
    state.order_told(Some(stream), access);
    Ok(())
}
