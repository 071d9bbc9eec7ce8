//! The checks, and their order.

mod container;
mod devices;
mod kernel;
mod library;
mod machine;
mod nodes;
mod process;
mod visible;

use crate::advice;
use crate::probe::{Library, Probe};
use crate::report::{Check, Level, Report};
use crate::system::{Platform, System};

/// The beginning of the names of the software driver's devices.
const SOFTWARE_DEVICE: &str = "CUDA software driver";
/// A part of the name of its library.
const SOFTWARE_LIBRARY: &str = "cuda_soft_driver";

/// What several checks need to know.
pub(crate) struct Evidence<'a> {
    pub(crate) system: &'a System,
    pub(crate) probe: &'a Probe,
    pub(crate) container: Option<container::Container>,
    /// The name of the systemd service that this process belongs to.
    pub(crate) service: Option<String>,
    /// Whether this process belongs to a job of Slurm.
    pub(crate) slurm: bool,
    /// Whether `/dev` is a file system of its own and not the system's.
    pub(crate) private_dev: bool,
    /// The label of this process in SELinux or AppArmor.
    pub(crate) label: Option<String>,
    /// Whether SELinux refuses what its policy does not allow.
    pub(crate) selinux: bool,
    /// Whether a seccomp filter refuses calls of this process.
    pub(crate) seccomp: bool,
    pub(crate) wsl: bool,
    /// NVIDIA's boards with a GPU inside of the processor, whose devices have other names.
    pub(crate) tegra: bool,
    pub(crate) bus: kernel::Bus,
    /// The version of NVIDIA's kernel module, if it is loaded.
    pub(crate) module: Option<String>,
    pub(crate) usable: bool,
    /// Each mount point with the type of its file system and its options.
    mounts: Vec<(String, String, String)>,
}

impl<'a> Evidence<'a> {
    fn new(system: &'a System, probe: &'a Probe) -> Self {
        let linux = system.platform() == Platform::Linux;
        let read = |path| system.read(path).unwrap_or_default();
        let label = Some(read("/proc/self/attr/current"));
        let label = label.map(|label| label.trim_end_matches(['\0', '\n']).to_owned());
        let label = label.filter(|label| !label.is_empty());
        let container = container::Container::find(system, label.as_deref()).filter(|_| linux);
        let mounts: Vec<_> = read("/proc/self/mounts").lines().filter_map(mount).collect();
        let dev = mounts.iter().rev().find(|(point, ..)| point == "/dev");
        let status = read("/proc/self/status");
        Self {
            system,
            probe,
            container,
            service: service(&read("/proc/self/cgroup")),
            slurm: system.env("SLURM_JOB_ID").is_some(),
            private_dev: container.is_none() && dev.is_some_and(|(_, kind, _)| kind == "tmpfs"),
            selinux: read("/sys/fs/selinux/enforce").trim() == "1"
                || label.as_ref().is_some_and(|label| label.contains(":container_t:")),
            label,
            seccomp: status
                .lines()
                .any(|line| line.strip_prefix("Seccomp:").is_some_and(|value| value.trim() == "2")),
            wsl: linux && machine::is_wsl(system),
            tegra: linux && machine::is_tegra(system),
            bus: kernel::Bus::look(system),
            module: kernel::module_version(system),
            usable: devices::usable(probe).is_some(),
            mounts,
        }
    }

    /// Whether a file is on a file system whose devices cannot be opened.
    fn forbids_devices(&self, path: &str) -> bool {
        let above = |point: &str| {
            let rest = path.strip_prefix(point.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mounts = self.mounts.iter().filter(|(point, ..)| above(point));
        // What was mounted last at the longest path is what there is.
        let mount = mounts.max_by_key(|(point, ..)| point.len());
        mount.is_some_and(|(.., options)| options.split(',').any(|option| option == "nodev"))
    }

    /// Whether something confines this process that is no container.
    fn is_sandboxed(&self) -> bool {
        self.private_dev || self.seccomp || self.service.is_some()
    }

    /// Whether the driver was loaded, and then failed or ended the process.
    pub(crate) fn fails(&self) -> bool {
        !self.usable && self.probe.init.as_ref().is_none_or(Result::is_err)
            || self.probe.is_without_device()
    }

    /// Whether the driver consists of a kernel module and device nodes.
    pub(crate) fn has_nodes(&self) -> bool {
        self.system.platform() == Platform::Linux && !self.wsl && !self.tegra
    }

    /// The code that `cuInit` or `cuDeviceGetCount` failed with.
    pub(crate) fn code(&self) -> Option<u32> {
        match &self.probe.init {
            Some(Err(failure)) => failure.code,
            _ => None,
        }
    }

    pub(crate) fn is_loaded(&self) -> bool {
        matches!(self.probe.library, Library::Loaded { .. })
    }

    /// Whether the loaded library is the software driver of this project.
    pub(crate) fn is_software(&self) -> bool {
        self.probe.devices.iter().any(|device| device.name.starts_with(SOFTWARE_DEVICE))
            || self.file().is_some_and(|file| self.system.real(file).contains(SOFTWARE_LIBRARY))
    }

    /// The file of the loaded library.
    pub(crate) fn file(&self) -> Option<&'a str> {
        match &self.probe.library {
            Library::Loaded { file, .. } => file.as_deref(),
            _ => None,
        }
    }
}

pub(crate) fn examine(system: &System, probe: &Probe) -> Report {
    let evidence = Evidence::new(system, probe);
    let mut findings = vec![machine::platform(&evidence)];
    if system.platform() != Platform::Other {
        findings.extend(machine::wsl(&evidence));
        findings.extend(container::container(&evidence));
        findings.extend(kernel::bus(&evidence));
        findings.extend(kernel::module(&evidence));
        findings.extend(kernel::log(&evidence));
        findings.extend(nodes::nodes(&evidence));
        findings.push(library::variable(&evidence));
        findings.extend(library::library(&evidence));
        findings.extend(library::elsewhere(&evidence));
        findings.push(visible::visible(&evidence));
        findings.extend(devices::init(&evidence));
        findings.extend(devices::devices(&evidence));
        findings.extend(devices::mig(&evidence));
        findings.extend(devices::mps(&evidence));
        findings.extend(machine::fabric(&evidence));
        findings.extend(process::shared_memory(&evidence));
        findings.extend(process::limits(&evidence));
    }
    if evidence.usable {
        // Nothing that is no device's own fault has kept the driver from working.
        for finding in &mut findings {
            if finding.level == Level::Wrong && finding.check != Check::Devices {
                finding.level = Level::Note;
            }
        }
    }
    let (next, then) = advice::advice(&evidence, &findings);
    let (devices, usable) = (probe.devices.clone(), evidence.usable);
    Report { findings, devices, usable, software: evidence.is_software(), next, then }
}

/// A line of `/proc/self/mounts`: the mount point, the type and the options.
fn mount(line: &str) -> Option<(String, String, String)> {
    let mut fields = line.split_whitespace().skip(1).map(str::to_owned);
    Some((fields.next()?, fields.next()?, fields.next()?))
}

/// The service in a line such as `0::/system.slice/ollama.service`; a user's own processes belong to
/// scopes below the service of the user's manager.
fn service(groups: &str) -> Option<String> {
    let name = groups.lines().find_map(|line| line.rsplit('/').next()?.strip_suffix(".service"))?;
    (!name.starts_with("user@")).then(|| format!("{name}.service"))
}

/// Versions by their numbers; what is no number is left out.
pub(crate) fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}
