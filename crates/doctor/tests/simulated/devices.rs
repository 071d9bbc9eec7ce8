//! What is wrong with the devices, or hides them.

use super::*;

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
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(Check::Library, Note, "from a forward-compatibility package");
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
    let found = machine.driver(SoftDriver::builder()).usable().finds(Wsl, Good, "WSL 2");
    let looked = |check| found.0.findings().iter().any(|finding| finding.check() == check);
    assert!(![Bus, Module, Nodes].into_iter().any(looked), "they are Windows': {}", found.0);
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
        let found = machine.driver(SoftDriver::builder()).usable();
        found.finds(Visible, Note, "on are ignored");
    }
    // As the driver reads numbers.
    for value in ["0", " 0 ", "0gpu", "GPU-6c1f0d2b", "MIG-1"] {
        let machine = Machine::whole("good").env("CUDA_VISIBLE_DEVICES", value);
        let found = machine.driver(SoftDriver::builder()).usable();
        assert!(!found.0.to_string().contains("ignored"), "{}", found.0);
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
    let found = Found::new(&machine.system, &probe);
    found
        .finds(Visible, Wrong, "hides every GPU: the first entry matches no GPU here (1 in all)")
        .next_and_then(HIDDEN, &[]);
    // The driver has no device without it either.
    probe.unhidden = Some(0);
    let found = Found::new(&machine.system, &probe).finds(Visible, Note, "is 5");
    assert!(found.0.advice().starts_with("Use a machine with an NVIDIA GPU"), "{}", found.0);
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
    let found = Found::with_software(&machine.system, &probe);
    assert!(found.0.usable() && found.0.is_software(), "{}", found.0);
    assert!(found.0.advice().contains("to use a GPU, remove it"), "{}", found.0);
    found.finds(Check::Library, Note, "the software driver, which computes without a GPU");
    // By its file where it has no device.
    let mut probe = loaded();
    if let Library::Loaded { file, .. } = &mut probe.library {
        *file = Some(String::from("/opt/libcuda_soft_driver_shared.so"));
    }
    let found = Found::with_software(&machine.system, &probe);
    assert!(!found.0.usable() && found.0.is_software(), "{}", found.0);
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
    let found = Found::new(&machine.system, &probe);
    found.finds(Devices, Wrong, "no context: cuDevicePrimaryCtx").next(
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
    Found::new(&machine.system, &probe)
        .usable()
        .finds(Devices, Wrong, "compute mode prohibited")
        .finds(Devices, Good, "device 1");
    probe.devices[1].compute_mode = Some(3);
    let found = Found::new(&machine.system, &probe).usable();
    found.finds(Devices, Note, "compute mode exclusive process: one process at a time");
    probe.devices.pop();
    Found::new(&machine.system, &probe)
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
            "Run `sudo nvidia-modprobe -u -c 0`, or after a suspend `sudo rmmod nvidia_uvm` and \
             `sudo modprobe nvidia_uvm`, and reboot if that does not help: the driver cannot reach \
             its kernel module.",
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
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(Fabric, Good, "1 NVSwitch, and nv-fabricmanager runs");
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
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(Mps, Note, "use the MPS daemon of /tmp/mps");
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
    let found = machine.init(100).finds(Mig, Wrong, refused);
    found.next("Allow this user to open /dev/nvidia-caps/nvidia-cap12.");
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
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(
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
    let found = limited("space-well", space).driver(SoftDriver::builder()).usable();
    found.finds(Limits, Note, "address space 8192 MiB");
    limited("files", "Max open files  32  32  files\n")
        .init(304)
        .finds(Limits, Wrong, "open files 32")
        .next("Run `ulimit -n 1024` first: the driver cannot open the files it needs.");
    let machine = limited("locked", "Max locked memory  65536  65536  bytes\n");
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(Limits, Note, "locked memory 64 KiB");
    // Each limit has its own line.
    let all = "Max locked memory  65536  65536  bytes\nMax open files  32  32  files\n";
    limited("all", &format!("{all}{space}"))
        .init(2)
        .finds(Limits, Wrong, "address space 8192 MiB")
        .finds(Limits, Wrong, "open files 32")
        .finds(Limits, Note, "locked memory 64 KiB");
    let found = limited("space-alone", space).driver(SoftDriver::builder()).usable();
    found.finds(Limits, Good, "locked memory is not limited");
    let found = Machine::whole("unread").without("/proc/self/limits");
    found.driver(SoftDriver::builder()).usable().finds(Limits, Unknown, "/proc/self/limits");
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
    Found::new(&machine.system, &probe).next(spawn);
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
        (999, "Run `sudo nvidia-modprobe -u -c 0`, or after a suspend"),
        (2, "Check this process's limits"),
        (34, "Install the NVIDIA display driver"),
        (700, "Search for this error with the driver's version: cuInit failed with"),
    ] {
        let found = Machine::whole("code").init(code);
        assert!(found.0.advice().starts_with(part) && !found.0.usable(), "{code}:\n{}", found.0);
    }
}

#[test]
fn platforms_without_a_driver() {
    let system = System::simulated("/nowhere", Platform::Other);
    let found = Found::new(&system, &Probe::empty()).finds(Check::Platform, Wrong, "has no driver");
    assert_eq!(found.0.findings().len(), 1);
    found.next(
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
    let found = machine.init(100).finds(Visible, Wrong, "is set and empty");
    let looked = |check| found.0.findings().iter().any(|finding| finding.check() == check);
    assert!(![Bus, Module, Nodes, SharedMemory, Limits].into_iter().any(looked), "{}", found.0);
    found.next("Unset CUDA_VISIBLE_DEVICES, or set it to numbers or UUIDs from `nvidia-smi -L`.");
}

/// What cannot be looked at is said to be so.
#[test]
fn what_cannot_be_seen() {
    let machine = Machine::whole("unseen").without("/sys");
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(Bus, Unknown, "/sys/bus/pci/devices: No such file");
    let machine = Machine::whole("unlisted").refuses("/sys/bus/pci/devices", EACCES);
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(Bus, Unknown, "/sys/bus/pci/devices: Permission denied");
}
