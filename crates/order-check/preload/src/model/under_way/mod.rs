//! Submissions under way are accepted when their call returns, or when somebody sees their work before.

pub(crate) mod state;

use crate::call::{Code, OK};
use crate::model::under_way::state::{UnderWay, Visible};
use crate::model::values::state::Pending;
use crate::watch::Watch;

impl Watch {
    /// Before the real call. Returns its number.
    pub(crate) fn under_way(
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
    pub(crate) fn accept_seen(&mut self) {
        while let Some(at) = self.under_way.iter().position(|of| of.seen.at_once) {
            let caller = self.feed.caller();
            let of = self.under_way.remove(at);
            self.accept(of);
            self.feed.resume(caller);
        }
    }

    /// Something with this place begins, or is seen. If it is of a call under way, the driver has
    /// accepted that one.
    pub(crate) fn begins_with(&mut self, place: u64) {
        if let Some(at) = self.under_way.iter().position(|of| of.seen.places.contains(&place)) {
            let caller = self.feed.caller();
            let of = self.under_way.remove(at);
            self.accept(of);
            self.feed.resume(caller);
        }
    }

    /// The real call with this number has returned.
    pub(crate) fn returned(&mut self, number: u64, code: Code) {
        // If it is not there, its work has begun.
        let Some(at) = self.under_way.iter().position(|of| of.caller.number == number) else {
            return;
        };
        let of = self.under_way.remove(at);
        let own =
            self.values.pending.extract_if(.., |pending| of.seen.places.contains(&pending.place));
        let own: Vec<Pending> = own.collect();
        // The program may store other values before its next call.
        self.look();
        if code == OK {
            self.values.pending.extend(own);
            self.accept(of);
        } else {
            own.into_iter().for_each(|of| self.has_seen(of));
        }
    }

    pub(crate) fn accept(&mut self, UnderWay { caller, seen, accepted }: UnderWay<Self>) {
        self.feed.resume(caller);
        accepted(self);
        let is_flag = |of: &&mut Pending| of.page.is_some() && seen.places.contains(&of.place);
        let mut flags = self.values.pending.iter_mut().filter(is_flag).peekable();
        if flags.peek().is_some() {
            let work = self.feed.await_stream(seen.stream);
            flags.for_each(|of| of.work = Some(work.clone()));
        }
    }
}
