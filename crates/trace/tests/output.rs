//! What is written: Chrome trace JSON and the page.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cuda_events::sys::{CUresult, Function};
use cuda_events::{Context, Device, Error, Event, EventFlags, Stream, StreamOptions};
use cuda_events_test_support::Gpu;
use cuda_events_trace::{HostRecorder, Thread, Trace, Tracer};
use cuda_soft_driver::{Fault, SoftDriver, Time};
use serde_json::Value;

/// A name that would end the script, the string and the attribute, in every place that has one.
const EVIL: &str = "a \"quoted\" \\ name</script><!-- \u{2028} & \n \u{1}ü€";

fn chrome(trace: &Trace) -> Value {
    let mut out = Vec::new();
    trace.write_chrome(&mut out).unwrap();
    let json = serde_json::from_slice(&out).expect("it is JSON");
    check_format(&json);
    json
}

/// What the description of the Trace Event Format demands of each phase that is written.
#[track_caller]
fn check_format(json: &Value) {
    assert!(["ns", "ms"].contains(&json["displayTimeUnit"].as_str().unwrap()));
    let mut counters = BTreeMap::new();
    for event in json["traceEvents"].as_array().expect("events") {
        let is = |name: &str, is: fn(&Value) -> bool| assert!(is(&event[name]), "{name}: {event}");
        let args = |is: fn(&Value) -> bool| {
            let args = event["args"].as_object().unwrap_or_else(|| panic!("args: {event}"));
            assert!(args.values().all(is), "{event}");
        };
        is("name", Value::is_string);
        is("pid", Value::is_u64);
        let phase = event["ph"].as_str().expect("a phase");
        if phase != "M" {
            is("ts", |time| time.as_f64().is_some_and(|time| time >= 0.0));
        }
        if !["M", "C"].contains(&phase) {
            is("tid", Value::is_u64);
            is("cat", Value::is_string);
        }
        match phase {
            "M" if event["name"].as_str().is_some_and(|name| name.ends_with("_name")) => {
                is("args", |args| args["name"].is_string());
            }
            "M" => {
                let number = event.get("tid").unwrap_or(&event["pid"]);
                assert_eq!(event["args"]["sort_index"], *number, "{event}");
            }
            "X" => {
                is("dur", |time| time.as_f64().is_some_and(|time| time >= 0.0));
                args(|value| value.is_string() || value.is_i64());
            }
            "s" | "f" => is("id", Value::is_u64),
            "i" => is("s", |scope| ["g", "p", "t"].map(Into::into).contains(scope)),
            "C" => {
                args(Value::is_number);
                let counter = (event["pid"].to_string(), event["name"].to_string());
                let time = event["ts"].as_f64().unwrap();
                let last = counters.insert(counter, time).unwrap_or(0.0);
                assert!(last <= time, "{event}");
            }
            _ => panic!("a phase that is not written: {event}"),
        }
    }
}

/// The data of a page.
fn page_data(trace: &Trace) -> Value {
    let page = html(trace);
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(data).expect("it is JSON")
}

/// A span and a host span with arguments and a category, and one without.
fn labelled() -> Trace {
    let soft = SoftDriver::builder().time(Time::Virtual).build();
    let context = Context::primary(Device::new(soft.driver(), 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let tracer = Tracer::new(&context).unwrap();
    let recorder = HostRecorder::new();
    let span = tracer.span(&stream, "one").unwrap().category("model").arg("batch", 8);
    // The program's own argument has precedence over one of the same name.
    let span = span.arg("note", EVIL).arg("code", "007").arg("begun by", "me");
    soft.busy(&stream, Duration::from_millis(3));
    span.end(&stream).unwrap();
    tracer.span(&stream, "plain").unwrap().end(&stream).unwrap();
    stream.synchronize().unwrap();
    drop(recorder.span("load").category("io").arg("file", 3));
    let mut trace = tracer.finish(Duration::from_secs(60));
    trace.add_host(recorder.take());
    trace
}

#[test]
fn arguments_and_categories_are_in_both_outputs() {
    let trace = labelled();
    assert_eq!(trace.spans[0].category.as_deref(), Some("model"));
    assert_eq!(trace.spans[0].args[0], ("batch".into(), "8".to_owned()));
    assert!(trace.spans[1].category.is_none() && trace.spans[1].args.is_empty());

    let json = chrome(&trace);
    let slices = phase(&json, "X");
    let find = |name| *slices.iter().find(|slice| slice["name"] == name).expect("a slice");
    let (one, plain, load) = (find("one"), find("plain"), find("load"));
    assert_eq!([&one["cat"], &plain["cat"], &load["cat"]], ["gpu,model", "gpu", "host,io"]);
    assert_eq!(one["args"]["batch"], 8);
    assert_eq!(one["args"]["note"], EVIL);
    assert_eq!(one["args"]["code"], "007");
    assert_eq!(one["args"]["begun by"], "me");
    let span = &trace.spans[0];
    let microseconds = |time: Duration| format!("{:.3} µs", time.as_nanos() as f64 / 1e3);
    assert!(span.duration >= Duration::from_millis(3) && span.error != span.duration);
    assert_eq!(one["args"]["placement error"], microseconds(span.error));
    assert_eq!(one["args"]["duration on the device"], microseconds(span.duration));
    assert_eq!(load["args"], serde_json::json!({ "file": 3 }));

    let data = page_data(&trace);
    let slices = data["rows"].as_array().unwrap().iter();
    let slices: Vec<_> = slices.flat_map(|row| row["slices"].as_array().unwrap()).collect();
    let text = |slice: &Value, at: usize| &data["texts"][slice[at].as_u64().unwrap() as usize];
    let find = |name| *slices.iter().find(|slice| *text(slice, 4) == name).expect("a slice");
    assert_eq!(text(find("one"), 6), "model");
    assert!(text(find("one"), 5).as_str().unwrap().starts_with("category: model\nbatch: 8\n"));
    assert_eq!(find("plain")[6], Value::Null);
    assert_eq!(text(find("load"), 5), "category: io\nfile: 3\n");
}

#[test]
fn counters_markers_and_the_first_range_are_in_the_outputs() {
    let recorder = HostRecorder::new();
    recorder.marker("epoch 1");
    for value in [1.0, f64::NAN, 2.5, f64::INFINITY] {
        recorder.counter("in flight", value);
    }
    recorder.counter(EVIL, 1e300);
    let other = || {
        recorder.counter("in flight", -1.0);
        recorder.marker(EVIL);
        drop(recorder.span("load"));
    };
    std::thread::scope(|scope| {
        std::thread::Builder::new().name("other".to_owned()).spawn_scoped(scope, other).unwrap();
    });
    recorder.counter("in flight", 3.0);
    let mut trace = Trace::new();
    trace.add_host(recorder.take());
    assert_eq!(trace.counters.len(), 7);
    let mut merged = Trace::new();
    merged.merge(trace);
    let mut trace = merged;
    assert!(page_data(&trace)["first"].is_null());
    let origin = trace.markers.iter().map(|marker| marker.at).min().unwrap();
    trace.shown_first = Some(origin + Duration::from_micros(1)..origin + Duration::from_micros(3));

    let json = chrome(&trace);
    let rows = rows(&json);
    let markers = phase(&json, "i");
    let name = |marker: &Value| marker["name"].as_str().unwrap().to_owned();
    let names: BTreeSet<_> = markers.iter().map(|marker| name(marker)).collect();
    assert_eq!(names, BTreeSet::from(["epoch 1".to_owned(), EVIL.to_owned()]));
    let evil = markers.iter().find(|marker| marker["name"] == EVIL).unwrap();
    assert_eq!(row_of(&rows, evil), "other");
    // A thread with nothing else has a row, too.
    let epoch = markers.iter().find(|marker| marker["name"] == "epoch 1").unwrap();
    assert_eq!(row_of(&rows, epoch), Thread::current().to_string());
    assert_eq!(evil["s"], "t");
    let counters = phase(&json, "C");
    let values = |name: &str| {
        let counter = counters.iter().filter(|counter| counter["name"] == name);
        counter.map(|counter| counter["args"]["value"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(values("in flight"), [1.0, 2.5, -1.0, 3.0]);
    assert_eq!(values(EVIL), [1e300]);
    // A process of their own: no other row has its number.
    assert!(rows.keys().all(|(process, _)| counters[0]["pid"] != *process));

    let data = page_data(&trace);
    assert_eq!(data["first"], serde_json::json!([1000, 3000]));
    assert_eq!(data["markers"].as_array().unwrap().len(), 2);
    let counters = data["counters"].as_array().unwrap();
    let in_flight = counters.iter().find(|counter| counter["name"] == "in flight").unwrap();
    let values = in_flight["values"].as_array().unwrap().iter();
    let values: Vec<_> = values.map(|pair| pair[1].as_f64().unwrap()).collect();
    assert_eq!(values, [1.0, 2.5, -1.0, 3.0]);
}

fn html(trace: &Trace) -> String {
    let mut out = Vec::new();
    trace.write_html(&mut out).unwrap();
    String::from_utf8(out).expect("it is text")
}

/// The events of one phase.
fn phase<'a>(json: &'a Value, phase: &str) -> Vec<&'a Value> {
    let events = json["traceEvents"].as_array().expect("events");
    events.iter().filter(|event| event["ph"] == phase).collect()
}

/// The category of each arrow and the slices that it joins, in the order of their numbers. Perfetto's
/// trace processor binds an end to the slice that began last in the row, though it may be done.
fn bound(json: &Value) -> Vec<(Value, &Value, &Value)> {
    let mut events: Vec<_> = json["traceEvents"].as_array().expect("events").iter().collect();
    events.sort_by(|one, other| one["ts"].as_f64().partial_cmp(&other["ts"].as_f64()).unwrap());
    let mut last = BTreeMap::new();
    let mut arrows = BTreeMap::new();
    for event in events {
        let row = (event["pid"].to_string(), event["tid"].to_string());
        let end = match event["ph"].as_str().unwrap() {
            "X" | "i" => {
                last.insert(row, event);
                continue;
            }
            "s" => 0,
            "f" => 1,
            _ => continue,
        };
        assert_eq!(last[&row]["ts"], event["ts"], "an arrow's end is not at its slice's start");
        let arrow =
            arrows.entry(event["id"].as_u64()).or_insert((&event["cat"], [&Value::Null; 2]));
        assert_eq!(arrow.0, &event["cat"]);
        arrow.1[end] = last[&row];
    }
    arrows.into_values().map(|(category, [from, to])| (category.clone(), from, to)).collect()
}

/// The name of each row, by process and thread.
fn rows(json: &Value) -> BTreeMap<(u64, u64), String> {
    let named = phase(json, "M").into_iter().filter(|event| event["name"] == "thread_name");
    let id = |event: &Value, name| event[name].as_u64().expect("a number");
    let name = |event: &Value| event["args"]["name"].as_str().expect("a name").to_owned();
    named.map(|event| ((id(event, "pid"), id(event, "tid")), name(event))).collect()
}

fn row_of<'a>(rows: &'a BTreeMap<(u64, u64), String>, event: &Value) -> &'a str {
    &rows[&(event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())]
}

/// Two streams of a device of which one waits for the other, on two threads, with driver calls.
fn joined(device: u32) -> Trace {
    let soft = SoftDriver::builder().devices(2).time(Time::Virtual).build();
    let recorder = HostRecorder::new();
    let driver = recorder.observe(soft.driver()).unwrap();
    let context = Context::primary(Device::new(driver, device).unwrap()).unwrap();
    let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
    let (copies, work) = (stream(), stream());
    let tracer = Tracer::new(&context).unwrap();
    tracer.name_stream(&copies, "copies");
    tracer.name_stream(&work, EVIL);
    {
        let _span = recorder.span(EVIL);
        let outer = tracer.span(&copies, "upload").unwrap();
        tracer
            .time(&copies, "part", || {
                soft.busy(&copies, Duration::from_millis(2));
                Ok::<_, cuda_events::Error>(())
            })
            .unwrap();
        outer.end(&copies).unwrap();
    }
    let event = copies.record_event(EventFlags::empty()).unwrap();
    let (tracer_here, recorder_here, soft_here) = (&tracer, &recorder, &soft);
    std::thread::scope(|scope| {
        let (work, event) = (&work, &event);
        let consume = move || {
            let _span = recorder_here.span("consume");
            work.wait_event(event).unwrap();
            let span = tracer_here.span(work, EVIL).unwrap();
            soft_here.busy(work, Duration::from_millis(1));
            span.end(work).unwrap();
        };
        std::thread::Builder::new()
            .name("consumer".to_owned())
            .spawn_scoped(scope, consume)
            .unwrap();
    });
    soft.advance(Duration::from_millis(10));
    let mut trace = tracer.finish(Duration::from_secs(60));
    assert!(driver.stop_observing());
    trace.add_host(recorder.take());
    trace
}

#[test]
fn chrome_json_has_rows_spans_and_an_arrow() {
    // Calls do not name the device of a stream.
    for device in [0, 1] {
        has_rows_spans_and_an_arrow(device);
    }
}

fn has_rows_spans_and_an_arrow(device: u32) {
    let mut trace = joined(device);
    // On a GPU the outer span and the first within it may begin at the same time.
    let start = |name| trace.spans.iter().position(|span| span.name == name).unwrap();
    let (upload, part) = (start("upload"), start("part"));
    trace.spans[part].start = trace.spans[upload].start;
    let json = chrome(&trace);
    let rows = rows(&json);
    let names: BTreeSet<&str> = rows.values().map(|name| &**name).collect();
    for name in ["copies", EVIL, "consumer"] {
        assert!(names.contains(name), "{names:?}");
    }
    let slices = phase(&json, "X");
    let find = |name: &str, category: &str| {
        let found: Vec<_> = slices
            .iter()
            .filter(|slice| slice["name"] == name && slice["cat"] == category)
            .collect();
        assert_eq!(found.len(), 1, "{name} of {category}");
        *found[0]
    };
    // In whole nanoseconds: the sums of two equal times in `f64` may differ.
    let nanoseconds = |time: &Value| (time.as_f64().unwrap() * 1000.0).round() as u64;
    let time = |slice: &Value| {
        let ts = nanoseconds(&slice["ts"]);
        (ts, ts + nanoseconds(&slice["dur"]))
    };
    let (upload, part, consumed) = (find("upload", "gpu"), find("part", "gpu"), find(EVIL, "gpu"));
    assert_eq!(row_of(&rows, upload), "copies");
    assert_eq!(row_of(&rows, part), "copies");
    assert_eq!(row_of(&rows, consumed), EVIL);
    assert!(time(upload).0 <= time(part).0 && time(part).1 <= time(upload).1);
    assert!(part["args"]["placement error"].as_str().unwrap().ends_with(" µs"));
    assert_eq!(consumed["args"]["begun by"], "consumer");
    // The host's, and the driver's calls within.
    let (consume, wait) = (find("consume", "host"), find("cuStreamWaitEvent", "driver"));
    assert_eq!(row_of(&rows, consume), "consumer");
    assert_eq!(row_of(&rows, wait), "consumer");
    assert!(time(consume).0 <= time(wait).0 && time(wait).1 <= time(consume).1);
    find(EVIL, "host");
    assert!(wait["args"]["call"].as_str().unwrap().starts_with("cuStreamWaitEvent(0x"));
    // The tracer's own records are not the program's.
    find("cuEventRecord", "driver");

    // Each of the three spans was begun within a span of the host.
    let launch = |host, gpu| (Value::from("launch"), host, gpu);
    let expected = [
        (Value::from("wait"), upload, consumed),
        launch(find(EVIL, "host"), part),
        launch(find(EVIL, "host"), upload),
        launch(consume, consumed),
    ];
    assert_eq!(bound(&json), expected);
    assert!(json["otherData"]["missing"].is_null());
}

#[test]
fn without_spans_an_arrow_is_between_the_calls() {
    let gpu = Gpu::new();
    let recorder = HostRecorder::new();
    let driver = recorder.observe(gpu.driver).unwrap();
    let context = Context::primary(Device::new(driver, 0).unwrap()).unwrap();
    let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
    let (one, two) = (stream(), stream());
    let event = one.record_event(EventFlags::empty()).unwrap();
    two.wait_event(&event).unwrap();
    // A wait in the same stream orders nothing.
    one.wait_event(&event).unwrap();
    driver.stop_observing();
    let mut trace = Trace::new();
    trace.add_host(recorder.take());
    two.wait_event(&event).unwrap();
    assert!(recorder.take().calls.is_empty(), "it was told of a call after the end");
    let json = chrome(&trace);
    let slices = phase(&json, "X");
    let first = |name| *slices.iter().find(|slice| slice["name"] == name).unwrap();
    let wait = (Value::from("wait"), first("cuEventRecord"), first("cuStreamWaitEvent"));
    assert_eq!(bound(&json), [wait]);
}

#[test]
fn a_failed_call_is_marked_in_both_outputs() {
    let gpu = Gpu::new();
    let recorder = HostRecorder::new();
    let driver = recorder.observe(gpu.driver).unwrap();
    Device::new(driver, 0).unwrap();
    Device::new(driver, 99).unwrap_err();
    driver.stop_observing();
    let mut trace = Trace::new();
    trace.add_host(recorder.take());
    let json = chrome(&trace);
    let calls = phase(&json, "X").into_iter().filter(|call| call["name"] == "cuDeviceGet");
    assert_eq!(calls.map(|call| &call["cat"]).collect::<Vec<_>>(), ["driver", "driver,failed"]);
    let data = page_data(&trace);
    let slices = data["rows"][0]["slices"].as_array().unwrap().iter();
    let kinds: Vec<_> = slices.map(|slice| slice[3].as_u64().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == 3).count(), 1, "{kinds:?}");
}

/// Spans of one stream that overlap and do not nest cannot stand in one row.
#[test]
fn what_does_not_nest_takes_another_row() {
    let soft = SoftDriver::builder().time(Time::Virtual).build();
    let context = Context::primary(Device::new(soft.driver(), 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let tracer = Tracer::new(&context).unwrap();
    tracer.name_stream(&stream, "row");
    let busy = || {
        soft.busy(&stream, Duration::from_millis(1));
        // Waits, so that virtual time moves.
        stream.synchronize().unwrap();
    };
    // Long enough on the host's axis, too, for each to be told from the others.
    let pause = || std::thread::sleep(Duration::from_millis(2));
    let one = tracer.span(&stream, "one").unwrap();
    busy();
    pause();
    let two = tracer.span(&stream, "two").unwrap();
    busy();
    pause();
    one.end(&stream).unwrap();
    busy();
    pause();
    two.end(&stream).unwrap();
    tracer.span(&stream, "three").unwrap().end(&stream).unwrap();
    let trace = tracer.finish(Duration::from_secs(60));
    let json = chrome(&trace);
    let rows = rows(&json);
    let slices = phase(&json, "X");
    let row = |name| {
        row_of(&rows, slices.iter().find(|slice| slice["name"] == name).expect("the span"))
            .to_owned()
    };
    assert_eq!([row("one"), row("two"), row("three")], ["row", "row (2)", "row"]);
    // The page's statistics are of both rows.
    let data = page_data(&trace);
    assert_eq!([&data["rows"][0]["first"], &data["rows"][1]["first"]], [0, 0]);
}

/// The driver gives the handle of a destroyed stream to a later one, which has another name. Here
/// it is one stream with two names.
#[test]
fn a_handle_with_two_names_has_two_rows() {
    let soft = SoftDriver::new();
    let context = Context::primary(Device::new(soft.driver(), 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let tracer = Tracer::new(&context).unwrap();
    let span = |name| tracer.span(&stream, name).unwrap().end(&stream).unwrap();
    span("before its name");
    tracer.name_stream(&stream, "old");
    span("one");
    tracer.name_stream(&stream, "new");
    span("two");
    tracer.name_stream(&stream, "new");
    span("three");
    let mut trace = tracer.finish(Duration::from_secs(60));
    // Names that come together keep their times, also if the earlier one comes later.
    let mut merged = Trace::default();
    merged.stream_names = trace.stream_names.clone();
    for names in trace.stream_names.values_mut() {
        assert!(names.len() > 1);
        names.remove(0);
    }
    merged.stream_names.values_mut().for_each(|names| names.truncate(1));
    trace.merge(merged);
    let json = chrome(&trace);
    let rows = rows(&json);
    let slices = phase(&json, "X");
    let row = |name: &str| {
        row_of(&rows, slices.iter().find(|slice| slice["name"] == name).expect("the span"))
            .to_owned()
    };
    let expected = ["old", "old", "new", "new"];
    assert_eq!(["before its name", "one", "two", "three"].map(row), expected);
    assert_eq!(rows.values().filter(|name| **name == "old" || **name == "new").count(), 2);
}

#[test]
fn the_page_is_one_file_with_all_in_it() {
    let trace = joined(0);
    let page = html(&trace);
    // Nothing of the names ends the script, and nothing is fetched.
    assert_eq!(page.matches("</script>").count(), 2, "{page}");
    assert!(!page.contains("<!--"));
    assert!(!page.contains("http:") && !page.contains("https:"));
    assert!(!page.contains("src=") && !page.contains("<link"));
    assert!(!page.contains("/*DATA*/") && !page.contains("/*SCRIPT*/"));
    let data = page_data(&trace);
    let rows: Vec<_> = data["rows"].as_array().unwrap().iter().collect();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    for name in ["copies", EVIL, "consumer"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(data["groups"], serde_json::json!(["GPU 0", "Host"]));
    let texts = data["texts"].as_array().unwrap();
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let name = |row: &Value, slice: &Value| {
        texts[number(&rows[number(row)]["slices"][number(slice)][4])].as_str().unwrap()
    };
    let ends = |arrows: &str| -> Vec<_> {
        let arrows = data[arrows].as_array().unwrap().iter();
        arrows.map(|all| (name(&all[0], &all[1]), name(&all[3], &all[4]))).collect()
    };
    assert_eq!(ends("arrows"), [("upload", EVIL)]);
    assert_eq!(ends("launches"), [(EVIL, "part"), (EVIL, "upload"), ("consume", EVIL)]);
    assert!(texts.iter().any(|text| text == EVIL));
    for row in &rows {
        for slice in row["slices"].as_array().unwrap() {
            assert!(slice[0].as_u64().unwrap() <= slice[1].as_u64().unwrap());
            for text in [4, 5] {
                assert!((slice[text].as_u64().unwrap() as usize) < texts.len());
            }
        }
    }
}

#[test]
fn both_outputs_list_what_is_missing() {
    let soft = SoftDriver::new();
    let context = Context::primary(Device::new(soft.driver(), 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let tracer = Tracer::new(&context).unwrap();
    drop(tracer.span(&stream, "dropped").unwrap());
    let mut trace = tracer.finish(Duration::from_secs(60));
    trace.merge(tracer.finish(Duration::from_secs(60)));
    let missing = "not shown: 2 dropped without an end";
    assert_eq!(chrome(&trace)["otherData"]["missing"], missing);
    assert!(html(&trace).contains(missing));
}

/// The times of a trace are its owner's to change. A span that ends before its start has no length.
#[test]
fn a_span_that_ends_too_early_has_no_length() {
    let soft = SoftDriver::new();
    let context = Context::primary(Device::new(soft.driver(), 0).unwrap()).unwrap();
    let stream = Stream::new(&context, StreamOptions::new()).unwrap();
    let tracer = Tracer::new(&context).unwrap();
    tracer.span(&stream, "changed").unwrap().end(&stream).unwrap();
    let mut trace = tracer.finish(Duration::from_secs(60));
    trace.merge({
        tracer.span(&stream, "other").unwrap().end(&stream).unwrap();
        tracer.finish(Duration::from_secs(60))
    });
    let first = trace.spans[0].start;
    trace.spans[1].start = first + Duration::from_millis(2);
    trace.spans[1].end = first + Duration::from_millis(1);
    let json = chrome(&trace);
    let slices = phase(&json, "X");
    let changed = slices.iter().find(|slice| slice["name"] == "other").expect("the span");
    assert_eq!(changed["dur"].as_f64(), Some(0.0));
    assert!(html(&trace).contains("other"));
}

/// Whatever is missing is counted in all of them, and of what can be there once the first stays.
#[test]
fn merged_traces_miss_what_each_misses() {
    let now = std::time::Instant::now();
    let later = |millis| now + Duration::from_millis(millis);
    let trace = |times: usize, error: Error| {
        let mut trace = Trace::new();
        trace.unfinished = times;
        trace.open = 2 * times;
        trace.dropped = 3 * times;
        trace.failed = 4 * times;
        trace.error = Some(error);
        trace.shown_first = Some(now..later(times as u64));
        trace
    };
    let function = Function::cuEventQuery;
    let mut merged = trace(1, Error::EndBeforeStart);
    merged.merge(trace(10, Error::DriverMismatch { function }));
    assert_eq!((merged.unfinished, merged.open, merged.dropped, merged.failed), (11, 22, 33, 44));
    assert_eq!(
        (&merged.error, &merged.shown_first),
        (&Some(Error::EndBeforeStart), &Some(now..later(1)))
    );
    let missing = format!(
        "not shown: 11 not done before the timeout, 22 not ended yet, 33 dropped without an end, \
         44 failed; {}",
        Error::EndBeforeStart
    );
    assert_eq!(chrome(&merged)["otherData"]["missing"], *missing);
    assert_eq!(page_data(&merged)["missing"], *missing);
    let mut empty = Trace::new();
    empty.merge(merged);
    assert_eq!(
        (empty.error, empty.shown_first),
        (Some(Error::EndBeforeStart), Some(now..later(1)))
    );
}

/// An arrow goes from the last span that was ended before the last record that succeeded to the
/// first that was begun after the wait.
#[test]
fn arrows_are_those_of_the_order() {
    let soft = SoftDriver::builder().time(Time::Virtual).build();
    let recorder = HostRecorder::new();
    let driver = recorder.observe(soft.driver()).unwrap();
    let context = Context::primary(Device::new(driver, 0).unwrap()).unwrap();
    let stream = || Stream::new(&context, StreamOptions::new()).unwrap();
    let (from, to) = (stream(), stream());
    let tracer = Tracer::new(&context).unwrap();
    let span = |stream: &Stream, name| tracer.span(stream, name).unwrap().end(stream).unwrap();
    let event = std::sync::Arc::new(Event::new(&context, EventFlags::empty()).unwrap());
    // In a thread that comes later in the trace than the one that waits.
    let in_thread = |work: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    };
    span(&to, "before");
    in_thread(&|| {
        span(&from, "one");
        event.record(&from).unwrap();
        span(&from, "two");
        soft.inject(Fault::on("cuEventRecord").once().answer(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        event.record(&from).unwrap_err();
    });
    to.wait_event(&event).unwrap();
    span(&to, "after one");
    in_thread(&|| {
        span(&from, "three");
        from.record_external(&event).unwrap();
    });
    to.wait_event(&event).unwrap();
    span(&to, "after three");
    // A stream is in order anyway.
    from.wait_event(&event).unwrap();
    span(&from, "four");
    soft.busy(&from, Duration::from_millis(1));
    event.record(&from).unwrap();
    assert!(event.query().unwrap().is_pending());
    recorder.marker("here");
    soft.advance(Duration::from_millis(10));
    let mut trace = tracer.finish(Duration::from_secs(60));
    assert!(driver.stop_observing());
    trace.add_host(recorder.take());
    let json = chrome(&trace);
    let arrows = bound(&json).into_iter().filter(|(category, ..)| category == "wait");
    let arrows: Vec<_> = arrows.map(|(_, from, to)| [&from["name"], &to["name"]]).collect();
    assert_eq!(arrows, [["one", "after one"], ["three", "after three"]]);
    // A marker is in the row of its thread, though devices have rows before it.
    let row = row_of(&rows(&json), phase(&json, "i")[0]).to_owned();
    assert_eq!(row, Thread::current().to_string());
    // That an event is not done is no failure.
    let failed = phase(&json, "X").into_iter().filter(|slice| slice["cat"] == "driver,failed");
    assert_eq!(failed.map(|slice| &slice["name"]).collect::<Vec<_>>(), ["cuEventRecord"]);
}

#[test]
fn an_empty_trace_is_written() {
    let trace = Trace::new();
    assert_eq!(chrome(&trace)["traceEvents"], serde_json::json!([]));
    assert!(html(&trace).contains("\"rows\":[]"));
}
