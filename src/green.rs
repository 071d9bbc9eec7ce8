//! Green contexts: contexts that have a part of a device's multiprocessors.

use core::fmt;
use core::ptr::{self, null_mut};
use std::sync::Arc;

use crate::context::{Context, Owned};
use crate::device::Device;
use crate::driver::call::{call, entry};
use crate::error::{Error, Result};
use crate::stream::StreamRef;
use crate::sys::{CU_GREEN_CTX_DEFAULT_STREAM, CUdevResource, CUdevResourceType, CUdevSmResource};

const SM: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;

/// Streaming multiprocessors of a device: all of them, those of a context, or a part that a
/// [split](Self::split_by_count) made.
///
/// A resource is a description. Nothing is taken from the device before a green context is
/// [created](Context::green) with it, and different parts may be used at the same time. CUDA 12.4.
///
/// All methods may be called from any thread.
pub struct SmResource {
    raw: CUdevResource,
    device: Device,
    /// The context that it was asked of, which stays alive with it.
    context: Option<Context>,
    /// What one split made has this in common; none for what was not split.
    split: Option<Arc<()>>,
}

/// What a [split](SmResource::split_by_count) made.
#[derive(Debug)]
#[non_exhaustive]
pub struct SmSplit {
    /// The parts. They are of one size, and have no multiprocessor in common.
    pub groups: Vec<SmResource>,
    /// The multiprocessors that are in no part. The driver promises less of it than of the parts:
    /// it may be of any size.
    pub remainder: Option<SmResource>,
}

// SAFETY: the driver's value is a description that this crate never looks into except for counts.
// The pointer in it is the driver's own, and the driver API may be called from any thread.
#[allow(unsafe_code)]
unsafe impl Send for SmResource {}
// SAFETY: as for Send; nothing in it changes.
#[allow(unsafe_code)]
unsafe impl Sync for SmResource {}

#[allow(unsafe_code)]
impl SmResource {
    fn new(raw: CUdevResource, device: Device, context: Option<Context>) -> Self {
        Self { raw, device, context, split: None }
    }

    /// Whether a context of `device` can be made of all these. A resource cannot be cloned, and
    /// what one split made does not overlap: so two places in memory are two different parts.
    fn go_together(device: Device, resources: &[&Self]) -> bool {
        let of_device = |of: &&Self| of.device == device && of.raw.type_ == SM && of.count() > 0;
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
        !resources.is_empty() && !apart && resources.iter().all(of_device)
    }

    fn sm(&self) -> CUdevSmResource {
        // SAFETY: the driver gave the resource with this type; and the union's bytes were all 0
        // before, of which every field that an older driver leaves out is a valid number.
        unsafe { self.raw.u.sm }
    }

    /// How many multiprocessors it has.
    #[doc(alias = "sm_count")]
    #[doc(alias = "smCount")]
    pub fn count(&self) -> u32 {
        self.sm().smCount
    }

    /// How many multiprocessors a part of it has at least. A driver older than CUDA 13.0 does not
    /// tell: it is 0 there.
    #[doc(alias = "minSmPartitionSize")]
    pub fn min_partition_size(&self) -> u32 {
        self.sm().minSmPartitionSize
    }

    /// The number of multiprocessors that the driver schedules together; the size of each part is a
    /// multiple of it. A driver older than CUDA 13.0 does not tell: it is 0 there.
    #[doc(alias = "smCoscheduledAlignment")]
    pub fn coscheduled_alignment(&self) -> u32 {
        self.sm().smCoscheduledAlignment
    }

    /// The device of the multiprocessors.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The driver's value, for other bindings. It is good as long as the context that it was asked
    /// of lives.
    pub fn as_raw(&self) -> &CUdevResource {
        &self.raw
    }

    /// Splits it into at most `groups` parts of at least `min_count` multiprocessors each, and what
    /// remains.
    ///
    /// The driver rounds `min_count` up to a size that the device can have, and makes fewer parts
    /// when there are not enough multiprocessors for more. Of the smallest size that can be fewer
    /// than the numbers allow: of 132 multiprocessors an H200 makes 15 parts of 8. `u32::MAX`
    /// groups are as many as there can be. A split changes nothing: to try one, drop the result. A
    /// part cannot be split again before a green context was created with it: split what that
    /// [has](Context::sm_resource).
    ///
    /// One driver call: `cuDevSmResourceSplitByCount` (CUDA 12.4).
    ///
    /// # Errors
    ///
    /// The driver returns `CUDA_ERROR_INVALID_VALUE` for no groups, and
    /// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` for more than there are multiprocessors and for
    /// a part. [`Error::Unsupported`]; [`Error::ForkedChild`].
    #[doc(alias = "cuDevSmResourceSplitByCount")]
    #[doc(alias = "split")]
    pub fn split_by_count(&self, groups: u32, min_count: u32) -> Result<SmSplit> {
        // There cannot be more parts than multiprocessors, whatever number was given.
        let mut made = groups.min(self.count());
        // Room for one even where none is asked for, so that the driver never gets a pointer to
        // nothing.
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
        }?;
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
    /// All multiprocessors of the device, to be [split](SmResource::split_by_count). It needs no
    /// context.
    ///
    /// One driver call: `cuDeviceGetDevResource` (CUDA 12.4).
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`]; what the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceGetDevResource")]
    #[doc(alias = "resources")]
    pub fn sm_resource(self) -> Result<SmResource> {
        let mut raw = CUdevResource::default();
        // SAFETY: a place for the resource.
        unsafe { call!(self.driver(), cuDeviceGetDevResource?(self.as_raw(), &mut raw, SM)) }?;
        Ok(SmResource::new(raw, self, None))
    }
}

#[allow(unsafe_code)]
impl Context {
    /// Creates a green context: one that shares the device's primary context and has some of its
    /// multiprocessors only.
    ///
    /// Streams and events are created in it as in any other context, and what is in its streams
    /// runs on its multiprocessors. The primary context and all its green contexts share their
    /// events: an event of one can be recorded in a stream of any of them and waited for there, and
    /// [elapsed times](crate::EventRef::elapsed_ms) go between all of them. Only
    /// [interprocess](crate::EventFlags::INTERPROCESS) events are waited for in their own context
    /// alone. The streams must be non-blocking, as they are by default. The context has a default
    /// stream of its own, which can be captured, and no [per-thread](StreamRef::per_thread_default)
    /// one: the driver returns `CUDA_ERROR_INVALID_HANDLE` for that.
    ///
    /// The context is destroyed when the last clone and the last object made in it are gone, or
    /// never, if it is [leaked](Self::leak). Whether the driver waits then for work in its streams
    /// is not documented, and was seen both ways on an H200: expect that it
    /// [may](Self#dropping-the-last-share). A stream that the driver still has in it, such as one
    /// that [`into_raw`](crate::Stream::into_raw) gave, ends with it.
    ///
    /// `resources` is one resource, or several different ones that one
    /// [split](SmResource::split_by_count) made. A part may be in several contexts at the same
    /// time. Hold the [primary](Self::primary) context for as long as green ones come and go, or
    /// each first one creates it anew.
    ///
    /// CUDA 12.4. Driver calls: `cuDevResourceGenerateDesc`, `cuGreenCtxCreate` and
    /// `cuCtxFromGreenCtx`; `cuGreenCtxDestroy` when the last user is dropped. What is current
    /// stays so.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, Stream, StreamOptions};
    ///
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
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
    /// [`Error::DriverMismatch`] for a resource of another driver library.
    /// [`Error::ResourceMismatch`] for no resource, for one of another device, and for several that
    /// are not different parts of one split: the driver is not asked, because it may end the
    /// process. Otherwise the driver's error; [`Error::Unsupported`]; [`Error::ForkedChild`].
    ///
    /// # Safety
    ///
    /// Two threads must not use the context at the same time. NVIDIA documents, up to CUDA 13.4,
    /// that a green context may be current on one thread at a time, and that calls which use one
    /// green context are not synchronised with each other. To use it is to call a method of the
    /// context or of a stream in it that makes a driver call, to create an event or a stream in it,
    /// and to hold the guard of [`make_current`](Self::make_current). One thread after the other
    /// may use it, and events may be queried and waited for from any. From 13.5 on the
    /// documentation no longer has this rule.
    #[doc(alias = "cuGreenCtxCreate")]
    #[doc(alias = "cuCtxFromGreenCtx")]
    #[doc(alias = "create_context")]
    pub unsafe fn green(device: Device, resources: &[&SmResource]) -> Result<Self> {
        let driver = device.driver();
        let ready = driver.init()?;
        let describe = entry!(driver, cuDevResourceGenerateDesc?)?;
        let create = entry!(driver, cuGreenCtxCreate?)?;
        let stand_for = entry!(driver, cuCtxFromGreenCtx?)?;
        let destroy = entry!(driver, cuGreenCtxDestroy?)?;
        let mut raws = Vec::with_capacity(resources.len());
        for resource in resources {
            driver.check_same(resource.device.driver(), describe.function)?;
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
        describe.ask(ready, |ask| unsafe { ask(&mut description, parts, count) })?.check()?;
        let mut green = null_mut();
        // Drivers before CUDA 13.3 refuse to do without a default stream.
        let (flags, on) = (CU_GREEN_CTX_DEFAULT_STREAM, device.as_raw());
        // SAFETY: a place for the handle, and the description from above, which is good for the
        // rest of the process.
        create.ask(ready, |ask| unsafe { ask(&mut green, description, on, flags) })?.check()?;
        let mut raw = null_mut();
        // SAFETY: a place for the handle, and the green context from above.
        let answer = stand_for.ask(ready, |stand_for| unsafe { stand_for(&mut raw, green) })?;
        if !answer.is_success() {
            // SAFETY: the green context from above, which nobody else has.
            let _ = destroy.ask(ready, |destroy| unsafe { destroy(green) });
        }
        answer.check()?;
        Ok(Self::new(raw, device, Owned::Green(green)))
    }

    /// Whether it is a green context, or stands for one that somebody else owns.
    ///
    /// It makes no driver call for a context that this crate [created](Self::green) or
    /// [retained](Self::primary). For one that is only named it asks the driver about the default
    /// stream: one call, `cuStreamGetGreenCtx`, with the context current. There are no green
    /// contexts before CUDA 12.4, and no call is made.
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "cuStreamGetGreenCtx")]
    pub fn is_green(&self) -> Result<bool> {
        match self.owned() {
            Owned::Green(_) => return Ok(true),
            Owned::Primary => return Ok(false),
            Owned::Nothing | Owned::KeptBy(_) => {}
        }
        let Ok(get) = entry!(self.driver(), cuStreamGetGreenCtx?) else { return Ok(false) };
        let stream = StreamRef::legacy_default(self);
        let mut green = null_mut();
        // SAFETY: the handle is a constant, and a place for the handle of the green context.
        get.ask(&stream, |get| unsafe { get(stream.as_raw(), &mut green) })?.check()?;
        Ok(!green.is_null())
    }

    /// The multiprocessors that the context has: its part if it is green, otherwise all of the
    /// device.
    ///
    /// The context stays alive as long as the result, and as what is
    /// [split](SmResource::split_by_count) from it.
    ///
    /// One driver call: `cuCtxGetDevResource` (CUDA 12.4).
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`]; what the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "cuCtxGetDevResource")]
    #[doc(alias = "cuGreenCtxGetDevResource")]
    #[doc(alias = "resources")]
    pub fn sm_resource(&self) -> Result<SmResource> {
        let mut raw = CUdevResource::default();
        // SAFETY: a place for the resource, and a context that lives.
        unsafe { call!(self.driver(), cuCtxGetDevResource?(self.as_raw(), &mut raw, SM)) }?;
        Ok(SmResource::new(raw, self.device(), Some(self.clone())))
    }
}

static_assertions::assert_impl_all!(SmResource: Send, Sync);
