//! Native stacks, where most are those of earlier calls.
//!
//! To walk a stack takes microseconds, as the unwinder looks up each frame's layout. But most calls
//! come on a path that an earlier call came on, with its frames in the same places. So the places
//! of a stack's return addresses are kept. If this function's own frame is where it was then, and
//! each place holds the same return address still, from the inside to the outside, then it is the
//! same stack: the frame of a function is where the one that it called begins, and how long it is
//! follows from the code that is returned to. (A function with a frame of variable length is an
//! exception. Then all frames outside of it would have to lie in the same places by chance.)

use core::ffi::{c_int, c_void};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// How many stacks are kept.
const RECENT: usize = 128;
/// The most frames of one that is kept.
const FRAMES: usize = 256;

struct Recent {
    /// Where a variable of [`here`] was.
    at: usize,
    /// Where each return address is, and the address, from the inside to the outside.
    returns: Vec<(usize, usize)>,
    /// The number of the return addresses.
    path: u64,
    stack: Arc<Backtrace>,
}

/// The last one that was used is the first.
static RECENT_STACKS: Mutex<VecDeque<Recent>> = Mutex::new(VecDeque::new());

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// The words on a stack that this thread has, from this address on.
fn own_stack() -> Range<usize> {
    thread_local!(static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) });
    let ask = || {
        let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::zeroed();
        let (mut first, mut bytes) = (core::ptr::null_mut(), 0);
        // SAFETY: this thread, which exists, and places for the answers. A success has filled the
        // attributes, and these are destroyed once.
        unsafe {
            if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
                return (1, 1);
            }
            libc::pthread_attr_getstack(attributes.as_ptr(), &mut first, &mut bytes);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        (first.addr(), first.addr().saturating_add(bytes))
    };
    let own = STACK.try_with(|stack| {
        if stack.get() == (0, 0) {
            stack.set(ask());
        }
        stack.get()
    });
    own.map_or(0..0, |(first, end)| first..end)
}

/// A word on the stack of this thread.
///
/// # Safety
///
/// The address of a word of that stack, outside of the caller's own frame.
unsafe fn word(at: usize) -> usize {
    // SAFETY: as the caller says. The functions to which the frames belong do not run now.
    unsafe { core::ptr::with_exposed_provenance::<usize>(at).read_volatile() }
}

struct Walk {
    own: Range<usize>,
    returns: Vec<(usize, usize)>,
    /// Whether each return address was where it should be.
    plain: bool,
}

unsafe extern "C" fn frame(context: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: the data that `returns` gives, and the unwinder's own context.
    let (walk, code, end) =
        unsafe { (&mut *data.cast::<Walk>(), _Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    // The return address is the last word of the frame that was called.
    let at = end.wrapping_sub(size_of::<usize>());
    if code == 0 || at <= walk.own.start {
        return 0;
    }
    let follows = walk.returns.last().is_none_or(|(before, _)| *before < at);
    // SAFETY: in the stack of this thread, and outside of the frame of `here`.
    let found = || unsafe { word(at) };
    let plain = follows
        && at.is_multiple_of(size_of::<usize>())
        && at < walk.own.end
        && walk.returns.len() < FRAMES
        && found() == code;
    if !plain {
        walk.plain = false;
        return 5;
    }
    walk.returns.push((at, code));
    0
}

/// The return addresses outside of the frame with a variable at `at`, if all are where they should
/// be.
fn returns(at: usize, end: usize) -> Option<Vec<(usize, usize)>> {
    let mut walk = Walk { own: at..end, returns: Vec::new(), plain: true };
    // SAFETY: the function, with its data, which live until the call returns.
    unsafe { _Unwind_Backtrace(frame, (&raw mut walk).cast()) };
    (walk.plain && !walk.returns.is_empty()).then_some(walk.returns)
}

/// A number for these return addresses.
fn number(codes: impl Iterator<Item = usize>) -> u64 {
    let mut hasher = DefaultHasher::new();
    codes.for_each(|code| code.hash(&mut hasher));
    hasher.finish()
}

/// The number of a stack whose return addresses need not be where others are.
fn path_of_any() -> u64 {
    unsafe extern "C" fn add(context: *mut c_void, data: *mut c_void) -> c_int {
        // SAFETY: the data that is given below, and the unwinder's own context.
        let (codes, code) = unsafe { (&mut *data.cast::<Vec<usize>>(), _Unwind_GetIP(context)) };
        codes.push(code);
        if codes.len() < FRAMES { 0 } else { 5 }
    }
    let mut codes: Vec<usize> = Vec::new();
    // SAFETY: the function, with its data, which live until the call returns.
    unsafe { _Unwind_Backtrace(add, (&raw mut codes).cast()) };
    number(codes.into_iter())
}

/// The stack of the calling thread, and a number that only calls on this path have.
#[inline(never)]
pub(crate) fn here() -> (Arc<Backtrace>, u64) {
    let variable = Cell::new(0_u8);
    let at = std::hint::black_box(&raw const variable).addr();
    let capture = || (Arc::new(Backtrace::force_capture()), path_of_any());
    let own = own_stack();
    if !own.contains(&at) {
        // It runs on a stack of the program's own.
        return capture();
    }
    // In the child of a fork nobody may give it back.
    let Ok(mut recent) = RECENT_STACKS.try_lock() else { return capture() };
    let same = |one: &Recent| {
        // SAFETY: the words of this thread's stack that are outside of this function's frame.
        let is_there = |at: &(usize, usize)| own.contains(&at.0) && unsafe { word(at.0) } == at.1;
        one.at == at && one.returns.iter().all(is_there)
    };
    if let Some(place) = recent.iter().position(same) {
        let found = recent.get(place).map(|one| (one.stack.clone(), one.path));
        recent.swap(0, place);
        return found.unwrap_or_else(capture);
    }
    let Some(returns) = returns(at, own.end) else { return capture() };
    let stack = Arc::new(Backtrace::force_capture());
    let path = number(returns.iter().map(|(_, code)| *code));
    recent.truncate(RECENT - 1);
    recent.push_front(Recent { at, returns, path, stack: stack.clone() });
    (stack, path)
}

// Miri walks no stack of the unwinder's.
#[cfg(all(test, not(miri)))]
mod tests {
    use std::backtrace::Backtrace;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::{RECENT_STACKS, here};

    /// One test at a time, as a stack that another thread is looking for is not waited for.
    static ALONE: Mutex<()> = Mutex::new(());

    type Stacks = Vec<(Arc<Backtrace>, u64)>;

    #[inline(never)]
    fn one(stacks: &mut Stacks) {
        stacks.push(here());
        std::hint::black_box(&stacks);
    }

    #[inline(never)]
    fn other(stacks: &mut Stacks) {
        one(stacks);
        std::hint::black_box(&stacks);
    }

    /// A stack is walked once for each path, not for each call.
    #[test]
    fn stacks_of_one_path_are_one() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for _ in 0..3 {
            one(&mut all);
        }
        for _ in 0..3 {
            other(&mut all);
        }
        let same = |a: usize, b: usize| {
            let same = Arc::ptr_eq(&all[a].0, &all[b].0);
            assert_eq!(same, all[a].1 == all[b].1, "the number of the path");
            same
        };
        assert!(same(0, 1) && same(1, 2) && same(3, 4) && same(4, 5));
        assert!(!same(2, 3));
        let texts = [0, 3].map(|at: usize| all[at].0.to_string());
        assert!(!texts[0].contains("tests::other") && texts[1].contains("tests::other"));
    }

    /// While another thread is looking for its stack, none is kept. Those of one path have one number.
    #[test]
    fn a_stack_that_is_not_recent_has_the_number_of_its_path() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        let _recent = RECENT_STACKS.lock().unwrap_or_else(PoisonError::into_inner);
        (0..2).for_each(|_| one(&mut all));
        (0..2).for_each(|_| other(&mut all));
        let numbers: Vec<u64> = all.iter().map(|(_, number)| *number).collect();
        assert_eq!([numbers[0], numbers[2]], [numbers[1], numbers[3]]);
        assert_ne!(numbers[0], numbers[2]);
        assert!(!Arc::ptr_eq(&all[0].0, &all[1].0));
    }

    /// Frames that lie in the same places, with a different caller further out.
    #[test]
    fn another_caller_far_outside_is_seen() {
        fn deep(depth: u32, stacks: &mut Stacks) {
            match depth {
                0 => one(stacks),
                _ => deep(depth - 1, stacks),
            }
            std::hint::black_box(&stacks);
        }
        #[inline(never)]
        fn left(stacks: &mut Stacks) {
            deep(20, stacks);
            std::hint::black_box(&stacks);
        }
        #[inline(never)]
        fn right(stacks: &mut Stacks) {
            std::hint::black_box(&stacks);
            deep(20, stacks);
            std::hint::black_box((&stacks, 1));
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let callers: [fn(&mut Stacks); 2] = [left, right];
        let mut all = Vec::new();
        for round in 0..4 {
            callers[round % 2](&mut all);
        }
        assert!(Arc::ptr_eq(&all[0].0, &all[2].0) && Arc::ptr_eq(&all[1].0, &all[3].0));
        assert!(!Arc::ptr_eq(&all[0].0, &all[1].0) && all[0].1 != all[1].1);
        let names = ["::left", "::right"];
        for ((stack, _), name) in all.iter().zip(names) {
            assert!(stack.to_string().contains(name), "{stack}");
        }
    }
}
