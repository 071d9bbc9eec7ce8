//! The last small uploads, as far as they are still there.

use core::ops::Range;
use std::sync::Arc;

use cuda_order_check_engine::StreamId;

use crate::code::kernel::KernelCode;
use crate::code::launch::{Logged, Recall, Recalled, Upload, Values};

/// How many there are, the most bytes of each, and the most launches and kernels after one.
const UPLOADS: usize = 16;
pub(crate) const BYTES: u64 = 16 << 10;
const LAUNCHES: usize = 64;

/// How many ranges of the host's memory are remembered that streams write to.
const RANGES: usize = 256;

/// An upload, with the launches since then that have an address in its allocation.
struct Remembered {
    upload: Arc<Upload>,
    stream: StreamId,
    log: Option<Arc<Logged>>,
    launches: usize,
}

#[derive(Default)]
pub(crate) struct Uploads {
    all: Vec<Remembered>,
    /// The kernels that were launched since the first of them. Each may store where memory says.
    kernels: Vec<Arc<KernelCode>>,
    /// Memory of the host that streams write to: when a copy is submitted, it may not have yet what the copy
    /// reads.
    written_by_streams: Vec<Range<u64>>,
    /// What a copy reads may be written after its submission.
    late: bool,
}

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Uploads {
    /// Something writes there, or may.
    pub(crate) fn written(&mut self, range: &Range<u64>) {
        self.all.retain(|one| !meet(&one.upload.range, range));
    }

    /// Memory has ended, or nobody knows what was written.
    pub(crate) fn forget(&mut self) {
        self.all.clear();
    }

    /// A host function, whoever ends a stream's wait, or a kernel may write to the host's memory before the
    /// work behind them reads it.
    pub(crate) fn host_may_be_late(&mut self) {
        self.late = true;
    }

    /// Whether memory of the host has what a copy reads when the copy is submitted.
    pub(crate) fn is_ready(&self, source: &Range<u64>) -> bool {
        !self.late && !self.written_by_streams.iter().any(|range| meet(range, source))
    }

    pub(crate) fn write_host(&mut self, range: &Range<u64>) {
        let has = |one: &Range<u64>| one.start <= range.start && range.end <= one.end;
        if self.written_by_streams.iter().any(has) {
            return;
        }
        match self.written_by_streams.len() {
            RANGES => self.late = true,
            _ => self.written_by_streams.push(range.clone()),
        }
    }

    pub(crate) fn add(&mut self, upload: Upload, stream: StreamId) {
        self.written(&upload.range);
        if self.all.len() == UPLOADS {
            self.all.remove(0);
        }
        self.all.push(Remembered { upload: Arc::new(upload), stream, log: None, launches: 0 });
    }

    /// A kernel is launched in a stream, with these words: what it may find in memory. It may change that,
    /// too, if it is not read before.
    pub(crate) fn launched(&mut self, stream: StreamId, values: &mut Values) {
        if self.all.is_empty() {
            self.kernels.clear();
            return;
        }
        if !values.has_words() {
            return self.forget();
        }
        let found: Vec<Recalled> = self
            .all
            .iter()
            .filter(|one| {
                let range = &one.upload.range;
                one.stream == stream && values.addresses().any(|word| range.contains(&word))
            })
            .map(|one| Recalled { upload: one.upload.clone(), log: one.log.clone() })
            .collect();
        let mut logged = None;
        self.all.retain_mut(|one| {
            let memory = &one.upload.memory;
            if !values.addresses().any(|word| memory.contains(&word)) {
                return true;
            }
            let launch = logged.get_or_insert_with(|| Arc::new(values.alone())).clone();
            let is_last = one.log.as_ref().is_some_and(|last| last.launch.number == launch.number);
            if !is_last {
                one.log = Some(Arc::new(Logged { launch, before: one.log.take() }));
                one.launches += 1;
            }
            one.launches <= LAUNCHES
        });
        if !found.is_empty() {
            values.recall = Some(Box::new(Recall::new(found, self.kernels.clone())));
        }
        if !self.kernels.iter().any(|kernel| Arc::ptr_eq(kernel, &values.code)) {
            match self.kernels.len() {
                LAUNCHES => self.forget(),
                _ => self.kernels.push(values.code.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RANGES, Uploads};

    /// A copy that reads one byte of what a stream has yet to write has not what it will read.
    #[test]
    fn what_streams_write_to_the_host_is_late_to_the_byte() {
        let mut uploads = Uploads::default();
        for range in [0x100..0x140, 0x120..0x160, 0x100..0x120, 0x200..0x201] {
            uploads.write_host(&range);
        }
        let late = [0xff..0x101, 0x140..0x141, 0x15f..0x170, 0x0..0x1000, 0x200..0x201];
        assert_eq!(late.map(|range| uploads.is_ready(&range)), [false; 5]);
        let ready = [0x0..0x100, 0x160..0x200, 0x201..0x300];
        assert_eq!(ready.map(|range| uploads.is_ready(&range)), [true; 3]);
        // What is there already takes no room; one more than there is room for is everywhere.
        for at in 3..RANGES as u64 {
            uploads.write_host(&(0x1000 * at..0x1000 * at + 8));
        }
        uploads.write_host(&(0x100..0x101));
        assert!(uploads.is_ready(&(0..1)));
        uploads.write_host(&(0..1));
        assert!(!uploads.is_ready(&(0x300..0x301)));
    }
}
