//! A kernel that is ready to be evaluated, and what it is launched with.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::callees;
use crate::container::Kernel;
use crate::decode::{Access, AccessKind, DecodeError, INSTRUCTION, Instruction, Operation, Space};
use crate::division;
use crate::flow::{Graph, NoGraph};
use crate::fractions;
use crate::instruction::is_access;
use crate::live::{Counts, Live};
use crate::parameters::{Cluster, Whose, address_half, cluster, meeting_half, stack};
use crate::polls::{is_fence, polls};
use crate::ptx::error::PtxError;
use crate::variables::Variables;

/// Why a kernel cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoCode {
    /// The code cannot be decoded.
    Code(DecodeError),
    /// The image does not say where the parameters are.
    NoParameters,
    /// The ways through the code are not known.
    Graph(NoGraph),
    /// The PTX cannot be read, or has an instruction that is not known.
    Ptx(PtxError),
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCode::Code(error) => error.fmt(f),
            NoCode::NoParameters => f.write_str("the image does not say where the parameters are"),
            NoCode::Graph(error) => error.fmt(f),
            NoCode::Ptx(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NoCode {}

/// A kernel's instructions and the ways through them.
#[derive(Clone, Debug)]
pub struct Code {
    pub(crate) architecture: u32,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) graph: Graph,
    /// Where the parameters are in constant bank 0, and how many bytes they have.
    pub(crate) parameters: (u32, u32),
    pub(crate) counts: Counts,
    /// Of PTX: the line of each instruction, and the offsets of reads of which nothing depends.
    lines: Vec<u32>,
    pub(crate) idle: BTreeSet<usize>,
    /// Constant bank 2.
    constants: Vec<u8>,
    pub(crate) variables: Variables,
    /// Whether it loads from the memory of a thread.
    pub(crate) has_local: bool,
    /// A clock, and the time after which an evaluation has no answer.
    pub(crate) time: Option<(fn() -> Duration, Duration)>,
    /// These are asked for by the kernel's summary and by each of its launches.
    polls: OnceLock<Vec<usize>>,
    live: OnceLock<Live>,
}

impl Code {
    /// Decodes a kernel and finds its ways.
    ///
    /// # Errors
    ///
    /// When any of its ways, or the place of its parameters, is not known.
    pub fn new(architecture: u32, kernel: &Kernel<'_>) -> Result<Self, NoCode> {
        let parameters = kernel.parameter_bank.ok_or(NoCode::NoParameters)?;
        let mut instructions = callees::instructions(architecture, kernel).map_err(NoCode::Code)?;
        fractions::replace(&mut instructions);
        let branches = kernel.indirect_branches.iter();
        let targets = branches.map(|(at, places)| (*at as usize, places.clone())).collect();
        let graph = Graph::with_targets(&instructions, &targets).map_err(NoCode::Graph)?;
        division::find(&mut instructions, &graph);
        let constants = kernel.constants.unwrap_or_default().to_vec();
        let counts = Counts::of(&instructions);
        let variables = Variables::new(kernel, &instructions);
        let loads = |one: &Instruction| {
            matches!(one.operation, Operation::Access(access) if access.space == Space::Local
                && access.kind == AccessKind::Read)
        };
        let has_local = instructions.iter().any(loads);
        Ok(Self {
            architecture,
            instructions,
            graph,
            parameters,
            counts,
            lines: Vec::new(),
            idle: BTreeSet::new(),
            constants,
            variables,
            has_local,
            time: None,
            polls: OnceLock::new(),
            live: OnceLock::new(),
        })
    }

    pub(crate) fn of_ptx(
        architecture: u32,
        instructions: Vec<Instruction>,
        graph: Graph,
        parameters: (u32, u32),
        counts: Counts,
    ) -> Self {
        Self {
            architecture,
            instructions,
            graph,
            parameters,
            counts,
            lines: Vec::new(),
            idle: BTreeSet::new(),
            constants: Vec::new(),
            variables: Variables::default(),
            has_local: false,
            time: None,
            polls: OnceLock::new(),
            live: OnceLock::new(),
        }
    }

    pub(crate) fn with_lines(self, lines: Vec<u32>, idle: BTreeSet<usize>) -> Self {
        Self { lines, idle, ..self }
    }

    /// The instructions, with the numbers that registers have here. Behind those of machine code there
    /// may be some that stand for functions which compute with fractions and do nothing else.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The line of PTX that the instruction at this offset is from, counted from 1. One line may have
    /// several. `None` for machine code.
    pub fn line(&self, at: usize) -> Option<u32> {
        self.lines.get(at / INSTRUCTION).copied()
    }

    /// Whether a thread may wait for what others write, or look whether they have: what it gets may decide
    /// which way it goes, in a loop, by an atomic operation, a load from global memory that is
    /// `volatile`, `relaxed` or `acquire`, or any load if there is a fence in the loop; or outside of loops by
    /// such a load, which may also say where an address is. What such a kernel does after may be in an order with other work that no call made.
    /// Loops without any of these cannot wait, as the compiler may load once for all turns.
    pub fn may_wait(&self) -> bool {
        !self.polls().is_empty()
    }

    /// The accesses to global memory that the ways through the code lead to, by their offsets.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = usize> {
        let all = self.graph.blocks.iter().flat_map(|block| block.instructions.clone());
        all.filter(|&index| self.instructions.get(index).is_some_and(|one| self.is_access(one)))
            .map(|index| index * INSTRUCTION)
    }

    /// Whether it accesses global memory, or reads a constant variable, which is there, too.
    pub(crate) fn is_access(&self, one: &Instruction) -> bool {
        is_access(one) || self.variables.read_by(one).next().is_some()
    }

    /// The names of the module's variables that it may use, as far as the image says, each with its word in
    /// a [`summary`](crate::touch::summary). It may use others, too, by addresses in memory. Constant variables
    /// have one word, and are all named if any of them is read.
    pub fn variables(&self) -> impl Iterator<Item = (u32, &str)> {
        let all = self.variables.names();
        all.map(|(number, name)| (self.word_of_variable(number), name))
    }

    /// Where the word of the variable with this number is: behind the words of the parameters.
    pub(crate) fn word_of_variable(&self, number: usize) -> u32 {
        self.parameters.1.next_multiple_of(8) + 8 * number as u32
    }

    /// The words of the parameters and of the variables.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        (0..self.word_of_variable(self.variables.count())).step_by(8)
    }

    /// The access at this offset.
    pub(crate) fn access(&self, at: usize) -> Option<Access> {
        match self.instructions.get(at / INSTRUCTION)?.operation {
            Operation::Access(access) => Some(access),
            _ => None,
        }
    }

    /// Whether others may learn from what it stores that earlier stores have been made: it has a fence, or
    /// writes in a strong way, or by an atomic operation.
    pub fn may_signal(&self) -> bool {
        self.instructions.iter().any(|one| match one.operation {
            other if is_fence(other) => true,
            Operation::Access(access) => {
                is_access(one) && access.strong && access.kind != AccessKind::Read
            }
            _ => false,
        })
    }

    /// Whether it writes to memory in any way.
    pub fn may_write(&self) -> bool {
        let writes = |one: &Instruction| {
            let Operation::Access(Access { kind, .. }) = one.operation else { return false };
            is_access(one) && !matches!(kind, AccessKind::Read | AccessKind::CopyToShared)
        };
        self.instructions.iter().any(writes)
    }

    /// Where a block may take over the work of another one, which then does not run.
    pub(crate) fn cancels(&self) -> Option<usize> {
        let takes = |one: &Instruction| one.operation == Operation::Other("UGETNEXTWORKID");
        self.instructions.iter().position(takes).map(|index| index * INSTRUCTION)
    }

    /// The offsets of the accesses by which it may wait, in rising order.
    pub(crate) fn polls(&self) -> &[usize] {
        self.polls.get_or_init(|| polls(&self.instructions, &self.graph))
    }

    pub(crate) fn live(&self) -> &Live {
        self.live.get_or_init(|| Live::new(&self.instructions, &self.graph, self.counts))
    }

    /// Whether it may wait by the access at this offset.
    pub(crate) fn polls_at(&self, at: usize) -> bool {
        self.polls().binary_search(&at).is_ok()
    }

    /// What [`touch`](crate::touch) says of it takes at most so long by a clock, and is
    /// [`TooLong`](crate::touch::Unknown::TooLong) otherwise. By the processor time of the thread
    /// the answer does not depend on what else the machine does. Without this only the number of
    /// steps is limited, so that the answer is always the same: that may take seconds.
    #[must_use]
    pub fn within(self, clock: fn() -> Duration, time: Duration) -> Self {
        Self { time: Some((clock, time)), ..self }
    }

    /// A number of at most 16 bytes that the compiler keeps in constant bank 2.
    pub(crate) fn number(&self, offset: u32, bytes: u32) -> Option<u128> {
        number(&self.constants, offset, bytes)
    }

    /// What a word of constant bank 0 is by its offset.
    pub(crate) fn constant(&self, offset: u32) -> Constant {
        // From sm_100 on the sizes are next to the parameters, each at a multiple of 16.
        let (block, grid) = if self.architecture < 100 { (0, 12) } else { (0x360, 0x370) };
        let axis = |first: u32| match offset.checked_sub(first)? {
            at @ (0 | 4 | 8) => Some(at as usize / 4),
            _ => None,
        };
        if let Some(axis) = axis(block) {
            return Constant::Block(axis);
        }
        if let Some(axis) = axis(grid) {
            return Constant::Grid(axis);
        }
        if let Some(cluster) = cluster(self.architecture, offset) {
            return Constant::Cluster(cluster);
        }
        if let Some(half) = meeting_half(self.architecture, offset) {
            return Constant::Meeting(half);
        }
        if offset == stack(self.architecture) {
            return Constant::Stack;
        }
        let (base, size) = self.parameters;
        match (offset.checked_sub(base), address_half(self.architecture, offset)) {
            (Some(at), _) if at < size => Constant::Parameter(at),
            (None, Some((half, Whose::Parameters))) => Constant::Address { half, before: 0 },
            (None, Some((half, Whose::Bank))) => Constant::Address { half, before: base },
            _ => Constant::Unknown,
        }
    }
}

/// What is in constant bank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    /// The threads of a block along an axis.
    Block(usize),
    /// The blocks of the grid along an axis.
    Grid(usize),
    /// Something about the clusters that the grid consists of.
    Cluster(Cluster),
    /// A half of the address where the blocks of a cooperative launch meet.
    Meeting(u32),
    /// The parameters from this byte on.
    Parameter(u32),
    /// The stack's first address in the memory of a thread.
    Stack,
    /// A half of the address by which parameters are read as memory is, or of one so many bytes before.
    Address {
        half: u32,
        before: u32,
    },
    Unknown,
}

/// What a kernel is launched with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// The bytes of the parameters, each at its offset. Missing ones are unknown.
    pub parameters: Vec<u8>,
    /// How many blocks there are along each axis.
    pub grid: [u32; 3],
    /// How many threads a block has along each axis.
    pub block: [u32; 3],
    /// What global memory holds: bytes, and the address of the first. Nothing may change them until the
    /// kernel has ended, and it does not itself. [Threads](crate::threads) that are run read them.
    pub memory: Vec<(u64, Arc<[u8]>)>,
    /// Where the variables of the module are, by their numbers.
    pub(crate) variables: Vec<Option<u64>>,
    /// Whether only the first block is meant, of as many as there are.
    pub(crate) is_first_block: bool,
}

impl Launch {
    /// A launch of `grid` blocks of `block` threads, of which nothing in memory is known.
    pub fn new(grid: [u32; 3], block: [u32; 3], parameters: impl Into<Vec<u8>>) -> Self {
        let (parameters, memory) = (parameters.into(), Vec::new());
        Self { parameters, grid, block, memory, variables: Vec::new(), is_first_block: false }
    }

    /// The launch of this kernel, with the addresses of the variables of its module as the driver gives them
    /// by name.
    #[must_use]
    pub fn with_variables(self, code: &Code, address_of: &dyn Fn(&str) -> Option<u64>) -> Self {
        Self { variables: code.variables.found(address_of), ..self }
    }

    /// Where the variable with this number is.
    pub(crate) fn variable(&self, number: usize) -> Option<u64> {
        self.variables.get(number).copied().flatten()
    }

    /// A number of at most 16 bytes in memory.
    pub(crate) fn in_memory(&self, address: u64, bytes: u8) -> Option<u128> {
        self.memory.iter().find_map(|(first, all)| {
            number(all, u32::try_from(address.checked_sub(*first)?).ok()?, bytes.into())
        })
    }

    /// The first block of this launch.
    pub(crate) fn first_block(&self) -> Self {
        Self { is_first_block: true, ..self.clone() }
    }

    /// A number among the parameters of at most 16 bytes.
    pub(crate) fn parameter(&self, at: u32, bytes: u32) -> Option<u128> {
        number(&self.parameters, at, bytes)
    }
}

fn number(bytes: &[u8], at: u32, count: u32) -> Option<u128> {
    let bytes = bytes.get(at as usize..at.checked_add(count)? as usize)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte)))
}
