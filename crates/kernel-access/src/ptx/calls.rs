//! Where a thread goes on: branches, calls, and what functions pass to each other.

use std::collections::HashSet;

use super::error::Done;
use super::parse::Operands;
use super::translate::{Named, Passed, Piece, Translator};
use super::{PtxError, parse};
use crate::callees::driver_reads;
use crate::container::NEVER_RETURNS;
use crate::decode::{Comparison, Operand, Operation, Predicate, Register};

impl<'a> Translator<'_, 'a> {
    /// The thread leaves the function.
    pub(super) fn leave(&mut self) {
        let operation = if self.in_entry { Operation::Exit } else { Operation::Return };
        self.emit(operation, None, Vec::new());
    }

    pub(super) fn branch(&mut self, label: &'a str, condition: Option<Predicate>) {
        self.results.clear();
        self.branches.push((self.out.code.len(), self.scope, label, self.line));
        let one = self.emit(Operation::Branch { divergent: false }, None, Vec::new());
        one.predicates_read.extend(condition);
    }

    /// To one of a list of labels, by an index.
    pub(super) fn branch_by(&mut self, index: &parse::Operand<'a>, list: &'a str) -> Done {
        let targets = self.find(self.scope, |scope| scope.targets.get(list).cloned());
        let targets = targets.filter(|targets| !targets.is_empty());
        let targets = targets.ok_or(PtxError::Operands(self.line))?;
        let index = self.value(index)?;
        let last = targets.len() - 1;
        for (number, target) in targets.into_iter().enumerate() {
            // There is no other index.
            let condition = if number == last {
                None
            } else {
                let operands = [index, Operand::Immediate(number as u32)];
                Some(self.compare((Comparison::Equal, false, false), operands)?)
            };
            self.branch(target, condition);
        }
        Ok(())
    }

    /// The register of a piece that is passed.
    fn piece(&mut self, piece: Piece) -> Result<u16, PtxError> {
        if let Some(&register) = self.pieces.get(&piece) {
            return Ok(register);
        }
        let register = self.fresh(piece.2 == 8)?;
        self.pieces.insert(piece, register);
        Ok(register)
    }

    /// The register into which a piece is stored.
    pub(super) fn passes(&mut self, to: Passed, at: u32, bytes: u32) -> Result<u16, PtxError> {
        self.stored.insert((to, at, bytes));
        self.piece((to, at, bytes))
    }

    /// The register that has a piece that was passed.
    pub(super) fn passed(&mut self, from: Passed, at: u32, bytes: u32) -> Result<u16, PtxError> {
        let from = match from {
            Passed::Own(number) => match self.results.get(&number) {
                Some(&result) => result,
                None => return self.operands(),
            },
            other => other,
        };
        self.loaded.push(((from, at, bytes), self.line));
        self.piece((from, at, bytes))
    }

    fn copy(&mut self, to: u16, from: u16, wide: bool) {
        let from = Operand::Register(Register::General(from)).into();
        self.emit(Operation::Move { wide }, Some((to, if wide { 2 } else { 1 })), vec![from]);
    }

    /// A function of the driver, which works on memory of the driver.
    fn call_of_driver(&mut self, name: &str, returned: &Operands<'a>) -> Done {
        let (operation, bytes) = match name {
            // It reads a text that it prints.
            "vprintf" => (Operation::Access(driver_reads()), 4),
            "malloc" => (Operation::Other("malloc"), 8),
            "free" => (Operation::Other("free"), 0),
            _ => return Err(PtxError::Call(self.line)),
        };
        self.results.clear();
        let result = match returned {
            [] => None,
            [parse::Operand::Name(name)] if bytes > 0 => match self.named(name)? {
                Some(Named::Passed(own @ Passed::Own(number))) => {
                    self.results.insert(number, own);
                    Some(self.passes(own, 0, bytes)?)
                }
                Some(Named::Register(bits, to)) if bits == 8 * bytes => Some(to),
                _ => return self.operands(),
            },
            _ => return self.operands(),
        };
        let count = if bytes == 8 { 2 } else { 1 };
        self.emit(operation, result.map(|first| (first, count)), Vec::new());
        Ok(())
    }

    pub(super) fn call(&mut self, operands: &Operands<'a>) -> Done {
        let none: &Operands<'a> = &[];
        let (returned, name, arguments) = match operands {
            [parse::Operand::List(returned), parse::Operand::Name(name), rest @ ..] => {
                (returned.as_slice(), *name, rest)
            }
            [parse::Operand::Name(name), rest @ ..] => (none, *name, rest),
            _ => return self.operands(),
        };
        let arguments = match arguments {
            [] => none,
            [parse::Operand::List(arguments)] => arguments.as_slice(),
            _ => return Err(PtxError::Call(self.line)),
        };
        let callee = match self.module.function(name) {
            Some(callee) => callee,
            // The driver's: a thread whose assertion fails never comes back.
            None if name == NEVER_RETURNS && returned.is_empty() => {
                self.results.clear();
                self.emit(Operation::Exit, None, Vec::new());
                return Ok(());
            }
            None => return self.call_of_driver(name, returned),
        };
        let of = self.module.functions.get(callee).ok_or(PtxError::Call(self.line))?;
        if of.parameters.len() != arguments.len() || of.returns.len() != returned.len() {
            return self.operands();
        }
        let mut given = HashSet::new();
        for (ordinal, argument) in arguments.iter().enumerate() {
            let parse::Operand::Name(name) = argument else { return self.operands() };
            match self.named(name)? {
                Some(Named::Passed(from @ Passed::Own(_))) => {
                    let mut pieces: Vec<Piece> =
                        self.stored.iter().copied().filter(|piece| piece.0 == from).collect();
                    pieces.sort_unstable_by_key(|piece| (piece.1, piece.2));
                    for (_, at, bytes) in pieces {
                        let own = self.piece((from, at, bytes))?;
                        let piece = (Passed::Parameter(callee, ordinal), at, bytes);
                        let to = self.piece(piece)?;
                        self.copy(to, own, bytes == 8);
                        given.insert(piece);
                    }
                }
                Some(Named::Register(bits, from)) => match self.bound(callee, false, ordinal)? {
                    Named::Register(own, to) if own == bits => self.copy(to, from, bits == 64),
                    _ => return self.operands(),
                },
                _ => return self.operands(),
            }
        }
        self.given.push((callee, given));
        self.calls.push((self.out.code.len(), callee, self.line));
        self.waiting.push(callee);
        self.emit(Operation::Call, None, Vec::new());
        self.results.clear();
        for (ordinal, one) in returned.iter().enumerate() {
            let parse::Operand::Name(name) = one else { return self.operands() };
            match self.named(name)? {
                Some(Named::Passed(Passed::Own(number))) => {
                    self.results.insert(number, Passed::Return(callee, ordinal));
                }
                Some(Named::Register(bits, to)) => match self.bound(callee, true, ordinal)? {
                    Named::Register(own, from) if own == bits => self.copy(to, from, bits == 64),
                    _ => return self.operands(),
                },
                _ => return self.operands(),
            }
        }
        Ok(())
    }
}
