//! Instructions mean what NVIDIA's disassembler says, and what is not known is unknown.

use std::collections::HashSet;

use cuda_kernel_access::decode::{
    ARCHITECTURES, AccessKind, DecodeError, INSTRUCTION, Operation, decode,
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
        assert!(place.wide, "{expected}");
        // The base, the guard, and the offset, which asynchronous copies have elsewhere.
        let bases = [24, 25, 31].map(|bit| bits ^ 1 << bit);
        let guards = [12, 13, 15].map(|bit| bits ^ 1 << bit);
        for other in bases.into_iter().chain(guards) {
            assert_ne!(text(architecture, address, other), expected);
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
        // Two halves of 16 bits each, which are not one number of 32.
        assert_eq!(text(architecture, 0, 0x000f_c800_07fe_0200_0001_0001_0810_7848), "?");
    }
}

/// What only larger corpora than ours have.
#[test]
fn uniform_selections_of_64_bits_are_told_from_those_of_32() {
    let bits = 0x008f_c800_0c00_0000_0000_00ff_0606_7c87;
    assert_eq!(text(120, 0, bits), "SEL.64 UR6, UR6, RZ, !UP0");
    assert_eq!(text(100, 0, bits), "?");
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
