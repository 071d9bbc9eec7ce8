//! Machines that are wrong in one way each: files in a folder, and a software driver with faults.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bounds;
mod devices;
mod drivers;
mod reports;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cuda_events::sys::{CUresult, ENTRY_POINTS, EntryPoint, Function, Version};
use cuda_events::{Driver, Error, LoadOptions};
use cuda_events_test_support::child::{self as other, own_binary, role};
use cuda_events_test_support::{Gpu, TestDriver, shared_library};
use cuda_soft_driver::{Builder, Fault, SoftDriver};
use serde_json::Value;

use crate::child;
use crate::exports::Lacks;
use crate::probe::{Failure, How, Library, Lost, Probe};
use crate::report::{Check, Finding, Level, Report};
use crate::system::{Platform, System};

const EPERM: i32 = 1;
const EIO: i32 = 5;
const ENXIO: i32 = 6;
const EACCES: i32 = 13;

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04";
const GPU: &str = "/sys/bus/pci/devices/0000:01:00.0";
const UUID: &str = "GPU-6c1f0d2b-0000-4000-8000-0123456789ab";
/// The first bytes of a library for x86-64.
const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0";

const MODPROBE: &str = "Run `sudo modprobe nvidia`; if that fails, `sudo dmesg` shows the reason \
                        (reinstall NVIDIA's driver after a kernel update, and sign the module if \
                        Secure Boot is on).";
const DOCKER: &str = "Start the container with `docker run --gpus all`, on a host with the NVIDIA \
    Container Toolkit.";
const HIDDEN: &str = "Unset CUDA_VISIBLE_DEVICES, or set it to 0 or to a UUID from `nvidia-smi \
                      -L`.";

/// A simulated machine, whose files go with it.
struct Machine {
    root: PathBuf,
    system: System,
    /// What is loaded, by name.
    library: &'static str,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Machine {
    /// Linux with nothing of NVIDIA's, and another company's device on its bus.
    fn bare(name: &str) -> Self {
        /// Tests that run at once may choose one name.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("cuda-events-doctor-{}-{number}-{name}", std::process::id());
        let root = std::env::temp_dir().join(folder);
        fs::create_dir(&root).expect("a folder for temporary files");
        let root = root.canonicalize().expect("it is there");
        let system = System::simulated(&root, Platform::Linux);
        Self { root, system, library: LIBRARY }
            .file("/proc/version", "Linux version 6.8.0 (gcc)\n")
            .file("/proc/self/cgroup", "0::/user.slice\n")
            .file("/proc/self/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev,size=8g 0 0\n")
            .file("/proc/self/limits", "Max locked memory  unlimited  unlimited  bytes\n")
            .file("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n")
            .file("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n")
            .folder("/dev/shm")
    }

    /// The same with one GPU, and no driver for it.
    fn with_gpu(name: &str) -> Self {
        let gpu = format!("{GPU}/vendor");
        Self::bare(name).file(&gpu, "0x10de\n").file(&format!("{GPU}/class"), "0x030200\n")
    }

    /// The same with the driver's kernel module, its device nodes and its library.
    fn whole(name: &str) -> Self {
        Self::with_gpu(name)
            .link(&format!("{GPU}/driver"), "../../../../bus/pci/drivers/nvidia")
            .kernel("580.159.04")
            .file(
                "/proc/driver/nvidia/gpus/0000:01:00.0/information",
                &format!("Model: \t\t NVIDIA H100\nGPU UUID: \t {UUID}\n"),
            )
            .file("/dev/nvidiactl", "")
            .file("/dev/nvidia-uvm", "")
            .file("/dev/nvidia0", "")
            .elf(LIBRARY, ELF)
            .link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.580.159.04")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn folder(self, path: &str) -> Self {
        fs::create_dir_all(self.at(path)).expect("a folder");
        self
    }

    fn elf(self, path: &str, bytes: &[u8]) -> Self {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("it is in a folder")).expect("a folder");
        fs::write(at, bytes).expect("a file");
        self
    }

    fn file(self, path: &str, text: &str) -> Self {
        self.elf(path, text.as_bytes())
    }

    fn link(self, path: &str, target: &str) -> Self {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("it is in a folder")).expect("a folder");
        symlink(target, at).expect("a link");
        self
    }

    fn without(self, path: &str) -> Self {
        let at = self.at(path);
        if at.is_dir() { fs::remove_dir_all(at) } else { fs::remove_file(at) }
            .expect("it was there");
        self
    }

    /// NVIDIA's kernel module in this version.
    fn kernel(self, version: &str) -> Self {
        let line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64";
        let text = format!("{line}  {version}  Release Build  (x@y)\nGCC version:  gcc 13.3.0\n");
        self.file("/proc/driver/nvidia/version", &text)
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.system = self.system.clone().variable(name, value);
        self
    }

    fn refuses(mut self, path: &str, number: i32) -> Self {
        self.system = self.system.clone().refuses(path, number);
        self
    }

    /// The report where loading ends so.
    fn load(&self, loaded: Result<Driver, Error>) -> Found {
        let mut probe = Probe::ask(&self.system, loaded, false);
        if let Library::Loaded { file, .. } = &mut probe.library {
            *file = Some(self.library.to_owned());
        }
        Found::new(&self.system, &probe)
    }

    /// Where there is no library to load.
    fn no_library(&self) -> Found {
        self.load(cuda_events_test_support::load_from(self.root.join("nowhere/libcuda.so.1")))
    }

    fn driver(&self, builder: Builder) -> Found {
        self.load(builder.build().try_driver(&LoadOptions::new()))
    }

    /// Where `cuInit` returns this code.
    fn init(&self, code: u32) -> Found {
        self.driver(SoftDriver::builder().init_result(CUresult(code)))
    }
}

/// A report that is looked at.
struct Found(Report);

impl Found {
    /// It holds of all of them: the probe survives the way between processes, the last line is one
    /// sentence, and the JSON says the same.
    #[track_caller]
    fn new(system: &System, probe: &Probe) -> Self {
        if probe.lost.is_none() {
            let probe = Probe { unhidden: None, separate: false, ..probe.clone() };
            assert_eq!(Probe::from_json(&probe.to_json()), probe);
        }
        // The devices of the software driver stand for GPUs here.
        let mut probe = probe.clone();
        for device in &mut probe.devices {
            device.name = device.name.replace("CUDA software driver (no GPU)", "NVIDIA H200");
        }
        if let Library::Loaded { file: Some(file), .. } = &mut probe.library {
            *file = file.replace("cuda_soft_driver", "cuda");
        }
        Self::with_software(system, &probe)
    }

    /// The software driver is shown as that.
    #[track_caller]
    fn with_software(system: &System, probe: &Probe) -> Self {
        let report = Report::new(system, probe);
        let text = report.to_string();
        let lines: Vec<_> = text.lines().collect();
        let mut last: Vec<String> = vec![format!("Next: {}", report.advice())];
        last.extend(report.further_advice().map(|advice| format!("Then: {advice}")));
        assert_eq!(lines[report.findings().len() + 1..], last, "{text}");
        let advice = report.advice();
        for advice in report.further_advice().chain([advice]) {
            assert!(advice.ends_with('.') && !advice.contains(". "), "one sentence: {advice}");
        }
        let json: Value = serde_json::from_str(&report.to_json()).expect("it is JSON");
        assert_eq!(json["next"], advice);
        assert_eq!(json["usable"], report.usable());
        assert_eq!(json["software"], report.is_software());
        assert!(json["then"].as_array().unwrap().iter().eq(report.further_advice()));
        for (finding, shown) in report.findings().iter().zip(json["checks"].as_array().unwrap()) {
            assert_eq!(shown["check"], finding.check().name());
            assert_eq!(shown["level"], finding.level().name());
            assert_eq!(shown["text"], finding.text());
            let lacks = shown["lacks"].as_array().map_or(0, Vec::len);
            assert_eq!(lacks, finding.lacks().len());
        }
        assert_eq!(json["devices"].as_array().map(Vec::len), Some(probe.devices.len()));
        Self(report)
    }

    /// One of its findings is this.
    #[track_caller]
    fn finds(self, check: Check, level: Level, part: &str) -> Self {
        let mut found = self.0.findings().iter();
        assert!(
            found.any(|finding| {
                finding.check() == check
                    && finding.level() == level
                    && finding.text().contains(part)
            }),
            "{check:?}, {level:?}, {part:?}:\n{}",
            self.0
        );
        self
    }

    /// No GPU can be used, and this is to do.
    #[track_caller]
    fn next(self, advice: &str) {
        assert_eq!(self.0.advice(), advice, "\n{}", self.0);
        assert!(!self.0.usable(), "{}", self.0);
    }

    /// The same, and this after it.
    #[track_caller]
    fn next_and_then(self, advice: &str, then: &[&str]) {
        assert_eq!(self.0.further_advice().collect::<Vec<_>>(), then, "\n{}", self.0);
        self.next(advice);
    }

    /// A GPU can be used.
    #[track_caller]
    fn usable(self) -> Self {
        let advice = self.0.advice();
        assert!(self.0.usable(), "{}", self.0);
        assert!(advice.starts_with("Nothing needs to be done: device "), "{}", self.0);
        assert!(self.0.findings().iter().all(|finding| {
            finding.level() != Level::Wrong || finding.check() == Check::Devices
        }));
        self
    }
}

use Check::{
    Bus, Container, Devices, Elsewhere, Fabric, Init, Limits, Mig, Module, Mps, Nodes,
    SharedMemory, Variable, Visible, Wsl,
};
use Level::{Note, Ok as Good, Unknown, Wrong};

const AS_CHILD: &str = "simulated::asked_in_a_process";

fn child(as_what: &str) -> Command {
    other::command(&own_binary(), AS_CHILD, as_what)
}

/// The driver is asked in a process of its own, which may crash, hang, or not start.
#[test]
fn asked_in_a_process() {
    match role().as_deref() {
        None => {}
        Some("answer") => {
            // As a library may do when it is loaded.
            print!("the begin of a line");
            return child::answer(&System::here(), true);
        }
        Some("crash") => {
            println!("\n@answers {}\n@step cuInit", loaded().to_json());
            std::process::abort();
        }
        Some(_) => loop {
            std::thread::park();
        },
    }
    let machine = Machine::whole("process");
    let long = Duration::from_secs(100);

    let mut command = child("answer");
    command.env("CUDA_EVENTS_DRIVER", shared_library()).env("CUDA_SOFT_DRIVER", "devices=3");
    let probe = child::ask(command, long);
    assert_eq!(probe.devices.len(), 3, "{probe:?}");
    assert!(probe.lost.is_none() && probe.devices[2].context == Some(Ok(())));
    assert!(probe.separate, "it has forked nothing itself");
    Found::new(&machine.system, &probe).usable();

    // Each answer has a line of its own, the first one too.
    let mut command = child("answer");
    command.env("CUDA_EVENTS_DRIVER", shared_library());
    let text = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
    let (before, _) = text.split_once("@answers ").expect("an answer");
    assert!(before.ends_with("the begin of a line\n"), "{text}");

    // No device is visible: it is asked once more without the variable.
    let hidden = || {
        let mut command = child("answer");
        command.env("CUDA_EVENTS_DRIVER", shared_library()).env("CUDA_VISIBLE_DEVICES", "5");
        command
    };
    let system = machine.system.clone().variable("CUDA_VISIBLE_DEVICES", "5");
    let probe = crate::ask_unhidden(&system, child::ask(hidden(), long), hidden);
    assert_eq!((probe.devices.len(), probe.unhidden), (0, Some(1)), "{probe:?}");
    Found::new(&system, &probe).next_and_then(HIDDEN, &[]);

    // It ends the process where its settings are wrong, and says so.
    let mut command = child("answer");
    command.env("CUDA_EVENTS_DRIVER", shared_library()).env("CUDA_SOFT_DRIVER", "bogus");
    let probe = child::ask(command, long);
    Found::new(&machine.system, &probe)
        .finds(Init, Wrong, "the software driver refuses CUDA_SOFT_DRIVER: `bogus` is not")
        .next_and_then(
            "Correct CUDA_SOFT_DRIVER, the settings of the software driver, or unset it.",
            &[],
        );

    let probe = child::ask(child("crash"), long);
    assert_eq!(probe.library, loaded().library, "what it had said before");
    Found::new(&machine.system, &probe).finds(Init, Wrong, "cuInit ended the process (").next(
        "Reinstall the driver, and unset LD_PRELOAD and CUDA_EVENTS_DRIVER if they replace it: the \
         library crashes.",
    );

    let probe = child::ask(child("hang"), Duration::from_millis(300));
    assert_eq!(
        probe.lost.as_ref().map(|lost| &lost.how),
        Some(&How::Hung(Duration::from_millis(300)))
    );
    Found::new(&machine.system, &probe).finds(Init, Wrong, "did not return within 0.3 s").next(
        "Look for lines with NVRM and Xid in `sudo dmesg`, and reboot: a GPU or its driver hangs.",
    );

    let probe = child::ask(Command::new("/nowhere/doctor"), long);
    let found = Found::new(&machine.system, &probe);
    assert!(!found.0.usable(), "{}", found.0);
}

fn loaded() -> Probe {
    let file = Some(String::from(LIBRARY));
    let library = Library::Loaded { file, version: String::from("13.0"), lacks: Vec::new() };
    Probe { library, ..Probe::empty() }
}
