//! The process whose event the scenarios import: a test starts the ignored test `exporter` of its
//! own binary, which is [`run`].

use cuda_events::{Context, Device, Event, EventFlags, IpcEventDescriptor, Stream, StreamOptions};
use cuda_soft_driver::SoftDriver;

use crate::common::child::{self, Child};

/// Not a test.
#[test]
#[ignore = "the other process, which the tests start: cargo test --test faults"]
fn exporter() {
    assert!(child::role().is_some(), "this is no test of its own");
    let soft = SoftDriver::builder().devices(2).build();
    let context =
        Context::primary(Device::new(soft.driver(), 0).expect("device 0")).expect("a context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let event = Event::new(&context, EventFlags::INTERPROCESS).expect("an event");
    event.record(&stream).expect("a record");
    event.synchronize().expect("nothing holds the stream");
    child::say(&event.ipc_descriptor().expect("a descriptor").to_string());
    child::read_line();
}

pub fn start() -> (Child, IpcEventDescriptor) {
    let mut child = Child::start("exporter", "exporter");
    let descriptor = child.receive().parse().expect("a descriptor");
    (child, descriptor)
}
