//! The system's allocator, with what each thread has of it. A test binary that asks makes it its
//! own:
//!
//! ```ignore
//! #[global_allocator]
//! static ALLOCATOR: Counted = Counted;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// The allocator.
pub struct Counted;

fn note(allocations: usize, bytes: isize) {
    // A thread allocates before and after it has its thread-locals.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as isize);
        // SAFETY: the caller's duties, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, -(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// How often this thread has allocated.
pub fn allocations() -> usize {
    ALLOCATIONS.get()
}

/// The bytes that this thread has allocated, less those that it has freed.
pub fn bytes() -> isize {
    BYTES.get()
}
