//! Driver libraries: the one that was loaded, those that were refused, those that lie about.

use super::{Facts, numbers};
use crate::exports::Lacks;
use crate::probe::{Attempt, Library};
use crate::report::{Check, Finding};
use crate::system::{Platform, System};

const VARIABLE: &str = cuda_events::loader::DRIVER_VARIABLE;

/// The version in a name such as `libcuda.so.580.159.04`.
pub(super) fn version_of(file: &str) -> Option<&str> {
    let (_, version) = file.rsplit_once("libcuda.so.")?;
    (numbers(version).len() > 1).then_some(version)
}

/// Whether it is of a forward-compatibility package, whose folder has that name.
pub(super) fn is_compat(file: &str) -> bool {
    file.split('/').any(|folder| folder == "compat" || folder.starts_with("cuda-compat"))
}

fn is_stub(file: &str) -> bool {
    file.split('/').any(|folder| folder == "stubs")
}

pub(super) fn variable(facts: &Facts) -> Finding {
    let check = Check::Variable;
    let Some(value) = facts.system.env(VARIABLE).filter(|value| !value.is_empty()) else {
        return Finding::ok(check, format!("{VARIABLE} is not set"));
    };
    let ignored = format!(
        "{VARIABLE} is {value}, but is ignored: this process has more rights than the user who \
         started it"
    );
    match &facts.probe.library {
        Library::Unknown => Finding::note(check, format!("{VARIABLE} is {value}")),
        Library::Loaded { file, .. } => {
            let file = file.as_deref();
            if file == Some(&value) || file == Some(&facts.system.real(&value)) {
                Finding::note(
                    check,
                    format!("{VARIABLE} is {value}, and no other library is tried"),
                )
            } else {
                Finding::note(check, ignored)
            }
        }
        Library::Refused { attempts, .. } => {
            match attempts.iter().find(|attempt| attempt.candidate.as_ref() == Some(&value)) {
                Some(attempt) => Finding::wrong(
                    check,
                    format!(
                        "{VARIABLE} is {value}, and no other library is tried: {}",
                        attempt.text
                    ),
                    format!(
                        "Unset {VARIABLE}, or set it to the absolute path of a driver library."
                    ),
                ),
                None => Finding::note(check, ignored),
            }
        }
    }
}

pub(super) fn library(facts: &Facts) -> Vec<Finding> {
    let check = Check::Library;
    match &facts.probe.library {
        Library::Unknown => vec![Finding::unknown(check, "the result of loading is unknown")],
        Library::Loaded { file, version, lacks } => {
            let file = file.as_deref().unwrap_or("functions of this program");
            let text = format!("{file}, for CUDA {version}");
            let without = it_lacks(lacks);
            let finding = match (is_compat(file), facts.code()) {
                (true, Some(804)) => Finding::wrong(
                    check,
                    format!(
                        "{text}: from a forward-compatibility package, which this GPU does not \
                         support{without}"
                    ),
                    format!(
                        "Remove {} from the library search path (LD_LIBRARY_PATH, \
                         /etc/ld.so.conf.d): this GPU does not support forward compatibility.",
                        folder(file)
                    ),
                ),
                (true, _) => Finding::note(
                    check,
                    format!("{text}, from a forward-compatibility package{without}"),
                ),
                _ if facts.is_software() => Finding::note(
                    check,
                    format!("{text}: the software driver, which computes without a GPU{without}"),
                ),
                _ => Finding::ok(check, format!("{text}{without}")),
            };
            vec![finding.lacking(lacks)]
        }
        Library::Refused { attempts, text } if attempts.is_empty() => {
            vec![Finding::wrong(check, text, install(facts))]
        }
        Library::Refused { attempts, .. } => attempts
            .iter()
            .map(|attempt| {
                let name = attempt.candidate.as_deref().unwrap_or("a resolver function");
                let text = match attempt.text.starts_with(name) {
                    true => attempt.text.clone(),
                    false => format!("{name}: {}", attempt.text),
                };
                Finding::wrong(check, text, refused(facts, attempt)).lacking(&attempt.lacks)
            })
            .collect(),
    }
}

/// What to do about one library that was refused.
fn refused(facts: &Facts, attempt: &Attempt) -> String {
    match attempt.kind.as_str() {
        "stub" => {
            let found = libraries(facts.system).into_iter().find(|found| is_stub(&found.path));
            let what = found.map_or(String::from("the toolkit's stub library"), |found| {
                format!("{}, the toolkit's stub library,", folder(&found.path))
            });
            format!(
                "Remove {what} from the library search path (LD_LIBRARY_PATH, /etc/ld.so.conf.d), \
                 and install the NVIDIA display driver if it is missing."
            )
        }
        "incomplete" => String::from("Update the NVIDIA display driver."),
        "no-driver" => {
            let name = attempt.candidate.as_deref().unwrap_or("the library");
            format!("Remove {name}: it has the name of the driver library, but is not a driver.")
        }
        _ => install(facts),
    }
}

/// What to do where there is no library.
fn install(facts: &Facts) -> String {
    if let Some(container) = facts.container {
        return container.with_gpus().to_owned();
    }
    match &facts.module {
        Some(version) => format!(
            "Install the CUDA library of the driver {version} (libcuda.so.1, on Debian in \
             libcuda1, on Ubuntu in libnvidia-compute): the kernel module is installed without it."
        ),
        None => String::from("Install the NVIDIA display driver, and reboot."),
    }
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(folder, _)| folder)
}

/// A library by the driver's name.
struct Found {
    path: String,
    real: String,
    /// Whether the system's search includes its folder, as far as that is known.
    searched: bool,
    /// Why it cannot be the driver.
    fault: Option<String>,
    empty: bool,
    /// The functions that it lacks, as far as its file shows them.
    lacks: Vec<String>,
}

/// Such as `; it lacks cuStreamGetId, cuStreamGetDevice`.
fn it_lacks(names: &[String]) -> String {
    match names {
        [] => String::new(),
        _ => format!("; it lacks {}", first_of(names)),
    }
}

/// The first three, and the number of the others.
fn first_of(names: &[String]) -> String {
    const NAMED: usize = 3;
    let first = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What a library lacks that could be the driver, and whether it can be the driver without that.
fn lacks(system: &System, path: &str) -> (Option<String>, Vec<String>) {
    const FIRST: &str = "cuDriverGetVersion";
    let Some(Lacks { required, optional }) = Lacks::find(system, path) else {
        return (None, Vec::new());
    };
    if required.iter().any(|name| name == FIRST) {
        (Some(format!("is not a CUDA driver: it exports no {FIRST}")), Vec::new())
    } else if required.is_empty() {
        (None, optional)
    } else {
        let fault = format!("lacks functions that cuda-events requires: {}", first_of(&required));
        (Some(fault), [required, optional].concat())
    }
}

/// Whether an ELF file is for this processor; otherwise what it is for.
fn elf_fault(system: &System, path: &str) -> Option<String> {
    let Ok(head) = system.bytes(path, 20) else {
        return Some(String::from("cannot be read"));
    };
    let byte = |at: usize| head.get(at).copied().unwrap_or_default();
    if !head.starts_with(b"\x7fELF") {
        return Some(String::from("is not a library"));
    }
    let machine = u16::from_le_bytes([byte(18), byte(19)]);
    let (class, name) = match machine {
        0x3e => (2, "x86_64"),
        0xb7 => (2, "aarch64"),
        0x03 => (1, "x86"),
        _ => (2, "another processor"),
    };
    if byte(4) == class && name == system.machine() { None } else { Some(format!("is for {name}")) }
}

/// The libraries by the driver's name in the folders where drivers, toolkits and containers put
/// them. Nothing is opened as a library: that would run its code.
fn libraries(system: &System) -> Vec<Found> {
    if system.platform() != Platform::Linux {
        return Vec::new();
    }
    let mut folders: Vec<(String, bool)> = Vec::new();
    let listed = system.env("LD_LIBRARY_PATH").unwrap_or_default();
    let listed = listed.split(':').filter(|folder| folder.starts_with('/'));
    folders.extend(listed.map(|folder| (folder.trim_end_matches('/').to_owned(), true)));
    let mut configured = vec![String::from("/etc/ld.so.conf")];
    let names = system.list("/etc/ld.so.conf.d").unwrap_or_default();
    configured.extend(names.iter().map(|name| format!("/etc/ld.so.conf.d/{name}")));
    for file in configured {
        let text = system.read(&file).unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| line.starts_with('/'));
        folders.extend(lines.map(|line| (line.trim_end_matches('/').to_owned(), true)));
    }
    let machine = system.machine();
    for folder in ["/usr/lib64", "/usr/lib", "/lib64", "/lib"] {
        folders.push((format!("{folder}/{machine}-linux-gnu"), true));
        folders.push((folder.to_owned(), true));
    }
    folders.push((format!("/usr/lib/{machine}-linux-gnu/nvidia/current"), false));
    for folder in [
        "/usr/lib/wsl/lib",
        "/usr/local/nvidia/lib64",
        "/run/opengl-driver/lib",
        "/.singularity.d/libs",
    ] {
        folders.push((folder.to_owned(), false));
    }
    for name in system.list("/usr/local").unwrap_or_default() {
        if name.starts_with("cuda") {
            folders.push((format!("/usr/local/{name}/compat"), false));
            folders.push((format!("/usr/local/{name}/lib64/stubs"), false));
        }
    }
    let mut found: Vec<Found> = Vec::new();
    for (folder, searched) in folders {
        let path = format!("{folder}/libcuda.so.1");
        let real = system.real(&path);
        if !system.exists(&path) || found.iter().any(|known| known.real == real) {
            continue;
        }
        let empty = system.size(&path) == Some(0);
        let mut lacking = Vec::new();
        let fault = match system.size(&path) {
            None => Some(String::from("is a broken link")),
            Some(0) => Some(String::from("is empty")),
            Some(_) if is_stub(&path) => Some(String::from("is the toolkit's stub")),
            Some(_) => elf_fault(system, &path).or_else(|| {
                let (fault, lacks) = lacks(system, &path);
                lacking = lacks;
                fault
            }),
        };
        found.push(Found { path, real, searched, fault, empty, lacks: lacking });
    }
    found
}

pub(super) fn elsewhere(facts: &Facts) -> Vec<Finding> {
    let check = Check::Elsewhere;
    let mut findings = Vec::new();
    if let Some(value) = facts.system.env("LD_PRELOAD").filter(|value| !value.is_empty()) {
        let text = format!("LD_PRELOAD is {value}: it may intercept driver calls");
        findings.push(Finding::note(check, text));
    }
    if facts.system.platform() == Platform::Windows && !facts.is_loaded() {
        let root = facts.system.env("SystemRoot").unwrap_or_else(|| String::from("C:\\Windows"));
        let path = format!("{root}\\System32\\nvcuda.dll");
        let state = if facts.system.exists(&path) { "exists" } else { "does not exist" };
        findings.push(Finding::note(check, format!("{path} {state}")));
    }
    let loaded = facts.file().map(|file| facts.system.real(file));
    // Another one matters where the system's search came to none, and nobody named the only one.
    let needed = match &facts.probe.library {
        Library::Refused { attempts, .. } => {
            attempts.iter().all(|attempt| attempt.kind == "open")
                && facts.system.env(VARIABLE).is_none_or(|value| value.is_empty())
        }
        _ => false,
    };
    for found in libraries(facts.system) {
        if loaded.as_ref() == Some(&found.real) {
            continue;
        }
        let Found { path, real, searched, fault, empty, lacks } = found;
        let without = it_lacks(&lacks);
        let version = version_of(&real).map_or(String::new(), |version| format!(" ({version})"));
        let finding = match fault {
            Some(_) if empty && needed => Finding::wrong(
                check,
                format!(
                    "{path} is empty: container images that were built with GPUs leave such a file"
                ),
                match facts.container {
                    Some(container) => container.with_gpus().to_owned(),
                    None => format!("Remove the empty {path}, and reinstall the driver."),
                },
            ),
            Some(fault) => Finding::note(check, format!("{path}{version} {fault}")),
            None if needed && !searched => Finding::wrong(
                check,
                format!("{path}{version} exists, but its folder is not searched{without}"),
                format!(
                    "Add {} to LD_LIBRARY_PATH or to a file in /etc/ld.so.conf.d (then `sudo \
                     ldconfig`), or set {VARIABLE}={path}.",
                    folder(&path)
                ),
            ),
            None if needed => Finding::wrong(
                check,
                format!(
                    "{path}{version} exists, but was not found or depends on a missing \
                     library{without}"
                ),
                format!(
                    "Run `sudo ldconfig`, so the system's search finds {path}, and reinstall the \
                     driver if that does not help."
                ),
            ),
            None => Finding::note(check, format!("{path}{version} exists, too{without}")),
        };
        findings.push(finding.lacking(&lacks));
    }
    findings
}
