//! Misuse: the report of what is undefined on a real driver, and the fate of a handle.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use crate::abi::*;
use crate::engine::work::Origin;
use crate::machine::call_frame::CallFrame;
use crate::machine::config::OnMisuse;
use crate::machine::handles::{Bad, Kind};
use crate::machine::thread;
use crate::sync::lock;

/// How many destroyed handles are remembered.
const TOMBSTONES: usize = 8192;

/// Where something was destroyed.
struct Tombstone {
    handle: u64,
    call: &'static str,
    number: u64,
    thread: u32,
}

/// What a program did wrong, and what it takes to say so.
pub(crate) struct Misuses {
    on_misuse: OnMisuse,
    /// The handles that were destroyed last.
    tombstones: VecDeque<Tombstone>,
    /// What was reported, if the process goes on.
    reports: Mutex<Vec<String>>,
    /// Calls that are not supported and were made: each is said once.
    unsupported: Mutex<BTreeSet<&'static str>>,
}

impl Misuses {
    pub(crate) const fn new() -> Self {
        Self {
            on_misuse: OnMisuse::Abort,
            tombstones: VecDeque::new(),
            reports: Mutex::new(Vec::new()),
            unsupported: Mutex::new(BTreeSet::new()),
        }
    }

    pub(crate) fn start(&mut self, on_misuse: OnMisuse) {
        self.on_misuse = on_misuse;
    }

    pub(crate) fn on_misuse(&self) -> OnMisuse {
        self.on_misuse
    }

    pub(crate) fn report(&self, text: String) {
        lock(&self.reports).push(text);
    }

    pub(crate) fn reports(&self) -> Vec<String> {
        lock(&self.reports).clone()
    }

    fn keep(&mut self, tombstone: Tombstone) {
        if self.tombstones.len() == TOMBSTONES {
            self.tombstones.pop_front();
        }
        self.tombstones.push_back(tombstone);
    }

    /// What became of a handle.
    pub(crate) fn epitaph(&self, handle: u64) -> String {
        match self.tombstones.iter().rev().find(|tombstone| tombstone.handle == handle) {
            Some(Tombstone { call, number, thread, .. }) => {
                format!(
                    "was destroyed by {call}, call {number} of this driver, in thread \"{}\"",
                    thread::label(*thread)
                )
            }
            None => "was destroyed long ago, or never existed".to_owned(),
        }
    }
}

impl Misuses {
    /// Remembers who destroyed a handle.
    pub(crate) fn bury(&mut self, call: &CallFrame, handle: u64) {
        let (call, number, thread) = (call.name(), call.number, thread::number());
        self.keep(Tombstone { handle, call, number, thread });
    }

    /// The program did what is undefined on a real driver: ends the process, or gives `code` to
    /// answer.
    #[cold]
    pub(crate) fn undefined(&self, call: &CallFrame, what: &str, code: CUresult) -> CUresult {
        match self.on_misuse {
            OnMisuse::Abort => thread::abort(call.name(), what),
            OnMisuse::Error => {
                self.report(format!("{}: {what}", call.name()));
                code
            }
        }
    }

    /// The same, when a stream comes to what a call gave it: no call is left to return an error. So
    /// what is kept is also said on standard error.
    #[cold]
    pub(crate) fn undefined_later(&self, origin: Origin, what: &str) {
        let what = format!("{}, call {} of this driver: {what}", origin.call, origin.number);
        match self.on_misuse {
            OnMisuse::Abort => thread::end(&what),
            OnMisuse::Error => {
                crate::say!("{what}");
                self.report(what);
            }
        }
    }

    /// Says once on standard error that a call is none of this driver's. Most programs only say
    /// that something failed.
    #[cold]
    pub(crate) fn say_unsupported(&self, name: &'static str) {
        if !lock(&self.unsupported).insert(name) {
            return;
        }
        match name {
            "cuGetExportTable" => crate::say!(
                "{name} is not supported: programs of the CUDA runtime (PyTorch, CuPy) cannot run \
                 here"
            ),
            _ => crate::say!("{name} is not supported: it returns CUDA_ERROR_NOT_SUPPORTED"),
        }
    }

    /// Says what is wrong with a handle that names nothing.
    #[cold]
    pub(crate) fn bad_handle(
        &self,
        call: &CallFrame,
        kind: Kind,
        handle: u64,
        bad: Bad,
    ) -> CUresult {
        let kind = kind.name();
        let (what, code) = match bad {
            Bad::Foreign => (format!("{handle:#x} is not a {kind} of this driver"), INVALID_HANDLE),
            Bad::OtherKind(other) => {
                // The real driver survives this one, and answers so.
                (
                    format!("{handle:#x} is a {}, where a {kind} is expected", other.name()),
                    CONTEXT_IS_DESTROYED,
                )
            }
            Bad::OtherMachine(slot) => {
                (format!("{kind} {handle:#x} belongs to software driver {slot}"), INVALID_HANDLE)
            }
            Bad::Stale => (format!("{kind} {handle:#x} {}", self.epitaph(handle)), INVALID_HANDLE),
            // That driver was dropped, which is its shutdown: a late caller, as in another
            // thread, gets that code.
            Bad::EarlierLife => return DEINITIALIZED,
        };
        self.undefined(call, &what, code)
    }
}
