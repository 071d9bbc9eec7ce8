//! Where findings go, and those that wait until it is known whether a word is an address.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write as _;

use cuda_order_check::feed::Observer;
use cuda_order_check::{Finding, ThreadId};

use super::thread;

/// The threads of the process, and where findings go.
pub(super) struct Output {
    pub(super) log: Option<File>,
    pub(super) findings: Vec<Finding>,
    pub(super) count: u64,
    /// Words within structures that count or not, by the names of the operations that use them.
    pub(super) words: HashMap<&'static str, Word>,
    /// Findings about words of which it is not known yet whether they count.
    pub(super) held: Vec<(&'static str, Finding)>,
    /// The pairs of calls that were reported, as a kernel is reported once for all its words.
    pub(super) reported: HashSet<[String; 2]>,
}

/// Whether a word within a structure counts as an address.
#[derive(Clone, Copy)]
pub(super) struct Word {
    /// The name of the kernel's launch.
    pub(super) kernel: &'static str,
    pub(super) counts: Option<bool>,
}

impl Observer for Output {
    fn thread(&self) -> ThreadId {
        ThreadId(thread())
    }

    fn thread_name(&self, thread: ThreadId) -> String {
        std::thread::current().name().map_or_else(|| thread.0.to_string(), str::to_owned)
    }

    fn finding(&mut self, finding: Finding) {
        let sides = finding.report().map(|report| [&report.first, &report.second]);
        let word = sides.into_iter().flatten().find_map(|side| {
            self.words.get_key_value(&*side.call.name).map(|(name, word)| (*name, word.counts))
        });
        match word {
            Some((name, None)) => self.held.push((name, finding)),
            Some((_, Some(false))) => {}
            Some((_, Some(true))) | None => self.report(finding),
        }
    }
}

impl Output {
    pub(super) fn report(&mut self, finding: Finding) {
        if let Some(report) = finding.report() {
            let mut pair = [&report.first, &report.second].map(|side| {
                let kernel = self.words.get(&*side.call.name).map(|word| word.kernel);
                let stream = side.agent.stream_id().map_or(0, |stream| stream.0);
                format!("{} {stream:#x} {}", kernel.unwrap_or(&side.call.name), side.agent)
            });
            pair.sort_unstable();
            // Between other calls the checker sees to it.
            if !self.words.is_empty() && !self.reported.insert(pair) {
                return;
            }
        }
        self.count += 1;
        self.write(&finding.to_string());
        self.findings.push(finding);
    }

    /// It is known now which of a kernel's words count.
    pub(super) fn decide(&mut self, words: impl Iterator<Item = (&'static str, bool)>) {
        for (name, counts) in words {
            if let Some(word) = self.words.get_mut(name) {
                word.counts = Some(counts);
            }
        }
        let held = std::mem::take(&mut self.held);
        for (name, finding) in held {
            match self.words.get(name).and_then(|word| word.counts) {
                None => self.held.push((name, finding)),
                Some(false) => {}
                Some(true) => self.report(finding),
            }
        }
    }

    pub(super) fn write(&mut self, text: &str) {
        let line = format!("{text}\n");
        let _ = match &mut self.log {
            Some(file) => file.write_all(line.as_bytes()),
            None => std::io::stderr().write_all(line.as_bytes()),
        };
    }
}
