//! Tables of what was measured, with the targets beside it.

use core::fmt::Write;

use serde_json::Value;

/// Everything in the rows, run by run.
pub fn report(rows: &[Value], markdown: bool) -> String {
    let mut out = String::new();
    for driver in drivers(rows) {
        let rows: Vec<&Value> = rows.iter().filter(|row| row["driver"] == driver).collect();
        let run = Run { driver, rows };
        let heading = match driver {
            "native" => "On a GPU",
            "null" => "On the null driver",
            "soft" => "On the software driver",
            _ => "Building",
        };
        let _ = if markdown { writeln!(out, "### {heading}\n") } else { writeln!(out, "{heading}\n") };
        for (note, table) in run.tables() {
            let table = table.render(markdown);
            let _ = if note.is_empty() { writeln!(out, "{table}") } else { writeln!(out, "{note}\n\n{table}") };
        }
    }
    out
}

fn drivers(rows: &[Value]) -> Vec<&str> {
    let mut drivers: Vec<&str> = Vec::new();
    for driver in rows.iter().filter_map(|row| row["driver"].as_str()) {
        if !drivers.contains(&driver) {
            drivers.push(driver);
        }
    }
    drivers
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
        self.of_kind(kind).find(|row| row["operation"] == operation && row["implementation"] == implementation)
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

    /// What a call takes, as a multiple of the C loop's; peers from other processes have only their own time.
    pub fn ratio(&self, operation: &str, implementation: &str) -> Option<f64> {
        self.median(operation, implementation, "ratio")
            .or_else(|| Some(self.median(operation, implementation, "ns")? / self.median(operation, "c", "ns")?))
    }

    fn tables(&self) -> Vec<(String, Table)> {
        let mut tables = Vec::new();
        if !self.operations().is_empty() {
            tables.push((self.about(), self.times()));
        }
        if self.of_kind("instructions").next().is_some() {
            let note =
                "Instructions of one call (callgrind), the driver's function included; `over` is over the C loop.";
            tables.push((note.to_owned(), self.instructions()));
        }
        if self.of_kind("threads").next().is_some() {
            let note = "Own event and stream for each thread (one pool for all): processor time per call in ns, median \
                        over threads and rounds; in brackets wall-clock time.";
            tables.push((note.to_owned(), self.threads()));
        }
        let others = self.others();
        if !others.rows.is_empty() {
            tables.push(("And:".to_owned(), others));
        }
        tables
    }

    fn about(&self) -> String {
        let Some(run) = self.of_kind("run").next() else { return String::new() };
        let text = |key: &str| run[key].as_str().unwrap_or("").to_owned();
        let native = match text("driver_version") {
            version if version.is_empty() => String::new(),
            version => format!(" (driver {version})"),
        };
        format!(
            "{}; {}, CUDA {}{native}; {}, {} cores, load {}; {}; {}. Command: `{}`.\nTimes are medians in ns per call, with \
             the 10th and 90th percentile over the rounds in brackets; ratios are to the C loop of the same round.",
            text("date"),
            text("device"),
            text("cuda"),
            text("cpu"),
            run["cores"],
            text("load"),
            text("rustc"),
            text("cc"),
            text("command"),
        )
    }

    fn times(&self) -> Table {
        let mut table = Table::new(&["operation", "C", "safe", "over C", "x C", "raw x C", "cudarc over C", "x C"]);
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
                self.find("time", operation, implementation).map_or_else(String::new, |row| spread(&row[what], digits))
            };
            let plain = |value: Option<f64>| value.map_or_else(String::new, |value| number(value, 2));
            let mut cells = vec![
                operation.to_owned(),
                plain(self.median(operation, "c", "ns")),
                plain(self.median(operation, "safe", "ns")),
                cell("safe", "over_c", 2),
                cell("safe", "ratio", 3),
                plain(self.median(operation, "raw", "ratio")),
                plain(self.median(operation, "cudarc", "over_c")),
                plain(self.ratio(operation, "cudarc")),
            ];
            cells.extend(others.iter().map(|name| plain(self.ratio(operation, name))));
            cells.push(self.target(operation));
            table.rows.push(cells);
        }
        table
    }

    /// The target for the operation on this driver, and whether it is met.
    fn target(&self, operation: &str) -> String {
        let Some(targets) = TARGETS.iter().find(|targets| targets.operation == operation) else { return String::new() };
        let mut judged = Vec::new();
        let mut judge = |what: String, met: bool| judged.push(if met { what } else { format!("{what}: MISSED") });
        let (over, ratio) = (self.median(operation, "safe", "over_c"), self.ratio(operation, "safe"));
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
                if let (Some(times), Some(peer)) = (targets.native_against_cudarc, self.ratio(operation, "cudarc")) {
                    judge(format!("cudarc >= {times} x"), peer >= times * ratio);
                }
            }
            _ => {}
        }
        judged.join("; ")
    }

    fn instructions(&self) -> Table {
        let mut table = Table::new(&["operation", "C", "safe over", "raw over", "cudarc over", "target"]);
        let mut operations: Vec<&str> = Vec::new();
        for operation in self.of_kind("instructions").filter_map(|row| row["operation"].as_str()) {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
        }
        for operation in operations {
            let count = |implementation: &str, what: &str| {
                self.find("instructions", operation, implementation).and_then(|row| row[what].as_f64())
            };
            let plain = |value: Option<f64>| value.map_or_else(String::new, |value| number(value, 0));
            let most =
                TARGETS.iter().find(|targets| targets.operation == operation).and_then(|targets| targets.instructions);
            let target = match (most, count("safe", "over_c")) {
                (Some(most), Some(over)) if over <= most => format!("<= {most}"),
                (Some(most), Some(_)) => format!("<= {most}: MISSED"),
                _ => String::new(),
            };
            table.rows.push(vec![
                operation.to_owned(),
                plain(count("c", "per_call")),
                plain(count("safe", "over_c")),
                plain(count("raw", "over_c")),
                plain(count("cudarc", "over_c")),
                target,
            ]);
        }
        table
    }

    fn threads(&self) -> Table {
        let mut threads: Vec<u64> = self.of_kind("threads").filter_map(|row| row["threads"].as_u64()).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut table = Table::new(&["operation", "implementation"]);
        table.head.extend(threads.iter().map(|count| format!("{count}")));
        for row in self.of_kind("threads").filter(|row| row["threads"] == threads[0]) {
            let mut cells = vec![text(&row["operation"]), text(&row["implementation"])];
            for count in &threads {
                let same = self.of_kind("threads").find(|other| {
                    other["threads"] == *count
                        && other["operation"] == row["operation"]
                        && other["implementation"] == row["implementation"]
                });
                let median = |what: &str| same.and_then(|row| row[what]["median"].as_f64()).unwrap_or(f64::NAN);
                cells.push(format!("{} ({})", number(median("cpu_ns"), 1), number(median("wall_ns"), 1)));
            }
            table.rows.push(cells);
        }
        table
    }

    fn others(&self) -> Table {
        let mut table = Table::new(&["what", "measured", "target"]);
        let mut add = |what: String, measured: String, target: &str, met: bool| {
            let target = if met || target.is_empty() { target.to_owned() } else { format!("{target}: MISSED") };
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
        if let (Some(pool), Some(c)) =
            (self.median("pool take + return", "safe", "ns"), self.median("create + drop", "c", "ns"))
        {
            let name = "pool take + return, ns";
            match self.driver {
                "null" => add(name.into(), number(pool, 1), "<= 25 ns", pool <= 25.0),
                _ => {
                    let times = c / pool;
                    let measured = format!("{}, {} x faster than create + destroy", number(pool, 1), number(times, 1));
                    add(name.into(), measured, ">= 4 x", times >= 4.0);
                }
            }
        }
        let pooled = |threads: u64| {
            let mut rows = self.of_kind("threads");
            let row = rows.find(|row| {
                row["operation"] == "pool take + return" && row["implementation"] == "safe" && row["threads"] == threads
            })?;
            row["cpu_ns"]["median"].as_f64()
        };
        if let (Some(one), Some(eight)) = (pooled(1), pooled(8)) {
            let measured = format!("{} and {}", number(one, 1), number(eight, 1));
            add("pool on 1 and on 8 threads, ns of processor time".into(), measured, "<= 2 x", eight <= 2.0 * one);
        }
        for row in self.of_kind("scale") {
            let name = format!("{} live events, {}", row["live"], text(&row["implementation"]));
            if let Some(bytes) = row["bytes"].as_f64() {
                add(format!("{name}: bytes each"), number(bytes, 1), "<= 32", bytes.floor() <= 32.0);
            }
            for (what, steps, all) in [("create", "create_steps", "create_ns"), ("drop", "destroy_steps", "destroy_ns")]
            {
                let step = |which: &str| row[steps][which].as_f64().unwrap_or(f64::NAN);
                let measured = format!(
                    "{} -> {}, all {}",
                    number(step("first"), 1),
                    number(step("last"), 1),
                    spread(&row[all], 1)
                );
                add(format!("{name}: {what}, ns in the first and the last twentieth"), measured, "flat", true);
            }
        }
        for row in self.of_kind("wake") {
            let figure = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
            let measured = format!("{} / {} / {}", figure("p50_us"), figure("p90_us"), figure("p99_us"));
            let way = text(&row["way"]);
            let (target, met) = if way == "future" { ("p50 <= 30 us", figure("p50_us") <= 30.0) } else { ("", true) };
            add(format!("from event done to woken, {way}: p50 / p90 / p99, us"), measured, target, met);
        }
        for row in self.of_kind("idle") {
            let share = row["cpu_percent"].as_f64().unwrap_or(f64::NAN);
            let name = format!("processor time while {} futures wait, % of a core", row["waiting"]);
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

const fn hot(operation: &'static str, null_against_cudarc: Option<f64>, native_against_cudarc: Option<f64>) -> Targets {
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
    Targets { null_against_cudarc: Some(4.0), native_against_cudarc: Some(2.0), ..at_most("wait_stream", 1.05) },
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
            .map(|column| all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        for row in all() {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                // Words to the left, numbers to the right.
                let words = column == 0 || self.head[column] == "target" || self.head[column] == "implementation";
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
