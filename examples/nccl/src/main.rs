//! NCCL's all-reduce between the events of this crate.
//!
//! Each rank has a GPU and two streams, one for compute and one for communication. In each round
//! the compute stream writes the input. An event releases the communication stream, in which NCCL
//! reduces. Another event releases the compute stream, which copies the sum. A timeline then
//! signals the host. No rank waits for its GPU in between.
//!
//! `--without before` or `--without after` omits one of the two waits. The sums must then be wrong:
//! the program ends with 0 if they are.

#[path = "../../memory/mod.rs"]
mod memory;
mod nccl;
mod rank;
mod transports;

use std::ffi::OsString;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use cuda_events::Driver;
use lexopt::Arg::{Long, Short};
use lexopt::Parser;

use crate::nccl::{Comm, NAME, Nccl, UniqueId};
use crate::rank::{Rank, Result, Without};
use crate::transports::Logs;

const USAGE: &str = "\
usage: nccl [--processes] [--ranks N] [--rounds N] [--mib N]
            [--without before|after] [--transports] [--library PATH]

Runs all-reduces of 32 MiB, or --mib, between N GPUs (default: 2), in one process, or with
--processes in one process for each GPU. NCCL is loaded from --library, or as libnccl.so.2 from the
linker's search path. NCCL reads its own variables: NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 sends all
bytes through sockets, as between machines. NVLink multicast is off: the program sets
NCCL_NVLS_ENABLE=0.

--without omits one wait and expects wrong sums. --transports prints the transport of each
connection, from NCCL's log.

exit code: 0 the sums are as expected, 1 they are not, or a call failed, 2 a bad option
";

/// The time limit for all rounds of a process, which may have to load code and to connect.
const LIMIT: Duration = Duration::from_secs(150);

struct Options {
    processes: bool,
    ranks: usize,
    rounds: u32,
    /// The words of each buffer.
    words: usize,
    without: Without,
    transports: bool,
    library: OsString,
    /// In a process that is one rank.
    rank: Option<(usize, UniqueId)>,
}

impl Options {
    /// The options, or none for `--help`.
    fn parse() -> std::result::Result<Option<Self>, String> {
        let mut options = Self {
            processes: false,
            ranks: 2,
            rounds: 20,
            words: 32 << 18,
            without: Without::Nothing,
            transports: false,
            library: NAME.into(),
            rank: None,
        };
        let (mut arguments, mut rank, mut id) = (Parser::from_env(), None, None);
        let text = |error: lexopt::Error| error.to_string();
        while let Some(argument) = arguments.next().map_err(text)? {
            let name = match argument {
                Long("help") | Short('h') => return Ok(None),
                Long(name) => name.to_owned(),
                other => return Err(text(other.unexpected())),
            };
            let mut value = || arguments.value().map_err(text);
            let number = |text: OsString, least: u16| {
                let number = text.to_str().and_then(|text| text.parse::<u16>().ok());
                number
                    .filter(|number| *number >= least)
                    .ok_or(format!("--{name} needs a number from {least} to {}", u16::MAX))
            };
            match &*name {
                "processes" => options.processes = true,
                "ranks" => options.ranks = number(value()?, 1)?.into(),
                "rounds" => options.rounds = number(value()?, 1)?.into(),
                "mib" => options.words = usize::from(number(value()?, 1)?) << 18,
                "transports" => options.transports = true,
                "library" => options.library = value()?,
                "without" => {
                    options.without = match value()?.to_str() {
                        Some("before") => Without::Before,
                        Some("after") => Without::After,
                        _ => return Err("--without needs before or after".to_owned()),
                    }
                }
                "rank" => rank = Some(number(value()?, 0)?.into()),
                "id" => id = Some(from_hex(&value()?.to_string_lossy()).ok_or("a bad id")?),
                _ => return Err(format!("--{name} is not an option")),
            }
        }
        options.rank = rank.zip(id);
        Ok(Some(options))
    }
}

fn to_hex(id: &UniqueId) -> String {
    id.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<UniqueId> {
    let mut id = UniqueId([0; 128]);
    if text.len() != 2 * id.0.len() {
        return None;
    }
    for (nth, byte) in id.0.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * nth..2 * nth + 2)?, 16).ok()?;
    }
    Some(id)
}

/// All rounds of the ranks of this process, which are those from `first` on.
fn rounds(
    options: &Options,
    nccl: &Nccl,
    first: usize,
    ranks: &[Rank],
    comms: &[Comm],
) -> Result<bool> {
    let (mut wrong_rounds, mut times) = (0, Vec::new());
    for round in 0..options.rounds {
        let started = Instant::now();
        for rank in ranks {
            rank.before(round, options.without)?;
        }
        nccl.group(|| ranks.iter().zip(comms).try_for_each(|(rank, comm)| rank.all_reduce(comm)))?;
        let points =
            ranks.iter().map(|rank| rank.after(options.without)).collect::<Result<Vec<_>>>()?;
        let mut wrong = 0;
        for ((rank, comm), point) in ranks.iter().zip(comms).zip(&points) {
            wrong += rank.wrong(round, options.ranks, point, comm)?;
        }
        wrong_rounds += u32::from(wrong > 0);
        times.push(started.elapsed());
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let last = first + ranks.len() - 1;
    println!(
        "ranks {first} to {last} of {}: {} rounds of {} MiB, {wrong_rounds} with wrong sums; a \
         round took {:.2} ms (p50)",
        options.ranks,
        options.rounds,
        options.words >> 18,
        median.as_secs_f64() * 1e3
    );
    Ok(match options.without {
        Without::Nothing => wrong_rounds == 0,
        Without::Before | Without::After => wrong_rounds > 0,
    })
}

/// Ends the process if it waits too long, for example for a peer that does not come.
fn limit() {
    std::thread::spawn(|| {
        std::thread::sleep(LIMIT);
        eprintln!("nccl: the rounds did not end within {} s", LIMIT.as_secs());
        std::process::exit(1);
    });
}

/// One process for all GPUs, or for one.
fn run_here(options: &Options) -> Result<bool> {
    limit();
    let driver = Driver::load()?;
    let nccl = Nccl::load(&options.library)?;
    let (ranks, first): (Vec<usize>, usize) = match &options.rank {
        Some((rank, _)) => (vec![*rank], *rank),
        None => ((0..options.ranks).collect(), 0),
    };
    let ranks = ranks.into_iter().map(|rank| Rank::new(driver, rank, options.words));
    let ranks = ranks.collect::<Result<Vec<_>>>()?;
    let comms = match (&options.rank, ranks.first()) {
        (Some((rank, id)), Some(own)) => {
            let _current = own.context().make_current()?;
            vec![nccl.init_rank(options.ranks, *id, *rank)?]
        }
        _ => {
            println!("NCCL {}, driver for CUDA {}", nccl.version()?, driver.version());
            nccl.init_all(options.ranks)?
        }
    };
    let right = rounds(options, &nccl, first, &ranks, &comms)?;
    comms.into_iter().try_for_each(Comm::destroy)?;
    Ok(right)
}

/// A process that is killed with its parent's failure.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run_processes(options: &Options) -> Result<bool> {
    // The id names a socket of this process, which must live until all have connected.
    let nccl = Nccl::load(&options.library)?;
    println!("NCCL {}, {} processes", nccl.version()?, options.ranks);
    let id = to_hex(&nccl.unique_id()?);
    let mut children = Vec::new();
    for rank in 0..options.ranks {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--library").arg(&options.library);
        command.args(["--ranks", &options.ranks.to_string()]);
        command.args(["--rounds", &options.rounds.to_string()]);
        command.args(["--mib", &(options.words >> 18).to_string()]);
        match options.without {
            Without::Nothing => {}
            Without::Before => _ = command.args(["--without", "before"]),
            Without::After => _ = command.args(["--without", "after"]),
        }
        command.args(["--rank", &rank.to_string(), "--id", &id]);
        children.push(Killed(command.spawn()?));
    }
    for (rank, child) in children.iter_mut().enumerate() {
        // The process has printed the reason.
        if !child.0.wait()?.success() {
            return Err(format!("the process of rank {rank} failed").into());
        }
    }
    Ok(true)
}

/// Sets NCCL's variables, which it reads when it starts.
///
/// # Safety
///
/// As for [`std::env::set_var`]: no other thread runs.
unsafe fn prepare(options: &Options) -> std::io::Result<Option<Logs>> {
    // SAFETY: the caller's promise.
    unsafe { std::env::set_var("NCCL_NVLS_ENABLE", "0") };
    if options.rank.is_none() {
        println!("NVLink multicast is off (NCCL_NVLS_ENABLE=0)");
    }
    // SAFETY: the same.
    options.transports.then(|| unsafe { Logs::new() }).transpose()
}

fn main() -> ExitCode {
    let options = match Options::parse() {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprint!("nccl: {what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // SAFETY: no other thread runs yet.
    let logs = match unsafe { prepare(&options) } {
        Ok(logs) => logs,
        Err(error) => {
            eprintln!("nccl: no folder for NCCL's logs: {error}");
            return ExitCode::FAILURE;
        }
    };
    let run = match options.processes {
        true => run_processes(&options),
        false => run_here(&options),
    };
    if let (Some(logs), Ok(_)) = (logs, &run) {
        let wrong = match logs.print() {
            Ok(true) => None,
            Ok(false) => Some("it names no transport".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(wrong) = wrong {
            eprintln!("nccl: NCCL's log, kept in {}: {wrong}", logs.keep().display());
            return ExitCode::FAILURE;
        }
    }
    match (run, options.without) {
        // The parent says it for all.
        (Ok(true), _) if options.rank.is_some() => {}
        (Ok(true), Without::Nothing) => println!("all sums are right"),
        (Ok(true), _) => println!("without the wait some sums are wrong, as expected"),
        (Ok(false), Without::Nothing) => {
            eprintln!("nccl: some sums are wrong");
            return ExitCode::FAILURE;
        }
        (Ok(false), _) => {
            eprintln!("nccl: without the wait all sums were right, so this run proves nothing");
            return ExitCode::FAILURE;
        }
        (Err(error), _) => {
            eprintln!("nccl: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
