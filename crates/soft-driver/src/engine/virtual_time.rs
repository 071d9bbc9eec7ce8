//! How virtual time moves, and who waits for it: threads in a call, threads and tasks that wait by
//! the clock, and threads that ask the same thing over and over.
//!
//! Time moves in one place, [`Machine::step`], which every thread that waits calls until its wait
//! is over. One of them at a time looks whether all other threads wait as well ([`Quiet`]). If they
//! do, two things are left to do, each of which begins anew when something has happened:
//!
//! 1. Those who wait for what the driver does not see, such as a value in memory, look again.
//! 2. Time moves to the next moment at which something happens: the end of what a stream is busy
//!    with, or the limit of a wait.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

use cuda_events::HostClock;

use crate::abi::*;
use crate::engine::Engine;
use crate::engine::busy::Passing;
use crate::machine::{Locked, Machine, State};
use crate::threads::idle::{Question, Quiet};
use crate::threads::processor_time::{LOOK, this_thread};

/// How long a thread sleeps at first before it looks again whether others run.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
/// The longest wait by the clock without anything that happens. Then the caller looks again, as a
/// thread may have written what it waits for without a call.
const LONGEST_WAIT: Duration = Duration::from_millis(2);
/// After how many equal answers a thread is taken to wait for another one.
const PATIENCE: u32 = 8;
/// The questions that are kept for each thread.
const QUESTIONS: usize = 256;

impl Engine {
    /// Wakes all threads that wait, so that each looks again.
    fn wake_all(&mut self) {
        self.waits.changed();
        self.waiters.wake();
    }
}

impl Machine {
    /// A call of the program in virtual time. Whether it is one that repeats a question.
    pub(crate) fn note_call(&'static self, epoch: u64, is_question: bool, is_neutral: bool) {
        let mut state = self.lock();
        if state.life.epoch != epoch || state.engine.waits.is_servant() {
            return;
        }
        let program = state.engine.waits.threads.entry(this_thread()).or_default();
        program.calls += 1;
        if !is_question && !is_neutral {
            program.asked.clear();
        }
    }

    /// The calling thread learned that something is pending. If it has learned so over and over, it
    /// waits for a step; whether it did.
    pub(crate) fn repeated(&'static self, epoch: u64, question: u64) -> bool {
        let mut state = self.lock();
        if state.life.is_over(epoch) || state.engine.waits.is_servant() {
            return false;
        }
        let waits = &mut state.engine.waits;
        let moves = waits.moves;
        let program = waits.threads.entry(this_thread()).or_default();
        let waits_now = match program.asked.iter_mut().find(|asked| asked.0 == question) {
            Some((_, count, at)) => {
                *count = count.saturating_add(1);
                // After time has moved each question comes first, before it moves again.
                core::mem::replace(at, moves) == moves && *count >= PATIENCE
            }
            None => {
                if program.asked.len() >= QUESTIONS {
                    program.asked.clear();
                }
                program.asked.push((question, 1, moves));
                false
            }
        };
        if waits_now && !self.in_host_function(epoch) {
            drop(state);
            self.wait_by_clock(epoch, u64::MAX);
        }
        waits_now
    }

    /// Waits until something happens, or until virtual time is `limit`, but not for long.
    fn wait_by_clock(&'static self, epoch: u64, limit: u64) {
        let mut state = self.lock();
        if state.life.is_over(epoch) {
            drop(state);
            std::thread::sleep(LOOK);
            return;
        }
        let (me, began, mut pause) = (this_thread(), Instant::now(), SHORTEST_PAUSE);
        let known = state.engine.waits.changes;
        if limit != u64::MAX {
            state.engine.waits.limits.insert((limit, me));
        }
        state.engine.waits.lookers += 1;
        while state.engine.waits.changes == known
            && state.engine.clock.now() < limit
            && began.elapsed() < LONGEST_WAIT
        {
            state = match self.seeded_step(state, epoch) {
                Ok(Step::Done(state)) => state,
                Ok(Step::None(state)) => match self.step(state, epoch, &mut pause, false) {
                    Ok(state) => state,
                    Err(_) => return,
                },
                Err(_) => return,
            };
        }
        state.engine.waits.lookers -= 1;
        state.engine.waits.limits.remove(&(limit, me));
        // Another one has to look after the time.
        state.engine.waiters.wake();
    }

    /// A step of a seeded scheduler, if there is one to do.
    fn seeded_step(&'static self, mut state: Locked, epoch: u64) -> Result<Step, CUresult> {
        if !state.engine.schedule.has_steps() {
            return Ok(Step::None(state));
        }
        state.engine.schedule.caller = this_thread();
        let state = self.pump(state);
        state.life.lasts(epoch)?;
        Ok(Step::Done(state))
    }

    /// What a thread does that waits in virtual time. It returns when something has happened, or
    /// after a short pause.
    pub(crate) fn step(
        &'static self,
        mut state: Locked,
        epoch: u64,
        pause: &mut Duration,
        for_tasks: bool,
    ) -> Result<Locked, CUresult> {
        let me = this_thread();
        let known = state.engine.waits.changes;
        if !for_tasks {
            state.engine.waits.waiting.insert(me, known);
        }
        let mut state = self.step_with(state, epoch, pause, (known, for_tasks))?;
        if state.engine.waits.waiting.remove(&me).is_some() {
            state.engine.waits.left += 1;
        }
        Ok(state)
    }

    fn step_with(
        &'static self,
        mut state: Locked,
        epoch: u64,
        pause: &mut Duration,
        (known, for_tasks): (u64, bool),
    ) -> Result<Locked, CUresult> {
        let seeded = |state: &State| state.engine.schedule.has_steps();
        let can_pass = |state: &State| seeded(state) || state.engine.passing() != Passing::No;
        if !state.engine.waits.attended && can_pass(&state) && state.engine.waits.all_know() {
            state.engine.waits.attended = true;
            if !seeded(&state) && state.engine.passing() == Passing::Soon {
                state = self.sleep(state, epoch, super::host_wait::STEP_PATIENCE)?;
            }
            let waits = &mut state.engine.waits;
            let left = waits.left;
            let left_out = waits.waiting.keys().chain(&waits.servants).copied().collect();
            let calls =
                waits.threads.iter().map(|(thread, program)| (*thread, program.calls)).collect();
            let servants = waits.servants.clone();
            let question = Question { slot: self.slot, calls, left_out, servants };
            let mut quiet = core::mem::replace(&mut waits.quiet, Quiet::new());
            let hold_ups = self.hold_ups();
            drop(state);
            let sign = quiet.look(&question);
            state = self.lock_uncounted();
            let sign = sign.filter(|_| hold_ups.is_some() && self.hold_ups() == hold_ups);
            state.life.owned_by(epoch)?;
            let waits = &mut state.engine.waits;
            waits.quiet = quiet;
            waits.attended = false;
            state.life.lasts(epoch)?;
            // One that has stopped waiting may run, and was not looked at.
            if state.engine.waits.changes != known || state.engine.waits.left != left {
                return Ok(state);
            }
            if let Some(sign) = sign
                && can_pass(&state)
                && (!for_tasks || state.engine.waits.tasks > 0)
                && state.engine.waits.all_know()
            {
                *pause = SHORTEST_PAUSE;
                return self.go_on_quietly(state, epoch, sign);
            }
        }
        let time = *pause;
        *pause = (time * 2).min(LOOK);
        self.sleep(state, epoch, time)
    }

    /// Nobody runs: those who wait look once more, or time moves.
    fn go_on_quietly(
        &'static self,
        mut state: Locked,
        epoch: u64,
        sign: u64,
    ) -> Result<Locked, CUresult> {
        let waits = &state.engine.waits;
        let unseen = waits.lookers + waits.tasks > 0 || !state.engine.parked.values.is_empty();
        if unseen && waits.looked != Some((waits.changes, sign)) {
            state.engine.wake_all();
            state.running().look_at_values();
            state.running().run();
            let waits = &mut state.engine.waits;
            waits.looked = Some((waits.changes, sign));
            let look = waits.look.filter(|_| waits.tasks > 0);
            if let Some(look) = look {
                // Until the look is over no other thread may move the time.
                waits.attended = true;
                drop(state);
                look();
                state = self.lock();
                state.life.owned_by(epoch)?;
                state.engine.waits.attended = false;
                state.life.lasts(epoch)?;
            }
            return Ok(state);
        }
        if state.engine.schedule.has_steps() {
            state = self.pump(state);
            state.life.lasts(epoch)?;
        } else {
            state.running().pass_time();
        }
        state.engine.waits.moves += 1;
        state.engine.wake_all();
        Ok(state)
    }

    fn sleep(
        &'static self,
        mut state: Locked,
        epoch: u64,
        time: Duration,
    ) -> Result<Locked, CUresult> {
        state.engine.waiters.count += 1;
        let (mut state, _) = state.wait_timeout(&self.wake.done, time);
        state.life.owned_by(epoch)?;
        state.engine.waiters.count -= 1;
        state.life.lasts(epoch)?;
        Ok(state)
    }

    /// Sleeps until `done` holds, in virtual time.
    pub(crate) fn wait_virtually(
        &'static self,
        mut state: Locked,
        epoch: u64,
        mut done: impl FnMut(&mut State) -> bool,
    ) -> Result<Locked, CUresult> {
        let mut pause = SHORTEST_PAUSE;
        while !done(&mut state) {
            state = match self.seeded_step(state, epoch)? {
                Step::Done(state) => state,
                Step::None(state) => self.step(state, epoch, &mut pause, false)?,
            };
        }
        // Another one has to look after the time.
        state.engine.waiters.wake();
        Ok(state)
    }
}

enum Step {
    Done(Locked),
    None(Locked),
}

/// The thread that lets time pass for tasks, whose threads are the program's and do not wait here.
pub(crate) fn tasks_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    let mut pause = SHORTEST_PAUSE;
    loop {
        if state.life.is_over(epoch) {
            return;
        }
        if state.engine.waits.tasks == 0 {
            state = state.wait(&machine.wake.timer);
            pause = SHORTEST_PAUSE;
            continue;
        }
        let Ok(next) = machine.step(state, epoch, &mut pause, true) else { return };
        state = next;
    }
}

/// The virtual time of one driver, for the waits of `cuda-events`.
pub(crate) struct VirtualClock {
    machine: &'static Machine,
    epoch: u64,
    /// After the driver's end time is real, so that no thread waits forever.
    end: OnceLock<(u64, Instant)>,
}

impl VirtualClock {
    pub(crate) fn new(machine: &'static Machine, epoch: u64) -> Self {
        Self { machine, epoch, end: OnceLock::new() }
    }

    /// The state of the driver, while it is there.
    fn state(&self) -> Option<Locked> {
        let state = self.machine.lock();
        (!state.life.is_over(self.epoch)).then_some(state)
    }

    /// The driver ends, at this time of its clock.
    pub(crate) fn end(&self, now: u64) {
        let _ = self.end.set((now, Instant::now()));
    }
}

impl core::fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("VirtualClock").field(&self.now()).finish()
    }
}

impl HostClock for VirtualClock {
    fn now(&self) -> Duration {
        let now = match (self.end.get(), self.state()) {
            (None, Some(state)) => state.engine.clock.now(),
            (Some((at, since)), _) => at.saturating_add(since.elapsed().as_nanos() as u64),
            (None, None) => u64::MAX,
        };
        Duration::from_nanos(now)
    }

    fn wait(&self, until: Duration) {
        if let Some(mut state) = self.state()
            && let Some(program) = state.engine.waits.threads.get_mut(&this_thread())
        {
            // It waits by the clock, and its questions are part of that.
            program.asked.clear();
        }
        let limit = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.machine.wait_by_clock(self.epoch, limit);
    }

    fn polled(&self, what: usize) {
        let question = (what as u64).rotate_left(32) ^ u64::MAX;
        self.machine.repeated(self.epoch, question);
    }

    fn begin_task(&self, look: fn()) {
        let Some(mut state) = self.state() else { return };
        state.engine.waits.tasks += 1;
        state.engine.waits.look = Some(look);
        if !state.engine.waits.has_thread {
            // Without the thread, time still moves with threads that wait.
            state.engine.waits.has_thread = state.engine.threads.start_tasks(self.machine);
        }
        self.machine.wake.timer.notify_all();
    }

    fn end_task(&self) {
        if let Some(mut state) = self.state() {
            let waits = &mut state.engine.waits;
            waits.tasks = waits.tasks.saturating_sub(1);
            // Its thread runs, and a look that goes on now may have found it asleep.
            waits.left += 1;
        }
    }

    fn serve(&self) {
        if let Some(mut state) = self.state() {
            let (me, servants) = (this_thread(), &mut state.engine.waits.servants);
            if !servants.contains(&me) {
                servants.push(me);
            }
        }
    }
}
