//! Instructions mean what NVIDIA's disassembler says, and what is not known is unknown.

use std::collections::HashSet;

use cuda_kernel_access::decode::{
    ARCHITECTURES, AccessKind, DecodeError, INSTRUCTION, Operand, Operation, Register, Space,
    decode,
};

/// Architecture, address, bits, text.
fn table() -> Vec<(u32, usize, u128, &'static str)> {
    include_str!("instructions.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut parts = line.splitn(4, ' ');
            let mut part = || parts.next().expect("four parts");
            (
                part().parse().expect("an architecture"),
                usize::from_str_radix(part(), 16).expect("an address"),
                u128::from_str_radix(part(), 16).expect("bits"),
                part(),
            )
        })
        .collect()
}

/// As the instruction at that address.
fn text(architecture: u32, address: usize, bits: u128) -> String {
    let mut code = vec![0; address];
    code.extend(bits.to_le_bytes());
    decode(architecture, &code).expect("whole instructions").last().expect("one").to_string()
}

#[test]
fn instructions_are_what_the_table_says() {
    let table = table();
    for &(architecture, address, bits, expected) in &table {
        assert_eq!(text(architecture, address, bits), expected, "sm_{architecture} {bits:032x}");
    }
    let architectures: HashSet<u32> = table.iter().map(|row| row.0).collect();
    assert!(architectures.len() >= 4 && table.len() > 500, "{} rows", table.len());
}

/// A special register goes to a pair of registers, or with another bit to one.
#[test]
fn special_registers_go_to_one_register_or_two() {
    let decoded = |bits: u128| {
        let all = decode(80, &bits.to_le_bytes()).expect("whole instructions");
        let one = all.last().expect("one");
        (one.operation, one.destination)
    };
    // CS2R R24, SRZ and CS2R.32 R3, SR_CLOCKLO
    for (bits, special, register, count) in [
        (0x000f_e200_0001_ff00_0000_0000_0018_7805_u128, 0xff, 24, 2),
        (0x000f_e200_0000_5000_0000_0000_0003_7805, 0x50, 3, 1),
    ] {
        let expected = (Operation::Special(special), Some((Register::General(register), count)));
        assert_eq!(decoded(bits), expected, "{bits:x}");
    }
}

/// As many registers as the product has columns: one for two floats, or four halves.
#[test]
fn products_go_to_as_many_registers_as_they_have() {
    for (bits, count) in [
        // HGMMA.64x8x8.F32.TF32, .64x96x8.F32.TF32, .64x256x16.F32.BF16
        (0x000f_e800_0c70_28ff_0400_0000_2018_79f0_u128, 4),
        (0x000f_e800_0c70_28ff_0560_0000_3018_79f0, 48),
        (0x000f_e200_0c70_18ff_03e0_0000_0c18_79f0, 128),
        // HGMMA.64x16x16.F16, .64x128x16.F16, .64x256x16.F16
        (0x000f_e400_0870_0034_0020_0000_2818_79f0, 4),
        (0x000f_e800_0c70_00ff_01e0_0000_1418_79f0, 32),
        (0x000f_e800_0c70_00ff_03e0_0000_2418_79f0, 64),
        // QGMMA.64x128x32.F32.E4M3.E5M2, IGMMA.64x64x32.S8.S8: of that it is not known
        (0x000f_e200_0c70_28ff_01e0_0000_0c18_79f3, 64),
        (0x000f_e800_0c74_10ff_01e0_0000_2018_79f1, 128),
    ] {
        let all = decode(90, &bits.to_le_bytes()).expect("whole instructions");
        assert_eq!(all[0].destination, Some((Register::General(24), count)), "{bits:x}");
    }
}

#[test]
fn every_operand_of_the_accesses_counts() {
    let mut accesses = 0;
    for (architecture, address, bits, expected) in table() {
        let mut code = vec![0; address];
        code.extend(bits.to_le_bytes());
        let instructions = decode(architecture, &code).expect("whole instructions");
        let Some(Operation::Access(access)) = instructions.last().map(|one| one.operation) else {
            continue;
        };
        let Some(place) = access.address else { continue };
        accesses += 1;
        assert_eq!(place.wide, access.space != Space::Local, "{expected}");
        // The base, the guard, and the offset, which asynchronous copies have elsewhere.
        // The registers of a tensor map's place are uniform, and have nothing added.
        let is_tensor = access.space == Space::Tensor;
        let mut places = [24, 25, if is_tensor { 29 } else { 31 }];
        if access.count.is_some() {
            // The other place of a bulk copy is in shared memory, and the size has its register.
            places =
                if access.kind == AccessKind::CopyToShared { [24, 29, 64] } else { [32, 37, 64] };
        }
        let bases = places.map(|bit| bits ^ 1 << bit);
        let guards = [12, 13, 15].map(|bit| bits ^ 1 << bit);
        for other in bases.into_iter().chain(guards) {
            assert_ne!(text(architecture, address, other), expected);
        }
        if is_tensor || access.count.is_some() {
            continue;
        }
        let offset = if access.kind == AccessKind::CopyToShared { 32..44 } else { 40..63 };
        for bit in offset {
            assert_ne!(text(architecture, address, bits ^ 1 << bit), expected, "bit {bit}");
        }
        // Whether the uniform registers are a descriptor or are added.
        if matches!(access.kind, AccessKind::Read | AccessKind::Write) && bits >> 90 & 3 == 3 {
            assert_ne!(text(architecture, address, bits ^ 1 << 76), expected);
        }
    }
    assert!(accesses > 50, "{accesses} accesses");
}

/// Numbers of 64 bits below zero, but for those that continue a sum: there a sign is a complement.
#[test]
fn immediates_of_64_bits_have_a_sign() {
    // IADD.64 R2, R2, -0x3, and IMNMX.S64 R2, R2, UR8 with the same.
    let sum = 0x000f_cc00_078e_0200_ffff_fffd_0202_7835_u128;
    let minimum = 0x000f_ca00_03ff_e600_ffff_fffd_0202_7817;
    let (negative, plain) =
        ((Operand::Immediate(3), true), (Operand::Immediate(0xffff_fffd), false));
    for (bits, wide, expected) in [
        (sum, true, negative),
        (sum | 1 << 74, true, plain),
        (sum & !(1 << 73), false, plain),
        (minimum, true, negative),
    ] {
        let one = &decode(120, &bits.to_le_bytes()).expect("whole")[0];
        let second = one.sources.get(1).map(|source| (source.operand, source.negated));
        assert_eq!(second, Some(expected), "{bits:#x}");
        assert_eq!(one.destination.map(|(_, count)| count), Some(if wide { 2 } else { 1 }));
        assert!(one.to_string().contains("0xfffffffd"), "{one}");
    }
    // Another predicate of the minimum was never seen, nor was one of numbers of 32 bits there.
    for bits in [minimum ^ 1 << 80, minimum ^ 1 << 74, minimum ^ 1 << 72] {
        assert_eq!(text(120, 0, bits), "?", "{bits:#x}");
    }
    assert_eq!(text(100, 0, minimum), "?");
}

#[test]
fn what_is_not_known_is_unknown() {
    let code = [0; INSTRUCTION];
    for architecture in [0, 52, 75, 87, 101, 107, 110, 121, 130] {
        assert_eq!(
            decode(architecture, &code),
            Err(DecodeError::UnknownArchitecture(architecture))
        );
    }
    assert_eq!(decode(90, &code[1..]), Err(DecodeError::Incomplete));
    assert_eq!(decode(90, &[]), Ok(Vec::new()));
    for architecture in ARCHITECTURES {
        // No instruction has this number, and this form of a store has another address.
        assert_eq!(text(architecture, 0, 0x1ff), "@P0 ?");
        assert_eq!(text(architecture, 0, 0x000f_e200_0010_1906_0000_8009_0400_7986), "?");
    }
}

/// What only larger corpora than ours have, each compared with NVIDIA's disassembler.
#[test]
fn instructions_of_larger_corpora_are_known() {
    let bits = 0x008f_c800_0c00_0000_0000_00ff_0606_7c87;
    assert_eq!(text(120, 0, bits), "SEL.64 UR6, UR6, RZ, !UP0");
    assert_eq!(text(100, 0, bits), "?");
    for architecture in ARCHITECTURES {
        // Two halves of 16 bits each, which are not one number of 32, and one without a sign.
        for (bits, wanted) in [
            (0x000f_c800_07fe_0200_0001_0001_0810_7848, "VIMNMX R16"),
            (0x000f_c800_0bfe_0300_0000_0004_0202_7c48, "VIMNMX R2"),
            (0x000f_c800_0bfe_1100_0000_0004_0202_7c48, "VIMNMX R2"),
            (0x000f_c800_0bf2_0300_0000_0004_0202_7c48, "VIMNMX R2, P1"),
            (0x000f_c800_0b9e_0300_0000_0004_0202_7c48, "VIMNMX R2, P1"),
            (0x000f_e200_0800_0000_0000_0001_3f0b_7883, "UP2UR UR11"),
        ] {
            assert_eq!(text(architecture, 0, bits), wanted, "sm_{architecture} {bits:#x}");
        }
        // The form with a place of its own for the third source is none of them.
        assert_eq!(text(architecture, 0, 0x000f_c800_0bfe_0300_0000_0004_0202_7e48), "?");
    }
    // The lesser or greater of a sum and a number; of two halves each, not below zero, or with a
    // negation it is none of these.
    for (bits, wanted) in [
        (0x000f_e200_0780_01ff_ffff_ffff_0b03_7846, "ADDMNMX R3, R11, 0xffffffff, RZ, !PT"),
        (0x000f_e200_0380_0100_0000_0001_0b09_7846, "ADDMNMX R9, R11, 0x1, R0"),
        (0x000f_e200_0380_0000_8000_0001_0b09_7846, "ADDMNMX.U32 R9, R11, 0x80000001, R0"),
        (0x000f_e200_0780_0113_0000_000b_0b09_7246, "ADDMNMX R9, R11, R11, R19, !PT"),
        (0x000f_e200_0780_0113_8000_000b_0b09_7246, "VIADDMNMX R9"),
        (0x000f_e200_0780_0313_0000_000b_0b09_7246, "VIADDMNMX R9"),
        (0x000f_e200_0780_1113_0000_000b_0b09_7246, "VIADDMNMX R9"),
    ] {
        assert_eq!(text(90, 0, bits), wanted, "{bits:#x}");
        assert_eq!(text(100, 0, bits), wanted, "{bits:#x}");
    }
    // An atomic operation without a descriptor: its offset is signed, and it may have 64 bits.
    for (bits, wanted) in [
        (0x0004_2400_001e_0100_0000_0003_0603_83a8_u128, "@!P0 ATOMIC.GLOBAL.4 R3, [R6]"),
        (0x0004_2400_001e_0500_8000_0103_0603_83a8, "@!P0 ATOMIC.GLOBAL.8 R3, [R6-0x7fffff]"),
    ] {
        assert_eq!(text(90, 0, bits), wanted, "{bits:#x}");
        assert_eq!(text(100, 0, bits), wanted, "{bits:#x}");
        // Addresses of 32 bits, and a descriptor that is none.
        assert_eq!(text(90, 0, bits ^ 1 << 72).split(' ').nth(1), Some("?"), "{bits:#x}");
        assert_eq!(text(90, 0, bits ^ 1 << 91).split(' ').nth(1), Some("?"), "{bits:#x}");
    }
}

/// Loads and stores of 32 bytes: from and to two places, with an offset in steps of 32.
#[test]
fn accesses_of_32_bytes_have_two_places() {
    let load = 0x000f_2800_0802_1904_fe00_0000_1808_797e_u128;
    let store = 0x0003_e400_0f12_1806_f800_0008_100c_797f_u128;
    for (bits, wanted) in [
        (load, "LOAD.GLOBAL.32 R4, [R24]"),
        (load | 1 << 40, "LOAD.GLOBAL.32 R4, [R24+0x20]"),
        (load | 1 << 55, "LOAD.GLOBAL.32 R4, [R24+0x100000]"),
        (load | 1 << 56, "LOAD.GLOBAL.32 R4, [R24-0x200000]"),
        // A uniform register that is no descriptor.
        (load ^ 1 << 76 | 7 << 32, "LOAD.GLOBAL.32 R4, [R24+UR7]"),
        (store, "STORE.GLOBAL.32 [R16], R8, R12"),
        (store | 1 << 40, "STORE.GLOBAL.32 [R16+0x20], R8, R12"),
        (store | 1 << 57, "STORE.GLOBAL.32 [R16+0x400000], R8, R12"),
        (store | 1 << 58, "STORE.GLOBAL.32 [R16-0x800000], R8, R12"),
        (store ^ 1 << 76, "STORE.GLOBAL.32 [R16+UR6], R8, R12"),
    ] {
        for architecture in [100, 103, 120] {
            assert_eq!(text(architecture, 0, bits), wanted, "{bits:#x}");
        }
        assert_eq!(text(90, 0, bits), "?", "{bits:#x}");
    }
    // Of a mask of parts, and of a condition, it is not known what they do.
    for bit in [57, 63, 72, 87, 89, 90] {
        assert_eq!(text(100, 0, load ^ 1 << bit), "?", "{bit}");
    }
    for bit in [59, 63, 88, 90] {
        assert_eq!(text(100, 0, store ^ 1 << bit), "?", "{bit}");
    }
    // All registers from the first to the last.
    for (first, second, count) in [(4, 8, 8), (8, 4, 8), (4, 16, 16), (255, 4, 4), (4, 255, 4)] {
        let bits = load & !(0xff << 64 | 0xff << 16) | first << 64 | second << 16;
        let all = decode(100, &bits.to_le_bytes()).expect("whole instructions");
        assert_eq!(all[0].destination, Some((Register::General(4), count)), "{first} {second}");
    }
}

/// A number of 64 bits that is no operand is not followed.
#[test]
fn numbers_of_64_bits_go_to_pairs() {
    let number =
        |number: u64| 0x000f_e400_0000_0000_0000_0000_002e_7402_u128 | u128::from(number) << 24;
    for (bits, wanted) in [
        (number(0x7fff_ffff), "MOV.64 R46, 0x7fffffff"),
        (number(0x8000_0000), "MOV R46"),
        (number(0x8000_0001_u64.wrapping_neg()), "MOV R46"),
        (number(0x7fff_ffff_u64.wrapping_neg()), "MOV.64 R46, 0x80000001"),
        (number(0x3ff7_1547_652b_82fe), "MOV R46"),
        (number(0x3f09_5081_24b2_d538) | 0x080 | 1 << 91, "MOV UR46"),
    ] {
        let all = decode(120, &bits.to_le_bytes()).expect("whole instructions");
        assert_eq!(
            (all[0].to_string().as_str(), all[0].destination.map(|of| of.1)),
            (wanted, Some(2))
        );
    }
}

/// A load may have a condition besides its guard, and an address of other forms.
#[test]
fn loads_have_conditions_and_bases_of_32_bits() {
    let load = 0x140a_2400_001e_8d20_0000_0000_8884_7381_u128;
    let generic = 0x000e_e200_0010_0d00_0000_0000_9888_7980_u128;
    for (architecture, bits, wanted) in [
        (80, load, "LOAD.GLOBAL.16 R132, [R136]"),
        (80, load | 3 << 64, "LOAD.GLOBAL.16 R132, [R136], P4"),
        (80, load | 7 << 64, "LOAD.GLOBAL.16 R132, [R136], P0"),
        (80, load | 8 << 64, "LOAD.GLOBAL.16 R132, [R136], !PT"),
        (90, generic, "LOAD.GENERIC.16 R136, [R152]"),
        (90, generic | 1 << 32, "LOAD.GENERIC.16 R136, [R152+0x1]"),
        (90, generic | 1 << 40, "LOAD.GENERIC.16 R136, [R152+0x100]"),
        (100, generic | 0xffff_ff00 << 32, "LOAD.GENERIC.16 R136, [R152-0x100]"),
    ] {
        assert_eq!(text(architecture, 0, bits), wanted, "{bits:#x}");
    }
    let narrow = 0x0003_6800_081e_0d00_0000_0016_028c_7981_u128;
    for (bits, is_wide, wanted) in [
        (narrow, false, "LOAD.GLOBAL.16 R140, [R2+UR22]"),
        (narrow | 1 << 90, true, "LOAD.GLOBAL.16 R140, [R2+UR22]"),
    ] {
        assert_eq!(text(100, 0, bits), wanted);
        let all = decode(100, &bits.to_le_bytes()).expect("whole instructions");
        let Operation::Access(access) = all[0].operation else { panic!("{wanted}") };
        assert_eq!(access.address.map(|address| address.wide), Some(is_wide));
    }
}

/// Of several numbers at once: how many bytes these have is a bound, so it must not be less.
#[test]
fn operations_on_several_numbers_have_all_their_bytes() {
    // REDG, and where the kind of the numbers is: of sm_90, and of later ones.
    let redg = [
        (90, 0x000f_e200_0c10_e184_0000_0004_0200_79a6_u128),
        (120, 0x000f_e200_0c12_e104_0000_0004_0200_79a6),
    ];
    for (kind, numbers, bytes) in [
        (0, "F16x2", 4),
        (1, "F16x4", 8),
        (2, "F16x8", 16),
        (3, "BF16x2", 4),
        (4, "BF16x4", 8),
        (5, "BF16x8", 16),
        (9, "F32", 4),
        (10, "F32x2", 8),
        (11, "F32x4", 16),
        (15, "F64", 8),
    ] {
        for (architecture, bits) in redg {
            let wanted = format!("REDUCE.GLOBAL.{bytes} [R2], R4");
            let found = text(architecture, 0, bits | kind << 73);
            assert_eq!(found, wanted, "{numbers} sm_{architecture}");
        }
    }
    for (architecture, bits, wanted) in [
        // ATOM.E.ADD.BF16x2.RN.STRONG.GPU P0, R8, desc[UR4][R2.64+-0x14], R5
        (90, 0x0001_6200_0810_e7c4_ffff_ec05_0208_79a2_u128, "ATOMIC.GENERIC.4 R8, P0, [R2-0x14]"),
        (100, 0x0021_6200_0c10_e704_ffff_ec05_0206_79a2, "ATOMIC.GENERIC.4 R6, P0, [R2-0x14]"),
        // ATOMG.E.ADD.F32x2.FTZ.RN.STRONG.GPU PT, R4, desc[UR4][R4.64+-0x38], R10
        (90, 0x000e_a400_081e_f5c4_ffff_c80a_0404_79a3, "ATOMIC.GLOBAL.8 R4, [R4-0x38]"),
        // ATOMG.E.ADD.F64.RN.STRONG.GPU PT, R4, desc[UR4][R2.64], R4
        (120, 0x002e_e200_0c1e_ff04_8000_0004_0204_79a3, "ATOMIC.GLOBAL.8 R4, [R2]"),
        // Of a kind that was not seen, what it writes is not known.
        (120, 0x002e_e200_0c1e_fd04_8000_0004_0204_79a3, "?"),
    ] {
        assert_eq!(text(architecture, 0, bits), wanted, "{bits:x}");
    }
}

/// For any bits there is an answer, and it names registers that exist.
#[test]
fn any_bits_are_decoded() {
    let mut state = 7_u128;
    let mut unknown = 0;
    for round in 0..200_000_u128 {
        state =
            state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(round | 1);
        let bits = state ^ state >> 61;
        for architecture in [80, 90, 100, 120] {
            let one = decode(architecture, &bits.to_le_bytes()).expect("one instruction").remove(0);
            unknown += u32::from(one.operation == Operation::Unknown);
            if one.operation == Operation::Unknown {
                assert!(one.destination.is_none() && one.sources.is_empty());
            }
        }
    }
    assert!(unknown > 100_000, "{unknown}");
}

/// Loads of one or two bytes say whether they extend the sign.
#[test]
fn short_loads_have_a_sign_or_not() {
    // LDG.E.S8, LDG.E.S16, LDG.E.U16 and LDG.E.U8
    for (bits, bytes, signed) in [
        (0x000e_6200_0c1e_1300_0000_0004_0a05_7981_u128, 1, true),
        (0x000e_a200_0c1e_1700_0000_0004_0607_7981, 2, true),
        (0x000e_2200_0c1e_1500_0000_0004_0a0b_7981, 2, false),
        (0x000e_a200_0c1e_1100_0000_0004_0c0d_7981, 1, false),
    ] {
        let all = decode(90, &bits.to_le_bytes()).expect("whole instructions");
        let Some(Operation::Access(access)) = all.last().map(|one| one.operation) else {
            panic!("{bits:x}");
        };
        assert_eq!((access.kind, access.bytes, access.signed), (AccessKind::Read, bytes, signed));
    }
}

/// A vote reads what its threads have, whichever register it writes: VOTE and VOTEU of P0.
#[test]
fn votes_read_predicates_of_threads() {
    for (bits, is_uniform) in [
        (0x000fc800000e01000000000000007806_u128, false),
        (0x001fc400000e01000000000000080886, true),
    ] {
        let code = decode(100, &bits.to_le_bytes()).expect("whole instructions");
        let [read] = code[0].predicates_read[..] else { panic!("{code:?}") };
        assert_eq!((read.index, read.uniform, read.negated), (Some(0), false, false), "{bits:x}");
        let written = code[0].predicates_written[0];
        assert_eq!((written.index, written.uniform), (None, is_uniform), "{bits:x}");
    }
}
