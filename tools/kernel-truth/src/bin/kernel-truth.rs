//! Judges logs: what kernels did against what is said of them now.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cuda_kernel_access::code::Launch;
use kernel_truth::judge::{Known, Verdict, range, reads, writes};
use kernel_truth::record::Read;
use kernel_truth::set::Set;

const USAGE: &str = "usage: kernel-truth [--kernels] FOLDER...

Each FOLDER has the logs of one program (see README.md). Prints a table with a row for each, and each
kernel of which something is wrong; --kernels prints a line for each kernel.

exit codes: 0 nothing is wrong; 1 something is; 2 wrong arguments";

/// What was counted.
#[derive(Clone, Default)]
struct Counts {
    kernels: BTreeSet<String>,
    unknown: BTreeSet<String>,
    launches: u64,
    /// Launches with an answer, and of these those of which all writes, or reads, have an end.
    judged: u64,
    written: u64,
    read: u64,
    changed: u64,
    outside: u64,
    sure: u64,
    sure_outside: u64,
    sure_not_may: u64,
    filled: u64,
    kept: u64,
    compared: u64,
    varied: u64,
    lost: u64,
    spans: u64,
    open: u64,
    spans_outside: u64,
    spans_wide: u64,
    rows: u64,
    wrong_class: u64,
    failed: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.kernels.extend(other.kernels.iter().cloned());
        self.unknown.extend(other.unknown.iter().cloned());
        for (own, other) in self.numbers().into_iter().zip(other.clone().numbers()) {
            *own += *other;
        }
    }

    fn numbers(&mut self) -> [&mut u64; 21] {
        [
            &mut self.launches,
            &mut self.judged,
            &mut self.written,
            &mut self.read,
            &mut self.changed,
            &mut self.outside,
            &mut self.sure,
            &mut self.sure_outside,
            &mut self.sure_not_may,
            &mut self.filled,
            &mut self.kept,
            &mut self.compared,
            &mut self.varied,
            &mut self.lost,
            &mut self.spans,
            &mut self.open,
            &mut self.spans_outside,
            &mut self.spans_wide,
            &mut self.rows,
            &mut self.wrong_class,
            &mut self.failed,
        ]
    }
}

/// All that is wrong, and all that is only counted.
#[derive(Default)]
struct Report {
    findings: Vec<String>,
    reasons: BTreeMap<String, BTreeSet<String>>,
    skipped: BTreeMap<String, u64>,
    times: [Vec<Duration>; 3],
    kernels: BTreeMap<String, String>,
}

fn main() -> ExitCode {
    let mut folders = Vec::new();
    let mut each = false;
    for argument in std::env::args_os().skip(1) {
        match argument.to_str() {
            Some("--kernels") => each = true,
            Some(text) if text.starts_with('-') => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
            _ => folders.push(PathBuf::from(argument)),
        }
    }
    if folders.is_empty() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mut report = Report::default();
    let mut sum = Counts::default();
    println!(
        "{:18} {:>7} {:>7} {:>8} {:>6} {:>6} {:>6} {:>11} {:>7} | {:>6} {:>6} {:>6} {:>6} {:>5} | {:>6} {:>5} {:>4} | {:>5} {:>5} {:>6} {:>6} {:>5} | {:>5} {:>6}",
        "program",
        "kernels",
        "unknown",
        "launches",
        "judged",
        "w.end",
        "r.end",
        "changed",
        "outside",
        "sure",
        "s.out",
        "s.!may",
        "filled",
        "kept",
        "unread",
        "vary",
        "lost",
        "spans",
        "open",
        "wide",
        "rows",
        "s.out",
        "class",
        "failed"
    );
    for folder in &folders {
        let counts = folder_counts(folder, &mut report);
        row(&folder.file_name().unwrap_or_default().to_string_lossy(), &counts);
        sum.add(&counts);
    }
    row("all", &sum);
    println!("\nunknown kernels by reason:");
    for (reason, kernels) in &report.reasons {
        println!("  {:4} {reason}", kernels.len());
    }
    println!("launches that were not repeated, by reason (at least):");
    for (reason, count) in &report.skipped {
        println!("  {count:6} {reason}");
    }
    for (what, times) in ["summary", "may", "surely"].into_iter().zip(&mut report.times) {
        times.sort_unstable();
        let at = |part: usize| times.get(times.len() * part / 1000).copied().unwrap_or_default();
        println!(
            "{what}: median {:?}, nine of ten {:?}, 99 of 100 {:?}, at most {:?}",
            at(500),
            at(900),
            at(990),
            times.last().copied().unwrap_or_default()
        );
    }
    if each {
        for (name, line) in &report.kernels {
            println!("{name}\t{line}");
        }
    }
    report.findings.sort();
    report.findings.dedup();
    println!("{} findings", report.findings.len());
    for finding in &report.findings {
        println!("  {finding}");
    }
    ExitCode::from(u8::from(!report.findings.is_empty()))
}

fn row(name: &str, counts: &Counts) {
    println!(
        "{name:18} {:7} {:7} {:8} {:6} {:6} {:6} {:11} {:7} | {:6} {:6} {:6} {:6} {:5} | {:6} {:5} {:4} | {:5} {:5} {:6} {:6} {:5} | {:5} {:6}",
        counts.kernels.len(),
        counts.unknown.len(),
        counts.launches,
        counts.judged,
        counts.written,
        counts.read,
        counts.changed,
        counts.outside,
        counts.sure,
        counts.sure_outside,
        counts.sure_not_may,
        counts.filled,
        counts.kept,
        counts.compared,
        counts.varied,
        counts.lost,
        counts.spans,
        counts.open,
        counts.spans_wide,
        counts.rows,
        counts.spans_outside,
        counts.wrong_class,
        counts.failed
    );
}

fn folder_counts(folder: &Path, report: &mut Report) -> Counts {
    let mut counts = Counts::default();
    let Ok(files) = std::fs::read_dir(folder) else { return counts };
    let mut logs: Vec<PathBuf> = files
        .filter_map(|file| file.ok().map(|file| file.path()))
        .filter(|path| path.extension().is_some_and(|kind| kind == "log"))
        .collect();
    logs.sort();
    for log in logs {
        let Ok(text) = std::fs::read_to_string(&log) else { continue };
        judge(&log, &text, &mut counts, report);
    }
    counts
}

fn judge(log: &Path, text: &str, counts: &mut Counts, report: &mut Report) {
    let process = log.file_stem().unwrap_or_default().to_string_lossy();
    let mut kernels: HashMap<u64, (String, Option<Known>)> = HashMap::new();
    let mut skipped: BTreeMap<String, u64> = BTreeMap::new();
    let mut open_step = None;
    for line in text.lines().map(Read::new) {
        let number = line.number("kernel");
        match line.kind {
            "kernel" => {
                let name = line.text("name").to_owned();
                counts.kernels.insert(name.clone());
                let cubin = log.with_file_name(format!("{process}.{number}.cubin"));
                let known = std::fs::read(cubin).ok().and_then(|bytes| Known::only(&bytes, &name));
                if line.number("others") > 0 {
                    report.findings.push(format!("{name}: not the only one of its name"));
                }
                if let Some(known) = &known {
                    report.times[0].push(known.took);
                    if let Some(reason) = known.reason() {
                        counts.unknown.insert(name.clone());
                        report.reasons.entry(reason).or_default().insert(name.clone());
                    }
                }
                kernels.insert(number, (name, known));
            }
            "skipped" => {
                skipped.insert(line.text("why").into(), line.number("count"));
            }
            "failed" => {
                counts.failed += 1;
                let name = kernels.get(&number).map_or("", |one| &one.0);
                report.findings.push(format!("{name}: {}", line.text("why")));
                open_step = None;
            }
            "step" => open_step = Some((number, line.text("what"))),
            "launch" => {
                open_step = None;
                counts.launches += 1;
                if let Some((name, Some(known))) = kernels.get(&number) {
                    judge_launch(name, known, &line, counts, report);
                }
            }
            _ => {}
        }
    }
    if let Some((number, what)) = open_step {
        counts.failed += 1;
        let name = kernels.get(&number).map_or("", |one| &one.0);
        report.findings.push(format!("{name}: the process ended in step '{what}'"));
    }
    for (why, count) in skipped {
        *report.skipped.entry(why).or_default() += count;
    }
}

fn judge_launch(
    name: &str,
    known: &Known,
    line: &Read<'_>,
    counts: &mut Counts,
    report: &mut Report,
) {
    let mut find = |text: String| report.findings.push(format!("{name}: {text}"));
    counts.changed += line.number("bytes");
    let Ok(code) = &known.code else { return };
    let parameters = line.bytes("parameters");
    let launch = Launch::new(line.sizes("grid"), line.sizes("block"), parameters.as_slice());
    let verdict = match Verdict::new(code, &launch) {
        Ok(verdict) => verdict,
        Err(reason) => {
            counts.unknown.insert(name.into());
            report.reasons.entry(reason.to_string()).or_default().insert(name.into());
            return;
        }
    };
    let allocations: Set = line.ranges("allocations").into_iter().collect();
    let each_allocation = line.ranges("allocations");
    let wrote: Set = line.ranges("wrote").into_iter().collect();
    counts.judged += 1;
    report.times[1].push(verdict.may_took);
    report.times[2].push(verdict.sure_took);
    counts.written += u64::from(verdict.may_write.is_some());
    counts.read += u64::from(verdict.may_read.is_some());
    if let Some(may_write) = &verdict.may_write {
        let outside = wrote.without(may_write);
        let bytes = outside.bytes().max(match line.number("count") > 1000 {
            // Not all are in the log.
            true => line.number("outside-bytes"),
            false => 0,
        });
        counts.outside += bytes;
        if bytes > 0 {
            let first = outside.ranges().first();
            find(format!("{bytes} bytes changed outside, from {first:x?}"));
        }
        let between = verdict.between_rows(wrote.ranges());
        counts.outside += between;
        if between > 0 {
            find(format!("{between} bytes changed between rows"));
        }
    }
    counts.rows += verdict.spans.iter().filter(|span| !span.rows.is_empty()).count() as u64;
    for touch in &verdict.sure {
        counts.sure += 1;
        let own = range(touch);
        if !allocations.contains(&own) {
            counts.sure_outside += 1;
            find(format!("sure {:?} outside of memory at {:#x}", touch.kind, touch.at));
        }
        let spans = verdict.spans.iter().filter(|span| span.at == touch.at);
        let fits = spans.map(|span| {
            span.bytes.as_ref().is_none_or(|may| may.start <= own.start && own.end <= may.end)
        });
        if !fits.into_iter().any(|fits| fits) {
            counts.sure_not_may += 1;
            find(format!("sure but not possible at {:#x}", touch.at));
        }
    }
    counts.filled += line.number("filled");
    counts.kept += line.number("kept-bytes");
    if line.number("kept-bytes") > 0 {
        let first = line.text("kept").split(',').next().unwrap_or_default();
        find(format!("{} sure bytes not written, from {first}", line.number("kept-bytes")));
    }
    if line.number("varies") > 0 {
        counts.varied += 1;
    } else if line.number("unread") > 0 {
        counts.compared += 1;
        counts.lost += u64::from(line.number("lost-bytes") > 0);
        if line.number("lost-bytes") > 0 {
            let first = line.text("lost").split(',').next().unwrap_or_default();
            find(format!(
                "{} bytes depend on bytes not read, from {first}",
                line.number("lost-bytes")
            ));
        }
    }
    for span in &verdict.spans {
        counts.spans += 1;
        let Some(bytes) = &span.bytes else {
            counts.open += 1;
            continue;
        };
        if allocations.contains(bytes)
            && each_allocation.iter().any(|one| one.start <= bytes.start && bytes.end <= one.end)
        {
            continue;
        }
        match allocations.missing(bytes).as_slice() {
            [all] if all == bytes => counts.spans_outside += 1,
            _ => counts.spans_wide += 1,
        }
    }
    // Each allocation that changed belongs to a word that may be written through.
    if let Ok(summary) = &known.summary {
        let other = summary.memory.written || summary.memory.atomic || summary.memory.other;
        for allocation in &each_allocation {
            let own: Set = std::iter::once(allocation.clone()).collect();
            if wrote.and(&own).bytes() == 0 || other {
                continue;
            }
            let may = summary.words.iter().any(|word| {
                let uses = word.uses;
                let at = word.offset as usize;
                let value = parameters.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                let value = value.map_or(0, u64::from_le_bytes);
                (uses.written || uses.atomic || uses.other)
                    && (value >= allocation.start && value <= allocation.end || uses.other)
            });
            if !may {
                counts.wrong_class += 1;
                find(format!("changed {allocation:x?}, and no word is said to be written"));
            }
        }
    }
    let kind = |asked: fn(_) -> bool| {
        let spans: Vec<_> = verdict.spans.iter().filter(|span| asked(span.kind)).collect();
        let open = spans.iter().filter(|span| span.bytes.is_none()).count();
        format!("{} ({open} open)", spans.len())
    };
    report.kernels.entry(name.into()).or_insert_with(|| {
        format!("writes {}\treads {}\tsure {}", kind(writes), kind(reads), verdict.sure.len())
    });
}
