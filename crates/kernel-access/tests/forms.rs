//! What is said of accesses of rarer forms, in kernels of a few instructions.

mod common;

use common::cubin;
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::Cubin;
use cuda_kernel_access::decode::{AccessKind, decode};
use cuda_kernel_access::execute::{End, execute};
use cuda_kernel_access::touch::{may_touch, summary, surely_touched};

const PLACE: u64 = 0x7f12_0000_0000;
const OTHER: u64 = 0x7f34_0000_0000;
const ADDRESS: u128 = 0x000e_2400_0000_0a00_0000_e000_ff02_7b82; // LDC.64 R2, c[0x0][0x380]
const SECOND: u128 = 0x000e_2400_0000_0a00_0000_e200_ff04_7b82; // LDC.64 R4, c[0x0][0x388]
const STORE: u128 = 0x000f_e200_0c10_1906_0000_0006_0200_7986; // STG.E desc[UR6][R2.64], R6
const END: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d; // EXIT
// LDG.E.ENL2.256 R8, R12, desc[UR14][R2.64+0x20] and STG.E.ENL2.256 desc[UR6][R2.64], R8, R4
const LOAD_32: u128 = 0x000f_2800_0812_1908_fe00_010e_020c_797e;
const STORE_32: u128 = 0x0003_e400_0f12_1806_f800_0008_0204_797f;

fn code(architecture: u32, program: &[u128]) -> Code {
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    let flags = 0x0600_0004 | architecture << 8;
    let image = cubin(flags, 8, &[("kernel", &bytes, &[(0, 8), (8, 8)])]);
    let cubin = Cubin::parse(&image).expect("an image");
    let mut kernel = cubin.kernels[0].clone();
    let first = if architecture < 100 { 0x210 } else { 0x380 };
    kernel.parameter_bank = kernel.parameter_bank.map(|(_, size)| (first, size));
    Code::new(architecture, &kernel).unwrap_or_else(|error| panic!("{error}"))
}

fn launch() -> Launch {
    Launch::new([3, 1, 1], [32, 1, 1], [PLACE, OTHER].map(u64::to_le_bytes).concat())
}

#[test]
fn accesses_of_32_bytes_have_all_of_them() {
    let code = code(100, &[ADDRESS, SECOND, LOAD_32, STORE_32, END]);
    let spans = may_touch(&code, &launch()).expect("known");
    let spans: Vec<_> = spans.into_iter().map(|span| (span.kind, span.bytes)).collect();
    let expected = [
        (AccessKind::Read, Some(PLACE + 32..PLACE + 64)),
        (AccessKind::Write, Some(PLACE..PLACE + 32)),
    ];
    assert_eq!(spans, expected);
    let run = execute(&code, &launch(), [0; 3], [0; 3], &mut |_, _| panic!("too long"), 10);
    let touched: Vec<_> = run.touched.iter().map(|one| (one.address, one.bytes)).collect();
    assert_eq!((touched, run.end), (vec![(PLACE + 32, 32), (PLACE, 32)], End::Exit));
}

/// What is stored is in four registers from each place: the second word is in 4 and 5.
#[test]
fn stores_of_32_bytes_keep_both_places() {
    let stored = |first: u128, second: u128| {
        let store = STORE_32 & !(0xff << 32 | 0xff << 16) | first << 32 | second << 16;
        let summary = summary(&code(100, &[ADDRESS, SECOND, store, END])).expect("known");
        summary.words[1].uses.other
    };
    for (first, second, is_kept) in [
        (1, 8, true),
        (8, 1, true),
        (0, 8, false),
        (8, 0, false),
        (5, 8, true),
        (6, 8, false),
        (8, 5, true),
        (8, 6, false),
    ] {
        assert_eq!(stored(first, second), is_kept, "R{first}, R{second}");
    }
}

/// A load to two places leaves what is between them.
#[test]
fn loads_of_32_bytes_leave_what_is_between() {
    // Of its registers the second pair is stored, which the second word was in.
    let kept = |first: u128, second: u128| {
        let load = LOAD_32 & !(0xff << 64 | 0xff << 16) | first << 64 | second << 16;
        let store = STORE & !(0xff << 32) | 4 << 32;
        let code = code(100, &[ADDRESS, SECOND, load, store, END]);
        summary(&code).expect("known").words[1].uses.other
    };
    for (first, second, is_kept) in [(4, 8, false), (0, 8, true), (12, 16, true), (8, 4, false)] {
        assert_eq!(kept(first, second), is_kept, "R{first}, R{second}");
    }
}

/// A number of 64 bits that is not followed has nothing of the parameters, and replaces both registers.
#[test]
fn numbers_of_64_bits_are_no_parameters() {
    // MOV.64 R4, 0x4000000000000000
    let number = 0x002f_ce00_0040_0000_0000_0000_0004_7402_u128;
    for register in [4, 5] {
        let store = STORE & !(0xff << 32) | register << 32;
        let program = [ADDRESS, SECOND, number, store, END];
        let summary = summary(&code(120, &program)).expect("known");
        assert!(!summary.words[1].uses.other, "R{register}");
    }
}

/// A base of 32 bits is a number without sign.
#[test]
fn bases_of_32_bits_are_not_below_zero() {
    // MOV R2, number; LDCU.64 UR22, c[0x0][0x380]; LDG.E.128 R140, [R2.U32+UR22]
    let base = |number: u32| 0x000f_e200_0000_0f00_0000_0000_0002_7802 | u128::from(number) << 32;
    let uniform = 0x000e_2200_0800_0a00_0000_7000_ff16_77ac_u128;
    assert_eq!(
        decode(100, &uniform.to_le_bytes()).expect("whole")[0].to_string(),
        "LDC.8 UR22, c[0x0][0x380]"
    );
    let load = 0x0003_6800_081e_0d00_0000_0016_028c_7981_u128;
    for number in [0, 16, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let code = code(100, &[base(number), uniform, load, END]);
        let first = PLACE + u64::from(number);
        let spans = may_touch(&code, &launch()).expect("known");
        assert_eq!(spans[0].bytes, Some(first..first + 16), "{number:#x}");
        let touched = surely_touched(&code, &launch());
        assert_eq!((touched[0].address, touched[0].bytes), (first, 16), "{number:#x}");
    }
}

/// What a load does on a condition of its own is not sure.
#[test]
fn loads_with_a_condition_are_not_sure() {
    let load = 0x0000_0000_0c1e_1900_0000_0004_0205_7981_u128; // LDG.E R5, desc[UR4][R2.64]
    for (condition, is_sure) in [(0, true), (1, false), (7, false), (8, false)] {
        let address = 0x000e_2400_0000_0a00_0000_8400_ff02_7b82; // LDC.64 R2, c[0x0][0x210]
        let code = code(90, &[address, load | condition << 64, END]);
        let spans = may_touch(&code, &launch()).expect("known");
        assert_eq!(spans[0].bytes, Some(PLACE..PLACE + 4), "{condition}");
        let run = execute(&code, &launch(), [0; 3], [0; 3], &mut |_, _| Some(0), 10);
        assert_eq!(run.touched.len(), usize::from(is_sure), "{condition}");
        assert_eq!(run.missing.is_empty(), is_sure, "{condition}");
    }
}

/// A block whose work another one takes over does not run.
#[test]
fn blocks_that_may_be_taken_over_touch_nothing_for_sure() {
    let takes = 0x000f_ec00_0800_0100_0000_0000_0800_73ca; // UGETNEXTWORKID.BROADCAST [UR8], [UR9]
    let plain = code(100, &[ADDRESS, STORE, END]);
    assert_eq!(surely_touched(&plain, &launch()).len(), 1);
    let code = code(100, &[ADDRESS, STORE, takes, END]);
    assert_eq!(surely_touched(&code, &launch()), []);
    let run = execute(&code, &launch(), [0; 3], [0; 3], &mut |_, _| None, 10);
    assert_eq!((run.end, run.missing.into_iter().collect()), (End::Unknown(0x20), vec![0x10]));
    let spans = may_touch(&code, &launch()).expect("known");
    assert_eq!(spans[0].bytes, Some(PLACE..PLACE + 4));
}

/// Code that never runs is left out of a launch, but not of what is said of any.
#[test]
fn code_that_never_runs_leaves_the_rest_known() {
    let words = |limit: u128, stores: &[u128]| {
        let address = 0x000e_2400_0000_0a00_0000_8400_ff02_7b82; // LDC.64 R2, c[0x0][0x210]
        let number = 0x000e_2200_0000_0800_0000_8600_ff05_7b82; // LDC R5, c[0x0][0x218]
        let part = 0x000f_e200_0780_c0ff_0000_0003_0505_7812; // LOP3.LUT R5, R5, 0x3, RZ, 0xc0, !PT
        let is_large = 0x001f_c400_03f0_6070_0000_0000_0500_780c | limit << 32; // ISETP.GE.U32 P0, R5
        let load = 0x0000_0000_0c1e_1900_0000_0004_0207_7981; // LDG.E R7, desc[UR4][R2.64]
        let program = [&[address, number, part, is_large, load], stores, &[END]].concat();
        let code = code(90, &program);
        let parameters = [PLACE, 3].map(u64::to_le_bytes).concat();
        let launch = Launch::new([3, 1, 1], [32, 1, 1], parameters);
        let spans = may_touch(&code, &launch).expect("known").len();
        let word = summary(&code).expect("known").words[0];
        (word.as_base.read, word.as_base.written, spans)
    };
    let guarded = STORE & !0xf000; // @P0 STG.E desc[UR6][R2.64], R6
    let branch = 0x000f_ea00_0380_0000_0000_0000_0004_8947; // @!P0 BRA over it
    // The number is at most three.
    for (limit, happens) in [(3, true), (4, false)] {
        let expected = (true, true, 1 + usize::from(happens));
        assert_eq!(words(limit, &[guarded]), expected, "{limit}");
        assert_eq!(words(limit, &[branch, STORE]), expected, "{limit}");
    }
}

const PARAMETER: u128 = 0x000e_2400_0000_0a00_0000_8400_ff02_7b82; // LDC.64 R2, c[0x0][0x210]
const FLAG: u128 = 0x000e_a400_0c1f_5900_0000_0004_0205_7981; // LDG.E.STRONG.SYS R5, desc[UR4][R2.64]
const ASKS: u128 = 0x000f_da00_03f0_5070_0000_00ff_0500_720c; // ISETP.NE.U32.AND P0, PT, R5, RZ, PT

/// A flag stays in its register while others are written: of some instructions it is only known how many
/// registers they write at most.
#[test]
fn a_flag_is_kept_where_less_may_be_written() {
    // @P0 BRA, four instructions back.
    let again = 0x947 | 0xf0 << 16 | ((1 << 48) - 1) << 34 | 7 << 87;
    for (between, name, waits) in [
        (0x0010_6200_0030_1400_0000_0002_0004_7312_u128, "I2F R4", true),
        (0x0010_6200_0030_1400_0000_0002_0005_7312, "I2F R5", false),
        (0x0000_6400_0021_f000_0000_0002_0004_7311, "F2I R4", true),
        (0x000e_a400_0c1e_1b00_0000_0004_0204_7981, "LOAD.GLOBAL.8 R4", false),
        (0x000f_e200_0000_0f00_0000_0000_0005_7802, "MOV R5", false),
    ] {
        let text = decode(90, &between.to_le_bytes()).expect("whole")[0].to_string();
        assert!(text.starts_with(name), "{text}");
        let code = code(90, &[PARAMETER, FLAG, between, ASKS, again, END]);
        assert_eq!(code.may_wait(), waits, "{name}");
    }
}

/// A load with a condition is a short way, as one behind a branch is.
#[test]
fn a_flag_may_be_the_condition_of_a_load() {
    let load = 0x0000_0000_0c1e_1900_0000_0004_0206_7981_u128; // LDG.E R6, desc[UR4][R2.64]
    // Of all, of P0, which the flag is in, and of P1.
    for (condition, waits) in [(0, false), (7, true), (6, false)] {
        let code = code(90, &[PARAMETER, FLAG, ASKS, load | condition << 64, END]);
        assert_eq!(code.may_wait(), waits, "{condition}");
    }
}

/// A thread that meets the others on a condition goes on elsewhere if it does not hold.
#[test]
fn a_flag_may_be_the_condition_of_a_meeting() {
    let set = 0x945 | 7 << 12 | 1 << 34 << 3; // BSSY B0, three instructions on
    let store = 0x000f_e200_0c10_1904_0000_0007_0200_7986_u128; // STG.E desc[UR4][R2.64], R7
    // BSYNC B0 in any case, if P0 holds, which the flag is in, and if P1 does.
    for (condition, waits) in [(7_u128, false), (0, true), (1, false)] {
        let meet = 0x941 | condition << 12;
        let program = [PARAMETER, FLAG, ASKS, set, meet, store, END, END];
        assert_eq!(code(90, &program).may_wait(), waits, "{condition}");
    }
}

/// By a selector that is known a number of chosen bytes is within what it may be, and no wider than it is
/// where the bytes follow each other.
#[test]
fn chosen_bytes_are_in_their_bounds() {
    let thread = 0x000e_2e00_0000_2100_0000_0000_0005_7919_u128; // S2R R5, SR_TID.X
    let block = 0x000e_2e00_0000_2500_0000_0000_0007_7919_u128; // S2R R7, SR_CTAID.X
    // IMAD R5, R5, 0x1040a03, RZ and IMAD R7, R7, 0x7012345, RZ
    let spread = |register: u128, by: u128| {
        0x001f_e200_078e_02ff_0000_0000_0000_7824 | register << 16 | register << 24 | by << 32
    };
    // PRMT R6, R5, selector, R7
    let choose =
        |selector: u32| 0x000f_e200_0000_0007_0000_0000_0506_7816 | u128::from(selector) << 32;
    let add = 0x001f_ca00_078e_0002_0000_0001_0602_7825_u128; // IMAD.WIDE.U32 R2, R6, 0x1, R2
    let first = 0x000e_2200_0000_0a00_0000_8400_ff02_7b82_u128; // LDC.64 R2, c[0x0][0x210]
    let mut state = 1_u64;
    let selectors = (0..200).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u32 & 0x7777
    });
    for selector in selectors.chain([0x3210, 0x5410, 0x4321, 0x7632, 0x4440, 0x8888, 0x0009]) {
        let program = [
            first,
            thread,
            block,
            spread(5, 0x104_0a03),
            spread(7, 0x701_2345),
            choose(selector),
            add,
            STORE,
            END,
        ];
        let code = code(90, &program);
        let launch = Launch::new([29, 1, 1], [512, 1, 1], PLACE.to_le_bytes());
        let spans = may_touch(&code, &launch).expect("known");
        for place in 0..300_u32 {
            let (block, thread) = ([place * 7 % 29, 0, 0], [place * 37 % 512, 0, 0]);
            let run = execute(&code, &launch, block, thread, &mut |_, _| None, 20);
            let at = run.touched[0].address;
            assert!(spans[0].may_touch(&(at..at + 4)), "{selector:#x}: {at:#x} in {spans:x?}");
            let [own, other] =
                [thread[0].wrapping_mul(0x104_0a03), block[0].wrapping_mul(0x701_2345)];
            let all = u64::from(other) << 32 | u64::from(own);
            let byte = |at: u32| {
                let chosen = selector >> (4 * at) & 15;
                let byte = (all >> (8 * (chosen & 7))) as u8;
                u64::from(if chosen < 8 { byte } else { (byte as i8 >> 7) as u8 })
            };
            assert_eq!(at - PLACE, (0..4).map(|at| byte(at) << (8 * at)).sum(), "{selector:#x}");
        }
    }
    // The upper half is that of zero.
    let program =
        [first, thread, spread(5, 0x104_0a03), choose(0x5410) | 255 << 64, add, STORE, END];
    let launch = Launch::new([1, 1, 1], [512, 1, 1], PLACE.to_le_bytes());
    let spans = may_touch(&code(90, &program), &launch).expect("known");
    assert_eq!(spans[0].bytes, Some(PLACE..PLACE + 0x1_0003));
}
