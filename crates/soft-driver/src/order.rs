//! The order checker's feed on this driver: the threads that it sees, and where its findings go.
//!
//! The feed is given everything under the machine's lock, so in the order in which the calls took
//! effect. While a capture is under way it is given nothing of its streams: the nodes of a graph
//! are given when it is instantiated, and a launch names them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuda_order_check_engine::feed::{self, Observer};
use cuda_order_check_engine::findings::{Findings, Sink, counted};
use cuda_order_check_engine::trace::Trace;
use cuda_order_check_engine::{Backtrace, Finding, Options, ThreadId};

use crate::machine::config::{Config, OrderCheck};
use crate::threads;

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
    /// The kernels that were launched and of which it is not known what they access, and why, and how
    /// often.
    unchecked: BTreeMap<(String, Option<String>), u64>,
    /// Those of images, which do not run.
    without_effect: BTreeMap<String, u64>,
}

impl Reports {
    pub(crate) fn launched_unchecked(&mut self, kernel: &str, why: Option<&str>) {
        *self.unchecked.entry((kernel.to_owned(), why.map(str::to_owned))).or_default() += 1;
    }

    pub(crate) fn launched_without_effect(&mut self, kernel: &str) {
        *self.without_effect.entry(kernel.to_owned()).or_default() += 1;
    }

    /// Writes the counts, and what was not checked.
    pub(crate) fn summary(&mut self) {
        let unchecked = std::mem::take(&mut self.unchecked).into_iter();
        let unchecked = unchecked.map(|((name, why), times)| {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{name:?} {}{why}", counted(times, "times"))
        });
        let not_run = std::mem::take(&mut self.without_effect).into_iter();
        let not_run = not_run.map(|(name, times)| format!("{name:?} {}", counted(times, "times")));
        for (what, kernels) in [
            ("kernels of images did not run and changed no memory", not_run.collect()),
            (
                "kernels without `accesses` were launched and not checked",
                unchecked.collect::<Vec<_>>(),
            ),
        ] {
            if !kernels.is_empty() {
                self.findings.note(&format!("{what}: {}", kernels.join(", ")));
            }
        }
        self.findings.summary(&[]);
    }
}

impl Observer for Reports {
    fn thread(&self) -> ThreadId {
        ThreadId(u64::from(threads::number()))
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        let name = threads::label(thread.0 as u32);
        name.strip_prefix("thread ").unwrap_or(&name).to_owned()
    }

    fn backtrace(&self) -> Option<Arc<dyn Backtrace>> {
        self.backtraces.then(|| Arc::new(Trace::here()) as _)
    }

    fn ended_threads(&self) -> usize {
        threads::ended()
    }

    fn has_ended(&self, thread: ThreadId) -> bool {
        threads::has_ended(thread.0 as u32)
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
            cuda_order_check_engine::exit::set(self.exitcode);
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

/// Where the findings of a driver are written.
fn new_findings(config: &Config) -> Findings {
    let file = config.order.log.as_ref().and_then(|path| {
        let failed = |error| {
            crate::say!("order_log: cannot write {path}, so findings go here: {error}");
        };
        Sink::file(path).map_err(failed).ok()
    });
    let sink = file.unwrap_or_else(|| Sink::stderr("cuda-soft-driver: "));
    let sink = if config.order.json { sink.json() } else { sink };
    Findings::new(vec![sink], config.order.suppress.clone())
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
    let findings = new_findings(config);
    let (hint, exitcode) = (!backtraces, config.order.exitcode);
    let (unchecked, without_effect) = (BTreeMap::new(), BTreeMap::new());
    let reports =
        Reports { findings, aborts, backtraces, hint, exitcode, unchecked, without_effect };
    Some(Box::new(Feed::new(options, reports)))
}
