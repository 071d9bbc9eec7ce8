//! Kernels of corpus/shapes.cu with what their source says that a thread does.

// Not each test file uses all of it.
#![allow(dead_code)]

use std::collections::BTreeSet;

use cuda_kernel_access::code::{Code, Launch, NoCode};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::ptx::{Entry, Module};

/// A kernel, ready to be evaluated.
pub struct Shape {
    pub architecture: u32,
    pub name: String,
    pub code: Code,
    bytes: Vec<u8>,
    bank: (u32, u32),
}

impl Shape {
    /// The same kernel with other instructions, if there are ways through them.
    pub fn with(&self, bytes: &[u8]) -> Option<Code> {
        code(self.architecture, bytes, self.bank, &[], "").ok()
    }

    /// The kernel's instructions.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn code(
    architecture: u32,
    bytes: &[u8],
    bank: (u32, u32),
    constants: &[u8],
    branches: &str,
) -> Result<Code, NoCode> {
    let image = crate::common::cubin(0x0600_5a04, 8, &[("k", &[], &[])]);
    let mut kernel = Cubin::parse(&image).expect("a cubin").kernels[0].clone();
    kernel.code = bytes;
    kernel.parameter_bank = Some(bank);
    kernel.constants = Some(constants);
    let number = |text| u32::from_str_radix(text, 16).expect("a number");
    kernel.indirect_branches = branches
        .split_terminator(';')
        .map(|branch| branch.split_once(':').expect("a branch and its places"))
        .map(|(at, places)| (number(at), places.split(',').map(number).collect()))
        .collect();
    Code::new(architecture, &kernel)
}

/// Those of shapes.txt and, if the variable names a folder of cubins, all that were compiled there.
pub fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for line in include_str!("../shapes.txt").lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(' ').collect();
        let &[architecture, name, base, size, text, constants, ref branches @ ..] =
            parts.as_slice()
        else {
            panic!("{line}")
        };
        let branches = branches.concat();
        let bytes = |text: &str| -> Vec<u8> {
            let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte");
            (0..text.len()).step_by(2).map(byte).collect()
        };
        let (bytes, constants) = (bytes(text), bytes(constants));
        let base = u32::from_str_radix(base, 16).expect("a number");
        let bank = (base, size.parse().expect("a number"));
        let architecture = architecture.parse().expect("a number");
        let code = code(architecture, &bytes, bank, &constants, &branches)
            .unwrap_or_else(|error| panic!("{architecture} {name} {error}"));
        shapes.push(Shape { architecture, name: name.into(), code, bytes, bank });
    }
    shapes.extend(texts(include_str!("../shapes.ptx")));
    for path in compiled("ptx") {
        shapes.extend(texts(&std::fs::read_to_string(path).expect("a text")));
    }
    for path in compiled("cubin") {
        let image = std::fs::read(&path).expect("a file");
        let cubin = Cubin::parse(&image).expect("a cubin");
        for kernel in &cubin.kernels {
            let bank = kernel.parameter_bank;
            if let (Ok(code), Some(bank)) = (Code::new(cubin.architecture, kernel), bank) {
                let (name, bytes) = (kernel.name.into(), kernel.code.to_vec());
                shapes.push(Shape { architecture: cubin.architecture, name, code, bytes, bank });
            }
        }
    }
    shapes
}

/// The kernels of a text, of those that there are cases of.
fn texts(text: &str) -> Vec<Shape> {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let shape = |entry: &Entry<'_>| {
        case(entry.name, 0)?;
        let code = Code::from_ptx(&module, entry.name)
            .unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        let (name, bytes, bank) = (entry.name.into(), Vec::new(), (0, 0));
        Some(Shape { architecture: PTX, name, code, bytes, bank })
    };
    module.entries.iter().filter_map(shape).collect()
}

/// Stands for an architecture where the code is made of a text.
pub const PTX: u32 = 0;

/// `CUDA_KERNEL_ACCESS_CORPUS` is the folder in which tools/kernels compiles.
pub fn compiled(ending: &str) -> Vec<std::path::PathBuf> {
    let Some(folder) = std::env::var_os("CUDA_KERNEL_ACCESS_CORPUS") else { return Vec::new() };
    let files = std::fs::read_dir(folder).expect("a folder");
    let files = files.map(|file| file.expect("an entry").path());
    let ends = |path: &std::path::PathBuf| path.extension().is_some_and(|one| one == ending);
    let found: Vec<_> = files.filter(ends).collect();
    assert!(!found.is_empty(), "no {ending}");
    found
}

/// The address of the `index`th array.
pub fn array(index: u64) -> u64 {
    0x7f12_0000_0000 + index * 0x1_0000_0000
}

/// What memory holds in all these launches, as far as it is needed: two tables.
pub fn memory(address: u64, bytes: u8) -> Option<u128> {
    match bytes {
        // The index of a gather, in the array 8.
        4 if (array(8)..array(9)).contains(&address) => {
            Some(u128::from((address - array(8)) / 4 * 7 % 50))
        }
        // Pointers, in the array 9.
        8 if (array(9)..array(10)).contains(&address) => {
            Some(u128::from(array(3) + (address - array(9)) / 8 * 1000))
        }
        _ => None,
    }
}

/// Parameters one after the other, each at a multiple of its size.
#[derive(Default)]
struct Parameters(Vec<u8>);

impl Parameters {
    fn put(mut self, bytes: &[u8]) -> Self {
        self.0.resize(self.0.len().next_multiple_of(bytes.len()), 0);
        self.0.extend(bytes);
        self
    }
    fn array(self, index: u64) -> Self {
        self.put(&array(index).to_le_bytes())
    }
    fn int(self, number: i32) -> Self {
        self.put(&number.to_le_bytes())
    }
    fn long(self, number: i64) -> Self {
        self.put(&number.to_le_bytes())
    }
}

/// The bytes that a thread touches, by `'r'`, `'w'` and `'a'`. Of an atomic operation only the first:
/// how many there are is only known as a bound.
pub type Bytes = BTreeSet<(char, u64)>;

fn span(into: &mut Bytes, kind: char, array_index: u64, element: i64, size: u64) {
    let first = array(array_index).wrapping_add((element * size as i64) as u64);
    let bytes = if kind == 'a' { 1 } else { size };
    into.extend((first..first + bytes).map(|byte| (kind, byte)));
}

/// A launch of the kernel and what its source does with global memory in a thread, if this kernel has
/// one here. The last: whether all of it can be known.
pub type Case = (Launch, fn(&Launch, [i64; 3], [i64; 3], &mut Bytes), bool);

/// The `which`th launch of a kernel.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn case(name: &str, which: usize) -> Option<Case> {
    let none = Parameters::default;
    let plain = |parameters: Parameters| {
        let (grid, block) =
            [([3, 1, 1], [64, 1, 1]), ([1, 1, 1], [32, 1, 1]), ([7, 1, 1], [96, 1, 1])][which];
        Launch::new(grid, block, parameters.0)
    };
    // Fewer than threads, one, and more than threads.
    let n = [150, 1, 5000][which];
    Some(match name {
        "unused_word" => (
            plain(none().array(0).array(1).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 16) {
                    span(to, 'w', 1, i, 4);
                }
            },
            true,
        ),
        "axpy" => (
            plain(none().array(0).array(1).int(0).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 20) {
                    span(to, 'r', 0, i, 4);
                    span(to, 'r', 1, i, 4);
                    span(to, 'w', 1, i, 4);
                }
            },
            true,
        ),
        "grid_stride" => (
            plain(none().array(0).array(1).long(n.into())),
            |launch, b, t, to| {
                let step = i64::from(launch.grid[0] * launch.block[0]);
                for i in (index(launch, b, t)..int(launch, 16)).step_by(step as usize) {
                    span(to, 'r', 0, i, 8);
                    span(to, 'w', 1, i, 8);
                }
            },
            true,
        ),
        "long_stride" => (
            plain(none().array(0).array(1).long(40).long(40 + i64::from(n))),
            |launch, b, t, to| {
                let step = i64::from(launch.grid[0] * launch.block[0]);
                let (first, last) = (int(launch, 16), int(launch, 24));
                for i in (first + index(launch, b, t)..last).step_by(step as usize) {
                    span(to, 'r', 0, i, 4);
                    span(to, 'w', 1, i, 4);
                }
            },
            true,
        ),
        "clamped" => (
            plain(none().array(0).array(1).long(i64::from(n) - 1).long(5)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                span(to, 'w', 1, if int(launch, 16) < 5 { -3 } else { 5 }, 4);
                span(to, 'w', 1, (i - 3).max(0).min(int(launch, 16)), 4);
                span(to, 'r', 0, i.min(5), 4);
                span(to, 'r', 0, i.max(5), 4);
            },
            true,
        ),
        "offset_and_stride" => (
            plain(none().array(0).array(1).int([5, -7, 1000][which]).int([3, 1, -2][which]).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 24) {
                    span(to, 'r', 0, i, 4);
                    span(to, 'w', 1, int(launch, 16) + i * int(launch, 20), 4);
                }
            },
            true,
        ),
        "vectors" => (
            plain(none().array(0).array(1).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 16) {
                    span(to, 'r', 0, i, 16);
                    span(to, 'w', 1, i, 16);
                }
            },
            true,
        ),
        "bytes_and_halves" => (
            plain(none().array(0).array(1).array(2).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 24) {
                    span(to, 'r', 0, i, 1);
                    span(to, 'w', 1, i, 2);
                    span(to, 'w', 2, i, 2);
                }
            },
            true,
        ),
        "many_tensors" => {
            let mut parameters = none();
            for index in 0..16 {
                parameters = parameters.array(index);
            }
            for index in 0..8 {
                parameters = parameters.int(n + index);
            }
            let mut launch = plain(parameters);
            launch.grid[1] = 8;
            (
                launch,
                |launch, b, t, to| {
                    let step = i64::from(launch.grid[0] * launch.block[0]);
                    let n = int(launch, 128 + 4 * b[1] as usize);
                    for i in (index(launch, b, t)..n).step_by(step as usize) {
                        span(to, 'r', b[1] as u64 + 8, i, 4);
                        span(to, 'r', b[1] as u64, i, 4);
                        span(to, 'w', b[1] as u64, i, 4);
                    }
                },
                true,
            )
        }
        "gather" => (
            plain(none().array(8).array(1).array(2).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 24) {
                    span(to, 'r', 8, i, 4);
                    span(to, 'r', 1, i * 7 % 50, 4);
                    span(to, 'w', 2, i, 4);
                }
            },
            true,
        ),
        "divided" => (
            // By 24: a quotient of 32 bits.
            plain(none().array(0).array(1).int(0x5555_5556).int(5).int(24).long(100).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 40) {
                    let q = (((i * 0x5555_5556) >> 32) + i) >> 5;
                    span(to, 'r', 0, q * 100 + i - q * 24, 4);
                    span(to, 'w', 1, i, 4);
                }
            },
            true,
        ),
        "remainders" => (
            plain(none().array(0).array(1).int(12).int(1000).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 24) {
                    span(to, 'r', 0, i, 4);
                    span(to, 'w', 1, i % 12 * 1000 + i / 12, 4);
                }
            },
            true,
        ),
        "chosen" => (
            plain(none().array(0).array(1).int([0, 1, -1][which]).int(n)),
            |launch, _, t, to| {
                if t[0] < int(launch, 20) {
                    span(to, 'w', u64::from(int(launch, 16) == 0), t[0], 4);
                }
            },
            true,
        ),
        "switched" => (
            plain(none().array(0).int([0, 1, 5][which]).int(n)),
            |launch, b, t, to| {
                let (i, n) = (index(launch, b, t), int(launch, 12));
                if i < n {
                    match int(launch, 8) {
                        0 => span(to, 'w', 0, i, 4),
                        1 => span(to, 'w', 0, i + n, 4),
                        _ => span(to, 'w', 0, 2 * i, 4),
                    }
                }
            },
            true,
        ),
        "called" => (
            plain(none().array(0).int([10, 1, 99][which])),
            |launch, _, t, to| {
                if t[0] < int(launch, 8) {
                    span(to, 'w', 0, t[0], 4);
                }
            },
            true,
        ),
        "wide_numbers" => (
            plain(none().array(0).array(1).long(n.into()).long(700)),
            |launch, b, t, to| {
                let n = int(launch, 16);
                for i in (index(launch, b, t)..n).step_by(700) {
                    span(to, 'r', 0, i, 8);
                    span(to, 'r', 0, n - i - 1, 8);
                    span(to, 'w', 1, i, 8);
                }
            },
            true,
        ),
        "backwards" => (
            plain(none().array(0).array(1).int(n)),
            |launch, b, t, to| {
                let n = int(launch, 16);
                let mut i = n - 1 - index(launch, b, t);
                loop {
                    if i >= 0 {
                        span(to, 'r', 0, i, 4);
                        span(to, 'r', 0, n - 1, 4);
                        span(to, 'w', 1, i, 4);
                    }
                    i -= i64::from(launch.grid[0] * launch.block[0]);
                    if i < 0 {
                        break;
                    }
                }
            },
            true,
        ),
        "copied_asynchronously" => (
            plain(none().array(0).array(1).int(n)),
            |launch, b, t, to| {
                let i = b[0] * 256 + t[0];
                if i < int(launch, 16) {
                    span(to, 'r', 0, i, 16);
                    span(to, 'w', 1, i, 16);
                }
            },
            true,
        ),
        "pointers_in_memory" => (
            plain(none().array(9).int([10, 1, 99][which])),
            |launch, b, t, to| {
                if t[0] < int(launch, 8) {
                    span(to, 'w', 3, 250 * b[0] + t[0], 4);
                }
                span(to, 'r', 9, b[0], 8);
            },
            // The pointer may be read only by the threads that use it.
            false,
        ),
        "reductions" => (
            plain(none().array(0).array(1).array(2).array(3).array(4).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 40) {
                    span(to, 'r', 4, i, 4);
                    span(to, 'a', 0, 0, 4);
                    span(to, 'a', 0, 1, 4);
                    span(to, 'a', 1, 0, 4);
                    span(to, 'a', 2, 0, 8);
                    span(to, 'a', 3, 0, 4);
                }
            },
            // The last exchange depends on memory, and threads of a warp share the others.
            false,
        ),
        "histogram" => (
            plain(none().array(0).array(1).int(n)),
            |launch, b, t, to| {
                let step = i64::from(launch.grid[0] * launch.block[0]);
                for i in (index(launch, b, t)..int(launch, 16)).step_by(step as usize) {
                    span(to, 'r', 0, i, 1);
                }
                span(to, 'a', 1, t[0] & 255, 4);
            },
            true,
        ),
        "transpose" => {
            let mut launch = plain(none().array(0).array(1).int(70).int(50));
            launch.grid = [2, 3, 1];
            launch.block = [32, 8, 1];
            (
                launch,
                |_, b, t, to| {
                    let (x, y) = (b[0] * 32 + t[0], b[1] * 32 + t[1]);
                    for j in (0..32).step_by(8).filter(|j| x < 50 && y + j < 70) {
                        span(to, 'r', 0, (y + j) * 50 + x, 4);
                    }
                    let (x, y) = (b[1] * 32 + t[0], b[0] * 32 + t[1]);
                    for j in (0..32).step_by(8).filter(|j| x < 70 && y + j < 50) {
                        span(to, 'w', 1, (y + j) * 70 + x, 4);
                    }
                },
                true,
            )
        }
        "sum" => (
            plain(none().array(0).array(1).int(n)),
            |launch, b, t, to| {
                for i in (t[0]..int(launch, 16)).step_by(launch.block[0] as usize) {
                    span(to, 'r', 0, i, 4);
                }
                if t[0] == 0 {
                    span(to, 'w', 1, b[0], 4);
                }
            },
            true,
        ),
        "multiply" => {
            let mut launch = plain(none().array(0).array(1).array(2).int(48));
            launch.grid = [3, 3, 1];
            launch.block = [16, 16, 1];
            (
                launch,
                |_, b, t, to| {
                    let (x, y) = (b[0] * 16 + t[0], b[1] * 16 + t[1]);
                    for k in (0..48).step_by(16) {
                        span(to, 'r', 0, y * 48 + k + t[0], 4);
                        span(to, 'r', 1, (k + t[1]) * 48 + x, 4);
                    }
                    span(to, 'w', 2, y * 48 + x, 4);
                },
                true,
            )
        }
        "half_math" => (
            plain(none().array(0).array(1).array(2).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 24) {
                    for array in 0..3 {
                        span(to, 'r', array, i, 4);
                    }
                    span(to, 'w', 2, i, 4);
                }
            },
            true,
        ),
        "sizes" => {
            let mut launch = plain(none().array(0));
            launch.grid = [3, [1, 2, 5][which], 4];
            launch.block = [6, 5, [2, 1, 3][which]];
            (
                launch,
                |launch, b, t, to| {
                    let number = |[x, y, z]: [i64; 3]| x + 100 * y + 10_000 * z;
                    let sizes = |sizes: [u32; 3]| number(sizes.map(i64::from));
                    span(to, 'w', 0, sizes(launch.block) + 1_000_000 * sizes(launch.grid), 4);
                    span(to, 'w', 0, number(t) + 1_000_000 * number(b), 4);
                },
                true,
            )
        }
        "branches" => (
            plain(none().array(0).array(1).array(2).int(20)),
            |_, _, t, to| {
                // What is done whatever memory holds.
                span(to, 'r', 0, t[0], 4);
                span(to, 'w', 1, t[0], 4);
                span(to, 'r', 2, t[0], 4);
                span(to, 'r', 0, 0, 4);
            },
            false,
        ),
        "local_array" => (
            plain(none().array(0).array(1).int(20)),
            |_, _, t, to| {
                for k in 0..16 {
                    span(to, 'r', 0, k, 4);
                }
                span(to, 'w', 1, t[0], 4);
            },
            true,
        ),
        "chosen_pointer" => (
            plain(none().array(0).array(1).array(2).array(3).int(n)),
            |launch, b, t, to| {
                let i = index(launch, b, t);
                if i < int(launch, 32) {
                    span(to, 'w', (b[0] + t[0] / 32) as u64 & 3, i, 4);
                }
            },
            true,
        ),
        "changed_copy" => {
            let pointers = (0..6).fold(Parameters::default(), |all, of| all.array(of));
            let parts = (0..7).fold(pointers, |all, of| all.int(100 * of + 50));
            (
                plain(parts.int(0).int(n)),
                |launch, b, t, to| {
                    let which = t[0] % 6;
                    let is_moved = which == int(launch, 80) & 1;
                    let from = int(launch, 48 + 4 * which as usize) + 7 * i64::from(is_moved);
                    span(to, 'w', which as u64, from + b[0], 4);
                },
                true,
            )
        }
        _ => return None,
    })
}

fn index(launch: &Launch, block: [i64; 3], thread: [i64; 3]) -> i64 {
    block[0] * i64::from(launch.block[0]) + thread[0]
}

fn int(launch: &Launch, at: usize) -> i64 {
    i32::from_le_bytes(launch.parameters[at..at + 4].try_into().expect("four")).into()
}

/// The kernels with up to three bits of their instructions changed, 20 times each.
pub fn mutated() -> Vec<(String, Code)> {
    let mut state = 5_u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut mutated = Vec::new();
    for shape in shapes().into_iter().filter(|shape| shape.architecture != PTX) {
        for _ in 0..20 {
            let mut bytes = shape.bytes().to_vec();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                bytes[at] ^= 1 << random(8);
            }
            if let Some(code) = shape.with(&bytes) {
                mutated.push((shape.name.clone(), code));
            }
        }
    }
    assert!(mutated.len() > 500, "{}", mutated.len());
    mutated
}

/// Some of a launch's threads, each with its block: those at the corners, and some in between.
pub fn threads(launch: &Launch) -> Vec<([u32; 3], [u32; 3])> {
    let some = |sizes: [u32; 3]| {
        let line = |size: u32| {
            let mut line = vec![0, size / 3, size / 2, size - 1];
            line.dedup();
            line
        };
        let mut all = Vec::new();
        for z in line(sizes[2]) {
            for y in line(sizes[1]) {
                all.extend(line(sizes[0]).into_iter().map(|x| [x, y, z]));
            }
        }
        all
    };
    let threads = some(launch.block);
    some(launch.grid)
        .into_iter()
        .flat_map(|block| threads.iter().map(move |&thread| (block, thread)))
        .collect()
}
