//! The pages that are protected, for which copies and flags: a table of fixed size, which the handler
//! of a fault reads without a lock.
//!
//! Hooks add and remove entries with the watch's lock held. The handler of a fault, and system
//! calls of the program, lift protection without a lock: they mark an entry as spent, and set
//! [`HOLES`], after which the next hook protects anew what is still to be protected. The order of steps is such
//! that a page that is protected always has an entry: an entry is there before its pages are
//! protected, and goes after these are lifted. So a thread that faults finds the entry, or can go
//! on.

use core::ffi::c_void;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

use crate::pinned::bytes;

pub(crate) const PAGE: usize = 4096;

/// How many copies and flags can be watched at a time.
pub(crate) const ENTRIES: usize = 256;
/// How often an entry with gaps may be accessed before it is spent: the bytes may all be in gaps.
const IN_GAPS: u32 = 32;

/// The entry is free.
const FREE: u8 = 0;
/// The host may read, as a copy reads.
const READABLE: u8 = 1;
/// The host may do nothing, as a copy writes.
const CLOSED: u8 = 2;
/// It was accessed too early, and is protected no longer. It stays until the host is ordered, so
/// that other threads that have faulted there go on.
const SPENT: u8 = 4;
/// The pages were unmapped.
const GONE: u8 = 8;
/// It has rows, with bytes between them that are not the copy's.
const ROWS: u8 = 16;
/// A flag was spent by an access that was too early for a copy.
const EARLY: u8 = 32;
/// The entry has what was there when a flag was spent.
const FOUND: u8 = 64;

/// An asynchronous copy that reads or writes pinned memory. Or a flag there, which is spent as soon as
/// its page is open to stores: its bytes end where they begin, less its size.
struct Entry {
    /// Odd while the other fields change.
    version: AtomicU32,
    state: AtomicU8,
    bytes: [AtomicUsize; 2],
    pages: [AtomicUsize; 2],
    /// The value that was there when a flag was spent.
    found: AtomicU64,
    /// How often it was accessed early and is protected again, as it has rows.
    accesses: AtomicU32,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        version: AtomicU32::new(0),
        state: AtomicU8::new(FREE),
        bytes: [const { AtomicUsize::new(0) }; 2],
        pages: [const { AtomicUsize::new(0) }; 2],
        found: AtomicU64::new(0),
        accesses: AtomicU32::new(0),
    }
}; ENTRIES];

/// No entry from here on was ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// How many entries there are.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// How many of them are of copies that write.
static WRITE: AtomicUsize = AtomicUsize::new(0);
/// Pages were lifted that an entry has protected.
static HOLES: AtomicBool = AtomicBool::new(false);
/// How many entries were removed.
static REMOVED: AtomicU64 = AtomicU64::new(0);
/// How often memory with gaps was accessed.
static IN_ROWS: AtomicU64 = AtomicU64::new(0);
/// How often `mprotect` was called.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// An entry, as it was at one moment.
#[derive(Clone, Copy)]
struct Seen {
    state: u8,
    bytes: [usize; 2],
    pages: [usize; 2],
}

impl Seen {
    fn has_page(&self, address: usize) -> bool {
        (self.pages[0]..self.pages[1]).contains(&address)
    }

    /// The part of some bytes that an access must not touch in this way.
    fn conflict(&self, [start, end]: [usize; 2], writes: bool) -> Option<[usize; 2]> {
        let both = [start.max(self.bytes[0]), end.min(self.bytes[1])];
        (both[0] < both[1] && (writes || self.state & CLOSED != 0)).then_some(both)
    }

    /// The address of a flag, and its size.
    fn flag(&self) -> Option<(usize, usize)> {
        let [end, first] = self.bytes;
        (first < end).then(|| (first, end - first))
    }

    /// What the pages must be: 0 for no protection.
    fn protection(&self) -> u8 {
        if self.state & (SPENT | GONE) == 0 { self.state & (READABLE | CLOSED) } else { 0 }
    }
}

impl Entry {
    /// `Err` while another thread changes it, and goes on doing so.
    fn read(&self) -> Result<Option<Seen>, ()> {
        let load = |pair: &[AtomicUsize; 2]| pair.each_ref().map(|one| one.load(Ordering::Relaxed));
        for _ in 0..1000 {
            let version = self.version.load(Ordering::Acquire);
            let state = self.state.load(Ordering::Relaxed);
            let seen = Seen { state, bytes: load(&self.bytes), pages: load(&self.pages) };
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && version == self.version.load(Ordering::Relaxed) {
                return Ok((state != FREE).then_some(seen));
            }
            core::hint::spin_loop();
        }
        Err(())
    }

    /// The caller has the watch's lock.
    fn write(&self, state: u8, bytes: [usize; 2], pages: [usize; 2]) {
        self.version.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.state.store(state, Ordering::Relaxed);
        self.accesses.store(0, Ordering::Relaxed);
        for (to, from) in self.bytes.iter().zip(bytes).chain(self.pages.iter().zip(pages)) {
            to.store(from, Ordering::Relaxed);
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Whether it was live. Only the state changes, of one entry: `seen` shows which.
    fn spend(&self, seen: &Seen, why: u8) -> bool {
        let spent = seen.state | SPENT | why;
        seen.state & SPENT == 0
            && self
                .state
                .compare_exchange(seen.state, spent, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

fn entries() -> impl Iterator<Item = (usize, &'static Entry)> {
    TABLE.iter().take(USED.load(Ordering::Acquire)).enumerate()
}

/// The entries as they are. One that changes is left out.
fn all() -> impl Iterator<Item = (&'static Entry, Seen)> {
    entries().filter_map(|(_, entry)| Some((entry, entry.read().ok()??)))
}

/// Whether anything is protected.
pub(crate) fn any() -> bool {
    LIVE.load(Ordering::Relaxed) > 0
}

/// Whether pages are to be protected anew.
pub(crate) fn has_holes() -> bool {
    HOLES.load(Ordering::Relaxed)
}

/// How many entries were removed so far.
pub(crate) fn removed() -> u64 {
    REMOVED.load(Ordering::Relaxed)
}

/// How often memory with gaps was accessed.
pub(crate) fn accesses_in_gaps() -> u64 {
    IN_ROWS.load(Ordering::Relaxed)
}

/// How often `mprotect` was called.
pub(crate) fn protections() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

fn set_protection([first, end]: [usize; 2], protection: u8) -> bool {
    let flags = match protection & (READABLE | CLOSED) {
        0 => libc::PROT_READ | libc::PROT_WRITE,
        READABLE => libc::PROT_READ,
        _ => libc::PROT_NONE,
    };
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: pages of pinned memory that the program has not given back. What it reads or writes
    // there meanwhile faults, and goes on once the handler has lifted the protection.
    let code = unsafe {
        libc::mprotect(core::ptr::with_exposed_provenance_mut::<c_void>(first), end - first, flags)
    };
    code == 0
}

/// Gives pages the protection that the entries want, except for one of them. The caller has the
/// watch's lock.
fn apply([first, end]: [usize; 2], without: Option<usize>) -> bool {
    let mut good = true;
    let mut open: Option<([usize; 2], u8)> = None;
    let mut at = first;
    while at < end {
        let (mut next, mut protection) = (end, 0);
        for (index, entry) in entries() {
            let Ok(Some(seen)) = entry.read() else { continue };
            if without == Some(index) || seen.protection() == 0 {
                continue;
            }
            if seen.has_page(at) {
                protection = protection.max(seen.protection());
                next = next.min(seen.pages[1]);
            } else if seen.pages[0] > at {
                next = next.min(seen.pages[0]);
            }
        }
        open = match open {
            Some(([from, _], same)) if same == protection => Some(([from, next], same)),
            last => {
                good &= last.is_none_or(|(pages, protection)| set_protection(pages, protection));
                Some(([at, next], protection))
            }
        };
        at = next;
    }
    good & open.is_none_or(|(pages, protection)| set_protection(pages, protection))
}

/// The use that a copy or a kernel makes of memory of the host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Use {
    /// From the first byte to the last one.
    pub(crate) bytes: [usize; 2],
    pub(crate) writes: bool,
    /// Whether there are bytes in between that it does not touch, or may be.
    pub(crate) rows: bool,
}

impl Use {
    fn state(self) -> u8 {
        (if self.writes { CLOSED } else { READABLE }) | if self.rows { ROWS } else { 0 }
    }
}

/// A copy is submitted, with pages that can be protected. Returns the entry's number;
/// `None` if there is no place for it, or the pages cannot be protected. The caller has the watch's
/// lock.
pub(crate) fn add(used: Use, pages: [usize; 2]) -> Option<usize> {
    let index = TABLE.iter().position(|entry| entry.state.load(Ordering::Relaxed) == FREE)?;
    let entry = TABLE.get(index)?;
    entry.write(used.state(), used.bytes, pages);
    USED.fetch_max(index + 1, Ordering::Release);
    LIVE.fetch_add(1, Ordering::SeqCst);
    WRITE.fetch_add(usize::from(used.writes), Ordering::SeqCst);
    if !apply(pages, None) {
        remove(index);
        return None;
    }
    Some(index)
}

/// The host is ordered after the copy, or the memory ends. The caller has the watch's lock.
pub(crate) fn remove(index: usize) {
    let Some(entry) = TABLE.get(index) else { return };
    let Ok(Some(seen)) = entry.read() else { return };
    if seen.state & GONE == 0 {
        apply(seen.pages, Some(index));
    }
    entry.write(FREE, [0; 2], [0; 2]);
    LIVE.fetch_sub(1, Ordering::SeqCst);
    WRITE.fetch_sub(usize::from(seen.state & CLOSED != 0), Ordering::SeqCst);
    REMOVED.fetch_add(1, Ordering::SeqCst);
}

/// Protects anew what was lifted, and is to be protected. `allowed` has the number of an entry, and
/// how many pages it has; an entry that it refuses is spent. The caller has the watch's lock.
pub(crate) fn close_holes(mut allowed: impl FnMut([usize; 2]) -> bool) {
    if !HOLES.swap(false, Ordering::SeqCst) {
        return;
    }
    for (entry, seen) in all().filter(|(_, seen)| seen.protection() != 0) {
        if allowed(seen.pages) {
            apply(seen.pages, None);
        } else {
            entry.spend(&seen, 0);
        }
    }
}

fn page_of(address: usize) -> usize {
    address - address % PAGE
}

/// Whether a page has no protection that a read of the host would meet.
pub(crate) fn readable(address: usize) -> bool {
    WRITE.load(Ordering::Relaxed) == 0
        || !all().any(|(_, seen)| seen.has_page(address) && seen.protection() == CLOSED)
}

/// The cause of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// No page that this library protects.
    Other,
    /// Bytes on the page of a copy that the host may access.
    Beside,
    /// Bytes of a copy that the host must not access in this way before it is ordered.
    Early,
}

/// Whose code accesses protected pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Program,
    /// The driver within a call, or this library. Such an access is never too early.
    Library,
}

/// What a system call was given and has not touched is watched again, from the next hook on.
pub(crate) fn rearm(range: [usize; 2], writes: bool) {
    for (entry, seen) in all() {
        let spent = seen.state & (SPENT | GONE) == SPENT;
        let again = seen.state & !SPENT;
        if spent
            && seen.conflict(range, writes).is_some()
            && entry
                .state
                .compare_exchange(seen.state, again, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            HOLES.store(true, Ordering::SeqCst);
        }
    }
}

/// Lifts the protection of pages of entries that some bytes are on, without a lock. What the
/// program must not touch in this way is spent; of other entries, and of rows, only the touched
/// pages are lifted.
pub(crate) fn lift(range: [usize; 2], writes: bool, by: By) -> Fault {
    let mut found = Fault::Other;
    for (_, entry) in entries() {
        let seen = match entry.read() {
            Ok(Some(seen)) => seen,
            Ok(None) => continue,
            Err(()) => {
                // It may be this entry's: the next fault will show.
                found = if found == Fault::Other { Fault::Beside } else { found };
                continue;
            }
        };
        let touched = [page_of(range[0]).max(seen.pages[0]), range[1].min(seen.pages[1])];
        if touched[0] >= touched[1] || seen.state & GONE != 0 {
            continue;
        }
        let early = by == By::Program && seen.conflict(range, writes).is_some();
        let rows = seen.state & ROWS != 0
            && entry.accesses.fetch_add(u32::from(early), Ordering::Relaxed) < IN_GAPS;
        let pages = match early && !rows {
            true => seen.pages,
            false => [touched[0], touched[1].next_multiple_of(PAGE)],
        };
        // Of the threads that touch a copy's bytes at a time, one is enough.
        IN_ROWS.fetch_add(u64::from(early && rows), Ordering::Relaxed);
        if early && (rows || entry.spend(&seen, 0)) {
            found = Fault::Early;
        } else if found == Fault::Other {
            found = Fault::Beside;
        }
        open(pages, if early { EARLY } else { 0 });
    }
    found
}

/// Lifts all protection of pages until the next hook, without a lock.
fn open(pages: [usize; 2], why: u8) {
    let on_them = |seen: &Seen| seen.pages[0] < pages[1] && pages[0] < seen.pages[1];
    let spend = |opened: bool| {
        for (entry, seen) in all().filter(|(_, seen)| on_them(seen) && seen.protection() != 0) {
            let Some((first, size)) = seen.flag() else { continue };
            match bytes::read(first, size) {
                Some(value) => {
                    entry.found.store(value, Ordering::Relaxed);
                    entry.spend(&seen, why | FOUND);
                }
                None if opened => _ = entry.spend(&seen, why),
                None => {}
            }
        }
    };
    // Before the host can store there, if the page can be read. Others may add an entry meanwhile.
    spend(false);
    set_protection(pages, 0);
    HOLES.store(true, Ordering::SeqCst);
    spend(true);
}

/// How a flag was spent.
pub(crate) struct Spent {
    /// What was there then, if it could be read.
    pub(crate) found: Option<u64>,
    /// Whether it was by an access that was too early for a copy.
    pub(crate) early: bool,
}

/// Whether the page of a flag was open to stores.
pub(crate) fn spent(index: usize) -> Option<Spent> {
    let entry = TABLE.get(index)?;
    match entry.read() {
        Ok(Some(seen)) if seen.state & SPENT != 0 => Some(Spent {
            found: (seen.state & FOUND != 0).then(|| entry.found.load(Ordering::Relaxed)),
            early: seen.state & EARLY != 0,
        }),
        Ok(Some(seen)) if seen.state & GONE == 0 => None,
        Err(()) => None,
        Ok(_) => Some(Spent { found: None, early: false }),
    }
}

/// Lifts all protection, without a lock, until the next hook.
pub(crate) fn lift_all() {
    for (_, seen) in all().filter(|(_, seen)| seen.protection() != 0) {
        open(seen.pages, 0);
    }
}

/// Lifts all protection, without a lock. Nothing is added from now on.
pub(crate) fn forget_all() {
    for (_, entry) in entries() {
        if let Ok(Some(seen)) = entry.read()
            && seen.state & GONE == 0
        {
            set_protection(seen.pages, 0);
        }
        entry.state.store(FREE, Ordering::Relaxed);
    }
    LIVE.store(0, Ordering::Relaxed);
    WRITE.store(0, Ordering::Relaxed);
}

/// The program unmaps memory: its protection is gone.
pub(crate) fn unmapped([start, end]: [usize; 2]) {
    for (entry, seen) in all() {
        if seen.pages[0] < end && start < seen.pages[1] {
            set_protection(seen.pages, 0);
            entry.state.fetch_or(GONE, Ordering::Relaxed);
        }
    }
}

/// The part of some bytes that an access must not touch in this way, if there is any.
pub(crate) fn conflict(range: [usize; 2], writes: bool) -> Option<[usize; 2]> {
    all().find_map(|(_, seen)| seen.conflict(range, writes))
}

/// Whether an entry's bytes are in a range.
pub(crate) fn is_in(index: usize, [start, end]: [usize; 2]) -> bool {
    let seen = TABLE.get(index).and_then(|entry| entry.read().ok()?);
    seen.is_some_and(|seen| start <= seen.bytes[0] && seen.bytes[1] <= end)
}

/// Whether the copy of an entry has some of the bytes that an access must not touch in this way.
pub(crate) fn touches(index: usize, range: [usize; 2], writes: bool) -> bool {
    let seen = TABLE.get(index).and_then(|entry| entry.read().ok()?);
    seen.is_some_and(|seen| seen.conflict(range, writes).is_some())
}

/// Whether an entry protects the same for another copy.
pub(crate) fn is_same(index: usize, used: Use) -> bool {
    let seen = TABLE.get(index).and_then(|entry| entry.read().ok()?);
    seen.is_some_and(|seen| seen.bytes == used.bytes && seen.state == used.state())
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use super::{
        By, CALLS, Fault, HOLES, PAGE, Use, add, any, close_holes, is_in, is_same, lift, readable,
        rearm, remove, spent, unmapped,
    };

    /// The protection of eight pages, as the system has it.
    fn protections(memory: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        let number = |text: &str| usize::from_str_radix(text, 16).expect("an address");
        let letter = |page: usize| {
            let has = |line: &&str| {
                let (range, _) = line.split_once(' ').expect("a range first");
                let (start, end) = range.split_once('-').expect("two addresses");
                (number(start)..number(end)).contains(&page)
            };
            let line = maps.lines().find(has).expect("it is mapped");
            match line.split(' ').nth(1).expect("flags").get(..2) {
                Some("rw") => '.',
                Some("r-") => 'r',
                _ => '-',
            }
        };
        (0..8).map(|page| letter(memory + page * PAGE)).collect()
    }

    /// One test, as there is one table.
    #[test]
    fn each_page_has_the_strongest_protection_of_its_copies() {
        let _turn = crate::lock::TURN.lock();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new pages.
        let memory = unsafe { libc::mmap(core::ptr::null_mut(), 8 * PAGE, access, flags, -1, 0) };
        let memory = memory.expose_provenance();
        let pages = |range: [usize; 2]| range.map(|page| memory + page * PAGE);
        let copy = |range: [usize; 2], closed| {
            let [start, end] = pages(range);
            let bytes = [start + 10, end - 10];
            add(Use { bytes, writes: closed, rows: false }, [start, end]).expect("there is place")
        };
        let calls = CALLS.load(Ordering::Relaxed);
        let read = copy([2, 7], false);
        assert_eq!(protections(memory), "..rrrrr.");
        let written = copy([3, 4], true);
        assert_eq!(protections(memory), "..r-rrr.");
        let around = copy([1, 8], false);
        assert_eq!(protections(memory), ".rr-rrrr");
        assert_eq!(CALLS.load(Ordering::Relaxed) - calls, 5, "one for pages that are alike");
        remove(read);
        assert_eq!(protections(memory), ".rr-rrrr");
        // A load beside the bytes of all copies, and then one of bytes that a copy writes.
        let byte = |page: usize, at: usize| {
            let at = memory + page * PAGE + at;
            [at, at + 1]
        };
        assert_eq!(lift(byte(3, 9), false, By::Program), Fault::Beside);
        assert_eq!(protections(memory), ".rr.rrrr");
        close_holes(|_| true);
        assert_eq!(protections(memory), ".rr-rrrr");
        assert_eq!(lift(byte(3, 10), false, By::Library), Fault::Beside);
        close_holes(|_| true);
        assert_eq!(lift(byte(3, 10), false, By::Program), Fault::Early);
        assert_eq!(lift(byte(3, 10), false, By::Program), Fault::Beside, "another thread's");
        close_holes(|_| true);
        assert_eq!(protections(memory), ".rrrrrrr");
        assert_eq!(lift(byte(0, 0), true, By::Program), Fault::Other);
        remove(written);
        // What reads does not disturb a read of the host. One that is not protected anew is spent.
        assert!(readable(memory + PAGE));
        assert_eq!(lift(byte(2, 0), false, By::Program), Fault::Beside);
        close_holes(|_| false);
        assert_eq!(lift(byte(3, 0), true, By::Library), Fault::Beside);
        close_holes(|_| true);
        assert_eq!(protections(memory), ".r..rrrr", "a touch lifts, and no hook protects");
        remove(around);
        assert_eq!(protections(memory), "........");
        // A store to what a copy reads is too early. Another use of the bytes is not the same one.
        let read = copy([1, 3], false);
        let bytes = [memory + PAGE + 10, memory + 3 * PAGE - 10];
        let same = |writes| is_same(read, Use { bytes, writes, rows: false });
        assert_eq!([same(false), same(true)], [true, false]);
        assert!(is_in(read, bytes) && !is_in(read, [bytes[0], bytes[1] - 1]));
        unmapped(pages([3, 4]));
        assert_eq!(protections(memory), ".rr.....", "the pages behind it");
        assert_eq!(lift(byte(2, 0), true, By::Program), Fault::Early);
        assert_eq!(protections(memory), "........");
        remove(read);
        let written = copy([1, 3], true);
        assert!(!readable(memory + PAGE) && readable(memory + 3 * PAGE));
        unmapped(pages([2, 3]));
        assert_eq!(lift(byte(2, 0), true, By::Program), Fault::Other);
        remove(written);
        // A system call was given bytes, and has not touched them.
        let written = copy([1, 3], true);
        for (again, expected) in [(byte(4, 0), "........"), (byte(2, 0), ".--.....")] {
            assert_ne!(lift(byte(2, 0), true, By::Program), Fault::Other);
            close_holes(|_| true);
            rearm(again, true);
            assert_eq!(HOLES.load(Ordering::SeqCst), expected.contains('-'));
            close_holes(|_| true);
            assert_eq!(protections(memory), expected);
        }
        remove(written);
        // Of rows only the touched pages are lifted, as the byte may be between two of them.
        let bytes = [memory + 10, memory + 3 * PAGE];
        let rows = add(Use { bytes, writes: true, rows: true }, pages([0, 3]));
        assert_eq!(lift(byte(1, 5), true, By::Program), Fault::Early);
        assert_eq!(protections(memory), "-.-.....");
        close_holes(|_| true);
        assert_eq!(protections(memory), "---.....");
        remove(rows.expect("there is place"));
        assert_eq!(protections(memory), "........");
        assert!(!any());
        // A flag is spent by a store beside it, or with a copy on its page, with what was there.
        let word = memory + 5 * PAGE + 16;
        let number: *mut u64 = core::ptr::with_exposed_provenance_mut(word);
        // SAFETY: mapped above.
        unsafe { number.write(7) };
        let flag = || {
            let flag = Use { bytes: [word + 8, word], writes: false, rows: false };
            add(flag, pages([5, 6])).expect("there is place")
        };
        let state = |index| spent(index).map(|spent| (spent.found, spent.early));
        let index = flag();
        assert_eq!(protections(memory), ".....r..");
        assert_eq!((state(index), readable(word)), (None, true));
        assert_eq!(lift([word, word + 1], false, By::Library), Fault::Beside, "by the library");
        assert_eq!(state(index), Some((Some(7), false)));
        close_holes(|_| true);
        assert_eq!(protections(memory), "........");
        remove(index);
        let written = copy([5, 6], true);
        let index = flag();
        assert!(!readable(word));
        assert_eq!(lift(byte(5, 40), false, By::Program), Fault::Early);
        assert_eq!(state(index), Some((Some(7), true)));
        let other = flag();
        unmapped(pages([5, 6]));
        assert_eq!(state(other), Some((None, false)));
        [written, index, other].into_iter().for_each(remove);
        assert!(!any() && readable(word));
        // What cannot be protected takes no place.
        let used = Use { bytes: [word, word + 8], writes: false, rows: false };
        assert_eq!((add(used, [word, word + PAGE]), any()), (None, false));
        // SAFETY: mapped above.
        unsafe { libc::munmap(core::ptr::with_exposed_provenance_mut(memory), 8 * PAGE) };
    }
}
