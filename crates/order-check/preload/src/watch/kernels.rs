//! Kernels: what their parameters point to.

use super::*;

/// What is known of a kernel: its parameters, and the words in them that may be addresses.
#[derive(Default)]
pub(super) struct Kernel {
    /// The call and the kernel, for reports; never freed, as those may last.
    name: &'static str,
    /// Offset and size of each.
    parameters: Vec<(usize, usize)>,
    launches: u32,
    /// The words within structures: the name of the operations that use each, and in how many
    /// launches it was an address of known memory. A structure may have words that the program
    /// never sets, and that hold old addresses.
    words: HashMap<(usize, usize), (&'static str, u32)>,
}

/// After so many launches, or at the end, a word within a structure is an address if it was one at
/// nine of ten.
const LAUNCHES: u32 = 10;

impl Kernel {
    /// Whether each word within a structure is an address.
    pub(super) fn judged(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let least = self.launches * 9;
        self.words.values().map(move |(name, hits)| (*name, hits * 10 >= least))
    }
}

/// What a launch reads: what is an address, and the words that may be none, by their operations.
type Reads = (Vec<Access>, Vec<(&'static str, Access)>);

/// The least part of `CUlaunchConfig` that matters.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct LaunchConfig {
    sizes: [c_uint; 7],
    stream: Handle,
    attributes: Handle,
    count: c_uint,
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Attribute {
    id: c_uint,
    value: [u64; 8],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<Attribute>() == 72);

impl Watch {
    fn kernel(&mut self, call: &Call, function: Handle) -> &mut Kernel {
        let Questions { parameters, names, .. } = self.questions;
        self.kernels.entry(function).or_insert_with(|| {
            let of = |ask: ParamInfo| {
                let parameter = |index| {
                    let (mut offset, mut size) = (0, 0);
                    // SAFETY: a handle that the driver has just launched, and places for the
                    // answers.
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
                Some(&*String::leak(format!("{} of {text}", call.name)))
            };
            // A handle of the other kind is refused.
            let all = parameters.into_iter().flatten().map(of).find(|all| !all.is_empty());
            let name = names.into_iter().flatten().find_map(named).unwrap_or(call.name);
            Kernel { name, parameters: all.unwrap_or_default(), ..Kernel::default() }
        })
    }

    /// The bytes that a kernel's parameters point to, as far as they are addresses of known memory.
    /// What the kernel does there is not known: it counts as a read of the one byte, which any
    /// copy, memset or free of that byte must be ordered with.
    fn pointed_to(
        &mut self,
        call: &Call,
        function: Handle,
        parameters: *const Handle,
        extra: *const Handle,
    ) -> Reads {
        let kernel = self.kernel(call, function);
        kernel.launches += 1;
        let (launches, all) = (kernel.launches, kernel.parameters.clone());
        let launch = kernel.name;
        // SAFETY: `extra` is a list that ends with 0; 1 stands before the address of a buffer.
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
        let (mut accesses, mut open) = (Vec::new(), Vec::new());
        for (index, (offset, size)) in all.into_iter().enumerate() {
            let base = match buffer {
                Some(buffer) => buffer + offset,
                None if parameters.is_null() => continue,
                // SAFETY: the program gives the address of each parameter.
                None => unsafe { parameters.add(index).read() },
            };
            // Words are aligned in the buffer of all parameters.
            let first = offset.next_multiple_of(8) - offset;
            for at in (first..size.saturating_sub(7)).step_by(8) {
                let word: *const u64 = core::ptr::with_exposed_provenance(base + at);
                // SAFETY: within the parameter.
                let word = unsafe { word.read_unaligned() };
                if self.feed.memory(word).is_none() {
                    continue;
                }
                let access = Access::read(word, 1);
                note(|| format!(" {index}+{at}/{size}:{word:#x}"));
                if size <= 8 {
                    accesses.push(access);
                    continue;
                }
                let words = &mut self.kernel(call, function).words;
                let (name, hits) = words.entry((index, at)).or_insert_with(|| {
                    let name = format!("{launch}, byte {at} of parameter {index}");
                    (String::leak(name), 0)
                });
                *hits += 1;
                if launches < LAUNCHES {
                    open.push((*name, access));
                } else if *hits * 10 >= launches * 9 {
                    accesses.push(access);
                }
            }
        }
        if launches == LAUNCHES {
            let words: Vec<_> = self.kernel(call, function).judged().collect();
            self.feed.observer_mut().decide(words.into_iter());
        }
        (accesses, open)
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
    let Some(name) = with(|watch| watch.kernel(call, function).name) else { return code };
    begin(&Call { name, per_thread: call.per_thread }, |watch| {
        let stream = watch.stream(call, stream);
        note(|| format!(" [{name}]"));
        let (accesses, open) = watch.pointed_to(call, function, parameters, extra);
        let launch = watch.feed.caller();
        for (word, access) in open {
            let words = &mut watch.feed.observer_mut().words;
            words.entry(word).or_insert(Word { kernel: name, counts: None });
            let mut call = launch.clone();
            call.name = word.into();
            watch.feed.resume(call);
            watch.feed.work(stream, &[access]);
        }
        watch.feed.resume(launch);
        watch.feed.work(stream, &accesses);
        for event in records {
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
    // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT and _LAUNCH_COMPLETION_EVENT: events that are recorded
    // before the kernel has ended. What waits for them is taken to be after all of it.
    let records = (0..count).map(attribute).filter(|of| matches!(of.id, 7 | 12));
    let records: Vec<Handle> = records.map(|of| of.value[0] as Handle).collect();
    launched(call, real, function, config.stream, parameters, extra, &records)
}
