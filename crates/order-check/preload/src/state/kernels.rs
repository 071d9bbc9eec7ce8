//! Kernels: their parameters, and where their code is.

use core::ffi::c_uint;
use core::ops::Range;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_order_check_engine::feed::{Feed, Memory};
use cuda_order_check_engine::map::Map;
use cuda_order_check_engine::{Access, AccessKind, Launched, StreamId};

use crate::call::{Call, Handle, OK};
use crate::code::image::{Image, Variable};
use crate::code::kernel::KernelCode;
use crate::code::kernel::demangled;
use crate::code::launch::{Sizes, Values};
use crate::code::signals;
use crate::report::output::Output;
use crate::report::trace::note;
use crate::settings::Kind;
use crate::state::driver::Questions;
use crate::state::uploads::Uploads;

/// A kernel that was looked up: its parameters and its code.
pub(crate) struct Kernel {
    /// The call and the kernel, for reports.
    pub(crate) name: &'static str,
    /// The offset and the size of each parameter.
    pub(crate) parameters: Vec<(usize, usize)>,
    /// The words that all of them have, and those of one parameter each.
    words: usize,
    may_be_addresses: Vec<Word>,
    pub(crate) code: Arc<KernelCode>,
    /// The unloads of code that there had been when the driver was asked.
    unloads: u64,
}

/// A word of the parameters: its number, and the parameter that it is in, at this offset.
struct Word {
    number: usize,
    index: usize,
    at: usize,
}

/// The most bytes of a kernel's parameters.
const PARAMETERS: usize = 1 << 16;

/// Where the words of a parameter begin. They are aligned in the buffer of all parameters.
fn whole_words((offset, size): (usize, usize)) -> impl Iterator<Item = usize> {
    let first = offset.next_multiple_of(8) - offset;
    (first..size.saturating_sub(7)).step_by(8)
}

/// How many kernels there may be before those of unloaded code are forgotten.
pub(crate) const KERNELS: usize = 256;

/// A copy of a name that lives as long as the process, one for all that are equal.
pub(crate) fn lasting(names: &mut HashSet<&'static str>, name: String) -> &'static str {
    if let Some(name) = names.get(&*name) {
        return name;
    }
    let name = String::leak(name);
    names.insert(name);
    name
}

/// The least size of a pool.
pub(crate) const POOL: u64 = 32 << 20;

impl Kernel {
    /// The words of a launch that may be addresses.
    pub(crate) fn addresses(&self, values: &[u64]) -> impl Iterator<Item = u64> {
        self.may_be_addresses.iter().filter_map(|word| values.get(word.number).copied())
    }

    /// The words of the parameters that a launch has; none if the program gives none.
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
        let first = values.len();
        values.resize(first + self.words, 0);
        let Some(words) = values.get_mut(first..) else { return };
        let place = words.as_mut_ptr().cast::<u8>();
        for (index, (offset, size)) in self.parameters.iter().enumerate() {
            let base = match buffer {
                Some(buffer) => buffer + offset,
                // SAFETY: the program gives the address of each parameter.
                None => unsafe { parameters.add(index).read() },
            };
            let base: *const u8 = core::ptr::with_exposed_provenance(base);
            // SAFETY: all offsets and sizes together are within the words.
            let to = unsafe { place.add(*offset) };
            // SAFETY: the parameter has so many bytes. Most are addresses or numbers.
            unsafe {
                match *size {
                    8 => core::ptr::copy_nonoverlapping(base, to, 8),
                    4 => core::ptr::copy_nonoverlapping(base, to, 4),
                    size => core::ptr::copy_nonoverlapping(base, to, size),
                }
            }
        }
    }
}

/// The blocks and threads of a launch.
pub(crate) fn sizes_of([x, y, z]: [c_uint; 3], [wide, high, deep]: [c_uint; 3]) -> Sizes {
    [x, y, z, wide, high, deep]
}

/// The images that were loaded, and what was taken from them.
#[derive(Default)]
pub(crate) struct Images {
    /// The images of modules and libraries, with the context that a module ends with, or 0.
    loaded: HashMap<Handle, (Arc<Image>, Handle)>,
    /// The module or library of each function and kernel that the program has asked for.
    owners: HashMap<Handle, Handle>,
}

impl Images {
    /// A module or library has this image. A library has no context.
    pub(crate) fn load(&mut self, owner: Handle, context: Handle, image: Image) {
        self.forget(owner);
        self.loaded.insert(owner, (Arc::new(image), context));
    }

    /// A module is one of a library.
    pub(crate) fn share(&mut self, module: Handle, library: Handle) {
        if let Some(image) = self.loaded.get(&library).cloned() {
            self.owners.insert(module, library);
            self.loaded.insert(module, image);
        }
    }

    /// A function or kernel is from this module or library, or stands for this kernel.
    pub(crate) fn take(&mut self, function: Handle, from: Handle) {
        let owner = self.owners.get(&from).copied().unwrap_or(from);
        if self.loaded.contains_key(&owner) {
            self.owners.insert(function, owner);
        }
    }

    /// A module or library ends, with the modules of a library.
    pub(crate) fn forget(&mut self, owner: Handle) {
        if let Some((image, _)) = self.loaded.remove(&owner) {
            // The module of a library ends with it.
            if self.owners.remove(&owner).is_none() {
                image.ends();
                self.loaded.retain(|_, (other, _)| !Arc::ptr_eq(other, &image));
            }
        }
        self.owners.retain(|_, from| *from != owner);
    }

    /// A module or library has this variable.
    pub(crate) fn has_variable(&self, owner: Handle, name: &str, range: &Range<u64>) {
        if let Some((image, _)) = self.loaded.get(&owner) {
            image.has_variable(name, range);
        }
    }

    /// What these objects had at this address has ended.
    pub(crate) fn ends_variable(&self, owners: [Handle; 2], address: u64) {
        let images = owners.iter().filter_map(|owner| self.loaded.get(owner));
        images.for_each(|(image, _)| image.ends_variable(address));
    }

    /// A context ends, with its modules.
    pub(crate) fn context_ends(&mut self, context: Handle) {
        let all = self.loaded.iter().filter(|(_, (_, own))| *own == context && context != 0);
        let all: Vec<Handle> = all.map(|(owner, _)| *owner).collect();
        all.into_iter().for_each(|owner| self.forget(owner));
    }

    /// The image of a function or kernel, if it was seen when it was loaded.
    pub(crate) fn image(&self, questions: &Questions, function: Handle) -> Option<Arc<Image>> {
        let taken = self.owners.get(&function).and_then(|owner| self.loaded.get(owner));
        let taken = taken.map(|(image, _)| image);
        let ask = || {
            let all = [questions.module_of_function, questions.library_of_kernel];
            all.into_iter().flatten().find_map(|ask| {
                let mut owner = 0;
                // SAFETY: a place for the answer, and a handle that the driver has just launched; one
                // of the other kind is refused.
                let code = unsafe { ask(&mut owner, function) };
                self.loaded.get(&owner).filter(|_| code == OK).map(|(image, _)| image)
            })
        };
        taken.or_else(ask).cloned()
    }
}

/// The kernels that were looked up, and the images that they are from.
#[derive(Default)]
pub(crate) struct Kernels {
    pub(crate) by_handle: Map<Handle, Kernel>,
    /// How many there may be before those of unloaded code are forgotten.
    pub(crate) most: usize,
    /// The names of kernels. They are never freed, as reports may last.
    pub(crate) names: HashSet<&'static str>,
    /// How often code was unloaded: handles of kernels may be those of others since.
    pub(crate) unloads: u64,
    /// The contexts and kernels that were loaded.
    pub(crate) loaded: HashSet<(Handle, Handle)>,
    pub(crate) images: Images,
    /// Whether only one context was seen: a kernel of a library uses other variables in another one.
    pub(crate) in_one_context: bool,
}

impl Kernels {
    pub(crate) fn new() -> Self {
        Self { most: KERNELS, ..Self::default() }
    }

    /// The name of a kernel's launches.
    pub(crate) fn name_of(
        &mut self,
        questions: &Questions,
        call: &Call,
        function: Handle,
    ) -> &'static str {
        let unloads = self.unloads;
        match self.by_handle.get(&function) {
            Some(kernel) if kernel.unloads == unloads => kernel.name,
            _ => self.look_up(questions, call, function),
        }
    }

    pub(crate) fn look_up(
        &mut self,
        questions: &Questions,
        call: &Call,
        function: Handle,
    ) -> &'static str {
        let unloads = self.unloads;
        let (symbol, mut parameters) = questions.kernel(function);
        let architecture = questions.architecture();
        let image = self.images.image(questions, function);
        let within = |(offset, size): &(usize, usize)| {
            offset.checked_add(*size).is_some_and(|end| end <= PARAMETERS)
        };
        if !parameters.iter().all(within) {
            parameters.clear();
        }
        let symbol = symbol.unwrap_or_default();
        // After an unload the handle may be that of another one.
        let same = |kernel: &&mut Kernel| {
            kernel.parameters == parameters && kernel.code.is(&symbol, architecture, image.as_ref())
        };
        if let Some(kernel) = self.by_handle.get_mut(&function).filter(same) {
            kernel.unloads = unloads;
            return kernel.name;
        }
        let name = match symbol.as_str() {
            "" => call.name,
            _ => {
                let name = demangled(&symbol).unwrap_or_else(|| symbol.clone());
                lasting(&mut self.names, format!("{} of {name}", call.name))
            }
        };
        let words = parameters.iter().map(|(offset, size)| (offset + size).div_ceil(8)).max();
        let word = |(index, parameter): (usize, &(usize, usize))| {
            let offset = parameter.0;
            whole_words(*parameter).map(move |at| Word { number: (offset + at) / 8, index, at })
        };
        let may_be_addresses = parameters.iter().enumerate().flat_map(word).collect();
        let words = words.unwrap_or_default();
        let code = Arc::new(KernelCode::new(symbol, architecture, image));
        let new = Kernel { name, parameters, words, may_be_addresses, code, unloads };
        self.by_handle.insert(function, new);
        if self.by_handle.len() > self.most {
            // Those that are launched again are looked up anew.
            self.by_handle.retain(|_, kernel| kernel.unloads == unloads);
            self.most = KERNELS.max(2 * self.by_handle.len());
        }
        name
    }

    /// The accesses that a node of a graph may make. [`addresses`](Self::addresses) has those of a
    /// launch.
    pub(crate) fn pointed_to(
        &mut self,
        feed: &Feed<Output>,
        questions: &Questions,
        function: Handle,
        sizes: Sizes,
        parameters: *const Handle,
        extra: *const Handle,
    ) -> Vec<Access> {
        // Its name is that of launches, and classes of findings go by it.
        self.name_of(questions, &Call { name: "cuLaunchKernel", per_thread: false }, function);
        let mut values = Vec::new();
        if let Some(kernel) = self.by_handle.get(&function) {
            // SAFETY: what the program gave to the call.
            unsafe { kernel.values(parameters, extra, &mut values) };
        }
        let mut accesses = Vec::new();
        let kernel = (function, sizes);
        let of_host = self.addresses(feed, &|_| None, kernel, &values, &mut accesses, None);
        if let Some(kernel) = self.by_handle.get(&function) {
            let launch = accesses.first().and_then(Access::launch);
            signals::launched(&kernel.code, None, launch, of_host);
        }
        if of_host {
            signals::unwatched();
        }
        accesses
    }

    /// The bytes that the parameters of a kernel that was looked up point to, as far as they are
    /// addresses of memory that the checker has. Until a finding about the kernel is judged, nothing
    /// says what it does there: it counts as an access of the one byte, or of all bytes of memory that
    /// the host may access, too, which is `of_host`. A launch that is no node of a graph `runs` after
    /// uploads, in a stream. Says whether there is such memory.
    pub(crate) fn addresses(
        &mut self,
        feed: &Feed<Output>,
        of_host: &dyn Fn(u64) -> Option<Range<u64>>,
        (function, sizes): (Handle, Sizes),
        values: &[u64],
        accesses: &mut Vec<Access>,
        runs: Option<(&mut Uploads, StreamId)>,
    ) -> bool {
        let settings = &feed.observer().settings;
        let has = |kind| settings.has(kind);
        let (pools, kind) = (
            has(Kind::Pools),
            match has(Kind::Reads) || has(Kind::Kernels) {
                true => AccessKind::Write,
                false => AccessKind::Read,
            },
        );
        accesses.clear();
        let mut some_of_host = false;
        let Some(kernel) = self.by_handle.get(&function) else { return false };
        for Word { number, index, at } in &kernel.may_be_addresses {
            let Some(&word) = values.get(*number) else { break };
            let Some(memory) = feed.memory(word) else { continue };
            let size = || kernel.parameters.get(*index).map_or(0, |(_, size)| *size);
            note(|| format!(" {index}+{at}/{}:{word:#x}", size()));
            let is_of_host = matches!(memory, Memory::Host | Memory::Managed);
            some_of_host |= memory != Memory::Device;
            if is_of_host && let Some(range) = of_host(word) {
                accesses.push(Access::new(kind, range.start, range.end - range.start));
                continue;
            }
            let bytes = if pools { feed.bytes_at(word) } else { None };
            let bytes = bytes.filter(|bytes| *bytes >= POOL).unwrap_or(1);
            accesses.push(Access::new(kind, word, bytes));
        }
        let variables = kernel.code.variables().filter(|_| self.in_one_context);
        for Variable { range, .. } in variables.iter().flat_map(|all| all.iter()) {
            let Some(memory) = feed.memory(range.start) else { continue };
            some_of_host |= memory != Memory::Device;
            accesses.push(Access::new(kind, range.start, range.end - range.start));
        }
        if let Some(first) = accesses.first_mut() {
            let values = Values::new(kernel.code.clone(), sizes, values, some_of_host);
            let mut values = values.with_variables(variables);
            runs.into_iter().for_each(|(uploads, stream)| uploads.launched(stream, &mut values));
            first.set_launch(Launched::new(Arc::new(values)));
        }
        some_of_host
    }

    /// Code was unloaded: its kernels' handles may be those of others.
    pub(crate) fn unloaded(&mut self) {
        self.unloads += 1;
        self.loaded.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Images, lasting};
    use crate::call::Handle;
    use crate::code::image::Image;

    /// What is left of a library (10) with a module (11), and of modules of two contexts (20, 30),
    /// with a function of each, which has its number and one more hundred.
    #[test]
    fn code_ends_with_its_owner() {
        type End = fn(&mut Images);
        type Left = &'static [Handle];
        let ends: [(&str, End, Left, Left, Left); 8] = [
            ("nothing", |_| (), &[10, 11, 20, 30], &[11, 110, 111, 120, 130], &[]),
            (
                "the library's module",
                |all| all.forget(11),
                &[10, 20, 30],
                &[110, 111, 120, 130],
                &[],
            ),
            ("the library", |all| all.forget(10), &[20, 30], &[120, 130], &[10]),
            ("a module", |all| all.forget(20), &[10, 11, 30], &[11, 110, 111, 130], &[20]),
            ("a context", |all| all.context_ends(7), &[10, 11, 30], &[11, 110, 111, 130], &[20]),
            (
                "no context",
                |all| all.context_ends(0),
                &[10, 11, 20, 30],
                &[11, 110, 111, 120, 130],
                &[],
            ),
            (
                "a function",
                |all| all.forget(120),
                &[10, 11, 20, 30],
                &[11, 110, 111, 120, 130],
                &[],
            ),
            (
                "a module whose handle is given again",
                |all| all.load(20, 8, Image::file(c"")),
                &[10, 11, 20, 30],
                &[11, 110, 111, 130],
                &[20],
            ),
        ];
        for (what, end, loaded, owners, ended) in ends {
            let mut all = Images::default();
            for (owner, context) in [(10, 0), (20, 7), (30, 8)] {
                all.load(owner, context, Image::file(c""));
            }
            all.share(11, 10);
            [10, 11, 20, 30].into_iter().for_each(|owner| all.take(owner + 100, owner));
            let images = [10, 20, 30].map(|owner| (owner, all.loaded[&owner].0.clone()));
            end(&mut all);
            let sorted = |keys: Vec<&Handle>| {
                let mut keys: Vec<Handle> = keys.into_iter().copied().collect();
                keys.sort_unstable();
                keys
            };
            assert_eq!(sorted(all.loaded.keys().collect()), loaded, "{what}");
            assert_eq!(sorted(all.owners.keys().collect()), owners, "{what}");
            let is_over = |image: &Image| format!("{:?}", image.bytes()).contains("unloaded");
            let over = images.iter().filter(|(_, image)| is_over(image)).map(|(owner, _)| *owner);
            assert_eq!(over.collect::<Vec<_>>(), ended, "{what}");
        }
    }

    /// Kernels that are looked up again and again have one name.
    #[test]
    fn a_name_is_kept_once() {
        let mut names = HashSet::new();
        let [one, two] = [0, 1].map(|_| lasting(&mut names, "softmax".to_owned()));
        assert!(core::ptr::eq(one, two) && names.len() == 1);
    }
}
