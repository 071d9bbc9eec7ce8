//! What is just enough and just too little, and what is not the cause although it looks like one.

use super::*;

const DENIED: &str = "/dev/nvidiactl";

/// The driver fails, and this is a finding about the machine.
#[track_caller]
fn fails(machine: Machine, check: Check, level: Level, part: &str) {
    machine.init(100).finds(check, level, part);
}

/// All is well on this machine, and this is a finding about it.
#[track_caller]
fn works(machine: Machine, check: Check, level: Level, part: &str) {
    machine.driver(SoftDriver::builder()).usable().finds(check, level, part);
}

#[track_caller]
fn begins(found: &Found, advice: &str) {
    assert!(found.0.advice().starts_with(advice), "{advice}:\n{}", found.0);
}

#[test]
fn limits() {
    let limited = |text: &str| Machine::whole("limits").file("/proc/self/limits", text);
    let threads = |max: u32, text: &str| {
        let machine = limited(text).file("/sys/fs/cgroup/pids.max", &format!("{max}\n"));
        machine.file("/sys/fs/cgroup/pids.current", "100\n")
    };
    works(threads(131, ""), Limits, Note, "processes and threads 31 more");
    works(limited("Max processes  31  31  processes\n"), Limits, Note, "threads 31 more");
    works(limited("Max open files  255  256  files\n"), Limits, Note, "open files 255");
    let locked = "Max locked memory  67108864  67108864  bytes\n";
    works(limited(locked), Limits, Good, "locked memory 64 MiB");
    // The control group's limit comes before the user's.
    let enough = [
        threads(132, "Max processes  31  31  processes\n"),
        limited("Max processes  32  32  processes\nMax open files  256  256  files\n"),
    ];
    for machine in enough {
        let found = machine.driver(SoftDriver::builder()).usable();
        let limits = |finding: &&Finding| finding.check() == Limits && finding.level() != Good;
        assert_eq!(found.0.findings().iter().filter(limits).count(), 0, "{}", found.0);
    }
}

#[test]
fn shared_memory() {
    for (lines, level, part) in [
        ("size=1m", Good, "/dev/shm of 1 MiB"),
        ("size=1023k", Note, "of 1023 KiB has room for"),
        // What was mounted last is there.
        ("size=64k 0 0\ntmpfs /dev/shm tmpfs rw,size=1g", Good, "/dev/shm of 1024 MiB"),
    ] {
        let line = format!("tmpfs /dev/shm tmpfs rw,{lines} 0 0\n");
        works(Machine::whole("shm").file("/proc/self/mounts", &line), SharedMemory, level, part);
    }
}

#[test]
fn visible_devices() {
    let other = "/proc/driver/nvidia/gpus/0000:02:00.0/information";
    let machine = Machine::whole("gpus").file(other, "").env("CUDA_VISIBLE_DEVICES", "2");
    machine.init(100).next(
        "Unset CUDA_VISIBLE_DEVICES, or set it to different numbers from 0 to 1, or to UUIDs from \
         `nvidia-smi -L`.",
    );
    // Two ways to write one number. That it hides the GPUs is only the consequence.
    for value in ["0,0", "0,00", "0,0gpu"] {
        let machine = Machine::whole("twice").env("CUDA_VISIBLE_DEVICES", value);
        let soft = SoftDriver::builder().init_result(CUresult(101)).build();
        let mut probe = Probe::ask(&machine.system, soft.try_driver(&LoadOptions::new()), false);
        probe.unhidden = Some(1);
        Found::new(&machine.system, &probe).finds(Visible, Wrong, "lists a GPU twice");
    }
    // Of a GPU whose UUID cannot be read any may be meant.
    let information = "/proc/driver/nvidia/gpus/0000:01:00.0/information";
    let machine = Machine::whole("no-uuid").file(information, "Model: \t\t NVIDIA H100\n");
    works(machine.env("CUDA_VISIBLE_DEVICES", "GPU-ffff"), Visible, Note, "is GPU-ffff");
}

#[test]
fn containers() {
    let manager = |text| Machine::whole("manager").file("/run/systemd/container", text);
    works(manager("lxc\n"), Container, Good, "a container of LXC");
    works(manager("nspawn\n"), Container, Good, "a container");
    // An empty variable is none, and a snap starts programs outside of itself.
    let machine = Machine::whole("empty").env("APPTAINER_CONTAINER", "");
    works(machine, Container, Good, "none detected");
    let snap = || Machine::whole("snap").env("SNAP", "/snap/code/1").env("SNAP_NAME", "code");
    works(snap(), Container, Good, "a snap");
    let outside = snap().file("/proc/self/attr/current", "unconfined\n");
    works(outside, Container, Good, "none detected");
    let docker = |name| Machine::whole(name).file("/.dockerenv", "");
    let able = docker("able").env("NVIDIA_DRIVER_CAPABILITIES", "utility, compute");
    able.no_library().finds(Container, Note, "a Docker container, with device nodes");
    // Of a process that was lost nobody knows whether it has device nodes.
    let mut probe = loaded();
    probe.lost =
        Some(Lost { step: "cuInit".into(), how: How::Hung(Duration::ZERO), settings: None });
    let found = Found::new(&docker("lost").system, &probe);
    found.finds(Container, Good, "a Docker container");
    let pod = Machine::whole("pod").env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    let pod = pod.env("NVIDIA_VISIBLE_DEVICES", "none").without("/dev/nvidiactl");
    let pod = pod.without("/dev/nvidia-uvm").without("/dev/nvidia0");
    begins(&pod.no_library(), "Request a GPU in the pod's resources");
}

#[test]
fn services_and_sandboxes() {
    // What a user's own manager has started is no service.
    let groups = |text| Machine::whole("groups").file("/proc/self/cgroup", text);
    let found = groups("0::/user.slice/user@1000.service\n").driver(SoftDriver::builder());
    assert!(!found.0.to_string().contains("the service"), "{}", found.0);
    works(groups("0::/a/app.service\n"), Container, Good, "the service app.service");
    let mounted = |name, points: &str| {
        let machine = Machine::whole(name).file("/proc/self/mounts", points);
        machine.refuses(DENIED, EACCES)
    };
    let nodev = "it is mounted with nodev";
    // Of two mounts the one that is nearer counts, and one beside it does not.
    let device = "none / ext4 rw,nodev 0 0\nnone /dev tmpfs rw 0 0\n";
    for (points, level) in [
        ("none / ext4 rw 0 0\nnone /dev tmpfs rw,nodev 0 0\n", true),
        (device, false),
        ("none / ext4 rw 0 0\nnone /de tmpfs rw,nodev 0 0\n", false),
    ] {
        let found = mounted("nodev", points).init(100);
        assert_eq!(found.0.to_string().contains(nodev), level, "{points}\n{}", found.0);
    }
}

#[test]
fn rights_of_device_nodes() {
    let denied = |name, mode: u32, group: &str| {
        let machine = Machine::whole(name).refuses(DENIED, EACCES);
        let node = machine.at(DENIED);
        fs::set_permissions(&node, fs::Permissions::from_mode(mode)).expect("a mode");
        let number = std::os::unix::fs::MetadataExt::gid(&fs::metadata(node).expect("a file"));
        machine.file("/etc/group", &format!("{group}:x:{number}:\n"))
    };
    // Who may read it may not use it.
    fails(
        denied("read", 0o664, "video"),
        Nodes,
        Wrong,
        "permission denied (mode 664, group video)",
    );
    let found = denied("read", 0o664, "video").init(100);
    begins(&found, "Allow this user to open /dev/nvidiactl: run `sudo usermod -aG video $USER`");
    let found = denied("root", 0o660, "root").init(100);
    begins(&found, "Allow this user to open /dev/nvidiactl: only root may open it");
    let service = |machine: Machine| machine.file("/proc/self/cgroup", "0::/s/app.service\n");
    let found = service(denied("service", 0o660, "video")).init(100);
    begins(&found, "Set SupplementaryGroups=video in app.service");
    let contained = service(denied("lxc", 0o660, "video")).file("/dev/.lxc", "");
    begins(&contained.init(100), "Allow this user to open /dev/nvidiactl: run `sudo usermod");
}

#[test]
fn libraries() {
    // A file that is no library fits no kernel module.
    let mut machine = Machine::whole("broken").without(LIBRARY).file(LIBRARY, "text");
    machine.library = "/opt/libcuda.so.570.1.1";
    let found = machine.init(803);
    assert!(!found.0.advice().contains("fits"), "{}", found.0);
    // Two ways to one file are one.
    let found = Machine::whole("once").no_library();
    let about = |finding: &&Finding| finding.check() == Elsewhere;
    assert_eq!(found.0.findings().iter().filter(about).count(), 1, "{}", found.0);
    // A library for 32 bits beside one that works is no obstacle.
    let old = "/usr/lib/libcuda.so.1";
    let of_32_bits = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x03\0";
    let machine = Machine::whole("both").elf(old, of_32_bits);
    machine.no_library().finds(Elsewhere, Note, "is for x86");
    let machine = Machine::whole("alone").without(LIBRARY).elf(old, of_32_bits);
    let machine = machine.without("/usr/lib/x86_64-linux-gnu/libcuda.so.1");
    machine.no_library().finds(Elsewhere, Wrong, "is for x86");
    // One of another version works no better.
    let machine = Machine::whole("other").kernel("570.86.10");
    machine.no_library().finds(Elsewhere, Note, "does not fit the kernel module");
    // An empty file in the way ends no process.
    let machine = Machine::whole("crash").env("LD_LIBRARY_PATH", "/opt");
    let machine = machine.file("/opt/libcuda.so.1", "");
    let how = How::Ended("ended the process (signal: 11 (SIGSEGV))".into());
    let mut probe = Probe::empty();
    probe.lost = Some(Lost { step: "loading".into(), how, settings: None });
    begins(&Found::new(&machine.system, &probe), "Reinstall the driver");
    let machine = machine.file("/opt/libcuda.so.1", "text");
    begins(&Found::new(&machine.system, &probe), "Remove /opt from LD_LIBRARY_PATH");
}

#[test]
fn kernel_modules() {
    let gpu = |model: &str| Machine::whole("gpu").file(&format!("{GPU}/device"), model);
    let closed = |machine: Machine| {
        let line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  590.1.1  Release Build\n";
        machine.file("/proc/driver/nvidia/version", line)
    };
    fails(closed(gpu("0x2900\n")), Module, Wrong, "the GPU needs the open kernel modules");
    fails(closed(gpu("0x1dff\n")), Module, Wrong, "this version ignores GPUs before Turing");
    fails(gpu("0x1dff\n"), Module, Wrong, "the open kernel modules do not serve GPUs before");
    // One of two is new enough.
    let second = "/sys/bus/pci/devices/0000:02:00.0";
    let two = closed(gpu("0x1dff\n"))
        .file(&format!("{second}/vendor"), "0x10de\n")
        .file(&format!("{second}/class"), "0x030200\n")
        .file(&format!("{second}/device"), "0x1e00\n");
    let found = two.init(100);
    assert!(!found.0.to_string().contains("before Turing"), "{}", found.0);
    // Versions are numbers.
    let mut machine = Machine::whole("versions").kernel("99.1.1").without(LIBRARY);
    machine.library = "/opt/libcuda.so.100.1.1";
    begins(&machine.init(803), "Reboot: the driver was updated to 100.1.1");
    // The last message is the one of now.
    let log = "6,1,1,-;NVRM: GPU 1: RmInitAdapter failed! (1)\n\
               6,2,2,-;NVRM: GPU 2: RmInitAdapter failed! (2)\n";
    let machine = Machine::whole("log").file("/dev/kmsg", log);
    let found = machine.init(999);
    let said = |finding: &Finding| finding.text() == "NVRM: GPU 2: RmInitAdapter failed! (2)";
    assert!(found.0.findings().iter().any(said), "{}", found.0);
    // Only words of numbers are versions.
    let line = "NVRM version: NVIDIA UNIX x86.64 v1.2 Kernel Module  570.1.1  Release Build\n";
    let machine = Machine::whole("words").file("/proc/driver/nvidia/version", line);
    fails(machine, Module, Wrong, "570.1.1, but the library is 580.159.04");
    // What a container has of a host's settings is not the host's.
    let machine = Machine::whole("excluded").without("/proc/driver/nvidia/version");
    let machine = machine.file("/etc/modprobe.d/off.conf", "blacklist nvidia\n");
    let machine = machine.refuses(DENIED, ENXIO).refuses("/dev/nvidia-uvm", ENXIO);
    let machine = machine.refuses("/dev/nvidia0", ENXIO);
    begins(&machine.init(100), "Remove the line that excludes nvidia");
    begins(&machine.file("/.dockerenv", "").init(100), "On the host, run `sudo modprobe nvidia`");
}

#[test]
fn devices_and_drivers() {
    let machine = Machine::whole("mig");
    let soft = SoftDriver::new();
    let mut probe = Probe::ask(&machine.system, Ok(soft.driver()), false);
    probe.devices[0].name = String::from("NVIDIA H100 MIG 1g.10gb");
    let found = Found::new(&machine.system, &probe);
    found.finds(Devices, Note, "a part of a GPU (MIG)");
    // A file of the system ends with a line.
    let hmm = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm";
    for (value, advice) in [("1\n", "Reboot, and if that"), ("0\n", "Write `options nvidia_uvm")] {
        let machine = Machine::whole("hmm").file(hmm, value);
        let soft = SoftDriver::builder().init_result(CUresult(3)).build();
        let mut probe = Probe::ask(&machine.system, soft.try_driver(&LoadOptions::new()), false);
        probe.separate = true;
        begins(&Found::new(&machine.system, &probe), advice);
    }
    let board = Machine::whole("tegra").file("/etc/nv_tegra_release", "");
    works(board, Nodes, Good, "/dev/nvidia0, /dev/nvidiactl");
    let wsl = Machine::bare("wsl").file("/proc/version", "Linux version 5-microsoft-WSL2\n");
    let wsl = wsl.file("/dev/dxg", "").file("/usr/lib/wsl/lib/libcuda.so.1", "x");
    works(wsl, Wsl, Good, "WSL 2 with /dev/dxg");
}

/// The advice that comes first, of two that fit.
#[test]
fn what_comes_first() {
    let log = "6,1,1,-;NVRM: GPU 1: RmInitAdapter failed! (1)\n";
    let machine =
        Machine::whole("hangs").file("/dev/kmsg", log).file("/tmp/nvidia-mps/control", "");
    let mut probe = loaded();
    probe.lost =
        Some(Lost { step: "cuInit".into(), how: How::Hung(Duration::ZERO), settings: None });
    begins(&Found::new(&machine.system, &probe), "Run as the user whom the MPS daemon");
    // Without a switch that can be seen other causes come first.
    let machine = Machine::whole("fabric").without("/dev/nvidia-uvm");
    begins(&machine.init(802), "Run `sudo nvidia-modprobe -u -c 0`");
    let switch = "/sys/bus/pci/devices/0000:05:00.0";
    let machine = machine.file(&format!("{switch}/vendor"), "0x10de\n");
    let machine = machine.file(&format!("{switch}/class"), "0x068000\n");
    begins(&machine.init(802), "Run `sudo systemctl restart nvidia-fabricmanager`");
    // A fabric manager that runs has not made the GPUs ready.
    let machine = machine.file("/proc/77/comm", "nv-fabricmanage\n");
    machine.init(802).finds(Fabric, Wrong, "runs, but has not made the GPUs ready");
    // What is wrong with a library that a variable names, and no other one is tried.
    let named = Machine::whole("variable");
    let library = named.root.join("nowhere/libcuda.so.1").display().to_string();
    named.env("CUDA_EVENTS_DRIVER", &library).no_library().next_and_then(
        "Unset CUDA_EVENTS_DRIVER, or set it to the absolute path of a driver library.",
        &[],
    );
    let machine = Machine::whole("no-pipe").folder("/tmp/nvidia-mps");
    machine.init(805).finds(Mps, Wrong, "it has no pipe of a control daemon");
    // A daemon of the host's is not gone because its process cannot be seen.
    let machine = Machine::whole("mps").file("/tmp/nvidia-mps/control", "");
    let machine = machine.file("/tmp/nvidia-mps/nvidia-cuda-mps-control.pid", "77\n");
    let text = "/tmp/nvidia-mps is left over";
    machine.driver(SoftDriver::builder()).finds(Mps, Note, text);
    let machine = machine.file("/.dockerenv", "");
    machine.driver(SoftDriver::builder()).finds(Mps, Note, "programs use the MPS daemon");
}

#[test]
fn exit_codes() {
    let machine = Machine::whole("code");
    assert_eq!(crate::code_of(&machine.init(100).0), 1);
    assert_eq!(crate::code_of(&machine.driver(SoftDriver::builder()).0), 0);
    let soft = SoftDriver::new();
    let probe = Probe::ask(&machine.system, Ok(soft.driver()), false);
    assert_eq!(crate::code_of(&Report::new(&machine.system, &probe)), 3);
}
