//! Host threads that run the engine or wait for it.

use core::time::Duration;

use crate::abi::*;
use crate::engine::thread_time::{LOOK, Patience, this_thread};
use crate::machine::call_frame::CallFrame;
use crate::machine::{Locked, Machine, State};

/// How much time a seeded step gives the function or copy that it began, so that what comes next
/// does not depend on the machine's speed or load: it is the time of the threads that do it. One
/// that waits for the program itself takes longer, and is not waited for.
pub(crate) const STEP_PATIENCE: Duration = Duration::from_millis(20);

impl Machine {
    /// Does one step of a seeded scheduler, and waits for what it began.
    pub(crate) fn pump(&'static self, mut state: Locked) -> Locked {
        let free = !state.engine.at_work();
        state.running(self).step_at_random();
        if !free || self.in_host_function(state.epoch) {
            return state;
        }
        let epoch = state.epoch;
        let mut patience = None;
        state.engine.stepping = true;
        while state.engine.at_work() && state.epoch == epoch && !state.stopping {
            state.engine.waiters += 1;
            let over;
            (state, over) = state.wait_timeout(&self.done, LOOK);
            if state.epoch != epoch {
                break;
            }
            state.engine.waiters -= 1;
            let begun = state.engine.workers.len();
            if !over || begun < state.engine.job_threads() {
                continue;
            }
            let workers = &state.engine.workers;
            let patience = patience.get_or_insert_with(|| Patience::with(workers));
            if patience.look(workers) >= STEP_PATIENCE {
                break;
            }
        }
        state.engine.stepping = false;
        state
    }

    /// After a call under a seeded scheduler: a few steps, as many as the seed gives.
    pub(crate) fn pump_some(&'static self, call: &CallFrame) {
        let mut state = self.lock();
        let served = state.engine.waits.is_servant();
        if served
            || state.epoch != call.epoch
            || !state.initialised
            || self.in_host_function(state.epoch)
        {
            return;
        }
        state.engine.caller = this_thread();
        for _ in 0..state.engine.draw(4) {
            if state.engine.ready.is_empty() {
                return;
            }
            state = self.pump(state);
        }
    }

    /// Stops host functions from starting, or lets them run.
    pub(crate) fn hold_host_functions(&'static self, hold: bool) {
        self.lock().engine.hold_host_functions = hold;
        self.host.notify_all();
    }

    /// Sleeps until work was done; fails when the machine went away meanwhile.
    fn wait_done(&'static self, mut state: Locked, epoch: u64) -> Result<Locked, CUresult> {
        state.engine.waiters += 1;
        let mut state = state.wait(&self.done);
        if state.epoch != epoch {
            return Err(DEINITIALIZED);
        }
        state.engine.waiters -= 1;
        if state.stopping { Err(DEINITIALIZED) } else { Ok(state) }
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
        state.engine.idle_waiters += 1;
        let mut state = self.wait_until(state, done)?;
        state.engine.idle_waiters -= 1;
        Ok(state)
    }

    fn sleep_until(
        &'static self,
        mut state: Locked,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Result<Locked, CUresult> {
        let epoch = state.epoch;
        if state.engine.virtual_time {
            return self.wait_virtually(state, epoch, done);
        }
        loop {
            // A step waits too, and the machine may have gone meanwhile.
            if state.epoch != epoch {
                return Err(DEINITIALIZED);
            }
            if done(&mut state) {
                return Ok(state);
            }
            if !state.engine.prompt && !state.engine.ready.is_empty() {
                state.engine.caller = this_thread();
                state = self.pump(state);
                continue;
            }
            state = self.wait_done(state, epoch)?;
        }
    }
}
