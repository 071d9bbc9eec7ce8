//! Memory that is needed soon.

/// Asks the processor for the cache line of a value, and does not wait for it.
#[inline(always)]
pub(super) fn fetch<T>(value: &T) {
    #[cfg(all(feature = "process", target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // SAFETY: a hint, and the address is one of a value that lives.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(all(feature = "process", target_arch = "x86_64", not(miri))))]
    let _ = value;
}
