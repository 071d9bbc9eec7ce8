//! What a program tells the order checker of accesses that no driver sees.

use core::panic::Location;

use cuda_order_check::{Access, Cell};

use crate::abi::*;
use crate::arg::StreamArg;
use crate::model::call_frame::CallFrame;
use crate::model::graph::NodeKind;

/// What no driver sees.
pub(crate) enum Told<'a> {
    /// Bytes are touched in stream order, or by the host itself.
    Access(Option<StreamArg>, Access),
    /// The calling thread, or host function, hands something on, or takes what was handed on.
    Hand { token: u64, over: bool },
    /// The host has read a value that streams write.
    Saw(Cell, u64),
    /// A stream gets a name.
    Name(StreamArg, &'a str),
}

/// An access of a stream that is captured is a node of the graph, which looks like an empty one.
pub(crate) fn tell(
    call: &CallFrame,
    told: Told<'_>,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let mut state = call.ready()?;
    if state.order.is_none() {
        return Ok(());
    }
    state.order_call_at(call, location.map(Into::into));
    let (stream, access) = match told {
        Told::Access(Some(stream), access) => (stream, access),
        Told::Access(None, access) => {
            state.order_told(None, access);
            return Ok(());
        }
        Told::Hand { token, over } => {
            state.order_handed(token, over);
            return Ok(());
        }
        Told::Name(stream, name) => {
            let stream = state.stream(call, stream)?;
            state.order_stream_name(stream, name);
            return Ok(());
        }
        Told::Saw(cell, value) => {
            state.order_host_saw(cell, value);
            return Ok(());
        }
    };
    let stream = state.stream(call, stream)?;
    if state.captured(stream, NodeKind::Told(vec![access.clone()]))? {
        return Ok(());
    }
    state.order_told(Some(stream), access);
    Ok(())
}
