//! Bytes from and to C.

use std::mem::MaybeUninit;

use crate::result::cutl_result::{self, *};
use crate::result::{Fail, place};

/// The bytes that C points to.
///
/// # Safety
///
/// As for cutl_timeline_open: NULL, or that many readable bytes.
pub(crate) unsafe fn read(bytes: *const u8, length: usize) -> Result<Vec<u8>, Fail> {
    /// More than any descriptor has: a length beyond it is a mistake, and is not read.
    const MOST: usize = 4096;
    if bytes.is_null() {
        return Err(Fail::null("the descriptor"));
    }
    if length > MOST {
        return Err(Fail::new(
            CUTL_ERROR_DESCRIPTOR,
            format!("descriptor refused: {length} bytes are more than any descriptor has"),
        ));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec())
}

/// Copies a descriptor out.
///
/// # Safety
///
/// `buffer` is NULL, or `capacity` writable bytes.
pub(crate) unsafe fn write(
    descriptor: &[u8],
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<cutl_result, Fail> {
    place(length, "length")?.write(descriptor.len());
    if buffer.is_null() || capacity < descriptor.len() {
        return Err(Fail::argument(format!(
            "the descriptor has {} bytes, and there is room for {}",
            descriptor.len(),
            if buffer.is_null() { 0 } else { capacity }
        )));
    }
    // SAFETY: as the caller promises; the two do not overlap, since the descriptor is ours.
    unsafe { buffer.copy_from_nonoverlapping(descriptor.as_ptr(), descriptor.len()) };
    Ok(CUTL_OK)
}
