//! Findings about kernels whose code is known, in front of a driver that does nothing.

use cuda_order_check_engine::Access;

use super::{file, load_kernel, load_library, load_module, take};
use crate::call::{Call, Handle, OK};
use crate::code::image::Image;
use crate::hooks::{graphs, memory, streams};

use corpus::{
    CALL, GATHER, INPUT, MEMORY, MODULE, NONE, OFFSET, PART, REDUCTIONS, UNUSED, anew, cubin,
    download, found, launch, load, log, order, part, possible, take_all, touch, upload, whole,
    with_image,
};

mod corpus;
mod host;
mod nearby;
mod order;
mod recall;
mod threads;
mod variables;

/// One test, as there is one watch in a process.
#[test]
fn findings_about_kernels_with_code() {
    let _turn = crate::lock::TURN.lock();
    parts_of_one_allocation();
    words_and_reads();
    two_kernels();
    what_is_not_known();
    code_that_comes_and_goes();
    images_that_are_files();
    kernels_of_ptx();
    kernels_in_graphs();
    order::parts_that_interleave();
    order::many_rows();
    order::kernels_that_wait();
    order::a_signal_for_one_finding_only();
    order::blocks_that_wait_for_each_other();
    order::strong_accesses();
    order::bounds_alone();
    order::work_that_a_counter_divides();
    order::a_slot_that_memory_names();
    order::work_behind_a_kernel_that_waits();
    threads::few_threads_are_run();
    threads::threads_are_looked_for();
    threads::threads_of_a_loop_without_bounds();
    threads::threads_that_there_is_no_time_for();
    threads::two_kernels();
    host::memory_of_the_host();
    nearby::slots_of_a_ring();
    nearby::bytes_at_the_ends();
    nearby::memory_of_others();
    nearby::pairs_with_an_order();
    nearby::pairs_that_are_alike();
    nearby::two_kernels();
    nearby::threads_between_the_corners();
    nearby::code_that_says_little();
    nearby::nodes_of_graphs();
    nearby::an_allowance_that_is_used_up();
    nearby::kernels_without_an_allowance();
    nearby::classes();
    recall::blocks_of_a_table();
    recall::tables_that_change();
    recall::table_in_a_loop();
    recall::table_behind_a_pointer();
    recall::tables_in_pinned_memory();
    variables::copies_to_variables();
    variables::kernels_with_a_variable();
    variables::variables_that_are_gone();
    variables::variables_of_two_contexts();
    let _ = std::fs::remove_file(log());
}

/// The textbook's overlap of copies and kernels: each part is copied, and worked on, in a stream. The
/// kernel gets the address of all.
fn parts_of_one_allocation() {
    let [a, b] = with_image("", whole());
    for round in 0..3 {
        upload(a, 0);
        part(b, 1 + round);
        part(a, 0);
        upload(b, 1 + round);
        order([a, b]);
    }
    assert_eq!((found(), possible()), (vec![], vec![]));
    // After that, with the same names in the same streams: the wrong part.
    upload(a, 0);
    part(b, 1);
    part(b, 0);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
    order([a, b]);
    upload(a, 0);
    part(b, 0);
    assert_eq!(found(), NONE, "each pair of places once");

    // The kernel may come first, and others after it that are no error.
    let [a, b] = with_image("", whole());
    [1, 0, 2, 3].into_iter().for_each(|at| part(b, at));
    upload(a, 0);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);

    // It begins one element later than it should, so only the end of the copy is wrong, or with the
    // last of the part before it.
    for (first, expected) in
        [(1, "certain: 4..8 writes writes"), (255, "certain: 1020..1024 writes writes")]
    {
        let [a, b] = with_image("", whole());
        upload(a, 0);
        launch(OFFSET, b, &[INPUT, MEMORY, first, 1, 256]);
        assert_eq!(found(), [expected]);
    }

    // Nothing is known of the threads at the corners, as they have nothing to do, but the others
    // may be there.
    let [a, b] = with_image("", whole());
    upload(a, 0);
    launch(OFFSET, b, &[INPUT, MEMORY, 0, 1, 0]);
    assert_eq!(found(), NONE);
}

/// Words that the kernel never uses, and two reads.
fn words_and_reads() {
    let [a, b] = with_image("", whole());
    upload(a, 0);
    launch(UNUSED, b, &[MEMORY, INPUT, 256]);
    assert_eq!((found(), possible()), (vec![], vec![]));
    launch(UNUSED, b, &[INPUT, MEMORY, 256]);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);

    // The class `reads`: a copy that only reads.
    let [a, b] = with_image("", whole());
    download(a, 0);
    launch(OFFSET, b, &[MEMORY, INPUT, 0, 1, 256]);
    assert_eq!((found(), possible()), (vec![], vec![]));
    part(b, 0);
    assert_eq!(found(), ["certain: 0..4 1020..1024 reads writes"]);

    // A kernel that works in place writes, whatever it reads of the same bytes.
    let in_place = [MEMORY, MEMORY, 0, 1, 256];
    let certain = |first, second| [format!("certain: 0..4 1020..1024 {first} {second}")];
    for kernel_first in [false, true] {
        for (copy, kind) in [(upload as fn(Handle, u64), "writes"), (download, "reads")] {
            let [a, b] = with_image("", whole());
            if kernel_first {
                launch(OFFSET, b, &in_place);
                copy(a, 0);
                assert_eq!(found(), certain("writes", kind));
            } else {
                copy(a, 0);
                launch(OFFSET, b, &in_place);
                assert_eq!(found(), certain(kind, "writes"));
            }
        }
    }
    for (other, kind) in
        [([MEMORY, INPUT, 0, 1, 256], "reads"), ([INPUT, MEMORY, 0, 1, 256], "writes")]
    {
        let [a, b] = with_image("", whole());
        launch(OFFSET, a, &in_place);
        launch(OFFSET, b, &other);
        assert_eq!(found(), certain("writes", kind));
        let [a, b] = with_image("", whole());
        launch(OFFSET, a, &other);
        launch(OFFSET, b, &in_place);
        assert_eq!(found(), certain(kind, "writes"));
    }

    // Of all that the last threads do, only a read meets the other kernel; the first ones write.
    let spread = [MEMORY, MEMORY, 0, 2, 256];
    let writing = [INPUT, MEMORY, 0, 1, 256];
    for both in [[spread, writing], [writing, spread]] {
        let streams = with_image("", whole());
        for (stream, values) in streams.into_iter().zip(both) {
            launch(OFFSET, stream, &values);
        }
        assert_eq!(found(), certain("writes", "writes"));
    }

    // A free conflicts with the kernel that accesses the memory, not with the one that only has its
    // address.
    let [a, b] = with_image("", whole());
    launch(OFFSET, b, &[MEMORY, INPUT, 0, 1, 256]);
    launch(UNUSED, b, &[INPUT, MEMORY, 256]);
    touch(a, "cuMemFreeAsync", Access::free(INPUT, 4 * PART));
    let all = found();
    assert!(all.len() == 1 && all[0].starts_with("certain"), "{all:?}");
}

/// A captured launch has the parameters that it was captured with. What is written of it says how sure
/// it is.
fn kernels_in_graphs() {
    let json = log().with_extension("json");
    for (captured, expected) in [(0, vec!["certain: 0..4 1020..1024 writes writes"]), (1, vec![])] {
        let [a, b] = with_image(&format!(",json={}", json.display()), whole());
        let (mut graph, mut exec) = (300, 301);
        streams::capture_begin(&CALL, || OK, b);
        part(b, captured);
        streams::capture_end(&CALL, || OK, b, &mut graph);
        graphs::instantiate(&CALL, || OK, &mut exec, graph, 0);
        upload(a, 0);
        let call = Call { name: "cuGraphLaunch", per_thread: false };
        graphs::launch(&call, || OK, exec, b);
        let is_found = !expected.is_empty();
        assert_eq!(found(), expected);
        assert_eq!(possible(), NONE);
        let text = std::fs::read_to_string(&json).expect("it is written");
        assert_eq!(text.starts_with("{\"class\":\"copy\","), is_found, "{text}");
        assert_eq!(text.contains(",\"certainty\":\"certain\","), is_found, "{text}");
        std::fs::remove_file(&json).expect("the file");
    }
}

fn two_kernels() {
    let reading = [MEMORY, INPUT, 512, 1, 256];
    for (second, expected) in [
        ([MEMORY, INPUT, 768, 1, 256], None),
        ([INPUT, MEMORY, 0, 1, 256], Some("certain: 0..4 1020..1024 reads writes")),
        ([INPUT, MEMORY, 256, 1, 256], None),
    ] {
        let [a, b] = with_image("", whole());
        launch(OFFSET, a, &reading);
        launch(OFFSET, b, &second);
        assert_eq!(found(), Vec::from_iter(expected), "{second:x?}");
        assert_eq!(possible(), NONE);
    }
    // Atomic operations need no order among each other.
    let atomics = [MEMORY, MEMORY + 64, MEMORY + 128, MEMORY + 192, INPUT, 256];
    let [a, b] = with_image("", whole());
    [a, b].into_iter().for_each(|stream| launch(REDUCTIONS, stream, &atomics));
    assert_eq!((found(), possible()), (vec![], vec![]));
    launch(OFFSET, b, &reading);
    assert_eq!(found().len(), 1);
    // They do need one with a copy, whichever of the four it meets.
    for (kernel_first, copy) in [(false, true), (false, false), (true, true), (true, false)] {
        let all = [0, 64, 128, 192].map(|at| {
            let [a, b] = with_image("", whole());
            let copied = || match copy {
                true => touch(a, "cuMemcpyHtoDAsync_v2", Access::write(MEMORY + at, 4)),
                false => touch(a, "cuMemcpyDtoHAsync_v2", Access::read(MEMORY + at, 4)),
            };
            if !kernel_first {
                copied();
            }
            launch(REDUCTIONS, b, &atomics);
            if kernel_first {
                copied();
            }
            let found = found();
            // Without the two kinds of accesses.
            let words = |text: &String| text.split(' ').take(2).collect::<Vec<_>>().join(" ");
            found.iter().map(words).collect::<Vec<_>>().join(", ")
        });
        // By a copy of a word that comes later the host may look how far they are, but for a sum of floats.
        let expected = match kernel_first && !copy {
            true => ["", "", "", "certain: 192..193"],
            false => ["likely: 0..4", "likely: 64..68", "certain: 128..129", "certain: 192..193"],
        };
        assert_eq!(all, expected);
    }
}

/// Findings that are possible only.
fn what_is_not_known() {
    // An index from memory: the address that is read is not bounded, and that which is written is.
    let [a, b] = with_image("", whole());
    upload(a, 0);
    launch(GATHER, b, &[INPUT, MEMORY, INPUT + 1024, 256]);
    assert_eq!(found(), NONE);
    let lines = possible();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let [count, reason] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(count, "1 possible finding was not reported: --possible");
    assert!(reason.starts_with("possible, 1 time: gather: an address comes from"), "{reason}");
    launch(GATHER, b, &[INPUT, INPUT, MEMORY, 256]);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
    let [a, b] = with_image(",possible=on", whole());
    upload(a, 0);
    launch(GATHER, b, &[INPUT, MEMORY, INPUT + 1024, 256]);
    assert_eq!(found(), ["possible: 0..1 writes reads"]);

    // Of an image without the kernel, of one for another architecture, of PTX that is not understood,
    // and of no image.
    let mut other = whole();
    other[0x30] = 80;
    let text = |body: &str| {
        let head = ".version 8.0\n.target sm_80\n.address_size 64\n.entry offset_and_stride()\n";
        format!("{head}{{ {body} ret; }}\n\0").into_bytes()
    };
    for (image, reason) in [
        (cubin(&[("other", "gather")]), "its image has no kernel of this name"),
        (other, "its image has no code for sm_90"),
        (text("frobnicate.u32 1;"), "the PTX instruction in line 5 is not known"),
        (text("call other;"), "the call in line 5 goes to another function"),
        (text("} {"), "PTX is not understood in line 5"),
        (b".version 8.0\n.target sm_90\n\0".to_vec(), "its image has no kernel of this name"),
        (Vec::from([0x99; 256]), "its image cannot be read"),
    ] {
        let [a, b] = with_image("", image);
        upload(a, 0);
        part(b, 0);
        assert_eq!(found(), NONE, "{reason}");
        let lines = possible();
        assert!(lines.len() == 2 && lines[1].contains(reason), "{reason}: {lines:?}");
    }
    let [a, b] = anew("");
    upload(a, 0);
    part(b, 0);
    let lines = possible();
    assert!(lines.len() == 2 && lines[1].ends_with("its image was not seen"), "{lines:?}");

    // Each byte of an image.
    let image = cubin(&[("offset_and_stride", "offset_and_stride")]);
    let mut certain = 0;
    for at in (0..image.len()).step_by(7) {
        let mut damaged = image.clone();
        damaged[at] ^= 0xff;
        let [a, b] = with_image("", damaged);
        upload(a, 0);
        part(b, 0);
        certain += found().len();
    }
    // Most are in the code, where the one or other does not matter.
    assert!(certain > 10, "{certain}");
}

/// The kernels of the corpus as PTX, written by hand.
fn ptx() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-access/tests/shapes.ptx");
    let mut text = std::fs::read(path).expect("the corpus");
    text.push(0);
    text
}

/// A fat binary of PTX, 1, and cubins, 2, for architectures.
fn fatbin(entries: &[(u16, u32, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, architecture, payload) in entries {
        let mut header = [0; 64];
        header[..2].copy_from_slice(&kind.to_le_bytes());
        header[4..8].copy_from_slice(&64_u32.to_le_bytes());
        let padded = payload.len().next_multiple_of(8);
        header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
        header[28..32].copy_from_slice(&architecture.to_le_bytes());
        header[40..48].copy_from_slice(&0x11_u64.to_le_bytes());
        body.extend(header);
        body.extend(*payload);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    let mut file = 0xba55_ed50_u32.to_le_bytes().to_vec();
    file.extend([1, 0, 16, 0]);
    file.extend((body.len() as u64).to_le_bytes());
    file.extend(body);
    file
}

/// Kernels that the driver compiles.
fn kernels_of_ptx() {
    let text = ptx();
    let image = whole();
    let elsewhere =
        b".version 8.0\n.target sm_80\n.address_size 64\n.entry offset_and_stride() { ret; }";
    for image in [
        text.clone(),
        fatbin(&[(1, 80, &text)]),
        // Of several the newest that the device can run.
        fatbin(&[(1, 75, elsewhere), (1, 80, &text), (1, 100, elsewhere)]),
        // Machine code of another generation.
        fatbin(&[(2, 80, &image), (1, 80, &text)]),
        // Another part of the same program.
        fatbin(&[(1, 80, b".version 8.0\n.target sm_80\n.address_size 64\n"), (1, 80, &text)]),
    ] {
        let [a, b] = with_image("", image);
        upload(a, 0);
        part(b, 1);
        assert_eq!((found(), possible()), (vec![], vec![]));
        part(b, 0);
        assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
        order([a, b]);
        // An address that is not used, two reads, and an index from memory.
        upload(a, 0);
        launch(UNUSED, b, &[MEMORY, INPUT, 256]);
        order([a, b]);
        download(a, 0);
        launch(OFFSET, b, &[MEMORY, INPUT, 0, 1, 256]);
        assert_eq!((found(), possible()), (vec![], vec![]));
        order([a, b]);
        upload(a, 0);
        launch(GATHER, b, &[INPUT, MEMORY, INPUT + 1024, 256]);
        assert_eq!(found(), NONE);
        assert!(possible()[1].contains("gather: an address comes from"));
    }
    // Machine code for the device wins, and it uses its second parameter for all it writes.
    let other = cubin(&[("offset_and_stride", "unused_word")]);
    let [a, b] = with_image("", fatbin(&[(1, 80, &text), (2, 90, &other)]));
    upload(a, 0);
    part(b, 1);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
    for (image, reason) in [
        (fatbin(&[(1, 100, &text)]), "its image has no code for sm_90"),
        (fatbin(&[(1, 80, &text), (1, 80, &text)]), "its image has two kernels of this name"),
        // Machine code without the kernel is not made up for by PTX.
        (fatbin(&[(2, 90, &cubin(&[("other", "gather")])), (1, 80, &text)]), "no kernel of this"),
    ] {
        let [a, b] = with_image("", image);
        upload(a, 0);
        part(b, 0);
        assert_eq!(found(), NONE, "{reason}");
        assert!(possible()[1].contains(reason), "{reason}: {:?}", possible());
    }
    // In a file, and without an end.
    let path = std::env::temp_dir().join(format!("code-{}.ptx", std::process::id()));
    std::fs::write(&path, &text[..text.len() - 1]).expect("a new file");
    let [a, b] = anew("");
    let name = std::ffi::CString::new(path.to_str().expect("it is text")).expect("it has no zero");
    let mut module = MODULE;
    load_module(&CALL, || OK, &mut module, &|| file(name.as_ptr()));
    std::fs::remove_file(&path).expect("the file");
    take_all();
    upload(a, 0);
    part(b, 0);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
    let mut long = text[..text.len() - 1].to_vec();
    long.resize((8 << 20) + 1, b'\n');
    long.push(0);
    let [a, b] = with_image("", long);
    upload(a, 0);
    part(b, 0);
    assert!(possible()[1].ends_with("its PTX is too long"), "{:?}", possible());
}

/// Handles may come again, for other code.
fn code_that_comes_and_goes() {
    let [a, b] = with_image("", whole());
    upload(a, 0);
    part(b, 1);
    assert_eq!(found(), NONE);
    // Another one of the same name, which uses its second parameter for all it writes.
    order([a, b]);
    memory::unload(&CALL, || OK, MODULE);
    load(&cubin(&[("offset_and_stride", "unused_word")]));
    upload(a, 0);
    part(b, 1);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
    // It is gone, and its image with it.
    let [a, b] = with_image("", whole());
    part(b, 0);
    memory::unload(&CALL, || OK, MODULE);
    upload(a, 0);
    part(b, 0);
    assert_eq!(found(), NONE);
    let lines = possible();
    assert!(lines.len() == 2 && lines[1].ends_with("its image was not seen"), "{lines:?}");

    // Kernels of a library, and the functions that stand for them.
    let [a, b] = anew("");
    let (image, mut library, mut kernel) = (whole(), 60, 999);
    load_library(&CALL, || OK, &mut library, &|| Image::at(image.as_ptr().addr()));
    take(&CALL, || OK, &mut kernel, library);
    let mut function = OFFSET.0;
    load_kernel(&CALL, || OK, &mut function, kernel);
    upload(a, 0);
    part(b, 0);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);
    // The module of a library ends, and the library stays.
    let mut module = 61;
    memory::module_of(&CALL, || OK, &mut module, library);
    let mut unused = UNUSED.0;
    take(&CALL, || OK, &mut unused, module);
    order([a, b]);
    upload(a, 0);
    launch(UNUSED, b, &[INPUT, MEMORY, 256]);
    assert_eq!(found().len(), 1);
}

/// An image in a file: loaded by its path, or mapped.
fn images_that_are_files() {
    let path = std::env::temp_dir().join(format!("code-{}.cubin", std::process::id()));
    std::fs::write(&path, whole()).expect("a new file");
    let [a, b] = anew("");
    let name = std::ffi::CString::new(path.to_str().expect("it is text")).expect("it has no zero");
    let mut module = MODULE;
    load_module(&CALL, || OK, &mut module, &|| file(name.as_ptr()));
    std::fs::remove_file(&path).expect("the file");
    take_all();
    upload(a, 0);
    part(b, 0);
    assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]);

    // A large image that is mapped is not copied. If it is unmapped, it is gone.
    for unmapped in [false, true] {
        let mut large = whole();
        // The end of the headers is the image's.
        let at = large.len() as u64 + (1 << 17);
        let headers = usize::from_le_bytes(large[0x28..0x30].try_into().expect("eight bytes"));
        let moved = large.split_off(headers);
        large.resize(at as usize, 0);
        large.extend(moved);
        large[0x28..0x30].copy_from_slice(&at.to_le_bytes());
        std::fs::write(&path, &large).expect("a new file");
        let file = std::fs::File::open(&path).expect("the file");
        // SAFETY: a new place, of as many bytes as the file has.
        let place = unsafe {
            use std::os::fd::AsRawFd as _;
            let (read, private) = (libc::PROT_READ, libc::MAP_PRIVATE);
            libc::mmap(core::ptr::null_mut(), large.len(), read, private, file.as_raw_fd(), 0)
        };
        assert_ne!(place, libc::MAP_FAILED);
        let [a, b] = anew("");
        let before = crate::code::image::copied();
        let mut module = MODULE;
        load_module(&CALL, || OK, &mut module, &|| Image::at(place.addr()));
        assert_eq!(crate::code::image::copied(), before);
        take_all();
        if unmapped {
            // SAFETY: nothing of this test has an address within.
            assert_eq!(unsafe { libc::munmap(place, large.len()) }, 0);
        }
        upload(a, 0);
        part(b, 0);
        match unmapped {
            false => assert_eq!(found(), ["certain: 0..4 1020..1024 writes writes"]),
            true => {
                assert_eq!(found(), NONE);
                assert!(possible()[1].ends_with("the file of its image is no longer mapped"));
            }
        }
    }
    std::fs::remove_file(&path).expect("the file");

    // An image that claims to be longer than the memory that is there.
    let page = 4096;
    // SAFETY: two new pages, of which the second goes again, and the image's begin in the first.
    let place = unsafe {
        let (both, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        let place = libc::mmap(core::ptr::null_mut(), 2 * page, both, flags, -1, 0);
        assert_ne!(place, libc::MAP_FAILED);
        assert_eq!(libc::munmap(place.byte_add(page), page), 0);
        let image = whole();
        core::ptr::copy_nonoverlapping(image.as_ptr(), place.byte_add(page - 1000).cast(), 1000);
        place.byte_add(page - 1000)
    };
    let [a, b] = anew("");
    let mut module = MODULE;
    load_module(&CALL, || OK, &mut module, &|| Image::at(place.addr()));
    take_all();
    upload(a, 0);
    part(b, 0);
    assert!(possible()[1].ends_with("its image cannot be read"), "{:?}", possible());
}
