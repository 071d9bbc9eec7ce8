//! What the entry points do: their bodies, by the names that the list of exports gives them.

pub(crate) mod busy;
pub(crate) mod context;
pub(crate) mod limits;
pub(crate) mod order;
pub(crate) mod primary_context;

pub(crate) use self::context::*;
pub(crate) use self::limits::*;
pub(crate) use self::primary_context::*;

use crate::abi::*;
use crate::model::call_frame::CallFrame;

/// The body of what makes no sense in software.
pub(crate) fn unsupported(call: &CallFrame) -> Answer {
    // Before `cuInit` as well: the CUDA runtime asks for tables first of all.
    call.lock()?.say_unsupported(call.name());
    call.refuse(NOT_SUPPORTED)
}
