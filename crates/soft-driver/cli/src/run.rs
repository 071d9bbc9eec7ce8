//! `run`: a program with the driver in place, and what its processes have found.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use cuda_order_check_engine::stand_in::{folder, prepended};

use crate::command::{Failure, VARIABLE};

/// Variables with which a program opens another driver library than that of the loader.
const OTHERS: [&str; 2] = ["CUDA_EVENTS_DRIVER", "NUMBA_CUDA_DRIVER"];

/// What `run` is to do.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    /// Names and values, each right.
    pub(crate) settings: Vec<(String, String)>,
    /// The program to run, and its arguments.
    pub(crate) program: Vec<OsString>,
    /// If the program succeeds and there are findings.
    pub(crate) status: u8,
    /// Whether leaks count as findings.
    pub(crate) leaks_fail: bool,
}

impl Run {
    pub(crate) fn text(&self) -> String {
        let pairs = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(",")
    }

    fn has(&self, name: &str) -> bool {
        self.settings.iter().any(|(known, _)| known == name)
    }
}

/// How the name of a folder of reports begins.
const PREFIX: &str = "cuda-soft-driver-";

/// A folder for what the processes write, removed at the end; locked until then.
struct Reports {
    path: PathBuf,
    folder: File,
}

/// Opens a folder and locks it, unless another process has it. Others can write where it is, so it
/// may be something else by now.
fn lock(folder: &Path) -> Option<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(folder).ok()?;
    // SAFETY: the file is open.
    (unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0).then_some(file)
}

/// Whether the path still leads to the folder that is open.
fn is_at(folder: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, there) = (folder.metadata().map(identity), fs::symlink_metadata(path).map(identity));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

/// Removes the folders of commands that a signal ended before they could.
fn remove_abandoned(base: &Path) {
    // SAFETY: it has no preconditions.
    let user = unsafe { libc::geteuid() };
    let is_abandoned = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let process = name.to_str().and_then(|it| it.strip_prefix(PREFIX)?.split_once('-'));
        let process = process.and_then(|(process, _)| process.parse::<i32>().ok());
        // SAFETY: it sends nothing.
        process.is_some_and(|it| it > 0 && unsafe { libc::kill(it, 0) } != 0)
            && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
            && entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user)
    };
    for entry in fs::read_dir(base).into_iter().flatten().flatten().filter(is_abandoned) {
        // The process may live where processes have other numbers, as in a container.
        if let Some(_locked) = lock(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Reports {
    fn new() -> Result<Self, String> {
        // A child may have another current folder. The setting cannot have a comma or white space.
        let temporary = std::path::absolute(std::env::temp_dir()).ok();
        let is_text =
            |it: &PathBuf| it.to_str().is_some_and(|it| !it.contains([',', ' ', '\t', '\n']));
        let base = temporary.filter(is_text).unwrap_or_else(|| PathBuf::from("/tmp"));
        remove_abandoned(&base);
        for number in 0..1000 {
            let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                // Until it is locked, a command in another namespace of processes takes it for
                // abandoned.
                Ok(()) => match lock(&path).filter(|folder| is_at(folder, &path)) {
                    Some(folder) => return Ok(Self { path, folder }),
                    None => continue,
                },
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Err(format!(
            "{} has too many folders of this command, or cannot lock one",
            base.display()
        ))
    }

    /// The texts of a kind, each with its process. Each report counts, so one that cannot be read is
    /// an error.
    fn of(&self, kind: &str) -> Result<Vec<(u32, String)>, String> {
        let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        if !is_at(&self.folder, &self.path) {
            return Err(format!("{} was removed", self.path.display()));
        }
        let entries = fs::read_dir(&self.path).map_err(|error| failed(&self.path, error))?;
        let mut texts = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed(&self.path, error))?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let Some(process) = name.strip_prefix(kind).and_then(|rest| rest.parse().ok()) else {
                continue;
            };
            let text = fs::read(entry.path()).map_err(|error| failed(&entry.path(), error))?;
            texts.push((process, String::from_utf8_lossy(&text).trim_end().to_owned()));
        }
        texts.sort();
        Ok(texts)
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        if is_at(&self.folder, &self.path) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Runs the program. There is no text for standard output.
pub(crate) fn run(wanted: &Run, own: &Path) -> Result<(String, u8), Failure> {
    let folder = folder("cuda-soft-driver", own)?;
    let reports = Reports::new()?;
    let mut text = wanted.text();
    let order = wanted.settings.iter().find(|(name, _)| name == "order");
    let checks_order = order.is_some_and(|(_, value)| value != "off");
    let place = reports.path.display();
    if checks_order && !wanted.has("order_log") {
        text += &format!(",order_log={place}/order-%p");
    }
    let reports_leaks = wanted.settings.contains(&("leaks".to_owned(), "report".to_owned()));
    if reports_leaks && !wanted.has("leaks_log") {
        text += &format!(",leaks_log={place}/leaks-%p");
    }
    let (name, arguments) = wanted.program.split_first().ok_or("there is no program")?;
    let mut command = Command::new(name);
    command.args(arguments).env(VARIABLE, text);
    command.env("LD_LIBRARY_PATH", prepended("LD_LIBRARY_PATH", &folder));
    for other in OTHERS {
        command.env_remove(other);
    }
    handle_signals();
    let mut child = command.spawn().map_err(|error| Failure {
        text: format!("{} cannot be started: {error}", name.display()),
        code: if error.kind() == ErrorKind::NotFound { 127 } else { 126 },
    })?;
    let process = i32::try_from(child.id()).unwrap_or(0);
    CHILD.store(process, Ordering::Relaxed);
    send(EARLY.swap(0, Ordering::Relaxed), process);
    let ended = child.wait().map_err(|error| format!("the program is lost: {error}"))?;
    CHILD.store(0, Ordering::Relaxed);
    Ok((String::new(), conclude(wanted, &reports, ended)))
}

/// The program, which gets the signals that end this process; 0 before its start and after its end.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the start.
static EARLY: AtomicI32 = AtomicI32::new(0);

fn send(signal: libc::c_int, child: i32) {
    if child > 0 && signal != 0 {
        // SAFETY: it may be called in the handler of a signal, and has no preconditions.
        unsafe { libc::kill(child, signal) };
    }
}

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO it is the information of the signal.
    let code = unsafe { (*info).si_code };
    // A terminal sends these to the program as well. What processes send has no code above 0.
    let is_keyboard = matches!(signal, libc::SIGINT | libc::SIGQUIT);
    if is_keyboard && code > 0 {
        return;
    }
    match CHILD.load(Ordering::Relaxed) {
        0 => EARLY.store(signal, Ordering::Relaxed),
        child => send(signal, child),
    }
}

/// Before the start: a program starts with the usual handlers.
fn handle_signals() {
    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: zeros are a valid value. The handler has this signature with SA_SIGINFO, and makes
        // one call at most, which may be made there. What this process was started without stays so.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut old);
            if old.sa_sigaction != libc::SIG_IGN {
                let mut new: libc::sigaction = std::mem::zeroed();
                new.sa_sigaction = pass_on as Handler as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(signal, &new, std::ptr::null_mut());
            }
        }
    }
}

/// Prints what the processes have found, and returns the status.
fn conclude(wanted: &Run, reports: &Reports, ended: ExitStatus) -> u8 {
    let read = reports.of("order-").and_then(|found| Ok((found, reports.of("leaks-")?)));
    let (found, leaks, lost) = match read {
        Ok((found, leaks)) => (found, leaks, None),
        Err(error) => (Vec::new(), Vec::new(), Some(error)),
    };
    let is_error = |line: &&str| {
        line.starts_with("error: ") || line.starts_with("{\"severity\":\"error\"")
    };
    let errors: usize = found.iter().map(|(_, text)| text.lines().filter(is_error).count()).sum();
    // A process without findings has written its summary alone.
    let findings = found.iter().filter(|(_, text)| {
        !text.starts_with("order checker: ") && !text.starts_with("{\"severity\":\"summary\"")
    });
    let mut text = String::new();
    for (process, finding) in findings.chain(&leaks) {
        text += &format!("cuda-soft-driver: process {process}: {finding}\n");
    }
    if !found.is_empty() {
        let s = |count| if count == 1 { "" } else { "s" };
        let (processes, plural) = (found.len(), if found.len() == 1 { "" } else { "es" });
        text += &format!(
            "cuda-soft-driver: missing order: {errors} finding{} in {processes} process{plural}\n",
            s(errors)
        );
    }
    if let Some(error) = &lost {
        text += &format!("cuda-soft-driver: the reports are lost: {error}\n");
    }
    let order = wanted.settings.iter().find(|(name, _)| name == "order");
    // A static program, or one with raised privileges, loads none.
    if found.is_empty() && lost.is_none() && order.is_some_and(|(_, value)| value != "off") && !wanted.has("order_log") {
        text += "cuda-soft-driver: no process has reported: none loaded the driver, or a signal ended \
                 it\n";
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
    match ended.code() {
        // What is not known may be a finding.
        Some(0) if lost.is_some() || errors > 0 || (wanted.leaks_fail && !leaks.is_empty()) => wanted.status,
        Some(code) => u8::try_from(code).unwrap_or(1),
        None => ended.signal().and_then(|it| u8::try_from(128 + it).ok()).unwrap_or(255),
    }
}
