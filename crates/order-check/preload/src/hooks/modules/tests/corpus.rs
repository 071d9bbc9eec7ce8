//! Kernels of the corpus of kernel-access, in front of a driver that does nothing: what a test does
//! with them.

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::path::PathBuf;

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, AccessKind, Finding, StreamId};

use super::{load_module, take};
use crate::call::{Address, Call, Code, Handle, OK};
use crate::code::image::Image;
use crate::hooks::declare::take_findings;
use crate::hooks::{events, kernels, streams};
use crate::model::streams::NON_BLOCKING;
use crate::settings::Settings;
use crate::start::start;
use crate::walk::{begin_call, locked};

/// Far below where the system maps anything, wherever it begins.
pub(super) const MEMORY: Address = 0x1000_0000_0000;
pub(super) const INPUT: Address = 0x1000_0001_0000;
/// The bytes of a part of the memory, of which there are four.
pub(super) const PART: u64 = 1024;
pub(super) const CALL: Call = Call { name: "cuLaunchKernel", per_thread: false };
pub(super) const MODULE: Handle = 50;

/// A kernel of the corpus: its handle, its name, and the offsets and sizes of its parameters.
pub(super) type Known = (Handle, &'static CStr, &'static [(usize, usize)]);

/// `out[offset + i * stride] = in[i]` for the first `n` threads.
pub(super) const OFFSET: Known =
    (11, c"offset_and_stride", &[(0, 8), (8, 8), (16, 4), (20, 4), (24, 4)]);
/// `out[i] = 1`, and an address that is not used.
pub(super) const UNUSED: Known = (12, c"unused_word", &[(0, 8), (8, 8), (16, 4)]);
/// `to[i] = from[index[i]]`.
pub(super) const GATHER: Known = (13, c"gather", &[(0, 8), (8, 8), (16, 8), (24, 4)]);
/// `atomicAdd` and the like at four addresses.
pub(super) const REDUCTIONS: Known =
    (14, c"reductions", &[(0, 8), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4)]);
/// `out[i] = in[i]` when a flag is set.
pub(super) const WAITS: Known = (15, c"waits", &[(0, 8), (8, 8), (16, 8)]);
/// `to[z][y][x] = 1` for a part of each plane: from which column, how many, from which row, how many,
/// of how many columns and rows.
pub(super) const PART_OF_CUBE: Known =
    (16, c"part_of_cube", &[(0, 8), (8, 4), (12, 4), (16, 4), (20, 4), (24, 4), (28, 4)]);
/// `slots[*counter % 4][i] = ...`
pub(super) const RING: Known = (17, c"ring", &[(0, 8), (8, 8)]);
/// `out[i] = variable[i] + weights[i & 63]; variable[i] = 0`, of variables of its module.
pub(super) const VARIABLES: Known = (18, c"module_variables", &[(0, 8)]);
pub(super) const ALL: [Known; 8] =
    [OFFSET, UNUSED, GATHER, REDUCTIONS, WAITS, PART_OF_CUBE, RING, VARIABLES];

pub(super) fn known(kernel: Handle) -> Option<Known> {
    ALL.into_iter().find(|known| known.0 == kernel)
}

extern "C" fn parameter(kernel: Handle, at: usize, offset: *mut usize, size: *mut usize) -> Code {
    let Some(parameter) = known(kernel).and_then(|known| known.2.get(at).copied()) else {
        return 1;
    };
    // SAFETY: places for the answers.
    unsafe { (*offset, *size) = parameter };
    OK
}

extern "C" fn name_of(name: *mut *const c_char, kernel: Handle) -> Code {
    let Some((_, known, _)) = known(kernel) else { return 1 };
    // SAFETY: a place for the answer.
    unsafe { *name = known.as_ptr() };
    OK
}

/// The current context.
pub(super) static CURRENT: AtomicUsize = AtomicUsize::new(77);

extern "C" fn context(context: *mut Handle) -> Code {
    // SAFETY: as above.
    unsafe { *context = CURRENT.load(Ordering::Relaxed) };
    OK
}

extern "C" fn device(device: *mut i32) -> Code {
    // SAFETY: as above.
    unsafe { *device = 0 };
    OK
}

/// Whether the host may access managed memory at any time.
pub(super) static CONCURRENT: AtomicBool = AtomicBool::new(true);

extern "C" fn attribute(value: *mut i32, which: u32, _: i32) -> Code {
    // SAFETY: as above.
    unsafe {
        *value = match which {
            75 => 9,
            89 => CONCURRENT.load(Ordering::Relaxed).into(),
            _ => 0,
        }
    };
    OK
}

/// The code of a kernel of the corpus, with where its parameters are.
pub(super) fn corpus(architecture: &str, kernel: &str) -> (Vec<u8>, u16, u16) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-access/tests/shapes.txt");
    let text = std::fs::read_to_string(path).expect("the corpus");
    let begin = format!("{architecture} {kernel} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&begin)).expect("a kernel of it");
    let [base, size, code, ..] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let byte = |at| u8::from_str_radix(&code[at..at + 2], 16).expect("a byte");
    let bytes = (0..code.len()).step_by(2).map(byte).collect();
    (bytes, u16::from_str_radix(base, 16).expect("a number"), size.parse().expect("a number"))
}

/// A cubin with these kernels of the corpus, under names that may be others.
pub(super) fn cubin(kernels: &[(&str, &str)]) -> Vec<u8> {
    cubin_with(kernels, &[])
}

/// The same with more sections, behind two of each kernel and an empty one.
pub(super) fn cubin_with(kernels: &[(&str, &str)], more: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0];
    let mut sections = vec![(0_u32, 0_u32, Vec::new())];
    let mut name = |text: String| {
        let at = names.len() as u32;
        names.extend(text.bytes().chain([0]));
        at
    };
    for (kernel, known) in kernels {
        let (code, base, size) = corpus("90", known);
        sections.push((name(format!(".text.{kernel}")), 1, code));
        let [base, size] = [base, size].map(u16::to_le_bytes);
        // The attribute with the bank of the parameters.
        let info = [&[4, 0x0a, 8, 0, 1, 0, 0, 0][..], &base, &size].concat();
        sections.push((name(format!(".nv.info.{kernel}")), 0x7000_0000, info));
    }
    for (section, bytes) in more {
        sections.push((name((*section).to_owned()), 1, bytes.clone()));
    }
    let last = name(".shstrtab".to_owned());
    sections.push((last, 3, names));
    let mut file = vec![0; 64];
    let mut headers = Vec::new();
    for (name, kind, bytes) in &sections {
        file.resize(file.len().next_multiple_of(16), 0);
        let mut header = [0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[0x18..0x20].copy_from_slice(&(file.len() as u64).to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        headers.extend(header);
        file.extend(bytes);
    }
    file.resize(file.len().next_multiple_of(16), 0);
    let at = file.len() as u64;
    file.extend(headers);
    file[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x33\x07");
    file[18..20].copy_from_slice(&190_u16.to_le_bytes());
    file[0x28..0x30].copy_from_slice(&at.to_le_bytes());
    file[0x30] = 90;
    file[0x3a..0x3c].copy_from_slice(&64_u16.to_le_bytes());
    file[0x3c..0x3e].copy_from_slice(&(sections.len() as u16).to_le_bytes());
    file[0x3e..0x40].copy_from_slice(&(sections.len() as u16 - 1).to_le_bytes());
    file
}

pub(super) fn whole() -> Vec<u8> {
    let name = |(_, name, _): Known| name.to_str().expect("it is text");
    let of_the_corpus = [OFFSET, UNUSED, GATHER, REDUCTIONS];
    cubin(&of_the_corpus.map(|known| (name(known), name(known))))
}

pub(super) fn log() -> PathBuf {
    std::env::temp_dir().join(format!("code-{}", std::process::id()))
}

/// A new watch, with two streams and memory.
pub(super) fn anew(settings: &str) -> [Handle; 2] {
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuKernelGetParamInfo" => parameter as *mut c_void,
        b"cuKernelGetName" => name_of as *mut c_void,
        b"cuCtxGetCurrent" => context as *mut c_void,
        b"cuCtxGetDevice" => device as *mut c_void,
        b"cuDeviceGetAttribute" => attribute as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    let _ = std::fs::remove_file(log());
    crate::code::signals::forget();
    let settings = format!("log={},stacks=off{settings}", log().display());
    start(&resolve, &Settings::from_text(&settings).expect("it is valid"));
    for mut stream in [100, 101] {
        streams::create(&CALL, || OK, &mut stream, NON_BLOCKING);
    }
    begin_call(&CALL, |watch| {
        watch.allocated(MEMORY, 4 * PART as usize, Memory::Device);
        watch.allocated(INPUT, 4 * PART as usize, Memory::Device);
    });
    [100, 101]
}

/// A module of this image, with all kernels.
pub(super) fn load(image: &[u8]) {
    let mut module = MODULE;
    load_module(&CALL, || OK, &mut module, &|| Image::at(image.as_ptr().addr()));
    take_all();
}

pub(super) fn take_all() {
    for (mut kernel, ..) in ALL {
        take(&CALL, || OK, &mut kernel, MODULE);
    }
}

/// The same, with the image gone.
pub(super) fn with_image(settings: &str, mut image: Vec<u8>) -> [Handle; 2] {
    let streams = anew(settings);
    load(&image);
    image.fill(0xff);
    streams
}

/// A launch of one block of 256 threads with these parameters.
pub(super) fn launch(kernel: Known, stream: Handle, values: &[u64]) {
    launch_of(kernel, stream, [1, 1, 1, 256, 1, 1], values);
}

pub(super) fn launch_of(
    (kernel, _, parameters): Known,
    stream: Handle,
    sizes: [u32; 6],
    values: &[u64],
) {
    assert_eq!(parameters.len(), values.len());
    let all: Vec<Handle> =
        values.iter().map(|value| (&raw const *value).expose_provenance()).collect();
    kernels::launch(&CALL, || OK, (kernel, sizes), stream, all.as_ptr(), core::ptr::null());
}

/// The kernel works on this part.
pub(super) fn part(stream: Handle, part: u64) {
    launch(OFFSET, stream, &[INPUT, MEMORY, part * PART / 4, 1, PART / 4]);
}

pub(super) fn touch(stream: Handle, name: &'static str, access: Access) {
    let call = Call { name, per_thread: false };
    begin_call(&call, |watch| watch.feed.work(StreamId(stream as u64), &[access]));
}

pub(super) fn upload(stream: Handle, part: u64) {
    touch(stream, "cuMemcpyHtoDAsync_v2", Access::write(MEMORY + part * PART, PART));
}

pub(super) fn download(stream: Handle, part: u64) {
    touch(stream, "cuMemcpyDtoHAsync_v2", Access::read(MEMORY + part * PART, PART));
}

/// Each stream waits for the other.
pub(super) fn order([a, b]: [Handle; 2]) {
    for [from, to] in [[a, b], [b, a]] {
        let mut event = 500;
        events::create(&CALL, || OK, &mut event);
        events::record(&CALL, || OK, event, from);
        streams::wait_event(&CALL, || OK, to, event, 0);
        events::destroy(&CALL, || OK, event);
    }
}

/// What was found: which bytes from the memory's begin on, in which ways, and how sure that is.
pub(super) fn found() -> Vec<String> {
    let all = take_findings();
    let text = std::fs::read_to_string(log()).unwrap_or_default();
    let _ = std::fs::write(log(), "");
    let words = text.lines().filter_map(|line| {
        let words = ["certain", "likely", "possible"];
        let line = line.strip_prefix("error: ")?;
        words.into_iter().find(|word| line.ends_with(&format!(" [{word}]")))
    });
    let words: Vec<&str> = words.collect();
    let reports: Vec<_> = all.iter().filter_map(Finding::report).collect();
    assert!(words.is_empty() || words.len() == reports.len(), "{text}");
    let show = |(at, report): (usize, &&cuda_order_check_engine::Report)| {
        let bytes = report
            .shared
            .iter()
            .map(|range| format!("{}..{}", range.start - MEMORY, range.end - MEMORY));
        let kinds = [&report.first, &report.second].map(|side| match side.kind {
            AccessKind::Read => "reads",
            AccessKind::Write => "writes",
            _ => "other",
        });
        let word = words.get(at).copied().unwrap_or("no kernel");
        format!("{word}: {} {} {}", bytes.collect::<Vec<_>>().join(" "), kinds[0], kinds[1])
    };
    reports.iter().enumerate().map(show).collect()
}

pub(super) fn possible() -> Vec<String> {
    take_findings();
    locked(|watch| watch.feed.observer().lines_of_possible()).expect("it watches")
}

pub(super) const NONE: [&str; 0] = [];
