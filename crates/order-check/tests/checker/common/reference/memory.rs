//! Accesses to each byte, and the values that streams wait for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Graph, Set, one};
use cuda_order_check_engine::{Access, AccessKind, Cell, Compare};

/// What the checker should report: pairs of lines, with the bytes of the first report of each,
/// where only one pair of operations can be meant.
pub type Expected = BTreeMap<(usize, usize), Option<BTreeSet<u64>>>;

fn conflict(one: AccessKind, two: AccessKind) -> bool {
    use AccessKind::{Allocate, AtomicRead, AtomicWrite, Free, Read, Wait};
    // What streams wait for is any write's to end.
    if one == Wait || two == Wait {
        return matches!((one, two), (Allocate | Free, _) | (_, Allocate | Free));
    }
    let read = |kind| matches!(kind, Read | AtomicRead);
    let atomic = |kind| matches!(kind, AtomicWrite | AtomicRead);
    let both = |is: fn(AccessKind) -> bool| is(one) && is(two);
    !both(read) && !both(atomic)
}

/// Whether whatever conflicts with `old` conflicts with `new`, waits apart: a write stands for the
/// allocation before it, though a wait would have to be after that alone.
fn shadows(new: AccessKind, old: AccessKind) -> bool {
    use AccessKind::{Allocate, AtomicRead, AtomicWrite, Free, Read, Write};
    [Read, Write, AtomicRead, AtomicWrite, Allocate, Free]
        .iter()
        .all(|any| !conflict(old, *any) || conflict(new, *any))
}

#[derive(Default)]
pub(super) struct Memory {
    bytes: HashMap<(bool, u64), Vec<(usize, AccessKind)>>,
    /// The width of each value, by its address.
    cells: BTreeMap<u64, u8>,
    /// Copies of other sizes than those of values, and whether they are allocations.
    copies: Vec<(Access, usize, bool)>,
    /// Writes of all values, in the order in which they ran: address, node, value.
    pub(super) writes: Vec<(u64, usize, Option<u64>)>,
    pub(super) expected: Expected,
}

impl Memory {
    pub(super) fn access(&mut self, graph: &Graph, node: usize, access: &Access) {
        self.accesses(graph, node, std::slice::from_ref(access));
    }

    /// Neighbours of one kind, such as the rows of a copy, are one access.
    pub(super) fn accesses(&mut self, graph: &Graph, node: usize, accesses: &[Access]) {
        let mut rest = accesses;
        while let Some(first) = rest.first() {
            let alike = rest.iter().take_while(|access| access.kind == first.kind).count();
            let ranges = rest[..alike].iter().flat_map(rows);
            self.touch(graph, node, false, first.kind, ranges);
            rest = &rest[alike..];
        }
        for access in accesses {
            self.overwritten(node, access);
        }
    }

    fn overwritten(&mut self, node: usize, access: &Access) {
        let range = &access.range;
        let (anew, written) =
            (access.kind == AccessKind::Allocate, access.kind == AccessKind::Write);
        if range.is_empty() || !(anew || written) {
            return;
        }
        let bytes = range.end - range.start;
        if written
            && access.stride().is_none()
            && (bytes == 4 || bytes == 8)
            && range.start.is_multiple_of(bytes)
        {
            self.width(Cell { address: range.start, bytes: bytes as u8 });
        } else if bytes >= 4 {
            self.copies.push((access.clone(), node, anew));
        }
        let over = |cell: &(&u64, &u8)| {
            let end = cell.0 + u64::from(*cell.1);
            rows(access).iter().any(|row| *cell.0 < row.end && end > row.start)
        };
        let cells: Vec<u64> = self.cells.iter().filter(over).map(|cell| *cell.0).collect();
        for cell in cells {
            if anew {
                self.writes.retain(|write| write.0 != cell);
            }
            self.writes.push((cell, node, None));
        }
    }

    /// A wait for a value that nothing has written as one: any copy may have.
    pub(super) fn expect(&mut self, cell: Cell) {
        if self.cells.contains_key(&cell.address) {
            return;
        }
        let bytes = range(cell);
        for (copied, node, anew) in self.copies.clone() {
            if rows(&copied).iter().any(|row| row.start < bytes.end && bytes.start < row.end) {
                if anew {
                    self.writes.retain(|write| write.0 != cell.address);
                }
                self.writes.push((cell.address, node, None));
            }
        }
        self.width(cell);
    }

    pub(super) fn width(&mut self, cell: Cell) {
        let width = self.cells.entry(cell.address).or_default();
        *width = cell.bytes.max(*width);
    }

    pub(super) fn write(&mut self, graph: &Graph, node: usize, cell: Cell, value: u64) {
        self.touch(graph, node, false, AccessKind::AtomicWrite, [range(cell)]);
        self.width(cell);
        self.writes.push((cell.address, node, Some(value)));
    }

    /// What is certainly before a wait that is after `before`.
    pub(super) fn seen(
        &self,
        graph: &Graph,
        before: &[usize],
        cell: Cell,
        value: u64,
        compare: Compare,
    ) -> Option<Vec<usize>> {
        let before = graph.closure(before);
        let writes: Vec<_> = self.writes.iter().filter(|write| write.0 == cell.address).collect();
        let mut seen: Option<Set> = None;
        for (index, (_, node, written)) in writes.iter().enumerate() {
            let hidden = writes[index + 1..].iter().any(|later| {
                before.contains(&later.1) && graph.closure(&one(later.1)).contains(node)
            });
            if !hidden && written.is_some_and(|written| holds(compare, cell, written, value)) {
                let all = graph.closure(&one(*node));
                seen = Some(seen.map_or_else(|| all.clone(), |seen| &seen & &all));
            }
        }
        seen.map(|seen| seen.into_iter().collect())
    }

    pub(super) fn touch(
        &mut self,
        graph: &Graph,
        node: usize,
        object: bool,
        kind: AccessKind,
        ranges: impl IntoIterator<Item = std::ops::Range<u64>>,
    ) {
        let before = graph.closure(&one(node));
        // The bytes with each earlier node that lacks an order, in this access.
        let mut found: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for byte in ranges.into_iter().flatten() {
            if kind == AccessKind::Allocate {
                self.bytes.remove(&(object, byte));
            }
            let all = self.bytes.entry((object, byte)).or_default().clone();
            if let Some(freed) = all.iter().find(|access| access.1 == AccessKind::Free) {
                found.entry(freed.0).or_default().insert(byte);
                continue;
            }
            for (index, (earlier, old)) in all.iter().enumerate() {
                if before.contains(earlier) || !conflict(*old, kind) {
                    continue;
                }
                // A later one that stands for it is found instead.
                let stands = all[index + 1..].iter().any(|(later, other)| {
                    shadows(*other, *old) && graph.closure(&one(*later)).contains(earlier)
                });
                if !stands {
                    found.entry(*earlier).or_default().insert(byte);
                }
            }
            self.bytes.get_mut(&(object, byte)).unwrap().push((node, kind));
        }
        let mut now: BTreeMap<(usize, usize), Vec<BTreeSet<u64>>> = BTreeMap::new();
        for (earlier, bytes) in found {
            let (one, two) = (graph.lines[earlier], graph.lines[node]);
            now.entry((one.min(two), one.max(two))).or_default().push(bytes);
        }
        for (pair, mut bytes) in now {
            let certain = if bytes.len() == 1 { bytes.pop() } else { None };
            self.expected.entry(pair).or_insert(certain);
        }
    }
}

pub(super) fn cell_access(kind: AccessKind, cell: Cell) -> Access {
    Access::new(kind, cell.address, cell.bytes.into())
}

/// Each row of an access.
fn rows(access: &Access) -> Vec<std::ops::Range<u64>> {
    let Some(stride) = access.stride() else { return vec![access.range.clone()] };
    let starts = access.range.clone().step_by(stride.pitch as usize);
    starts.map(|start| start..start + stride.width).collect()
}

fn range(cell: Cell) -> std::ops::Range<u64> {
    cell.address..cell.address + u64::from(cell.bytes)
}

fn holds(compare: Compare, cell: Cell, seen: u64, value: u64) -> bool {
    assert_eq!(cell.bytes, 4);
    let (seen, value) = (seen as u32, value as u32);
    match compare {
        Compare::GreaterOrEqual => seen.wrapping_sub(value) as i32 >= 0,
        Compare::Equal => seen == value,
        Compare::And => seen & value != 0,
        Compare::Nor => !(seen | value) != 0,
    }
}
