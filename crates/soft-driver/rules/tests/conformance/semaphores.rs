//! Semaphores to import: those of the software driver, and for a real driver those of Vulkan.
//!
//! The few declarations of Vulkan are written here, because five calls need no crate.

use std::ffi::{CStr, c_char, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};

use cuda_events::sys::CUuuid;
use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};
use cuda_test_harness::TestDriver;

use crate::raw::Rig;

/// Whether this machine has Vulkan for the driver under test.
pub fn available() -> Result<(), String> {
    match TestDriver::chosen() {
        TestDriver::Native => {
            Vulkan::new(None).map(drop).map_err(|why| format!("Vulkan has no semaphores: {why}"))
        }
        _ => Ok(()),
    }
}

/// The descriptor of a new semaphore, which its owner keeps until this process ends.
pub fn exported(rig: &Rig, kind: SemaphoreKind) -> OwnedFd {
    if TestDriver::chosen() == TestDriver::Native {
        let mut uuid = CUuuid { bytes: [0; 16] };
        must!(rig.cuDeviceGetUuid(&mut uuid, rig.device));
        let vulkan = Vulkan::new(Some(uuid.bytes)).expect("it was there");
        return vulkan.export(kind).expect("a semaphore");
    }
    let made = ExternalSemaphore::new(kind).expect("the system has files of memory");
    let fd = made.descriptor().expect("a descriptor");
    std::mem::forget(made);
    fd
}

/// The beginning of each structure of Vulkan.
#[repr(C)]
struct Head {
    kind: i32,
    next: *const c_void,
}

impl Head {
    fn new(kind: i32) -> Self {
        Self { kind, next: null() }
    }

    fn after<T>(kind: i32, next: &T) -> Self {
        Self { kind, next: std::ptr::from_ref(next).cast() }
    }
}

#[repr(C)]
struct ApplicationInfo {
    head: Head,
    name: *const c_char,
    version: u32,
    engine: *const c_char,
    engine_version: u32,
    api_version: u32,
}

#[repr(C)]
struct InstanceCreateInfo {
    head: Head,
    flags: u32,
    application: *const ApplicationInfo,
    layer_count: u32,
    layers: *const *const c_char,
    extension_count: u32,
    extensions: *const *const c_char,
}

#[repr(C)]
struct QueueCreateInfo {
    head: Head,
    flags: u32,
    family: u32,
    count: u32,
    priorities: *const f32,
}

#[repr(C)]
struct DeviceCreateInfo {
    head: Head,
    flags: u32,
    queue_count: u32,
    queues: *const QueueCreateInfo,
    layer_count: u32,
    layers: *const *const c_char,
    extension_count: u32,
    extensions: *const *const c_char,
    features: *const c_void,
}

/// `VkPhysicalDeviceProperties2`, with more room than its properties take.
#[repr(C)]
struct Properties {
    head: Head,
    properties: [u64; 128],
}

#[repr(C)]
struct IdProperties {
    head: Head,
    device_uuid: [u8; 16],
    rest: [u32; 8],
}

/// A structure with one word: features, flags or types of handles.
#[repr(C)]
struct OneWord {
    head: Head,
    word: u32,
}

#[repr(C)]
struct TypeCreateInfo {
    head: Head,
    kind: i32,
    value: u64,
}

#[repr(C)]
struct GetFdInfo {
    head: Head,
    semaphore: u64,
    handle_type: u32,
}

const OPAQUE_FD: u32 = 1;

type Handle = *mut c_void;
type Lookup = unsafe extern "C" fn(Handle, *const c_char) -> *mut c_void;

/// A device of Vulkan. It is never destroyed, because its process runs only one rule.
struct Vulkan {
    lookup: Lookup,
    instance: Handle,
    device: Handle,
}

/// The function of this name, whose type is `F`.
///
/// # Safety
///
/// `F` must be the type of a pointer to it.
unsafe fn function<F: Copy>(lookup: Lookup, instance: Handle, name: &CStr) -> Result<F, String> {
    // SAFETY: an instance, or NULL for a function that needs no instance, and a name.
    let address = unsafe { lookup(instance, name.as_ptr()) };
    if address.is_null() {
        return Err(format!("it has no {name:?}"));
    }
    // SAFETY: the caller names the right type, and all function pointers have one size.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

fn check(what: &str, code: i32) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("{what} returned {code}")) }
}

impl Vulkan {
    /// The device with this UUID, or any of NVIDIA's.
    fn new(uuid: Option<[u8; 16]>) -> Result<Self, String> {
        // SAFETY: the loader's initialisers have no requirements.
        let library = unsafe { libloading::Library::new("libvulkan.so.1") };
        let library = library.map_err(|_| "there is no libvulkan.so.1")?;
        // SAFETY: this is the type of the loader's one entry point, and the library stays.
        let lookup = unsafe { library.get::<Lookup>(c"vkGetInstanceProcAddr") };
        let lookup: Lookup = *lookup.map_err(|error| error.to_string())?;
        std::mem::forget(library);
        let application = ApplicationInfo {
            head: Head::new(0),
            name: null(),
            version: 0,
            engine: null(),
            engine_version: 0,
            // Vulkan 1.2 is the first version with timeline semaphores.
            api_version: 1 << 22 | 2 << 12,
        };
        let create = InstanceCreateInfo {
            head: Head::new(1),
            flags: 0,
            application: &application,
            layer_count: 0,
            layers: null(),
            extension_count: 0,
            extensions: null(),
        };
        let mut instance = null_mut();
        // SAFETY: the types are Vulkan's, here and below; the structures live for the calls.
        unsafe {
            let make: unsafe extern "C" fn(
                *const InstanceCreateInfo,
                *const c_void,
                *mut Handle,
            ) -> i32 = function(lookup, null_mut(), c"vkCreateInstance")?;
            check("vkCreateInstance", make(&create, null(), &mut instance))?;
        }
        let physical = physical(lookup, instance, uuid)?;
        let priority = 1.0;
        let queue = QueueCreateInfo {
            head: Head::new(2),
            flags: 0,
            family: 0,
            count: 1,
            priorities: &priority,
        };
        let timelines = OneWord { head: Head::new(1_000_207_000), word: 1 };
        let extension = c"VK_KHR_external_semaphore_fd".as_ptr();
        let create = DeviceCreateInfo {
            head: Head::after(3, &timelines),
            flags: 0,
            queue_count: 1,
            queues: &queue,
            layer_count: 0,
            layers: null(),
            extension_count: 1,
            extensions: &extension,
            features: null(),
        };
        let mut device = null_mut();
        // SAFETY: as above.
        unsafe {
            let make: unsafe extern "C" fn(
                Handle,
                *const DeviceCreateInfo,
                *const c_void,
                *mut Handle,
            ) -> i32 = function(lookup, instance, c"vkCreateDevice")?;
            check("vkCreateDevice", make(physical, &create, null(), &mut device))?;
        }
        Ok(Self { lookup, instance, device })
    }

    fn export(&self, kind: SemaphoreKind) -> Result<OwnedFd, String> {
        let export = OneWord { head: Head::new(1_000_077_000), word: OPAQUE_FD };
        let timeline =
            TypeCreateInfo { head: Head::after(1_000_207_002, &export), kind: 1, value: 0 };
        let create = OneWord {
            head: match kind {
                SemaphoreKind::Timeline => Head::after(9, &timeline),
                _ => Head::after(9, &export),
            },
            word: 0,
        };
        let (mut semaphore, mut fd) = (0, -1);
        // SAFETY: as in `new`.
        unsafe {
            let make: unsafe extern "C" fn(Handle, *const OneWord, *const c_void, *mut u64) -> i32 =
                function(self.lookup, self.instance, c"vkCreateSemaphore")?;
            check("vkCreateSemaphore", make(self.device, &create, null(), &mut semaphore))?;
            let get =
                GetFdInfo { head: Head::new(1_000_079_001), semaphore, handle_type: OPAQUE_FD };
            let name = c"vkGetDeviceProcAddr";
            let lookup: Lookup = function(self.lookup, self.instance, name)?;
            let export: unsafe extern "C" fn(Handle, *const GetFdInfo, *mut i32) -> i32 =
                function(lookup, self.device, c"vkGetSemaphoreFdKHR")?;
            check("vkGetSemaphoreFdKHR", export(self.device, &get, &mut fd))?;
            Ok(OwnedFd::from_raw_fd(fd))
        }
    }
}

/// The device with this UUID, or any of NVIDIA's.
fn physical(lookup: Lookup, instance: Handle, uuid: Option<[u8; 16]>) -> Result<Handle, String> {
    let (mut devices, mut count) = ([null_mut(); 64], 64);
    // SAFETY: the types are Vulkan's; there is room for so many.
    let properties = unsafe {
        let all: unsafe extern "C" fn(Handle, *mut u32, *mut Handle) -> i32 =
            function(lookup, instance, c"vkEnumeratePhysicalDevices")?;
        check("vkEnumeratePhysicalDevices", all(instance, &mut count, devices.as_mut_ptr()))?;
        let get: unsafe extern "C" fn(Handle, *mut Properties) =
            function(lookup, instance, c"vkGetPhysicalDeviceProperties2")?;
        get
    };
    for device in devices.into_iter().take(count as usize) {
        let ids =
            IdProperties { head: Head::new(1_000_071_004), device_uuid: [0; 16], rest: [0; 8] };
        let ids = std::cell::UnsafeCell::new(ids);
        let head = Head { kind: 1_000_059_001, next: ids.get().cast() };
        let mut all = Properties { head, properties: [0; 128] };
        // SAFETY: a device, and structures with more room than it writes.
        unsafe { properties(device, &mut all) };
        let vendor = (all.properties[1] & 0xFFFF_FFFF) as u32;
        let found = match uuid {
            Some(uuid) => ids.into_inner().device_uuid == uuid,
            None => vendor == 0x10DE,
        };
        if found {
            return Ok(device);
        }
    }
    Err(format!("none of its {count} devices is the GPU"))
}
