//! The threads that do the work of streams: one for host functions, at most two for memory, and one
//! that polls values in memory and drives a seeded scheduler.

use core::time::Duration;
use std::thread::JoinHandle;

use crate::abi::*;
use crate::engine::Running;
use crate::engine::passing_time::timer_thread;
use crate::engine::threads::Threads;
use crate::engine::virtual_time::tasks_thread;
use crate::engine::work::{Destroy, HostCall, Job, Work};
use crate::machine::{Locked, Machine};
use crate::processes;
use crate::threads;
use crate::threads::idle;
use crate::threads::processor_time::{LOOK, Patience, this_thread};

/// How many threads at most set and copy memory.
const POOL_THREADS: usize = 2;
/// How many more at most do other work of the device, which may wait for the host or for other
/// streams: as many grids run at a time on a device of compute capability 9.0.
const DEVICE_THREADS: usize = 128;
/// How often the ticker looks whether a seeded scheduler is left alone.
const TICK: Duration = LOOK;
/// How long the ticker sleeps between looks at values in memory, which the host and other processes
/// write unheard: at first, and when nothing comes for long.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// After how much of the calling thread's time without a call the program is taken to wait for work
/// without asking the driver.
const SILENCE: Duration = Duration::from_millis(100);

impl Threads {
    /// A thread for host functions, before the first one is queued.
    pub(crate) fn ensure_host(&mut self, machine: &'static Machine) -> Answer {
        if self.host == 0 {
            self.spawn(machine, "cuda-soft-host", host_thread)?;
            self.host = 1;
        }
        Ok(())
    }

    /// A thread for memory work, or a second one where the first is busy.
    pub(crate) fn ensure_pool(&mut self, machine: &'static Machine) -> Answer {
        if self.pool == 0 || (self.pool < POOL_THREADS && self.pool_idle == 0) {
            self.spawn(machine, "cuda-soft-copy", pool_thread)?;
            self.pool += 1;
        }
        Ok(())
    }

    /// One more thread for work of the device, until there is one for each stream.
    pub(crate) fn ensure_device(&mut self, machine: &'static Machine, streams: usize) -> Answer {
        if self.device < streams.min(DEVICE_THREADS) {
            self.spawn(machine, "cuda-soft-device", pool_thread)?;
            self.device += 1;
        }
        Ok(())
    }

    /// The thread that polls memory values and drives the seeded scheduler, started when either is
    /// first needed.
    pub(crate) fn ensure_ticker(&mut self, machine: &'static Machine) -> Answer {
        if self.ticker == 0 {
            self.spawn(machine, "cuda-soft-tick", ticker_thread)?;
            self.ticker = 1;
        }
        Ok(())
    }

    /// The thread that ends work of a given duration, before the first such work.
    pub(crate) fn ensure_timer(&mut self, machine: &'static Machine) -> Answer {
        if self.timer == 0 {
            self.spawn(machine, "cuda-soft-time", timer_thread)?;
            self.timer = 1;
        }
        Ok(())
    }

    /// The thread that lets virtual time pass for tasks; whether there is one.
    pub(crate) fn start_tasks(&mut self, machine: &'static Machine) -> bool {
        self.spawn(machine, "cuda-soft-time", tasks_thread).is_ok()
    }

    fn spawn(
        &mut self,
        machine: &'static Machine,
        name: &str,
        body: fn(&'static Machine, u64),
    ) -> Answer {
        let epoch = machine.epoch();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            idle::is_own();
            body(machine, epoch);
            idle::ends();
        });
        self.handles.push(thread.map_err(|_| OPERATING_SYSTEM)?);
        Ok(())
    }
}

/// What the engine has a thread do that listens for other processes.
pub(crate) fn listen(machine: &'static Machine, wait: &processes::Wait) -> Option<JoinHandle<()>> {
    let epoch = machine.epoch();
    let look = move || {
        let mut state = machine.lock();
        let ended = state.life.is_over(epoch);
        if !ended {
            state.running().recheck_shared();
        }
        (ended || state.engine.parked.shared.is_empty()).then_some(state)
    };
    processes::watch(wait, (machine.slot, epoch), look)
}

impl Running<'_> {
    /// Why the context of a stream failed, if it did.
    pub(super) fn failure_of(&self, stream: u32, id: u64) -> Option<CUresult> {
        let entry = self.streams.get(stream).filter(|entry| entry.id == id)?;
        self.engine.contexts.failure(entry.context)
    }

    /// The context of a stream fails by work in it.
    fn fail_context_of(&mut self, stream: u32, id: u64, code: CUresult) {
        let entry = self.streams.get(stream).filter(|entry| entry.id == id);
        if let Some(context) = entry.map(|entry| entry.context) {
            self.fail(context, code);
        }
    }

    /// The next job for the thread of the host functions. Those that are held back stay in the
    /// queue, except in a failed context: it leaves its functions out, and its callbacks get the
    /// error.
    fn next_host_job(&mut self) -> Option<Job> {
        if !self.engine.jobs.host_held {
            return self.engine.jobs.host.pop_front();
        }
        let failed = |job: &Job| self.failure_of(job.stream, job.id).is_some();
        let at = self.engine.jobs.host.iter().position(failed)?;
        self.engine.jobs.host.remove(at)
    }

    /// What a thread does when it has done a job.
    fn finish(&mut self, stream: u32, id: u64) {
        self.engine.jobs.running -= 1;
        self.engine.waits.changed();
        self.go_on(stream, id);
        // The job may have written what others wait for.
        self.look_at_values();
        self.run();
        let steps = !self.engine.schedule.prompt || !self.engine.busy.is_empty();
        if steps {
            // A waiter may have to do the next step itself, or to let time pass.
            self.engine.waiters.wake();
        }
    }
}

/// Runs code of the program, without the lock. `None` if another driver has the slot by then.
fn run_program<R>(
    machine: &'static Machine,
    mut state: Locked,
    run: impl FnOnce() -> R,
) -> Option<(Locked, R)> {
    let epoch = state.life.epoch;
    state.engine.jobs.in_host += 1;
    machine.switches.host_function(true);
    drop(state);
    threads::with(machine.slot, epoch, |on| on.in_host_function = true);
    let answer = run();
    threads::with(machine.slot, epoch, |on| on.in_host_function = false);
    let mut state = machine.lock();
    state.life.owned_by(epoch).ok()?;
    state.engine.jobs.in_host -= 1;
    machine.switches.host_function(state.engine.jobs.in_host > 0);
    Some((state, answer))
}

fn host_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    if state.life.epoch == epoch {
        state.engine.threads.ids.push(this_thread());
    }
    loop {
        if state.life.is_over(epoch) {
            return;
        }
        let Some(Job { stream, id, at, work }) = state.running().next_host_job() else {
            state = state.wait(&machine.wake.host);
            continue;
        };
        state.engine.jobs.running += 1;
        let status = state.running().failure_of(stream, id).unwrap_or(SUCCESS);
        let destroys = matches!(work, Work::Destroy(_));
        state.feed(|feed, _| match destroys {
            true => feed.destructor_begins(),
            false => feed.function_begins(at),
        });
        // SAFETY: the program handed these functions and pointers to the driver for exactly these
        // calls.
        let call = || unsafe {
            match work {
                // After an error host functions are left out; the old callbacks get the error.
                Work::Host(HostCall::Function(function, data)) if status == SUCCESS => {
                    function(data.0)
                }
                Work::Host(HostCall::Function(..)) | Work::Memory(_) | Work::Device(_) => {}
                Work::Host(HostCall::Callback(function, stream, data)) => {
                    function(core::ptr::without_provenance_mut(stream as usize), status, data.0);
                }
                Work::Destroy(Destroy(function, data)) => function(data.0),
            }
        };
        let Some((locked, ())) = run_program(machine, state, call) else { return };
        state = locked;
        state.feed(|feed, _| match destroys {
            true => feed.destructor_ends(),
            false => feed.function_ends(at),
        });
        state.running().finish(stream, id);
    }
}

fn pool_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    if state.life.epoch == epoch {
        state.engine.threads.ids.push(this_thread());
    }
    loop {
        if state.life.is_over(epoch) {
            return;
        }
        let device_threads = state.engine.threads.device;
        let next = state.engine.jobs.next_of_pool(device_threads);
        let Some(Job { stream, id, work, .. }) = next else {
            state.engine.threads.pool_idle += 1;
            state = state.wait(&machine.wake.pool);
            if state.life.epoch != epoch {
                return;
            }
            state.engine.threads.pool_idle -= 1;
            continue;
        };
        state.engine.jobs.running += 1;
        match work {
            Work::Memory(work) => {
                drop(state);
                work.execute();
                state = machine.lock();
                if state.life.epoch != epoch {
                    return;
                }
                state.feed(|feed, _| work.ends(feed));
            }
            Work::Device(work) => {
                // It is code of the program, and calls nothing of the driver.
                state.engine.jobs.in_device += 1;
                let Some((locked, answer)) = run_program(machine, state, || work.run()) else {
                    return;
                };
                state = locked;
                state.engine.jobs.in_device -= 1;
                if let Err(code) = answer {
                    state.running().fail_context_of(stream, id, code);
                }
            }
            // These are for the other thread.
            Work::Host(_) | Work::Destroy(_) => {}
        }
        state.running().finish(stream, id);
    }
}

fn ticker_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    let (mut calls, mut patience) = (0, Patience::with(&[]));
    let (mut pause, mut waited) = (SHORTEST_PAUSE, 0);
    loop {
        if state.life.is_over(epoch) {
            return;
        }
        let random = state.engine.schedule.has_steps();
        if state.engine.parked.values.is_empty() && !random {
            state = state.wait(&machine.wake.ticker);
            pause = SHORTEST_PAUSE;
            continue;
        }
        // An ordinary sleep, so that nothing wakes it more often than that.
        drop(state);
        std::thread::sleep(if random { TICK } else { pause });
        state = machine.lock();
        if state.life.epoch != epoch {
            return;
        }
        let more = core::mem::replace(&mut waited, state.engine.parked.values.len()) < waited;
        let moved = state.running().look_at_values();
        pause = if moved || more { SHORTEST_PAUSE } else { LONGEST_PAUSE.min(pause * 2) };
        state.running().run();
        // No call is there to return it; it is reported all the same.
        let _ = state.running().look_for_deadlock();
        // The calls of the program drive a seeded scheduler; this thread does only when there are
        // none.
        let caller = [state.engine.schedule.caller];
        let now = machine.calls();
        let had = if now == calls && !state.engine.schedule.stepping && random {
            patience.look(&caller)
        } else {
            patience = Patience::with(&caller);
            Duration::ZERO
        };
        calls = now;
        if !state.engine.schedule.prompt && had > SILENCE {
            state.running().step_at_random();
            state.engine.waiters.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::engine::work::Task;
    use crate::machine::handles::{Kind, Table};
    use crate::machine::misuse::Misuses;
    use crate::memory::allocations::Allocations;

    /// A stream may have the place of one that is gone, whose job is under way: that job's end and its
    /// error are not the stream's, nor is a failure of the stream's context the job's.
    #[test]
    fn a_job_is_one_of_its_own_stream() {
        const CODE: CUresult = CUresult::CUDA_ERROR_LAUNCH_FAILED;
        for (id, own) in [(7, true), (6, false)] {
            let (mut engine, misuses) = (Engine::new(0), Misuses::new());
            let (mut streams, mut memory) = (Table::new(Kind::Stream, 0), Allocations::new(0));
            engine.contexts.add(0, 0x10);
            let stream = engine.contexts.new_stream(0, 7, (0, 0), false, 1);
            let (stream, _) = streams.insert(1, stream).expect("there is room");
            let (engine, streams, memory) = (&mut engine, &mut streams, &mut memory);
            let mut all = Running { engine, streams, memory, feed: None, misuses: &misuses };
            all.push(stream, Task::Running);
            all.engine.busy.until.insert((9, 1), (stream, id));
            all.end_busy_of_failed();
            assert_eq!(all.engine.busy.is_empty(), !own, "nobody waits for who is gone");
            all.go_on(stream, id);
            assert_eq!(all.streams[stream].has_work(), !own);
            all.fail_context_of(stream, id, CODE);
            assert_eq!(all.engine.contexts.failure(0), own.then_some(CODE));
            all.fail(0, CODE);
            assert_eq!(all.failure_of(stream, id), own.then_some(CODE));
        }
    }
}
