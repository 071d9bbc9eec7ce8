//! Kernels as closures of a test.

use core::ffi::{CStr, c_char, c_void};
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use std::ffi::CString;
use std::sync::Arc;

use crate::abi::*;
use crate::api::driver::SoftDriver;
use crate::api::shared_library::shared_library;
use crate::kernel::{
    Accesses, Declare, Kernel as Registered, Launch, MAX_PARAMETERS, can_have, layout,
};
use crate::machine::drop_unlocked::DropUnlocked;

/// # Kernels
impl SoftDriver {
    /// Registers a closure as the kernel `name`, and replaces an earlier one of this name.
    ///
    /// The program can then load modules and libraries. Before the first call of `kernel`, loading
    /// returns `CUDA_ERROR_NOT_SUPPORTED`, unless the feature `images` is on. The driver accepts any
    /// image, and finds all registered kernels in it. The lookup of a name that is not registered
    /// returns `CUDA_ERROR_NOT_FOUND`, and the driver prints the registered names. C++ compilers mangle names: register the name
    /// that the program looks up, such as `_Z4fillPji`.
    ///
    /// A launch runs the closure once, in stream order, on a thread of the driver. A kernel of
    /// another stream may run at the same time. In a capturing stream a launch becomes a kernel
    /// node. In virtual time a kernel takes no time; [`busy`](Self::busy) in the same stream adds a
    /// duration. A kernel that panics fails its context with `CUDA_ERROR_LAUNCH_FAILED`. Calls of
    /// the driver in a kernel return `CUDA_ERROR_NOT_PERMITTED`.
    ///
    /// A closure is dropped with the driver at the latest.
    ///
    /// ```
    /// use cuda_soft_driver::SoftDriver;
    ///
    /// let soft = SoftDriver::new();
    /// // __global__ void saxpy(float a, const float *x, float *y, unsigned n)
    /// let saxpy = soft.kernel("saxpy", |launch| {
    ///     let (a, n): (f32, u32) = (launch.parameter(0), launch.parameter(3));
    ///     let (x, y): (u64, u64) = (launch.parameter(1), launch.parameter(2));
    ///     let xs = launch.read::<f32>(x, n as usize);
    ///     let ys = launch.read::<f32>(y, n as usize);
    ///     let sums: Vec<f32> = xs.iter().zip(&ys).map(|(x, y)| a * x + y).collect();
    ///     launch.write(y, &sums);
    /// });
    /// saxpy.parameters(&[4, 8, 8, 4]).accesses(|launch, accesses| {
    ///     let bytes = 4 * launch.parameter::<u32>(3) as usize;
    ///     accesses.reads(launch.parameter(1), bytes);
    ///     accesses.reads(launch.parameter(2), bytes);
    ///     accesses.writes(launch.parameter(2), bytes);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If the name contains a zero byte.
    #[track_caller]
    pub fn kernel<F>(&self, name: &str, run: F) -> Kernel<'_>
    where
        F: Fn(&Launch) + Send + Sync + 'static,
    {
        let Ok(name) = CString::new(name) else { panic!("the kernel's name {name:?} has a zero") };
        let run = Arc::new(move |launch: &Launch| {
            run(launch);
            Ok(())
        });
        let run = DropUnlocked::new(run as _);
        let kernel =
            Arc::new(Registered { name, run: Some(run), declare: None, parameters: Vec::new() });
        self.machine().lock().modules.register(kernel.clone());
        Kernel { driver: self, kernel }
    }
}

/// A kernel that was [registered](SoftDriver::kernel), which can be described further.
///
/// After another kernel with the same name was registered, its methods change nothing.
pub struct Kernel<'a> {
    driver: &'a SoftDriver,
    kernel: Arc<Registered>,
}

impl Kernel<'_> {
    /// Declares the parameters: the size of each in bytes. Without this call a kernel has no
    /// parameters.
    ///
    /// # Panics
    ///
    /// If all parameters together, with the gaps for their alignment, have more than 32764 bytes.
    #[track_caller]
    pub fn parameters(self, sizes: &[usize]) -> Self {
        assert!(can_have(sizes), "a kernel cannot have parameters of these sizes: {sizes:?}");
        self.describe(|kernel| kernel.parameters = layout(sizes).collect())
    }

    /// Declares what a launch reads and writes, for the [order checker](crate::OrderCheck).
    ///
    /// The driver runs the closure in each call that launches or captures the kernel, in the thread
    /// of the call. Without the closure the checker sees no access of the kernel, and its summary names the
    /// kernel.
    pub fn accesses<F>(self, declare: F) -> Self
    where
        F: Fn(&Launch, &mut Accesses) + Send + Sync + 'static,
    {
        let declare = Arc::new(move |launch: &Launch, accesses: &mut Accesses| {
            declare(launch, accesses);
            Ok(())
        });
        self.describe(|kernel| kernel.declare = Some(DropUnlocked::new(declare)))
    }

    fn describe(mut self, describe: impl FnOnce(&mut Registered)) -> Self {
        let mut described = Registered::clone(&self.kernel);
        describe(&mut described);
        let described = Arc::new(described);
        let mut state = self.driver.machine().lock();
        let registered = state.modules.kernel(&self.kernel.name);
        if registered.is_some_and(|registered| Arc::ptr_eq(registered, &self.kernel)) {
            state.modules.register(described.clone());
        }
        drop(state);
        self.kernel = described;
        self
    }
}

impl fmt::Debug for Kernel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.kernel.name)
            .field("parameters", &self.kernel.parameters)
            .finish_non_exhaustive()
    }
}

/// A launch as a callback in C gets it.
#[derive(Debug)]
#[repr(C)]
pub struct LaunchInC {
    /// The blocks of the grid.
    pub grid: [u32; 3],
    /// The threads of a block.
    pub block: [u32; 3],
    /// The bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The number of parameters.
    pub parameter_count: u32,
    /// Where the bytes of each parameter are.
    pub parameters: *const *const c_void,
    launch: *const Launch,
    /// NULL outside of a declaration.
    accesses: *mut Accesses,
    /// The code of the first access of memory that was refused, or 0.
    refused: AtomicU32,
}

/// A kernel in C, or the declaration of what it reads and writes.
pub type KernelInC = unsafe extern "C" fn(*const LaunchInC, *mut c_void) -> CUresult;

/// The pointer of a callback.
#[derive(Clone, Copy)]
struct User(*mut c_void);

// SAFETY: never dereferenced here; the program gave it for other threads to get.
unsafe impl Send for User {}
// SAFETY: as for `Send`.
unsafe impl Sync for User {}

/// Calls a callback of C.
fn call_c(
    function: KernelInC,
    user: User,
    launch: &Launch,
    accesses: *mut Accesses,
) -> Result<(), CUresult> {
    let parameters: Vec<*const c_void> = (0..launch.kernel.parameters.len())
        .map(|index| launch.parameter_bytes(index).as_ptr().cast())
        .collect();
    let given = LaunchInC {
        grid: launch.grid,
        block: launch.block,
        shared_bytes: launch.shared_bytes,
        parameter_count: parameters.len() as u32,
        parameters: parameters.as_ptr(),
        launch,
        accesses,
        refused: AtomicU32::new(SUCCESS.0),
    };
    // SAFETY: the program registered the function for this call, with this pointer.
    let returned = unsafe { function(&given, user.0) };
    // As on a GPU, the launch has failed at that point, whatever comes after it.
    match CUresult(given.refused.into_inner()) {
        SUCCESS if returned == SUCCESS => Ok(()),
        SUCCESS => Err(returned),
        refused => Err(refused),
    }
}

/// The exported form of `kernel`. A NULL function removes the kernel.
///
/// # Safety
///
/// `name` must be NULL or a C string, and `sizes` point to `count` sizes. The callbacks must be
/// valid, with `user`, until the kernel is removed or replaced and its launches are done.
#[doc(hidden)]
pub unsafe fn kernel_shared_library(
    name: *const c_char,
    sizes: *const usize,
    count: usize,
    run: Option<KernelInC>,
    accesses: Option<KernelInC>,
    user: *mut c_void,
) -> CUresult {
    if name.is_null() || (sizes.is_null() && count > 0) {
        return INVALID_VALUE;
    }
    // SAFETY: a C string, as the caller promises.
    let name = unsafe { CStr::from_ptr(name) };
    let machine = shared_library().machine();
    let Some(run) = run else {
        return if machine.lock().modules.remove(name) { SUCCESS } else { NOT_FOUND };
    };
    let parameters = match count {
        0 => Some(Vec::new()),
        // SAFETY: so many sizes, as the caller promises.
        1..=MAX_PARAMETERS => Some(unsafe { core::slice::from_raw_parts(sizes, count) }.to_vec()),
        _ => None,
    };
    let Some(parameters) = parameters.filter(|sizes| can_have(sizes)) else {
        crate::say!(
            "cuda_soft_driver_kernel: {name:?} cannot have these parameters: a kernel has at most \
             {MAX_PARAMETERS} bytes of them"
        );
        return INVALID_VALUE;
    };
    let user = User(user);
    let declare = accesses.map(|declare| -> Declare {
        DropUnlocked::new(Arc::new(move |launch: &Launch, accesses: &mut Accesses| {
            call_c(declare, user, launch, accesses)
        }))
    });
    let run = Arc::new(move |launch: &Launch| call_c(run, user, launch, core::ptr::null_mut()));
    let run = DropUnlocked::new(run as _);
    let (run, parameters) = (Some(run), layout(&parameters).collect());
    let kernel = Registered { name: name.to_owned(), run, declare, parameters };
    machine.lock().modules.register(Arc::new(kernel));
    SUCCESS
}

/// Copies memory of the driver in a kernel, from it or to it.
///
/// # Safety
///
/// `launch` must be what the callback got, in this call of it, and `own` point to so many bytes.
#[doc(hidden)]
pub unsafe fn kernel_copies_shared_library(
    launch: *const LaunchInC,
    address: CUdeviceptr,
    own: *mut c_void,
    bytes: usize,
    writes: bool,
) -> CUresult {
    if launch.is_null() || (own.is_null() && bytes > 0) {
        return INVALID_VALUE;
    }
    // SAFETY: `call_c` made it, and is waiting for the callback.
    let given = unsafe { &*launch };
    // SAFETY: as above; the bytes are the caller's.
    match unsafe { (*given.launch).copy(address, own.cast(), bytes, writes) } {
        Ok(()) => SUCCESS,
        Err(code) => {
            let (none, order) = (SUCCESS.0, Ordering::Relaxed);
            let _ = given.refused.compare_exchange(none, code.0, order, order);
            code
        }
    }
}

/// Declares what a launch reads or writes.
///
/// # Safety
///
/// `launch` must be what the callback got, in this call of it.
#[doc(hidden)]
pub unsafe fn kernel_declares_shared_library(
    launch: *const LaunchInC,
    address: CUdeviceptr,
    bytes: usize,
    writes: bool,
) -> CUresult {
    if launch.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: `call_c` made both, and is waiting for the callback, whose thread is this one.
    let Some(accesses) = (unsafe { (*launch).accesses.as_mut() }) else { return NOT_PERMITTED };
    match writes {
        true => accesses.writes(address, bytes),
        false => accesses.reads(address, bytes),
    }
    SUCCESS
}
