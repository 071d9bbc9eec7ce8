//! Executable graphs, in front of a driver that has one graph.

use core::ffi::{CStr, c_uint, c_void};

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, StreamId};

use super::{destroy, instantiate, launch, set_memset, update};
use crate::call::{Address, Call, Code, Handle, OK};
use crate::hooks::declare::take_findings;
use crate::hooks::streams;
use crate::model::streams::NON_BLOCKING;
use crate::settings::Settings;
use crate::start::start;
use crate::walk::{begin_call, locked};

const NODES: usize = 1000;
const MEMORY: Address = 0x1000_0000_0000;
const CALL: Call = Call { name: "cuGraphLaunch", per_thread: false };

extern "C" fn nodes(_: Handle, all: *mut Handle, count: *mut usize) -> Code {
    // SAFETY: places for the answers; there are as many as this function has said.
    unsafe {
        *count = NODES;
        if !all.is_null() {
            (0..NODES).for_each(|at| *all.add(at) = at + 1);
        }
    }
    OK
}

extern "C" fn no_edges(_: Handle, _: *mut Handle, count: *mut usize) -> Code {
    // SAFETY: a place for the answer.
    unsafe { *count = 0 };
    OK
}

extern "C" fn empty(_: Handle, kind: *mut c_uint) -> Code {
    // SAFETY: as above.
    unsafe { *kind = 5 };
    OK
}

/// How often the checker was given nodes.
fn defined() -> u64 {
    locked(|watch| watch.graphs.defined).expect("it watches")
}

#[test]
fn a_graph_is_defined_once_for_all_of_its_changes() {
    let _turn = crate::hooks::tests::TURN.lock();
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuGraphGetNodes" => nodes as *mut c_void,
        b"cuGraphNodeGetDependencies" => no_edges as *mut c_void,
        b"cuGraphNodeGetType" => empty as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    start(&resolve, &Settings::from_text("log=/dev/null").expect("it is valid"));
    let [mut a, mut b] = [100, 101];
    for stream in [&mut a, &mut b] {
        streams::create(&CALL, || OK, stream, NON_BLOCKING);
    }
    begin_call(&CALL, |watch| watch.allocated(MEMORY, 1 << 20, Memory::Device));
    let (graph, mut exec) = (200, 300);
    instantiate(&CALL, || OK, &mut exec, graph, 0);
    let set = |node: Handle, address: Address| {
        // A memset of 64 bytes, as the call has it.
        let params = [address, 0, 1 << 32, 64, 1_u64];
        set_memset(&CALL, || OK, exec, node, (&raw const params).cast());
    };
    let place = |node: usize| MEMORY + 256 * node as u64;

    launch(&CALL, || OK, exec, a);
    assert_eq!(defined(), 1);
    for (turn, one) in [(1, 1), (2, NODES)] {
        (1..=NODES).for_each(|node| set(node, place(node) + 128 * (turn - 1)));
        assert_eq!(defined(), turn, "only a launch needs them");
        launch(&CALL, || OK, exec, a);
        launch(&CALL, || OK, exec, a);
        assert_eq!(defined(), turn + 1, "they have not changed since");
        // The launch has them as they are now.
        let write = Access::write(place(one) + 128 * (turn - 1), 1);
        begin_call(&CALL, |watch| watch.feed.work(StreamId(b as u64), &[write]));
        assert_eq!(take_findings().len(), 1);
    }

    // An update, and an end, leave nothing to define.
    set(1, MEMORY);
    update(&CALL, || OK, exec, graph);
    launch(&CALL, || OK, exec, b);
    assert_eq!((defined(), take_findings().len()), (4, 0));
    set(1, MEMORY);
    destroy(&CALL, || OK, exec);
    launch(&CALL, || OK, exec, b);
    assert_eq!(defined(), 4);
}
