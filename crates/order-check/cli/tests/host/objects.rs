//! Objects that are destroyed while they are used.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Program, flags};

/// An event that a thread waits for is destroyed.
pub(super) fn destroyed_while_awaited(p: &Program) {
    let goes_on = flags::Flag::new(p, 0);
    goes_on.holds();
    let mut event = 0;
    // CU_EVENT_BLOCKING_SYNC
    p.cuda.cuEventCreate(&mut event, 1);
    p.cuda.cuEventRecord(event, p.stream);
    let thread = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            p.cuda.cuCtxSetCurrent(p.context);
            // SAFETY: it has no preconditions.
            thread.store(unsafe { libc::gettid() } as usize, Ordering::SeqCst);
            // SAFETY: an event that lives at the begin of the call.
            unsafe { (p.cuda.cuEventSynchronize)(event) };
        });
        let sleeps = || {
            let path = format!("/proc/self/task/{}/stat", thread.load(Ordering::SeqCst));
            fs::read_to_string(path).is_ok_and(|text| text.contains(") S "))
        };
        while !sleeps() {
            std::thread::yield_now();
        }
        if p.good {
            goes_on.store(1);
            waits.join().expect("it has waited");
        }
        p.cuda.cuEventDestroy_v2(event);
        goes_on.store(1);
    });
}

/// An event and a stream are used after their end.
pub(super) fn used_after_destroy(p: &Program) {
    let (mut event, mut stream) = (0, 0);
    p.cuda.cuEventCreate(&mut event, 2);
    p.cuda.cuStreamCreate(&mut stream, 1);
    p.cuda.cuEventDestroy_v2(event);
    p.cuda.cuStreamDestroy_v2(stream);
    // Another event gets another handle, and another stream would get this one.
    let mut others = [0; 2];
    p.cuda.cuEventCreate(&mut others[0], 2);
    if p.good {
        p.cuda.cuStreamCreate(&mut others[1], 1);
        (event, stream) = (others[0], others[1]);
    }
    // `CUlaunchConfig`: a grid and a block of one, and the stream.
    let config = [1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0, stream as u64, 0, 0];
    // SAFETY: undefined for a real driver. The software driver looks at handles first.
    let codes = unsafe {
        [
            (p.cuda.cuEventQuery)(event),
            (p.cuda.cuEventDestroy_v2)(event),
            (p.cuda.cuStreamQuery)(stream),
            // There is no such kernel either.
            (p.cuda.cuLaunchKernelEx)(config.as_ptr(), 0, std::ptr::null(), std::ptr::null()),
            // No event, so nobody has destroyed it.
            (p.cuda.cuEventDestroy_v2)(1),
            (p.cuda.cuEventQuery)(1),
        ]
    };
    assert_eq!(codes.map(|code| code == 0), [p.good, p.good, p.good, false, false, false]);
}
