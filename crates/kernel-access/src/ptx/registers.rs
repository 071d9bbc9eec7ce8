//! Registers that are not needed at the same time share a number. So a kernel has as few as its
//! machine code would have, and nothing stays in a register that is no longer needed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use super::PtxError;
use super::translate::Translated;
use crate::decode::{Access, AccessKind, Instruction, Operand, Operation, Predicate, Register};
use crate::flow::Graph;
use crate::live::Counts;

/// How many steps are done to find where registers are needed.
const MOST_STEPS: usize = 20_000_000;

/// A register of 32 bits, or a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Unit {
    Register(u16),
    Predicate(u16),
}

/// What an instruction reads.
fn read(one: &Instruction, pairs: &HashSet<u16>, found: &mut Vec<Unit>) {
    let mut register = |register: Register| {
        if let Register::General(number) = register {
            found.push(Unit::Register(number));
            // Whoever names the first of a pair may read both.
            if pairs.contains(&number) {
                found.push(Unit::Register(number + 1));
            }
        }
    };
    for source in &one.sources {
        match source.operand {
            Operand::Register(number) => register(number),
            Operand::Constant { index, .. } => register(index),
            Operand::Immediate(_) | Operand::Unknown => {}
        }
    }
    if let Operation::Access(Access { address: Some(address), .. }) = one.operation {
        register(address.base);
    }
    let predicates = std::iter::once(&one.guard).chain(&one.predicates_read);
    found.extend(predicates.filter_map(|one| one.index).map(Unit::Predicate));
}

/// What it writes.
fn written(one: &Instruction, found: &mut Vec<Unit>) {
    if let Some((Register::General(first), count)) = one.destination {
        found.extend((first..first + u16::from(count)).map(Unit::Register));
    }
    found.extend(one.predicates_written.iter().filter_map(|one| one.index).map(Unit::Predicate));
}

/// The indices of reads of which nothing depends that a thread does.
pub(super) fn idle(translated: &Translated) -> Vec<usize> {
    let code = &translated.code;
    let mut writers: HashMap<Unit, Vec<usize>> = HashMap::new();
    let mut units = Vec::new();
    for (index, one) in code.iter().enumerate() {
        units.clear();
        written(one, &mut units);
        for &unit in &units {
            writers.entry(unit).or_default().push(index);
        }
    }
    let has_effect = |index: usize, one: &Instruction| match one.operation {
        Operation::Access(access) => {
            access.kind != AccessKind::Read || translated.kept.contains(&index)
        }
        Operation::Branch { .. } | Operation::Exit | Operation::Call | Operation::Return => true,
        _ => false,
    };
    let mut matters: Vec<bool> =
        code.iter().enumerate().map(|(index, one)| has_effect(index, one)).collect();
    let mut waiting: Vec<usize> =
        matters.iter().enumerate().filter(|(_, matters)| **matters).map(|(at, _)| at).collect();
    while let Some(index) = waiting.pop() {
        let Some(one) = code.get(index) else { continue };
        units.clear();
        read(one, &translated.pairs, &mut units);
        for unit in &units {
            // All are marked at once.
            for writer in writers.remove(unit).unwrap_or_default() {
                if let Some(matters) = matters.get_mut(writer)
                    && !std::mem::replace(matters, true)
                {
                    waiting.push(writer);
                }
            }
        }
    }
    let idle =
        code.iter().zip(matters).enumerate().filter(|(_, (one, matters))| {
            !matters && matches!(one.operation, Operation::Access(_))
        });
    idle.map(|(index, _)| index).collect()
}

/// From where to where something is needed, by places in the order of the blocks.
#[derive(Clone, Copy, Debug)]
struct Interval {
    first: usize,
    last: usize,
}

/// Gives each register and predicate its number.
pub(super) fn assign(translated: &mut Translated, graph: &Graph) -> Result<Counts, PtxError> {
    let intervals = intervals(&translated.code, graph, &translated.pairs)?;
    let mut registers: HashMap<u16, Interval> = HashMap::new();
    let mut predicates: Vec<(u16, Interval)> = Vec::new();
    for (unit, interval) in intervals {
        match unit {
            Unit::Predicate(number) => predicates.push((number, interval)),
            Unit::Register(number) => {
                let is_upper = number > 0 && translated.pairs.contains(&(number - 1));
                let first = if is_upper { number - 1 } else { number };
                let all = registers.entry(first).or_insert(interval);
                all.first = all.first.min(interval.first);
                all.last = all.last.max(interval.last);
            }
        }
    }
    let mut registers: Vec<(u16, Interval)> = registers.into_iter().collect();
    let (register, register_count) = share(&mut registers, &translated.pairs)?;
    let (predicate, predicate_count) = share(&mut predicates, &HashSet::new())?;
    let rename = |one: &mut Register| {
        if let Register::General(number) = one {
            let is_upper = *number > 0 && translated.pairs.contains(&(*number - 1));
            // What has no number is in code that is never reached.
            *number = if is_upper {
                register.get(&(*number - 1)).map_or(1, |first| first + 1)
            } else {
                register.get(number).copied().unwrap_or(0)
            };
        }
    };
    let rename_predicate = |one: &mut Predicate| {
        if let Some(number) = &mut one.index {
            *number = predicate.get(number).copied().unwrap_or(0);
        }
    };
    for one in &mut translated.code {
        for source in &mut one.sources {
            match &mut source.operand {
                Operand::Register(number) => rename(number),
                Operand::Constant { index, .. } => rename(index),
                Operand::Immediate(_) | Operand::Unknown => {}
            }
        }
        if let Operation::Access(Access { address: Some(address), .. }) = &mut one.operation {
            rename(&mut address.base);
        }
        if let Some((first, _)) = &mut one.destination {
            rename(first);
        }
        rename_predicate(&mut one.guard);
        one.predicates_read.iter_mut().for_each(rename_predicate);
        one.predicates_written.iter_mut().for_each(rename_predicate);
    }
    // Who looks at what an instruction may read looks at up to three registers more.
    Ok(Counts { registers: [register_count + 4, 0], predicates: [predicate_count.max(1), 0] })
}

/// Numbers for what is needed from one place to another, and how many there are. A pair has two, the
/// first of them even.
fn share(
    all: &mut [(u16, Interval)],
    pairs: &HashSet<u16>,
) -> Result<(HashMap<u16, u16>, usize), PtxError> {
    all.sort_unstable_by_key(|(number, interval)| (interval.first, *number));
    let mut numbers = HashMap::new();
    let mut busy: BinaryHeap<Reverse<(usize, u16, bool)>> = BinaryHeap::new();
    let (mut singles, mut doubles) = (BTreeSet::new(), BTreeSet::new());
    let mut end = 0_u16;
    for (number, interval) in all {
        while let Some(&Reverse((last, free, is_pair))) = busy.peek()
            && last < interval.first
        {
            busy.pop();
            if is_pair || singles.remove(&(free ^ 1)) {
                doubles.insert(free & !1);
            } else {
                singles.insert(free);
            }
        }
        let is_pair = pairs.contains(number);
        let single = if is_pair { None } else { singles.pop_first() };
        let first = match single.or_else(|| doubles.pop_first()) {
            Some(first) => first,
            None => {
                // These two have a meaning in machine code.
                let first = if end == 254 { 256 } else { end };
                end = first.checked_add(2).ok_or(PtxError::TooLarge)?;
                first
            }
        };
        if single.is_none() && !is_pair {
            singles.insert(first + 1);
        }
        numbers.insert(*number, first);
        busy.push(Reverse((interval.last, first, is_pair)));
    }
    Ok((numbers, usize::from(end)))
}

/// Where each is needed: from where it is written, or may be read without that, to its last reader.
fn intervals(
    code: &[Instruction],
    graph: &Graph,
    pairs: &HashSet<u16>,
) -> Result<HashMap<Unit, Interval>, PtxError> {
    let mut intervals: HashMap<Unit, Interval> = HashMap::new();
    let mut include = |unit: Unit, at: usize| {
        let interval = intervals.entry(unit).or_insert(Interval { first: at, last: at });
        interval.first = interval.first.min(at);
        interval.last = interval.last.max(at);
    };
    let mut before = vec![Vec::new(); graph.blocks.len()];
    let mut places = Vec::new();
    let mut place = 0;
    // The blocks that need it from before, and those that surely write it.
    let mut needs: HashMap<Unit, Vec<usize>> = HashMap::new();
    let mut writes: HashSet<(usize, Unit)> = HashSet::new();
    let mut units = Vec::new();
    for (at, block) in graph.blocks.iter().enumerate() {
        for &next in &block.next {
            if let Some(before) = before.get_mut(next) {
                before.push(at);
            }
        }
        let begin = place;
        for one in code.get(block.instructions.clone()).unwrap_or_default() {
            units.clear();
            read(one, pairs, &mut units);
            for &unit in &units {
                include(unit, place);
                if !writes.contains(&(at, unit)) {
                    let blocks = needs.entry(unit).or_default();
                    if blocks.last() != Some(&at) {
                        blocks.push(at);
                    }
                }
            }
            units.clear();
            written(one, &mut units);
            for &unit in &units {
                include(unit, place);
                if one.guard.is_true() {
                    writes.insert((at, unit));
                }
            }
            place += 1;
        }
        places.push((begin, place.saturating_sub(1).max(begin)));
    }
    let mut steps = MOST_STEPS;
    let mut seen = vec![0_usize; graph.blocks.len()];
    for (number, (&unit, blocks)) in needs.iter().enumerate() {
        let mut waiting = blocks.clone();
        for &block in blocks {
            if let Some(seen) = seen.get_mut(block) {
                *seen = number + 1;
            }
        }
        while let Some(block) = waiting.pop() {
            if let Some(&(begin, _)) = places.get(block) {
                include(unit, begin);
            }
            for &from in before.get(block).map_or(&[][..], Vec::as_slice) {
                steps = steps.checked_sub(1).ok_or(PtxError::TooLarge)?;
                if let Some(&(_, end)) = places.get(from) {
                    include(unit, end);
                }
                if let Some(seen) = seen.get_mut(from)
                    && *seen != number + 1
                    && !writes.contains(&(from, unit))
                {
                    *seen = number + 1;
                    waiting.push(from);
                }
            }
        }
    }
    Ok(intervals)
}
