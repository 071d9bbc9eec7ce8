//! Interprocess events: one file of shared memory for each exporting context, one slot for each event.
//!
//! A slot's word of 64 bits holds how many records were made, how many of them are done, and which event of the slot's it
//! is about. Whoever records, in whatever process, adds to the first two; all of it in compare-and-swap, so that a process
//! that is killed leaves no lock behind. The file's header has a bell that rings with each completion somebody may wait for;
//! waiters sleep on it as a futex.

use crate::abi::*;
use crate::arg::{EventArg, Ptr};
use crate::front::entry::Call;
use crate::model::machine::State;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Exporter, Record, SharedEvent, Wait, block, watch};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::nowhere::{Exporter, Record, SharedEvent, Wait, block, watch};

#[cfg(target_os = "linux")]
#[path = "ipc_linux.rs"]
mod linux;

/// Whether this platform has interprocess events in software.
pub(crate) const AVAILABLE: bool = cfg!(target_os = "linux");

/// Gives a new event its slot.
pub(crate) fn new_event(state: &mut State, context: u32) -> Result<Box<SharedEvent>, CUresult> {
    if !state.config.ipc || !AVAILABLE {
        return Err(NOT_SUPPORTED);
    }
    let slots = state.config.ipc_slots;
    let exporter = match &mut state.contexts[context].ipc {
        Some(exporter) => exporter,
        none => none.insert(Exporter::create(slots)?),
    };
    exporter.take_slot()
}

/// Takes an event's slot back, when it is this process's to give.
pub(crate) fn free_event(state: &mut State, context: u32, event: SharedEvent) {
    if let Some(exporter) = &mut state.contexts[context].ipc
        && exporter.owns(&event)
    {
        exporter.free_slot(event);
    }
}

pub(crate) fn ipc_get_event_handle(call: &Call, handle: Ptr<CUipcEventHandle>, event: EventArg) -> Answer {
    let state = call.ready()?;
    handle.required()?;
    if event.is_null() {
        return Err(INVALID_VALUE);
    }
    if !state.config.ipc || !AVAILABLE {
        return Err(NOT_SUPPORTED);
    }
    state.current(call)?;
    let event = state.event(call, event)?;
    let strict = crate::model::engine::strict(&state);
    let reserved = match &state.events[event].shared {
        Some(shared) if !shared.imported() => shared.descriptor(strict),
        _ => return Err(INVALID_HANDLE),
    };
    handle.put(CUipcEventHandle { reserved })
}

pub(crate) fn ipc_open_event_handle(call: &Call, event: Ptr<CUevent>, handle: CUipcEventHandle) -> Answer {
    let mut state = call.ready()?;
    event.required()?;
    if !state.config.ipc || !AVAILABLE {
        return Err(NOT_SUPPORTED);
    }
    let context = state.current(call)?;
    let strict = crate::model::engine::strict(&state);
    let shared = SharedEvent::import(&handle.reserved, strict)?;
    if strict && let Some(what) = shared.misused() {
        return Err(state.misuse(call, &format!("the descriptor names {what}"), INVALID_HANDLE));
    }
    let new = crate::calls::event::Event {
        context,
        flags: CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS,
        orphan: false,
        state: crate::calls::event::EventState::Never,
        shared: Some(shared),
    };
    let born = state.call_number;
    let (_, handle) = state.events.insert(born, new).ok_or(OUT_OF_MEMORY)?;
    event.put(core::ptr::without_provenance_mut(handle as usize))
}

/// Without a futex there are no interprocess events; nothing of this is ever made.
#[cfg(not(target_os = "linux"))]
mod nowhere {
    use super::*;
    use crate::model::machine::Machine;

    #[derive(Debug)]
    pub(crate) enum Record {}

    impl Record {
        pub(crate) fn complete(&self) {
            match *self {}
        }
    }

    #[derive(Clone, Debug)]
    pub(crate) enum Wait {}

    impl Wait {
        pub(crate) fn is_done(&self) -> bool {
            match *self {}
        }
    }

    pub(crate) enum SharedEvent {}

    impl SharedEvent {
        pub(crate) fn import(_descriptor: &[u8; 64], _strict: bool) -> Result<Box<Self>, CUresult> {
            Err(NOT_SUPPORTED)
        }

        pub(crate) fn imported(&self) -> bool {
            match *self {}
        }

        pub(crate) fn descriptor(&self, _strict: bool) -> [u8; 64] {
            match *self {}
        }

        pub(crate) fn others_done(&self) -> bool {
            match *self {}
        }

        pub(crate) fn wait_for_others(&self) -> Option<Wait> {
            match *self {}
        }

        pub(crate) fn misused(&self) -> Option<String> {
            match *self {}
        }

        pub(crate) fn record(&self) -> Record {
            match *self {}
        }

        pub(crate) fn record_done(&self) {
            match *self {}
        }
    }

    pub(crate) enum Exporter {}

    impl Exporter {
        pub(crate) fn create(_slots: u32) -> Result<Self, CUresult> {
            Err(NOT_SUPPORTED)
        }

        pub(crate) fn take_slot(&mut self) -> Result<Box<SharedEvent>, CUresult> {
            match *self {}
        }

        pub(crate) fn owns(&self, _event: &SharedEvent) -> bool {
            match *self {}
        }

        pub(crate) fn free_slot(&mut self, _event: SharedEvent) {
            match *self {}
        }

        pub(crate) fn live(&self) -> usize {
            match *self {}
        }
    }

    pub(crate) fn watch(_machine: &'static Machine, _state: &mut State, wait: &Wait) {
        match *wait {}
    }

    pub(crate) fn block(_machine: &'static Machine, wait: &Wait) -> Answer {
        match *wait {}
    }
}
