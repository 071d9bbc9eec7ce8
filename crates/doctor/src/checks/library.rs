//! Driver libraries: the one that was loaded, those that were refused, those that lie about.

use super::container::Container;
use super::{Evidence, numbers};
use crate::exports::Lacks;
use crate::probe::{Attempt, Library};
use crate::report::{Check, Finding};
use crate::system::{Platform, System};

/// The beginning of a fault that names another processor.
const FOR: &str = "is for ";
const VARIABLE: &str = cuda_events::loader::DRIVER_VARIABLE;

/// The version in a name such as `libcuda.so.580.159.04`.
pub(super) fn version_of(file: &str) -> Option<&str> {
    let (_, version) = file.rsplit_once("libcuda.so.")?;
    (numbers(version).len() > 1).then_some(version)
}

/// Whether it is of a forward-compatibility package, whose folder has that name.
pub(super) fn is_compat(file: &str) -> bool {
    let is = |folder: &str| {
        folder == "compat" || folder.starts_with("compat_") || folder.starts_with("cuda-compat")
    };
    file.split('/').any(is)
}

fn is_stub(file: &str) -> bool {
    file.split('/').any(|folder| folder == "stubs")
}

pub(super) fn variable(evidence: &Evidence) -> Finding {
    let check = Check::Variable;
    let Some(value) = evidence.system.env(VARIABLE).filter(|value| !value.is_empty()) else {
        return Finding::ok(check, format!("{VARIABLE} is not set"));
    };
    let ignored = format!(
        "{VARIABLE} is {value}, but is ignored: this process has more rights than the user who \
         started it"
    );
    match &evidence.probe.library {
        Library::Unknown => Finding::note(check, format!("{VARIABLE} is {value}")),
        Library::Loaded { file, .. } => {
            let file = file.as_deref();
            if file == Some(&value) || file == Some(&evidence.system.real(&value)) {
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

pub(super) fn library(evidence: &Evidence) -> Vec<Finding> {
    let check = Check::Library;
    match &evidence.probe.library {
        Library::Unknown => vec![Finding::unknown(check, "the result of loading is unknown")],
        Library::Loaded { file, version, lacks } => {
            let file = file.as_deref().unwrap_or("functions of this program");
            let text = format!("{file}, for CUDA {version}");
            let without = it_lacks(lacks);
            let other = fitting(evidence);
            let finding = match (is_compat(file), evidence.code()) {
                (true, Some(804)) => Finding::wrong(
                    check,
                    format!(
                        "{text}: from a forward-compatibility package, which this GPU does not \
                         support{without}"
                    ),
                    format!(
                        "Remove {}: this GPU does not support forward compatibility.",
                        in_search(evidence.system, folder(file)),
                    ),
                ),
                // Another library fits, so whatever fails need not be the machine's fault.
                (true, code) if code == Some(803) || (other.is_some() && evidence.fails()) => {
                    let library = version_of(&evidence.system.real(file)).map(str::to_owned);
                    let library = library.map_or(String::new(), |version| format!(", {version},"));
                    let module = evidence.module.as_deref().unwrap_or("of this machine");
                    let what = in_search(evidence.system, folder(file));
                    let why =
                        format!("its library{library} does not fit the kernel module {module}");
                    Finding::wrong(
                        check,
                        format!("{text}, from a forward-compatibility package{without}"),
                        match other {
                            Some(path) => format!("Remove {what}: {why}, which {path} fits."),
                            None => format!(
                                "Remove {what}, since {why}, and {}",
                                continued(&install(evidence))
                            ),
                        },
                    )
                }
                (true, _) => Finding::note(
                    check,
                    format!("{text}, from a forward-compatibility package{without}"),
                ),
                _ if evidence.is_software() => Finding::note(
                    check,
                    format!("{text}: the software driver, which computes without a GPU{without}"),
                ),
                _ => Finding::ok(check, format!("{text}{without}")),
            };
            vec![finding.lacking(lacks)]
        }
        Library::Refused { attempts, text } if attempts.is_empty() => {
            vec![Finding::wrong(check, text, install(evidence))]
        }
        Library::Refused { attempts, .. } => attempts
            .iter()
            .map(|attempt| {
                let name = attempt.candidate.as_deref().unwrap_or("a resolver function");
                let text = match attempt.text.starts_with(name) {
                    true => attempt.text.clone(),
                    false => format!("{name}: {}", attempt.text),
                };
                Finding::wrong(check, text, refused(evidence, attempt)).lacking(&attempt.lacks)
            })
            .collect(),
    }
}

/// A library of exactly the kernel module's version, other than the loaded one.
pub(super) fn fitting(evidence: &Evidence) -> Option<String> {
    let module = evidence.module.as_deref()?;
    let loaded = evidence.file().map(|file| evidence.system.real(file));
    let found = libraries(evidence.system).into_iter().find(|found| {
        found.fault.is_none()
            && version_of(&found.real) == Some(module)
            && loaded.as_ref() != Some(&found.real)
    });
    found.map(|found| found.path)
}

/// Where the first library of the system's search is, if it is no driver.
pub(super) fn foreign(evidence: &Evidence) -> Option<String> {
    let first = libraries(evidence.system).into_iter().find(|found| found.searched)?;
    let is_foreign = first.fault.is_some() && !first.empty;
    is_foreign.then(|| in_search(evidence.system, folder(&first.path)))
}

/// Where the system's search has a folder.
fn in_search(system: &System, folder: &str) -> String {
    let listed = system.env("LD_LIBRARY_PATH").unwrap_or_default();
    let real = system.real(folder);
    match listed.split(':').find(|entry| !entry.is_empty() && system.real(entry) == real) {
        Some(entry) => format!("{entry} from LD_LIBRARY_PATH"),
        None => {
            format!("{folder} from the library search path (LD_LIBRARY_PATH, /etc/ld.so.conf.d)")
        }
    }
}

/// What to do about one library that was refused.
fn refused(evidence: &Evidence, attempt: &Attempt) -> String {
    if let Some(advice) = unloadable(attempt) {
        return advice;
    }
    match attempt.kind.as_str() {
        "stub" => {
            let all = libraries(evidence.system);
            let what = all
                .iter()
                .find(|found| is_stub(&found.path))
                .map_or(String::from("the toolkit's stub library"), |found| {
                    format!("{}, the toolkit's stub library,", folder(&found.path))
                });
            let what = format!(
                "Remove {what} from the library search path (LD_LIBRARY_PATH, /etc/ld.so.conf.d)"
            );
            match all.iter().find(|found| found.fault.is_none()) {
                Some(driver) => format!("{what}: {} is the driver's library.", driver.path),
                None => {
                    format!("{what}, and install the NVIDIA display driver if it is missing.")
                }
            }
        }
        "incomplete" => String::from("Update the NVIDIA display driver."),
        "no-driver" => {
            let name = attempt.candidate.as_deref().unwrap_or("the library");
            format!("Remove {name}: it has the name of the driver library, but is not a driver.")
        }
        _ => install(evidence),
    }
}

/// What to do about a library that is there, by what the loader says of it.
fn unloadable(attempt: &Attempt) -> Option<String> {
    const NOT_FOUND: &str = ": cannot open shared object file: No such file or directory";
    const MEANINGS: [(&str, &str); 8] = [
        (
            "statically linked",
            "Link this program dynamically (RUSTFLAGS=\"-C \
            target-feature=-crt-static\"): a static one cannot load the driver library.",
        ),
        (
            "Error relocating",
            "Build and run this program with glibc, such as in an image of Debian \
            or Ubuntu instead of Alpine: NVIDIA's libraries do not work with musl.",
        ),
        (
            "ld-linux-",
            "Build and run this program with glibc, such as in an image of Debian or \
            Ubuntu instead of Alpine: NVIDIA's libraries do not work with musl.",
        ),
        (
            "version `GLIBC",
            "Use a newer distribution or image: its C library is too old for the \
            driver library.",
        ),
        (
            "failed to map segment from shared object: Cannot allocate",
            "Run `ulimit -v unlimited` \
            first: there is no address space for the driver library.",
        ),
        (
            "failed to map segment from shared object",
            "Mount the folder of the driver library \
            without noexec, and allow it in the security module of this system.",
        ),
        (
            "cannot enable executable stack",
            "Allow this process executable memory (in systemd \
            MemoryDenyWriteExecute=no): the driver library needs it.",
        ),
        (
            "cannot open shared object file: Permission denied",
            "Allow this user, and the sandbox or \
            security module of this process, to read the driver library and its folder.",
        ),
    ];
    if let Some((_, advice)) = MEANINGS.iter().find(|(part, _)| attempt.text.contains(part)) {
        return Some((*advice).to_owned());
    }
    // The loader names the file that it did not find.
    let (missing, _) = attempt.text.split_once(NOT_FOUND)?;
    let missing = missing.rsplit([' ', '/']).next()?;
    let is_other = !attempt.candidate.as_ref()?.ends_with(missing);
    is_other.then(|| {
        format!("Install {missing}, on which the driver library depends and which is missing here.")
    })
}

/// The extension of Flatpak that has the libraries of a driver.
pub(super) fn extension(module: &str) -> String {
    format!(
        "Install the driver's libraries for Flatpak with `flatpak install flathub \
         org.freedesktop.Platform.GL.nvidia-{}`, which has the kernel module's version.",
        module.replace('.', "-")
    )
}

/// What to do where there is no library.
fn install(evidence: &Evidence) -> String {
    if evidence.tegra && evidence.container.is_some() {
        return String::from(super::nodes::JETSON);
    }
    let gets_library = |it: &Container| it.installs_its_library() || *it == Container::Flatpak;
    let alone = !evidence.probe.nodes.is_empty();
    match (evidence.container, &evidence.module) {
        (Some(Container::Flatpak), Some(module)) if alone => return extension(module),
        (Some(container), module) if alone && gets_library(&container) => {
            let version = module.as_ref().map_or(String::new(), |module| format!(" {module}"));
            return format!(
                "Install the libraries of the driver{version} in the container, without a kernel \
                 module (`NVIDIA-Linux-x86_64-VERSION.run --no-kernel-modules`): it has the device \
                 nodes alone."
            );
        }
        (Some(container), _) => return container.with_gpus(evidence.system),
        _ => {}
    }
    match &evidence.module {
        Some(version) => format!(
            "Install the CUDA library of the driver {version} (libcuda.so.1, on Debian in \
             libcuda1, on Ubuntu in libnvidia-compute): the kernel module is installed without it."
        ),
        None => String::from("Install the NVIDIA display driver, and reboot."),
    }
}

/// A sentence as the second part of another.
fn continued(sentence: &str) -> String {
    let (first, rest) = sentence.split_at_checked(1).unwrap_or_default();
    first.to_lowercase() + rest
}

pub(super) fn folder(path: &str) -> &str {
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
    let fits = byte(4) == class && name == system.machine();
    (!fits).then(|| format!("{FOR}{name}"))
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
    for folder in [
        "/usr/lib/wsl/lib",
        "/usr/local/nvidia/lib64",
        "/usr/local/nvidia/lib",
        "/run/opengl-driver/lib",
        "/run/nvidia/driver/usr/lib64",
        "/home/kubernetes/bin/nvidia/lib64",
        "/opt/nvidia/lib64",
        "/.singularity.d/libs",
        "/usr/lib64/nvidia",
        "/usr/lib/nvidia",
        "/var/lib/snapd/lib/gl",
    ] {
        folders.push((folder.to_owned(), false));
    }
    for folder in [
        format!("/usr/lib/{machine}-linux-gnu/nvidia"),
        format!("/usr/lib/{machine}-linux-gnu/tegra"),
        format!("/run/nvidia/driver/usr/lib/{machine}-linux-gnu"),
        format!("/var/lib/snapd/hostfs/usr/lib/{machine}-linux-gnu"),
    ] {
        folders.push((folder, false));
    }
    // One folder for each driver: of Debian, and of Flatpak's extensions.
    for (parent, inner) in [
        (format!("/usr/lib/{machine}-linux-gnu/nvidia"), ""),
        (format!("/usr/lib/{machine}-linux-gnu/GL"), "/lib"),
        (String::from("/usr/lib/GL"), "/lib"),
    ] {
        for name in system.list(&parent).unwrap_or_default() {
            folders.push((format!("{parent}/{name}{inner}"), false));
        }
    }
    for name in system.list("/usr/lib").unwrap_or_default() {
        if name.starts_with("nvidia-") {
            folders.push((format!("/usr/lib/{name}"), false));
        }
    }
    for name in system.list("/usr/local").unwrap_or_default() {
        if name.starts_with("cuda") {
            folders.push((format!("/usr/local/{name}/compat"), false));
            folders.push((format!("/usr/local/{name}/lib64/stubs"), false));
        }
    }
    let mut found: Vec<Found> = Vec::new();
    let in_folder = |(folder, searched): (String, bool)| {
        // Also files to which no link leads.
        let names = system.list(&folder).unwrap_or_default();
        let names = names.into_iter().filter(|name| version_of(name).is_some());
        let names = [String::from("libcuda.so.1")].into_iter().chain(names);
        names.map(move |name| (format!("{folder}/{name}"), searched)).collect::<Vec<_>>()
    };
    for (path, searched) in folders.into_iter().flat_map(in_folder) {
        let mut real = system.real(&path);
        if real == path {
            // A link that leads nowhere is known by its folder.
            let name = path.rsplit('/').next().unwrap_or_default();
            real = format!("{}/{name}", system.real(folder(&path)));
        }
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

pub(super) fn elsewhere(evidence: &Evidence) -> Vec<Finding> {
    let check = Check::Elsewhere;
    let mut findings = Vec::new();
    if let Some(value) = evidence.system.env("LD_PRELOAD").filter(|value| !value.is_empty()) {
        let text = format!("LD_PRELOAD is {value}: it may intercept driver calls");
        findings.push(Finding::note(check, text));
    }
    if evidence.system.platform() == Platform::Windows && !evidence.is_loaded() {
        let root = evidence.system.env("SystemRoot").unwrap_or_else(|| String::from("C:\\Windows"));
        let path = format!("{root}\\System32\\nvcuda.dll");
        let state = if evidence.system.exists(&path) { "exists" } else { "does not exist" };
        findings.push(Finding::note(check, format!("{path} {state}")));
    }
    let loaded = evidence.file().map(|file| evidence.system.real(file));
    // Another one matters where the system's search came to none, and nobody named the only one.
    let needed = match &evidence.probe.library {
        Library::Refused { attempts, .. } => {
            attempts.iter().all(|attempt| attempt.kind == "open" && unloadable(attempt).is_none())
                && evidence.system.env(VARIABLE).is_none_or(|value| value.is_empty())
        }
        _ => false,
    };
    let all = libraries(evidence.system);
    // A link may lead nowhere beside the file that it should lead to.
    let has_working = all.iter().any(|found| found.fault.is_none());
    for found in all {
        if loaded.as_ref() == Some(&found.real) {
            continue;
        }
        let Found { path, real, searched, fault, empty, lacks } = found;
        let without = it_lacks(&lacks);
        let fits = match (version_of(&real), &evidence.module) {
            (Some(version), Some(module)) => version == module,
            _ => true,
        };
        let version = version_of(&real).map_or(String::new(), |version| format!(" ({version})"));
        let target = evidence.system.link(&path).unwrap_or_default();
        let is_broken_link = !target.is_empty() && evidence.system.size(&path).is_none();
        let finding = match fault {
            Some(_) if empty && needed => Finding::wrong(
                check,
                format!(
                    "{path} is empty: container images that were built with GPUs leave such a file"
                ),
                match evidence.container {
                    Some(container) => container.with_gpus(evidence.system),
                    None => format!("Remove the empty {path}, and reinstall the driver."),
                },
            ),
            Some(fault) if is_broken_link && needed && !has_working => Finding::wrong(
                check,
                format!("{path} {fault}: it leads to {target}"),
                format!(
                    "Remove the link {path}, which is left over, and {}",
                    continued(&install(evidence))
                ),
            ),
            Some(fault) if fault.starts_with(FOR) && needed && !has_working => Finding::wrong(
                check,
                format!("{path}{version} {fault}"),
                match fault.strip_prefix(FOR) {
                    // Two architectures on one machine: the program is emulated.
                    Some(other @ ("aarch64" | "x86_64")) => format!(
                        "Build this program for {other}, or use the image for it (docker run \
                         --platform): the machine's driver library is for {other}."
                    ),
                    _ => format!("Install the driver's 64-bit libraries: {path} {fault}."),
                },
            ),
            Some(fault) => Finding::note(check, format!("{path}{version} {fault}")),
            // A library of another version would not work either.
            None if needed && !fits => Finding::note(
                check,
                format!("{path}{version} exists, but does not fit the kernel module{without}"),
            ),
            None if needed && !searched => Finding::wrong(
                check,
                format!("{path}{version} exists, but its folder is not searched{without}"),
                match evidence.container {
                    Some(Container::Flatpak) => format!(
                        "Start the application with `flatpak run --env=LD_LIBRARY_PATH={}`, or set \
                         {VARIABLE}={path}.",
                        folder(&path)
                    ),
                    _ => format!(
                        "Add {} to LD_LIBRARY_PATH or to a file in /etc/ld.so.conf.d (then `sudo \
                         ldconfig`), or set {VARIABLE}={path}.",
                        folder(&path)
                    ),
                },
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
