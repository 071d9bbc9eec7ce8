//! Kernels: what their parameters point to.

use cuda_events::sys::CUlaunchAttributeID;
use cuda_events::sys::more::CUlaunchConfig;
use cuda_order_check_engine::EventId;

use crate::call::{Call, Code, Handle, OK, read};
use crate::code::launch::Sizes;
use crate::model::graphs::nodes::CHANGEABLE;
use crate::model::kernels::state::sizes_of;
use crate::model::waiting::state::Submitted;
use crate::report::trace::note;
use crate::walk::locked;
use crate::watch::Watch;

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const SERIALIZED: CUlaunchAttributeID = CUlaunchAttributeID(6);

pub(crate) fn launched(
    call: &Call,
    real: impl FnOnce() -> Code,
    (function, sizes): (Handle, Sizes),
    stream: Handle,
    parameters: *const Handle,
    extra: *const Handle,
    (records, assumes): (&[Handle], Option<&'static str>),
) -> Code {
    let code = real();
    if code != OK {
        return code;
    }
    locked(|watch| {
        let name = watch.kernels.name_of(&watch.questions, call, function);
        watch.seen.kernels += 1;
        // The host may access managed memory before its next call.
        let may_wait = assumes.is_none() && watch.pinned.managed == 0;
        watch.defer(call, name, stream, may_wait, |watch| {
            note(|| format!(" [{name}]"));
            let Watch { waiting, kernels, .. } = watch;
            if let Some(kernel) = kernels.known.get(&function) {
                // SAFETY: what the program gave to the call.
                unsafe { kernel.values(parameters, extra, &mut waiting.values) };
            }
            Submitted::Launch { function, sizes, end: waiting.values.len() }
        });
        assumes.into_iter().for_each(|what| watch.feed.assume(what));
        for event in records {
            let stream = watch.stream(call, stream);
            watch.feed.record(EventId(*event as u64), stream);
        }
    });
    code
}

pub(crate) fn launch(
    call: &Call,
    real: impl FnOnce() -> Code,
    kernel: (Handle, Sizes),
    stream: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    launched(call, real, kernel, stream, parameters, extra, (&[], None))
}

pub(crate) fn launch_ex(
    call: &Call,
    real: impl FnOnce() -> Code,
    config: *const CUlaunchConfig,
    function: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    // SAFETY: NULL or the program's description, with so many attributes.
    let config = unsafe { read(config) };
    let attribute = |at: usize| {
        // SAFETY: as above.
        unsafe { config.attrs.add(at).read() }
    };
    let count = if config.attrs.is_null() { 0 } else { config.numAttrs as usize };
    let stream = config.hStream.addr();
    if (0..count).map(attribute).any(|of| of.id == CHANGEABLE) {
        // The driver is asked for the node.
        locked(|watch| {
            let capture = watch.known_stream(call, stream);
            watch.graphs.partial.extend(capture.and_then(|of| watch.feed.capture_of(of)));
        });
    }
    // Events that are recorded before the kernel has ended. What waits for them is taken to be after
    // all of it.
    let records = (0..count).map(attribute).filter_map(|of| match of.id {
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => {
            // SAFETY: the attribute says which member it is; its bytes are the program's.
            Some(unsafe { of.value.programmaticEvent.event }.addr())
        }
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
            // SAFETY: as above.
            Some(unsafe { of.value.launchCompletionEvent.event }.addr())
        }
        _ => None,
    });
    let records: Vec<Handle> = records.collect();
    let begins_early = (0..count).map(attribute).any(|of| {
        // SAFETY: as above. All members that are an int have one place.
        of.id == SERIALIZED && unsafe { of.value.priority } != 0
    });
    let assumes = match (records.is_empty(), begins_early) {
        (false, _) => Some("an event that a kernel records early is recorded at its end"),
        (true, true) => Some("a kernel that may begin early begins after the one before it"),
        (true, false) => None,
    };
    let grid = [config.gridDimX, config.gridDimY, config.gridDimZ];
    let block = [config.blockDimX, config.blockDimY, config.blockDimZ];
    let kernel = (function, sizes_of(grid, block));
    launched(call, real, kernel, stream, parameters, extra, (&records, assumes))
}

#[cfg(test)]
mod tests;
