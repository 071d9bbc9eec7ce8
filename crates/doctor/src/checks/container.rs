//! Containers and sandboxes, and how each gets a GPU.

use super::Evidence;
use crate::report::{Check, Finding};
use crate::system::{Platform, System};

/// What confines this process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Docker,
    Podman,
    Distrobox,
    Kubernetes,
    Apptainer,
    Flatpak,
    Snap,
    Lxc,
    Gvisor,
    Other,
}

impl Container {
    pub(super) fn find(system: &System, label: Option<&str>) -> Option<Self> {
        /// The date of the Linux that gVisor shows, which no other has.
        const GVISOR: &str = "#1 SMP Sun Jan 10 15:06:54 PST 2016";
        let env = |name| system.env(name).is_some_and(|value| !value.is_empty());
        if system.read("/proc/version").is_ok_and(|version| version.contains(GVISOR)) {
            return Some(Self::Gvisor);
        }
        if system.exists("/.flatpak-info") {
            return Some(Self::Flatpak);
        }
        // A program that a snap starts outside of itself inherits the variables.
        if env("SNAP") && env("SNAP_NAME") && label.is_none_or(|label| label.starts_with("snap.")) {
            return Some(Self::Snap);
        }
        if env("APPTAINER_CONTAINER") || env("SINGULARITY_CONTAINER") {
            return Some(Self::Apptainer);
        }
        if env("KUBERNETES_SERVICE_HOST") || system.exists("/run/secrets/kubernetes.io") {
            return Some(Self::Kubernetes);
        }
        if system.exists("/run/.containerenv") {
            let is_box = env("DISTROBOX_ENTER_PATH") || system.exists("/run/.toolboxenv");
            return Some(if is_box { Self::Distrobox } else { Self::Podman });
        }
        if system.exists("/.dockerenv") {
            return Some(Self::Docker);
        }
        let manager = system.read("/run/systemd/container").unwrap_or_default();
        let manager = system.env("container").unwrap_or_else(|| manager.trim().to_owned());
        if manager == "lxc" || ["/dev/.lxc", "/dev/lxd"].iter().any(|path| system.exists(path)) {
            return Some(Self::Lxc);
        }
        let groups = system.read("/proc/self/cgroup").unwrap_or_default();
        for (word, container) in [
            ("kubepods", Self::Kubernetes),
            ("libpod", Self::Podman),
            ("docker-", Self::Docker),
            ("docker/", Self::Docker),
            ("cri-containerd", Self::Other),
            ("/lxc", Self::Lxc),
        ] {
            if groups.contains(word) {
                return Some(container);
            }
        }
        (!manager.is_empty()).then_some(Self::Other)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Docker => "a Docker container",
            Self::Podman => "a Podman container",
            Self::Distrobox => "a box of Distrobox or Toolbox",
            Self::Kubernetes => "a pod of Kubernetes",
            Self::Apptainer => "an Apptainer container",
            Self::Flatpak => "a Flatpak sandbox",
            Self::Snap => "a snap",
            Self::Lxc => "a container of LXC",
            Self::Gvisor => "a gVisor sandbox",
            Self::Other => "a container",
        }
    }

    /// Whether its driver library is installed in it, as on a machine of its own.
    pub(super) fn installs_its_library(self) -> bool {
        matches!(self, Self::Lxc | Self::Other)
    }

    /// How to start it with GPUs: one sentence.
    pub(super) fn with_gpus(self, system: &System) -> String {
        String::from(match self {
            Self::Docker => {
                "Start the container with `docker run --gpus all`, on a host with the NVIDIA \
                 Container Toolkit."
            }
            Self::Podman => {
                "Start the container with `podman run --device nvidia.com/gpu=all`, on a host \
                 where `nvidia-ctk cdi generate` has described its GPUs."
            }
            Self::Distrobox => {
                "Create the box with `distrobox create --nvidia`, which brings the host's driver \
                 libraries into it."
            }
            Self::Kubernetes => {
                "Request a GPU in the pod's resources (`limits: nvidia.com/gpu: 1`), on a cluster \
                 with NVIDIA's device plugin."
            }
            Self::Apptainer => "Start the container with `apptainer exec --nv`.",
            Self::Flatpak => {
                "Start the application with `flatpak run --device=all`, or allow that for good \
                 with `flatpak override --user --device=all`."
            }
            Self::Snap => {
                let snap = system.env("SNAP_NAME").unwrap_or_default();
                return format!(
                    "Connect the snap to the GPU with `sudo snap connect {snap}:opengl`, and start \
                     it again."
                );
            }
            Self::Lxc => {
                "Give the container the host's /dev/nvidia* (in LXD and Incus `config device add \
                 NAME gpu gpu`, in LXC and Proxmox `lxc.cgroup2.devices.allow` and \
                 `lxc.mount.entry` for each), and install the driver's libraries in it."
            }
            Self::Gvisor => {
                "Run the sandbox with `runsc --nvproxy`, on a host whose driver version is in \
                 `runsc nvproxy list-supported-drivers`."
            }
            Self::Other => {
                "Give the container the host's /dev/nvidia* and its driver library, as the NVIDIA \
                 Container Toolkit does."
            }
        })
    }
}

pub(super) fn container(evidence: &Evidence) -> Option<Finding> {
    if evidence.system.platform() != Platform::Linux {
        return None;
    }
    let check = Check::Container;
    let Some(container) = evidence.container else {
        let text = match (&evidence.service, evidence.private_dev) {
            (Some(service), _) => format!("none detected; the service {service}"),
            (None, true) => String::from("none detected, but /dev is not the system's: a sandbox"),
            _ => String::from("none detected"),
        };
        return Some(Finding::ok(check, text));
    };
    let name = container.name();
    let asked = evidence.system.env("NVIDIA_VISIBLE_DEVICES").filter(|asked| !asked.is_empty());
    let able = evidence.system.env("NVIDIA_DRIVER_CAPABILITIES").filter(|able| !able.is_empty());
    let lacks_compute = able
        .as_deref()
        .filter(|able| !able.split(',').any(|word| matches!(word.trim(), "compute" | "all")));
    if evidence.usable || evidence.probe.lost.is_some() || !evidence.has_nodes() {
        return Some(Finding::ok(check, name));
    }
    if evidence.probe.nodes.is_empty() {
        let text = match asked.as_deref() {
            None => format!("{name} without GPUs: no device nodes, and no NVIDIA_VISIBLE_DEVICES"),
            Some(none @ ("none" | "void")) => {
                format!("{name} without GPUs: NVIDIA_VISIBLE_DEVICES is {none}")
            }
            Some(some) => format!(
                "{name} whose NVIDIA_VISIBLE_DEVICES is {some}, but its runtime gave it no device: \
                 NVIDIA's hook did not run"
            ),
        };
        let advice = match asked.as_deref() {
            Some(some)
                if container == Container::Kubernetes && !matches!(some, "none" | "void") =>
            {
                String::from(
                    "Set `runtimeClassName: nvidia` in the pod (or make nvidia the default runtime \
                     of the node), and request a GPU (`limits: nvidia.com/gpu: 1`).",
                )
            }
            _ => container.with_gpus(evidence.system),
        };
        return Some(Finding::wrong(check, text, advice));
    }
    if let (Some(able), false) = (lacks_compute, evidence.is_loaded()) {
        return Some(Finding::wrong(
            check,
            format!(
                "{name} whose NVIDIA_DRIVER_CAPABILITIES is {able}: without compute it gets no \
                 CUDA library"
            ),
            "Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        ));
    }
    // Its own kernel stands between the driver and its module.
    if container == Container::Gvisor && evidence.fails() && evidence.is_loaded() {
        let text = format!("{name}, with device nodes, in which the driver fails");
        return Some(Finding::wrong(check, text, container.with_gpus(evidence.system)));
    }
    Some(Finding::note(check, format!("{name}, with device nodes")))
}
