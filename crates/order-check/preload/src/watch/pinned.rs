//! The class `host`: which copies of pinned memory are watched, and what the accesses of the host
//! are.

use std::cell::OnceCell;

use cuda_order_check::trace::{Trace, file_of, look_for_python};

use super::*;
use crate::pinned::budget::{Budget, PAGES, TIMES};
use crate::pinned::table::{self, Fact, PAGE, Use};
use crate::pinned::{self, faults};

/// Asks the software driver to use a mapping of its own for pinned memory, as a device does: it
/// returns 0 if that is not possible.
type Alias = unsafe extern "C" fn(*const c_void) -> i32;

/// Pinned memory.
struct Region {
    bytes: u64,
    /// It is the program's, with other things of the program beside it on the first and the last
    /// page.
    registered: bool,
    /// Whether others may have its pages, too. It is looked up once somebody asks.
    shared: OnceCell<bool>,
}

/// A copy whose pages are protected.
struct Watched {
    index: usize,
    work: Awaited,
}

/// Of so many streams the lists of copies are kept when they are empty.
const STREAMS: usize = 64;

/// Whether the class is on.
enum State {
    /// Nobody has asked for it.
    Unused,
    On,
    /// It is off, for this reason.
    Off(&'static str),
}

pub(super) struct Pinned {
    state: State,
    alias: Option<Alias>,
    /// An address in the real library.
    driver: usize,
    regions: BTreeMap<u64, Region>,
    /// What was submitted by the call under way: what is accessed, and the work up to its end.
    submitted: Vec<(StreamId, Access, Awaited)>,
    /// In the order of their submission.
    watched: BTreeMap<u64, VecDeque<Watched>>,
    begin: Instant,
    budget: Budget,
    /// How many copies were watched.
    copies: u64,
    /// How many were not, as there was no place, or as their pages have other things too.
    left_out: [u64; 2],
}

impl Pinned {
    pub(super) fn new() -> Self {
        Self {
            state: State::Unused,
            alias: None,
            driver: 0,
            regions: BTreeMap::new(),
            submitted: Vec::new(),
            watched: BTreeMap::new(),
            begin: Instant::now(),
            budget: Budget::default(),
            copies: 0,
            left_out: [0; 2],
        }
    }

    fn is_on(&self) -> bool {
        matches!(self.state, State::On) && pinned::is_on()
    }

    /// The region that some bytes are in, and its first address.
    fn region(&self, address: u64) -> Option<(u64, &Region)> {
        let (base, region) = self.regions.range(..=address).next_back()?;
        (address - base < region.bytes).then_some((*base, region))
    }

    /// Whether a load there does nothing: a register of a device, say, may be registered, too.
    pub(super) fn may_be_read(&self, address: u64) -> bool {
        self.region(address).is_some()
    }

    /// Whether others may store there without a fault here: other processes, or other mappings, have
    /// these bytes, or they are no plain memory.
    pub(super) fn is_shared(&self, address: u64) -> bool {
        let Some((base, of)) = self.region(address) else { return true };
        if !of.registered {
            return false;
        }
        *of.shared.get_or_init(|| {
            let maps = std::fs::read("/proc/self/maps");
            maps.map_or(true, |maps| !are_private(&maps, [base, base + of.bytes]))
        })
    }

    /// The pages of some bytes that can be protected.
    fn pages(&self, bytes: [usize; 2]) -> Option<[usize; 2]> {
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
    pub(super) fn guard(&mut self, cell: Cell) -> Option<Option<usize>> {
        if matches!(self.state, State::Unused) {
            return Some(None);
        }
        let first = cell.address as usize;
        let end = first + usize::from(cell.bytes);
        let pages = self.pages([first, end]).filter(|_| self.is_on())?;
        if !self.is_ready() || !self.allows(pages) {
            return None;
        }
        // A store there is not too early.
        table::add(Use { bytes: [end, first], writes: false, rows: false }, pages).map(Some)
    }

    /// Whether faults come to this library. The class is off if they do not.
    fn is_ready(&mut self) -> bool {
        let ready = faults::install();
        if ready {
            look_for_python();
        } else {
            self.turn_off("the program has a handler of SIGSEGV that cannot be kept");
        }
        ready
    }

    fn allows(&mut self, [first, end]: [usize; 2]) -> bool {
        let now = self.begin.elapsed().as_secs();
        self.budget.allows(now, first, (end - first) / PAGE)
    }

    fn turn_off(&mut self, reason: &'static str) {
        for Watched { index, .. } in std::mem::take(&mut self.watched).into_values().flatten() {
            table::remove(index);
        }
        table::forget_all();
        self.submitted.clear();
        pinned::stop();
        self.state = State::Off(reason);
    }

    /// What the summary says of the class.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.copies > 0 {
            let (copies, calls) = (self.copies, table::protections());
            lines.push(format!(
                "host: {copies} copies of pinned memory were watched, with {calls} calls of \
                 mprotect"
            ));
        }
        if let State::Off(reason) = self.state
            && !self.regions.is_empty()
        {
            lines.push(format!("host: accesses to pinned memory are not checked: {reason}"));
        }
        let ([times, pages], [full, beside]) = (self.budget.refused, self.left_out);
        let all = [
            (times, format!("a page was protected {TIMES} times within a second")),
            (pages, format!("{} MiB were protected within a second", (PAGES * PAGE) >> 20)),
            (full, format!("{} were watched, or mprotect has failed", table::ENTRIES)),
            (beside, "the pages of registered memory have other things as well".to_owned()),
        ];
        for (count, reason) in all.into_iter().filter(|(count, _)| *count > 0) {
            lines.push(format!("host: {count} times a copy was not watched: {reason}"));
        }
        if table::lost() > 0 {
            lines.push(format!("host: {} accesses were not looked at", table::lost()));
        }
        lines
    }
}

/// Checks the host's accesses to pinned memory from now on. `off` is a reason not to.
pub fn watch_host(off: Option<&'static str>, resolve: &dyn Fn(&CStr) -> *mut c_void) {
    // It is no call: a child of a fork that comes before the first one is checked.
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(watch) = &mut *watch {
        let alias = resolve(c"cuda_soft_driver_alias");
        // SAFETY: NULL, or the software driver's function of that name.
        watch.pinned.alias = unsafe { core::mem::transmute::<*mut c_void, Option<Alias>>(alias) };
        watch.pinned.driver = resolve(c"cuInit").addr();
        watch.pinned.state = match off {
            Some(reason) => {
                pinned::stop();
                State::Off(reason)
            }
            None => {
                pinned::prepare();
                State::On
            }
        };
    }
}

impl Watch {
    /// Pinned memory begins.
    pub(super) fn pinned(&mut self, address: Address, bytes: usize, registered: bool) {
        let of = &mut self.pinned;
        let place = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: pinned memory of the driver, which the program does not have yet, or has given to
        // the call under way.
        if of.alias.is_none_or(|alias| unsafe { alias(place) != 0 }) {
            let (bytes, shared) = (bytes as u64, OnceCell::new());
            of.regions.insert(address, Region { bytes, registered, shared });
        }
    }

    /// Pinned memory ends: its pages are as they were.
    pub(super) fn unpinned(&mut self, address: Address) {
        let Some(region) = self.pinned.regions.remove(&address) else { return };
        let range = [address as usize, (address + region.bytes) as usize];
        self.pinned.unwatch(|index| table::is_in(index, range));
    }

    /// A copy or a memset was submitted.
    pub(super) fn submitted(&mut self, stream: StreamId, accesses: &[Access]) {
        if !self.pinned.is_on() || self.pinned.regions.is_empty() {
            return;
        }
        // Attributes may say that sources are read within the call.
        let name = self.feed.caller().name;
        let may_be_read = ["Batch", "WithAttributes"].iter().any(|part| name.contains(part));
        for access in accesses {
            if self.pinned.region(access.range.start).is_none()
                || access.kind == AccessKind::Read && may_be_read
                || self.feed.capture_of(stream).is_some()
            {
                continue;
            }
            let work = self.feed.await_stream(stream);
            self.pinned.submitted.push((stream, access.clone(), work));
        }
    }

    /// A graph was launched.
    pub(super) fn launched(&mut self, stream: StreamId, graph: GraphId) {
        if !self.pinned.is_on()
            || self.pinned.regions.is_empty()
            || self.feed.capture_of(stream).is_some()
        {
            return;
        }
        // A kernel may access what is there through an address, or may not: it counts as a read of
        // one byte.
        let of_kernel = |access: &Access| {
            access.kind == AccessKind::Read && access.range.end - access.range.start == 1
        };
        let accesses = self.feed.graph_accesses(graph, |access| {
            !of_kernel(access) && self.pinned.region(access.range.start).is_some()
        });
        for access in accesses {
            let work = self.feed.await_stream(stream);
            self.pinned.submitted.push((stream, access, work));
        }
    }

    /// Memory ends: no copy is watched any longer.
    pub(super) fn stop_watching_copies(&mut self) {
        self.pinned.unwatch(|_| true);
    }

    /// A hook begins: what the host has accessed meanwhile.
    pub(super) fn facts(&mut self) {
        if faults::is_around() && matches!(self.pinned.state, State::On) {
            self.pinned.turn_off("a library was opened with RTLD_DEEPBIND");
        }
        if !table::waiting() {
            return;
        }
        let facts = table::take();
        if !facts.is_empty() {
            // The host may have seen a value first.
            self.look_before(true);
            let caller = self.feed.caller();
            facts.into_iter().for_each(|fact| self.fact(fact));
            self.feed.resume(caller);
        }
        let now = self.pinned.begin.elapsed().as_secs();
        let budget = &mut self.pinned.budget;
        table::close_holes(|[first, end]| budget.allows(now, first, (end - first) / PAGE));
    }

    fn fact(&mut self, fact: Fact) {
        let own = file_of(file_of as *const () as usize);
        let all = fact.frames.into_iter().take_while(|at| *at != 0);
        let frames: Vec<usize> = all.skip_while(|at| file_of(*at) == own).collect();
        let python = text_of(fact.python);
        if is_of(self.pinned.driver, &frames) {
            return;
        }
        self.calls += 1;
        let mut call = Made::new(fact.name, self.calls, cuda_order_check::ThreadId(fact.thread));
        call.backtrace = Some(Arc::new(Trace::of(frames, python.unwrap_or_default())));
        self.feed.resume(call);
        let access = if fact.writes { Access::write } else { Access::read };
        let [start, end] = fact.bytes.map(|at| at as u64);
        self.feed.host(&[access(start, end - start)]);
    }

    /// A hook ends: what the host is ordered after now is lifted, and what was submitted is
    /// protected.
    pub(super) fn settle(&mut self) {
        let (feed, of) = (&self.feed, &mut self.pinned);
        for all in of.watched.values_mut() {
            // What comes later in a stream is over later.
            while all.front().is_some_and(|first| feed.host_is_after(&first.work)) {
                if let Some(Watched { index, .. }) = all.pop_front() {
                    table::remove(index);
                }
            }
        }
        if of.watched.len() > STREAMS {
            of.watched.retain(|_, all| !all.is_empty());
        }
        let over = |of: &mut Pending| of.work.as_ref().is_some_and(|of| feed.host_is_after(of));
        for of in self.pending.extract_if(.., over).collect::<Vec<_>>() {
            self.has_seen(of);
        }
        let (feed, of) = (&self.feed, &mut self.pinned);
        for (stream, access, work) in std::mem::take(&mut of.submitted) {
            if !feed.host_is_after(&work) {
                of.watch(stream, &access, work);
            }
        }
    }

    /// The process ends.
    pub(super) fn stop_watching(&mut self) {
        self.facts();
        if self.pinned.is_on() {
            self.pinned.turn_off("the process ends");
            self.pinned.state = State::Unused;
        }
    }
}

impl Pinned {
    fn unwatch(&mut self, which: impl Fn(usize) -> bool) {
        for all in self.watched.values_mut() {
            all.retain(|Watched { index, .. }| {
                let gone = which(*index);
                if gone {
                    table::remove(*index);
                }
                !gone
            });
        }
    }

    /// Protects the pages of a copy.
    fn watch(&mut self, stream: StreamId, access: &Access, work: Awaited) {
        if !self.is_on() {
            return;
        }
        let bytes = [access.range.start as usize, access.range.end as usize];
        let Some(pages) = self.pages(bytes) else {
            self.left_out[1] += 1;
            return;
        };
        if !self.is_ready() {
            return;
        }
        let of =
            Use { bytes, writes: access.kind != AccessKind::Read, rows: access.stride().is_some() };
        let all = self.watched.entry(stream.0).or_default();
        // The same again, as in a loop: it is over later.
        let last = all.iter().position(|watched| table::is_same(watched.index, of));
        if let Some(Watched { index, .. }) = last.and_then(|at| all.remove(at)) {
            all.push_back(Watched { index, work });
            self.copies += 1;
            return;
        }
        if !self.allows(pages) {
            return;
        }
        match table::add(of, pages) {
            Some(index) => {
                let all = self.watched.entry(stream.0).or_default();
                all.push_back(Watched { index, work });
                self.copies += 1;
            }
            None => self.left_out[0] += 1,
        }
    }
}

/// Whether the system's list of mappings says of all these bytes that they are private.
fn are_private(maps: &[u8], [first, end]: [u64; 2]) -> bool {
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
fn is_of(driver: usize, frames: &[usize]) -> bool {
    let (driver, own) = (file_of(driver), file_of(file_of as *const () as usize));
    if driver.is_none() || driver == own {
        return false;
    }
    let mut files = frames.iter().map(|at| file_of(*at));
    // A function of the program that the driver calls is called by this library.
    files.find(|file| *file == driver || *file == own) == Some(driver)
}

/// What Python has printed to the file, which is closed.
fn text_of(file: core::ffi::c_int) -> Option<String> {
    use std::io::{Read as _, Seek as _};
    use std::os::fd::FromRawFd as _;
    if file < 0 {
        return None;
    }
    // SAFETY: the handler has created it for this.
    let mut file = unsafe { std::fs::File::from_raw_fd(file) };
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::are_private;

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
}
