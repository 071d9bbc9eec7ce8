//! The last small uploads, as far as they are still there.

use core::ops::Range;
use std::sync::Arc;

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, AccessKind, StreamId};

use crate::code::kernel::KernelCode;
use crate::code::launch::Values;
use crate::code::recall::{Logged, Recall, Recalled, Upload};
use crate::model::copies::blocks::{Location, Transfer};
use crate::pinned::bytes;
use crate::watch::Watch;

/// How many there are, the most bytes of each, and the most launches and kernels after one.
const UPLOADS: usize = 16;
const BYTES: u64 = 16 << 10;
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
    fn is_ready(&self, source: &Range<u64>) -> bool {
        !self.late && !self.written_by_streams.iter().any(|range| meet(range, source))
    }

    fn write_host(&mut self, range: &Range<u64>) {
        let has = |one: &Range<u64>| one.start <= range.start && range.end <= one.end;
        if self.written_by_streams.iter().any(has) {
            return;
        }
        match self.written_by_streams.len() {
            RANGES => self.late = true,
            _ => self.written_by_streams.push(range.clone()),
        }
    }

    fn add(&mut self, upload: Upload, stream: StreamId) {
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
                one.stream == stream && values.words().iter().any(|word| range.contains(word))
            })
            .map(|one| Recalled { upload: one.upload.clone(), log: one.log.clone() })
            .collect();
        let mut logged = None;
        self.all.retain_mut(|one| {
            let memory = &one.upload.memory;
            if !values.words().iter().any(|word| memory.contains(word)) {
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

/// A copy from the host is accepted: what it puts into memory of a device.
pub(crate) fn uploaded(watch: &mut Watch, stream: StreamId, from: Location, copy: &Transfer) {
    let ([to, source], [size, 1, 1]) = (copy.blocks, copy.extent) else { return };
    let size = size as u64;
    let range = to.address..to.address.saturating_add(size);
    let is_read = match from {
        Location::Pageable => true,
        Location::Pinned => {
            let end = source.address.saturating_add(size);
            let last = end.saturating_sub(1);
            // To read it takes long, and with one stream there is nothing to be found.
            !watch.streams.created.is_empty()
                && watch.uploads.is_ready(&(source.address..end))
                && watch.pinned.may_be_read(source.address)
                && watch.pinned.may_be_read(last)
        }
        _ => false,
    };
    if !is_read
        || !(4..=BYTES).contains(&size)
        || watch.feed.memory(range.start) != Some(Memory::Device)
        || watch.feed.capture_of(stream).is_some()
    {
        return;
    }
    let Some(memory) = watch.feed.memory_around(range.start) else { return };
    let Some(bytes) = bytes::read_all(source.address as usize, size as usize) else { return };
    watch.uploads.add(Upload::new(range, memory, bytes.into()), stream);
}

/// What a stream's work writes for certain.
pub(crate) fn overwritten(watch: &mut Watch, accesses: &[Access]) {
    let writes = accesses.iter().filter(|access| access.kind == AccessKind::Write);
    for Access { range, .. } in writes {
        watch.uploads.written(range);
        if watch.feed.memory(range.start).is_some_and(|memory| memory != Memory::Device) {
            watch.uploads.write_host(range);
        }
    }
}
