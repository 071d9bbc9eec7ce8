//! How time passes for streams that are busy: by itself where it is real, and otherwise when the
//! program moves it or waits.

use core::time::Duration;

use crate::engine::busy::Passing;
use crate::machine::config::Time;
use crate::machine::{Machine, State};
use crate::sync::{wait, wait_timeout};

impl State {
    pub(crate) fn virtual_time(&self) -> bool {
        self.config.time == Time::Virtual
    }

    /// A stream is busy from now on.
    pub(crate) fn begin_busy(&mut self, machine: &'static Machine, stream: u32, id: u64, ns: u64) {
        let busy = &mut self.engine.busy;
        busy.begun += 1;
        busy.until.insert((self.clock.now().saturating_add(ns), busy.begun), (stream, id));
        if !self.virtual_time() {
            machine.timer.notify_one();
        } else {
            self.engine.waits.changed();
            if self.engine.waiters > 0 {
                // Who waits lets the time pass.
                machine.done.notify_all();
            }
        }
    }

    /// Streams that were busy until now, or until before, go on.
    pub(crate) fn end_busy(&mut self, machine: &'static Machine) {
        while let Some(entry) = self.engine.busy.until.first_entry()
            && entry.key().0 <= self.clock.now()
        {
            let (stream, id) = entry.remove();
            self.go_on(stream, id);
            self.run(machine);
        }
        if !self.prompt() && self.engine.waiters > 0 {
            // A waiter may have to do the next step itself.
            machine.done.notify_all();
        }
    }

    /// Streams of failed contexts are busy no longer.
    pub(crate) fn end_busy_of_failed(&mut self) {
        let (streams, contexts) = (&self.streams, &self.contexts);
        let failed = |stream: u32, id: u64| {
            let of = streams.get(stream).filter(|entry| entry.id == id);
            of.is_none_or(|entry| contexts[entry.context].failed.is_some())
        };
        let busy = self.engine.busy.until.iter();
        let over: Vec<(u64, u64)> =
            busy.filter(|(_, (stream, id))| failed(*stream, *id)).map(|(key, _)| *key).collect();
        for key in over {
            if let Some((stream, id)) = self.engine.busy.until.remove(&key) {
                self.go_on(stream, id);
            }
        }
    }

    /// Moves virtual time to `ns`, from the end of one busy stream to that of the next.
    pub(crate) fn pass_time_to(&mut self, machine: &'static Machine, ns: u64) {
        loop {
            // What is ready takes no time.
            while !self.prompt() && self.step_at_random(machine) {}
            let Some(next) = self.engine.busy.next().filter(|next| *next <= ns) else { break };
            self.clock.reach(next);
            self.end_busy(machine);
        }
        self.clock.reach(ns);
    }

    /// Virtual time has moved with a copy: who is done by now goes on.
    pub(crate) fn time_moved(&mut self, machine: &'static Machine) {
        if !self.engine.busy.is_empty() && self.virtual_time() {
            self.end_busy(machine);
        }
    }

    pub(crate) fn passing(&self) -> Passing {
        let engine = &self.engine;
        if self.next_moment().is_none() || !self.virtual_time() || !engine.pool_queue.is_empty() {
            return Passing::No;
        }
        let waits = engine.hold_host_functions || engine.host_queue.is_empty();
        match engine.running {
            0 if waits => Passing::Now,
            running if running == engine.in_host => Passing::Soon,
            _ => Passing::No,
        }
    }

    /// The next moment at which something happens by itself.
    fn next_moment(&self) -> Option<u64> {
        let ends = [self.engine.busy.next(), self.engine.waits.next()];
        ends.into_iter().flatten().min()
    }

    /// Moves virtual time to the next moment at which something happens.
    pub(crate) fn pass_time(&mut self, machine: &'static Machine) {
        if let Some(next) = self.next_moment() {
            self.clock.reach(next);
            self.end_busy(machine);
        }
    }
}

/// The thread that ends what is busy in real time.
pub(crate) fn timer_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    loop {
        if state.epoch != epoch || state.stopping {
            return;
        }
        let Some(next) = state.engine.busy.next() else {
            state = wait(&machine.timer, state);
            continue;
        };
        let left = next.saturating_sub(state.clock.now());
        if left > 0 {
            let left = Duration::from_nanos(left);
            (state, _) = wait_timeout(&machine.timer, state, left);
            continue;
        }
        state.end_busy(machine);
    }
}
