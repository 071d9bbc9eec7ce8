//! What a device's driver loads: where the image is, which part of it, and its kernels.

mod common;

use std::cell::Cell;

use common::{LZ4, PLAIN, cubin, cubin_with, fatbin};
use cuda_kernel_access::container::{Error, NotLocated, locate};
use cuda_kernel_access::load::{Limits, Loaded, NotLoaded};
use cuda_kernel_access::ptx::PtxError;

const LIMITS: Limits = Limits { decompressed: 1 << 20, text: 4096, code: 1 << 16 };

fn text(name: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry {name}(.param .u64 a, .param .u32 b)\n{{\n ret;\n}}\n"
    )
}

/// The names of the kernels that a device of this architecture has.
fn names(image: &[u8], architecture: u32) -> Result<Vec<String>, NotLoaded> {
    let kernels = Loaded::new(image, architecture, LIMITS)?.kernels()?;
    Ok(kernels.into_iter().map(|(name, _)| name).collect())
}

#[test]
fn the_newest_code_of_the_generation_comes_before_the_newest_ptx() {
    let code = |name| cubin(0x0600_5a04, 8, &[(name, &[0; 16], &[(0, 8)])]);
    let [old, own, two] = ["k80", "k86", "more"].map(code);
    let [early, late] = [text("p75").replace("sm_80", "sm_75"), text("p90")];
    let all = fatbin(&[
        (2, 80, PLAIN, 64, &old),
        (2, 86, LZ4, 64, &own),
        (2, 86, PLAIN, 64, &two),
        (1, 75, PLAIN, 64, early.as_bytes()),
        (1, 90, LZ4, 64, late.as_bytes()),
    ]);
    for (architecture, expected) in [
        (80, &["k80"][..]),
        (89, &["k86", "more"]),
        (90, &["p90"]),
        (120, &["p90"]),
        (75, &["p75"]),
    ] {
        assert_eq!(names(&all, architecture).expect("one"), expected, "{architecture}");
    }
    assert_eq!(names(&all, 70), Err(NotLoaded::Architecture(70)));
    // An image alone says itself what it is for.
    assert_eq!(names(&own, 90).expect("one"), ["k86"]);
    assert_eq!(names(&own, 80), Err(NotLoaded::Architecture(80)));
}

#[test]
fn kernels_have_parameters_and_code() {
    let text = text("k");
    let loaded = Loaded::new(text.as_bytes(), 90, LIMITS).expect("PTX");
    let kernels = loaded.kernels().expect("one");
    let parameters: Vec<_> = kernels[0].1.iter().map(|of| (of.offset, of.size)).collect();
    assert_eq!(parameters, [(0, 8), (8, 4)]);
    assert!(loaded.code("k").is_ok());
    assert_eq!(loaded.code("kk").expect_err("another"), NotLoaded::NoKernel);
    let of = |limits| Loaded::new(text.as_bytes(), 90, limits).expect("PTX").code("k");
    let long = of(Limits { text: 16, ..LIMITS }).expect_err("too long");
    assert_eq!(long, NotLoaded::LongText);
    assert_eq!(of(Limits { code: 15, ..LIMITS }).expect_err("too long"), NotLoaded::LongCode);

    let twice = fatbin(&[(1, 80, PLAIN, 64, text.as_bytes()), (1, 80, PLAIN, 64, text.as_bytes())]);
    let loaded = Loaded::new(&twice, 90, LIMITS).expect("PTX");
    assert_eq!(loaded.code("k").expect_err("which"), NotLoaded::Two);

    let later = names(text.replace("sm_80", "sm_100a").as_bytes(), 90);
    assert_eq!(later, Err(NotLoaded::NewerPtx(100)));

    let damaged = |image: &[u8]| names(image, 90).expect_err("no image");
    assert_eq!(damaged(b"anything"), NotLoaded::Image(Error::NotAnImage));
    assert!(matches!(damaged(&twice[..90]), NotLoaded::Image(Error::Damaged(_))));
    assert_eq!(damaged(b".version 8.0\n.entry ("), NotLoaded::Ptx(PtxError::Damaged(2)));
}

/// Code of exactly the limit is read. A kernel that two images have is one if they agree.
#[test]
fn the_limit_and_the_choice_hold_for_machine_code() {
    // Two instructions that end the thread.
    let [code, other] = [[0x0000_794d_u128; 2], [0x0000_794d, 0]]
        .map(|all| all.map(|one| (0x000f_ea00_0380_0000 << 64 | one).to_le_bytes()).concat());
    let [one, two] = [&code, &other].map(|code| cubin(0x0600_5a04, 8, &[("k", code, &[(0, 8)])]));
    for (limit, expected) in [(33, Ok(32)), (32, Ok(32)), (31, Err(NotLoaded::LongCode))] {
        let loaded = Loaded::new(&one, 90, Limits { code: limit, ..LIMITS }).expect("an image");
        assert_eq!(loaded.code("k").map(|found| found.0), expected, "{limit}");
    }
    for (second, expected) in [(&one, Ok(32)), (&two, Err(NotLoaded::Two))] {
        let both = fatbin(&[(2, 90, PLAIN, 64, &one), (2, 90, PLAIN, 64, second)]);
        let loaded = Loaded::new(&both, 90, LIMITS).expect("images");
        assert_eq!(loaded.code("k").map(|found| found.0), expected);
        assert_eq!(loaded.code("none").map(|found| found.0), Err(NotLoaded::NoKernel));
    }
    // Another text has the name within another name.
    let texts = [text("k"), text("kk")];
    let texts = texts.each_ref().map(|text| (1, 80, PLAIN, 64, text.as_bytes()));
    let both = fatbin(&texts);
    let loaded = Loaded::new(&both, 90, LIMITS).expect("PTX");
    assert!(loaded.code("k").is_ok() && loaded.code("kk").is_ok());
}

/// What kernels call has code of its own, and is none.
#[test]
fn functions_that_kernels_call_are_no_kernels() {
    let kernels = ["k", "callee", "other"].map(|name| (name, &[0; 16][..], &[(0, 8)][..]));
    let symbol = |name: u8, kind: u8, other: u8| {
        let mut symbol = [0; 24];
        (symbol[0], symbol[4], symbol[5]) = (name, kind, other);
        symbol
    };
    let strings = &b"\0k\0callee\0"[..];
    // The second is a section of a function's name. Of the last kernel the table says nothing.
    let symbols = [symbol(1, 0x12, 0x10), symbol(1, 3, 0), symbol(3, 2, 0)].concat();
    let with = |more: &[(&str, &[u8])]| {
        names(&cubin_with(0x0600_5a04, 8, &kernels, more), 90).expect("kernels")
    };
    assert_eq!(with(&[(".symtab", &symbols[..]), (".strtab", strings)]), ["k", "other"]);
    assert_eq!(with(&[]), ["k", "callee", "other"]);
}

/// Memory with one piece, at this address, at the end of which nothing is.
fn memory(at: u64, piece: &[u8]) -> impl Fn(u64, usize) -> Vec<u8> + use<> {
    let piece = piece.to_vec();
    move |from, count| {
        let rest = from.checked_sub(at).and_then(|skip| piece.get(skip as usize..));
        rest.map(|rest| rest[..count.min(rest.len())].to_vec()).unwrap_or_default()
    }
}

#[test]
fn an_image_is_where_its_headers_end() {
    const AT: u64 = 0x7000;
    let found = |piece: &[u8]| locate(AT, 1 << 20, 8192, &memory(AT, piece));
    let image = cubin(0x0600_5a04, 8, &[("k", &[3; 9000], &[(0, 8)])]);
    let fat = fatbin(&[(2, 90, LZ4, 64, &image)]);
    for image in [&image, &fat] {
        let more = [&image[..], &[9; 100]].concat();
        let located = found(&more).expect("an image");
        assert_eq!((located.address, located.bytes), (AT, image.len()));
        assert!(more.starts_with(&located.start));
        // The headers claim what is not there, or more than is allowed.
        assert_eq!(found(&image[..32]), Err(NotLocated::Unreadable));
        let small = locate(AT, 100, 8192, &memory(AT, image));
        assert!(matches!(small, Err(NotLocated::TooLarge | NotLocated::Unreadable)));
    }
    // A wrapper, the image of which comes after it.
    let mut wrapper = [0; 24];
    wrapper[..4].copy_from_slice(&0x4662_43b1_u32.to_le_bytes());
    wrapper[8..16].copy_from_slice(&(AT + 24).to_le_bytes());
    let located = found(&[&wrapper[..], &fat].concat()).expect("an image");
    assert_eq!((located.address, located.bytes), (AT + 24, fat.len()));
    wrapper[8..16].fill(0);
    assert_eq!(found(&wrapper), Err(NotLocated::Unreadable));
    assert_eq!(found(&[]), Err(NotLocated::Unreadable));
    assert_eq!(found(&[0x7f; 64]), Err(NotLocated::Unreadable));
}

/// It is read up to its zero, page by page, and no longer text than is allowed.
#[test]
fn text_ends_at_its_zero() {
    let at = 0x7ff0;
    let long = text("k") + &" ".repeat(4200);
    let memory = memory(at, &[long.as_bytes(), &[0]].concat());
    let largest = Cell::new(0);
    let read = |from: u64, count: usize| {
        let begin = if count > 64 { from % 4096 } else { 0 };
        largest.set(largest.get().max(begin + count as u64));
        memory(from, count)
    };
    let located = locate(at, 1 << 20, 8192, &read).expect("text");
    assert_eq!((located.bytes, &located.start[..]), (long.len(), long.as_bytes()));
    // No part of it but the first 64 bytes was asked for beyond a page.
    assert!(largest.get() <= 4096, "{largest:?}");
    assert_eq!(locate(at, 1 << 20, 4096, &read), Err(NotLocated::LongText));
    let endless = self::memory(at, long.as_bytes());
    assert_eq!(locate(at, 1 << 20, 8192, &endless), Err(NotLocated::Unreadable));
}
