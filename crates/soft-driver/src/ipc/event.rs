//! Interprocess events: their handles, and what other processes open by them.

use crate::abi::*;
use crate::arg::{EventArg, Ptr};
use crate::event::state::Event;
use crate::machine::call_frame::CallFrame;
use crate::machine::config::Rules;
use crate::processes::{AVAILABLE, SharedEvent};

exports! { $ [ipc::event]
    cuIpcGetEventHandle => ipc_get_event_handle;
    cuIpcOpenEventHandle => ipc_open_event_handle;
}

pub(crate) fn ipc_get_event_handle(
    call: &CallFrame,
    handle: Ptr<CUipcEventHandle>,
    event: EventArg,
) -> Answer {
    let mut state = call.ready()?;
    handle.required()?;
    if event.is_null() {
        return Err(INVALID_VALUE);
    }
    if !state.config.ipc || !AVAILABLE {
        return Err(NOT_SUPPORTED);
    }
    state.current(call)?;
    let event = state.event(call, event)?;
    let strict = state.config.rules == Rules::Strict;
    let entry = &state.events[event];
    let reserved = entry.own_slot().ok_or(INVALID_HANDLE)?.descriptor(strict);
    let record = entry.pending().map(|point| point.id);
    state.feed(|feed, ids| feed.event_exported(ids.event(event), record));
    handle.put(CUipcEventHandle { reserved })
}

pub(crate) fn ipc_open_event_handle(
    call: &CallFrame,
    event: Ptr<CUevent>,
    handle: CUipcEventHandle,
) -> Answer {
    let mut state = call.ready()?;
    event.required()?;
    if !state.config.ipc || !AVAILABLE {
        return Err(NOT_SUPPORTED);
    }
    let context = state.current(call)?;
    let strict = state.config.rules == Rules::Strict;
    let shared = SharedEvent::import(&handle.reserved, strict)?;
    if strict && let Some(what) = shared.misused() {
        return Err(state.misuses.undefined(
            call,
            &format!("the descriptor names {what}"),
            INVALID_HANDLE,
        ));
    }
    let new = Event::import(context, shared);
    let (index, handle) = state.events.insert(call.number, new).ok_or(OUT_OF_MEMORY)?;
    state.feed(|feed, ids| feed.event_create(ids.event(index), true));
    event.put(core::ptr::without_provenance_mut(handle as usize))
}
