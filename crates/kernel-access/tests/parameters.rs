//! Which parameters kernels read, for kernels whose source says it.

mod common;

use common::cubin;
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::parameters::{Unread, bytes_read};

/// What is read of a kernel with that code and these parameters.
fn read(
    architecture: u32,
    code: &[u8],
    parameters: &[(u16, u32)],
) -> Result<Vec<(u32, u32)>, Unread> {
    let base = match architecture {
        80..90 => 0x160,
        90 => 0x210,
        _ => 0x380,
    };
    let image = cubin(0x0600_0004 | architecture << 8, 8, &[("k", code, parameters)]);
    let cubin = Cubin::parse(&image).expect("a cubin");
    let mut kernel = cubin.kernel("k").expect("it is there").clone();
    kernel.parameter_bank = kernel.parameter_bank.map(|(_, size)| (base, size));
    let ranges = bytes_read(architecture, &kernel)?;
    Ok(ranges.iter().map(|range| (range.start, range.end)).collect())
}

/// Architecture, name, code.
fn kernels() -> Vec<(u32, &'static str, Vec<u8>)> {
    include_str!("kernels.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut parts = line.split(' ');
            let mut part = || parts.next().expect("three parts");
            let (architecture, name, code) =
                (part().parse().expect("an architecture"), part(), part());
            let byte = |at| u8::from_str_radix(&code[at..at + 2], 16).expect("a byte");
            (architecture, name, (0..code.len()).step_by(2).map(byte).collect())
        })
        .collect()
}

#[test]
fn words_that_no_instruction_reads_are_left_out() {
    for (architecture, name, code) in kernels() {
        let message = format!("{name} sm_{architecture}");
        match name {
            // (const float *never, float *out, int n)
            "unused_word" => {
                assert_eq!(
                    read(architecture, &code, &[(0, 8), (8, 8), (16, 4)]),
                    Ok(vec![(8, 20)]),
                    "{message}"
                );
            }
            // (float *out)
            "module_variables" => {
                assert_eq!(read(architecture, &code, &[(0, 8)]), Ok(vec![(0, 8)]), "{message}")
            }
            // (float *to, int n), and a function in the same code
            "called" => assert_eq!(
                read(architecture, &code, &[(0, 8), (8, 4)]),
                Ok(vec![(0, 12)]),
                "{message}"
            ),
            // A structure of arrays, of which the block's index chooses
            "many_tensors" => {
                assert_eq!(read(architecture, &code, &[(0, 160)]), Ok(vec![(0, 160)]), "{message}")
            }
            // A function that gets the address of a parameter reads it as memory: any of it
            "by_address" => {
                let read = read(architecture, &code, &[(0, 128), (128, 8)]);
                assert_eq!(read, Ok(vec![(0, 136)]), "{message}");
            }
            _ => panic!("{message}"),
        }
    }
}

#[test]
fn an_instruction_that_could_read_anything_makes_it_unknown() {
    let parameters = [(0, 8), (8, 8), (16, 4)];
    for (architecture, name, code) in kernels() {
        if name != "unused_word" {
            continue;
        }
        let with = |instruction: u128| {
            let code = [&code[..], &instruction.to_le_bytes()].concat();
            read(architecture, &code, &parameters)
        };
        let at = code.len();
        assert_eq!(with(0x71ff), Err(Unread::Instruction(at)));
        // A bulk copy by a mask, a call of an unknown place, a bank whose address is in a register.
        assert_eq!(with(0x0011_d800_0810_0407_0000_001c_0800_73ba), Err(Unread::Description(at)));
        assert_eq!(with(0x0000_0000_0000_7943), Err(Unread::Call(at)));
        assert_eq!(with(0x000f_e200_0800_0f00_0000_5800_0000_7a02), Err(Unread::Address(at)));
        // A barrier, whose form is that of a constant elsewhere.
        assert_eq!(with(0x000f_e200_0001_0000_0000_0000_0000_7b1d), Ok(vec![(8, 20)]));
        // A constant of an instruction that is not decoded further: of 64 bits, at the first word.
        let base = if architecture < 90 {
            0x160
        } else if architecture == 90 {
            0x210
        } else {
            0x380
        };
        assert_eq!(with(0x000f_c800_0000_0000_0000_0000_0400_7a29 | base << 38), Ok(vec![(0, 20)]));
        // Where local memory begins, for pointers to a thread's own arrays; and the words beside it.
        let (local, others) =
            if architecture < 100 { (0x20, [0x18, 0x1c]) } else { (0x2f8, [0x2f4, 0x300]) };
        // What ptxas makes of %envreg, %gridid, %dynamic_smem_size, %total_smem_size and %nsmid.
        let (numbers, beside) = match architecture {
            80..90 => (vec![0x88, 0x104, 0x30, 0x34, 0x2c, 0x114, 0x10c], [0x84, 0x108, 0x38]),
            90 => (vec![0x40, 0xbc, 0x30, 0x34, 0x2c, 0x114, 0x10c], [0x3c, 0xc8, 0x38]),
            _ => (vec![0xd0, 0x10c, 0x140, 0x144, 0x16c, 0x2d0], [0xcc, 0x110, 0x148]),
        };
        // What it makes of what PTX has about clusters.
        let (clusters, behind) = match architecture {
            90 => (
                (0x13c..0x168).step_by(4).chain([0x188]).collect(),
                vec![0x138, 0x168, 0x184, 0x18c],
            ),
            _ => (Vec::new(), vec![0x13c]),
        };
        let clusters = clusters.into_iter().map(|offset| (offset, true));
        let behind = behind.into_iter().map(|offset| (offset, false));
        let last_of_environment = numbers[1];
        let numbers = numbers.into_iter().map(|offset| (offset, true));
        let beside = beside.into_iter().chain(others).map(|offset| (offset, false));
        for (offset, known) in [(local, true), (local + 4, true)]
            .into_iter()
            .chain(numbers)
            .chain(beside)
            .chain(clusters)
            .chain(behind)
        {
            let wanted = if known { Ok(vec![(8, 20)]) } else { Err(Unread::Address(at)) };
            let bits = 0x000f_e400_0000_0f00_0000_0000_0001_7a02 | offset << 38;
            assert_eq!(with(bits), wanted, "sm_{architecture} {offset:#x}");
        }
        // Of 64 bits both words are among them.
        for (offset, wanted) in [
            (local, Ok(vec![(8, 20)])),
            // On sm_90 the address of the parameters' bank is next.
            (
                last_of_environment,
                if architecture == 90 { Ok(vec![(0, 20)]) } else { Err(Unread::Address(at)) },
            ),
            (0x10c, Err(Unread::Address(at))),
        ] {
            let bits = 0x000f_c800_0000_0000_0000_0000_0400_7a29 | offset << 38;
            assert_eq!(with(bits), wanted, "sm_{architecture} {offset:#x}");
        }
    }
    let none = cubin(0x0600_5a04, 8, &[("k", &[], &[])]);
    let cubin = Cubin::parse(&none).expect("a cubin");
    let mut kernel = cubin.kernels[0].clone();
    kernel.parameter_bank = None;
    assert_eq!(bytes_read(90, &kernel), Err(Unread::NoParameters));
    assert!(matches!(bytes_read(121, &cubin.kernels[0]), Err(Unread::Code(_))));
}
