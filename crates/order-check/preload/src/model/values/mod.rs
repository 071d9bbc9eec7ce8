//! Words in memory that streams write where the host may see them: each is looked at until it changes.

pub(crate) mod state;

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Cell, StreamId};

use crate::call::Address;
use crate::model::values::state::{Flag, PENDING, Pending, load};
use crate::pinned::table::{self, readable};
use crate::watch::Watch;

impl Watch {
    /// Memory may end: what is pending there counts as seen.
    pub(crate) fn stop_looking(&mut self) {
        std::mem::take(&mut self.values.pending).into_iter().for_each(|of| self.has_seen(of));
    }

    /// The host may have seen the value, and nothing more is to be seen there.
    pub(crate) fn has_seen(&mut self, of: Pending) {
        self.ends_looking(of, true);
    }

    pub(crate) fn ends_looking(&mut self, Pending { place, page, .. }: Pending, seen: bool) {
        page.into_iter().for_each(table::remove);
        self.begins_with(place);
        self.feed.written(place, seen);
    }

    /// Values that streams have written meanwhile: the host may have seen them.
    pub(crate) fn look(&mut self) {
        self.look_at_values(false);
    }

    /// The same, before accesses of the host are judged: a store that came before the stream's own
    /// shows nothing of it.
    pub(crate) fn look_before_accesses(&mut self) {
        self.look_at_values(true);
    }

    fn look_at_values(&mut self, accesses_are_next: bool) {
        self.accept_seen();
        let pending = std::mem::take(&mut self.values.pending);
        // The words that only one stream writes.
        let words: Vec<_> = pending.iter().map(|of| (of.cell.address, of.new)).collect();
        let is_alone = |word: u64, stream: StreamId| {
            let mut others = words.iter().filter(|(address, _)| *address == word);
            others.all(|(_, new)| new.is_some_and(|(of, _)| of == stream))
        };
        let mut there = Vec::new();
        for mut of in pending {
            let Pending { cell, old, new, page, .. } = of;
            let spent = page.and_then(table::spent);
            let early = spent.as_ref().is_some_and(|of| of.early && accesses_are_next);
            let now = match spent.as_ref().and_then(|of| of.found) {
                // What comes after the access does not matter.
                Some(found) if found != old || early => found,
                // The host has not read what it must not read.
                _ if readable(cell.address as usize) => load(cell),
                _ => old,
            };
            // If the page was open, the host may have set the flag back.
            if now == old && (spent.is_none() || early) {
                self.values.pending.push(of);
                continue;
            }
            // It is the value before this one that the stream has written.
            if let Some((stream, value)) = new
                && page.is_some()
                && spent.is_none()
            {
                if value != now && there.contains(&(cell.address, stream, now)) {
                    of.old = now;
                    self.values.pending.push(of);
                    continue;
                }
                if value == now && is_alone(cell.address, stream) {
                    there.push((cell.address, stream, now));
                }
            }
            self.has_seen(of);
            if now != old
                && cell.address.is_multiple_of(u64::from(cell.bytes))
                && matches!(cell.bytes, 4 | 8)
            {
                self.feed.word_written(cell, now);
            }
        }
    }

    /// A word will be written, where the host may have stored a value.
    pub(crate) fn find_stored(&mut self, address: Address, bytes: u64) {
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

    /// The place of a write that is looked for. Others have none: if anybody can see them, they may
    /// have been seen at any time.
    pub(crate) fn place_of(
        &mut self,
        stream: StreamId,
        before: Option<(Cell, u64)>,
    ) -> Option<u64> {
        let (cell, old) = before.filter(|_| self.feed.capture_of(stream).is_none())?;
        let place = self.values.new_place();
        self.look_for(Pending { place, cell, old, new: None, page: None, work: None });
        Some(place)
    }

    pub(crate) fn look_for(&mut self, of: Pending) {
        if self.values.pending.len() >= PENDING {
            let oldest = self.values.pending.remove(0);
            self.seen.crowded += 1;
            self.has_seen(oldest);
        }
        self.values.pending.push(of);
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
        let same = |of: &mut Pending| {
            of.page.is_some() && of.cell.address == cell.address && of.old == value
        };
        for of in self.values.pending.extract_if(.., same).collect::<Vec<_>>() {
            self.has_seen(of);
        }
        let page = self.pinned.guard(cell)?;
        // Not before the page is protected. But a look at a page that is closed would open it.
        let old = if readable(cell.address as usize) { load(cell) } else { before };
        Some(Flag { cell, old, new: Some((stream, value)), page })
    }

    /// The place of a write of a value.
    pub(crate) fn place_of_value(&mut self, flag: Option<Flag>) -> Option<u64> {
        let Flag { cell, old, new, page } = flag?;
        let place = self.values.new_place();
        self.look_for(Pending { place, cell, old, new, page, work: None });
        Some(place)
    }
}

impl Watch {
    /// A call was not seen, or nothing is known of what it does.
    pub(crate) fn order_everything(&mut self) {
        self.feed.barrier();
        self.stop_looking();
    }
}
