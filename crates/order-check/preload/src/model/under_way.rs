//! Submissions under way are accepted when their call returns, or when somebody sees their work before.

use crate::call::{Code, OK};
use crate::state::under_way::{UnderWay, Visible};
use crate::state::values::Pending;
use crate::watch::Watch;

impl Watch {
    /// Before the real call of a submission. Returns its number.
    pub(crate) fn submission_begins(
        &mut self,
        visible: Visible,
        accepted: impl FnOnce(&mut Self) + Send + 'static,
    ) -> u64 {
        let caller = self.feed.caller();
        let number = caller.number;
        let accepted = Box::new(accepted);
        self.under_way.push(UnderWay { caller, visible, accepted });
        number
    }

    /// Another call begins, which may come after what counts as seen at once.
    pub(crate) fn accept_visible(&mut self) {
        while let Some(at) = self.under_way.iter().position(|call| call.visible.at_once) {
            self.accept_early(at);
        }
    }

    /// A host function with this number begins, or a write is seen. If it is of a call under way, the
    /// driver has accepted that one.
    pub(crate) fn accept_with(&mut self, id: u64) {
        if let Some(at) = self.under_way.iter().position(|call| call.visible.ids.contains(&id)) {
            self.accept_early(at);
        }
    }

    /// The caller of the submission is put in the place of the call that begins, and back.
    fn accept_early(&mut self, at: usize) {
        let caller = self.feed.caller();
        let call = self.under_way.remove(at);
        self.accept(call);
        self.feed.resume(caller);
    }

    /// The real call with this number has returned.
    pub(crate) fn submission_returned(&mut self, number: u64, code: Code) {
        // If it is not there, its work has begun.
        let Some(at) = self.under_way.iter().position(|call| call.caller.number == number) else {
            return;
        };
        let call = self.under_way.remove(at);
        let is_own = |pending: &mut Pending| call.visible.ids.contains(&pending.id);
        let own: Vec<Pending> = self.values.pending.extract_if(.., is_own).collect();
        // The program may store other values before its next call.
        self.look_at_values();
        if code == OK {
            self.values.pending.extend(own);
            self.accept(call);
        } else {
            own.into_iter().for_each(|pending| self.has_seen(pending));
        }
    }

    fn accept(&mut self, UnderWay { caller, visible, accepted }: UnderWay<Self>) {
        self.feed.resume(caller);
        accepted(self);
        let is_flag =
            |pending: &&mut Pending| pending.page.is_some() && visible.ids.contains(&pending.id);
        let mut flags = self.values.pending.iter_mut().filter(is_flag).peekable();
        if flags.peek().is_some() {
            let work = self.feed.await_stream(visible.stream);
            flags.for_each(|flag| flag.work = Some(work.clone()));
        }
    }
}
