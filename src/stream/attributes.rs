//! Stream attributes: how waits behave, the priority and the memory-synchronization domain.
//!
//! | attribute | read | written |
//! | --- | --- | --- |
//! | how a thread waits | [`synchronization_policy`](StreamRef::synchronization_policy) | [`set_synchronization_policy`](StreamRef::set_synchronization_policy) |
//! | the priority | [`priority`](StreamRef::priority) | [`set_priority`](StreamRef::set_priority), or [`StreamOptions`](crate::StreamOptions) |
//! | the memory-synchronization domain | [`memory_sync_domain`](StreamRef::memory_sync_domain) | [`set_memory_sync_domain`](StreamRef::set_memory_sync_domain) |
//! | the physical domain of the device for each domain | [`memory_sync_domain_map`](StreamRef::memory_sync_domain_map) | [`set_memory_sync_domain_map`](StreamRef::set_memory_sync_domain_map) |
//! | any other | [`attribute`](StreamRef::attribute) | [`set_attribute`](StreamRef::set_attribute) |
//! | all at once | | [`copy_attributes_from`](StreamRef::copy_attributes_from) |
//!
//! ```
//! use cuda_events::attributes::SynchronizationPolicy;
//! use cuda_events::{Context, Device, Stream, StreamOptions};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! let stream = Stream::new(&context, StreamOptions::new())?;
//! stream.set_synchronization_policy(SynchronizationPolicy::BLOCKING_SYNC)?;
//! stream.synchronize()?; // the thread sleeps
//! # Ok::<(), cuda_events::Error>(())
//! ```

use core::fmt;

use crate::driver::call::{call, entry};
use crate::error::{Error, Result};
use crate::stream::{PriorityRange, StreamRef};
use crate::sys::{
    CUlaunchMemSyncDomain, CUlaunchMemSyncDomainMap, CUstreamAttrID, CUstreamAttrValue,
    CUsynchronizationPolicy,
};

#[cfg(doc)]
use crate::sys::calls::*;

/// How a thread waits in [`StreamRef::synchronize`].
///
/// The driver may return a value that has no constant here, if the policy of the stream was never
/// set. A stream cannot be set to such a value. To return to the default, set [`AUTO`](Self::AUTO).
///
/// ```
/// use cuda_events::attributes::SynchronizationPolicy;
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// stream.set_synchronization_policy(SynchronizationPolicy::BLOCKING_SYNC)?;
/// assert_eq!(stream.synchronization_policy()?, SynchronizationPolicy::BLOCKING_SYNC);
/// // The driver's number, for other bindings:
/// let raw = SynchronizationPolicy::BLOCKING_SYNC.as_raw();
/// assert_eq!(SynchronizationPolicy::from_raw(raw), SynchronizationPolicy::BLOCKING_SYNC);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SynchronizationPolicy(CUsynchronizationPolicy);

impl SynchronizationPolicy {
    /// The driver chooses.
    #[doc(alias = "CU_SYNC_POLICY_AUTO")]
    pub const AUTO: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_AUTO);
    /// The thread spins: the shortest wait, at the cost of a busy core.
    #[doc(alias = "CU_SYNC_POLICY_SPIN")]
    pub const SPIN: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_SPIN);
    /// The thread spins, and yields its core to others.
    #[doc(alias = "CU_SYNC_POLICY_YIELD")]
    pub const YIELD: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_YIELD);
    /// The thread sleeps.
    #[doc(alias = "CU_SYNC_POLICY_BLOCKING_SYNC")]
    pub const BLOCKING_SYNC: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_BLOCKING_SYNC);

    /// Makes a policy from the driver's value.
    pub const fn from_raw(raw: CUsynchronizationPolicy) -> Self {
        Self(raw)
    }

    /// Returns the driver's value.
    pub const fn as_raw(self) -> CUsynchronizationPolicy {
        self.0
    }
}

impl fmt::Debug for SynchronizationPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::AUTO => "AUTO",
            Self::SPIN => "SPIN",
            Self::YIELD => "YIELD",
            Self::BLOCKING_SYNC => "BLOCKING_SYNC",
            Self(raw) => return write!(f, "SynchronizationPolicy({})", raw.0),
        })
    }
}

/// A memory-synchronization domain: the kernels of a stream run in one of two.
///
/// A memory barrier in a kernel orders only the accesses of the kernel's own domain. Kernels of
/// different domains see each other's accesses in order only across barriers of system scope.
///
/// ```
/// use cuda_events::attributes::{MemorySyncDomain, MemorySyncDomainMap};
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// // A stream for communication: its slow writes to other devices do not delay other barriers.
/// stream.set_memory_sync_domain(MemorySyncDomain::REMOTE)?;
/// assert_eq!(stream.memory_sync_domain()?, MemorySyncDomain::REMOTE);
/// let map = MemorySyncDomainMap { default: 0, remote: 1 };
/// stream.set_memory_sync_domain_map(map)?;
/// assert_eq!(stream.memory_sync_domain_map()?, map);
/// // The driver's number, for other bindings:
/// let raw = MemorySyncDomain::REMOTE.as_raw();
/// assert_eq!(MemorySyncDomain::from_raw(raw), MemorySyncDomain::REMOTE);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemorySyncDomain(CUlaunchMemSyncDomain);

impl MemorySyncDomain {
    /// The default domain.
    #[doc(alias = "CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT")]
    pub const DEFAULT: Self = Self(CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    /// The domain for kernels that write to other devices. Barriers of kernels in other domains
    /// need not wait for these slow writes.
    #[doc(alias = "CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE")]
    pub const REMOTE: Self = Self(CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);

    /// Makes a domain from the driver's value.
    pub const fn from_raw(raw: CUlaunchMemSyncDomain) -> Self {
        Self(raw)
    }

    /// Returns the driver's value.
    pub const fn as_raw(self) -> CUlaunchMemSyncDomain {
        self.0
    }
}

impl fmt::Debug for MemorySyncDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::DEFAULT => "DEFAULT",
            Self::REMOTE => "REMOTE",
            Self(raw) => return write!(f, "MemorySyncDomain({})", raw.0),
        })
    }
}

/// The physical domain of the device for each [`MemorySyncDomain`] of a stream.
///
/// A physical domain is a number below the device attribute
/// `CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT` (126). [`MemorySyncDomain`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemorySyncDomainMap {
    /// The physical domain for [`MemorySyncDomain::DEFAULT`].
    pub default: u8,
    /// The physical domain for [`MemorySyncDomain::REMOTE`].
    pub remote: u8,
}

/// # Attributes
///
/// A new value of an attribute applies to later work in the stream.
#[allow(unsafe_code)]
impl StreamRef {
    /// Returns how [`synchronize`](Self::synchronize) waits.
    ///
    /// One driver call: [`cuStreamGetAttribute`]. [`SynchronizationPolicy`] has an example.
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY")]
    pub fn synchronization_policy(&self) -> Result<SynchronizationPolicy> {
        let value = self.attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)?;
        // SAFETY: all bytes of the value are initialised, and any number is one of this open type.
        Ok(SynchronizationPolicy(unsafe { value.syncPolicy }))
    }

    /// Sets how [`synchronize`](Self::synchronize) waits.
    ///
    /// One driver call: [`cuStreamSetAttribute`]. [`SynchronizationPolicy`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the driver does not support the policy;
    /// [`Error::ForkedChild`].
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY")]
    pub fn set_synchronization_policy(&self, policy: SynchronizationPolicy) -> Result<()> {
        let mut value = EMPTY;
        value.syncPolicy = policy.0;
        // SAFETY: this attribute's value is a synchronization policy.
        unsafe {
            self.set_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value)
        }
    }

    /// Sets the stream's [`priority`](Self::priority), within [`Context::stream_priority_range`].
    /// Needs CUDA 12.0.
    ///
    /// [`Context::stream_priority_range`]: crate::Context::stream_priority_range
    ///
    /// Driver calls: [`cuCtxGetStreamPriorityRange`] with the stream's context current, then
    /// [`cuStreamSetAttribute`].
    ///
    /// ```
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// stream.set_priority(context.stream_priority_range()?.greatest)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::PriorityOutOfRange`]: the priority is outside the context's range.
    /// * `CUDA_ERROR_INVALID_VALUE`: the driver is older than CUDA 12.0.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PRIORITY")]
    pub fn set_priority(&self, priority: i32) -> Result<()> {
        let PriorityRange { least, greatest } = self.context().stream_priority_range()?;
        if !(PriorityRange { least, greatest }).contains(priority) {
            return Err(Error::PriorityOutOfRange { priority, least, greatest });
        }
        let mut value = EMPTY;
        value.priority = priority;
        // SAFETY: this attribute's value is a priority.
        unsafe { self.set_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) }
    }

    /// Returns the memory-synchronization domain in which the stream's kernels run. Needs CUDA
    /// 12.0.
    ///
    /// One driver call: [`cuStreamGetAttribute`]. [`MemorySyncDomain`] has an example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the driver is older than CUDA 12.0; [`Error::ForkedChild`].
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN")]
    pub fn memory_sync_domain(&self) -> Result<MemorySyncDomain> {
        let value = self.attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)?;
        // SAFETY: all bytes of the value are initialised, and any number is one of this open type.
        Ok(MemorySyncDomain(unsafe { value.memSyncDomain }))
    }

    /// Sets the memory-synchronization domain in which the stream's kernels run. Needs CUDA 12.0.
    ///
    /// One driver call: [`cuStreamSetAttribute`]. [`MemorySyncDomain`] has an example.
    ///
    /// # Errors
    ///
    /// As [`memory_sync_domain`](Self::memory_sync_domain).
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN")]
    pub fn set_memory_sync_domain(&self, domain: MemorySyncDomain) -> Result<()> {
        let mut value = EMPTY;
        value.memSyncDomain = domain.0;
        // SAFETY: this attribute's value is a domain.
        unsafe { self.set_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value) }
    }

    /// Returns the map of the stream's domains to physical domains of the device. Needs CUDA 12.0.
    ///
    /// One driver call: [`cuStreamGetAttribute`]. [`MemorySyncDomain`] has an example.
    ///
    /// # Errors
    ///
    /// As [`memory_sync_domain`](Self::memory_sync_domain).
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP")]
    pub fn memory_sync_domain_map(&self) -> Result<MemorySyncDomainMap> {
        let value = self.attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)?;
        // SAFETY: all bytes of the value are initialised, and any two bytes are a map.
        let map = unsafe { value.memSyncDomainMap };
        Ok(MemorySyncDomainMap { default: map.default_, remote: map.remote })
    }

    /// Maps the stream's domains to physical domains of the device. Needs CUDA 12.0.
    ///
    /// One driver call: [`cuStreamSetAttribute`]. [`MemorySyncDomain`] has an example.
    ///
    /// # Errors
    ///
    /// As [`memory_sync_domain`](Self::memory_sync_domain). The driver also returns
    /// `CUDA_ERROR_INVALID_VALUE` if the device has no physical domain with such a number.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP")]
    pub fn set_memory_sync_domain_map(&self, map: MemorySyncDomainMap) -> Result<()> {
        let mut value = EMPTY;
        value.memSyncDomainMap =
            CUlaunchMemSyncDomainMap { default_: map.default, remote: map.remote };
        // SAFETY: this attribute's value is a map.
        unsafe {
            self.set_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value)
        }
    }

    /// Returns the value of any attribute, even of one that this crate does not define. Bytes that
    /// the driver leaves unwritten are 0.
    ///
    /// One driver call: [`cuStreamGetAttribute`]. [`set_attribute`](Self::set_attribute) has an
    /// example.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the driver does not have this attribute for streams;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuStreamGetAttribute")]
    pub fn attribute(&self, attribute: CUstreamAttrID) -> Result<CUstreamAttrValue> {
        let mut value = EMPTY;
        // SAFETY: the stream is alive as long as `self` is; a place for the value, which has one
        // size for all attributes.
        unsafe { call!(self, cuStreamGetAttribute?(self.as_raw(), attribute, &mut value)) }?
            .check()?;
        Ok(value)
    }

    /// Sets any attribute, even one that this crate does not define.
    ///
    /// One driver call: [`cuStreamSetAttribute`].
    ///
    /// ```
    /// use cuda_events::attributes::SynchronizationPolicy;
    /// use cuda_events::sys::CUstreamAttrID as Attribute;
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let other = Stream::new(&context, StreamOptions::new())?;
    /// let policy = Attribute::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    /// other.set_synchronization_policy(SynchronizationPolicy::BLOCKING_SYNC)?;
    /// let value = other.attribute(policy)?;
    /// // SAFETY: the driver has returned this value for the same attribute.
    /// unsafe { stream.set_attribute(policy, &value) }?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`attribute`](Self::attribute).
    ///
    /// # Safety
    ///
    /// All bytes of `value` that the driver reads must be initialised. The value must be one that
    /// NVIDIA's documentation allows for the attribute.
    #[doc(alias = "cuStreamSetAttribute")]
    pub unsafe fn set_attribute(
        &self,
        attribute: CUstreamAttrID,
        value: &CUstreamAttrValue,
    ) -> Result<()> {
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the value.
        unsafe { call!(self, cuStreamSetAttribute?(self.as_raw(), attribute, value)) }?.check()
    }

    /// Copies all attributes of `source` to this stream; both must belong to the same context.
    ///
    /// One driver call: [`cuStreamCopyAttributes`].
    ///
    /// ```
    /// use cuda_events::attributes::SynchronizationPolicy;
    /// use cuda_events::{Context, Device, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let one = Stream::new(&context, StreamOptions::new())?;
    /// let two = Stream::new(&context, StreamOptions::new())?;
    ///
    /// one.set_synchronization_policy(SynchronizationPolicy::YIELD)?;
    /// two.copy_attributes_from(&one)?;
    /// assert_eq!(two.synchronization_policy()?, SynchronizationPolicy::YIELD);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`] if the streams belong to different contexts;
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuStreamCopyAttributes")]
    pub fn copy_attributes_from(&self, source: &Self) -> Result<()> {
        let copy = entry!(self, cuStreamCopyAttributes?)?;
        self.driver().check(source.driver(), copy.function)?;
        if self.context() != source.context() {
            return Err(self.context().mismatch(source.context(), copy.function, None));
        }
        let default = if self.is_default() { self } else { source };
        // The call goes through this stream's table, where a NULL of another table may stand for
        // another stream.
        let theirs =
            if source.driver() == self.driver() { source.as_raw() } else { source.meaning() };
        // SAFETY: both streams are alive as long as their references are.
        copy.call(default, |copy| unsafe { copy(self.as_raw(), theirs) })?.check()
    }
}

/// Zeros, so no uninitialised byte reaches the driver or is returned.
const EMPTY: CUstreamAttrValue = CUstreamAttrValue { pad: [0; 64] };
