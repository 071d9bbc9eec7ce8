//! What the driver says: `cuInit`, the devices, and what MPS and MIG make of them.

use super::Facts;
use crate::probe::{DeviceAnswer, Failure, How, PROHIBITED, Probe, compute_mode_name};
use crate::report::{Check, Finding};

/// The first device that a program can work with.
pub(super) fn usable(probe: &Probe) -> Option<&DeviceAnswer> {
    probe.devices.iter().find(|device| device.is_usable()).filter(|_| probe.lost.is_none())
}

pub(super) fn init(facts: &Facts) -> Option<Finding> {
    let check = Check::Init;
    if let Some(lost) = &facts.probe.lost {
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
            How::Ended(how) => Finding::wrong(
                check,
                format!("{} {how}", lost.step),
                "Reinstall the driver, and unset LD_PRELOAD and CUDA_EVENTS_DRIVER if they replace \
                 it: the library crashes.",
            ),
        });
    }
    match &facts.probe.init {
        None => None,
        Some(Ok(())) => Some(match facts.probe.devices.len() {
            0 => Finding::wrong(check, "cuInit succeeded, but there is no device", no_device()),
            1 => Finding::ok(check, "cuInit succeeded: 1 device"),
            many => Finding::ok(check, format!("cuInit succeeded: {many} devices")),
        }),
        Some(Err(failure)) => {
            let text = failure.text.replace("; run cuda-events-doctor for details", "");
            Some(Finding::wrong(check, text, meaning(facts, failure)))
        }
    }
}

fn no_device() -> String {
    String::from(
        "Compare `nvidia-smi -L` with CUDA_VISIBLE_DEVICES: the driver works, but shows no GPU to \
         this process.",
    )
}

/// What to do about a code of `cuInit`'s where no other check knows better.
fn meaning(facts: &Facts, failure: &Failure) -> String {
    if failure.forked {
        return forked();
    }
    String::from(match failure.code {
        Some(2 | 304) => {
            "Check this process's limits (`ulimit -a`) and the rules of its container or sandbox: \
             the operating system refused a request of the driver."
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
            "Give the virtual GPU a type and a licence that include CUDA: its current ones do not."
        }
        Some(803) => {
            "Reboot, and restart containers: the library and the kernel module have different \
             versions."
        }
        Some(804) => {
            return format!(
                "Remove the folder of the forward-compatibility package (cuda-compat{}) from the \
                 library search path: this GPU does not support it.",
                facts.file().map_or(String::new(), |file| format!("; the library is {file}"))
            );
        }
        Some(999) => {
            "Run `sudo nvidia-modprobe -u -c 0`, and reboot if that does not help: the driver \
             cannot reach its kernel module."
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

pub(super) fn devices(facts: &Facts) -> Vec<Finding> {
    facts.probe.devices.iter().map(|device| one(facts, device)).collect()
}

fn one(facts: &Facts, device: &DeviceAnswer) -> Finding {
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
                _ => meaning(facts, failure),
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

pub(super) fn mig(facts: &Facts) -> Option<Finding> {
    const FOLDER: &str = "/proc/driver/nvidia/capabilities";
    let check = Check::Mig;
    if !facts.has_nodes() {
        return None;
    }
    let system = facts.system;
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
                let known = facts.probe.nodes.iter().find(|node| node.path == path);
                if known.is_none_or(|node| node.refused.is_some()) {
                    refused.get_or_insert(path);
                }
            }
        }
    }
    let none = facts.probe.devices.is_empty();
    match (able, parts, refused) {
        (0, _, _) => None,
        (_, 0, _) if none && matches!(facts.code(), Some(100 | 101)) => Some(Finding::wrong(
            check,
            "no part of a GPU (MIG) exists; if MIG is on, a GPU needs a part to be a device",
            "Run `nvidia-smi -L`: if MIG is on, create parts with `sudo nvidia-smi mig -cgi 0 -C`, \
             or turn MIG off with `sudo nvidia-smi -mig 0`.",
        )),
        (_, 0, _) => None,
        (_, _, Some(path)) if none => Some(Finding::wrong(
            check,
            format!("{parts} parts of GPUs (MIG) exist, but {path} cannot be opened"),
            match facts.container {
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

pub(super) fn mps(facts: &Facts) -> Option<Finding> {
    const VARIABLE: &str = "CUDA_MPS_PIPE_DIRECTORY";
    const USUAL: &str = "/tmp/nvidia-mps";
    if !facts.has_nodes() {
        return None;
    }
    let check = Check::Mps;
    let system = facts.system;
    let named = system.env(VARIABLE).filter(|folder| !folder.is_empty());
    let folder = named.as_deref().unwrap_or(USUAL);
    let refused = matches!(facts.code(), Some(805..=809));
    if !system.is_folder(folder) {
        return match (named.is_some(), refused) {
            (_, true) => Some(Finding::wrong(
                check,
                format!("cuInit returned an error of MPS, but {folder} does not exist"),
                format!("Set {VARIABLE} to the folder of the MPS control daemon's pipes."),
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
    if !names.iter().any(|name| name == "control") {
        let text = format!("{folder} has no pipe of a control daemon: CUDA does not use MPS");
        return Some(Finding::note(check, text));
    }
    let id = system.read(&format!("{folder}/nvidia-cuda-mps-control.pid")).unwrap_or_default();
    let gone = id.trim().parse::<u32>().is_ok_and(|id| !system.exists(&format!("/proc/{id}")));
    // The pipe of a container's host belongs to a process that cannot be seen.
    let gone = gone && facts.container.is_none();
    if refused {
        let state = if gone { "its control daemon has ended" } else { "its control daemon runs" };
        return Some(Finding::wrong(
            check,
            format!("{folder}: {state}, and cuInit returned an error of MPS"),
            format!(
                "Start MPS again (`echo quit | nvidia-cuda-mps-control`, then \
                 `nvidia-cuda-mps-control -d`), or remove {folder} to work without MPS."
            ),
        ));
    }
    Some(if gone {
        Finding::note(check, format!("{folder} is left over from a control daemon that has ended"))
    } else {
        Finding::note(check, format!("programs use the MPS daemon of {folder}"))
    })
}
