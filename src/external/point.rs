//! A semaphore with the value to signal or to wait for, and the arrays that the driver takes.

use core::ffi::c_uint;
use core::fmt;
use core::ptr::null_mut;
use std::collections::HashSet;
use std::sync::Arc;

use crate::driver::call::Answer;
use crate::error::Result;
use crate::external::imported::Imported;
#[cfg(doc)]
use crate::external::{BinarySemaphore, TimelineSemaphore};
#[cfg(doc)]
use crate::stream::StreamRef;
use crate::sys::{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore,
};

/// A semaphore to signal or to wait for: a [value of a timeline](TimelineSemaphore::at) or a
/// [binary semaphore](BinarySemaphore::once).
///
/// [`StreamRef::signal_externals`] has an example.
#[derive(Clone, Copy)]
pub struct SemaphorePoint<'a> {
    pub(super) semaphore: &'a Arc<Imported>,
    /// `None` for a binary semaphore.
    pub(super) value: Option<u64>,
}

/// The number of points that one call takes without an allocation.
const WITHOUT_ALLOCATION: usize = 8;

/// Calls `give` with the handles of the points, their parameters and their number. With no points
/// it does not call it.
#[inline]
pub(super) fn with_points<P: Copy + Default>(
    points: &[SemaphorePoint<'_>],
    params: impl Fn(Option<u64>) -> P,
    give: impl FnOnce(*const CUexternalSemaphore, *const P, c_uint) -> Result<Answer>,
) -> Result<()> {
    let answer = match points {
        [] => return Ok(()),
        [point] => give(&point.semaphore.raw, &params(point.value), 1),
        _ if points.len() <= WITHOUT_ALLOCATION => {
            let (mut raws, mut all) =
                ([null_mut(); WITHOUT_ALLOCATION], [P::default(); WITHOUT_ALLOCATION]);
            for (point, (raw, place)) in points.iter().zip(raws.iter_mut().zip(&mut all)) {
                (*raw, *place) = (point.semaphore.raw, params(point.value));
            }
            give(raws.as_ptr(), all.as_ptr(), points.len() as c_uint)
        }
        _ => {
            let raws: Vec<_> = points.iter().map(|point| point.semaphore.raw).collect();
            let all: Vec<_> = points.iter().map(|point| params(point.value)).collect();
            // More than can be counted do not fit into memory.
            let count = c_uint::try_from(points.len()).unwrap_or(c_uint::MAX);
            give(raws.as_ptr(), all.as_ptr(), count)
        }
    };
    answer?.check()
}

/// Whether one binary semaphore is there twice.
pub(super) fn is_binary_twice(points: &[SemaphorePoint<'_>]) -> bool {
    let binary = || points.iter().filter(|point| point.value.is_none());
    let mut raws = binary().map(|point| point.semaphore.raw);
    if points.len() > WITHOUT_ALLOCATION {
        let mut seen = HashSet::with_capacity(points.len());
        return raws.any(|raw| !seen.insert(raw));
    }
    while let Some(raw) = raws.next() {
        if raws.clone().any(|other| other == raw) {
            return true;
        }
    }
    false
}

pub(super) fn signal_params(value: Option<u64>) -> CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    // The driver ignores the value of a binary semaphore.
    params.params.fence.value = value.unwrap_or(0);
    params
}

pub(super) fn wait_params(value: Option<u64>) -> CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    // The driver ignores the value of a binary semaphore.
    params.params.fence.value = value.unwrap_or(0);
    params
}

impl fmt::Debug for SemaphorePoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SemaphorePoint");
        shown.field("raw", &self.semaphore.raw);
        if let Some(value) = &self.value {
            shown.field("value", value);
        }
        shown.finish()
    }
}
