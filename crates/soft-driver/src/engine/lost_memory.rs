//! For cudarc, numba-cuda and cuda.core: streams that use memory which is registered no longer.

use crate::abi::CUresult;
use crate::engine::Running;
use crate::engine::stream::Stream;
use crate::engine::work::Task;
use crate::memory::Place;
use crate::memory::work::MemoryWork;

impl Running<'_> {
    /// Memory is registered no longer, and the call has waited for its own device alone: the
    /// contexts of streams that still have to use it fail. On a card they do when a stream gets
    /// there; here the program may have given the memory back by then.
    pub(crate) fn fail_users_of_lost_memory(&mut self) {
        let lost = |stream: &Stream| {
            let mut places = stream.queue.iter().flat_map(|queued| queued.task.places());
            places
                .find(|place| self.memory.addresses.is_lost(place))
                .map(|place| (stream.context, place.address))
        };
        let all: Vec<_> = self.streams.iter().filter_map(|(_, stream)| lost(stream)).collect();
        for (context, address) in all {
            crate::say!("a stream is to use {address:#x}, which is no longer registered");
            self.fail(context, CUresult::CUDA_ERROR_LAUNCH_FAILED);
        }
    }
}

impl Task {
    /// What it uses. Kernels look for themselves.
    fn places(&self) -> impl Iterator<Item = &Place> {
        let (memory, word) = match self {
            Self::Memory(work) => (Some(work), None),
            Self::WaitValue(wait, _) => (None, Some(&wait.word)),
            Self::WriteValue(write, _) => (None, Some(&write.word)),
            _ => (None, None),
        };
        memory.into_iter().flat_map(MemoryWork::places).chain(word.map(|word| &word.place))
    }
}
