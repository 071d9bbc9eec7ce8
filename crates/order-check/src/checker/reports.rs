//! What was found, each pair of places once, and what reports say of calls that were not accesses.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::agent::{Agent, StreamName, Who};
use crate::checker::options::Warnings;
use crate::frames::outline;
use crate::map::Map;
use crate::op::{Backtrace, Call, EventId, Location, StreamId};
use crate::report::{Finding, Warning};
use crate::shadow::Origin;

/// The maximum of distinct pairs of places with findings.
const PLACES: usize = 1 << 16;
/// The maximum of backtraces whose places are kept.
const PATHS: usize = 1 << 14;
/// How often the text of backtraces is made for races of two functions in two streams or threads.
const TRACES: u32 = 64;
/// How many pairs are found again without their texts.
const SEEN: usize = 32;
/// The maximum of records and waits that are kept.
const MARKS: usize = 128;
/// The maximum of failed calls that are kept.
const FAILED: usize = 64;
/// The maximum of waits of a stream for something unknown that are kept.
const UNKNOWN: usize = 3;

/// The place of a report: a source line, otherwise a backtrace, otherwise a function and an agent.
type Place = (Cow<'static, str>, Result<Location, String>);

/// A side of a report: its call, and who does it.
pub(super) type At<'a> = (&'a Call, &'a Agent);

/// A side of a pair that was found before, by what its place is made of.
#[derive(Debug)]
struct Sight {
    name: Cow<'static, str>,
    path: Option<u64>,
    agent: Agent,
    given: Option<Arc<str>>,
}

fn same<T: ?Sized>(one: &Arc<T>, other: &Arc<T>) -> bool {
    Arc::ptr_eq(one, other)
}

impl Sight {
    /// `None` if only the text of a backtrace gives the place of the call.
    fn new((call, agent): At<'_>) -> Option<Self> {
        let path = Self::path(call)?;
        let given = agent.stream_name();
        Some(Self { name: call.name.clone(), path, agent: agent.clone(), given })
    }

    fn path(call: &Call) -> Option<Option<u64>> {
        match (&call.location, &call.backtrace) {
            (Some(_), _) => None,
            (None, None) => Some(None),
            (None, Some(trace)) => trace.path().map(Some),
        }
    }

    /// Whether another side surely has the same place. If its stream got a name in between, the
    /// place may be another one.
    fn is(&self, path: Option<u64>, (call, agent): At<'_>) -> bool {
        self.path == path
            && match (&self.agent.0, &agent.0) {
                (Who::Stream(one, part), Who::Stream(other, other_part)) => {
                    same(one, other) && part == other_part
                }
                (Who::Thread(one), Who::Thread(other)) => same(one, other),
                _ => false,
            }
            && self.name == call.name
            && match (&self.given, agent.stream_name()) {
                (Some(one), Some(other)) => same(one, &other),
                (one, other) => one.is_none() && other.is_none(),
            }
    }
}

/// A call that the driver refused, with its code.
#[derive(Debug)]
struct Failed {
    call: Arc<Call>,
    stream: Option<StreamId>,
    code: u32,
}

/// A record of an event in a stream, or a wait for it.
#[derive(Debug)]
struct Marked {
    call: Arc<Call>,
    stream: Arc<StreamName>,
    event: EventId,
    waits: bool,
}

#[derive(Debug, Default)]
pub(super) struct Reports {
    pub(super) warnings: Warnings,
    findings: Vec<Finding>,
    /// The pairs of places that were found: where their numbers are.
    reported: HashMap<(Place, Place), usize>,
    /// How often each pair was found.
    times: Vec<u64>,
    /// The pairs that were found last, by what their places are made of: a program that is wrong in
    /// a loop finds the same pairs again and again.
    seen: VecDeque<([Sight; 2], usize)>,
    warned: HashSet<(Place, Place)>,
    /// The places that backtraces stand for, by their paths.
    paths: HashMap<(u64, Place), Place>,
    /// For how many races of two functions in two streams or threads text was made.
    traced: HashMap<[Place; 2], u32>,
    /// Calls that would have made an order, and failed, the last ones.
    failed: VecDeque<Failed>,
    /// The last records and waits.
    marked: VecDeque<Marked>,
    /// Orders that are assumed: of what, after which call, and how often.
    assumed: BTreeMap<(&'static str, Cow<'static, str>), u64>,
    /// What may order a stream and is not known, with the number of the call that waited.
    unknown: Map<StreamId, VecDeque<(u64, String)>>,
}

impl Reports {
    pub(super) fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    #[inline]
    pub(super) fn has_some(&self) -> bool {
        !self.findings.is_empty()
    }

    pub(super) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// A call that would have made an order has failed.
    pub(super) fn failed(&mut self, call: Call, stream: Option<StreamId>, code: u32) {
        if self.failed.len() == FAILED {
            self.failed.pop_front();
        }
        self.failed.push_back(Failed { call: Arc::new(call), stream, code });
    }

    /// The last call between two accesses that would have ordered them, and that failed: a record or
    /// the like in the stream of the first one, a wait in that of the second one, or a wait of its
    /// thread.
    pub(super) fn failed_between(
        &self,
        first: &Origin,
        second: &Origin,
    ) -> Option<(Arc<Call>, u32)> {
        let in_turn = first.call.number < second.call.number;
        let [first, second] = if in_turn { [first, second] } else { [second, first] };
        let between = first.call.number..second.call.number;
        let orders = |failed: &&Failed| match failed.stream {
            None => failed.call.by == second.call.by,
            Some(id) if failed.call.name.contains("Wait") => second.agent.stream_id() == Some(id),
            Some(id) => first.agent.stream_id() == Some(id),
        };
        let mut all = self.failed.iter().rev().filter(orders);
        let found = all.find(|failed| between.contains(&failed.call.number))?;
        Some((found.call.clone(), found.code))
    }

    /// A stream records an event, or waits for it.
    pub(super) fn marks(
        &mut self,
        call: &Arc<Call>,
        stream: &Arc<StreamName>,
        event: EventId,
        waits: bool,
    ) {
        if self.marked.len() == MARKS {
            self.marked.pop_front();
        }
        let (call, stream) = (call.clone(), stream.clone());
        self.marked.push_back(Marked { call, stream, event, waits });
    }

    /// The record of an event in the first one's stream between the two calls, and a wait for it in a
    /// stream that is not the second one's.
    #[allow(clippy::type_complexity)]
    pub(super) fn recorded_between(
        &self,
        first: &Origin,
        second: &Origin,
    ) -> Option<(Arc<Call>, Option<(String, Arc<Call>)>)> {
        let in_turn = first.call.number < second.call.number;
        let [first, second] = if in_turn { [first, second] } else { [second, first] };
        let between = first.call.number + 1..second.call.number;
        let stream = first.agent.stream_id()?;
        let mut marked = self.marked.iter().filter(|mark| between.contains(&mark.call.number));
        let record = marked.find(|mark| !mark.waits && mark.stream.id == stream)?;
        let waits = |mark: &&Marked| {
            mark.waits
                && mark.event == record.event
                && Some(mark.stream.id) != second.agent.stream_id()
        };
        let wait = marked.find(waits).map(|wait| (wait.stream.to_string(), wait.call.clone()));
        Some((record.call.clone(), wait))
    }

    pub(super) fn assume(&mut self, what: &'static str, after: &Call) {
        *self.assumed.entry((what, after.name.clone())).or_default() += 1;
    }

    pub(super) fn assumed(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        self.assumed.iter().map(|((what, after), count)| (*what, &**after, *count))
    }

    /// A stream has waited for something that is not known.
    pub(super) fn waited_for_unknown(&mut self, stream: StreamId, number: u64, text: String) {
        let waits = self.unknown.entry(stream).or_default();
        if waits.len() == UNKNOWN {
            waits.pop_front();
        }
        waits.push_back((number, text));
    }

    /// What a stream has waited for up to a call, and is not known.
    pub(super) fn unknown_before(&self, stream: StreamId, number: u64) -> Vec<String> {
        let waits = self.unknown.get(&stream).into_iter().flatten();
        waits.filter(|wait| wait.0 <= number).map(|wait| wait.1.clone()).collect()
    }

    pub(super) fn stream_ends(&mut self, stream: StreamId) {
        self.unknown.remove(&stream);
    }

    /// Whether a problem of these two accesses is to be reported: it was not, at their places.
    pub(super) fn is_new(&mut self, sides: [At<'_>; 2]) -> bool {
        if self.again(sides) {
            return false;
        }
        let Some([one, two]) = self.places(sides) else { return false };
        self.once(one, two, sides)
    }

    /// Whether a problem at these two places was reported. Another one may be asked for later.
    pub(super) fn was_reported(&mut self, sides: [At<'_>; 2]) -> bool {
        if self.again(sides) {
            return true;
        }
        let Some([one, two]) = self.places(sides) else { return true };
        if let Some(at) = self.pair(&one, &two) {
            self.found(at, sides);
            return true;
        }
        self.reported.len() >= PLACES
    }

    /// How often a problem was found at these two places.
    pub(super) fn times(&mut self, sides: [At<'_>; 2]) -> u64 {
        let places = self.places(sides);
        let at = places.and_then(|[one, two]| self.pair(&one, &two));
        at.and_then(|at| self.times.get(at).copied()).unwrap_or(1)
    }

    /// The places of two calls. `None` once the text of too many of their backtraces was made: that
    /// takes long, and a program that is wrong in a loop comes here in each round.
    fn places(&mut self, sides: [At<'_>; 2]) -> Option<[Place; 2]> {
        let places = sides.map(|(call, agent)| place(call, agent));
        let mut made = false;
        let [one, two] = [0, 1].map(|at: usize| {
            let ((call, _), place) = (sides.get(at)?, places.get(at)?);
            let Some(trace) = call.backtrace.as_ref().filter(|_| has_trace(call)) else {
                return Some(place.clone());
            };
            let path = trace.path();
            let earlier = path.and_then(|path| self.paths.get(&(path, place.clone())));
            if let Some(found) = earlier {
                return Some(found.clone());
            }
            if !std::mem::replace(&mut made, true) {
                let looked = self.traced.entry(places.clone()).or_default();
                if *looked == TRACES {
                    return None;
                }
                *looked += 1;
            }
            let found = traced_place(place, &**trace);
            if let Some(path) = path.filter(|_| self.paths.len() < PATHS) {
                self.paths.insert((path, place.clone()), found.clone());
            }
            Some(found)
        });
        Some([one?, two?])
    }

    /// The index of a pair's count in `times`.
    fn pair(&self, one: &Place, two: &Place) -> Option<usize> {
        let pair = (one.clone(), two.clone());
        let at = self.reported.get(&pair).or_else(|| self.reported.get(&(pair.1, pair.0)));
        at.copied()
    }

    /// A pair was found once more.
    fn found(&mut self, at: usize, [one, two]: [At<'_>; 2]) {
        self.times.get_mut(at).into_iter().for_each(|times| *times += 1);
        if let (Some(one), Some(two)) = (Sight::new(one), Sight::new(two)) {
            if self.seen.len() == SEEN {
                self.seen.pop_front();
            }
            self.seen.push_back(([one, two], at));
        }
    }

    /// Whether just this pair was found before, one of the last times. Then it counts.
    fn again(&mut self, [one, two]: [At<'_>; 2]) -> bool {
        if self.seen.is_empty() {
            return false;
        }
        let (Some(first), Some(second)) = (Sight::path(one.0), Sight::path(two.0)) else {
            return false;
        };
        let is_it =
            |([own, other], _): &&([Sight; 2], usize)| own.is(first, one) && other.is(second, two);
        let Some((_, at)) = self.seen.iter().find(is_it) else { return false };
        self.times.get_mut(*at).into_iter().for_each(|times| *times += 1);
        true
    }

    /// Whether a pair of places is new. Beyond [`PLACES`] of them none is.
    fn once(&mut self, one: Place, two: Place, sides: [At<'_>; 2]) -> bool {
        if let Some(at) = self.pair(&one, &two) {
            self.found(at, sides);
            return false;
        }
        if self.reported.len() >= PLACES {
            return false;
        }
        self.reported.insert((one, two), self.times.len());
        self.times.push(0);
        self.found(self.times.len() - 1, sides);
        true
    }

    /// The same for two calls that misuse an object, each time with their backtraces.
    pub(super) fn is_new_misuse(&mut self, sides: [&Origin; 2]) -> bool {
        self.is_new(sides.map(|side| (&*side.call, &side.agent)))
    }

    pub(super) fn warn(&mut self, one: &Arc<Call>, two: &Arc<Call>, warning: Warning) {
        let place = |call: &Arc<Call>| {
            let location = call.location.clone();
            // One call may be wrong in several ways.
            let (kind, what) = match &warning {
                Warning::NeverRecorded { event, .. } => ("never recorded", &**event),
                Warning::LostRecord { event, .. } => ("lost record", &**event),
                Warning::IgnoredQuery { .. } => ("ignored query", ""),
                Warning::UselessWait { event, .. } => ("useless wait", &**event),
                Warning::CaptureLeak { what, .. } => ("capture leak", &**what),
            };
            let place = location.ok_or_else(|| format!("{} {what}", call.name));
            (Cow::Borrowed(kind), place)
        };
        if once(&mut self.warned, place(one), place(two)) {
            self.findings.push(Finding::Warning(warning));
        }
    }
}

fn place(call: &Call, named: &Agent) -> Place {
    // Default streams of several contexts or threads have one name, and a later stream may get the
    // handle of one that was destroyed.
    let agent = || match named.stream() {
        Some(stream) => {
            let made = named.stream_created().filter(|_| !has_trace(call));
            format!("{named} {:#x} {}", stream.id.0, made.map_or(0, |made| made.number))
        }
        None => named.to_string(),
    };
    (call.name.clone(), call.location.clone().ok_or_else(agent))
}

/// Whether its backtrace says more than the place does.
fn has_trace(call: &Call) -> bool {
    call.location.is_none() && call.backtrace.is_some()
}

/// The place that a backtrace gives to a call: the lines of the program on its way to it. Without
/// lines it is the whole backtrace, and if its frames have no names the stream or thread as well.
fn traced_place((name, agent): &Place, trace: &dyn Backtrace) -> Place {
    let text = trace.outline();
    if let Some(outline) = outline(&text) {
        // One line may launch several kernels.
        let function = name.split(" of ").next().unwrap_or(name);
        return (Cow::Owned(function.to_owned()), Err(outline));
    }
    if text.trim().is_empty() || text.contains("<unknown>") {
        return (name.clone(), agent.clone().map_err(|agent| format!("{agent} {text}")));
    }
    (name.clone(), Err(text))
}

/// Whether a pair of places is new. Beyond [`PLACES`] of them none is.
fn once(seen: &mut HashSet<(Place, Place)>, one: Place, two: Place) -> bool {
    seen.len() < PLACES && seen.insert((one, two))
}
