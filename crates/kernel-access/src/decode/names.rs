//! Instructions that decide where a thread goes on, and those that compute no address.

use super::bits::{Bits, Form};
use super::{Instruction, Operand, Operation, Predicate};

/// Fills in an instruction that says where a thread goes on, if it is one.
pub(super) fn flow(bits: Bits, at: i64, to: &mut Instruction) -> bool {
    let next = at + super::INSTRUCTION as i64;
    // Newer architectures have eight bits of the distance at another place.
    let far = if bits.architecture >= 90 {
        next + ((bits.signed(34, 82) << 8 | bits.field(16, 24) as i64) * 4)
    } else {
        next + bits.signed(34, 82) * 4
    };
    match bits.field(0, 12) {
        // BRA
        0x947 | 0x547 => {
            let uniform = bits.field(0, 12) == 0x547;
            // Whether it is taken if threads differ, or if any of them has the predicate, which one
            // thread does not know. A branch that all take together follows from its predicate.
            let divergent = !uniform && bits.field(32, 34) >= 2 || bits.field(84, 87) != 0;
            let read = if uniform {
                Predicate { uniform, ..bits.predicate_read(24, 27) }
            } else {
                bits.predicate_read(87, 90)
            };
            to.operation = Operation::Branch { divergent };
            to.predicates_read = vec![read];
            to.target = Some(far);
        }
        // BRX
        0x949 => {
            to.operation = Operation::BranchIndirect;
            if let Ok(base) = u32::try_from(far) {
                to.sources = vec![
                    Operand::Register(bits.general(24)).into(),
                    Operand::Immediate(base).into(),
                ];
            }
        }
        // JMX, and those with a uniform register
        0x94c | 0x958 | 0x959 | 0x94a => to.operation = Operation::BranchIndirect,
        // EXIT
        0x94d => {
            to.operation = Operation::Exit;
            // Each thread's own.
            to.predicates_read = vec![Predicate { uniform: false, ..bits.predicate_read(87, 90) }];
        }
        // CALL with a distance
        0x944 => {
            to.operation = Operation::Call;
            to.target = Some(far);
        }
        // CALL to a place that is relocated, or in a register
        0x943 | 0x344 => to.operation = Operation::Call,
        0x343 => {
            to.operation = Operation::Call;
            to.sources = vec![Operand::Register(bits.general(24)).into()];
        }
        // LEPC: the place of an instruction, to which a call returns
        0x34e | 0x94e => {
            to.operation = Operation::Other("LEPC");
            to.destination = Some((bits.general(16), 2));
        }
        // RET
        0x950 => to.operation = Operation::Return,
        // BSSY
        0x945 => {
            to.operation = Operation::SetConvergence(bits.field(16, 20) as u8);
            to.target = Some(next + bits.signed(34, 64) * 4);
        }
        // BSYNC
        0x941 => to.operation = Operation::Converge(bits.field(16, 20) as u8),
        // BMOV.32, of a number of a place to meet. Others are where a thread goes when it ends or traps.
        0x355 if bits.field(24, 32) < 16 => {
            to.operation = Operation::SaveConvergence {
                number: bits.field(24, 28) as u8,
                clears: bits.bit(84),
            };
            to.destination = Some((bits.general(16), 1));
        }
        0x356 if bits.field(24, 32) < 16 && !bits.bit(84) => {
            to.operation = Operation::RestoreConvergence(bits.field(24, 28) as u8);
            to.sources = vec![Operand::Register(bits.general(32)).into()];
        }
        _ => return false,
    }
    true
}

/// How many registers one of the others writes.
#[derive(Clone, Copy)]
enum Writes {
    No,
    General(u8),
    Uniform(u8),
}

/// Numbers, names, and what is written. Where the kind of the numbers decides, the most.
const OTHERS: [(u16, &str, Writes); 112] = {
    use Writes::{General, No, Uniform};
    [
        (0x003, "P2R", General(1)),
        (0x004, "R2P", No),
        (0x00a, "FSET", General(1)),
        (0x00f, "VIMNMX3", General(1)),
        (0x01a, "SGXT", General(1)),
        (0x026, "IDP", General(1)),
        (0x02f, "ELECT", Uniform(1)),
        (0x03a, "MOVM", General(1)),
        (0x107, "FRND", General(1)),
        (0x110, "F2F", General(2)),
        (0x113, "FRND", General(2)),
        (0x11c, "B2R", General(1)),
        (0x1a1, "MATCH", General(1)),
        (0x1ab, "ERRBAR", No),
        (0x1c6, "FENCE", No),
        (0x006, "VOTE", General(1)),
        (0x008, "FSEL", General(1)),
        (0x009, "FMNMX", General(1)),
        (0x00b, "FSETP", No),
        (0x016, "PRMT", General(1)),
        (0x01b, "BMSK", General(1)),
        (0x020, "FMUL", General(1)),
        (0x021, "FADD", General(1)),
        (0x023, "FFMA", General(1)),
        (0x028, "DMUL", General(2)),
        (0x029, "DADD", General(2)),
        (0x02a, "DSETP", No),
        (0x02b, "DFMA", General(2)),
        (0x02d, "PREEXIT", No),
        (0x02e, "ACQBULK", No),
        (0x031, "HFMA2", General(1)),
        (0x030, "HADD2", General(1)),
        (0x032, "HMUL2", General(1)),
        (0x034, "HSETP2", No),
        (0x037, "IMMA", General(4)),
        (0x03c, "HMMA", General(4)),
        (0x03d, "BMMA", General(4)),
        (0x03f, "DMMA", General(8)),
        (0x03e, "F2FP", General(1)),
        (0x043, "F2IP", General(1)),
        (0x045, "I2FP", General(1)),
        (0x046, "VIADDMNMX", General(1)),
        // Of two halves of 16 bits each, or not below zero.
        (0x048, "VIMNMX", General(1)),
        (0x05a, "UI2F", Uniform(1)),
        (0x083, "UP2UR", Uniform(1)),
        (0x086, "VOTEU", Uniform(1)),
        (0x096, "UPRMT", Uniform(1)),
        (0x09a, "USGXT", Uniform(1)),
        (0x09b, "UBMSK", Uniform(1)),
        (0x0bd, "UFLO", Uniform(1)),
        (0x0bf, "UPOPC", Uniform(1)),
        (0x0cc, "CREDUX", Uniform(1)),
        (0x100, "FLO", General(1)),
        (0x101, "BREV", General(1)),
        (0x102, "FCHK", No),
        (0x104, "F2F", General(2)),
        (0x105, "F2I", General(1)),
        (0x106, "I2F", General(1)),
        (0x108, "MUFU", General(1)),
        (0x109, "POPC", General(1)),
        (0x111, "F2I", General(2)),
        (0x112, "I2F", General(2)),
        (0x118, "NOP", No),
        (0x11a, "DEPBAR", No),
        (0x11b, "ENDCOLLECTIVE", No),
        (0x11d, "BAR", No),
        (0x142, "BREAK", No),
        (0x146, "YIELD", No),
        (0x148, "WARPSYNC", No),
        (0x15d, "NANOSLEEP", No),
        (0x189, "SHFL", General(1)),
        (0x18f, "CCTL", No),
        (0x192, "MEMBAR", No),
        (0x1af, "LDGDEPBAR", No),
        (0x1c4, "REDUX", Uniform(1)),
        // What waits in a block or a cluster, and what works on shared or tensor memory and registers.
        (0x15c, "BPT", No),
        (0x1a7, "SYNCS", General(2)),
        (0x1aa, "QSPC", General(1)),
        (0x1b0, "ARRIVES", No),
        (0x1b2, "SYNCS", Uniform(2)),
        (0x1b7, "UTMACMDFLUSH", No),
        (0x1b9, "UTMACCTL", No),
        // Ahead of time, to the cache.
        (0x1bc, "UBLKPF", No),
        (0x1bd, "STAS", No),
        (0x1c5, "WARPGROUP", No),
        (0x1c7, "UCGABAR_ARV", No),
        (0x1c8, "USETMAXREG", No),
        (0x1e3, "UTCATOMSWS", Uniform(1)),
        (0x1e7, "UTCCP", No),
        (0x1e9, "UTCBAR", No),
        (0x1ea, "UTCMMA", No),
        (0x1ed, "STTM", No),
        (0x1ee, "LDTM", General(128)),
        (0x1f0, "HGMMA", General(128)),
        (0x1f1, "IGMMA", General(128)),
        (0x1f2, "BGMMA", General(128)),
        (0x1f3, "QGMMA", General(128)),
        (0x033, "HSET2", General(1)),
        (0x040, "HMNMX2", General(1)),
        (0x047, "VHMNMX", General(1)),
        (0x049, "FFMA2", General(2)),
        (0x04a, "FMUL2", General(2)),
        (0x04b, "FADD2", General(2)),
        (0x04c, "UVIRTCOUNT", No),
        (0x076, "FMNMX3", General(1)),
        (0x039, "I2IP", General(1)),
        (0x140, "CCTL", No),
        // Where a function returns to.
        (0x152, "RPCMOV", No),
        (0x153, "RPCMOV", General(1)),
        (0x1b1, "SYNCS", No),
        (0x1c9, "USETSHMSZ", No),
        (0x1ca, "UGETNEXTWORKID", No),
    ]
};

/// Those that `sm_120` has, most of them for the registers of a warp. Their numbers are of others
/// elsewhere.
const LATEST: [(u16, &str, Writes); 14] = {
    use Writes::{General, No, Uniform};
    [
        (0x07a, "QMMA", General(4)),
        (0x07f, "OMMA", General(4)),
        (0x04a, "UVIMNMX", Uniform(1)),
        (0x051, "UFSEL", Uniform(1)),
        (0x053, "UFSETP", No),
        (0x054, "UFADD", Uniform(1)),
        (0x055, "UFFMA", Uniform(1)),
        (0x056, "UFMUL", Uniform(1)),
        (0x05b, "UF2F", Uniform(1)),
        (0x05c, "UF2I", Uniform(1)),
        (0x05d, "UFRND", Uniform(1)),
        (0x05e, "UI2FP", Uniform(1)),
        (0x085, "UIMNMX", Uniform(2)),
        (0x0ba, "UF2FP", Uniform(1)),
    ]
};

/// Which of [`OTHERS`] are known in some forms only, or on some architectures.
fn is_known(bits: Bits, name: &str) -> bool {
    // Numbers of one kind of device are another instruction's elsewhere.
    let tensor_memory = matches!(bits.architecture, 100 | 103);
    let form = bits.field(9, 12);
    match name {
        // Which of its forms have a result is known of these.
        "SYNCS" if bits.number() == 0x1a7 => matches!(form, 2 | 4),
        "SYNCS" if bits.number() == 0x1b1 => bits.architecture >= 90 && form == 4,
        "SYNCS" => form == 2,
        "BPT" | "ARRIVES" | "UTMACMDFLUSH" | "UTMACCTL" | "WARPGROUP" | "USETMAXREG" => form == 4,
        "UBLKPF" => bits.architecture >= 90 && form == 1,
        "UCGABAR_ARV" => matches!(form, 4 | 6),
        "QSPC" => form == 1,
        "STAS" => form == 6,
        "HGMMA" | "IGMMA" | "BGMMA" | "QGMMA" => bits.architecture == 90 && matches!(form, 4 | 6),
        "UTCATOMSWS" => tensor_memory && matches!(form, 2 | 4),
        "UTCBAR" => tensor_memory && form == 1,
        "UTCCP" | "STTM" => tensor_memory && form == 4,
        "LDTM" => tensor_memory && matches!(form, 2 | 4),
        "UTCMMA" => tensor_memory && matches!(form, 2 | 4 | 6),
        "FFMA2" | "FMUL2" | "FADD2" | "UVIRTCOUNT" => tensor_memory,
        "FMNMX3" => tensor_memory,
        "CCTL" if bits.number() == 0x140 => bits.late && form == 2,
        "RPCMOV" | "UGETNEXTWORKID" => bits.late && form == 1,
        "USETSHMSZ" => bits.architecture >= 90 && form == 4,
        "UVIMNMX" => bits.field(81, 87) == 0x3f,
        "UI2F" => bits.late && form == 1,
        _ => true,
    }
}

/// Fills in an instruction that is of no use in an address, if it is one that is known.
pub(super) fn other(bits: Bits, to: &mut Instruction) -> bool {
    let number = bits.number();
    // The number was that of halves, and is another instruction's.
    let number = if number == 0x35 && bits.architecture < 120 { 0x31 } else { number };
    let latest = if bits.architecture >= 120 { &LATEST[..] } else { &[] };
    let mut all = latest.iter().chain(&OTHERS);
    let Some(&(_, name, writes)) = all.find(|(other, ..)| u64::from(*other) == number) else {
        return false;
    };
    if !is_known(bits, name) {
        return false;
    }
    let name = match (name, bits.form()) {
        ("ERRBAR", Form::ThirdImmediate) => "CGAERRBAR",
        ("UCGABAR_ARV", Form::SecondUniform) => "UCGABAR_WAIT",
        _ => match (name, bits.field(62, 64), bits.field(72, 91)) {
            // What divisions are made of: rounded up, of 32 bits, of the number itself.
            ("I2F", 0, 0x2090) => "I2F.U32.RP",
            ("UI2F", 0, 0x2090) => "UI2F.U32.RP",
            ("I2F", 0, 0x2094) => "I2F.RP",
            ("MUFU", 0, 0x10) => "MUFU.RCP",
            ("F2I", 0, 0x21f0) => "F2I.U32.TRUNC",
            _ => name,
        },
    };
    to.operation = Operation::Other(name);
    to.destination = match writes {
        Writes::No => None,
        // It asks, and has a predicate only.
        Writes::General(_) if name == "SYNCS" && bits.form() == Form::ThirdImmediate => None,
        // Of a product with so many columns, eight at a time: floats of 32 bits, or halves.
        Writes::General(_) if matches!(name, "HGMMA" | "QGMMA") => {
            let each = if bits.bit(75) { 4 } else { 2 };
            Some((bits.general(16), (bits.field(53, 58) as u8 + 1) * each))
        }
        Writes::General(_) if name == "F2F" && bits.field(75, 77) != 3 => {
            Some((bits.general(16), 1))
        }
        // Pairs begin with an even register, so this one is no pair.
        Writes::General(2) if bits.field(16, 17) == 1 => Some((bits.general(16), 1)),
        Writes::General(count) => Some((bits.general(16), count)),
        Writes::Uniform(count) => Some((bits.uniform(16), count)),
    };
    // Who writes predicates has them here, and the others have the one that is always true.
    match name {
        "FSETP" | "DSETP" | "HSETP2" | "UFSETP" | "UIMNMX" => {
            to.predicates_written = vec![bits.predicate(81), bits.predicate(84)]
        }
        // Those of a mask.
        "R2P" => {
            if bits.form() != Form::SecondImmediate {
                return false;
            }
            to.predicates_written = (0..7)
                .filter(|at| bits.field(32, 39) >> at & 1 != 0)
                .map(|number| Predicate::new(number, false, false))
                .collect();
        }
        "VIMNMX" => {
            use Form::{Registers, SecondConstant, SecondImmediate, SecondUniform};
            let forms = [Registers, SecondImmediate, SecondConstant, SecondUniform];
            if !forms.contains(&bits.form()) {
                return false;
            }
            to.predicates_written = vec![bits.predicate(81), bits.predicate(84)];
        }
        "VIMNMX3" if bits.late => {
            to.predicates_written = vec![bits.predicate(81), bits.predicate(84)]
        }
        "SYNCS" | "UTCATOMSWS" if bits.form() != Form::ThirdImmediate || bits.number() == 0x1b2 => {
        }
        "VOTE" | "SHFL" | "FCHK" | "B2R" | "ELECT" | "MATCH" | "SYNCS" | "QSPC" | "UTCATOMSWS"
        | "USETMAXREG" => to.predicates_written = vec![bits.predicate(81)],
        "VOTEU" => {
            // It is each thread's, though what it writes is uniform.
            to.guard.uniform = false;
            to.predicates_written = vec![Predicate { uniform: true, ..bits.predicate(81) }];
        }
        _ => {}
    }
    if matches!(name, "VOTE" | "VOTEU") {
        to.predicates_read = vec![Predicate { uniform: false, ..bits.predicate_read(87, 90) }];
    }
    // Each that it may read, as what is at its place. A barrier's number is in the instruction, by the
    // same form as a constant.
    to.sources = match (name, bits.three()) {
        (
            "BAR" | "DMMA" | "LDTM" | "HGMMA" | "IGMMA" | "BGMMA" | "QGMMA" | "SYNCS"
            | "UTCATOMSWS" | "USETSHMSZ" | "UGETNEXTWORKID" | "QMMA" | "OMMA",
            _,
        )
        | (_, None) => Vec::new(),
        // It may have been any register.
        ("RPCMOV", _) if bits.number() == 0x153 => Vec::new(),
        (_, Some(sources)) => sources.into_iter().map(Operand::into).collect(),
    };
    true
}
