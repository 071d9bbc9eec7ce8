//! The calls that launch kernels.

use cuda_events::sys::CUlaunchAttributeID;
use cuda_events::sys::more::CUlaunchConfig;

use crate::call::{Call, Code, Handle, OK, read};
use crate::code::launch::Sizes;
use crate::model::kernels::{KernelLaunch, launched};
use crate::state::kernels::sizes_of;
use crate::state::nodes::CHANGEABLE;
use crate::walk::locked;

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const SERIALIZED: CUlaunchAttributeID = CUlaunchAttributeID(6);

pub(crate) fn launch(
    call: &Call,
    real: impl FnOnce() -> Code,
    (function, sizes): (Handle, Sizes),
    stream: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    let records = &[];
    let launch =
        KernelLaunch { function, sizes, parameters, extra, stream, records, assumes: None };
    submit(call, real, &launch)
}

fn submit(call: &Call, real: impl FnOnce() -> Code, launch: &KernelLaunch<'_>) -> Code {
    let code = real();
    if code == OK {
        locked(|watch| launched(watch, call, launch));
    }
    code
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
    let attribute_at = |at: usize| {
        // SAFETY: as above.
        unsafe { config.attrs.add(at).read() }
    };
    let count = if config.attrs.is_null() { 0 } else { config.numAttrs as usize };
    let stream = config.hStream.addr();
    if (0..count).map(attribute_at).any(|attribute| attribute.id == CHANGEABLE) {
        // The driver is asked for the node.
        locked(|watch| {
            let stream = watch.seen_stream(call, stream);
            watch.graphs.partial.extend(stream.and_then(|stream| watch.feed.capture_of(stream)));
        });
    }
    // Events that are recorded before the kernel has ended. What waits for them is taken to be after
    // all of it.
    let records = (0..count).map(attribute_at).filter_map(|attribute| match attribute.id {
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => {
            // SAFETY: the attribute says which member it is; its bytes are the program's.
            Some(unsafe { attribute.value.programmaticEvent.event }.addr())
        }
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
            // SAFETY: as above.
            Some(unsafe { attribute.value.launchCompletionEvent.event }.addr())
        }
        _ => None,
    });
    let records: Vec<Handle> = records.collect();
    let begins_early = (0..count).map(attribute_at).any(|attribute| {
        // SAFETY: as above. All members that are an int have one place.
        attribute.id == SERIALIZED && unsafe { attribute.value.priority } != 0
    });
    let assumes = match (records.is_empty(), begins_early) {
        (false, _) => Some("an event that a kernel records early is recorded at its end"),
        (true, true) => Some("a kernel that may begin early begins after the one before it"),
        (true, false) => None,
    };
    let grid = [config.gridDimX, config.gridDimY, config.gridDimZ];
    let block = [config.blockDimX, config.blockDimY, config.blockDimZ];
    let (sizes, records) = (sizes_of(grid, block), &records);
    let launch = KernelLaunch { function, sizes, parameters, extra, stream, records, assumes };
    submit(call, real, &launch)
}

#[cfg(test)]
mod tests;
