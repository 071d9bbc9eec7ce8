//! What the driver says of a capture: its identity, its graph, its dependencies.

use crate::common::{self, table};

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::Arc;

use common::Gpu;
use cuda_events::capture::{CaptureDependency, CaptureMode, CaptureStatus, DependencyUpdate};
use cuda_events::graph::Graph;
use cuda_events::sys::{
    CUgraph, CUgraphEdgeData, CUgraphNode, CUresult, CUstream, CUstreamCaptureStatus, Function,
};
use cuda_events::{
    Context, Device, Driver, Error, Event, EventFlags, Stream, StreamOptions, StreamRef, Version,
};
use cuda_soft_driver::SoftDriver;

use crate::capture::*;

#[test]
fn each_capture_has_an_id_of_its_own() {
    let Some(gpu) = Gpu::with(Function::cuStreamGetCaptureInfo_v2) else { return };
    let stream = gpu.stream();
    let before = stream.capture_info().expect("an answer");
    assert_eq!(
        (before.status, before.id, before.graph.is_null()),
        (CaptureStatus::None, None, true)
    );
    let mut ids = Vec::new();
    for _ in 0..3 {
        let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
        assert_eq!(format!("{capture:?}"), format!("Capture {{ stream: {:?}, .. }}", &*stream));
        let info = stream.capture_info().expect("an answer");
        assert_eq!((info.status, info.graph.is_null()), (CaptureStatus::Active, false));
        ids.extend(info.id);
        capture.end().expect("a graph");
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    stream.query().expect_err("a query of the stream itself");
    let info = stream.capture_info().expect("an answer");
    assert_eq!(
        (info.status, info.id, info.graph.is_null()),
        (CaptureStatus::Invalidated, None, true)
    );
    drop(capture);
}

#[test]
fn dependencies_can_be_read_and_changed() {
    let Some(gpu) = Gpu::with(Function::cuStreamUpdateCaptureDependencies_v2) else { return };
    let (stream, other) = (gpu.stream(), gpu.stream());
    let events = [shared(&gpu), shared(&gpu)];
    let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
    let nodes = || {
        // SAFETY: this thread is the only one that uses the streams.
        let dependencies = unsafe { capture.dependencies(&stream) }.expect("dependencies");
        assert!(
            dependencies.iter().all(|dependency| dependency.edge() == CUgraphEdgeData::default())
        );
        dependencies.iter().map(|dependency| dependency.node).collect::<Vec<_>>()
    };
    let update = |stream: &StreamRef, nodes: &[_], how| {
        let dependencies: Vec<CaptureDependency> =
            nodes.iter().copied().map(CaptureDependency::from).collect();
        capture.update_dependencies(stream, &dependencies, how)
    };
    assert_eq!(nodes(), []);
    stream.record_external(&events[0]).expect("a record");
    let [first] = nodes()[..] else { panic!("{:?}", nodes()) };
    update(&stream, &[], DependencyUpdate::Set).expect("an update");
    assert_eq!(nodes(), []);
    stream.record_external(&events[1]).expect("a record");
    let [second] = nodes()[..] else { panic!("{:?}", nodes()) };
    assert_ne!(first, second);
    update(&stream, &[first], DependencyUpdate::Add).expect("an update");
    assert_eq!(nodes().len(), 2);
    update(&stream, &[first], DependencyUpdate::Set).expect("an update");
    assert_eq!(nodes(), [first]);

    let function = Function::cuStreamUpdateCaptureDependencies_v2;
    assert_eq!(
        update(&other, &[], DependencyUpdate::Set),
        Err(Error::CaptureMismatch { function })
    );
    // SAFETY: as above.
    assert!(matches!(unsafe { capture.dependencies(&other) }, Err(Error::CaptureMismatch { .. })));
    let third = gpu.stream();
    let elsewhere = common::begin_capture(&third, CaptureMode::ThreadLocal).expect("a capture");
    assert_eq!(
        update(&third, &[], DependencyUpdate::Set),
        Err(Error::CaptureMismatch { function })
    );
    elsewhere.end().expect("it is unharmed");
    let mut graph = Graph::new(&gpu.context).expect("a graph");
    let foreign = graph.add_event_record_node(&[], &events[0]).expect("a node");
    assert_eq!(
        update(&stream, &[foreign], DependencyUpdate::Set),
        Err(Error::GraphMismatch { function })
    );
    assert_eq!(nodes(), [first], "nothing came of these");

    // The nodes are names of the graph's.
    let graph = capture.end().expect("a graph");
    for (node, event) in [first, second].into_iter().zip(&events) {
        let known = graph
            .record_node_event(node)
            .expect("a record node")
            .expect("an event of this program's");
        assert!(Arc::ptr_eq(&known, event));
    }
}

#[test]
fn older_drivers_give_what_they_have() {
    for (major, minor) in [(11, 0), (11, 3), (12, 2), (12, 3)] {
        let soft = SoftDriver::builder().version(major, minor).build();
        let version = Version::new(major, minor);
        let context =
            Device::new(soft.driver(), 0).and_then(Context::primary).expect("the context");
        let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
        let capture = common::begin_capture(&stream, CaptureMode::ThreadLocal).expect("a capture");
        let info = stream.capture_info().expect("an answer");
        assert_eq!(info.status, CaptureStatus::Active);
        assert!(info.id.is_some());
        assert_eq!(info.graph.is_null(), version < Version::new(11, 3));
        // SAFETY: this thread is the only one that uses the stream.
        let dependencies = unsafe { capture.dependencies(&stream) };
        let updated = capture.update_dependencies(&stream, &[], DependencyUpdate::Set);
        if version < Version::new(11, 3) {
            let function = Function::cuStreamGetCaptureInfo_v2;
            let since = Version::new(11, 3);
            assert_eq!(dependencies, Err(Error::Unsupported { function, since, driver: version }));
            let function = Function::cuStreamUpdateCaptureDependencies;
            assert_eq!(updated, Err(Error::Unsupported { function, since, driver: version }));
        } else {
            assert_eq!(dependencies, Ok(Vec::new()));
            assert_eq!(updated, Ok(()));
        }
        if version == Version::new(12, 2) {
            let event = Arc::new(Event::new(&context, EventFlags::empty()).expect("an event"));
            stream.record_external(&event).expect("a record");
            // SAFETY: as above.
            let dependency = unsafe { capture.dependencies(&stream) }.expect("dependencies")[0];
            let mut edge = dependency.edge();
            edge.type_ = 1;
            let dependency = CaptureDependency::with_edge(dependency.node, edge);
            let error = capture.update_dependencies(&stream, &[dependency], DependencyUpdate::Set);
            let function = Function::cuStreamUpdateCaptureDependencies_v2;
            assert_eq!(
                error,
                Err(Error::Unsupported { function, since: Version::new(12, 3), driver: version })
            );
        }
        let graph = capture.end().expect("a graph");
        let into = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal);
        assert_eq!(into.is_ok(), version >= Version::new(12, 3), "{into:?}");
    }
}

thread_local! {
    static REAL: Cell<Option<Driver>> = const { Cell::new(None) };
    /// The edges that the driver was given last.
    static GIVEN: RefCell<Vec<CUgraphEdgeData>> = const { RefCell::new(Vec::new()) };
}

fn edge(from_port: u8) -> CUgraphEdgeData {
    let mut edge = CUgraphEdgeData::default();
    (edge.from_port, edge.to_port, edge.type_) = (from_port, 2, 1);
    edge
}

/// The edge data reaches the driver with its node, and comes back with it. The software driver has
/// none of its own.
#[test]
fn dependencies_have_their_edge_data() {
    extern "C" fn update(
        stream: CUstream,
        nodes: *mut CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        flags: u32,
    ) -> CUresult {
        // SAFETY: the caller says that there are as many.
        GIVEN.set(unsafe { std::slice::from_raw_parts(edges, count) }.to_vec());
        let real =
            REAL.get().and_then(|driver| driver.symbols().cuStreamUpdateCaptureDependencies_v2);
        let plain = vec![CUgraphEdgeData::default(); count];
        // SAFETY: the caller's arguments, passed on with edges that each driver takes.
        unsafe { real.expect("CUDA 12.3")(stream, nodes, plain.as_ptr(), count, flags) }
    }
    extern "C" fn info(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut u64,
        graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) -> CUresult {
        let real = REAL
            .get()
            .and_then(|driver| driver.symbols().cuStreamGetCaptureInfo_v3)
            .expect("CUDA 12.3");
        // SAFETY: the caller's arguments, passed on.
        let code = unsafe { real(stream, status, id, graph, nodes, edges, count) };
        if !edges.is_null() {
            // SAFETY: the caller's place for the address, which stays until the next update of this
            // thread.
            unsafe { *edges = GIVEN.with_borrow(|given| given.as_ptr()) };
        }
        code
    }
    let Some(gpu) = Gpu::with(Function::cuStreamUpdateCaptureDependencies_v2) else { return };
    REAL.set(Some(gpu.driver));
    let driver = table::replaced(gpu.driver, |function| match function {
        Function::cuStreamUpdateCaptureDependencies_v2 => Some(update as *mut c_void),
        Function::cuStreamGetCaptureInfo_v3 => Some(info as *mut c_void),
        _ => None,
    });
    let context = Device::new(driver, 0).and_then(Context::primary).expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let mut graph = Graph::new(&context).expect("a graph");
    let nodes = [(); 3].map(|()| graph.add_event_record_node(&[], &shared(&gpu)).expect("a node"));
    let capture = common::begin_capture_to_graph(&stream, graph, &[], CaptureMode::ThreadLocal)
        .expect("a capture");
    let given = [
        CaptureDependency::with_edge(nodes[2], edge(7)),
        nodes[0].into(),
        CaptureDependency::with_edge(nodes[1], edge(9)),
    ];
    capture.update_dependencies(&stream, &given, DependencyUpdate::Set).expect("an update");
    assert_eq!(GIVEN.with_borrow(Vec::clone), [edge(7), CUgraphEdgeData::default(), edge(9)]);
    // SAFETY: this thread is the only one that uses the stream.
    let known = unsafe { capture.dependencies(&stream) }.expect("dependencies");
    assert_eq!(
        known.iter().map(|known| known.edge()).collect::<Vec<_>>(),
        GIVEN.with_borrow(Vec::clone)
    );
    assert_eq!(known.len(), 3);
}
