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

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cuda_events::Driver;
use lexopt::Arg::{Long, Short};
use lexopt::Parser;

use crate::nccl::{Comm, NAME, Nccl};
use crate::rank::{Rank, Result, Without};

const USAGE: &str = "\
usage: nccl [--ranks N] [--rounds N] [--mib N] [--without before|after] [--library PATH]

Runs all-reduces of 32 MiB, or --mib, between N GPUs (default: 2). NCCL is loaded from --library, or
as libnccl.so.2 from the linker's search path. NCCL reads its own variables: NCCL_P2P_DISABLE=1
NCCL_SHM_DISABLE=1 sends all bytes through sockets, as between machines. NVLink multicast is off: the
program sets NCCL_NVLS_ENABLE=0.

--without omits one wait and expects wrong sums.

exit code: 0 the sums are as expected, 1 they are not, or a call failed, 2 a bad option
";

/// The time limit for all rounds, which may have to load code and to connect.
const LIMIT: Duration = Duration::from_secs(150);

struct Options {
    ranks: usize,
    rounds: u32,
    /// The words of each buffer.
    words: usize,
    without: Without,
    library: OsString,
}

impl Options {
    /// The options, or none for `--help`.
    fn parse() -> std::result::Result<Option<Self>, String> {
        let mut options = Self {
            ranks: 2,
            rounds: 20,
            words: 32 << 18,
            without: Without::Nothing,
            library: NAME.into(),
        };
        let mut arguments = Parser::from_env();
        let text = |error: lexopt::Error| error.to_string();
        while let Some(argument) = arguments.next().map_err(text)? {
            let name = match argument {
                Long("help") | Short('h') => return Ok(None),
                Long(name) => name.to_owned(),
                other => return Err(text(other.unexpected())),
            };
            let mut value = || arguments.value().map_err(text);
            let number = |text: OsString| {
                let number = text.to_str().and_then(|text| text.parse::<u16>().ok());
                number
                    .filter(|number| *number >= 1)
                    .ok_or(format!("--{name} needs a number from 1 to {}", u16::MAX))
            };
            match &*name {
                "ranks" => options.ranks = number(value()?)?.into(),
                "rounds" => options.rounds = number(value()?)?.into(),
                "mib" => options.words = usize::from(number(value()?)?) << 18,
                "library" => options.library = value()?,
                "without" => {
                    options.without = match value()?.to_str() {
                        Some("before") => Without::Before,
                        Some("after") => Without::After,
                        _ => return Err("--without needs before or after".to_owned()),
                    }
                }
                _ => return Err(format!("--{name} is not an option")),
            }
        }
        Ok(Some(options))
    }
}

fn rounds(options: &Options, nccl: &Nccl, ranks: &[Rank], comms: &[Comm]) -> Result<bool> {
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
    println!(
        "{} ranks: {} rounds of {} MiB, {wrong_rounds} with wrong sums; a round took {:.2} ms (p50)",
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

fn run(options: &Options) -> Result<bool> {
    limit();
    let driver = Driver::load()?;
    let nccl = Nccl::load(&options.library)?;
    let ranks = (0..options.ranks).map(|rank| Rank::new(driver, rank, options.words));
    let ranks = ranks.collect::<Result<Vec<_>>>()?;
    println!("NCCL {}, driver for CUDA {}", nccl.version()?, driver.version());
    let comms = nccl.init_all(options.ranks)?;
    let right = rounds(options, &nccl, &ranks, &comms)?;
    comms.into_iter().try_for_each(Comm::destroy)?;
    Ok(right)
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
    // SAFETY: no other thread runs yet. NCCL reads the variable when it starts.
    unsafe { std::env::set_var("NCCL_NVLS_ENABLE", "0") };
    match (run(&options), options.without) {
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
