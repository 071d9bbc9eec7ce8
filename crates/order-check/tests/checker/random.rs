//! Random programs: the checker and the slow reference say the same. `ORDER_CHECK_SEED` runs one
//! seed, and prints its program; `ORDER_CHECK_PROGRAMS` says how many are run.

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use crate::common::reference::{Expected, Reference};
use crate::common::{Do, Random, Step, apply, lines};
use cuda_order_check_engine::{
    Access, AccessKind, By, Cell, Checker, Compare, ContextId, EventId, FunctionId, GraphId,
    HostOrder, Node, NodeWork, Options, StreamId, StreamKind, Stride, ThreadId, Warnings, What,
};

/// What random programs are made of: few things, so that they meet.
struct Writer {
    random: Random,
    steps: Vec<Step>,
    threads: u64,
    streams: u64,
    contexts: u64,
    /// Host functions that were submitted, and whether they have begun.
    functions: BTreeMap<u64, bool>,
    /// Streams in which a capture began.
    captures: BTreeSet<u64>,
    /// Whether many streams are destroyed and created.
    streams_go: bool,
}

const MEMORY: u64 = 16;
const EVENTS: u64 = 3;

impl Writer {
    fn access(&mut self) -> Access {
        let (start, len) = (self.random.below(MEMORY), self.random.below(5));
        let kind = match self.random.below(16) {
            0..8 => AccessKind::Write,
            8..14 => AccessKind::Read,
            14 => AccessKind::Free,
            _ => AccessKind::Allocate,
        };
        // The same bytes as a whole, again and again.
        if self.random.chance(5) {
            return Access::read(0, MEMORY);
        }
        if self.random.chance(4) {
            let width = 1 + self.random.below(2);
            let stride = Stride { width, pitch: width + 1 + self.random.below(3) };
            let rows =
                self.random.below(8).min((MEMORY - start).saturating_sub(width) / stride.pitch + 1);
            return Access::new(kind, start, 0).rows(rows, stride);
        }
        Access::new(kind, start, len.min(MEMORY - start))
    }

    fn accesses(&mut self) -> Vec<Access> {
        (0..=self.random.below(2)).map(|_| self.access()).collect()
    }

    fn cell(&mut self) -> Cell {
        Cell { address: 8 + 4 * self.random.below(2), bytes: 4 }
    }

    fn compare(&mut self) -> Compare {
        match self.random.below(6) {
            0..3 => Compare::GreaterOrEqual,
            3 => Compare::Equal,
            4 => Compare::And,
            _ => Compare::Nor,
        }
    }

    fn stream(&mut self) -> u64 {
        self.random.below(self.streams)
    }

    fn event(&mut self) -> u64 {
        self.random.below(EVENTS)
    }

    fn what(&mut self) -> What {
        match self.random.below(4) {
            0 | 1 => What::Stream(StreamId(self.stream())),
            2 => What::Event(EventId(self.event())),
            _ => What::Context(ContextId(self.random.below(self.contexts))),
        }
    }

    fn nodes(&mut self) -> Vec<Node> {
        (0..self.random.below(5) as usize)
            .map(|index| {
                let work = match self.random.below(9) {
                    0 => NodeWork::Record(EventId(self.event())),
                    1 => NodeWork::Wait(EventId(self.event())),
                    2 => NodeWork::WriteValue(self.cell(), 1 + self.random.below(3)),
                    3 if self.random.chance(3) => {
                        NodeWork::WaitValue(self.cell(), 1 + self.random.below(3), self.compare())
                    }
                    4 => NodeWork::Child(GraphId(self.random.below(2))),
                    _ => NodeWork::Work(self.accesses()),
                };
                let after = (0..index).filter(|_| self.random.chance(2)).collect();
                Node { work, after }
            })
            .collect()
    }

    fn by(&mut self) -> By {
        By::Thread(ThreadId(self.random.below(self.threads)))
    }

    fn push(&mut self, by: By, does: Do) {
        self.steps.push(Step { by, does });
    }

    /// What comes to its end before a thread waits: a real driver would not return otherwise.
    fn finish_functions(&mut self) {
        for (function, begun) in std::mem::take(&mut self.functions) {
            let by = By::Function(FunctionId(function));
            if !begun {
                self.push(by, Do::Begin(function));
            }
            self.push(by, Do::End(function));
        }
    }

    fn write(seed: u64) -> (HostOrder, Vec<Step>) {
        let mut random = Random(seed);
        let order = if random.chance(2) { HostOrder::Reported } else { HostOrder::Submission };
        let threads = 1 + random.below(3);
        let (streams, contexts) = (1 + random.below(4), 1 + random.below(2));
        let (functions, captures) = (BTreeMap::new(), BTreeSet::new());
        let mut writer = Self {
            random,
            steps: Vec::new(),
            threads,
            streams,
            contexts,
            functions,
            captures,
            streams_go: false,
        };
        for stream in 0..streams {
            let kind = match writer.random.below(5) {
                // One legacy default stream in each context.
                0 if !writer
                    .steps
                    .iter()
                    .any(|step| matches!(step.does, Do::Create(_, _, StreamKind::Legacy))) =>
                {
                    StreamKind::Legacy
                }
                1 => StreamKind::NonBlocking,
                _ => StreamKind::Blocking,
            };
            let context = writer.random.below(contexts);
            writer.push(By::Thread(ThreadId(0)), Do::Create(stream, context, kind));
        }
        // Whether it has more than streams and events.
        let (values, graphs, rare) =
            (writer.random.chance(2), writer.random.chance(3), writer.random.chance(2));
        let functions = writer.random.chance(3);
        writer.streams_go = writer.random.chance(4);
        let len = 4 + writer.random.below(26);
        for _ in 0..len {
            writer.any(values, graphs, rare, functions);
        }
        (order, writer.steps)
    }

    fn any(&mut self, values: bool, graphs: bool, rare: bool, functions: bool) {
        let by = self.by();
        let (stream, event) = (self.stream(), self.event());
        if self.streams_go && self.captures.is_empty() && self.random.chance(4) {
            let kind = [StreamKind::Blocking, StreamKind::NonBlocking];
            let kind = kind[self.random.below(2) as usize];
            let context = self.random.below(self.contexts);
            self.push(by, Do::Destroy(stream));
            self.push(by, Do::Create(stream, context, kind));
            return;
        }
        let does = match self.random.below(40) {
            0..9 => Do::Work(stream, self.accesses()),
            9..13 => Do::Record(event, stream),
            13..17 => Do::Wait(stream, event),
            17..19 => Do::Host(self.accesses()),
            19..21 => {
                self.finish_functions();
                Do::Sync(self.what())
            }
            21 => {
                let done = self.random.chance(2);
                if done {
                    self.finish_functions();
                }
                Do::Query(self.what(), done)
            }
            22 => match self.random.below(2) {
                0 => Do::HandOver(self.random.below(2)),
                _ => Do::TakeOver(self.random.below(2)),
            },
            23..25 if values => Do::Write(stream, self.cell(), 1 + self.random.below(3)),
            25..27 if values => {
                Do::WaitValue(stream, self.cell(), 1 + self.random.below(3), self.compare())
            }
            27 if values => match self.random.below(2) {
                0 => Do::HostWrite(self.cell(), 1 + self.random.below(3)),
                _ => Do::HostSaw(self.cell(), 1 + self.random.below(3)),
            },
            28..30 if graphs => Do::Launch(stream, self.random.below(2)),
            30 if graphs => match self.random.below(3) {
                0 => Do::Copy(self.random.below(2), self.random.below(2)),
                _ => Do::Define(self.random.below(2), self.nodes()),
            },
            31 if graphs => {
                if self.captures.remove(&stream) {
                    Do::EndCapture(stream, self.random.below(2))
                } else if self.captures.is_empty() {
                    self.captures.insert(stream);
                    Do::Capture(stream)
                } else {
                    Do::RecordExternal(event, stream)
                }
            }
            32 if graphs => match self.random.below(2) {
                0 => Do::RecordExternal(event, stream),
                _ => Do::WaitExternal(stream, event),
            },
            33 if functions => {
                let function = self.steps.len() as u64;
                // In a capture it has no number.
                let function = self.captures.is_empty().then_some(function);
                if let Some(function) = function {
                    self.functions.insert(function, false);
                }
                Do::Function(stream, function, self.accesses())
            }
            34 if functions => {
                // One at a time, in the order of their submission: a later one may wait for an
                // earlier one.
                let Some((function, begun)) =
                    self.functions.first_key_value().map(|(&number, &begun)| (number, begun))
                else {
                    return;
                };
                let by = By::Function(FunctionId(function));
                let does = if begun && self.random.chance(3) {
                    self.functions.remove(&function);
                    Do::End(function)
                } else if begun {
                    match self.random.below(6) {
                        0 => Do::Record(event, stream),
                        1 => Do::TakeOver(self.random.below(2)),
                        2 => Do::HandOver(self.random.below(2)),
                        3 => Do::Work(stream, self.accesses()),
                        _ => Do::Host(self.accesses()),
                    }
                } else {
                    self.functions.insert(function, true);
                    Do::Begin(function)
                };
                self.push(by, does);
                return;
            }
            35..40 if rare => match self.random.below(10) {
                9 => Do::ContextShares(self.random.below(self.contexts), stream),
                0 => Do::ContextRecord(self.random.below(self.contexts), event),
                1 => Do::ContextWait(self.random.below(self.contexts), event),
                2 if !self.captures.contains(&stream) => Do::Destroy(stream),
                3 => Do::EventDestroy(event),
                4 => Do::Start(self.random.below(self.threads)),
                5 => Do::Join(self.random.below(self.threads)),
                6 => Do::EndThread,
                7 if self.captures.is_empty() => {
                    Do::Create(stream, self.random.below(self.contexts), StreamKind::Blocking)
                }
                8 if self.captures.is_empty() => {
                    Do::ContextDestroy(self.random.below(self.contexts))
                }
                _ => return,
            },
            _ => return,
        };
        self.push(by, does);
    }
}

/// What the checker reports for each pair of lines.
fn checked(
    order: HostOrder,
    retire_every: usize,
    steps: &[Step],
) -> BTreeMap<(usize, usize), BTreeSet<u64>> {
    // What is reported does not depend on the warnings.
    let warnings = if retire_every == 3 { Warnings::all() } else { Warnings::default() };
    let mut checker = Checker::new(
        Options::new().host_order(order).retire_every(retire_every).warnings(warnings),
    );
    for (line, step) in steps.iter().enumerate() {
        apply(&mut checker, line + 1, step);
    }
    let mut found = BTreeMap::new();
    for finding in checker.take_findings() {
        let Some(pair) = lines(&finding) else { continue };
        assert!(!finding.to_string().is_empty());
        let shared = finding.report().unwrap().shared.iter().cloned().flatten().collect();
        assert!(found.insert(pair, shared).is_none(), "reported twice: {finding}");
    }
    found
}

fn expected(order: HostOrder, steps: &[Step]) -> Expected {
    let mut reference = Reference::new(order);
    for (line, step) in steps.iter().enumerate() {
        reference.step(line + 1, step);
    }
    reference.into_expected()
}

/// How many pairs both find, or where the two differ.
fn compare(order: HostOrder, retire_every: usize, steps: &[Step]) -> Result<usize, String> {
    let (found, expected) = (checked(order, retire_every, steps), expected(order, steps));
    let missed: Vec<_> = expected.keys().filter(|pair| !found.contains_key(pair)).collect();
    let false_ones: Vec<_> = found.keys().filter(|pair| !expected.contains_key(pair)).collect();
    if !missed.is_empty() || !false_ones.is_empty() {
        return Err(format!("not reported: {missed:?}; reported without a reason: {false_ones:?}"));
    }
    for (pair, bytes) in &found {
        if let Some(Some(certain)) = expected.get(pair)
            && certain != bytes
        {
            return Err(format!("{pair:?} share {certain:?}, and {bytes:?} are reported"));
        }
    }
    Ok(found.len())
}

fn compared(order: HostOrder, retire_every: usize, steps: &[Step]) -> Result<usize, String> {
    let attempt = std::panic::catch_unwind(|| compare(order, retire_every, steps));
    attempt.unwrap_or_else(|_| Err("a panic".to_owned()))
}

/// The same failure with as few steps as can be.
fn minimised(order: HostOrder, retire_every: usize, mut steps: Vec<Step>) -> Vec<Step> {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut changed = true;
    while changed {
        changed = false;
        for index in (0..steps.len()).rev() {
            let mut fewer = steps.clone();
            fewer.remove(index);
            if compared(order, retire_every, &fewer).is_err_and(|how| how != "a panic") {
                (steps, changed) = (fewer, true);
            }
        }
    }
    std::panic::set_hook(quiet);
    steps
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn the_checker_and_the_slow_reference_agree() {
    let programs = number("ORDER_CHECK_PROGRAMS").unwrap_or(400);
    let seeds = number("ORDER_CHECK_SEED").map_or(0..programs, |seed| seed..seed + 1);
    let (mut racy, mut pairs, mut steps_in_all) = (0, 0, 0);
    for seed in seeds.clone() {
        let (order, steps) = Writer::write(seed);
        // Forgetting early finds the same.
        let retire_every = [1, 3, 1 << 30][seed as usize % 3];
        let found = match compared(order, retire_every, &steps) {
            Ok(found) => found,
            Err(how) => {
                let fewer = minimised(order, retire_every, steps.clone());
                let fewer_how = compared(order, retire_every, &fewer).err().unwrap_or_default();
                let text = (1..)
                    .zip(&fewer)
                    .map(|(line, step)| format!("{line:3} {:?}: {:?}\n", step.by, step.does));
                panic!(
                    "seed {seed}, {order:?}, forgetting every {retire_every}: {how}\nWith {} steps \
                        of {}: {fewer_how}\n{}",
                    fewer.len(),
                    steps.len(),
                    text.collect::<String>()
                );
            }
        };
        racy += u64::from(found > 0);
        pairs += found;
        steps_in_all += steps.len();
    }
    println!("{steps_in_all} steps, {racy} programs with {pairs} pairs");
    // Programs that are all right and programs that are all wrong would tell little.
    let count = seeds.end - seeds.start;
    assert!(
        count < 1000 || (racy > count / 4 && racy < count * 9 / 10),
        "{racy} of {count} have a missing order"
    );
}
