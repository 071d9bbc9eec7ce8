//! Measures this crate, a C loop and cudarc in turns, in one process on one driver.
//!
//!     events-bench measure --driver null|soft|native [--out FILE] [--rounds N] [--quick]
//!                          [--only operations,loading,timelines]
//!     events-bench loops   --driver null|soft|native --calls N
//!     events-bench report  FILE [--driver NAME]
//!
//! With a word in `EVENTS_BENCH_MATCHING`, `measure` times only operations whose names contain it.
//!
//! `measure` writes lines of JSON, `loops` runs the loops for callgrind, `report` prints a table of the
//! measurements. The libraries of the null and the software driver are in the program's folder.

mod loops;
mod processes;
mod report;
mod rig;
mod rounds;
mod timelines;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, exit};

use cuda_events::Driver;
use cudarc::driver::CudaContext;
use lexopt::Arg::{self, Long, Short};
use lexopt::{Parser, ValueExt};
use serde_json::{Value, json};

/// Set in the process that has the driver in its library search.
const CHOSEN: &str = "EVENTS_BENCH_DRIVER";

fn main() -> ExitCode {
    let options = match Options::parse() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("events-bench: {error}");
            return usage();
        }
    };
    let Some(verb) = options.words.first() else { return usage() };
    match verb.as_str() {
        "help" => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        "measure" | "loops" => match options.driver.as_deref() {
            Some(driver @ ("null" | "soft" | "native")) => with_driver(driver, verb, &options),
            _ => usage(),
        },
        "report" => match options.words.get(1) {
            Some(file) => {
                print!("{}", report::report(&rows(file), options.driver.as_deref()));
                ExitCode::SUCCESS
            }
            None => usage(),
        },
        processes::LOAD => processes::load(),
        processes::EXPORT => processes::export(),
        processes::OPERATIONS => {
            let (rig, _exporter) = first_rig();
            println!("{}", rounds::measure(&rig, options.rounds.unwrap_or(1)).to_json());
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

const USAGE: &str = "\
usage: events-bench measure --driver null|soft|native [--out FILE] [--rounds N] [--quick]
                            [--only PART,PART]
       events-bench loops   --driver null|soft|native --calls N
       events-bench report  FILE [--driver NAME]

--rounds=30 is the same as --rounds 30. The first lines of benches/src/main.rs have the details.";

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn fail(message: &str) -> ! {
    eprintln!("events-bench: {message}");
    exit(1)
}

fn load() -> Driver {
    Driver::load()
        .unwrap_or_else(|error| fail(&format!("no CUDA driver was found to measure: {error}")))
}

#[derive(Default)]
struct Options {
    /// What to do, and what it is done with.
    words: Vec<String>,
    driver: Option<String>,
    out: Option<String>,
    only: Option<String>,
    rounds: Option<usize>,
    calls: Option<u64>,
    quick: bool,
}

impl Options {
    fn parse() -> Result<Self, lexopt::Error> {
        let mut options = Self::default();
        let mut arguments = Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("help") | Short('h') => options.words = vec![String::from("help")],
                Long("driver") => options.driver = Some(arguments.value()?.string()?),
                Long("out") => options.out = Some(arguments.value()?.string()?),
                Long("only") => options.only = Some(arguments.value()?.string()?),
                Long("rounds") => options.rounds = Some(arguments.value()?.parse()?),
                Long("calls") => options.calls = Some(arguments.value()?.parse()?),
                Long("quick") => options.quick = true,
                Arg::Value(word) => options.words.push(word.string()?),
                other => return Err(other.unexpected()),
            }
        }
        Ok(options)
    }
}

fn rows(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| fail(&format!("{file}: {error}")));
    let read = |(line, text): (usize, &str)| {
        serde_json::from_str(text).unwrap_or_else(|error| {
            fail(&format!(
                "{file}, line {}: {error}: the file was not written by the bench",
                line + 1
            ))
        })
    };
    let rows: Vec<Value> = text.lines().enumerate().map(read).collect();
    for driver in report::drivers(&rows) {
        if let Some(kind) = report::measured_twice(&rows, driver) {
            fail(&format!(
                "{file} has figures of the kind {kind:?} from two runs on driver {driver:?}: \
                 remove those of one run"
            ));
        }
    }
    if rows.is_empty() {
        fail(&format!("{file} is empty"));
    }
    rows
}

/// Runs with this driver as the one that the system's search finds: cudarc has no other way to be
/// given one.
fn with_driver(driver: &str, verb: &str, options: &Options) -> ExitCode {
    if driver == "native" || std::env::var(CHOSEN).is_ok() {
        return if verb == "loops" { count(options) } else { measure(driver, options) };
    }
    let this = std::env::current_exe().expect("the program has a path");
    let library = this.with_file_name(match driver {
        "null" => "libcuda_null.so",
        _ => "libcuda_soft_driver_shared.so",
    });
    let folder = Folder::new();
    for name in ["libcuda.so", "libcuda.so.1"] {
        std::os::unix::fs::symlink(&library, folder.0.join(name)).expect("a link to the driver");
    }
    let status = Command::new(this)
        .args(std::env::args().skip(1))
        .env("LD_LIBRARY_PATH", &folder.0)
        .env(CHOSEN, driver)
        // It would give this crate another driver than the others.
        .env_remove(cuda_events::loader::DRIVER_VARIABLE)
        .status()
        .expect("the program starts again");
    status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code.unsigned_abs() as u8))
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("events-bench-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder for the driver");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A rig, and the process whose event it can open.
fn first_rig() -> (rig::Rig, processes::Exporter) {
    let driver = load();
    let peer = CudaContext::new(0).expect("cudarc finds the driver");
    let exporter = processes::Exporter::start();
    let context = rig::first_context(driver);
    (rig::Rig::new(&context, &peer, exporter.descriptor), exporter)
}

fn count(options: &Options) -> ExitCode {
    let (rig, _exporter) = first_rig();
    loops::count(&rig, options.calls.unwrap_or(1000));
    ExitCode::SUCCESS
}

const PARTS: [&str; 3] = ["operations", "loading", "timelines"];

fn measure(name: &str, options: &Options) -> ExitCode {
    let quick = options.quick;
    let rounds = options.rounds.unwrap_or(if quick { 30 } else { 300 });
    let only: Vec<&str> =
        options.only.as_ref().map_or(PARTS.to_vec(), |only| only.split(',').collect());
    if let Some(unknown) = only.iter().find(|part| !PARTS.contains(part)) {
        fail(&format!("there is no part {unknown:?}; --only needs some of {}", PARTS.join(",")));
    }
    if loops::operations().is_empty() {
        fail(&format!("no operation's name contains the word in {}", loops::MATCHING));
    }
    let driver = load();
    if name != "native" {
        let library = driver.library().and_then(Path::file_name).expect("the library has a name");
        assert_ne!(library, "libcuda.so.1", "the system's search found another driver");
    }
    let context = rig::first_context(driver);
    // Not before there is something to measure.
    let mut out = options.out.as_ref().map(|file| {
        BufWriter::new(
            File::create(file)
                .unwrap_or_else(|error| fail(&format!("{file} cannot be written: {error}"))),
        )
    });
    let mut report = |mut row: Value| {
        row["driver"] = name.into();
        match &mut out {
            Some(out) => {
                writeln!(out, "{row}").and_then(|()| out.flush()).expect("the file can be written")
            }
            None => println!("{row}"),
        }
    };
    report(about(&context));
    let wanted = |part: &str| {
        let wanted = only.contains(&part);
        if wanted {
            eprintln!("{name}: {part}");
        }
        wanted
    };
    rig::make_current(driver.symbols(), context.as_raw());

    // One process has its addresses by chance, and they can make one call some nanoseconds slower
    // than another.
    if wanted("operations") {
        let samples =
            processes::measure_in(processes::OPERATIONS, if quick { 2 } else { 20 }, rounds);
        rounds::Samples::merge(&samples).report(samples.len(), &mut report);
    }
    if wanted("loading") {
        processes::measure_loading(if quick { 5 } else { 31 }, &mut report);
    }
    // Nothing of the null driver's is ever pending.
    if name != "null" && wanted("timelines") {
        timelines::measure(&context, if quick { 50 } else { 1000 }, &mut report);
    }
    ExitCode::SUCCESS
}

/// What the figures were measured on.
fn about(context: &cuda_events::Context) -> Value {
    let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let cpu = text("/proc/cpuinfo");
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("", |(_, name)| name);
    let date = Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]).output();
    let date = date
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    let driver = context.driver();
    // Without the file, whose place says nothing.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_file = |index: usize| {
        let (word, before) =
            (&arguments[index], index.checked_sub(1).map(|before| &arguments[before]));
        word == "--out"
            || word.starts_with("--out=")
            || before.is_some_and(|before| before == "--out")
    };
    let command: Vec<&str> =
        (0..arguments.len()).filter(|&at| !is_file(at)).map(|at| arguments[at].as_str()).collect();
    let command = format!("events-bench {}", command.join(" "));
    let native = text("/proc/driver/nvidia/version");
    let native = native
        .lines()
        .next()
        .and_then(|line| line.split_whitespace().find(|word| word.contains('.')));
    json!({
        "kind": "run",
        "date": date,
        "command": command,
        "cuda": driver.version().to_string(),
        "driver_version": native.unwrap_or(""),
        "device": context.device().name().expect("the device has a name"),
        "cpu": cpu,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "load": text("/proc/loadavg").split(' ').next().unwrap_or_default(),
        "rustc": env!("BENCH_RUSTC"),
        "cc": env!("BENCH_CC"),
        "version": env!("CARGO_PKG_VERSION"),
    })
}
