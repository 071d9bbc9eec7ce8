//! Machines that are wrong in one way each: files in a folder, and a software driver with faults.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cuda_events::sys::{CUresult, ENTRY_POINTS, EntryPoint, Function, Version};
use cuda_events::{Driver, Error, LoadOptions};
use cuda_events_test_support::child::{self as other, own_binary, role};
use cuda_events_test_support::{Door, Gpu, fake_library, shared_library};
use cuda_soft_driver::{Builder, Fault, SoftDriver};
use serde_json::Value;

use crate::child;
use crate::exports::Lacks;
use crate::probe::{Failure, How, Library, Probe};
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
        let folder = format!("cuda-events-doctor-{}-{name}", std::process::id());
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
    fn load(&self, loaded: Result<Driver, Error>) -> Told {
        let mut probe = Probe::ask(&self.system, loaded, false);
        if let Library::Loaded { file, .. } = &mut probe.library {
            *file = Some(self.library.to_owned());
        }
        Told::new(&self.system, &probe)
    }

    /// Where there is no library to load.
    fn no_library(&self) -> Told {
        self.load(Driver::load_from(self.root.join("nowhere/libcuda.so.1")))
    }

    fn driver(&self, builder: Builder) -> Told {
        self.load(builder.build().try_driver(&LoadOptions::new()))
    }

    /// Where `cuInit` returns this code.
    fn init(&self, code: u32) -> Told {
        self.driver(SoftDriver::builder().init_result(CUresult(code)))
    }
}

/// A report that is looked at.
struct Told(Report);

impl Told {
    /// It holds of all of them: the probe survives the way between processes, the last line is one
    /// sentence, and the JSON says the same.
    #[track_caller]
    fn new(system: &System, probe: &Probe) -> Self {
        if probe.lost.is_none() {
            let probe = Probe { unhidden: None, ..probe.clone() };
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

#[test]
fn all_is_well() {
    let machine = Machine::whole("well");
    let told = machine
        .driver(SoftDriver::builder().devices(2))
        .usable()
        .finds(Check::Platform, Good, "Linux on x86_64")
        .finds(Container, Good, "none")
        .finds(Bus, Good, "1 NVIDIA GPU (0000:01:00.0), kernel driver nvidia")
        .finds(Module, Good, "580.159.04, the same as the library")
        .finds(Nodes, Good, "/dev/nvidia-uvm, /dev/nvidia0, /dev/nvidiactl")
        .finds(Check::Library, Good, LIBRARY)
        .finds(Variable, Good, "is not set")
        .finds(Visible, Good, "is not set")
        .finds(Init, Good, "2 devices")
        .finds(Devices, Good, "device 1: ")
        .finds(SharedMemory, Good, "/dev/shm of 8192 MiB")
        .finds(Limits, Good, "not limited");
    assert!(told.0.findings().iter().all(|finding| finding.level() == Good), "{}", told.0);
}

/// On whatever driver the tests run, and on this machine's own files.
#[test]
fn a_driver_that_works_is_enough() {
    let gpu = Gpu::new();
    let probe = Probe::ask(&System::here(), Ok(gpu.driver), true);
    let told = Told::new(&System::here(), &probe).usable();
    assert!(probe.devices.iter().all(|device| device.context.is_some()), "{}", told.0);
    if Door::chosen() == Door::Native {
        Told(Report::of_this_process(Driver::load())).usable().finds(Module, Good, "as the");
    }
}

#[test]
fn no_gpu_in_the_machine() {
    Machine::bare("no-gpu")
        .no_library()
        .finds(Bus, Wrong, "no NVIDIA GPU on the PCI bus")
        .finds(Check::Library, Wrong, "nowhere/libcuda.so.1")
        .next(
            "Use a machine with an NVIDIA GPU, or attach one to this virtual machine; tests can \
             run on the crate cuda-soft-driver instead.",
        );
}

#[test]
fn no_driver_installed() {
    Machine::with_gpu("no-driver")
        .no_library()
        .finds(Bus, Wrong, "kernel driver none")
        .finds(Module, Wrong, "not loaded")
        .next(MODPROBE);
}

#[test]
fn nouveau_has_the_gpu() {
    Machine::with_gpu("nouveau")
        .link(&format!("{GPU}/driver"), "../../../../bus/pci/drivers/nouveau")
        .no_library()
        .finds(Bus, Wrong, "kernel driver nouveau")
        .next(
            "Install NVIDIA's driver and disable nouveau (`blacklist nouveau` in a file in \
             /etc/modprobe.d), then reboot.",
        );
}

#[test]
fn the_library_alone_is_missing() {
    Machine::whole("library-missing")
        .without("/usr/lib")
        .no_library()
        .finds(Check::Library, Wrong, "nowhere/libcuda.so.1")
        .next(
            "Install the CUDA library of the driver 580.159.04 (libcuda.so.1, on Debian in \
             libcuda1, on Ubuntu in libnvidia-compute): the kernel module is installed without it.",
        );
}

#[test]
fn a_container_without_gpus() {
    let container = |name, file| {
        Machine::with_gpu(name)
            .link(&format!("{GPU}/driver"), "../../../../bus/pci/drivers/nvidia")
            .kernel("580.159.04")
            .file(file, "")
    };
    container("docker", "/.dockerenv")
        .no_library()
        .finds(Container, Wrong, "a Docker container without GPUs: no device nodes")
        .next(DOCKER);
    container("asked", "/.dockerenv")
        .env("NVIDIA_VISIBLE_DEVICES", "all")
        .no_library()
        .finds(Container, Wrong, "NVIDIA_VISIBLE_DEVICES is all, but its runtime gave it no device")
        .next(DOCKER);
    container("podman", "/run/.containerenv")
        .env("NVIDIA_VISIBLE_DEVICES", "void")
        .no_library()
        .finds(Container, Wrong, "NVIDIA_VISIBLE_DEVICES is void")
        .next(
            "Start the container with `podman run --device nvidia.com/gpu=all`, on a host where \
             `nvidia-ctk cdi generate` has described its GPUs.",
        );
    container("pod", "/.dockerenv")
        .env("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        .no_library()
        .finds(Container, Wrong, "a pod of Kubernetes")
        .next(
            "Request a GPU in the pod's resources (`limits: nvidia.com/gpu: 1`), on a cluster with \
             NVIDIA's device plugin.",
        );
    // A library came with the image.
    container("image", "/.dockerenv")
        .init(100)
        .finds(Nodes, Wrong, "missing: /dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia0")
        .next(DOCKER);
}

#[test]
fn a_container_by_its_control_group() {
    for (group, name) in [
        ("0::/kubepods.slice/cri-containerd-1.scope", "a pod of Kubernetes"),
        ("0::/docker/1", "a Docker container"),
        ("1:name=systemd:/machine.slice/libpod-1.scope", "a Podman container"),
        ("0::/lxc/1", "a container"),
    ] {
        let machine = Machine::whole("group").file("/proc/self/cgroup", group);
        machine.driver(SoftDriver::builder()).usable().finds(Container, Good, name);
    }
}

#[test]
fn a_container_without_the_compute_capability() {
    Machine::whole("capability")
        .without("/usr/lib")
        .file("/.dockerenv", "")
        .env("NVIDIA_VISIBLE_DEVICES", "all")
        .env("NVIDIA_DRIVER_CAPABILITIES", "utility,graphics")
        .no_library()
        .finds(Container, Wrong, "NVIDIA_DRIVER_CAPABILITIES is utility,graphics")
        .next("Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.");
}

#[test]
fn an_empty_file_of_an_image() {
    Machine::whole("empty")
        .without(LIBRARY)
        .file(LIBRARY, "")
        .file("/.dockerenv", "")
        .no_library()
        .finds(Elsewhere, Wrong, "libcuda.so.1 is empty")
        .next(DOCKER);
}

#[test]
fn the_toolkits_stub() {
    let stubs = "/usr/local/cuda-13.0/lib64/stubs";
    Machine::whole("stub")
        .without("/usr/lib")
        .elf(&format!("{stubs}/libcuda.so.1"), ELF)
        .env("LD_LIBRARY_PATH", &format!("/opt/lib:{stubs}/"))
        .driver(
            SoftDriver::builder()
                .fault(Fault::on("cuDriverGetVersion").answer(CUresult::CUDA_ERROR_STUB_LIBRARY)),
        )
        .finds(Check::Library, Wrong, "CUDA_ERROR_STUB_LIBRARY, 34")
        .finds(Elsewhere, Note, "libcuda.so.1 is the toolkit's stub")
        .next(
            "Remove /usr/local/cuda-13.0/lib64/stubs, the toolkit's stub library, from the library \
             search path (LD_LIBRARY_PATH, /etc/ld.so.conf.d), and install the NVIDIA display \
             driver if it is missing.",
        );
}

#[test]
fn a_library_that_is_no_driver() {
    let fake = fake_library();
    Machine::whole("fake")
        .without("/usr/lib")
        .load(Driver::load_from(&fake))
        .finds(Check::Library, Wrong, "its cuDriverGetVersion is data")
        .next(&format!(
            "Remove {}: it has the name of the driver library, but is not a driver.",
            fake.display()
        ));
}

#[test]
fn a_driver_that_is_too_old() {
    Machine::whole("old")
        .driver(SoftDriver::builder().version(11, 0).without("cuEventRecord"))
        .finds(Check::Library, Wrong, "it lacks cuEventRecord")
        .finds(Elsewhere, Note, "(580.159.04) exists, too")
        .next("Update the NVIDIA display driver.");
}

#[test]
fn a_library_in_a_folder_that_is_not_searched() {
    let path = "/usr/local/nvidia/lib64/libcuda.so.1";
    Machine::whole("unsearched")
        .without("/usr/lib")
        .elf(path, ELF)
        .no_library()
        .finds(Elsewhere, Wrong, "libcuda.so.1 exists, but its folder is not searched")
        .next(&format!(
            "Add /usr/local/nvidia/lib64 to LD_LIBRARY_PATH or to a file in /etc/ld.so.conf.d \
             (then `sudo ldconfig`), or set CUDA_EVENTS_DRIVER={path}."
        ));
}

#[test]
fn a_library_that_the_search_does_not_find() {
    let path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
    Machine::whole("unfound")
        .no_library()
        .finds(Elsewhere, Wrong, "was not found or depends")
        .next(&format!(
            "Run `sudo ldconfig`, so the system's search finds {path}, and reinstall the driver if \
             that does not help."
        ));
}

#[test]
fn a_library_for_another_processor() {
    let mut arm = ELF.to_vec();
    arm[18] = 0xb7;
    Machine::whole("arm").without(LIBRARY).elf(LIBRARY, &arm).no_library().finds(
        Elsewhere,
        Note,
        "(580.159.04) is for aarch64",
    );
    Machine::whole("dangling").without(LIBRARY).no_library().finds(
        Elsewhere,
        Note,
        "libcuda.so.1 is a broken link",
    );
}

/// A library for x86-64 that exports these names and imports another one.
fn library(exported: &[&str]) -> Vec<u8> {
    let names = [&["cuMemAlloc_v2"][..], exported].concat();
    let (mut strings, mut symbols) = (vec![0], vec![0; 24]);
    for (at, name) in names.iter().enumerate() {
        symbols.extend((strings.len() as u32).to_le_bytes());
        // A global function; the first one is in no section.
        symbols.extend([0x12, 0]);
        symbols.extend(u16::from(at > 0).to_le_bytes());
        symbols.extend([0; 16]);
        strings.extend(name.bytes().chain([0]));
    }
    let section = |kind: u32, start: usize, bytes: usize, link: u32| {
        let mut section = [0; 64];
        section[4..8].copy_from_slice(&kind.to_le_bytes());
        section[0x18..0x20].copy_from_slice(&(start as u64).to_le_bytes());
        section[0x20..0x28].copy_from_slice(&(bytes as u64).to_le_bytes());
        section[0x28..0x2c].copy_from_slice(&link.to_le_bytes());
        section
    };
    let (at_symbols, at_strings) = (64 + 3 * 64, 64 + 3 * 64 + symbols.len());
    let mut file = ELF.to_vec();
    file.resize(64, 0);
    file[0x28..0x30].copy_from_slice(&64_u64.to_le_bytes());
    file[0x3a] = 64;
    file[0x3c] = 3;
    file.extend([0; 64]);
    file.extend(section(11, at_symbols, symbols.len(), 2));
    file.extend(section(3, at_strings, strings.len(), 0));
    [file, symbols, strings].concat()
}

fn functions(wanted: impl Fn(&EntryPoint) -> bool) -> Vec<&'static str> {
    let wanted = ENTRY_POINTS.iter().filter(|entry| wanted(entry));
    wanted.map(|entry| entry.function.name()).collect()
}

/// Each library is listed with the functions that it lacks, and none is opened for that.
#[test]
fn what_libraries_lack() {
    let with = |name, bytes: &[u8]| Machine::whole(name).without(LIBRARY).elf(LIBRARY, bytes);
    let elsewhere = |told: &Told| {
        let mut all = told.0.findings().iter();
        let found = all.find(|finding| finding.check() == Elsewhere).expect("it is listed");
        found.lacks().to_vec()
    };

    // The loaded one: its driver is asked.
    let newer = functions(|entry| entry.version > Version::new(11, 4));
    let told = Machine::whole("old-driver").driver(SoftDriver::builder().version(11, 4)).usable();
    let lacks: Vec<String> = told.0.findings().iter().flat_map(Finding::lacks).cloned().collect();
    assert_eq!(lacks, newer);
    let named = newer[..3].join(", ");
    let more = newer.len() - 3;
    let part = format!("for CUDA 11.4; it lacks {named} and {more} more");
    told.finds(Check::Library, Good, &part);

    // Others: their files are read.
    let all = functions(|_| true);
    let told = with("complete", &library(&all)).no_library();
    assert_eq!(elsewhere(&told), [""; 0]);
    told.finds(Elsewhere, Wrong, "or depends on a missing library");

    let told = with("required", &library(&functions(|entry| entry.required))).no_library();
    let optional = functions(|entry| !entry.required);
    assert_eq!(elsewhere(&told), optional);
    let part = format!("library; it lacks {} and", optional[..3].join(", "));
    told.finds(Elsewhere, Wrong, &part);

    let two = ["cuStreamGetId", "cuStreamGetDevice"];
    let told = with("two", &library(&functions(|entry| !two.contains(&entry.function.name()))))
        .no_library();
    assert_eq!(elsewhere(&told), two);
    told.finds(Elsewhere, Wrong, "it lacks cuStreamGetId, cuStreamGetDevice");

    // The import is no export.
    let told =
        with("older", &library(&functions(|entry| entry.function != Function::cuMemAlloc_v2)))
            .no_library();
    assert_eq!(elsewhere(&told), ["cuMemAlloc_v2"]);
    told.finds(Elsewhere, Note, "lacks functions that cuda-events requires: cuMemAlloc_v2");

    let told = with("other", &library(&["main"])).no_library();
    told.finds(Elsewhere, Note, "is not a CUDA driver: it exports no cuDriverGetVersion");

    // A real file, with everything; and damaged ones, of which nothing is known.
    let real = fs::read(shared_library()).expect("the software driver's file");
    assert_eq!(elsewhere(&with("real", &real).no_library()), [""; 0]);
    let whole = library(&all);
    let machine = with("cut", &whole);
    for size in (0..whole.len()).step_by(101) {
        fs::write(machine.at(LIBRARY), &whole[..size]).expect("a file");
        let _ = Lacks::find(&machine.system, LIBRARY);
    }
    assert!(Lacks::find(&machine.system, LIBRARY).is_some_and(|lacks| !lacks.optional.is_empty()));
    fs::write(machine.at(LIBRARY), ELF).expect("a file");
    assert!(Lacks::find(&machine.system, LIBRARY).is_none());
}

#[test]
fn the_variable_names_no_driver() {
    let machine = Machine::whole("variable");
    let named = machine.root.join("nowhere/libcuda.so.1").display().to_string();
    machine
        .env("CUDA_EVENTS_DRIVER", &named)
        .no_library()
        .finds(Variable, Wrong, &format!("CUDA_EVENTS_DRIVER is {named}, and no other library is"))
        .next("Unset CUDA_EVENTS_DRIVER, or set it to the absolute path of a driver library.");
}

#[test]
fn the_variable_is_ignored() {
    let machine = Machine::whole("ignored").env("CUDA_EVENTS_DRIVER", "/opt/libcuda.so.1");
    let ignored = "CUDA_EVENTS_DRIVER is /opt/libcuda.so.1, but is ignored";
    machine.driver(SoftDriver::builder()).usable().finds(Variable, Note, ignored);
    let machine = Machine::bare("ignored-too").env("CUDA_EVENTS_DRIVER", "/opt/libcuda.so.1");
    machine.no_library().finds(Variable, Note, ignored);
    let machine = Machine::whole("taken").env("CUDA_EVENTS_DRIVER", LIBRARY);
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(Variable, Note, "and no other library is tried");
}

#[test]
fn device_nodes_are_missing() {
    Machine::whole("uvm")
        .without("/dev/nvidia-uvm")
        .init(999)
        .finds(Nodes, Wrong, "missing: /dev/nvidia-uvm")
        .finds(Init, Wrong, "CUDA_ERROR_UNKNOWN (999)")
        .next(
            "Run `sudo nvidia-modprobe -u -c 0`, which creates the device nodes, or start \
             nvidia-persistenced at boot.",
        );
}

#[test]
fn device_nodes_are_refused() {
    let machine = Machine::whole("rights").refuses("/dev/nvidiactl", EACCES);
    let node = machine.at("/dev/nvidiactl");
    fs::set_permissions(&node, fs::Permissions::from_mode(0o660)).expect("a mode");
    let group = group_of(&node);
    let machine = machine.file("/etc/group", &format!("video:x:{group}:someone\n"));
    machine
        .init(100)
        .finds(Nodes, Wrong, "/dev/nvidiactl: permission denied (mode 660, group video)")
        .next(
            "Allow this user to open /dev/nvidiactl: run `sudo usermod -aG video $USER`, and log \
             in again.",
        );
    Machine::whole("rules")
        .file("/.dockerenv", "")
        .refuses("/dev/nvidiactl", EPERM)
        .init(999)
        .finds(Nodes, Wrong, "forbidden by the device rules of this control group")
        .next(
            "Restart the container: it never had access to the GPUs, or lost it, for example \
             through `systemctl daemon-reload` on the host.",
        );
    Machine::whole("broken")
        .refuses("/dev/nvidia0", EIO)
        .init(100)
        .finds(Nodes, Wrong, "the GPU does not start")
        .next(
            "Look for lines with NVRM and Xid in `sudo dmesg`, and reboot: this GPU does not \
             start.",
        );
    Machine::whole("unserved")
        .refuses("/dev/nvidiactl", ENXIO)
        .init(999)
        .finds(Nodes, Wrong, "no kernel driver serves it")
        .next(MODPROBE);
    // One GPU of two is enough.
    Machine::whole("one-of-two")
        .file("/dev/nvidia1", "")
        .refuses("/dev/nvidia1", EACCES)
        .driver(SoftDriver::builder())
        .usable()
        .finds(Nodes, Good, "/dev/nvidia1");
}

fn group_of(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).expect("it is there").gid()
}

#[test]
fn the_library_is_not_the_modules() {
    Machine::whole("updated")
        .kernel("570.86.15")
        .init(803)
        .finds(Module, Wrong, "570.86.15, but the library is 580.159.04")
        .finds(Init, Wrong, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)")
        .next(
            "Reboot: the driver was updated to 580.159.04, but the kernel still runs module \
             570.86.15.",
        );
    Machine::whole("older").kernel("590.10").init(803).finds(Module, Wrong, "590.10, but").next(
        "Reinstall the driver: its library, 580.159.04, is older than the kernel module, 590.10.",
    );
    Machine::whole("image-library").kernel("570.86.15").file("/.dockerenv", "").init(803).next(
        "Restart the container, so it gets the library of the host's kernel module 570.86.15; if \
         the image contains its own library (580.159.04), remove it.",
    );
    // Where only /sys has the version.
    Machine::whole("sys")
        .without("/proc/driver")
        .file("/sys/module/nvidia/version", "570.86.15\n")
        .init(803)
        .finds(Module, Wrong, "570.86.15, but the library is 580.159.04");
}

#[test]
fn forward_compatibility() {
    let mut machine = Machine::whole("compat").kernel("535.54.03");
    machine.library = "/usr/local/cuda-13.0/compat/libcuda.so.580.159.04";
    machine
        .init(804)
        .finds(Module, Note, "535.54.03; the library is 580.159.04, for forward compatibility")
        .finds(Check::Library, Wrong, "which this GPU does not support")
        .next(
            "Remove /usr/local/cuda-13.0/compat from the library search path (LD_LIBRARY_PATH, \
             /etc/ld.so.conf.d): this GPU does not support forward compatibility.",
        );
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(Check::Library, Note, "from a forward-compatibility package");
}

#[test]
fn windows_subsystem_for_linux() {
    let wsl = |name| {
        let machine = Machine::bare(name);
        machine.file("/proc/version", "Linux version 5.15.167.4-microsoft-standard-WSL2 (root)\n")
    };
    let update = "Install NVIDIA's driver in Windows (not in Linux), run `wsl --update` and `wsl \
                  --shutdown` there, and restart this distribution with WSL 2.";
    wsl("wsl").no_library().finds(Wsl, Wrong, "WSL without /dev/dxg").next(update);
    wsl("dxg").file("/dev/dxg", "").no_library().finds(Wsl, Wrong, "but without").next(update);
    let whole = |name| wsl(name).file("/dev/dxg", "").file("/usr/lib/wsl/lib/libcuda.so.1", "x");
    whole("linux-driver").init(100).finds(Wsl, Wrong, "which belongs to a Linux driver").next(
        "Remove NVIDIA's Linux driver from this distribution: WSL brings its own library, \
         /usr/lib/wsl/lib/libcuda.so.1.",
    );
    let mut machine = whole("wsl-well");
    machine.library = "/usr/lib/wsl/lib/libcuda.so.1";
    let told = machine.driver(SoftDriver::builder()).usable().finds(Wsl, Good, "WSL 2");
    let looked = |check| told.0.findings().iter().any(|finding| finding.check() == check);
    assert!(![Bus, Module, Nodes].into_iter().any(looked), "they are Windows': {}", told.0);
}

#[test]
fn visible_devices() {
    for (value, part) in [
        ("", "is set and empty, which hides every GPU"),
        ("-1", "is -1, which hides every GPU: the first entry matches no GPU here (1 in all)"),
        ("1", "matches no GPU here (1 in all)"),
        ("GPU-ffff", "matches no GPU here (1 in all)"),
        ("nonsense", "matches no GPU here (1 in all)"),
    ] {
        let machine = Machine::whole("visible").env("CUDA_VISIBLE_DEVICES", value);
        machine.init(100).finds(Visible, Wrong, part).next(HIDDEN);
    }
    for value in ["0,0", "GPU-6c1f,GPU-6c1f"] {
        let machine = Machine::whole("twice").env("CUDA_VISIBLE_DEVICES", value);
        machine.init(101).finds(Visible, Wrong, "lists a GPU twice").next(HIDDEN);
    }
    for value in ["0,7", "0,-1,0", "GPU-6c1f,x"] {
        let machine = Machine::whole("partly").env("CUDA_VISIBLE_DEVICES", value);
        let told = machine.driver(SoftDriver::builder()).usable();
        told.finds(Visible, Note, "on are ignored");
    }
    // As the driver reads numbers.
    for value in ["0", " 0 ", "0gpu", "GPU-6c1f0d2b", "MIG-1"] {
        let machine = Machine::whole("good").env("CUDA_VISIBLE_DEVICES", value);
        let told = machine.driver(SoftDriver::builder()).usable();
        assert!(!told.0.to_string().contains("ignored"), "{}", told.0);
    }
}

/// In a container nothing but the driver can tell how many GPUs there are.
#[test]
fn the_variable_hides_what_the_driver_has() {
    let machine = Machine::bare("hidden").env("CUDA_VISIBLE_DEVICES", "5").file("/.dockerenv", "");
    let soft = SoftDriver::builder().init_result(CUresult(100)).build();
    let mut probe = Probe::ask(&machine.system, soft.try_driver(&LoadOptions::new()), false);
    assert!(probe.is_without_device());
    probe.unhidden = Some(1);
    let told = Told::new(&machine.system, &probe);
    told.finds(Visible, Wrong, "hides every GPU: the first entry matches no GPU here (1 in all)")
        .next_and_then(HIDDEN, &[]);
    // The driver has no device without it either.
    probe.unhidden = Some(0);
    let told = Told::new(&machine.system, &probe).finds(Visible, Note, "is 5");
    assert!(told.0.advice().starts_with("Use a machine with an NVIDIA GPU"), "{}", told.0);
}

#[test]
fn each_obstacle_has_its_advice() {
    let machine = Machine::whole("two").env("CUDA_VISIBLE_DEVICES", "").without("/dev/nvidia-uvm");
    machine.init(100).next_and_then(
        HIDDEN,
        &["Run `sudo nvidia-modprobe -u -c 0`, which creates the device nodes, or start \
           nvidia-persistenced at boot."],
    );
    let machine = Machine::with_gpu("three").env("CUDA_VISIBLE_DEVICES", "-1");
    let named = machine.root.join("nowhere/libcuda.so.1").display().to_string();
    machine.env("CUDA_EVENTS_DRIVER", &named).no_library().next_and_then(
        "Unset CUDA_EVENTS_DRIVER, or set it to the absolute path of a driver library.",
        &[
            MODPROBE,
            "Unset CUDA_VISIBLE_DEVICES, or set it to numbers or UUIDs from `nvidia-smi -L`.",
        ],
    );
    // What follows from another obstacle has none.
    Machine::with_gpu("one").no_library().next_and_then(MODPROBE, &[]);
}

#[test]
fn the_software_driver_is_named() {
    let machine = Machine::bare("software");
    let soft = SoftDriver::new();
    let probe = Probe::ask(&machine.system, Ok(soft.driver()), true);
    let told = Told::with_software(&machine.system, &probe);
    assert!(told.0.usable() && told.0.is_software(), "{}", told.0);
    assert!(told.0.advice().contains("to use a GPU, remove it"), "{}", told.0);
    told.finds(Check::Library, Note, "the software driver, which computes without a GPU");
    // By its file where it has no device.
    let mut probe = loaded();
    if let Library::Loaded { file, .. } = &mut probe.library {
        *file = Some(String::from("/opt/libcuda_soft_driver_shared.so"));
    }
    let told = Told::with_software(&machine.system, &probe);
    assert!(!told.0.usable() && told.0.is_software(), "{}", told.0);
}

#[test]
fn a_device_that_another_process_has() {
    Machine::whole("exclusive").init(46).finds(Init, Wrong, "(46)").next(
        "Stop the process that uses the device exclusively (`nvidia-smi` lists it), or allow \
         sharing with `sudo nvidia-smi -c DEFAULT`.",
    );
    let code = CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE;
    let machine = Machine::whole("context");
    let fault = Fault::on("cuDevicePrimaryCtxRetain").answer(code);
    let soft = SoftDriver::builder().fault(fault).build();
    let probe = Probe::ask(&machine.system, Ok(soft.driver()), true);
    Told::new(&machine.system, &probe).finds(Devices, Wrong, "no context: cuDevicePrimaryCtx").next(
        "Stop the process that uses device 0 exclusively (`nvidia-smi` lists it), or allow sharing \
         with `sudo nvidia-smi -i 0 -c DEFAULT`.",
    );
}

#[test]
fn compute_modes() {
    let machine = Machine::whole("mode");
    let soft = SoftDriver::builder().devices(2).build();
    let mut probe = Probe::ask(&machine.system, Ok(soft.driver()), false);
    probe.devices[0].compute_mode = Some(2);
    Told::new(&machine.system, &probe)
        .usable()
        .finds(Devices, Wrong, "compute mode prohibited")
        .finds(Devices, Good, "device 1");
    probe.devices[1].compute_mode = Some(3);
    let told = Told::new(&machine.system, &probe).usable();
    told.finds(Devices, Note, "compute mode exclusive process: one process at a time");
    probe.devices.pop();
    Told::new(&machine.system, &probe)
        .next("Run `sudo nvidia-smi -i 0 -c DEFAULT`: the device's compute mode prohibits CUDA.");
}

#[test]
fn no_device_is_counted() {
    Machine::whole("none")
        .driver(SoftDriver::builder().devices(0))
        .finds(Init, Wrong, "(100)")
        .next(
            "Compare `nvidia-smi -L` with CUDA_VISIBLE_DEVICES: the driver works, but shows no GPU \
             to this process.",
        );
    let fault = Fault::on("cuDeviceGetCount").answer(CUresult::CUDA_ERROR_UNKNOWN);
    Machine::whole("count")
        .driver(SoftDriver::builder().fault(fault))
        .finds(Init, Wrong, "cuDeviceGetCount failed with CUDA_ERROR_UNKNOWN (999)")
        .next(
            "Run `sudo nvidia-modprobe -u -c 0`, and reboot if that does not help: the driver \
             cannot reach its kernel module.",
        );
}

#[test]
fn a_fabric_manager() {
    let switched = |name| {
        let switch = "/sys/bus/pci/devices/0000:05:00.0";
        let machine = Machine::whole(name).file(&format!("{switch}/vendor"), "0x10de\n");
        machine.file(&format!("{switch}/class"), "0x068000\n")
    };
    switched("fabric").init(802).finds(Fabric, Wrong, "nv-fabricmanager does not run").next(
        "Run `sudo systemctl restart nvidia-fabricmanager`, with a fabric manager of the driver's \
         version, 580.159.04; on a machine with confidential computing, also `sudo nvidia-smi \
         conf-compute -srs 1`.",
    );
    let machine = switched("fabric-runs").file("/proc/77/comm", "nv-fabricmanage\n");
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(Fabric, Good, "1 NVSwitch, and nv-fabricmanager runs");
    switched("fabric-not").driver(SoftDriver::builder()).usable().finds(
        Fabric,
        Note,
        "no nv-fabricmanager",
    );
}

#[test]
fn the_multi_process_service() {
    let served = |name| {
        Machine::whole(name)
            .file("/tmp/mps/control", "")
            .file("/tmp/mps/nvidia-cuda-mps-control.pid", "77\n")
            .env("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps")
    };
    let again = "Start MPS again (`echo quit | nvidia-cuda-mps-control`, then \
                 `nvidia-cuda-mps-control -d`), or remove /tmp/mps to work without MPS.";
    served("mps-gone").init(805).finds(Mps, Wrong, "its control daemon has ended").next(again);
    let machine = served("mps-there").file("/proc/77/comm", "nvidia-cuda-mps");
    machine.init(807).finds(Mps, Wrong, "its control daemon runs").next(again);
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(Mps, Note, "use the MPS daemon of /tmp/mps");
    let machine = served("mps-refused").refuses("/tmp/mps", EACCES);
    machine.init(805).finds(Mps, Wrong, "/tmp/mps: Permission denied").next(
        "Give this user access to /tmp/mps, or start the user's own MPS control daemon and set \
         CUDA_MPS_PIPE_DIRECTORY to its folder.",
    );
    machine.driver(SoftDriver::builder()).usable().finds(Mps, Unknown, "Permission denied");
    let machine = Machine::whole("mps-nowhere").env("CUDA_MPS_PIPE_DIRECTORY", "/nowhere");
    machine.driver(SoftDriver::builder()).usable().finds(Mps, Note, "CUDA does not use MPS");
}

#[test]
fn parts_of_gpus() {
    let able = |name| Machine::whole(name).folder("/proc/driver/nvidia/capabilities/gpu0/mig");
    able("mig-none").init(100).finds(Mig, Wrong, "no part of a GPU (MIG) exists").next(
        "Run `nvidia-smi -L`: if MIG is on, create parts with `sudo nvidia-smi mig -cgi 0 -C`, or \
         turn MIG off with `sudo nvidia-smi -mig 0`.",
    );
    let part = |name| {
        able(name).file(
            "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access",
            "DeviceFileMinor: 12\nDeviceFileMode: 256\nDeviceFileModify: 1\n",
        )
    };
    let refused = "1 parts of GPUs (MIG) exist, but /dev/nvidia-caps/nvidia-cap12 cannot be opened";
    let machine = part("mig-container").file("/.dockerenv", "");
    machine.init(100).finds(Mig, Wrong, refused).next(
        "Start the container with a part of a GPU (NVIDIA_VISIBLE_DEVICES=MIG-..., see `nvidia-smi \
         -L`), so it gets /dev/nvidia-caps/nvidia-cap12.",
    );
    let machine = part("mig-refused")
        .file("/dev/nvidia-caps/nvidia-cap12", "")
        .refuses("/dev/nvidia-caps/nvidia-cap12", EACCES);
    let told = machine.init(100).finds(Mig, Wrong, refused);
    told.next("Allow this user to open /dev/nvidia-caps/nvidia-cap12.");
    let machine = part("mig-well").file("/dev/nvidia-caps/nvidia-cap12", "");
    machine.driver(SoftDriver::builder()).usable().finds(Mig, Note, "1 parts of GPUs");
}

#[test]
fn shared_memory() {
    let memory = |name, options: &str| {
        let line = format!("tmpfs /dev/shm tmpfs {options} 0 0\n");
        let machine = Machine::whole(name).file("/proc/self/mounts", &line);
        move |container: bool| {
            let machine = if container { machine.file("/.dockerenv", "") } else { machine };
            machine.driver(SoftDriver::builder()).usable()
        }
    };
    memory("shm", "rw,size=65536k")(true).finds(
        SharedMemory,
        Note,
        "/dev/shm of 64 MiB belongs to this container only: interprocess events of other \
         containers cannot be opened without --ipc=host",
    );
    memory("shm-else", "rw,size=9g")(true).finds(
        SharedMemory,
        Note,
        "the doctor cannot see which do",
    );
    memory("shm-host", "rw,size=65536k")(false).finds(SharedMemory, Good, "/dev/shm of 64 MiB");
    memory("shm-small", "rw,size=64k")(false).finds(SharedMemory, Note, "of 64 KiB has room for");
    memory("shm-read", "ro,size=9g")(false).finds(SharedMemory, Note, "is read-only");
    let machine = Machine::whole("shm-none").without("/dev/shm");
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(
        SharedMemory,
        Note,
        "interprocess events cannot be created; shared timelines do not",
    );
}

#[test]
fn limits() {
    let limited = |name, line: &str| Machine::whole(name).file("/proc/self/limits", line);
    let space = "Max address space  8589934592  unlimited  bytes\n";
    limited("space", space).init(2).finds(Limits, Wrong, "address space 8192 MiB").next(
        "Run `ulimit -v unlimited` first: the driver cannot reserve the address space it needs.",
    );
    let told = limited("space-well", space).driver(SoftDriver::builder()).usable();
    told.finds(Limits, Note, "address space 8192 MiB");
    limited("files", "Max open files  32  32  files\n")
        .init(304)
        .finds(Limits, Wrong, "open files 32")
        .next("Run `ulimit -n 1024` first: the driver cannot open the files it needs.");
    let machine = limited("locked", "Max locked memory  65536  65536  bytes\n");
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(Limits, Note, "locked memory 64 KiB");
    // Each limit has its own line.
    let all = "Max locked memory  65536  65536  bytes\nMax open files  32  32  files\n";
    limited("all", &format!("{all}{space}"))
        .init(2)
        .finds(Limits, Wrong, "address space 8192 MiB")
        .finds(Limits, Wrong, "open files 32")
        .finds(Limits, Note, "locked memory 64 KiB");
    let told = limited("space-alone", space).driver(SoftDriver::builder()).usable();
    told.finds(Limits, Good, "locked memory is not limited");
    let told = Machine::whole("unread").without("/proc/self/limits");
    told.driver(SoftDriver::builder()).usable().finds(Limits, Unknown, "/proc/self/limits");
}

#[test]
fn a_forked_child() {
    let spawn = "Start worker processes with spawn instead of fork, or fork before any use of \
                 CUDA: CUDA does not work after a fork.";
    Machine::whole("forked").init(3).finds(Init, Wrong, "CUDA_ERROR_NOT_INITIALIZED").next(spawn);
    let machine = Machine::whole("forked-child");
    let mut probe = Probe::empty();
    probe.library = loaded().library;
    let text = String::from("cuInit was not called");
    probe.init = Some(Err(Failure { code: None, forked: true, text }));
    Told::new(&machine.system, &probe).next(spawn);
}

/// What is left of a code where no other check finds anything.
#[test]
fn other_codes() {
    for (code, part) in [
        (36, "Update the NVIDIA display driver."),
        (101, "Run `nvidia-smi -L`"),
        (801, "Give the virtual GPU a type"),
        (802, "Run `sudo systemctl restart nvidia-fabricmanager`"),
        (803, "Reboot, and restart containers"),
        (804, "Remove the folder of the forward-compatibility package (cuda-compat"),
        (999, "Run `sudo nvidia-modprobe -u -c 0`, and reboot"),
        (2, "Check this process's limits"),
        (34, "Install the NVIDIA display driver"),
        (700, "Search for this error with the driver's version: cuInit failed with"),
    ] {
        let told = Machine::whole("code").init(code);
        assert!(told.0.advice().starts_with(part) && !told.0.usable(), "{code}:\n{}", told.0);
    }
}

#[test]
fn platforms_without_a_driver() {
    let system = System::simulated("/nowhere", Platform::Other);
    let told = Told::new(&system, &Probe::empty()).finds(Check::Platform, Wrong, "has no driver");
    assert_eq!(told.0.findings().len(), 1);
    told.next(
        "Run a 64-bit program on Linux or Windows with an NVIDIA GPU; tests can run on the crate \
         cuda-soft-driver instead.",
    );
}

#[test]
fn windows() {
    let mut machine = Machine::bare("windows").file("/Windows/System32/nvcuda.dll", "MZ");
    machine.system = System::simulated(&machine.root, Platform::Windows)
        .variable("SystemRoot", "C:\\Windows")
        .variable("cuda_visible_devices", "");
    machine
        .no_library()
        .finds(Check::Platform, Good, "Windows")
        .finds(Elsewhere, Note, "C:\\Windows\\System32\\nvcuda.dll exists")
        .next("Install the NVIDIA display driver, and reboot.");
    machine.library = "C:\\Windows\\System32\\nvcuda.dll";
    let told = machine.init(100).finds(Visible, Wrong, "is set and empty");
    let looked = |check| told.0.findings().iter().any(|finding| finding.check() == check);
    assert!(![Bus, Module, Nodes, SharedMemory, Limits].into_iter().any(looked), "{}", told.0);
    told.next("Unset CUDA_VISIBLE_DEVICES, or set it to numbers or UUIDs from `nvidia-smi -L`.");
}

/// What cannot be looked at is said to be so.
#[test]
fn what_cannot_be_seen() {
    let machine = Machine::whole("unseen").without("/sys");
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(Bus, Unknown, "/sys/bus/pci/devices: No such file");
    let machine = Machine::whole("unlisted").refuses("/sys/bus/pci/devices", EACCES);
    let told = machine.driver(SoftDriver::builder()).usable();
    told.finds(Bus, Unknown, "/sys/bus/pci/devices: Permission denied");
}

const AS_CHILD: &str = "simulated::asked_in_a_process";

fn child(as_what: &str) -> Command {
    other::command(&own_binary(), AS_CHILD, as_what)
}

/// The driver is asked in a process of its own, which may crash, hang, or not start.
#[test]
fn asked_in_a_process() {
    match role().as_deref() {
        None => {}
        Some("answer") => return child::answer(&System::here(), true),
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
    Told::new(&machine.system, &probe).usable();

    // No device is visible: it is asked once more without the variable.
    let hidden = || {
        let mut command = child("answer");
        command.env("CUDA_EVENTS_DRIVER", shared_library()).env("CUDA_VISIBLE_DEVICES", "5");
        command
    };
    let system = machine.system.clone().variable("CUDA_VISIBLE_DEVICES", "5");
    let probe = crate::ask_unhidden(&system, child::ask(hidden(), long), hidden);
    assert_eq!((probe.devices.len(), probe.unhidden), (0, Some(1)), "{probe:?}");
    Told::new(&system, &probe).next_and_then(HIDDEN, &[]);

    // It ends the process where its settings are wrong, and says so.
    let mut command = child("answer");
    command.env("CUDA_EVENTS_DRIVER", shared_library()).env("CUDA_SOFT_DRIVER", "bogus");
    let probe = child::ask(command, long);
    Told::new(&machine.system, &probe)
        .finds(Init, Wrong, "the software driver refuses CUDA_SOFT_DRIVER: `bogus` is not")
        .next_and_then(
            "Correct CUDA_SOFT_DRIVER, the settings of the software driver, or unset it.",
            &[],
        );

    let probe = child::ask(child("crash"), long);
    assert_eq!(probe.library, loaded().library, "what it had said before");
    Told::new(&machine.system, &probe).finds(Init, Wrong, "cuInit ended the process (").next(
        "Reinstall the driver, and unset LD_PRELOAD and CUDA_EVENTS_DRIVER if they replace it: the \
         library crashes.",
    );

    let probe = child::ask(child("hang"), Duration::from_millis(300));
    assert_eq!(
        probe.lost.as_ref().map(|lost| &lost.how),
        Some(&How::Hung(Duration::from_millis(300)))
    );
    Told::new(&machine.system, &probe).finds(Init, Wrong, "did not return within 0.3 s").next(
        "Look for lines with NVRM and Xid in `sudo dmesg`, and reboot: a GPU or its driver hangs.",
    );

    let probe = child::ask(Command::new("/nowhere/doctor"), long);
    let told = Told::new(&machine.system, &probe);
    assert!(!told.0.usable(), "{}", told.0);
}

fn loaded() -> Probe {
    let file = Some(String::from(LIBRARY));
    let library = Library::Loaded { file, version: String::from("13.0"), lacks: Vec::new() };
    Probe { library, ..Probe::empty() }
}
