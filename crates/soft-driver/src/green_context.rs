//! Green contexts: parts of a device's multiprocessors, and the contexts that work on them.
//!
//! A resource is 144 bytes, of which the first hundred are for the driver alone. This driver stores
//! the range of multiprocessors there, and where it comes from.

use core::ffi::{c_int, c_uint};

use crate::abi::*;
use crate::arg::{ContextArg, EventArg, In, Ptr};
use crate::context;
use crate::context::all_streams::{after_work_of, ctx_wait_event, named_context, record_all};
use crate::context::primary;
use crate::context::primary::reset_primary;
use crate::device::{self, MULTIPROCESSORS};
use crate::green_context::state::{Green, Part, UNIT};
use crate::machine::State;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles::Kind;
use crate::stream::stream_create_in;

exports! { $ [green_context]
    cuDeviceGetDevResource => device_get_dev_resource;
    cuCtxGetDevResource => ctx_get_dev_resource;
    cuGreenCtxGetDevResource => green_ctx_get_dev_resource;
    cuDevSmResourceSplitByCount => dev_sm_resource_split_by_count;
    cuDevResourceGenerateDesc => dev_resource_generate_desc;
    cuGreenCtxCreate => green_ctx_create;
    cuGreenCtxDestroy => green_ctx_destroy;
    cuCtxFromGreenCtx => ctx_from_green_ctx;
    cuGreenCtxRecordEvent => green_ctx_record_event;
    cuGreenCtxWaitEvent => green_ctx_wait_event;
    cuGreenCtxStreamCreate => green_ctx_stream_create;
}

pub(crate) mod state;

/// The same where it looks at each multiprocessor by itself.
const FINE_UNIT: u32 = 2;

/// Measured: of the 16 parts of that size which would fit, the H200 makes 15; of larger ones as
/// many as fit.
const LEAST_PARTS: u32 = 15;

const IGNORE_SM_COSCHEDULING: u32 = 1;

/// The first version that detaches the streams of a green context, which ends, where older ones end
/// them too.
const DETACHES: i32 = 13_010;

const INVALID_RESOURCE_TYPE: CUresult = CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE;

const INVALID_RESOURCE_CONFIGURATION: CUresult =
    CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;

pub(crate) type GreenArg = Ptr<CUgreenCtx_st>;

const MARK: u32 = 0x6772_6e21;

impl Part {
    fn whole(device: CUdevice) -> Self {
        Self { device, first: 0, count: MULTIPROCESSORS, unit: UNIT, split: 0 }
    }

    fn to_resource(self, state: &State) -> CUdevResource {
        let mut resource = CUdevResource::default();
        resource.type_ = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
        let words = [MARK, self.device as u32, self.first, self.unit, self.split];
        for (place, word) in resource._internal_padding.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        // These two fields came with CUDA 13.0.
        let size = if state.config.version >= 13_000 { self.unit } else { 0 };
        let mut sm = CUdevSmResource::default();
        sm.smCount = self.count;
        sm.minSmPartitionSize = size;
        sm.smCoscheduledAlignment = size;
        resource.u.sm = sm;
        resource
    }

    /// The part that a resource is, or what is wrong with it.
    fn of(state: &State, call: &CallFrame, resource: &CUdevResource) -> Result<Self, CUresult> {
        if resource.type_ != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
            return Err(INVALID_RESOURCE_TYPE);
        }
        let mut words = [0; 5];
        for (word, place) in words.iter_mut().zip(resource._internal_padding.as_chunks().0) {
            *word = u32::from_le_bytes(*place);
        }
        let [mark, device, first, unit, split] = words;
        // SAFETY: the union's bytes are initialised, also in a structure that the program filled,
        // and every number is a count.
        let count = unsafe { resource.u.sm }.smCount;
        if mark != MARK || first.saturating_add(count) > MULTIPROCESSORS || unit == 0 {
            return Err(state.misuses.undefined(
                call,
                "a resource that this driver did not return",
                INVALID_VALUE,
            ));
        }
        Ok(Self { device: device as CUdevice, first, count, unit, split })
    }
}

impl State {
    /// Whether what belongs to one of two contexts may be used with what belongs to the other.
    /// Measured: events are of the primary context and of all its green ones.
    pub(crate) fn go_together(&self, one: u32, other: u32) -> bool {
        one == other || self.greens.primary_behind(one) == self.greens.primary_behind(other)
    }

    /// The error code for everything in a context that was destroyed. Measured for a green one on
    /// 13.0; what newer drivers do is documented.
    pub(crate) fn destroyed_code(&self, context: u32) -> CUresult {
        if self.contexts[context].green && self.config.version >= DETACHES {
            STREAM_DETACHED
        } else {
            CONTEXT_IS_DESTROYED
        }
    }
}

/// The green context that a handle names.
fn find_green(state: &State, call: &CallFrame, green: GreenArg) -> Result<u32, CUresult> {
    let handle = green.addr();
    if handle == 0 {
        return Err(INVALID_CONTEXT);
    }
    state.greens.table.find(handle).map_err(|bad| {
        match state.misuses.bad_handle(call, Kind::Green, handle, bad) {
            INVALID_HANDLE => INVALID_CONTEXT,
            code => code,
        }
    })
}

/// The context and the green context that `cuStreamGetCtx` returns.
pub(crate) fn green_and_primary(state: &State, context: u32) -> (CUcontext, CUgreenCtx) {
    match state.greens.of(context) {
        None => (state.context_handle(context), core::ptr::null_mut()),
        Some((index, green)) => (
            state.context_handle(green.primary),
            core::ptr::without_provenance_mut(state.greens.table.handle(index) as usize),
        ),
    }
}

fn known_type(kind: CUdevResourceType) -> Answer {
    if kind == CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
        Ok(())
    } else {
        Err(INVALID_RESOURCE_TYPE)
    }
}

pub(crate) fn device_get_dev_resource(
    call: &CallFrame,
    device: CUdevice,
    resource: Ptr<CUdevResource>,
    kind: CUdevResourceType,
) -> Answer {
    let state = call.ready()?;
    resource.required()?;
    known_type(kind)?;
    device::check(&state, device)?;
    resource.put(Part::whole(device).to_resource(&state))
}

pub(crate) fn ctx_get_dev_resource(
    call: &CallFrame,
    context: ContextArg,
    resource: Ptr<CUdevResource>,
    kind: CUdevResourceType,
) -> Answer {
    let state = call.ready()?;
    resource.required()?;
    known_type(kind)?;
    let context = named_context(&state, call, context)?;
    let part = match state.greens.of(context) {
        // What a green context has can be split again.
        Some((_, green)) => Part { split: 0, ..green.part },
        None => Part::whole(state.contexts[context].device),
    };
    resource.put(part.to_resource(&state))
}

pub(crate) fn green_ctx_get_dev_resource(
    call: &CallFrame,
    green: GreenArg,
    resource: Ptr<CUdevResource>,
    kind: CUdevResourceType,
) -> Answer {
    let state = call.ready()?;
    resource.required()?;
    known_type(kind)?;
    let green = find_green(&state, call, green)?;
    resource.put(Part { split: 0, ..state.greens.table[green].part }.to_resource(&state))
}

pub(crate) fn dev_sm_resource_split_by_count(
    call: &CallFrame,
    result: Ptr<CUdevResource>,
    groups: Ptr<c_uint>,
    input: In<CUdevResource>,
    remaining: Ptr<CUdevResource>,
    flags: c_uint,
    min_count: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    groups.required()?;
    let input = input.get()?;
    let whole = Part::of(&state, call, &input)?;
    let places = if result.is_null() { None } else { Some(groups.get()?) };
    if places == Some(0) {
        return Err(INVALID_VALUE);
    }
    // Measured: a flag that there is not is ignored.
    if whole.split != 0 || min_count > whole.count {
        return Err(INVALID_RESOURCE_CONFIGURATION);
    }
    let unit = if flags & IGNORE_SM_COSCHEDULING != 0 { FINE_UNIT } else { whole.unit };
    // Measured: all that there is can be one part, whether it is a multiple or not.
    let size = min_count.max(1).next_multiple_of(unit).min(whole.count);
    let fit = whole.count.checked_div(size).unwrap_or_default();
    let most = if size == UNIT { fit.min(LEAST_PARTS) } else { fit };
    let Some(wanted) = places else { return groups.put(most) };
    if most == 0 {
        return Err(INVALID_RESOURCE_CONFIGURATION);
    }
    state.greens.splits += 1;
    let split = state.greens.splits;
    let made = wanted.min(most);
    for index in 0..made {
        let part = Part { first: whole.first + index * size, count: size, unit, split, ..whole };
        result.put_at(index as usize, part.to_resource(&state));
    }
    let rest = Part {
        first: whole.first + made * size,
        count: whole.count - made * size,
        unit,
        split,
        ..whole
    };
    remaining.put_if(if rest.count == 0 {
        CUdevResource::default()
    } else {
        rest.to_resource(&state)
    });
    groups.put(made)
}

pub(crate) fn dev_resource_generate_desc(
    call: &CallFrame,
    description: Ptr<CUdevResourceDesc>,
    resources: Ptr<CUdevResource>,
    count: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    description.required()?;
    // Measured: the real driver ends the process, unless the address is NULL too.
    if count == 0 {
        return Err(state.misuses.undefined(
            call,
            "the description has no resource",
            INVALID_VALUE,
        ));
    }
    let resources = resources.read_array(count as usize)?;
    let parts: Result<Vec<Part>, CUresult> =
        resources.iter().map(|resource| Part::of(&state, call, resource)).collect();
    let mut parts = parts?;
    let first = *parts.first().ok_or(INVALID_VALUE)?;
    if parts.iter().any(|part| part.device != first.device) {
        let what = "a description of resources of two devices";
        return Err(state.misuses.undefined(call, what, INVALID_RESOURCE_CONFIGURATION));
    }
    // Measured: parts of two splits, and a part twice, are taken. Nothing runs here on what they
    // are of.
    parts.sort_by_key(|part| part.first);
    let total: u32 = parts.iter().map(|part| part.count).sum();
    let total = total.min(MULTIPROCESSORS);
    let start = parts[0].first.min(MULTIPROCESSORS - total);
    state.greens.described.push(Part { first: start, count: total, ..first });
    description.put(core::ptr::without_provenance_mut(state.greens.described.len() << 4))
}

pub(crate) fn green_ctx_create(
    call: &CallFrame,
    green: Ptr<CUgreenCtx>,
    description: Ptr<CUdevResourceDesc_st>,
    device: CUdevice,
    flags: c_uint,
) -> Answer {
    let mut state = call.ready()?;
    green.required()?;
    let ordinal = device::check(&state, device)?;
    // To do without the default stream came later.
    if flags != CU_GREEN_CTX_DEFAULT_STREAM
        && (flags != CU_GREEN_CTX_NONE || state.config.version < 13_030)
    {
        return Err(INVALID_VALUE);
    }
    let part = match (description.addr() as usize >> 4).checked_sub(1) {
        Some(index) => *state.greens.described.get(index).ok_or(INVALID_VALUE)?,
        // Measured: without a description it is success. What it has then is not known.
        None => Part::whole(device),
    };
    if part.device != device {
        return Err(INVALID_DEVICE);
    }
    // Measured on an H200: the call waits for the work of the device.
    state = after_work_of(call, state, ordinal)?;
    let primary = primary::retain_primary(&mut state, call, device, ordinal)?;
    let flags = state.contexts[primary].flags;
    let context = state.new_context(call, device, flags, false)?;
    state.contexts[context].green = true;
    state.engine.contexts.set_primary(context, primary);
    let (_, handle) = state
        .greens
        .table
        .insert(call.number, Green { context, primary, part })
        .ok_or(OUT_OF_MEMORY)?;
    green.put(core::ptr::without_provenance_mut(handle as usize))
}

pub(crate) fn green_ctx_destroy(call: &CallFrame, green: GreenArg) -> Answer {
    let state = call.ready()?;
    let handle = green.addr();
    let index = find_green(&state, call, green)?;
    let context = state.greens.table[index].context;
    let mut state = call.machine.drain(state, context)?;
    if state.greens.table.find(handle) != Ok(index) {
        return Err(CONTEXT_IS_DESTROYED);
    }
    let Some(Green { primary, .. }) = state.greens.table.remove(index) else {
        return Err(INVALID_CONTEXT);
    };
    state.misuses.note_destroyed(call, handle);
    let State { captures, graphs, engine, feed, .. } = &mut *state;
    captures.end_of_context(context, graphs, engine, feed.as_deref_mut());
    // Its streams stay: a newer driver has their owner destroy them, to an older one they are gone.
    // Its events are the primary context's from here on.
    if state.config.version < DETACHES {
        context::end_streams_of(&mut state, context);
    }
    for event in state.events.indices(|event| event.context == context) {
        state.events[event].context = primary;
    }
    state.contexts[context].alive = false;
    state.engine.contexts.end(context);
    let ordinal = state.contexts[context].device as usize;
    match state.devices[ordinal].release() {
        Ok(false) => Ok(()),
        // A reset may have taken the retains before.
        _ => reset_primary(call, state, ordinal, false),
    }
}

pub(crate) fn ctx_from_green_ctx(
    call: &CallFrame,
    context: Ptr<CUcontext>,
    green: GreenArg,
) -> Answer {
    let state = call.ready()?;
    context.required()?;
    let green = find_green(&state, call, green)?;
    context.put(state.context_handle(state.greens.table[green].context))
}

/// The context that stands for a green one, as an argument.
fn standing_for(call: &CallFrame, green: GreenArg) -> Result<ContextArg, CUresult> {
    let state = call.ready()?;
    let green = find_green(&state, call, green)?;
    Ok(Ptr::of_handle(state.context_handle(state.greens.table[green].context)))
}

/// Documented: the event may be of any context that has the same primary one.
pub(crate) fn green_ctx_record_event(call: &CallFrame, green: GreenArg, event: EventArg) -> Answer {
    let state = call.ready()?;
    let green = find_green(&state, call, green)?;
    let Green { context, primary, .. } = state.greens.table[green];
    state.usable(context)?;
    let event = state.event(call, event)?;
    if !state.greens.with(primary).contains(&state.events[event].context) {
        return Err(INVALID_HANDLE);
    }
    record_all(call, state, context, event)
}

pub(crate) fn green_ctx_wait_event(call: &CallFrame, green: GreenArg, event: EventArg) -> Answer {
    ctx_wait_event(call, standing_for(call, green)?, event)
}

pub(crate) fn green_ctx_stream_create(
    call: &CallFrame,
    stream: Ptr<CUstream>,
    green: GreenArg,
    flags: c_uint,
    priority: c_int,
) -> Answer {
    let mut state = call.ready()?;
    stream.required()?;
    let green = find_green(&state, call, green)?;
    if flags != CU_STREAM_NON_BLOCKING {
        return Err(INVALID_VALUE);
    }
    let context = state.greens.table[green].context;
    state.usable(context)?;
    stream_create_in(call, &mut state, stream, context, flags, priority)
}
