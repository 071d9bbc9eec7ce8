//! The calls on external semaphores.

use std::fs::File;
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};
use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_soft_driver::{ExternalSemaphore, SemaphoreKind};

use super::{Bytes, Descriptor, Life, NOT_READY, OPAQUE, Run, SUCCESS, TIMELINE, at};

impl Run {
    /// A semaphore: most are alive.
    fn semaphore(&self, bytes: &mut Bytes<'_>) -> u64 {
        let stale = bytes.byte() >= 240;
        let all = self.model.semaphores.iter().filter(|it| stale || it.life == Life::Alive);
        self.one_of(bytes, &all.map(|it| it.handle).collect::<Vec<_>>())
    }

    pub(super) fn semaphores(&mut self, operation: u8, bytes: &mut Bytes<'_>) {
        match operation {
            0 => self.import(bytes),
            1 => self.use_semaphores(bytes),
            2 => self.pass_a_semaphore(bytes),
            _ => {
                let handle = self.semaphore(bytes);
                let Some(expected) = self.model.destroy_semaphore(handle) else { return };
                // SAFETY: misuse is an error on this driver.
                let code = unsafe { (self.table.destroy_semaphore)(at(handle)) };
                self.expect("cuDestroyExternalSemaphore", code, expected);
            }
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn import(&mut self, bytes: &mut Bytes<'_>) {
        let what = [Descriptor::Timeline, Descriptor::Binary][bytes.below(2)];
        let (odd, flags) = (bytes.byte(), u32::from(bytes.byte() >= 248));
        let what = match odd {
            240..=247 => Descriptor::AnotherFile,
            248..=255 => Descriptor::None,
            _ => what,
        };
        let own = if what == Descriptor::Binary { OPAQUE } else { TIMELINE };
        let kind = match bytes.byte() {
            224..=239 => OPAQUE,
            240..=247 => TIMELINE,
            odd @ 248.. => [0, 2, 3, 4, 10, 99, 99, 99][usize::from(odd - 248)],
            _ => own,
        };
        let Some(expected) = self.model.import_semaphore(kind, what, flags) else { return };
        let of = match what {
            Descriptor::Binary => SemaphoreKind::Binary,
            _ => SemaphoreKind::Timeline,
        };
        let made = ExternalSemaphore::new(of).expect("the system has files of memory");
        let file: Option<OwnedFd> = match what {
            Descriptor::AnotherFile => Some(File::open("/dev/null").expect("it is there").into()),
            Descriptor::None => None,
            _ => Some(made.descriptor().expect("a descriptor")),
        };
        let description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_: CUexternalSemaphoreHandleType(kind),
            handle: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u {
                fd: file.as_ref().map_or(-1, |file| file.as_raw_fd()),
            },
            flags,
            ..Default::default()
        };
        let mut semaphore = null_mut();
        let code = unsafe { (self.table.import_semaphore)(&mut semaphore, &description) };
        match expected {
            Ok(context) => {
                self.expect("cuImportExternalSemaphore", code, (SUCCESS, false));
                // It is the driver's now.
                let _ = file.map(|file| file.into_raw_fd());
                let binary = what == Descriptor::Binary;
                self.model.imported_semaphore(context, semaphore.addr() as u64, binary);
                self.theirs.push((semaphore.addr() as u64, made));
            }
            Err(answer) => self.expect("cuImportExternalSemaphore", code, answer),
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn give(&self, all: &[u64], signals: bool, value: u64, stream: u64) -> CUresult {
        let all: Vec<CUexternalSemaphore> = all.iter().map(|it| at(*it)).collect();
        let (handles, count) = (all.as_ptr(), all.len() as u32);
        if signals {
            let mut one = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
            one.params.fence.value = value;
            let params = vec![one; all.len()];
            unsafe { (self.table.signal)(handles, params.as_ptr(), count, at(stream)) }
        } else {
            let mut one = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
            one.params.fence.value = value;
            let params = vec![one; all.len()];
            unsafe { (self.table.wait_semaphores)(handles, params.as_ptr(), count, at(stream)) }
        }
    }

    /// The other API sees the values.
    fn see(&self) {
        for (handle, theirs) in &self.theirs {
            if let Some((_, value)) = self.model.semaphore_value(*handle) {
                assert_eq!(theirs.value(), value, "the value of {handle:#x}");
            }
        }
    }

    fn use_semaphores(&mut self, bytes: &mut Bytes<'_>) {
        let count = [1, 1, 1, 2, 3, 0][bytes.below(6)];
        let all: Vec<u64> = (0..count).map(|_| self.semaphore(bytes)).collect();
        let (signals, stream) = (bytes.byte() & 1 == 0, self.handle(bytes, 1));
        let now = all.iter().filter_map(|it| self.model.semaphore_value(*it));
        let most = now.map(|(_, value)| value).max().unwrap_or(0);
        let value = if signals { most + 1 + u64::from(bytes.byte() & 3) } else { most };
        let expected = self.model.use_semaphores(&all, signals, value, stream);
        let Some(expected) = expected else { return };
        let code = self.give(&all, signals, value, stream);
        self.expect("cuExternalSemaphoresAsync", code, expected);
        self.settle(stream);
        self.see();
    }

    /// A stream waits for a semaphore, which another stream or the other API then signals.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn pass_a_semaphore(&mut self, bytes: &mut Bytes<'_>) {
        let (handle, waiting) = (self.semaphore(bytes), self.handle(bytes, 1));
        let signalling = self.handle(bytes, 1);
        let signalling = (bytes.byte() & 1 == 0).then_some(signalling);
        let Some((binary, now)) = self.model.semaphore_value(handle) else { return };
        if (binary && now != 0) || !self.model.can_pass_a_semaphore(handle, waiting, signalling) {
            return;
        }
        let value = now + 1;
        let code = self.give(&[handle], false, value, waiting);
        self.expect("cuWaitExternalSemaphoresAsync", code, (SUCCESS, false));
        let code = unsafe { (self.table.stream_query)(at(waiting)) };
        self.expect("cuStreamQuery", code, (NOT_READY, false));
        match signalling {
            Some(stream) => {
                let code = self.give(&[handle], true, value, stream);
                self.expect("cuSignalExternalSemaphoresAsync", code, (SUCCESS, false));
                self.settle(stream);
            }
            None => {
                let theirs = self.theirs.iter().rfind(|it| it.0 == handle).expect("it is ours");
                theirs.1.signal(value);
            }
        }
        self.model.passed_a_semaphore(handle, value);
        self.settle(waiting);
        self.see();
    }
}
