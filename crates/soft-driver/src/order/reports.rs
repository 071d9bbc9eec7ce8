//! What a program reports to the order checker: what no driver sees.

use core::panic::Location;

use cuda_order_check::Access;

use crate::abi::*;
use crate::arg::StreamArg;
use crate::graph::NodeKind;
use crate::machine::State;
use crate::machine::call_frame::CallFrame;

/// Makes a report, if the order is checked.
pub(crate) fn report(
    call: &CallFrame,
    location: Option<&'static Location<'static>>,
    make: impl FnOnce(&mut State) -> Answer,
) -> Answer {
    let mut state = call.ready()?;
    let location = location.map(Into::into);
    let begun = state.feed(|feed, _| feed.begin(call.name(), call.number, location));
    if begun.is_some() { make(&mut state) } else { Ok(()) }
}

/// Bytes are accessed in stream order, or by the host itself. An access of a stream that is
/// captured is a node of the graph, which looks like an empty one.
pub(crate) fn access(
    call: &CallFrame,
    location: Option<&'static Location<'static>>,
    stream: Option<StreamArg>,
    access: Access,
) -> Answer {
    report(call, location, |state| {
        let Some(stream) = stream else {
            state.feed(|feed, _| feed.host(&[access]));
            return Ok(());
        };
        let stream = state.stream(call, stream)?;
        if !state.captured(stream, NodeKind::Declared(vec![access.clone()]))? {
            state.feed(|feed, of| feed.work(of.stream(stream), &[access]));
        }
        Ok(())
    })
}
