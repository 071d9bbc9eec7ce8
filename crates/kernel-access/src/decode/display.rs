//! Instructions as text, for people and for the comparison with NVIDIA's disassembler
//! (`tools/kernels`). Names are NVIDIA's, without what is not decoded; predicates that always hold
//! are left out.

use std::fmt::{self, Display};

use super::{
    Access, AccessKind, Comparison, Instruction, Junction, Operand, Operation, Predicate, Register,
    Source, Space,
};

impl Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Register::General(number) => write!(f, "R{number}"),
            Register::Uniform(number) => write!(f, "UR{number}"),
            Register::Zero => f.write_str("RZ"),
        }
    }
}

impl Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.negated { "!" } else { "" };
        match self.index {
            Some(number) => write!(f, "{not}{}P{number}", if self.uniform { "U" } else { "" }),
            None => write!(f, "{not}PT"),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operand {
            // As the instruction has it.
            Operand::Immediate(number) if self.negated => {
                return write!(f, "{:#x}", number.wrapping_neg());
            }
            _ if self.negated => f.write_str("-")?,
            _ => {}
        }
        match self.operand {
            Operand::Register(register) => register.fmt(f),
            Operand::Immediate(number) => write!(f, "{number:#x}"),
            Operand::Constant { bank, offset, index: Register::Zero } => {
                write!(f, "c[{bank:#x}][{offset:#x}]")
            }
            Operand::Constant { bank, offset, index } => {
                write!(f, "c[{bank:#x}][{index}+{offset:#x}]")
            }
            Operand::Unknown => f.write_str("?"),
        }
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.guard.is_true() {
            write!(f, "@{} ", self.guard)?;
        }
        self.write_name(f)?;
        let mut first = true;
        let mut item = |item: &dyn Display| {
            let before = if first { " " } else { ", " };
            first = false;
            write!(f, "{before}{item}")
        };
        if let Some((register, _)) = self.destination {
            item(&register)?;
        }
        for predicate in self.predicates_written.iter().filter(|predicate| !predicate.is_true()) {
            item(predicate)?;
        }
        if let Operation::SaveConvergence { number, .. } | Operation::RestoreConvergence(number) =
            self.operation
        {
            item(&format!("B{number}"))?;
        }
        if let Operation::Access(access) = self.operation
            && let Some(address) = access.address
        {
            let uniform = address.uniform.map_or(String::new(), |register| format!("+{register}"));
            item(
                &format!(
                    "[{}{uniform}{}{:#x}]",
                    address.base,
                    if address.offset < 0 { "-" } else { "+" },
                    address.offset.unsigned_abs()
                )
                .replace("+0x0]", "]"),
            )?;
        }
        if let Operation::Access(Access { count: Some(count), .. }) = self.operation {
            item(&count)?;
        }
        // The comparison knows no more of these than what they write.
        let is_short = match self.operation {
            Operation::Other(_)
            | Operation::ReverseBits
            | Operation::CountBits
            | Operation::HighestBit { .. } => true,
            Operation::Access(access) => access.space == Space::Tensor,
            _ => false,
        };
        if !is_short {
            for source in &self.sources {
                item(source)?;
            }
        }
        match self.operation {
            Operation::ShiftAdd { shift, .. } => item(&format!("{shift:#x}"))?,
            Operation::Logic(table) => item(&format!("{table:#x}"))?,
            Operation::Special(number) => item(&format!("SR{number:#x}"))?,
            Operation::SetConvergence(number) | Operation::Converge(number) => {
                item(&format!("B{number}"))?
            }
            _ => {}
        }
        let is_other = matches!(self.operation, Operation::Other(_));
        let read =
            self.predicates_read.iter().filter(|predicate| !is_other && !predicate.is_true());
        for predicate in read {
            item(predicate)?;
        }
        if let Operation::PredicateLogic([one, two]) = self.operation {
            item(&format!("{one:#x}"))?;
            item(&format!("{two:#x}"))?;
        }
        match self.target {
            Some(target) => item(&format!("{target:#x}")),
            None => Ok(()),
        }
    }
}

impl Instruction {
    fn write_name(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |present: bool, part: &'static str| if present { part } else { "" };
        match self.operation {
            Operation::Move { wide } => write!(f, "MOV{}", part(wide, ".64")),
            Operation::Special(_) => f.write_str("S2R"),
            Operation::LoadConstant { bytes, signed } => {
                write!(f, "LDC.{}{bytes}", part(signed, "S"))
            }
            Operation::MultiplyAdd { wide, high, signed, carry } => write!(
                f,
                "IMAD{}{}{}{}",
                part(wide, ".WIDE"),
                part(high, ".HI"),
                part((wide || high) && !signed, ".U32"),
                part(carry, ".X")
            ),
            Operation::Add { wide, carry } => {
                write!(f, "IADD{}{}", part(wide, ".64"), part(carry, ".X"))
            }
            Operation::ShiftAdd { high, extended, carry, .. } => {
                write!(
                    f,
                    "LEA{}{}{}",
                    part(high, ".HI"),
                    part(carry, ".X"),
                    part(extended, ".SX32")
                )
            }
            Operation::Shift { right, high, wide, signed, wrap } => write!(
                f,
                "SHF.{}{}.{}{}{}",
                if right { "R" } else { "L" },
                part(wrap, ".W"),
                if signed { "S" } else { "U" },
                if wide { "64" } else { "32" },
                part(high, ".HI")
            ),
            Operation::Logic(_) => f.write_str("LOP3"),
            Operation::Permute => f.write_str("PRMT"),
            Operation::Select { wide } => write!(f, "SEL{}", part(wide, ".64")),
            Operation::Minimum { signed, wide } => {
                let kind = match (signed, wide) {
                    (true, false) => "",
                    (false, false) => ".U32",
                    (true, true) => ".S64",
                    (false, true) => ".U64",
                };
                write!(f, "MNMX{kind}")
            }
            Operation::MinimumOfSum { signed } => {
                write!(f, "ADDMNMX{}", if signed { "" } else { ".U32" })
            }
            Operation::Compare { comparison, signed, junction, wide, high } => {
                let comparison = match comparison {
                    Comparison::Never => "F",
                    Comparison::Less => "LT",
                    Comparison::Equal => "EQ",
                    Comparison::LessOrEqual => "LE",
                    Comparison::Greater => "GT",
                    Comparison::NotEqual => "NE",
                    Comparison::GreaterOrEqual => "GE",
                    Comparison::Always => "T",
                };
                let junction = match junction {
                    Junction::And => "AND",
                    Junction::Or => "OR",
                    Junction::Xor => "XOR",
                };
                write!(
                    f,
                    "ISETP.{comparison}{}.{junction}{}",
                    match (signed, wide) {
                        (true, false) => "",
                        (false, false) => ".U32",
                        (true, true) => ".S64",
                        (false, true) => ".U64",
                    },
                    part(high, ".EX")
                )
            }
            Operation::PredicateLogic(_) => f.write_str("PLOP3"),
            Operation::Absolute => f.write_str("IABS"),
            Operation::ReverseBits => f.write_str("BREV"),
            Operation::CountBits => f.write_str("POPC"),
            Operation::HighestBit { .. } => f.write_str("FLO"),
            Operation::Halves => f.write_str("HALVES"),
            Operation::Computed => f.write_str("COMPUTED"),
            Operation::MultiplyLong => f.write_str("IMUL.64"),
            Operation::Divide { signed, wide, remainder } => write!(
                f,
                "{}.{}{}",
                if remainder { "IREM" } else { "IDIV" },
                if signed { "S" } else { "U" },
                if wide { "64" } else { "32" }
            ),
            Operation::Access(access) => {
                let kind = match access.kind {
                    AccessKind::Read => "LOAD",
                    AccessKind::Write => "STORE",
                    AccessKind::Atomic => "ATOMIC",
                    AccessKind::Reduce => "REDUCE",
                    AccessKind::CopyToShared => "COPY",
                    AccessKind::Unknown => "UNKNOWN",
                };
                let space = match access.space {
                    Space::Global => "GLOBAL",
                    Space::Generic => "GENERIC",
                    Space::Shared => "SHARED",
                    Space::Local => "LOCAL",
                    Space::Tensor => "TENSOR",
                };
                write!(f, "{kind}.{space}.{}", access.bytes)
            }
            Operation::Branch { divergent } => write!(f, "BRA{}", part(divergent, ".DIV")),
            Operation::BranchIndirect => f.write_str("BRX"),
            Operation::Exit => f.write_str("EXIT"),
            Operation::Call => f.write_str("CALL"),
            Operation::Return => f.write_str("RET"),
            Operation::SetConvergence(_) => f.write_str("BSSY"),
            Operation::Converge(_) => f.write_str("BSYNC"),
            Operation::SaveConvergence { clears, .. } => {
                write!(f, "BMOV{}", part(clears, ".CLEAR"))
            }
            Operation::RestoreConvergence(_) => f.write_str("BMOV"),
            // What follows a name is its mode.
            Operation::Other(name) => f.write_str(name.split('.').next().unwrap_or(name)),
            Operation::Unknown => f.write_str("?"),
        }
    }
}
