//! Programs of random instructions: they have in a few lines what compiled kernels have rarely, as
//! guards, branches and loops on numbers that are not known.

// Not each test file uses all of it.
#![allow(dead_code)]

use cuda_kernel_access::code::Code;
use cuda_kernel_access::decode::{AccessKind, INSTRUCTION, Operation, Register, Space, decode};

use crate::shapes::{Shape, shapes};

/// Numbers that look random, always the same.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// Instructions of compiled kernels, whose registers and guards are replaced by others.
pub struct Programs {
    shape: Shape,
    compute: Vec<u128>,
    compare: Vec<u128>,
    uniform: Vec<u128>,
    read: Vec<u128>,
    write: Vec<u128>,
    constants: Vec<u128>,
    branch: u128,
    exit: u128,
    /// Once each for the first registers, from the parameters and the thread's number.
    start: Vec<u128>,
}

/// An instruction of a program that is written by hand.
#[derive(Clone, Copy)]
pub enum Word {
    /// Computes what is not used.
    Nothing,
    /// From the address in the registers 4 and 5 to 2 and 3, if it has eight bytes.
    Load(u8),
    /// To the address in this register and the next.
    Store(u8),
    /// The same, if a predicate holds that is not known.
    StorePerhaps(u8),
    /// The same, if the first predicate holds, which it does at first.
    StoreIf(u8),
    /// Makes the first predicate false.
    Clear,
    /// The same, if the predicate holds that is not known.
    ClearPerhaps,
    /// Over the next instruction, if that unknown predicate holds.
    SkipPerhaps,
    /// To register 8 and those after it, by an instruction of this number whose one source begins in
    /// register 1: it is no instruction for addresses.
    Compute(u16),
    /// These bits.
    Bits(u128),
}

const ARCHITECTURE: u32 = 80;

fn with(word: u128, low: u32, high: u32, field: u128) -> u128 {
    let mask = ((1 << (high - low)) - 1) << low;
    word & !mask | field << low & mask
}

fn field(word: u128, low: u32, high: u32) -> u128 {
    word >> low & ((1 << (high - low)) - 1)
}

impl Programs {
    pub fn new() -> Self {
        let mut programs = Self {
            shape: shapes().into_iter().find(|shape| shape.name == "many_tensors").expect("one"),
            compute: Vec::new(),
            compare: Vec::new(),
            uniform: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            constants: Vec::new(),
            branch: 0,
            exit: 0,
            start: Vec::new(),
        };
        let mut thread = 0;
        for shape in shapes().iter().filter(|shape| shape.architecture == ARCHITECTURE) {
            let (words, _) = shape.bytes().as_chunks::<INSTRUCTION>();
            let decoded = decode(ARCHITECTURE, shape.bytes()).expect("known");
            for (word, one) in words.iter().map(|word| u128::from_le_bytes(*word)).zip(&decoded) {
                let general = matches!(one.destination, Some((Register::General(_), _)) | None);
                let uniform = matches!(one.destination, Some((Register::Uniform(_), 1)));
                match one.operation {
                    Operation::Access(access) if access.space == Space::Global => match access.kind
                    {
                        AccessKind::Read => programs.read.push(word),
                        AccessKind::Write => programs.write.push(word),
                        _ => {}
                    },
                    Operation::Branch { divergent: false } => programs.branch = word,
                    Operation::Exit => programs.exit = word,
                    Operation::Special(0x21) if general => thread = word,
                    Operation::LoadConstant { .. } if general => programs.constants.push(word),
                    _ if uniform && !matches!(one.operation, Operation::LoadConstant { .. }) => {
                        programs.uniform.push(word);
                    }
                    Operation::Compare { wide: false, .. } if general => {
                        programs.compare.push(word);
                    }
                    Operation::MultiplyAdd { .. }
                    | Operation::Add { .. }
                    | Operation::ShiftAdd { .. }
                    | Operation::Shift { .. }
                    | Operation::Logic(_)
                    | Operation::Select { .. }
                    | Operation::Minimum { .. }
                    | Operation::PredicateLogic(_)
                    | Operation::Absolute
                    | Operation::ReverseBits
                    | Operation::CountBits
                    | Operation::HighestBit { .. }
                    | Operation::Other(_)
                        if general =>
                    {
                        programs.compute.push(word);
                    }
                    _ => {}
                }
            }
        }
        assert!(programs.compute.len() > 300 && programs.uniform.len() > 5);
        // As each word is there as often as compilers write it, the rare ones are taken once.
        for words in [&mut programs.compute, &mut programs.compare, &mut programs.uniform] {
            words.sort_unstable();
            words.dedup();
        }
        let constant = programs.constants[0];
        for register in 0..8 {
            // c[0][RZ + 0x160 + 4 * register], of four bytes
            let word = with(constant, 73, 76, 4);
            let word = with(word, 38, 54, 0x160 + 4 * register);
            let word = with(with(word, 24, 32, 255), 12, 16, 7);
            programs.start.push(with(word, 16, 24, register));
        }
        programs.start.push(with(thread, 16, 24, 6));
        // The first predicates are known, too: whether words are not less than another.
        let compare = programs.compare.iter().find(|&&word| field(word, 9, 12) == 1);
        for predicate in 0..3 {
            let word = with(with(*compare.expect("one"), 12, 16, 7), 24, 32, predicate * 2);
            let word = with(with(word, 32, 40, 3), 81, 87, 7 << 3 | predicate);
            // Not less, and nothing else.
            let word = with(with(word, 76, 79, 6), 74, 76, 0);
            programs.start.push(with(with(word, 72, 73, 0), 87, 91, 7));
        }
        programs
    }

    fn guard(random: &mut Random, word: u128) -> u128 {
        let guard = if random.below(2) == 0 { 7 } else { random.below(3) | random.below(2) << 3 };
        with(word, 12, 16, guard as u128)
    }

    fn one(&self, random: &mut Random) -> u128 {
        let pick = |random: &mut Random, words: &[u128]| words[random.below(words.len())];
        let kind = random.below(12);
        let mut word = match kind {
            0 | 1 => pick(random, &self.read),
            2 | 3 => pick(random, &self.write),
            4 => pick(random, &self.constants),
            _ => pick(random, &self.compute),
        };
        let registers: &[u32] =
            if field(word, 9, 12) == 1 { &[16, 24, 32, 64] } else { &[16, 24, 64] };
        for &low in registers {
            // A register of those that are used; the one that is zero stays.
            let pairs = kind < 4 && low == 24;
            if field(word, low, low + 8) != 255 {
                if kind < 2 && low == 64 {
                    continue;
                }
                let register = random.below(8) & if pairs { 6 } else { 7 };
                word = with(word, low, low + 8, register as u128);
            }
        }
        if kind > 4 {
            for low in [81, 84, 87] {
                if field(word, low, low + 3) != 7 || random.below(3) == 0 {
                    word = with(word, low, low + 3, random.below(3) as u128);
                }
            }
        }
        if kind == 4 {
            // Parameters: some by an index.
            word = with(word, 38, 54, 0x160 + random.below(32) as u128);
            word = if random.below(3) == 0 { word } else { with(word, 24, 32, 255) };
        }
        Self::guard(random, word)
    }

    /// A program with these instructions.
    pub fn of(&self, words: &[Word]) -> Option<Code> {
        let store = |register: u8| with(with(self.write[0], 12, 16, 7), 24, 32, register.into());
        // The first compared word is greater than itself.
        let compare = self.start[self.start.len() - 3];
        let clear = with(with(compare, 24, 32, field(compare, 32, 40)), 76, 79, 4);
        // One with three registers.
        let fused = self.compute.iter().copied().find(|&word| {
            let one = &decode(ARCHITECTURE, &word.to_le_bytes()).expect("whole")[0];
            one.operation == Operation::Other("FFMA") && field(word, 9, 12) == 1
        });
        let fused = fused.expect("one");
        let words = words.iter().map(|word| match *word {
            Word::Nothing => with(self.start[0], 16, 24, 7),
            Word::Load(bytes) => {
                let word =
                    with(with(self.read[0], 12, 16, 7), 73, 76, if bytes == 8 { 5 } else { 0 });
                with(with(with(word, 24, 32, 4), 16, 24, 2), 40, 64, 0)
            }
            Word::Store(register) => with(store(register), 40, 64, 0),
            Word::StorePerhaps(register) => with(with(store(register), 40, 64, 0), 12, 16, 5),
            Word::StoreIf(register) => with(with(store(register), 40, 64, 0), 12, 16, 0),
            Word::Clear => clear,
            Word::ClearPerhaps => with(clear, 12, 16, 5),
            Word::Compute(number) => {
                let word = with(with(with(fused, 0, 9, number.into()), 12, 16, 7), 16, 24, 8);
                with(with(with(word, 24, 32, 1), 32, 40, 255), 64, 72, 255)
            }
            Word::Bits(word) => word,
            Word::SkipPerhaps => with(with(with(self.branch, 87, 91, 7), 34, 82, 4), 12, 16, 5),
        });
        let exit = with(with(self.exit, 87, 91, 7), 12, 16, 7);
        self.code(self.start.iter().copied().chain(words).chain([exit]))
    }

    fn code(&self, words: impl Iterator<Item = u128>) -> Option<Code> {
        let bytes: Vec<u8> = words.flat_map(u128::to_le_bytes).collect();
        self.shape.with(&bytes)
    }

    /// The `number`th program. It has 32 bytes of parameters.
    pub fn program(&self, number: u64) -> Option<Code> {
        self.code(self.words(number).into_iter())
    }

    /// A program of these instructions, and they as text.
    pub fn whole(&self, words: Vec<u128>) -> Option<(String, Code)> {
        let text = Self::lines(&words);
        Some((text, self.code(words.into_iter())?))
    }

    /// Its instructions.
    pub fn text(&self, number: u64) -> String {
        Self::lines(&self.words(number))
    }

    fn lines(words: &[u128]) -> String {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let lines = decode(ARCHITECTURE, &bytes).expect("known");
        let lines = lines.iter().enumerate();
        lines.map(|(at, line)| format!("{:04x} {line}\n", at * INSTRUCTION)).collect()
    }

    /// An addition of a number to a register.
    fn add(&self) -> u128 {
        let add = self.compute.iter().copied().find(|&word| {
            let one = &decode(ARCHITECTURE, &word.to_le_bytes()).expect("whole")[0];
            one.operation == Operation::Add { wide: false, carry: false }
                && field(word, 9, 12) == 4
                && one.sources.iter().all(|source| !source.negated)
                && field(word, 64, 72) == 255
        });
        with(with(add.expect("one"), 81, 87, 0x3f), 12, 16, 7)
    }

    /// Reads at the address in the first two registers, and adds to the lower until it is not less
    /// than the upper, both without sign.
    pub fn counting(&self, step: u32) -> Option<Code> {
        let mut words = self.start.clone();
        let head = words.len();
        let read = with(with(self.read[0], 12, 16, 7), 73, 76, 4);
        words.push(with(with(with(read, 24, 32, 0), 16, 24, 7), 40, 64, 0));
        let add = with(with(self.add(), 16, 24, 0), 24, 32, 0);
        words.push(with(add, 32, 64, step.into()));
        let test = with(with(self.start[self.start.len() - 1], 24, 32, 0), 32, 40, 1);
        words.push(with(with(with(test, 76, 79, 1), 73, 74, 0), 81, 84, 0));
        let distance = (head as i128 - words.len() as i128 - 1) * 4;
        words.push(with(with(with(self.branch, 87, 91, 7), 34, 82, distance as u128), 12, 16, 0));
        words.push(with(with(self.exit, 87, 91, 7), 12, 16, 7));
        self.code(words.into_iter())
    }

    /// Reads at the address in the first two registers, and adds to it in each turn, to the lower
    /// half and, by its carry, to the upper one, until the third register has counted to the fourth.
    /// Before that `more` is added to the upper half alone.
    pub fn rising(&self, step: u32, more: u32) -> Option<Code> {
        let add = |register: u32, number: u32| {
            let word = with(with(self.add(), 16, 24, register.into()), 24, 32, register.into());
            with(word, 32, 64, number.into())
        };
        let mut words = self.start.clone();
        words.push(add(1, more));
        let head = words.len();
        let read = with(with(self.read[0], 12, 16, 7), 73, 76, 4);
        words.push(with(with(with(read, 24, 32, 0), 16, 24, 7), 40, 64, 0));
        // The carry is in the first predicate, and the other one is never set.
        words.push(with(add(0, step), 81, 84, 0));
        words.push(with(with(with(add(1, 0), 74, 75, 1), 87, 91, 0), 77, 81, 0xf));
        // The third counts up to the fourth.
        words.push(add(2, 1));
        let test = with(with(self.start[self.start.len() - 1], 24, 32, 2), 32, 40, 3);
        words.push(with(with(with(test, 76, 79, 1), 73, 74, 0), 81, 84, 1));
        let distance = (head as i128 - words.len() as i128 - 1) * 4;
        words.push(with(with(with(self.branch, 87, 91, 7), 34, 82, distance as u128), 12, 16, 1));
        words.push(with(with(self.exit, 87, 91, 7), 12, 16, 7));
        self.code(words.into_iter())
    }

    /// One with a loop, or with one in another, that counts in a register.
    pub fn looping(&self, number: u64) -> Vec<u128> {
        let mut random = Random(number);
        let add = self.add();
        let compare = self.start[self.start.len() - 1];
        let mut words = self.start.clone();
        let mut heads = Vec::new();
        let some = |random: &mut Random, words: &mut Vec<u128>, most: usize| {
            for _ in 0..random.below(most) {
                let word = self.one(random);
                // Rarely a write: what is read is not known after it.
                if !self.write.contains(&with(with(with(word, 12, 16, 7), 24, 40, 0), 16, 24, 0))
                    || random.below(4) == 0
                {
                    let guard = if random.below(3) == 0 { field(word, 12, 16) } else { 7 };
                    words.push(with(word, 12, 16, guard));
                }
            }
        };
        some(&mut random, &mut words, 3);
        for _ in 0..=random.below(2) {
            heads.push(words.len());
            some(&mut random, &mut words, 6);
        }
        while let Some(head) = heads.pop() {
            let (counter, limit) = (random.below(8), random.below(8));
            let step =
                [1, 4, 60, 200, 0x1_0000, 0x3000_0000, 0x4000_0001, 0xffff_ffff, 0xffff_fff0]
                    [random.below(9)];
            let up = with(with(add, 16, 24, counter as u128), 24, 32, counter as u128);
            words.push(with(up, 32, 64, step));
            some(&mut random, &mut words, 5);
            let test = with(with(compare, 24, 32, counter as u128), 32, 40, limit as u128);
            // Less or greater, with sign or without.
            let test = with(test, 76, 79, [1, 4][random.below(2)]);
            let test = with(test, 73, 74, random.below(2) as u128);
            let predicate = random.below(3) as u128;
            words.push(with(with(test, 81, 84, predicate), 12, 16, 7));
            some(&mut random, &mut words, 4);
            let distance = (head as i128 - words.len() as i128 - 1) * 4;
            let back = with(with(self.branch, 87, 91, 7), 34, 82, distance as u128);
            words.push(with(back, 12, 16, predicate));
        }
        some(&mut random, &mut words, 6);
        words.push(with(with(self.exit, 87, 91, 7), 12, 16, 7));
        words
    }

    /// One without branches and guards, in which no predicate is known: only numbers flow.
    pub fn straight(&self, number: u64) -> Option<Code> {
        let mut random = Random(number);
        let mut words = self.start[..9].to_vec();
        for _ in 0..6 + random.below(12) {
            let word = self.one(&mut random);
            // These would choose by a number.
            let chooses = matches!(
                decode(ARCHITECTURE, &word.to_le_bytes()).expect("whole")[0].operation,
                Operation::Compare { .. } | Operation::Select { .. } | Operation::Minimum { .. }
            );
            if !chooses {
                words.push(with(word, 12, 16, 7));
            }
        }
        words.push(with(with(self.exit, 87, 91, 7), 12, 16, 7));
        self.code(words.into_iter())
    }

    /// Those of [`program`](Self::program).
    pub fn words(&self, number: u64) -> Vec<u128> {
        let mut random = Random(number);
        let mut words = self.start.clone();
        let length = 12 + random.below(30);
        let count = words.len() + length;
        for at in words.len()..count {
            let word = match random.below(40) {
                0..6 => {
                    // Over some instructions, or rarely to one before it.
                    let first = if random.below(9) == 0 { self.start.len() } else { at + 1 };
                    let target = (first + random.below(6)).min(count);
                    let distance = (target as i128 - at as i128 - 1) * 4;
                    let word = with(self.branch, 87, 91, 7);
                    Self::guard(&mut random, with(word, 34, 82, distance as u128))
                }
                6 => Self::guard(&mut random, with(self.exit, 87, 91, 7)),
                _ => self.one(&mut random),
            };
            words.push(word);
        }
        words.push(with(with(self.exit, 87, 91, 7), 12, 16, 7));
        words
    }
}
