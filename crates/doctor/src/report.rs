//! The findings, and how they are shown.

use core::fmt;

use serde_json::{Value, json};

use crate::probe::DeviceAnswer;

/// The subject of a finding.
///
/// Its [`name`](Self::name) is the second column of the report, and appears in the JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The operating system and the processor.
    Platform,
    /// Windows Subsystem for Linux.
    Wsl,
    /// The kind of container, and the GPUs that were requested from its runtime.
    Container,
    /// GPUs on the PCI bus, and the kernel driver of each.
    Bus,
    /// NVIDIA's kernel module, and whether its version is the library's.
    Module,
    /// The kernel's messages about NVIDIA's module, if this user may read them.
    Log,
    /// The device nodes in `/dev`, and this user's rights to them.
    Nodes,
    /// The variable `CUDA_EVENTS_DRIVER`.
    Variable,
    /// The driver library: the one that was loaded, or the reason why none was.
    Library,
    /// Other driver libraries on this machine.
    Elsewhere,
    /// The variable `CUDA_VISIBLE_DEVICES`.
    Visible,
    /// The results of `cuInit` and `cuDeviceGetCount`.
    Init,
    /// The devices and their compute modes.
    Devices,
    /// Parts of GPUs that act as devices (Multi-Instance GPU).
    Mig,
    /// The Multi-Process Service.
    Mps,
    /// The fabric manager of a machine with NVSwitch.
    Fabric,
    /// `/dev/shm`, which contains interprocess events.
    SharedMemory,
    /// The limits of this process.
    Limits,
}

impl Check {
    /// The check's name. It stays the same in later versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Wsl => "wsl",
            Self::Container => "container",
            Self::Bus => "pci",
            Self::Module => "kernel-module",
            Self::Log => "kernel-log",
            Self::Nodes => "device-nodes",
            Self::Variable => "driver-variable",
            Self::Library => "library",
            Self::Elsewhere => "other-libraries",
            Self::Visible => "visible-devices",
            Self::Init => "initialise",
            Self::Devices => "devices",
            Self::Mig => "mig",
            Self::Mps => "mps",
            Self::Fabric => "fabric-manager",
            Self::SharedMemory => "shared-memory",
            Self::Limits => "limits",
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Correct.
    Ok,
    /// Useful to know, but not a reason why there is no GPU.
    Note,
    /// A reason why there is no GPU, or why a GPU cannot be used.
    Wrong,
    /// The doctor could not check it.
    Unknown,
}

impl Level {
    /// The first column of the report. It also appears in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Wrong => "wrong",
            Self::Unknown => "could not look",
        }
    }
}

/// One finding: one line of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub(crate) check: Check,
    pub(crate) level: Level,
    pub(crate) text: String,
    /// What to do about it: one sentence.
    pub(crate) advice: Option<String>,
    pub(crate) lacks: Vec<String>,
}

impl Finding {
    fn new(check: Check, level: Level, text: String) -> Self {
        Self { check, level, text, advice: None, lacks: Vec::new() }
    }

    pub(crate) fn ok(check: Check, text: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, text.into())
    }

    pub(crate) fn note(check: Check, text: impl Into<String>) -> Self {
        Self::new(check, Level::Note, text.into())
    }

    pub(crate) fn unknown(check: Check, text: impl Into<String>) -> Self {
        Self::new(check, Level::Unknown, text.into())
    }

    pub(crate) fn wrong(check: Check, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..Self::new(check, Level::Wrong, text.into()) }
    }

    /// Adds the functions that a library lacks to the finding.
    pub(crate) fn lacking(self, lacks: &[String]) -> Self {
        Self { lacks: lacks.to_vec(), ..self }
    }

    /// The subject of the finding.
    pub fn check(&self) -> Check {
        self.check
    }

    /// The result of the check.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The text of the finding, in one line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All functions of [`cuda_events::sys::ENTRY_POINTS`] that a driver library lacks. The text
    /// names the first three.
    ///
    /// It is empty if the library lacks none, if its file cannot be read, and for other findings.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<15}{:<16} {}", self.level.name(), self.check.name(), self.text)
    }
}

/// All findings, and one sentence of advice for each obstacle.
///
/// Its `Display` prints one line for each finding, and the advice as the last lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) devices: Vec<DeviceAnswer>,
    pub(crate) usable: bool,
    pub(crate) software: bool,
    pub(crate) next: String,
    pub(crate) then: Vec<String>,
}

impl Report {
    /// Returns whether at least one device can be used. The device may belong to the [software
    /// driver](Self::is_software).
    pub fn usable(&self) -> bool {
        self.usable
    }

    /// Returns whether the driver library is the software driver `cuda-soft-driver`, whose devices
    /// are no GPUs.
    pub fn is_software(&self) -> bool {
        self.software
    }

    /// One sentence that says what to do next.
    pub fn advice(&self) -> &str {
        &self.next
    }

    /// What to do after that: one sentence for each obstacle that does not follow from another.
    pub fn further_advice(&self) -> impl Iterator<Item = &str> {
        self.then.iter().map(String::as_str)
    }

    /// The findings, in the order of the report.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The report as one JSON object: `doctor` (this crate's version), `usable`, `software`,
    /// `next`, `then` (a list of [further advice](Self::further_advice)), `checks` and `devices`.
    /// Each check has `check`, `level` and `text`. The check of a library that lacks functions also
    /// has `lacks`.
    pub fn to_json(&self) -> String {
        let checks = self.findings.iter().map(|finding| {
            let mut shown = json!({
                "check": finding.check.name(),
                "level": finding.level.name(),
                "text": finding.text,
            });
            if let (Some(shown), false) = (shown.as_object_mut(), finding.lacks.is_empty()) {
                shown.insert(String::from("lacks"), json!(finding.lacks));
            }
            shown
        });
        let report = json!({
            "doctor": env!("CARGO_PKG_VERSION"),
            "usable": self.usable,
            "software": self.software,
            "next": self.next,
            "then": self.then,
            "checks": checks.collect::<Vec<Value>>(),
            "devices": self.devices.iter().map(DeviceAnswer::shown).collect::<Vec<Value>>(),
        });
        format!("{report:#}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        write!(f, "\nNext: {}", self.next)?;
        self.then.iter().try_for_each(|then| write!(f, "\nThen: {then}"))
    }
}
