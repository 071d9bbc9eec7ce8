//! A slow model of the driver's events, streams and contexts, in one thread: it predicts what each
//! call returns, and whether it is told as misuse. It keeps lists, looks through all of them, and
//! forgets nothing.

pub const SUCCESS: u32 = 0;
pub const INVALID_VALUE: u32 = 1;
pub const INVALID_DEVICE: u32 = 101;
pub const INVALID_CONTEXT: u32 = 201;
pub const INVALID_HANDLE: u32 = 400;
pub const ILLEGAL_STATE: u32 = 401;
pub const NOT_READY: u32 = 600;
pub const DESTROYED: u32 = 709;

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
    legacy_pending: bool,
    own_pending: bool,
}

pub struct Stream {
    pub handle: u64,
    context: usize,
    blocking: bool,
    pub life: Life,
    pub pending: bool,
}

pub struct Event {
    pub handle: u64,
    context: usize,
    flags: u32,
    pub life: Life,
    pub state: State,
}

#[derive(Default)]
pub struct Model {
    pub contexts: Vec<Context>,
    pub streams: Vec<Stream>,
    pub events: Vec<Event>,
    stack: Vec<usize>,
    primary: [Option<usize>; DEVICES],
    pub retained: [u32; DEVICES],
    /// Handles of another driver: of a context, a stream and an event.
    pub others: [u64; 3],
    pub lost: usize,
}

/// A stream argument, understood.
enum Queue {
    Legacy(usize),
    Own(usize),
    Made(usize),
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
            || (kind != 1 && self.streams.iter().any(|it| it.handle == handle))
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

    fn stream_by_handle(&self, handle: u64) -> Result<usize, Answer> {
        let found = self.streams.iter().rposition(|stream| stream.handle == handle);
        let index = found.ok_or_else(|| self.unknown(handle, 1))?;
        if self.streams[index].life == Life::Alive {
            Ok(index)
        } else {
            Err(misuse(INVALID_HANDLE))
        }
    }

    fn stream(&self, handle: u64) -> Result<Queue, Answer> {
        match handle {
            0 | 1 => Ok(Queue::Legacy(self.current()?)),
            2 => Ok(Queue::Own(self.current()?)),
            handle => {
                let index = self.stream_by_handle(handle)?;
                self.usable(self.streams[index].context)?;
                Ok(Queue::Made(index))
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

    fn context_of(&self, queue: &Queue) -> usize {
        match queue {
            Queue::Legacy(context) | Queue::Own(context) => *context,
            Queue::Made(index) => self.streams[*index].context,
        }
    }

    fn pending(&self, queue: &Queue) -> bool {
        match queue {
            Queue::Legacy(context) => self.contexts[*context].legacy_pending,
            Queue::Own(context) => self.contexts[*context].own_pending,
            Queue::Made(index) => self.streams[*index].pending,
        }
    }

    fn set_pending(&mut self, queue: &Queue) {
        match queue {
            Queue::Legacy(context) => self.contexts[*context].legacy_pending = true,
            Queue::Own(context) => self.contexts[*context].own_pending = true,
            Queue::Made(index) => self.streams[*index].pending = true,
        }
    }

    /// Whether a blocking stream of a context has work.
    fn blocking_pending(&self, context: usize) -> bool {
        self.contexts[context].own_pending
            || self.streams.iter().any(|it| it.context == context && it.blocking && it.pending)
    }

    /// Work in a queue: the legacy stream and the blocking ones wait for each other.
    fn join(&mut self, queue: &Queue) {
        let context = self.context_of(queue);
        let waits = match queue {
            Queue::Legacy(_) => self.blocking_pending(context),
            Queue::Own(_) => self.contexts[context].legacy_pending,
            Queue::Made(index) => {
                self.streams[*index].blocking && self.contexts[context].legacy_pending
            }
        };
        if waits {
            self.set_pending(queue);
        }
    }

    pub fn anything_pending(&self) -> bool {
        self.streams.iter().any(|stream| stream.pending)
            || self.contexts.iter().any(|context| context.legacy_pending || context.own_pending)
            || self.events.iter().any(|event| event.state == State::Pending)
    }

    /// All work is done.
    pub fn drain(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.pending = false);
        for context in &mut self.contexts {
            (context.legacy_pending, context.own_pending) = (false, false);
        }
        for event in self.events.iter_mut().filter(|event| event.state == State::Pending) {
            event.state = State::Done;
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
        self.events.push(Event { handle, context, flags, life, state });
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

    pub fn record(&mut self, event: u64, stream: u64) -> Answer {
        let both = self.event(event).and_then(|event| Ok((event, self.stream(stream)?)));
        let (event, queue) = match both {
            Ok(both) => both,
            Err(answer) => return answer,
        };
        if self.events[event].context != self.context_of(&queue) {
            return says(INVALID_HANDLE);
        }
        self.join(&queue);
        if self.events[event].flags & 4 != 0 && self.events[event].state == State::Pending {
            self.set_pending(&queue);
        }
        self.events[event].state = if self.pending(&queue) { State::Pending } else { State::Done };
        says(SUCCESS)
    }

    pub fn wait(&mut self, stream: u64, event: u64, flags: u32) -> Answer {
        if event == 0 {
            return says(INVALID_HANDLE);
        }
        if flags > 1 {
            return says(INVALID_VALUE);
        }
        let both = self.event(event).and_then(|event| Ok((event, self.stream(stream)?)));
        let (event, queue) = match both {
            Ok(both) => both,
            Err(answer) => return answer,
        };
        if flags == 1 {
            return says(ILLEGAL_STATE);
        }
        let entry = &self.events[event];
        if entry.flags & 4 != 0 && entry.context != self.context_of(&queue) {
            return misuse(INVALID_HANDLE);
        }
        match entry.state {
            State::Pending => self.set_pending(&queue),
            State::Done if matches!(queue, Queue::Legacy(_)) => self.join(&queue),
            _ => {}
        }
        says(SUCCESS)
    }

    pub fn event_query(&self, handle: u64) -> Answer {
        match self.event(handle) {
            Ok(event) if self.events[event].state == State::Pending => says(NOT_READY),
            Ok(_) => says(SUCCESS),
            Err(answer) => answer,
        }
    }

    pub fn elapsed(&self, start: u64, end: u64) -> Answer {
        if start == 0 || end == 0 {
            return says(INVALID_HANDLE);
        }
        let both = self.event(start).and_then(|start| Ok((start, self.event(end)?)));
        let (start, end) = match both {
            Ok((start, end)) => (&self.events[start], &self.events[end]),
            Err(answer) => return answer,
        };
        let untimed = (start.flags | end.flags) & 2 != 0;
        let never = start.state == State::Never || end.state == State::Never;
        if start.context != end.context || untimed || never {
            return says(INVALID_HANDLE);
        }
        let pending = start.state == State::Pending || end.state == State::Pending;
        says(if pending { NOT_READY } else { SUCCESS })
    }

    pub fn stream_create(&self, flags: u32) -> Result<usize, Answer> {
        if flags > 1 {
            return Err(says(INVALID_VALUE));
        }
        self.current()
    }

    pub fn stream_created(&mut self, context: usize, flags: u32, handle: u64) {
        let (life, blocking) = (Life::Alive, flags == 0);
        self.streams.push(Stream { handle, context, blocking, life, pending: false });
    }

    pub fn stream_destroy(&mut self, handle: u64) -> Answer {
        if handle <= 2 {
            return says(INVALID_HANDLE);
        }
        match self.stream_by_handle(handle) {
            Ok(index) => {
                self.streams[index].life = Life::Gone;
                says(SUCCESS)
            }
            Err(answer) => answer,
        }
    }

    pub fn stream_query(&self, handle: u64) -> Answer {
        match self.stream(handle) {
            Ok(queue) => {
                let context = self.context_of(&queue);
                let others = matches!(queue, Queue::Legacy(_)) && self.blocking_pending(context);
                says(if self.pending(&queue) || others { NOT_READY } else { SUCCESS })
            }
            Err(answer) => answer,
        }
    }

    /// A host function, which is held.
    pub fn launch(&mut self, handle: u64) -> Answer {
        match self.stream(handle) {
            Ok(queue) => {
                self.set_pending(&queue);
                says(SUCCESS)
            }
            Err(answer) => answer,
        }
    }

    /// What a call says that has nothing to wait for.
    pub fn stream_synchronize(&self, handle: u64) -> Answer {
        self.stream(handle).map_or_else(|answer| answer, |_| says(SUCCESS))
    }

    pub fn event_synchronize(&self, handle: u64) -> Answer {
        self.event(handle).map_or_else(|answer| answer, |_| says(SUCCESS))
    }

    pub fn context_synchronize(&self) -> Answer {
        self.current().map_or_else(|answer| answer, |_| says(SUCCESS))
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
        let (legacy_pending, own_pending) = (false, false);
        let alive = true;
        self.contexts.push(Context { handle, primary, alive, legacy_pending, own_pending });
        self.contexts.len() - 1
    }

    pub fn context_created(&mut self, handle: u64) {
        let context = self.new_context(false, handle);
        self.stack.push(context);
    }

    fn end(&mut self, context: usize, reset: bool) {
        let primary = self.contexts[context].primary;
        let left = if primary { Life::Gone } else { Life::Orphan };
        let mut lost = 0;
        for stream in self.streams.iter_mut().filter(|it| it.context == context) {
            lost += usize::from(stream.life == Life::Alive);
            stream.life = Life::Gone;
        }
        for event in self.events.iter_mut().filter(|it| it.context == context) {
            lost += usize::from(event.life == Life::Alive);
            if event.life == Life::Alive {
                event.life = left;
            }
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
