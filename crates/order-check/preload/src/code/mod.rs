//! What kernels do with the memory that their launches name, from their machine code.
//!
//! An image stays as it is when the program loads it, and a launch has its parameters; that is all that
//! happens in a program without candidates. A finding about a launch is a candidate: [`verdict`]
//! has the kernel's code decoded then, once for each kernel, and says what it means. This is done
//! without the checker's lock, so other threads go on meanwhile.

use core::sync::atomic::{AtomicUsize, Ordering};

pub(crate) mod evaluated;
pub(crate) mod image;
pub(crate) mod kernel;
pub(crate) mod launch;
mod launches;
mod maps;
pub(crate) mod nearby;
pub(crate) mod recall;
pub(crate) mod signals;
pub(crate) mod time;
pub(crate) mod verdict;

/// Why something is not known, for the summary.
pub(crate) type Reason = std::borrow::Cow<'static, str>;

/// Adds bytes to those that are reserved, unless these are more than `most` then. Returns whether it
/// did.
fn reserve(reserved: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let order = Ordering::Relaxed;
    let mut now = reserved.load(order);
    while let Some(all) = now.checked_add(bytes).filter(|all| *all <= most) {
        match reserved.compare_exchange_weak(now, all, order, order) {
            Ok(_) => return true,
            Err(newer) => now = newer,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::reserve;

    #[test]
    fn so_many_bytes_are_reserved_and_no_more() {
        let all = AtomicUsize::new(3);
        for (bytes, most, added, after) in [
            (4, 6, false, 3),
            (4, 7, true, 7),
            (0, 7, true, 7),
            (1, 7, false, 7),
            (usize::MAX, usize::MAX, false, 7),
        ] {
            assert_eq!(reserve(&all, bytes, most), added, "{bytes} of {most}");
            assert_eq!(all.load(Ordering::Relaxed), after, "{bytes} of {most}");
        }
    }
}
