//! Divisions of 32 bits by a number that the compiler does not know.
//!
//! There is no such instruction. The compiler takes the divisor's reciprocal as a float, makes it a
//! whole number and better by one step, multiplies, and adds one to what it got as long as the
//! remainder is not less than the divisor. What the float is exactly does not matter: the result is
//! the quotient. So that product is taken for the quotient itself here. Then the remainder is less
//! than the divisor, nothing is added, and all that the code does with both comes out the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::decode::{Instruction, Operand, Operation, Register, Source};
use crate::flow::Graph;
use crate::instruction::{ZERO, after};

/// What is added to the bits of the reciprocal: two less in its last place, times 2^32.
const SCALE: u32 = 0x0fff_fffe;

/// What is divided by. A register stands for what it held when the first instruction read it.
#[derive(Clone, Copy, PartialEq)]
enum Divisor {
    Is(Operand),
    AbsoluteOf(Operand),
}

impl Divisor {
    fn operand(self) -> Operand {
        let (Divisor::Is(operand) | Divisor::AbsoluteOf(operand)) = self;
        operand
    }
}

/// What is known of a register.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Zero,
    Is(Operand),
    AbsoluteOf(Operand),
    /// The divisor, below zero.
    Opposite(Divisor),
    /// The divisor as a float, rounded up.
    Float(Divisor),
    Reciprocal(Divisor),
    Scaled(Divisor),
    /// About 2^32 by the divisor.
    Integer(Divisor),
    Negative(Divisor),
    /// That, times the divisor: how much 2^32 is more.
    Product(Divisor),
    /// A better 2^32 by the divisor.
    Better(Divisor),
}

impl Known {
    fn operand(self) -> Option<Operand> {
        Some(match self {
            Known::Zero => return None,
            Known::Is(operand) | Known::AbsoluteOf(operand) => operand,
            Known::Opposite(of)
            | Known::Float(of)
            | Known::Reciprocal(of)
            | Known::Scaled(of)
            | Known::Integer(of)
            | Known::Negative(of)
            | Known::Product(of)
            | Known::Better(of) => of.operand(),
        })
    }
}

/// Of the registers of which something is known.
#[derive(Clone, PartialEq, Default)]
struct State(BTreeMap<Register, Known>);

impl State {
    fn of(&self, operand: Operand) -> Option<Known> {
        match operand {
            Operand::Register(Register::Zero) | Operand::Immediate(0) => Some(Known::Zero),
            Operand::Register(register) => self.0.get(&register).copied(),
            _ => None,
        }
    }

    /// One name for what is read: the constant that a register was loaded from, if it was.
    fn name(&self, operand: Operand) -> Option<Operand> {
        match (operand, self.of(operand)) {
            (_, Some(Known::Is(operand))) => Some(operand),
            (Operand::Constant { index: Register::Zero, .. } | Operand::Register(_), _) => {
                Some(operand)
            }
            _ => None,
        }
    }

    /// What a conversion of this operand is one of.
    fn divisor(&self, operand: Operand, signed: bool) -> Option<Divisor> {
        match self.of(operand) {
            Some(Known::AbsoluteOf(of)) => Some(Divisor::AbsoluteOf(of)),
            Some(Known::Zero) => None,
            // One with a sign may be negative, and is then divided in another way.
            _ if signed => None,
            _ => self.name(operand).map(Divisor::Is),
        }
    }

    fn is(&self, operand: Operand, divisor: Divisor) -> bool {
        self.divisor(operand, false) == Some(divisor)
    }

    /// An operand that has the divisor now.
    fn place(&self, divisor: Divisor) -> Option<Operand> {
        match divisor {
            Divisor::Is(operand) => Some(operand),
            Divisor::AbsoluteOf(of) => {
                let mut all = self.0.iter();
                let found = all.find(|(_, known)| **known == Known::AbsoluteOf(of));
                found.map(|(register, _)| Operand::Register(*register))
            }
        }
    }

    /// What the instruction's result is, and the two that it divides, if that is what it does.
    fn result(&self, one: &Instruction) -> (Option<Known>, Option<[Operand; 2]>) {
        let operand = |at: usize| one.sources.get(at).map(|source| source.operand);
        let of = |at: usize| operand(at).and_then(|operand| self.of(operand));
        let known = match one.operation {
            Operation::Move { wide: false } if one.predicates_written.is_empty() => {
                operand(0).and_then(|operand| self.copy(operand))
            }
            Operation::Halves => of(0),
            Operation::Special(ZERO) => Some(Known::Zero),
            Operation::Absolute => {
                operand(0).and_then(|operand| self.name(operand)).map(Known::AbsoluteOf)
            }
            // Of the places that an instruction of this kind has the second is its operand.
            Operation::Other(name @ ("I2F.U32.RP" | "UI2F.U32.RP" | "I2F.RP")) => operand(1)
                .and_then(|operand| self.divisor(operand, name == "I2F.RP"))
                .map(Known::Float),
            Operation::Other("MUFU.RCP") => match of(1) {
                Some(Known::Float(divisor)) => Some(Known::Reciprocal(divisor)),
                _ => None,
            },
            Operation::Other("F2I.U32.TRUNC") => match of(1) {
                Some(Known::Scaled(divisor)) => Some(Known::Integer(divisor)),
                _ => None,
            },
            Operation::Add { wide: false, carry: false } => self.sum(&one.sources),
            Operation::MultiplyAdd { wide: false, high: false, carry: false, .. } => {
                self.product(&one.sources)
            }
            Operation::MultiplyAdd { wide: false, high: true, signed: false, carry: false }
                if one.sources.iter().all(|source| !source.negated) =>
            {
                return self.upper(&one.sources);
            }
            _ => None,
        };
        (known, None)
    }

    fn copy(&self, operand: Operand) -> Option<Known> {
        match (self.of(operand), operand) {
            (None, Operand::Constant { index: Register::Zero, .. }) => Some(Known::Is(operand)),
            (known, _) => known,
        }
    }

    fn opposite(&self, operand: Operand) -> Option<Known> {
        match self.of(operand) {
            Some(Known::Integer(divisor)) => Some(Known::Negative(divisor)),
            Some(Known::Zero) => Some(Known::Zero),
            _ => self.divisor(operand, false).map(Known::Opposite),
        }
    }

    fn signed(&self, source: Source) -> Option<Known> {
        if source.negated { self.opposite(source.operand) } else { self.copy(source.operand) }
    }

    fn sum(&self, sources: &[Source]) -> Option<Known> {
        let is_zero = |source: &&Source| self.of(source.operand) != Some(Known::Zero);
        match *sources.iter().filter(is_zero).collect::<Vec<_>>().as_slice() {
            [] => Some(Known::Zero),
            [&one] => self.signed(one),
            [&one, &two] if !one.negated && !two.negated => {
                match (self.of(one.operand), one.operand, self.of(two.operand), two.operand) {
                    (Some(Known::Reciprocal(divisor)), _, _, Operand::Immediate(SCALE))
                    | (_, Operand::Immediate(SCALE), Some(Known::Reciprocal(divisor)), _) => {
                        Some(Known::Scaled(divisor))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn product(&self, sources: &[Source]) -> Option<Known> {
        let &[first, second, third] = sources else { return None };
        let is_zero = |source: Source| self.of(source.operand) == Some(Known::Zero);
        if is_zero(first) || is_zero(second) {
            return self.signed(third);
        }
        if !is_zero(third) {
            return None;
        }
        let negated = first.negated != second.negated;
        for (one, two) in [(first, second), (second, first)] {
            match (self.of(one.operand), negated) {
                _ if two.operand == Operand::Immediate(1) => {
                    return self.signed(Source { operand: one.operand, negated });
                }
                (Some(Known::Negative(divisor)), false) | (Some(Known::Integer(divisor)), true)
                    if self.is(two.operand, divisor) =>
                {
                    return Some(Known::Product(divisor));
                }
                (Some(Known::Opposite(divisor)), false)
                    if self.of(two.operand) == Some(Known::Integer(divisor)) =>
                {
                    return Some(Known::Product(divisor));
                }
                _ => {}
            }
        }
        None
    }

    fn upper(&self, sources: &[Source]) -> (Option<Known>, Option<[Operand; 2]>) {
        let &[first, second, third] = sources else { return (None, None) };
        let [first, second, third] = [first, second, third].map(|source| source.operand);
        for (one, two) in [(first, second), (second, first)] {
            match (self.of(one), self.of(two)) {
                (Some(Known::Integer(divisor)), Some(Known::Product(of)))
                    if divisor == of
                        && self.of(third) == Some(Known::Zero)
                        && matches!(third, Operand::Register(low)
                            if self.of(Operand::Register(after(low)))
                                == Some(Known::Integer(divisor))) =>
                {
                    return (Some(Known::Better(divisor)), None);
                }
                (Some(Known::Better(divisor)), _) if third == Operand::Register(Register::Zero) => {
                    return (None, self.place(divisor).map(|divisor| [two, divisor]));
                }
                _ => {}
            }
        }
        (None, None)
    }

    /// Runs an instruction, and returns what it divides.
    fn step(&mut self, one: &Instruction) -> Option<[Operand; 2]> {
        if one.operation == Operation::Unknown {
            // It may write any register.
            self.0.clear();
            return None;
        }
        let (mut known, divided) = self.result(one);
        if !one.guard.is_true() {
            known = None;
        }
        let constant = match (one.operation, one.sources.first().map(|source| source.operand)) {
            (
                Operation::LoadConstant { bytes: 4 | 8 | 16, .. },
                Some(Operand::Constant { bank, offset, index: Register::Zero }),
            ) if one.guard.is_true() => Some((bank, offset)),
            _ => None,
        };
        let Some((mut register, count)) = one.destination else { return divided };
        for _ in 0..count {
            self.0.remove(&register);
            self.0.retain(|_, known| known.operand() != Some(Operand::Register(register)));
            register = after(register);
        }
        let mut register = one.destination.map_or(Register::Zero, |(register, _)| register);
        for part in 0..count {
            let offset = |offset: u16| offset.checked_add(4 * u16::from(part));
            let known = match constant {
                Some((bank, first)) => offset(first).map(|offset| {
                    Known::Is(Operand::Constant { bank, offset, index: Register::Zero })
                }),
                // Zeros may be several; anything else is of one register.
                None => known.filter(|&known| known == Known::Zero || count == 1),
            };
            // It would be another number than the one that it is named after.
            let known = known.filter(|known| known.operand() != Some(Operand::Register(register)));
            if let Some(known) = known
                && register != Register::Zero
            {
                self.0.insert(register, known);
            }
            register = after(register);
        }
        divided.filter(|_| one.guard.is_true())
    }

    /// What is known of both, and whether that is less than was known here.
    fn join(&mut self, other: &Self) -> bool {
        let before = self.0.len();
        self.0.retain(|register, known| other.0.get(register) == Some(known));
        self.0.len() < before
    }
}

/// Replaces the products that stand for quotients.
pub(crate) fn find(instructions: &mut [Instruction], graph: &Graph) {
    let is_reciprocal = |one: &Instruction| one.operation == Operation::Other("MUFU.RCP");
    if !instructions.iter().any(is_reciprocal) {
        return;
    }
    let mut before: Vec<Option<State>> = vec![None; graph.blocks.len()];
    let mut open = VecDeque::from([0]);
    if let Some(first) = before.first_mut() {
        *first = Some(State::default());
    }
    while let Some(at) = open.pop_front() {
        let (Some(block), Some(Some(state))) = (graph.blocks.get(at), before.get(at)) else {
            continue;
        };
        let mut state = state.clone();
        for one in instructions.get(block.instructions.clone()).unwrap_or_default() {
            state.step(one);
        }
        for &next in &block.next {
            let less = match before.get_mut(next) {
                Some(Some(known)) => known.join(&state),
                Some(unknown) => {
                    *unknown = Some(state.clone());
                    true
                }
                None => false,
            };
            if less && !open.contains(&next) {
                open.push_back(next);
            }
        }
    }
    // Code may be in several blocks, and must be a division in each.
    let mut divided: BTreeMap<usize, [Operand; 2]> = BTreeMap::new();
    let mut others = BTreeSet::new();
    for (block, state) in graph.blocks.iter().zip(before) {
        let Some(mut state) = state else { continue };
        for at in block.instructions.clone() {
            let Some(found) = instructions.get(at).map(|one| state.step(one)) else { break };
            match found {
                Some(operands) if *divided.entry(at).or_insert(operands) == operands => {}
                _ => {
                    others.insert(at);
                }
            }
        }
    }
    for (at, operands) in divided {
        if let Some(one) = instructions.get_mut(at).filter(|_| !others.contains(&at)) {
            one.operation = Operation::Divide { signed: false, wide: false, remainder: false };
            one.sources = operands.map(Source::from).to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::decode::{Instruction, Operand, Operation, Predicate, Register, Source};
    use crate::flow::Graph;

    const ALWAYS: Predicate = Predicate { index: None, uniform: false, negated: false };

    fn register(number: u16) -> Operand {
        match number {
            255 => Operand::Register(Register::Zero),
            number => Operand::Register(Register::General(number)),
        }
    }

    fn one(operation: Operation, to: u16, sources: &[Source]) -> Instruction {
        Instruction {
            guard: ALWAYS,
            operation,
            destination: Some((Register::General(to), 1)),
            sources: sources.to_vec(),
            predicates_written: Vec::new(),
            predicates_read: Vec::new(),
            target: None,
        }
    }

    /// Register 9 is register 1 divided by register 2.
    fn division() -> Vec<Instruction> {
        let add = Operation::Add { wide: false, carry: false };
        let [low, high] = [false, true].map(|high| Operation::MultiplyAdd {
            wide: false,
            high,
            signed: false,
            carry: false,
        });
        let r = |number: u16| Source::from(register(number));
        let minus = |number: u16| Source { operand: register(number), negated: true };
        let number = |number: u32| Source::from(Operand::Immediate(number));
        vec![
            one(Operation::Other("I2F.U32.RP"), 3, &[r(0), r(2), r(0)]),
            one(Operation::Other("MUFU.RCP"), 3, &[r(0), r(3), r(0)]),
            one(add, 4, &[r(3), number(0x0fff_fffe), r(255)]),
            one(Operation::Other("F2I.U32.TRUNC"), 5, &[r(0), r(4), r(0)]),
            one(Operation::Move { wide: false }, 4, &[number(0)]),
            one(add, 6, &[r(255), minus(5), r(255)]),
            one(low, 6, &[r(6), r(2), r(255)]),
            one(high, 5, &[r(5), r(6), r(4)]),
            one(high, 9, &[r(5), r(1), r(255)]),
            one(Operation::Exit, 255, &[]),
        ]
    }

    fn quotients(code: &[Instruction]) -> Vec<(usize, [Operand; 2])> {
        let mut code = code.to_vec();
        let graph = Graph::new(&code).expect("its ways are known");
        find(&mut code, &graph);
        let found = code.iter().enumerate().filter_map(|(at, one)| match one.operation {
            Operation::Divide { signed: false, wide: false, remainder: false } => {
                Some((at, [one.sources[0].operand, one.sources[1].operand]))
            }
            _ => None,
        });
        found.collect()
    }

    #[test]
    fn the_last_product_of_a_division_is_the_quotient() {
        let expected = vec![(8, [register(1), register(2)])];
        assert_eq!(quotients(&division()), expected);
        // The factors of a product may be in either order.
        for at in [6, 7, 8] {
            let mut code = division();
            code[at].sources.swap(0, 1);
            assert_eq!(quotients(&code), expected, "{at}");
        }
        // The divisor's opposite may come first.
        let mut code = division();
        code[5].sources[1].operand = register(2);
        code[6].sources[1].operand = register(5);
        assert_eq!(quotients(&code), expected);
    }

    /// Whatever is another instruction than the compiler's makes it another number.
    #[test]
    fn what_is_not_quite_a_division_is_left_alone() {
        let none = |what: &str, code: &[Instruction]| assert_eq!(quotients(code), [], "{what}");
        for at in 0..9 {
            let mut code = division();
            code[at].guard.index = Some(0);
            none(&format!("{at} has a guard"), &code);
            // Each place of the registers that are read.
            for place in 0..code[at].sources.len() {
                let ignored = matches!(at, 0 | 1 | 3) && place != 1;
                if ignored || at == 8 && place == 1 {
                    continue;
                }
                let mut code = division();
                code[at].sources[place].operand = register(20);
                none(&format!("{at} reads another at {place}"), &code);
                let mut code = division();
                let negated = &mut code[at].sources[place].negated;
                *negated = !*negated;
                // Zero has no sign, and what has none here has no such bit.
                if at > 4 && !(at < 7 && code[at].sources[place].operand == register(255)) {
                    none(&format!("{at} negates at {place}"), &code);
                }
            }
            // What was made is lost before it is used.
            for lost in [2, 3, 4, 5, 6] {
                let mut code = division();
                code.insert(at, one(Operation::Special(0x21), lost, &[]));
                let used = match lost {
                    2 => at > 0,
                    3 => (1..=2).contains(&at),
                    4 => at == 3 || (5..=7).contains(&at),
                    5 => (4..=8).contains(&at),
                    _ => (6..=7).contains(&at),
                };
                assert_eq!(quotients(&code).is_empty(), used, "{lost} before {at}");
            }
        }
        for name in ["I2F", "I2F.RP", "MUFU", "F2I"] {
            for at in [0, 1, 3] {
                let mut code = division();
                code[at].operation = Operation::Other(name);
                none(name, &code);
            }
        }
        let mut code = division();
        code[2].sources[1].operand = Operand::Immediate(0x0fff_ffff);
        none("another scale", &code);
        for at in [7, 8] {
            let mut code = division();
            let Operation::MultiplyAdd { signed, .. } = &mut code[at].operation else { panic!() };
            *signed = true;
            none("signed", &code);
        }
    }

    /// The quotient of numbers with a sign is that of what they are without.
    #[test]
    fn one_with_a_sign_is_divided_by_without() {
        let mut code = division();
        code.insert(0, one(Operation::Absolute, 2, &[register(12).into()]));
        code[1].operation = Operation::Other("I2F.RP");
        assert_eq!(quotients(&code), [(9, [register(1), register(2)])]);
        // Two registers may have it.
        code.insert(5, one(Operation::Absolute, 13, &[register(12).into()]));
        code[8].sources[1].operand = register(13);
        assert_eq!(quotients(&code).len(), 1);
        code[5].sources[0].operand = register(11);
        assert_eq!(quotients(&code), []);
    }

    #[test]
    fn a_divisor_from_a_constant_is_that_constant() {
        let constant = Operand::Constant { bank: 0, offset: 0x168, index: Register::Zero };
        let mut code = division();
        let first = Operand::Constant { bank: 0, offset: 0x160, index: Register::Zero };
        let load = Operation::LoadConstant { bytes: 16, signed: false };
        code.insert(0, one(load, 0, &[first.into()]));
        code[0].destination = Some((Register::General(0), 4));
        // It stays known when the register is used for something else.
        code.insert(8, one(Operation::Special(0x21), 2, &[]));
        assert_eq!(quotients(&code), [(10, [register(1), constant])]);
    }

    /// Where ways meet, only what is known on both is known.
    #[test]
    fn what_one_of_two_ways_makes_is_not_known() {
        let skipping = |target: i64| {
            let mut branch = one(Operation::Branch { divergent: false }, 255, &[]);
            branch.destination = None;
            branch.guard.index = Some(0);
            branch.target = Some(target * 16);
            let mut code = division();
            code.insert(7, branch);
            code
        };
        let code = skipping(8);
        assert_eq!(quotients(&code), [(9, [register(1), register(2)])]);
        // Over the last step to a better one, and over another divisor.
        let mut code = skipping(9);
        assert_eq!(quotients(&code), []);
        code.insert(8, one(Operation::Special(0x21), 2, &[]));
        assert_eq!(quotients(&code), []);
    }
}
