//! Attributes of streams: what the driver keeps for a stream beside its work.

use core::fmt;

use crate::driver::call::{call, entry};
use crate::error::{Error, Result};
use crate::stream::{PriorityRange, StreamRef};
use crate::sys::{
    CUlaunchMemSyncDomain, CUlaunchMemSyncDomainMap, CUstreamAttrID, CUstreamAttrValue,
    CUsynchronizationPolicy,
};

/// How a thread waits in [`StreamRef::synchronize`].
///
/// A driver may give a value that has no name here. A stream whose policy was never set may have
/// such a one, which cannot be set: to go back, set [`AUTO`](Self::AUTO).
///
/// ```
/// use cuda_events::attributes::SynchronizationPolicy;
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
///
/// stream.set_synchronization_policy(SynchronizationPolicy::BLOCKING_SYNC)?;
/// assert_eq!(stream.synchronization_policy()?, SynchronizationPolicy::BLOCKING_SYNC);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SynchronizationPolicy(CUsynchronizationPolicy);

impl SynchronizationPolicy {
    /// The driver chooses.
    #[doc(alias = "CU_SYNC_POLICY_AUTO")]
    pub const AUTO: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_AUTO);
    /// The thread spins: the shortest wait, and a busy core.
    #[doc(alias = "CU_SYNC_POLICY_SPIN")]
    pub const SPIN: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_SPIN);
    /// The thread spins, and yields its core to others.
    #[doc(alias = "CU_SYNC_POLICY_YIELD")]
    pub const YIELD: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_YIELD);
    /// The thread sleeps.
    #[doc(alias = "CU_SYNC_POLICY_BLOCKING_SYNC")]
    pub const BLOCKING_SYNC: Self = Self(CUsynchronizationPolicy::CU_SYNC_POLICY_BLOCKING_SYNC);

    /// From the driver's value.
    pub const fn from_raw(raw: CUsynchronizationPolicy) -> Self {
        Self(raw)
    }

    /// The driver's value.
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

/// Which of its two memory-synchronization domains a stream's kernels run in.
///
/// A memory barrier of a kernel orders the accesses of its own domain only. Kernels of different
/// domains see each other's accesses in order only across barriers of system scope.
///
/// ```
/// use cuda_events::attributes::{MemorySyncDomain, MemorySyncDomainMap};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, StreamOptions::new())?;
///
/// // A stream of communication, whose slow writes to other devices hold up nobody else's barriers.
/// stream.set_memory_sync_domain(MemorySyncDomain::REMOTE)?;
/// assert_eq!(stream.memory_sync_domain()?, MemorySyncDomain::REMOTE);
/// stream.set_memory_sync_domain_map(MemorySyncDomainMap { default: 0, remote: 1 })?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemorySyncDomain(CUlaunchMemSyncDomain);

impl MemorySyncDomain {
    /// The ordinary one.
    #[doc(alias = "CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT")]
    pub const DEFAULT: Self = Self(CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    /// The one for kernels that write to other devices, whose slow writes the barriers of others
    /// then need not wait for.
    #[doc(alias = "CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE")]
    pub const REMOTE: Self = Self(CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);

    /// From the driver's value.
    pub const fn from_raw(raw: CUlaunchMemSyncDomain) -> Self {
        Self(raw)
    }

    /// The driver's value.
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

/// The device's memory-synchronization domains that a stream's two stand for, by number. How many
/// the device has is its attribute 126, `CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT`. Shown at
/// [`MemorySyncDomain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemorySyncDomainMap {
    /// What [`MemorySyncDomain::DEFAULT`] stands for.
    pub default: u8,
    /// What [`MemorySyncDomain::REMOTE`] stands for.
    pub remote: u8,
}

/// Stream attributes. What is set holds for work that is put into the stream afterwards.
#[allow(unsafe_code)]
impl StreamRef {
    /// How [`synchronize`](Self::synchronize) waits.
    ///
    /// One driver call: `cuStreamGetAttribute`.
    ///
    /// # Errors
    ///
    /// What the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY")]
    pub fn synchronization_policy(&self) -> Result<SynchronizationPolicy> {
        let value = self.attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)?;
        // SAFETY: all bytes of the value are initialised, and any number is one of this open type.
        Ok(SynchronizationPolicy(unsafe { value.syncPolicy }))
    }

    /// Chooses how [`synchronize`](Self::synchronize) waits.
    ///
    /// One driver call: `cuStreamSetAttribute`.
    ///
    /// # Errors
    ///
    /// As [`synchronization_policy`](Self::synchronization_policy).
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY")]
    pub fn set_synchronization_policy(&self, policy: SynchronizationPolicy) -> Result<()> {
        let mut value = EMPTY;
        value.syncPolicy = policy.0;
        // SAFETY: this attribute's value is a synchronization policy.
        unsafe {
            self.set_attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value)
        }
    }

    /// Gives the stream another [`priority`](Self::priority), within
    /// [`Context::stream_priority_range`]. CUDA 12.0.
    ///
    /// [`Context::stream_priority_range`]: crate::Context::stream_priority_range
    ///
    /// Driver calls: `cuStreamSetAttribute`, and before it `cuCtxGetStreamPriorityRange` with the
    /// stream's context current.
    ///
    /// # Errors
    ///
    /// [`Error::PriorityOutOfRange`] with the context's range; `CUDA_ERROR_INVALID_VALUE` from an
    /// older driver; what else the driver returns; [`Error::ForkedChild`].
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

    /// The memory-synchronization domain that the stream's kernels run in. CUDA 12.0.
    ///
    /// One driver call: `cuStreamGetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` from an older driver; what else the driver returns;
    /// [`Error::ForkedChild`].
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN")]
    pub fn memory_sync_domain(&self) -> Result<MemorySyncDomain> {
        let value = self.attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)?;
        // SAFETY: all bytes of the value are initialised, and any number is one of this open type.
        Ok(MemorySyncDomain(unsafe { value.memSyncDomain }))
    }

    /// Chooses the memory-synchronization domain that the stream's kernels run in. CUDA 12.0.
    ///
    /// One driver call: `cuStreamSetAttribute`.
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

    /// Which of the device's domains the stream's two stand for. CUDA 12.0.
    ///
    /// One driver call: `cuStreamGetAttribute`.
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

    /// Chooses which of the device's domains the stream's two stand for. CUDA 12.0.
    ///
    /// One driver call: `cuStreamSetAttribute`.
    ///
    /// # Errors
    ///
    /// As [`memory_sync_domain`](Self::memory_sync_domain); `CUDA_ERROR_INVALID_VALUE` also for a
    /// domain that the device does not have.
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

    /// Any attribute, also one that this crate does not know, as the driver has it. What the driver
    /// does not write is 0.
    ///
    /// One driver call: `cuStreamGetAttribute`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` for one that the driver does not have on streams; what else the
    /// driver answers; [`Error::ForkedChild`].
    #[doc(alias = "cuStreamGetAttribute")]
    pub fn attribute(&self, attribute: CUstreamAttrID) -> Result<CUstreamAttrValue> {
        let mut value = EMPTY;
        // SAFETY: the stream is alive as long as `self` is; a place for the value, which has one
        // size for all attributes.
        unsafe { call!(self, cuStreamGetAttribute?(self.as_raw(), attribute, &mut value)) }?;
        Ok(value)
    }

    /// Sets any attribute, also one that this crate does not know.
    ///
    /// One driver call: `cuStreamSetAttribute`.
    ///
    /// # Errors
    ///
    /// As [`attribute`](Self::attribute).
    ///
    /// # Safety
    ///
    /// `value` must be initialised as far as the driver reads it, and be one that the driver's
    /// documents allow for the attribute.
    #[doc(alias = "cuStreamSetAttribute")]
    pub unsafe fn set_attribute(
        &self,
        attribute: CUstreamAttrID,
        value: &CUstreamAttrValue,
    ) -> Result<()> {
        // SAFETY: the stream is alive as long as `self` is; the caller vouches for the value.
        unsafe { call!(self, cuStreamSetAttribute?(self.as_raw(), attribute, value)) }
    }

    /// Gives this stream all attributes of `source`, which must belong to the same context.
    ///
    /// One driver call: `cuStreamCopyAttributes`.
    ///
    /// ```
    /// use cuda_events::attributes::SynchronizationPolicy;
    /// # use cuda_events::{Context, Device, Stream, StreamOptions};
    /// # let soft = cuda_soft_driver::SoftDriver::new();
    /// # let driver = soft.driver();
    /// # let context = Context::primary(Device::new(driver, 0)?)?;
    /// # let one = Stream::new(&context, StreamOptions::new())?;
    /// # let two = Stream::new(&context, StreamOptions::new())?;
    ///
    /// one.set_synchronization_policy(SynchronizationPolicy::YIELD)?;
    /// two.copy_attributes_from(&one)?;
    /// assert_eq!(two.synchronization_policy()?, SynchronizationPolicy::YIELD);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ContextMismatch`]; what the driver returns; [`Error::ForkedChild`].
    #[doc(alias = "cuStreamCopyAttributes")]
    pub fn copy_attributes_from(&self, source: &Self) -> Result<()> {
        let copy = entry!(self, cuStreamCopyAttributes?)?;
        self.driver().check_same(source.driver(), copy.function)?;
        if self.context() != source.context() {
            let devices = [self, source].map(|stream| stream.context().device().ordinal());
            return Err(Error::context_mismatch(copy.function, None, devices));
        }
        let default = if self.is_default() { self } else { source };
        // The call goes through this stream's table, where a NULL of another table may mean another
        // stream.
        let theirs =
            if source.driver() == self.driver() { source.as_raw() } else { source.meaning() };
        // SAFETY: both streams are alive as long as their references are.
        copy.ask(default, |copy| unsafe { copy(self.as_raw(), theirs) })?.check()
    }
}

/// Zeros, so that nothing uninitialised reaches the driver or comes back.
const EMPTY: CUstreamAttrValue = CUstreamAttrValue { pad: [0; 64] };
