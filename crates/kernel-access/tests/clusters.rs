//! What kernels of sm_90 learn of their cluster, and what tensor cores make.

mod common;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::touch::{may_touch, summary, surely_touched};

const PLACE: u64 = 0x7f12_0000_0000;
const ADDRESS: u128 = 0x000e_2400_0000_0a00_0000_8400_ff02_7b82; // LDC.64 R2, c[0x0][0x210]
const INDEX: u128 = 0x001f_ca00_078e_0002_0000_0004_0502_7825; // IMAD.WIDE.U32 R2, R5, 0x4, R2
const STORE: u128 = 0x000f_e200_0c10_1904_0000_0007_0200_7986; // STG.E desc[UR4][R2.64], R7
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT
const RANK: u128 = 0x000e_2e00_0000_8800_0000_0000_0005_7919; // S2R R5, SR_CgaCtaId
const PRODUCT: u128 = 0x000f_e200_0800_1818_00e0_0000_0418_79f0; // HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4], R24

/// LDC of a word to a register.
fn constant(register: u128, offset: u128) -> u128 {
    0x000e_2200_0000_0800_0000_0000_ff00_7b82 | register << 16 | offset << 38
}

fn code(program: &[u128]) -> Code {
    code_of(90, program)
}

fn code_of(architecture: u32, program: &[u128]) -> Code {
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    let image = cubin(90, 7, &[("kernel", &bytes, &[(0, 8), (8, 8)])]);
    let cubin = Cubin::parse(&image).expect("an image");
    Code::new(architecture, &cubin.kernels[0]).unwrap_or_else(|error| panic!("{error}"))
}

/// Before sm_90 there are no clusters, and what that register has is not known.
#[test]
fn a_place_in_a_cluster_is_one_from_sm_90_on_only() {
    let program = [RANK, ADDRESS, INDEX, STORE, END];
    let launch = Launch::new([40, 6, 2], [32, 1, 1], PLACE.to_le_bytes());
    for (architecture, most) in [(86, u64::from(u32::MAX)), (89, u64::from(u32::MAX)), (90, 15)] {
        let spans = may_touch(&code_of(architecture, &program), &launch).expect("known");
        let bytes = spans[0].bytes.clone();
        assert_eq!(bytes, Some(PLACE..PLACE + 4 * most + 4), "sm_{architecture}");
    }
}

/// Clusters are parts of the grid, of at most 16 blocks.
#[test]
fn what_is_said_of_clusters_is_bounded_by_the_grid() {
    let cases: [(u128, [u32; 2]); 9] = [
        // %cluster_nctaid, of a grid of 40, 6 and 2 blocks, and of one of 5, 1 and 1.
        (constant(5, 0x144), [16, 5]),
        (constant(5, 0x148), [6, 1]),
        (constant(5, 0x14c), [2, 1]),
        // %nclusterid
        (constant(5, 0x15c), [40, 5]),
        (constant(5, 0x160), [6, 1]),
        (constant(5, 0x164), [2, 1]),
        // %cluster_nctarank and %cluster_ctarank
        (constant(5, 0x188), [16, 5]),
        (RANK, [15, 4]),
        // A fraction may be any number.
        (constant(5, 0x154), [u32::MAX, u32::MAX]),
    ];
    for (first, most) in cases {
        let code = code(&[first, ADDRESS, INDEX, STORE, END]);
        for (grid, most) in [[40, 6, 2], [5, 1, 1]].into_iter().zip(most) {
            let launch = Launch::new(grid, [32, 1, 1], PLACE.to_le_bytes());
            let spans = may_touch(&code, &launch).expect("known");
            let expected = PLACE..PLACE + 4 * u64::from(most) + 4;
            assert_eq!((spans.len(), spans[0].bytes.clone()), (1, Some(expected)), "{first:x}");
            assert!(!spans[0].from_memory, "{first:x}");
            // Which of them it is is not known.
            assert_eq!(surely_touched(&code, &launch), []);
        }
        let summary = summary(&code).expect("known");
        assert!(summary.memory.none(), "{first:x}");
        assert!(summary.words[0].as_base.written && summary.words[1].uses.none(), "{first:x}");
    }
}

/// They are written as far as the product has columns; a register behind them has what it had.
#[test]
fn products_have_nothing_of_the_parameters() {
    for (register, has) in [(23, true), (24, false), (55, false), (56, true)] {
        let store = STORE & !(0xff << 32) | register << 32;
        let code = code(&[ADDRESS, constant(register, 0x218), PRODUCT, store, END]);
        let summary = summary(&code).expect("known");
        assert_eq!(summary.words[1].uses.other, has, "R{register}");
    }
}
