//! Programs, and surroundings, that are unkind to the library.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Folder;
use super::compiled::{checks_compiled, compiled, run_compiled};

use cuda_test_harness::{say_not_run, shared_library};

/// What programs in C begin with.
const HEAD: &str = r#"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL(name, types, values) ((int(*) types)dlsym(library, name))values
#define GOOD(name, types, values) \
    if (CALL(name, types, values)) { fprintf(stderr, "%s failed\n", name); exit(90); }

static void *library, *context, *stream;

static void begin(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        exit(91);
    GOOD("cuInit", (unsigned), (0));
    GOOD("cuDevicePrimaryCtxRetain", (void **, int), (&context, 0));
    GOOD("cuCtxSetCurrent", (void *), (context));
    GOOD("cuStreamCreate", (void **, unsigned), (&stream, 1));
}
"#;

/// A folder with a program of this name. `None` without a compiler.
pub(super) fn program(name: &str, source: &str) -> Option<Folder> {
    let folder = Folder::new(name);
    compiled(&folder, name, &format!("{HEAD}{source}"), &["-rdynamic"]).then_some(folder)
}

/// The command does not take a stand-in for the driver: its own, that of a command around it, or one
/// that the loader gives for a name.
#[test]
fn a_stand_in_is_no_driver() {
    let source = "int main(void) { begin(); return 0; }";
    let Some(folder) = program("program", source) else { return };
    let own = PathBuf::from(env!("CARGO_BIN_EXE_cuda-order-check"));
    let copy = folder.0.join("other-check");
    fs::copy(&own, &copy).expect("a copy");
    let real = folder.0.join("driver");
    for path in [&real, &folder.0.join("elsewhere")] {
        fs::create_dir(path).expect("a new folder");
    }
    symlink(shared_library(), real.join("libcuda.so.1")).expect("a link");
    // In the current folder, where no empty part finds it.
    symlink(&own, folder.0.join("libcuda.so.1")).expect("a link");
    let run_in = |place: &Path, path: &str, words: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "60"]).arg(&own).arg("run").args(words);
        command.current_dir(place).env("XDG_CACHE_HOME", folder.0.join("cache"));
        let output = command.env("LD_LIBRARY_PATH", path).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let run = |path: &str, words: &[&str]| run_in(&folder.0, path, words);
    let line = "cuda-order-check: the driver's library is ";
    let good = format!("{line}{}/driver/libcuda.so.1\n", folder.0.display());
    let counts = "order check: 0 findings in 0 kernels";
    for (path, words, times) in [
        // One command under another, also another file of it.
        ("driver", &["./program"][..], 1),
        ("driver", &["--", own.to_str().expect("it is"), "run", "./program"], 2),
        ("driver", &["--", "./other-check", "run", "./program"], 2),
        (":driver", &["./program"], 1),
        // The program has another current folder.
        ("driver", &["--", "sh", "-c", "cd elsewhere && ../program"], 1),
        ("driver", &["--", "env", "LD_LIBRARY_PATH=cache", "./program"], 1),
    ] {
        let (code, errors) = run(path, words);
        assert_eq!((code, errors.matches(&good).count()), (Some(0), times), "{words:?}: {errors}");
        assert_eq!(errors.matches(counts).count(), 1, "{words:?}: {errors}");
    }
    // A driver in the current folder, too, is not the one of an empty part.
    let elsewhere = folder.0.join("elsewhere");
    symlink(shared_library(), elsewhere.join("libcuda.so.1")).expect("a link");
    let driver = real.display();
    for path in [format!(":{driver}"), format!("::{driver}:"), format!("{driver}:")] {
        let (code, errors) = run_in(&elsewhere, &path, &["../program"]);
        assert_eq!((code, errors.matches(&good).count()), (Some(0), 1), "{path}: {errors}");
        assert_eq!(errors.matches(counts).count(), 1, "{path}: {errors}");
    }
    for path in ["libcuda.so.1", "./other-check"] {
        let (code, errors) = run("driver", &["--library", path, "./program"]);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(" is no driver, but the order checker"), "{errors}");
    }
    // Nothing asks the program's own library, which the loader would give for that name.
    let mut plain = Command::new("timeout");
    plain.args(["-s", "KILL", "60", "./program"]).current_dir(&folder.0);
    plain.env("LD_PRELOAD", &own).env("LD_LIBRARY_PATH", ":");
    let errors = plain.env("CUDA_ORDER_CHECK", "library=libcuda.so.1").output().expect("it starts");
    let errors = String::from_utf8_lossy(&errors.stderr);
    assert!(errors.contains(" is no driver, but the order checker"), "{errors}");
}

/// A handler of a signal ends the process, and has interrupted the allocator.
#[test]
fn an_end_in_a_handler_says_if_there_is_no_summary() {
    let Some(folder) = program("handler", HANDLER) else { return };
    for (how, summaries, lines) in
        [("free", 1, 0), ("locked", 0, 1), ("inside", 0, 1), ("default", 1, 0)]
    {
        use std::os::unix::process::ExitStatusExt;
        let is_soon = |_| {
            let begin = std::time::Instant::now();
            let (done, errors) = run_compiled(&folder, &[], &["./handler", how]);
            let took = begin.elapsed().as_secs();
            // The default is the checker's own, which lets the thread go on and has the process end.
            let ended =
                if how == "default" { (None, Some(libc::SIGTERM)) } else { (Some(7), None) };
            assert_eq!((done.status.code(), done.status.signal()), ended, "{how}: {errors}");
            let found = ["order check: 0 findings in", "the summary needs, so there is none"]
                .map(|text| errors.matches(text).count());
            assert_eq!(found, [summaries, lines], "{how}: {errors}");
            took < 8
        };
        // One that works is waited for ten seconds, one that sleeps for none; a busy machine may take
        // longer once.
        assert!((0..5).any(is_soon), "{how}");
    }
    // Nobody reads standard error any more: the status is the program's own all the same.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = checks_compiled(&folder, &[], &["./handler", "locked"]);
    let status = command.stderr(writer).status().expect("the command is there");
    assert_eq!(status.code(), Some(7), "{status:?}");
}

const HANDLER: &str = r#"
extern void *__libc_malloc(size_t);
static atomic_int locked, inside;
static int raised = SIGUSR1;

/* As an allocator whose lock the interrupted thread has, or that is interrupted. */
void *malloc(size_t bytes)
{
    if (inside) {
        inside = 0;
        raise(raised);
    }
    while (locked)
        pause();
    return __libc_malloc(bytes);
}

static void leave(int number)
{
    _exit(7);
}

int main(int count, char **words)
{
    begin();
    signal(SIGUSR1, leave);
    locked = !strcmp(words[1], "locked");
    if (!strcmp(words[1], "default")) {
        raised = SIGTERM;
        signal(raised, SIG_DFL);
    }
    inside = !strcmp(words[1], "inside") || raised == SIGTERM;
    if (inside)
        /* The checker allocates, with its own lock. */
        for (;;)
            GOOD("cuStreamSynchronize", (void *), (stream));
    raise(SIGUSR1);
    return 1;
}
"#;

/// Calls of the C library that the system refuses, while pages are protected.
#[test]
fn bad_lists_are_refused_as_without_the_checker() {
    let Some(folder) = program("lists", LISTS) else { return };
    let (done, errors) = run_compiled(&folder, &[], &["./lists"]);
    assert_eq!(done.status.code(), Some(0), "{:?} {errors}", done.status);
    assert!(errors.contains("order check: 0 findings in"), "{errors}");
    assert!(
        errors.contains("host: 1 copies and kernels with memory of the host were watched"),
        "{errors}"
    );
}

const LISTS: &str = r#"
static atomic_int go;

static void hold(void *nothing)
{
    while (!go)
        usleep(1000);
}

/* A call says EFAULT or EINVAL, or that it has done nothing. */
#define REFUSED(call, code) do { \
    errno = 0; \
    long result_ = (call); \
    if (result_ != -1 || errno != code) { \
        fprintf(stderr, "%s: %ld, %s\n", #call, result_, strerror(errno)); \
        return 1; \
    } } while (0)

int main(void)
{
    int files[2], sockets[2], none = open("/dev/zero", O_RDWR);
    unsigned long long memory;
    void *pinned;
    begin();
    GOOD("cuMemAllocHost_v2", (void **, size_t), (&pinned, 8192));
    GOOD("cuMemAlloc_v2", (void *, size_t), (&memory, 8192));
    GOOD("cuLaunchHostFunc", (void *, void (*)(void *), void *), (stream, hold, 0));
    GOOD("cuMemcpyHtoDAsync_v2", (unsigned long long, void *, size_t, void *),
         (memory, pinned, 4096, stream));
    if (pipe(files) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) || none < 0)
        return 2;
    if (write(files[1], "some bytes", 10) != 10 || write(sockets[0], "some bytes", 10) != 10)
        return 3;
    void *bad[] = { 0, (void *)8, (void *)-16L, (void *)(1L << 62) };
    for (int at = 0; at < 4; at++) {
        struct iovec *list = bad[at], good = { bad[at], 4 };
        struct msghdr *message = bad[at], of_list = { .msg_iov = bad[at], .msg_iovlen = 2 };
        struct mmsghdr *messages = bad[at], one = { .msg_hdr = of_list };
        REFUSED(read(files[0], bad[at], 4), EFAULT);
        REFUSED(pread(none, bad[at], 4, 0), EFAULT);
        REFUSED(write(files[1], bad[at], 4), EFAULT);
        REFUSED(readv(files[0], list, 2), EFAULT);
        REFUSED(writev(files[1], list, 2), EFAULT);
        REFUSED(preadv(none, list, 2, 0), EFAULT);
        REFUSED(preadv2(none, list, 2, 0, 0), EFAULT);
        REFUSED(pwritev(none, list, 2, 0), EFAULT);
        REFUSED(readv(files[0], &good, 1), EFAULT);
        REFUSED(recv(sockets[1], bad[at], 4, MSG_PEEK), EFAULT);
        REFUSED(send(sockets[0], bad[at], 4, 0), EFAULT);
        REFUSED(recvmsg(sockets[1], message, MSG_PEEK), EFAULT);
        REFUSED(recvmsg(sockets[1], &of_list, MSG_PEEK), EFAULT);
        REFUSED(sendmsg(sockets[0], message, 0), EFAULT);
        REFUSED(sendmsg(sockets[0], &of_list, 0), EFAULT);
        REFUSED(recvmmsg(sockets[1], messages, 2, MSG_PEEK, 0), EFAULT);
        REFUSED(sendmmsg(sockets[0], messages, 2, 0), EFAULT);
        REFUSED(sendmmsg(sockets[0], &one, 1, 0), EFAULT);
        REFUSED(readv(files[0], list, -at - 1), EINVAL);
        REFUSED(writev(files[1], list, 1 << 30), EINVAL);
    }
    REFUSED(munmap((char *)pinned + 1, 4096), EINVAL);
    REFUSED(munmap(pinned, 0), EINVAL);
    REFUSED(munmap(pinned, -1), EINVAL);
    go = 1;
    GOOD("cuStreamSynchronize", (void *), (stream));
    return 0;
}
"#;

/// Who starts a program with the rights of another user does not choose what it loads and writes.
#[test]
fn programs_with_other_rights_heed_no_variables() {
    // SAFETY: it has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return say_not_run("it takes the rights to give a file away");
    }
    let folder = Folder::new("rights");
    symlink(env!("CARGO_BIN_EXE_cuda-order-check"), folder.0.join("libcuda.so.1")).expect("a link");
    let library = format!("-Wl,-rpath,{}", folder.0.display());
    let source =
        "unsigned cuCtxSynchronize(void); int main(void) { cuCtxSynchronize(); return 0; }";
    if !compiled(&folder, "rights", source, &["-L.", "-l:libcuda.so.1", &library]) {
        return;
    }
    let path = folder.0.join("rights");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).expect("its folder");
    for (others, written) in [(false, true), (true, false)] {
        if others {
            chown(&path, Some(65534), None).expect("it is root's");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).expect("its file");
        }
        let log = folder.0.join(format!("log-{others}"));
        let settings = format!("library={},log={}", shared_library().display(), log.display());
        let trace = folder.0.join(format!("trace-{others}"));
        let settings = format!("{settings},trace={}", trace.display());
        let output =
            Command::new(&path).env("CUDA_ORDER_CHECK", settings).output().expect("it starts");
        let found = [log.exists(), trace.exists()];
        assert_eq!(found, [written; 2], "{others}: {output:?}");
    }
}

/// Another thread forks while the first call starts the checker.
#[test]
fn a_fork_during_the_start_has_all_of_it() {
    let Some(folder) = program("fork", FORK) else { return };
    // The start begins before the fork, or while a handler of the program holds the fork up.
    for order in ["start", "fork"] {
        let mut command = Command::new("timeout");
        let own = env!("CARGO_BIN_EXE_cuda-order-check");
        command.args(["-s", "KILL", "120", own, "run", "--library"]).arg(shared_library());
        command.args(["./fork", order]).current_dir(&folder.0);
        command.env("CUDA_ORDER_CHECK", "trace=calls");
        let done = command.env("XDG_CACHE_HOME", folder.0.join("cache")).output();
        let done = done.expect("it starts");
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(0), "{order}: {:?}: {errors}", done.status);
        assert_eq!(errors.matches("order check: 0 findings in").count(), 2, "{order}: {errors}");
    }
}

const FORK: &str = r#"
static atomic_int begins, opens, forks, forked;
static int own;

static int sleeps(void)
{
    char path[64], text[128] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", own);
    int file = open(path, O_RDONLY), count = read(file, text, sizeof text - 1);
    close(file);
    return count > 0 && strrchr(text, ')')[2] == 'S';
}

/* The start opens the file of the trace: meanwhile the other thread forks, or waits. */
int open64(const char *path, int flags, ...)
{
    if (!strcmp(path, "calls")) {
        opens = 1;
        while (!forks)
            usleep(1000);
        for (int times = 0; !forked && times < 100; times = sleeps() ? times + 1 : 0)
            usleep(1000);
    }
    return openat(AT_FDCWD, path, flags, 0600);
}

static void prepare(void)
{
    begins = 1;
    while (!opens)
        usleep(1000);
    forks = 1;
}

static void *first(void *nothing)
{
    while (!begins)
        usleep(1000);
    dlopen("libcuda.so.1", RTLD_NOW);
    /* The start of the driver is its own affair. */
    while (!forked)
        usleep(1000);
    begin();
    return 0;
}

int main(int count, char **words)
{
    pthread_t thread;
    int status = 0;
    own = getpid();
    pthread_create(&thread, 0, first, 0);
    if (strcmp(words[1], "fork"))
        prepare();
    else
        pthread_atfork(prepare, 0, 0);
    pid_t child = fork();
    forked = 1;
    if (child == 0) {
        alarm(60);
        begin();
        exit(0);
    }
    pthread_join(thread, 0);
    waitpid(child, &status, 0);
    return status;
}
"#;

/// The driver crashes in a call with an object that was destroyed: the report comes before.
#[test]
fn uses_after_destroy_are_reported_before_the_call() {
    let Some(folder) = program("destroyed", DESTROYED) else { return };
    for (at, name) in [
        "cuEventQuery",
        "cuEventSynchronize",
        "cuEventRecord",
        "cuEventElapsedTime",
        "cuEventDestroy_v2",
        "cuStreamWaitEvent",
        "cuEventRecord",
        "cuStreamQuery",
        "cuStreamSynchronize",
        "cuStreamDestroy_v2",
        "cuStreamWaitEvent",
        "cuMemsetD8Async",
        "cuMemcpyDtoDAsync_v2",
        "cuLaunchHostFunc",
        "cuMemFreeAsync",
        "cuStreamBeginCapture_v2",
    ]
    .into_iter()
    .enumerate()
    {
        let (done, errors) = run_compiled(&folder, &[], &["./destroyed", &at.to_string()]);
        assert_eq!(done.status.code(), None, "{name}: the software driver aborts: {errors}");
        let [first, second] = ["cuda-order-check: error: use after destroy", "this is undefined"]
            .map(|text| errors.find(text).unwrap_or_else(|| panic!("{name}: {text}: {errors}")));
        assert!(first < second, "{name}: {errors}");
        let line = format!("\n  uses     {name} on thread 1, call #");
        assert!(errors.contains(&line), "{name}: {errors}");
        assert!(errors.contains("order check: 1 finding in"), "{name}: {errors}");
    }
}

const DESTROYED: &str = r#"
static void nothing(void *none)
{
}

int main(int count, char **words)
{
    void *event, *other, *gone;
    unsigned long long memory;
    float time;
    begin();
    GOOD("cuEventCreate", (void **, unsigned), (&event, 0));
    GOOD("cuEventCreate", (void **, unsigned), (&other, 0));
    GOOD("cuStreamCreate", (void **, unsigned), (&gone, 1));
    GOOD("cuMemAlloc_v2", (void *, size_t), (&memory, 64));
    GOOD("cuEventRecord", (void *, void *), (event, stream));
    GOOD("cuEventRecord", (void *, void *), (other, stream));
    GOOD("cuStreamSynchronize", (void *), (stream));
    GOOD("cuEventDestroy_v2", (void *), (event));
    GOOD("cuStreamDestroy_v2", (void *), (gone));
    typedef unsigned long long address;
    switch (atoi(words[1])) {
    case 0: CALL("cuEventQuery", (void *), (event)); break;
    case 1: CALL("cuEventSynchronize", (void *), (event)); break;
    case 2: CALL("cuEventRecord", (void *, void *), (event, stream)); break;
    case 3: CALL("cuEventElapsedTime", (float *, void *, void *), (&time, other, event)); break;
    case 4: CALL("cuEventDestroy_v2", (void *), (event)); break;
    case 5: CALL("cuStreamWaitEvent", (void *, void *, unsigned), (stream, event, 0)); break;
    case 6: CALL("cuEventRecord", (void *, void *), (other, gone)); break;
    case 7: CALL("cuStreamQuery", (void *), (gone)); break;
    case 8: CALL("cuStreamSynchronize", (void *), (gone)); break;
    case 9: CALL("cuStreamDestroy_v2", (void *), (gone)); break;
    case 10: CALL("cuStreamWaitEvent", (void *, void *, unsigned), (gone, other, 0)); break;
    case 11: CALL("cuMemsetD8Async", (address, char, size_t, void *), (memory, 0, 64, gone)); break;
    case 12:
        CALL("cuMemcpyDtoDAsync_v2", (address, address, size_t, void *),
             (memory, memory + 32, 32, gone));
        break;
    case 13:
        CALL("cuLaunchHostFunc", (void *, void (*)(void *), void *), (gone, nothing, 0));
        break;
    case 14: CALL("cuMemFreeAsync", (address, void *), (memory, gone)); break;
    case 15: CALL("cuStreamBeginCapture_v2", (void *, int), (gone, 0)); break;
    }
    return 0;
}
"#;

/// The stack of the interpreter is that of the load itself, in a program that gives the interpreter's
/// functions.
#[test]
fn a_load_in_pinned_memory_has_the_stack_of_python() {
    let Some(folder) = program("python", PYTHON) else { return };
    let (done, errors) = run_compiled(&folder, &[], &["./python"]);
    assert!(done.status.success(), "{:?}: {errors}", done.status);
    assert!(errors.contains("order check: 1 finding in"), "{errors}");
    assert!(errors.contains("train.py:7 (step) reads what train.py:5 (step) writes"), "{errors}");
}

const PYTHON: &str = r#"
static int state, line;

void *PyGILState_GetThisThreadState(void)
{
    return &state;
}

void _Py_DumpTraceback(int file, void *own)
{
    if (own == &state)
        dprintf(file, "  File \"train.py\", line %d in step\n", line);
}

int main(void)
{
    typedef unsigned long long address;
    enum { BYTES = 65536 };
    address device;
    volatile char *pinned;
    begin();
    GOOD("cuMemAlloc_v2", (address *, size_t), (&device, BYTES));
    GOOD("cuMemHostAlloc", (volatile char **, size_t, unsigned), (&pinned, BYTES, 0));
    line = 5;
    GOOD("cuMemcpyDtoHAsync_v2", (volatile char *, address, size_t, void *),
         (pinned, device, BYTES, stream));
    line = 7;
    (void)pinned[5];
    line = 9;
    GOOD("cuStreamSynchronize", (void *), (stream));
    return 0;
}
"#;
