//! What a machine can do to a call beside its work: the call log, faults, latency, and the answers in special times.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::abi::*;
use crate::engine::strict;
use crate::entry::{self, Call, Words};

const FORKED: u32 = 1;
const IN_HOST_FUNCTIONS: u32 = 2;

/// Switches that the fast path looks at with one load.
pub(crate) struct Hooks {
    flags: AtomicU32,
}

impl Hooks {
    pub(crate) const fn new() -> Self {
        Self { flags: AtomicU32::new(0) }
    }

    pub(crate) fn plain(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == 0
    }

    fn set(&self, flag: u32, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Said by the thread of the host functions around each one.
    pub(crate) fn host_function(&self, running: bool) {
        self.set(IN_HOST_FUNCTIONS, running);
    }

    pub(crate) fn in_host_functions(&self) -> bool {
        self.has(IN_HOST_FUNCTIONS)
    }

    /// Said in a forked child.
    pub(crate) fn forked(&self) {
        self.set(FORKED, true);
    }

    pub(crate) fn reset(&self) {
        self.flags.store(0, Ordering::Relaxed);
    }
}

/// A call on a machine that has some switch on.
#[cold]
pub(crate) fn hooked(call: &Call, _words: Words, body: impl FnOnce() -> CUresult) -> CUresult {
    let hooks = &call.machine.hooks;
    if hooks.has(FORKED)
        && let Some(code) = entry::forked_answer(call)
    {
        return code;
    }
    if hooks.has(IN_HOST_FUNCTIONS) {
        let state = call.machine.lock();
        if call.machine.in_host_function(state.epoch) && (strict(&state) || entry::refused_in_host_function(call.id)) {
            return NOT_PERMITTED;
        }
    }
    body()
}
