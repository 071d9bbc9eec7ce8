//! For cudarc and cuda.core: memory pools, and allocations and frees in stream order.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};

use crate::abi::*;
use crate::allocation;
use crate::arg::{In, Memory, Ptr, StreamArg};
use crate::device;
use crate::engine::work::Task;
use crate::machine::call_frame::CallFrame;
use crate::machine::handles;
use crate::machine::{Locked, State};
use crate::memory::pool::Pool;
use crate::memory::{Kind, Region};
use crate::processes::AVAILABLE;
use crate::processes::shared_memory::{Arena, Named, PoolFile};

exports! { $ [allocation::pools]
    cuMemAllocAsync, cuMemAllocAsync_ptsz => mem_alloc_async;
    cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz
        => mem_alloc_from_pool_async;
    cuMemFreeAsync, cuMemFreeAsync_ptsz => mem_free_async;
    cuMemPoolCreate => mem_pool_create;
    cuMemPoolDestroy => mem_pool_destroy;
    cuMemPoolTrimTo => mem_pool_trim_to;
    cuMemPoolSetAttribute => mem_pool_set_attribute;
    cuMemPoolGetAttribute => mem_pool_get_attribute;
    cuMemPoolSetAccess => mem_pool_set_access;
    cuMemPoolGetAccess => mem_pool_get_access;
    cuMemPoolExportToShareableHandle => mem_pool_export_to_shareable_handle;
    cuMemPoolImportFromShareableHandle => mem_pool_import_from_shareable_handle;
    cuMemPoolExportPointer => mem_pool_export_pointer;
    cuMemPoolImportPointer => mem_pool_import_pointer;
    cuDeviceGetDefaultMemPool => device_get_default_mem_pool;
    cuDeviceGetMemPool => device_get_mem_pool;
    cuDeviceSetMemPool => device_set_mem_pool;
    cuMemGetDefaultMemPool => mem_get_default_mem_pool;
    cuMemGetMemPool => mem_get_mem_pool;
    cuMemSetMemPool => mem_set_mem_pool;
}

/// Kinds of handles: a file descriptor, and one between machines.
const FILE_DESCRIPTOR: u32 = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;
const FABRIC: u32 = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC.0;
/// What a device may do with memory: anything, and reading alone.
const READ_WRITE: u32 = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
const READ: u32 = CU_MEM_ACCESS_FLAGS_PROT_READ;

fn handle_of(state: &State, pool: u32) -> *mut c_void {
    core::ptr::without_provenance_mut(state.memory.pools.handle(pool) as usize)
}

fn find_pool(state: &State, call: &CallFrame, pool: Memory) -> Result<u32, CUresult> {
    if pool.is_null() {
        return Err(INVALID_VALUE);
    }
    let found = state.memory.pools.find(pool.addr());
    found.map_err(|bad| {
        match state.misuses.bad_handle(call, handles::Kind::Pool, pool.addr(), bad) {
            DEINITIALIZED => DEINITIALIZED,
            _ => INVALID_VALUE,
        }
    })
}

/// The device of a location.
fn located(state: &State, location: CUmemLocation) -> Result<usize, CUresult> {
    match location.type_ {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => device::check(state, location.id),
        // Memory of the host has no pools here.
        CUmemLocationType(2..=4) => Err(NOT_SUPPORTED),
        _ => Err(INVALID_VALUE),
    }
}

fn check_alloc_type(state: &State, alloc_type: CUmemAllocationType) -> Answer {
    match alloc_type {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => Ok(()),
        // The software driver has no pools of managed memory.
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED if state.config.version >= 13000 => {
            Err(NOT_SUPPORTED)
        }
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn mem_pool_create(
    call: &CallFrame,
    pool: Ptr<*mut c_void>,
    props: In<CUmemPoolProps>,
) -> Answer {
    let mut state = call.ready()?;
    pool.required()?;
    let props = props.get()?;
    check_alloc_type(&state, props.allocType)?;
    let device = located(&state, props.location).map_err(|code| match code {
        // Measured: not `CUDA_ERROR_INVALID_DEVICE`, as elsewhere.
        INVALID_DEVICE => INVALID_VALUE,
        code => code,
    })?;
    state.captures.refuse_unsafe()?;
    let arena = match props.handleTypes.0 {
        0 => None,
        // It takes a service between machines, which is not there.
        FABRIC => return Err(NOT_PERMITTED),
        FILE_DESCRIPTOR if state.config.ipc && AVAILABLE => {
            let physical = state.devices[device].physical() as u64;
            Some(Arena::of_pool(physical).ok_or(OPERATING_SYSTEM)?)
        }
        FILE_DESCRIPTOR | 2 | 4 => return Err(NOT_SUPPORTED),
        _ => return Err(INVALID_VALUE),
    };
    let (handle_types, max_size) = (props.handleTypes.0, props.maxSize as u64);
    let mut new = Pool::new(device);
    (new.handle_types, new.max_size, new.arena) = (handle_types, max_size, arena);
    let index = state.memory.pools.add(call.number, new)?;
    pool.put(handle_of(&state, index))
}

pub(crate) fn mem_pool_destroy(call: &CallFrame, pool: Memory) -> Answer {
    let mut state = call.ready()?;
    let index = find_pool(&state, call, pool)?;
    if state.memory.pools.get(index).default {
        return Err(INVALID_VALUE);
    }
    state.captures.refuse_unsafe()?;
    let handle = state.memory.pools.handle(index);
    state.misuses.note_destroyed(call, handle);
    state.memory.pools.destroy(index);
    Ok(())
}

pub(crate) fn device_get_default_mem_pool(
    call: &CallFrame,
    pool: Ptr<*mut c_void>,
    device: CUdevice,
) -> Answer {
    let mut state = call.ready()?;
    pool.required()?;
    let device = device::check(&state, device)?;
    let index = state.memory.pools.default_of(device, call.number)?;
    pool.put(handle_of(&state, index))
}

pub(crate) fn device_get_mem_pool(
    call: &CallFrame,
    pool: Ptr<*mut c_void>,
    device: CUdevice,
) -> Answer {
    let mut state = call.ready()?;
    pool.required()?;
    let device = device::check(&state, device).map_err(|_| INVALID_VALUE)?;
    let index = state.memory.pools.current_of(device, call.number)?;
    pool.put(handle_of(&state, index))
}

pub(crate) fn device_set_mem_pool(call: &CallFrame, device: CUdevice, pool: Memory) -> Answer {
    let mut state = call.ready()?;
    let device = device::check(&state, device).map_err(|_| INVALID_VALUE)?;
    let pool = find_pool(&state, call, pool)?;
    state.captures.refuse_unsafe()?;
    state.memory.pools.set_current(device, pool)
}

/// The forms of CUDA 13 name a place and what the memory is.
fn place(
    state: &State,
    location: In<CUmemLocation>,
    alloc_type: c_uint,
) -> Result<CUdevice, CUresult> {
    let location = location.get()?;
    check_alloc_type(state, CUmemAllocationType(alloc_type))?;
    located(state, location)?;
    Ok(location.id)
}

pub(crate) fn mem_get_default_mem_pool(
    call: &CallFrame,
    pool: Ptr<*mut c_void>,
    location: In<CUmemLocation>,
    alloc_type: c_uint,
) -> Answer {
    let device = place(&*call.ready()?, location, alloc_type)?;
    device_get_default_mem_pool(call, pool, device)
}

pub(crate) fn mem_get_mem_pool(
    call: &CallFrame,
    pool: Ptr<*mut c_void>,
    location: In<CUmemLocation>,
    alloc_type: c_uint,
) -> Answer {
    let device = place(&*call.ready()?, location, alloc_type)?;
    device_get_mem_pool(call, pool, device)
}

pub(crate) fn mem_set_mem_pool(
    call: &CallFrame,
    location: In<CUmemLocation>,
    alloc_type: c_uint,
    pool: Memory,
) -> Answer {
    let device = place(&*call.ready()?, location, alloc_type)?;
    device_set_mem_pool(call, device, pool)
}

pub(crate) fn mem_pool_trim_to(call: &CallFrame, pool: Memory, keep: usize) -> Answer {
    let mut state = call.ready()?;
    let pool = find_pool(&state, call, pool)?;
    state.captures.refuse_unsafe()?;
    state.memory.pools.get_mut(pool).trim(keep as u64);
    Ok(())
}

/// Places for attributes: words for the first three, 64 bits for the rest.
enum Place {
    Word(*mut c_int),
    Wide(*mut u64),
}

fn value_place(attribute: c_uint, value: Memory) -> Result<Place, CUresult> {
    value.required()?;
    match attribute {
        1..=3 => Ok(Place::Word(value.raw().cast())),
        4..=8 => Ok(Place::Wide(value.raw().cast())),
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn mem_pool_get_attribute(
    call: &CallFrame,
    pool: Memory,
    attribute: c_uint,
    value: Memory,
) -> Answer {
    let mut state = call.ready()?;
    let pool = find_pool(&state, call, pool)?;
    state.captures.refuse_unsafe()?;
    let pool = state.memory.pools.get(pool);
    let wide = match attribute {
        4 => pool.threshold,
        5 => pool.reserved,
        6 => pool.reserved_high,
        7 => pool.used,
        8 => pool.used_high,
        _ => 0,
    };
    // SAFETY: by the contract of the C call the place is as wide as the attribute it is for.
    unsafe {
        match value_place(attribute, value)? {
            Place::Word(word) => {
                word.write_unaligned(pool.reuse[attribute as usize - 1] as c_int);
            }
            Place::Wide(place) => place.write_unaligned(wide),
        }
    }
    Ok(())
}

pub(crate) fn mem_pool_set_attribute(
    call: &CallFrame,
    pool: Memory,
    attribute: c_uint,
    value: Memory,
) -> Answer {
    let mut state = call.ready()?;
    let pool = find_pool(&state, call, pool)?;
    let place = value_place(attribute, value)?;
    state.captures.refuse_unsafe()?;
    let pool = state.memory.pools.get_mut(pool);
    // SAFETY: by the contract of the C call a value of the attribute's width is there.
    let wide = unsafe {
        match place {
            Place::Word(word) => {
                pool.reuse[attribute as usize - 1] = u32::from(word.read_unaligned() != 0);
                return Ok(());
            }
            Place::Wide(place) => place.read_unaligned(),
        }
    };
    match attribute {
        4 => pool.threshold = wide,
        // Documented: the high marks can be set back, and to nothing else.
        6 if wide == 0 => pool.reserved_high = pool.reserved,
        8 if wide == 0 => pool.used_high = pool.used,
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}

pub(crate) fn mem_pool_set_access(
    call: &CallFrame,
    pool: Memory,
    descriptions: In<CUmemAccessDesc>,
    count: usize,
) -> Answer {
    let mut state = call.ready()?;
    let pool = find_pool(&state, call, pool)?;
    descriptions.required()?;
    let descriptions = descriptions.read_array(count)?;
    state.captures.refuse_unsafe()?;
    let mut access = state.memory.pools.get(pool).access.clone();
    for CUmemAccessDesc { location, flags } in descriptions {
        let device = located(&state, location)?;
        // Documented: the pool's own device keeps its access.
        let own = device == state.memory.pools.get(pool).device;
        if !matches!(flags, 0 | READ | READ_WRITE) || (own && flags != READ_WRITE) {
            return Err(INVALID_VALUE);
        }
        access.insert(device, flags);
    }
    state.memory.pools.get_mut(pool).access = access;
    Ok(())
}

pub(crate) fn mem_pool_get_access(
    call: &CallFrame,
    flags: Ptr<c_uint>,
    pool: Memory,
    location: In<CUmemLocation>,
) -> Answer {
    let mut state = call.ready()?;
    flags.required()?;
    let pool = find_pool(&state, call, pool)?;
    state.captures.refuse_unsafe()?;
    let pool = state.memory.pools.get(pool);
    let device = located(&state, location.get()?)?;
    let own = if device == pool.device { READ_WRITE } else { 0 };
    flags.put(pool.access.get(&device).copied().unwrap_or(own))
}

fn alloc(
    call: &CallFrame,
    mut state: Locked,
    address: Ptr<CUdeviceptr>,
    bytes: usize,
    pool: Option<u32>,
    stream: u32,
) -> Answer {
    if state.captures.is_capturing(stream) {
        // A graph has no memory of its own here.
        state.misuses.say_unsupported(call, "cuMemAllocAsync in a capture");
        return Err(NOT_SUPPORTED);
    }
    state.captures.refuse_unsafe()?;
    let context = state.streams[stream].context;
    let pool = match pool {
        Some(pool) => pool,
        None => {
            let device = allocation::owner(&state, context).device;
            state.memory.pools.current_of(device, call.number)?
        }
    };
    if state.memory.pools.get(pool).imported.is_some() {
        return Err(INVALID_VALUE);
    }
    if bytes == 0 {
        return address.put(0);
    }
    if !state.memory.pools.get(pool).has_room(bytes as u64) {
        return Err(OUT_OF_MEMORY);
    }
    let base = allocation::allocate_in(&mut state, context, bytes, Kind::Pooled(pool))?;
    state.feed(|feed, ids| feed.allocate_async(ids.stream(stream), base, bytes as u64));
    address.put(base)
}

pub(crate) fn mem_alloc_async(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    bytes: usize,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    address.required()?;
    let stream = state.stream(call, stream)?;
    alloc(call, state, address, bytes, None, stream)
}

pub(crate) fn mem_alloc_from_pool_async(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    bytes: usize,
    pool: Memory,
    stream: StreamArg,
) -> Answer {
    let mut state = call.ready()?;
    address.required()?;
    let pool = find_pool(&state, call, pool)?;
    let stream = state.stream(call, stream)?;
    alloc(call, state, address, bytes, Some(pool), stream)
}

/// The memory is freed, and its address can be used again, when the stream reaches this operation
/// and no queued work uses the memory any more. Until then it is the program's: work that is
/// submitted to other streams meanwhile may use it.
pub(crate) fn mem_free_async(call: &CallFrame, address: CUdeviceptr, stream: StreamArg) -> Answer {
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    if state.captures.is_capturing(stream) {
        // Measured: of memory that was not allocated in the capture.
        return Err(INVALID_VALUE);
    }
    state.captures.refuse_unsafe()?;
    if address == 0 {
        return Ok(());
    }
    let region = state.memory.free_later(address)?;
    state.running().submit(stream, Task::Free(region));
    Ok(())
}

pub(crate) fn mem_pool_export_to_shareable_handle(
    call: &CallFrame,
    handle: Memory,
    pool: Memory,
    handle_type: c_uint,
    flags: c_ulonglong,
) -> Answer {
    let state = call.ready()?;
    handle.required()?;
    let pool = state.memory.pools.get(find_pool(&state, call, pool)?);
    if flags != 0 || handle_type != FILE_DESCRIPTOR || pool.handle_types & handle_type == 0 {
        return Err(INVALID_VALUE);
    }
    let arena = pool.arena.as_ref().ok_or(INVALID_VALUE)?;
    let descriptor = arena.descriptor().ok_or(OPERATING_SYSTEM)?;
    // SAFETY: by the contract of the C call there is room for a handle of this kind.
    unsafe { handle.raw().cast::<c_int>().write_unaligned(descriptor) };
    Ok(())
}

pub(crate) fn mem_pool_import_from_shareable_handle(
    call: &CallFrame,
    pool: Ptr<*mut c_void>,
    handle: Memory,
    handle_type: c_uint,
    flags: c_ulonglong,
) -> Answer {
    let mut state = call.ready()?;
    pool.required()?;
    if flags != 0 || handle_type != FILE_DESCRIPTOR {
        return Err(INVALID_VALUE);
    }
    let descriptor = i32::try_from(handle.addr()).map_err(|_| INVALID_VALUE)?;
    let file = PoolFile::open(descriptor).ok_or(INVALID_VALUE)?;
    let here = state.devices.iter().position(|device| device.physical() as u64 == file.device);
    let device = here.ok_or(INVALID_DEVICE)?;
    let mut new = Pool::new(device);
    new.imported = Some(file);
    let index = state.memory.pools.add(call.number, new)?;
    pool.put(handle_of(&state, index))
}

pub(crate) fn mem_pool_export_pointer(
    call: &CallFrame,
    data: Ptr<CUmemPoolPtrExportData>,
    address: CUdeviceptr,
) -> Answer {
    let mut state = call.ready()?;
    data.required()?;
    state.captures.refuse_unsafe()?;
    let allocation = state.memory.addresses.starting_at(address).ok_or(INVALID_VALUE)?;
    let (Kind::Pooled(pool), Some(backing)) = (allocation.kind, &allocation.region.backing) else {
        return Err(INVALID_VALUE);
    };
    let arena = state.memory.pools.get(pool).arena.as_ref().ok_or(INVALID_VALUE)?;
    let reserved = arena.name(backing, allocation.bytes).to_bytes();
    state.feed(|feed, _| feed.memory_exported(address));
    data.put(CUmemPoolPtrExportData { reserved })
}

pub(crate) fn mem_pool_import_pointer(
    call: &CallFrame,
    address: Ptr<CUdeviceptr>,
    pool: Memory,
    data: In<CUmemPoolPtrExportData>,
) -> Answer {
    let mut state = call.ready()?;
    address.required()?;
    let pool = find_pool(&state, call, pool)?;
    let named = Named::parse(&data.get()?.reserved).ok_or(INVALID_VALUE)?;
    let context = state.current(call)?;
    let file = state.memory.pools.get(pool).imported.as_ref().ok_or(INVALID_VALUE)?;
    let base = file.map(&named).ok_or(INVALID_VALUE)?;
    let bytes = named.bytes as usize;
    let region = Region::new(base, bytes, true, None);
    let owner = allocation::owner(&state, context);
    let State { memory, feed, .. } = &mut *state;
    let ours = memory.add(feed.as_deref_mut(), owner, region, bytes, Kind::Pooled(pool));
    state.feed(|feed, _| feed.memory_exported(ours));
    address.put(ours)
}
