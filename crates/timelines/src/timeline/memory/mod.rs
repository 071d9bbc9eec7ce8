//! The memory that lines are in, as the operating system gives it.

use super::line::Line;

// The layout that other processes and devices use.
static_assertions::assert_eq_size!(Line, [u8; 64]);
static_assertions::const_assert_eq!(align_of::<Line>(), 64);

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(any(target_os = "linux", windows)))]
mod other;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use linux::{File, Identity, Life};
#[cfg(not(any(target_os = "linux", windows)))]
pub(super) use other::{File, Identity, Life};
#[cfg(windows)]
pub(super) use windows::{File, Identity, Life};

/// Fresh lines, all zero, which are never freed. They are shared with forked children: memory that
/// is copied on write after a fork would no longer be the memory that the device uses.
#[cfg(target_os = "linux")]
pub(super) fn fresh(lines: usize) -> Option<&'static [Line]> {
    const SHARED_AND_ANONYMOUS: i32 = 1 | 0x20;
    linux::map(lines, true, SHARED_AND_ANONYMOUS, -1).ok()
}

/// Fresh lines, all zero, which are never freed.
#[cfg(not(target_os = "linux"))]
#[allow(unsafe_code)]
pub(super) fn fresh(lines: usize) -> Option<&'static [Line]> {
    let bytes = lines * size_of::<Line>();
    let layout = core::alloc::Layout::from_size_align(bytes, bytes).ok()?;
    // SAFETY: the size is not zero.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    if memory.is_null() {
        return None;
    }
    // SAFETY: so many bytes, all zero, which is a value of `Line`; they are never freed, and only
    // changed through atomics, by devices included.
    Some(unsafe { core::slice::from_raw_parts(memory.cast(), lines) })
}
