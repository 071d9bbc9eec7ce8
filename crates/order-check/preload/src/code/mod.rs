//! What kernels do with the memory that their launches name, from their machine code.
//!
//! An image is kept as it is when the program loads it, and a launch with its parameters; that is all
//! that happens in a program without candidates. A finding about a launch is a candidate: [`verdict`]
//! has the kernel's code decoded then, once for each kernel, and says what it means. This is done
//! without the checker's lock, so other threads go on meanwhile.

use core::sync::atomic::{AtomicUsize, Ordering};

pub(crate) mod image;
pub(crate) mod kernel;
pub(crate) mod launch;
mod maps;
pub(crate) mod nearby;
pub(crate) mod threads;
pub(crate) mod verdict;

/// Why something is not known, for the summary.
pub(crate) type Reason = std::borrow::Cow<'static, str>;

/// Adds to how many bytes are kept, unless that is more than `most` then. The answer is whether it
/// did.
fn keep(kept: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let order = Ordering::Relaxed;
    let mut now = kept.load(order);
    while let Some(all) = now.checked_add(bytes).filter(|all| *all <= most) {
        match kept.compare_exchange_weak(now, all, order, order) {
            Ok(_) => return true,
            Err(newer) => now = newer,
        }
    }
    false
}
