//! Executable graphs.

use super::*;

#[derive(Clone)]
pub(super) enum Node {
    Host(Arc<Host>),
    Write(Access),
    WriteValue(Cell, u64),
    WaitValue(Cell),
    /// Work that the host does not poll, and that writes.
    Work,
}

pub(crate) fn copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: *mut Handle,
    graph: Handle,
) -> Code {
    after(call, real, |watch| {
        // SAFETY: the place for the handle, which a success has written.
        let exec = unsafe { read(exec) };
        watch.feed.graph_copy(GraphId(graph as u64), GraphId(exec as u64));
        match watch.graphs.get(&graph).cloned() {
            Some(nodes) => watch.graphs.insert(exec, nodes),
            None => watch.graphs.remove(&exec),
        };
        let objects = watch.objects.get(&graph).cloned().unwrap_or_default();
        watch.objects.insert(exec, objects);
    })
}

pub(crate) fn destroy(call: &Call, real: impl FnOnce() -> Code, graph: Handle) -> Code {
    begin(call, |watch| {
        let objects = watch.objects.remove(&graph).unwrap_or_default();
        watch.feed.graph_destroy(GraphId(graph as u64), objects);
        watch.graphs.remove(&graph);
    });
    real()
}

pub(crate) fn launch(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    stream: Handle,
) -> Code {
    // Its host functions may begin before the real call returns.
    begin(call, |watch| {
        let stream = watch.stream(call, stream);
        let Some(nodes) = watch.graphs.get(&exec).cloned() else {
            watch.order_everything();
            return;
        };
        for node in &nodes {
            match node {
                Node::WriteValue(cell, _) | Node::WaitValue(cell) => {
                    watch.feed.find_stored(*cell, || load(*cell));
                }
                Node::Write(access) => {
                    let range = &access.range;
                    watch.find_stored(range.start, range.end - range.start);
                }
                Node::Host(_) | Node::Work => {}
            }
        }
        watch.feed.launch(stream, GraphId(exec as u64));
        for node in nodes {
            match node {
                Node::Host(host) => {
                    let place = watch.new_place();
                    watch.feed.function(stream, place);
                    host.places.lock().unwrap_or_else(PoisonError::into_inner).push_back(place);
                }
                Node::Write(access) => {
                    let (address, end) = (access.range.start, access.range.end);
                    let flag = watch.before_write(address, end - address);
                    let place = watch.place_of(stream, flag);
                    watch.feed.forget_words(address, end - address);
                    watch.feed.write(stream, place, std::slice::from_ref(&access));
                    watch.submitted(stream, &[access]);
                }
                Node::WriteValue(cell, value) => {
                    let flag = watch.before_write(cell.address, u64::from(cell.bytes));
                    let place = watch.place_of(stream, flag);
                    watch.feed.write_value(stream, place, cell, value);
                }
                Node::WaitValue(_) => {}
                Node::Work => watch.feed.write(stream, None, &[]),
            }
        }
        watch.feed.launched();
    });
    real()
}

pub(crate) fn update(
    call: &Call,
    real: impl FnOnce() -> Code,
    exec: Handle,
    graph: Handle,
) -> Code {
    after(call, real, |watch| {
        watch.feed.graph_copy(GraphId(graph as u64), GraphId(exec as u64));
        match watch.graphs.get(&graph).cloned() {
            Some(nodes) => watch.graphs.insert(exec, nodes),
            None => watch.graphs.remove(&exec),
        };
        let objects = watch.objects.get(&graph).cloned().unwrap_or_default();
        watch.objects.entry(exec).or_default().extend(objects);
    })
}
