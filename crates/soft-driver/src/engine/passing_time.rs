//! How time passes for streams that are busy: by itself where it is real, and otherwise when the
//! program moves it or waits.

use core::time::Duration;

use crate::engine::busy::Passing;
use crate::engine::{Engine, Running};
use crate::machine::Machine;

impl Engine {
    pub(crate) fn passing(&self) -> Passing {
        let jobs = &self.jobs;
        if self.next_moment().is_none() || !self.clock.is_virtual() || !jobs.pool.is_empty() {
            return Passing::No;
        }
        let waits = jobs.host_held || jobs.host.is_empty();
        match jobs.running {
            0 if waits => Passing::Now,
            running if running == jobs.in_host => Passing::Soon,
            _ => Passing::No,
        }
    }

    /// The next moment at which something happens by itself.
    fn next_moment(&self) -> Option<u64> {
        let ends = [self.busy.next(), self.waits.next()];
        ends.into_iter().flatten().min()
    }
}

impl Running<'_> {
    /// A stream is busy from now on.
    pub(crate) fn begin_busy(&mut self, stream: u32, id: u64, ns: u64) {
        let end = self.engine.clock.now().saturating_add(ns);
        let busy = &mut self.engine.busy;
        busy.begun += 1;
        busy.until.insert((end, busy.begun), (stream, id));
        if !self.engine.clock.is_virtual() {
            self.engine.wake.timer.notify_one();
        } else {
            self.engine.waits.changed();
            // Who waits lets the time pass.
            self.engine.waiters.wake();
        }
    }

    /// Streams that were busy until now, or until before, go on.
    pub(crate) fn end_busy(&mut self) {
        while let Some(entry) = self.engine.busy.until.first_entry()
            && entry.key().0 <= self.engine.clock.now()
        {
            let (stream, id) = entry.remove();
            self.go_on(stream, id);
            self.run();
        }
        if !self.engine.schedule.prompt {
            // A waiter may have to do the next step itself.
            self.engine.waiters.wake();
        }
    }

    /// Streams of failed contexts are busy no longer.
    pub(crate) fn end_busy_of_failed(&mut self) {
        let (streams, contexts) = (&*self.streams, &self.engine.contexts);
        let failed = |stream: u32, id: u64| {
            let found = streams.get(stream).filter(|entry| entry.id == id);
            found.is_none_or(|entry| contexts[entry.context].failed.is_some())
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
    pub(crate) fn pass_time_to(&mut self, ns: u64) {
        loop {
            // What is ready takes no time.
            while !self.engine.schedule.prompt && self.step_at_random() {}
            let Some(next) = self.engine.busy.next().filter(|next| *next <= ns) else { break };
            self.engine.clock.reach(next);
            self.end_busy();
        }
        self.engine.clock.reach(ns);
    }

    /// Virtual time has moved with a copy: who is done by now goes on.
    pub(crate) fn time_moved(&mut self) {
        if !self.engine.busy.is_empty() {
            self.end_busy();
        }
    }

    /// Moves virtual time to the next moment at which something happens.
    pub(crate) fn pass_time(&mut self) {
        if let Some(next) = self.engine.next_moment() {
            self.engine.clock.reach(next);
            self.end_busy();
        }
    }
}

/// The thread that ends what is busy in real time.
pub(crate) fn timer_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    loop {
        if state.life.is_over(epoch) {
            return;
        }
        let Some(next) = state.engine.busy.next() else {
            state = state.wait(&machine.wake.timer);
            continue;
        };
        let left = next.saturating_sub(state.engine.clock.now());
        if left > 0 {
            let left = Duration::from_nanos(left);
            (state, _) = state.wait_timeout(&machine.wake.timer, left);
            continue;
        }
        state.running().end_busy();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::engine::work::{Job, Work};
    use crate::machine::config::Time;
    use crate::memory::work::MemoryWork;
    use crate::memory::{Keeper, Place};

    /// Time goes on when nothing else is left to do: a function of the program that runs may wait for
    /// it, and one that is held back does not begin.
    #[test]
    fn time_passes_when_nothing_else_is_left() {
        const NOW: Passing = Passing::Now;
        const SOON: Passing = Passing::Soon;
        const NO: Passing = Passing::No;
        let jobs = |count: usize| -> VecDeque<Job> {
            let place = || Place { address: 0, keeper: Keeper::Program };
            let work = || MemoryWork::Copy { to: place(), from: place(), bytes: 0 };
            let job = || Job { stream: 0, id: 0, at: 0, work: Work::Memory(work()) };
            (0..count).map(|_| job()).collect()
        };
        // The jobs of host functions, whether they are held, those of memory, those that run, and
        // those of them that are functions.
        for (host, held, pool, running, in_host, expected) in [
            (0, false, 0, 0, 0, NOW),
            (1, false, 0, 0, 0, SOON),
            (1, true, 0, 0, 0, NOW),
            (0, false, 1, 0, 0, NO),
            (0, false, 0, 1, 1, SOON),
            (0, true, 0, 1, 1, SOON),
            (0, false, 0, 1, 0, NO),
            (1, true, 0, 2, 1, NO),
        ] {
            let mut engine = Engine::new(0);
            engine.clock.start(Time::Virtual);
            let all = &mut engine.jobs;
            (all.host, all.pool, all.host_held) = (jobs(host), jobs(pool), held);
            (all.running, all.in_host) = (running, in_host);
            assert_eq!(engine.passing(), NO, "nothing is busy, and nobody waits");
            engine.busy.until.insert((7, 1), (0, 0));
            assert_eq!(engine.passing(), expected, "{host} {held} {pool} {running} {in_host}");
            engine.busy.clear();
            engine.waits.limits.insert((7, 1));
            assert_eq!(engine.passing(), expected, "a wait has a limit");
            engine.clock.start(Time::Real);
            assert_eq!(engine.passing(), NO, "real time passes by itself");
        }
    }
}
