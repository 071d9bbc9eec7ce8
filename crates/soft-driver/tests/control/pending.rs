//! What streams wait for, for whoever looks at a program that hangs.

use std::sync::mpsc;
use std::time::Duration;

use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions, StreamRef};
use cuda_soft_driver::{Scheduler, SoftDriver, Time};
use cuda_timelines::HostTimeline;

fn stream(context: &Context) -> Stream {
    Stream::new(context, StreamOptions::new()).expect("a stream")
}

fn wait_for(stream: &StreamRef, producer: &StreamRef) {
    let event = producer.record_event(EventFlags::empty()).expect("a record");
    stream.wait_event(&event).expect("a wait");
}

fn texts(soft: &SoftDriver) -> Vec<String> {
    let name = |text: String| text.split_once(' ').map(|(_, rest)| rest.to_owned()).unwrap();
    let texts = soft.pending().into_iter().map(name).collect();
    assert_eq!(soft.control("pending").unwrap().lines().count(), soft.pending().len());
    texts
}

#[test]
fn each_kind_of_wait_is_named() {
    let soft = SoftDriver::builder().time(Time::Virtual).build();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("a context");
    let [value, event, host, busy] = [(); 4].map(|()| stream(&context));
    let default = StreamRef::legacy_default(&context);
    assert_eq!(soft.pending(), [""; 0]);

    let peer = HostTimeline::new(&context).expect("a timeline");
    peer.wait_ahead(&value, 1).expect("a wait");
    wait_for(&event, &value);
    wait_for(&default, &event);
    let (started, starts) = mpsc::channel();
    let (goes_on, go_on) = mpsc::channel::<()>();
    host.launch_host_function(move || {
        started.send(()).unwrap();
        go_on.recv().unwrap();
    })
    .expect("a host function");
    starts.recv().unwrap();
    soft.busy(&busy, Duration::from_secs(3600));
    let texts = texts(&soft);
    let handle = |stream: &StreamRef| format!("{:#x}", stream.as_raw().addr());
    let text_of = |stream: &StreamRef| {
        let found = texts.iter().find(|text| text.starts_with(&handle(stream)));
        found.unwrap_or_else(|| panic!("{} in {texts:?}", handle(stream))).clone()
    };
    let waits = text_of(&value);
    assert!(waits.contains("waits for at least 1 at 0x"), "{waits}");
    assert!(waits.contains(", where 0 is: cuStreamWaitValue64_v2, call "), "{waits}");
    let recorded = format!("waits for an event that stream {} records behind 1 ", handle(&value));
    assert!(text_of(&event).contains(&recorded), "{}", text_of(&event));
    for running in [&host, &busy] {
        assert!(text_of(running).contains("has work that runs"), "{}", text_of(running));
    }
    let context_handle = format!("default stream of context {:#x} waits", context.as_raw().addr());
    assert!(texts.iter().any(|text| text.contains(&context_handle)), "{texts:?}");

    peer.signal().expect("a signal");
    goes_on.send(()).unwrap();
    context.synchronize().expect("virtual time passes");
    assert_eq!(soft.pending(), [""; 0]);
}

/// A seeded scheduler leaves work that could run.
#[test]
fn work_that_can_run() {
    let soft = SoftDriver::builder().scheduler(Scheduler::Seeded(1)).build();
    let context = Device::new(soft.driver(), 0).and_then(Context::primary).expect("a context");
    let stream = stream(&context);
    soft.hold_host_functions(true);
    stream.launch_host_function(|| ()).expect("a host function");
    stream.launch_host_function(|| ()).expect("a host function");
    let [text] = &soft.pending()[..] else { panic!("{:?}", soft.pending()) };
    assert!(text.contains("has work that"), "{text}");
    soft.hold_host_functions(false);
    stream.synchronize().expect("the functions run");
    assert_eq!(soft.pending(), [""; 0]);
}
