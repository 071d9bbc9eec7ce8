//! The arguments of one call, whatever function it is of.

use crate::abi::*;
use crate::machine::call_frame::{CallFrame, Words};

/// The arguments of one call, and the body that takes them. A value is made in one place only, the
/// shim around each entry point, from what a C call gave.
pub(crate) trait Arguments {
    /// The arguments as numbers.
    fn words(&self) -> Words;

    /// Fills small out-parameters with garbage.
    fn poison(&self);

    /// What a creating call has written to its out-parameter, once it succeeded.
    fn given(&self) -> Option<u64>;

    /// Runs the body of the function.
    fn run(&self, call: &CallFrame) -> CUresult;
}

/// The code that an answer is to the program.
#[inline]
pub(crate) fn code(call: &CallFrame, answer: Answer) -> CUresult {
    match answer {
        Ok(()) => SUCCESS,
        Err(code) => {
            if code == NOT_SUPPORTED {
                say_unsupported(call);
            }
            code
        }
    }
}

#[cold]
fn say_unsupported(call: &CallFrame) {
    if let Ok(state) = call.lock() {
        state.misuses.say_unsupported(call, call.name());
    }
}
