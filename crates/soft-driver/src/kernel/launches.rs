//! For cuda.core, numba-cuda and cudarc: launches of kernels, their nodes in graphs, and how many blocks fit on a
//! multiprocessor.

use core::any::Any;
use core::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::arg::{In, Memory, Ptr, StreamArg};
use crate::device::MULTIPROCESSORS;
use crate::engine::work::Task;
use crate::graph::NodeKind;
use crate::graph::calls::add_node_with;
use crate::kernel::modules::{
    MAX_DYNAMIC_SHARED, default_attribute, function, load_function, not_registered, ready,
};
use crate::kernel::{DeviceMemory, Kernel, Launch};
use crate::machine::call_frame::CallFrame;
use crate::machine::{Machine, State};
use crate::memory::Place;
use cuda_events::sys::more::{
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUlaunchConfig,
};

exports! { $ [kernel::launches]
    cuLaunchKernel, cuLaunchKernel_ptsz => launch_kernel;
    cuLaunchKernelEx, cuLaunchKernelEx_ptsz => launch_kernel_ex;
    cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz
        => launch_cooperative_kernel;
    cuGraphAddKernelNode => graph_add_kernel_node;
    cuGraphAddKernelNode_v2 => graph_add_kernel_node_v2;
    cuGraphKernelNodeGetParams => graph_kernel_node_get_params;
    cuGraphKernelNodeGetParams_v2 => graph_kernel_node_get_params_v2;
    cuGraphKernelNodeSetParams => graph_kernel_node_set_params;
    cuGraphKernelNodeSetParams_v2 => graph_kernel_node_set_params_v2;
    cuGraphExecKernelNodeSetParams => graph_exec_kernel_node_set_params;
    cuGraphExecKernelNodeSetParams_v2 => graph_exec_kernel_node_set_params_v2;
    cuOccupancyMaxActiveBlocksPerMultiprocessor => active_blocks;
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags => active_blocks_with_flags;
    cuOccupancyMaxPotentialBlockSize => potential_block_size;
    cuOccupancyMaxPotentialBlockSizeWithFlags => potential_block_size_with_flags;
}

/// The words of `extra`: its end, the buffer with the parameters, and the buffer's size.
const END: usize = 0;
const BUFFER: usize = 1;
const SIZE: usize = 2;

/// As the device's attributes have them: of a launch, and of a multiprocessor.
const MAX_THREADS: u32 = 1024;
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
const WARP: u32 = 32;
const PROCESSOR_THREADS: u32 = 2048;
const PROCESSOR_BLOCKS: u32 = 32;
const PROCESSOR_SHARED: usize = 233_472;
/// The shared memory of each block that the driver takes for itself.
const RESERVED_SHARED: usize = 1024;

/// The attributes of a launch that change nothing here: none, caching, cooperation, waiting,
/// clusters, programmatic order of launches, priority, memory synchronisation, preferences.
const ATTRIBUTES: [u32; 13] = [0, 1, COOPERATIVE, 3, 4, 5, 6, 8, 9, 10, 11, 14, 16];
const COOPERATIVE: u32 = 2;

/// The parameters of a launch: an array with the address of each, or a buffer with all of them.
#[derive(Clone, Copy)]
struct Parameters {
    each: In<*mut c_void>,
    extra: In<*mut c_void>,
}

impl Parameters {
    /// Copies them into the layout of the kernel.
    fn read(self, kernel: &Kernel) -> Result<Vec<u8>, CUresult> {
        let bytes = kernel.bytes();
        if !self.extra.is_null() {
            return if self.each.is_null() { self.buffer(bytes) } else { Err(INVALID_VALUE) };
        }
        let mut read = vec![0; bytes];
        for (index, range) in kernel.parameters.iter().cloned().enumerate() {
            self.each.required()?;
            // SAFETY: by the contract of the C call, the array has the address of each parameter.
            let from = unsafe { self.each.raw().add(index).read() };
            if from.is_null() {
                return Err(INVALID_VALUE);
            }
            // SAFETY: by the contract of the C call, and of the registration, a parameter of this
            // size is there.
            let from = unsafe { core::slice::from_raw_parts(from.cast::<u8>(), range.len()) };
            read[range].copy_from_slice(from);
        }
        Ok(read)
    }

    /// Documented: `extra` is pairs of a name and a value.
    fn buffer(self, bytes: usize) -> Result<Vec<u8>, CUresult> {
        let (mut buffer, mut size) = (core::ptr::null::<u8>(), None);
        for pair in 0.. {
            // SAFETY: by the contract of the C call, the array goes on until its end.
            let word = |at: usize| unsafe { self.extra.raw().add(2 * pair + at).read() };
            match word(0).addr() {
                END if pair == 0 && bytes == 0 => return Ok(Vec::new()),
                END => break,
                BUFFER => buffer = word(1).cast(),
                // SAFETY: by the contract of the C call, a size or NULL.
                SIZE => size = unsafe { word(1).cast::<usize>().as_ref() }.copied(),
                _ => return Err(INVALID_VALUE),
            }
        }
        let size = size.filter(|_| !buffer.is_null()).ok_or(INVALID_VALUE)?;
        // Measured of 64 bytes for 12. The padding of a structure was not asked about.
        if size > bytes.next_multiple_of(16) {
            return Err(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
        }
        // SAFETY: by the contract of the C call, the buffer has its size.
        let mut read = unsafe { core::slice::from_raw_parts(buffer, size.min(bytes)) }.to_vec();
        // Measured: a buffer that is too short is no error. What the kernel gets was not asked.
        read.resize(bytes, 0);
        Ok(read)
    }
}

impl DeviceMemory for Machine {
    fn find(
        &'static self,
        epoch: u64,
        address: CUdeviceptr,
        bytes: usize,
        writes: bool,
    ) -> Result<Option<Place>, CUresult> {
        let state = self.lock();
        if state.life.epoch != epoch {
            // The driver was dropped: nobody is left who would read a message.
            return Err(DEINITIALIZED);
        }
        let addresses = &state.memory.addresses;
        let refused = writes && addresses.is_read_only(address);
        Ok(addresses.device_range(address, bytes).ok().filter(|_| !refused))
    }
}

/// What a call that launches a kernel was given.
struct Given {
    function: Memory,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    parameters: Parameters,
    /// Whether its blocks wait for each other, so that all have to run at the same time.
    cooperative: bool,
}

/// How many bytes of dynamic shared memory a block of the function can have.
fn most_shared(state: &State, function: u32) -> usize {
    let set = state.modules.functions[function].attributes.get(&MAX_DYNAMIC_SHARED).copied();
    let most = set.unwrap_or_else(|| default_attribute(MAX_DYNAMIC_SHARED));
    usize::try_from(most).unwrap_or(0)
}

/// How many blocks run on a multiprocessor at the same time.
fn resident_blocks(state: &State, function: u32, threads: u32, shared_bytes: usize) -> u32 {
    if threads > MAX_THREADS || shared_bytes > most_shared(state, function) {
        return 0;
    }
    let by_shared = PROCESSOR_SHARED / (shared_bytes + RESERVED_SHARED);
    let by_threads = PROCESSOR_THREADS / threads.max(1).next_multiple_of(WARP);
    by_threads.min(PROCESSOR_BLOCKS).min(by_shared as u32)
}

/// Refuses what no device could run.
fn check_size(state: &State, function: u32, given: &Given) -> Answer {
    let within = |sizes: [u32; 3], limits: [u32; 3]| {
        sizes.into_iter().zip(limits).all(|(size, limit)| (1..=limit).contains(&size))
    };
    let shared_bytes = given.shared_bytes as usize;
    let fits = within(given.grid, MAX_GRID)
        && within(given.block, MAX_BLOCK)
        && given.block.into_iter().product::<u32>() <= MAX_THREADS
        && shared_bytes <= most_shared(state, function);
    if !fits {
        return Err(INVALID_VALUE);
    }
    let blocks = given.grid.into_iter().map(u64::from).product::<u64>();
    let resident =
        resident_blocks(state, function, given.block.into_iter().product(), shared_bytes);
    // NVIDIA documents this code for a grid that does not fit on the device at once.
    if given.cooperative && blocks > u64::from(resident * MULTIPROCESSORS) {
        return Err(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    Ok(())
}

/// What a launch or a node of a kernel does.
fn make(call: &CallFrame, given: &Given) -> Result<Launch, CUresult> {
    let state = ready(call)?;
    let function = function(&state, given.function)?;
    let Some(kernel) = state.modules.kernel_of(function).cloned() else {
        return Err(not_registered(call, &state, &state.modules.functions[function].name));
    };
    check_size(&state, function, given)?;
    let epoch = state.life.epoch;
    drop(state);
    let parameters = given.parameters.read(&kernel)?;
    let begin = parameters.as_ptr().expose_provenance();
    let mut launch = Launch {
        function: given.function.addr(),
        addresses: kernel.parameters.iter().map(|range| begin + range.start).collect(),
        memory: call.machine,
        epoch,
        grid: given.grid,
        block: given.block,
        shared_bytes: given.shared_bytes,
        parameters,
        accesses: Vec::new(),
        unknown: None,
        kernel,
    };
    launch.declare()?;
    let (kernel, unknown) = (&launch.kernel, launch.unknown.as_deref());
    let runs = kernel.run.is_some();
    if !runs || unknown.is_some() || kernel.declare.is_none() {
        let mut state = call.ready()?;
        let name = kernel.name.to_string_lossy();
        if !runs {
            state.misuses.say_not_run(&name);
        }
        state.feed(|feed, _| {
            let reports = feed.observer_mut();
            if !runs {
                reports.launched_without_effect(&name);
            }
            if unknown.is_some() || kernel.declare.is_none() {
                reports.launched_unchecked(&name, unknown);
            }
        });
    }
    Ok(launch)
}

fn launch(call: &CallFrame, given: &Given, stream: StreamArg) -> Answer {
    let launch = Arc::new(make(call, given)?);
    let mut state = call.ready()?;
    let stream = state.stream(call, stream)?;
    let function = function(&state, given.function)?;
    let module = state.modules.functions[function].module;
    let owner = state.modules.modules[module].context.map(|(context, _)| context);
    let here = state.streams[stream].context;
    let other = |context: u32| {
        let (owner, here) = (&state.contexts[context], &state.contexts[here]);
        context != state.streams[stream].context && !(owner.device == here.device && here.green)
    };
    if owner.is_some_and(other) {
        return Err(INVALID_HANDLE);
    }
    let State { captures, streams, graphs, .. } = &mut *state;
    if captures.add(streams, graphs, call.number, stream, || NodeKind::Device(launch.clone()))? {
        return Ok(());
    }
    let mut state = load_function(call, state, function)?;
    // Another thread may have destroyed it meanwhile.
    if state.streams.get(stream).is_none() {
        return Err(INVALID_HANDLE);
    }
    let streams = state.streams.len();
    state.engine.threads.ensure_device(call.machine, streams)?;
    state.running().submit(stream, Task::Device(launch));
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(crate) fn launch_kernel(
    call: &CallFrame,
    function: Memory,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: StreamArg,
    each: In<*mut c_void>,
    extra: In<*mut c_void>,
) -> Answer {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    let parameters = Parameters { each, extra };
    let given = Given { function, grid, block, shared_bytes, parameters, cooperative: false };
    launch(call, &given, stream)
}

#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(crate) fn launch_cooperative_kernel(
    call: &CallFrame,
    function: Memory,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: StreamArg,
    each: In<*mut c_void>,
) -> Answer {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    let parameters = Parameters { each, extra: Ptr::NULL };
    let given = Given { function, grid, block, shared_bytes, parameters, cooperative: true };
    launch(call, &given, stream)
}

pub(crate) fn launch_kernel_ex(
    call: &CallFrame,
    config: In<CUlaunchConfig>,
    function: Memory,
    each: In<*mut c_void>,
    extra: In<*mut c_void>,
) -> Answer {
    let config = config.get()?;
    let attributes = In::of_handle(config.attrs).read_array(config.numAttrs as usize)?;
    // Events of a launch, for example, would have to happen.
    if attributes.iter().any(|attribute| !ATTRIBUTES.contains(&attribute.id.0)) {
        ready(call)?
            .misuses
            .say_unsupported(call, "an attribute of cuLaunchKernelEx with an effect");
        return Err(NOT_SUPPORTED);
    }
    let cooperative = attributes.iter().any(|attribute| {
        // SAFETY: all members that are an int have one place, and any bytes are one.
        attribute.id.0 == COOPERATIVE && unsafe { attribute.value.priority } != 0
    });
    let given = Given {
        function,
        grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        shared_bytes: config.sharedMemBytes,
        parameters: Parameters { each, extra },
        cooperative,
    };
    launch(call, &given, Ptr::of_handle(config.hStream))
}

/// What a node's parameters launch.
fn made(params: CUDA_KERNEL_NODE_PARAMS_v2, call: &CallFrame) -> Result<Arc<Launch>, CUresult> {
    let function = if params.func.is_null() { params.kern.cast() } else { params.func.cast() };
    let given = Given {
        function: Ptr::of_handle(function),
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block: [params.blockDimX, params.blockDimY, params.blockDimZ],
        shared_bytes: params.sharedMemBytes,
        parameters: Parameters {
            each: Ptr::of_handle(params.kernelParams),
            extra: Ptr::of_handle(params.extra),
        },
        cooperative: false,
    };
    make(call, &given).map(Arc::new)
}

/// The parameters of a node, in either version.
trait Version: Copy {
    fn newest(self) -> CUDA_KERNEL_NODE_PARAMS_v2;

    fn of(params: CUDA_KERNEL_NODE_PARAMS_v2) -> Self;
}

impl Version for CUDA_KERNEL_NODE_PARAMS_v2 {
    fn newest(self) -> Self {
        self
    }

    fn of(params: Self) -> Self {
        params
    }
}

impl Version for CUDA_KERNEL_NODE_PARAMS_v1 {
    fn newest(self) -> CUDA_KERNEL_NODE_PARAMS_v2 {
        let Self { func, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, .. } = self;
        let Self { sharedMemBytes, kernelParams, extra, .. } = self;
        let (kern, ctx) = (core::ptr::null_mut(), core::ptr::null_mut());
        CUDA_KERNEL_NODE_PARAMS_v2 {
            func,
            gridDimX,
            gridDimY,
            gridDimZ,
            blockDimX,
            blockDimY,
            blockDimZ,
            sharedMemBytes,
            kernelParams,
            extra,
            kern,
            ctx,
        }
    }

    fn of(params: CUDA_KERNEL_NODE_PARAMS_v2) -> Self {
        let CUDA_KERNEL_NODE_PARAMS_v2 { func, gridDimX, gridDimY, gridDimZ, .. } = params;
        let CUDA_KERNEL_NODE_PARAMS_v2 { blockDimX, blockDimY, blockDimZ, .. } = params;
        let CUDA_KERNEL_NODE_PARAMS_v2 { sharedMemBytes, kernelParams, extra, .. } = params;
        Self {
            func,
            gridDimX,
            gridDimY,
            gridDimZ,
            blockDimX,
            blockDimY,
            blockDimZ,
            sharedMemBytes,
            kernelParams,
            extra,
        }
    }
}

/// What a node launches.
fn launch_of(node: &NodeKind) -> Result<&Launch, CUresult> {
    let NodeKind::Device(work) = node else { return Err(INVALID_VALUE) };
    let work: &dyn Any = &**work;
    work.downcast_ref().ok_or(INVALID_VALUE)
}

fn params_of(
    state: &State,
    node: Ptr<CUgraphNode_st>,
) -> Result<CUDA_KERNEL_NODE_PARAMS_v2, CUresult> {
    let launch = launch_of(&state.graphs.node(node)?.kind)?;
    let (grid, block) = (launch.grid, launch.block);
    // Measured: of a library's kernel both are there. Here it is its own function.
    let of_library = state.modules.functions.find(launch.function).is_ok_and(|function| {
        let module = state.modules.functions[function].module;
        state.modules.modules[module].context.is_none()
    });
    let handle = launch.function as usize;
    Ok(CUDA_KERNEL_NODE_PARAMS_v2 {
        func: core::ptr::without_provenance_mut(handle),
        kern: core::ptr::without_provenance_mut(if of_library { handle } else { 0 }),
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: launch.shared_bytes,
        // The program only reads them.
        kernelParams: launch.addresses.as_ptr().cast_mut().cast(),
        ..CUDA_KERNEL_NODE_PARAMS_v2::default()
    })
}

fn set_in_graph(
    call: &CallFrame,
    node: Ptr<CUgraphNode_st>,
    params: CUDA_KERNEL_NODE_PARAMS_v2,
) -> Answer {
    let launch = made(params, call)?;
    let mut state = call.ready()?;
    let node = state.graphs.node_mut(node)?;
    launch_of(&node.kind)?;
    node.kind = NodeKind::Device(launch);
    Ok(())
}

fn set_in_exec(
    call: &CallFrame,
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: CUDA_KERNEL_NODE_PARAMS_v2,
) -> Answer {
    let launch = made(params, call)?;
    let mut state = call.ready()?;
    let exec = state.graphs.find_exec(exec)?;
    let node = state.graphs.exec_node(exec, node)?;
    launch_of(&node.kind)?;
    node.kind = NodeKind::Device(launch);
    let State { graphs, feed, .. } = &mut *state;
    graphs.feed_exec(feed.as_deref_mut(), exec);
    Ok(())
}

/// The calls, in their two versions.
macro_rules! nodes {
    ($($params:ty: $add:ident, $get:ident, $set:ident, $set_exec:ident;)*) => {$(
        pub(crate) fn $add(
            call: &CallFrame,
            node: Ptr<CUgraphNode>,
            graph: Ptr<CUgraph_st>,
            dependencies: In<CUgraphNode>,
            count: usize,
            params: In<$params>,
        ) -> Answer {
            let launch = made(params.get()?.newest(), call)?;
            let kind = |_: &State| Ok(NodeKind::Device(launch));
            add_node_with(call, node, graph, dependencies, count, kind)
        }

        pub(crate) fn $get(
            call: &CallFrame,
            node: Ptr<CUgraphNode_st>,
            params: Ptr<$params>,
        ) -> Answer {
            params.put(Version::of(params_of(&*ready(call)?, node)?))
        }

        pub(crate) fn $set(
            call: &CallFrame,
            node: Ptr<CUgraphNode_st>,
            params: In<$params>,
        ) -> Answer {
            set_in_graph(call, node, params.get()?.newest())
        }

        pub(crate) fn $set_exec(
            call: &CallFrame,
            exec: Ptr<CUgraphExec_st>,
            node: Ptr<CUgraphNode_st>,
            params: In<$params>,
        ) -> Answer {
            set_in_exec(call, exec, node, params.get()?.newest())
        }
    )*};
}

nodes! {
    CUDA_KERNEL_NODE_PARAMS_v1: graph_add_kernel_node, graph_kernel_node_get_params,
        graph_kernel_node_set_params, graph_exec_kernel_node_set_params;
    CUDA_KERNEL_NODE_PARAMS_v2: graph_add_kernel_node_v2, graph_kernel_node_get_params_v2,
        graph_kernel_node_set_params_v2, graph_exec_kernel_node_set_params_v2;
}

// Occupancy: as if no kernel used many registers.

pub(crate) fn active_blocks(
    call: &CallFrame,
    blocks: Ptr<c_int>,
    func: Memory,
    block_size: c_int,
    shared_bytes: usize,
) -> Answer {
    let state = ready(call)?;
    let func = function(&state, func)?;
    match u32::try_from(block_size) {
        Ok(threads @ 1..) => {
            blocks.put(resident_blocks(&state, func, threads, shared_bytes) as c_int)
        }
        _ => Err(INVALID_VALUE),
    }
}

pub(crate) fn active_blocks_with_flags(
    call: &CallFrame,
    blocks: Ptr<c_int>,
    func: Memory,
    block_size: c_int,
    shared_bytes: usize,
    _flags: c_uint,
) -> Answer {
    active_blocks(call, blocks, func, block_size, shared_bytes)
}

pub(crate) fn potential_block_size(
    call: &CallFrame,
    grid: Ptr<c_int>,
    block: Ptr<c_int>,
    func: Memory,
    _shared_bytes_of: In<c_void>,
    shared_bytes: usize,
    limit: c_int,
) -> Answer {
    let state = ready(call)?;
    let func = function(&state, func)?;
    grid.required()?;
    block.required()?;
    let limit = u32::try_from(limit).ok().filter(|limit| (1..MAX_THREADS).contains(limit));
    let limit = limit.unwrap_or(MAX_THREADS);
    // The largest of the sizes with which most threads run.
    let sizes = (WARP..=limit.next_multiple_of(WARP)).step_by(WARP as usize);
    let runs = |size: u32| (resident_blocks(&state, func, size, shared_bytes), size);
    let best = sizes.map(|size| runs(size.min(limit))).max_by_key(|(blocks, size)| blocks * size);
    let (blocks, size) = best.unwrap_or_default();
    grid.put((blocks * MULTIPROCESSORS) as c_int)?;
    block.put(size as c_int)
}

#[expect(clippy::too_many_arguments, reason = "the driver's")]
pub(crate) fn potential_block_size_with_flags(
    call: &CallFrame,
    grid: Ptr<c_int>,
    block: Ptr<c_int>,
    func: Memory,
    shared_bytes_of: In<c_void>,
    shared_bytes: usize,
    limit: c_int,
    _flags: c_uint,
) -> Answer {
    potential_block_size(call, grid, block, func, shared_bytes_of, shared_bytes, limit)
}
