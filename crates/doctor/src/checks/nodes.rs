//! The device nodes, and what refuses them.

use super::Evidence;
use super::container::Container;
use super::kernel::load_module;
use crate::probe::{How, Node};
use crate::report::{Check, Finding};

const EPERM: i32 = 1;
const EIO: i32 = 5;
const ENXIO: i32 = 6;
const EACCES: i32 = 13;
const ENODEV: i32 = 19;

const CREATE: &str = "Run `sudo nvidia-modprobe -u -c 0`, which creates the device nodes, or start \
                      nvidia-persistenced at boot.";
const CREATE_OUTSIDE: &str = "Run `sudo nvidia-modprobe -u -c 0` on the host, which creates the \
                              device nodes, and then start the container again with all of them.";

pub(super) const JETSON: &str = "Start the container with `docker run --runtime nvidia`, on a \
                                 board with the NVIDIA Container Toolkit.";

pub(super) fn nodes(evidence: &Evidence) -> Option<Finding> {
    let check = Check::Nodes;
    if !evidence.tegra && !evidence.has_nodes() {
        return None;
    }
    if let (Some(lost), true) = (&evidence.probe.lost, evidence.probe.nodes.is_empty()) {
        let why = match lost.how {
            How::NotStarted { .. } => String::from("not checked: no process could be started"),
            _ => format!("not checked: {} did not return", lost.step),
        };
        return Some(Finding::unknown(check, why));
    }
    let nodes: Vec<&Node> =
        evidence.probe.nodes.iter().filter(|node| !node.path.contains("-caps/")).collect();
    if evidence.tegra {
        return Some(tegra(evidence, &nodes));
    }
    let there = |path: &str| nodes.iter().any(|node| node.path == path);
    let mut missing = Vec::new();
    missing.extend((!there("/dev/nvidiactl")).then_some("/dev/nvidiactl"));
    missing.extend((!there("/dev/nvidia-uvm")).then_some("/dev/nvidia-uvm"));
    missing.extend((!nodes.iter().any(|node| node.gpu().is_some())).then_some("/dev/nvidia0"));
    if !missing.is_empty() {
        let text = format!("missing: {}", missing.join(", "));
        return Some(Finding::wrong(check, text, create(evidence)));
    }
    if let Some(node) = nodes.iter().find(|node| !evidence.system.is_device(&node.path)) {
        let text = format!("{} is no device: it was made where the host had none", node.path);
        return Some(Finding::wrong(check, text, CREATE_OUTSIDE));
    }
    let one = nodes.iter().any(|node| node.gpu().is_some() && node.refused.is_none());
    let refused = nodes.iter().find(|node| {
        // One GPU of several is enough.
        node.refused.is_some() && (node.gpu().is_none() || !one)
    });
    if let Some((node, (number, text))) =
        refused.and_then(|node| node.refused.as_ref().map(|refused| (node, refused)))
    {
        return Some(refused_node(evidence, &node.path, *number, text));
    }
    let paths: Vec<_> = nodes.iter().map(|node| node.path.as_str()).collect();
    Some(Finding::ok(check, paths.join(", ")))
}

/// What to do about missing nodes.
fn create(evidence: &Evidence) -> String {
    match evidence.container {
        Some(container) if evidence.probe.nodes.is_empty() => container.with_gpus(evidence.system),
        Some(_) => String::from(CREATE_OUTSIDE),
        None if evidence.module.is_none() => load_module(evidence),
        None if evidence.private_dev => match &evidence.service {
            Some(service) => format!(
                "Set PrivateDevices=no in {service} (`sudo systemctl edit {service}`), and restart \
                 it: the service has a /dev of its own, without the GPUs."
            ),
            None => String::from(
                "Give the sandbox the GPU's device nodes (in bubblewrap `--dev-bind /dev/nvidia0 \
                 /dev/nvidia0`, and so on for nvidiactl and nvidia-uvm; in firejail `--ignore=\
                 private-dev`; in systemd PrivateDevices=no): it has a /dev of its own.",
            ),
        },
        None => String::from(CREATE),
    }
}

/// NVIDIA's boards with a GPU inside of the processor.
fn tegra(evidence: &Evidence, nodes: &[&Node]) -> Finding {
    let check = Check::Nodes;
    let own: Vec<_> = nodes.iter().filter(|node| !node.path.contains("/nvidia")).collect();
    if let Some((node, (_, text))) =
        own.iter().find_map(|node| node.refused.as_ref().map(|refused| (node, refused)))
    {
        let rights = evidence.system.rights(&node.path);
        let group = rights.map_or(String::from("video"), |rights| rights.group);
        let advice = match evidence.container {
            Some(_) => format!(
                "Start the container with `--group-add {group}`, or as root: only that group may \
                 open the GPU of a Jetson board."
            ),
            None => format!(
                "Allow this user to open {}: run `sudo usermod -aG {group} $USER`, and log in \
                 again.",
                node.path
            ),
        };
        return Finding::wrong(check, format!("a Jetson board; {}: {text}", node.path), advice);
    }
    if own.is_empty() && nodes.is_empty() && evidence.container.is_some() {
        return Finding::wrong(check, "a Jetson board, whose GPU has no device node here", JETSON);
    }
    Finding::note(check, "a Jetson board, which has other device nodes")
}

fn refused_node(evidence: &Evidence, path: &str, number: Option<i32>, text: &str) -> Finding {
    let check = Check::Nodes;
    let container = evidence.container;
    match number {
        Some(EACCES) => denied(evidence, path),
        Some(EPERM) => Finding::wrong(
            check,
            format!("{path}: forbidden by the device rules of this control group"),
            match container {
                Some(Container::Flatpak | Container::Snap | Container::Gvisor) => {
                    container.map(|it| it.with_gpus(evidence.system)).unwrap_or_default()
                }
                Some(Container::Lxc) => format!(
                    "Allow {path} in the container's configuration on the host \
                     (`lxc.cgroup2.devices.allow: c MAJOR:* rwm`, with the number that `ls -l \
                     {path}` shows now), and start the container again."
                ),
                Some(_) => String::from(
                    "Restart the container: it never had access to the GPUs, or lost it, for \
                     example through `systemctl daemon-reload` on the host.",
                ),
                None if evidence.slurm => String::from(
                    "Request a GPU for the job with `--gres=gpu:1`: the control group of a job \
                     without one forbids it.",
                ),
                None => match &evidence.service {
                    Some(service) => format!(
                        "Give the service access to the GPUs: its control group forbids it (add \
                         `DeviceAllow=char-nvidia-frontend rw` and `DeviceAllow=char-nvidia-uvm \
                         rw` with `sudo systemctl edit {service}`, or set DevicePolicy=auto)."
                    ),
                    None => String::from(
                        "Give the service or job access to the GPUs (DeviceAllow in systemd, \
                         --gres=gpu in Slurm): its control group forbids it.",
                    ),
                },
            },
        ),
        Some(ENXIO | ENODEV) => Finding::wrong(
            check,
            format!("{path}: {text}: no kernel driver serves it"),
            if path.ends_with("-uvm") && evidence.module.is_some() {
                let place = if container.is_some() { "On the host, run" } else { "Run" };
                format!(
                    "{place} `sudo modprobe nvidia_uvm` and `sudo nvidia-modprobe -u -c 0`, which \
                     makes {path} with the number that it has now."
                )
            } else {
                load_module(evidence)
            },
        ),
        Some(EIO) => Finding::wrong(
            check,
            format!("{path}: {text}: the GPU does not start"),
            "Look for lines with NVRM and Xid in `sudo dmesg`, and reboot: this GPU does not \
             start.",
        ),
        _ => Finding::wrong(
            check,
            format!("{path}: {text}"),
            format!("Allow this process to open {path}: the system refuses it."),
        ),
    }
}

/// Permission denied: by the file's mode, or by something else if the mode allows it.
fn denied(evidence: &Evidence, path: &str) -> Finding {
    const FOR_ALL: u32 = 0o006;
    let check = Check::Nodes;
    let rights = evidence.system.rights(path);
    let shown = rights.as_ref().map_or(String::new(), |rights| format!(" ({})", rights.text));
    let open = rights.as_ref().is_some_and(|rights| rights.mode & FOR_ALL == FOR_ALL);
    let container = evidence.container;
    if evidence.forbids_devices(path) {
        return Finding::wrong(
            check,
            format!("{path}: permission denied: it is mounted with nodev"),
            "Give the sandbox the device itself: in bubblewrap `--dev-bind` instead of `--bind`, \
             elsewhere a mount without the option nodev.",
        );
    }
    if open && container == Some(Container::Snap) {
        let text = format!("{path}: permission denied{shown}, by the snap's confinement");
        let advice = Container::Snap.with_gpus(evidence.system);
        return Finding::wrong(check, text, advice);
    }
    if open {
        let label = evidence.label.as_deref().unwrap_or_default();
        let named = |module: &str| match label {
            "" => module.to_owned(),
            _ => format!("{module} ({label})"),
        };
        let (by, advice) = if evidence.selinux && container.is_some() {
            (
                named("SELinux"),
                String::from(
                    "Start the container with `--security-opt label=disable`, or allow all \
                     containers devices with `sudo setsebool -P container_use_devices 1`.",
                ),
            )
        } else if evidence.selinux {
            (
                named("SELinux"),
                format!(
                    "Allow {path} in the SELinux policy: `sudo ausearch -m avc -ts recent` shows \
                     what it refuses."
                ),
            )
        } else if label.is_empty() || label == "unconfined" {
            (
                String::from("a sandbox or a security module"),
                format!(
                    "Allow {path} in the sandbox of this process (Landlock, or a profile of \
                     AppArmor or SELinux): the file's mode allows it."
                ),
            )
        } else {
            (
                named("AppArmor"),
                format!(
                    "Allow `/dev/nvidia* rw,` in the AppArmor profile {}, and reload it: `sudo \
                     dmesg` shows what it refuses.",
                    label.split(' ').next().unwrap_or_default()
                ),
            )
        };
        let text = format!("{path}: permission denied{shown}, not by its mode but by {by}");
        return Finding::wrong(check, text, advice);
    }
    let group = rights.map(|rights| rights.group).filter(|group| group != "root" && group != "0");
    let advice = match (group, container) {
        (Some(_), Some(Container::Podman | Container::Distrobox)) => String::from(
            "Start the container with `--group-add keep-groups`, as a user who is in the group of \
             the device nodes: a container without root loses the user's other groups.",
        ),
        (Some(group), Some(Container::Docker | Container::Kubernetes)) => format!(
            "Start the container with `--group-add {group}` (in Kubernetes supplementalGroups): \
             only that group may open {path}."
        ),
        (Some(group), _) => match &evidence.service {
            Some(service) if container.is_none() => format!(
                "Set SupplementaryGroups={group} in {service} (`sudo systemctl edit {service}`), \
                 and restart it."
            ),
            _ => format!(
                "Allow this user to open {path}: run `sudo usermod -aG {group} $USER`, and log in \
                 again."
            ),
        },
        (None, _) => format!(
            "Allow this user to open {path}: only root may open it (the kernel module's option \
             NVreg_DeviceFileMode=0666 allows all users)."
        ),
    };
    Finding::wrong(check, format!("{path}: permission denied{shown}"), advice)
}
