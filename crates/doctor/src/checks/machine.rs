//! The machine: platform, container, bus, kernel module, device nodes, fabric manager.

use super::{Facts, numbers};
use crate::probe::{Library, Node};
use crate::report::{Check, Finding};
use crate::system::{Platform, System};

const EPERM: i32 = 1;
const EIO: i32 = 5;
const ENXIO: i32 = 6;
const EACCES: i32 = 13;
const ENODEV: i32 = 19;

pub(super) fn platform(facts: &Facts) -> Finding {
    let machine = facts.system.machine();
    match facts.system.platform() {
        Platform::Other => {
            let text = match &facts.probe.library {
                Library::Refused { text, .. } => text.clone(),
                _ => String::from("NVIDIA has no driver for this platform"),
            };
            Finding::wrong(
                Check::Platform,
                text,
                "Run a 64-bit program on Linux or Windows with an NVIDIA GPU; tests can run on the \
                 crate cuda-soft-driver instead.",
            )
        }
        Platform::Linux if !matches!(machine, "x86_64" | "aarch64") => Finding::note(
            Check::Platform,
            format!("Linux on {machine}: NVIDIA has drivers for x86_64 and aarch64"),
        ),
        Platform::Linux => Finding::ok(Check::Platform, format!("Linux on {machine}")),
        Platform::Windows => Finding::ok(Check::Platform, format!("Windows on {machine}")),
    }
}

pub(super) fn is_wsl(system: &System) -> bool {
    let version = system.read("/proc/version").unwrap_or_default();
    version.to_ascii_lowercase().contains("microsoft")
}

/// Where WSL puts Windows' driver library.
const WSL_LIBRARY: &str = "/usr/lib/wsl/lib/libcuda.so.1";

pub(super) fn wsl(facts: &Facts) -> Option<Finding> {
    if !facts.wsl {
        return None;
    }
    let update = "Install NVIDIA's driver in Windows (not in Linux), run `wsl --update` and `wsl \
                  --shutdown` there, and restart this distribution with WSL 2.";
    if !facts.system.exists("/dev/dxg") {
        let text = "WSL without /dev/dxg: Windows gives this distribution no GPU";
        return Some(Finding::wrong(Check::Wsl, text, update));
    }
    if !facts.system.exists(WSL_LIBRARY) {
        let text = format!("WSL 2 with /dev/dxg, but without {WSL_LIBRARY}");
        return Some(Finding::wrong(Check::Wsl, text, update));
    }
    match facts.file() {
        Some(file) if !file.starts_with("/usr/lib/wsl/") && facts.code().is_some() => {
            Some(Finding::wrong(
                Check::Wsl,
                format!("WSL 2, but the library is {file}, which belongs to a Linux driver"),
                format!(
                    "Remove NVIDIA's Linux driver from this distribution: WSL brings its own \
                     library, {WSL_LIBRARY}."
                ),
            ))
        }
        _ => Some(Finding::ok(Check::Wsl, "WSL 2 with /dev/dxg and Windows' driver library")),
    }
}

/// What runs this container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Docker,
    Podman,
    Kubernetes,
    Apptainer,
    Other,
}

impl Container {
    pub(super) fn find(system: &System) -> Option<Self> {
        let env = |name| system.env(name).is_some_and(|value| !value.is_empty());
        if env("APPTAINER_CONTAINER") || env("SINGULARITY_CONTAINER") {
            return Some(Self::Apptainer);
        }
        if env("KUBERNETES_SERVICE_HOST") {
            return Some(Self::Kubernetes);
        }
        if system.exists("/run/.containerenv") {
            return Some(Self::Podman);
        }
        if system.exists("/.dockerenv") {
            return Some(Self::Docker);
        }
        let groups = system.read("/proc/self/cgroup").unwrap_or_default();
        for (word, container) in [
            ("kubepods", Self::Kubernetes),
            ("libpod", Self::Podman),
            ("docker", Self::Docker),
            ("containerd", Self::Other),
            ("/lxc", Self::Other),
        ] {
            if groups.contains(word) {
                return Some(container);
            }
        }
        env("container").then_some(Self::Other)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Docker => "a Docker container",
            Self::Podman => "a Podman container",
            Self::Kubernetes => "a pod of Kubernetes",
            Self::Apptainer => "an Apptainer container",
            Self::Other => "a container",
        }
    }

    /// How to start it with GPUs: one sentence.
    pub(super) fn with_gpus(self) -> &'static str {
        match self {
            Self::Docker => {
                "Start the container with `docker run --gpus all`, on a host with the NVIDIA \
                 Container Toolkit."
            }
            Self::Podman => {
                "Start the container with `podman run --device nvidia.com/gpu=all`, on a host \
                 where `nvidia-ctk cdi generate` has described its GPUs."
            }
            Self::Kubernetes => {
                "Request a GPU in the pod's resources (`limits: nvidia.com/gpu: 1`), on a cluster \
                 with NVIDIA's device plugin."
            }
            Self::Apptainer => "Start the container with `apptainer exec --nv`.",
            Self::Other => {
                "Give the container the host's /dev/nvidia* and its driver library, as the NVIDIA \
                 Container Toolkit does."
            }
        }
    }
}

pub(super) fn container(facts: &Facts) -> Option<Finding> {
    if facts.system.platform() != Platform::Linux {
        return None;
    }
    let check = Check::Container;
    let Some(container) = facts.container else {
        return Some(Finding::ok(check, "none detected"));
    };
    let name = container.name();
    let asked = facts.system.env("NVIDIA_VISIBLE_DEVICES");
    let able = facts.system.env("NVIDIA_DRIVER_CAPABILITIES").filter(|able| !able.is_empty());
    let lacks_compute = able
        .as_deref()
        .filter(|able| !able.split(',').any(|word| matches!(word.trim(), "compute" | "all")));
    if facts.usable || facts.probe.lost.is_some() || !facts.has_nodes() {
        return Some(Finding::ok(check, name));
    }
    if facts.probe.nodes.is_empty() {
        let text = match asked.as_deref() {
            None | Some("") => {
                format!("{name} without GPUs: no device nodes, and no NVIDIA_VISIBLE_DEVICES")
            }
            Some(none @ ("none" | "void")) => {
                format!("{name} without GPUs: NVIDIA_VISIBLE_DEVICES is {none}")
            }
            Some(some) => format!(
                "{name} whose NVIDIA_VISIBLE_DEVICES is {some}, but its runtime gave it no device: \
                 NVIDIA's hook did not run"
            ),
        };
        return Some(Finding::wrong(check, text, container.with_gpus()));
    }
    if let (Some(able), false) = (lacks_compute, facts.is_loaded()) {
        return Some(Finding::wrong(
            check,
            format!(
                "{name} whose NVIDIA_DRIVER_CAPABILITIES is {able}: without compute it gets no \
                 CUDA library"
            ),
            "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        ));
    }
    Some(Finding::note(check, format!("{name}, with device nodes")))
}

/// What is on the PCI bus of NVIDIA's.
pub(crate) struct Bus {
    /// Each GPU's address and kernel driver; none where the bus cannot be looked at.
    pub(crate) gpus: Option<Vec<(String, Option<String>)>>,
    pub(crate) switches: usize,
    reason: String,
}

impl Bus {
    pub(super) fn look(system: &System) -> Self {
        const FOLDER: &str = "/sys/bus/pci/devices";
        let mut bus = Self { gpus: None, switches: 0, reason: String::new() };
        let addresses = match system.list(FOLDER) {
            Ok(addresses) if addresses.is_empty() => {
                bus.reason = format!("{FOLDER} is empty");
                return bus;
            }
            Ok(addresses) => addresses,
            Err(error) => {
                bus.reason = format!("{FOLDER}: {error}");
                return bus;
            }
        };
        let mut gpus = Vec::new();
        for address in addresses {
            let device = format!("{FOLDER}/{address}");
            let value = |name: &str| system.read(&format!("{device}/{name}")).unwrap_or_default();
            if value("vendor").trim() != "0x10de" {
                continue;
            }
            // Display and 3D controllers, and bridges.
            match value("class").get(..6) {
                Some("0x0300" | "0x0302") => {
                    gpus.push((address, system.link(&format!("{device}/driver"))));
                }
                Some("0x0680") => bus.switches += 1,
                _ => {}
            }
        }
        bus.gpus = Some(gpus);
        bus
    }
}

/// The kernel module has to be loaded; in a container that is the host's affair.
fn load_module(facts: &Facts) -> String {
    let place = if facts.container.is_some() { "On the host, run" } else { "Run" };
    format!(
        "{place} `sudo modprobe nvidia`; if that fails, `sudo dmesg` shows the reason (reinstall \
         NVIDIA's driver after a kernel update, and sign the module if Secure Boot is on)."
    )
}

pub(super) fn bus(facts: &Facts) -> Option<Finding> {
    if !facts.has_nodes() {
        return None;
    }
    let check = Check::Bus;
    let Some(gpus) = &facts.bus.gpus else {
        return Some(Finding::unknown(check, &*facts.bus.reason));
    };
    let count = match gpus.len() {
        0 => {
            return Some(Finding::wrong(
                check,
                "no NVIDIA GPU on the PCI bus",
                "Use a machine with an NVIDIA GPU, or attach one to this virtual machine; tests \
                 can run on the crate cuda-soft-driver instead.",
            ));
        }
        1 => String::from("1 NVIDIA GPU"),
        many => format!("{many} NVIDIA GPUs"),
    };
    let drivers = |name| gpus.iter().filter(|(_, driver)| driver.as_deref() == name).count();
    let addresses: Vec<_> = gpus.iter().map(|(address, _)| address.as_str()).collect();
    let addresses = addresses.join(", ");
    if drivers(Some("nvidia")) > 0 {
        return Some(Finding::ok(check, format!("{count} ({addresses}), kernel driver nvidia")));
    }
    let bound = gpus.iter().find_map(|(_, driver)| driver.as_deref());
    let text = format!("{count} ({addresses}), kernel driver {}", bound.unwrap_or("none"));
    Some(Finding::wrong(
        check,
        text,
        match bound {
            Some("nouveau") => String::from(
                "Install NVIDIA's driver and disable nouveau (`blacklist nouveau` in a file in \
                 /etc/modprobe.d), then reboot.",
            ),
            Some("vfio-pci") => String::from(
                "Run in the virtual machine that has the GPU (vfio-pci), or return the GPU to this \
                 host.",
            ),
            _ => load_module(facts),
        },
    ))
}

/// The version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ...`.
fn version_in(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| {
        let parts = word.split('.').count();
        (2..=3).contains(&parts) && numbers(word).len() == parts
    })
}

pub(super) fn module_version(system: &System) -> Option<String> {
    let version = system.read("/proc/driver/nvidia/version").unwrap_or_default();
    let line = version.lines().find(|line| line.starts_with("NVRM version:"));
    if let Some(version) = line.and_then(version_in) {
        return Some(version.to_owned());
    }
    let version = system.read("/sys/module/nvidia/version").ok()?;
    Some(version.trim().to_owned())
}

pub(super) fn module(facts: &Facts) -> Option<Finding> {
    if !facts.has_nodes() {
        return None;
    }
    let check = Check::Module;
    let Some(module) = &facts.module else {
        // A library that is tried without it may be a software driver.
        return Some(Finding::wrong(
            check,
            "NVIDIA's kernel module is not loaded",
            load_module(facts),
        ));
    };
    let library = facts.file().and_then(super::library::version_of);
    let Some(library) = library else {
        return Some(Finding::ok(check, &**module));
    };
    if library == module {
        return Some(Finding::ok(check, format!("{module}, the same as the library")));
    }
    if facts.file().is_some_and(super::library::is_compat) {
        let text = format!("{module}; the library is {library}, for forward compatibility");
        return Some(Finding::note(check, text));
    }
    let advice = if facts.container.is_some() {
        format!(
            "Restart the container, so it gets the library of the host's kernel module {module}; \
             if the image contains its own library ({library}), remove it."
        )
    } else if numbers(library) > numbers(module) {
        format!(
            "Reboot: the driver was updated to {library}, but the kernel still runs module \
             {module}."
        )
    } else {
        format!(
            "Reinstall the driver: its library, {library}, is older than the kernel module, \
             {module}."
        )
    };
    Some(Finding::wrong(check, format!("{module}, but the library is {library}"), advice))
}

pub(super) fn nodes(facts: &Facts) -> Option<Finding> {
    let check = Check::Nodes;
    if facts.tegra {
        return Some(Finding::note(check, "a Jetson board, which has other device nodes"));
    }
    if !facts.has_nodes() {
        return None;
    }
    if let (Some(lost), true) = (&facts.probe.lost, facts.probe.nodes.is_empty()) {
        return Some(Finding::unknown(check, format!("not checked: {} did not return", lost.step)));
    }
    let nodes: Vec<&Node> =
        facts.probe.nodes.iter().filter(|node| !node.path.contains("-caps/")).collect();
    let there = |path: &str| nodes.iter().any(|node| node.path == path);
    let mut missing = Vec::new();
    missing.extend((!there("/dev/nvidiactl")).then_some("/dev/nvidiactl"));
    missing.extend((!there("/dev/nvidia-uvm")).then_some("/dev/nvidia-uvm"));
    missing.extend((!nodes.iter().any(|node| node.gpu().is_some())).then_some("/dev/nvidia0"));
    if !missing.is_empty() {
        let advice = match facts.container {
            Some(container) => String::from(container.with_gpus()),
            None if facts.module.is_none() => load_module(facts),
            None => String::from(
                "Run `sudo nvidia-modprobe -u -c 0`, which creates the device nodes, or start \
                 nvidia-persistenced at boot.",
            ),
        };
        let text = format!("missing: {}", missing.join(", "));
        return Some(Finding::wrong(check, text, advice));
    }
    let one = nodes.iter().any(|node| node.gpu().is_some() && node.refused.is_none());
    let refused = nodes.iter().find(|node| {
        // One GPU of several is enough.
        node.refused.is_some() && (node.gpu().is_none() || !one)
    });
    if let Some((node, (number, text))) =
        refused.and_then(|node| node.refused.as_ref().map(|refused| (node, refused)))
    {
        return Some(refused_node(facts, &node.path, *number, text));
    }
    let paths: Vec<_> = nodes.iter().map(|node| node.path.as_str()).collect();
    Some(Finding::ok(check, paths.join(", ")))
}

fn refused_node(facts: &Facts, path: &str, number: Option<i32>, text: &str) -> Finding {
    let check = Check::Nodes;
    match number {
        Some(EACCES) => {
            let rights = facts.system.rights(path);
            let shown = rights.as_ref().map_or(String::new(), |(rights, _)| format!(" ({rights})"));
            let advice = match rights {
                Some((_, group)) if group != "root" && group != "0" => format!(
                    "Allow this user to open {path}: run `sudo usermod -aG {group} $USER`, and log \
                     in again."
                ),
                _ => format!(
                    "Allow this user to open {path}: only root may open it (the kernel module's \
                     option NVreg_DeviceFileMode=0666 allows all users)."
                ),
            };
            Finding::wrong(check, format!("{path}: permission denied{shown}"), advice)
        }
        Some(EPERM) => Finding::wrong(
            check,
            format!("{path}: forbidden by the device rules of this control group"),
            if facts.container.is_some() {
                "Restart the container: it never had access to the GPUs, or lost it, for example \
                 through `systemctl daemon-reload` on the host."
            } else {
                "Give the service or job access to the GPUs (DeviceAllow in systemd, --gres=gpu in \
                 Slurm): its control group forbids it."
            },
        ),
        Some(ENXIO | ENODEV) => Finding::wrong(
            check,
            format!("{path}: {text}: no kernel driver serves it"),
            load_module(facts),
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

/// What the kernel keeps of the name `nv-fabricmanager`.
const FABRIC_MANAGER: &str = "nv-fabricmanage";

pub(super) fn fabric(facts: &Facts) -> Option<Finding> {
    let check = Check::Fabric;
    let not_ready = facts.code() == Some(802);
    if facts.bus.switches == 0 && !not_ready {
        return None;
    }
    let switches = match facts.bus.switches {
        0 => String::from("no NVSwitch is visible"),
        1 => String::from("1 NVSwitch"),
        many => format!("{many} NVSwitches"),
    };
    let processes = facts.system.list("/proc").unwrap_or_default();
    let runs = processes.iter().filter(|name| name.parse::<u32>().is_ok()).any(|process| {
        let name = facts.system.read(&format!("/proc/{process}/comm")).unwrap_or_default();
        name.trim() == FABRIC_MANAGER
    });
    if runs && !not_ready {
        return Some(Finding::ok(check, format!("{switches}, and nv-fabricmanager runs")));
    }
    let place = if facts.container.is_some() { " on the host" } else { "" };
    if not_ready {
        let state = match (runs, facts.container) {
            (true, _) => "runs, but has not made the GPUs ready",
            (false, Some(_)) => "may run outside this container",
            (false, None) => "does not run",
        };
        let version = facts
            .module
            .as_deref()
            .map_or(String::new(), |version| format!(" of the driver's version, {version}"));
        return Some(Finding::wrong(
            check,
            format!("{switches}; nv-fabricmanager {state}"),
            format!(
                "Run `sudo systemctl restart nvidia-fabricmanager`{place}, with a fabric manager\
                 {version}; on a machine with confidential computing, also `sudo nvidia-smi \
                 conf-compute -srs 1`."
            ),
        ));
    }
    let text = format!("{switches}, but no nv-fabricmanager is visible{place}");
    Some(Finding::note(check, text))
}
