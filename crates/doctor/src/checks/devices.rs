//! What the driver says: `cuInit`, the devices, and what MPS and MIG make of them.

use super::Evidence;
use crate::probe::{DeviceAnswer, Failure, How, Library, PROHIBITED, Probe, compute_mode_name};
use crate::report::{Check, Finding};

/// The first device that a program can work with.
pub(super) fn usable(probe: &Probe) -> Option<&DeviceAnswer> {
    probe.devices.iter().find(|device| device.is_usable()).filter(|_| probe.lost.is_none())
}

pub(super) fn init(evidence: &Evidence) -> Option<Finding> {
    let check = Check::Init;
    if let Some(lost) = &evidence.probe.lost {
        return Some(match &lost.how {
            How::Hung(limit) => Finding::wrong(
                check,
                format!("{} did not return within {} s", lost.step, limit.as_secs_f32()),
                "Look for lines with NVRM and Xid in `sudo dmesg`, and reboot: a GPU or its driver \
                 hangs.",
            ),
            How::Ended(how) if lost.settings.is_some() => Finding::wrong(
                check,
                format!(
                    "{} {how}: the software driver refuses CUDA_SOFT_DRIVER: {}",
                    lost.step,
                    lost.settings.as_deref().unwrap_or_default()
                ),
                "Correct CUDA_SOFT_DRIVER, the settings of the software driver, or unset it.",
            ),
            How::Ended(how) => {
                Finding::wrong(check, format!("{} {how}", lost.step), crashed(evidence, how))
            }
            How::NotStarted { number, text } => Finding::wrong(
                check,
                format!("{} failed: {text}", lost.step),
                not_started(evidence, *number, text),
            ),
        });
    }
    match &evidence.probe.init {
        None => None,
        Some(Ok(())) => Some(match evidence.probe.devices.len() {
            0 => Finding::wrong(check, "cuInit succeeded, but there is no device", no_device()),
            1 => Finding::ok(check, "cuInit succeeded: 1 device"),
            many => Finding::ok(check, format!("cuInit succeeded: {many} devices")),
        }),
        Some(Err(failure)) => {
            let text = failure.text.replace("; run cuda-events-doctor for details", "");
            Some(Finding::wrong(check, text, meaning(evidence, failure)))
        }
    }
}

/// What to do if the process that called the driver ended by itself.
fn crashed(evidence: &Evidence, how: &str) -> String {
    // Where loading ends the process, no library was named yet.
    let unloaded = matches!(evidence.probe.library, Library::Unknown);
    if let (Some(what), true) = (super::library::foreign(evidence), unloaded) {
        return format!("Remove {what}: the first libcuda.so.1 there is no CUDA driver.");
    }
    String::from(if how.contains("SIGSYS") {
        "Allow the driver's system calls in the seccomp filter of this process (SystemCallFilter \
         in systemd, --security-opt seccomp in containers): it ended the process."
    } else if how.contains("SIGKILL") {
        "Raise the memory limit of this process's control group, or look in `sudo dmesg` for what \
         ended the process."
    } else if evidence.system.env("LD_PRELOAD").is_some_and(|value| !value.is_empty()) {
        "Unset LD_PRELOAD, which intercepts driver calls, and reinstall the driver if that does not \
         help: the library crashes."
    } else {
        "Reinstall the driver, and unset LD_PRELOAD and CUDA_EVENTS_DRIVER if they replace it: the \
         library crashes."
    })
}

/// What to do if the doctor's own process did not start, of which the driver knows nothing.
fn not_started(evidence: &Evidence, number: Option<i32>, text: &str) -> String {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    const EAGAIN: i32 = 11;
    const ENOMEM: i32 = 12;
    const EACCES: i32 = 13;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    let what = match number {
        Some(EAGAIN) => {
            "Raise the limit of processes (`ulimit -u`, in systemd TasksMax, in a container \
             --pids-limit)"
        }
        Some(ENFILE | EMFILE) => "Raise the limit of open files (`ulimit -n 1024`)",
        Some(ENOENT) if !evidence.system.exists("/dev/null") => "Give this sandbox /dev/null",
        Some(ENOMEM) => "Raise the memory limit of this process (`ulimit -v`, its control group)",
        Some(EPERM | EACCES) => {
            "Allow this process to start others (a seccomp filter, a security module or noexec \
             forbids it)"
        }
        _ => {
            return format!(
                "Find out why the system starts no process here ({text}), and run the doctor \
                 again: the driver was not asked."
            );
        }
    };
    format!(
        "{what}, and run the doctor again: it could not start the process that asks the driver."
    )
}

fn no_device() -> String {
    String::from(
        "Compare `nvidia-smi -L` with CUDA_VISIBLE_DEVICES: the driver works, but shows no GPU to \
         this process.",
    )
}

/// What to do about a code of `cuInit`'s where no other check knows better.
fn meaning(evidence: &Evidence, failure: &Failure) -> String {
    /// Where the module says whether it maps the memory of processes.
    const WITHOUT_HMM: &str = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm";
    if failure.forked {
        return forked();
    }
    String::from(match failure.code {
        Some(304) if evidence.seccomp => {
            "Allow the driver's system calls (memfd_create among them) in the seccomp filter of \
             this process (--security-opt seccomp=unconfined in Docker, SystemCallFilter in \
             systemd): it refuses one."
        }
        Some(2 | 304) => {
            "Check this process's limits (`ulimit -a`) and the rules of its container or sandbox: \
             the operating system refused a request of the driver."
        }
        // The doctor's own process has forked nothing.
        Some(3)
            if evidence.probe.separate
                && evidence.system.read(WITHOUT_HMM).is_ok_and(|value| value.trim() != "1") =>
        {
            "Write `options nvidia_uvm uvm_disable_hmm=1` to /etc/modprobe.d/nvidia-uvm.conf, and \
             reboot: with some kernels the driver does not initialise with HMM."
        }
        Some(3) if evidence.probe.separate => {
            "Reboot, and if that does not help write `options nvidia_uvm uvm_disable_hmm=1` to \
             /etc/modprobe.d/nvidia-uvm.conf and reboot again: the driver does not initialise, as \
             with some kernels and HMM."
        }
        Some(3) => return forked(),
        Some(34) => "Install the NVIDIA display driver: this library is the toolkit's stub.",
        Some(36) => "Update the NVIDIA display driver.",
        Some(46) => {
            "Stop the process that uses the device exclusively (`nvidia-smi` lists it), or allow \
             sharing with `sudo nvidia-smi -c DEFAULT`."
        }
        Some(100) => return no_device(),
        Some(101) => {
            "Run `nvidia-smi -L`: a GPU assigned to this process cannot be used, for example \
             because CUDA_VISIBLE_DEVICES lists it twice."
        }
        Some(801) => {
            "Give the virtual GPU a type and a licence that include CUDA, and turn on unified memory \
             for it in the hypervisor: its current ones do not."
        }
        Some(803) => {
            "Reboot, and restart containers: the library and the kernel module have different \
             versions."
        }
        Some(804) => {
            return format!(
                "Remove the folder of the forward-compatibility package (cuda-compat{}) from the \
                 library search path: this GPU does not support it.",
                evidence.file().map_or(String::new(), |file| format!("; the library is {file}"))
            );
        }
        Some(999) => {
            "Run `sudo nvidia-modprobe -u -c 0`, or after a suspend `sudo rmmod nvidia_uvm` and \
             `sudo modprobe nvidia_uvm`, and reboot if that does not help: the driver cannot reach \
             its kernel module."
        }
        _ => {
            return format!("Search for this error with the driver's version: {}.", failure.text);
        }
    })
}

fn forked() -> String {
    String::from(
        "Start worker processes with spawn instead of fork, or fork before any use of CUDA: CUDA \
         does not work after a fork.",
    )
}

pub(super) fn devices(evidence: &Evidence) -> Vec<Finding> {
    evidence.probe.devices.iter().map(|device| one(evidence, device)).collect()
}

fn one(evidence: &Evidence, device: &DeviceAnswer) -> Finding {
    let check = Check::Devices;
    let mut text = format!("device {}: {}", device.ordinal, device.name);
    if let Some(uuid) = &device.uuid {
        text += &format!(", {uuid}");
    }
    if let Some(bytes) = device.bytes {
        text += &format!(", {} MiB", bytes >> 20);
    }
    let is_mig = device.name.contains(" MIG ");
    if is_mig {
        text += ", a part of a GPU (MIG): a process can use only one";
    }
    let no_events = device.interprocess_events == Some(false);
    if no_events {
        text += ", without interprocess events";
    }
    let mode = device.compute_mode.unwrap_or_default();
    if mode != 0 {
        text += &format!(", compute mode {}", compute_mode_name(mode));
    }
    let ordinal = device.ordinal;
    let shared = format!("`sudo nvidia-smi -i {ordinal} -c DEFAULT`");
    match &device.context {
        _ if mode == PROHIBITED => {
            return Finding::wrong(
                check,
                text,
                format!("Run {shared}: the device's compute mode prohibits CUDA."),
            );
        }
        Some(Err(failure)) => {
            let advice = match failure.code {
                Some(46) => format!(
                    "Stop the process that uses device {ordinal} exclusively (`nvidia-smi` lists \
                     it), or allow sharing with {shared}."
                ),
                Some(2) => format!(
                    "Free memory of device {ordinal} (`nvidia-smi` lists the processes that use \
                     it): there is no room for a context."
                ),
                _ => meaning(evidence, failure),
            };
            return Finding::wrong(check, format!("{text}; no context: {}", failure.text), advice);
        }
        Some(Ok(())) => text += "; a context was created",
        None if mode != 0 => text += ": one process at a time (--context tests it)",
        None => {}
    }
    if mode != 0 || no_events || is_mig {
        Finding::note(check, text)
    } else {
        Finding::ok(check, text)
    }
}

/// The number in a line such as `DeviceFileMinor: 3`.
fn minor(text: &str) -> Option<u32> {
    let value = text.lines().find_map(|line| line.strip_prefix("DeviceFileMinor:"))?;
    value.trim().parse().ok()
}

pub(super) fn mig(evidence: &Evidence) -> Option<Finding> {
    const FOLDER: &str = "/proc/driver/nvidia/capabilities";
    let check = Check::Mig;
    if !evidence.has_nodes() {
        return None;
    }
    let system = evidence.system;
    let (mut able, mut parts, mut refused) = (0_u32, 0_u32, None);
    for gpu in system.list(FOLDER).ok()? {
        let folder = format!("{FOLDER}/{gpu}/mig");
        let Ok(names) = system.list(&folder) else { continue };
        able += 1;
        for name in names.iter().filter(|name| name.starts_with("gi")) {
            parts += 1;
            let access = system.read(&format!("{folder}/{name}/access")).unwrap_or_default();
            if let Some(minor) = minor(&access) {
                let path = format!("/dev/nvidia-caps/nvidia-cap{minor}");
                let known = evidence.probe.nodes.iter().find(|node| node.path == path);
                if known.is_none_or(|node| node.refused.is_some()) {
                    refused.get_or_insert(path);
                }
            }
        }
    }
    let none = evidence.probe.devices.is_empty();
    match (able, parts, refused) {
        (0, _, _) => None,
        (_, 0, _) if none && matches!(evidence.code(), Some(100 | 101)) => Some(Finding::wrong(
            check,
            "no part of a GPU (MIG) exists; if MIG is on, a GPU needs a part to be a device",
            "Run `nvidia-smi -L`: if MIG is on, create parts with `sudo nvidia-smi mig -cgi 0 -C`, \
             or turn MIG off with `sudo nvidia-smi -mig 0`.",
        )),
        (_, 0, _) => None,
        (_, _, Some(path)) if none => Some(Finding::wrong(
            check,
            format!("{parts} parts of GPUs (MIG) exist, but {path} cannot be opened"),
            match evidence.container {
                Some(_) => format!(
                    "Start the container with a part of a GPU (NVIDIA_VISIBLE_DEVICES=MIG-..., see \
                     `nvidia-smi -L`), so it gets {path}."
                ),
                None => format!("Allow this user to open {path}."),
            },
        )),
        _ => Some(Finding::note(
            check,
            format!("{parts} parts of GPUs (MIG) exist; a process can use only one of them"),
        )),
    }
}

/// The folder of the pipes, which a program may name.
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const USUAL: &str = "/tmp/nvidia-mps";

/// How a container reaches the daemon of its host.
fn shared(folder: &str) -> String {
    format!(
        "Start the container with the host's IPC namespace and the folder of its MPS control \
         daemon (--ipc=host -v {USUAL}:{folder}, in Kubernetes hostIPC and a hostPath), or unset \
         {PIPES} to work without MPS."
    )
}

pub(super) fn mps(evidence: &Evidence) -> Option<Finding> {
    const VARIABLE: &str = PIPES;
    if !evidence.has_nodes() {
        return None;
    }
    let check = Check::Mps;
    let system = evidence.system;
    let named = system.env(VARIABLE).filter(|folder| !folder.is_empty());
    let folder = named.as_deref().unwrap_or(USUAL);
    // A process whose daemon does not answer waits for it.
    let hangs = matches!(&evidence.probe.lost, Some(lost) if matches!(lost.how, How::Hung(_)));
    let refused = matches!(evidence.code(), Some(805..=809));
    if !system.is_folder(folder) {
        return match (named.is_some(), refused) {
            (_, true) => Some(Finding::wrong(
                check,
                format!("cuInit returned an error of MPS, but {folder} does not exist"),
                match evidence.container {
                    Some(_) => shared(folder),
                    None => {
                        format!(
                            "Set {VARIABLE} to the folder of the MPS control daemon's pipes, or \
                             unset it to work without MPS."
                        )
                    }
                },
            )),
            (true, _) => Some(Finding::note(
                check,
                format!("{VARIABLE} is {folder}, which does not exist: CUDA does not use MPS"),
            )),
            _ => None,
        };
    }
    let names = match system.list(folder) {
        Ok(names) => names,
        Err(error) if refused => {
            return Some(Finding::wrong(
                check,
                format!("{folder}: {error}"),
                format!(
                    "Give this user access to {folder}, or start the user's own MPS control daemon \
                     and set {VARIABLE} to its folder."
                ),
            ));
        }
        Err(error) => return Some(Finding::unknown(check, format!("{folder}: {error}"))),
    };
    let has_pipe = names.iter().any(|name| name == "control");
    if !has_pipe && !refused {
        let text = format!("{folder} has no pipe of a control daemon: CUDA does not use MPS");
        return Some(Finding::note(check, text));
    }
    let id = system.read(&format!("{folder}/nvidia-cuda-mps-control.pid")).unwrap_or_default();
    let gone = id.trim().parse::<u32>().is_ok_and(|id| !system.exists(&format!("/proc/{id}")));
    // The pipe of a container's host belongs to a process that cannot be seen.
    let gone = gone && evidence.container.is_none();
    if hangs {
        return Some(Finding::wrong(
            check,
            format!("{folder}: a control daemon's pipe, and the driver does not return"),
            format!(
                "Run as the user whom the MPS daemon of {folder} serves (in a container -u UID and \
                 --ipc=host), start MPS again (`echo quit | nvidia-cuda-mps-control`, then \
                 `nvidia-cuda-mps-control -d`), or set {VARIABLE} to an empty folder to work \
                 without MPS."
            ),
        ));
    }
    if refused {
        let state = match (has_pipe, gone) {
            (false, _) => "it has no pipe of a control daemon",
            (true, true) => "its control daemon has ended",
            (true, false) if id.trim().is_empty() => "it has the pipe of a control daemon",
            (true, false) => "its control daemon runs",
        };
        return Some(Finding::wrong(
            check,
            format!("{folder}: {state}, and cuInit returned an error of MPS"),
            match evidence.container {
                Some(_) => shared(folder),
                None => format!(
                    "Start MPS again (`echo quit | nvidia-cuda-mps-control`, then \
                     `nvidia-cuda-mps-control -d`), or remove {folder} to work without MPS."
                ),
            },
        ));
    }
    Some(if gone {
        Finding::note(check, format!("{folder} is left over from a control daemon that has ended"))
    } else {
        Finding::note(check, format!("programs use the MPS daemon of {folder}"))
    })
}
