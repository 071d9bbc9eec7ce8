//! The choke point that every call goes through.

use crate::abi::*;
use crate::front::arguments::Arguments;
use crate::front::exports::Id;
use crate::front::hooks::hooked;
use crate::machine::Machine;
use crate::machine::call_frame::{CallFrame, EntryPoint};

const fn is_lookup(id: Id) -> bool {
    let lookups = [Id::cuGetProcAddress, Id::cuGetProcAddress_v2, Id::cuGetProcAddress_v2_ptsz];
    id.0 == lookups[0].0 || id.0 == lookups[1].0 || id.0 == lookups[2].0
}

/// Where every call comes through. With all switches off it does no more than count the call.
#[inline]
pub(crate) fn enter(
    machine: &'static Machine,
    entry: &'static EntryPoint,
    arguments: impl Arguments + Copy,
) -> CUresult {
    // Look-ups are not the program's: a number in a report is the same for each loader.
    let number = if is_lookup(entry.id) { machine.calls() } else { machine.count_call() };
    let call = CallFrame { machine, entry, number, epoch: machine.epoch(), context: None };
    if machine.switches.plain() {
        return arguments.run(&call);
    }
    // A copy, so that the fast path keeps its arguments in registers: who lends them puts them into
    // memory first.
    hooked(&call, &{ arguments })
}
