//! Kernels: what their parameters point to.

use core::ffi::c_uint;
use std::collections::{HashMap, HashSet};

use cuda_order_check::feed::Feed;
use cuda_order_check::{Access, AccessKind};

use crate::call::{Call, Handle};
use crate::model::driver::Questions;
use crate::report::output::Output;
use crate::report::trace::note;
use crate::settings::Kind;

/// What is known of a kernel: its parameters, and the words in them that may be addresses.
#[derive(Default)]
pub(crate) struct Kernel {
    /// The call and the kernel, for reports.
    pub(crate) name: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) launches: u64,
    /// How many of its words were addresses at the last launch.
    pub(crate) addresses: usize,
    /// The unloads of code that there had been when the driver was asked.
    pub(crate) unloads: u64,
}

pub(crate) struct Parameter {
    pub(crate) offset: usize,
    pub(crate) size: usize,
    /// The words of a structure.
    pub(crate) words: Vec<Part>,
}

/// A word within a structure. It may be one that the program never sets, and that holds an old
/// address.
#[derive(Clone, Copy, Default)]
pub(crate) struct Part {
    /// The name of the operations that use it, once it was an address of known memory.
    pub(crate) name: Option<&'static str>,
    /// In how many launches it was one.
    pub(crate) hits: u64,
}

/// After so many launches, or at the end, a word within a structure is an address if it was one at
/// nine of ten.
pub(crate) const LAUNCHES: u64 = 10;

impl Parameter {
    pub(crate) fn new((offset, size): (usize, usize)) -> Self {
        let count = if size > 8 { size / 8 } else { 0 };
        Self { offset, size, words: vec![Part::default(); count] }
    }

    /// Where its words begin. They are aligned in the buffer of all parameters.
    pub(crate) fn whole_words(&self) -> impl Iterator<Item = usize> + use<> {
        let first = self.offset.next_multiple_of(8) - self.offset;
        (first..self.size.saturating_sub(7)).step_by(8)
    }
}

/// How many kernels are known before those of unloaded code are forgotten.
pub(crate) const KERNELS: usize = 256;

/// A name that stays.
pub(crate) fn kept(names: &mut HashSet<&'static str>, name: String) -> &'static str {
    if let Some(known) = names.get(&*name) {
        return known;
    }
    let name = String::leak(name);
    names.insert(name);
    name
}

/// The least size of a pool.
pub(crate) const POOL: u64 = 32 << 20;

impl Kernel {
    /// The words of the parameters that a launch has.
    ///
    /// # Safety
    ///
    /// What the program gave to the launch: the addresses of the parameters, or NULL, and a list
    /// that ends with 0, or NULL.
    pub(crate) unsafe fn values(
        &self,
        parameters: *const Handle,
        extra: *const Handle,
        values: &mut Vec<u64>,
    ) {
        // SAFETY: a list that ends with 0; 1 stands before the address of a buffer.
        let buffer = unsafe {
            let mut at = extra;
            loop {
                match if at.is_null() { 0 } else { at.read() } {
                    0 => break None,
                    1 => break Some(at.add(1).read()),
                    _ => at = at.add(2),
                }
            }
        };
        if buffer.is_none() && parameters.is_null() {
            return;
        }
        for (index, parameter) in self.parameters.iter().enumerate() {
            let base = match buffer {
                Some(buffer) => buffer + parameter.offset,
                // SAFETY: the program gives the address of each parameter.
                None => unsafe { parameters.add(index).read() },
            };
            values.extend(parameter.whole_words().map(|at| {
                let word: *const u64 = core::ptr::with_exposed_provenance(base + at);
                // SAFETY: within the parameter.
                unsafe { word.read_unaligned() }
            }));
        }
    }

    /// Whether each word within a structure is an address.
    pub(crate) fn judged(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let least = self.launches * 9;
        let parts = self.parameters.iter().flat_map(|parameter| &parameter.words);
        parts.filter_map(move |part| Some((part.name?, part.hits * 10 >= least)))
    }
}

/// What a launch reads: what is an address, and the words that may be none.
pub(crate) type Reads = (Vec<Access>, Vec<Open>);

/// A word within a structure of which it is not known yet whether it counts.
pub(crate) struct Open {
    /// The name of the operations that use it.
    pub(crate) word: &'static str,
    pub(crate) access: Access,
    /// Whether it would count by what was seen so far, with a launch before this one. That has to
    /// do for a kernel in a graph: a finding is about a launch of the graph, and cannot be held
    /// back.
    pub(crate) likely: bool,
}

/// The least part of `CUlaunchConfig` that matters.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) sizes: [c_uint; 7],
    pub(crate) stream: Handle,
    pub(crate) attributes: Handle,
    pub(crate) count: c_uint,
}

impl LaunchConfig {
    pub(crate) fn stream(&self) -> Handle {
        self.stream
    }
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Attribute {
    pub(crate) id: c_uint,
    pub(crate) value: [u64; 8],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<Attribute>() == 72);

/// What is known of kernels' parameters.
#[derive(Default)]
pub(crate) struct Kernels {
    pub(crate) known: HashMap<Handle, Kernel>,
    /// How many there may be before those of unloaded code are forgotten.
    pub(crate) most: usize,
    /// The names of kernels and of their words. They are never freed, as reports may last.
    pub(crate) names: HashSet<&'static str>,
    /// How often code was unloaded: handles of kernels may be those of others since.
    pub(crate) unloads: u64,
    /// The contexts and kernels that were loaded.
    pub(crate) loaded: HashSet<(Handle, Handle)>,
}

impl Kernels {
    pub(crate) fn new() -> Self {
        Self { most: KERNELS, ..Self::default() }
    }

    /// The name of a kernel's launches.
    pub(crate) fn name_of(
        &mut self,
        feed: &mut Feed<Output>,
        questions: &Questions,
        call: &Call,
        function: Handle,
    ) -> &'static str {
        let unloads = self.unloads;
        match self.known.get(&function) {
            Some(kernel) if kernel.unloads == unloads => kernel.name,
            _ => self.look_up(feed, questions, call, function),
        }
    }

    pub(crate) fn look_up(
        &mut self,
        feed: &mut Feed<Output>,
        questions: &Questions,
        call: &Call,
        function: Handle,
    ) -> &'static str {
        let unloads = self.unloads;
        let (text, parameters) = questions.kernel(function);
        // After an unload the handle may be that of another one.
        let same = |kernel: &&mut Kernel| {
            let own = kernel.name.split_once(" of ").map(|(_, name)| name);
            let sizes = kernel.parameters.iter().map(|of| (of.offset, of.size));
            own == text.as_deref() && sizes.eq(parameters.iter().copied())
        };
        if let Some(kernel) = self.known.get_mut(&function).filter(same) {
            kernel.unloads = unloads;
            return kernel.name;
        }
        let named = |name| kept(&mut self.names, format!("{} of {name}", call.name));
        let name = text.map_or(call.name, named);
        let parameters = parameters.into_iter().map(Parameter::new).collect();
        let new = Kernel { name, parameters, unloads, ..Kernel::default() };
        if let Some(old) = self.known.insert(function, new) {
            feed.observer_mut().decide(old.judged());
        }
        if self.known.len() > self.most {
            // Those that are launched again are looked up anew.
            let gone: Vec<Kernel> =
                self.known.extract_if(|_, of| of.unloads != unloads).map(|of| of.1).collect();
            let words = gone.iter().flat_map(Kernel::judged);
            feed.observer_mut().decide(words);
            self.most = KERNELS.max(2 * self.known.len());
        }
        name
    }

    /// The bytes that a kernel's parameters point to, as far as they are addresses of known memory.
    /// What the kernel does there is not known: it counts as a read of the one byte, which any
    /// copy, memset or free of that byte must be ordered with. Classes of findings that are off by
    /// default make more of it.
    ///
    /// They are those of a graph's node. It is no launch, however often it is looked at: only
    /// launches show which words within structures are addresses.
    pub(crate) fn pointed_to(
        &mut self,
        feed: &mut Feed<Output>,
        questions: &Questions,
        function: Handle,
        parameters: *const Handle,
        extra: *const Handle,
    ) -> Reads {
        // Its name is that of launches, and classes of findings go by it.
        self.name_of(
            feed,
            questions,
            &Call { name: "cuLaunchKernel", per_thread: false },
            function,
        );
        let mut values = Vec::new();
        if let Some(kernel) = self.known.get(&function) {
            // SAFETY: what the program gave to the call.
            unsafe { kernel.values(parameters, extra, &mut values) };
        }
        self.addresses(feed, function, &values, false)
    }

    /// The same of a kernel that was looked up, with the words of its parameters: of a launch or of
    /// a node.
    pub(crate) fn addresses(
        &mut self,
        feed: &mut Feed<Output>,
        function: Handle,
        values: &[u64],
        launched: bool,
    ) -> Reads {
        let one = u64::from(launched);
        let settings = &feed.observer().settings;
        let has = |kind| settings.has(kind);
        let (pools, kind) = (
            has(Kind::Pools),
            match has(Kind::Reads) || has(Kind::Kernels) {
                true => AccessKind::Write,
                false => AccessKind::Read,
            },
        );
        let Self { known, names, .. } = self;
        let Some(kernel) = known.get_mut(&function) else { return Reads::default() };
        kernel.launches += one;
        let launches = kernel.launches;
        let (mut accesses, mut open) = (Vec::with_capacity(kernel.addresses), Vec::new());
        let mut values = values.iter();
        for (index, parameter) in kernel.parameters.iter_mut().enumerate() {
            let (all, size) = (parameter.whole_words(), parameter.size);
            for ((part, at), &word) in all.enumerate().zip(&mut values) {
                if feed.memory(word).is_none() {
                    continue;
                }
                let of = if pools { feed.bytes_at(word) } else { None };
                let access = Access::new(kind, word, of.filter(|of| *of >= POOL).unwrap_or(1));
                note(|| format!(" {index}+{at}/{size}:{word:#x}"));
                let Some(part) = parameter.words.get_mut(part) else {
                    accesses.push(access);
                    continue;
                };
                let name = *part.name.get_or_insert_with(|| {
                    kept(names, format!("{}, byte {at} of parameter {index}", kernel.name))
                });
                part.hits += one;
                let counts = part.hits * 10 >= launches * 9;
                if launches < LAUNCHES {
                    // A launch that is captured says nothing of itself.
                    let likely = counts && launches > one;
                    open.push(Open { word: name, access, likely });
                } else if counts {
                    accesses.push(access);
                }
            }
        }
        kernel.addresses = accesses.len();
        if launched && launches == LAUNCHES {
            feed.observer_mut().decide(kernel.judged());
        }
        (accesses, open)
    }

    /// Code was unloaded: its kernels' handles may be those of others.
    pub(crate) fn unloaded(&mut self) {
        self.unloads += 1;
        self.loaded.clear();
    }
}
