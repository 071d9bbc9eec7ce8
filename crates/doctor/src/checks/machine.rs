//! The machine: platform, WSL and fabric manager.

use super::Evidence;
use crate::probe::Library;
use crate::report::{Check, Finding};
use crate::system::{Platform, System};

pub(super) fn platform(evidence: &Evidence) -> Finding {
    let machine = evidence.system.machine();
    match evidence.system.platform() {
        Platform::Other => {
            let text = match &evidence.probe.library {
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

pub(super) fn is_tegra(system: &System) -> bool {
    let model = system.read("/proc/device-tree/compatible").unwrap_or_default();
    // A board with a GPU of its own has the nodes of other machines.
    (system.exists("/etc/nv_tegra_release") || model.contains("nvidia,tegra"))
        && !system.exists("/dev/nvidiactl")
}

/// Where WSL puts Windows' driver library.
const WSL_LIBRARY: &str = "/usr/lib/wsl/lib/libcuda.so.1";

pub(super) fn wsl(evidence: &Evidence) -> Option<Finding> {
    if !evidence.wsl {
        return None;
    }
    let update = "Install NVIDIA's driver in Windows (not in Linux), run `wsl --update` and `wsl \
                  --shutdown` there, and restart this distribution with WSL 2.";
    if let (Some(container), false) = (evidence.container, evidence.system.exists("/dev/dxg")) {
        let text = "a container in WSL without /dev/dxg";
        let advice = container.with_gpus(evidence.system);
        return Some(Finding::wrong(Check::Wsl, text, advice));
    }
    if !evidence.system.exists("/dev/dxg") {
        let text = "WSL without /dev/dxg: Windows gives this distribution no GPU";
        return Some(Finding::wrong(Check::Wsl, text, update));
    }
    if !evidence.system.exists(WSL_LIBRARY) && !evidence.is_loaded() {
        let text = format!("WSL 2 with /dev/dxg, but without {WSL_LIBRARY}");
        return Some(Finding::wrong(Check::Wsl, text, update));
    }
    if evidence.system.open("/dev/dxg").is_err_and(|error| error.raw_os_error() == Some(1)) {
        let text = "/dev/dxg: forbidden by the device rules of this control group";
        let advice = "Give the service access to the GPU with `DeviceAllow=/dev/dxg rw`, or restart \
                      the container: its control group forbids it.";
        return Some(Finding::wrong(Check::Wsl, text, advice));
    }
    match evidence.file() {
        Some(file)
            if !file.starts_with("/usr/lib/wsl/")
                && evidence.code().is_some()
                && evidence.container.is_none() =>
        {
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

/// What the kernel keeps of the name `nv-fabricmanager`.
const FABRIC_MANAGER: &str = "nv-fabricmanage";

pub(super) fn fabric(evidence: &Evidence) -> Option<Finding> {
    let check = Check::Fabric;
    let not_ready = evidence.code() == Some(802);
    if evidence.bus.switches == 0 && !not_ready {
        return None;
    }
    let switches = match evidence.bus.switches {
        0 => String::from("no NVSwitch is visible"),
        1 => String::from("1 NVSwitch"),
        many => format!("{many} NVSwitches"),
    };
    let processes = evidence.system.list("/proc").unwrap_or_default();
    let runs = processes.iter().filter(|name| name.parse::<u32>().is_ok()).any(|process| {
        let name = evidence.system.read(&format!("/proc/{process}/comm")).unwrap_or_default();
        name.trim() == FABRIC_MANAGER
    });
    if runs && !not_ready {
        return Some(Finding::ok(check, format!("{switches}, and nv-fabricmanager runs")));
    }
    let place = if evidence.container.is_some() { " on the host" } else { "" };
    if not_ready {
        let state = match (runs, evidence.container) {
            (true, _) => "runs, but has not made the GPUs ready",
            (false, Some(_)) => "may run outside this container",
            (false, None) => "does not run",
        };
        let version = evidence
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
