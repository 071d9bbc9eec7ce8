//! The findings, and how they are shown.

use core::fmt;

use serde_json::{Value, json};

use crate::probe::DeviceAnswer;

/// The subject of a finding. Its [`name`](Self::name) is the word of the report's second column and
/// of its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The operating system and the processor.
    Platform,
    /// Windows Subsystem for Linux.
    Wsl,
    /// The kind of container, and what its runtime was asked for.
    Container,
    /// GPUs on the PCI bus, and the kernel driver of each.
    Bus,
    /// NVIDIA's kernel module, and whether its version is the library's.
    Module,
    /// The files in `/dev` and this user's rights to them.
    Nodes,
    /// The variable `CUDA_EVENTS_DRIVER`.
    Variable,
    /// The driver library: which was loaded, or why none was.
    Library,
    /// Other driver libraries that lie about.
    Elsewhere,
    /// The variable `CUDA_VISIBLE_DEVICES`.
    Visible,
    /// What `cuInit` and `cuDeviceGetCount` returned.
    Init,
    /// The devices, with their compute mode.
    Devices,
    /// Parts of GPUs as devices.
    Mig,
    /// The Multi-Process Service.
    Mps,
    /// The fabric manager of a machine with NVSwitch.
    Fabric,
    /// `/dev/shm`, in which interprocess events live.
    SharedMemory,
    /// The limits of this process.
    Limits,
}

impl Check {
    /// The check's name, which does not change between versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Wsl => "wsl",
            Self::Container => "container",
            Self::Bus => "pci",
            Self::Module => "kernel-module",
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

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing, and no reason for there being no GPU.
    Note,
    /// A reason why there is no GPU, or why one cannot be used.
    Wrong,
    /// The doctor could not look.
    Unknown,
}

impl Level {
    /// The word of the report's first column and of its JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Wrong => "wrong",
            Self::Unknown => "could not look",
        }
    }
}

/// One line of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub(crate) check: Check,
    pub(crate) level: Level,
    pub(crate) text: String,
    /// What to do about it: one sentence.
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: Check, text: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, text: text.into(), advice: None }
    }

    pub(crate) fn note(check: Check, text: impl Into<String>) -> Self {
        Self { check, level: Level::Note, text: text.into(), advice: None }
    }

    pub(crate) fn unknown(check: Check, text: impl Into<String>) -> Self {
        Self { check, level: Level::Unknown, text: text.into(), advice: None }
    }

    pub(crate) fn wrong(check: Check, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, level: Level::Wrong, text: text.into(), advice: Some(advice.into()) }
    }

    /// The subject.
    pub fn check(&self) -> Check {
        self.check
    }

    /// How it went.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The text, in one line.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<15}{:<16} {}", self.level.name(), self.check.name(), self.text)
    }
}

/// Everything that was found, and the one sentence that says what to do next.
///
/// Its `Display` is one line a check, and that sentence as the last line.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) devices: Vec<DeviceAnswer>,
    pub(crate) usable: bool,
    pub(crate) next: String,
}

impl Report {
    /// Whether at least one GPU can be used.
    pub fn usable(&self) -> bool {
        self.usable
    }

    /// The one sentence that says what to do next.
    pub fn advice(&self) -> &str {
        &self.next
    }

    /// The findings, in the order in which they are shown.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The report as one JSON object: `doctor` (this crate's version), `usable`, `next`, `checks`
    /// (each with `check`, `level` and `text`) and `devices`.
    pub fn to_json(&self) -> String {
        let checks = self.findings.iter().map(|finding| {
            json!({
                "check": finding.check.name(),
                "level": finding.level.name(),
                "text": finding.text,
            })
        });
        let report = json!({
            "doctor": env!("CARGO_PKG_VERSION"),
            "usable": self.usable,
            "next": self.next,
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
        write!(f, "\nNext: {}", self.next)
    }
}
