//! Memory of Vulkan in CUDA's address space. The crate has no type for it: only its raw functions.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use cuda_events::sys::{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, CUdeviceptr,
    CUexternalMemory, CUexternalMemoryHandleType, CUresult, Function,
};
use cuda_events::{Context, Error, StreamRef};

use crate::vulkan::Result;

fn check(function: Function, code: CUresult) -> cuda_events::Result<()> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Error::Driver { function, code }) }
}

/// The function's pointer on this driver.
fn found<F>(function: Function, pointer: Option<F>) -> Result<F> {
    Ok(pointer.ok_or_else(|| format!("the driver has no {function:?}"))?)
}

pub struct SharedMemory {
    context: Context,
    memory: CUexternalMemory,
    address: CUdeviceptr,
}

impl SharedMemory {
    /// Maps the first `bytes` bytes of Vulkan's memory, which has `size`.
    pub fn import(context: &Context, fd: OwnedFd, size: u64, bytes: u64) -> Result<Self> {
        let symbols = context.driver().symbols();
        let _current = context.make_current()?;
        let mut description = CUDA_EXTERNAL_MEMORY_HANDLE_DESC::default();
        description.type_ = CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
        description.handle.fd = fd.as_raw_fd();
        description.size = size;
        let import = found(Function::cuImportExternalMemory, symbols.cuImportExternalMemory)?;
        let mut memory = std::ptr::null_mut();
        // SAFETY: a place for the handle, and a description of this kind's memory.
        check(Function::cuImportExternalMemory, unsafe { import(&mut memory, &description) })?;
        // The driver owns it now.
        let _ = fd.into_raw_fd();
        let mut shared = Self { context: context.clone(), memory, address: 0 };
        let mut part = CUDA_EXTERNAL_MEMORY_BUFFER_DESC::default();
        part.size = bytes;
        let function = Function::cuExternalMemoryGetMappedBuffer;
        let map = found(function, symbols.cuExternalMemoryGetMappedBuffer)?;
        // SAFETY: the memory has so many bytes.
        check(function, unsafe { map(&mut shared.address, memory, &part) })?;
        Ok(shared)
    }

    /// Writes the first words.
    pub fn set(&self, value: u32, words: usize, stream: &StreamRef) -> Result<()> {
        let set = self.context.driver().symbols().cuMemsetD32Async;
        let _current = self.context.make_current()?;
        // SAFETY: the memory has more words, and dropping this waits.
        let code = unsafe { set(self.address, value, words, stream.as_raw()) };
        Ok(check(Function::cuMemsetD32Async, code)?)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let symbols = self.context.driver().symbols();
        // An error cannot be acted on here.
        let _ = self.context.synchronize();
        let Ok(_current) = self.context.make_current() else { return };
        // SAFETY: both are owned, and no work uses them any more; an address of 0 is no error.
        unsafe {
            (symbols.cuMemFree_v2)(self.address);
            if let Some(destroy) = symbols.cuDestroyExternalMemory {
                destroy(self.memory);
            }
        }
    }
}
