//! The kernel, the sizes and the parameters of a launch, and what memory may hold, as long as the checker has an access of it.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use cuda_kernel_access::code::{Code, Launch};

use crate::code::image::Variable;
use crate::code::kernel::KernelCode;
use crate::code::reserve;

/// The boxed parameters of all launches together may have so many bytes.
const MOST: usize = 24 << 20;

/// How many bytes they have.
static BOXED: AtomicUsize = AtomicUsize::new(0);

/// The blocks along each axis, and the threads of a block.
pub(crate) type Sizes = [u32; 6];

/// The values of a launch.
#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) number: u64,
    pub(crate) code: Arc<KernelCode>,
    sizes: Sizes,
    words: Words,
    /// The variables of its module that the program had asked for then.
    variables: Option<Arc<[Variable]>>,
    pub(crate) is_of_host: bool,
    /// What it reads in memory.
    memory: Vec<Arc<Upload>>,
    /// What may be there.
    pub(crate) recall: Option<Box<Recall>>,
}

/// The bytes of the parameters at their offsets.
#[derive(Debug)]
enum Words {
    /// So many, and then zeros. Most launches are one piece of memory for that.
    Inline([u64; INLINE], usize),
    Boxed(Box<[u64]>),
    /// There was no room for them.
    Missing,
}

const INLINE: usize = 8;

impl Values {
    /// `is_of_host`: the host may access memory of which there is an address among the words.
    pub(crate) fn new(
        code: Arc<KernelCode>,
        sizes: Sizes,
        words: &[u64],
        is_of_host: bool,
    ) -> Self {
        let number = number(mix(code.number, is_of_host.into()), sizes, words);
        let words = Words::new(words);
        let (variables, memory) = (None, Vec::new());
        Self { number, code, sizes, words, variables, is_of_host, memory, recall: None }
    }

    /// The launch with variables of its module.
    pub(crate) fn with_variables(mut self, variables: Option<Arc<[Variable]>>) -> Self {
        let all = variables.iter().flat_map(|all| all.iter());
        self.number =
            all.fold(self.number, |number, one| mix(number.rotate_left(29), one.range.start));
        Self { variables, ..self }
    }

    /// The launch, of which memory says nothing.
    pub(crate) fn alone(&self) -> Self {
        let alone = Self::new(self.code.clone(), self.sizes, self.words(), self.is_of_host);
        alone.with_variables(self.variables.clone())
    }

    /// The launch with what it reads in memory.
    pub(crate) fn with_memory(&self, memory: Vec<Arc<Upload>>) -> Self {
        let number = memory.iter().fold(self.number, |number, one| mix(number, one.number));
        Self { number, memory, ..self.alone() }
    }

    /// Whether there was room for them.
    pub(crate) fn has_words(&self) -> bool {
        !matches!(self.words, Words::Missing)
    }

    /// The words of the parameters.
    pub(crate) fn words(&self) -> &[u64] {
        match &self.words {
            Words::Inline(words, count) => words.get(..*count).unwrap_or_default(),
            Words::Boxed(words) => words,
            Words::Missing => &[],
        }
    }

    /// Its addresses, as far as they are known: the words, and where variables of its module are.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        let variables = self.variables.iter().flat_map(|all| all.iter());
        self.words().iter().copied().chain(variables.map(|one| one.range.start))
    }

    /// The bytes of the parameters.
    fn parameters(&self) -> Option<Vec<u8>> {
        let bytes = || self.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        self.has_words().then(bytes)
    }

    /// The launch as its code is evaluated with it.
    pub(crate) fn launch(&self, code: &Code) -> Option<Launch> {
        let [x, y, z, wide, high, deep] = self.sizes;
        let mut launch = Launch::new([x, y, z], [wide, high, deep], self.parameters()?);
        let memory = self.memory.iter().map(|one| (one.range.start, one.bytes.clone()));
        launch.memory = memory.collect();
        let variable = |name: &str| {
            let mut all = self.variables.iter().flat_map(|all| all.iter());
            all.find(|one| *one.name == *name).map(|one| one.range.start)
        };
        Some(launch.with_variables(code, &variable))
    }
}

impl Words {
    fn new(words: &[u64]) -> Self {
        let mut inline = [0; INLINE];
        if let Some(own) = inline.get_mut(..words.len()) {
            own.copy_from_slice(words);
            return Self::Inline(inline, words.len());
        }
        match reserve(&BOXED, size_of_val(words), MOST) {
            true => Self::Boxed(words.into()),
            false => Self::Missing,
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Self::Boxed(words) = self {
            BOXED.fetch_sub(size_of_val(&**words), Ordering::Relaxed);
        }
    }
}

/// Bytes that a copy has put into memory.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) range: Range<u64>,
    /// The allocation that they are in.
    pub(crate) memory: Range<u64>,
    pub(crate) bytes: Arc<[u8]>,
    /// Two have one only if they are the same bytes in the same place.
    pub(crate) number: u64,
}

impl Upload {
    pub(crate) fn new(range: Range<u64>, memory: Range<u64>, bytes: Arc<[u8]>) -> Self {
        let words = bytes.chunks(8).map(|part| {
            part.iter().rev().fold(part.len() as u64, |word, byte| word << 8 | u64::from(*byte))
        });
        let first = mix(mix(range.start, range.end), memory.start);
        let number = words.fold(first, |number, word| mix(number.rotate_left(23), word));
        Self { range, memory, bytes, number }
    }
}

/// A launch after an upload, with those before it.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) launch: Arc<Values>,
    pub(crate) before: Option<Arc<Logged>>,
}

/// An upload that a launch has an address in, and the launches between the two.
#[derive(Debug)]
pub(crate) struct Recalled {
    pub(crate) upload: Arc<Upload>,
    pub(crate) log: Option<Arc<Logged>>,
}

/// What a launch may find in memory.
#[derive(Debug)]
pub(crate) struct Recall {
    pub(super) all: Vec<Recalled>,
    /// The kernels that were launched between, with addresses of any memory.
    pub(super) kernels: Vec<Arc<KernelCode>>,
    pub(crate) number: u64,
    pub(super) with: OnceLock<Option<Arc<Values>>>,
}

impl Recall {
    pub(crate) fn new(all: Vec<Recalled>, kernels: Vec<Arc<KernelCode>>) -> Self {
        let number = all.iter().fold(0, |number, one| mix(number, one.upload.number));
        Self { all, kernels, number, with: OnceLock::new() }
    }
}

/// A number that stands for both, for a hash.
pub(crate) fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one ^ 0x9e37_79b9_7f4a_7c15) * u128::from(two ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ (product >> 64) as u64
}

/// A number that two launches share only if they are alike.
fn number(code: u64, sizes: Sizes, words: &[u64]) -> u64 {
    let [x, y, z, wide, high, deep] = sizes.map(u64::from);
    let first = [x << 32 | y, z << 32 | wide, high << 32 | deep, words.len() as u64];
    first.iter().chain(words).fold(code, |number, word| mix(number.rotate_left(23), *word))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BOXED, MOST, Ordering, Values};
    use crate::code::kernel::KernelCode;

    /// The words of a launch are there, in either form, unless there is no room; those of launches that
    /// are gone are not.
    #[test]
    fn a_launch_has_its_words() {
        let _turn = crate::lock::TURN.lock();
        let code = Arc::new(KernelCode::new("kernel".to_owned(), 90, None));
        let before = BOXED.load(Ordering::Relaxed);
        let boxed = || BOXED.load(Ordering::Relaxed) - before;
        let with =
            |count: u64| Values::new(code.clone(), [1; 6], &(1..=count).collect::<Vec<_>>(), false);
        for count in [0, 1, 7, 8, 9, 100] {
            let values = with(count);
            assert_eq!(values.words(), (1..=count).collect::<Vec<_>>(), "{count}");
            assert_eq!(boxed(), if count > 8 { 8 * count as usize } else { 0 }, "{count}");
            let bytes: Vec<u8> = (1..=count).flat_map(u64::to_le_bytes).collect();
            assert_eq!(values.parameters(), Some(bytes), "{count}");
        }
        assert_eq!(boxed(), 0, "they are gone");
        BOXED.store(MOST - 9 * 8, Ordering::Relaxed);
        let [last, missing] = [9, 9].map(with);
        assert!(
            last.parameters().is_some()
                && missing.parameters().is_none()
                && missing.words().is_empty()
        );
        assert!(with(8).parameters().is_some());
        assert_eq!([&last, &missing].map(|values| values.has_words()), [true, false]);
        drop((last, missing));
        BOXED.store(before, Ordering::Relaxed);
    }

    /// Whatever differs between two launches, they have two numbers.
    #[test]
    fn launches_that_are_alike_have_one_number() {
        let codes = [(); 2].map(|()| Arc::new(KernelCode::new("kernel".to_owned(), 90, None)));
        let with = |code: &Arc<KernelCode>, sizes, words: &[u64], is_of_host| {
            Values::new(code.clone(), sizes, words, is_of_host).number
        };
        let number = |code: &_, sizes, words: &_| with(code, sizes, words, false);
        let first = || number(&codes[0], [1, 2, 3, 4, 5, 6], &[7, 8]);
        assert_eq!(first(), first());
        let mut all = vec![first(), number(&codes[1], [1, 2, 3, 4, 5, 6], &[7, 8])];
        all.push(with(&codes[0], [1, 2, 3, 4, 5, 6], &[7, 8], true));
        for at in 0..6 {
            let mut sizes = [1, 2, 3, 4, 5, 6];
            sizes[at] += 10;
            all.push(number(&codes[0], sizes, &[7, 8]));
        }
        for words in [&[8, 7][..], &[7, 9], &[9, 8], &[7], &[7, 8, 0], &[]] {
            all.push(number(&codes[0], [1, 2, 3, 4, 5, 6], words));
        }
        all.push(number(&codes[0], [2, 1, 3, 4, 5, 6], &[7, 8]));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
