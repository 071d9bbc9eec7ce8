//! The calls on memory.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_events::sys::*;

use super::{Bytes, NOT_READY, Run, SUCCESS, Word, at};

impl Run {
    /// An address: most are within memory that is not freed. Beside it the bytes to its end.
    fn address(&self, bytes: &mut Bytes<'_>) -> (u64, usize) {
        let (choice, which) = (bytes.byte(), bytes.below(256));
        if choice >= 248 {
            let others = self.model.others_memory;
            let made_up = [0, 4, 16, 0x1234, 0x7fff_ffff_f000, others, others, others + 8];
            return (made_up[usize::from(choice - 248)], 0);
        }
        let stale = choice >= 240;
        let all: Vec<_> = self.model.memory.iter().filter(|it| it.alive || stale).collect();
        if all.is_empty() {
            return (0, 0);
        }
        let memory = all[which % all.len()];
        let offset = match bytes.byte() {
            offset @ 0..128 => 4 * usize::from(offset),
            offset @ 128..192 => usize::from(offset) - 128,
            offset @ 192..248 => 8 * usize::from(offset - 192),
            _ => memory.bytes.len(),
        };
        let offset = offset.min(memory.bytes.len());
        (memory.address + offset as u64, memory.bytes.len() - offset)
    }

    /// A number of elements, for a range that ends before, at or past the end.
    fn count(bytes: &mut Bytes<'_>, rest: usize, element: usize) -> usize {
        match bytes.byte() {
            count @ 0..192 => usize::from(count).min(rest / element),
            192..232 => rest / element,
            232..248 => rest / element + 1,
            _ => 1 << 40,
        }
    }

    // SAFETY of the blocks below: as of the other calls. The driver checks the addresses of the
    // device. Of the host's memory there is as much as a call takes.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(super) fn memory(&mut self, operation: u8, bytes: &mut Bytes<'_>) {
        match operation {
            0 | 1 => self.allocate(bytes),
            2 => self.free(bytes),
            3 => {
                let (wide, (address, rest)) = (bytes.byte() & 1 != 0, self.address(bytes));
                let count = Self::count(bytes, rest, if wide { 4 } else { 1 });
                let (value, stream) = (bytes.byte(), self.handle(bytes, 1));
                let value32 = u32::from_le_bytes([value, 1, 2, 3]);
                let element = if wide { value32.to_le_bytes().to_vec() } else { vec![value] };
                let Some(expected) = self.model.fill(address, &element, count, stream) else {
                    return;
                };
                let code = unsafe {
                    if wide {
                        (self.table.set32)(address, value32, count, at(stream))
                    } else {
                        (self.table.set8)(address, value, count, at(stream))
                    }
                };
                self.expect("cuMemsetAsync", code, expected);
                self.settle(stream);
            }
            4 | 5 => {
                let (to, rest) = self.address(bytes);
                let (from, other_rest) = self.address(bytes);
                let count = Self::count(bytes, rest.min(other_rest), 1);
                let stream = self.handle(bytes, 1);
                let Some(expected) = self.model.copy(to, from, count, stream) else { return };
                // The same address is good for the device and, of pinned memory, for the host.
                let host = |address: u64| {
                    let memory = self.model.span(address, 1).map(|span| span.memory);
                    memory.is_ok_and(|memory| self.model.memory[memory].host)
                        && self.model.span(address, count).is_ok()
                };
                let code = unsafe {
                    if host(from) && operation == 5 {
                        (self.table.to_device)(to, at(from), count, at(stream))
                    } else if host(to) && operation == 5 {
                        (self.table.to_host)(at(to), from, count, at(stream))
                    } else {
                        (self.table.copy)(to, from, count, at(stream))
                    }
                };
                self.expect("cuMemcpyAsync", code, expected);
                self.settle(stream);
            }
            6 => {
                let (address, rest) = self.address(bytes);
                let count = Self::count(bytes, rest, 1).min(1 << 13);
                let (first, none) = (bytes.byte(), bytes.byte() >= 248);
                let stream = self.handle(bytes, 1);
                let mut source: Vec<u8> =
                    (0..count).map(|at| first.wrapping_add(at as u8)).collect();
                let expected = self.model.put(address, &source, none, stream);
                let Some(expected) = expected else { return };
                let place: *mut c_void = if none { null_mut() } else { source.as_mut_ptr().cast() };
                let code = unsafe { (self.table.to_device)(address, place, count, at(stream)) };
                // It has been read.
                source.fill(0xEE);
                self.expect("cuMemcpyHtoDAsync", code, expected);
                self.settle(stream);
            }
            7 => {
                let (address, rest) = self.address(bytes);
                let count = Self::count(bytes, rest, 1).min(1 << 13);
                let stream = self.handle(bytes, 1);
                self.read(address, count, stream);
            }
            8 => {
                let (word, stream) = (self.word(bytes), self.handle(bytes, 1));
                let Some(expected) = self.model.write_value(word, stream) else { return };
                let code = self.write_value(word, stream);
                self.expect("cuStreamWriteValue", code, expected);
                self.settle(stream);
            }
            _ => self.wait_value(bytes),
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn allocate(&mut self, bytes: &mut Bytes<'_>) {
        let size = [512, 512, 1024, 512, 2048, 0, 1 << 52][bytes.below(7)];
        let (kind, flags) = (bytes.byte(), [0, 1, 2, 4, 7, 8][bytes.below(6)]);
        if kind < 192 {
            let mut address = 0;
            let Some(expected) = self.model.alloc(size) else { return };
            let code = unsafe { (self.table.alloc)(&mut address, size) };
            match expected {
                Ok(context) => {
                    self.expect("cuMemAlloc", code, (SUCCESS, false));
                    self.model.allocated(context, address, size, false);
                }
                Err(answer) => self.expect("cuMemAlloc", code, answer),
            }
        } else {
            let mut memory = null_mut();
            let Some(expected) = self.model.host_alloc(size, flags) else { return };
            let code = unsafe { (self.table.host_alloc)(&mut memory, size, flags) };
            match expected {
                Ok(context) => {
                    self.expect("cuMemHostAlloc", code, (SUCCESS, false));
                    self.model.allocated(context, memory.addr() as u64, size, true);
                }
                Err(answer) => self.expect("cuMemHostAlloc", code, answer),
            }
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn free(&mut self, bytes: &mut Bytes<'_>) {
        let ((address, rest), host, exact) =
            (self.address(bytes), bytes.byte() < 64, bytes.byte() < 192);
        // Whether a capture forbids it is open.
        self.end_captures();
        // Most free the whole.
        let whole = self.model.span(address, rest).ok().filter(|_| exact);
        let address = whole.map_or(address, |span| self.model.memory[span.memory].address);
        let host = match self.model.base(address) {
            Some(memory) if exact => self.model.memory[memory].host,
            _ => host,
        };
        // A free waits for the work of the device.
        if self.model.base(address).is_some() {
            self.drain();
        }
        if host && address != 0 {
            let code = unsafe { (self.table.host_free)(at(address)) };
            let expected = self.model.free(address, true);
            self.expect("cuMemFreeHost", code, expected);
        } else {
            let code = unsafe { (self.table.free)(address) };
            let expected = self.model.free(address, false);
            self.expect("cuMemFree", code, expected);
        }
    }

    /// Reads memory, and compares what is known of it.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn read(&mut self, address: u64, count: usize, stream: u64) {
        let Some((expected, known)) = self.model.get(address, count, stream) else { return };
        let mut read = vec![0xEE; count];
        let place = read.as_mut_ptr().cast();
        let code = unsafe { (self.table.to_host)(place, address, count, at(stream)) };
        self.expect("cuMemcpyDtoHAsync", code, expected);
        for (offset, (byte, known)) in read.iter().zip(&known).enumerate() {
            assert_eq!(*byte, known.unwrap_or(*byte), "{offset} bytes behind {address:#x}");
        }
    }

    /// Reads all memory.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(super) fn compare_memory(&mut self) {
        let all: Vec<_> = self.model.memory.iter().filter(|it| it.alive).collect();
        let all: Vec<_> = all
            .iter()
            .map(|it| (self.model.contexts[it.context].handle, it.address, it.bytes.len()))
            .collect();
        for (context, address, count) in all {
            let pushed = unsafe { (self.table.push)(at(context)) };
            let expected = self.model.push(context);
            self.expect("cuCtxPushCurrent", pushed, expected);
            self.read(address, count, 0);
            let popped = unsafe { (self.table.pop)(null_mut()) };
            let expected = self.model.pop();
            self.expect("cuCtxPopCurrent", popped, expected);
        }
    }

    fn word(&self, bytes: &mut Bytes<'_>) -> Word {
        let (address, _) = self.address(bytes);
        let (wide, value) = (bytes.byte() & 1 != 0, u64::from(bytes.byte()));
        let value = if wide { value << 32 | 0x1111 } else { value };
        Word { address, wide, value }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn write_value(&self, word: Word, stream: u64) -> CUresult {
        let Word { address, wide, value } = word;
        unsafe {
            if wide {
                (self.table.write64)(at(stream), address, value, 0)
            } else {
                (self.table.write32)(at(stream), address, value as u32, 0)
            }
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn wait_value(&mut self, bytes: &mut Bytes<'_>) {
        let (mut word, condition) = (self.word(bytes), bytes.below(4) as u32);
        let (waiting, writing) = (self.handle(bytes, 1), self.handle(bytes, 1));
        let wait = |run: &Self, word: Word, condition| {
            let Word { address, wide, value } = word;
            unsafe {
                if wide {
                    (run.table.wait64)(at(waiting), address, value, condition)
                } else {
                    (run.table.wait32)(at(waiting), address, value as u32, condition)
                }
            }
        };
        if let Some(expected) = self.model.wait_value(word, condition, waiting) {
            let code = wait(self, word, condition);
            self.expect("cuStreamWaitValue", code, expected);
            self.settle(waiting);
            return;
        }
        // A stream waits, and another one writes.
        let Some(now) = self.model.value(word) else { return };
        if !self.model.can_pass_a_value(word, waiting, writing) {
            return;
        }
        let mask = if word.wide { u64::MAX } else { u64::from(u32::MAX) };
        word.value = now.wrapping_add(1) & mask;
        let code = wait(self, word, 1);
        self.expect("cuStreamWaitValue", code, (SUCCESS, false));
        let code = unsafe { (self.table.stream_query)(at(waiting)) };
        self.expect("cuStreamQuery", code, (NOT_READY, false));
        let expected = self.model.write_value(word, writing).expect("it was asked");
        let code = self.write_value(word, writing);
        self.expect("cuStreamWriteValue", code, expected);
        self.settle(writing);
        self.settle(waiting);
    }
}
