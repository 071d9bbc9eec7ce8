//! `doctor`: whether a program would get the driver.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use cuda_order_check::stand_in::{before, folder};
use cuda_soft_driver::Builder;

use crate::command::{Failure, VARIABLE};
use crate::run::OTHERS;

/// A name that only the software driver exports.
const MARK: &[u8] = b"\0cuda_soft_driver_control\0";

/// Whether a file is the software driver.
pub(crate) fn is_software(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|at| at == MARK))
}

/// What the loader gives to a program that asks for the driver's library.
#[derive(Debug)]
enum Given {
    Software(PathBuf),
    Other(PathBuf),
    /// And what the loader says.
    Nothing(String),
}

/// The report, and the status: 0 if the program gets the driver with `run`, otherwise 1.
pub(crate) fn doctor(own: &Path, program: Option<OsString>) -> Result<(String, u8), Failure> {
    let mut text = String::new();
    let mut line = |level: &str, check: &str, what: &str| {
        text += &format!("{level:<6} {check:<10} {what}\n");
    };
    let mut wrong = false;
    let settings = std::env::var(VARIABLE).unwrap_or_default();
    match Builder::from_text(&settings) {
        Ok(_) if settings.is_empty() => line("ok", "settings", &format!("{VARIABLE} is not set")),
        Ok(_) => line("ok", "settings", &format!("{VARIABLE}={settings}")),
        Err(what) => {
            line("wrong", "settings", &format!("{VARIABLE}: {what}"));
            wrong = true;
        }
    }
    let shown = program.as_deref().unwrap_or(OsStr::new("PROGRAM"));
    let shown = shown.display();
    let (path, loader) = match look(program.as_deref().unwrap_or(OsStr::new("sh")), own) {
        Ok(found) => found,
        Err(what) => {
            line("wrong", "program", &what);
            text += &format!("\n{shown} does not get the software driver\n");
            return Ok((text, 1));
        }
    };
    let about = match &program {
        None => ", as an example",
        Some(program) if path.ends_with(Path::new(program).file_name().unwrap_or_default()) => "",
        Some(_) => ", which runs the script",
    };
    line("ok", "program", &format!("{}{about}", path.display()));
    let with = folder("cuda-soft-driver", own)?;
    let library_path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let here = ask(&loader, &path, &library_path);
    match &here {
        Given::Software(path) => {
            line("ok", "here", &format!("{} is the software driver", path.display()));
        }
        Given::Other(path) => {
            line("note", "here", &format!("{} is another driver", path.display()));
        }
        Given::Nothing(_) => line("note", "here", "there is no libcuda.so.1"),
    }
    let mut named = false;
    for name in OTHERS {
        if let Some(path) = std::env::var_os(name).filter(|path| !path.is_empty()) {
            named |= !is_software(Path::new(&path));
            line("note", "here", &format!("{name} names {}", path.display()));
        }
    }
    let run = ask(&loader, &path, &before("LD_LIBRARY_PATH", &with));
    match &run {
        Given::Software(path) => {
            line("ok", "run", &format!("{} is the software driver", path.display()));
        }
        Given::Other(path) => line(
            "wrong",
            "run",
            &format!("{} comes first: by LD_PRELOAD, or by an RPATH in the program", path.display()),
        ),
        Given::Nothing(what) => line("wrong", "run", what),
    }
    let gets = matches!(run, Given::Software(_)) && !wrong;
    text += &match (gets, &here) {
        (false, _) => format!("\n{shown} does not get the software driver\n"),
        (true, Given::Software(_)) if !named => format!("\n{shown} gets the software driver\n"),
        _ => format!(
            "\n{shown} gets the software driver with: cuda-soft-driver run -- {shown}\n"
        ),
    };
    Ok((text, u8::from(!gets)))
}

/// The file that the system starts for a program, and its loader.
fn look(program: &OsStr, own: &Path) -> Result<(PathBuf, PathBuf), String> {
    let mut path = find(program)?;
    // The interpreter of a script may be a script.
    for _ in 0..4 {
        let mut head = Vec::new();
        let shown = path.display().to_string();
        let file = File::open(&path).map_err(|error| format!("{shown}: {error}"))?;
        // As much of the line as the kernel reads.
        let read = (&file).take(256).read_to_end(&mut head);
        read.map_err(|error| format!("{shown}: {error}"))?;
        let Some(line) = head.strip_prefix(b"#!") else {
            let loader = loader(&file, own).map_err(|what| format!("{shown} {what}"))?;
            return Ok((path, loader));
        };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut words = line
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty())
            .map(OsStr::from_bytes);
        let first = words.next().unwrap_or_default();
        let is_env = Path::new(first).file_name() == Some(OsStr::new("env"));
        let plain = |word: &&OsStr| !word.as_bytes().contains(&b'=') && !word.as_bytes().starts_with(b"-");
        path = find(if is_env { words.find(plain).unwrap_or(first) } else { first })?;
    }
    Err(format!("{} is a script for a script for a script", program.display()))
}

/// Where a program is.
fn find(program: &OsStr) -> Result<PathBuf, String> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match is_program(&path) {
            true => Ok(path),
            false => Err(format!("{} is no program", path.display())),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&folders).map(|folder| folder.join(program));
    let found = all.find(|path| is_program(path));
    found.ok_or_else(|| format!("{} is in no folder of PATH", program.display()))
}

/// The numbers of x86-64 and of aarch64.
const MACHINE: u64 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

/// The loader of a program in machine code, if that can load this library.
fn loader(file: &File, own: &Path) -> Result<PathBuf, String> {
    let mut head = [0; 64];
    if file.read_exact_at(&mut head, 0).is_err() || !head.starts_with(b"\x7fELF") {
        return Err("is neither a script nor a program of Linux".to_owned());
    }
    let (class, machine) = (number(&head, 4, 1), number(&head, 18, 2));
    if class != 2 || machine != MACHINE {
        return Err("is for another processor than this driver".to_owned());
    }
    let of = file.metadata().map_err(|error| error.to_string())?;
    if of.mode() & 0o6000 != 0 {
        return Err("runs with other rights than the user's, and then the loader ignores \
                    LD_LIBRARY_PATH"
            .to_owned());
    }
    let loader = interpreter(file, &head).ok_or("is cut off or damaged")?;
    let loader = loader.ok_or("is statically linked, and loads no library")?;
    let name = loader.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with("ld-linux") {
        return Err(format!("is loaded by {}, and the driver is for glibc", loader.display()));
    }
    // The loader is asked, so it must not be any program that a file names.
    let usual = match cfg!(target_arch = "x86_64") {
        true => ["/lib64/ld-linux-x86-64.so.2", "/usr/lib64/ld-linux-x86-64.so.2"],
        false => ["/lib/ld-linux-aarch64.so.1", "/usr/lib/ld-linux-aarch64.so.1"],
    };
    let is_own = || {
        let mut head = [0; 64];
        let own = File::open(own).ok()?;
        own.read_exact_at(&mut head, 0).ok()?;
        interpreter(&own, &head)?
    };
    if !usual.iter().any(|usual| loader == Path::new(usual)) && is_own().as_ref() != Some(&loader) {
        return Err(format!("is loaded by {}, which is not the system's loader", loader.display()));
    }
    Ok(loader)
}

/// A number of a file for these processors.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let found = bytes.get(at..at + size).unwrap_or_default();
    found.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// The loader that a program names, if it names one; nothing if the file has not what it says.
fn interpreter(file: &File, head: &[u8; 64]) -> Option<Option<PathBuf>> {
    const PT_INTERP: u64 = 3;
    const PATH_MAX: u64 = 4096;
    let (begin, size, count) = (number(head, 32, 8), number(head, 54, 2), number(head, 56, 2));
    for index in 0..count {
        let mut header = [0; 56];
        file.read_exact_at(&mut header, begin.checked_add(index * size)?).ok()?;
        if number(&header, 0, 4) == PT_INTERP {
            let (at, length) = (number(&header, 8, 8), number(&header, 32, 8));
            let mut name = vec![0; usize::try_from(length.min(PATH_MAX)).ok()?];
            file.read_exact_at(&mut name, at).ok()?;
            return Some(Some(PathBuf::from(OsStr::from_bytes(name.strip_suffix(b"\0")?))));
        }
    }
    Some(None)
}

/// Asks the loader, which starts nothing.
fn ask(loader: &Path, program: &Path, library_path: &OsStr) -> Given {
    let mut preload = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    if !preload.is_empty() {
        preload.push(":");
    }
    preload.push("libcuda.so.1");
    let mut command = Command::new(loader);
    command.arg("--list").arg(program).env("LC_ALL", "C");
    command.env("LD_LIBRARY_PATH", library_path).env("LD_PRELOAD", preload);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Given::Nothing(format!("{}: {error}", loader.display())),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut loaded = text.lines().filter_map(|line| {
        let line = line.trim().rsplit_once(" (").map_or(line.trim(), |(line, _)| line);
        let (name, path) = line.split_once(" => ").unwrap_or((line, line));
        path.starts_with('/').then(|| (name.to_owned(), PathBuf::from(path)))
    });
    // A library that is loaded by its path serves those who ask for the name inside it.
    let found = loaded.find(|(name, path)| name == "libcuda.so.1" || is_software(path));
    match found {
        Some((_, path)) if is_software(&path) => Given::Software(path),
        Some((_, path)) => Given::Other(path),
        None => {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            Given::Nothing(format!("the loader finds no libcuda.so.1: {said}"))
        }
    }
}
