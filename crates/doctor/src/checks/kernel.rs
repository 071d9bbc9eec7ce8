//! GPUs on the bus, the kernel module that drives them, and what the kernel reports.

use super::container::Container;
use super::{Evidence, library, numbers};
use crate::report::{Check, Finding};
use crate::system::System;

/// The PCI numbers of GPUs from Turing on, which the open kernel modules serve.
const TURING: u32 = 0x1e00;
/// And from Blackwell on, which only the open kernel modules serve.
const BLACKWELL: u32 = 0x2900;
/// The first driver without GPUs before Turing.
const WITHOUT_PASCAL: u32 = 590;

/// A GPU on the PCI bus.
pub(crate) struct BusGpu {
    address: String,
    /// The kernel driver that is bound to it.
    driver: Option<String>,
    /// The PCI number of its model.
    model: Option<u32>,
    /// Whether it no longer answers: all bits of its configuration read as ones.
    gone: bool,
}

/// What is on the PCI bus of NVIDIA's.
pub(crate) struct Bus {
    /// None where the bus cannot be looked at.
    pub(crate) gpus: Option<Vec<BusGpu>>,
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
                    let model = value("device");
                    let model = model.trim().strip_prefix("0x").unwrap_or_default();
                    let config = system.bytes(&format!("{device}/config"), 4);
                    gpus.push(BusGpu {
                        driver: system.link(&format!("{device}/driver")),
                        model: u32::from_str_radix(model, 16).ok(),
                        gone: config.is_ok_and(|bytes| bytes == [0xff; 4]),
                        address,
                    });
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
pub(super) fn load_module(evidence: &Evidence) -> String {
    let system = evidence.system;
    let in_container = evidence.container.is_some();
    if let (Some(advice), false) = (built_and_refused(system), in_container) {
        return advice;
    }
    let place = if in_container { "On the host, run" } else { "Run" };
    format!(
        "{place} `sudo modprobe nvidia`; if that fails, `sudo dmesg` shows the reason (reinstall \
         NVIDIA's driver after a kernel update, and sign the module if Secure Boot is on)."
    )
}

/// Why the module is not loaded, as far as the files of modules show it.
fn built_and_refused(system: &System) -> Option<String> {
    const FOLDER: &str = "/lib/modules";
    /// The variable of the firmware; its last byte is 1 if Secure Boot is on.
    const SECURE_BOOT: &str =
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    for folder in ["/etc/modprobe.d", "/lib/modprobe.d", "/usr/lib/modprobe.d"] {
        for name in system.list(folder).unwrap_or_default() {
            let text = system.read(&format!("{folder}/{name}")).unwrap_or_default();
            let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            if lines.any(|words| {
                matches!(*words, ["blacklist", "nvidia"] | ["alias" | "install", "nvidia", ..])
            }) {
                return Some(format!(
                    "Remove the line that excludes nvidia from {folder}/{name} (on Ubuntu `sudo \
                     prime-select nvidia`), and reboot."
                ));
            }
        }
    }
    let running = system.read("/proc/sys/kernel/osrelease").ok()?;
    let running = running.trim();
    let has = |kernel: &str| {
        let list = system.bytes(&format!("{FOLDER}/{kernel}/modules.dep"), 16 << 20);
        list.is_ok_and(|list| String::from_utf8_lossy(&list).contains("/nvidia.ko"))
    };
    let kernels = system.list(FOLDER).ok()?;
    if !has(running) {
        let Some(other) = kernels.iter().find(|kernel| *kernel != running && has(kernel)) else {
            return kernels.iter().any(|kernel| kernel == running).then(|| {
                String::from(
                    "Install NVIDIA's driver (on Ubuntu `sudo ubuntu-drivers install`), and \
                     reboot: no kernel of this machine has its module.",
                )
            });
        };
        return Some(format!(
            "Build the driver's module for the running kernel {running} (install its headers, then \
             `sudo dkms autoinstall`), or start the kernel {other}, which has it."
        ));
    }
    let secure = system.bytes(SECURE_BOOT, 5).is_ok_and(|bytes| bytes.last() == Some(&1));
    secure.then(|| String::from(SIGN))
}

const SIGN: &str = "Sign the driver's module and enrol the key (`sudo mokutil --import \
                    /var/lib/shim-signed/mok/MOK.der`, or /var/lib/dkms/mok.pub, then reboot and \
                    confirm), or turn Secure Boot off: it refuses modules without a signature.";
const RESEAT: &str = "Shut the machine down and start it again, and if it happens again look after \
                      the power and cooling of the GPU and its place in the slot: it has fallen off \
                      the bus.";
const OPEN: &str = "Install the open kernel modules of the driver (packages with -open in their \
                    names, on Ubuntu nvidia-driver-580-open), and reboot: this GPU does not work \
                    with the proprietary ones.";
const PROPRIETARY: &str = "Install the proprietary kernel modules of the driver (packages without \
                           -open in their names, at most version 580), and reboot: this GPU does \
                           not work with the open ones.";
const LEGACY: &str = "Install the driver 580, the last for GPUs before Turing, and reboot: newer \
                      ones ignore this GPU.";

pub(super) fn bus(evidence: &Evidence) -> Option<Finding> {
    if !evidence.has_nodes() {
        return None;
    }
    let check = Check::Bus;
    let Some(gpus) = &evidence.bus.gpus else {
        let reason = &evidence.bus.reason;
        let is_bare = evidence.container.is_none()
            && evidence.module.is_none()
            && evidence.probe.nodes.is_empty();
        if is_bare && evidence.system.is_folder("/sys/bus") {
            return Some(Finding::wrong(
                check,
                reason,
                "Use a machine with an NVIDIA GPU, or a virtual machine that can have one: this \
                 one has no PCI bus, as in Firecracker.",
            ));
        }
        // In a bare sandbox the driver's calls to the system fail for want of these files.
        if evidence.code() == Some(304) {
            return Some(Finding::wrong(
                check,
                reason,
                "Give the sandbox /sys (in bubblewrap `--ro-bind /sys /sys`): the driver finds the \
                 GPUs there.",
            ));
        }
        return Some(Finding::unknown(check, reason));
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
    let addresses: Vec<_> = gpus.iter().map(|gpu| gpu.address.as_str()).collect();
    let addresses = addresses.join(", ");
    if let Some(gpu) = gpus.iter().find(|gpu| gpu.gone) {
        let text = format!("{count} ({addresses}); {} does not answer", gpu.address);
        return Some(Finding::wrong(check, text, RESEAT));
    }
    if gpus.iter().any(|gpu| gpu.driver.as_deref() == Some("nvidia")) {
        return Some(Finding::ok(check, format!("{count} ({addresses}), kernel driver nvidia")));
    }
    let bound = gpus.iter().find_map(|gpu| gpu.driver.as_deref());
    let text = format!("{count} ({addresses}), kernel driver {}", bound.unwrap_or("none"));
    Some(Finding::wrong(
        check,
        text,
        match bound {
            Some("nouveau" | "nova" | "nova_core") => String::from(
                "Install NVIDIA's driver and disable nouveau (`blacklist nouveau` in a file in \
                 /etc/modprobe.d), then reboot.",
            ),
            Some("vfio-pci") => String::from(
                "Run in the virtual machine that has the GPU (vfio-pci), or return the GPU to this \
                 host.",
            ),
            _ => unfit(evidence).map_or_else(|| load_module(evidence), |(_, what)| what.to_owned()),
        },
    ))
}

/// The names of the GPUs that the module serves.
fn names(system: &System) -> Vec<String> {
    const FOLDER: &str = "/proc/driver/nvidia/gpus";
    let gpus = system.list(FOLDER).unwrap_or_default();
    let name = |gpu: &String| {
        let text = system.read(&format!("{FOLDER}/{gpu}/information")).ok()?;
        let name = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(format!(" {}", name.trim()))
    };
    gpus.iter().filter_map(name).collect()
}

/// Why the loaded module does not serve the GPUs on the bus, and what to do.
fn unfit(evidence: &Evidence) -> Option<(&'static str, &'static str)> {
    let module = evidence.module.as_ref()?;
    let version = evidence.system.read("/proc/driver/nvidia/version").unwrap_or_default();
    let line = version.lines().find(|line| line.starts_with("NVRM version:"))?;
    let open = line.contains("Open Kernel Module");
    let gpus = evidence.bus.gpus.as_ref()?;
    let models: Vec<u32> = gpus.iter().filter_map(|gpu| gpu.model).collect();
    let is_blackwell = models.iter().any(|model| *model >= BLACKWELL)
        || names(evidence.system).iter().any(|name| {
            ["Blackwell", "GeForce RTX 50", " B200", " B300"].iter().any(|part| name.contains(part))
        });
    let old = !models.is_empty() && models.iter().all(|model| *model < TURING);
    if !open && is_blackwell {
        Some(("the GPU needs the open kernel modules", OPEN))
    } else if old && numbers(module).first().is_some_and(|major| *major >= WITHOUT_PASCAL) {
        Some(("this version ignores GPUs before Turing", LEGACY))
    } else if open && old {
        Some(("the open kernel modules do not serve GPUs before Turing", PROPRIETARY))
    } else {
        None
    }
}

/// What the kernel's messages say, if this user may read them.
pub(super) fn log(evidence: &Evidence) -> Option<Finding> {
    /// Parts of messages, the cause before its consequences.
    const MEANINGS: [(&str, &str); 11] = [
        ("requires use of the NVIDIA open kernel modules", OPEN),
        ("not supported by open", PROPRIETARY),
        ("Legacy drivers", LEGACY),
        ("fallen off the bus", RESEAT),
        ("unsigned module", SIGN),
        ("Key was rejected", SIGN),
        (
            "API mismatch",
            "Reboot, and restart containers, so that the driver's library and its \
            kernel module have the same version.",
        ),
        (
            "I/O region assigned to your NVIDIA device is invalid",
            "Turn on Above 4G Decoding and \
            Resizable BAR in the firmware's settings: the GPU has no room for its memory.",
        ),
        (
            "probe routine was not called",
            "Disable the other driver that has the GPU, such as \
            nouveau (`blacklist nouveau` in a file in /etc/modprobe.d), and reboot.",
        ),
        (
            "GSP firmware",
            "Reinstall the driver with its firmware (/lib/firmware/nvidia), and shut \
            the machine down and start it again: the GPU's firmware does not start.",
        ),
        (
            "RmInitAdapter failed",
            "Shut the machine down and start it again, and update the driver \
            and the firmware of the machine if that does not help: the GPU does not start.",
        ),
    ];
    if !evidence.has_nodes() || !evidence.fails() {
        return None;
    }
    let messages = evidence.system.kernel_messages();
    MEANINGS.iter().find_map(|(part, advice)| {
        let message = messages.iter().rev().find(|message| message.contains(part))?;
        Some(Finding::wrong(Check::Log, message.trim(), *advice))
    })
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

pub(super) fn module(evidence: &Evidence) -> Option<Finding> {
    if !evidence.has_nodes() {
        return None;
    }
    let check = Check::Module;
    let Some(module) = &evidence.module else {
        // A node that opens is served: a sandbox hides the module's files.
        let served = evidence.probe.nodes.iter().any(|node| node.refused.is_none());
        if served && (evidence.container.is_some() || evidence.is_sandboxed()) {
            return Some(Finding::unknown(check, "its version is not shown here"));
        }
        // A library that is tried without it may be a software driver.
        return Some(Finding::wrong(
            check,
            "NVIDIA's kernel module is not loaded",
            load_module(evidence),
        ));
    };
    if let Some((why, advice)) = unfit(evidence) {
        return Some(Finding::wrong(check, format!("{module}: {why}"), advice));
    }
    let Some(file) = evidence.file() else {
        return Some(Finding::ok(check, &**module));
    };
    let real = evidence.system.real(file);
    let Some(library) = library::version_of(file).or_else(|| library::version_of(&real)) else {
        return Some(Finding::ok(check, &**module));
    };
    if library == module {
        return Some(Finding::ok(check, format!("{module}, the same as the library")));
    }
    if library::is_compat(file) {
        let text = format!("{module}; the library is {library}, for forward compatibility");
        return Some(Finding::note(check, text));
    }
    let advice = if let Some(fitting) = library::fitting(evidence) {
        let (place, other) = (library::folder(&fitting), library::folder(&real));
        if evidence.system.real(place) == other {
            return Some(Finding::wrong(
                check,
                format!("{module}, but the library is {library}"),
                format!(
                    "Remove {real} ({library}), the library of another driver, and run `sudo \
                     ldconfig`: {fitting} fits the kernel module {module}."
                ),
            ));
        }
        format!(
            "Remove {file} ({library}), the library of another driver, or search {} before it: \
             {fitting} fits the kernel module {module}.",
            place
        )
    } else {
        match evidence.container {
            Some(Container::Flatpak) => library::extension(module),
            Some(container) if container.installs_its_library() => format!(
                "Install the libraries of the driver {module} in the container, without a kernel \
                 module: those in it are of {library}, and the host's kernel module is {module}."
            ),
            Some(_) => format!(
                "Restart the container, so it gets the library of the host's kernel module \
                 {module}; if the image contains its own library ({library}), remove it."
            ),
            None if numbers(library) > numbers(module) => format!(
                "Reboot: the driver was updated to {library}, but the kernel still runs module \
                 {module}."
            ),
            None => format!(
                "Reinstall the driver: its library, {library}, is older than the kernel module, \
                 {module}."
            ),
        }
    };
    Some(Finding::wrong(check, format!("{module}, but the library is {library}"), advice))
}
