//! Processes that are killed at each of their calls, exporters and importers of timelines: see
//! `tests/common/victims.rs`.

use crate::common;

use common::child::{from_hex, to_hex};
use common::futures::block_on;
use common::handover::Handover;
use common::timelines::{PATIENCE, idle, reached};
use common::victims::{Victim, at_every_call, at_least, be_a_victim, report, stream_of};
use common::{Gpu, Latch};
use cuda_events::{Context, Driver, Progress};
use cuda_timelines::{
    CudaStreamExt, Error, ImportedTimeline, Point, Result, Timeline, TimelineDescriptor,
    TimelineFile, TimelineMemory,
};

/// Not a test: the process that is killed.
#[test]
#[ignore = "the other process, which the tests start: cargo test -p cuda-timelines --test processes"]
fn victim() {
    be_a_victim(|side, kind, driver, handover| match side {
        "exporter" => exporter_of_timelines(driver, kind, handover),
        "importer" => importer_of_timelines(driver, kind, handover),
        _ => panic!("{side:?} is no side"),
    });
}

fn exporter_of_timelines(driver: Driver, kind: &str, handover: &Handover) -> Result<()> {
    let (context, stream) = stream_of(driver)?;
    let (mut file, mut memory) = (None, None);
    let timeline = match kind {
        "handle" => {
            let memory = memory.insert(TimelineMemory::new(&context)?);
            Timeline::in_memory(stream, memory)?
        }
        _ => {
            let made = match kind {
                "writable" => TimelineFile::writable(&context)?,
                _ => TimelineFile::new(&context)?,
            };
            let timeline = Timeline::shared(stream, &made)?;
            handover.give(&made);
            file = Some(made);
            timeline
        }
    };
    report(&format!("made {}", name(&timeline)));
    let point = timeline.signal()?;
    point.wait()?;
    report(&format!("reached {}", point.value()));
    let latch = Latch::hold(timeline.stream());
    report(&format!("pending {}", timeline.signal()?.value()));
    latch.release();
    timeline.stream().synchronize()?;
    report("done");
    timeline.signal()?;
    drop(timeline);
    drop((file, memory));
    Ok(())
}

/// What another process opens a timeline by.
fn name(timeline: &Timeline) -> String {
    to_hex(&timeline.descriptor().expect("it is shared").to_bytes())
}

fn importer_of_timelines(driver: Driver, kind: &str, handover: &Handover) -> Result<()> {
    let (context, stream) = stream_of(driver)?;
    let reply = report("ready");
    let (name, first) = reply.split_once(' ').expect("a name and a value");
    let import = open(&context, kind, name, handover)?;
    import.point(first.parse().expect("a value"))?.wait()?;
    let value = report("opened").parse().expect("a value");
    let pending = import.point(value)?;
    assert_eq!(pending.query(), Ok(Progress::Pending));
    stream.wait_point(pending)?;
    report("waiting");
    stream.synchronize()?;
    block_on(async { pending.await })?;
    drop(import);
    Ok(stream.close()?)
}

fn open(
    context: &Context,
    kind: &str,
    name: &str,
    handover: &Handover,
) -> Result<ImportedTimeline> {
    let descriptor = TimelineDescriptor::from_bytes(&from_hex(name))?;
    if kind == "handle" {
        // SAFETY: the other process keeps the memory, or is killed.
        return unsafe { ImportedTimeline::open_memory(context, &descriptor) };
    }
    ImportedTimeline::open(context, handover.take(), &descriptor)
}

fn an_exporter_of_timelines(gpu: &Gpu, victim: &mut Victim, kind: &str) -> bool {
    let (stream, never_done) = (gpu.stream(), gpu.stream());
    let (mut import, mut reached_one, mut pending, mut never) = (None, None, None, None);
    let mut ended = false;
    while let Some((word, rest)) = victim.next_line() {
        let point = || -> Point {
            let import: &ImportedTimeline = import.as_ref().expect("it was made first");
            import.point(rest.parse().expect("a value")).expect("a point")
        };
        match word.as_str() {
            "made" => {
                let made = open(&gpu.context, kind, &rest, &victim.handover);
                import = Some(made.expect("it opens"));
            }
            "reached" => {
                let point = point();
                reached(point);
                reached_one = Some(point);
            }
            "pending" => {
                let point = point();
                assert_eq!(point.query(), Ok(Progress::Pending));
                stream.wait_point(point).expect("a wait");
                pending = Some(point);
            }
            "done" => reached(pending.expect("it was pending first")),
            _ => {
                ended = true;
                break;
            }
        }
        // A point of a handle is reached no sooner than those that were asked for before.
        if word == if kind == "handle" { "done" } else { "made" } {
            let import = import.as_ref().expect("it was made first");
            let point = import.point(1 << 40).expect("a point");
            never_done.wait_point(point).expect("a wait");
            never = Some(point);
        }
        victim.child.send("go");
    }
    let over = |result: &Result<Progress>| {
        matches!(result, Err(Error::ExporterGone)) || matches!(result, Err(Error::Poisoned))
    };
    if let Some(never) = never {
        let result = never.wait_timeout(PATIENCE);
        assert!(over(&result), "{result:?}");
        let result = never.query();
        assert!(over(&result), "{result:?}");
    }
    if let Some(pending) = pending {
        let result = pending.wait_timeout(PATIENCE);
        assert!(result == Ok(Progress::Done) || over(&result), "{result:?}");
        let again = gpu.stream().wait_point(pending).map(|()| Progress::Done);
        assert!(again == Ok(Progress::Done) || over(&again), "{again:?}");
        assert!(again.is_ok() || result.is_err(), "what was reached stays reached: {again:?}");
    }
    if let Some(point) = reached_one {
        assert_eq!(point.query(), Ok(Progress::Done));
    }
    idle(&stream);
    idle(&never_done);
    ended
}

fn an_importer_of_timelines(gpu: &Gpu, victim: &mut Victim, kind: &str) -> bool {
    let (mut file, mut memory) = (None, None);
    let timeline = match kind {
        "handle" => {
            let memory = memory.insert(TimelineMemory::new(&gpu.context).expect("memory"));
            Timeline::in_memory(gpu.stream(), memory)
        }
        "writable" => {
            let file = file.insert(TimelineFile::writable(&gpu.context).expect("a file"));
            Timeline::shared(gpu.stream(), file)
        }
        _ => {
            let file = file.insert(TimelineFile::new(&gpu.context).expect("a file"));
            Timeline::shared(gpu.stream(), file)
        }
    };
    let timeline = timeline.expect("a timeline");
    let other = gpu.stream();
    let first = timeline.signal().expect("a signal");
    reached(first);
    let (mut latch, mut ended) = (None, false);
    while let Some((word, _)) = victim.next_line() {
        let mut reply = "go".to_owned();
        match word.as_str() {
            "ready" => {
                if let Some(file) = &file {
                    victim.handover.give_to(&mut victim.child, file);
                }
                reply = format!("{} {}", name(&timeline), first.value());
            }
            "opened" => {
                latch = Some(Latch::hold(timeline.stream()));
                reply = timeline.signal().expect("a signal").value().to_string();
            }
            "waiting" => latch.take().expect("a latch").release(),
            _ => {
                ended = true;
                break;
            }
        }
        victim.child.send(&reply);
    }
    drop(latch);
    let point = timeline.signal().expect("a signal");
    other.wait_point(point).expect("a wait");
    idle(&other);
    reached(point);
    assert_eq!(timeline.completed(), point.value());
    ended
}

/// One byte of the victim's word is written when it has ended, without an order to copies of the
/// word that are over: whatever they get is only compared. The order checker would report that.
#[test]
fn an_exporter_of_timelines_is_killed() {
    common::own_process!("order=off");
    for (kind, least) in [("writable", 20), ("sealed", 20), ("handle", 45)] {
        let calls = at_every_call("exporter", kind, an_exporter_of_timelines);
        at_least(least, "exporter", kind, calls);
    }
}

#[test]
fn an_importer_of_timelines_is_killed() {
    for (kind, least) in [("writable", 24), ("sealed", 24), ("handle", 55)] {
        let calls = at_every_call("importer", kind, an_importer_of_timelines);
        at_least(least, "importer", kind, calls);
    }
}
