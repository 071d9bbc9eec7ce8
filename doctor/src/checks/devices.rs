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
                "Read the lines with NVRM and Xid of `sudo dmesg`, and reboot: a GPU or its driver \
                 hangs.",
            ),
            How::Ended(how) => Finding::wrong(
                check,
                format!("{} {how}", lost.step),
                "Install the driver again, and take away what LD_PRELOAD or CUDA_EVENTS_DRIVER put \
                 in its place: the library crashes.",
            ),
        });
    }
    match &facts.probe.init {
        None => None,
        Some(Ok(())) => Some(match facts.probe.devices.len() {
            0 => Finding::wrong(check, "cuInit succeeded, and there is no device", no_device()),
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
        "Compare `nvidia-smi -L` with CUDA_VISIBLE_DEVICES: the driver runs, and shows this \
         process no GPU.",
    )
}

/// What to do about a code of `cuInit`'s where no other check knows better.
fn meaning(facts: &Facts, failure: &Failure) -> String {
    if failure.forked {
        return forked();
    }
    String::from(match failure.code {
        Some(2 | 304) => {
            "Look at this process's limits (`ulimit -a`) and at what its container or sandbox \
             allows: the operating system refused the driver something."
        }
        Some(3) => return forked(),
        Some(34) => "Install the NVIDIA display driver: this library is the toolkit's stub.",
        Some(36) => "Update the NVIDIA display driver.",
        Some(46) => {
            "End the process that has the device to itself (`nvidia-smi` names it), or let all \
             share it with `sudo nvidia-smi -c DEFAULT`."
        }
        Some(100) => return no_device(),
        Some(101) => {
            "Run `nvidia-smi -L`: a GPU that this process was given cannot be used, such as one \
             that CUDA_VISIBLE_DEVICES names twice."
        }
        Some(801) => {
            "Give the virtual GPU a type and a licence with CUDA: as it is set up, it has none."
        }
        Some(803) => {
            "Reboot, and start containers again: the library and the kernel module are of \
             different versions."
        }
        Some(804) => {
            return format!(
                "Take the forward-compatibility package's folder (cuda-compat{}) out of the \
                 library search path: this GPU does not support it.",
                facts.file().map_or(String::new(), |file| format!("; the library is {file}"))
            );
        }
        Some(999) => {
            "Run `sudo nvidia-modprobe -u -c 0`, and reboot if that does not help: the driver does \
             not reach its kernel module."
        }
        _ => {
            return format!("Look this up with the driver's version: {}.", failure.text);
        }
    })
}

fn forked() -> String {
    String::from(
        "Start worker processes by spawn and not by fork, or fork before anything uses CUDA: CUDA \
         does not survive a fork.",
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
        text += ", a part of a GPU (MIG): a process sees one only";
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
                    "End the process that has device {ordinal} to itself (`nvidia-smi` names it), \
                     or let all share it with {shared}."
                ),
                Some(2) => format!(
                    "Free memory of device {ordinal} (`nvidia-smi` names who uses it): there is no \
                     room for a context."
                ),
                _ => meaning(facts, failure),
            };
            return Finding::wrong(check, format!("{text}; no context: {}", failure.text), advice);
        }
        Some(Ok(())) => text += "; a context could be created",
        None if mode != 0 => text += ": one process at a time (--context tries it)",
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
            "no part of a GPU (MIG) exists, and with MIG on there is no device without one",
            "Run `nvidia-smi -L`: where MIG is on, create parts with `sudo nvidia-smi mig -cgi 0 \
             -C`, or turn it off with `sudo nvidia-smi -mig 0`.",
        )),
        (_, 0, _) => None,
        (_, _, Some(path)) if none => Some(Finding::wrong(
            check,
            format!("{parts} parts of GPUs (MIG) exist, and {path} cannot be opened"),
            match facts.container {
                Some(_) => format!(
                    "Start the container with a part of a GPU (NVIDIA_VISIBLE_DEVICES=MIG-..., of \
                     `nvidia-smi -L`), so that it gets {path}."
                ),
                None => format!("Let this user open {path}."),
            },
        )),
        _ => Some(Finding::note(
            check,
            format!("{parts} parts of GPUs (MIG) exist; a process sees one of them only"),
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
                format!("cuInit speaks of MPS, and {folder} is not there"),
                format!("Set {VARIABLE} to the folder of the MPS control daemon's pipes."),
            )),
            (true, _) => Some(Finding::note(
                check,
                format!("{VARIABLE} is {folder}, which is not there: CUDA does without MPS"),
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
                    "Let this user use {folder}, or start an MPS control daemon of the user's own \
                     and name its folder by {VARIABLE}."
                ),
            ));
        }
        Err(error) => return Some(Finding::unknown(check, format!("{folder}: {error}"))),
    };
    if !names.iter().any(|name| name == "control") {
        let text = format!("{folder} has no pipe of a control daemon: CUDA does without MPS");
        return Some(Finding::note(check, text));
    }
    let id = system.read(&format!("{folder}/nvidia-cuda-mps-control.pid")).unwrap_or_default();
    let gone = id.trim().parse::<u32>().is_ok_and(|id| !system.exists(&format!("/proc/{id}")));
    // The pipe of a container's host belongs to a process that cannot be seen.
    let gone = gone && facts.container.is_none();
    if refused {
        let state = if gone { "its control daemon is gone" } else { "its control daemon is there" };
        return Some(Finding::wrong(
            check,
            format!("{folder}: {state}, and cuInit could not be served"),
            format!(
                "Start MPS again (`echo quit | nvidia-cuda-mps-control`, then \
                 `nvidia-cuda-mps-control -d`), or remove {folder} to do without it."
            ),
        ));
    }
    Some(if gone {
        Finding::note(check, format!("{folder} is what a control daemon left that is gone"))
    } else {
        Finding::note(check, format!("programs are clients of the MPS daemon of {folder}"))
    })
}
