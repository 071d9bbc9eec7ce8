//! The number of the highest bit that is set, as part of an address.

mod common;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::execute::execute;
use cuda_kernel_access::touch::may_touch;

/// A byte of the first parameter's memory is written, by what the instruction makes of the second one.
fn program(find: u128) -> Code {
    let words = [
        0x000f_e400_0000_0800_0000_8600_0004_7ab9, // ULDC UR4, c[0x0][0x218]
        0x000f_e200_0800_0f00_0000_0004_0000_7c02, // MOV R0, UR4
        find,
        0x000f_ca00_0000_0a00_0000_8400_0004_7ab9, // ULDC.64 UR4, c[0x0][0x210]
        0x001f_c800_0ff1_e0ff_0000_0004_0002_7c10, // IADD3 R2, P0, R0, UR4, RZ
        0x0000_0005_ff03_7c10 | 0x000f_e200_087f_e4ff << 64, // IADD3.X R3, RZ, UR5, RZ, P0, !PT
        0x000f_c800_0000_0a00_0000_8200_0004_7ab9, // ULDC.64 UR4, c[0x0][0x208]
        0x000f_e200_0c10_1104_0000_00ff_0200_7986, // STG.E.U8 desc[UR4][R2.64], RZ
        0x000f_ea00_0380_0000_0000_0000_0000_794d, // EXIT
    ];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u128| word.to_le_bytes()).collect();
    let image = cubin(90, 7, &[("kernel", &bytes, &[(0, 8), (8, 4)])]);
    Code::new(90, &Cubin::parse(&image).expect("an image").kernels[0]).expect("known")
}

const FIND: u128 = 0x000e_2400_000e_0000_0000_0000_0000_7300; // FLO.U32 R0, R0
const UNIFORM: u128 = 0x000e_6600_080e_0000_0000_0004_0000_7d00; // FLO.U32 R0, UR4
const SIGNED: u128 = 1 << 73;
const FROM_TOP: u128 = 1 << 74;
const INVERTED: u128 = 1 << 63;

#[test]
fn a_thread_is_where_the_highest_bit_says() {
    const BASE: u64 = 0x7f12_0000_0000;
    for number in [0, 1, 2, 5, 0x8000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, u32::MAX] {
        let parameters = [&BASE.to_le_bytes()[..], &number.to_le_bytes()].concat();
        let launch = Launch::new([1; 3], [1; 3], parameters);
        let highest = |number: u32| 31 - number.leading_zeros() as i32;
        let own = if number >> 31 != 0 { !number } else { number };
        let top = |bit: i32| if bit < 0 { u32::MAX } else { 31 - bit as u32 };
        for (word, expected) in [
            (FIND, highest(number) as u32),
            (UNIFORM, highest(number) as u32),
            (FIND | SIGNED, highest(own) as u32),
            (FIND | FROM_TOP, top(highest(number))),
            (FIND | SIGNED | FROM_TOP, top(highest(own))),
        ] {
            let code = program(word);
            let run = execute(&code, &launch, [0; 3], [0; 3], &mut |_, _| None, 100);
            let touched: Vec<u64> = run.touched.iter().map(|touch| touch.address).collect();
            let place = BASE + u64::from(expected);
            assert_eq!((touched, run.missing.len()), (vec![place], 0), "{word:x} {number:x}");
            let spans = may_touch(&code, &launch).expect("known");
            let bytes = spans[0].bytes.clone().expect("bounds");
            assert!(spans.len() == 1 && bytes.contains(&place), "{word:x} {number:x} {bytes:x?}");
        }
        let run =
            execute(&program(FIND | INVERTED), &launch, [0; 3], [0; 3], &mut |_, _| None, 100);
        assert_eq!((run.touched.len(), run.missing.len()), (0, 1), "what it inverts is not read");
    }
}
