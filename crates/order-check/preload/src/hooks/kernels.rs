//! Kernels: what their parameters point to.

use cuda_order_check_engine::EventId;

use crate::call::{Call, Code, Handle, OK, read};
use crate::code::launch::Sizes;
use crate::model::kernels::{Attribute, LaunchConfig, sizes_of};
use crate::model::nodes::CHANGEABLE;
use crate::model::waiting::Submitted;
use crate::report::trace::note;
use crate::watch::Watch;
use crate::watch::walk::enter;

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
    enter(|watch| {
        let name = watch.kernels.name_of(&watch.questions, call, function);
        watch.seen.kernels += 1;
        // The host may access managed memory before its next call.
        let may_wait = assumes.is_none() && watch.pinned.managed == 0;
        watch.later(call, name, stream, may_wait, |watch| {
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
    config: *const LaunchConfig,
    function: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    // SAFETY: NULL or the program's description, with so many attributes.
    let config = unsafe { read(config) };
    let attribute = |at: usize| {
        let first: *const Attribute = core::ptr::with_exposed_provenance(config.attributes);
        // SAFETY: as above.
        unsafe { first.add(at).read() }
    };
    let count = if config.attributes == 0 { 0 } else { config.count as usize };
    if (0..count).map(attribute).any(|of| of.id == CHANGEABLE) {
        // The driver is asked for the node.
        enter(|watch| {
            let capture = watch.known_stream(call, config.stream);
            watch.graphs.partial.extend(capture.and_then(|of| watch.feed.capture_of(of)));
        });
    }
    // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT and _LAUNCH_COMPLETION_EVENT: events that are recorded
    // before the kernel has ended. What waits for them is taken to be after all of it.
    let records = (0..count).map(attribute).filter(|of| matches!(of.id, 7 | 12));
    let records: Vec<Handle> = records.map(|of| of.value[0] as Handle).collect();
    // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
    let begins_early = (0..count).map(attribute).any(|of| of.id == 6 && of.value[0] as u32 != 0);
    let assumes = match (records.is_empty(), begins_early) {
        (false, _) => Some("an event that a kernel records early is recorded at its end"),
        (true, true) => Some("a kernel that may begin early begins after the one before it"),
        (true, false) => None,
    };
    let kernel = (function, sizes_of(config.sizes));
    launched(call, real, kernel, config.stream, parameters, extra, (&records, assumes))
}

#[cfg(test)]
mod tests;
