//! The choke point that every call goes through, and the lookup of entry points by name and version.

use core::ffi::{c_int, c_uchar, c_void};
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::abi::*;
use crate::arg::Ptr;
use crate::front::exports::{self, EXPORTS, Id};
use crate::model::machine::{Locked, Machine, State};

/// One exported function.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// The exported name: `cuEventDestroy_v2`, `cuEventRecord_ptsz`.
    pub name: &'static str,
    /// The version of CUDA that introduced it, as 12080 for 12.8.
    pub version: i32,
    /// Whether the NULL stream means the per-thread default stream.
    pub per_thread: bool,
    /// Whether it does anything but answer `CUDA_ERROR_NOT_SUPPORTED`.
    pub supported: bool,
}

impl Export {
    pub(crate) const fn new(name: &'static str, version: i32, per_thread: bool) -> Self {
        Self { name, version, per_thread, supported: true }
    }

    pub(crate) const fn unsupported(mut self) -> Self {
        self.supported = false;
        self
    }

    /// The name that `cuGetProcAddress` takes: without the version and the per-thread suffix.
    pub fn base(&self) -> &'static str {
        let name = self.name;
        let name = name.strip_suffix("_ptsz").or(name.strip_suffix("_ptds")).unwrap_or(name);
        match name.rsplit_once("_v") {
            Some((base, version)) if !version.is_empty() && version.bytes().all(|digit| digit.is_ascii_digit()) => base,
            _ => name,
        }
    }
}

/// The arguments of a call, as numbers: at most eight.
pub(crate) type Words = ([u64; 8], usize);

pub(crate) fn words(arguments: &[u64]) -> Words {
    let mut kept = [0; 8];
    let count = arguments.len().min(8);
    kept[..count].copy_from_slice(&arguments[..count]);
    (kept, count)
}

/// One call of one entry point.
pub(crate) struct Call {
    pub(crate) machine: &'static Machine,
    pub(crate) id: Id,
    /// Whether NULL means the per-thread default stream.
    pub(crate) per_thread: bool,
    /// The number of the call on its machine, from 1.
    pub(crate) number: u64,
    /// Which owner of the machine it was made to.
    pub(crate) epoch: u64,
}

impl Call {
    pub(crate) fn name(&self) -> &'static str {
        EXPORTS[self.id.index()].name
    }

    /// Whether the machine's owner is still the one that it was made to.
    pub(crate) fn is_current(&self) -> bool {
        self.machine.epoch() == self.epoch
    }

    /// Whether it is made inside a host function.
    pub(crate) fn in_host_function(&self) -> bool {
        self.machine.hooks.in_host_functions() && self.machine.in_host_function(self.machine.lock().epoch)
    }

    /// The machine's state, for a call that works before `cuInit`.
    pub(crate) fn lock(&self) -> Result<Locked, CUresult> {
        let state = self.machine.lock();
        if state.taken && state.epoch == self.epoch { Ok(state) } else { Err(DEINITIALIZED) }
    }

    /// The machine's state, for a call that needs `cuInit` first.
    pub(crate) fn ready(&self) -> Result<Locked, CUresult> {
        let mut state = self.lock()?;
        state.call_number = self.number;
        if state.initialised { Ok(state) } else { Err(NOT_INITIALIZED) }
    }
}

/// Where every call comes through.
#[inline]
pub(crate) fn enter(
    machine: &'static Machine,
    id: Id,
    per_thread: bool,
    words: impl FnOnce() -> Words,
    poison: impl FnOnce(),
    given: impl FnOnce() -> Option<u64>,
    body: impl FnOnce(&Call) -> Answer,
) -> CUresult {
    let call = Call { machine, id, per_thread, number: machine.count_call(), epoch: machine.epoch() };
    if machine.hooks.plain() {
        return code(body(&call));
    }
    crate::front::hooks::hooked(&call, words, poison, given, || code(body(&call)))
}

fn code(answer: Answer) -> CUresult {
    match answer {
        Ok(()) => SUCCESS,
        Err(code) => code,
    }
}

/// The exports whose base name this is.
fn by_base(name: &[u8]) -> &'static [usize] {
    static INDEX: OnceLock<BTreeMap<&[u8], Vec<usize>>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, export) in EXPORTS.iter().enumerate() {
            // That twin is there for programs that link to it; what is looked up is the function itself.
            if export.name == "cuGetProcAddress_v2_ptsz" {
                continue;
            }
            index.entry(export.base().as_bytes()).or_default().push(id);
        }
        index
    });
    index.get(name).map_or(&[], Vec::as_slice)
}

/// What `cuGetProcAddress` finds for a name and a version.
enum Found {
    Function(*mut c_void),
    NoSuchName,
    TooOld,
}

/// Whether a driver of the simulated version has it, and it was not configured away.
fn visible(state: &State, id: usize) -> bool {
    EXPORTS[id].version <= state.config.version && !state.config.lacks(EXPORTS[id].name)
}

fn look_up(machine: &Machine, state: &State, name: &[u8], version: i32, per_thread: bool) -> Found {
    // A function that was configured away still counts here: whoever asks for its version, or for its per-thread twin,
    // calls with its arguments, and must not get an older or other function in its place.
    let ids = by_base(name).iter().copied().filter(|id| EXPORTS[*id].version <= state.config.version);
    let mut known = false;
    let mut has_twin = false;
    let mut best: [Option<usize>; 2] = [None, None];
    for id in ids {
        let export = &EXPORTS[id];
        known |= visible(state, id);
        has_twin |= export.per_thread;
        let best = &mut best[usize::from(export.per_thread)];
        if (version < 0 || export.version <= version)
            && best.is_none_or(|other| EXPORTS[other].version < export.version)
        {
            *best = Some(id);
        }
    }
    if !known {
        return Found::NoSuchName;
    }
    // Measured: the per-thread flag with a version older than the twin finds nothing, not the legacy function.
    match best[usize::from(per_thread && has_twin)] {
        Some(id) if visible(state, id) => Found::Function(exports::address(machine.slot, id)),
        Some(_) => Found::NoSuchName,
        None => Found::TooOld,
    }
}

fn proc_address(
    call: &Call,
    symbol: Ptr<c_uchar>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: u64,
) -> Result<Found, CUresult> {
    let state = call.lock()?;
    if symbol.is_null() || function.is_null() {
        return Err(state.misuse(call, "NULL where the real driver dereferences", INVALID_VALUE));
    }
    if flags > 3 || version > state.config.version {
        return Err(INVALID_VALUE);
    }
    let name = symbol.text();
    if state.config.null_lookups.iter().any(|absent| absent.as_bytes() == name) {
        return Ok(Found::Function(core::ptr::null_mut()));
    }
    if let Some((_, other)) = state.config.wrong_lookups.iter().find(|(base, _)| base.as_bytes() == name) {
        let id = EXPORTS.iter().position(|export| export.name == other);
        return Ok(id.map_or(Found::NoSuchName, |id| Found::Function(exports::address(call.machine.slot, id))));
    }
    Ok(look_up(call.machine, &state, name, version, flags & 2 != 0))
}

pub(crate) fn get_proc_address(
    call: &Call,
    symbol: Ptr<c_uchar>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: cuuint64_t,
    status: Ptr<CUdriverProcAddressQueryResult>,
) -> Answer {
    type Status = CUdriverProcAddressQueryResult;
    // The twin is what the default means in a program that is built for per-thread default streams.
    let flags = if call.per_thread && flags == 0 { 2 } else { flags };
    let (address, result) = match proc_address(call, symbol, function, version, flags)? {
        Found::Function(address) => (address, Status::CU_GET_PROC_ADDRESS_SUCCESS),
        Found::NoSuchName => (core::ptr::null_mut(), Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
        Found::TooOld => (core::ptr::null_mut(), Status::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
    };
    status.put_if(result);
    function.put(address)
}

/// The four-argument form of CUDA 11.3: what is not found is an error, and the out-parameter stays as it was.
pub(crate) fn get_proc_address_v1(
    call: &Call,
    symbol: Ptr<c_uchar>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: cuuint64_t,
) -> Answer {
    match proc_address(call, symbol, function, version, flags)? {
        Found::Function(address) => function.put(address),
        Found::NoSuchName | Found::TooOld => Err(NOT_FOUND),
    }
}

/// The address that a dynamic linker would find under an exported name.
pub(crate) fn resolve(machine: &'static Machine, name: &[u8]) -> *mut c_void {
    let state = machine.lock();
    match EXPORTS.iter().position(|export| export.name.as_bytes() == name) {
        Some(id) if visible(&state, id) => exports::address(machine.slot, id),
        _ => core::ptr::null_mut(),
    }
}

pub(crate) fn unsupported(call: &Call) -> Answer {
    drop(call.ready()?);
    Err(NOT_SUPPORTED)
}

/// What a host function may not call, as measured on the real driver; its contract forbids every call.
pub(crate) fn refused_in_host_function(id: Id) -> bool {
    matches!(
        id,
        Id::cuCtxGetCurrent
            | Id::cuCtxSetCurrent
            | Id::cuCtxPushCurrent
            | Id::cuCtxPushCurrent_v2
            | Id::cuCtxPopCurrent
            | Id::cuCtxPopCurrent_v2
            | Id::cuDevicePrimaryCtxRetain
            | Id::cuCtxSynchronize
            | Id::cuCtxSynchronize_v2
            | Id::cuDeviceGet
            | Id::cuDeviceGetCount
            | Id::cuEventCreate
            | Id::cuStreamCreate
            | Id::cuStreamCreateWithPriority
            | Id::cuIpcGetEventHandle
    )
}

/// What asks about nothing that other calls change, so that it works before `cuInit` and in a forked child.
fn asks_about_no_state(id: Id) -> bool {
    matches!(
        id,
        Id::cuDriverGetVersion
            | Id::cuGetErrorName
            | Id::cuGetErrorString
            | Id::cuGetProcAddress
            | Id::cuGetProcAddress_v2
            | Id::cuGetProcAddress_v2_ptsz
    )
}

/// Notes what the program gives back with a call that does no work.
pub(crate) fn given_back(call: &Call, words: &Words) {
    match call.id {
        Id::cuDevicePrimaryCtxRelease | Id::cuDevicePrimaryCtxRelease_v2 => {
            call.machine.released(call, words.0[0] as usize, false);
        }
        Id::cuDevicePrimaryCtxReset | Id::cuDevicePrimaryCtxReset_v2 => {
            call.machine.released(call, words.0[0] as usize, true);
        }
        Id::cuEventDestroy
        | Id::cuEventDestroy_v2
        | Id::cuStreamDestroy
        | Id::cuStreamDestroy_v2
        | Id::cuMemFree_v2
        | Id::cuMemFreeHost
        | Id::cuMemHostUnregister => {
            if let Ok(mut state) = call.lock() {
                state.given_up.insert(words.0[0]);
            }
        }
        _ => {}
    }
}

/// Whether a call gives the program a handle or an address, in its first out-parameter of that size.
pub(crate) fn makes(id: Id) -> bool {
    let name = EXPORTS[id.index()].name;
    ["Create", "Retain", "Open", "Instantiate", "EndCapture", "GraphAdd", "Clone", "Alloc"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether a call only looks entry points up.
pub(crate) fn looks_up(id: Id) -> bool {
    matches!(id, Id::cuGetProcAddress | Id::cuGetProcAddress_v2 | Id::cuGetProcAddress_v2_ptsz)
}

/// What a child of `fork` answers on a driver that its parent initialised.
pub(crate) fn forked_answer(call: &Call, words: &Words) -> Option<CUresult> {
    match call.id {
        id if asks_about_no_state(id) => None,
        Id::cuStreamDestroy | Id::cuStreamDestroy_v2 => {
            let stream = words.0[0];
            let what = format!("stream {stream:#x} is destroyed in a forked child, where the real driver crashes");
            Some(call.machine.lock().misuse(call, &what, NOT_INITIALIZED))
        }
        Id::cuEventQuery
        | Id::cuEventSynchronize
        | Id::cuEventDestroy
        | Id::cuEventDestroy_v2
        | Id::cuEventRecord
        | Id::cuEventRecord_ptsz
        | Id::cuStreamQuery
        | Id::cuStreamQuery_ptsz
        | Id::cuStreamSynchronize
        | Id::cuStreamSynchronize_ptsz
        | Id::cuStreamWaitEvent
        | Id::cuStreamWaitEvent_ptsz => Some(SUCCESS),
        _ => Some(NOT_INITIALIZED),
    }
}
