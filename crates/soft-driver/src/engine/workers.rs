//! The threads behind the queues: one for host functions, two at most for memory, one that looks
//! now and then.

use core::time::Duration;

use crate::abi::*;
use crate::engine::patience::{LOOK, Patience, this_thread};
use crate::engine::quiet;
use crate::engine::time::timer_thread;
use crate::engine::waits::tasks_thread;
use crate::engine::work::{Destroy, HostCall, Job, Work};
use crate::machine::thread;
use crate::machine::{Machine, State};
use crate::sync::wait;

/// How many threads at most set and copy memory.
const POOL_THREADS: usize = 2;
/// How often the ticker looks whether a seeded scheduler is left alone.
const TICK: Duration = LOOK;
/// How long the ticker sleeps between looks at values in memory, which the host and other processes
/// write unheard: at first, and when nothing comes for long.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// After how much of the calling thread's time without a call the program is taken to wait for work
/// without asking the driver.
const SILENCE: Duration = Duration::from_millis(100);

impl State {
    /// A thread for host functions, before the first one is queued.
    pub(crate) fn ensure_host_thread(&mut self, machine: &'static Machine) -> Answer {
        if self.engine.host_threads == 0 {
            self.spawn(machine, "cuda-soft-host", host_thread)?;
            self.engine.host_threads = 1;
        }
        Ok(())
    }

    /// A thread for memory work, another one where that is all busy.
    pub(crate) fn ensure_pool_thread(&mut self, machine: &'static Machine) -> Answer {
        let wanted = self.engine.pool_threads == 0
            || (self.engine.pool_threads < POOL_THREADS && self.engine.pool_idle == 0);
        if wanted {
            self.spawn(machine, "cuda-soft-copy", pool_thread)?;
            self.engine.pool_threads += 1;
        }
        Ok(())
    }

    /// The thread that polls memory values and drives the seeded scheduler, started when either is
    /// first needed.
    pub(crate) fn ensure_ticker_thread(&mut self, machine: &'static Machine) -> Answer {
        if self.engine.ticker_threads == 0 {
            self.spawn(machine, "cuda-soft-tick", ticker_thread)?;
            self.engine.ticker_threads = 1;
        }
        Ok(())
    }

    /// The thread that ends what streams are busy with, before the first of that.
    pub(crate) fn ensure_timer_thread(&mut self, machine: &'static Machine) -> Answer {
        if self.engine.timer_threads == 0 {
            self.spawn(machine, "cuda-soft-time", timer_thread)?;
            self.engine.timer_threads = 1;
        }
        Ok(())
    }

    /// The thread that lets virtual time pass for tasks; whether there is one.
    pub(crate) fn start_tasks_thread(&mut self, machine: &'static Machine) -> bool {
        self.spawn(machine, "cuda-soft-time", tasks_thread).is_ok()
    }

    fn works_here(&mut self, epoch: u64) {
        if self.epoch == epoch {
            self.engine.workers.push(this_thread());
        }
    }

    fn spawn(
        &mut self,
        machine: &'static Machine,
        name: &str,
        body: fn(&'static Machine, u64),
    ) -> Answer {
        let epoch = self.epoch;
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            quiet::is_own();
            body(machine, epoch);
            quiet::ends();
        });
        self.engine.threads.push(thread.map_err(|_| OPERATING_SYSTEM)?);
        Ok(())
    }
}

fn host_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    state.works_here(epoch);
    loop {
        if state.epoch != epoch || state.stopping {
            return;
        }
        let Some(Job { stream, id, at, work }) = state.next_host_job() else {
            state = wait(&machine.host, state);
            continue;
        };
        state.engine.running += 1;
        state.engine.in_host += 1;
        let status = state.failure_of(stream, id).unwrap_or(SUCCESS);
        let destroys = matches!(work, Work::Destroy(_));
        state.feed(|feed, _| match destroys {
            true => feed.destructor_begins(),
            false => feed.function_begins(at),
        });
        drop(state);
        machine.switches.host_function(true);
        thread::with(machine.slot, epoch, |on| on.in_host_function = true);
        // SAFETY: the program handed these functions and pointers to the driver for exactly these
        // calls.
        unsafe {
            match work {
                // After an error host functions are left out; the old callbacks get the error.
                Work::Host(HostCall::Function(function, data)) if status == SUCCESS => {
                    function(data.0)
                }
                Work::Host(HostCall::Function(..)) | Work::Memory(_) => {}
                Work::Host(HostCall::Callback(function, stream, data)) => {
                    function(core::ptr::without_provenance_mut(stream as usize), status, data.0);
                }
                Work::Destroy(Destroy(function, data)) => function(data.0),
            }
        }
        thread::with(machine.slot, epoch, |on| on.in_host_function = false);
        machine.switches.host_function(false);
        state = machine.lock();
        if state.epoch != epoch {
            return;
        }
        state.engine.in_host -= 1;
        state.feed(|feed, _| match destroys {
            true => feed.destructor_ends(),
            false => feed.function_ends(at),
        });
        state.finish(machine, stream, id);
    }
}

fn pool_thread(machine: &'static Machine, epoch: u64) {
    let mut state = machine.lock();
    state.works_here(epoch);
    loop {
        if state.epoch != epoch || state.stopping {
            return;
        }
        let Some(Job { stream, id, work: Work::Memory(work), .. }) =
            state.engine.pool_queue.pop_front()
        else {
            state.engine.pool_idle += 1;
            state = wait(&machine.pool, state);
            if state.epoch != epoch {
                return;
            }
            state.engine.pool_idle -= 1;
            continue;
        };
        state.engine.running += 1;
        drop(state);
        work.execute();
        state = machine.lock();
        if state.epoch != epoch {
            return;
        }
        state.feed(|feed, _| work.ends(feed));
        state.clock.advance(work.virtual_ns());
        state.finish(machine, stream, id);
        state.time_moved(machine);
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
        let random = !state.prompt() && !state.engine.ready.is_empty();
        if state.engine.value_waits.is_empty() && !random {
            state = wait(&machine.ticker, state);
            pause = SHORTEST_PAUSE;
            continue;
        }
        // An ordinary sleep, so that nothing wakes it more often than the rate says.
        drop(state);
        std::thread::sleep(if random { TICK } else { pause });
        state = machine.lock();
        if state.epoch != epoch {
            return;
        }
        let more = core::mem::replace(&mut waited, state.engine.value_waits.len()) < waited;
        let moved = state.look_at_values();
        pause = if moved || more { SHORTEST_PAUSE } else { LONGEST_PAUSE.min(pause * 2) };
        state.run(machine);
        // No call is there to return it; it is reported all the same.
        let _ = state.look_for_deadlock(machine);
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
        if !state.prompt() && had > SILENCE {
            state.step_at_random(machine);
            if state.engine.waiters > 0 {
                machine.done.notify_all();
            }
        }
    }
}
