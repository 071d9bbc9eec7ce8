//! What memory holds that a launch has an address in, as far as the host has put it there.
//!
//! A kernel that finds its blocks in a table may be anywhere in a cache, as far as its code says. Most such
//! tables come from the host, so a thread that is run may read what was uploaded. That is what memory holds if
//! nothing else has written there since. What surely writes is looked at where the uploads are remembered
//! ([`uploads`](crate::state::uploads)); a kernel may, so the launches since then are remembered with an
//! upload, and are asked only when something depends on it.

use std::sync::Arc;

use cuda_kernel_access::touch::Span;

use crate::code::evaluated::is_bounded;
use crate::code::kernel::KernelCode;
use crate::code::launch::{Recalled, Upload, Values};
use crate::code::time::Time;
use crate::code::verdict::reads;

/// Whether a launch may change these bytes of an allocation. Of an access without bounds only the word says
/// where it is: it may be anywhere in the word's allocation, and anywhere if its address comes from memory.
fn may_change(launch: &Values, Upload { range, memory, .. }: &Upload, time: Time) -> bool {
    let Ok(found) = launch.evaluate(time) else { return true };
    let Ok(bounds) = &found.bounds else { return true };
    let by_pointers = bounds.summary.memory;
    let writes_in_memory = || {
        let mut words = launch.words().iter().zip(&bounds.summary.words);
        words.any(|(value, word)| {
            memory.contains(value) && (word.uses.written || word.uses.atomic || word.uses.other)
        })
    };
    let may_write = |span: &Span| match is_bounded(span) {
        true => span.may_touch(range),
        false => by_pointers.written || by_pointers.atomic || writes_in_memory(),
    };
    bounds.spans.iter().any(|span| !reads(span.kind) && may_write(span))
}

/// Whether a kernel may store where a pointer in memory says, which may be anywhere.
fn stores_by_pointers(kernel: &Arc<KernelCode>) -> bool {
    let Ok(code) = kernel.code() else { return true };
    let Ok(summary) = kernel.summarize(&code) else { return true };
    summary.memory.written || summary.memory.atomic
}

impl Values {
    /// The launch with what it finds in memory; `None` if nothing is there for certain, or its threads have
    /// no use for it.
    pub(crate) fn recalled(&self, time: Time) -> Option<&Values> {
        let recall = self.recall.as_ref()?;
        let find = || {
            let found = self.evaluate(time).ok()?;
            let spans = &found.bounds.as_ref().ok()?.spans;
            let is_by_memory = spans.iter().any(|span| span.from_memory || !is_bounded(span));
            if !is_by_memory || recall.kernels.iter().any(stores_by_pointers) {
                return None;
            }
            let is_there = |one: &&Recalled| {
                let mut log = one.log.as_deref();
                let before = core::iter::from_fn(|| {
                    let logged = log?;
                    log = logged.before.as_deref();
                    Some(&*logged.launch)
                });
                let mut all = before.chain([self]);
                !all.any(|launch| may_change(launch, &one.upload, time))
            };
            let all: Vec<_> =
                recall.all.iter().filter(is_there).map(|one| one.upload.clone()).collect();
            (!all.is_empty()).then(|| Arc::new(self.with_memory(all)))
        };
        recall.with.get_or_init(find).as_deref()
    }

    /// The same, if that was asked before.
    pub(crate) fn earlier_recalled(&self) -> Option<Option<&Values>> {
        let Some(recall) = &self.recall else { return Some(None) };
        Some(recall.with.get()?.as_deref())
    }
}
