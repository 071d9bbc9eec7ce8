//! The calls that give host functions to streams and nodes, and that ask nodes for them.

use core::ffi::c_uint;
use std::sync::Arc;

use cuda_events::sys::CUDA_HOST_NODE_PARAMS;

use crate::call::{Call, Callback, Code, Function, Handle, OK, read};
use crate::callbacks::run_host;
use crate::model::graphs::nodes_change;
use crate::model::host_functions::nodes::{NodeQuestions, host_in};
use crate::state::executions::{Host, NodeParams, NodeReference, Runs};
use crate::state::graphs::NodePlace;
use crate::state::node::Node;
use crate::state::under_way::Visible;
use crate::walk::{begin_call, caught_up, locked};
use crate::watch::Watch;

/// A stream gets a host function, or a callback. `real` makes the call: with the program's own, or
/// with [`run_host`] or [`run_callback`](crate::callbacks::run_callback) and this data.
pub(crate) fn submit(
    call: &Call,
    real: impl FnOnce(Option<Handle>) -> Code,
    stream: Handle,
    (function, callback): (Function, Callback),
    data: Handle,
) -> Code {
    if function.is_none() && callback.is_none() {
        return real(None);
    }
    let handle = if stream == 0 && call.per_thread { 2 } else { stream };
    // A function without a hook may have begun a capture. The legacy stream has
    // none.
    let unknown = |watch: &mut Watch| {
        let seen = watch.seen_stream(call, stream);
        seen.and_then(|stream| watch.feed.capture_of(stream))
            .is_none()
            .then_some(watch.graphs.keeper)
    };
    let asked = if handle > 1 { locked(unknown).flatten() } else { None };
    let unseen = asked.is_some_and(|keeper| keeper.captured(handle) != 0);
    let made = begin_call(call, |watch| {
        let stream = watch.stream(call, stream);
        let is_captured = watch.feed.capture_of(stream).is_some();
        let captured = is_captured || unseen;
        let id = watch.next_id();
        let host = Arc::new(Host::new(function, callback, data));
        let number = (is_captured || !captured).then(|| {
            // It may begin before the real call returns.
            let visible = Visible { stream, ids: vec![id], at_once: false };
            let host = host.clone();
            watch.submission_begins(visible, move |watch| {
                watch.uploads.host_may_be_late();
                watch.feed.function(stream, id);
                if is_captured {
                    // It is one of each launch.
                    watch.feed.function_left(id);
                    watch.graphs.add(&watch.feed, stream, Node::Host(host));
                }
            })
        });
        if !captured {
            *host.runs() = Runs { ids: [id].into(), last: true };
        }
        (host, number, captured.then_some(watch.graphs.keeper))
    });
    let Some((host, number, keeper)) = made else { return real(None) };
    let raw = Arc::into_raw(host);
    let code = real(Some(raw.expose_provenance()));
    if let Some(number) = number {
        caught_up(|watch| watch.submission_returned(number, code));
    }
    if code != OK {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
    } else if let Some(keeper) = keeper {
        // SAFETY: the driver has it now, for a node of the graph that is captured.
        unsafe { keeper.give(keeper.captured(handle), raw) };
    }
    code
}

/// A host function becomes that of a node: a new one of a graph, one of a graph, or one of an
/// executable graph.
pub(crate) fn in_node(
    call: &Call,
    real: impl FnOnce(*const CUDA_HOST_NODE_PARAMS) -> Code,
    description: *const CUDA_HOST_NODE_PARAMS,
    place: NodePlace,
) -> Code {
    // SAFETY: NULL or the program's description.
    let CUDA_HOST_NODE_PARAMS { fn_: function, userData: data } = unsafe { read(description) };
    let Some(asks) = begin_call(call, NodeQuestions::new).filter(|_| function.is_some()) else {
        return real(description);
    };
    let keeper = match place {
        NodePlace::Graph(graph) => Some((graph, None)),
        NodePlace::Node(node) => asks.graph(node).and_then(|graph| {
            let reference = asks.reference(graph, node)?;
            Some((graph, Some(reference)))
        }),
        NodePlace::Exec(..) => None,
    };
    let of_exec = matches!(place, NodePlace::Exec(..));
    let host = Arc::new(Host { of_exec, ..Host::new(function, None, data.expose_provenance()) });
    let raw = Arc::into_raw(host.clone());
    let given = CUDA_HOST_NODE_PARAMS { fn_: Some(run_host), userData: raw.cast_mut().cast() };
    let code = real(&given);
    if code != OK {
        // SAFETY: the driver has not taken it.
        drop(unsafe { Arc::from_raw(raw) });
        return code;
    }
    if let Some((graph, former)) = keeper {
        // SAFETY: the node has it now, and is one of this graph.
        let is_given = unsafe { asks.keeper.give(graph, raw) };
        former.filter(|_| is_given).iter().for_each(NodeReference::release);
    }
    caught_up(|watch| {
        if let NodePlace::Exec(exec, _) = place {
            nodes_change(watch, exec);
        }
        watch.graphs.host_node(place, host);
    });
    code
}

/// The program asks for a node's host function: its own.
pub(crate) fn of_node(
    _: &Call,
    real: impl FnOnce() -> Code,
    description: *mut CUDA_HOST_NODE_PARAMS,
) -> Code {
    let code = real();
    // SAFETY: NULL or a place for the description, which a success has written.
    if let (OK, Some(description)) = (code, unsafe { description.as_mut() }) {
        give_back(description);
    }
    code
}

/// The same by the function for nodes of all kinds.
pub(crate) fn of_any_node(
    _: &Call,
    real: impl FnOnce() -> Code,
    description: *mut NodeParams,
) -> Code {
    /// `CU_GRAPH_NODE_TYPE_HOST`.
    const HOST: c_uint = 3;
    let code = real();
    // SAFETY: as above; what is read is a part of every kind's description.
    if let (OK, Some(description)) = (code, unsafe { description.as_mut() })
        && description.kind == HOST
    {
        give_back(&mut description.host);
    }
    code
}

/// The program's own function, in the place of [`run_host`].
pub(crate) fn give_back(description: &mut CUDA_HOST_NODE_PARAMS) {
    if let Some(host) = host_in(description) {
        let data = core::ptr::with_exposed_provenance_mut(host.data);
        *description = CUDA_HOST_NODE_PARAMS { fn_: host.function, userData: data };
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;
    use std::sync::Arc;

    use super::submit;
    use crate::call::{Call, Handle, OK};
    use crate::hooks::tests::with_context;
    use crate::state::executions::Host;

    const CALL: Call = Call { name: "cuLaunchHostFunc", per_thread: false };

    unsafe extern "C" fn nothing(_: *mut c_void) {}

    /// The driver has a reference to what it has taken, and nobody has one to what it has refused.
    #[test]
    fn what_is_refused_is_given_back() {
        let _turn = crate::lock::TURN.lock();
        for (code, of_driver) in [(OK, 1), (1, 0)] {
            with_context();
            let mut taken = None;
            let real = |data: Option<Handle>| {
                let raw = core::ptr::with_exposed_provenance::<Host>(data.expect("it is hooked"));
                // SAFETY: what the hook gives, with a reference for this test.
                taken = Some(unsafe {
                    Arc::increment_strong_count(raw);
                    Arc::from_raw(raw)
                });
                code
            };
            assert_eq!(submit(&CALL, real, 0x100, (Some(nothing), None), 0), code);
            let host = taken.expect("the driver was called");
            assert_eq!(Arc::strong_count(&host), 1 + of_driver, "{code}");
            if of_driver > 0 {
                // SAFETY: the driver's reference, which this driver does not use.
                unsafe { Arc::decrement_strong_count(Arc::as_ptr(&host)) };
            }
        }
    }
}
