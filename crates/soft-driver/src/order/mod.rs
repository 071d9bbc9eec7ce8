//! The order checker's feed on this driver: the threads that it sees, and where its findings go.
//!
//! The feed is given everything under the machine's lock, so in the order in which the calls took
//! effect. While a capture is under way it is given nothing of its streams: the nodes of a graph
//! are given when it is instantiated, and a launch names them.

pub(crate) mod findings;

use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_order_check_engine::feed::{self, Observer};
use cuda_order_check_engine::findings::Findings;
use cuda_order_check_engine::trace::Trace;
use cuda_order_check_engine::{Backtrace, Finding, Options, ThreadId};

use crate::machine::config::{Config, OrderCheck};
use crate::machine::thread;

/// What the feed is given, and where its findings go.
pub(crate) type Feed = feed::Feed<Reports>;

/// The threads of this process, and the findings.
pub(crate) struct Reports {
    pub(crate) findings: Findings,
    aborts: bool,
    backtraces: bool,
    /// Whether it is still to be printed that reports can show stacks.
    hint: bool,
    exitcode: u8,
    /// The kernels that were launched and do not declare what they access, and how often.
    unchecked: BTreeMap<String, u64>,
}

impl Reports {
    pub(crate) fn launched_unchecked(&mut self, kernel: &str) {
        match self.unchecked.get_mut(kernel) {
            Some(times) => *times += 1,
            None => _ = self.unchecked.insert(kernel.to_owned(), 1),
        }
    }

    /// Writes the counts, and what was not checked.
    pub(crate) fn summary(&mut self) {
        let kernels = std::mem::take(&mut self.unchecked);
        if !kernels.is_empty() {
            let each = kernels.iter().map(|(name, times)| format!("{name:?} {times} times"));
            let each = each.collect::<Vec<_>>().join(", ");
            self.findings
                .note(&format!("kernels without `accesses` were launched and not checked: {each}"));
        }
        self.findings.summary(&[]);
    }
}

impl Observer for Reports {
    fn thread(&self) -> ThreadId {
        ThreadId(u64::from(thread::number()))
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        let name = thread::label(thread.0 as u32);
        name.strip_prefix("thread ").unwrap_or(&name).to_owned()
    }

    fn backtrace(&self) -> Option<Arc<dyn Backtrace>> {
        self.backtraces.then(|| Arc::new(Trace::here()) as _)
    }

    fn ended_threads(&self) -> usize {
        thread::ended()
    }

    fn has_ended(&self, thread: ThreadId) -> bool {
        thread::has_ended(thread.0 as u32)
    }

    fn finding(&mut self, finding: Finding) {
        if !self.findings.add(finding, "") {
            return;
        }
        if std::mem::take(&mut self.hint) {
            self.findings.note(
                "set order_backtraces=on in CUDA_SOFT_DRIVER (--order-backtraces on of the command), or \
                 Builder::order_backtraces(true) in a test in Rust, to see how the program came to the \
                 calls",
            );
        }
        if self.exitcode != 0 {
            findings::exit::set(self.exitcode);
        }
        if self.aborts {
            crate::say!(
                "such accesses may happen in any order on a real device, so the process ends; \
                 with order=report it goes on"
            );
            std::process::abort();
        }
    }
}

/// The feed of a driver, if its order is to be checked.
pub(crate) fn new_feed(config: &Config) -> Option<Box<Feed>> {
    let aborts = match config.order.check {
        OrderCheck::Off => return None,
        OrderCheck::Report => false,
        OrderCheck::Abort => true,
    };
    let (warnings, host_order) = (config.order.warnings, config.order.host);
    let options = Options::new().warnings(warnings).host_order(host_order);
    let backtraces = config.order.backtraces;
    let findings = findings::new(config);
    let (hint, exitcode) = (!backtraces, config.order.exitcode);
    let reports =
        Reports { findings, aborts, backtraces, hint, exitcode, unchecked: BTreeMap::new() };
    Some(Box::new(Feed::new(options, reports)))
}
