//! The lookup of entry points by name and version.

use core::ffi::{c_char, c_int, c_void};
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::abi::*;
use crate::arg::{In, Ptr};
use crate::front::export::base;
use crate::front::exports::EXPORTS;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Machine, State};

/// The address of an export, by the slot of its machine and its place in the list. The functions
/// are made above this module, for the lookup is one of them, so the caller passes their addresses.
pub(crate) type AddressOf = fn(slot: usize, id: usize) -> *mut c_void;

/// The exports by their base names.
static INDEX: LazyLock<BTreeMap<&[u8], Vec<usize>>> = LazyLock::new(|| {
    let mut index: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (id, export) in EXPORTS.iter().enumerate() {
        index.entry(export.base().as_bytes()).or_default().push(id);
    }
    index
});

/// Makes the index, which the start of a driver does.
pub(crate) fn prepare() {
    LazyLock::force(&INDEX);
}

/// The exports with a base name.
fn by_base(name: &[u8]) -> &'static [usize] {
    INDEX.get(name).map_or(&[], Vec::as_slice)
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

fn look_up(
    address: AddressOf,
    machine: &Machine,
    state: &State,
    name: &[u8],
    version: i32,
    per_thread: bool,
) -> Found {
    // A function that was configured away still counts here: a program that asks for its version,
    // or for its per-thread twin, calls with its arguments, and must not get an older or other
    // function in its place.
    let ids = by_base(name).iter().copied().filter(|id| {
        let export = &EXPORTS[*id];
        // That twin is there for programs that link to it; a lookup finds the function itself.
        export.version <= state.config.version && export.name != "cuGetProcAddress_v2_ptsz"
    });
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
    // Measured: the per-thread flag with a version older than the twin finds nothing, not the
    // legacy function.
    match best[usize::from(per_thread && has_twin)] {
        Some(id) if visible(state, id) => Found::Function(address(machine.slot, id)),
        Some(_) => Found::NoSuchName,
        None => Found::TooOld,
    }
}

fn proc_address(
    address: AddressOf,
    call: &CallFrame,
    symbol: In<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: u64,
) -> Result<Found, CUresult> {
    let state = call.lock()?;
    if symbol.is_null() || function.is_null() {
        return Err(state.misuses.undefined(
            call,
            "NULL, which the real driver dereferences",
            INVALID_VALUE,
        ));
    }
    if flags > 3 || version > state.config.version {
        return Err(INVALID_VALUE);
    }
    let name = symbol.text();
    if state.config.lookups.null.iter().any(|absent| absent.as_bytes() == name) {
        return Ok(Found::Function(core::ptr::null_mut()));
    }
    if let Some((_, other)) =
        state.config.lookups.wrong.iter().find(|(base, _)| base.as_bytes() == name)
    {
        let id = EXPORTS.iter().position(|export| export.name == other);
        return Ok(
            id.map_or(Found::NoSuchName, |id| Found::Function(address(call.machine.slot, id)))
        );
    }
    Ok(look_up(address, call.machine, &state, name, version, flags & 2 != 0))
}

pub(crate) fn get_proc_address(
    address: AddressOf,
    call: &CallFrame,
    symbol: In<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: cuuint64_t,
    status: Ptr<CUdriverProcAddressQueryResult>,
) -> Answer {
    type Status = CUdriverProcAddressQueryResult;
    // The twin is what the default means in a program that is built for per-thread default streams.
    let flags = if call.per_thread() && flags == 0 { 2 } else { flags };
    let (found, result) = match proc_address(address, call, symbol, function, version, flags)? {
        Found::Function(found) => (found, Status::CU_GET_PROC_ADDRESS_SUCCESS),
        Found::NoSuchName => (core::ptr::null_mut(), Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
        Found::TooOld => {
            (core::ptr::null_mut(), Status::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT)
        }
    };
    status.put_if(result);
    function.put(found)
}

/// The four-argument form of CUDA 11.3: what is not found is an error, and the out-parameter stays
/// as it was.
pub(crate) fn get_proc_address_v1(
    address: AddressOf,
    call: &CallFrame,
    symbol: In<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: cuuint64_t,
) -> Answer {
    match proc_address(address, call, symbol, function, version, flags)? {
        Found::Function(found) => function.put(found),
        Found::NoSuchName | Found::TooOld => Err(NOT_FOUND),
    }
}

/// The address that a dynamic linker would find under an exported name.
pub(crate) fn resolve(address: AddressOf, machine: &'static Machine, name: &[u8]) -> *mut c_void {
    let base = core::str::from_utf8(name).map_or("", base);
    let mut named = by_base(base.as_bytes()).iter().copied();
    let state = machine.lock();
    match named.find(|id| EXPORTS[*id].name.as_bytes() == name) {
        Some(id) if visible(&state, id) => address(machine.slot, id),
        _ => core::ptr::null_mut(),
    }
}
