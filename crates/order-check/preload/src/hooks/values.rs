//! Writes of values, and waits for them.

use core::ffi::c_uint;

use cuda_events::sys::CUstreamBatchMemOpParams;

use crate::call::{Call, Code, Handle};
use crate::model::launch::Node;
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
        let with_place = |value: &Value| {
            watch.feed.find_stored(value.cell, || load(value.cell));
            let place = match value.wait {
                Some(_) => None,
                None => {
                    let flag = watch.flag(stream, value.cell, value.value);
                    watch.place_of_value(flag)
                }
            };
            (*value, place)
        };
        let mut values: Vec<_> = values.iter().map(with_place).collect();
        values.iter_mut().for_each(|(_, place)| watch.values.keep_pending(place));
        let places = values.iter().filter_map(|(_, place)| *place).collect();
        let at_once = watch.feed.capture_of(stream).is_none()
            && values.iter().any(|(value, place)| value.wait.is_none() && place.is_none());
        watch.under_way(Visible { stream, places, at_once }, move |watch| {
            for (Value { cell, value, wait }, place) in values {
                match wait {
                    Some(compare) => {
                        watch.feed.wait_value(stream, cell, value, compare);
                        watch.graphs.add(&watch.feed, stream, Node::WaitValue(cell));
                    }
                    None => {
                        watch.feed.write_value(stream, place, cell, value);
                        watch.graphs.add(&watch.feed, stream, Node::WriteValue(cell, value));
                    }
                }
            }
        })
    });
    let code = real();
    if let Some(number) = number {
        caught_up(|watch| watch.returned(number, code));
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
