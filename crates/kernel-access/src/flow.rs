//! The ways that a thread can take through a kernel's code.
//!
//! A function that is called has blocks of its own for each place that it is called from, so each
//! return goes back to one place. So has code that is reached with threads to meet at other places, and
//! a loop with several entries for all but one of them, up to where it comes to that one.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

use crate::decode::{INSTRUCTION, Instruction, Operand, Operation, Register};
use crate::instruction::after;

/// No graph has more blocks: it bounds what calls of calls cost.
pub const MAX_BLOCKS: usize = 20_000;

/// How often a block is looked at in search of cycles with several entries: some ten milliseconds.
const BLOCKS_LOOKED_AT: usize = 1 << 22;

/// Calls within calls. A deeper one is taken for a recursion.
const MAX_DEPTH: usize = 8;

/// Why the ways through code are not known. Each has the offset of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoGraph {
    /// It is not known, and may go anywhere.
    Instruction(usize),
    /// It goes to a computed place, and the image does not say where that may be.
    Indirect(usize),
    /// It calls a function that is not in this code.
    Call(usize),
    /// It calls too deeply, perhaps a function that is running.
    Recursion(usize),
    /// It waits for threads without a place where they meet.
    Convergence(usize),
    /// It is not in the code, or between two instructions.
    Outside(i64),
    /// There are more than [`MAX_BLOCKS`].
    TooLarge,
}

impl fmt::Display for NoGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoGraph::Instruction(at) => write!(f, "the instruction at {at:#x} is not known"),
            NoGraph::Indirect(at) => write!(f, "the branch at {at:#x} goes to a computed place"),
            NoGraph::Call(at) => write!(f, "the call at {at:#x} goes to another function"),
            NoGraph::Recursion(at) => write!(f, "the call at {at:#x} is too deep"),
            NoGraph::Convergence(at) => write!(f, "the place to meet at {at:#x} is not known"),
            NoGraph::Outside(at) => write!(f, "{at:#x} is not an instruction of the code"),
            NoGraph::TooLarge => write!(f, "there are more than {MAX_BLOCKS} blocks"),
        }
    }
}

impl std::error::Error for NoGraph {}

/// Instructions that run one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// Their indices.
    pub instructions: Range<usize>,
    /// The blocks that may follow: what comes after the last instruction, then where it goes to.
    /// None where the thread ends.
    pub next: Vec<usize>,
    /// Whether a thread may end at the last instruction: always if no block follows, and on a
    /// condition otherwise.
    pub ends: bool,
}

/// Blocks that run repeatedly, and the only one by which they are entered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loop {
    /// That block.
    pub head: usize,
    /// All of them, in order, with the head.
    pub blocks: Vec<usize>,
}

/// The blocks of a kernel. The first is where it begins; all can be reached from there, if each
/// condition can be true and false.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Graph {
    /// In an order in which each comes before those that follow it, except around loops.
    pub blocks: Vec<Block>,
    /// Of each block the last one before it that every way to it takes. The first has none.
    pub dominators: Vec<Option<usize>>,
    /// Of each block the first one after it that every way from it to an end takes. None where
    /// the ways end apart, or do not end.
    pub post_dominators: Vec<Option<usize>>,
    /// By their heads. Two with the same head are one.
    pub loops: Vec<Loop>,
    /// Whether blocks run repeatedly that have no single entry: these are in no loop. It is so only if
    /// too many blocks would be needed for loops with an entry each, or too much time.
    pub irreducible: bool,
}

/// The places that branches to computed places may go to, by the offsets of the branches.
pub type Targets = BTreeMap<usize, Vec<u32>>;

/// Where a thread is, what it returns to, and where it meets others.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    index: usize,
    returns: Vec<usize>,
    meetings: [Option<usize>; 16],
    /// Of them, what a register keeps for the number.
    saved: BTreeMap<Register, usize>,
}

impl Place {
    /// What an instruction does with saved places to meet.
    fn moves(&mut self, one: &Instruction) {
        match (one.operation, one.destination, one.sources.first()) {
            // On a condition it may have happened, or not.
            (Operation::SaveConvergence { number, clears }, Some((register, _)), _) => {
                let meeting = &mut self.meetings[usize::from(number) % 16];
                let is_sure = one.guard.is_true() && register != Register::Zero;
                match meeting.filter(|_| is_sure) {
                    Some(meeting) => self.saved.insert(register, meeting),
                    None => self.saved.remove(&register),
                };
                if clears {
                    *meeting = None;
                }
            }
            (Operation::RestoreConvergence(number), _, Some(source)) => {
                // It is restored once, so that ways that saved elsewhere are the same after that.
                let saved = match source.operand {
                    Operand::Register(register) => self.saved.remove(&register),
                    _ => None,
                };
                let is_sure = one.guard.is_true();
                self.meetings[usize::from(number) % 16] = saved.filter(|_| is_sure);
            }
            (_, Some((mut register, count)), _) if !self.saved.is_empty() => {
                for _ in 0..count {
                    self.saved.remove(&register);
                    register = after(register);
                }
            }
            _ => {}
        }
    }
}

impl Graph {
    /// The graph of a kernel's instructions, as [`decode`](crate::decode::decode) has them.
    ///
    /// # Errors
    ///
    /// When one of the ways is not known. No part of a graph would be sound then.
    pub fn new(code: &[Instruction]) -> Result<Self, NoGraph> {
        Self::with_targets(code, &BTreeMap::new())
    }

    /// The same, with all places that each branch to a computed place may go to, by its offset.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_targets(code: &[Instruction], targets: &Targets) -> Result<Self, NoGraph> {
        let starts = starts(code, targets)?;
        let first =
            Place { index: 0, returns: Vec::new(), meetings: [None; 16], saved: BTreeMap::new() };
        let mut numbers = HashMap::from([(first.clone(), 0)]);
        let mut places = vec![first];
        let mut blocks: Vec<Block> = Vec::new();
        while let Some(place) = places.get(blocks.len()).cloned() {
            let (instructions, following, ends) = block(code, &starts, targets, place)?;
            let mut next = Vec::new();
            for place in following {
                let number = *numbers.entry(place).or_insert_with_key(|place| {
                    places.push(place.clone());
                    places.len() - 1
                });
                if !next.contains(&number) {
                    next.push(number);
                }
            }
            if places.len() > MAX_BLOCKS {
                return Err(NoGraph::TooLarge);
            }
            blocks.push(Block { instructions, next, ends });
        }
        Ok(Self::ordered(&blocks))
    }

    fn ordered(found: &[Block]) -> Self {
        let graph = Self::as_found(found);
        match graph.irreducible.then(|| with_single_entries(&graph.blocks)).flatten() {
            Some(blocks) => Self::as_found(&blocks),
            None => graph,
        }
    }

    fn as_found(found: &[Block]) -> Self {
        let edges: Vec<Vec<usize>> = found.iter().map(|block| block.next.clone()).collect();
        let order = order(&edges, 0);
        let mut position = vec![0; found.len()];
        for (at, &block) in order.iter().enumerate() {
            position[block] = at;
        }
        let blocks: Vec<Block> = order
            .iter()
            .map(|&old| Block {
                instructions: found[old].instructions.clone(),
                next: found[old].next.iter().map(|&next| position[next]).collect(),
                ends: found[old].ends,
            })
            .collect();
        let edges: Vec<Vec<usize>> = blocks.iter().map(|block| block.next.clone()).collect();
        let dominators = dominators(&edges, 0);
        // One more block, in which all ends meet.
        let end = blocks.len();
        let mut back = reversed(&edges);
        back.push((0..end).filter(|&block| blocks[block].ends).collect());
        let mut post_dominators = dominators_of_any(&back, end);
        post_dominators.truncate(end);
        let post_dominators =
            post_dominators.into_iter().map(|block| block.filter(|&block| block != end)).collect();
        let (loops, irreducible) = loops(&edges, &dominators);
        Self { blocks, dominators, post_dominators, loops, irreducible }
    }

    /// Whether every way from the start to `block` takes `other`. Each block dominates itself.
    pub fn dominates(&self, other: usize, block: usize) -> bool {
        is_above(&self.dominators, other, block)
    }
}

/// Whether a block may begin at each instruction.
fn starts(code: &[Instruction], targets: &Targets) -> Result<Vec<bool>, NoGraph> {
    let mut starts = vec![false; code.len() + 1];
    for (index, one) in code.iter().enumerate() {
        match one.operation {
            Operation::Branch { .. } | Operation::Call | Operation::SetConvergence(_) => {
                // Code that is never reached may go anywhere.
                if let Some(target) = one.target.and_then(|target| inside(code, target).ok()) {
                    starts[target] = true;
                }
            }
            Operation::BranchIndirect => {
                let all = targets.get(&(index * INSTRUCTION)).into_iter().flatten();
                for target in all.filter_map(|&target| inside(code, target.into()).ok()) {
                    starts[target] = true;
                }
            }
            Operation::Exit | Operation::Return | Operation::Converge(_) => {}
            _ => continue,
        }
        starts[index + 1] |= !matches!(one.operation, Operation::SetConvergence(_));
    }
    Ok(starts)
}

fn inside(code: &[Instruction], target: i64) -> Result<usize, NoGraph> {
    usize::try_from(target)
        .ok()
        .filter(|at| at.is_multiple_of(INSTRUCTION) && at / INSTRUCTION < code.len())
        .map(|at| at / INSTRUCTION)
        .ok_or(NoGraph::Outside(target))
}

/// The instructions of the block that begins there, the places after it, and whether a thread may
/// end there.
fn block(
    code: &[Instruction],
    starts: &[bool],
    targets: &Targets,
    mut place: Place,
) -> Result<(Range<usize>, Vec<Place>, bool), NoGraph> {
    let first = place.index;
    loop {
        let index = place.index;
        let at = index * INSTRUCTION;
        let Some(one) = code.get(index) else { return Err(NoGraph::Outside(at as i64)) };
        let target = || one.target.ok_or(NoGraph::Outside(at as i64));
        place.moves(one);
        let goes = match one.operation {
            Operation::Unknown => return Err(NoGraph::Instruction(at)),
            Operation::BranchIndirect => {
                let all = targets.get(&at).filter(|all| !all.is_empty());
                let all = all.ok_or(NoGraph::Indirect(at))?.iter();
                let all = all.map(|&target| {
                    Ok(Place { index: inside(code, target.into())?, ..place.clone() })
                });
                let mut next: Vec<Place> = all.collect::<Result<_, _>>()?;
                place.index += 1;
                if !one.guard.is_true() {
                    next.insert(0, place.clone());
                }
                return Ok((first..place.index, next, false));
            }
            Operation::SetConvergence(number) => {
                place.meetings[usize::from(number) % 16] = Some(inside(code, target()?)?);
                None
            }
            Operation::Branch { .. } => {
                Some(Some(Place { index: inside(code, target()?)?, ..place.clone() }))
            }
            Operation::Converge(number) => {
                let mut after = place.clone();
                after.index = after.meetings[usize::from(number) % 16]
                    .take()
                    .ok_or(NoGraph::Convergence(at))?;
                Some(Some(after))
            }
            Operation::Call => {
                let target = one.target.and_then(|target| inside(code, target).ok());
                let mut after = place.clone();
                after.index = target.ok_or(NoGraph::Call(at))?;
                after.returns.push(index + 1);
                if after.returns.len() > MAX_DEPTH {
                    return Err(NoGraph::Recursion(at));
                }
                Some(Some(after))
            }
            Operation::Return => {
                let mut after = place.clone();
                // A kernel that returns ends.
                Some(after.returns.pop().map(|index| {
                    after.index = index;
                    after
                }))
            }
            Operation::Exit => Some(None),
            _ => None,
        };
        place.index += 1;
        if let Some(target) = goes {
            let always = one.guard.is_true()
                && one.predicates_read.iter().all(|read| read.is_true())
                && !matches!(one.operation, Operation::Branch { divergent: true });
            let mut next = Vec::new();
            if !always {
                next.push(place.clone());
            }
            let ends = target.is_none();
            next.extend(target);
            return Ok((first..place.index, next, ends));
        }
        if starts[place.index] {
            return Ok((first..place.index, vec![place], false));
        }
    }
}

/// The blocks that can be reached from `first`, each before those that follow it except around
/// loops.
fn order(edges: &[Vec<usize>], first: usize) -> Vec<usize> {
    let mut seen = vec![false; edges.len()];
    seen[first] = true;
    let mut done = Vec::new();
    let mut way = vec![(first, 0)];
    while let Some((block, next)) = way.last_mut() {
        match edges[*block].get(*next) {
            Some(&following) => {
                *next += 1;
                if !seen[following] {
                    seen[following] = true;
                    way.push((following, 0));
                }
            }
            None => {
                done.push(*block);
                way.pop();
            }
        }
    }
    done.reverse();
    done
}

fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut back = vec![Vec::new(); edges.len()];
    for (block, next) in edges.iter().enumerate() {
        for &following in next {
            back[following].push(block);
        }
    }
    back
}

/// The immediate dominators where the blocks are in the order of [`order`].
///
/// After "A Simple, Fast Dominance Algorithm", Cooper, Harvey and Kennedy.
fn dominators(edges: &[Vec<usize>], first: usize) -> Vec<Option<usize>> {
    let back = reversed(edges);
    let mut above: Vec<Option<usize>> = vec![None; edges.len()];
    above[first] = Some(first);
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..edges.len()).filter(|&block| block != first) {
            let mut known = back[block].iter().copied().filter(|&before| above[before].is_some());
            let Some(mut common) = known.next() else { continue };
            for mut other in known {
                while common != other {
                    // The later one goes up; the first block is its own dominator.
                    let later = if common > other { &mut common } else { &mut other };
                    let Some(up) = above[*later] else { break };
                    *later = up;
                }
            }
            if above[block] != Some(common) {
                above[block] = Some(common);
                changed = true;
            }
        }
    }
    above[first] = None;
    above
}

/// The same for blocks in any order, of which some may not be reached.
fn dominators_of_any(edges: &[Vec<usize>], first: usize) -> Vec<Option<usize>> {
    let order = order(edges, first);
    let mut position = vec![None; edges.len()];
    for (at, &block) in order.iter().enumerate() {
        position[block] = Some(at);
    }
    let ordered: Vec<Vec<usize>> = order
        .iter()
        .map(|&block| edges[block].iter().filter_map(|&next| position[next]).collect())
        .collect();
    let mut result = vec![None; edges.len()];
    for (at, above) in dominators(&ordered, 0).into_iter().enumerate() {
        result[order[at]] = above.map(|above| order[above]);
    }
    result
}

fn is_above(above: &[Option<usize>], other: usize, mut block: usize) -> bool {
    loop {
        if block == other {
            return true;
        }
        let Some(up) = above[block] else { return false };
        block = up;
    }
}

/// The same ways, in which what runs repeatedly has a single entry: from each other entry there are
/// blocks of its own until that one is reached. `None` if these are too many, or it takes too long.
fn with_single_entries(found: &[Block]) -> Option<Vec<Block>> {
    let most = MAX_BLOCKS.min(found.len().saturating_mul(8).max(64));
    let mut left = BLOCKS_LOOKED_AT;
    let mut blocks = found.to_vec();
    let mut waiting: Vec<Vec<usize>> = vec![(0..blocks.len()).collect()];
    while let Some(region) = waiting.pop() {
        // All blocks are looked at for each region, and for each cycle in it.
        left = left.checked_sub(blocks.len())?;
        let edges: Vec<Vec<usize>> = blocks.iter().map(|block| block.next.clone()).collect();
        for own in cycles(&edges, &region) {
            left = left.checked_sub(blocks.len())?;
            let mut inside = vec![false; blocks.len()];
            for &at in &own {
                inside[at] = true;
            }
            let outside = blocks.iter().zip(&inside).filter(|(_, inside)| !**inside);
            let next = outside.flat_map(|(block, _)| &block.next).copied();
            let mut entries: Vec<usize> = next.chain([0]).filter(|&at| inside[at]).collect();
            entries.sort_unstable();
            entries.dedup();
            let Some((&head, others)) = entries.split_first() else { continue };
            let rest: Vec<usize> = own.into_iter().filter(|&at| at != head).collect();
            if !others.is_empty() {
                let copies: HashMap<usize, usize> =
                    rest.iter().copied().zip(blocks.len()..).collect();
                let copy = |next: &mut usize| *next = copies.get(next).copied().unwrap_or(*next);
                for (at, block) in blocks.iter_mut().enumerate() {
                    if !inside.get(at).copied().unwrap_or(false) {
                        block.next.iter_mut().for_each(copy);
                    }
                }
                for &at in &rest {
                    let mut block = blocks[at].clone();
                    block.next.iter_mut().for_each(copy);
                    blocks.push(block);
                }
                if blocks.len() > most {
                    return None;
                }
                waiting.push(rest.iter().map(|at| copies[at]).collect());
            }
            waiting.push(rest);
        }
    }
    Some(blocks)
}

/// The largest sets of several blocks of the region in which each leads to each other one.
fn cycles(edges: &[Vec<usize>], region: &[usize]) -> Vec<Vec<usize>> {
    let mut inside = vec![false; edges.len()];
    for &at in region {
        inside[at] = true;
    }
    let mut seen = vec![false; edges.len()];
    let mut done = Vec::new();
    for &first in region {
        let mut way = if seen[first] { Vec::new() } else { vec![(first, 0)] };
        seen[first] = true;
        while let Some((block, next)) = way.last_mut() {
            match edges[*block].get(*next) {
                Some(&following) => {
                    *next += 1;
                    if inside[following] && !seen[following] {
                        seen[following] = true;
                        way.push((following, 0));
                    }
                }
                None => {
                    done.push(*block);
                    way.pop();
                }
            }
        }
    }
    let back = reversed(edges);
    let mut taken = vec![false; edges.len()];
    let mut found = Vec::new();
    for first in done.into_iter().rev() {
        let mut own = Vec::new();
        let mut waiting = vec![first];
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut taken[at], true) {
                own.push(at);
                waiting.extend(back[at].iter().filter(|&&before| inside[before]));
            }
        }
        if own.len() > 1 {
            found.push(own);
        }
    }
    found
}

/// The loops, and whether there are cycles that are none.
fn loops(edges: &[Vec<usize>], above: &[Option<usize>]) -> (Vec<Loop>, bool) {
    let back = reversed(edges);
    let mut loops = Vec::new();
    let mut irreducible = false;
    for (head, before) in back.iter().enumerate() {
        let mut inside = vec![false; edges.len()];
        let mut waiting = Vec::new();
        // In their order only an edge that closes a cycle goes back.
        for &last in before.iter().filter(|&&last| last >= head) {
            if is_above(above, head, last) {
                waiting.push(last);
            } else {
                irreducible = true;
            }
        }
        if waiting.is_empty() {
            continue;
        }
        inside[head] = true;
        while let Some(block) = waiting.pop() {
            if !inside[block] {
                inside[block] = true;
                waiting.extend(&back[block]);
            }
        }
        loops.push(Loop { head, blocks: (0..edges.len()).filter(|&at| inside[at]).collect() });
    }
    (loops, irreducible)
}
