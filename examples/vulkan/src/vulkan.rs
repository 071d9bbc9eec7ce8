//! The Vulkan side: a device, a queue, a timeline semaphore and a buffer that others can import.

use std::cell::RefCell;
use std::error::Error as _;
use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use ash::vk;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The name of the loader.
const LOADER: &str = "libvulkan.so.1";

/// The handle type of all that crosses over here.
const FD: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;

pub struct Vulkan {
    instance: ash::Instance,
    pub device: ash::Device,
    pub queue: vk::Queue,
    family: u32,
    memory_types: vk::PhysicalDeviceMemoryProperties,
    semaphore_fd: ash::khr::external_semaphore_fd::Device,
    memory_fd: ash::khr::external_memory_fd::Device,
    pool: vk::CommandPool,
    pub name: String,
    created: RefCell<Vec<Child>>,
}

/// An object of the device, which must be destroyed before it.
enum Child {
    Semaphore(vk::Semaphore),
    Buffer(vk::Buffer),
    Memory(vk::DeviceMemory),
}

impl Vulkan {
    /// The device that has this UUID, which is how a GPU is found on both sides.
    pub fn new(uuid: [u8; 16]) -> Result<Self> {
        // SAFETY: the loader's initialisers have no demands.
        let library = unsafe { libloading::Library::new(LOADER) };
        let library = library.map_err(|error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            format!("{LOADER} cannot be opened: {why}")
        })?;
        // SAFETY: this is the type of the loader's one entry point, and the library stays.
        let get = *unsafe { library.get(b"vkGetInstanceProcAddr\0") }?;
        std::mem::forget(library);
        // SAFETY: the loader's own function.
        let entry =
            unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr: get }) };
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let create = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the structs live for the call.
        let instance = unsafe { entry.create_instance(&create, None) }?;
        let (physical, name) = with_uuid(&instance, uuid)?;
        // SAFETY: a device of the instance.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let transfers = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE;
        let family = families.iter().position(|family| family.queue_flags.intersects(transfers));
        let family = u32::try_from(family.ok_or("the GPU has no queue that fills buffers")?)?;
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family)
            .queue_priorities(&[1.0])];
        let extensions =
            [ash::khr::external_semaphore_fd::NAME, ash::khr::external_memory_fd::NAME];
        let extensions = extensions.map(|name| name.as_ptr());
        let mut timelines =
            vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(true);
        let create = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .push_next(&mut timelines);
        // SAFETY: the structs live for the call.
        let device = unsafe { instance.create_device(physical, &create, None) }?;
        // SAFETY: the queue was asked for above.
        let queue = unsafe { device.get_device_queue(family, 0) };
        // SAFETY: a device of the instance.
        let memory_types = unsafe { instance.get_physical_device_memory_properties(physical) };
        let pool = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(family);
        // SAFETY: the struct lives for the call.
        let pool = unsafe { device.create_command_pool(&pool, None) }?;
        Ok(Self {
            semaphore_fd: ash::khr::external_semaphore_fd::Device::new(&instance, &device),
            memory_fd: ash::khr::external_memory_fd::Device::new(&instance, &device),
            instance,
            device,
            queue,
            family,
            memory_types,
            pool,
            name,
            created: RefCell::default(),
        })
    }

    /// Notes what the drop destroys. Memory comes after its buffer, which is destroyed first.
    fn created(&self, child: Child) {
        self.created.borrow_mut().push(child);
    }

    /// A timeline semaphore, and its descriptor, which its importer takes over.
    pub fn timeline(&self) -> Result<(vk::Semaphore, OwnedFd)> {
        let mut export = vk::ExportSemaphoreCreateInfo::default()
            .handle_types(vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD);
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let create = vk::SemaphoreCreateInfo::default().push_next(&mut export).push_next(&mut kind);
        // SAFETY: the structs live for the call.
        let semaphore = unsafe { self.device.create_semaphore(&create, None) }?;
        self.created(Child::Semaphore(semaphore));
        Ok((semaphore, self.exported(semaphore)?))
    }

    /// A binary semaphore, and its descriptor.
    pub fn binary(&self) -> Result<(vk::Semaphore, OwnedFd)> {
        let mut export = vk::ExportSemaphoreCreateInfo::default()
            .handle_types(vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD);
        let create = vk::SemaphoreCreateInfo::default().push_next(&mut export);
        // SAFETY: the structs live for the call.
        let semaphore = unsafe { self.device.create_semaphore(&create, None) }?;
        self.created(Child::Semaphore(semaphore));
        Ok((semaphore, self.exported(semaphore)?))
    }

    fn exported(&self, semaphore: vk::Semaphore) -> Result<OwnedFd> {
        let get = vk::SemaphoreGetFdInfoKHR::default()
            .semaphore(semaphore)
            .handle_type(vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD);
        // SAFETY: a semaphore that was created for this.
        let fd = unsafe { self.semaphore_fd.get_semaphore_fd(&get) }?;
        // SAFETY: a new descriptor, which the caller owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Memory for one buffer, of a type that has all of these properties.
    fn allocate(
        &self,
        buffer: vk::Buffer,
        properties: vk::MemoryPropertyFlags,
        exported: bool,
    ) -> Result<(vk::DeviceMemory, u64)> {
        // SAFETY: a buffer of this device.
        let needs = unsafe { self.device.get_buffer_memory_requirements(buffer) };
        let types = self.memory_types.memory_types_as_slice();
        let index = types.iter().enumerate().position(|(index, kind)| {
            needs.memory_type_bits & (1 << index) != 0 && kind.property_flags.contains(properties)
        });
        let index = u32::try_from(index.ok_or("the GPU has no such memory")?)?;
        let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(FD);
        let mut allocate =
            vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(index);
        if exported {
            allocate = allocate.push_next(&mut export);
        }
        // SAFETY: the structs live for the call.
        let memory = unsafe { self.device.allocate_memory(&allocate, None) }?;
        self.created(Child::Memory(memory));
        // SAFETY: the memory is for this buffer, which has none.
        unsafe { self.device.bind_buffer_memory(buffer, memory, 0) }?;
        Ok((memory, needs.size))
    }

    /// Device memory as a buffer of so many bytes, its descriptor, and the size of the memory.
    pub fn shared_buffer(&self, bytes: u64) -> Result<(vk::Buffer, OwnedFd, u64)> {
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(FD);
        let create = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST)
            .push_next(&mut external);
        // SAFETY: the structs live for the call.
        let buffer = unsafe { self.device.create_buffer(&create, None) }?;
        self.created(Child::Buffer(buffer));
        let (memory, size) = self.allocate(buffer, vk::MemoryPropertyFlags::DEVICE_LOCAL, true)?;
        let get = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(FD);
        // SAFETY: memory that was allocated for this.
        let fd = unsafe { self.memory_fd.get_memory_fd(&get) }?;
        // SAFETY: a new descriptor, which the caller owns.
        Ok((buffer, unsafe { OwnedFd::from_raw_fd(fd) }, size))
    }

    /// Host memory as a buffer, and its address.
    pub fn host_buffer(&self, bytes: u64) -> Result<(vk::Buffer, *const u32)> {
        let create =
            vk::BufferCreateInfo::default().size(bytes).usage(vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: the struct lives for the call.
        let buffer = unsafe { self.device.create_buffer(&create, None) }?;
        self.created(Child::Buffer(buffer));
        let properties =
            vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let (memory, _) = self.allocate(buffer, properties, false)?;
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: host-visible memory, mapped once.
        let at: *mut c_void = unsafe { self.device.map_memory(memory, 0, bytes, flags) }?;
        Ok((buffer, at.cast()))
    }

    pub fn command_buffer(&self) -> Result<vk::CommandBuffer> {
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the struct lives for the call.
        let buffers = unsafe { self.device.allocate_command_buffers(&allocate) }?;
        Ok(buffers.first().copied().ok_or("no command buffer")?)
    }

    fn record(&self, commands: vk::CommandBuffer, record: impl FnOnce(&ash::Device)) -> Result<()> {
        let begin = vk::CommandBufferBeginInfo::default();
        // SAFETY: the last execution has ended: each round is waited for.
        unsafe { self.device.begin_command_buffer(commands, &begin) }?;
        record(&self.device);
        // SAFETY: it was begun.
        Ok(unsafe { self.device.end_command_buffer(commands) }?)
    }

    /// Gives a buffer over to its importer, or takes it back.
    fn cross(&self, commands: vk::CommandBuffer, buffer: vk::Buffer, away: bool) {
        let (own, others) = (self.family, vk::QUEUE_FAMILY_EXTERNAL);
        let barrier = vk::BufferMemoryBarrier::default()
            .buffer(buffer)
            .size(vk::WHOLE_SIZE)
            .src_queue_family_index(if away { own } else { others })
            .dst_queue_family_index(if away { others } else { own })
            .src_access_mask(match away {
                true => vk::AccessFlags::TRANSFER_WRITE,
                false => vk::AccessFlags::empty(),
            })
            .dst_access_mask(match away {
                true => vk::AccessFlags::empty(),
                false => vk::AccessFlags::TRANSFER_READ,
            });
        let stage = vk::PipelineStageFlags::TRANSFER;
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the caller records.
        unsafe {
            self.device.cmd_pipeline_barrier(commands, stage, stage, flags, &[], &[barrier], &[]);
        }
    }

    /// Commands that fill a buffer with one word, and give it over.
    pub fn fill(&self, commands: vk::CommandBuffer, buffer: vk::Buffer, word: u32) -> Result<()> {
        self.record(commands, |device| {
            // SAFETY: the buffer is a destination of transfers, and its size is a multiple of 4.
            unsafe { device.cmd_fill_buffer(commands, buffer, 0, vk::WHOLE_SIZE, word) };
            self.cross(commands, buffer, true);
        })
    }

    /// Commands that take a buffer back, and copy it to another one.
    pub fn copy(
        &self,
        commands: vk::CommandBuffer,
        from: vk::Buffer,
        to: vk::Buffer,
        bytes: u64,
    ) -> Result<()> {
        self.record(commands, |device| {
            self.cross(commands, from, false);
            let region = [vk::BufferCopy::default().size(bytes)];
            // SAFETY: both have so many bytes.
            unsafe { device.cmd_copy_buffer(commands, from, to, &region) };
            let barrier = [vk::MemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
                .dst_access_mask(vk::AccessFlags::HOST_READ)];
            // SAFETY: within the same commands.
            unsafe {
                device.cmd_pipeline_barrier(
                    commands,
                    vk::PipelineStageFlags::TRANSFER,
                    vk::PipelineStageFlags::HOST,
                    vk::DependencyFlags::empty(),
                    &barrier,
                    &[],
                    &[],
                );
            }
        })
    }

    /// Submits commands that wait for a value of a semaphore, and signal one.
    pub fn submit(
        &self,
        commands: Option<vk::CommandBuffer>,
        wait: Option<(vk::Semaphore, u64)>,
        signal: Option<(vk::Semaphore, u64)>,
    ) -> Result<()> {
        let (wait_on, wait_value) = wait.unzip();
        let (signal_on, signal_value) = signal.unzip();
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(wait_value.as_slice())
            .signal_semaphore_values(signal_value.as_slice());
        let stage = wait.map(|_| vk::PipelineStageFlags::ALL_COMMANDS);
        let submit = vk::SubmitInfo::default()
            .command_buffers(commands.as_slice())
            .wait_semaphores(wait_on.as_slice())
            .wait_dst_stage_mask(stage.as_slice())
            .signal_semaphores(signal_on.as_slice())
            .push_next(&mut timeline);
        // SAFETY: everything lives for the call, and the commands until their round has ended.
        Ok(unsafe { self.device.queue_submit(self.queue, &[submit], vk::Fence::null()) }?)
    }

    /// Waits on the host for a value; false after the time.
    pub fn reached(&self, semaphore: vk::Semaphore, value: u64, within: Duration) -> Result<bool> {
        let (semaphores, values) = ([semaphore], [value]);
        let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        let within = u64::try_from(within.as_nanos())?;
        // SAFETY: the struct lives for the call.
        match unsafe { self.device.wait_semaphores(&wait, within) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Vulkan {
    /// Vulkan demands that all that was created on a device is destroyed before it
    /// (VUID-vkDestroyDevice-device-05137). The pool destroys its command buffers.
    fn drop(&mut self) {
        // SAFETY: nothing is used any more, and each is destroyed once.
        unsafe {
            let _ = self.device.device_wait_idle();
            for child in self.created.take() {
                match child {
                    Child::Semaphore(semaphore) => self.device.destroy_semaphore(semaphore, None),
                    Child::Buffer(buffer) => self.device.destroy_buffer(buffer, None),
                    Child::Memory(memory) => self.device.free_memory(memory, None),
                }
            }
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

fn with_uuid(instance: &ash::Instance, uuid: [u8; 16]) -> Result<(vk::PhysicalDevice, String)> {
    // SAFETY: the instance lives.
    let devices = unsafe { instance.enumerate_physical_devices() }?;
    for device in &devices {
        let mut ids = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
        // SAFETY: a device of the instance.
        unsafe { instance.get_physical_device_properties2(*device, &mut properties) };
        let name = properties.properties.device_name_as_c_str().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if ids.device_uuid == uuid {
            return Ok((*device, name));
        }
    }
    Err(format!("none of Vulkan's {} devices is the GPU of CUDA", devices.len()).into())
}
