//! Machines of people who could not get a GPU to work, each with what helped in the end.

use super::*;

/// A report, its machine as the doctor sees it, and the beginning of the advice.
type Row = (&'static str, fn(&str) -> Found, &'static str);

const EAGAIN: i32 = 11;
const EMFILE: i32 = 24;
const HOST_MODPROBE: &str = "Run `sudo nvidia-modprobe -u -c 0` on the host";
const COMPAT: &str = "/usr/local/cuda-13.0/compat/libcuda.so.580.159.04";

impl Machine {
    /// The mode of a file.
    fn mode(self, path: &str, mode: u32) -> Self {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).expect("a mode");
        self
    }

    /// The device nodes exist and everybody may open them, and something refuses it.
    fn denied(self, number: i32) -> Self {
        let nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"];
        nodes
            .into_iter()
            .fold(self, |machine, node| machine.mode(node, 0o666).refuses(node, number))
    }

    fn without_nodes(self) -> Self {
        self.without("/dev/nvidiactl").without("/dev/nvidia-uvm").without("/dev/nvidia0")
    }

    fn replaced(self, path: &str, text: &str) -> Self {
        self.without(path).file(path, text)
    }

    fn mounts(self, line: &str) -> Self {
        self.replaced("/proc/self/mounts", &format!("devtmpfs /dev devtmpfs rw 0 0\n{line} 0 0\n"))
    }

    fn group(self, path: &str) -> Self {
        self.replaced("/proc/self/cgroup", &format!("0::{path}\n"))
    }

    fn message(self, text: &str) -> Self {
        self.file("/dev/kmsg", &format!("4,1021,9001234,-;NVRM: {text}\n"))
    }

    /// A GPU of this model, driven by this module.
    fn model(self, model: &str, kind: &str, version: &str) -> Self {
        let line = format!("NVRM version: NVIDIA UNIX {kind}  {version}  Release Build\n");
        self.file(&format!("{GPU}/device"), model).replaced("/proc/driver/nvidia/version", &line)
    }

    /// The driver is called in a process of its own, and `cuInit` returns this code.
    fn separate(&self, code: u32) -> Found {
        let soft = SoftDriver::builder().init_result(CUresult(code)).build();
        let driver = soft.try_driver(&LoadOptions::new());
        let mut probe = Probe { separate: true, ..Probe::ask(&self.system, driver, false) };
        if let Library::Loaded { file, .. } = &mut probe.library {
            *file = Some(self.library.to_owned());
        }
        Found::new(&self.system, &probe)
    }

    /// The process that calls the driver does not return its results.
    fn lost(&self, how: How) -> Found {
        let lost = Lost { step: String::from("cuInit"), how, settings: None };
        Found::new(&self.system, &Probe { lost: Some(lost), ..loaded() })
    }

    fn not_started(&self, number: i32) -> Found {
        let text = std::io::Error::from_raw_os_error(number).to_string();
        let how = How::NotStarted { number: Some(number), text };
        let lost = Lost { step: String::from("starting"), how, settings: None };
        Found::new(&self.system, &Probe { lost: Some(lost), ..Probe::empty() })
    }

    /// The loader refuses the library, and says this.
    fn refused(&self, text: &str) -> Found {
        let probe = Probe::ask(
            &self.system,
            cuda_events_test_support::load_from("/nowhere/libcuda.so.1"),
            false,
        );
        let Library::Refused { mut attempts, .. } = probe.library else { panic!("{probe:?}") };
        attempts[0].candidate = Some(String::from("libcuda.so.1"));
        attempts[0].text = text.to_owned();
        let library = Library::Refused { attempts, text: text.to_owned() };
        Found::new(&self.system, &Probe { library, ..Probe::empty() }.with_nodes(&self.system))
    }
}

impl Probe {
    fn with_nodes(self, system: &System) -> Self {
        let nodes =
            Probe::ask(system, cuda_events_test_support::load_from("/nowhere/libcuda.so.1"), false)
                .nodes;
        Self { nodes, ..self }
    }
}

fn compat(name: &str, code: u32) -> Found {
    let mut machine = Machine::whole(name).kernel("595.45.04").elf(COMPAT, ELF);
    machine = machine.elf("/usr/lib/x86_64-linux-gnu/libcuda.so.595.45.04", ELF);
    machine = machine.without("/usr/lib/x86_64-linux-gnu/libcuda.so.1");
    let link = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
    machine = machine.link(link, "libcuda.so.595.45.04").link("/usr/local/cuda", "cuda-13.0");
    machine = machine.env("LD_LIBRARY_PATH", "/usr/local/cuda/compat");
    machine.library = COMPAT;
    machine.init(code)
}

fn board(name: &str) -> Machine {
    Machine::bare(name).file("/etc/nv_tegra_release", "# R36\n")
}

fn wsl(name: &str) -> Machine {
    let version = "Linux version 5.15.167.4-microsoft-standard-WSL2 (root)\n";
    Machine::bare(name).replaced("/proc/version", version)
}

/// Containers and sandboxes.
#[rustfmt::skip] // A row in few lines.
const CONFINED: &[Row] = &[
    ("janhq/jan#7905", |name| {
        let folder = "/usr/lib/x86_64-linux-gnu/GL/nvidia-580-159-04/lib";
        let machine = Machine::whole(name).without("/usr/lib").file("/.flatpak-info", "");
        machine.elf(&format!("{folder}/libcuda.so.580.159.04"), ELF).no_library()
    }, "Start the application with `flatpak run --env=LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/GL/\
     nvidia-580-159-04/lib`"),
    ("arunsivaramanneo/GPU-Viewer#64", |name| {
        let folder = "/usr/lib/x86_64-linux-gnu/GL/nvidia-570-86-15/lib";
        let machine = Machine::whole(name).without("/usr/lib").file("/.flatpak-info", "");
        machine.elf(&format!("{folder}/libcuda.so.570.86.15"), ELF).no_library()
    }, "Install the driver's libraries for Flatpak with `flatpak install flathub \
     org.freedesktop.Platform.GL.nvidia-580-159-04`"),
    ("maxiberta/moonlight-snap#8", |name| {
        let machine = Machine::whole(name).env("SNAP", "/snap/x/1").env("SNAP_NAME", "x");
        machine.file("/proc/self/attr/current", "snap.x.x (enforce)\n").denied(EACCES).init(100)
    }, "Connect the snap to the GPU with `sudo snap connect x:opengl`"),
    ("jupyterhub/systemdspawner#67", |name| {
        let machine = Machine::whole(name).without_nodes().group("/system.slice/hub.service");
        machine.mounts("tmpfs /dev tmpfs rw,nosuid").init(100)
    }, "Set PrivateDevices=no in hub.service"),
    ("NixOS/nixpkgs#266167", |name| {
        let machine = Machine::whole(name).group("/system.slice/whisper.service");
        machine.denied(EPERM).init(100)
    }, "Give the service access to the GPUs: its control group forbids it (add `DeviceAllow="),
    ("NixOS/nixpkgs#363357", |name| {
        let machine = wsl(name).file("/dev/dxg", "").refuses("/dev/dxg", EPERM);
        machine.file("/usr/lib/wsl/lib/libcuda.so.1", "x").init(100)
    }, "Give the service access to the GPU with `DeviceAllow=/dev/dxg rw`"),
    ("redhat-et/triton-dev-containers#61", |name| {
        let label = "system_u:system_r:container_t:s0:c380,c597\0";
        let machine = Machine::whole(name).file("/run/.containerenv", "");
        machine.file("/proc/self/attr/current", label).denied(EACCES).init(100)
    }, "Start the container with `--security-opt label=disable`"),
    ("containers/podman#10166", |name| {
        let node = "/dev/nvidiactl";
        let machine = Machine::whole(name).file("/run/.containerenv", "").mode(node, 0o660);
        let groups = format!("nogroup:x:{}:\n", drivers::group_of(&machine.at(node)));
        machine.file("/etc/group", &groups).refuses(node, EACCES).init(100)
    }, "Start the container with `--group-add keep-groups`"),
    ("NVIDIA/OpenShell#1696", |name| {
        let status = "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\n";
        Machine::whole(name).file("/.dockerenv", "").file("/proc/self/status", status).init(304)
    }, "Allow the driver's system calls (memfd_create among them) in the seccomp filter"),
    ("truefoundry/trueforge#466", |name| Machine::whole(name).without("/sys").init(304),
        "Give the sandbox /sys"),
    ("anthropics/claude-code#64530", |name| {
        let line = "devtmpfs /dev/nvidia-uvm devtmpfs rw,nosuid,nodev";
        Machine::whole(name).mounts(line).denied(EACCES).init(100)
    }, "Give the sandbox the device itself: in bubblewrap `--dev-bind`"),
    ("RisorseArtificiali/lince#280", |name| {
        Machine::whole(name)
            .without_nodes()
            .mounts("tmpfs /dev tmpfs rw,nosuid,nodev")
            .init(100)
    }, "Give the sandbox the GPU's device nodes (in bubblewrap `--dev-bind /dev/nvidia0"),
    ("NVIDIA/nvidia-container-toolkit#48",
        |name| Machine::whole(name).file("/.dockerenv", "").denied(EPERM).init(999),
        "Restart the container"),
    ("pytorch/pytorch#49081", |name| {
        let machine = Machine::whole(name).file("/run/.containerenv", "");
        machine.without("/dev/nvidia-uvm").init(999)
    }, HOST_MODPROBE),
    ("apptainer/singularity#1441", |name| {
        let machine = Machine::whole(name).env("APPTAINER_CONTAINER", "/x.sif");
        machine.without("/dev/nvidia-uvm").init(999)
    }, HOST_MODPROBE),
    ("NVIDIA/nvidia-docker#139", |name| {
        let machine = Machine::whole(name).file("/.dockerenv", "");
        machine.without("/dev/nvidia-uvm").folder("/dev/nvidia-uvm").init(999)
    }, HOST_MODPROBE),
    ("EESSI/software-layer#231", |name| {
        let machine = Machine::whole(name).without("/usr/lib").env("APPTAINER_CONTAINER", "/x");
        machine.elf("/.singularity.d/libs/libcuda.so.1", ELF).no_library()
    }, "Add /.singularity.d/libs to LD_LIBRARY_PATH"),
    ("89luca89/distrobox#658", |name| {
        let machine = Machine::whole(name).without("/usr/lib").file("/run/.containerenv", "");
        machine.file("/run/.toolboxenv", "").no_library()
    }, "Create the box with `distrobox create --nvidia`"),
    ("charmed-kubernetes/bundle#284",
        |name| Machine::whole(name).kernel("375.39").env("container", "lxc").init(803),
        "Install the libraries of the driver 375.39 in the container, without a kernel module"),
    ("jammsen/proxmox-setup-scripts#7", |name| {
        let machine = Machine::whole(name).env("container", "lxc");
        machine.refuses("/dev/nvidia-uvm", EPERM).init(999)
    }, "Allow /dev/nvidia-uvm in the container's configuration on the host (`lxc.cgroup2."),
    ("canonical/lxd#5415", |name| {
        let machine = Machine::whole(name).without("/usr/lib");
        machine.file("/run/systemd/container", "lxc\n").no_library()
    }, "Install the libraries of the driver 580.159.04 in the container, without a kernel module"),
    ("k3s-io/k3s#4070", |name| {
        let machine = Machine::whole(name).without_nodes().without("/usr/lib");
        let machine = machine.env("KUBERNETES_SERVICE_HOST", "10.43.0.1");
        machine.env("NVIDIA_VISIBLE_DEVICES", "all").no_library()
    }, "Set `runtimeClassName: nvidia` in the pod"),
    ("google/gvisor#10605", |name| {
        let version = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n";
        let machine = Machine::bare(name).replaced("/proc/version", version).without("/sys");
        machine.file("/.dockerenv", "").no_library()
    }, "Run the sandbox with `runsc --nvproxy`"),
    ("microsoft/WSL#9962", |name| wsl(name).file("/.dockerenv", "").no_library(), DOCKER),
    ("sgerrand/alpine-pkg-glibc#199", |name| {
        let text = "Error relocating /usr/lib/libcuda.so.1: gnu_get_libc_version: symbol not \
                    found";
        Machine::whole(name).file("/.dockerenv", "").refused(text)
    }, "Build and run this program with glibc"),
    ("ShaneIsrael/fireshare#572",
        |name| Machine::whole(name).file("/.dockerenv", "").not_started(EAGAIN),
        "Raise the limit of processes (`ulimit -u`, in systemd TasksMax, in a container \
         --pids-limit)"),
    ("NVIDIA/pyxis#47", |name| {
        Machine::whole(name).env("SLURM_JOB_ID", "7").env("CUDA_VISIBLE_DEVICES", "").init(100)
    }, "Request a GPU for the job with `--gres=gpu:1`"),
];

/// Kernel modules, libraries and GPUs.
#[rustfmt::skip] // A row in few lines.
const MACHINES: &[Row] = &[
    ("NVIDIA/nvidia-container-toolkit#1679", |name| compat(name, 803),
        "Remove /usr/local/cuda/compat from LD_LIBRARY_PATH: its library, 580.159.04, does not fit \
         the kernel module 595.45.04, which /usr/lib/x86_64-linux-gnu/libcuda.so.1 fits."),
    ("NVIDIA/nvidia-docker#1515", |name| compat(name, 804),
        "Remove /usr/local/cuda/compat from LD_LIBRARY_PATH: this GPU does not support forward"),
    ("NVIDIA/nvidia-docker#584", |name| {
        let mut machine = Machine::whole(name).elf("/opt/old/libcuda.so.384.81", ELF);
        machine.library = "/opt/old/libcuda.so.384.81";
        machine.init(803)
    }, "Remove /opt/old/libcuda.so.384.81 (384.81), the library of another driver"),
    ("hpc-admin-sist/DockerMonitor#12", |name| {
        let file = "/usr/lib/x86_64-linux-gnu/libcuda.so.384.81";
        let mut machine = Machine::whole(name).elf(file, ELF);
        machine = machine.without("/usr/lib/x86_64-linux-gnu/libcuda.so.1");
        machine = machine.link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.384.81");
        machine.library = file;
        machine.init(803)
    }, "Remove /usr/lib/x86_64-linux-gnu/libcuda.so.384.81 (384.81), the library of another \
     driver, and run `sudo ldconfig`"),
    ("oddmario/NVIDIA-Ubuntu-Driver-Guide#4",
        |name| Machine::whole(name).kernel("550.90.07").init(803),
        "Reboot: the driver was updated to 580.159.04"),
    ("ollama/ollama#11593", |name| {
        let file = "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm";
        Machine::whole(name).file(file, "0\n").separate(3)
    }, "Write `options nvidia_uvm uvm_disable_hmm=1`"),
    ("zzzhouuu/truenas-nvidia-drivers#20", |name| {
        let kind = "Open Kernel Module for x86_64";
        Machine::whole(name).model("0x1bb3\n", kind, "580.159.04").init(100)
    }, "Install the proprietary kernel modules of the driver"),
    ("NixOS/nixos-hardware#1880", |name| {
        let mut machine = Machine::whole(name).without("/usr/lib");
        machine = machine.model("0x1c8d\n", "x86_64 Kernel Module", "595.71.05");
        machine.library = "/usr/lib/libcuda.so.595.71.05";
        machine.init(100)
    }, "Install the driver 580, the last for GPUs before Turing"),
    ("oddmario/NVIDIA-Ubuntu-Driver-Guide#10", |name| {
        let kind = "x86_64 Kernel Module";
        Machine::whole(name).model("0x2b85\n", kind, "580.159.04").init(100)
    }, "Install the open kernel modules of the driver"),
    ("negativo17/nvidia-driver#56", |name| {
        let dep = "updates/dkms/nvidia.ko.xz:\n";
        let machine = Machine::with_gpu(name).file("/proc/sys/kernel/osrelease", "4.17.14\n");
        let machine = machine.file("/lib/modules/4.17.12/modules.dep", dep);
        machine.file("/lib/modules/4.17.14/modules.dep", "kernel/x.ko:\n").no_library()
    }, "Build the driver's module for the running kernel 4.17.14"),
    ("devangshekhawat/Fedora-44-Post-Install-Guide#35", |name| {
        let secure =
            "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
        let machine = Machine::with_gpu(name).file("/proc/sys/kernel/osrelease", "6.8.0\n");
        let machine = machine.file("/lib/modules/6.8.0/modules.dep", "extra/nvidia.ko:\n");
        machine.elf(secure, &[6, 0, 0, 0, 1]).no_library()
    }, "Sign the driver's module and enrol the key (`sudo mokutil --import"),
    ("NVIDIA/open-gpu-kernel-modules#507", |name| {
        let text = "Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.";
        Machine::whole(name).message(text).refuses("/dev/nvidia0", EIO).init(100)
    }, "Shut the machine down and start it again"),
    ("wilicc/gpu-burn#1",
        |name| Machine::whole(name).elf(&format!("{GPU}/config"), &[0xff; 64]).init(999),
        "Shut the machine down and start it again"),
    ("NVIDIA/open-gpu-kernel-modules#862", |name| {
        let text = "This PCI I/O region assigned to your NVIDIA device is invalid:";
        Machine::whole(name).message(text).init(100)
    }, "Turn on Above 4G Decoding and Resizable BAR"),
    ("ollama/ollama#5453", |name| Machine::whole(name).without("/dev/nvidia-uvm").init(999),
        "Run `sudo nvidia-modprobe -u -c 0`, which creates the device nodes"),
    ("gbionics/jaxsim#50", |name| Machine::whole(name).init(999),
        "Run `sudo nvidia-modprobe -u -c 0`, or after a suspend `sudo rmmod nvidia_uvm`"),
    ("gpustack/gpustack#4154", |name| Machine::whole(name).init(802),
        "Run `sudo systemctl restart nvidia-fabricmanager`"),
    ("bottlerocket-os/bottlerocket#4673", |name| {
        let machine = Machine::whole(name).env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        machine.env("CUDA_MPS_PIPE_DIRECTORY", "/mps/pipe").init(805)
    }, "Start the container with the host's IPC namespace and the folder of its MPS control"),
    ("NVIDIA/nvidia-docker#1543", |name| {
        let machine = Machine::whole(name).file("/tmp/nvidia-mps/control", "");
        machine.lost(How::Hung(Duration::from_secs(60)))
    }, "Run as the user whom the MPS daemon of /tmp/nvidia-mps serves"),
    ("ollama/ollama#8980", |name| Machine::whole(name).init(801),
        "Give the virtual GPU a type and a licence that include CUDA, and turn on unified memory"),
    ("tensorflow/tensorflow#526", |name| Machine::whole(name).init(46),
        "Stop the process that uses the device exclusively"),
    ("NVIDIA/nvidia-docker#1449", |name| {
        let node = "/dev/nvhost-ctrl-gpu";
        let machine = board(name).file(node, "").file("/.dockerenv", "").refuses(node, EACCES);
        let groups = format!("video:x:{}:\n", drivers::group_of(&machine.at(node)));
        machine.file("/etc/group", &groups).init(100)
    }, "Start the container with `--group-add video`"),
    ("osrf/rocker#211", |name| board(name).file("/.dockerenv", "").no_library(),
        "Start the container with `docker run --runtime nvidia`"),
];

/// The advice that helped, and nothing that only the code suggests.
#[test]
fn public_reports() {
    for (source, machine, advice) in CONFINED.iter().chain(MACHINES) {
        let found = machine(&source.replace(['/', '#'], "-"));
        assert!(found.0.advice().starts_with(advice), "{source}, {advice:?}:\n{}", found.0);
        assert!(!found.0.usable(), "{source}:\n{}", found.0);
    }
}

/// What was not asked is not blamed, and what files show is said all the same.
#[test]
fn the_doctors_own_process_does_not_start() {
    let limit = "Raise the limit of open files (`ulimit -n 1024`), and run the doctor again: it \
                 could not start the process that asks the driver.";
    Machine::whole("no-files").not_started(EMFILE).next_and_then(limit, &[]);
    Machine::with_gpu("no-module").not_started(EMFILE).next_and_then(limit, &[MODPROBE]);
    let mut command = Command::new("/nowhere/doctor");
    let probe = child::ask(std::mem::replace(&mut command, Command::new("x")), Duration::ZERO);
    let lost = probe.lost.expect("there is no such program");
    assert!(matches!(lost.how, How::NotStarted { number: Some(2), .. }), "{lost:?}");
}

/// A filter of system calls, a limit and a preloaded library end a process in ways of their own.
#[test]
fn a_process_that_ends() {
    for (how, advice) in [
        ("signal: 31 (SIGSYS) (core dumped)", "Allow the driver's system calls in the seccomp"),
        ("signal: 9 (SIGKILL)", "Raise the memory limit"),
        ("signal: 11 (SIGSEGV)", "Reinstall the driver"),
    ] {
        let found = Machine::whole("ends").lost(How::Ended(format!("ended the process ({how})")));
        assert!(found.0.advice().starts_with(advice), "{how}:\n{}", found.0);
    }
    let machine = Machine::whole("preloaded").env("LD_PRELOAD", "/x.so");
    let found = machine.lost(How::Ended(String::from("ended the process (signal: 11 (SIGSEGV))")));
    assert!(found.0.advice().starts_with("Unset LD_PRELOAD"), "{}", found.0);
    // A file of the driver's name that is none.
    let machine = Machine::whole("foreign").file("/opt/x/libcuda.so.1", "text");
    let machine = machine.env("LD_LIBRARY_PATH", "/opt/x");
    let lost = Lost {
        step: String::from("loading"),
        how: How::Ended(String::from("ended the process (signal: 11 (SIGSEGV))")),
        settings: None,
    };
    Found::new(&machine.system, &Probe { lost: Some(lost), ..Probe::empty() }).next(
        "Remove /opt/x from LD_LIBRARY_PATH: the first libcuda.so.1 there is no CUDA driver.",
    );
    // What was seen comes before what usually crashes.
    let found = Machine::whole("mixed").kernel("570.86.15").lost(How::Ended(String::from("ended")));
    assert!(found.0.advice().starts_with("Reboot: the driver was updated"), "{}", found.0);
}

/// Where the driver cannot start its threads, the limit is named.
#[test]
fn limits_of_threads() {
    let raise = "Raise the limit of processes and threads";
    let machine = Machine::whole("pids").file("/sys/fs/cgroup/pids.max", "64\n");
    let found = machine.file("/sys/fs/cgroup/pids.current", "60\n").init(304);
    assert!(found.0.advice().starts_with(raise), "{}", found.0);
    let line = "Max processes  1  1  processes\n";
    let found = Machine::whole("processes").replaced("/proc/self/limits", line).init(304);
    assert!(found.0.advice().starts_with(raise), "{}", found.0);
}

/// No kernel has the module.
#[test]
fn no_module_is_installed() {
    let machine = Machine::with_gpu("uninstalled").file("/proc/sys/kernel/osrelease", "6.8.0\n");
    let machine = machine.file("/lib/modules/6.8.0/modules.dep", "kernel/x.ko:\n");
    let found = machine.no_library();
    assert!(found.0.advice().starts_with("Install NVIDIA's driver (on Ubuntu"), "{}", found.0);
    // Of other kernels only one that has it is of use.
    let machine = Machine::with_gpu("others").file("/proc/sys/kernel/osrelease", "6.8.0\n");
    let machine = machine.file("/lib/modules/6.7.0/modules.dep", "kernel/x.ko:\n");
    let machine = machine.file("/lib/modules/6.8.0/modules.dep", "kernel/x.ko:\n");
    let found = machine.no_library();
    assert!(found.0.advice().starts_with("Install NVIDIA's driver (on Ubuntu"), "{}", found.0);
    let machine = Machine::with_gpu("third").file("/proc/sys/kernel/osrelease", "6.8.0\n");
    let machine = machine.file("/lib/modules/6.7.0/modules.dep", "kernel/x.ko:\n");
    let machine = machine.file("/lib/modules/6.8.0/modules.dep", "kernel/x.ko:\n");
    let machine = machine.file("/lib/modules/6.9.0/modules.dep", "extra/nvidia.ko:\n");
    let found = machine.no_library();
    assert!(found.0.advice().contains("start the kernel 6.9.0, which has it"), "{}", found.0);
}

/// A virtual machine whose kernel has no PCI bus.
#[test]
fn no_bus() {
    let machine = Machine::bare("no-bus").without("/sys/bus/pci");
    let found = machine.no_library();
    assert!(found.0.advice().ends_with("as in Firecracker."), "{}", found.0);
}

/// The only library is for another processor.
#[test]
fn an_emulated_program() {
    let mut arm = ELF.to_vec();
    arm[18] = 0xb7;
    let found = Machine::whole("emulated").without(LIBRARY).elf(LIBRARY, &arm).no_library();
    assert!(found.0.advice().starts_with("Build this program for aarch64"), "{}", found.0);
}

/// Texts of the loader about a library that is there.
#[test]
fn a_library_that_cannot_be_loaded() {
    for (text, advice) in [
        ("this program is statically linked, so it cannot", "Link this program dynamically"),
        ("/lib/libc.so.6: version `GLIBC_2.34' not found", "Use a newer distribution"),
        (
            "x: failed to map segment from shared object: Operation not permitted",
            "Mount the folder",
        ),
        ("x: failed to map segment from shared object: Cannot allocate memory", "Run `ulimit -v"),
        ("x: cannot open shared object file: Permission denied", "Allow this user"),
        (
            "libnvidia-x.so.1: cannot open shared object file: No such file or directory",
            "Install libnvidia-x.so.1, on which the driver library depends",
        ),
        ("x: cannot enable executable stack as shared object requires", "Allow this process"),
    ] {
        let found = Machine::whole("loader").without("/usr/lib").refused(text);
        assert!(found.0.advice().starts_with(advice), "{text}:\n{}", found.0);
    }
}

/// The driver has a device without the variable, whatever the variable's entries look like.
#[test]
fn a_variable_that_hides_every_gpu() {
    for value in ["GPU-deadbeef", "MIG-0929581a-2be6-5dec-bf34-0954c6c529a6", "0"] {
        let machine = Machine::whole("hides").env("CUDA_VISIBLE_DEVICES", value);
        let soft = SoftDriver::builder().init_result(CUresult(100)).build();
        let driver = soft.try_driver(&LoadOptions::new());
        let probe = Probe { unhidden: Some(1), ..Probe::ask(&machine.system, driver, false) };
        Found::new(&machine.system, &probe)
            .finds(Visible, Wrong, "hides every GPU")
            .next_and_then(HIDDEN, &[]);
    }
}

/// Without the variable there is no device either, so it is not the first obstacle.
#[test]
fn a_variable_beside_another_obstacle() {
    let machine = Machine::whole("beside").env("CUDA_VISIBLE_DEVICES", "-1").denied(EPERM);
    let machine = machine.file("/.dockerenv", "");
    let soft = SoftDriver::builder().init_result(CUresult(100)).build();
    let driver = soft.try_driver(&LoadOptions::new());
    let probe = Probe { unhidden: Some(0), ..Probe::ask(&machine.system, driver, false) };
    let found = Found::new(&machine.system, &probe);
    assert!(found.0.advice().starts_with("Restart the container"), "{}", found.0);
    assert_eq!(found.0.further_advice().collect::<Vec<_>>(), [HIDDEN], "{}", found.0);
}

/// The mode allows what something else refuses.
#[test]
fn security_modules() {
    for (label, advice) in [
        ("docker-default (enforce)\n", "Allow `/dev/nvidia* rw,` in the AppArmor profile docker"),
        ("unconfined\n", "Allow /dev/nvidia-uvm in the sandbox of this process (Landlock"),
    ] {
        let machine = Machine::whole("label").file("/proc/self/attr/current", label);
        let found = machine.denied(EACCES).init(100);
        assert!(found.0.advice().starts_with(advice), "{label}:\n{}", found.0);
    }
    let machine = Machine::whole("selinux").file("/sys/fs/selinux/enforce", "1");
    let found = machine.denied(EACCES).init(100);
    assert!(found.0.advice().contains("in the SELinux policy"), "{}", found.0);
    // A program that a snap started outside of itself.
    let machine = Machine::whole("leaked").env("SNAP", "/snap/x/1").env("SNAP_NAME", "x");
    let machine = machine.file("/proc/self/attr/current", "unconfined\n");
    machine.init(100).finds(Container, Good, "none detected");
}
