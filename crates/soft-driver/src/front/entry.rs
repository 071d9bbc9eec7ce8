//! The choke point that every call goes through.

use crate::abi::*;
use crate::front::arguments::Arguments;
use crate::front::hooks::hooked;
use crate::model::call_frame::{CallFrame, EntryPoint};
use crate::model::machine::Machine;

/// Where every call comes through. With all switches off it does no more than count the call.
#[inline]
pub(crate) fn enter(
    machine: &'static Machine,
    of: &'static EntryPoint,
    arguments: impl Arguments + Copy,
) -> CUresult {
    let call = CallFrame { machine, of, number: machine.count_call(), epoch: machine.epoch() };
    if machine.switches.plain() {
        return arguments.run(&call);
    }
    // A copy, so that the fast path keeps its arguments in registers: who lends them puts them into
    // memory first.
    hooked(&call, &{ arguments })
}
