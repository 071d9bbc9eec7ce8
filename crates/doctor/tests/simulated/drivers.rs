//! What is wrong with the driver, its module or its library.

use super::*;

#[test]
fn all_is_well() {
    let machine = Machine::whole("well");
    let found = machine
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
    assert!(found.0.findings().iter().all(|finding| finding.level() == Good), "{}", found.0);
}

/// On whatever driver the tests run, and on this machine's own files.
#[test]
fn a_driver_that_works_is_enough() {
    let gpu = Gpu::new();
    let probe = Probe::ask(&System::here(), Ok(gpu.driver), true);
    let found = Found::new(&System::here(), &probe).usable();
    assert!(probe.devices.iter().all(|device| device.context.is_some()), "{}", found.0);
    if TestDriver::chosen() == TestDriver::Native {
        Found(Report::of_this_process(Driver::load())).usable().finds(Module, Good, "as the");
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
    Machine::whole("fake")
        .without("/usr/lib")
        .load(cuda_events_test_support::load_from("libc.so.6"))
        .finds(Check::Library, Wrong, "it exports no cuDriverGetVersion")
        .next("Remove libc.so.6: it has the name of the driver library, but is not a driver.");
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
        Wrong,
        "(580.159.04) is for aarch64",
    );
    Machine::whole("dangling").without(LIBRARY).no_library().finds(
        Elsewhere,
        Wrong,
        "libcuda.so.1 is a broken link: it leads to libcuda.so.580.159.04",
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
    let elsewhere = |found: &Found| {
        let mut all = found.0.findings().iter();
        let found = all.find(|finding| finding.check() == Elsewhere).expect("it is listed");
        found.lacks().to_vec()
    };

    // The loaded one: its driver is asked.
    let newer = functions(|entry| entry.version > Version::new(11, 4));
    let found = Machine::whole("old-driver").driver(SoftDriver::builder().version(11, 4)).usable();
    let lacks: Vec<String> = found.0.findings().iter().flat_map(Finding::lacks).cloned().collect();
    assert_eq!(lacks, newer);
    let named = newer[..3].join(", ");
    let more = newer.len() - 3;
    let part = format!("for CUDA 11.4; it lacks {named} and {more} more");
    found.finds(Check::Library, Good, &part);

    // Others: their files are read.
    let all = functions(|_| true);
    let found = with("complete", &library(&all)).no_library();
    assert_eq!(elsewhere(&found), [""; 0]);
    found.finds(Elsewhere, Wrong, "or depends on a missing library");

    let found = with("required", &library(&functions(|entry| entry.required))).no_library();
    let optional = functions(|entry| !entry.required);
    assert_eq!(elsewhere(&found), optional);
    let part = format!("library; it lacks {} and", optional[..3].join(", "));
    found.finds(Elsewhere, Wrong, &part);

    let two = ["cuStreamGetId", "cuStreamGetDevice"];
    let found = with("two", &library(&functions(|entry| !two.contains(&entry.function.name()))))
        .no_library();
    assert_eq!(elsewhere(&found), two);
    found.finds(Elsewhere, Wrong, "it lacks cuStreamGetId, cuStreamGetDevice");

    // The import is no export.
    let found =
        with("older", &library(&functions(|entry| entry.function != Function::cuMemAlloc_v2)))
            .no_library();
    assert_eq!(elsewhere(&found), ["cuMemAlloc_v2"]);
    found.finds(Elsewhere, Note, "lacks functions that cuda-events requires: cuMemAlloc_v2");

    let found = with("other", &library(&["main"])).no_library();
    found.finds(Elsewhere, Note, "is not a CUDA driver: it exports no cuDriverGetVersion");

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
    let found = machine.driver(SoftDriver::builder()).usable();
    found.finds(Variable, Note, "and no other library is tried");
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

pub(super) fn group_of(path: &Path) -> u32 {
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
