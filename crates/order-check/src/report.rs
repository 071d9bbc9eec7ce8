//! The findings of the checker.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;

use crate::agent::{Agent, Who};
use crate::allocations::Allocation;
use crate::op::{Access, AccessKind, By, Call, Launched, StreamKind, ThreadId};
use crate::shadow::Origin;

/// One of the two accesses that a finding is about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Side {
    /// The call that the access belongs to.
    pub call: Arc<Call>,
    /// The stream or thread of the access.
    pub agent: Agent,
    /// The kind of the access.
    pub kind: AccessKind,
    /// The name of the thread that made the call.
    pub thread: String,
    pub(crate) origin: Arc<Origin>,
}

impl Side {
    /// All that the operation accesses in this way. Empty for a launch, and for an event or a stream.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.origin.accesses
    }

    /// Whether it is what a copy without a stream writes to device memory. Only one from ordinary
    /// memory returns before it is over.
    #[must_use]
    pub fn is_upload(&self) -> bool {
        let name = &self.call.name;
        self.kind == AccessKind::Write
            && self.agent.stream().is_some()
            && name.starts_with("cuMemcpyHtoD")
            && !name.contains("Async")
    }

    /// The launch that may make the access. The report is a candidate then.
    #[must_use]
    pub fn launch(&self) -> Option<&Launched> {
        self.origin.launch.as_ref()
    }

    /// The name of the kernel that may make the access, also of one in a graph.
    #[must_use]
    pub fn kernel(&self) -> Option<Cow<'_, str>> {
        match self.call.name.split_once(" of ") {
            Some((_, name)) => Some(Cow::Borrowed(name)),
            None => self.launch()?.launch.kernel().map(Cow::Owned),
        }
    }
}

/// The kind of error that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// Two accesses to the same bytes, at least one of them a write or a free, have no order.
    Race,
    /// The second access is after the bytes were freed.
    UseAfterFree,
    /// One thread destroys an event or a stream while another thread uses it, and nothing orders
    /// the two. In [`HostOrder::Submission`](crate::HostOrder::Submission) only if the other
    /// thread's call is under way meanwhile, as
    /// [`Feed::object_misused`](crate::feed::CallFeed::object_misused) reports.
    DestroyedWhileUsed,
    /// A call uses an event or a stream that an earlier call has destroyed, as
    /// [`Feed::object_misused`](crate::feed::CallFeed::object_misused) reports.
    UseAfterDestroy,
    /// One thread records an event. Another thread waits for the event, or has a stream wait for
    /// it. Nothing orders the two, so the record that the wait is for may differ from run to run.
    /// Only in [`HostOrder::Reported`](crate::HostOrder::Reported).
    RecordedWhileAwaited,
}

impl Problem {
    /// Whether it is about an event or a stream, which have no bytes.
    #[must_use]
    pub fn is_of_an_object(self) -> bool {
        !matches!(self, Self::Race | Self::UseAfterFree)
    }
}

/// Two accesses without an order between them. Its `Display` is a text of several lines.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The kind of the problem.
    pub problem: Problem,
    /// The access whose call comes first in the program. If the calls have no order, the access
    /// that the checker processed first.
    pub first: Side,
    /// The other access.
    pub second: Side,
    /// The bytes that both access: one range or more, in rising order.
    pub shared: Vec<Range<u64>>,
    /// The allocation that the first of these bytes belongs to, if it is known.
    pub allocation: Option<Allocation>,
    /// The order that exists between the two.
    pub order: String,
    pub(crate) between: Box<Between>,
}

/// What is known of the time between the two calls of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Between {
    /// The last call of the first agent that the second one is after.
    pub(crate) last_before: Option<Arc<Call>>,
    /// The record of an event in the first one's stream, after its call.
    pub(crate) recorded: Option<Arc<Call>>,
    /// A wait for that event in another stream, which has this name.
    pub(crate) awaited: Option<(String, Arc<Call>)>,
    /// Whether the two are nodes of one launch.
    pub(crate) siblings: bool,
    /// Whether a launch may meet the other one elsewhere in an allocation than at its addresses.
    pub(crate) nearby: bool,
    /// Whether the first call had not returned when the second was made.
    pub(crate) under_way: bool,
    /// Why the legacy default stream does not order them.
    pub(crate) apart: Option<String>,
    /// What may order them and cannot be seen from here.
    pub(crate) unseen: Vec<String>,
    /// A call between them that would have ordered them, and its code.
    pub(crate) failed: Option<(Arc<Call>, u32)>,
}

impl Report {
    /// Whether it is a candidate by allocations: a launch has addresses in them, and the other one is
    /// somewhere in them. The shared bytes are the allocations then.
    #[must_use]
    pub fn is_nearby(&self) -> bool {
        self.between.nearby
    }
}

/// A likely mistake that is not a missing order. Its `Display` is one sentence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// A call waits for an event that was never recorded, so it waits for nothing.
    NeverRecorded {
        /// The wait.
        wait: Arc<Call>,
        /// The event's name.
        event: String,
    },
    /// A record replaced an earlier one that nothing had waited for and whose work was pending. A
    /// later wait for the event does not wait for the work of the earlier record. Or it waits for
    /// more than that work, and another thread waits, which may mean the earlier record.
    LostRecord {
        /// The record that was lost.
        lost: Arc<Call>,
        /// The record that replaced it.
        by: Arc<Call>,
        /// The wait.
        wait: Arc<Call>,
        /// The event's name.
        event: String,
        /// Whether the record that replaced it is after the same work.
        covered: bool,
    },
    /// The host accessed the result of work after a query returned that the work is not done.
    IgnoredQuery {
        /// The query.
        query: Arc<Call>,
        /// The access of the host.
        access: Arc<Call>,
    },
    /// A wait adds no order: the stream is already after that work.
    UselessWait {
        /// The wait.
        wait: Arc<Call>,
        /// The event's name.
        event: String,
    },
    /// After a capture ended, a call waits for or queries an event whose last record is part of the
    /// captured graph.
    CaptureLeak {
        /// The call.
        call: Arc<Call>,
        /// The event's or stream's name.
        what: String,
    },
}

impl Warning {
    /// The warning's name, such as `lost_record`: that of its field of
    /// [`Warnings`](crate::Warnings).
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NeverRecorded { .. } => "never_recorded",
            Self::LostRecord { .. } => "lost_record",
            Self::IgnoredQuery { .. } => "ignored_query",
            Self::UselessWait { .. } => "useless_wait",
            Self::CaptureLeak { .. } => "capture_leak",
        }
    }

    /// The calls that it is about.
    #[must_use]
    pub fn calls(&self) -> Vec<&Arc<Call>> {
        match self {
            Self::NeverRecorded { wait, .. } | Self::UselessWait { wait, .. } => vec![wait],
            Self::LostRecord { lost, by, wait, .. } => vec![lost, by, wait],
            Self::IgnoredQuery { query, access } => vec![query, access],
            Self::CaptureLeak { call, .. } => vec![call],
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverRecorded { wait, event } => {
                write!(f, "{wait} waits for nothing: event {event} was never recorded")
            }
            Self::LostRecord { lost, by, wait, event, covered: true } => write!(
                f,
                "{wait} waits for the work before {by}: a thread that means {lost} waits too long, \
                 as event {event} was recorded again while that work was pending and before anything \
                 had waited for it"
            ),
            Self::LostRecord { lost, by, wait, event, covered: false } => write!(
                f,
                "{wait} does not wait for the work before {lost}: {by} recorded event {event} \
                 again while that work was pending and before anything had waited for it"
            ),
            Self::IgnoredQuery { query, access } => {
                write!(f, "{access} touches the result of work that was not done at {query}")
            }
            Self::UselessWait { wait, event } => {
                write!(
                    f,
                    "{wait} adds no order: its stream is already after the work that event {event} \
                     recorded"
                )
            }
            Self::CaptureLeak { call, what } => {
                write!(
                    f,
                    "{call} leaves a capture: {what} has work in a graph only, and orders \
                     nothing outside it"
                )
            }
        }
    }
}

/// A finding of the checker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// Two accesses without an order.
    Report(Report),
    /// A likely mistake.
    Warning(Warning),
}

impl Finding {
    /// The calls that it is about.
    #[must_use]
    pub fn calls(&self) -> Vec<&Arc<Call>> {
        match self {
            Self::Report(report) => vec![&report.first.call, &report.second.call],
            Self::Warning(warning) => warning.calls(),
        }
    }

    /// The report, if it is one.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Report(report) => Some(report),
            Self::Warning(_) => None,
        }
    }
}

/// What an access was found with.
pub(crate) struct Found {
    pub(crate) problem: Problem,
    pub(crate) first: Side,
    pub(crate) second: Side,
    pub(crate) shared: Vec<Range<u64>>,
    /// Whether the checker came to the two against the order of their calls: the first one's work
    /// was held back.
    pub(crate) turned: bool,
    pub(crate) between: Between,
}

impl From<Found> for Report {
    fn from(mut found: Found) -> Self {
        found.between.apart = apart(&found);
        let order = order(&found);
        if found.turned {
            std::mem::swap(&mut found.first, &mut found.second);
            // That call was looked for with the two calls the other way round.
            found.between.last_before = None;
        }
        let Found { problem, first, second, shared, between, .. } = found;
        let (allocation, between) = (None, Box::new(between));
        Self { problem, first, second, shared, allocation, order, between }
    }
}

/// Where the order of an agent's work is made: nodes and host functions count for their stream.
fn place(agent: &Agent) -> String {
    match &agent.0 {
        Who::Stream(stream, _) => format!("stream {}", stream),
        Who::Thread(name) => format!("thread {name}"),
    }
}

/// Whether one is the legacy default stream, and the other does not wait for it.
fn apart(found: &Found) -> Option<String> {
    let (one, two) = (found.first.agent.stream()?, found.second.agent.stream()?);
    let (legacy, other) = if one.kind == StreamKind::Legacy { (one, two) } else { (two, one) };
    let is_apart = one.context == two.context
        && legacy.kind == StreamKind::Legacy
        && other.kind == StreamKind::NonBlocking;
    is_apart.then(|| {
        format!("stream {other} is non-blocking, so the legacy default stream does not order it")
    })
}

fn order(found: &Found) -> String {
    let (first, second, between) = (&found.first, &found.second, &found.between);
    match found.problem {
        Problem::UseAfterFree | Problem::UseAfterDestroy => {
            return format!("{} is after {}", second.call, first.call);
        }
        Problem::DestroyedWhileUsed if between.under_way => {
            return format!("{} was under way when {} was made", first.call, second.call);
        }
        _ => {}
    }
    let mut text = match &between.last_before {
        _ if between.siblings => {
            "the two are nodes of one launch, and no path of edges joins them".to_owned()
        }
        Some(call) => format!(
            "{} is after {call} on {}, which is before {}",
            place(&second.agent),
            place(&first.agent),
            first.call
        ),
        None => {
            format!("{} is not after any call on {}", place(&second.agent), place(&first.agent))
        }
    };
    if found.turned {
        let (other, late) = (place(&first.agent), &second.call);
        text = format!("{other} is not after {late} on {}; {text}", place(&second.agent));
    }
    for more in between.apart.iter().chain(&between.unseen) {
        let _ = write!(text, "; {more}");
    }
    text
}

pub(crate) fn by_name(by: By, name: impl Fn(ThreadId) -> String) -> String {
    match by {
        By::Thread(thread) => format!("thread {}", name(thread)),
        By::Function(function) => format!("host function {}", function.0),
    }
}
