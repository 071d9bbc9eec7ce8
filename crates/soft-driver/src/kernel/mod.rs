//! For cuda.core, numba-cuda and cudarc: kernels, which are functions of the test that registered
//! them by name, and what a launch gives them.

#[cfg_attr(not(all(feature = "images", target_os = "linux")), path = "no_images.rs")]
pub(crate) mod images;
pub(crate) mod launches;
pub(crate) mod modules;

use core::ffi::CStr;
use core::fmt;
use core::ops::Range;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;

use cuda_order_check_engine::Access;

use crate::abi::*;
use crate::engine::work::DeviceWork;
use crate::errors;
use crate::kernel::images::Image;
use crate::machine::drop_unlocked::DropUnlocked;
use crate::machine::handles::{Kind, Table};
use crate::memory::Place;

/// What a kernel does. An error fails the context.
pub(crate) type Run = DropUnlocked<Arc<dyn Fn(&Launch) -> Answer + Send + Sync>>;
/// What it reads and writes.
pub(crate) type Declare = DropUnlocked<Arc<dyn Fn(&Launch, &mut Accesses) -> Answer + Send + Sync>>;

/// Documented: so many bytes of parameters a kernel can have, at most.
pub(crate) const MAX_PARAMETERS: usize = 32_764;

/// Whether a kernel can have parameters of these sizes.
pub(crate) fn can_have(sizes: &[usize]) -> bool {
    // First those for which the sum would overflow.
    sizes.len() <= MAX_PARAMETERS
        && sizes.iter().all(|size| *size <= MAX_PARAMETERS)
        && layout(sizes).last().is_none_or(|last| last.end <= MAX_PARAMETERS)
}

/// Where parameters of these sizes are, if all are in one piece of memory: a parameter is aligned
/// to the largest power of two that divides its size, up to 16.
pub(crate) fn layout(sizes: &[usize]) -> impl Iterator<Item = Range<usize>> {
    sizes.iter().scan(0_usize, |end, size| {
        let align = 1 << size.trailing_zeros().min(4);
        let begin = end.next_multiple_of(align);
        *end = begin + size;
        Some(begin..*end)
    })
}

/// A kernel as it was registered, or as an image has it.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(crate) name: CString,
    /// None for one of an image: it does not run.
    pub(crate) run: Option<Run>,
    pub(crate) declare: Option<Declare>,
    /// Where each parameter is, if all are in one piece of memory.
    pub(crate) parameters: Vec<Range<usize>>,
}

impl Kernel {
    /// The bytes of all parameters.
    pub(crate) fn bytes(&self) -> usize {
        self.parameters.iter().map(|range| range.end).max().unwrap_or_default()
    }
}

/// A module of one context, or a library of all contexts.
pub(crate) struct Module {
    /// The module's context, by its place and its number.
    pub(crate) context: Option<(u32, u64)>,
    functions: BTreeMap<CString, u32>,
    /// Whether its functions are loaded with it.
    eager: bool,
    /// Whether it is on the device: a library comes there when something of it is needed.
    pub(crate) loaded: bool,
    image: Image,
}

/// A function of a module or a kernel of a library. The kernel is looked up at each launch, as the
/// test may register another one.
pub(crate) struct Function {
    pub(crate) name: CString,
    pub(crate) module: u32,
    pub(crate) attributes: BTreeMap<u32, i32>,
    /// Whether its code is on the device.
    pub(crate) loaded: bool,
}

/// The kernels that were registered, and what the program has loaded.
pub(crate) struct Modules {
    kernels: BTreeMap<CString, Arc<Kernel>>,
    /// Whether a kernel was ever registered. Then everything can be loaded.
    pub(crate) in_use: bool,
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
}

impl Modules {
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
            kernels: BTreeMap::new(),
            in_use: false,
            modules: Table::new(Kind::Module, slot),
            functions: Table::new(Kind::Function, slot),
        }
    }

    pub(crate) fn reset(&mut self, life: u64) {
        self.kernels = BTreeMap::new();
        self.in_use = false;
        self.modules.reset(life);
        self.functions.reset(life);
    }

    /// Registers a kernel, in place of one of its name.
    pub(crate) fn register(&mut self, kernel: Arc<Kernel>) {
        self.in_use = true;
        self.kernels.insert(kernel.name.clone(), kernel);
    }

    /// Removes a kernel; whether there was one.
    pub(crate) fn remove(&mut self, name: &CStr) -> bool {
        self.kernels.remove(name).is_some()
    }

    pub(crate) fn kernel(&self, name: &CStr) -> Option<&Arc<Kernel>> {
        self.kernels.get(name)
    }

    /// The names of all kernels, for messages.
    pub(crate) fn names(&self) -> String {
        let names = self.kernels.keys().map(|name| format!("\"{}\"", name.to_string_lossy()));
        let names: Vec<String> = names.collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    pub(crate) fn load(
        &mut self,
        born: u64,
        context: Option<(u32, u64)>,
        eager: bool,
        image: Image,
    ) -> Result<u64, CUresult> {
        let module = Module {
            image,
            context,
            functions: BTreeMap::new(),
            eager,
            loaded: eager || context.is_some(),
        };
        self.modules.insert(born, module).map(|(_, handle)| handle).ok_or(OUT_OF_MEMORY)
    }

    /// Whether functions of it are on the device.
    pub(crate) fn is_used(&self, module: u32) -> bool {
        let module = &self.modules[module];
        module.eager || module.functions.values().any(|function| self.functions[*function].loaded)
    }

    /// A module is unloaded with its functions.
    pub(crate) fn unload(&mut self, module: u32) {
        let functions = self.modules.remove(module).map(|module| module.functions);
        for function in functions.unwrap_or_default().into_values() {
            self.functions.remove(function);
        }
    }

    /// What a function is: the kernel that is registered by its name, or otherwise that of its image.
    pub(crate) fn kernel_of(&self, function: u32) -> Option<&Arc<Kernel>> {
        let Function { name, module, .. } = &self.functions[function];
        self.kernel_in(*module, name)
    }

    fn kernel_in(&self, module: u32, name: &CStr) -> Option<&Arc<Kernel>> {
        self.kernel(name).or_else(|| self.modules[module].image.kernel(name))
    }

    /// The names of all functions of a module: those of its image, or all that are registered if there
    /// is none.
    pub(crate) fn names_in(&self, module: u32) -> Vec<CString> {
        let image: Vec<CString> = self.modules[module].image.names().cloned().collect();
        if image.is_empty() { self.kernels.keys().cloned().collect() } else { image }
    }

    /// The function of this name, which a module has once; none if there is no such kernel.
    pub(crate) fn function(
        &mut self,
        born: u64,
        module: u32,
        name: &CStr,
    ) -> Result<Option<u64>, CUresult> {
        if self.kernel_in(module, name).is_none() {
            return Ok(None);
        }
        if let Some(function) = self.modules[module].functions.get(name) {
            return Ok(Some(self.functions.handle(*function)));
        }
        let name = name.to_owned();
        let (attributes, loaded) = (BTreeMap::new(), self.modules[module].eager);
        let new = Function { name: name.clone(), module, attributes, loaded };
        let (index, handle) = self.functions.insert(born, new).ok_or(OUT_OF_MEMORY)?;
        self.modules[module].functions.insert(name, index);
        Ok(Some(handle))
    }
}

/// What a kernel reads and writes, for the [order checker](crate::OrderCheck).
#[derive(Debug, Default)]
pub struct Accesses {
    list: Vec<Access>,
    /// Why they are not known.
    unknown: Option<String>,
}

impl Accesses {
    /// The kernel reads `bytes` bytes from `address` on.
    pub fn reads(&mut self, address: CUdeviceptr, bytes: usize) {
        self.list.push(Access::read(address, bytes as u64));
    }

    /// The kernel writes `bytes` bytes from `address` on.
    pub fn writes(&mut self, address: CUdeviceptr, bytes: usize) {
        self.list.push(Access::write(address, bytes as u64));
    }
}

/// The memory of the machine that a launch is on.
pub(crate) trait DeviceMemory: Sync {
    /// Where these bytes are, if a kernel may access them. An error if the driver that had them in
    /// this epoch was dropped.
    fn find(
        &'static self,
        epoch: u64,
        address: CUdeviceptr,
        bytes: usize,
        writes: bool,
    ) -> Result<Option<Place>, CUresult>;
}

/// One launch of a kernel: its configuration, its parameters, and the memory of the driver.
///
/// A method that gets a wrong index, size or address ends the kernel, and its context fails, as on
/// a GPU: with `CUDA_ERROR_ILLEGAL_ADDRESS` for memory that is not allocated, with
/// `CUDA_ERROR_MISALIGNED_ADDRESS` for an address that is not a multiple of the value's size, and
/// otherwise with `CUDA_ERROR_LAUNCH_FAILED`.
pub struct Launch {
    pub(crate) memory: &'static dyn DeviceMemory,
    pub(crate) epoch: u64,
    pub(crate) kernel: Arc<Kernel>,
    /// The handle of the function, for a node that shows its parameters.
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) parameters: Vec<u8>,
    /// Where each parameter is in them, as a node shows it.
    pub(crate) addresses: Vec<usize>,
    pub(crate) accesses: Vec<Access>,
    /// Why the accesses are not known, if they are not.
    pub(crate) unknown: Option<String>,
}

/// Why a method of [`Launch`] ended the kernel.
struct Ended(CUresult);

impl Launch {
    /// The blocks of the grid, in x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// The threads of a block, in x, y and z.
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// The bytes of dynamic shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// A parameter, which was registered with the size of `T`: a number, or an address as `u64`.
    pub fn parameter<T: Word>(&self, index: usize) -> T {
        let bytes = self.parameter_bytes(index);
        T::from_bytes(bytes).unwrap_or_else(|| {
            let what = format!("parameter {index} has {} bytes", bytes.len());
            self.end(CUresult::CUDA_ERROR_LAUNCH_FAILED, &what)
        })
    }

    /// The bytes of a parameter.
    pub fn parameter_bytes(&self, index: usize) -> &[u8] {
        let range = self.kernel.parameters.get(index).cloned();
        range.and_then(|range| self.parameters.get(range)).unwrap_or_else(|| {
            let what = format!("there is no parameter {index}");
            self.end(CUresult::CUDA_ERROR_LAUNCH_FAILED, &what)
        })
    }

    /// Reads `count` values from `address` on: memory of a device, managed or pinned memory.
    pub fn read<T: Word>(&self, address: CUdeviceptr, count: usize) -> Vec<T> {
        let mut values = Vec::new();
        // SAFETY: `at` gives aligned words that a place keeps.
        self.at::<T>(address, count, false, |at| values.push(unsafe { T::load(at) }));
        values
    }

    /// Writes values from `address` on.
    pub fn write<T: Word>(&self, address: CUdeviceptr, values: &[T]) {
        let mut left = values.iter();
        self.at::<T>(address, values.len(), true, |at| {
            if let Some(value) = left.next() {
                // SAFETY: as in `read`.
                unsafe { T::store(at, *value) };
            }
        });
    }

    /// Gives `access` the address of each value: it is aligned, and stays valid until this returns.
    fn at<T: Word>(
        &self,
        address: CUdeviceptr,
        count: usize,
        writes: bool,
        mut access: impl FnMut(*mut u8),
    ) {
        if count == 0 {
            return;
        }
        let size = size_of::<T>();
        let bytes = count.saturating_mul(size);
        // Another thread may free the memory meanwhile: it is unmapped when its last place goes.
        let place = self
            .place(address, bytes, size, writes)
            .unwrap_or_else(|code| resume_unwind(Box::new(Ended(code))));
        for index in 0..count {
            access(place.pointer().wrapping_add(index * size));
        }
    }

    /// Memory for values of a size.
    fn place(
        &self,
        address: CUdeviceptr,
        bytes: usize,
        size: usize,
        writes: bool,
    ) -> Result<Place, CUresult> {
        if !address.is_multiple_of(size as u64) {
            let code = CUresult::CUDA_ERROR_MISALIGNED_ADDRESS;
            self.say(code, &format!("{address:#x} is not a multiple of {size}"));
            return Err(code);
        }
        self.memory.find(self.epoch, address, bytes, writes)?.ok_or_else(|| {
            let code = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
            let what = if writes { "write" } else { "read" };
            self.say(code, &format!("it may not {what} {bytes} bytes at {address:#x}"));
            code
        })
    }

    /// Copies bytes between memory of the driver and of the caller, in words if that is possible:
    /// the host may read a word at any time.
    ///
    /// # Safety
    ///
    /// The caller has so many bytes at `own`.
    pub(crate) unsafe fn copy(
        &self,
        address: CUdeviceptr,
        own: *mut u8,
        bytes: usize,
        writes: bool,
    ) -> Answer {
        /// # Safety
        ///
        /// Both have so many bytes during the call, and those of `memory` are aligned for `T`.
        unsafe fn each<T: Word>(memory: *mut u8, own: *mut u8, bytes: usize, writes: bool) {
            for at in (0..bytes).step_by(size_of::<T>()) {
                let (memory, own) = (memory.wrapping_add(at), own.wrapping_add(at).cast::<T>());
                // SAFETY: a whole word on both sides, as the caller promises and the number of
                // bytes is a multiple of its size.
                unsafe {
                    if writes {
                        T::store(memory, own.read_unaligned());
                    } else {
                        own.write_unaligned(T::load(memory));
                    }
                }
            }
        }
        if bytes == 0 {
            return Ok(());
        }
        let place = self.place(address, bytes, 1, writes)?;
        let copy = match (address | bytes as u64).trailing_zeros() {
            0 => each::<u8>,
            1 => each::<u16>,
            2 => each::<u32>,
            _ => each::<u64>,
        };
        // SAFETY: `place` keeps so many bytes from `address` on, whose alignment chose the word, and
        // has the same distance from a page; the caller has as many.
        unsafe { copy(place.pointer(), own, bytes, writes) };
        Ok(())
    }

    /// Ends the kernel and fails its context.
    fn end(&self, code: CUresult, what: &str) -> ! {
        self.say(code, what);
        resume_unwind(Box::new(Ended(code)))
    }

    fn say(&self, code: CUresult, what: &str) {
        let name =
            errors::find(code).map_or("an error", |entry| entry.0.to_str().unwrap_or_default());
        crate::say!("the kernel {:?} fails with {name}: {what}", self.kernel.name);
    }

    /// Calls a function of the test, which may panic.
    fn guarded(&self, function: impl FnOnce() -> Answer) -> Answer {
        match catch_unwind(AssertUnwindSafe(function)) {
            Ok(answer) => answer,
            Err(payload) => Err(match payload.downcast::<Ended>() {
                Ok(ended) => ended.0,
                Err(payload) => {
                    self.say(CUresult::CUDA_ERROR_LAUNCH_FAILED, "it panicked");
                    // A payload could panic, too, when it is dropped.
                    core::mem::forget(payload);
                    CUresult::CUDA_ERROR_LAUNCH_FAILED
                }
            }),
        }
    }

    /// Finds what the kernel declares that it reads and writes. It must not have the machine's
    /// lock: this calls the test.
    pub(crate) fn declare(&mut self) -> Answer {
        let Some(declare) = self.kernel.declare.clone() else { return Ok(()) };
        let mut accesses = Accesses::default();
        self.guarded(|| declare(self, &mut accesses))?;
        self.accesses = accesses.list;
        self.unknown = accesses.unknown;
        Ok(())
    }
}

impl DeviceWork for Launch {
    fn run(&self) -> Answer {
        let Some(run) = &self.kernel.run else { return Ok(()) };
        self.guarded(|| run(self))
    }

    fn accesses(&self) -> Option<&[Access]> {
        self.kernel.declare.is_some().then_some(&self.accesses)
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("kernel", &self.kernel.name)
            .field("grid", &self.grid)
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

/// A number that [`Launch`] reads and writes: an integer of 8 to 64 bits, `f32` or `f64`.
pub trait Word: private::Bits {}

mod private {
    /// How a number is in memory, which the host may access at the same time.
    pub trait Bits: Copy {
        fn from_bytes(bytes: &[u8]) -> Option<Self>;
        /// # Safety
        ///
        /// The pointer is to an aligned word of the driver's memory, which stays mapped during the
        /// call. Whoever else accesses it meanwhile does so by atomics, or in stream order.
        unsafe fn load(at: *mut u8) -> Self;
        /// # Safety
        ///
        /// As for `load`.
        unsafe fn store(at: *mut u8, value: Self);
    }
}

macro_rules! words {
    ($($ty:ty: $integer:ty, $atomic:ty;)*) => {$(
        impl Word for $ty {}

        impl private::Bits for $ty {
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_ne_bytes)
            }

            unsafe fn load(at: *mut u8) -> Self {
                // SAFETY: the caller promises an aligned word that stays.
                let word = unsafe { <$atomic>::from_ptr(at.cast()) };
                Self::from_ne_bytes(word.load(Ordering::Acquire).to_ne_bytes())
            }

            unsafe fn store(at: *mut u8, value: Self) {
                // SAFETY: as in `load`.
                let word = unsafe { <$atomic>::from_ptr(at.cast()) };
                word.store(<$integer>::from_ne_bytes(value.to_ne_bytes()), Ordering::Release);
            }
        }
    )*};
}

words! {
    u8: u8, AtomicU8;
    i8: u8, AtomicU8;
    u16: u16, AtomicU16;
    i16: u16, AtomicU16;
    u32: u32, AtomicU32;
    i32: u32, AtomicU32;
    f32: u32, AtomicU32;
    u64: u64, AtomicU64;
    i64: u64, AtomicU64;
    f64: u64, AtomicU64;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CUDA's vector types are aligned to their size, up to 16 bytes; other structures to what
    /// their size shows.
    #[test]
    fn parameters_are_aligned_to_their_size() {
        for (sizes, begins) in [
            (&[1, 2, 4, 8, 16][..], &[0, 2, 4, 8, 16][..]),
            (&[8, 16, 1, 16], &[0, 16, 32, 48]),
            (&[1, 32, 1, 48], &[0, 16, 48, 64]),
            (&[1, 12, 1, 24, 1, 40], &[0, 4, 16, 24, 48, 56]),
            (&[4, 64], &[0, 16]),
        ] {
            let ranges: Vec<_> = layout(sizes).collect();
            let found: Vec<usize> = ranges.iter().map(|range| range.start).collect();
            assert_eq!(found, begins, "{sizes:?}");
            assert!(ranges.iter().zip(sizes).all(|(range, size)| range.len() == *size));
        }
    }
}
