//! The command `cuda-driver-rules`: starts itself once for each rule, and reports what differs.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use cuda_test_harness::child::{end_after, how_it_failed, own_binary, starting};
use cuda_test_harness::{DRIVER_VARIABLE, SHARED_AT};
use lexopt::Arg::{Long, Short};
use lexopt::Parser;
use serde_json::{Value, json};

use crate::rules::NOT_RUN;
use crate::*;

const HELP: &str = "\
Compares a CUDA driver library with what cards and NVIDIA's driver do, rule by rule.

  cuda-driver-rules [--library PATH] [--only TEXT] [--jobs N] [--json]
  cuda-driver-rules --list | --help

  --library PATH  the library; without it this machine's libcuda.so.1
  --only TEXT     the rules whose names begin with this, such as events or events.query
  --jobs N        how many rules run at a time: as many as there are processors, up to 8
  --json          the report as one JSON object
  --list          the names of all rules

Each rule runs in a process of its own, so one that crashes or hangs is an answer. A rule is `same`
if the library answers as cards do, `differs` if not, and `not asked` if it cannot run: a card leaves
it undefined, there is one device, or the library is of an older CUDA version than the rule. The
software driver is set up for each rule; see CUDA_SOFT_DRIVER.

The status is 0 if no rule differs, 1 if one does, 2 if the library or an option is wrong.
";

/// A rule, or a process that rules start, and its name.
type Named = (&'static str, fn());

/// All rules by subject, in the order of the report.
const SUBJECTS: &[(&str, &[&[Named]])] = &[
    ("lookup", &[lookup::RULES]),
    ("initialisation", &[initialisation::RULES]),
    ("contexts", &[contexts::RULES]),
    ("events", &[events::RULES]),
    ("elapsed", &[elapsed::RULES]),
    ("streams", &[streams::RULES]),
    ("legacy", &[legacy::RULES]),
    #[cfg(target_os = "linux")]
    ("values", &[values::RULES]),
    ("memory", &[memory::RULES]),
    ("virtual_memory", &[virtual_memory::RULES]),
    ("synchronous", &[synchronous::RULES]),
    ("waits", &[waits::RULES]),
    #[cfg(target_os = "linux")]
    ("external", &[external::RULES]),
    ("host_functions", &[host_functions::RULES]),
    ("capture", &[capture::RULES]),
    ("capture_calls", &[capture_calls::RULES]),
    ("graphs", &[graphs::RULES]),
    ("edits", &[edits::RULES]),
    ("nodes", &[nodes::RULES]),
    ("ipc", &[ipc::RULES]),
    ("errors", &[errors::RULES]),
    ("process", &[process::RULES]),
    ("devices", &[devices::RULES]),
    ("green", &[green::RULES]),
    ("undefined", &[undefined::RULES, undefined::MISUSES]),
];

/// Processes that rules start, beside those of the rules.
const OTHERS: &[Named] = &[
    (HEAD, log::head),
    ("devices::visible", devices::visible),
    ("ipc::peer", ipc::peer),
    ("memory::importer", memory::importer),
    #[cfg(target_os = "linux")]
    ("values::peer", values::peer),
];

const HEAD: &str = "log::head";
/// Whether a process may run a rule that has to be alone.
const TURN: &str = "CUDA_DRIVER_RULES_TURN";
/// What the process of such a rule prints otherwise.
const LATER: &str = "later";

/// Seconds that a rule may take: for calls that never return, not for slow ones. Eight processes that
/// share a GPU take turns there. A process that a rule starts has half of it.
const LIMIT: u32 = 240;

pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "--exact") {
        return child(&arguments.next().unwrap_or_default().to_string_lossy());
    }
    let (text, code) = match parse(Parser::from_env()).and_then(|wanted| wanted.run()) {
        Ok(done) => done,
        Err(what) => {
            eprintln!("cuda-driver-rules: {what}");
            return ExitCode::from(2);
        }
    };
    // Whoever reads may be gone.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(code)
}

/// A process of this command's: one rule, as the test harness would run it.
fn child(name: &str) -> ExitCode {
    let rules = SUBJECTS.iter().flat_map(|(subject, lists)| {
        lists
            .iter()
            .copied()
            .flatten()
            .map(move |(rule, body)| (format!("{subject}::{rule}"), *body))
    });
    let others = OTHERS.iter().map(|(other, body)| ((*other).to_owned(), *body));
    let Some((name, body)) = rules.chain(others).find(|(known, _)| known == name) else {
        return ExitCode::from(2);
    };
    println!("running 1 test");
    if cuda_test_harness::child::role().is_none() {
        end_after(LIMIT);
    }
    let thread = thread::Builder::new().name(name).spawn(body);
    match thread.map(thread::JoinHandle::join) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::from(101),
    }
}

/// Whether a rule that has to be alone waits for its turn: then the process ends, and the command
/// starts another one when all others have ended.
pub fn waits_for_its_turn(undisturbed: bool) -> bool {
    let waits = undisturbed && std::env::var_os(TURN).is_none();
    if waits {
        println!("{LATER}");
    }
    waits
}

#[derive(Debug)]
struct Wanted {
    library: Option<PathBuf>,
    /// It is asked more than others: what cards leave undefined, and it is set up for each rule.
    is_software: bool,
    only: String,
    jobs: usize,
    json: bool,
    /// What is printed in place of a report.
    show: Option<String>,
}

/// The name of a rule in the report and in the rule book.
fn id(subject: &str, name: &str) -> String {
    format!("{subject}.{name}").replace('_', "-")
}

fn parse(mut arguments: Parser) -> Result<Wanted, String> {
    let jobs = thread::available_parallelism().map_or(1, usize::from).min(8);
    let mut wanted = Wanted {
        library: None,
        is_software: false,
        only: String::new(),
        jobs,
        json: false,
        show: None,
    };
    let text = |error: lexopt::Error| format!("{error}\n\n{HELP}");
    while let Some(argument) = arguments.next().map_err(text)? {
        match argument {
            Long("json") => wanted.json = true,
            Long("library") => {
                let path = PathBuf::from(arguments.value().map_err(text)?);
                // Where it is, or nothing would be compared with what is elsewhere.
                let found = path.metadata().and_then(|_| std::path::absolute(&path));
                let found = found.map_err(|error| format!("{}: {error}", path.display()))?;
                const MARK: &[u8] = b"\0cuda_soft_driver_control\0";
                let bytes = std::fs::read(&found).unwrap_or_default();
                wanted.is_software = bytes.windows(MARK.len()).any(|at| at == MARK);
                wanted.library = Some(found);
            }
            Long("only") => {
                let only = arguments.value().map_err(text)?;
                wanted.only = only.to_string_lossy().replace('_', "-");
            }
            Long("jobs") => {
                let number = arguments.value().map_err(text)?;
                let number = number.to_str().and_then(|text| text.parse().ok());
                wanted.jobs = number.filter(|number| *number > 0).ok_or("--jobs: use 1 or more")?;
            }
            Long("help") | Short('h') => wanted.show = Some(HELP.to_owned()),
            Long("list") => {
                wanted.show = Some(names("").iter().fold(String::new(), |mut all, (id, _)| {
                    let _ = writeln!(all, "{id}");
                    all
                }));
            }
            other => return Err(text(other.unexpected())),
        }
    }
    if names(&wanted.only).is_empty() {
        return Err(format!("no rule begins with `{}`: --list lists them", wanted.only));
    }
    Ok(wanted)
}

/// The names of the rules that begin so, each with that of its process.
fn names(begin: &str) -> Vec<(String, String)> {
    let all = SUBJECTS.iter().flat_map(|(subject, lists)| {
        let names = lists.iter().copied().flatten();
        names.map(move |(name, _)| (id(subject, name), format!("{subject}::{name}")))
    });
    all.filter(|(id, _)| id.starts_with(begin)).collect()
}

/// What a process has printed, and how it ended if it did not end well.
struct Said {
    lines: Vec<String>,
    errors: String,
    badly: Option<String>,
}

impl Said {
    /// The rest of the line that begins so.
    fn line(&self, kind: &str, name: &str) -> Option<&str> {
        let begin = format!("{kind} {name} | ");
        self.lines.iter().find_map(|line| line.strip_prefix(&begin))
    }
}

#[derive(Clone, Debug)]
struct Outcome {
    id: String,
    statement: String,
    library: String,
    cards: String,
}

impl Outcome {
    fn result(&self) -> &'static str {
        match () {
            () if self.library.starts_with(NOT_RUN) => "not asked",
            () if self.library == self.cards => "same",
            () => "differs",
        }
    }

    fn subject(&self) -> &str {
        self.id.split('.').next().unwrap_or_default()
    }
}

impl Wanted {
    fn run(&self) -> Result<(String, u8), String> {
        if let Some(text) = &self.show {
            return Ok((text.clone(), 0));
        }
        let shown = match &self.library {
            Some(path) => path.display().to_string(),
            None => "libcuda.so.1".to_owned(),
        };
        let head = self.start(HEAD, false)?;
        let Some(driver) = head.line("head", "driver") else {
            let what = head.errors.lines().find(|line| {
                let line = line.trim();
                !line.is_empty() && !line.starts_with("thread '") && !line.starts_with("note: ")
            });
            let what = what.unwrap_or_default().trim();
            let end = head.badly.unwrap_or_default();
            return Err(match what {
                "" => format!("{shown} cannot be used as a CUDA driver: the process {end}"),
                what => format!("{shown} cannot be used as a CUDA driver: {what}"),
            });
        };
        let device = head.line("head", "device").unwrap_or_default();
        let outcomes = self.outcomes()?;
        let count = |result| outcomes.iter().filter(|it| it.result() == result).count();
        let [same, differ, not_asked] = ["same", "differs", "not asked"].map(count);
        let text = if self.json {
            let rules = outcomes.iter().map(|it| {
                let mut rule = json!({
                    "rule": it.id,
                    "subject": it.subject(),
                    "statement": it.statement,
                    "result": it.result(),
                    "cards": it.cards,
                });
                match it.library.strip_prefix(NOT_RUN) {
                    Some(reason) => rule["reason"] = json!(reason),
                    None => rule["library"] = json!(it.library),
                }
                rule
            });
            let report = json!({
                "library": shown,
                "driver": driver,
                "device": device,
                "same": same,
                "differs": differ,
                "not_asked": not_asked,
                "rules": rules.collect::<Vec<Value>>(),
            });
            format!("{report:#}\n")
        } else {
            let mut text = format!("{shown}: {driver}, {device}\n\n");
            for (subject, _) in SUBJECTS {
                let subject = subject.replace('_', "-");
                let of: Vec<_> = outcomes.iter().filter(|it| it.subject() == subject).collect();
                if !of.is_empty() {
                    text += &about_subject(&subject, &of);
                }
            }
            let all = outcomes.len();
            let _ = writeln!(
                text,
                "\n{all} rules: {same} same, {differ} differ{}, {not_asked} not asked",
                if differ == 1 { "s" } else { "" }
            );
            text
        };
        Ok((text, u8::from(differ > 0)))
    }

    /// Starts this program for a rule, or for the head.
    fn start(&self, name: &str, alone: bool) -> Result<Said, String> {
        let mut command = starting(&own_binary());
        command.args(["--exact", name]).stdin(Stdio::null());
        match &self.library {
            Some(path) if self.is_software => {
                command.env(DRIVER_VARIABLE, format!("{SHARED_AT}{}", path.display()))
            }
            Some(path) => command.env(DRIVER_VARIABLE, path),
            None => command.env(DRIVER_VARIABLE, "native"),
        };
        if alone {
            command.env(TURN, "1");
        }
        let output = command.output().map_err(|error| format!("this program: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Said {
            lines: text(&output.stdout).lines().map(str::to_owned).collect(),
            errors: text(&output.stderr),
            badly: how_it_failed(output.status),
        })
    }

    /// Runs all rules, several at a time, and then those that have to be alone.
    fn outcomes(&self) -> Result<Vec<Outcome>, String> {
        let all = names(&self.only);
        let (count, order) = (all.len(), all.clone());
        let queue = Mutex::new(VecDeque::from(all));
        let (done, later) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let shows = std::io::stderr().is_terminal();
        let worker = || -> Result<(), String> {
            while let Some((id, process)) = take() {
                let said = self.start(&process, false)?;
                if said.lines.iter().any(|line| line == LATER) {
                    later.lock().unwrap_or_else(PoisonError::into_inner).push((id, process));
                    continue;
                }
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push(outcome(&id, &said));
                if shows {
                    eprint!("\r{} of {count}", done.len());
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            })
        })?;
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (id, process) in later.into_inner().unwrap_or_else(PoisonError::into_inner) {
            done.push(outcome(&id, &self.start(&process, true)?));
        }
        if shows {
            eprint!("\r                \r");
        }
        done.sort_by_key(|outcome| order.iter().position(|(id, _)| *id == outcome.id));
        Ok(done)
    }
}

/// What the process of a rule has found.
fn outcome(id: &str, said: &Said) -> Outcome {
    let ended = said.badly.as_ref().map(|badly| format!("the process {badly}"));
    let library = match (said.line("rule", id), ended) {
        // The harness fails a test that differs.
        (Some(answer), Some(end)) if !end.contains("failed with") => {
            format!("{answer}; then {end}")
        }
        (Some(answer), _) => answer.to_owned(),
        (None, Some(end)) => {
            let last = said.errors.lines().rfind(|line| !line.trim().is_empty());
            last.map_or(end.clone(), |last| format!("{end}: {}", last.trim()))
        }
        (None, None) => "the process ended, and answered nothing".to_owned(),
    };
    // A function that is looked up at run time.
    let library = library.replace("panicked: the driver has no ", "there is no ");
    let library = library.replace("panicked: ", "stopped: ");
    let about = said.line("about", id).and_then(|about| about.split_once(" | "));
    Outcome {
        id: id.to_owned(),
        statement: about.map(|(_, statement)| statement.to_owned()).unwrap_or_default(),
        library,
        cards: said.line("cards", id).unwrap_or_default().to_owned(),
    }
}

/// A subject's line, the rules that differ, and why others were not asked.
fn about_subject(subject: &str, of: &[&Outcome]) -> String {
    let with = |result: &str| of.iter().filter(|it| it.result() == result).collect::<Vec<_>>();
    let [same, differ, not_asked] = ["same", "differs", "not asked"].map(with);
    let mut text = format!("{subject:<16} {:>3} same", same.len());
    let differs = if differ.len() == 1 { "differs" } else { "differ" };
    for (count, what) in [(differ.len(), differs), (not_asked.len(), "not asked")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text.push('\n');
    for it in differ {
        let _ = write!(
            text,
            "  differs: {}\n    {}\n    this library: {}\n    cards:        {}\n",
            it.id, it.statement, it.library, it.cards
        );
    }
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for it in not_asked {
        let reason = it.library.strip_prefix(NOT_RUN).unwrap_or_default();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    for (reason, count) in reasons {
        let _ = writeln!(text, "  not asked: {count}, {reason}");
    }
    text
}
