//! Tables of what was measured, with the targets beside it.

use core::fmt::Write;

use serde_json::Value;

/// Everything in the rows, run by run.
pub fn report(rows: &[Value], markdown: bool) -> String {
    let mut out = String::new();
    for driver in drivers(rows) {
        let run = Run::new(rows, driver);
        let heading = match driver {
            "native" => "On a GPU",
            "null" => "On the null driver",
            "soft" => "On the software driver",
            _ => "Building",
        };
        let _ =
            if markdown { writeln!(out, "### {heading}\n") } else { writeln!(out, "{heading}\n") };
        for about in run.about() {
            let _ = writeln!(out, "{}\n", if markdown { wrapped(&about) } else { about });
        }
        for (heading, note, table) in run.tables() {
            let _ = if markdown {
                writeln!(out, "#### {heading}\n")
            } else {
                writeln!(out, "-- {heading} --\n")
            };
            if !note.is_empty() {
                let _ = writeln!(out, "{}\n", if markdown { wrapped(&note) } else { note });
            }
            let _ = writeln!(out, "{}", table.render(markdown));
        }
    }
    out
}

/// What a run's figures were measured on, as far as it says.
fn about(run: &Value) -> String {
    let text = |key: &str| run[key].as_str().unwrap_or("").to_owned();
    let with = |before: &str, key: &str, after: &str| match text(key) {
        text if text.is_empty() => String::new(),
        text => format!("{before}{text}{after}"),
    };
    format!(
        "{}{}{}{}{}, {} cores{}{}{}. Command: `{}`.",
        with("", "date", "; "),
        with("", "device", ", "),
        with("CUDA ", "cuda", ""),
        with(" (driver ", "driver_version", ")") + if text("cuda").is_empty() { "" } else { "; " },
        text("cpu"),
        run["cores"],
        with(", load ", "load", ""),
        with("; ", "rustc", ""),
        with("; ", "cc", ""),
        text("command"),
    )
}

/// A paragraph in lines of at most 100 columns.
fn wrapped(paragraph: &str) -> String {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let fits = lines.last().is_none_or(|line| {
            line.is_empty() || line.chars().count() + 1 + word.chars().count() <= 100
        });
        if !fits {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// The drivers that there are figures of, the GPU's first.
pub fn drivers(rows: &[Value]) -> Vec<&str> {
    let known = ["native", "null", "soft", "none"];
    let mut drivers: Vec<&str> =
        known.into_iter().filter(|known| rows.iter().any(|row| row["driver"] == *known)).collect();
    for driver in rows.iter().filter_map(|row| row["driver"].as_str()) {
        if !drivers.contains(&driver) {
            drivers.push(driver);
        }
    }
    drivers
}

/// A kind of figures that two runs on this driver measured. Runs may be joined if each measured
/// other parts.
pub fn measured_twice<'a>(rows: &'a [Value], driver: &str) -> Option<&'a str> {
    let (mut run, mut measured) = (0, Vec::new());
    for row in rows.iter().filter(|row| row["driver"] == driver) {
        let kind = row["kind"].as_str().unwrap_or_default();
        if kind == "run" {
            run += 1;
        } else if measured.iter().any(|(known, of)| *known == kind && *of != run) {
            return Some(kind);
        } else {
            measured.push((kind, run));
        }
    }
    None
}

/// The rows of one driver.
pub struct Run<'a> {
    driver: &'a str,
    rows: Vec<&'a Value>,
}

impl<'a> Run<'a> {
    pub fn new(rows: &'a [Value], driver: &'a str) -> Self {
        Self { driver, rows: rows.iter().filter(|row| row["driver"] == driver).collect() }
    }

    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.rows.iter().copied().filter(move |row| row["kind"] == kind)
    }

    pub fn find(&self, kind: &str, operation: &str, implementation: &str) -> Option<&'a Value> {
        self.of_kind(kind)
            .find(|row| row["operation"] == operation && row["implementation"] == implementation)
    }

    /// The operations in the order that they were measured in.
    pub fn operations(&self) -> Vec<&'a str> {
        let mut operations: Vec<&str> = Vec::new();
        for operation in self.of_kind("time").filter_map(|row| row["operation"].as_str()) {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
        operations
    }

    fn median(&self, operation: &str, implementation: &str, what: &str) -> Option<f64> {
        self.find("time", operation, implementation)?[what]["median"].as_f64()
    }

    /// What a call takes, as a multiple of the C loop's; peers from other processes have only their
    /// own time.
    pub fn ratio(&self, operation: &str, implementation: &str) -> Option<f64> {
        self.median(operation, implementation, "ratio").or_else(|| {
            Some(
                self.median(operation, implementation, "ns")?
                    / self.median(operation, "c", "ns")?,
            )
        })
    }

    fn tables(&self) -> Vec<(&'static str, String, Table)> {
        let mut tables = Vec::new();
        if !self.operations().is_empty() {
            let note = "Medians in ns per call, with the 10th and 90th percentile over the rounds \
                        in brackets. A ratio compares two times of one round; it is relative to \
                        the C loop if the column names nothing else. In the rows of crossbeam's \
                        queues, `safe` is the pool with that queue.";
            tables.push(("Times", note.to_owned(), self.times()));
        }
        if let Some(row) = self.of_kind("instructions").next() {
            let compilers = row["compilers"]
                .as_str()
                .map_or_else(String::new, |name| format!(" Compiled by {name}."));
            let note = format!(
                "Instructions of one call (callgrind), the driver's function included; `over` is \
                 the number above that of the C loop.{compilers} Another compiler gives other \
                 counts. `shared writes`: instructions that lock a cache line or write a static, \
                 in this crate."
            );
            tables.push(("Instructions", note, self.instructions()));
        }
        if let Some(row) = self.of_kind("threads").next() {
            let (figure, _) = self.thread_figures();
            let time = if figure == "cpu_ns" { "processor time" } else { "wall-clock time" };
            let window = match row["rounds"].as_u64() {
                Some(_) => {
                    " All threads make the calls at the same time, each on its own core; `c again` \
                     is the C loop, measured a second time."
                }
                None => "",
            };
            let note = format!(
                "Each thread has its own event and stream; all threads share one pool. The figures \
                 are the {time} per call of a thread in ns: the median, and the 10th to 90th \
                 percentile over the rounds.{window}"
            );
            tables.push(("Threads", note, self.threads()));
        }
        if self.of_kind("timeline").next().is_some() {
            let note = "Medians for points of timelines, for events, and for the C loop over \
                        `cuStreamWriteValue64` and `cuStreamWaitValue64`.";
            tables.push(("Timelines", note.to_owned(), self.timelines()));
        }
        if self.of_kind("sharing").next().is_some() {
            let note = "From a signal of this process's stream to its host's sight of the answer \
                        of another process's stream, beside C.";
            tables.push(("Between processes", note.to_owned(), self.sharing()));
        }
        if self.of_kind("span").next().is_some() {
            let note = "Nanoseconds for one span: the median with the 10th and 90th percentile \
                        over the rounds, and the least. `x C` is over two records in C of the same \
                        two events around the same work, in the same round. To read the \
                        times takes two calls for each span in C, one call with PyTorch's \
                        events, a drain of the tracer, and the end of the profiler with its list \
                        of events. The rows of PyTorch are over C of a run of their own.";
            tables.push(("Spans", note.to_owned(), self.spans()));
        }
        if self.of_kind("host submit").next().is_some() {
            let note = "Host code between two stages of a stream. The host opens a gate: a word \
                        that the stream waits for. `to host` is from then to the start of the \
                        host's part, `back` from its end until the host sees the next work, which \
                        writes a word. The row `nothing` has no host's part: its `back` is from \
                        the gate to that sight. `between` is the work between the gate and the \
                        host's part. Submitting is timed without the gate and other work.";
            tables.push(("Host functions", note.to_owned(), self.host()));
        }
        if self.of_kind("in flight").next().is_some() {
            let note = "Transfers on 16 streams, with so many in flight at each time. A host \
                        function that sleeps for 20 to 80 us stands for each.";
            tables.push(("Transfers in flight", note.to_owned(), self.in_flight()));
        }
        let others = self.others();
        if !others.rows.is_empty() {
            tables.push(("Other figures", String::new(), others));
        }
        tables
    }

    /// What the figures were measured on, run by run, as far as the runs say.
    fn about(&self) -> Vec<String> {
        self.of_kind("run").map(about).collect()
    }

    fn times(&self) -> Table {
        let mut table = Table::new(&[
            "operation",
            "C",
            "safe",
            "over C",
            "x C",
            "raw x C",
            "cudarc over C",
            "cudarc x C",
            "cudarc x safe",
        ]);
        let others: Vec<&str> = ["torch", "cuda.core"]
            .into_iter()
            .filter(|name| self.of_kind("time").any(|row| row["implementation"] == *name))
            .collect();
        for name in &others {
            table.head.push(format!("{name} x C"));
        }
        table.head.push("target".to_owned());
        for operation in self.operations() {
            let cell = |implementation: &str, what: &str, digits| {
                let row = self
                    .find("time", operation, implementation)
                    .filter(|row| row[what].is_object());
                row.map_or_else(String::new, |row| spread(&row[what], digits))
            };
            let plain =
                |value: Option<f64>| value.map_or_else(String::new, |value| number(value, 2));
            // Where another crate's queue stands in for ours, it does so in the same column.
            let safe =
                if self.find("time", operation, "safe").is_some() { "safe" } else { "crossbeam" };
            let mut cells = vec![
                operation.to_owned(),
                plain(self.median(operation, "c", "ns")),
                plain(self.median(operation, safe, "ns")),
                cell(safe, "over_c", 2),
                cell(safe, "ratio", 3),
                plain(self.median(operation, "raw", "ratio")),
                plain(self.median(operation, "cudarc", "over_c")),
                plain(self.ratio(operation, "cudarc")),
                cell("cudarc", "over_safe", 2),
            ];
            cells.extend(others.iter().map(|name| plain(self.ratio(operation, name))));
            cells.push(self.target(operation));
            table.rows.push(cells);
        }
        table
    }

    /// The target for the operation on this driver, and whether it is met.
    fn target(&self, operation: &str) -> String {
        let Some(targets) = TARGETS.iter().find(|targets| targets.operation == operation) else {
            return String::new();
        };
        let mut judged = Vec::new();
        let mut judge = |what: String, met: bool| {
            judged.push(if met { what } else { format!("{what}: MISSED") })
        };
        let (over, ratio) =
            (self.median(operation, "safe", "over_c"), self.ratio(operation, "safe"));
        let peer = self.median(operation, "cudarc", "over_c");
        match (self.driver, over, ratio) {
            ("null", Some(over), _) => {
                if let Some(most) = targets.null_over {
                    judge(format!("over C <= {most} ns"), over <= most);
                }
                if let (Some(times), Some(peer)) = (targets.null_against_cudarc, peer) {
                    judge(format!("{times} x less over C than cudarc"), over * times <= peer);
                }
            }
            ("native", _, Some(ratio)) => {
                if let Some(most) = targets.native_ratio {
                    judge(format!("<= {most} x C"), ratio <= most);
                }
                if let (Some(times), Some(peer)) =
                    (targets.native_against_cudarc, self.median(operation, "cudarc", "over_safe"))
                {
                    judge(format!("cudarc >= {times} x safe"), peer >= times);
                }
            }
            _ => {}
        }
        judged.join("; ")
    }

    fn instructions(&self) -> Table {
        let mut table = Table::new(&[
            "operation",
            "C",
            "safe over",
            "raw over",
            "cudarc over",
            "safe: shared writes",
            "cudarc: shared writes",
            "target",
        ]);
        let mut operations: Vec<&str> = Vec::new();
        for operation in self.of_kind("instructions").filter_map(|row| row["operation"].as_str()) {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
        for operation in operations {
            let count = |implementation: &str, what: &str| {
                self.find("instructions", operation, implementation)
                    .and_then(|row| row[what].as_f64())
            };
            let plain =
                |value: Option<f64>| value.map_or_else(String::new, |value| number(value, 0));
            let most = TARGETS
                .iter()
                .find(|targets| targets.operation == operation)
                .and_then(|targets| targets.instructions);
            let writes = ["safe", "cudarc"].map(|name| plain(count(name, "shared_writes")));
            let target = match (most, count("safe", "over_c")) {
                (Some(most), Some(over)) if over <= most => format!("<= {most}"),
                (Some(most), Some(_)) => format!("<= {most}: MISSED"),
                _ => String::new(),
            };
            table.rows.push(
                [
                    operation.to_owned(),
                    plain(count("c", "per_call")),
                    plain(count("safe", "over_c")),
                    plain(count("raw", "over_c")),
                    plain(count("cudarc", "over_c")),
                ]
                .into_iter()
                .chain(writes)
                .chain([target])
                .collect(),
            );
        }
        table
    }

    /// Processor time where the driver never blocks; where it does, waiting is part of what a call
    /// costs.
    fn thread_figures(&self) -> (&'static str, &'static str) {
        if self.driver == "native" { ("wall_ns", "wall_ratio") } else { ("cpu_ns", "cpu_ratio") }
    }

    fn thread_row(
        &self,
        operation: &Value,
        implementation: &str,
        threads: u64,
    ) -> Option<&'a Value> {
        self.of_kind("threads").find(|row| {
            row["operation"] == *operation
                && row["implementation"] == implementation
                && row["threads"] == threads
        })
    }

    fn threads(&self) -> Table {
        let mut threads: Vec<u64> =
            self.of_kind("threads").filter_map(|row| row["threads"].as_u64()).collect();
        threads.sort_unstable();
        threads.dedup();
        let (figure, ratio) = self.thread_figures();
        let mut table = Table::new(&["operation", "implementation"]);
        table.head.extend(threads.iter().map(|count| format!("{count}")));
        table.head.push("target".to_owned());
        for row in self.of_kind("threads").filter(|row| row["threads"] == threads[0]) {
            let (operation, implementation) = (&row["operation"], text(&row["implementation"]));
            let mut line = |title: String, what: &str, digits, target: String| {
                let mut cells = vec![text(operation), title];
                cells.extend(threads.iter().map(|&count| {
                    let row = self
                        .thread_row(operation, &implementation, count)
                        .filter(|row| row[what].is_object());
                    row.map_or_else(String::new, |row| spread(&row[what], digits))
                }));
                cells.push(target);
                table.rows.push(cells);
            };
            let target = if implementation == "safe" {
                self.thread_target(operation, &threads)
            } else {
                String::new()
            };
            let compared =
                self.driver == "native" && matches!(implementation.as_str(), "safe" | "c again");
            let own = if compared { String::new() } else { target.clone() };
            line(implementation.clone(), figure, 1, own);
            if compared && row[ratio].is_object() {
                line(format!("{implementation} x C"), ratio, 3, target);
            }
        }
        table
    }

    /// What is wanted of this crate on as many threads as there are cores, at the most.
    fn thread_target(&self, operation: &Value, threads: &[u64]) -> String {
        let cores = self.of_kind("run").find_map(|run| run["cores"].as_u64()).unwrap_or(u64::MAX);
        let (figure, ratio) = self.thread_figures();
        let value = |implementation: &str, threads: u64, what: &str, which: &str| {
            self.thread_row(operation, implementation, threads)?[what][which].as_f64()
        };
        let (target, missed): (_, &dyn Fn(u64) -> Option<bool>) = match self.driver {
            "null" => (format!("<= {FLAT} x one thread"), &|count| {
                Some(
                    value("safe", count, figure, "median")?
                        > FLAT * value("safe", 1, figure, "median")?,
                )
            }),
            "native" => (format!("<= {CURVE} x C, or within the spread of c again"), &|count| {
                let safe = value("safe", count, ratio, "median")?;
                Some(safe > CURVE && safe > value("c again", count, ratio, "p90")?)
            }),
            _ => return String::new(),
        };
        let judged: Vec<(u64, bool)> = threads
            .iter()
            .filter(|&&count| count <= cores)
            .filter_map(|&count| missed(count).map(|missed| (count, missed)))
            .collect();
        let Some((most, _)) = judged.last() else { return String::new() };
        let missed: Vec<String> = judged
            .iter()
            .filter(|(_, missed)| *missed)
            .map(|(count, _)| count.to_string())
            .collect();
        let on = if missed.is_empty() {
            String::new()
        } else {
            format!(": MISSED on {}", missed.join(", "))
        };
        format!("{target}, up to {most} threads{on}")
    }

    fn sharing(&self) -> Table {
        let mut table = Table::new(&["way", "p50 / p90 / p99, us", "beside", "target"]);
        let figure = |row: &Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        for row in self.of_kind("sharing") {
            let times = ["p50_us", "p90_us", "p99_us"].map(|name| number(figure(row, name), 1));
            let (way, beside) = (text(&row["way"]), text(&row["beside"]));
            let other = self.of_kind("sharing").find(|other| text(&other["way"]) == beside);
            let ratio = other.map(|other| figure(row, "p50_us") / figure(other, "p50_us"));
            let beside = ratio.map(|ratio| format!("{} x {beside}", number(ratio, 2)));
            let target = match (way.as_str(), ratio) {
                ("file", Some(ratio)) if ratio <= 1.1 => "<= 1.1 x",
                ("file", _) => "<= 1.1 x: MISSED",
                _ => "",
            };
            let cells = [way, times.join(" / "), beside.unwrap_or_default(), target.to_owned()];
            table.rows.push(cells.to_vec());
        }
        table
    }

    fn spans(&self) -> Table {
        let mut table = Table::new(&[
            "what",
            "around",
            "record",
            "least",
            "x C",
            "read",
            "record + read, x C",
            "target",
        ]);
        for row in self.of_kind("span") {
            let (what, work) = (text(&row["implementation"]), text(&row["work"]));
            let c = self
                .of_kind("span")
                .find(|row| row["implementation"] == "c" && text(&row["work"]) == work);
            let median = |row: &Value, name: &str| row[name]["median"].as_f64();
            let c = c.and_then(|row| median(row, "ns"));
            // Peers from other processes have only their own times.
            let ratio = median(row, "ratio").or_else(|| Some(median(row, "ns")? / c?));
            let whole = median(row, "whole_ratio")
                .or_else(|| Some((median(row, "ns")? + median(row, "read_ns")?) / c?));
            let plain = |value: Option<f64>, digits| {
                value.map_or_else(String::new, |value| number(value, digits))
            };
            let judged = |value: Option<f64>, what: &str| match value {
                Some(value) if value <= SPAN => format!("{what} <= {SPAN} x C"),
                Some(_) => format!("{what} <= {SPAN} x C: MISSED"),
                None => String::new(),
            };
            let target = if what == "safe" {
                [judged(ratio, "record"), judged(whole, "record + read")].join("; ")
            } else {
                String::new()
            };
            let read = &row["read_ns"];
            table.rows.push(vec![
                what,
                work,
                spread(&row["ns"], 1),
                plain(row["min_ns"].as_f64(), 1),
                plain(ratio, 3),
                if read.is_object() { spread(read, 1) } else { String::new() },
                if read.is_object() { plain(whole, 3) } else { String::new() },
                target,
            ]);
        }
        table
    }

    fn host(&self) -> Table {
        let mut table = Table::new(&["what", "submit, ns", "to host, us", "back, us", "samples"]);
        for row in self.of_kind("host submit") {
            let cells = [
                text(&row["way"]),
                spread(&row["ns"], 0),
                String::new(),
                String::new(),
                row["rounds"].to_string(),
            ];
            table.rows.push(cells.to_vec());
        }
        for row in self.of_kind("host stage") {
            let three = |times: &Value| {
                let at = |name: &str| times[name].as_f64().map(|time| number(time, 1));
                let all: Option<Vec<String>> = ["p50", "p90", "p99"].into_iter().map(at).collect();
                all.map_or_else(String::new, |all| all.join(" / "))
            };
            // Files of earlier runs have nothing between.
            let between = match row["between"].as_str() {
                Some(between) => format!(", {between} between"),
                None => String::new(),
            };
            let cells = [
                format!("{}{between}, p50 / p90 / p99", text(&row["way"])),
                String::new(),
                three(&row["to_host_us"]),
                three(&row["back_us"]),
                row["samples"].to_string(),
            ];
            table.rows.push(cells.to_vec());
        }
        table
    }

    fn timelines(&self) -> Table {
        let mut table = Table::new(&["what", "point", "event", "C", "target"]);
        let mut add = |what: String, cells: [String; 3], target: &str, met: bool| {
            let target = if met || target.is_empty() {
                target.to_owned()
            } else {
                format!("{target}: MISSED")
            };
            let [point, event, c] = cells;
            table.rows.push(vec![what, point, event, c, target]);
        };
        let figure = |row: &Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN);
        for row in self.of_kind("timeline") {
            let (point, event) = (figure(row, "point_ns"), figure(row, "event_ns"));
            match row["operation"].as_str() {
                Some("look") => {
                    let threads = row["threads"].as_u64().unwrap_or(0);
                    let times = if threads == 1 { 40.0 } else { 2000.0 };
                    add(
                        format!("is it done, {threads} threads, ns"),
                        [number(point, 2), number(event, 0), String::new()],
                        &format!("<= 3 ns, {times} x faster than a query"),
                        point <= 3.0 && event / point >= times,
                    );
                }
                Some("pending") => {
                    let share = figure(row, "cpu_percent");
                    let waiting = row["waiting"].as_u64().unwrap_or(0);
                    add(
                        format!(
                            "{waiting} futures on {} timelines wait, % of a core",
                            row["timelines"]
                        ),
                        [number(share, 1), String::new(), String::new()],
                        if waiting == 10_000 { "<= 2.5 %" } else { "" },
                        waiting != 10_000 || share <= 2.5,
                    );
                }
                _ => {
                    let ratio = figure(row, "ratio");
                    // Files of earlier runs have no spread.
                    let spread = match (row["ratio_p10"].as_f64(), row["ratio_p90"].as_f64()) {
                        (Some(low), Some(high)) => {
                            format!(", {} .. {}", number(low, 3), number(high, 3))
                        }
                        _ => String::new(),
                    };
                    let c = number(figure(row, "c_ns"), 0);
                    let c = format!("{c} ({} x{spread})", number(ratio, 3));
                    add(
                        format!("{}, ns", text(&row["operation"])),
                        [number(point, 0), number(event, 0), c],
                        "<= 1.02 x C",
                        ratio <= 1.02,
                    );
                }
            }
        }
        let wakes: Vec<_> = self.of_kind("timeline wake").collect();
        let times = |row: &Value| {
            let figure = |name| number(figure(row, name), 1);
            format!("{} / {} / {}", figure("p50_us"), figure("p90_us"), figure("p99_us"))
        };
        for row in &wakes {
            let (way, others) = (text(&row["way"]), row["others"].as_u64().unwrap_or(0));
            let (p50, p90) = (figure(row, "p50_us"), figure(row, "p90_us"));
            let (target, met) = match (way.as_str(), others) {
                // With nothing between, the device itself completes an event sooner.
                ("point, spinning", _) if row["between"] == "nothing" => ("", true),
                ("point, spinning", _) => {
                    let event = wakes.iter().find(|other| {
                        other["way"] == "event, spinning" && other["between"] == row["between"]
                    });
                    ("p50 <= the event's", event.is_none_or(|row| p50 <= figure(row, "p50_us")))
                }
                // The work between takes its time, too.
                ("point, sleeping", _)
                    if row["between"].as_str().is_none_or(|it| it == "nothing") =>
                {
                    ("p50 < 25, p90 < 196", p50 < 25.0 && p90 < 196.0)
                }
                ("point, future", 10_000) => ("p50 <= 20", p50 <= 20.0),
                _ => ("", true),
            };
            let beside = if others > 0 { format!(", {others} others") } else { String::new() };
            let (kind, way) = way.split_once(", ").unwrap_or(("", &way));
            let between = match row["between"].as_str() {
                Some(between) => format!(", {between} between"),
                None => String::new(),
            };
            let what =
                format!("from work done to woken, {way}{between}{beside}, p50 / p90 / p99, us");
            let (point, event) = if kind == "point" {
                (times(row), String::new())
            } else {
                (String::new(), times(row))
            };
            add(what, [point, event, String::new()], target, met);
        }
        table
    }

    fn in_flight(&self) -> Table {
        let mut table = Table::new(&[
            "who waits",
            "in flight",
            "from done to woken, p50 / p99, us",
            "% of a core",
        ]);
        for row in self.of_kind("in flight") {
            let figure = |name: &str| row[name].as_f64().map(|figure| number(figure, 1));
            let late = figure("p50_us").zip(figure("p99_us"));
            table.rows.push(vec![
                text(&row["way"]),
                row["in_flight"].to_string(),
                late.map_or_else(String::new, |(p50, p99)| format!("{p50} / {p99}")),
                figure("cpu_percent").unwrap_or_default(),
            ]);
        }
        table
    }

    fn others(&self) -> Table {
        let mut table = Table::new(&["what", "measured", "target"]);
        let mut add = |what: String, measured: String, target: &str, met: bool| {
            let target = if met || target.is_empty() {
                target.to_owned()
            } else {
                format!("{target}: MISSED")
            };
            table.rows.push(vec![what, measured, target]);
        };
        for row in self.of_kind("load") {
            let over = row["over_dlopen_us"]["median"].as_f64().unwrap_or(f64::NAN);
            let most = if self.driver == "native" { 1000.0 } else { 200.0 };
            add("dlopen alone, us".into(), spread(&row["dlopen_us"], 1), "", true);
            add(
                "load, over dlopen, us".into(),
                spread(&row["over_dlopen_us"], 1),
                &format!("<= {most} us"),
                over <= most,
            );
            add("load again, us".into(), spread(&row["again_us"], 2), "", true);
        }
        if let (Some(pool), Some(c)) = (
            self.median("pool take + return", "safe", "ns"),
            self.median("create + drop", "c", "ns"),
        ) {
            let name = "pool take + return, ns";
            match self.driver {
                "null" => add(name.into(), number(pool, 1), "<= 25 ns", pool <= 25.0),
                _ => {
                    let times = c / pool;
                    let measured = format!(
                        "{}, {} x faster than create + destroy",
                        number(pool, 1),
                        number(times, 1)
                    );
                    add(name.into(), measured, ">= 4 x", times >= 4.0);
                }
            }
        }
        let pooled = |threads: u64| {
            let mut rows = self.of_kind("threads");
            let row = rows.find(|row| {
                row["operation"] == "pool take + return"
                    && row["implementation"] == "safe"
                    && row["threads"] == threads
            })?;
            row["cpu_ns"]["median"].as_f64()
        };
        if let (Some(one), Some(eight)) = (pooled(1), pooled(8)) {
            let measured = format!("{} and {}", number(one, 1), number(eight, 1));
            add(
                "pool on 1 and on 8 threads, ns of processor time".into(),
                measured,
                "<= 2 x",
                eight <= 2.0 * one,
            );
        }
        for row in self.of_kind("scale") {
            let name = format!("{} live events, {}", row["live"], text(&row["implementation"]));
            if let Some(bytes) = row["bytes"].as_f64() {
                add(
                    format!("{name}: bytes each"),
                    number(bytes, 1),
                    "<= 32",
                    bytes.floor() <= 32.0,
                );
            }
            for what in ["create", "drop"] {
                let steps = &row[what];
                let Some(growth) = steps["growth"]["median"].as_f64() else { continue };
                let over_c = steps["growth_over_c"]["median"].as_f64().unwrap_or(f64::NAN);
                let measured = format!(
                    "{} -> {}: x {}, {} x C's growth",
                    spread(&steps["few_ns"], 1),
                    spread(&steps["most_ns"], 1),
                    spread(&steps["growth"], 2),
                    spread(&steps["growth_over_c"], 2),
                );
                let (target, met) = match (self.driver, row["implementation"].as_str()) {
                    ("null", Some("safe")) => (format!("<= x {GROWTH}"), growth <= GROWTH),
                    ("native", Some("safe")) => {
                        (format!("growth <= {CURVE} x C's"), over_c <= CURVE)
                    }
                    _ => (String::new(), true),
                };
                add(
                    format!(
                        "{name}: {what}, ns in the twentieth with the fewest -> with the most alive"
                    ),
                    measured,
                    &target,
                    met,
                );
            }
        }
        for row in self.of_kind("wake") {
            let figure = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
            let measured =
                format!("{} / {} / {}", figure("p50_us"), figure("p90_us"), figure("p99_us"));
            let way = text(&row["way"]);
            let others = row["others"].as_u64().unwrap_or(0);
            let work = row["work"].as_str().map_or_else(String::new, |work| format!(" of {work}"));
            let beside = match (others, &row["events"]) {
                (0, _) => String::new(),
                (others, events) => format!(", {others} others pending on {events} events"),
            };
            let (target, met) = if way == "future" {
                ("p50 <= 30 us", figure("p50_us") <= 30.0)
            } else {
                ("", true)
            };
            let samples = row["samples"]
                .as_u64()
                .map_or_else(String::new, |samples| format!(" ({samples} samples)"));
            add(
                format!("from work{work} done to woken, {way}{beside}: p50 / p90 / p99, us"),
                measured + &samples,
                target,
                met,
            );
        }
        for row in self.of_kind("idle") {
            let share = row["cpu_percent"].as_f64().unwrap_or(f64::NAN);
            let on = row["events"].as_u64().filter(|&events| events > 0);
            let on = on.map_or_else(String::new, |events| format!(" on {events} events"));
            let name =
                format!("processor time while {} futures wait{on}, % of a core", row["waiting"]);
            add(name, number(share, 1), "<= 10 %", share <= 10.0);
        }
        for row in self.of_kind("build") {
            let value = row["value"].as_f64().unwrap_or(f64::NAN);
            let target = row["target"].as_f64();
            let unit = text(&row["unit"]);
            let limit = target.map_or_else(String::new, |target| format!("<= {target} {unit}"));
            let met = target.is_none_or(|target| value <= target);
            add(text(&row["what"]), format!("{value} {unit}"), limit.trim(), met);
        }
        table
    }
}

/// A call on several threads over one on one thread, on the null driver; some of it is the
/// processor's.
const FLAT: f64 = 1.5;
/// This crate's curve over C's on a GPU.
const CURVE: f64 = 1.10;
/// A call with the most events alive over one with the fewest, on the null driver.
const GROWTH: f64 = 1.25;

/// A span over two bare records in C.
const SPAN: f64 = 1.1;

/// What the project wants of an operation.
struct Targets {
    operation: &'static str,
    /// Nanoseconds over C on the null driver.
    null_over: Option<f64>,
    /// Instructions over C on the null driver.
    instructions: Option<f64>,
    /// How many times cudarc's overhead is ours, at the least.
    null_against_cudarc: Option<f64>,
    /// Multiple of C on a GPU.
    native_ratio: Option<f64>,
    /// How many times cudarc's time is ours, at the least.
    native_against_cudarc: Option<f64>,
}

const fn hot(
    operation: &'static str,
    null_against_cudarc: Option<f64>,
    native_against_cudarc: Option<f64>,
) -> Targets {
    Targets {
        operation,
        null_over: Some(1.0),
        instructions: Some(8.0),
        null_against_cudarc,
        native_ratio: Some(1.02),
        native_against_cudarc,
    }
}

const fn at_most(operation: &'static str, native_ratio: f64) -> Targets {
    Targets {
        operation,
        null_over: None,
        instructions: None,
        null_against_cudarc: None,
        native_ratio: Some(native_ratio),
        native_against_cudarc: None,
    }
}

const TARGETS: &[Targets] = &[
    hot("record", Some(4.0), Some(1.0)),
    hot("query, done", Some(4.0), Some(1.0)),
    hot("synchronize, done", Some(4.0), Some(1.0)),
    hot("stream wait", Some(4.0), Some(1.0)),
    hot("elapsed", Some(4.0), Some(2.0)),
    hot("stream query", None, None),
    Targets {
        null_over: Some(15.0),
        null_against_cudarc: Some(4.0),
        native_against_cudarc: Some(1.0),
        ..at_most("create + drop", 1.10)
    },
    Targets {
        null_over: Some(15.0),
        null_against_cudarc: Some(4.0),
        native_against_cudarc: Some(1.0),
        ..at_most("create + drop, context leaked", 1.10)
    },
    at_most("record_event + drop", 1.10),
    Targets {
        null_against_cudarc: Some(4.0),
        native_against_cudarc: Some(2.0),
        ..at_most("wait_stream", 1.05)
    },
    at_most("IPC export, again", 1.05),
    at_most("IPC import + close", 1.05),
    at_most("IPC import + close, context leaked", 1.05),
];

struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    fn render(&self, markdown: bool) -> String {
        let mut out = String::new();
        if markdown {
            let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
            out += &line(&self.head);
            out += &line(&vec!["---".to_owned(); self.head.len()]);
            self.rows.iter().for_each(|row| out += &line(row));
            return out;
        }
        let all = || core::iter::once(&self.head).chain(&self.rows);
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                all()
                    .filter_map(|row| row.get(column))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in all() {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                // Words to the left, numbers to the right.
                let words = column == 0
                    || self.head[column] == "target"
                    || self.head[column] == "implementation";
                if words { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            let line: Vec<String> = cells.collect();
            let _ = writeln!(out, "{}", line.join("  ").trim_end());
        }
        out
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: f64, digits: usize) -> String {
    // Not "-0.00".
    let rounded = format!("{value:.digits$}");
    if rounded.trim_start_matches('-').chars().all(|digit| digit == '0' || digit == '.') {
        rounded.trim_start_matches('-').to_owned()
    } else {
        rounded
    }
}

fn spread(value: &Value, digits: usize) -> String {
    let figure = |name: &str| value[name].as_f64().unwrap_or(f64::NAN);
    format!(
        "{} ({} .. {})",
        number(figure("median"), digits),
        number(figure("p10"), digits),
        number(figure("p90"), digits)
    )
}
