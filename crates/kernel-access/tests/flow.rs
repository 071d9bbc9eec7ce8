//! The ways through code: what they are, and that dominators and loops are what their names say.

use std::collections::BTreeMap;

use cuda_kernel_access::decode::{INSTRUCTION, decode};
use cuda_kernel_access::flow::{self, Graph, NoGraph, Targets};

/// Instructions of `sm_80`. Targets are numbers of instructions.
#[derive(Clone, Copy)]
enum One {
    Nop,
    /// With a condition or without.
    Branch(bool, i64),
    Exit(bool),
    /// The barrier, and where its threads meet.
    Set(u8, i64),
    Meet(u8),
    /// With a condition.
    MaybeMeet(u8),
    /// To a register from a number, without threads after that, and back; and a register is written.
    Save(u8, u8),
    Restore(u8, u8),
    Write(u8),
    Call(i64),
    Return,
    Indirect,
    /// With a condition.
    MaybeIndirect,
    Unknown,
}

fn code(program: &[One]) -> Vec<u8> {
    const ALWAYS: u128 = 7 << 12;
    const TRUE: u128 = 7 << 87;
    let distance = |at: usize, to: i64| ((to - at as i64 - 1) * INSTRUCTION as i64 / 4) as u128;
    let far = |at, to| (distance(at, to) & ((1 << 48) - 1)) << 34;
    let near = |at, to| (distance(at, to) & ((1 << 30) - 1)) << 34;
    let guard = |conditional: bool| if conditional { 0 } else { ALWAYS };
    let word = |(at, one): (usize, &One)| match *one {
        One::Nop => 0x918 | ALWAYS,
        One::Branch(conditional, to) => 0x947 | guard(conditional) | far(at, to) | TRUE,
        One::Exit(conditional) => 0x94d | guard(conditional) | TRUE,
        One::Set(number, to) => 0x945 | ALWAYS | u128::from(number) << 16 | near(at, to),
        One::Meet(number) => 0x941 | ALWAYS | u128::from(number) << 16,
        One::MaybeMeet(number) => 0x941 | u128::from(number) << 16,
        One::Save(register, number) => {
            0x355 | ALWAYS | u128::from(register) << 16 | u128::from(number) << 24 | 1 << 84
        }
        One::Restore(number, register) => {
            0x356 | ALWAYS | u128::from(number) << 24 | u128::from(register) << 32
        }
        One::Write(register) => 0x202 | ALWAYS | u128::from(register) << 16 | 0xf << 72,
        One::Call(to) => 0x944 | ALWAYS | far(at, to),
        One::Return => 0x950 | ALWAYS,
        One::Indirect => 0x949 | ALWAYS,
        One::MaybeIndirect => 0x949,
        One::Unknown => 0x1ff | ALWAYS,
    };
    program.iter().enumerate().map(word).flat_map(u128::to_le_bytes).collect()
}

fn graph(program: &[One]) -> Result<Graph, NoGraph> {
    Graph::new(&decode(80, &code(program)).expect("whole instructions"))
}

/// The instructions of each block, and what follows it.
fn shape(graph: &Graph) -> Vec<(usize, usize, Vec<usize>)> {
    let of = |block: &cuda_kernel_access::flow::Block| {
        (block.instructions.start, block.instructions.end, block.next.clone())
    };
    graph.blocks.iter().map(of).collect()
}

/// The blocks that can be reached without taking `without`.
fn reached(edges: &[Vec<usize>], first: usize, without: Option<usize>) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut waiting = vec![first];
    while let Some(block) = waiting.pop() {
        if Some(block) != without && !seen[block] {
            seen[block] = true;
            waiting.extend(&edges[block]);
        }
    }
    seen
}

#[test]
fn a_guarded_loop_has_a_head_and_meets_after_it() {
    use One::{Branch, Exit, Meet, Nop, Set};
    // 0: an exit; 1: the place to meet; 2: around the loop; 3..5: the loop; 5: meets; 6: the end.
    let program =
        [Exit(true), Set(0, 6), Branch(true, 5), Nop, Branch(true, 3), Meet(0), Exit(false)];
    let graph = graph(&program).expect("a graph");
    let shape = shape(&graph);
    assert_eq!(shape[0], (0, 1, vec![1]));
    let at = |start| shape.iter().position(|block| block.0 == start).expect("a block");
    assert_eq!(graph.loops.len(), 1);
    assert_eq!(graph.loops[0].head, at(3));
    assert_eq!(graph.loops[0].blocks, [at(3)]);
    assert_eq!(shape[at(3)].2, [at(5), at(3)]);
    assert_eq!(graph.post_dominators[at(1)], Some(at(5)));
    assert_eq!(graph.dominators[at(5)], Some(at(1)));
    assert!(graph.dominates(at(1), at(6)) && !graph.dominates(at(3), at(5)));
    // A thread that takes the conditional end comes to no block after it.
    assert!(graph.blocks[0].ends && !graph.blocks[at(5)].ends);
    assert_eq!(graph.post_dominators[0], None);
    assert!(!graph.irreducible);
}

#[test]
fn threads_meet_where_they_were_told() {
    use One::{Branch, Exit, Meet, Nop, Set};
    // Both arms meet, and go on at 5, not after the first of them.
    let program = [Set(3, 5), Branch(true, 4), Meet(3), Nop, Meet(3), Exit(false)];
    let graph = graph(&program).expect("a graph");
    let starts: Vec<_> = shape(&graph).iter().map(|block| block.0).collect();
    assert!(!starts.contains(&3), "{starts:?}");
    assert_eq!(shape(&graph).len(), 4);
}

/// On a condition a thread meets the others, or goes on, and meets them later.
#[test]
fn threads_may_meet_on_a_condition() {
    use One::{Exit, MaybeMeet, Meet, Nop, Set};
    let program = [Set(3, 5), MaybeMeet(3), Nop, Meet(3), Nop, Exit(false)];
    let graph = graph(&program).expect("a graph");
    let expected = [(0, 2, vec![1, 2]), (2, 4, vec![2]), (5, 6, vec![])];
    assert_eq!(shape(&graph), expected);
    assert_eq!(graph.post_dominators[0], Some(2));
    assert!(!graph.blocks[0].ends);
}

/// A function that lets its own threads meet by a number keeps what the number was.
#[test]
fn saved_places_to_meet_come_back() {
    use One::{Branch, Call, Exit, Meet, Nop, Restore, Return, Save, Set, Write};
    let program = [
        Set(0, 4),
        Call(5),
        Branch(true, 3),
        Meet(0),
        Exit(false),
        Save(9, 0),
        Set(0, 9),
        Branch(true, 8),
        Meet(0),
        Restore(0, 9),
        Return,
    ];
    let graph = graph(&program).expect("a graph");
    let shape = shape(&graph);
    let last = shape.iter().find(|block| block.0 == 3).expect("the caller's place");
    assert_eq!(shape[last.2[0]].0, 4);
    // Not if the number is used in between, or the register, or nothing was saved.
    let of = |program: &[One]| self::graph(program);
    assert_eq!(of(&[Set(0, 3), Save(9, 0), Meet(0), Exit(false)]), Err(NoGraph::Convergence(32)));
    let program = [Set(0, 5), Save(9, 0), Write(9), Restore(0, 9), Meet(0), Exit(false)];
    assert_eq!(of(&program), Err(NoGraph::Convergence(64)));
    let program = [Set(0, 5), Save(9, 0), Write(8), Restore(0, 9), Meet(0), Exit(false)];
    assert!(of(&program).is_ok());
    assert_eq!(of(&[Set(0, 3), Restore(0, 9), Meet(0), Nop]), Err(NoGraph::Convergence(32)));
}

#[test]
fn each_call_returns_to_its_own_place() {
    use One::{Call, Exit, Nop, Return};
    let program = [Call(3), Call(3), Exit(false), Nop, Return];
    let graph = graph(&program).expect("a graph");
    let shape = shape(&graph);
    let expected: [(usize, usize); 5] = [(0, 1), (3, 5), (1, 2), (3, 5), (2, 3)];
    assert_eq!(shape.iter().map(|block| (block.0, block.1)).collect::<Vec<_>>(), expected);
    assert!(graph.loops.is_empty());
}

#[test]
fn a_way_that_is_not_known_is_an_error() {
    use One::{Branch, Call, Exit, Indirect, Meet, Nop, Unknown};
    assert_eq!(graph(&[Nop, Unknown, Exit(false)]), Err(NoGraph::Instruction(16)));
    assert_eq!(graph(&[Nop, Indirect]), Err(NoGraph::Indirect(16)));
    assert_eq!(graph(&[Call(9), Exit(false)]), Err(NoGraph::Call(0)));
    assert_eq!(graph(&[Call(0), Exit(false)]), Err(NoGraph::Recursion(0)));
    assert_eq!(graph(&[Meet(1), Exit(false)]), Err(NoGraph::Convergence(0)));
    assert_eq!(graph(&[Branch(false, 9)]), Err(NoGraph::Outside(144)));
    assert_eq!(graph(&[Branch(true, -1), Exit(false)]), Err(NoGraph::Outside(-16)));
    // Past the end, by falling or because the last end has a condition.
    assert_eq!(graph(&[Nop]), Err(NoGraph::Outside(16)));
    assert_eq!(graph(&[Exit(true)]), Err(NoGraph::Outside(16)));
    assert_eq!(graph(&[]), Err(NoGraph::Outside(0)));
    // What is never reached does not matter.
    assert!(graph(&[Exit(false), Unknown, Indirect, Branch(false, 99)]).is_ok());
}

#[test]
fn a_branch_to_a_computed_place_goes_to_each_that_is_named() {
    use One::{Branch, Exit, Indirect, MaybeIndirect, Nop};
    let of = |program: &[One], targets: &[(usize, &[u32])]| {
        let targets: Targets = targets.iter().map(|(at, all)| (*at, all.to_vec())).collect();
        Graph::with_targets(&decode(80, &code(program)).expect("whole instructions"), &targets)
    };
    let program = [Nop, Indirect, Nop, Branch(false, 5), Nop, Exit(false)];
    let graph = of(&program, &[(16, &[32, 64, 80, 32])]).expect("a graph");
    assert_eq!(
        shape(&graph),
        [(0, 2, vec![2, 1, 3]), (4, 5, vec![3]), (2, 4, vec![3]), (5, 6, vec![])]
            .map(|(from, to, next)| (from, to, next))
    );
    assert_eq!(graph.post_dominators[0], Some(3));
    // On a condition it may also go on, which is the first way.
    let program = [MaybeIndirect, Exit(false), Nop, Exit(false)];
    let graph = of(&program, &[(0, &[32])]).expect("a graph");
    let first = &graph.blocks[0].next;
    let begins: Vec<usize> = first.iter().map(|&at| graph.blocks[at].instructions.start).collect();
    assert_eq!(begins, [1, 2]);
    assert!(!graph.blocks[0].ends);
    // Back, it makes a loop.
    let graph = of(&[Nop, Indirect, Exit(false)], &[(16, &[0, 32])]).expect("a graph");
    assert_eq!(graph.loops.len(), 1);
    // What the image says of other branches, says nothing, or names no instruction.
    let program = [Indirect, Exit(false)];
    assert_eq!(of(&program, &[(16, &[16])]), Err(NoGraph::Indirect(0)));
    assert_eq!(of(&program, &[(0, &[])]), Err(NoGraph::Indirect(0)));
    assert_eq!(of(&program, &[(0, &[16, 32])]), Err(NoGraph::Outside(32)));
    assert_eq!(of(&program, &[(0, &[8])]), Err(NoGraph::Outside(8)));
}

/// From the second entry there are blocks of its own, until the first one is reached.
#[test]
fn a_cycle_with_two_entries_becomes_a_loop_with_one() {
    use One::{Branch, Exit, Nop};
    let program = [Branch(true, 2), Nop, Nop, Branch(true, 1), Exit(false)];
    let graph = graph(&program).expect("a graph");
    let shape = shape(&graph);
    let second: Vec<usize> = (0..shape.len()).filter(|&at| shape[at].0 == 2).collect();
    let first = shape.iter().position(|block| block.0 == 1).expect("a block");
    assert_eq!((shape.len(), second.len(), graph.irreducible), (5, 2, false), "{graph:?}");
    let loops: Vec<_> = graph.loops.iter().map(|one| (one.head, one.blocks.len())).collect();
    assert_eq!(loops, [(first, 2)]);
    // Both go back to the one head, and to the end.
    assert!(second.iter().all(|&at| shape[at].2[1] == first && shape[at].2[0] != first));
    assert!(shape[0].2.contains(&first) && !shape[first].2.contains(&shape[0].2[1]));
}

/// So many that all of them would take minutes are left as they are.
#[test]
fn cycles_with_two_entries_are_looked_for_in_bounded_time() {
    use One::{Branch, Exit, Nop};
    let irreducible = |count: i64| {
        let cycle = |at: i64| [Branch(true, at + 2), Nop, Nop, Branch(true, at + 1)];
        let mut program: Vec<One> = (0..count).flat_map(|one| cycle(4 * one)).collect();
        program.push(Exit(false));
        let graph = graph(&program).expect("a graph");
        assert!(graph.blocks.len() < flow::MAX_BLOCKS);
        graph.irreducible
    };
    assert_eq!([200, 700].map(irreducible), [false, true]);
}

/// Of random programs: each relation is compared with its definition.
#[test]
fn dominators_and_loops_are_what_they_are_by_definition() {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut with_loops, mut copied, mut endless) = (0, 0, 0);
    for _ in 0..4000 {
        let length = 3 + random(12);
        let mut program: Vec<One> = (0..length)
            .map(|_| match random(8) {
                0..3 => One::Branch(true, random(length + 1) as i64),
                3 => One::Branch(false, random(length + 1) as i64),
                4 => One::Exit(true),
                _ => One::Nop,
            })
            .collect();
        program.push(One::Exit(false));
        let graph = graph(&program).expect("a graph");
        let count = graph.blocks.len();
        let mut edges: Vec<Vec<usize>> = graph.blocks.iter().map(|one| one.next.clone()).collect();
        assert!(reached(&edges, 0, None).iter().all(|&reached| reached));
        let mut dominates = vec![vec![false; count]; count];
        for (other, row) in dominates.iter_mut().enumerate() {
            let without = reached(&edges, 0, Some(other));
            for (block, dominates) in row.iter_mut().enumerate() {
                *dominates = !without[block];
                assert_eq!(graph.dominates(other, block), *dominates, "{:?}", shape(&graph));
            }
        }
        let closing: Vec<(usize, usize)> = edges
            .iter()
            .enumerate()
            .flat_map(|(from, next)| next.iter().map(move |&to| (from, to)))
            .filter(|&(from, to)| dominates[to][from])
            .collect();
        for one in &graph.loops {
            for (block, from_head) in dominates[one.head].iter().enumerate() {
                // It reaches an edge back to the head without taking the head.
                let to_last = closing.iter().any(|&(last, head)| {
                    head == one.head && reached(&edges, block, Some(head))[last]
                });
                let inside = block == one.head || to_last && *from_head;
                assert_eq!(one.blocks.contains(&block), inside, "{:?}", shape(&graph));
            }
        }
        let heads: Vec<usize> = graph.loops.iter().map(|one| one.head).collect();
        assert!((0..count).all(|b| heads.contains(&b) == closing.iter().any(|edge| edge.1 == b)));
        // Without the edges that close loops, what still runs repeatedly is irreducible.
        let mut open = edges.clone();
        for &(from, to) in &closing {
            open[from].retain(|&next| next != to);
        }
        let cycle = (0..count).any(|b| open[b].iter().any(|&next| reached(&open, next, None)[b]));
        assert!(!graph.irreducible && !cycle, "{:?}", shape(&graph));
        // All ends meet in one more block, for the definition only.
        edges.push(Vec::new());
        for (next, block) in edges.iter_mut().zip(&graph.blocks) {
            assert!(!next.is_empty() || block.ends, "{:?}", shape(&graph));
            if block.ends {
                next.push(count);
            }
        }
        for block in 0..count {
            let mut after: Vec<usize> = (0..count)
                .filter(|&other| other != block && !reached(&edges, block, Some(other))[count])
                .collect();
            let ends = reached(&edges, block, None)[count];
            if !ends {
                after.clear();
            }
            // The first of them is the one that all the others come after.
            let first = after.iter().copied().find(|&first| {
                after
                    .iter()
                    .all(|&other| other == first || !reached(&edges, first, Some(other))[count])
            });
            assert_eq!(graph.post_dominators[block], first, "{block} {:?}", shape(&graph));
            endless += u32::from(!ends);
        }
        with_loops += u32::from(!graph.loops.is_empty());
        // Blocks that begin at the same place go to the same places.
        let starts =
            |of: &[usize]| of.iter().map(|&at| graph.blocks[at].instructions.start).collect();
        let mut ways: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for block in &graph.blocks {
            let next: Vec<usize> = starts(&block.next);
            let known = ways.entry(block.instructions.start).or_insert_with(|| next.clone());
            assert_eq!(known, &next, "{:?}", shape(&graph));
        }
        copied += u32::from(ways.len() < count);
    }
    assert!(with_loops > 500 && copied > 50 && endless > 50, "{with_loops} {copied} {endless}");
}

/// Compiled code: a loop over the elements, a function with a place to return to, and one without.
#[test]
fn compiled_kernels_have_the_loops_of_their_source() {
    for line in include_str!("kernels.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.split(' ');
        let mut part = || parts.next().expect("three parts");
        let (architecture, name, text) = (part().parse().expect("a number"), part(), part());
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte");
        let code: Vec<u8> = (0..text.len()).step_by(2).map(byte).collect();
        let graph = Graph::new(&decode(architecture, &code).expect("known")).expect("a graph");
        let loops = usize::from(name == "many_tensors");
        assert_eq!(graph.loops.len(), loops, "{name} sm_{architecture} {:?}", shape(&graph));
        assert!(!graph.irreducible);
        // What does not end is behind the last end, and is not reached.
        assert!(graph.blocks.iter().any(|block| block.next.is_empty()), "{name} sm_{architecture}");
    }
}
