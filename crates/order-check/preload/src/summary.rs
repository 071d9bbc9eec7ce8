//! The summary that the process writes at its end.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::TryLockError;
use std::time::Duration;

use cuda_order_check_engine::findings::counted;

use crate::call::threads;
use crate::candidates::apply_verdict;
use crate::code::nearby::uncompared;
use crate::code::verdict::judge;
use crate::guard;
use crate::hooks::thunks;
use crate::lock::Guard;
use crate::model::pinned::stop_watching;
use crate::names::is_like_a_hooked_one;
use crate::pinned::faults::Inside;
use crate::report::counts::COUNTED;
use crate::watch::{WATCH, Watch};

/// Reports what was held back until the end, and writes how much was seen, and what was not.
pub fn summary() {
    if guard::off() && guard::error().is_none() {
        return;
    }
    let Some(mut watch) = lock_at_end() else { return };
    let Some(watch) = &mut *watch else { return };
    if std::mem::replace(&mut watch.seen.ended, true) {
        return;
    }
    if let Some(error) = guard::error() {
        let text = format!("order check: off since an error inside the checker: {error}");
        watch.feed.observer_mut().findings.note(&text);
        return;
    }
    let _inside = Inside::new();
    guard::own(|| sum_up(watch));
}

/// Whether the summary waits for the lock.
pub(crate) static WAITS: AtomicBool = AtomicBool::new(false);

pub(crate) fn waits_for_lock() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// The lock, also after an error. A thread that ends the process, or that goes on, may have it.
pub(crate) fn lock_at_end() -> Option<Guard<'static, Option<Watch>>> {
    let lock = || match WATCH.try_lock() {
        Ok(watch) => Some(watch),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            WAITS.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
            None
        }
    };
    let watch = (0..5000).find_map(|_| lock());
    WAITS.store(false, Ordering::Relaxed);
    watch
}

pub(crate) fn sum_up(watch: &mut Watch) {
    watch.submit_waiting();
    let of_host = watch.pinned.lines();
    stop_watching(watch);
    let unlisted = crate::hooks::unlisted();
    for report in watch.take_candidates() {
        let (verdict, waiting) = judge(&report);
        apply_verdict(watch, report, verdict, waiting);
    }
    let (calls, seen) = (watch.seen.calls, watch.seen);
    // The kernels of graphs, too.
    let undescribed = !watch.kernels.by_handle.is_empty() && !watch.questions.describe_kernels();
    watch.release_all();
    let possible = watch.feed.observer().lines_of_possible();
    let errors = watch.feed.observer().findings.errors().to_vec();
    let times = watch.feed.times(&errors);
    let findings = &mut watch.feed.observer_mut().findings;
    findings.again(&times);
    // A program that only looks for a driver has none.
    if calls > 0 {
        findings.summary(&[
            ("kernels", seen.kernels),
            ("copies", seen.copies),
            ("graphs", seen.graphs),
            ("threads", threads()),
        ]);
    }
    possible.iter().for_each(|line| findings.note(&format!("order check: {line}")));
    if undescribed {
        let text = "the driver does not describe the parameters of kernels (CUDA 12.4 does)";
        findings.note(&format!("order check: {text}: their accesses were not seen"));
    }
    of_host.iter().for_each(|line| findings.note(&format!("order check: {line}")));
    for name in unlisted {
        let like = match is_like_a_hooked_one(&name) {
            true => ", though others of its name are modelled",
            false => "",
        };
        findings.note(&format!("order check: not in the list of functions: {name}{like}"));
    }
    for (name, calls) in thunks::called() {
        let text = "not modelled, so each call counts as ordering everything";
        findings.note(&format!("order check: {text}: {name} {}", counted(calls, "times")));
    }
    for (count, things, of_what) in [
        (seen.unknown, "launches", "of graphs"),
        (seen.formats, "batches", "of copies of arrays whose format is unknown"),
        (seen.operations, "batches", "of operations in memory of an unknown kind"),
    ] {
        if count > 0 {
            let text = "not modelled, so each counts as ordering everything";
            let things = counted(count, things);
            findings.note(&format!("order check: {text}: {things} {of_what}"));
        }
    }
    for (count, things, text) in [
        (seen.launchable, "graphs", "that kernels may launch: such launches are not seen"),
        (seen.changeable, "nodes", "of graphs that kernels may change: accesses are not known"),
        (seen.conditional, "nodes", "of graphs with conditions: the work in them is not seen"),
        (
            seen.allocating,
            "nodes",
            "of graphs that allocate memory: kernels with its addresses are not seen",
        ),
        (
            seen.crowded,
            "values",
            "that streams write counted as seen at once, as too many were pending",
        ),
        (
            uncompared(),
            "times",
            "a kernel was not compared with work elsewhere in its allocation, for want of time",
        ),
    ] {
        if count > 0 {
            findings.note(&format!("order check: {} {text}", counted(count, things)));
        }
    }
    let assumed: Vec<String> = watch
        .feed
        .assumed()
        .map(|(what, after, count)| {
            format!(
                "order check: assumed, so an error may be missed: {what}: {after} {}",
                counted(count, "times")
            )
        })
        .collect();
    let findings = &mut watch.feed.observer_mut().findings;
    assumed.iter().for_each(|line| findings.note(line));
    let mut tables = 0;
    if let Some(each) = COUNTED.get() {
        each(&mut |name, calls| {
            tables += if name == "cuGetExportTable" { calls } else { 0 };
        });
    }
    if tables > 0 {
        let (tables, text) = (counted(tables, "tables"), "of functions without names");
        findings.note(&format!("order check: {tables} {text}: calls through them are not seen"));
    }
}

#[cfg(test)]
mod tests {
    use cuda_order_check_engine::{Access, Call, StreamId, ThreadId};

    use super::{Ordering, sum_up, summary};
    use crate::report::counts::tests::{TABLES, counts};
    use crate::report::counts::{Seen, count_by};
    use crate::settings::{Settings, launched};
    use crate::start::start;
    use crate::state::waiting::{Operation, Submitted};
    use crate::walk::locked;
    use crate::watch::Watch;

    /// A line for what there was, and none for what there was not.
    #[test]
    fn a_summary_has_what_was_seen() {
        let _turn = crate::lock::TURN.lock();
        count_by(counts);
        let log = std::env::temp_dir().join(format!("order-check-summary-{}", std::process::id()));
        let settings = Settings::from_text(&format!("log={}", log.display())).expect("it is valid");
        let written = |sums_up: &dyn Fn(&mut Watch)| {
            let _ = std::fs::remove_file(&log);
            start(&|_| core::ptr::null_mut(), &settings);
            locked(|watch| {
                watch.feed.observer_mut().open();
                sums_up(watch);
            });
            std::fs::read_to_string(&log).unwrap_or_default()
        };
        for (calls, count) in [(0, 0), (1, 1)] {
            let text = written(&|watch| {
                watch.seen.calls = calls;
                sum_up(watch);
            });
            assert_eq!(text.matches("order check: 0 findings in").count(), count, "{text}");
        }
        let text = written(&|watch| {
            (watch.seen.calls, watch.seen.kernels, watch.seen.copies, watch.seen.graphs) =
                (1, 2, 3, 4);
            sum_up(watch);
        });
        assert!(text.contains("in 2 kernels, 3 copies, 4 graphs, "), "{text}");
        // What waits for the next call, what was not judged, and what was found again.
        let write = || Access::write(0x1000, 64);
        let call = |number: u64, name| Call::new(name, number, ThreadId(1));
        let text = written(&|watch| {
            watch.seen.calls = 5;
            for (number, stream) in (1..).zip([1, 2, 1]) {
                watch.feed.resume(call(number, "cuMemsetD8Async"));
                watch.feed.work(StreamId(stream), &[write()]);
            }
            watch.feed.resume(call(4, "cuLaunchKernel of k"));
            watch.feed.work(StreamId(3), &[launched(write())]);
            let work = Submitted::Write(vec![write()]);
            let call = call(5, "cuMemcpyDtoDAsync_v2");
            watch.waiting.operations.push(Operation { call, stream: StreamId(4), work });
            sum_up(watch);
        });
        assert!(text.contains("order check: 6 findings in "), "{text}");
        for name in ["(kernel k)", "(cuMemcpyDtoDAsync_v2)"] {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert_eq!(text.matches("order check: 2 times: ").count(), 1, "{text}");
        type Place = fn(&mut Seen) -> &mut u64;
        let places: [(Place, &str); 8] = [
            (|seen| &mut seen.unknown, "2 launches of graphs"),
            (|seen| &mut seen.formats, "2 batches of copies of arrays"),
            (|seen| &mut seen.operations, "2 batches of operations"),
            (|seen| &mut seen.launchable, "2 graphs that kernels may launch"),
            (|seen| &mut seen.changeable, "2 nodes of graphs that kernels may change"),
            (|seen| &mut seen.conditional, "2 nodes of graphs with conditions"),
            (|seen| &mut seen.allocating, "2 nodes of graphs that allocate memory"),
            (|seen| &mut seen.crowded, "2 values that streams write"),
        ];
        // What other tests leave has lines, too: so each of these alone is looked for.
        let lines_in = |text: &str| {
            let found = places.map(|(_, line)| text.contains(line.trim_start_matches("2 ")));
            found.into_iter().filter(|found| *found).count()
        };
        let nothing = written(&sum_up);
        assert_eq!(lines_in(&nothing), 0, "{nothing}");
        for (place, line) in places {
            let text = written(&|watch| {
                *place(&mut watch.seen) = 2;
                sum_up(watch);
            });
            assert_eq!((text.matches(line).count(), lines_in(&text)), (1, 1), "{line}: {text}");
        }
        for tables in [0, 3] {
            TABLES.store(tables, Ordering::Relaxed);
            let text = written(&sum_up);
            let count = usize::from(tables > 0);
            assert_eq!(text.matches("3 tables of functions").count(), count, "{text}");
            assert_eq!(text.matches("tables of functions").count(), count, "{text}");
        }
        // There is one, whoever asks for it.
        let _ = written(&|watch| {
            (watch.seen.calls, watch.seen.unknown) = (1, 2);
        });
        let [once, twice] = [(); 2].map(|()| {
            summary();
            std::fs::read_to_string(&log).expect("it was written")
        });
        assert!(once == twice && once.contains("order check: 0 findings in"), "{once} {twice}");
        std::fs::remove_file(&log).expect("it is there");
    }
}
