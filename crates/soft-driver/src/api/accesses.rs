//! What a program tells the order checker: accesses that a driver cannot see, and the order of its
//! threads.

use core::panic::Location;

use cuda_order_check_engine::{Access, Cell, TokenId};

use crate::abi::*;
use crate::api::target::Target;
use crate::arg::StreamArg;
use crate::graph::NodeKind;
use crate::machine::call_frame::{CallFrame, EntryPoint, Id};
use crate::machine::{Machine, State};
use crate::order::Feed;

macro_rules! reports {
    ($($name:ident = $text:literal;)*) => {$(
        /// The name in reports. It is not an exported function.
        static $name: EntryPoint =
            EntryPoint { id: Id(u16::MAX), name: $text, per_thread: false };
    )*};
}

reports! {
    READS = "reads";
    WRITES = "writes";
    HOST_READS = "host_reads";
    HOST_WRITES = "host_writes";
    HAND_OVER = "hand_over";
    TAKE_OVER = "take_over";
    HOST_SAW = "host_saw";
    NAME_STREAM = "name_stream";
}

fn call(entry: &'static EntryPoint, machine: &'static Machine) -> CallFrame {
    CallFrame {
        machine,
        entry,
        number: machine.count_call(),
        epoch: machine.epoch(),
        context: None,
    }
}

/// Makes a report, if the order is checked.
fn report(
    call: &CallFrame,
    location: Option<&'static Location<'static>>,
    make: impl FnOnce(&mut State) -> Answer,
) -> Answer {
    let mut state = call.ready()?;
    let location = location.map(Into::into);
    let begun = state.feed(|feed, _| feed.begin(call.name(), call.number, location));
    if begun.is_some() { make(&mut state) } else { Ok(()) }
}

/// Bytes are accessed in stream order, or by the host itself. An access of a stream that is
/// captured is a node of the graph, which looks like an empty one.
fn access_of(
    call: &CallFrame,
    location: Option<&'static Location<'static>>,
    stream: Option<StreamArg>,
    access: Access,
) -> Answer {
    report(call, location, |state| {
        let Some(stream) = stream else {
            state.feed(|feed, _| feed.host(&[access]));
            return Ok(());
        };
        let stream = state.stream(call, stream)?;
        let State { captures, streams, graphs, .. } = &mut *state;
        let node = || NodeKind::Declared(vec![access.clone()]);
        if !captures.add(streams, graphs, call.number, stream, node)? {
            state.feed(|feed, ids| feed.work(ids.stream(stream), &[access]));
        }
        Ok(())
    })
}

pub(super) fn access(
    machine: &'static Machine,
    stream: Option<Target>,
    (address, bytes): (u64, usize),
    write: bool,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let entry = match (stream.is_some(), write) {
        (true, false) => &READS,
        (true, true) => &WRITES,
        (false, false) => &HOST_READS,
        (false, true) => &HOST_WRITES,
    };
    let access = if write { Access::write } else { Access::read }(address, bytes as u64);
    let call = stream.map_or_else(|| call(entry, machine), |stream| stream.call(entry, machine));
    access_of(&call, location, stream.map(Target::argument), access)
}

/// A report about the host alone.
fn host(
    machine: &'static Machine,
    entry: &'static EntryPoint,
    location: Option<&'static Location<'static>>,
    give: impl FnOnce(&mut Feed),
) -> Answer {
    report(&call(entry, machine), location, |state| {
        state.feed(|feed, _| give(feed));
        Ok(())
    })
}

pub(super) fn hand(
    machine: &'static Machine,
    token: u64,
    over: bool,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let token = TokenId(token);
    match over {
        true => host(machine, &HAND_OVER, location, |feed| feed.hand_over(token)),
        false => host(machine, &TAKE_OVER, location, |feed| feed.take_over(token)),
    }
}

pub(super) fn saw(
    machine: &'static Machine,
    (address, bytes): (u64, usize),
    value: u64,
    location: Option<&'static Location<'static>>,
) -> Answer {
    let bytes = match bytes {
        4 | 8 => bytes as u8,
        _ => return Err(INVALID_VALUE),
    };
    let cell = Cell { address, bytes };
    host(machine, &HOST_SAW, location, |feed| feed.saw_value(cell, value))
}

/// A crate on top of `cuda-events` has read a word that streams write, on this thread.
pub(super) fn read(machine: &'static Machine, epoch: u64, address: usize, value: u64) {
    // The driver may have ended, and another one have taken its place.
    if machine.epoch() == epoch {
        let _ = saw(machine, (address as u64, 8), value, None);
    }
}

pub(super) fn name_stream(machine: &'static Machine, stream: Target, name: &str) -> Answer {
    let call = stream.call(&NAME_STREAM, machine);
    report(&call, None, |state| {
        let stream = state.stream(&call, stream.argument())?;
        state.feed(|feed, ids| feed.stream_name(ids.stream(stream), name));
        Ok(())
    })
}
