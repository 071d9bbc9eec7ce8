//! Words in memory that streams write where the host may see them: each is looked at until it changes.

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Cell, StreamId};

use crate::call::Address;
use crate::model::copies::wrote_few;
use crate::pinned::protection::{self, readable};
use crate::state::node::Node;
use crate::state::under_way::Visible;
use crate::state::values::{Flag, PENDING, Pending, Value, load};
use crate::watch::Watch;

impl Watch {
    /// Memory may end: what is pending there counts as seen.
    pub(crate) fn stop_looking(&mut self) {
        let pending = std::mem::take(&mut self.values.pending);
        pending.into_iter().for_each(|pending| self.has_seen(pending));
    }

    /// The host may have seen the value, and nothing more is to be seen there.
    pub(crate) fn has_seen(&mut self, pending: Pending) {
        self.ends_looking(pending, true);
    }

    pub(crate) fn ends_looking(&mut self, Pending { id, page, .. }: Pending, seen: bool) {
        page.into_iter().for_each(protection::remove);
        self.accept_with(id);
        self.feed.written(id, seen);
    }

    /// Values that streams have written meanwhile: the host may have seen them.
    pub(crate) fn look_at_values(&mut self) {
        self.look_at_pending(false);
    }

    /// The same, before accesses of the host are judged: a store that came before the stream's own
    /// shows nothing of it.
    pub(crate) fn look_at_values_before_accesses(&mut self) {
        self.look_at_pending(true);
    }

    fn look_at_pending(&mut self, accesses_are_next: bool) {
        self.accept_visible();
        let all = std::mem::take(&mut self.values.pending);
        // The words that only one stream writes.
        let words: Vec<_> = all.iter().map(|pending| (pending.cell.address, pending.new)).collect();
        let is_alone = |word: u64, stream: StreamId| {
            let mut others = words.iter().filter(|(address, _)| *address == word);
            others.all(|(_, new)| new.is_some_and(|(writer, _)| writer == stream))
        };
        let mut there = Vec::new();
        for mut pending in all {
            let Pending { id, cell, old, new, page, .. } = pending;
            // Accesses that came before the end of a function, as far as it is known yet.
            if accesses_are_next && self.feed.is_behind_function(id) {
                self.values.pending.push(pending);
                continue;
            }
            let spent = page.and_then(protection::spent);
            let early = spent.as_ref().is_some_and(|spent| spent.early && accesses_are_next);
            let now = match spent.as_ref().and_then(|spent| spent.found) {
                // What comes after the access does not matter.
                Some(found) if found != old || early => found,
                // The host has not read what it must not read.
                _ if readable(cell.address as usize) => load(cell),
                _ => old,
            };
            // If the page was open, the host may have set the flag back.
            if now == old && (spent.is_none() || early) {
                self.values.pending.push(pending);
                continue;
            }
            // It is the value before this one that the stream has written.
            if let Some((stream, value)) = new
                && page.is_some()
                && spent.is_none()
            {
                if value != now && there.contains(&(cell.address, stream, now)) {
                    pending.old = now;
                    self.values.pending.push(pending);
                    continue;
                }
                if value == now && is_alone(cell.address, stream) {
                    there.push((cell.address, stream, now));
                }
            }
            self.has_seen(pending);
            if now != old {
                self.feed.word_written(cell, now);
            }
        }
    }

    /// A word will be written, where the host may have stored a value.
    pub(crate) fn find_stored_word(&mut self, address: Address, bytes: u64) {
        if matches!(bytes, 4 | 8) && address.is_multiple_of(bytes) {
            let cell = Cell { address, bytes: bytes as u8 };
            self.feed.find_stored(cell, || load(cell));
        }
    }

    /// A few bytes of pinned memory will be written: what is there now. Managed memory is never
    /// loaded: it may be closed to the host while the device is busy, and a load may move it. In
    /// shared memory others may set a value back, which nobody here sees.
    pub(crate) fn before_write(&self, address: Address, bytes: u64) -> Option<(Cell, u64)> {
        let cell = Cell { address, bytes: u8::try_from(bytes).ok().filter(|it| *it <= 8)? };
        let pinned = self.feed.memory(address) == Some(Memory::Host);
        (pinned && !self.pinned.is_shared(address)).then(|| (cell, load(cell)))
    }

    /// The number of a write that is looked for. Others have none: if anybody can see them, they may
    /// have been seen at any time.
    pub(crate) fn expect_write(
        &mut self,
        stream: StreamId,
        before: Option<(Cell, u64)>,
    ) -> Option<u64> {
        let (cell, old) = before.filter(|_| self.feed.capture_of(stream).is_none())?;
        Some(self.expect(Flag { cell, old, new: None, page: None }))
    }

    /// The number of a write of a value.
    pub(crate) fn expect_value(&mut self, flag: Option<Flag>) -> Option<u64> {
        flag.map(|flag| self.expect(flag))
    }

    fn expect(&mut self, Flag { cell, old, new, page }: Flag) -> u64 {
        let id = self.next_id();
        if self.values.pending.len() >= PENDING {
            let oldest = self.values.pending.remove(0);
            self.seen.crowded += 1;
            self.has_seen(oldest);
        }
        self.values.pending.push(Pending { id, cell, old, new, page, work: None });
        id
    }

    /// A stream will write a value. The host may wait for it in a loop and then, before its next
    /// call, store the old one again. So its stores to the page are seen from now on. `None` if
    /// nothing can be looked at: then the value counts as seen at once, if anybody can see it.
    pub(crate) fn flag(&mut self, stream: StreamId, cell: Cell, value: u64) -> Option<Flag> {
        if self.feed.capture_of(stream).is_some() {
            return None;
        }
        let (_, before) = self.before_write(cell.address, u64::from(cell.bytes))?;
        // The stream itself may set a flag back before anybody looks.
        let same = |pending: &mut Pending| {
            pending.page.is_some() && pending.cell.address == cell.address && pending.old == value
        };
        for pending in self.values.pending.extract_if(.., same).collect::<Vec<_>>() {
            self.has_seen(pending);
        }
        let page = self.pinned.guard(cell)?;
        // Not before the page is protected. But a look at a page that is closed would open it.
        let old = if readable(cell.address as usize) { load(cell) } else { before };
        Some(Flag { cell, old, new: Some((stream, value)), page })
    }
}

impl Watch {
    /// A call was not seen, or its name is all that the library has of it.
    pub(crate) fn order_everything(&mut self) {
        self.feed.barrier();
        self.uploads.forget();
        self.stop_looking();
    }
}

/// Before the real call of writes and waits. Returns the number of the submission.
pub(crate) fn operations_begin(watch: &mut Watch, stream: StreamId, values: &[Value]) -> u64 {
    let with_id = |value: &Value| {
        watch.feed.find_stored(value.cell, || load(value.cell));
        let id = match value.wait {
            Some(_) => None,
            None => {
                let flag = watch.flag(stream, value.cell, value.value);
                watch.expect_value(flag)
            }
        };
        (*value, id)
    };
    let mut values: Vec<_> = values.iter().map(with_id).collect();
    values.iter_mut().for_each(|(_, id)| watch.values.clear_unless_pending(id));
    let ids = values.iter().filter_map(|(_, id)| *id).collect();
    let at_once = watch.feed.capture_of(stream).is_none()
        && values.iter().any(|(value, id)| value.wait.is_none() && id.is_none());
    let visible = Visible { stream, ids, at_once };
    watch.submission_begins(visible, move |watch| operations_accepted(watch, stream, values))
}

/// The driver has accepted writes and waits.
fn operations_accepted(watch: &mut Watch, stream: StreamId, values: Vec<(Value, Option<u64>)>) {
    for (Value { cell, value, wait }, id) in values {
        match wait {
            Some(compare) => {
                watch.uploads.host_may_be_late();
                watch.feed.wait_value(stream, cell, value, compare);
                watch.graphs.add(&watch.feed, stream, Node::WaitValue(cell));
            }
            None => {
                let first = cell.address;
                watch.uploads.written(&(first..first.saturating_add(cell.bytes.into())));
                wrote_few(watch, stream);
                watch.feed.write_value(stream, id, cell, value);
                watch.graphs.add(&watch.feed, stream, Node::WriteValue(cell, value));
            }
        }
    }
}
