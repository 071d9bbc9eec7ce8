//! Executable graphs, in front of a driver that has one graph.

use core::ffi::{CStr, c_uint, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use cuda_order_check_engine::feed::Memory;
use cuda_order_check_engine::{Access, StreamId};

use super::{
    destroy, destroy_exec, destroy_node, duplicate, instantiate, launch, set_memset, update,
};
use crate::call::{Address, Call, Code, Handle, OK};
use crate::hooks::declare::{declare, take_findings};
use crate::hooks::tests::with_context;
use crate::hooks::unmodelled::unmodelled;
use crate::hooks::{copies, memory, streams, user_objects};
use crate::model::streams::NON_BLOCKING;
use crate::settings::Settings;
use crate::start::start;
use crate::state::blocks::Block;
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
    let _turn = crate::lock::TURN.lock();
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
    destroy_exec(&CALL, || OK, exec);
    launch(&CALL, || OK, exec, b);
    assert_eq!(defined(), 4);
}

/// After a change of which only the name is known, the nodes are not the launch's: before the next
/// one, and where another change has come before.
#[test]
fn an_unknown_change_leaves_no_nodes() {
    let _turn = crate::lock::TURN.lock();
    for launches in [0, 1] {
        let resolve = |name: &CStr| match name.to_bytes() {
            b"cuGraphGetNodes" => nodes as *mut c_void,
            b"cuGraphNodeGetDependencies" => no_edges as *mut c_void,
            b"cuGraphNodeGetType" => empty as *mut c_void,
            _ => core::ptr::null_mut(),
        };
        start(&resolve, &Settings::from_text("log=/dev/null").expect("it is valid"));
        let (mut stream, exec) = (100, 300);
        streams::create(&CALL, || OK, &mut stream, NON_BLOCKING);
        instantiate(&CALL, || OK, &mut { exec }, 200, 0);
        let unknown = || locked(|watch| watch.seen.unknown).expect("it watches");
        (0..launches).for_each(|_| _ = launch(&CALL, || OK, exec, stream));
        assert_eq!(unknown(), 0);
        unmodelled("cuGraphExecEventRecordNodeSetEvent", &[exec, 1, 0, 0, 0, 0]);
        launch(&CALL, || OK, exec, stream);
        assert_eq!(unknown(), 1, "after {launches} launches");
    }
}

/// What is declared in a capture is a node of the graph, which writes or does not: a flag behind it that
/// the host has seen is that of its own node.
#[test]
fn a_declared_write_in_a_capture_is_a_node_that_writes() {
    let _turn = crate::lock::TURN.lock();
    for writes in [[true, true], [false, true], [true, false]] {
        with_context();
        let word: &AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
        let flag = core::ptr::from_ref(word).expose_provenance() as Address;
        memory::allocate(&CALL, || OK, &mut { MEMORY }, 4096, Memory::Device);
        memory::allocate(&CALL, || OK, &mut { flag }, 4, Memory::Host);
        let (mut stream, mut graph, mut exec) = (100, 200, 300);
        streams::create(&CALL, || OK, &mut stream, NON_BLOCKING);
        streams::capture_begin(&CALL, || OK, stream);
        for (at, write) in writes.into_iter().enumerate() {
            declare("work", Some(stream), MEMORY + 64 * at as u64, 64, write);
        }
        copies::set(&CALL, || OK, Block::device(flag), (1, 4), [1, 1], Some(stream));
        streams::capture_end(&CALL, || OK, stream, &mut graph);
        instantiate(&CALL, || OK, &mut exec, graph, 0);
        launch(&CALL, || OK, exec, stream);
        word.store(1, Ordering::Relaxed);
        declare("the host", None, MEMORY, 128, true);
        assert_eq!(take_findings().len(), 0, "{writes:?}");
        // Without the flag's value nothing orders them.
        word.store(0, Ordering::Relaxed);
        launch(&CALL, || OK, exec, stream);
        declare("the host again", None, MEMORY, 128, true);
        assert_eq!(take_findings().len(), 2, "{writes:?}");
    }
}

/// The driver's graphs: the kind of each one's only node. The node's number is a hundred times the
/// graph's, and its child graph the one before. The driver does not know graph 9.
const KINDS: [c_uint; 9] = [5, 4, 4, 13, 4, 5, 5, 5, 5];

extern "C" fn one_node(graph: Handle, all: *mut Handle, count: *mut usize) -> Code {
    // SAFETY: places for the answers; there are as many as this function has said.
    unsafe {
        *count = 1;
        if !all.is_null() {
            *all = graph * 100;
        }
    }
    Code::from(graph >= KINDS.len())
}

extern "C" fn kind_of(node: Handle, kind: *mut c_uint) -> Code {
    // SAFETY: a place for the answer.
    unsafe { *kind = KINDS[node / 100] };
    OK
}

extern "C" fn child_of(node: Handle, child: *mut Handle) -> Code {
    // SAFETY: as above.
    unsafe { *child = node / 100 - 1 };
    Code::from(KINDS[node / 100] != 4)
}

/// The graphs that have the object, once graph `of` has it and this was done.
fn that_have_it(owner: Handle, does: impl FnOnce()) -> Vec<Handle> {
    let resolve = |name: &CStr| match name.to_bytes() {
        b"cuGraphGetNodes" => one_node as *mut c_void,
        b"cuGraphNodeGetDependencies" => no_edges as *mut c_void,
        b"cuGraphNodeGetType" => kind_of as *mut c_void,
        b"cuGraphChildGraphNodeGetGraph" => child_of as *mut c_void,
        _ => core::ptr::null_mut(),
    };
    start(&resolve, &Settings::from_text("log=/dev/null").expect("it is valid"));
    let mut object = 0x900;
    // SAFETY: a place for the handle.
    unsafe { user_objects::create(&CALL, |_, _| OK, &mut object, None, 0) };
    user_objects::retain(&CALL, || OK, owner, object);
    does();
    let all = locked(|watch| watch.user_objects.of_graphs.keys().copied().collect());
    let mut all: Vec<Handle> = all.expect("it watches");
    all.sort_unstable();
    all
}

/// A graph that is made executable gives its objects on, with those of its children.
#[test]
fn an_executable_graph_has_the_objects_of_all_that_may_be_its_children() {
    let _turn = crate::lock::TURN.lock();
    for (owner, graph, has) in [
        (0, 0, true),
        (0, 1, true),
        (0, 2, true),
        (1, 2, true),
        (0, 5, false),
        (2, 1, false),
        // A graph of the conditional node, which the driver does not name, and so of its parent's.
        (7, 3, true),
        (7, 4, true),
        // No graph of which the driver tells.
        (7, 9, true),
    ] {
        let exec = 0x1000;
        let all = that_have_it(owner, || _ = instantiate(&CALL, || OK, &mut { exec }, graph, 0));
        assert_eq!(all.contains(&exec), has, "{owner} in {graph}");
        let all = that_have_it(owner, || _ = duplicate(&CALL, || OK, &mut { exec }, graph));
        assert_eq!(all.contains(&exec), has, "{owner} in a clone of {graph}");
        let newer = || {
            instantiate(&CALL, || OK, &mut { exec }, 8, 0);
            update(&CALL, || OK, exec, graph);
        };
        assert_eq!(
            that_have_it(owner, newer).contains(&exec),
            has,
            "{owner} in an update with {graph}"
        );
        for (name, places) in
            [("cuGraphAddChildGraphNode", [1, 4]), ("cuGraphExecChildGraphNodeSetParams", [0, 2])]
        {
            let mut arguments = [0; 6];
            for (place, handle) in places.into_iter().zip([exec, graph]) {
                arguments[place] = handle;
            }
            // Graph 0 is none for these: no handle is 0.
            let has = has && graph > 0;
            let all = that_have_it(owner, || unmodelled(name, &arguments));
            assert_eq!(all.contains(&exec), has, "{owner} in {graph}, by {name}");
        }
    }
}

/// A graph ends with the children of its nodes, whose handles others may get.
#[test]
fn children_end_with_their_graph_or_their_node() {
    let _turn = crate::lock::TURN.lock();
    for owner in [0, 1, 2] {
        let of_graph = that_have_it(owner, || _ = destroy(&CALL, || OK, 2));
        let of_node = that_have_it(owner, || _ = destroy_node(&CALL, || OK, 200));
        assert_eq!(
            (of_graph, of_node),
            (vec![], if owner == 2 { vec![2] } else { vec![] }),
            "{owner}"
        );
    }
    for owner in [0, 2] {
        assert_eq!(that_have_it(owner, || _ = destroy(&CALL, || OK, 5)), [owner], "another graph");
        assert_eq!(
            that_have_it(owner, || _ = destroy_node(&CALL, || OK, 500)),
            [owner],
            "a node of it"
        );
        // An executable graph is no graph that the driver can be asked about.
        assert_eq!(that_have_it(owner, || _ = destroy_exec(&CALL, || OK, 1)), [owner]);
    }
}

/// A capture that does not end has no graph, whatever the program has in the place for one.
#[test]
fn a_capture_that_is_refused_has_no_graph() {
    let _turn = crate::lock::TURN.lock();
    for (code, count) in [(OK, 1), (1, 0)] {
        with_context();
        let (mut stream, mut graph) = (100, 200);
        streams::create(&CALL, || OK, &mut stream, NON_BLOCKING);
        streams::capture_begin(&CALL, || OK, stream);
        streams::capture_end(&CALL, || code, stream, &mut graph);
        assert_eq!(locked(|watch| watch.graphs.of_graph.len()), Some(count), "{code}");
    }
}
