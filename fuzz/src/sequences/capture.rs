//! The calls on captures and graphs.

use std::ptr::{null_mut, without_provenance, without_provenance_mut};

use cuda_events::sys::*;

use super::{Bytes, Fate, Life, Run, SUCCESS, at};

impl Run {
    /// One of these handles, or a wrong one.
    pub(super) fn one_of(&self, bytes: &mut Bytes<'_>, all: &[u64]) -> u64 {
        let (choice, which) = (bytes.byte(), usize::from(bytes.byte()));
        match choice {
            248..=255 => {
                let event = self.model.events.first().map_or(0, |event| event.handle);
                [0, 1, 2, 0x1234, 0x7fff_ffff_f000, self.model.others[2], event, event]
                    [usize::from(choice - 248)]
            }
            _ if all.is_empty() => 0,
            _ => all[which % all.len()],
        }
    }

    /// A graph: most are alive.
    pub(super) fn graph(&self, bytes: &mut Bytes<'_>) -> u64 {
        let stale = bytes.byte() >= 240;
        let all = self.model.graphs.iter().filter(|it| it.handle != 0);
        let all = all.filter(|it| stale || it.life == Life::Alive);
        self.one_of(bytes, &all.map(|it| it.handle).collect::<Vec<_>>())
    }

    pub(super) fn exec(&self, bytes: &mut Bytes<'_>) -> u64 {
        let stale = bytes.byte() >= 240;
        let all = self.model.execs.iter().filter(|it| stale || it.alive);
        self.one_of(bytes, &all.map(|it| it.handle).collect::<Vec<_>>())
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(super) fn exchange(&mut self, new: u32) {
        let mut mode = CUstreamCaptureMode(new);
        let code = unsafe { (self.table.exchange)(&mut mode) };
        self.expect("cuThreadExchangeStreamCaptureMode", code, (SUCCESS, false));
        assert_eq!(mode.0, self.model.exchange(new), "the mode before");
    }

    /// Ends a capture. If it gives a graph, that is the graph that was told.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn end_capture(&mut self, stream: u64) {
        let Some((expected, graph)) = self.model.end_capture(stream) else { return };
        let mut made = without_provenance_mut(77);
        let code = unsafe { (self.table.end)(at(stream), &mut made) };
        self.expect("cuStreamEndCapture", code, expected);
        match graph {
            Some(graph) => self.model.captured_graph(graph, made.addr() as u64),
            // What is no stream is not asked.
            None => assert!(made.is_null() || expected.0 == 201 || expected.0 == 709 || expected.1),
        }
    }

    /// Ends all captures, so that nothing is forbidden.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(super) fn end_captures(&mut self) {
        let open = self.model.captures.iter().filter(|it| it.fate != Fate::Over);
        let streams: Vec<usize> = open.map(|it| it.origin).collect();
        for stream in streams {
            let (handle, context) =
                (self.model.streams[stream].handle, self.model.streams[stream].context);
            // The stream of this thread is the current context's.
            let context = self.model.contexts[context].handle;
            let pushed = unsafe { (self.table.push)(at(context)) };
            let expected = self.model.push(context);
            self.expect("cuCtxPushCurrent", pushed, expected);
            self.end_capture(handle);
            let popped = unsafe { (self.table.pop)(null_mut()) };
            let expected = self.model.pop();
            self.expect("cuCtxPopCurrent", popped, expected);
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn begin_capture(&mut self, stream: u64, mode: u32) {
        let Some(expected) = self.model.begin_capture(stream, mode) else { return };
        let mode = CUstreamCaptureMode(mode);
        let code = unsafe { (self.table.begin)(at(stream), mode) };
        self.expect("cuStreamBeginCapture", code, expected);
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn record_with(&mut self, event: u64, stream: u64, flags: u32) {
        let Some(expected) = self.model.record(event, stream, flags) else { return };
        let code = unsafe { (self.table.record_with)(at(event), at(stream), flags) };
        self.expect("cuEventRecordWithFlags", code, expected);
    }

    /// An executable graph, if it could be made.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn instantiate(&mut self, graph: u64, flags: u64) -> Option<u64> {
        let mut exec = null_mut();
        let expected = self.model.instantiate(graph, flags)?;
        let code = unsafe { (self.table.instantiate)(&mut exec, at(graph), flags) };
        match expected {
            Ok(graph) => {
                self.expect("cuGraphInstantiate", code, (SUCCESS, false));
                self.model.instantiated(graph, exec.addr() as u64);
                Some(exec.addr() as u64)
            }
            Err(answer) => {
                self.expect("cuGraphInstantiate", code, answer);
                None
            }
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn graph_launch(&mut self, exec: u64, stream: u64) {
        let Some(expected) = self.model.graph_launch(exec, stream) else { return };
        let code = unsafe { (self.table.graph_launch)(at(exec), at(stream)) };
        self.expect("cuGraphLaunch", code, expected);
        self.settle(stream);
    }

    /// A capture from its beginning to a launch, in a few streams and with a few events, with good
    /// handles as far as there are some: a random sequence seldom gets so far.
    pub(super) fn whole_capture(&mut self, bytes: &mut Bytes<'_>) {
        while self.model.made().filter(|it| it.life == Life::Alive).count() < 3
            && self.create_stream(1)
        {}
        while self.model.events.iter().filter(|it| it.life == Life::Alive).count() < 3
            && self.create_event(2)
        {}
        let streams = self.model.made().filter(|it| it.life == Life::Alive);
        let streams: Vec<u64> = streams.map(|it| it.handle).collect();
        let events = self.model.events.iter().filter(|it| it.life == Life::Alive);
        let events: Vec<u64> = events.map(|it| it.handle).collect();
        let (Some(streams), Some(events)) = (streams.last_chunk::<3>(), events.last_chunk::<3>())
        else {
            return;
        };
        self.begin_capture(streams[0], [2, 2, 0, 1][bytes.below(4)]);
        // Most captures fork.
        if bytes.byte() < 192 {
            self.record(events[0], streams[0]);
            self.wait(streams[1], events[0], 0);
        }
        for _ in 0..bytes.below(10) {
            let (what, which) = (bytes.below(9), bytes.byte());
            let stream = streams[usize::from(which) % 3];
            let event = events[usize::from(which >> 4) % 3];
            match what {
                0 | 1 => self.record(event, stream),
                2 | 3 => self.wait(stream, event, 0),
                4 | 5 => self.launch(stream, false),
                6 => self.record_with(event, stream, 1),
                7 => self.memory(3, bytes),
                _ => self.memory(4, bytes),
            }
        }
        // Most captures join what they forked.
        let join = bytes.byte();
        if join < 192 {
            self.record(events[1], streams[1]);
            self.wait(streams[0], events[1], 0);
        }
        let before = self.model.graphs.len();
        self.end_capture(streams[0]);
        let made = before.checked_sub(1).map(|at| &self.model.graphs[at]);
        let Some(graph) = made.filter(|it| it.life == Life::Alive).map(|it| it.handle) else {
            return;
        };
        let Some(exec) = self.instantiate(graph, 0) else { return };
        for _ in 0..1 + bytes.below(2) {
            self.graph_launch(exec, streams[2]);
        }
    }

    // SAFETY of the blocks below: as of the other calls.
    #[allow(clippy::undocumented_unsafe_blocks)]
    pub(super) fn capture(&mut self, operation: u8, bytes: &mut Bytes<'_>) {
        match operation {
            0 | 1 => {
                let (stream, mode) =
                    (self.handle(bytes, 1), [0, 1, 2, 2, 2, 2, 3, u32::MAX][bytes.below(8)]);
                self.begin_capture(stream, mode);
            }
            2 => {
                // Most end a capture where it began.
                let stream = self.handle(bytes, 1);
                let open = self.model.captures.iter().filter(|it| it.fate != Fate::Over);
                let origins: Vec<_> = open.map(|it| self.model.streams[it.origin].handle).collect();
                let any = bytes.byte() < 64 || origins.is_empty();
                let stream = if any { stream } else { origins[bytes.below(origins.len())] };
                self.end_capture(stream);
            }
            3 => self.ask(bytes),
            4 => {
                let (event, stream) = (self.handle(bytes, 2), self.handle(bytes, 1));
                let flags = [0, 1, 1, 1, 1, 1, 1, 2][bytes.below(8)];
                self.record_with(event, stream, flags);
            }
            5 => {
                let new = [0, 0, 0, 1, 2, 2][bytes.below(6)];
                // It takes numbers that are no modes, too.
                if bytes.byte() >= 192 {
                    self.exchange(7);
                }
                self.exchange(new);
            }
            6 => {
                let graph = self.graph(bytes);
                let flags = [0, 0, 0, 1, 4, 8, 9, 12, 2, 16, 3][bytes.below(11)];
                self.instantiate(graph, flags);
            }
            7 | 8 => {
                let (exec, stream) = (self.exec(bytes), self.handle(bytes, 1));
                self.graph_launch(exec, stream);
            }
            _ => {
                let (graph, exec) = (self.graph(bytes), self.exec(bytes));
                if bytes.byte() & 1 == 0 {
                    let code = unsafe { (self.table.graph_destroy)(at(graph)) };
                    let expected = self.model.graph_destroy(graph);
                    self.expect("cuGraphDestroy", code, expected);
                } else {
                    let code = unsafe { (self.table.exec_destroy)(at(exec)) };
                    let expected = self.model.exec_destroy(exec);
                    self.expect("cuGraphExecDestroy", code, expected);
                }
            }
        }
    }

    /// Asks a stream about its capture.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn ask(&mut self, bytes: &mut Bytes<'_>) {
        let handle = self.handle(bytes, 1);
        let Some(expected) = self.model.is_capturing(handle) else { return };
        let mut status = CUstreamCaptureStatus(77);
        let code = unsafe { (self.table.is_capturing)(at(handle), &mut status) };
        let number = match expected {
            Ok(number) => {
                self.expect("cuStreamIsCapturing", code, (SUCCESS, false));
                assert_eq!(status.0, number, "the status");
                number
            }
            Err(answer) => {
                self.expect("cuStreamIsCapturing", code, answer);
                return;
            }
        };
        let (mut id, mut graph, mut nodes_told, mut count) =
            (77, without_provenance_mut(77), without_provenance::<CUgraphNode>(77), 77);
        let code = unsafe {
            let (id, nodes) = (&mut id, &mut nodes_told);
            let stream = at(handle);
            (self.table.capture_info)(stream, &mut status, id, &mut graph, nodes, &mut count)
        };
        self.expect("cuStreamGetCaptureInfo", code, (SUCCESS, false));
        assert_eq!(status.0, number, "the status");
        match self.model.capture_info(handle) {
            Some((number, captured, nodes)) if status.0 == 1 => {
                assert_eq!(id, number, "of {handle:#x}");
                if let Some(expected) = nodes {
                    assert_eq!(count, expected.len(), "of {handle:#x}");
                    // SAFETY: the driver's array, until the next call on the stream.
                    if let (1, Some(node)) = (count, unsafe { nodes_told.as_ref() }) {
                        self.model.told_node(expected[0], node.addr() as u64);
                    }
                }
                self.model.told_graph(captured, graph.addr() as u64);
            }
            _ => assert_eq!((id, graph.addr(), nodes_told.addr(), count), (77, 77, 77, 77)),
        }
    }
}
