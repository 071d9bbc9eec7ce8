//! A slow model of the driver's events, streams, contexts, memory, captures, graphs and external
//! semaphores, in one thread: it predicts what each call returns, and whether it is told as misuse.
//! It keeps lists, looks through all of them, and forgets nothing. It is written from the rules,
//! not from the driver.

mod capture;
mod graphs;
mod memory;
mod nodes;
#[cfg(target_os = "linux")]
mod semaphores;
mod work;

use capture::{Capture, Part, Way};
use graphs::Deed;
use work::{Op, Past};

pub use capture::Fate;
pub use memory::Word;
#[cfg(target_os = "linux")]
pub use semaphores::{Descriptor, OPAQUE, TIMELINE};

pub const SUCCESS: u32 = 0;
pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const INVALID_DEVICE: u32 = 101;
pub const INVALID_CONTEXT: u32 = 201;
pub const INVALID_HANDLE: u32 = 400;
pub const ILLEGAL_STATE: u32 = 401;
pub const NOT_READY: u32 = 600;
pub const DESTROYED: u32 = 709;
#[cfg(target_os = "linux")]
const UNKNOWN: u32 = 999;

pub const DEVICES: usize = 2;

/// What a call returns, and whether it is misuse.
pub type Answer = (u32, bool);

const fn says(code: u32) -> Answer {
    (code, false)
}

const fn misuse(code: u32) -> Answer {
    (code, true)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Never,
    Done,
    Pending,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    Alive,
    /// The program destroyed it, or it went with a primary context.
    Gone,
    /// Its context was destroyed under it.
    Orphan,
}

pub struct Context {
    pub handle: u64,
    pub primary: bool,
    pub alive: bool,
    /// Its legacy stream, and its stream of this thread.
    legacy: usize,
    own: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Legacy,
    Own,
    Made,
}

pub struct Stream {
    pub handle: u64,
    pub kind: Kind,
    pub context: usize,
    blocking: bool,
    pub life: Life,
    /// Whether it has work that waits for a held host function.
    pub pending: bool,
    /// The pending work that its next work comes after.
    past: Past,
    /// Its part of a capture in progress.
    part: Option<Part>,
}

pub struct Event {
    pub handle: u64,
    context: usize,
    flags: u32,
    pub life: Life,
    pub state: State,
    /// The pending work before its record.
    past: Past,
    /// Of an event that was recorded in a capture.
    part: Option<Part>,
}

#[derive(Default)]
pub struct Model {
    pub contexts: Vec<Context>,
    pub streams: Vec<Stream>,
    pub events: Vec<Event>,
    pub memory: Vec<memory::Allocation>,
    ops: Vec<Op>,
    pub captures: Vec<Capture>,
    pub graphs: Vec<graphs::Graph>,
    pub nodes: Vec<graphs::Node>,
    pub execs: Vec<graphs::Exec>,
    thread_mode: u32,
    #[cfg(target_os = "linux")]
    pub semaphores: Vec<semaphores::Semaphore>,
    stack: Vec<usize>,
    primary: [Option<usize>; DEVICES],
    pub retained: [u32; DEVICES],
    /// Handles of another driver: of a context, a stream and an event.
    pub others: [u64; 3],
    /// An address of memory of another driver.
    pub others_memory: u64,
    pub lost: usize,
}

impl Model {
    fn device(&self, device: i32) -> Result<usize, Answer> {
        usize::try_from(device).ok().filter(|it| *it < DEVICES).ok_or(says(INVALID_DEVICE))
    }

    fn usable(&self, context: usize) -> Result<(), Answer> {
        if self.contexts[context].alive { Ok(()) } else { Err(says(DESTROYED)) }
    }

    fn current(&self) -> Result<usize, Answer> {
        let top = *self.stack.last().ok_or(says(INVALID_CONTEXT))?;
        self.usable(top)?;
        Ok(top)
    }

    pub fn top(&self) -> u64 {
        self.stack.last().map_or(0, |top| self.contexts[*top].handle)
    }

    fn is_of_another_kind(&self, handle: u64, kind: u8) -> bool {
        (kind != 0 && self.contexts.iter().any(|it| it.handle == handle))
            || (kind != 1 && self.made().any(|it| it.handle == handle))
            || (kind != 2 && self.events.iter().any(|it| it.handle == handle))
            || self.others.iter().zip(0..).any(|(other, of)| *other == handle && of != kind)
    }

    fn unknown(&self, handle: u64, kind: u8) -> Answer {
        if self.is_of_another_kind(handle, kind) {
            misuse(DESTROYED)
        } else {
            misuse(INVALID_HANDLE)
        }
    }

    /// The event that a handle names, whose context may have ended in any way but its destruction.
    fn named_event(&self, handle: u64) -> Result<usize, Answer> {
        if handle == 0 {
            return Err(says(INVALID_HANDLE));
        }
        let found = self.events.iter().rposition(|event| event.handle == handle);
        let index = found.ok_or_else(|| self.unknown(handle, 2))?;
        match self.events[index].life {
            Life::Alive => Ok(index),
            Life::Gone => Err(misuse(INVALID_HANDLE)),
            Life::Orphan => Err(misuse(DESTROYED)),
        }
    }

    fn event(&self, handle: u64) -> Result<usize, Answer> {
        let index = self.named_event(handle)?;
        self.usable(self.events[index].context)?;
        Ok(index)
    }

    /// The streams that the program made.
    pub fn made(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().filter(|stream| stream.kind == Kind::Made)
    }

    fn stream_by_handle(&self, handle: u64) -> Result<usize, Answer> {
        let is = |stream: &Stream| stream.kind == Kind::Made && stream.handle == handle;
        let index = self.streams.iter().rposition(is).ok_or_else(|| self.unknown(handle, 1))?;
        if self.streams[index].life == Life::Alive {
            Ok(index)
        } else {
            Err(misuse(INVALID_HANDLE))
        }
    }

    pub fn stream(&self, handle: u64) -> Result<usize, Answer> {
        match handle {
            0 | 1 => Ok(self.contexts[self.current()?].legacy),
            2 => Ok(self.contexts[self.current()?].own),
            handle => {
                let index = self.stream_by_handle(handle)?;
                self.usable(self.streams[index].context)?;
                Ok(index)
            }
        }
    }

    fn context(&self, handle: u64) -> Result<usize, Answer> {
        let found = self.contexts.iter().position(|context| context.handle == handle);
        found.ok_or_else(|| match self.unknown(handle, 0) {
            (INVALID_HANDLE, told) => (INVALID_CONTEXT, told),
            other => other,
        })
    }

    fn is_legacy(&self, stream: usize) -> bool {
        self.streams[stream].kind == Kind::Legacy
    }

    /// The streams of whose work the next work in a stream comes after, beside its own: the legacy
    /// stream and the blocking ones wait for each other.
    fn joins(&self, stream: usize) -> Vec<usize> {
        let context = self.streams[stream].context;
        match self.streams[stream].kind {
            Kind::Legacy => (0..self.streams.len())
                .filter(|other| *other != stream && self.streams[*other].context == context)
                .filter(|other| self.streams[*other].blocking)
                .collect(),
            _ if self.streams[stream].blocking => vec![self.contexts[context].legacy],
            _ => Vec::new(),
        }
    }

    /// Whether new work in a stream is pending.
    pub fn would_wait(&self, stream: usize) -> bool {
        let waits = |other: usize| self.streams[other].pending;
        waits(stream) || self.joins(stream).into_iter().any(waits)
    }

    /// Work comes to a stream.
    fn join(&mut self, stream: usize) {
        for other in self.joins(stream) {
            let (pending, past) = (self.streams[other].pending, self.streams[other].past.clone());
            self.streams[stream].pending |= pending;
            self.streams[stream].past.extend(past);
        }
    }

    pub fn anything_pending(&self) -> bool {
        self.streams.iter().any(|stream| stream.pending)
            || self.events.iter().any(|event| event.state == State::Pending)
    }

    /// All work is done. These host functions were called, in this order.
    pub fn drain(&mut self, called: &[u32]) {
        self.all_done(called);
        self.launches_are_done();
        for stream in &mut self.streams {
            stream.pending = false;
            stream.past.clear();
        }
        for event in self.events.iter_mut() {
            event.past.clear();
            if event.state == State::Pending {
                event.state = State::Done;
            }
        }
    }

    // The calls. Those that make something are told its handle afterwards.

    pub fn event_create(&self, flags: u32) -> Result<usize, Answer> {
        if flags > 7 || flags & 6 == 4 {
            return Err(says(INVALID_VALUE));
        }
        self.current()
    }

    pub fn event_created(&mut self, context: usize, flags: u32, handle: u64) {
        let (life, state) = (Life::Alive, State::Never);
        let past = Past::new();
        self.events.push(Event { handle, context, flags, life, state, past, part: None });
    }

    pub fn event_destroy(&mut self, handle: u64) -> Answer {
        match self.named_event(handle) {
            Ok(index) => {
                if let Err(answer) = self.usable(self.events[index].context) {
                    return answer;
                }
                self.events[index].life = Life::Gone;
                says(SUCCESS)
            }
            Err(answer) => answer,
        }
    }

    pub fn record(&mut self, event: u64, stream: u64, flags: u32) -> Option<Answer> {
        let both = self.event(event).and_then(|event| Ok((event, self.stream(stream)?)));
        let (event, stream) = match both {
            // Of two things that are wrong the order is open.
            Err(answer) => return (flags <= 1).then_some(answer),
            Ok((_, stream)) if flags > 1 && !self.is_plain(stream) => return None,
            Ok(_) if flags > 1 => return Some(says(INVALID_VALUE)),
            Ok(both) => both,
        };
        let (entry, queue) = (&self.events[event], &self.streams[stream]);
        let plain = self.is_plain(stream);
        if flags == 1 {
            let foreign = entry.context != queue.context;
            return match plain {
                true => (!foreign).then_some(says(ILLEGAL_STATE)),
                false if self.is_legacy(stream) => None,
                false => self.submit(stream, Deed::Record(event)),
            };
        }
        let active = queue.part.as_ref().is_some_and(|it| self.fate(it) == capture::Fate::Active);
        if entry.context != queue.context {
            return (plain || active).then_some(says(INVALID_HANDLE));
        }
        if entry.flags & 4 != 0 && !plain {
            return active.then_some(says(capture::UNSUPPORTED));
        }
        match self.way(stream) {
            Way::ToTheStream => {
                self.join(stream);
                self.recorded(event, stream);
            }
            Way::ToTheGraph => {
                self.events[event].part = self.streams[stream].part.clone();
                self.events[event].state = State::Never;
                self.events[event].past.clear();
            }
            Way::Refused(answer) => return Some(answer),
            Way::Open => return None,
        }
        Some(says(SUCCESS))
    }

    /// A record comes to a stream: of an interprocess event it waits for the unfinished one.
    fn recorded(&mut self, event: usize, stream: usize) {
        let (entry, queue) = (&mut self.events[event], &mut self.streams[stream]);
        if entry.flags & 4 != 0 && entry.state == State::Pending {
            queue.pending = true;
            queue.past.extend(entry.past.iter());
        }
        entry.state = if queue.pending { State::Pending } else { State::Done };
        entry.past = queue.past.clone();
        entry.part = None;
    }

    pub fn wait(&mut self, stream: u64, event: u64, flags: u32) -> Option<Answer> {
        if event == 0 {
            return Some(says(INVALID_HANDLE));
        }
        if flags > 1 {
            return Some(says(INVALID_VALUE));
        }
        let both = self.event(event).and_then(|event| Ok((event, self.stream(stream)?)));
        let (event, stream) = match both {
            Ok(both) => both,
            Err(answer) => return Some(answer),
        };
        let entry = &self.events[event];
        if flags == 1 {
            if self.is_plain(stream) {
                return Some(says(ILLEGAL_STATE));
            }
            if self.is_legacy(stream) || entry.part.is_some() {
                return None;
            }
            return self.submit(stream, Deed::Wait(event));
        }
        if entry.flags & 4 != 0 && entry.context != self.streams[stream].context {
            return self.is_plain(stream).then_some(misuse(INVALID_HANDLE));
        }
        if let Some(answer) = self.captured_wait(stream, event)? {
            return Some(answer);
        }
        if self.is_legacy(stream) && self.events[event].state != State::Never {
            self.join(stream);
        }
        if self.events[event].state == State::Pending {
            self.streams[stream].pending = true;
            self.streams[stream].past.extend(self.events[event].past.iter());
        }
        Some(says(SUCCESS))
    }

    pub fn event_query(&mut self, handle: u64) -> Option<Answer> {
        Some(match self.event(handle) {
            Ok(event) => match self.asks_event(event)? {
                Ok(()) if self.events[event].state == State::Pending => says(NOT_READY),
                Ok(()) => says(SUCCESS),
                Err(answer) => answer,
            },
            Err(answer) => answer,
        })
    }

    pub fn elapsed(&self, start: u64, end: u64) -> Option<Answer> {
        if start == 0 || end == 0 {
            return Some(says(INVALID_HANDLE));
        }
        let both = self.event(start).and_then(|start| Ok((start, self.event(end)?)));
        let both = match both {
            Ok((start, end)) => [&self.events[start], &self.events[end]],
            Err(answer) => return Some(answer),
        };
        let is = |state| both.iter().any(|it| it.part.is_none() && it.state == state);
        let untimed = both.iter().any(|it| it.flags & 2 != 0);
        let refused = both[0].context != both[1].context || untimed || is(State::Never);
        let captured: Vec<_> = both.iter().filter_map(|it| it.part.as_ref()).collect();
        if captured.is_empty() {
            return Some(says(match (refused, is(State::Pending)) {
                (true, _) => INVALID_HANDLE,
                (false, true) => NOT_READY,
                (false, false) => SUCCESS,
            }));
        }
        let all = |fate| captured.iter().all(|part| self.fate(part) == fate);
        // Which of two reasons it returns is open.
        if refused || is(State::Pending) {
            None
        } else if all(capture::Fate::Active) {
            Some(says(capture::CAPTURED_EVENT))
        } else {
            all(capture::Fate::Over).then_some(says(INVALID_VALUE))
        }
    }

    pub fn stream_create(&self, flags: u32) -> Result<usize, Answer> {
        if flags > 1 {
            return Err(says(INVALID_VALUE));
        }
        self.current()
    }

    pub fn stream_created(&mut self, context: usize, flags: u32, handle: u64) {
        self.new_stream(handle, Kind::Made, context, flags == 0);
    }

    fn new_stream(&mut self, handle: u64, kind: Kind, context: usize, blocking: bool) -> usize {
        let (life, pending, past) = (Life::Alive, false, Past::new());
        let part = None;
        self.streams.push(Stream { handle, kind, context, blocking, life, pending, past, part });
        self.streams.len() - 1
    }

    pub fn stream_destroy(&mut self, handle: u64) -> Answer {
        if handle <= 2 {
            return says(INVALID_HANDLE);
        }
        match self.stream_by_handle(handle) {
            Ok(index) => {
                self.streams[index].life = Life::Gone;
                self.leaves(index);
                says(SUCCESS)
            }
            Err(answer) => answer,
        }
    }

    pub fn stream_query(&mut self, handle: u64) -> Option<Answer> {
        Some(match self.stream(handle) {
            Ok(stream) => match self.asks_stream(stream)? {
                // The legacy stream is busy with the blocking ones.
                Ok(()) if self.is_legacy(stream) && self.would_wait(stream) => says(NOT_READY),
                Ok(()) if self.streams[stream].pending => says(NOT_READY),
                Ok(()) => says(SUCCESS),
                Err(answer) => answer,
            },
            Err(answer) => answer,
        })
    }

    /// A host function, which is held; this number is its own.
    pub fn launch(&mut self, handle: u64, function: Option<u32>) -> Option<Answer> {
        let Some(number) = function else { return Some(says(INVALID_VALUE)) };
        match self.stream(handle) {
            Ok(stream) => self.submit(stream, Deed::Act(work::Act::Call(number))),
            Err(answer) => Some(answer),
        }
    }

    /// What a call says that has nothing to wait for.
    pub fn stream_synchronize(&mut self, handle: u64) -> Option<Answer> {
        Some(match self.stream(handle) {
            Ok(stream) => self.asks_stream(stream)?.err().unwrap_or(says(SUCCESS)),
            Err(answer) => answer,
        })
    }

    pub fn event_synchronize(&mut self, handle: u64) -> Option<Answer> {
        Some(match self.event(handle) {
            Ok(event) => self.asks_event(event)?.err().unwrap_or(says(SUCCESS)),
            Err(answer) => answer,
        })
    }

    pub fn context_synchronize(&mut self) -> Option<Answer> {
        Some(match self.current() {
            Ok(context) => self.asks_context(context)?.err().unwrap_or(says(SUCCESS)),
            Err(answer) => answer,
        })
    }

    pub fn export(&self, handle: u64) -> Answer {
        if handle == 0 {
            return says(INVALID_VALUE);
        }
        if let Err(answer) = self.current() {
            return answer;
        }
        match self.event(handle) {
            Ok(event) if self.events[event].flags & 4 != 0 => says(SUCCESS),
            Ok(_) => says(INVALID_HANDLE),
            Err(answer) => answer,
        }
    }

    /// A handle of this process.
    pub fn import(&self) -> Answer {
        self.current().map_or_else(|answer| answer, |_| says(INVALID_CONTEXT))
    }

    pub fn context_create(&self, flags: u32, device: i32) -> Result<usize, Answer> {
        if flags > 0xFF || !matches!(flags & 7, 0 | 1 | 2 | 4) {
            return Err(says(INVALID_VALUE));
        }
        self.device(device)
    }

    fn new_context(&mut self, primary: bool, handle: u64) -> usize {
        let context = self.contexts.len();
        let legacy = self.new_stream(0, Kind::Legacy, context, false);
        let own = self.new_stream(2, Kind::Own, context, true);
        self.contexts.push(Context { handle, primary, alive: true, legacy, own });
        context
    }

    pub fn context_created(&mut self, handle: u64) {
        let context = self.new_context(false, handle);
        self.stack.push(context);
    }

    fn end(&mut self, context: usize, reset: bool) {
        let primary = self.contexts[context].primary;
        let left = if primary { Life::Gone } else { Life::Orphan };
        let mut lost = 0;
        let ours = |it: &&mut Stream| it.kind == Kind::Made && it.context == context;
        for stream in self.streams.iter_mut().filter(ours) {
            lost += usize::from(stream.life == Life::Alive);
            stream.life = Life::Gone;
        }
        for event in self.events.iter_mut().filter(|it| it.context == context) {
            lost += usize::from(event.life == Life::Alive);
            if event.life == Life::Alive {
                event.life = left;
            }
        }
        lost += self.end_memory(context);
        #[cfg(target_os = "linux")]
        {
            lost += self.end_semaphores(context);
        }
        if !reset {
            self.lost += lost;
        }
        self.contexts[context].alive = false;
    }

    pub fn context_destroy(&mut self, handle: u64) -> Answer {
        if handle == 0 {
            return says(INVALID_VALUE);
        }
        let context = match self.context(handle) {
            Ok(context) => context,
            Err(answer) => return answer,
        };
        if self.contexts[context].primary {
            return says(INVALID_CONTEXT);
        }
        if !self.contexts[context].alive {
            return misuse(DESTROYED);
        }
        self.end(context, false);
        if self.stack.last() == Some(&context) {
            self.stack.pop();
        }
        says(SUCCESS)
    }

    pub fn push(&mut self, handle: u64) -> Answer {
        if handle == 0 {
            return says(INVALID_VALUE);
        }
        match self.context(handle) {
            Ok(context) => {
                self.stack.push(context);
                says(SUCCESS)
            }
            Err(answer) => answer,
        }
    }

    pub fn pop(&mut self) -> Answer {
        if self.stack.pop().is_some() { says(SUCCESS) } else { says(INVALID_CONTEXT) }
    }

    pub fn set(&mut self, handle: u64) -> Answer {
        let new = match handle {
            0 => None,
            handle => match self.context(handle) {
                Ok(context) => Some(context),
                Err(answer) => return answer,
            },
        };
        self.stack.pop();
        self.stack.extend(new);
        says(SUCCESS)
    }

    pub fn retain(&mut self, device: i32) -> Result<usize, Answer> {
        self.device(device)
    }

    pub fn retained(&mut self, device: usize, handle: u64) {
        self.retained[device] += 1;
        match self.primary[device] {
            Some(context) => {
                assert_eq!(self.contexts[context].handle, handle, "it is the device's, for ever");
                self.contexts[context].alive = true;
            }
            None => self.primary[device] = Some(self.new_context(true, handle)),
        }
    }

    pub fn release(&mut self, device: i32) -> Answer {
        let device = match self.device(device) {
            Ok(device) => device,
            Err(answer) => return answer,
        };
        if self.retained[device] == 0 {
            return says(INVALID_CONTEXT);
        }
        self.retained[device] -= 1;
        if self.retained[device] == 0
            && let Some(context) = self.primary[device]
        {
            self.end(context, false);
        }
        says(SUCCESS)
    }

    pub fn reset(&mut self, device: i32) -> Answer {
        let device = match self.device(device) {
            Ok(device) => device,
            Err(answer) => return answer,
        };
        self.retained[device] = 0;
        if let Some(context) = self.primary[device].filter(|it| self.contexts[*it].alive) {
            self.end(context, true);
        }
        says(SUCCESS)
    }
}
