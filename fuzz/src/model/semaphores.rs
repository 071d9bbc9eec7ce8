//! External semaphores: imports, signals and waits.

use super::graphs::Deed;
use super::{Answer, INVALID_HANDLE, INVALID_VALUE, Life, Model, SUCCESS, UNKNOWN, misuse, says};

pub struct Semaphore {
    pub handle: u64,
    pub(super) context: usize,
    pub life: Life,
    pub binary: bool,
    /// Of a binary one, whether it is signalled.
    pub value: u64,
}

/// What a descriptor is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Descriptor {
    Timeline,
    Binary,
    AnotherFile,
    None,
}

/// The types of handles that are known on Linux.
pub const OPAQUE: u32 = 1;
pub const TIMELINE: u32 = 9;

impl Model {
    /// The context that gets it.
    pub fn import_semaphore(
        &self,
        kind: u32,
        descriptor: Descriptor,
        flags: u32,
    ) -> Option<Result<usize, Answer>> {
        // Whether a capture forbids it is open.
        if self.anything_captured() {
            return None;
        }
        let bad = match (kind, descriptor) {
            (OPAQUE, Descriptor::Binary) | (TIMELINE, Descriptor::Timeline) => None,
            (OPAQUE, Descriptor::Timeline) | (TIMELINE, Descriptor::Binary) => {
                Some(misuse(UNKNOWN))
            }
            (OPAQUE | TIMELINE, Descriptor::AnotherFile) | (OPAQUE, Descriptor::None) => {
                Some(says(UNKNOWN))
            }
            // Of two things that are wrong the order is open.
            (kind, descriptor) if kind != TIMELINE && descriptor == Descriptor::None => {
                return None;
            }
            _ => Some(says(INVALID_VALUE)),
        };
        let (flags, current) = ((flags != 0).then_some(says(INVALID_VALUE)), self.current());
        match (bad, flags, current) {
            (None, None, current) => Some(current),
            (Some(answer), None, Ok(_)) | (None, Some(answer), Ok(_)) => Some(Err(answer)),
            _ => None,
        }
    }

    pub fn imported_semaphore(&mut self, context: usize, handle: u64, binary: bool) {
        let (life, value) = (Life::Alive, 0);
        self.semaphores.push(Semaphore { handle, context, life, binary, value });
    }

    fn semaphore(&self, handle: u64) -> Result<usize, Answer> {
        let found = self.semaphores.iter().rposition(|it| it.handle == handle);
        let index = found.ok_or_else(|| self.unknown(handle, 3))?;
        match self.semaphores[index].life {
            Life::Alive => Ok(index),
            _ => Err(misuse(INVALID_HANDLE)),
        }
    }

    pub fn destroy_semaphore(&mut self, handle: u64) -> Option<Answer> {
        if handle == 0 {
            return Some(says(INVALID_VALUE));
        }
        match self.semaphore(handle) {
            // Of a context that ended there is no rule.
            Ok(index) if self.usable(self.semaphores[index].context).is_err() => None,
            Ok(index) => {
                self.semaphores[index].life = Life::Gone;
                Some(says(SUCCESS))
            }
            Err(answer) => Some(answer),
        }
    }

    /// The semaphores of a call, if nothing is wrong.
    fn given(
        &self,
        all: &[u64],
        signals: bool,
        stream: u64,
    ) -> Option<Result<(usize, Vec<usize>), Answer>> {
        let stream = self.stream(stream);
        let mut wrong: Vec<Answer> = stream.err().into_iter().collect();
        if all.is_empty() {
            wrong.push(says(INVALID_VALUE));
        }
        let mut found = Vec::new();
        for handle in all {
            match (*handle, self.semaphore(*handle)) {
                (0, _) if signals => wrong.push(misuse(INVALID_VALUE)),
                (0, _) => wrong.push(says(INVALID_VALUE)),
                // One semaphore twice in a call is not in the rules.
                (_, Ok(index)) if found.contains(&index) => return None,
                (_, Ok(index)) => {
                    let context = stream.map(|it| self.streams[it].context);
                    if context.is_ok_and(|it| it != self.semaphores[index].context) {
                        wrong.push(says(INVALID_VALUE));
                    }
                    found.push(index);
                }
                (_, Err(answer)) => wrong.push(answer),
            }
        }
        match (wrong.as_slice(), stream) {
            ([], Ok(stream)) => Some(Ok((stream, found))),
            ([answer], _) => Some(Err(*answer)),
            _ => None,
        }
    }

    /// Signals, or waits for what is signalled already. It is done at once.
    pub fn use_semaphores(
        &mut self,
        all: &[u64],
        signals: bool,
        value: u64,
        stream: u64,
    ) -> Option<Answer> {
        let (stream, found) = match self.given(all, signals, stream)? {
            Ok(both) => both,
            // Which of the errors a captured call gives is open.
            Err(answer) => {
                let plain = self.stream(stream).map_or(true, |it| self.is_plain(it));
                return plain.then_some(answer);
            }
        };
        if !self.is_plain(stream) {
            return self.submit(stream, Deed::Semaphore);
        }
        let good = |index: &usize| {
            let entry = &self.semaphores[*index];
            match (entry.binary, signals) {
                (true, signals) => (entry.value == 0) == signals,
                (false, true) => value > entry.value,
                (false, false) => value <= entry.value,
            }
        };
        if self.would_wait(stream) || !found.iter().all(good) {
            return None;
        }
        for index in found {
            let entry = &mut self.semaphores[index];
            match (entry.binary, signals) {
                (true, _) => entry.value = u64::from(signals),
                (false, true) => entry.value = value,
                (false, false) => {}
            }
        }
        Some(says(SUCCESS))
    }

    /// Whether a stream can wait for a semaphore that is signalled afterwards: by another stream,
    /// or by the other API.
    pub fn can_pass_a_semaphore(&self, handle: u64, waiting: u64, signals: Option<u64>) -> bool {
        let good = |stream: u64| {
            let Some(Ok((stream, _))) = self.given(&[handle], true, stream) else { return false };
            !self.is_legacy(stream) && !self.would_wait(stream)
        };
        // Two handles of one stream would wait for each other.
        !self.anything_captured()
            && good(waiting)
            && signals.is_none_or(|it| good(it) && self.stream(it) != self.stream(waiting))
    }

    /// A semaphore was signalled, and waited for.
    pub fn passed_a_semaphore(&mut self, handle: u64, value: u64) {
        if let Ok(index) = self.semaphore(handle)
            && !self.semaphores[index].binary
        {
            self.semaphores[index].value = value;
        }
    }

    /// The value of a binary one is whether it is signalled.
    pub fn semaphore_value(&self, handle: u64) -> Option<(bool, u64)> {
        let entry = &self.semaphores[self.semaphore(handle).ok()?];
        Some((entry.binary, entry.value))
    }

    /// The semaphores of a context end with it. How many they are.
    pub(super) fn end_semaphores(&mut self, context: usize) -> usize {
        let alive = |it: &&mut Semaphore| it.context == context && it.life == Life::Alive;
        self.semaphores.iter_mut().filter(alive).map(|it| it.life = Life::Gone).count()
    }
}
