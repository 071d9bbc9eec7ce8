//! Variables of modules, which kernels use without a parameter that says where they are.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

use cuda_order_check_engine::Access;
use cuda_order_check_engine::feed::Memory;

use super::corpus::{
    CALL, CURRENT, Known, MEMORY, MODULE, NONE, OFFSET, PART, VARIABLES, anew, cubin_with, found,
    launch_of, load, order, part, possible, touch,
};
use crate::call::{Address, Handle, OK};
use crate::hooks::memory;
use crate::walk::{begin_call, locked};

/// The variables: the name, how far behind the memory, how many bytes. Constant ones are side by side.
type Variable = (&'static CStr, Address, usize);
const VARIABLE: Variable = (c"variable", 1 << 20, 512);
const WEIGHTS: Variable = (c"weights", 2 << 20, 256);
const LAST: Variable = (c"last", (2 << 20) + 256, 16);
/// Some bytes of a word that a kernel reads.
const PART_OF_WORD: Variable = (c"weights", WEIGHTS.1 + 2, 2);
/// Where the variable of that name is in another context.
const VARIABLE_OF_SECOND: Variable = (c"variable", 3 << 20, 512);

fn image() -> Vec<u8> {
    let (mut table, mut names) = (vec![0; 24], vec![0]);
    // Two kernels come first, with two sections each.
    for ((name, at, bytes), section) in [(VARIABLE, 6_u16), (WEIGHTS, 5), (LAST, 5)] {
        table.extend((names.len() as u32).to_le_bytes());
        table.extend([1, 0]);
        table.extend(section.to_le_bytes());
        table.extend((at % 512).to_le_bytes());
        table.extend((bytes as u64).to_le_bytes());
        names.extend(name.to_bytes_with_nul());
    }
    let more = [
        (".nv.constant3", vec![0; 272]),
        (".nv.global", vec![0; 512]),
        (".rela.nv.constant4", [0, 1 << 32 | 2, 0_u64].map(u64::to_le_bytes).concat()),
        (".symtab", table),
        (".strtab", names),
    ];
    let name = |(_, name, _): Known| name.to_str().expect("it is text");
    cubin_with(&[VARIABLES, OFFSET].map(|known| (name(known), name(known))), &more)
}

/// The program asks the module for a variable.
fn ask((name, at, size): Variable) {
    let (mut address, mut bytes) = (MEMORY + at, size);
    let none = AtomicPtr::new(core::ptr::null_mut());
    memory::global(&CALL, || OK, &none, &mut address, &mut bytes, MODULE, name.as_ptr());
}

fn begin(settings: &str) -> [Handle; 2] {
    let (streams, image) = (anew(settings), image());
    load(&image);
    [VARIABLE, WEIGHTS, LAST].into_iter().for_each(ask);
    streams
}

/// A launch of 128 threads with a result of its own.
fn launch(stream: Handle, part: u64) {
    launch_of(VARIABLES, stream, [1, 1, 1, 128, 1, 1], &[MEMORY + part * PART]);
}

fn write(stream: Handle, (_, at, bytes): Variable) {
    touch(stream, "cuMemcpyHtoDAsync_v2", Access::write(MEMORY + at, bytes as u64));
}

fn read(stream: Handle, (_, at, bytes): Variable) {
    touch(stream, "cuMemcpyDtoHAsync_v2", Access::read(MEMORY + at, bytes as u64));
}

/// A copy to a variable that a kernel uses in another stream, and one from there if it is written.
pub(super) fn copies_to_variables() {
    type Copy = fn(Handle, Variable);
    let cases: [(Variable, Copy, &str, &str); 7] = [
        (
            VARIABLE,
            write,
            "certain: 1048576..1048580 1049084..1049088 writes writes",
            "writes writes",
        ),
        (VARIABLE, read, "certain: 1048576..1048580 1049084..1049088 writes reads", "reads writes"),
        (WEIGHTS, write, "possible", ""),
        (PART_OF_WORD, write, "possible", ""),
        (WEIGHTS, read, "", ""),
        (LAST, write, "", ""),
        (LAST, read, "", ""),
    ];
    for (variable, copy, expected, other) in cases {
        let name = variable.0;
        let is_possible = expected == "possible";
        let expected: Vec<String> = Some(expected.to_owned())
            .filter(|all| !all.is_empty() && !is_possible)
            .into_iter()
            .collect();
        let [a, b] = begin("");
        launch(a, 0);
        copy(b, variable);
        assert_eq!(found(), expected, "{name:?}");
        assert_eq!(possible().is_empty(), !is_possible, "{name:?}: {:?}", possible());
        let [a, b] = begin("");
        copy(b, variable);
        launch(a, 0);
        let after = found();
        assert_eq!(after.len(), expected.len(), "{name:?}: {after:?}");
        assert!(after.iter().all(|one| one.ends_with(other)), "{name:?}: {after:?}");
        order([a, b]);
        launch(a, 0);
        order([a, b]);
        copy(b, variable);
        order([a, b]);
        launch(a, 0);
        assert_eq!(found(), NONE, "{name:?}");
        // A kernel of the same module that uses none of them.
        order([a, b]);
        copy(b, variable);
        part(a, 0);
        copy(b, variable);
        assert_eq!(found(), NONE, "{name:?}");
    }
}

/// Two launches with a result each use one variable.
pub(super) fn kernels_with_a_variable() {
    let [a, b] = begin(",class=+kernels");
    launch(a, 0);
    part(b, 1);
    assert_eq!(found(), NONE);
    order([a, b]);
    launch(a, 0);
    launch(b, 1);
    assert_eq!(found(), ["certain: 1048576..1048580 1049084..1049088 writes writes"]);
}

/// Other memory is where the variables were.
pub(super) fn variables_that_are_gone() {
    for is_unloaded in [true, false] {
        let [a, b] = begin("");
        if is_unloaded {
            memory::unload(&CALL, || OK, MODULE);
            let image = image();
            load(&image);
        }
        begin_call(&CALL, |watch| {
            watch.allocated(MEMORY + VARIABLE.1, 4096, Memory::Device);
            watch.allocated(MEMORY + WEIGHTS.1, 4096, Memory::Device);
        });
        launch(a, 0);
        write(b, VARIABLE);
        write(b, WEIGHTS);
        assert_eq!(found(), NONE, "{is_unloaded}");
    }
}

/// Which of two contexts a kernel of a library runs in is not looked at: the program has a stream in the
/// second one, or asks there for a variable.
pub(super) fn variables_of_two_contexts() {
    for has_stream in [true, false] {
        let [a, b] = begin("");
        if has_stream {
            locked(|watch| {
                watch.contexts.devices.insert(78, 1);
                watch.created(102, (78, 1), 1);
            });
        } else {
            CURRENT.store(78, Ordering::Relaxed);
            ask(VARIABLE_OF_SECOND);
            CURRENT.store(77, Ordering::Relaxed);
        }
        launch(a, 0);
        write(b, if has_stream { VARIABLE } else { VARIABLE_OF_SECOND });
        assert_eq!(found(), NONE, "{has_stream}");
    }
}
