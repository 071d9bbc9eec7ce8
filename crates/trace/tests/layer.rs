//! Spans of the crate `tracing`, in the rows of their threads.

use cuda_events_trace::HostRecorder;
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn spans_are_recorded_each_time_a_thread_is_in_one() {
    let recorder = HostRecorder::new();
    let subscriber = tracing_subscriber::registry().with(recorder.layer());
    tracing::subscriber::with_default(subscriber, || {
        let span =
            tracing::info_span!("outer", size = 3, text = "a \"b\"", later = tracing::field::Empty);
        span.in_scope(|| {
            tracing::info_span!("inner").in_scope(|| {});
            span.record("later", 5);
            span.record("later", 6);
        });
        span.in_scope(|| {});
        std::thread::scope(|scope| {
            let span = &span;
            let enter = move || span.in_scope(|| {});
            std::thread::Builder::new()
                .name("other".to_owned())
                .spawn_scoped(scope, enter)
                .unwrap();
        });
    });
    let mut spans = recorder.take().spans;
    spans.sort_by_key(|span| (span.thread.number(), span.start));
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["outer", "inner", "outer", "outer"]);
    let args: Vec<_> = spans[0].args.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(args, [("size", "3"), ("text", "\"a \\\"b\\\"\""), ("later", "6")]);
    assert!(spans[1].args.is_empty());
    assert!(spans[0].start <= spans[1].start && spans[1].end <= spans[0].end);
    assert!(spans[0].end <= spans[2].start);
    assert_eq!(spans[3].thread.name(), Some("other"));
    assert_ne!(spans[3].thread, spans[0].thread);
    assert!(recorder.take().spans.is_empty());
}

/// Each exit is that of the last enter.
#[test]
fn a_span_within_itself_ends_first() {
    let recorder = HostRecorder::new();
    let subscriber = tracing_subscriber::registry().with(recorder.layer());
    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("again");
        span.in_scope(|| span.in_scope(|| {}));
    });
    let spans = recorder.take().spans;
    let [inner, outer] = spans.as_slice() else { panic!("{spans:?}") };
    assert!(outer.start <= inner.start && inner.end <= outer.end, "{spans:?}");
    assert_ne!(outer.start, inner.start);
}

#[test]
fn two_layers_have_spans_of_their_own() {
    let (one, two) = (HostRecorder::new(), HostRecorder::new());
    let subscriber = tracing_subscriber::registry().with(one.layer()).with(two.layer());
    tracing::subscriber::with_default(subscriber, || {
        tracing::info_span!("a", x = 1).in_scope(|| {});
    });
    for recorder in [one, two] {
        let spans = recorder.take().spans;
        assert_eq!(spans.len(), 1);
        assert_eq!(spans[0].args, [("x".into(), "1".to_owned())]);
    }
}
