//! Misuse: the report of what is undefined on a real driver, and the fate of a handle.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use crate::abi::*;
use crate::context::losses::Losses;
use crate::driver_log::lines::DriverLog;
use crate::engine::work::Origin;
use crate::machine::config::OnMisuse;
use crate::machine::handles::{Bad, Kind};
use crate::sync::lock;
use crate::threads;

/// How many destroyed handles are remembered.
const REMEMBERED: usize = 8192;

/// The call that destroyed an object, for the message about a later use.
struct Destroyed {
    handle: u64,
    call: &'static str,
    number: u64,
    thread: u32,
}

/// The misuse that was reported, and what its reports name: who destroyed a handle.
pub(crate) struct Misuses {
    on_misuse: OnMisuse,
    /// The handles that were destroyed last.
    destroyed: VecDeque<Destroyed>,
    /// What was reported, if the process goes on.
    reports: Mutex<Vec<String>>,
    /// Unsupported calls that the program made: each is printed once.
    unsupported: Mutex<BTreeSet<&'static str>>,
    /// The lines for `cuLogsDumpToMemory`.
    pub(crate) log: DriverLog,
    /// What ended with its context.
    pub(crate) losses: Losses,
}

impl Misuses {
    pub(crate) const fn new() -> Self {
        Self {
            on_misuse: OnMisuse::Abort,
            destroyed: VecDeque::new(),
            reports: Mutex::new(Vec::new()),
            unsupported: Mutex::new(BTreeSet::new()),
            log: DriverLog::new(),
            losses: Losses::new(),
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

    /// Remembers who destroyed a handle.
    pub(crate) fn note_destroyed(&mut self, call: impl Into<Origin>, handle: u64) {
        let (Origin { call, number }, thread) = (call.into(), threads::number());
        if self.destroyed.len() == REMEMBERED {
            self.destroyed.pop_front();
        }
        self.destroyed.push_back(Destroyed { handle, call, number, thread });
    }

    /// What became of a handle.
    pub(crate) fn fate_of(&self, handle: u64) -> String {
        match self.destroyed.iter().rev().find(|entry| entry.handle == handle) {
            Some(Destroyed { call, number, thread, .. }) => {
                format!(
                    "was destroyed by {call}, call {number} of this driver, in thread \"{}\"",
                    threads::label(*thread)
                )
            }
            None => "was destroyed long ago, or never existed".to_owned(),
        }
    }

    /// The program did what is undefined on a real driver: ends the process, or returns `code`, for
    /// the call to return.
    #[cold]
    pub(crate) fn undefined(
        &self,
        call: impl Into<Origin>,
        what: &str,
        code: CUresult,
    ) -> CUresult {
        let Origin { call, .. } = call.into();
        match self.on_misuse {
            OnMisuse::Abort => threads::abort(call, what),
            OnMisuse::Error => {
                self.report(format!("{call}: {what}"));
                self.log.add(call, what, code);
                code
            }
        }
    }

    /// The same when a stream executes what a call submitted: no call is left to return an error,
    /// so the message is also printed on standard error.
    #[cold]
    pub(crate) fn undefined_later(&self, origin: Origin, what: &str) {
        let what = format!("{}, call {} of this driver: {what}", origin.call, origin.number);
        match self.on_misuse {
            OnMisuse::Abort => threads::end(&what),
            OnMisuse::Error => {
                crate::say!("{what}");
                self.report(what);
            }
        }
    }

    /// Prints once on standard error that a call, or `what` of it, is not supported. Most programs
    /// only print that something failed.
    #[cold]
    pub(crate) fn say_unsupported(&self, call: impl Into<Origin>, what: &'static str) {
        let mut said = lock(&self.unsupported);
        let is_new = said.insert(what);
        // So that the code of the call is not reported as well.
        said.insert(call.into().call);
        if !is_new {
            return;
        }
        match what {
            "cuGetExportTable" => crate::say!(
                "{what} is not supported: programs of the CUDA runtime (PyTorch, CuPy) cannot run \
                 here"
            ),
            _ => crate::say!("{what} is not supported: it returns CUDA_ERROR_NOT_SUPPORTED"),
        }
    }

    /// A kernel of an image is launched. It is no misuse, but the program may count on its results.
    pub(crate) fn say_not_run(&self, kernel: &str) {
        if lock(&self.unsupported).insert("a kernel of an image") {
            crate::say!(
                "kernels of images, such as {kernel:?}, do not run, and change no memory: register a \
                 closure for each whose results matter"
            );
        }
    }

    /// Reports a handle that names nothing.
    #[cold]
    pub(crate) fn bad_handle(
        &self,
        call: impl Into<Origin>,
        kind: Kind,
        handle: u64,
        bad: Bad,
    ) -> CUresult {
        let kind = kind.name();
        let (what, code) = match bad {
            Bad::Foreign => (format!("{handle:#x} is not a {kind} of this driver"), INVALID_HANDLE),
            Bad::OtherKind(other) => {
                // The real driver survives this one, and returns this code.
                (
                    format!("{handle:#x} is a {}, where a {kind} is expected", other.name()),
                    CONTEXT_IS_DESTROYED,
                )
            }
            Bad::OtherMachine(slot) => {
                (format!("{kind} {handle:#x} belongs to software driver {slot}"), INVALID_HANDLE)
            }
            Bad::Stale => (format!("{kind} {handle:#x} {}", self.fate_of(handle)), INVALID_HANDLE),
            // That driver was dropped, which is its shutdown: a late caller, as in another
            // thread, gets that code.
            Bad::EarlierLife => return DEINITIALIZED,
        };
        self.undefined(call, &what, code)
    }
}
