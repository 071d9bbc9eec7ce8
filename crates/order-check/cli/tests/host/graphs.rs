//! Graphs with pinned memory, and host functions.

use std::ffi::c_void;

use super::{LARGE, PAGE, Program};

impl Program {
    pub(super) fn graph(&self, captured: impl FnOnce()) -> usize {
        let (mut graph, mut exec) = (0, 0);
        self.cuda.cuStreamBeginCapture_v2(self.stream, 2);
        captured();
        self.cuda.cuStreamEndCapture(self.stream, &mut graph);
        self.cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0);
        exec
    }
}

/// The second launch still reads it.
pub(super) fn refill_of_a_graph(p: &Program) {
    let exec = p.graph(|| p.upload(0, 512));
    p.write(5);
    p.cuda.cuGraphLaunch(exec, p.stream);
    p.synchronize();
    p.write(5);
    p.cuda.cuGraphLaunch(exec, p.stream);
    p.wait();
    p.write(5);
}

pub(super) fn result_of_a_graph(p: &Program) {
    let exec = p.graph(|| p.download(0, LARGE));
    p.read(5);
    p.cuda.cuGraphLaunch(exec, p.stream);
    p.wait();
    p.read(5);
}

pub(super) extern "C" fn reads(byte: *mut c_void) {
    // SAFETY: pinned memory, which the copy before this function has written.
    assert_eq!(unsafe { byte.cast::<u8>().read_volatile() }, 7);
}

/// A host function comes after the copy, also in a graph.
pub(super) fn host_function(p: &Program) {
    let both = || {
        p.download(0, LARGE);
        p.cuda.cuLaunchHostFunc(p.stream, reads, p.at(PAGE).cast());
    };
    both();
    p.synchronize();
    p.cuda.cuGraphLaunch(p.graph(both), p.stream);
}
