//! What the process is told at its end.

use super::*;

/// What the summary counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) kernels: u64,
    /// With memsets.
    pub(super) copies: u64,
    /// Launches of graphs.
    pub(super) graphs: u64,
    /// Those of graphs whose nodes are not all modelled.
    pub(super) unknown: u64,
    /// Copies of arrays whose elements have an unknown size.
    pub(super) formats: u64,
    /// Batches with operations of an unknown kind.
    pub(super) operations: u64,
    /// Values that counted as seen, as too many were pending.
    pub(super) crowded: u64,
    /// Nodes of graphs that allocate memory.
    pub(super) allocating: u64,
    /// Graphs that kernels may launch.
    pub(super) launchable: u64,
    /// Nodes that kernels may change.
    pub(super) changeable: u64,
}

/// Reports what was held back until the end, and writes how much was seen, and what was not.
pub fn summary() {
    if guard::off() && guard::error().is_none() {
        return;
    }
    let Some(mut watch) = lock_at_end() else { return };
    let Some(watch) = &mut *watch else { return };
    if std::mem::replace(&mut watch.ended, true) {
        return;
    }
    if let Some(error) = guard::error() {
        let text = format!("order check: off since an error inside the checker: {error}");
        watch.feed.observer_mut().findings.note(&text);
        return;
    }
    let _inside = Inside::new();
    guard::own(|| sum_up(watch));
}

/// The lock, also after an error. A thread that ends the process, or that goes on, may have it.
fn lock_at_end() -> Option<MutexGuard<'static, Option<Watch>>> {
    for _ in 0..5000 {
        match WATCH.try_lock() {
            Ok(watch) => return Some(watch),
            Err(TryLockError::Poisoned(of)) => return Some(of.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

fn sum_up(watch: &mut Watch) {
    watch.submit_waiting();
    watch.hear();
    let of_host = watch.pinned.lines();
    watch.stop_watching();
    let unlisted = crate::hooks::unlisted();
    let words = watch.kernels.values().flat_map(Kernel::judged);
    watch.feed.observer_mut().decide(words);
    let (calls, seen) = (watch.calls, watch.seen);
    // Those of graphs, too.
    let undescribed = !watch.kernels.is_empty() && !watch.questions.describe_kernels();
    let findings = &mut watch.feed.observer_mut().findings;
    // A program that only looks for a driver has none.
    if calls > 0 {
        findings.summary(&[
            ("kernels", seen.kernels),
            ("copies", seen.copies),
            ("graphs", seen.graphs),
            ("threads", threads()),
        ]);
    }
    if undescribed {
        let text = "the driver does not describe the parameters of kernels (CUDA 12.4 does)";
        findings.note(&format!("order check: {text}: their accesses were not seen"));
    }
    of_host.iter().for_each(|line| findings.note(&format!("order check: {line}")));
    for name in unlisted {
        let like = match is_like_a_hooked_one(&name) {
            true => ", though others of its name are modelled",
            false => "",
        };
        findings.note(&format!("order check: not in the list of functions: {name}{like}"));
    }
    for (name, calls) in thunks::called() {
        let text = "not modelled, so each call counts as ordering everything";
        findings.note(&format!("order check: {text}: {name} {calls} times"));
    }
    for (count, one, what) in [
        (seen.unknown, "launch", "launches of graphs"),
        (seen.formats, "copy", "batches of copies of arrays whose format is unknown"),
        (seen.operations, "batch", "batches of operations in memory of an unknown kind"),
    ] {
        let text = format!("not modelled, so each {one} counts as ordering everything");
        if count > 0 {
            findings.note(&format!("order check: {text}: {count} {what}"));
        }
    }
    for (count, what) in [
        (seen.launchable, "graphs may be launched by kernels; such launches are not seen"),
        (
            seen.changeable,
            "nodes of graphs may be changed by kernels; their accesses are not known",
        ),
        (
            seen.allocating,
            "nodes of graphs allocate memory; kernels with its addresses are not seen",
        ),
        (
            seen.crowded,
            "values that streams write counted as seen at once, as too many were pending",
        ),
    ] {
        if count > 0 {
            findings.note(&format!("order check: {count} {what}"));
        }
    }
    let mut tables = 0;
    if let Some(of) = COUNTED.get() {
        of(&mut |name, calls| {
            tables += if name == "cuGetExportTable" { calls } else { 0 };
        });
    }
    if tables > 0 {
        let text = "tables of functions without names were asked for";
        findings.note(&format!("order check: {tables} {text}; calls through them are not seen"));
    }
}

/// Gives each function that is not hooked, and how often it was called.
pub(super) type Counted = fn(&mut dyn FnMut(&'static str, u64));

pub(super) static COUNTED: OnceLock<Counted> = OnceLock::new();

/// Sets what counts the calls of functions that are not hooked.
pub fn count_by(counted: Counted) {
    let _ = COUNTED.set(counted);
}
