//! Which threads of a launch touch given bytes.
//!
//! [`may_touch`](crate::touch::may_touch) has bounds: that bytes are within them does not say that a
//! thread touches them. Here threads are run, as [`execute`] does: [`every_touch`] runs all of them,
//! if they are few, and [`seek`] those that seem to lead to the bytes.
//!
//! As of [`surely_touched`], all of this is true if the kernel ends, without a trap.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use crate::code::{Code, Launch};
use crate::decode::AccessKind;
use crate::execute::{Run, Touch, execute};

/// The instructions that one thread may run.
const STEPS: usize = 20_000;

/// Bytes that an instruction touches, by one thread or several.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Touched {
    /// The instruction's offset in the code.
    pub at: usize,
    /// In which way.
    pub kind: AccessKind,
    /// As [`Access::strong`](crate::decode::Access::strong) has it.
    pub strong: bool,
    /// The bytes.
    pub bytes: Range<u64>,
}

/// What all threads of a launch touch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Every {
    /// What they touch for certain: of atomic operations the first byte. In the order of the
    /// instructions and the bytes; what one instruction touches without gaps is one.
    pub sure: Vec<Touched>,
    /// What they touch perhaps: copies to shared memory, which may be filled with zeros instead, reads
    /// that the driver's compiler may leave out, and the other bytes of atomic operations.
    pub perhaps: Vec<Touched>,
    /// The instructions that may touch more than that, as it depends on what memory contains.
    pub missing: BTreeSet<usize>,
    /// Those of them that a thread runs or does not by what memory contains, and those that read constant
    /// variables, which may not be used.
    pub conditional: BTreeSet<usize>,
}

impl Every {
    /// Whether the instruction at this offset may touch any of these bytes.
    pub fn may_touch(&self, at: usize, bytes: &Range<u64>) -> bool {
        let touch = |of: &Touched| of.at == at && meet(&of.bytes, bytes);
        self.missing.contains(&at) || self.sure.iter().chain(&self.perhaps).any(touch)
    }
}

/// What looking for a thread that touches bytes came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sought {
    /// A thread touches these bytes for certain, which are some of those that were sought or all.
    Touched(Touched),
    /// No thread was found, though all is known of those that were run.
    NotFound,
    /// No thread was found; what those do that were run depends on what memory contains.
    Unknown,
    /// The same, and whether they run the instruction at all does, or whether the constants are used that
    /// it reads.
    Conditional,
}

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

/// The bytes that a thread's access touches for certain, and those that it may touch.
fn bytes_of(code: &Code, touch: &Touch) -> (Range<u64>, Range<u64>) {
    let up_to = |bytes: u32| touch.address..touch.address.saturating_add(bytes.into());
    let is_bulk = || code.access(touch.at).is_some_and(|access| access.count.is_some());
    let sure = match touch.kind {
        // The driver's compiler may leave it out.
        _ if code.idle.contains(&touch.at) => 0,
        AccessKind::Read | AccessKind::Write => touch.bytes,
        AccessKind::CopyToShared | AccessKind::Reduce if is_bulk() => touch.bytes,
        AccessKind::Atomic | AccessKind::Reduce => touch.bytes.min(1),
        AccessKind::CopyToShared | AccessKind::Unknown => 0,
    };
    (up_to(sure), up_to(touch.bytes))
}

/// A thread by its block's place in the grid and its own in the block.
type Place = [u32; 6];

fn sizes(launch: &Launch) -> Place {
    let ([x, y, z], [wide, high, deep]) = (launch.grid, launch.block);
    [x, y, z, wide, high, deep]
}

/// The axes from that on which threads are nearest to each other.
const AXES: [usize; 6] = [3, 4, 5, 0, 1, 2];

/// The thread of a number.
fn place(number: u64, sizes: Place) -> Place {
    let (mut place, mut rest) = ([0; 6], number);
    for axis in AXES {
        let size = u64::from(sizes[axis].max(1));
        place[axis] = (rest % size) as u32;
        rest /= size;
    }
    place
}

/// The number of a thread; `None` if it has more bits.
fn number(place: Place, sizes: Place) -> Option<u64> {
    AXES.into_iter().rev().try_fold(0_u64, |number, axis| {
        number.checked_mul(sizes[axis].into())?.checked_add(place[axis].into())
    })
}

fn run(code: &Code, launch: &Launch, place: Place, steps: usize) -> Run {
    let [x, y, z, i, j, k] = place;
    let mut memory = |address, bytes| launch.in_memory(address, bytes);
    execute(code, launch, [x, y, z], [i, j, k], &mut memory, steps.min(STEPS))
}

/// Accesses that threads at the corners of the launch make for certain, and the last thread that does
/// what those behind it leave out: of reads, writes and what is done in bulk all their bytes, of atomic
/// operations the first. Other copies to shared memory are left out: these may be filled with zeros
/// instead.
pub fn surely_touched(code: &Code, launch: &Launch) -> Vec<Touch> {
    let sizes = sizes(launch);
    if sizes.contains(&0) {
        return Vec::new();
    }
    let [x, y, z, i, j, k] = sizes.map(|size| size - 1);
    let mut places = vec![[0; 6], [0, 0, 0, i, j, k], [x, y, z, 0, 0, 0], [x, y, z, i, j, k]];
    places.dedup();
    let mut runs: Vec<Run> =
        places.into_iter().map(|place| run(code, launch, place, STEPS)).collect();
    if let [first, .., last] = runs.as_slice()
        && let Some(place) = last_acting(code, launch, sizes, [first, last])
    {
        runs.push(run(code, launch, place, STEPS));
    }
    let mut touched: Vec<Touch> = Vec::new();
    for mut touch in runs.into_iter().flat_map(|run| run.touched) {
        let (sure, _) = bytes_of(code, &touch);
        touch.bytes = (sure.end - sure.start) as u32;
        if touch.bytes > 0 {
            touched.push(touch);
        }
    }
    touched.sort_by_key(|touch| (touch.address, touch.at));
    touched.dedup();
    touched
}

/// The last thread that runs an instruction which the first thread runs and the last one does not, as
/// where a condition leaves out the threads behind the end of an array. It is looked for along each axis
/// by halves, which finds the last one if all before it run the instruction, too, and otherwise one of
/// those that run it.
fn last_acting(
    code: &Code,
    launch: &Launch,
    sizes: Place,
    [first, last]: [&Run; 2],
) -> Option<Place> {
    /// What the first thread may run, so that this costs little.
    const MOST: usize = 4096;
    let at = |run: &Run| run.touched.iter().map(|touch| touch.at).collect::<BTreeSet<_>>();
    let conditional = &at(first) - &at(last);
    if conditional.is_empty() || first.steps > MOST {
        return None;
    }
    let acts = |place: Place| {
        let run = run(code, launch, place, STEPS.min(4 * MOST));
        run.touched.iter().any(|touch| conditional.contains(&touch.at))
    };
    let mut place = [0; 6];
    for axis in 0..3 {
        let wide = u64::from(sizes[axis + 3]);
        let on_axis = |number: u64| {
            let mut place = [0; 6];
            (place[axis], place[axis + 3]) = ((number / wide) as u32, (number % wide) as u32);
            place
        };
        let (mut does, mut does_not) = (0, u64::from(sizes[axis]) * wide);
        while does_not - does > 1 {
            // The last one first: most launches have one axis that ends early.
            let middle = if does == 0 && does_not == u64::from(sizes[axis]) * wide {
                does_not - 1
            } else {
                does.midpoint(does_not)
            };
            if acts(on_axis(middle)) { does = middle } else { does_not = middle }
        }
        let [block, thread] = [axis, axis + 3].map(|axis| on_axis(does)[axis]);
        (place[axis], place[axis + 3]) = (block, thread);
    }
    Some(place)
}

/// Of an instruction: in which way, and the bytes.
type Collected = BTreeMap<usize, (AccessKind, bool, Vec<Range<u64>>)>;

/// In rising order, without overlaps; `None` if that leaves too many.
fn joined(all: Collected) -> Option<Vec<Touched>> {
    /// How many are kept.
    const MOST: usize = 1 << 12;
    let mut joined: Vec<Touched> = Vec::new();
    for (at, (kind, strong, mut ranges)) in all {
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        for bytes in ranges {
            match joined.last_mut() {
                Some(last) if last.at == at && bytes.start <= last.bytes.end => {
                    last.bytes.end = last.bytes.end.max(bytes.end);
                }
                _ => joined.push(Touched { at, kind, strong, bytes }),
            }
        }
        if joined.len() > MOST {
            return None;
        }
    }
    Some(joined)
}

/// What all threads of the launch touch. `None` if they run more than `steps` instructions, or touch
/// too many places.
pub fn every_touch(code: &Code, launch: &Launch, mut steps: usize) -> Option<Every> {
    /// How many accesses are collected.
    const MOST: usize = 1 << 18;
    let sizes = sizes(launch);
    let count = sizes.iter().try_fold(1_u64, |all, size| all.checked_mul((*size).into()))?;
    if count > steps as u64 {
        return None;
    }
    let (mut sure, mut perhaps) = (Collected::new(), Collected::new());
    let (mut missing, mut conditional, mut collected) = (BTreeSet::new(), BTreeSet::new(), 0);
    for number in 0..count {
        let run = run(code, launch, place(number, sizes), steps);
        steps = steps.checked_sub(run.steps).filter(|left| *left > 0)?;
        // All that follows will not fit either.
        if number == 0 && (run.steps as u64).saturating_mul(count) / 2 > steps as u64 {
            return None;
        }
        for touch in &run.touched {
            let (certain, all) = bytes_of(code, touch);
            let add = |to: &mut Collected, bytes| {
                let none = || (touch.kind, touch.strong, Vec::new());
                to.entry(touch.at).or_insert_with(none).2.push(bytes);
            };
            if certain != all {
                add(&mut perhaps, all);
            }
            if !certain.is_empty() {
                add(&mut sure, certain);
            }
        }
        collected += run.touched.len();
        if collected > MOST {
            return None;
        }
        missing.extend(run.missing);
        conditional.extend(run.conditional);
    }
    Some(Every { sure: joined(sure)?, perhaps: joined(perhaps)?, missing, conditional })
}

/// Looks for a thread whose instruction at `at` touches any of the `wanted` bytes. Few threads show
/// how its address depends on a thread's place, and that leads to others, so that of an access
/// that has no regular address no thread may be found. It takes from `steps` what it runs.
pub fn seek(
    code: &Code,
    launch: &Launch,
    at: usize,
    wanted: &Range<u64>,
    steps: &mut usize,
) -> Sought {
    let mut seeker = Seeker {
        code,
        launch,
        at,
        wanted,
        steps,
        sizes: sizes(launch),
        seen: HashSet::new(),
        known: true,
        conditional: false,
    };
    if seeker.sizes.contains(&0) || wanted.is_empty() {
        return Sought::NotFound;
    }
    match seeker.seek() {
        Some(found) => Sought::Touched(found),
        None if seeker.known => Sought::NotFound,
        None if seeker.conditional => Sought::Conditional,
        None => Sought::Unknown,
    }
}

/// A thread, and the addresses of its accesses by the instruction in their order.
type Sample = (Place, Vec<u64>);

struct Seeker<'a> {
    code: &'a Code,
    launch: &'a Launch,
    at: usize,
    wanted: &'a Range<u64>,
    steps: &'a mut usize,
    sizes: Place,
    /// The threads that were run.
    seen: HashSet<Place>,
    known: bool,
    conditional: bool,
}

impl Seeker<'_> {
    fn seek(&mut self) -> Option<Touched> {
        /// How often the addresses of neighbours are looked at on the way to a target.
        const ROUNDS: usize = 8;
        let mut samples: Vec<Sample> = Vec::new();
        for place in self.first_places() {
            match self.run(place) {
                Ok(addresses) if !addresses.is_empty() => samples.push((place, addresses)),
                Ok(_) => {}
                Err(found) => return found,
            }
        }
        let last = self.wanted.end - 1;
        let middle = self.wanted.start + (last - self.wanted.start) / 2;
        for target in [middle, self.wanted.start, last] {
            let nearest =
                |sample: &&Sample| sample.1.iter().map(|address| address.abs_diff(target)).min();
            let Some(mut now) = samples.iter().min_by_key(nearest).cloned() else { break };
            for _ in 0..ROUNDS {
                let next = match self.predict(&now, target) {
                    Ok(next) => next,
                    Err(found) => return found,
                };
                let mut moved = None;
                for &place in &next {
                    match self.run(place) {
                        Ok(addresses) if !addresses.is_empty() && place != now.0 => {
                            moved.get_or_insert((place, addresses));
                        }
                        Ok(_) => {}
                        Err(found) => return found,
                    }
                }
                if moved.is_none()
                    && let Some(&place) = next.first()
                {
                    match self.on_the_way(now.0, place) {
                        Ok(found) => moved = found,
                        Err(found) => return found,
                    }
                }
                let Some(next) = moved else { break };
                samples.push(now);
                now = next;
            }
            if let Err(found) = self.halve(&samples, target) {
                return found;
            }
        }
        None
    }

    /// The last thread with an access on the way to one that has none, as those at the end of a launch
    /// mostly have.
    fn on_the_way(&mut self, from: Place, to: Place) -> Result<Option<Sample>, Option<Touched>> {
        let ends = number(from, self.sizes).zip(number(to, self.sizes));
        let Some((mut from, mut to)) = ends else { return Ok(None) };
        let mut last = None;
        while from.abs_diff(to) > 1 {
            let middle = from.min(to) + from.abs_diff(to) / 2;
            let place = place(middle, self.sizes);
            let addresses = self.run(place)?;
            if addresses.is_empty() {
                to = middle;
            } else {
                from = middle;
                last = Some((place, addresses));
            }
        }
        Ok(last)
    }

    /// Threads between two whose addresses are on both sides of the target, if it rises or falls with
    /// the threads' numbers.
    fn halve(&mut self, samples: &[Sample], target: u64) -> Result<(), Option<Touched>> {
        let mut all: Vec<(u64, u64)> = samples
            .iter()
            .filter_map(|(place, addresses)| {
                let nearest = addresses.iter().min_by_key(|address| address.abs_diff(target))?;
                Some((number(*place, self.sizes)?, *nearest))
            })
            .collect();
        all.sort_unstable();
        let crosses = |pair: &&[(u64, u64)]| (pair[0].1 <= target) != (pair[1].1 <= target);
        let nearest = |pair: &&[(u64, u64)]| pair[0].1.abs_diff(pair[1].1);
        let Some(&[mut low, mut high]) =
            all.windows(2).filter(crosses).min_by_key(nearest).and_then(|pair| pair.first_chunk())
        else {
            return Ok(());
        };
        while high.0 - low.0 > 1 {
            let middle = low.0 + (high.0 - low.0) / 2;
            let addresses = self.run(place(middle, self.sizes))?;
            let nearest = addresses.iter().min_by_key(|address| address.abs_diff(target));
            let Some(&address) = nearest else { break };
            let side = if (address <= target) == (low.1 <= target) { &mut low } else { &mut high };
            *side = (middle, address);
        }
        Ok(())
    }

    /// Threads at the corners of the launch, and between them.
    fn first_places(&self) -> Vec<Place> {
        let last = self.sizes.map(|size| size - 1);
        let middle = self.sizes.map(|size| size / 2);
        let mut places = vec![[0; 6], last, middle];
        for axis in 0..6 {
            for all in [last, middle] {
                let mut place = [0; 6];
                place[axis] = all[axis];
                places.push(place);
            }
        }
        // The same thread of other blocks, and other threads of the same.
        for (blocks, threads) in [([0; 6], last), (last, [0; 6]), (middle, [0; 6])] {
            let mut place = threads;
            place[..3].copy_from_slice(&blocks[..3]);
            places.push(place);
        }
        let mut seen = HashSet::new();
        places.retain(|place| seen.insert(*place));
        places
    }

    /// The addresses of the thread's accesses; an error if one is what is sought, or if there is no
    /// time left.
    fn run(&mut self, place: Place) -> Result<Vec<u64>, Option<Touched>> {
        if *self.steps == 0 {
            self.known = false;
            return Err(None);
        }
        let run = run(self.code, self.launch, place, *self.steps);
        *self.steps = self.steps.saturating_sub(run.steps.max(1));
        self.seen.insert(place);
        self.known &= !run.missing.contains(&self.at);
        self.conditional |= run.conditional.contains(&self.at);
        let mut addresses = Vec::new();
        for touch in run.touched.iter().filter(|touch| touch.at == self.at) {
            let (sure, all) = bytes_of(self.code, touch);
            let bytes = sure.start.max(self.wanted.start)..sure.end.min(self.wanted.end);
            if !bytes.is_empty() {
                let Touch { at, kind, strong, .. } = *touch;
                return Err(Some(Touched { at, kind, strong, bytes }));
            }
            // It is there, and only perhaps.
            self.known &= !meet(&all, self.wanted);
            addresses.push(touch.address);
        }
        Ok(addresses)
    }

    /// Threads whose access is at the target, if addresses go on as between a thread and its
    /// neighbours.
    fn predict(&mut self, now: &Sample, target: u64) -> Result<Vec<Place>, Option<Touched>> {
        let (place, addresses) = now;
        let nearest = addresses.iter().enumerate().min_by_key(|(_, at)| at.abs_diff(target));
        let Some((turn, &address)) = nearest else { return Ok(Vec::new()) };
        let mut factors: Vec<(usize, i128)> = Vec::new();
        for axis in 0..6 {
            let own = place[axis];
            for other in
                [own.checked_add(1).filter(|of| *of < self.sizes[axis]), own.checked_sub(1)]
            {
                let Some(other) = other else { continue };
                let mut neighbour = *place;
                neighbour[axis] = other;
                let Some(&its) = self.run(neighbour)?.get(turn) else { continue };
                let step = i128::from(its) - i128::from(address);
                let factor = if other > own { step } else { -step };
                if factor != 0 {
                    factors.push((axis, factor));
                }
                break;
            }
        }
        factors.sort_by_key(|(_, factor)| std::cmp::Reverse(factor.abs()));
        // From where the address is the least, each axis goes as far as it can, from that which goes
        // farthest on.
        let mut least = *place;
        let mut rest = i128::from(target) - i128::from(address);
        for (axis, factor) in &factors {
            let first = if *factor < 0 { self.sizes[*axis] - 1 } else { 0 };
            rest += factor * (i128::from(place[*axis]) - i128::from(first));
            least[*axis] = first;
        }
        let mut found = least;
        for (axis, factor) in &factors {
            let most = i128::from(self.sizes[*axis] - 1);
            let count = (rest / factor.abs()).clamp(0, most);
            rest -= count * factor.abs();
            let moved = if *factor < 0 { most - count } else { count };
            found[*axis] = u32::try_from(moved).unwrap_or(0);
        }
        let mut all = vec![found];
        // Between two of them there may be a gap that the target is in.
        if let Some((axis, factor)) = factors.last() {
            let next =
                if *factor < 0 { found[*axis].checked_sub(1) } else { found[*axis].checked_add(1) };
            if let Some(next) = next.filter(|next| *next < self.sizes[*axis]) {
                let mut neighbour = found;
                neighbour[*axis] = next;
                all.push(neighbour);
            }
        }
        all.retain(|place| !self.seen.contains(place));
        Ok(all)
    }
}
