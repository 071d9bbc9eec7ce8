//! Devices: the GPUs of this process.

use core::ffi::c_int;
use core::fmt;

use crate::driver::Driver;
use crate::driver::call::call;
use crate::error::{Error, Result};
use crate::sys::{CUdevice, CUdevice_attribute, CUresult, CUuuid};

#[cfg(doc)]
use crate::sys::calls::*;

/// A GPU, by its ordinal in this process.
///
/// The ordinal depends on `CUDA_VISIBLE_DEVICES`; the [`uuid`](Self::uuid) does not. The methods
/// may be called from any thread, and none needs a context.
///
/// ```
/// use cuda_events::Device;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// println!("{} devices", Device::count(driver)?);
/// for device in Device::all(driver)? {
///     let mib = device.total_memory()? >> 20;
///     println!("{}: {}, {}, {mib} MiB", device.ordinal(), device.name()?, device.uuid()?);
///     let raw = device.as_raw(); // a `CUdevice`, for another binding
/// }
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Device {
    driver: Driver,
    raw: CUdevice,
}

#[allow(unsafe_code)]
impl Device {
    /// Returns the device with this ordinal; ordinals start at 0.
    ///
    /// The first use of a device in a process initialises the driver ([`cuInit`]), which is slow
    /// (`docs/performance.md`).
    ///
    /// Driver calls: [`cuDeviceGet`], and `cuInit` the first time. If there is no such device, also
    /// [`cuDeviceGetCount`] for the error message.
    ///
    /// ```
    /// use cuda_events::{Device, Error};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let first = Device::new(driver, 0)?;
    /// println!("{}", first.name()?);
    /// assert!(matches!(Device::new(driver, 1000), Err(Error::NoSuchDevice { .. })));
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::NoSuchDevice`]: the process sees fewer devices.
    /// * [`Error::Init`]: `cuInit` failed, for example with `CUDA_ERROR_NO_DEVICE` because the
    ///   process sees no device at all.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceGet")]
    #[doc(alias = "cuInit")]
    pub fn new(driver: Driver, ordinal: u32) -> Result<Self> {
        driver.init()?;
        let mut raw: CUdevice = 0;
        // The driver refuses a negative ordinal, which is what one beyond its integers becomes.
        let asked = c_int::try_from(ordinal).unwrap_or(-1);
        // SAFETY: a place for the one integer.
        let answer = unsafe { call!(driver, cuDeviceGet(&mut raw, asked)) }?;
        if answer.code == CUresult::CUDA_ERROR_INVALID_DEVICE {
            // The count is only for the message. If it does not explain the code, or cannot be had,
            // the error is the driver's.
            return Err(match Self::count(driver) {
                Ok(count) if count <= ordinal => {
                    answer.probably(Error::NoSuchDevice { ordinal, count })
                }
                _ => answer.error(),
            });
        }
        answer.check()?;
        Ok(Self { driver, raw })
    }

    /// Returns the number of devices that this process sees.
    ///
    /// Driver calls: [`cuDeviceGetCount`], and [`cuInit`] the first time.
    ///
    /// # Errors
    ///
    /// * [`Error::Init`]: `cuInit` failed, for example with `CUDA_ERROR_NO_DEVICE` because the
    ///   process sees no device at all. So the count is never 0.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceGetCount")]
    pub fn count(driver: Driver) -> Result<u32> {
        let ready = driver.init()?;
        let mut count: c_int = 0;
        // SAFETY: a place for the one integer.
        unsafe { call!(ready, cuDeviceGetCount(&mut count)) }?.check()?;
        Ok(count.unsigned_abs())
    }

    /// Returns all devices that this process sees, by ordinal.
    ///
    /// Driver calls: [`cuDeviceGetCount`], and [`cuInit`] the first time.
    ///
    /// # Errors
    ///
    /// As [`count`](Self::count).
    pub fn all(driver: Driver) -> Result<impl ExactSizeIterator<Item = Self>> {
        let count = CUdevice::try_from(Self::count(driver)?).unwrap_or(CUdevice::MAX);
        Ok((0..count).map(move |raw| Self { driver, raw }).collect::<Vec<_>>().into_iter())
    }

    /// A device from the driver's own value, returned by [`cuDeviceGet`] or another binding.
    pub(crate) fn from_raw(driver: Driver, raw: CUdevice) -> Self {
        Self { driver, raw }
    }

    /// Returns the driver that the device belongs to.
    #[inline]
    pub fn driver(self) -> Driver {
        self.driver
    }

    /// The visible device that meets a condition, by its ordinal in errors.
    #[cold]
    pub(crate) fn find(driver: Driver, is_it: impl Fn(Self) -> Result<bool>) -> Option<u16> {
        let mut visible = Self::all(driver).ok()?;
        visible.find(|device| is_it(*device) == Ok(true)).map(Self::short_ordinal)
    }

    /// The ordinal in errors. No machine has more devices.
    pub(crate) fn short_ordinal(self) -> u16 {
        u16::try_from(self.ordinal()).unwrap_or(u16::MAX)
    }

    /// Returns the device's ordinal in this process.
    pub fn ordinal(self) -> u32 {
        self.raw.unsigned_abs()
    }

    /// Returns the driver's own value (`CUdevice`), for other bindings.
    pub fn as_raw(self) -> CUdevice {
        self.raw
    }

    /// Returns the device's product name, such as `NVIDIA H200`.
    ///
    /// One driver call: [`cuDeviceGetName`].
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceGetName")]
    pub fn name(self) -> Result<String> {
        let mut name = [0_u8; 256];
        // SAFETY: the buffer has the length that is passed, and the driver ends the name within it.
        unsafe { call!(self.driver, cuDeviceGetName(name.as_mut_ptr().cast(), 256, self.raw)) }?
            .check()?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// Returns the device's UUID: the same 16 bytes in every process, at any ordinal. A MIG
    /// instance has its own.
    ///
    /// One driver call: [`cuDeviceGetUuid_v2`] (CUDA 11.4), on older drivers [`cuDeviceGetUuid`].
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceGetUuid")]
    pub fn uuid(self) -> Result<Uuid> {
        let mut uuid = CUuuid::default();
        // SAFETY: a place for the 16 bytes; both versions take the same arguments.
        unsafe {
            call!(self.driver,
                cuDeviceGetUuid_v2(&mut uuid, self.raw) or cuDeviceGetUuid(&mut uuid, self.raw))
        }?
        .check()?;
        Ok(Uuid(uuid.bytes))
    }

    /// Returns one of the driver's integer attributes of the device.
    ///
    /// One driver call: [`cuDeviceGetAttribute`].
    ///
    /// ```
    /// use cuda_events::sys::CUdevice_attribute as Attribute;
    /// use cuda_events::Device;
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let device = Device::new(driver, 0)?;
    /// let processors = device.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    /// println!("{processors} multiprocessors");
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_INVALID_VALUE` if the driver does not have the attribute, for example because
    /// the driver is too old; [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceGetAttribute")]
    pub fn attribute(self, attribute: CUdevice_attribute) -> Result<i32> {
        let mut value: c_int = 0;
        // SAFETY: a place for the one integer.
        unsafe { call!(self.driver, cuDeviceGetAttribute(&mut value, attribute, self.raw)) }?
            .check()?;
        Ok(value)
    }

    /// Returns the size of the device's memory in bytes.
    ///
    /// One driver call: [`cuDeviceTotalMem`].
    ///
    /// # Errors
    ///
    /// [`Error::ForkedChild`].
    #[doc(alias = "cuDeviceTotalMem")]
    pub fn total_memory(self) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: a place for the one integer.
        unsafe { call!(self.driver, cuDeviceTotalMem_v2(&mut bytes, self.raw)) }?.check()?;
        Ok(bytes)
    }
}

/// Two devices are equal if they are the same device of the same driver library, even if they come
/// from two [`Driver`]s.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && self.driver.is_same_library(other.driver)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("ordinal", &self.raw).finish_non_exhaustive()
    }
}

/// A device's UUID; prints as in nvidia-smi: `GPU-` and hexadecimal groups.
///
/// ```
/// use cuda_events::Uuid;
///
/// let uuid = Uuid::from_bytes([0x11; 16]);
/// assert_eq!(uuid.to_string(), "GPU-11111111-1111-1111-1111-111111111111");
/// assert_eq!(uuid.as_bytes(), &[0x11; 16]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// Makes a UUID from its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the UUID's bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU-")?;
        for (index, byte) in self.0.iter().enumerate() {
            let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
