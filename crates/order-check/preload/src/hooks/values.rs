//! Writes of values, and waits for them.

use core::ffi::c_uint;

use cuda_events::sys::CUstreamBatchMemOpParams;

use crate::call::{Call, Code, Handle};
use crate::model::graphs::node::Node;
use crate::model::under_way::state::Visible;
use crate::model::values::state::{Value, load};
use crate::walk::{begin_call, caught_up};

pub(crate) fn apply(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    values: &[Value],
) -> Code {
    let number = begin_call(call, |watch| {
        let stream = watch.stream(call, stream);
        let with_id = |value: &Value| {
            watch.feed.find_stored(value.cell, || load(value.cell));
            let id = match value.wait {
                Some(_) => None,
                None => {
                    let flag = watch.flag(stream, value.cell, value.value);
                    watch.expect_value(flag)
                }
            };
            (*value, id)
        };
        let mut values: Vec<_> = values.iter().map(with_id).collect();
        values.iter_mut().for_each(|(_, id)| watch.values.clear_unless_pending(id));
        let ids = values.iter().filter_map(|(_, id)| *id).collect();
        let at_once = watch.feed.capture_of(stream).is_none()
            && values.iter().any(|(value, id)| value.wait.is_none() && id.is_none());
        watch.submission_begins(Visible { stream, ids, at_once }, move |watch| {
            for (Value { cell, value, wait }, id) in values {
                match wait {
                    Some(compare) => {
                        watch.feed.wait_value(stream, cell, value, compare);
                        watch.graphs.add(&watch.feed, stream, Node::WaitValue(cell));
                    }
                    None => {
                        watch.feed.write_value(stream, id, cell, value);
                        watch.graphs.add(&watch.feed, stream, Node::WriteValue(cell, value));
                    }
                }
            }
        })
    });
    let code = real();
    if let Some(number) = number {
        caught_up(|watch| watch.submission_returned(number, code));
    }
    code
}

pub(crate) fn batch(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    count: c_uint,
    operations: *const CUstreamBatchMemOpParams,
) -> Code {
    if let Some(values) = crate::model::values::state::operations(operations, count) {
        return apply(call, real, stream, &values);
    }
    begin_call(call, |watch| {
        watch.seen.operations += 1;
        watch.order_everything();
        watch.note_captures();
    });
    real()
}
