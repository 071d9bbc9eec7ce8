//! The contexts that were current, and green ones.

use std::collections::{BTreeMap, HashMap, HashSet};

use cuda_order_check_engine::ContextId;

use crate::call::Handle;
use crate::state::driver::Questions;

pub(crate) struct Contexts {
    pub(crate) questions: Questions,
    /// The contexts that were seen, each with its device.
    pub(crate) devices: BTreeMap<Handle, i32>,
    /// Green contexts, each with its device and the contexts that stand for it.
    pub(crate) greens: HashMap<Handle, (i32, Vec<Handle>)>,
    /// The first of two has peer access to the memory of the second.
    pub(crate) peers: HashSet<(Handle, Handle)>,
}

impl Contexts {
    pub(crate) fn new(questions: Questions) -> Self {
        Self { questions, devices: BTreeMap::new(), greens: HashMap::new(), peers: HashSet::new() }
    }

    /// The current context and its device.
    pub(crate) fn current(&mut self) -> (Handle, i32) {
        let (mut context, mut device) = (0, 0);
        if let (Some(current), Some(device_of)) = (self.questions.current, self.questions.device) {
            // SAFETY: places for the answers.
            unsafe { (current(&mut context), device_of(&mut device)) };
        }
        self.devices.insert(context, device);
        (context, device)
    }

    pub(crate) fn handle(&self) -> Handle {
        let mut context = 0;
        if let Some(current) = self.questions.current {
            // SAFETY: a place for the answer.
            unsafe { current(&mut context) };
        }
        context
    }

    /// Whether contexts of two devices were seen.
    pub(crate) fn of_several_devices(&self) -> bool {
        // No context may have been current.
        let mut all =
            self.devices.iter().filter(|(context, _)| **context != 0).map(|(_, device)| device);
        all.next().is_some_and(|first| all.any(|device| device != first))
    }

    /// Whether no second context was seen. No context may have been current.
    pub(crate) fn are_one(&self) -> bool {
        self.devices.keys().filter(|context| **context != 0).count() <= 1
    }

    pub(crate) fn ends(&mut self, context: Handle) {
        self.devices.remove(&context);
        self.peers.retain(|(from, to)| ![*from, *to].contains(&context));
    }

    /// The handles of the contexts of a device.
    pub(crate) fn named(&self, device: i32) -> Vec<Handle> {
        let all = self.devices.iter().filter(|(context, own)| **context != 0 && **own == device);
        all.map(|(context, _)| *context).collect()
    }

    /// All contexts that were seen, or those of a device.
    pub(crate) fn on_device(&self, device: Option<i32>) -> Vec<ContextId> {
        let is_on = |own: &i32| device.is_none_or(|device| *own == device);
        let all = self.devices.iter().filter(|(_, own)| is_on(own));
        all.map(|(context, _)| ContextId(*context as u64)).collect()
    }

    /// The contexts of other devices.
    pub(crate) fn beside(&self, device: i32) -> Vec<ContextId> {
        let all = self.devices.iter().filter(|(_, at)| **at != device);
        all.map(|(context, _)| ContextId(*context as u64)).collect()
    }

    /// The contexts whose work a wait for a context waits for: a green one has those that stand for
    /// it, and the work of these is in another one of their device.
    pub(crate) fn waited_for(&mut self, context: Handle) -> Vec<ContextId> {
        if let Some((_, contexts)) = self.greens.get(&context) {
            return contexts
                .iter()
                .chain([&context])
                .map(|context| ContextId(*context as u64))
                .collect();
        }
        let current = self.current();
        let context = if context == 0 { current.0 } else { context };
        match self.devices.get(&context) {
            Some(device) if !self.greens.is_empty() => self.on_device(Some(*device)),
            _ => vec![ContextId(context as u64)],
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;

    use super::Contexts;
    use crate::call::{Code, Handle, OK};
    use crate::state::driver::Questions;

    extern "C" fn current(context: *mut Handle) -> Code {
        // SAFETY: a place for the answer.
        unsafe { *context = 7 };
        OK
    }

    extern "C" fn device(device: *mut i32) -> Code {
        // SAFETY: as above.
        unsafe { *device = 1 };
        OK
    }

    /// Streams may be in the green context itself, and in a context that stands for it.
    #[test]
    fn a_wait_for_a_context_is_one_for_its_parts() {
        let resolve = |name: &core::ffi::CStr| match name.to_bytes() {
            b"cuCtxGetCurrent" => current as *mut c_void,
            b"cuCtxGetDevice" => device as *mut c_void,
            _ => core::ptr::null_mut(),
        };
        let mut contexts = Contexts::new(Questions::new(&resolve));
        let mut waited_for = |greens: bool, context| {
            contexts.devices = [(5, 0), (6, 1)].into();
            contexts.greens.clear();
            if greens {
                contexts.greens.insert(9, (1, vec![6, 8]));
            }
            let all = contexts.waited_for(context);
            let mut all: Vec<u64> = all.into_iter().map(|context| context.0).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(waited_for(true, 9), [6, 8, 9]);
        // One that is not green, of the device and of another one, and the current one.
        assert_eq!(waited_for(true, 6), [6, 7]);
        assert_eq!(waited_for(true, 5), [5]);
        assert_eq!(waited_for(true, 0), [6, 7]);
        // One that was not seen may be any.
        assert_eq!(waited_for(true, 3), [3]);
        for (context, all) in [(0, 7), (5, 5), (6, 6), (9, 9)] {
            assert_eq!(waited_for(false, context), [all]);
        }
    }

    #[test]
    fn devices_and_peers_are_those_of_contexts_that_are_there() {
        let mut contexts = Contexts::new(Questions::new(&|_| core::ptr::null_mut()));
        // No context was current in a call: that is none of device 0.
        contexts.devices = [(0, 0), (6, 1)].into();
        assert!(!contexts.of_several_devices());
        contexts.devices = [(5, 0), (6, 1), (7, 0)].into();
        contexts.peers = [(5, 6), (6, 5), (6, 7)].into();
        assert!(contexts.of_several_devices());
        assert_eq!((contexts.named(0), contexts.named(1)), (vec![5, 7], vec![6]));
        // A later context may have its handle, and no access.
        contexts.ends(5);
        assert_eq!(contexts.peers, [(6, 7)].into());
        contexts.ends(6);
        assert!(contexts.peers.is_empty() && !contexts.of_several_devices());
    }
}
