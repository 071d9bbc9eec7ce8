//! Findings for programs that read them: JSON, as its schema says, and SARIF.

use std::sync::Arc;

use cuda_order_check_engine::findings::{Certainty, Findings, Sink, Suppression};
use cuda_order_check_engine::{
    Access, Call, Checker, ContextId, EventId, Op, Options, StreamId, StreamKind, ThreadId,
    Warnings,
};
use serde_json::Value;

/// What is wrong about a value. Each word of the schema is known here.
fn check(schema: &Value, all: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fails = |what: &str| Err(format!("{at}: {what}: {value}"));
    for (word, says) in schema.as_object().expect("a schema is an object") {
        let properties = || schema["properties"].as_object().expect("it has properties");
        match (&**word, says) {
            ("$schema" | "title" | "$defs" | "properties", _) => {}
            ("$ref", Value::String(path)) => {
                let path = path.strip_prefix('#').expect("of this file");
                let found = all.pointer(path).unwrap_or_else(|| panic!("no {path}"));
                check(found, all, value, at)?;
            }
            ("oneOf", Value::Array(each)) => {
                let results: Vec<_> = each.iter().map(|it| check(it, all, value, at)).collect();
                if results.iter().filter(|it| it.is_ok()).count() != 1 {
                    return fails(&format!("not one of several: {results:?}"));
                }
            }
            ("type", Value::String(name)) => {
                let is = match &**name {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_u64(),
                    other => panic!("{other} is no type"),
                };
                if !is {
                    return fails(&format!("is no {name}"));
                }
                for (key, part) in value.as_object().into_iter().flatten() {
                    match properties().get(key) {
                        Some(schema) => check(schema, all, part, &format!("{at}/{key}"))?,
                        None if schema["additionalProperties"] == false => {
                            return fails(&format!("{key} is not in the schema"));
                        }
                        None => {}
                    }
                }
            }
            ("additionalProperties", Value::Bool(false)) => {}
            ("required", Value::Array(names)) => {
                for name in names {
                    if value.get(name.as_str().expect("a name")).is_none() {
                        return fails(&format!("{name} is not there"));
                    }
                }
            }
            ("items", schema) => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(schema, all, item, &format!("{at}/{index}"))?;
                }
            }
            ("enum", Value::Array(values)) if values.contains(value) => {}
            ("enum", Value::Array(_)) => return fails("is none of the values"),
            ("const", expected) if expected == value => {}
            ("const", _) => return fails("is another value"),
            (word, _) => panic!("{word} is not known here"),
        }
    }
    Ok(())
}

/// Findings of several kinds, to these files.
fn findings(json: &str, sarif: &str) {
    let mut checker = Checker::new(Options::new().warnings(Warnings::all()));
    let mut number = 0;
    let mut apply = |name: &'static str, line: u32, op: Op<'_>| {
        number += 1;
        let mut call = Call::new(name, number, ThreadId(1));
        let text = format!(
            "Region: step\nPython: zero_, at /x/site-packages/torch/a.py:1\n\
             Python: fill, at /tmp/a \"b\".py:{line}"
        );
        call.backtrace = Some(Arc::new(text));
        checker.apply(call, op);
    };
    let (a, b, event) = (StreamId(0xa), StreamId(0xb), EventId(1));
    for stream in [a, b] {
        let kind = StreamKind::NonBlocking;
        let (context, name) = (ContextId(0), None);
        apply("cuStreamCreate", 1, Op::StreamCreate { stream, context, kind, name });
    }
    apply("name", 2, Op::StreamName { stream: a, name: "up" });
    apply("cuMemAlloc_v2", 3, Op::Allocate { address: 0x1000, bytes: 64 });
    let accesses = &[Access::write(0x1000, 64)];
    let parts = [0x1008, 0x1020].map(|at| Access::write(at, 8));
    for line in [5, 5] {
        apply("cuMemsetD8Async", line, Op::Work { stream: a, accesses });
        apply("cuMemsetD8Async", line + 1, Op::Work { stream: b, accesses: &parts });
    }
    for line in [0, 1] {
        apply("cuMemsetD8Async", 9 + line, Op::Work { stream: a, accesses });
        apply("cuMemsetD16Async", line, Op::Work { stream: b, accesses });
    }
    apply("cuMemFree_v2", 7, Op::Host { accesses: &[Access::free(0x1000, 64)] });
    apply("cuMemsetD8Async", 8, Op::Work { stream: b, accesses });
    apply("cuStreamWaitEvent", 9, Op::Wait { stream: b, event, external: false });
    let sink = Sink::file(json).expect("a new file").json();
    let findings =
        Findings::new(vec![sink], Vec::new()).sarif(sarif, &[("copy", "a copy that writes")]);
    let mut findings = findings.expect("a new file");
    let mut all = checker.take_findings();
    assert!(all.len() >= 4, "{all:#?}");
    let certainty = Some(Certainty { word: "likely", text: "so it is" });
    findings.add_with(all.remove(0), "copy", certainty);
    for finding in all {
        let new = finding.calls().iter().any(|call| call.name == "cuMemsetD16Async");
        findings.add(finding, if new { "" } else { "other" });
    }
    let times: Vec<u64> =
        findings.errors().to_vec().iter().map(|error| checker.times(error)).collect();
    findings.again(&times);
    findings.summary(&[("kernels", 1)]);
}

fn written(name: &str) -> [String; 2] {
    let path = |end: &str| {
        let name = format!("order-check-{name}-{}.{end}", std::process::id());
        std::env::temp_dir().join(name)
    };
    let paths = [path("jsonl"), path("sarif")];
    let [json, sarif] = &paths;
    findings(json.to_str().expect("it is text"), sarif.to_str().expect("it is text"));
    paths.map(|path| {
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(path).expect("it is there");
        text
    })
}

#[test]
fn json_is_as_the_schema_says() {
    let schema: Value = serde_json::from_str(include_str!("../../finding.schema.json")).unwrap();
    let [json, _] = written("schema");
    let mut kinds = Vec::new();
    for line in json.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        check(&schema, &schema, &value, "").unwrap_or_else(|wrong| panic!("{wrong}"));
        kinds.push(value["kind"].as_str().unwrap_or("summary").to_owned());
        if value["severity"] == "error" {
            let word = if value["class"] == "copy" { "likely" } else { "certain" };
            assert_eq!(value["certainty"], word, "{value}");
            // As the text has it.
            assert!(value["text"].as_str().unwrap().contains(&format!(" [{word}]")), "{value}");
        }
        if value["severity"] != "summary" {
            let is_new = |side: &&str| value[side]["call"] == "cuMemsetD16Async";
            let class = match kinds.len() {
                1 => "copy".into(),
                _ if ["first", "second"].iter().any(is_new) => Value::Null,
                _ => "other".into(),
            };
            assert_eq!(value["class"], class, "{value}");
        }
        if value["class"] == "copy" {
            let bytes = serde_json::json!([["0x1008", "0x1010"], ["0x1020", "0x1028"]]);
            assert_eq!((&value["bytes"], &value["allocation"]["offset"]), (&bytes, &8.into()));
            let first = &value["first"];
            assert_eq!(first["place"]["file"], "/tmp/a \"b\".py");
            assert_eq!(
                (&first["place"]["line"], &first["place"]["function"]),
                (&5.into(), &"fill".into())
            );
            assert_eq!(first["region"], "step");
            assert!(
                value["to_mend"].as_str().unwrap().contains("event = up.record_event()"),
                "{value}"
            );
            // The same as a person reads.
            assert!(value["text"].as_str().unwrap().starts_with(value["head"].as_str().unwrap()));
        }
    }
    for kind in ["race", "use_after_free", "never_recorded", "summary"] {
        assert!(kinds.iter().any(|found| found == kind), "{kind}: {kinds:?}");
    }
    // The schema refuses fields that it does not list.
    let mut other: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    other["more"] = 1.into();
    assert!(check(&schema, &schema, &other, "").is_err());
}

/// What version 2.1.0 requires of each object, and what code review tools need besides.
#[test]
fn sarif_has_what_its_version_requires() {
    let [_, sarif] = written("sarif");
    let file: Value = serde_json::from_str(&sarif).unwrap_or_else(|e| panic!("{e}: {sarif}"));
    assert_eq!(file["version"], "2.1.0");
    assert_eq!(file["$schema"], "https://json.schemastore.org/sarif-2.1.0.json");
    let [run] = &file["runs"].as_array().unwrap()[..] else { panic!("{sarif}") };
    assert_eq!(run["tool"]["driver"]["name"], "cuda-order-check");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let about = |rule: &Value| rule["shortDescription"]["text"].as_str().map(str::len);
    let ids: Vec<_> = rules.iter().map(|rule| (&rule["id"], about(rule) > Some(0))).collect();
    let names = ["copy", "missing-order", "warning"].map(Value::from);
    assert_eq!(ids, names.each_ref().map(|name| (name, true)));
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 4, "{sarif}");
    for result in results {
        assert!(!result["message"]["text"].as_str().unwrap().is_empty(), "{result}");
        assert!(result["ruleId"].is_string(), "{result}");
        assert!(["error", "warning"].contains(&result["level"].as_str().unwrap()), "{result}");
        let all = [&result["locations"], &result["relatedLocations"]];
        for location in all.into_iter().filter_map(Value::as_array).flatten() {
            let physical = &location["physicalLocation"];
            assert_eq!(physical["artifactLocation"]["uri"], "file:///tmp/a%20%22b%22.py");
            assert!(physical["region"]["startLine"].as_u64().unwrap() >= 1, "{result}");
            assert!(location["message"]["text"].is_string(), "{result}");
        }
    }
    let first = &results[0];
    let line = |list: &str| first[list][0]["physicalLocation"]["region"]["startLine"].as_u64();
    assert_eq!([line("locations"), line("relatedLocations")], [Some(6), Some(5)]);
    assert_eq!((&first["ruleId"], &first["level"]), (&"copy".into(), &"error".into()));
    let own: Vec<_> = results.iter().filter(|it| it["ruleId"] == "missing-order").collect();
    let line = |it: &Value| it["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64();
    assert!(own.len() >= 2 && own.iter().all(|it| line(it).is_some()), "{sarif}");
    assert!(own.iter().any(|it| line(it) == Some(1)), "{sarif}");
    assert!(first["occurrenceCount"].as_u64().unwrap() > 1, "{first}");
    let text = first["message"]["text"].as_str().unwrap();
    assert!(text.starts_with("missing order: ") && text.contains("To mend: after "), "{text}");
}

/// The summary is written once, in each form, whatever was found.
#[test]
fn the_summary_has_the_counts() {
    let mut checker = Checker::new(Options::new().warnings(Warnings::all()));
    let access = &[Access::write(0x1000, 64)];
    checker.apply(
        Call::new("one", 1, ThreadId(1)),
        Op::Work { stream: StreamId(1), accesses: access },
    );
    checker.apply(Call::new("two", 2, ThreadId(1)), Op::Host { accesses: access });
    let wait = Op::Wait { stream: StreamId(2), event: EventId(1), external: false };
    checker.apply(Call::new("wait", 3, ThreadId(1)), wait);
    let [report, warning] = &checker.take_findings()[..] else { panic!("one of each") };
    let path = std::env::temp_dir().join(format!("order-check-counts-{}", std::process::id()));
    let path = path.to_str().expect("it is text");
    let many =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    for at in 0..54 {
        let ([errors, warnings, suppressed], all) = ([at % 3, at / 3 % 3, at / 9 % 3], at < 27);
        for json in [false, true] {
            let sink = Sink::file(path).expect("a file");
            let patterns = ["class:none", "class:n*", "kernel:other"];
            let patterns = patterns.map(|text| Suppression::from_text(text).expect("it is one"));
            let sinks = vec![if json { sink.json() } else { sink }];
            let mut findings = Findings::new(sinks, patterns.to_vec());
            for (count, finding, class) in
                [(errors, report, ""), (warnings, warning, ""), (suppressed, report, "none")]
            {
                (0..count).for_each(|_| _ = findings.add(finding.clone(), class));
            }
            let seen: &[_] = if all { &[("kernels", 7), ("copies", 1)] } else { &[] };
            findings.summary(seen);
            findings.summary(seen);
            let text = std::fs::read_to_string(path).expect("it was written");
            std::fs::remove_file(path).expect("it is there");
            let found: Vec<_> = text
                .lines()
                .filter(|line| {
                    line.contains("suppressed\":") && line.contains("summary")
                        || line.starts_with("order check")
                })
                .collect();
            let some =
                if suppressed > 0 { format!(", {suppressed} suppressed") } else { String::new() };
            let expected = match (json, all) {
                (true, _) => format!(
                    r#"{{"severity":"summary","errors":{errors},"warnings":{warnings},"suppressed":{suppressed}{}}}"#,
                    if all { r#","kernels":7,"copies":1"# } else { "" }
                ),
                (false, true) => format!(
                    "order check: {}{some}{} in 7 kernels, 1 copy",
                    many(errors + warnings, "finding"),
                    if suppressed > 0 { "," } else { "" }
                ),
                (false, false) => format!(
                    "order checker: {}, {}{some}",
                    many(errors, "error"),
                    many(warnings, "warning")
                ),
            };
            let unused = match suppressed {
                0 => "order check: suppressed nothing: class:none, class:n*, kernel:other",
                _ => "order check: suppressed nothing: kernel:other",
            };
            let is_silent = !all && errors + warnings + suppressed == 0;
            let unused = (!json && !is_silent).then_some(unused);
            assert_eq!(found, [&*expected].into_iter().chain(unused).collect::<Vec<_>>());
        }
    }
}
