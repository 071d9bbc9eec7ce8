//! The threads that do the work of streams: one for host functions, at most two for memory, and one
//! that polls values in memory and drives a seeded scheduler.

use core::time::Duration;

use crate::abi::*;
use crate::engine::idle_threads;
use crate::engine::thread_time::{LOOK, Patience, this_thread};
use crate::engine::time::timer_thread;
use crate::engine::virtual_time::tasks_thread;
use crate::engine::work::{Destroy, HostCall, Job, Work};
use crate::engine::{Engine, Running};
use crate::machine::{Machine, thread};
use crate::processes;

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

impl Engine {
    /// A thread for host functions, before the first one is queued.
    pub(crate) fn ensure_host_thread(&mut self, machine: &'static Machine) -> Answer {
        if self.host_threads == 0 {
            self.spawn(machine, "cuda-soft-host", host_thread)?;
            self.host_threads = 1;
        }
        Ok(())
    }

    /// A thread for memory work, or a second one where the first is busy.
    pub(crate) fn ensure_pool_thread(&mut self, machine: &'static Machine) -> Answer {
        let wanted =
            self.pool_threads == 0 || (self.pool_threads < POOL_THREADS && self.pool_idle == 0);
        if wanted {
            self.spawn(machine, "cuda-soft-copy", pool_thread)?;
            self.pool_threads += 1;
        }
        Ok(())
    }

    /// One more thread for work of the device, until there is one for each stream.
    pub(crate) fn ensure_device_thread(
        &mut self,
        machine: &'static Machine,
        streams: usize,
    ) -> Answer {
        if self.device_threads < streams.min(DEVICE_THREADS) {
            self.spawn(machine, "cuda-soft-device", pool_thread)?;
            self.device_threads += 1;
        }
        Ok(())
    }

    /// What one of these threads does next. Other work of the device leaves the threads for memory
    /// free, as it may wait for that.
    fn next_pool_job(&mut self) -> Option<Job> {
        if self.in_device < self.device_threads {
            return self.pool_queue.pop_front();
        }
        let copies = |job: &Job| !matches!(job.work, Work::Device(_));
        let at = self.pool_queue.iter().position(copies)?;
        self.pool_queue.remove(at)
    }

    /// The thread that polls memory values and drives the seeded scheduler, started when either is
    /// first needed.
    pub(crate) fn ensure_ticker_thread(&mut self, machine: &'static Machine) -> Answer {
        if self.ticker_threads == 0 {
            self.spawn(machine, "cuda-soft-tick", ticker_thread)?;
            self.ticker_threads = 1;
        }
        Ok(())
    }

    /// The thread that ends work of a given duration, before the first such work.
    pub(crate) fn ensure_timer_thread(&mut self, machine: &'static Machine) -> Answer {
        if self.timer_threads == 0 {
            self.spawn(machine, "cuda-soft-time", timer_thread)?;
            self.timer_threads = 1;
        }
        Ok(())
    }

    /// The thread that lets virtual time pass for tasks; whether there is one.
    pub(crate) fn start_tasks_thread(&mut self, machine: &'static Machine) -> bool {
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
            idle_threads::is_own();
            body(machine, epoch);
            idle_threads::ends();
        });
        self.threads.push(thread.map_err(|_| OPERATING_SYSTEM)?);
        Ok(())
    }

    /// How many threads there are that do jobs, as far as they were started.
    pub(super) fn job_threads(&self) -> usize {
        self.host_threads + self.pool_threads + self.device_threads
    }

    /// Whether a thread has yet to take a job, or is at one.
    pub(super) fn at_work(&self) -> bool {
        self.running > 0 || !self.pool_queue.is_empty() || !self.host_queue.is_empty()
    }
}

impl Running<'_> {
    /// Has a thread look again, for as long as a stream waits for other processes.
    pub(super) fn listen_for(&mut self, wait: &processes::Wait) {
        let epoch = self.machine.epoch();
        let machine = self.machine;
        let look = move || {
            let mut state = machine.lock();
            let ended = state.epoch != epoch || state.stopping;
            if !ended {
                state.running(machine).recheck_shared();
            }
            (ended || state.engine.shared_waits.is_empty()).then_some(state)
        };
        if let Some(thread) = processes::watch(wait, (self.machine.slot, epoch), look) {
            self.engine.threads.retain(|thread| !thread.is_finished());
            self.engine.threads.push(thread);
        }
    }

    /// Why the context of a stream failed, if it did.
    pub(super) fn failure_of(&self, stream: u32, id: u64) -> Option<CUresult> {
        let entry = self.streams.get(stream).filter(|entry| entry.id == id)?;
        self.engine.failure(entry.context)
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
        if !self.engine.hold_host_functions {
            return self.engine.host_queue.pop_front();
        }
        let failed = |job: &Job| self.failure_of(job.stream, job.id).is_some();
        let at = self.engine.host_queue.iter().position(failed)?;
        self.engine.host_queue.remove(at)
    }

    /// What a thread does when it has done a job.
    fn finish(&mut self, stream: u32, id: u64) {
        self.engine.running -= 1;
        self.engine.waits.changed();
        self.go_on(stream, id);
        // The job may have written what others wait for.
        self.look_at_values();
        self.run();
        let steps = !self.engine.prompt || !self.engine.busy.is_empty();
        if steps && self.engine.waiters > 0 {
            // A waiter may have to do the next step itself, or to let time pass.
            self.machine.done.notify_all();
        }
    }
}

fn host_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    if state.epoch == epoch {
        state.engine.workers.push(this_thread());
    }
    loop {
        if state.epoch != epoch || state.stopping {
            return;
        }
        let Some(Job { stream, id, at, work }) = state.running(machine).next_host_job() else {
            state = state.wait(&machine.host);
            continue;
        };
        state.engine.running += 1;
        state.engine.in_host += 1;
        let status = state.running(machine).failure_of(stream, id).unwrap_or(SUCCESS);
        let destroys = matches!(work, Work::Destroy(_));
        state.feed(|feed, _| match destroys {
            true => feed.destructor_begins(),
            false => feed.function_begins(at),
        });
        machine.switches.host_function(true);
        drop(state);
        thread::with(machine.slot, epoch, |on| on.in_host_function = true);
        // SAFETY: the program handed these functions and pointers to the driver for exactly these
        // calls.
        unsafe {
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
        }
        thread::with(machine.slot, epoch, |on| on.in_host_function = false);
        state = machine.lock();
        if state.epoch != epoch {
            return;
        }
        state.engine.in_host -= 1;
        machine.switches.host_function(state.engine.in_host > 0);
        state.feed(|feed, _| match destroys {
            true => feed.destructor_ends(),
            false => feed.function_ends(at),
        });
        state.running(machine).finish(stream, id);
    }
}

fn pool_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    if state.epoch == epoch {
        state.engine.workers.push(this_thread());
    }
    loop {
        if state.epoch != epoch || state.stopping {
            return;
        }
        let Some(Job { stream, id, work, .. }) = state.engine.next_pool_job() else {
            state.engine.pool_idle += 1;
            state = state.wait(&machine.pool);
            if state.epoch != epoch {
                return;
            }
            state.engine.pool_idle -= 1;
            continue;
        };
        state.engine.running += 1;
        match work {
            Work::Memory(work) => {
                drop(state);
                work.execute();
                state = machine.lock();
                if state.epoch != epoch {
                    return;
                }
                state.feed(|feed, _| work.ends(feed));
                state.engine.clock.advance(work.virtual_ns());
            }
            Work::Device(work) => {
                // It is code of the program, and calls nothing of the driver.
                state.engine.in_host += 1;
                state.engine.in_device += 1;
                machine.switches.host_function(true);
                drop(state);
                thread::with(machine.slot, epoch, |on| on.in_host_function = true);
                let answer = work.run();
                thread::with(machine.slot, epoch, |on| on.in_host_function = false);
                state = machine.lock();
                if state.epoch != epoch {
                    return;
                }
                state.engine.in_host -= 1;
                state.engine.in_device -= 1;
                machine.switches.host_function(state.engine.in_host > 0);
                if let Err(code) = answer {
                    state.running(machine).fail_context_of(stream, id, code);
                }
            }
            // These are for the other thread.
            Work::Host(_) | Work::Destroy(_) => {}
        }
        state.running(machine).finish(stream, id);
        state.running(machine).time_moved();
    }
}

fn ticker_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    let (mut calls, mut patience) = (0, Patience::with(&[]));
    let (mut pause, mut waited) = (SHORTEST_PAUSE, 0);
    loop {
        if state.epoch != epoch || state.stopping {
            return;
        }
        let random = !state.engine.prompt && !state.engine.ready.is_empty();
        if state.engine.value_waits.is_empty() && !random {
            state = state.wait(&machine.ticker);
            pause = SHORTEST_PAUSE;
            continue;
        }
        // An ordinary sleep, so that nothing wakes it more often than that.
        drop(state);
        std::thread::sleep(if random { TICK } else { pause });
        state = machine.lock();
        if state.epoch != epoch {
            return;
        }
        let more = core::mem::replace(&mut waited, state.engine.value_waits.len()) < waited;
        let moved = state.running(machine).look_at_values();
        pause = if moved || more { SHORTEST_PAUSE } else { LONGEST_PAUSE.min(pause * 2) };
        state.running(machine).run();
        // No call is there to return it; it is reported all the same.
        let _ = state.running(machine).look_for_deadlock();
        // The calls of the program drive a seeded scheduler; this thread does only when there are
        // none.
        let caller = [state.engine.caller];
        let now = machine.calls();
        let had = if now == calls && !state.engine.stepping && random {
            patience.look(&caller)
        } else {
            patience = Patience::with(&caller);
            Duration::ZERO
        };
        calls = now;
        if !state.engine.prompt && had > SILENCE {
            state.running(machine).step_at_random();
            if state.engine.waiters > 0 {
                machine.done.notify_all();
            }
        }
    }
}
