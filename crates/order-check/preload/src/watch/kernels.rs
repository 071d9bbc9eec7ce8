//! Kernels: what their parameters point to.

use super::later::Work;
use super::nodes::CHANGEABLE;
use super::*;

/// What is known of a kernel: its parameters, and the words in them that may be addresses.
#[derive(Default)]
pub(super) struct Kernel {
    /// The call and the kernel, for reports.
    name: &'static str,
    parameters: Vec<Parameter>,
    launches: u32,
    /// How many of its words were addresses at the last launch.
    addresses: usize,
    /// The unloads of code that there had been when the driver was asked.
    unloads: u64,
}

struct Parameter {
    offset: usize,
    size: usize,
    /// The words of a structure.
    words: Vec<Part>,
}

/// A word within a structure. It may be one that the program never sets, and that holds an old
/// address.
#[derive(Clone, Copy, Default)]
struct Part {
    /// The name of the operations that use it, once it was an address of known memory.
    name: Option<&'static str>,
    /// In how many launches it was one.
    hits: u32,
}

/// After so many launches, or at the end, a word within a structure is an address if it was one at
/// nine of ten.
const LAUNCHES: u32 = 10;

impl Parameter {
    fn new((offset, size): (usize, usize)) -> Self {
        let count = if size > 8 { size / 8 } else { 0 };
        Self { offset, size, words: vec![Part::default(); count] }
    }

    /// Where its words begin. They are aligned in the buffer of all parameters.
    fn whole_words(&self) -> impl Iterator<Item = usize> + use<> {
        let first = self.offset.next_multiple_of(8) - self.offset;
        (first..self.size.saturating_sub(7)).step_by(8)
    }
}

/// How many kernels are known before those of unloaded code are forgotten.
pub(super) const KERNELS: usize = 256;

/// A name that stays.
fn kept(names: &mut HashSet<&'static str>, name: String) -> &'static str {
    if let Some(known) = names.get(&*name) {
        return known;
    }
    let name = String::leak(name);
    names.insert(name);
    name
}

/// The least size of a pool.
const POOL: u64 = 32 << 20;

impl Kernel {
    /// The words of the parameters that a launch has.
    ///
    /// # Safety
    ///
    /// What the program gave to the launch: the addresses of the parameters, or NULL, and a list
    /// that ends with 0, or NULL.
    unsafe fn values(
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
    pub(super) fn judged(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let least = self.launches * 9;
        let parts = self.parameters.iter().flat_map(|parameter| &parameter.words);
        parts.filter_map(move |part| Some((part.name?, part.hits * 10 >= least)))
    }
}

/// What a launch reads: what is an address, and the words that may be none.
type Reads = (Vec<Access>, Vec<Open>);

/// A word within a structure of which it is not known yet whether it counts.
pub(super) struct Open {
    /// The name of the operations that use it.
    word: &'static str,
    pub(super) access: Access,
    /// Whether it would count by what was seen so far, with a launch before this one. That has to
    /// do for a kernel in a graph: a finding is about a launch of the graph, and cannot be held
    /// back.
    pub(super) likely: bool,
}

/// The least part of `CUlaunchConfig` that matters.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    sizes: [c_uint; 7],
    stream: Handle,
    attributes: Handle,
    count: c_uint,
}

impl LaunchConfig {
    pub(super) fn stream(&self) -> Handle {
        self.stream
    }
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Attribute {
    id: c_uint,
    value: [u64; 8],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<Attribute>() == 72);

/// A function's name as in its source, unless that is very long: templates of templates can be.
pub(super) fn demangled(name: &str) -> Option<String> {
    const LONG: usize = 1000;
    let name = cpp_demangle::Symbol::new(name).ok()?.demangle().ok()?;
    (name.len() <= LONG).then_some(name)
}

impl Questions {
    /// Whether the driver says where the parameters of kernels are, as it does since CUDA 12.4.
    pub(super) fn describe_kernels(&self) -> bool {
        self.kernel_parameter.or(self.function_parameter).is_some()
    }

    /// The name of a kernel, and the offset and the size of each parameter.
    fn kernel(&self, function: Handle) -> (Option<String>, Vec<(usize, usize)>) {
        let of = |ask: ParamInfo| {
            let parameter = |index| {
                let (mut offset, mut size) = (0, 0);
                // SAFETY: a handle that the driver has just launched, and places for the answers.
                let code = unsafe { ask(function, index, &mut offset, &mut size) };
                (code == OK).then_some((offset, size))
            };
            (0..).map_while(parameter).collect::<Vec<_>>()
        };
        let named = |ask: NameOf| {
            let mut name = core::ptr::null();
            // SAFETY: as above; the name is a C string of the driver's.
            let text = unsafe {
                match ask(&mut name, function) {
                    OK if !name.is_null() => CStr::from_ptr(name).to_string_lossy(),
                    _ => return None,
                }
            };
            Some(demangled(&text).unwrap_or_else(|| text.into_owned()))
        };
        // A handle of the other kind is refused.
        let parameters = [self.kernel_parameter, self.function_parameter].into_iter().flatten();
        let all = parameters.map(of).find(|all| !all.is_empty());
        let mut names = [self.kernel_name, self.function_name].into_iter().flatten();
        (names.find_map(named), all.unwrap_or_default())
    }
}

impl Watch {
    /// The name of a kernel's launches.
    fn kernel(&mut self, call: &Call, function: Handle) -> &'static str {
        let unloads = self.unloads;
        match self.kernels.get(&function) {
            Some(kernel) if kernel.unloads == unloads => kernel.name,
            _ => self.look_up(call, function),
        }
    }

    fn look_up(&mut self, call: &Call, function: Handle) -> &'static str {
        let unloads = self.unloads;
        let (text, parameters) = self.questions.kernel(function);
        // After an unload the handle may be that of another one.
        let same = |kernel: &&mut Kernel| {
            let own = kernel.name.split_once(" of ").map(|(_, name)| name);
            let sizes = kernel.parameters.iter().map(|of| (of.offset, of.size));
            own == text.as_deref() && sizes.eq(parameters.iter().copied())
        };
        if let Some(kernel) = self.kernels.get_mut(&function).filter(same) {
            kernel.unloads = unloads;
            return kernel.name;
        }
        let named = |name| kept(&mut self.names, format!("{} of {name}", call.name));
        let name = text.map_or(call.name, named);
        let parameters = parameters.into_iter().map(Parameter::new).collect();
        let new = Kernel { name, parameters, unloads, ..Kernel::default() };
        if let Some(old) = self.kernels.insert(function, new) {
            self.feed.observer_mut().decide(old.judged());
        }
        if self.kernels.len() > self.most_kernels {
            // Those that are launched again are looked up anew.
            let gone: Vec<Kernel> =
                self.kernels.extract_if(|_, of| of.unloads != unloads).map(|of| of.1).collect();
            let words = gone.iter().flat_map(Kernel::judged);
            self.feed.observer_mut().decide(words);
            self.most_kernels = KERNELS.max(2 * self.kernels.len());
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
    pub(super) fn pointed_to(
        &mut self,
        function: Handle,
        parameters: *const Handle,
        extra: *const Handle,
    ) -> Reads {
        // Its name is that of launches, and classes of findings go by it.
        self.kernel(&Call { name: "cuLaunchKernel", per_thread: false }, function);
        let mut values = Vec::new();
        if let Some(kernel) = self.kernels.get(&function) {
            // SAFETY: what the program gave to the call.
            unsafe { kernel.values(parameters, extra, &mut values) };
        }
        self.addresses(function, &values, false)
    }

    /// The same of a kernel that was looked up, with the words of its parameters: of a launch or of
    /// a node.
    pub(super) fn addresses(&mut self, function: Handle, values: &[u64], launched: bool) -> Reads {
        let one = u32::from(launched);
        let settings = &self.feed.observer().settings;
        let has = |kind| settings.has(kind);
        let (pools, kind) = (
            has(Kind::Pools),
            match has(Kind::Reads) || has(Kind::Kernels) {
                true => AccessKind::Write,
                false => AccessKind::Read,
            },
        );
        let Self { kernels, feed, names, .. } = self;
        let Some(kernel) = kernels.get_mut(&function) else { return Reads::default() };
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
}

impl Watch {
    /// Each is an operation of its own, so that what is found of it can be held back.
    pub(super) fn open_words(&mut self, kernel: &'static str, stream: StreamId, open: Vec<Open>) {
        let launch = self.feed.caller();
        let captured = self.feed.capture_of(stream).is_some();
        for Open { word, access, .. } in open.into_iter().filter(|of| !captured || of.likely) {
            let words = &mut self.feed.observer_mut().words;
            words.entry(word).or_insert(Word { kernel, counts: None });
            let mut call = launch.clone();
            call.name = word.into();
            self.feed.resume(call);
            self.kernel_part(stream, &[access]);
        }
        self.feed.resume(launch);
    }

    pub(super) fn kernel_part(&mut self, stream: StreamId, accesses: &[Access]) {
        self.feed.work(stream, accesses);
        if self.feed.capture_of(stream).is_some()
            && accesses.iter().any(|of| of.kind == AccessKind::Write)
        {
            self.node(stream, Node::Work);
        }
    }
}

fn launched(
    call: &Call,
    real: impl FnOnce() -> Code,
    function: Handle,
    stream: Handle,
    parameters: *const Handle,
    extra: *const Handle,
    records: &[Handle],
) -> Code {
    let code = real();
    if code != OK {
        return code;
    }
    enter(|watch| {
        let name = watch.kernel(call, function);
        watch.seen.kernels += 1;
        watch.later(call, name, stream, records.is_empty(), |watch| {
            note(|| format!(" [{name}]"));
            let Watch { waiting, kernels, .. } = watch;
            if let Some(kernel) = kernels.get(&function) {
                // SAFETY: what the program gave to the call.
                unsafe { kernel.values(parameters, extra, &mut waiting.values) };
            }
            Work::Launch { name, function, end: waiting.values.len() }
        });
        for event in records {
            let stream = watch.stream(call, stream);
            watch.feed.record(EventId(*event as u64), stream);
        }
    });
    code
}

pub(crate) fn launch(
    call: &Call,
    real: impl FnOnce() -> Code,
    function: Handle,
    stream: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    launched(call, real, function, stream, parameters, extra, &[])
}

pub(crate) fn launch_ex(
    call: &Call,
    real: impl FnOnce() -> Code,
    config: *const LaunchConfig,
    function: Handle,
    parameters: *const Handle,
    extra: *const Handle,
) -> Code {
    // SAFETY: NULL or the program's description, with so many attributes.
    let config = unsafe { read(config) };
    let attribute = |at: usize| {
        let first: *const Attribute = core::ptr::with_exposed_provenance(config.attributes);
        // SAFETY: as above.
        unsafe { first.add(at).read() }
    };
    let count = if config.attributes == 0 { 0 } else { config.count as usize };
    if (0..count).map(attribute).any(|of| of.id == CHANGEABLE) {
        // The driver is asked for the node.
        enter(|watch| {
            let capture = watch.known_stream(call, config.stream);
            watch.partial.extend(capture.and_then(|of| watch.feed.capture_of(of)));
        });
    }
    // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT and _LAUNCH_COMPLETION_EVENT: events that are recorded
    // before the kernel has ended. What waits for them is taken to be after all of it.
    let records = (0..count).map(attribute).filter(|of| matches!(of.id, 7 | 12));
    let records: Vec<Handle> = records.map(|of| of.value[0] as Handle).collect();
    launched(call, real, function, config.stream, parameters, extra, &records)
}

#[cfg(test)]
mod tests;
