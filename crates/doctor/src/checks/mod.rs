//! The checks, and their order.

mod devices;
mod library;
mod machine;
mod process;
mod visible;

use crate::next;
use crate::probe::{Library, Probe};
use crate::report::{Check, Level, Report};
use crate::system::{Platform, System};

/// The beginning of the names of the software driver's devices.
const SOFTWARE_DEVICE: &str = "CUDA software driver";
/// A part of the name of its library.
const SOFTWARE_LIBRARY: &str = "cuda_soft_driver";

/// What several checks need to know.
pub(crate) struct Facts<'a> {
    pub(crate) system: &'a System,
    pub(crate) probe: &'a Probe,
    pub(crate) container: Option<machine::Container>,
    pub(crate) wsl: bool,
    /// NVIDIA's boards with a GPU inside of the processor, whose devices have other names.
    pub(crate) tegra: bool,
    pub(crate) bus: machine::Bus,
    /// The version of NVIDIA's kernel module, if it is loaded.
    pub(crate) module: Option<String>,
    pub(crate) usable: bool,
}

impl<'a> Facts<'a> {
    fn new(system: &'a System, probe: &'a Probe) -> Self {
        let linux = system.platform() == Platform::Linux;
        Self {
            system,
            probe,
            container: if linux { machine::Container::find(system) } else { None },
            wsl: linux && machine::is_wsl(system),
            tegra: linux && system.exists("/etc/nv_tegra_release"),
            bus: machine::Bus::look(system),
            module: machine::module_version(system),
            usable: devices::usable(probe).is_some(),
        }
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
    let facts = Facts::new(system, probe);
    let mut findings = vec![machine::platform(&facts)];
    if system.platform() != Platform::Other {
        findings.extend(machine::wsl(&facts));
        findings.extend(machine::container(&facts));
        findings.extend(machine::bus(&facts));
        findings.extend(machine::module(&facts));
        findings.extend(machine::nodes(&facts));
        findings.push(library::variable(&facts));
        findings.extend(library::library(&facts));
        findings.extend(library::elsewhere(&facts));
        findings.push(visible::visible(&facts));
        findings.extend(devices::init(&facts));
        findings.extend(devices::devices(&facts));
        findings.extend(devices::mig(&facts));
        findings.extend(devices::mps(&facts));
        findings.extend(machine::fabric(&facts));
        findings.extend(process::shared_memory(&facts));
        findings.extend(process::limits(&facts));
    }
    if facts.usable {
        // Nothing that is no device's own fault has kept the driver from working.
        for finding in &mut findings {
            if finding.level == Level::Wrong && finding.check != Check::Devices {
                finding.level = Level::Note;
            }
        }
    }
    let (next, then) = next::next(&facts, &findings);
    let (devices, usable) = (probe.devices.clone(), facts.usable);
    Report { findings, devices, usable, software: facts.is_software(), next, then }
}

/// Versions by their numbers; what is no number is left out.
pub(crate) fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}
