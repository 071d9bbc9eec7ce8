//! What was found, each pair of places once, and what reports say of calls that were not accesses.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::checker::options::Warnings;
use crate::map::Map;
use crate::op::{Call, Location, StreamId};
use crate::report::{Agent, Finding, Warning};
use crate::shadow::Origin;

/// The maximum of distinct pairs of places with findings.
const PLACES: usize = 1 << 16;
/// The maximum of races of two functions in two streams or threads that backtraces distinguish.
const TRACES: u32 = 64;
/// The maximum of failed calls that are kept.
const FAILED: usize = 64;
/// The maximum of waits of a stream for something unknown that are kept.
const UNKNOWN: usize = 3;

/// The place of a report: a source line, otherwise a backtrace, otherwise a function and an agent.
type Place = (Cow<'static, str>, Result<Location, String>);

/// A side of a report: its call, and who does it.
pub(super) type At<'a> = (&'a Call, &'a Agent);

/// A call that failed.
#[derive(Debug)]
struct Failed {
    call: Arc<Call>,
    stream: Option<StreamId>,
    code: u32,
}

#[derive(Debug, Default)]
pub(super) struct Reports {
    pub(super) warnings: Warnings,
    findings: Vec<Finding>,
    reported: HashSet<(Place, Place)>,
    warned: HashSet<(Place, Place)>,
    /// Races that are distinguished by their backtraces.
    traced: HashMap<[Place; 2], u32>,
    /// Calls that would have made an order, and failed, the last ones.
    failed: VecDeque<Failed>,
    /// Orders that are assumed: of what, after which call, and how often.
    assumed: BTreeMap<(&'static str, Cow<'static, str>), u64>,
    /// What may order a stream and is not known, with the number of the call that waited.
    unknown: Map<StreamId, VecDeque<(u64, String)>>,
}

impl Reports {
    pub(super) fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
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
        let mut places = sides.map(|(call, agent)| place(call, agent));
        if sides.iter().any(|(call, _)| has_trace(call)) {
            // Making text of a backtrace takes long. A program that is wrong in a loop comes here
            // in each round.
            let looked = self.traced.entry(places.clone()).or_default();
            *looked = looked.saturating_add(1);
            if *looked > TRACES {
                return false;
            }
            places = sides.map(|(call, agent)| traced_place(call, agent));
        }
        let [one, two] = places;
        once(&mut self.reported, one, two)
    }

    /// Whether a problem at these two places was reported. Another one may be asked for later.
    pub(super) fn is_known(&mut self, sides: [At<'_>; 2]) -> bool {
        let mut places = sides.map(|(call, agent)| place(call, agent));
        let mut looked = None;
        if sides.iter().any(|(call, _)| has_trace(call)) {
            looked = Some(places.clone());
            if self.traced.get(&places).is_some_and(|looked| *looked > TRACES) {
                return true;
            }
            places = sides.map(|(call, agent)| traced_place(call, agent));
        }
        let [one, two] = places;
        let pair = (one, two);
        let mut known = self.reported.contains(&pair);
        let turned = (pair.1, pair.0);
        known |= self.reported.contains(&turned) || self.reported.len() >= PLACES;
        if let Some(places) = looked.filter(|_| known) {
            *self.traced.entry(places).or_default() += 1;
        }
        known
    }

    /// The same for two calls that misuse an object, each time with their backtraces.
    pub(super) fn is_new_misuse(&mut self, sides: [&Origin; 2]) -> bool {
        let [one, two] = sides.map(|side| traced_place(&side.call, &side.agent));
        once(&mut self.reported, one, two)
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

/// The place given by the backtrace. If its frames have no names, the place also contains the
/// stream or thread.
fn traced_place(call: &Call, agent: &Agent) -> Place {
    let (name, place) = place(call, agent);
    let text = match &call.backtrace {
        Some(trace) if has_trace(call) => trace.to_string(),
        _ => return (name, place),
    };
    if text.trim().is_empty() || text.contains("<unknown>") {
        return (name, place.map_err(|agent| format!("{agent} {text}")));
    }
    (name, Err(text))
}

/// Whether a pair of places is new. Beyond [`PLACES`] of them none is.
fn once(seen: &mut HashSet<(Place, Place)>, one: Place, two: Place) -> bool {
    let turned = (two, one);
    if seen.len() >= PLACES || seen.contains(&turned) {
        return false;
    }
    seen.insert((turned.1, turned.0))
}
