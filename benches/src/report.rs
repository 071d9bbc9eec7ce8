//! One plain table of what was measured, with the goals beside it.

use core::fmt::Write;

use serde_json::Value;

/// One figure of a run.
struct Figure {
    name: String,
    unit: &'static str,
    /// Of the same thing in C, if it was measured in the same run.
    c: Option<f64>,
    ours: f64,
    /// Ours over C in the same round: the median, the 10th and the 90th percentile.
    ratio: Option<[f64; 3]>,
    /// cudarc's over C.
    cudarc: Option<f64>,
}

/// What a figure is to be at most.
#[derive(Clone, Copy)]
enum Goal {
    TimesC(f64),
    Value(f64),
}

/// The goals, by the figure's name. They are for a GPU.
const GOALS: &[(&str, Goal)] = &[
    ("record", Goal::TimesC(1.02)),
    ("query, done", Goal::TimesC(1.02)),
    ("synchronize, done", Goal::TimesC(1.02)),
    ("stream wait", Goal::TimesC(1.02)),
    ("elapsed", Goal::TimesC(1.02)),
    ("stream query", Goal::TimesC(1.02)),
    ("create + drop", Goal::TimesC(1.08)),
    ("record_event + drop", Goal::TimesC(1.1)),
    ("wait_stream", Goal::TimesC(1.05)),
    ("IPC export, again", Goal::TimesC(1.5)),
    ("IPC import + close", Goal::TimesC(1.1)),
    ("point: look, 1 threads", Goal::Value(3.0)),
    ("point: look, 16 threads", Goal::Value(3.0)),
    ("point: signal", Goal::TimesC(1.02)),
    ("point: wait", Goal::TimesC(1.02)),
    ("load, over dlopen", Goal::Value(200.0)),
    ("woken: point, sleeping, nothing between", Goal::Value(25.0)),
];

/// The drivers that there are figures of.
pub fn drivers(rows: &[Value]) -> Vec<&str> {
    let mut drivers: Vec<&str> = Vec::new();
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
        } else if measured.iter().any(|(other, by)| *other == kind && *by != run) {
            return Some(kind);
        } else {
            measured.push((kind, run));
        }
    }
    None
}

/// What the rows of a driver say, a figure each.
fn figures(rows: &[Value], driver: &str) -> Vec<Figure> {
    let rows: Vec<&Value> = rows.iter().filter(|row| row["driver"] == driver).collect();
    let mut figures = Vec::new();
    for row in &rows {
        // The row of another implementation of the same thing.
        let beside = |implementation: &str| {
            rows.iter().find(|other| {
                let same = |key| other[key] == row[key];
                same("kind") && same("operation") && other["implementation"] == implementation
            })
        };
        let number = |key: &str| row[key].as_f64();
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let median = |row: &Value, key: &str| row[key]["median"].as_f64();
        let mut add = |name: String, unit, c, ours: Option<f64>, ratio, cudarc| {
            if let Some(ours) = ours {
                figures.push(Figure { name, unit, c, ours, ratio, cudarc });
            }
        };
        let ours = row["implementation"] == "safe";
        match text("kind") {
            "time" if ours => add(
                text("operation").to_owned(),
                "ns",
                beside("c").and_then(|row| median(row, "ns")),
                median(row, "ns"),
                spread(&row["ratio"]),
                beside("cudarc").and_then(|row| median(row, "ratio")),
            ),
            "instructions" if ours => {
                let c = beside("c").and_then(|row| row["per_call"].as_f64());
                let name = format!("{}, instructions", text("operation"));
                add(name, "", c, number("per_call"), None, None);
            }
            "timeline" if text("operation") == "look" => {
                let name = format!("point: look, {} threads", row["threads"]);
                add(name, "ns", None, number("point_ns"), None, None);
                let name = format!("event: query, {} threads", row["threads"]);
                add(name, "ns", None, number("event_ns"), None, None);
            }
            "timeline" => {
                let ratio = [number("ratio"), number("ratio_p10"), number("ratio_p90")];
                let ratio = match ratio {
                    [Some(median), Some(low), Some(high)] => Some([median, low, high]),
                    _ => None,
                };
                let name = format!("point: {}", text("operation"));
                add(name, "ns", number("c_ns"), number("point_ns"), ratio, None);
            }
            "timeline wake" => {
                let name = format!("woken: {}, {} between", text("way"), text("between"));
                add(name, "us", None, number("p50_us"), None, None);
            }
            "load" => {
                let name = "load, over dlopen".to_owned();
                add(name, "us", None, median(row, "over_dlopen_us"), None, None);
            }
            "build" => {
                let unit = match text("unit") {
                    "s" => "s",
                    "kB" => "kB",
                    _ => "crates",
                };
                add(text("what").to_owned(), unit, None, number("value"), None, None);
            }
            _ => {}
        }
    }
    figures
}

fn spread(value: &Value) -> Option<[f64; 3]> {
    let figure = |name: &str| value[name].as_f64();
    Some([figure("median")?, figure("p10")?, figure("p90")?])
}

impl Figure {
    fn goal(&self) -> String {
        let goal = GOALS.iter().find(|(name, _)| *name == self.name).map(|(_, goal)| *goal);
        let (text, met) = match (goal, self.ratio) {
            (Some(Goal::TimesC(most)), Some([ratio, ..])) => (format!("{most} x"), ratio <= most),
            (Some(Goal::Value(most)), _) => (format!("{most} {}", self.unit), self.ours <= most),
            _ => return String::new(),
        };
        if met { text } else { format!("{text}: MISSED") }
    }

    fn cells(&self, driver: &str) -> [String; 6] {
        let plain =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
        [
            self.name.clone(),
            plain(self.c),
            format!("{:.2} {}", self.ours, self.unit).trim_end().to_owned(),
            self.ratio.map_or_else(String::new, |[median, low, high]| {
                format!("{median:.3} ({low:.3} .. {high:.3})")
            }),
            plain(self.cudarc),
            if driver == "native" { self.goal() } else { String::new() },
        ]
    }
}

/// Three tables for each driver, in Markdown, which is plain enough to be read as it is: what has a
/// counterpart in C, what has none, and what was measured with and without work between.
pub fn report(rows: &[Value], only: Option<&str>) -> String {
    let mut out = String::new();
    for driver in drivers(rows).into_iter().filter(|driver| only.is_none_or(|only| only == *driver))
    {
        for run in rows.iter().filter(|row| row["kind"] == "run" && row["driver"] == driver) {
            let words = ["date", "device", "driver_version", "cpu", "rustc", "command"];
            let words: Vec<&str> = words
                .into_iter()
                .filter_map(|key| run[key].as_str().filter(|text| !text.is_empty()))
                .collect();
            let _ = writeln!(out, "{} driver: {}.\n", driver, words.join("; "));
        }
        let (beside, alone): (Vec<Figure>, Vec<Figure>) =
            figures(rows, driver).into_iter().partition(|figure| figure.c.is_some());
        let head = ["figure", "C", "cuda-events", "x C (p10 .. p90)", "cudarc x C", "goal"];
        let mut table = vec![head.map(str::to_owned), head.map(|_| "---".to_owned())];
        table.extend(beside.iter().map(|figure| figure.cells(driver)));
        write_table(&mut out, &table);
        let head = ["figure", "cuda-events", "goal"];
        let mut table = vec![head.map(str::to_owned), head.map(|_| "---".to_owned())];
        let head = ["figure", "nothing between", "a memset of 4 KiB between", "goal"];
        let mut pairs = vec![head.map(str::to_owned), head.map(|_| "---".to_owned())];
        let find = |base: &str, end: &str| {
            alone.iter().find(|other| other.name.strip_suffix(end) == Some(base))
        };
        for figure in &alone {
            let [name, _, ours, _, _, goal] = figure.cells(driver);
            let with_work = name.strip_suffix(WITHOUT_WORK).and_then(|base| find(base, WITH_WORK));
            if let Some(other) = with_work {
                let [_, _, theirs, ..] = other.cells(driver);
                pairs.push([name.replace(WITHOUT_WORK, ""), ours, theirs, goal]);
            } else if name
                .strip_suffix(WITH_WORK)
                .and_then(|base| find(base, WITHOUT_WORK))
                .is_none()
            {
                table.push([name, ours, goal]);
            }
        }
        write_table(&mut out, &table);
        write_table(&mut out, &pairs);
    }
    out
}

/// How the names of two figures end that differ in what is between the work and the signal.
const WITHOUT_WORK: &str = ", nothing between";
const WITH_WORK: &str = ", a memset of 4 KiB between";

fn write_table<const COLUMNS: usize>(out: &mut String, table: &[[String; COLUMNS]]) {
    for cells in table {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
}
