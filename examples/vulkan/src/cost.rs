//! The cost of a round trip, compared with the same loop in C.

use std::ffi::{c_int, c_void};
use std::time::Instant;

use ash::vk;
use cuda_events::sys::{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUexternalSemaphore, CUstream,
};

use crate::Pair;
use crate::vulkan::Result;

/// As in loop.c.
#[repr(C)]
struct Loop {
    queue_submit: *const c_void,
    signal: *const c_void,
    wait: *const c_void,
    synchronize: *const c_void,
    queue: vk::Queue,
    submit: *const c_void,
    wait_value: *mut u64,
    signal_value: *mut u64,
    semaphore: CUexternalSemaphore,
    signal_params: *mut CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    wait_params: *mut CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    stream: CUstream,
}

unsafe extern "C" {
    // CUDA may fill reserved bytes of the parameters; the C source has the same layout.
    #[allow(improper_ctypes)]
    fn vulkan_round_trips(with: *const Loop, value: u64, count: usize, times: *mut u64) -> c_int;
}

/// The most that a round trip may take, in medians of the loop in C.
pub const MOST: f64 = 1.02;

/// A ratio that is no number is too high.
pub fn is_too_high(ratio: f64) -> bool {
    ratio.is_nan() || ratio > MOST
}

/// So many of one, and then of the other, so that both meet what the machine does meanwhile.
const BLOCK: usize = 100;

/// Measures so many round trips, and returns the ratio of the medians.
pub fn measure(pair: &Pair, count: u64) -> Result<f64> {
    let symbols = pair.stream.context().driver().symbols();
    let signal = symbols.cuSignalExternalSemaphoresAsync.ok_or("no external semaphores")?;
    let wait = symbols.cuWaitExternalSemaphoresAsync.ok_or("no external semaphores")?;

    // The C loop writes the values through pointers, so that all is reached by them alone.
    let mut values = [0_u64; 2];
    let values = values.as_mut_ptr();
    let stage = [vk::PipelineStageFlags::ALL_COMMANDS];
    let mut signal_params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    let mut wait_params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    let timeline = vk::TimelineSemaphoreSubmitInfo {
        wait_semaphore_value_count: 1,
        p_wait_semaphore_values: values,
        signal_semaphore_value_count: 1,
        p_signal_semaphore_values: values.wrapping_add(1),
        ..Default::default()
    };
    let submit = vk::SubmitInfo {
        p_next: (&raw const timeline).cast(),
        wait_semaphore_count: 1,
        p_wait_semaphores: &pair.semaphore,
        p_wait_dst_stage_mask: stage.as_ptr(),
        signal_semaphore_count: 1,
        p_signal_semaphores: &pair.semaphore,
        ..Default::default()
    };
    let c = Loop {
        queue_submit: pair.vulkan.device.fp_v1_0().queue_submit as *const c_void,
        signal: signal as *const c_void,
        wait: wait as *const c_void,
        synchronize: symbols.cuStreamSynchronize as *const c_void,
        queue: pair.vulkan.queue,
        submit: (&raw const submit).cast(),
        wait_value: values,
        signal_value: values.wrapping_add(1),
        semaphore: pair.shared.as_raw(),
        signal_params: &mut signal_params,
        wait_params: &mut wait_params,
        stream: pair.stream.as_raw(),
    };

    let mut value = 0;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first of each only warm up.
    for block in 0..=count.div_ceil(BLOCK as u64) {
        let mut times = [0; BLOCK];
        // SAFETY: everything that the loop reaches lives here, and so many places for the times.
        let code = unsafe { vulkan_round_trips(&c, value, BLOCK, times.as_mut_ptr()) };
        if code != 0 {
            return Err(format!("the loop in C failed with {code}").into());
        }
        value += 2 * BLOCK as u64;
        if block > 0 {
            theirs.extend(times);
        }
        for time in &mut times {
            let started = Instant::now();
            pair.stream.signal_external(&pair.shared, value + 1)?;
            let (wait, signal) = ((pair.semaphore, value + 1), (pair.semaphore, value + 2));
            pair.vulkan.submit(None, Some(wait), Some(signal))?;
            pair.stream.wait_external_semaphore(&pair.shared, value + 2)?;
            pair.stream.synchronize()?;
            *time = u64::try_from(started.elapsed().as_nanos())?;
            value += 2;
        }
        if block > 0 {
            ours.extend(times);
        }
    }
    let us = |times: &mut Vec<u64>, part: usize| -> Result<f64> {
        times.sort_unstable();
        let at = (times.len() * part / 100).min(times.len() - 1);
        Ok(*times.get(at).ok_or("nothing was measured")? as f64 / 1e3)
    };
    let (p50, of_c) = (us(&mut ours, 50)?, us(&mut theirs, 50)?);
    println!(
        "round trip, p50 and p99 of {}: this crate {p50:.1} us, {:.1} us; C {of_c:.1} us, \
         {:.1} us; \
         {:.3} x",
        ours.len(),
        us(&mut ours, 99)?,
        us(&mut theirs, 99)?,
        p50 / of_c
    );
    Ok(p50 / of_c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_good() {
        for (ratio, too_high) in
            [(0.9, false), (1.0, false), (1.02, false), (1.020_1, true), (1.5, true)]
        {
            assert_eq!(is_too_high(ratio), too_high, "{ratio}");
        }
        assert!(is_too_high(f64::NAN) && is_too_high(f64::INFINITY));
    }
}
