//! What the driver loads is read, in each form, and a damaged image is an error.

mod common;

use common::{Described, LZ4, PLAIN, ZSTD, cubin, cubin_with, fatbin};
use cuda_kernel_access::container::{
    Cubin, Error, Image, MAX_DECOMPRESSED, Wrapper, entries, entries_for, find, length,
};

const PTX: &str = "// by hand, /* or not\n/* a/b // and\n * more **/ .version 8.0\n.target sm_80\n.visible .entry k() { ret; }\n";
/// Not the same byte again and again, so that the compressed forms have more than one part.
fn code() -> Vec<u8> {
    (0..4096_u32).map(|at| ((at * at) >> 5) as u8).collect()
}

fn a_cubin() -> Vec<u8> {
    cubin(
        0x0600_5a04,
        8,
        &[
            ("k", &code(), &[(0, 8), (8, 8), (16, 4)]),
            ("callee", &[7; 16], &[]),
            ("other", &[1; 32], &[(0, 264)]),
        ],
    )
}

#[test]
fn kernels_have_their_code_and_their_parameters() {
    let image = a_cubin();
    let cubin = Cubin::parse(&image).expect("a cubin");
    assert_eq!(cubin.architecture, 90);
    assert_eq!(
        cubin.kernels.iter().map(|kernel| kernel.name).collect::<Vec<_>>(),
        ["k", "callee", "other"]
    );
    let kernel = cubin.kernel("k").expect("it is there");
    assert_eq!(kernel.code, code());
    assert_eq!(kernel.parameter_bank, Some((0x210, 20)));
    let parameters: Vec<_> =
        kernel.parameters.iter().map(|one| (one.ordinal, one.offset, one.size)).collect();
    assert_eq!(parameters, [(0, 0, 8), (1, 8, 8), (2, 16, 4)]);
    assert_eq!(cubin.kernel("other").expect("it is there").parameters[0].size, 264);
    assert!(cubin.kernel("no such").is_none());
}

/// The compiler writes no attribute where there are no parameters, and the bank ends where they would be.
#[test]
fn a_kernel_without_parameters_has_none() {
    let code = code();
    let bank = [0; 0x160];
    let sections: [(&str, &[u8]); 4] = [
        (".text.none", &code),
        (".nv.constant0.none", &bank),
        (".nv.constant0.k", &bank),
        (".text.called", &code),
    ];
    let image = cubin_with(0x0600_5004, 8, &[("k", &code, &[(0, 8)])], &sections);
    let cubin = Cubin::parse(&image).expect("a cubin");
    let bank = |name| cubin.kernel(name).expect("it is there").parameter_bank;
    assert_eq!(["none", "k", "called"].map(bank), [Some((0x160, 0)), Some((0x210, 8)), None]);
}

#[test]
fn constants_are_a_kernels_own_and_whole() {
    let code = code();
    let kernels: [Described<'_>; 2] = [("k", &code, &[(0, 8)]), ("other", &[1; 32], &[])];
    let constants = |more: &[(&str, &[u8])]| {
        let image = cubin_with(0x0600_5a04, 8, &kernels, more);
        let cubin = Cubin::parse(&image).expect("a cubin");
        ["k", "other"].map(|name| cubin.kernel(name).expect("one").constants.map(<[u8]>::to_vec))
    };
    assert_eq!(constants(&[]), [None, None]);
    let bank: (&str, &[u8]) = (".nv.constant2.k", &[1, 2, 3, 4]);
    assert_eq!(constants(&[bank]), [Some(vec![1, 2, 3, 4]), None]);
    // What says where the driver fills something in, for this kernel, for another, and empty.
    for name in [".rel.nv.constant2.k", ".rela.nv.constant2.k"] {
        assert_eq!(constants(&[bank, (name, &[0; 16])]), [None, None]);
        assert_eq!(constants(&[bank, (name, &[])])[0], Some(vec![1, 2, 3, 4]));
    }
    let other: (&str, &[u8]) = (".rela.nv.constant2.other", &[0; 24]);
    assert_eq!(constants(&[bank, other])[0], Some(vec![1, 2, 3, 4]));
}

#[test]
fn the_architecture_is_where_the_abi_has_it() {
    for (flags, abi, architecture) in [
        (0x0055_0550, 7, 80),
        (0x0056_055a, 7, 90),
        (0x0600_5604, 8, 86),
        (0x0600_6402, 8, 100),
        (0x0600_7802, 8, 120),
    ] {
        assert_eq!(
            Cubin::parse(&cubin(flags, abi, &[])).expect("a cubin").architecture,
            architecture
        );
    }
}

#[test]
fn a_fat_binary_has_the_images_that_were_put_in() {
    let image = a_cubin();
    for header in [64, 80, 112] {
        let all = fatbin(&[
            (2, 80, PLAIN, header, &image),
            (2, 90, LZ4, header, &image),
            (2, 100, ZSTD, header, &image),
            (1, 90, PLAIN, header, PTX.as_bytes()),
            (1, 90, ZSTD, header, PTX.as_bytes()),
            // Intermediate code for the linker is no image.
            (64, 90, PLAIN, header, b"anything"),
        ]);
        let entries = entries(&all).expect("a fat binary");
        assert_eq!(
            entries.iter().map(|entry| entry.architecture).collect::<Vec<_>>(),
            [80, 90, 100, 90, 90].map(Some)
        );
        for (index, entry) in entries.iter().enumerate() {
            match &entry.image {
                // Without compression it is padded.
                Image::Cubin(bytes) => {
                    assert!(bytes.starts_with(&image) && bytes.len() < image.len() + 8, "{index}")
                }
                Image::Ptx(text) => assert_eq!(text.trim_end_matches('\0'), PTX),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(length(&all), Ok(Some(all.len() as u64)));
    }
}

/// What is not wanted is not decompressed, and may be damaged.
#[test]
fn the_images_of_one_architecture_can_be_had_alone() {
    let image = a_cubin();
    let mut all = fatbin(&[(2, 80, ZSTD, 64, &code()), (2, 90, ZSTD, 64, &image)]);
    all[16 + 56] ^= 1;
    assert!(matches!(entries(&all), Err(Error::Damaged(_))));
    let most = image.len() as u64;
    let found = entries_for(&all, &|_, architecture| architecture == 90, most).expect("one");
    assert_eq!((found.len(), &found[0].image), (1, &Image::Cubin((&image).into())));
    let smaller = entries_for(&all, &|_, architecture| architecture == 90, most - 1);
    assert!(matches!(smaller, Err(Error::Damaged(_))));
    assert_eq!(entries_for(&all, &|_, _| false, 0), Ok(Vec::new()));
}

#[test]
fn images_alone_are_read_too() {
    let image = a_cubin();
    assert_eq!(entries(&image).expect("a cubin")[0].image, Image::Cubin((&image).into()));
    for text in [PTX.to_owned(), format!("{PTX}\0after the end")] {
        assert_eq!(entries(text.as_bytes()).expect("PTX")[0].image, Image::Ptx(PTX.into()));
    }
    let mut wrapper = 0x4662_43b1_u32.to_le_bytes().to_vec();
    wrapper.extend([1, 0, 0, 0]);
    wrapper.extend(0x7f00_1234_5678_u64.to_le_bytes());
    wrapper.extend([0; 8]);
    assert_eq!(Wrapper::parse(&wrapper).map(|wrapper| wrapper.address), Some(0x7f00_1234_5678));
    assert!(matches!(entries(&wrapper), Err(Error::Unsupported(_))));
    for none in [&b""[..], b"\0", b"PK\x03\x04 and more", b"int main() {}", &[0xff; 100]] {
        assert_eq!(entries(none), Err(Error::NotAnImage));
        assert_eq!(Wrapper::parse(none), None);
    }
}

#[test]
fn fat_binaries_are_found_in_a_library() {
    let (one, two) =
        (fatbin(&[(2, 90, ZSTD, 64, &a_cubin())]), fatbin(&[(1, 90, PLAIN, 64, PTX.as_bytes())]));
    let mut file = vec![0x7f; 4096];
    // What begins like one, and claims to be longer than the file.
    file[8..24].copy_from_slice(&one[..16]);
    file[16..24].fill(0xff);
    for image in [&one, &two] {
        file.extend(image);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    assert_eq!(find(&file), [one, two]);
    assert_eq!(find(b"short"), [b""; 0]);
}

/// As a caller asks who has only an address, and reads no byte behind the image.
#[test]
fn the_length_is_found_from_the_start() {
    let text = format!("{PTX}\0");
    for image in [a_cubin(), fatbin(&[(2, 90, ZSTD, 80, &a_cubin())]), text.into_bytes()] {
        let mut have = 0;
        let found = loop {
            match length(&image[..have]) {
                Ok(found) => break found,
                Err(needed) => {
                    assert!(needed > have as u64, "asks for nothing new after {have}");
                    have = needed as usize;
                    assert!(have <= image.len(), "reads behind the image");
                }
            }
        };
        assert_eq!(found, Some(image.len() as u64));
    }
    assert_eq!(length(&[0xff; 64]), Ok(None));
}

#[test]
fn sizes_that_cannot_be_are_errors_before_memory_is_asked_for() {
    for flags in [LZ4, ZSTD] {
        for size in [MAX_DECOMPRESSED, MAX_DECOMPRESSED + 1, u64::MAX, 0, 4095, 4097] {
            let mut image = fatbin(&[(2, 90, flags, 64, &code())]);
            image[16 + 56..16 + 64].copy_from_slice(&size.to_le_bytes());
            assert!(matches!(entries(&image), Err(Error::Damaged(_))), "{flags:#x} {size}");
        }
    }
}

/// Every byte of a small image set to each of some values, every length, and many bytes at once.
#[test]
fn damaged_images_are_errors_or_images_and_never_panic() {
    let cubin = cubin(0x0600_5a04, 8, &[("k", &[7; 32], &[(0, 8), (8, 4)])]);
    let images = [
        fatbin(&[(2, 90, PLAIN, 64, &cubin), (1, 90, PLAIN, 64, PTX.as_bytes())]),
        fatbin(&[(2, 90, LZ4, 64, &cubin)]),
        fatbin(&[(2, 90, ZSTD, 80, &cubin)]),
        cubin,
        PTX.as_bytes().to_vec(),
    ];
    let mut read = 0;
    let mut refused = 0;
    let mut attempt = |image: &[u8]| {
        let _ = length(image);
        match entries(image) {
            Ok(entries) => {
                for entry in &entries {
                    if let Image::Cubin(cubin) = &entry.image {
                        match Cubin::parse(cubin) {
                            Ok(_) => read += 1,
                            Err(_) => refused += 1,
                        }
                    }
                }
            }
            Err(_) => refused += 1,
        }
    };
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for image in &images {
        for at in 0..image.len() {
            attempt(&image[..at]);
            for value in [0, 1, 0x7f, 0x80, 0xff, image[at] ^ 1] {
                let mut damaged = image.clone();
                damaged[at] = value;
                attempt(&damaged);
            }
        }
        for _ in 0..2000 {
            let mut damaged = image.clone();
            for _ in 0..1 + random() % 8 {
                let at = random() % damaged.len();
                damaged[at] = random() as u8;
            }
            attempt(&damaged);
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

/// PTX begins with its version, after comments that have an end.
#[test]
fn a_comment_that_does_not_end_is_no_ptx() {
    let version = ".version 8.0\n.target sm_80\n";
    for (before, is_ptx) in [
        ("", true),
        (" \r\n\t", true),
        ("//*\n", true),
        ("/**/", true),
        ("/*/ */ // */\n/*\n*/", true),
        ("//", false),
        ("/*", false),
        ("/*/", false),
        ("/* * /", false),
        ("/", false),
        ("x", false),
    ] {
        let text = format!("{before}{version}\0");
        assert_eq!(entries(text.as_bytes()).is_ok(), is_ptx, "{before:?}");
    }
}
