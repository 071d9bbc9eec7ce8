//! Memory: allocations, copies, memsets and values.

use super::graphs::Deed;
use super::work::Act;
use super::{Answer, INVALID_VALUE, Model, OUT_OF_MEMORY, SUCCESS, says};

pub struct Allocation {
    pub address: u64,
    pub context: usize,
    /// Pinned memory of the host.
    pub host: bool,
    pub alive: bool,
    /// What is not known is written by nobody, or by two at once.
    pub bytes: Vec<Option<u8>>,
}

/// A part of an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub memory: usize,
    pub start: usize,
    pub bytes: usize,
}

impl Span {
    /// Whether a byte of another part is in this one.
    pub(super) fn holds(self, other: Self, offset: usize) -> bool {
        let at = other.start + offset;
        self.memory == other.memory && (self.start..self.start + self.bytes).contains(&at)
    }

    fn overlaps(self, other: Self) -> bool {
        (0..other.bytes).any(|offset| self.holds(other, offset))
    }
}

/// A value in memory.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub address: u64,
    pub wide: bool,
    pub value: u64,
}

impl Word {
    pub fn bytes(self) -> usize {
        if self.wide { 8 } else { 4 }
    }
}

impl Model {
    /// A capture may forbid it, like a query.
    pub fn alloc(&mut self, bytes: usize) -> Option<Result<usize, Answer>> {
        let good = self.allocates(bytes);
        match good {
            // The order of the checks is open.
            Err(_) if self.anything_captured() => None,
            Err(answer) => Some(Err(answer)),
            Ok(context) => Some(self.unsafe_call()?.map(|()| context)),
        }
    }

    fn allocates(&self, bytes: usize) -> Result<usize, Answer> {
        let context = self.current()?;
        match bytes {
            0 => Err(says(INVALID_VALUE)),
            bytes if bytes > 1 << 48 => Err(says(OUT_OF_MEMORY)),
            _ => Ok(context),
        }
    }

    pub fn host_alloc(&self, bytes: usize, flags: u32) -> Option<Result<usize, Answer>> {
        if self.anything_captured() {
            return None;
        }
        if flags > 7 {
            return Some(Err(says(INVALID_VALUE)));
        }
        Some(self.allocates(bytes))
    }

    pub fn allocated(&mut self, context: usize, address: u64, bytes: usize, host: bool) {
        let (alive, bytes) = (true, vec![None; bytes]);
        assert!(
            !self.memory.iter().any(|it| it.alive
                && it.address < address + bytes.len() as u64
                && address < it.address + it.bytes.len() as u64),
            "{address:#x} is in memory that is not freed"
        );
        self.memory.push(Allocation { address, context, host, alive, bytes });
    }

    /// The allocation that begins at an address.
    pub fn base(&self, address: u64) -> Option<usize> {
        self.memory.iter().position(|it| it.alive && it.address == address)
    }

    pub fn free(&mut self, address: u64, host: bool) -> Answer {
        if address == 0 && !host {
            return says(SUCCESS);
        }
        if let Err(answer) = self.current() {
            return answer;
        }
        match self.base(address).filter(|it| self.memory[*it].host == host) {
            Some(memory) => {
                self.memory[memory].alive = false;
                says(SUCCESS)
            }
            None => says(INVALID_VALUE),
        }
    }

    /// The memory of a context ends with it. How much it is.
    pub(super) fn end_memory(&mut self, context: usize) -> usize {
        let ours = self.memory.iter_mut().filter(|it| it.alive && it.context == context);
        ours.map(|it| it.alive = false).count()
    }

    /// A range of memory, all in one allocation.
    pub fn span(&self, address: u64, bytes: usize) -> Result<Span, Answer> {
        let memory = self.memory.iter().position(|it| {
            it.alive && (it.address..it.address + it.bytes.len() as u64).contains(&address)
        });
        let memory = memory.ok_or(says(INVALID_VALUE))?;
        let entry = &self.memory[memory];
        let start = (address - entry.address) as usize;
        if bytes > entry.bytes.len() - start {
            return Err(says(INVALID_VALUE));
        }
        Ok(Span { memory, start, bytes })
    }

    /// The rules do not say who may use the memory of another context.
    fn is_for(&self, span: Span, stream: usize) -> bool {
        self.memory[span.memory].context == self.streams[stream].context
    }

    /// Elements of so many bytes, all of one value. `None`: open.
    pub fn fill(
        &mut self,
        address: u64,
        element: &[u8],
        count: usize,
        stream: u64,
    ) -> Option<Answer> {
        let checked = |model: &Self| {
            let stream = model.stream(stream)?;
            if !address.is_multiple_of(element.len() as u64) {
                return Err(says(INVALID_VALUE));
            }
            if count == 0 {
                return Err(says(SUCCESS));
            }
            let bytes = count.checked_mul(element.len()).ok_or(says(INVALID_VALUE))?;
            Ok((stream, model.span(address, bytes)?))
        };
        let (stream, span) = match checked(self) {
            Ok(both) => both,
            Err(answer) => return Some(answer),
        };
        if !self.is_for(span, stream) {
            return None;
        }
        self.submit(stream, Deed::Act(Act::Put(span, element.repeat(count))))
    }

    /// Ordinary memory of the host is copied: it has been read when the call returns.
    pub fn put(&mut self, address: u64, source: &[u8], null: bool, stream: u64) -> Option<Answer> {
        let checked = |model: &Self| {
            let stream = model.stream(stream)?;
            if source.is_empty() {
                return Err(says(SUCCESS));
            }
            if null {
                return Err(says(INVALID_VALUE));
            }
            Ok((stream, model.span(address, source.len())?))
        };
        let (stream, span) = match checked(self) {
            Ok(all) => all,
            Err(answer) => return Some(answer),
        };
        // A graph would read the memory at its launches.
        if !self.is_for(span, stream) || self.streams[stream].part.is_some() {
            return None;
        }
        // A copy on the host waits for its stream.
        if self.memory[span.memory].host && self.would_wait(stream) {
            return None;
        }
        self.submit(stream, Deed::Act(Act::Put(span, source.to_vec())))
    }

    /// A copy within memory that the driver knows.
    pub fn copy(&mut self, to: u64, from: u64, bytes: usize, stream: u64) -> Option<Answer> {
        let checked = |model: &Self| {
            let stream = model.stream(stream)?;
            if bytes == 0 {
                return Err(says(SUCCESS));
            }
            Ok((stream, model.span(to, bytes)?, model.span(from, bytes)?))
        };
        let (stream, to, from) = match checked(self) {
            Ok(all) => all,
            Err(answer) => return Some(answer),
        };
        if to.overlaps(from) || !self.is_for(to, stream) || !self.is_for(from, stream) {
            return None;
        }
        // A copy on the host waits for its stream.
        let host = |span: Span| self.memory[span.memory].host;
        if host(to) && host(from) && self.would_wait(stream) {
            return None;
        }
        self.submit(stream, Deed::Act(Act::Copy(to, from)))
    }

    /// A copy to ordinary memory of the host, which waits: so the stream must have nothing to wait
    /// for. Beside the answer what is copied.
    pub fn get(
        &mut self,
        address: u64,
        bytes: usize,
        stream: u64,
    ) -> Option<(Answer, Vec<Option<u8>>)> {
        let refused = |answer| Some((answer, Vec::new()));
        let stream = match self.stream(stream) {
            Ok(stream) => stream,
            Err(answer) => return refused(answer),
        };
        if bytes == 0 {
            return refused(says(SUCCESS));
        }
        let span = match self.span(address, bytes) {
            Ok(span) => span,
            Err(answer) => return refused(answer),
        };
        if self.would_wait(stream) || !self.is_for(span, stream) || !self.is_plain(stream) {
            return None;
        }
        let known = self.memory[span.memory].bytes[span.start..][..bytes].to_vec();
        Some((says(SUCCESS), known))
    }

    /// The memory of a value for a stream.
    fn word(&self, word: Word, stream: u64) -> Result<(usize, Span), Answer> {
        let stream = self.stream(stream)?;
        if word.address == 0 || !word.address.is_multiple_of(word.bytes() as u64) {
            return Err(says(INVALID_VALUE));
        }
        Ok((stream, self.span(word.address, word.bytes())?))
    }

    pub fn write_value(&mut self, word: Word, stream: u64) -> Option<Answer> {
        let (stream, span) = match self.word(word, stream) {
            Ok(both) => both,
            Err(answer) => return Some(answer),
        };
        if !self.is_for(span, stream) {
            return None;
        }
        let bytes = word.value.to_le_bytes()[..word.bytes()].to_vec();
        self.submit(stream, Deed::Value(Act::Put(span, bytes)))
    }

    /// A wait for a value that is there already: another one would not end.
    pub fn wait_value(&self, word: Word, condition: u32, stream: u64) -> Option<Answer> {
        let (stream, span) = match self.word(word, stream) {
            Ok(both) => both,
            Err(answer) => return Some(answer),
        };
        if self.would_wait(stream) || !self.is_for(span, stream) || !self.is_plain(stream) {
            return None;
        }
        let now = self.value(word)?;
        let (bits, mask) = if word.wide { (64, u64::MAX) } else { (32, u64::from(u32::MAX)) };
        let value = word.value & mask;
        let difference = now.wrapping_sub(value) & mask;
        let holds = match condition {
            0 => difference >> (bits - 1) == 0,
            1 => now == value,
            2 => now & value != 0,
            _ => !(now | value) & mask != 0,
        };
        holds.then_some(says(SUCCESS))
    }

    /// The value that is there, if it is known and nothing pending writes it.
    pub fn value(&self, word: Word) -> Option<u64> {
        let span = self.span(word.address, word.bytes()).ok()?;
        if self.in_use(span.memory) {
            return None;
        }
        let bytes = &self.memory[span.memory].bytes[span.start..][..span.bytes];
        bytes.iter().rev().try_fold(0, |value, byte| Some(value << 8 | u64::from((*byte)?)))
    }

    /// Whether a stream can wait for a value that another stream writes afterwards.
    pub fn can_pass_a_value(&self, word: Word, waiting: u64, writing: u64) -> bool {
        let (Ok((one, span)), Ok((two, _))) = (self.word(word, waiting), self.word(word, writing))
        else {
            return false;
        };
        one != two
            && !self.anything_captured()
            && [one, two]
                .into_iter()
                .all(|it| !self.is_legacy(it) && !self.would_wait(it) && self.is_for(span, it))
    }
}
