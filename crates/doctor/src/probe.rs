//! The driver's results, collected in one process and shown in another.

use std::time::Duration;

use cuda_events::loader::{LoadError, LoadFailure};
use cuda_events::sys::{CUdevice_attribute, ENTRY_POINTS};
use cuda_events::{Context, Device, Driver, Error};
use serde_json::{Value, json};

use crate::system::System;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE`.
const COMPUTE_MODE: CUdevice_attribute = CUdevice_attribute(20);
/// `CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED`, from CUDA 12 on.
const IPC_EVENT_SUPPORTED: CUdevice_attribute =
    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED;

/// `CU_COMPUTEMODE_PROHIBITED`.
pub(crate) const PROHIBITED: i32 = 2;

/// The reason why a call failed: the driver's code, if there is one, and the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Option<u32>,
    pub(crate) forked: bool,
    pub(crate) text: String,
}

impl Failure {
    fn new(error: &Error) -> Self {
        Self {
            code: error.code().map(|code| code.0),
            forked: matches!(error, Error::ForkedChild { .. }),
            text: match error.driver_log() {
                Some(lines) => format!("{error} (the driver: {})", lines.replace('\n', "; ")),
                None => error.to_string(),
            },
        }
    }

    fn to_json(&self) -> Value {
        json!({"code": self.code, "forked": self.forked, "text": self.text})
    }

    fn from_json(value: &Value) -> Self {
        Self {
            code: number(&value["code"]),
            forked: value["forked"] == true,
            text: text(&value["text"]).unwrap_or_default(),
        }
    }
}

/// A library that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) candidate: Option<String>,
    pub(crate) kind: String,
    pub(crate) text: String,
    /// The functions that this crate requires and the library lacks.
    pub(crate) lacks: Vec<String>,
}

/// How loading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// It was not tried, or its end was not seen.
    Unknown,
    Refused {
        attempts: Vec<Attempt>,
        text: String,
    },
    Loaded {
        file: Option<String>,
        version: String,
        /// The functions that the driver lacks.
        lacks: Vec<String>,
    },
}

/// What the driver says of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceAnswer {
    pub(crate) ordinal: u32,
    pub(crate) name: String,
    pub(crate) uuid: Option<String>,
    pub(crate) bytes: Option<u64>,
    pub(crate) compute_mode: Option<i32>,
    pub(crate) interprocess_events: Option<bool>,
    /// None where no context was asked for.
    pub(crate) context: Option<Result<(), Failure>>,
}

impl DeviceAnswer {
    /// Whether a program can work with it, as far as anybody asked.
    pub(crate) fn is_usable(&self) -> bool {
        self.compute_mode != Some(PROHIBITED) && !matches!(self.context, Some(Err(_)))
    }

    /// As the report's JSON has it.
    pub(crate) fn shown(&self) -> Value {
        let compute_mode = self.compute_mode.map(compute_mode_name);
        json!({
            "ordinal": self.ordinal,
            "name": self.name,
            "uuid": self.uuid,
            "memory": self.bytes,
            "compute_mode": compute_mode,
            "interprocess_events": self.interprocess_events,
            "context": self.context.as_ref().map(|result| match result {
                Ok(()) => json!("ok"),
                Err(failure) => json!(failure.text),
            }),
        })
    }

    fn to_json(&self) -> Value {
        let context = self.context.as_ref().map(|result| match result {
            Ok(()) => json!({}),
            Err(failure) => json!({"failure": failure.to_json()}),
        });
        json!({
            "ordinal": self.ordinal,
            "name": self.name,
            "uuid": self.uuid,
            "bytes": self.bytes,
            "compute_mode": self.compute_mode,
            "interprocess_events": self.interprocess_events,
            "context": context,
        })
    }

    fn from_json(value: &Value) -> Self {
        let context = &value["context"];
        Self {
            ordinal: number(&value["ordinal"]).unwrap_or_default(),
            name: text(&value["name"]).unwrap_or_default(),
            uuid: text(&value["uuid"]),
            bytes: value["bytes"].as_u64(),
            compute_mode: value["compute_mode"].as_i64().and_then(|mode| mode.try_into().ok()),
            interprocess_events: value["interprocess_events"].as_bool(),
            context: context.is_object().then(|| match context.get("failure") {
                Some(failure) => Err(Failure::from_json(failure)),
                None => Ok(()),
            }),
        }
    }
}

/// The driver's words for compute modes.
pub(crate) fn compute_mode_name(mode: i32) -> &'static str {
    match mode {
        0 => "default",
        1 => "exclusive thread",
        PROHIBITED => "prohibited",
        3 => "exclusive process",
        _ => "unknown",
    }
}

/// Whether this user can open a device node; otherwise the system's number, if it gave one, and
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) path: String,
    pub(crate) refused: Option<(Option<i32>, String)>,
}

impl Node {
    /// The number of the GPU that it is of.
    pub(crate) fn gpu(&self) -> Option<u32> {
        self.path.strip_prefix("/dev/nvidia")?.parse().ok()
    }
}

/// How the process that asked the driver was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// The last step that the process began.
    pub(crate) step: String,
    pub(crate) how: How,
    /// What the software driver wrote about its settings before it ended the process.
    pub(crate) settings: Option<String>,
}

/// See [`Lost`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It had not ended after this long, and was killed.
    Hung(Duration),
    /// It ended by itself, as the text says.
    Ended(String),
    /// The system did not start it, with this error number.
    NotStarted { number: Option<i32>, text: String },
}

/// The driver's results: loading, `cuInit` and the devices; and the device nodes that can be
/// opened.
///
/// It makes no driver call that waits for a device. It creates contexts only on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub(crate) library: Library,
    /// None until `cuInit` was called.
    pub(crate) init: Option<Result<(), Failure>>,
    pub(crate) devices: Vec<DeviceAnswer>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) lost: Option<Lost>,
    /// The number of devices without `CUDA_VISIBLE_DEVICES`, if the driver was asked again.
    pub(crate) unhidden: Option<usize>,
    /// Whether a process that did nothing else called the driver.
    pub(crate) separate: bool,
}

impl Probe {
    pub(crate) fn empty() -> Self {
        Self {
            library: Library::Unknown,
            init: None,
            devices: Vec::new(),
            nodes: Vec::new(),
            lost: None,
            unhidden: None,
            separate: false,
        }
    }

    /// Whether the driver ran, and showed no device.
    pub(crate) fn is_without_device(&self) -> bool {
        match &self.init {
            Some(Ok(())) => self.devices.is_empty() && self.lost.is_none(),
            Some(Err(failure)) => matches!(failure.code, Some(100 | 101)),
            None => false,
        }
    }

    /// Collects the driver's results in this process.
    ///
    /// `driver` is the result of loading, such as `Driver::load()`. With `contexts` it retains and
    /// releases the primary context of each device, which uses some hundred megabytes of its memory
    /// for a moment.
    ///
    /// Driver calls: `cuInit`, `cuDeviceGetCount`, and for each device its name, UUID, memory and
    /// two attributes; with `contexts` also `cuDevicePrimaryCtxRetain` and
    /// `cuDevicePrimaryCtxRelease`.
    pub fn ask(system: &System, driver: Result<Driver, Error>, contexts: bool) -> Self {
        Self::ask_aloud(system, || driver, contexts, &mut |_, _| {})
    }

    /// Before each step it calls `step` with the step's name and the results so far, so another
    /// process knows where this one was lost.
    pub(crate) fn ask_aloud(
        system: &System,
        load: impl FnOnce() -> Result<Driver, Error>,
        contexts: bool,
        step: &mut dyn FnMut(&str, &Self),
    ) -> Self {
        let mut probe = Self::empty();
        step("loading the driver library", &probe);
        match load() {
            Ok(driver) => {
                let file = driver.library().map(|file| file.display().to_string());
                let version = driver.version().to_string();
                probe.library = Library::Loaded { file, version, lacks: lacks(driver) };
                probe.init = Some(probe.ask_driver(driver, contexts, step));
            }
            Err(Error::Load(error)) => probe.library = refused(&error),
            Err(error) => {
                probe.library = Library::Refused { attempts: Vec::new(), text: error.to_string() };
            }
        }
        // Last: the driver has them open now, if it can, and has not to wake the devices again.
        for path in nodes(system) {
            step(&format!("opening {path}"), &probe);
            let refused =
                system.open(&path).err().map(|error| (error.raw_os_error(), error.to_string()));
            probe.nodes.push(Node { path, refused });
        }
        probe
    }

    fn ask_driver(
        &mut self,
        driver: Driver,
        contexts: bool,
        step: &mut dyn FnMut(&str, &Self),
    ) -> Result<(), Failure> {
        step("cuInit", self);
        let devices = Device::all(driver).map_err(|error| Failure::new(&error))?;
        for device in devices {
            let ordinal = device.ordinal();
            step(&format!("asking for the attributes of device {ordinal}"), self);
            let mut answer = DeviceAnswer {
                ordinal,
                name: device.name().unwrap_or_else(|error| format!("({error})")),
                uuid: device.uuid().ok().map(|uuid| uuid.to_string()),
                bytes: device.total_memory().ok().and_then(|bytes| bytes.try_into().ok()),
                compute_mode: device.attribute(COMPUTE_MODE).ok(),
                interprocess_events: device
                    .attribute(IPC_EVENT_SUPPORTED)
                    .ok()
                    .map(|supported| supported != 0),
                context: None,
            };
            if contexts {
                step(&format!("creating a context on device {ordinal}"), self);
                let context = Context::primary(device).map(drop);
                answer.context = Some(context.map_err(|error| Failure::new(&error)));
            }
            self.devices.push(answer);
        }
        Ok(())
    }

    pub(crate) fn to_json(&self) -> Value {
        let library = match &self.library {
            Library::Unknown => Value::Null,
            Library::Loaded { file, version, lacks } => {
                json!({"file": file, "version": version, "lacks": lacks})
            }
            Library::Refused { attempts, text } => {
                let attempts = attempts
                    .iter()
                    .map(|tried| json!([tried.candidate, tried.kind, tried.text, tried.lacks]));
                json!({"attempts": attempts.collect::<Vec<Value>>(), "text": text})
            }
        };
        let init = self.init.as_ref().map(|result| match result {
            Ok(()) => json!({}),
            Err(failure) => json!({"failure": failure.to_json()}),
        });
        let nodes = self.nodes.iter().map(|node| json!([node.path, node.refused]));
        json!({
            "library": library,
            "init": init,
            "devices": self.devices.iter().map(DeviceAnswer::to_json).collect::<Vec<Value>>(),
            "nodes": nodes.collect::<Vec<Value>>(),
        })
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        let library = &value["library"];
        let library = if let Some(version) = text(&library["version"]) {
            let lacks = list(&library["lacks"]).filter_map(text).collect();
            Library::Loaded { file: text(&library["file"]), version, lacks }
        } else if let Some(refusal) = text(&library["text"]) {
            let attempts = list(&library["attempts"]).map(|attempt| Attempt {
                candidate: text(&attempt[0]),
                kind: text(&attempt[1]).unwrap_or_default(),
                text: text(&attempt[2]).unwrap_or_default(),
                lacks: list(&attempt[3]).filter_map(text).collect(),
            });
            Library::Refused { attempts: attempts.collect(), text: refusal }
        } else {
            Library::Unknown
        };
        let init = value["init"].is_object().then(|| match value["init"].get("failure") {
            Some(failure) => Err(Failure::from_json(failure)),
            None => Ok(()),
        });
        let nodes = list(&value["nodes"]).map(|node| {
            let refused = &node[1];
            Node {
                path: text(&node[0]).unwrap_or_default(),
                refused: refused.is_array().then(|| {
                    let number = refused[0].as_i64().and_then(|number| number.try_into().ok());
                    (number, text(&refused[1]).unwrap_or_default())
                }),
            }
        });
        Self {
            library,
            init,
            devices: list(&value["devices"]).map(DeviceAnswer::from_json).collect(),
            nodes: nodes.collect(),
            lost: None,
            unhidden: None,
            separate: false,
        }
    }
}

/// The functions of this crate's table that a loaded driver lacks.
fn lacks(driver: Driver) -> Vec<String> {
    let functions = ENTRY_POINTS.iter().map(|entry| entry.function);
    let missing = functions.filter(|function| driver.symbols().address(*function).is_null());
    missing.map(|function| function.name().to_owned()).collect()
}

fn refused(error: &LoadError) -> Library {
    let attempts = error.attempts().iter().map(|attempt| Attempt {
        candidate: attempt.candidate().map(|path| path.display().to_string()),
        kind: kind(attempt.failure()).to_owned(),
        text: attempt.failure().to_string(),
        lacks: match attempt.failure() {
            LoadFailure::MissingSymbols { functions, .. } => {
                functions.iter().map(|function| function.name().to_owned()).collect()
            }
            _ => Vec::new(),
        },
    });
    Library::Refused { attempts: attempts.collect(), text: error.to_string() }
}

fn kind(failure: &LoadFailure) -> &'static str {
    match failure {
        LoadFailure::Open(_) => "open",
        LoadFailure::RelativePath => "relative",
        LoadFailure::ChangedVariable => "changed",
        LoadFailure::NotADriver => "no-driver",
        LoadFailure::Stub => "stub",
        LoadFailure::MissingSymbols { .. } => "incomplete",
        LoadFailure::Platform => "platform",
        _ => "other",
    }
}

/// The device nodes that the driver needs, as far as they are there.
fn nodes(system: &System) -> Vec<String> {
    let names = system.list("/dev").unwrap_or_default();
    let wanted = names.iter().filter(|name| {
        // The nodes of boards whose processor contains the GPU.
        if matches!(name.as_str(), "nvmap" | "nvhost-ctrl-gpu" | "nvhost-gpu") {
            return true;
        }
        let rest = name.strip_prefix("nvidia");
        rest.is_some_and(|rest| {
            matches!(rest, "ctl" | "-uvm") || (!rest.is_empty() && rest.parse::<u32>().is_ok())
        })
    });
    let caps = system.list("/dev/nvidia-caps").unwrap_or_default();
    let mut paths: Vec<_> = wanted.map(|name| format!("/dev/{name}")).collect();
    // Only root uses the first two, to configure and watch parts of GPUs.
    let caps = caps.iter().filter(|name| !matches!(name.as_str(), "nvidia-cap1" | "nvidia-cap2"));
    paths.extend(caps.map(|name| format!("/dev/nvidia-caps/{name}")));
    paths
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| number.try_into().ok())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
