//! Green contexts: contexts with a part of a device's multiprocessors. CUDA 12.4.
//!
//! Use them to divide a device, for example between short urgent kernels and long ones: give each
//! kind of work a part of its own.
//!
//! 1. [`Device::sm_resource`] has all multiprocessors of a device.
//! 2. [`split_by_count`](SmResource::split_by_count) divides them.
//! 3. [`Context::green`] makes a context of one part or several. Only one thread at a time may use
//!    it.
//!
//! ```
//! use cuda_events::{Context, Device, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let device = Device::new(driver, 0)?;
//! let all = device.sm_resource()?;
//! let split = all.split_by_count(1, all.count() / 2)?;
//! // SAFETY: this thread alone uses the context.
//! let green = unsafe { Context::green(device, &[&split.groups[0]]) }?;
//! let stream = Stream::new(&green, StreamOptions::new())?;
//! // ... work in `stream` runs on this part of the multiprocessors ...
//! assert!(green.sm_resource()?.count() < all.count());
//! # Ok::<(), cuda_events::Error>(())
//! ```

use core::fmt;
use core::ptr::{self, null_mut};
use std::sync::Arc;

use crate::context::{Context, Owned};
use crate::device::Device;
use crate::driver::call::{call, entry};
use crate::error::{Error, Result};
use crate::sys::{CU_GREEN_CTX_DEFAULT_STREAM, CUdevResource, CUdevResourceType, CUdevSmResource};

#[cfg(doc)]
use crate::sys::calls::*;

const SM: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;

/// Streaming multiprocessors of a device: all of them, those of a context, or a part from a
/// [split](Self::split_by_count). Needs CUDA 12.4.
///
/// A resource is only a description. Nothing is reserved on the device until a green context is
/// [created](Context::green) with the resource. Different parts may be used at the same time.
///
/// The methods may be called from any thread.
///
/// ```
/// use cuda_events::Device;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let device = Device::new(driver, 0)?;
/// let all = device.sm_resource()?;
/// assert_eq!(all.device(), device);
/// println!("{} multiprocessors", all.count());
/// // Both are 0 on drivers older than CUDA 13.0.
/// let (least, step) = (all.min_partition_size(), all.coscheduled_alignment());
/// for part in all.split_by_count(2, least.max(1))?.groups {
///     assert!(part.count() >= least && part.count().is_multiple_of(step.max(1)));
///     let raw = part.as_raw(); // a `CUdevResource`, for another binding
/// }
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct SmResource {
    raw: CUdevResource,
    device: Device,
    /// The context from which it came, which is kept alive.
    context: Option<Context>,
    /// A mark that all parts of one split share; none for a resource that is not from a split.
    split: Option<Arc<()>>,
}

/// The result of [`SmResource::split_by_count`]: the parts and the remainder.
///
/// [`Context::green`] has an example.
#[derive(Debug)]
#[non_exhaustive]
pub struct SmSplit {
    /// The parts. They have one size and do not overlap.
    pub groups: Vec<SmResource>,
    /// The multiprocessors that are in no part, if any. The remainder may have any size.
    pub remainder: Option<SmResource>,
}

// SAFETY: the driver's value is a description of which this crate reads only the counts. The
// pointer in it is the driver's own, and the driver API may be called from any thread.
#[allow(unsafe_code)]
unsafe impl Send for SmResource {}
// SAFETY: as for Send; it never changes.
#[allow(unsafe_code)]
unsafe impl Sync for SmResource {}

#[allow(unsafe_code)]
impl SmResource {
    fn new(raw: CUdevResource, device: Device, context: Option<Context>) -> Self {
        Self { raw, device, context, split: None }
    }

    /// Whether a context of `device` can be made of all these. A resource cannot be cloned, and the
    /// parts of one split do not overlap, so two places in memory are two different parts.
    fn go_together(device: Device, resources: &[&Self]) -> bool {
        let fits = |one: &&Self| one.device == device && one.raw.type_ == SM && one.count() > 0;
        let of_one_split = |one: &Self, other: &Self| match (&one.split, &other.split) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let mut rest = resources;
        let mut apart = false;
        while let [one, others @ ..] = rest {
            apart |= others.iter().any(|other| ptr::eq(*one, *other) || !of_one_split(one, other));
            rest = others;
        }
        !resources.is_empty() && !apart && resources.iter().all(fits)
    }

    fn sm(&self) -> CUdevSmResource {
        // SAFETY: the driver returned the resource with this type. The union's bytes were all 0
        // before, so a field that an older driver does not write is a valid number.
        unsafe { self.raw.u.sm }
    }

    /// Returns the number of multiprocessors.
    #[doc(alias = "sm_count")]
    #[doc(alias = "smCount")]
    pub fn count(&self) -> u32 {
        self.sm().smCount
    }

    /// Returns the smallest number of multiprocessors that a part can have; 0 on drivers older than
    /// CUDA 13.0.
    #[doc(alias = "minSmPartitionSize")]
    pub fn min_partition_size(&self) -> u32 {
        self.sm().minSmPartitionSize
    }

    /// Returns the number of multiprocessors that the driver schedules together; 0 on drivers older
    /// than CUDA 13.0.
    ///
    /// The size of each part is a multiple of this number.
    #[doc(alias = "smCoscheduledAlignment")]
    pub fn coscheduled_alignment(&self) -> u32 {
        self.sm().smCoscheduledAlignment
    }

    /// Returns the device of the multiprocessors.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the driver's value, for other bindings. The value is valid as long as the context
    /// from which the resource came.
    pub fn as_raw(&self) -> &CUdevResource {
        &self.raw
    }

    /// Splits the resource into at most `groups` parts of at least `min_count` multiprocessors
    /// each, and a remainder. Needs CUDA 12.4.
    ///
    /// The driver rounds `min_count` up to a size that the device supports. It makes fewer parts if
    /// there are not enough multiprocessors. With the smallest size it may make fewer parts than
    /// the numbers suggest: an H200 splits 132 multiprocessors into 15 parts of 8. With `groups` of
    /// `u32::MAX` it makes as many parts as possible. A split reserves nothing, so you can try one
    /// and drop the result.
    ///
    /// A part cannot be split again directly: create a green context with it, and split the
    /// resource of that context ([`Context::sm_resource`]).
    ///
    /// One driver call: [`cuDevSmResourceSplitByCount`]. [`Context::green`] has an example.
    ///
    /// # Errors
    ///
    /// * `CUDA_ERROR_INVALID_VALUE`: `groups` is 0.
    /// * `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION`: `min_count` is more than there are
    ///   multiprocessors, or this is a part of a split.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 12.4.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuDevSmResourceSplitByCount")]
    #[doc(alias = "split")]
    pub fn split_by_count(&self, groups: u32, min_count: u32) -> Result<SmSplit> {
        // There cannot be more parts than multiprocessors.
        let mut made = groups.min(self.count());
        // Space for at least one, so the driver never gets a pointer to an empty vector.
        let mut raws = vec![CUdevResource::default(); made.max(1) as usize];
        let mut rest = CUdevResource::default();
        // SAFETY: places for at least as many resources as the second argument says, for the number
        // and for the rest; the input came from the driver, and the context that it came from
        // lives.
        unsafe {
            call!(
                self.device.driver(),
                cuDevSmResourceSplitByCount?(
                    raws.as_mut_ptr(),
                    &mut made,
                    &self.raw,
                    &mut rest,
                    0,
                    min_count
                )
            )
        }?
        .check()?;
        let split = Arc::new(());
        let part = |raw| Self {
            raw,
            device: self.device,
            context: self.context.clone(),
            split: Some(split.clone()),
        };
        Ok(SmSplit {
            groups: raws.into_iter().take(made as usize).map(part).collect(),
            remainder: (rest.type_ == SM).then(|| part(rest)).filter(|rest| rest.count() > 0),
        })
    }
}

impl fmt::Debug for SmResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmResource")
            .field("count", &self.count())
            .field("device", &self.device.ordinal())
            .finish_non_exhaustive()
    }
}

#[allow(unsafe_code)]
impl Device {
    /// Returns all multiprocessors of the device, for a [split](SmResource::split_by_count). Needs
    /// CUDA 12.4.
    ///
    /// One driver call: [`cuDeviceGetDevResource`]. It needs no context. [`SmResource`] has an
    /// example.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the driver is older than CUDA 12.4; [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceGetDevResource")]
    #[doc(alias = "resources")]
    pub fn sm_resource(self) -> Result<SmResource> {
        let mut raw = CUdevResource::default();
        // SAFETY: a place for the resource.
        unsafe { call!(self.driver(), cuDeviceGetDevResource?(self.as_raw(), &mut raw, SM)) }?
            .check()?;
        Ok(SmResource::new(raw, self, None))
    }
}

/// # Green contexts
#[allow(unsafe_code)]
impl Context {
    /// Creates a green context, which has only a part of the device's multiprocessors. Needs CUDA
    /// 12.4.
    ///
    /// Streams and events are created in it as in any other context. Work in its streams runs on
    /// its multiprocessors.
    ///
    /// * A primary context and all its green contexts share their events, for records, waits and
    ///   [elapsed times](crate::EventRef::elapsed_ms). Interprocess events are the exception:
    ///   streams of another context cannot [wait](crate::StreamRef::wait_event) for them.
    /// * The streams must be non-blocking, which is the default.
    ///   [`Stream::new`](crate::Stream::new) [refuses](Error::BlockingInGreenContext) others.
    /// * The context has its own default stream, which can be captured. It has no
    ///   [per-thread](crate::StreamRef::per_thread_default) default stream: the driver returns
    ///   `CUDA_ERROR_INVALID_HANDLE` for it.
    ///
    /// The context is destroyed when the last clone and the last object made in it are dropped,
    /// unless it is [leaked](Self::leak). This last drop [can block](Self#dropping-the-last-share).
    ///
    /// `resources` is either one resource, or several different parts of one
    /// [split](SmResource::split_by_count). A part may be in several contexts at the same time.
    /// Keep a [primary](Self::primary) context of the device while you create and drop green
    /// contexts. Without one, the driver creates the primary context with the first green context,
    /// and destroys it with the last.
    ///
    /// Driver calls: [`cuDevResourceGenerateDesc`], [`cuGreenCtxCreate`] and [`cuCtxFromGreenCtx`];
    /// [`cuInit`] the first time. The [last drop](Self#dropping-the-last-share) calls
    /// [`cuGreenCtxDestroy`]. The thread's current context does not change.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let device = Device::new(driver, 0)?;
    /// let primary = Context::primary(device)?;
    /// let split = device.sm_resource()?.split_by_count(2, 16)?;
    /// let [part, _other] = &split.groups[..] else { return Ok(()) };
    ///
    /// // SAFETY: this thread alone uses the context.
    /// let green = unsafe { Context::green(device, &[part]) }?;
    /// assert!(green.is_green()? && !primary.is_green()?);
    /// assert_eq!(green.sm_resource()?.count(), part.count());
    ///
    /// let small = Stream::new(&green, StreamOptions::new())?;
    /// let rest = Stream::new(&primary, StreamOptions::new())?;
    /// let done = Event::new(&green, EventFlags::empty())?;
    /// done.record(&small)?;
    /// rest.wait_event(&done)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::DriverMismatch`]: a resource belongs to another driver library.
    /// * [`Error::ResourceMismatch`]: `resources` is empty, or has parts of another device or of
    ///   several splits, or one part twice.
    /// * [`Error::Unsupported`]: the driver is older than CUDA 12.4.
    /// * `CUDA_ERROR_OUT_OF_MEMORY`: the device has no room for the context.
    /// * [`Error::Init`]; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// Two threads must not use the context at the same time. A thread uses the context in three
    /// cases:
    ///
    /// * It makes a driver call on the context or on one of its streams. The method may belong to
    ///   another object, as in `event.record(&stream)`.
    /// * It creates or imports an object in the context, or exports an event of the context.
    /// * It holds the guard of [`make_current`](Self::make_current).
    ///
    /// Different threads may use the context one after the other. Any thread may query events and
    /// wait for them.
    ///
    /// The rule comes from NVIDIA's documentation up to CUDA 13.4. This crate requires it with
    /// every driver.
    #[doc(alias = "cuGreenCtxCreate")]
    #[doc(alias = "cuCtxFromGreenCtx")]
    #[doc(alias = "create_context")]
    pub unsafe fn green(device: Device, resources: &[&SmResource]) -> Result<Self> {
        let driver = device.driver();
        driver.init()?;
        let describe = entry!(driver, cuDevResourceGenerateDesc?)?;
        let create = entry!(driver, cuGreenCtxCreate?)?;
        let stand_for = entry!(driver, cuCtxFromGreenCtx?)?;
        let destroy = entry!(driver, cuGreenCtxDestroy?)?;
        let mut raws = Vec::with_capacity(resources.len());
        for resource in resources {
            driver.check(resource.device.driver(), describe.function)?;
            raws.push(resource.raw);
        }
        if !SmResource::go_together(device, resources) {
            return Err(Error::ResourceMismatch { function: describe.function });
        }
        let count = u32::try_from(raws.len()).unwrap_or(u32::MAX);
        let mut description = null_mut();
        let parts = raws.as_mut_ptr();
        // SAFETY: a place for the description, and as many resources of this driver as the count
        // says: one, or different parts of one split, of the device that the context is made of.
        describe.call(driver, |ask| unsafe { ask(&mut description, parts, count) })?.check()?;
        let mut green = null_mut();
        // Drivers before CUDA 13.3 require a default stream.
        let (flags, on) = (CU_GREEN_CTX_DEFAULT_STREAM, device.as_raw());
        // SAFETY: a place for the handle, and the description from above, which is valid for the
        // rest of the process.
        create.call(driver, |ask| unsafe { ask(&mut green, description, on, flags) })?.check()?;
        let mut raw = null_mut();
        // SAFETY: a place for the handle, and the green context from above.
        let answer = stand_for.call(driver, |stand_for| unsafe { stand_for(&mut raw, green) })?;
        if !answer.is_success() {
            // SAFETY: the green context from above, which no other code has.
            let _ = destroy.call(driver, |destroy| unsafe { destroy(green) });
        }
        answer.check()?;
        Ok(Self::new(raw, device, Owned::Green(green)))
    }

    /// Returns the multiprocessors of the context: a green context's part, otherwise all of the
    /// device. Needs CUDA 12.4.
    ///
    /// The result, and all parts [split](SmResource::split_by_count) from it, keep the context
    /// alive. [`Context::green`] has an example.
    ///
    /// One driver call: [`cuCtxGetDevResource`].
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the driver is older than CUDA 12.4; [`Error::ForkedChild`].
    #[doc(alias = "cuCtxGetDevResource")]
    #[doc(alias = "cuGreenCtxGetDevResource")]
    #[doc(alias = "resources")]
    pub fn sm_resource(&self) -> Result<SmResource> {
        let mut raw = CUdevResource::default();
        // SAFETY: a place for the resource, and a context that lives.
        unsafe { call!(self.driver(), cuCtxGetDevResource?(self.as_raw(), &mut raw, SM)) }?
            .check()?;
        Ok(SmResource::new(raw, self.device(), Some(self.clone())))
    }
}

static_assertions::assert_impl_all!(SmResource: Send, Sync);
