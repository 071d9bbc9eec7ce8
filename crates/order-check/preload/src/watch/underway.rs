//! Submissions whose real calls are under way. Before such a call returns, others may see what it
//! writes, and its host functions may begin. Or the call fails, and there is no work.

use super::*;

/// What others may see of a submission.
pub(super) struct Visible {
    pub(super) stream: StreamId,
    /// The places of host functions, and of what the host may see.
    pub(super) places: Vec<u64>,
    /// Whether it writes something that counts as seen at once.
    pub(super) at_once: bool,
}

pub(super) struct UnderWay {
    caller: Made,
    seen: Visible,
    accepted: Box<dyn FnOnce(&mut Watch) + Send>,
}

impl Watch {
    /// Before the real call. Returns its number.
    pub(super) fn under_way(
        &mut self,
        seen: Visible,
        accepted: impl FnOnce(&mut Self) + Send + 'static,
    ) -> u64 {
        let caller = self.feed.caller();
        let number = caller.number;
        let accepted = Box::new(accepted);
        self.under_way.push(UnderWay { caller, seen, accepted });
        number
    }

    /// Another call begins, which may come after what counts as seen at once.
    pub(super) fn accept_seen(&mut self) {
        while let Some(at) = self.under_way.iter().position(|of| of.seen.at_once) {
            let caller = self.feed.caller();
            let of = self.under_way.remove(at);
            self.accept(of);
            self.feed.resume(caller);
        }
    }

    /// Something with this place begins, or is seen. If it is of a call under way, the driver has
    /// accepted that one.
    pub(super) fn begins_with(&mut self, place: u64) {
        if let Some(at) = self.under_way.iter().position(|of| of.seen.places.contains(&place)) {
            let caller = self.feed.caller();
            let of = self.under_way.remove(at);
            self.accept(of);
            self.feed.resume(caller);
        }
    }

    /// The real call with this number has returned.
    pub(super) fn returned(&mut self, number: u64, code: Code) {
        // If it is not there, its work has begun.
        let Some(at) = self.under_way.iter().position(|of| of.caller.number == number) else {
            return;
        };
        let of = self.under_way.remove(at);
        let own = self.pending.extract_if(.., |pending| of.seen.places.contains(&pending.place));
        let own: Vec<Pending> = own.collect();
        // The program may store other values before its next call.
        self.look();
        if code == OK {
            self.pending.extend(own);
            self.accept(of);
        } else {
            own.into_iter().for_each(|of| self.has_seen(of));
        }
    }

    fn accept(&mut self, UnderWay { caller, seen, accepted }: UnderWay) {
        self.feed.resume(caller);
        accepted(self);
        let is_flag = |of: &&mut Pending| of.page.is_some() && seen.places.contains(&of.place);
        let mut flags = self.pending.iter_mut().filter(is_flag).peekable();
        if flags.peek().is_some() {
            let work = self.feed.await_stream(seen.stream);
            flags.for_each(|of| of.work = Some(work.clone()));
        }
    }
}

/// The real call of a submission, with what is marked before. `seen` gives what others may see
/// meanwhile.
pub(super) fn around_seen<B: Send + 'static>(
    call: &Call,
    before: impl FnOnce(&mut Watch) -> B,
    real: impl FnOnce() -> Code,
    seen: impl FnOnce(&B) -> Visible,
    f: impl FnOnce(&mut Watch, B) + Send + 'static,
) -> Code {
    let mut number = None;
    let before = |watch: &mut Watch| {
        let before = before(watch);
        let seen = seen(&before);
        if seen.places.is_empty() && !seen.at_once {
            return Some((before, f));
        }
        number = Some(watch.under_way(seen, |watch| f(watch, before)));
        None
    };
    let begun = begin(call, |watch| (before(watch), watch.feed.caller()));
    let code = real();
    match (begun, number) {
        (_, Some(number)) => _ = with(|watch| watch.returned(number, code)),
        (Some((Some((before, f)), caller)), None) if code == OK => {
            with(|watch| {
                watch.feed.resume(caller);
                watch.look();
                f(watch, before);
            });
        }
        _ => {}
    }
    code
}
