//! Kernels of images: their names and parameters, and what the order checker finds of launches.

use crate::common;

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::{OrderCheck, SoftDriver};

#[path = "../../../kernel-access/tests/common/images.rs"]
mod made;

use made::{PLAIN, Packed, cubin, packed_fatbin};

const NON_BLOCKING: u32 = 1;
const INVALID_IMAGE: u32 = 200;
const NO_BINARY_FOR_GPU: u32 = 209;
const INVALID_PTX: u32 = 218;
const NOT_FOUND: u32 = 500;

type Handle = *mut c_void;

const PTX: &str = include_str!("images.ptx");

/// The text as a program has it.
fn ptx() -> Vec<u8> {
    CString::new(PTX).unwrap().into_bytes_with_nul()
}

/// A fat binary with an image: PTX or code.
fn fat(kind: u16, architecture: u32, image: &[u8]) -> Vec<u8> {
    let (header, packed, bytes) = (64, image.to_vec(), image.len());
    packed_fatbin(&[Packed { kind, architecture, flags: PLAIN, header, packed, bytes }])
}

/// `axpy(x, y, a, n)` of the corpus: `y[i] = a * x[i] + y[i]` for the first `n` threads.
fn code() -> Vec<u8> {
    const CORPUS: &str = include_str!("../../../kernel-access/tests/shapes.txt");
    let line = CORPUS.lines().find_map(|line| line.strip_prefix("90 axpy ")).unwrap();
    let code = line.split(' ').nth(2).unwrap();
    let byte = |at| u8::from_str_radix(&code[at..at + 2], 16).unwrap();
    let code: Vec<u8> = (0..code.len()).step_by(2).map(byte).collect();
    cubin(0x0056_055a, 7, &[("axpy", &code, &[(0, 8), (8, 8), (16, 4), (20, 4)])])
}

/// The ways to load an image, each with how the program gets a function then.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Data,
    DataEx,
    FatBinary,
    File,
    Library,
    LibraryFile,
}

const WAYS: [Way; 6] =
    [Way::Data, Way::DataEx, Way::FatBinary, Way::File, Way::Library, Way::LibraryFile];

impl Way {
    fn is_library(self) -> bool {
        matches!(self, Self::Library | Self::LibraryFile)
    }

    /// The module or library, and the code.
    fn load(self, raw: &Raw, image: *const u8, file: &Path) -> (Handle, u32) {
        let mut out = null_mut();
        let (none, image) = (null_mut::<c_void>, image.cast::<c_void>());
        let file = CString::new(file.to_str().unwrap()).unwrap();
        let code = match self {
            Self::Data => call!(raw, cuModuleLoadData(&mut out => *mut Handle,
                image => *const c_void)),
            Self::FatBinary => call!(raw, cuModuleLoadFatBinary(&mut out => *mut Handle,
                image => *const c_void)),
            Self::DataEx => call!(raw, cuModuleLoadDataEx(&mut out => *mut Handle,
                image => *const c_void, 0 => u32, none() => Handle, none() => Handle)),
            Self::File => call!(raw, cuModuleLoad(&mut out => *mut Handle,
                file.as_ptr() => *const c_char)),
            Self::Library => call!(raw, cuLibraryLoadData(&mut out => *mut Handle,
                image => *const c_void, none() => Handle, none() => Handle, 0 => u32,
                none() => Handle, none() => Handle, 0 => u32)),
            Self::LibraryFile => call!(raw, cuLibraryLoadFromFile(&mut out => *mut Handle,
                file.as_ptr() => *const c_char, none() => Handle, none() => Handle, 0 => u32,
                none() => Handle, none() => Handle, 0 => u32)),
        };
        (out, code)
    }

    fn find(self, raw: &Raw, from: Handle, name: &CStr) -> Result<Handle, u32> {
        let mut function = null_mut();
        let name = name.as_ptr();
        if !self.is_library() {
            let code = call!(raw, cuModuleGetFunction(&mut function => *mut Handle,
                from => Handle, name => *const c_char));
            return if code == OK { Ok(function) } else { Err(code) };
        }
        let mut kernel = null_mut();
        let code = call!(raw, cuLibraryGetKernel(&mut kernel => *mut Handle, from => Handle,
            name => *const c_char));
        if code != OK {
            return Err(code);
        }
        let code = call!(raw, cuKernelGetFunction(&mut function => *mut Handle, kernel => Handle));
        if code == OK { Ok(function) } else { Err(code) }
    }
}

/// A file that is removed.
struct File(PathBuf);

impl File {
    fn new(name: &str, contents: &[u8]) -> Self {
        let name = format!("soft-driver-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, contents).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A driver that checks the order, with two streams and memory.
struct Desk {
    raw: Raw,
    one: CUstream,
    two: CUstream,
    module: Handle,
    memory: u64,
}

/// The words that a launch accesses of each of the three parts of the memory.
const WORDS: u64 = 64;
const PART: u64 = 4 * WORDS;

impl Desk {
    fn new() -> Self {
        let raw = Raw::planting(SoftDriver::builder().check_order(OrderCheck::Report));
        let (module, code) = Way::Data.load(&raw, ptx().as_ptr(), Path::new(""));
        assert_eq!(code, OK);
        let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
        let mut memory = 0;
        assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 6 * PART as usize) }.0, OK);
        Self { raw, one, two, module, memory }
    }

    fn function(&self, name: &CStr) -> Handle {
        Way::Data.find(&self.raw, self.module, name).unwrap()
    }

    /// One block of threads, one for each word.
    fn launch(&self, function: Handle, stream: CUstream, values: &[u64]) {
        assert_eq!(launch(&self.raw, function, stream, values), OK);
    }

    fn part(&self, part: u64) -> u64 {
        self.memory + part * PART
    }

    /// A copy of these bytes to another place, and in a stream.
    fn set(&self, stream: CUstream, address: u64, bytes: u64) {
        let code = unsafe { (self.raw.cuMemsetD8Async)(address, 1, bytes as usize, stream) };
        assert_eq!(code.0, OK);
    }

    fn read(&self, stream: CUstream, address: u64, bytes: u64) {
        let mut to = vec![0_u8; bytes as usize];
        let to = to.as_mut_ptr().cast();
        let code = unsafe { (self.raw.cuMemcpyDtoHAsync_v2)(to, address, bytes as usize, stream) };
        assert_eq!(code.0, OK);
        self.raw.sync(stream);
    }

    fn recorded(&self, stream: CUstream) -> CUevent {
        let event = self.raw.event(2);
        self.raw.record(event, stream);
        event
    }

    /// The host waits for both streams.
    fn done(&self) {
        self.raw.sync(self.one);
        self.raw.sync(self.two);
    }

    /// How many findings there are.
    fn found(&self) -> usize {
        self.done();
        self.raw.soft.order_findings().len()
    }
}

fn launch(raw: &Raw, function: Handle, stream: CUstream, values: &[u64]) -> u32 {
    let mut each: Vec<*mut c_void> =
        values.iter().map(|value| std::ptr::from_ref(value).cast_mut().cast()).collect();
    call!(raw, cuLaunchKernel(function => Handle, 1 => u32, 1 => u32, 1 => u32,
        WORDS as u32 => u32, 1 => u32, 1 => u32, 0 => u32, stream => CUstream,
        each.as_mut_ptr() => *mut *mut c_void, null_mut() => *mut *mut c_void))
}

/// Each way, and each form of an image.
#[test]
fn kernels_are_those_of_the_image() {
    let fat_ptx = fat(1, 80, PTX.as_bytes());
    let mut wrapper = [0_u8; 24];
    wrapper[..4].copy_from_slice(&0x4662_43b1_u32.to_le_bytes());
    wrapper[8..16].copy_from_slice(&(fat_ptx.as_ptr().addr() as u64).to_le_bytes());
    let text: (&CStr, &[usize]) = (c"copy", &[8, 8, 4]);
    let cubin: (&CStr, &[usize]) = (c"axpy", &[8, 8, 4, 4]);
    let code = code();
    for (form, image, (name, sizes)) in [
        ("text", &ptx()[..], text),
        ("fat", &fat_ptx, text),
        ("wrapper", &wrapper, text),
        ("cubin", &code, cubin),
        ("fat-cubin", &fat(2, 90, &code), cubin),
    ] {
        let file = File::new(form, image);
        for way in WAYS {
            // A wrapper has an address, which no file has.
            if form == "wrapper" && matches!(way, Way::File | Way::LibraryFile) {
                continue;
            }
            let raw = Raw::new();
            // The program may free the image once it is loaded.
            let mut own = image.to_vec();
            let (module, code) = way.load(&raw, own.as_ptr(), &file.0);
            own.fill(0xff);
            assert_eq!(code, OK, "{form} {way:?}");
            let function = way.find(&raw, module, name).unwrap();
            assert_eq!(way.find(&raw, module, c"other"), Err(NOT_FOUND));
            let (mut place, mut size, mut at) = (0_usize, 0_usize, 0);
            for (index, expected) in sizes.iter().enumerate() {
                let code = call!(raw, cuFuncGetParamInfo(function => Handle, index => usize,
                    &mut place => *mut usize, &mut size => *mut usize));
                assert_eq!((code, place, size), (OK, at, *expected), "{form} {way:?}");
                at += expected;
            }
            let code = call!(raw, cuFuncGetParamInfo(function => Handle, sizes.len() => usize,
                &mut place => *mut usize, null_mut() => *mut usize));
            assert_eq!(code, INVALID_VALUE);
            let mut found = std::ptr::null();
            let code = call!(raw, cuFuncGetName(&mut found => *mut *const c_char,
                function => Handle));
            assert_eq!((code, unsafe { CStr::from_ptr(found) }), (OK, name));
        }
    }
}

/// All functions of the image, in any order, whatever is registered.
#[test]
fn functions_are_counted_and_enumerated() {
    for library in [false, true] {
        let raw = Raw::new();
        raw.soft.kernel("count", |_| ());
        raw.soft.kernel("another", |_| ());
        let way = if library { Way::Library } else { Way::Data };
        let (module, code) = way.load(&raw, ptx().as_ptr(), Path::new(""));
        assert_eq!(code, OK);
        let count = |module: Handle| {
            let mut count = 7_u32;
            let code = match library {
                false => call!(raw, cuModuleGetFunctionCount(&mut count => *mut u32,
                    module => Handle)),
                true => call!(raw, cuLibraryGetKernelCount(&mut count => *mut u32,
                    module => Handle)),
            };
            (code, count)
        };
        let all = PTX.matches(".entry").count();
        assert_eq!(count(module), (OK, all as u32));
        assert_eq!(count(null_mut()).0, INVALID_HANDLE);
        let list = |out: *mut Handle, most: u32| match library {
            false => call!(raw, cuModuleEnumerateFunctions(out => *mut Handle, most => u32,
                module => Handle)),
            true => call!(raw, cuLibraryEnumerateKernels(out => *mut Handle, most => u32,
                module => Handle)),
        };
        let mut found = vec![null_mut(); all + 1];
        assert_eq!(list(found.as_mut_ptr(), all as u32 + 1), OK);
        assert!(found.pop().unwrap().is_null());
        let name = |kernel: Handle| {
            let mut name = std::ptr::null();
            let code = call!(raw, cuFuncGetName(&mut name => *mut *const c_char,
                kernel => Handle));
            assert_eq!(code, OK);
            unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned()
        };
        let mut names: Vec<String> = found.iter().map(|kernel| name(*kernel)).collect();
        names.sort();
        assert_eq!(names, ["copy", "count", "nothing", "through", "unknown", "waits"]);
        let mut first = [null_mut(); 2];
        assert_eq!((list(first.as_mut_ptr(), 1), first), (OK, [found[0], null_mut()]));
        assert_eq!((list(null_mut(), 0), list(null_mut(), 1)), (OK, INVALID_VALUE));
        // What is no image has all that is registered.
        let (dummy, code) = way.load(&raw, c"anything".as_ptr().cast(), Path::new(""));
        assert_eq!((code, count(dummy)), (OK, (OK, 2)));
    }
}

/// It is refused as by a driver, and so is what is no image.
#[test]
fn damaged_images_are_refused() {
    let mut long = fat(1, 80, PTX.as_bytes());
    long[8..16].copy_from_slice(&(1_u64 << 27).to_le_bytes());
    let mut longest = long.clone();
    longest[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let mut inside = fat(2, 90, &code());
    // The entry's length is more than the image has.
    inside[16 + 8..16 + 16].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let mut names = code();
    names[0x3e..0x40].copy_from_slice(&u16::MAX.to_le_bytes());
    let far = cubin(0x0056_055a, 7, &[("k", &[0; 16], &[(40_000, 8)])]);
    let nowhere = {
        let mut wrapper = [0_u8; 24];
        wrapper[..4].copy_from_slice(&0x4662_43b1_u32.to_le_bytes());
        wrapper[8] = 8;
        wrapper
    };
    let text = |text: String| CString::new(text).unwrap().into_bytes_with_nul();
    let newer = text(PTX.replace("sm_90a", "sm_120"));
    let broken = text(PTX.replace(".param .u64 to, .param", ".param .u64 to .param"));
    for (form, image, expected) in [
        ("nothing", &b"\x01\x02\x03\x04\0\0\0\0\0"[..], INVALID_IMAGE),
        ("words", b"anything\0", INVALID_IMAGE),
        ("an end far away", &long, INVALID_IMAGE),
        ("no end", &longest, 0),
        ("an entry", &inside, INVALID_IMAGE),
        ("a table of names", &names, INVALID_IMAGE),
        ("a parameter", &far, INVALID_IMAGE),
        ("a wrapper of nothing", &nowhere, INVALID_IMAGE),
        ("an old device", &fat(2, 70, &code()), NO_BINARY_FOR_GPU),
        ("newer PTX", &newer, INVALID_PTX),
        ("broken PTX", &broken, INVALID_PTX),
    ] {
        for way in [Way::Data, Way::Library] {
            let raw = Raw::new();
            let (_, code) = way.load(&raw, image.as_ptr(), Path::new(""));
            match expected {
                0 => assert_ne!(code, OK, "{form} {way:?}"),
                _ => assert_eq!(code, expected, "{form} {way:?}"),
            }
            // A test that has registered kernels needs no image.
            raw.soft.kernel("own", |_| ());
            let (module, code) = way.load(&raw, image.as_ptr(), Path::new(""));
            assert_eq!(code, OK, "{form} {way:?}");
            assert!(way.find(&raw, module, c"own").is_ok());
        }
    }
    let raw = Raw::new();
    // At address 64 there is no memory.
    assert_eq!(Way::Data.load(&raw, 64 as *const u8, Path::new("")).1, INVALID_IMAGE);
    let file = File::new("no-image", &[]);
    assert_eq!(Way::File.load(&raw, std::ptr::null(), &file.0).1, INVALID_IMAGE);
}

/// How many findings there are of a program.
fn found(program: impl FnOnce(&Desk)) -> usize {
    let desk = Desk::new();
    program(&desk);
    desk.found()
}

/// `copy` writes the second part of the memory and reads the fourth.
#[test]
fn what_a_kernel_touches_needs_order() {
    /// What comes after the launch, in the other stream.
    type After = fn(&Desk, u64, u64);
    let (write, read): (After, After) = (
        |desk, at, bytes| desk.set(desk.two, at, bytes),
        |desk, at, bytes| {
            desk.read(desk.two, at, bytes);
        },
    );
    let run = |desk: &Desk, stream, words| {
        desk.launch(desk.function(c"copy"), stream, &[desk.part(1), desk.part(3), words]);
    };
    for (part, after, expected) in [(1, write, 1), (1, read, 1), (3, write, 1), (3, read, 0)] {
        let found = found(|desk| {
            run(desk, desk.one, WORDS);
            after(desk, desk.part(part), PART);
        });
        assert_eq!(found, expected, "{part}");
        let mended = self::found(|desk| {
            run(desk, desk.one, WORDS);
            desk.raw.wait(desk.two, desk.recorded(desk.one));
            after(desk, desk.part(part), PART);
        });
        assert_eq!(mended, 0, "{part}");
        // The kernel may come after the other.
        let second = self::found(|desk| {
            desk.set(desk.one, desk.part(part), PART);
            run(desk, desk.two, WORDS);
        });
        assert_eq!(second, 1);
    }
    // Two launches that write the same words.
    let both =
        found(|desk| [desk.one, desk.two].into_iter().for_each(|stream| run(desk, stream, WORDS)));
    assert_eq!(both, 1);
    // One byte of the first and the last word, and of those beside them.
    for part in [1, 3] {
        for (at, expected) in [(u64::MAX, 0), (0, 1), (PART - 1, 1), (PART, 0)] {
            let found = found(|desk| {
                run(desk, desk.one, WORDS);
                desk.set(desk.two, desk.part(part).wrapping_add(at), 1);
            });
            assert_eq!(found, expected, "{part} {at}");
        }
    }
    // Fewer threads go to work, and it is not certain what the last of them does.
    let found = found(|desk| {
        run(desk, desk.one, WORDS - 1);
        desk.set(desk.two, desk.part(1) + PART - 4, 4);
    });
    assert_eq!(found, 0);
}

#[test]
fn a_launch_changes_nothing() {
    let desk = Desk::new();
    desk.set(desk.one, desk.part(1), PART);
    desk.launch(desk.function(c"copy"), desk.one, &[desk.part(1), desk.part(3), WORDS]);
    let mut bytes = [0_u8; PART as usize];
    let (to, count) = (bytes.as_mut_ptr().cast(), PART as usize);
    let code = unsafe { (desk.raw.cuMemcpyDtoHAsync_v2)(to, desk.part(1), count, desk.one) };
    assert_eq!(code.0, OK);
    desk.raw.sync(desk.one);
    assert_eq!(bytes, [1; PART as usize]);
}

/// The same with machine code.
#[test]
fn what_machine_code_touches_needs_order() {
    for (part, at, bytes, expected) in
        [(1, 0, PART, 1), (3, PART - 1, 1, 1), (1, PART, 4, 0), (3, PART, 4, 0)]
    {
        let found = found(|desk| {
            let (module, code) = Way::Library.load(&desk.raw, code().as_ptr(), Path::new(""));
            assert_eq!(code, OK);
            let axpy = Way::Library.find(&desk.raw, module, c"axpy").unwrap();
            desk.launch(axpy, desk.one, &[desk.part(1), desk.part(3), 0, WORDS]);
            desk.set(desk.two, desk.part(part) + at, bytes);
        });
        assert_eq!(found, expected, "{part} {at}");
    }
}

#[test]
fn atomic_operations_need_no_order_among_each_other() {
    let run = |desk: &Desk, stream| desk.launch(desk.function(c"count"), stream, &[desk.memory]);
    let after = |after: &dyn Fn(&Desk)| {
        found(|desk| {
            run(desk, desk.one);
            after(desk);
        })
    };
    assert_eq!(after(&|desk| run(desk, desk.two)), 0);
    assert_eq!(after(&|desk| desk.set(desk.two, desk.memory, 4)), 1);
    assert_eq!(after(&|desk| desk.read(desk.two, desk.memory, 4)), 1);
}

/// A kernel in a graph has the accesses of its node's parameters.
#[test]
fn launches_in_graphs_are_checked() {
    for (part, expected) in [(1, 1), (2, 0)] {
        let desk = Desk::new();
        let copy = desk.function(c"copy");
        let (mut graph, mut exec) = (null_mut(), null_mut());
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        assert_eq!(unsafe { (desk.raw.cuStreamBeginCapture_v2)(desk.one, mode) }.0, OK);
        desk.launch(copy, desk.one, &[desk.part(1), desk.part(3), WORDS]);
        assert_eq!(unsafe { (desk.raw.cuStreamEndCapture)(desk.one, &mut graph) }.0, OK);
        let code = call!(desk.raw, cuGraphInstantiateWithFlags(&mut exec => *mut CUgraphExec,
            graph => CUgraph, 0 => u64));
        assert_eq!(code, OK);
        let code = call!(desk.raw, cuGraphLaunch(exec => CUgraphExec, desk.one => CUstream));
        assert_eq!(code, OK);
        desk.set(desk.two, desk.part(part), 4);
        assert_eq!(desk.found(), expected);
    }
}

/// What is not known is not guessed, but named with the reason; and that none of them ran.
#[test]
fn kernels_that_are_not_known_are_named() {
    let log = File::new("images-log", &[]);
    let builder = SoftDriver::builder().check_order(OrderCheck::Report);
    let raw = Raw::planting(builder.order_log(log.0.to_str().unwrap()));
    let (module, code) = Way::Data.load(&raw, ptx().as_ptr(), Path::new(""));
    assert_eq!(code, OK);
    let (one, two) = (raw.stream(NON_BLOCKING), raw.stream(NON_BLOCKING));
    let mut memory = 0;
    assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory, 256) }.0, OK);
    let run = |name, values: &[u64]| {
        let function = Way::Data.find(&raw, module, name).unwrap();
        assert_eq!(launch(&raw, function, one, values), OK);
    };
    run(c"waits", &[memory + 64, memory]);
    run(c"unknown", &[memory]);
    run(c"unknown", &[memory]);
    run(c"through", &[memory + 128]);
    run(c"nothing", &[]);
    // The first two write there, and the third perhaps.
    assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 128, two) }.0, OK);
    raw.sync(one);
    raw.sync(two);
    assert_eq!(raw.soft.order_findings().len(), 0);
    drop(raw);
    let text = std::fs::read_to_string(&log.0).unwrap();
    let line = PTX.lines().position(|line| line.contains("wgmma")).unwrap() + 1;
    assert_eq!(
        text,
        format!(
            "kernels of images did not run and changed no memory: \"nothing\" 1 time, \
             \"through\" 1 time, \"unknown\" 2 times, \"waits\" 1 time\n\
             kernels without `accesses` were launched and not checked: \"unknown\" 2 times (the \
             PTX instruction in line {line} is not known), \"waits\" 1 time (it may wait for \
             other work through memory)\n\
             order checker: 0 errors, 0 warnings\n"
        )
    );
}

/// What the test registers, at any time, is what runs, and what is checked.
#[test]
fn a_registered_kernel_comes_before_the_images() {
    // The closure writes the first word of its first parameter, and nothing of the second.
    for (part, expected) in [(1, 1), (3, 0)] {
        let desk = Desk::new();
        let copy = desk.function(c"copy");
        let count = Arc::new(AtomicU32::new(0));
        let own = count.clone();
        let add = move || own.fetch_add(1, Ordering::Relaxed);
        let kernel = desk.raw.soft.kernel("copy", move |_| _ = add());
        kernel.parameters(&[8]).accesses(|launch, accesses| {
            accesses.writes(launch.parameter(0), 4);
        });
        desk.launch(copy, desk.one, &[desk.part(1), desk.part(3), WORDS]);
        desk.set(desk.two, desk.part(part), 4);
        assert_eq!((desk.found(), count.load(Ordering::Relaxed)), (expected, 1));
    }
    // Those of the image that are not registered are still there.
    let found = found(|desk| {
        desk.raw.soft.kernel("copy", |_| ());
        desk.launch(desk.function(c"count"), desk.one, &[desk.memory]);
        desk.set(desk.two, desk.memory, 4);
    });
    assert_eq!(found, 1);
}

/// A launch was submitted with all that it needs.
#[test]
fn a_library_may_be_unloaded_under_a_launch() {
    let desk = Desk::new();
    let (library, code) = Way::Library.load(&desk.raw, ptx().as_ptr(), Path::new(""));
    assert_eq!(code, OK);
    let copy = Way::Library.find(&desk.raw, library, c"copy").unwrap();
    let given = [desk.part(1), desk.part(3), WORDS];
    let flag = desk.part(5);
    assert_eq!(unsafe { (desk.raw.cuMemsetD32Async)(flag, 0, 1, desk.two) }.0, OK);
    desk.raw.sync(desk.two);
    // The stream waits for a value, and the launch with it.
    let wait = desk.raw.cuStreamWaitValue32_v2.unwrap();
    assert_eq!(unsafe { wait(desk.one, flag, 1, 0) }.0, OK);
    desk.launch(copy, desk.one, &given);
    // Without a context it waits for no work.
    let unload = || call!(desk.raw, cuLibraryUnload(library => Handle));
    let context = desk.raw.retain(0);
    desk.raw.set_current(null_mut());
    assert_eq!((unload(), unload()), (OK, INVALID_HANDLE));
    desk.raw.set_current(context);
    assert_eq!(launch(&desk.raw, copy, desk.one, &given), INVALID_HANDLE);
    assert_eq!(unsafe { (desk.raw.cuStreamQuery)(desk.one) }.0, NOT_READY);
    desk.set(desk.two, desk.part(1), 4);
    let (write, three) = (desk.raw.cuStreamWriteValue32_v2.unwrap(), desk.raw.stream(NON_BLOCKING));
    assert_eq!(unsafe { write(three, flag, 1, 0) }.0, OK);
    assert_eq!(desk.found(), 1);
}
