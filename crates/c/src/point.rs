//! Points, as plain values.

#[cfg(unix)]
use std::ffi::c_int;
use std::ffi::c_void;
use std::hash::{BuildHasher, RandomState};
use std::mem::{MaybeUninit, transmute};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cuda_timelines::Point;

use crate::callback::{self, cutl_callback};
use crate::result::cutl_result::{self, *};
use crate::result::{Fail, guard, place, result_of};

/// A place in a timeline: all work that was in the stream when it was signalled. A plain value of
/// this process: copy it, share it between threads, keep as many as you like. It keeps nothing
/// alive and needs no destruction; it may outlive its timeline. To another process send its value.
///
/// The fields are private. A point that is zero, or of another process, is CUTL_ERROR_POINT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cutl_point {
    words: [*const c_void; 3],
    check: u64,
}

/// No limit, for the waits.
pub const CUTL_FOREVER: u64 = 0xffff_ffff_ffff_ffff;

/// The key of the check; 0 until it is made.
static KEY: AtomicU64 = AtomicU64::new(0);

/// Makes the key of this process. A process that is forked before the driver is initialised may use
/// the library, and makes its own: to ask for the process at each check would cost a system call.
#[cold]
fn make_key() -> u64 {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(forget_in_children);
    let key = RandomState::new().hash_one(std::process::id()) | 1;
    KEY.compare_exchange(0, key, Relaxed, Relaxed).map_or_else(|theirs| theirs, |_| key)
}

#[cfg(unix)]
fn forget_in_children() {
    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }

    unsafe extern "C" fn in_child() {
        KEY.store(0, Relaxed);
    }

    // SAFETY: the declaration is POSIX's. The handler only changes an atomic, which is allowed in a
    // forked child, and the C library removes it when this library is unloaded.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(not(unix))]
fn forget_in_children() {}

fn check_of(words: [*const c_void; 3]) -> u64 {
    let key = match KEY.load(Relaxed) {
        0 => make_key(),
        key => key,
    };
    words.iter().fold(key, |sum, word| {
        (sum ^ word.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

/// A point as C has it.
pub(crate) fn put(place: &mut MaybeUninit<cutl_point>, point: Point) -> cutl_result {
    // SAFETY: a point is two references and a number, without padding, and three pointers may have
    // any bits.
    let words = unsafe { transmute::<Point, [*const c_void; 3]>(point) };
    place.write(cutl_point { words, check: check_of(words) });
    CUTL_OK
}

/// A point that C had.
pub(crate) fn get(point: Option<&cutl_point>) -> Result<Point, Fail> {
    let point = point.ok_or_else(|| Fail::null("the point"))?;
    if check_of(point.words) != point.check {
        return Err(Fail::new(
            CUTL_ERROR_POINT,
            "this is no point of this process; take one from cutl_timeline_signal, or from \
             cutl_timeline_point with a value that another process has sent",
        ));
    }
    // SAFETY: the check is keyed for this process, so `put` has made these words from a point,
    // which is valid forever.
    Ok(unsafe { transmute::<[*const c_void; 3], Point>(point.words) })
}

pub(crate) fn limit(nanoseconds: u64) -> Duration {
    if nanoseconds == CUTL_FOREVER { Duration::MAX } else { Duration::from_nanos(nanoseconds) }
}

/// Writes the point's value to `out`: the number to send to other processes. The values of one
/// timeline rise.
///
/// Errors: CUTL_ERROR_POINT; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_point_value(
    point: Option<&cutl_point>,
    out: Option<&mut MaybeUninit<u64>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        out.write(get(point)?.value());
        Ok(CUTL_OK)
    })
}

/// Returns whether the point is reached: CUTL_OK or CUTL_PENDING. One load, without a driver call
/// and without a lock. After CUTL_OK the caller sees the writes of the work before the point. A
/// point that stays pending may never be reached: cutl_point_query returns the failure.
///
/// Errors: CUTL_ERROR_POINT; CUTL_ERROR_ARGUMENT; CUTL_ERROR_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_point_is_done(point: Option<&cutl_point>) -> cutl_result {
    guard(|| Ok(if get(point)?.is_done() { CUTL_OK } else { CUTL_PENDING }))
}

/// Returns whether the point is reached, CUTL_OK or CUTL_PENDING, or why it never will be. If it is
/// not reached, the driver is queried. It does not wait.
///
/// Errors: CUTL_ERROR_POISONED, CUTL_ERROR_EXPORTER_GONE, CUTL_ERROR_CONTEXT_DROPPED or
/// CUTL_ERROR_DRIVER, if the point cannot be reached; CUTL_ERROR_POINT; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_point_query(point: Option<&cutl_point>) -> cutl_result {
    guard(|| result_of(get(point)?.query()?))
}

/// Waits until the point is reached, for at most `nanoseconds`. CUTL_PENDING if the time is up;
/// with CUTL_FOREVER it never is. The thread sleeps between checks. An error that ends the wait is
/// found within 5 ms and a driver call.
///
/// Errors: those of cutl_point_query.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_point_wait(point: Option<&cutl_point>, nanoseconds: u64) -> cutl_result {
    guard(|| result_of(get(point)?.wait_timeout(limit(nanoseconds))?))
}

/// The same as cutl_point_wait, but it spins: it returns earlier, and uses a core.
///
/// Errors: those of cutl_point_query.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_point_spin(point: Option<&cutl_point>, nanoseconds: u64) -> cutl_result {
    guard(|| result_of(get(point)?.spin_timeout(limit(nanoseconds))?))
}

/// Has `callback` called once, when the point is reached or cannot be reached any more. See
/// cutl_callback. The result is CUTL_OK or an error of cutl_point_query.
///
/// Errors, after which the callback is not called: CUTL_ERROR_NO_THREAD; CUTL_ERROR_POINT;
/// CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// As for cutl_callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_point_on_done(
    point: Option<&cutl_point>,
    callback: cutl_callback,
    user: *mut c_void,
) -> cutl_result {
    guard(|| {
        let point = get(point)?;
        callback::start(callback, user, || Ok(point.into_future()))
    })
}

const _: () = assert!(size_of::<cutl_point>() == 32 && align_of::<cutl_point>() == 8);
