//! The regions of pinned and managed memory, and the copies and kernels that protect pages of them.

use core::ffi::c_void;
use core::ops::Range;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use cuda_order_check_engine::feed::Awaited;
use cuda_order_check_engine::files::written_text;
use cuda_order_check_engine::findings::counted;
use cuda_order_check_engine::trace::{file_of, look_for_python};
use cuda_order_check_engine::{Access, AccessKind, Cell, StreamId};

use crate::code::signals;
use crate::pinned::budget::{Budget, GAPS, PAGES, TIMES};
use crate::pinned::protection::{self, PAGE, Use};
use crate::pinned::{self, accesses, faults};

/// Asks the software driver to use a mapping of its own for pinned memory, as a device does: it
/// returns 0 if that is not possible.
pub(crate) type Alias = unsafe extern "C" fn(*const c_void) -> i32;

/// Pinned or managed memory.
pub(crate) struct Region {
    pub(crate) bytes: u64,
    /// It is the program's, with other things of the program beside it on the first and the last
    /// page.
    pub(crate) registered: bool,
    /// A load may move it, and it may be closed to the host at any time.
    pub(crate) managed: bool,
    /// Whether others may have its pages, too. It is looked up once somebody asks.
    pub(crate) shared: OnceCell<bool>,
}

/// A copy or a kernel whose pages are protected.
pub(crate) struct Watched {
    pub(crate) index: usize,
    pub(crate) work: Awaited,
}

/// Of so many streams the lists of copies are kept when they are empty.
pub(crate) const STREAMS: usize = 64;

/// Whether the class is on.
pub(crate) enum State {
    /// Nobody has asked for it.
    Unused,
    On,
    /// It is off, for this reason.
    Off(&'static str),
}

pub(crate) struct Pinned {
    pub(crate) state: State,
    pub(crate) alias: Option<Alias>,
    /// An address in the real library.
    pub(crate) driver: usize,
    pub(crate) regions: BTreeMap<u64, Region>,
    /// What was submitted by the call under way: what is accessed, and the work up to its end.
    pub(crate) submitted: Vec<(StreamId, Access, Awaited)>,
    /// In the order of their submission.
    pub(crate) watched: BTreeMap<u64, VecDeque<Watched>>,
    pub(crate) begin: Instant,
    pub(crate) budget: Budget,
    /// How many copies and kernels were watched.
    pub(crate) works: u64,
    /// How many were not, as there was no place, or as their pages have other things too.
    pub(crate) left_out: [u64; 2],
}

impl Pinned {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Unused,
            alias: None,
            driver: 0,
            regions: BTreeMap::new(),
            submitted: Vec::new(),
            watched: BTreeMap::new(),
            begin: Instant::now(),
            budget: Budget::default(),
            works: 0,
            left_out: [0; 2],
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        matches!(self.state, State::On) && pinned::is_on()
    }

    /// The region that some bytes are in, and its first address.
    pub(crate) fn region(&self, address: u64) -> Option<(u64, &Region)> {
        let (base, region) = self.regions.range(..=address).next_back()?;
        (address - base < region.bytes).then_some((*base, region))
    }

    /// The memory around an address that a kernel has, if the host's accesses to it are watched.
    pub(crate) fn of_host(&self, address: u64) -> Option<Range<u64>> {
        let (base, region) = self.region(address).filter(|_| self.is_on())?;
        Some(base..base + region.bytes)
    }

    /// Whether one of these words may be an address of such memory: whether it lies between the first
    /// and the last byte of all of it. A launch may have hundreds of words, and mostly has none there.
    pub(crate) fn may_be_of_host(&self, words: &[u64]) -> bool {
        let ends = self.regions.first_key_value().zip(self.regions.last_key_value());
        let Some(((first, _), (last, region))) = ends.filter(|_| self.is_on()) else {
            return false;
        };
        let bytes = last.saturating_add(region.bytes) - first;
        // Without a way out in the midst, so that it costs the fewest instructions.
        words.iter().fold(false, |found, word| found | (word.wrapping_sub(*first) < bytes))
    }

    /// Whether a load there does nothing: a register of a device, say, may be registered, too.
    pub(crate) fn may_be_read(&self, address: u64) -> bool {
        self.region(address).is_some_and(|(_, region)| !region.managed)
    }

    /// Whether others may store there without a fault here: other processes, or other mappings, have
    /// these bytes, or they are no plain memory.
    pub(crate) fn is_shared(&self, address: u64) -> bool {
        let Some((base, region)) = self.region(address) else { return true };
        if !region.registered {
            return false;
        }
        *region.shared.get_or_init(|| {
            let maps = std::fs::read("/proc/self/maps");
            maps.map_or(true, |maps| !are_private(&maps, [base, base + region.bytes]))
        })
    }

    /// The pages of some bytes that can be protected.
    pub(crate) fn pages(&self, bytes: [usize; 2]) -> Option<[usize; 2]> {
        let (base, region) = self.region(bytes[0] as u64)?;
        let down = |address: usize| address - address % PAGE;
        let around = [down(bytes[0]), bytes[1].checked_next_multiple_of(PAGE)?];
        let [first, end] = if region.registered {
            let (start, end) = (base as usize, (base + region.bytes) as usize);
            [around[0].max(start.checked_next_multiple_of(PAGE)?), around[1].min(down(end))]
        } else {
            around
        };
        (first < end).then_some([first, end])
    }

    /// Protects the page of a word that a stream will write from stores of the host. `None` if that
    /// is not possible; no entry if nobody has asked for the class.
    pub(crate) fn guard(&mut self, cell: Cell) -> Option<Option<usize>> {
        if matches!(self.state, State::Unused) {
            return Some(None);
        }
        let first = cell.address as usize;
        let end = first + usize::from(cell.bytes);
        let is_pinned = self.may_be_read(cell.address);
        let pages = self.pages([first, end]).filter(|_| self.is_on() && is_pinned)?;
        if !self.is_ready() || !self.allows(pages) {
            return None;
        }
        // A store there is not too early.
        protection::add(Use { bytes: [end, first], writes: false, rows: false }, pages).map(Some)
    }

    /// Whether faults come to this library. The class is off if they do not.
    pub(crate) fn is_ready(&mut self) -> bool {
        let ready = faults::install();
        if ready {
            look_for_python();
        } else {
            self.turn_off("the program has a handler of SIGSEGV that cannot be kept");
        }
        ready
    }

    pub(crate) fn allows(&mut self, [first, end]: [usize; 2]) -> bool {
        let now = self.begin.elapsed().as_secs();
        self.budget.allows(now, first, (end - first) / PAGE)
    }

    pub(crate) fn turn_off(&mut self, reason: &'static str) {
        for Watched { index, .. } in std::mem::take(&mut self.watched).into_values().flatten() {
            protection::remove(index);
        }
        protection::forget_all();
        pinned::stop();
        self.state = State::Off(reason);
    }

    /// The lines of the summary about the class.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.works > 0 {
            let (works, calls) = (self.works, protection::protections());
            lines.push(format!(
                "host: {works} copies and kernels with memory of the host were watched, with \
                 {calls} calls of mprotect"
            ));
        }
        if let State::Off(reason) = self.state
            && !self.regions.is_empty()
        {
            lines.push(format!("host: accesses of the host are not checked: {reason}"));
        }
        let ([times, pages, gaps], [full, beside]) = (self.budget.refused, self.left_out);
        let all = [
            (times, format!("a page was protected {TIMES} times within a second")),
            (pages, format!("{} MiB were protected within a second", (PAGES * PAGE) >> 20)),
            (gaps, format!("memory of kernels was accessed {GAPS} times within a second")),
            (full, format!("{} were watched, or mprotect has failed", protection::ENTRIES)),
            (beside, "the pages of registered memory have other things as well".to_owned()),
        ];
        for (count, reason) in all.into_iter().filter(|(count, _)| *count > 0) {
            let count = counted(count, "times");
            lines.push(format!("host: {count} a copy or kernel was not watched: {reason}"));
        }
        if accesses::lost() > 0 {
            lines.push(format!("host: {} accesses were not looked at", accesses::lost()));
        }
        lines
    }
}

impl Pinned {
    pub(crate) fn unwatch(&mut self, which: impl Fn(usize) -> bool) {
        for all in self.watched.values_mut() {
            all.retain(|Watched { index, .. }| {
                let gone = which(*index);
                if gone {
                    protection::remove(*index);
                }
                !gone
            });
        }
    }

    /// Protects the pages of a copy or a kernel.
    pub(crate) fn watch(&mut self, stream: StreamId, access: &Access, work: Awaited) {
        if !self.protects(stream, access, work) && access.launch().is_some() {
            signals::unwatched();
        }
    }

    /// The same. Says whether they are protected.
    fn protects(&mut self, stream: StreamId, access: &Access, work: Awaited) -> bool {
        if !self.is_on() {
            return false;
        }
        let bytes = [access.range.start as usize, access.range.end as usize];
        let Some(pages) = self.pages(bytes) else {
            self.left_out[1] += 1;
            return false;
        };
        if !self.is_ready() {
            return false;
        }
        // Which of the bytes a kernel accesses is asked once the host has.
        let rows = access.stride().is_some() || access.launch().is_some();
        let used = Use { bytes, writes: access.kind != AccessKind::Read, rows };
        let now = self.begin.elapsed().as_secs();
        if access.launch().is_some()
            && !self.budget.allows_gaps(now, protection::accesses_in_gaps())
        {
            return false;
        }
        let all = self.watched.entry(stream.0).or_default();
        // The same again, as in a loop: it is over later.
        let last = all.iter().position(|watched| protection::is_same(watched.index, used));
        let same = last.and_then(|at| all.remove(at)).map(|watched| watched.index);
        if same.is_none() && !self.allows(pages) {
            return false;
        }
        let Some(index) = same.or_else(|| protection::add(used, pages)) else {
            self.left_out[0] += 1;
            return false;
        };
        self.watched.entry(stream.0).or_default().push_back(Watched { index, work });
        self.works += 1;
        true
    }
}

/// Whether the system's list of mappings says of all these bytes that they are private.
pub(crate) fn are_private(maps: &[u8], [first, end]: [u64; 2]) -> bool {
    let private = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16));
        let bytes = to.ok()?.min(end).saturating_sub(from.ok()?.max(first));
        (rest.get(3..4)? == "p").then_some(bytes)
    };
    // The names of files may be any bytes.
    let maps = String::from_utf8_lossy(maps);
    maps.lines().filter_map(private).sum::<u64>() == end - first
}

/// Whether an access is the driver's own: these are its frames, and an address of the driver.
pub(crate) fn is_of(driver: usize, frames: &[usize]) -> bool {
    let (driver, own) = (file_of(driver), file_of(file_of as *const () as usize));
    if driver.is_none() || driver == own {
        return false;
    }
    let mut files = frames.iter().map(|at| file_of(*at));
    // A function of the program that the driver calls is called by this library.
    files.find(|file| *file == driver || *file == own) == Some(driver)
}

/// The text that Python has printed to the file, which is closed.
pub(crate) fn text_of(file: core::ffi::c_int) -> Option<String> {
    use std::os::fd::FromRawFd as _;
    if file < 0 {
        return None;
    }
    // SAFETY: the handler has created it for this.
    written_text(unsafe { std::fs::File::from_raw_fd(file) })
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;

    use super::{Pinned, Region, State, are_private, counted, text_of};
    use crate::pinned::protection::PAGE;

    #[test]
    fn bytes_are_private_if_the_system_says_so_of_all() {
        let maps = b"00001000-00003000 r--p 00000000 00:00 0\n\
            00003000-00005000 rw-p 00000000 00:00 0    [heap]\n\
            00005000-00006000 rw-s 00000000 00:01 7    /memfd:\xff (deleted)\n\
            a line of another kind\n\
            00006000-00007000 rw-p 00000000 00:00 0\n";
        for (bytes, private) in [
            ([0x1000, 0x5000], true),
            ([0x2ff0, 0x3010], true),
            ([0x6010, 0x7000], true),
            ([0x4ff0, 0x5001], false),
            ([0x5000, 0x5010], false),
            ([0x5ff0, 0x6010], false),
            ([0x6ff0, 0x7010], false),
        ] {
            assert_eq!(are_private(maps, bytes), private, "{bytes:x?}");
        }
        assert!(!are_private(b"", [0x1000, 0x2000]));
        let own = std::fs::read("/proc/self/maps").expect("Linux has it");
        let here = (&raw const own) as u64;
        assert!(are_private(&own, [here, here + 8]), "a stack");
    }

    /// The summary has what there was, and nothing else.
    #[test]
    fn a_summary_names_what_was_left_out() {
        let _turn = crate::lock::TURN.lock();
        let mut pinned = Pinned::new();
        assert_eq!(pinned.lines(), [""; 0]);
        (pinned.budget.refused, pinned.left_out) = ([1, 2, 3], [4, 5]);
        let lines = pinned.lines();
        let begins =
            |at| format!("host: {} a copy or kernel was not watched: ", counted(at, "times"));
        assert_eq!(lines.len(), 5);
        assert!((1..).zip(&lines).all(|(at, line)| line.starts_with(&begins(at))), "{lines:?}");
        // That the class is off matters to who has such memory.
        let mut pinned = Pinned::new();
        pinned.state = State::Off("a reason");
        assert_eq!(pinned.lines(), [""; 0]);
        insert(&mut pinned, 0x1000, 8);
        assert_eq!(pinned.lines(), ["host: accesses of the host are not checked: a reason"]);
    }

    fn insert(pinned: &mut Pinned, address: u64, bytes: u64) {
        let shared = OnceCell::new();
        pinned.regions.insert(address, Region { bytes, registered: false, managed: false, shared });
    }

    /// The byte behind it is no memory of the driver: a load there may have any effect.
    #[test]
    fn memory_has_its_bytes_alone() {
        let mut pinned = Pinned::new();
        insert(&mut pinned, 0x1000, 0x100);
        insert(&mut pinned, 0x1200, 1);
        for (at, begin) in [
            (0xfff, None),
            (0x1000, Some(0x1000)),
            (0x10ff, Some(0x1000)),
            (0x1100, None),
            (0x1200, Some(0x1200)),
            (0x1201, None),
        ] {
            assert_eq!(pinned.region(at).map(|(begin, _)| begin), begin, "{at:#x}");
            assert_eq!(pinned.may_be_read(at), begin.is_some(), "{at:#x}");
        }
    }

    /// As the handler of a fault leaves it.
    #[test]
    fn what_python_has_printed_is_read_from_its_begin() {
        let text = "a stack";
        // SAFETY: a name, flags of the call, and a text with its length.
        let file = unsafe {
            let file = libc::memfd_create(c"stack".as_ptr(), libc::MFD_CLOEXEC);
            assert_eq!(libc::write(file, text.as_ptr().cast(), text.len()), text.len() as isize);
            file
        };
        assert_eq!((text_of(file).as_deref(), text_of(-1)), (Some(text), None));
    }

    /// Pages with other things of the program are never protected.
    #[test]
    fn registered_memory_has_whole_pages_only() {
        const BASE: usize = 16 * PAGE;
        let pages = |registered: bool, memory: [usize; 2], bytes: [usize; 2]| {
            let mut pinned = Pinned::new();
            let bytes_of_region = (memory[1] - memory[0]) as u64;
            let region = Region {
                bytes: bytes_of_region,
                registered,
                managed: false,
                shared: OnceCell::new(),
            };
            pinned.regions.insert((BASE + memory[0]) as u64, region);
            let found = pinned.pages(bytes.map(|at| BASE + at));
            found.map(|all| all.map(|at| (at - BASE) / PAGE))
        };
        // Memory that begins and ends within pages: those two have other things as well.
        let within = [PAGE - 16, 3 * PAGE + 16];
        assert_eq!(pages(true, within, within), Some([1, 3]));
        assert_eq!(pages(true, within, [PAGE - 16, PAGE]), None);
        assert_eq!(pages(true, within, [PAGE - 16, PAGE + 1]), Some([1, 2]));
        assert_eq!(pages(true, within, [3 * PAGE, 3 * PAGE + 16]), None);
        assert_eq!(pages(true, within, [3 * PAGE - 1, 3 * PAGE + 1]), Some([2, 3]));
        // Memory of whole pages, and an allocation, whose pages are its own.
        let whole = [PAGE, 3 * PAGE];
        assert_eq!(pages(true, whole, whole), Some([1, 3]));
        assert_eq!(pages(true, whole, [PAGE, PAGE + 1]), Some([1, 2]));
        assert_eq!(pages(true, whole, [2 * PAGE - 1, 2 * PAGE + 1]), Some([1, 3]));
        assert_eq!(pages(false, within, within), Some([0, 4]));
        assert_eq!(pages(false, within, [3 * PAGE, 3 * PAGE + 16]), Some([3, 4]));
        // No memory of the driver's.
        assert_eq!(pages(true, whole, [0, 16]), None);
        assert_eq!(pages(true, whole, [3 * PAGE, 3 * PAGE + 1]), None);
    }
}
