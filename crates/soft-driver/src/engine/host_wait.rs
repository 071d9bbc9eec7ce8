//! Host threads that run the engine or wait for it.

use core::time::Duration;

use crate::abi::*;
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, Machine, State};
use crate::threads::processor_time::{LOOK, Patience, this_thread};

/// How much time a seeded step gives the function or copy that it began, so that what comes next
/// does not depend on the machine's speed or load: it is the time of the threads that do it. One
/// that waits for the program itself takes longer, and is not waited for.
pub(crate) const STEP_PATIENCE: Duration = Duration::from_millis(20);

impl Machine {
    /// Does one step of a seeded scheduler, and waits for what it began.
    pub(crate) fn pump(&'static self, mut state: Locked) -> Locked {
        let free = !state.engine.jobs.are_left();
        state.running().step_at_random();
        if !free || self.in_host_function(state.life.epoch) {
            return state;
        }
        let epoch = state.life.epoch;
        let mut patience = None;
        state.engine.schedule.stepping = true;
        while state.engine.jobs.are_left() && !state.life.is_over(epoch) {
            state.engine.waiters.count += 1;
            let over;
            (state, over) = state.wait_timeout(&self.wake.done, LOOK);
            if state.life.epoch != epoch {
                break;
            }
            state.engine.waiters.count -= 1;
            let begun = state.engine.threads.ids.len();
            if !over || begun < state.engine.threads.for_jobs() {
                continue;
            }
            let workers = &state.engine.threads.ids;
            let patience = patience.get_or_insert_with(|| Patience::with(workers));
            if patience.look(workers) >= STEP_PATIENCE {
                break;
            }
        }
        state.engine.schedule.stepping = false;
        state
    }

    /// After a call under a seeded scheduler: a few steps, as many as the seed gives.
    pub(crate) fn pump_some(&'static self, call: &CallFrame) {
        let mut state = self.lock();
        let served = state.engine.waits.is_servant();
        if served
            || state.life.epoch != call.epoch
            || !state.life.initialised
            || self.in_host_function(state.life.epoch)
        {
            return;
        }
        state.engine.schedule.caller = this_thread();
        for _ in 0..state.engine.schedule.draw(4) {
            if state.engine.schedule.ready.is_empty() {
                return;
            }
            state = self.pump(state);
        }
    }

    /// Stops host functions from starting, or lets them run.
    pub(crate) fn hold_host_functions(&'static self, hold: bool) {
        self.lock().engine.jobs.host_held = hold;
        self.wake.host.notify_all();
    }

    /// Sleeps until work was done; fails when the machine went away meanwhile.
    fn wait_done(&'static self, mut state: Locked, epoch: u64) -> Result<Locked, CUresult> {
        state.engine.waiters.count += 1;
        let mut state = state.wait(&self.wake.done);
        state.life.owned_by(epoch)?;
        state.engine.waiters.count -= 1;
        state.life.lasts(epoch)?;
        Ok(state)
    }

    /// Sleeps until `done` holds, doing what a seeded scheduler has left to do.
    pub(crate) fn wait_until(
        &'static self,
        mut state: Locked,
        done: impl FnMut(&mut State) -> bool,
    ) -> Result<Locked, CUresult> {
        // Other calls are made meanwhile.
        let Some(caller) = state.feed(|feed, _| feed.caller()) else {
            return self.sleep_until(state, done);
        };
        state = self.sleep_until(state, done)?;
        state.feed(|feed, _| feed.resume(caller));
        Ok(state)
    }

    /// The same for what is over when streams have no work.
    pub(crate) fn wait_until_idle(
        &'static self,
        mut state: Locked,
        done: impl FnMut(&mut State) -> bool,
    ) -> Result<Locked, CUresult> {
        state.engine.waiters.for_idle += 1;
        let mut state = self.wait_until(state, done)?;
        state.engine.waiters.for_idle -= 1;
        Ok(state)
    }

    fn sleep_until(
        &'static self,
        mut state: Locked,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Result<Locked, CUresult> {
        let epoch = state.life.epoch;
        if state.engine.clock.is_virtual() {
            return self.wait_virtually(state, epoch, done);
        }
        loop {
            // A step waits too, and the machine may have gone meanwhile.
            state.life.owned_by(epoch)?;
            if done(&mut state) {
                return Ok(state);
            }
            if state.engine.schedule.has_steps() {
                state.engine.schedule.caller = this_thread();
                state = self.pump(state);
                continue;
            }
            state = self.wait_done(state, epoch)?;
        }
    }
}
