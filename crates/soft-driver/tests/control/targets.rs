//! Helpers that take a `StreamRef` mean the stream of its context, whichever context is current.

use std::time::Duration;

use cuda_events::{
    Context, Device, EventFlags, LoadOptions, Progress, Stream, StreamOptions, StreamRef,
};
use cuda_soft_driver::{OrderCheck, SoftDriver, Time};

type OfContext = fn(&Context) -> StreamRef;

/// Which stream of a context.
const STREAMS: [(&str, OfContext); 3] = [
    ("default", StreamRef::default_stream),
    ("legacy default", StreamRef::legacy_default),
    ("per-thread default", StreamRef::per_thread_default),
];

/// Runs with the context of device 0 as the first and of device 1 as the second argument, while
/// either of them, or none, is current.
fn each(test: impl Fn(&SoftDriver, &Context, &Context, &StreamRef, &StreamRef, &str)) {
    for (stream, make) in STREAMS {
        for current in ["its own", "the other", "none"] {
            for per_thread in [false, true] {
                let builder = SoftDriver::builder().devices(2).time(Time::Virtual);
                let builder = builder.check_order(OrderCheck::Report);
                let options = LoadOptions::new().per_thread_default_stream(per_thread);
                let soft = builder.build();
                let driver = soft.try_driver(&options).expect("a driver");
                let context = |ordinal| {
                    Device::new(driver, ordinal).and_then(Context::primary).expect("a context")
                };
                let (own, other) = (context(0), context(1));
                let _current = match current {
                    "its own" => Some(own.make_current().expect("it is current")),
                    "the other" => Some(other.make_current().expect("it is current")),
                    _ => None,
                };
                let what = format!("{stream}, {current} current, per-thread {per_thread}");
                test(&soft, &own, &other, &make(&own), &make(&other), &what);
            }
        }
    }
}

#[test]
fn a_busy_stream_is_that_of_its_context() {
    each(|soft, _, _, of_own, of_other, what| {
        soft.busy(of_own, Duration::from_secs(3600));
        let queries = [of_own, of_other].map(StreamRef::query);
        assert_eq!(queries, [Ok(Progress::Pending), Ok(Progress::Done)], "{what}");
        of_own.synchronize().expect("virtual time passes");
    });
}

#[test]
fn accesses_are_in_the_stream_of_its_context() {
    each(|soft, _, other, of_own, of_other, what| {
        let consumer = Stream::new(other, StreamOptions::new()).expect("a stream");
        // In order: the wait is for the stream that writes, and then for the one that reads.
        soft.name_stream(of_own, "own");
        soft.writes(of_own, 0x7000, 64);
        consumer.wait_event(&of_own.record_event(EventFlags::empty()).expect("a record")).unwrap();
        soft.reads(&consumer, 0x7000, 64);
        soft.reads(of_own, 0x8000, 64);
        consumer.wait_event(&of_own.record_event(EventFlags::empty()).expect("a record")).unwrap();
        soft.writes(&consumer, 0x8000, 64);
        assert_eq!(soft.order_findings(), [], "{what}");
        // Not in order: the wait is for the other context's stream.
        soft.writes(of_own, 0x9000, 64);
        let wrong = of_other.record_event(EventFlags::empty()).expect("a record");
        consumer.wait_event(&wrong).expect("a wait");
        soft.reads(&consumer, 0x9000, 64);
        let findings = soft.order_findings();
        let [finding] = &findings[..] else { panic!("{what}: {findings:?}") };
        assert_eq!(finding.first.agent.stream_name().as_deref(), Some("own"), "{what}");
    });
}
