//! Programs in C.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::Folder;

use cuda_test_harness::{say_not_run, shared_library};

#[test]
fn a_program_in_c_declares_what_its_kernels_do() {
    let folder = Folder::new("header");
    let [source, program] = ["program.c", "program"].map(|name| folder.0.join(name));
    let [early_source, early] = ["early.c", "libearly.so"].map(|name| folder.0.join(name));
    fs::write(&source, PROGRAM).expect("a new file");
    fs::write(&early_source, EARLY).expect("a new file");
    let compile = |output: &Path, source: &Path, more: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I"]);
        command.args([env!("CARGO_MANIFEST_DIR").as_ref(), "-o".as_ref(), output.as_os_str()]);
        command.arg(source).args(more).arg("-ldl").current_dir(&folder.0).status()
    };
    let Ok(compiled) = compile(&early, &early_source, &["-shared", "-fPIC"]) else {
        return say_not_run("there is no C compiler");
    };
    assert!(compiled.success());
    let linked = ["-Wl,--no-as-needed", "-L.", "-learly", "-Wl,-rpath,$ORIGIN"];
    assert!(compile(&program, &source, &linked).expect("as before").success());
    let run = |options: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
        command.arg("run").args(options.split_whitespace()).arg("--library").arg(shared_library());
        command.env("XDG_CACHE_HOME", folder.0.join("cache")).arg("--").arg(&program);
        let output = command.output().expect("the command is there");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let errors = run("");
    for part in [
        "  writes   cuda_order_check_writes in stream `work` (stream), call #",
        "  reads    cuda_order_check_host_reads on thread 1, call #",
        "           in region step\n",
        "64 bytes, bytes 0 to 63 of the 4 KiB that main allocated\n",
        "order check: 2 findings in",
    ] {
        assert!(errors.contains(part), "{part}:\n{errors}");
    }
    // The host's reads are of a class of their own.
    assert!(run("--class -host").contains("order check: 1 finding in"), "{errors}");
    // Without the checker the functions do nothing.
    std::os::unix::fs::symlink(shared_library(), folder.0.join("libcuda.so.1")).expect("a link");
    let plain = Command::new(&program).env("LD_LIBRARY_PATH", &folder.0).output();
    let plain = plain.expect("it runs");
    assert!(plain.status.success() && plain.stderr.is_empty(), "{plain:?}");
}

/// Compiles a program or a library in C. `false` if there is no compiler.
pub(super) fn compiled(folder: &Folder, name: &str, source: &str, more: &[&str]) -> bool {
    let file = format!("{name}.c");
    fs::write(folder.0.join(&file), source).expect("a new file");
    let mut command = Command::new("cc");
    command.args(["-Wall", "-Werror", "-D_GNU_SOURCE", "-o", name, &file]).args(more);
    let Ok(status) = command.args(["-ldl", "-lpthread"]).current_dir(&folder.0).status() else {
        say_not_run("there is no C compiler");
        return false;
    };
    assert!(status.success(), "{name}");
    true
}

/// Runs a program of the folder, with these options of the command, until it ends or hangs.
pub(super) fn run_compiled(
    folder: &Folder,
    options: &[&str],
    program: &[&str],
) -> (Output, String) {
    let mut command = checks_compiled(folder, options, program);
    let output = command.output().expect("the command is there");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, errors)
}

/// What runs a program of the folder so.
pub(super) fn checks_compiled(folder: &Folder, options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "30", env!("CARGO_BIN_EXE_cuda-order-check"), "run", "--library"]);
    command.arg(shared_library()).args(options).arg("--").args(program);
    command.current_dir(&folder.0).env("XDG_CACHE_HOME", folder.0.join("cache"));
    command
}

/// A program that nobody changed, and no GPU: what its kernel writes is known from its image.
#[test]
fn a_program_with_a_kernel_is_checked_without_a_gpu() {
    const IMAGE: &str = include_str!("../../../../soft-driver/tests/calls/images.ptx");
    let folder = Folder::new("image");
    std::os::unix::fs::symlink(shared_library(), folder.0.join("libcuda.so.1")).expect("a link");
    fs::write(folder.0.join("images.ptx"), IMAGE).expect("a new file");
    if !compiled(&folder, "kernel", KERNEL, &["-L.", "-l:libcuda.so.1"]) {
        return;
    }
    for (role, found) in [("planted", "1 finding in"), ("mended", "0 findings in")] {
        let (done, errors) = run_compiled(&folder, &[], &["./kernel", role]);
        assert!(done.status.success(), "{:?}: {errors}", done.status);
        assert!(errors.contains(&format!("order check: {found}")), "{role}: {errors}");
        let is_planted = role == "planted";
        assert_eq!(errors.contains("  writes   kernel copy in stream"), is_planted, "{errors}");
        // The checker that is built into the software driver finds the same.
        let mut command = Command::new(folder.0.join("kernel"));
        command.arg(role).current_dir(&folder.0).env("LD_LIBRARY_PATH", &folder.0);
        let done = command.env("CUDA_SOFT_DRIVER", "order=report").output().expect("it runs");
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{:?}: {errors}", done.status);
        assert_eq!(errors.contains("writes   cuLaunchKernel in stream"), is_planted, "{errors}");
        let count = errors.matches("error: missing order: ").count();
        assert_eq!(count, usize::from(is_planted), "{errors}");
        let not_run = "kernels of images did not run and changed no memory: \"copy\" 1 time\n";
        assert!(errors.contains(not_run), "{errors}");
    }
}

const KERNEL: &str = r#"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
unsigned cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
unsigned cuModuleLoad(void **, const char *), cuModuleGetFunction(void **, void *, const char *);
unsigned cuMemAlloc_v2(address *, size_t), cuMemAllocHost_v2(void **, size_t);
unsigned cuStreamCreate(void **, unsigned), cuStreamSynchronize(void *);
unsigned cuEventCreate(void **, unsigned), cuEventRecord(void *, void *);
unsigned cuStreamWaitEvent(void *, void *, unsigned);
unsigned cuMemcpyDtoHAsync_v2(void *, address, size_t, void *);
unsigned cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, void *, void **, void **);

#define GOOD(call) do { if (call) exit(91); } while (0)

int main(int count, char **words)
{
    void *context, *module, *copy, *host, *one, *two, *event;
    address to, from;
    unsigned n = 512;
    void *parameters[] = {&to, &from, &n};
    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cuCtxSetCurrent(context));
    GOOD(cuModuleLoad(&module, "images.ptx"));
    GOOD(cuModuleGetFunction(&copy, module, "copy"));
    GOOD(cuMemAlloc_v2(&to, 2048));
    GOOD(cuMemAlloc_v2(&from, 2048));
    GOOD(cuMemAllocHost_v2(&host, 2048));
    GOOD(cuStreamCreate(&one, 1));
    GOOD(cuStreamCreate(&two, 1));
    GOOD(cuEventCreate(&event, 2));
    GOOD(cuLaunchKernel(copy, 4, 1, 1, 128, 1, 1, 0, one, parameters, 0));
    if (count > 1 && !strcmp(words[1], "mended")) {
        GOOD(cuEventRecord(event, one));
        GOOD(cuStreamWaitEvent(two, event, 0));
    }
    GOOD(cuMemcpyDtoHAsync_v2(host, to, 2048, two));
    GOOD(cuStreamSynchronize(one));
    GOOD(cuStreamSynchronize(two));
    return 0;
}
"#;

/// The threads of a linked program make the first call at once.
#[test]
fn first_calls_of_several_threads_all_reach_the_driver() {
    let folder = Folder::new("first-calls");
    std::os::unix::fs::symlink(shared_library(), folder.0.join("libcuda.so.1")).expect("a link");
    if !compiled(&folder, "first", FIRST_CALLS, &["-L.", "-l:libcuda.so.1"]) {
        return;
    }
    for _ in 0..5 {
        let (done, errors) = run_compiled(&folder, &[], &["./first"]);
        assert!(done.status.success(), "{:?}: {errors}", done.status);
    }
}

const FIRST_CALLS: &str = r#"
#include <pthread.h>

unsigned cuInit(unsigned);
static pthread_barrier_t all;

static void *call(void *code)
{
    pthread_barrier_wait(&all);
    *(unsigned *)code = cuInit(0);
    return 0;
}

int main(void)
{
    pthread_t threads[8];
    unsigned codes[8];
    pthread_barrier_init(&all, 0, 8);
    for (int at = 0; at < 8; at++)
        pthread_create(&threads[at], 0, call, &codes[at]);
    for (int at = 0; at < 8; at++)
        pthread_join(threads[at], 0);
    for (int at = 0; at < 8; at++)
        if (codes[at])
            return 1;
    return 0;
}
"#;

/// A thread opens the driver while the constructor of a library does, which has the loader's lock.
#[test]
fn a_constructor_opens_the_driver_at_the_same_time() {
    let folder = Folder::new("constructor");
    // The loader knows the stand-in by the driver's name: the driver behind it needs another one.
    let mut library = fs::read(shared_library()).expect("the software driver's library");
    let (name, other) = (b"\0libcuda.so.1\0", b"\0libreal.so.1\0");
    let places = library.windows(name.len()).enumerate();
    let places: Vec<_> = places.filter(|(_, text)| text == name).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        library[at..at + other.len()].copy_from_slice(other);
    }
    fs::write(folder.0.join("libreal.so.1"), library).expect("a new file");
    let slow = ["-shared", "-fPIC", "-Wl,--no-as-needed,-rpath,$ORIGIN", "-L.", "-l:libreal.so.1"];
    if !compiled(&folder, "libslow.so", SLOW, &slow) {
        return;
    }
    // And one that leads back to the stand-in: the start fails, and says so.
    let library = shared_library();
    let library = library.to_str().expect("it is text");
    compiled(&folder, "libback.so", SLOW, &["-shared", "-fPIC", "-Wl,--no-as-needed", library]);
    compiled(&folder, "plugin.so", EARLY, &["-shared", "-fPIC"]);
    compiled(&folder, "both", BOTH, &[]);
    for _ in 0..5 {
        let (done, errors) = run_compiled(&folder, &["--library", "libslow.so"], &["./both"]);
        assert!(done.status.success(), "{:?}: {errors}", done.status);
        assert!(!errors.contains("cannot be opened"), "{errors}");
        let (done, errors) = run_compiled(&folder, &["--library", "libback.so"], &["./both"]);
        assert!(done.status.success(), "{:?}: {errors}", done.status);
        assert!(errors.contains("libback.so cannot be opened"), "{errors}");
    }
}

/// The driver, which takes a while to open.
const SLOW: &str = r#"
#include <unistd.h>

__attribute__((constructor)) static void slow(void)
{
    usleep(200000);
}
"#;

const BOTH: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static void *plugin(void *nothing)
{
    usleep(100000);
    return dlopen("./plugin.so", RTLD_NOW);
}

int main(void)
{
    pthread_t thread;
    void *opened = 0;
    pthread_create(&thread, 0, plugin, 0);
    if (!dlopen("libcuda.so.1", RTLD_NOW))
        return 1;
    pthread_join(thread, &opened);
    return !opened;
}
"#;

/// For a program the handler of the checker is the default.
#[test]
fn signals_are_as_without_the_checker() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new("signals");
    if !compiled(&folder, "signals", SIGNALS, &["-Wno-deprecated-declarations"]) {
        return;
    }
    for (what, status, signal) in [
        ("interrupt", Some(0), None),
        ("handler", Some(7), None),
        ("default", None, Some(libc::SIGTERM)),
        ("default again", None, Some(libc::SIGTERM)),
        ("suspended", None, Some(libc::SIGTERM)),
        ("flags", Some(0), None),
        ("child", Some(0), None),
    ] {
        let (done, errors) = run_compiled(&folder, &[], &["./signals", what]);
        let ended = (done.status.code(), done.status.signal());
        assert_eq!(ended, (status, signal), "{what}: {errors}");
        assert_eq!(errors.matches("order check: 0 findings in").count(), 1, "{what}: {errors}");
    }
    // The second comes in the midst of the first one's handler, or to another thread.
    for what in ["two", "two threads"] {
        let (done, errors) = run_compiled(&folder, &[], &["./signals", what]);
        let signal = done.status.signal();
        assert!([libc::SIGTERM, libc::SIGHUP].map(Some).contains(&signal), "{what}: {errors}");
        assert_eq!(errors.matches("order check: 0 findings in").count(), 1, "{what}: {errors}");
    }
}

const SIGNALS: &str = r#"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL(name, types, values) \
    if (((int(*) types)dlsym(library, name))values) \
        return 1

static void nothing(int number)
{
}

static void leave(int number)
{
    _exit(7);
}

static pthread_barrier_t both;

static void *hang_up(void *thread)
{
    pthread_barrier_wait(&both);
    pthread_kill(pthread_self(), SIGHUP);
    return 0;
}

int main(int count, char **words)
{
    int pipes[2];
    char byte;
    struct sigaction old;
    void *context, *stream;
    /* As in a shell, whatever the tests have. */
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || pipe(pipes))
        return 1;
    CALL("cuInit", (unsigned), (0));
    CALL("cuDevicePrimaryCtxRetain", (void **, int), (&context, 0));
    CALL("cuCtxSetCurrent", (void *), (context));
    CALL("cuStreamCreate", (void **, unsigned), (&stream, 1));
    if (!strcmp(words[1], "interrupt")) {
        siginterrupt(SIGALRM, 1);
        signal(SIGALRM, nothing);
        ualarm(100000, 100000);
        /* The end of a read that goes on. */
        if (fork() == 0) {
            sleep(1);
            _exit(write(pipes[1], "", 1) != 1);
        }
        return !(read(pipes[0], &byte, 1) == -1 && errno == EINTR);
    }
    if (!strcmp(words[1], "flags")) {
        /* Of the checker's own, which the system alone shows. */
        struct { void (*handler)(int); unsigned long flags, restorer, mask; } own;
        const unsigned long all = SA_RESTART | SA_ONSTACK;
        if (syscall(SYS_rt_sigaction, SIGTERM, 0, &own, 8) || own.handler == SIG_DFL)
            return 13;
        if ((own.flags & all) != all)
            return 14;
        /* Others have the system's default. */
        signal(SIGCHLD, SIG_DFL);
        return syscall(SYS_rt_sigaction, SIGCHLD, 0, &own, 8) || own.handler != SIG_DFL;
    }
    if (!strcmp(words[1], "child")) {
        /* It has no thread that would end it. */
        int status, child = fork();
        if (child == 0)
            for (;;)
                pause();
        if (kill(child, SIGTERM) || waitpid(child, &status, 0) != child)
            return 15;
        return !(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
    if (!strcmp(words[1], "suspended")) {
        sigset_t only, none;
        sigemptyset(&none);
        sigemptyset(&only);
        sigaddset(&only, SIGTERM);
        /* Each thread blocks it, but where this one waits. */
        sigprocmask(SIG_BLOCK, &only, 0);
        kill(getpid(), SIGTERM);
        sigsuspend(&none);
        return 9;
    }
    if (!strcmp(words[1], "two")) {
        sigset_t pair;
        sigemptyset(&pair);
        sigaddset(&pair, SIGTERM);
        sigaddset(&pair, SIGHUP);
        sigprocmask(SIG_BLOCK, &pair, 0);
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGHUP);
        sigprocmask(SIG_UNBLOCK, &pair, 0);
        return 10;
    }
    if (!strcmp(words[1], "two threads")) {
        pthread_t thread;
        pthread_barrier_init(&both, 0, 2);
        if (pthread_create(&thread, 0, hang_up, 0))
            return 11;
        pthread_barrier_wait(&both);
        pthread_kill(pthread_self(), SIGTERM);
        pthread_join(thread, 0);
        return 12;
    }
    if (sigaction(SIGTERM, 0, &old) || old.sa_handler != SIG_DFL)
        return 2;
    if (!strcmp(words[1], "handler")) {
        if (signal(SIGTERM, leave) != SIG_DFL)
            return 3;
    } else if (!strcmp(words[1], "default again")) {
        if (signal(SIGTERM, nothing) != SIG_DFL || signal(SIGTERM, SIG_DFL) != nothing)
            return 4;
        struct sigaction handled = { .sa_handler = nothing };
        if (sigaction(SIGTERM, &handled, &old) || old.sa_handler != SIG_DFL)
            return 5;
        handled.sa_handler = SIG_DFL;
        if (sigaction(SIGTERM, &handled, &old) || old.sa_handler != nothing)
            return 6;
    }
    kill(getpid(), SIGTERM);
    return 8;
}
"#;

/// Ends that leave out the handlers of the exit, and that the C library makes by itself.
#[test]
fn other_ends_have_the_summary_too() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new("ends");
    if !compiled(&folder, "ends", ENDS, &[]) {
        return;
    }
    for (what, status, signal) in [
        ("quick", Some(66), None),
        ("_exit", Some(66), None),
        ("_Exit", Some(66), None),
        ("abort", None, Some(libc::SIGABRT)),
        ("assert", None, Some(libc::SIGABRT)),
        ("perror", None, Some(libc::SIGABRT)),
        // The process goes on after that.
        ("refused", Some(66), None),
    ] {
        let (done, errors) = run_compiled(&folder, &["--exitcode", "66"], &["./ends", what]);
        let ended = (done.status.code(), done.status.signal());
        assert_eq!(ended, (status, signal), "{what}: {errors}");
        assert_eq!(errors.matches("order check: 1 finding in").count(), 1, "{what}: {errors}");
        let own = if what == "quick" { "own" } else { "" };
        assert_eq!(String::from_utf8_lossy(&done.stdout), own, "{what}: the program's handler");
    }
    // Another program takes the place of this one: what was found so far is said before.
    for what in
        ["execve", "execv", "execvp", "execvpe", "fexecve", "execveat", "execl", "execlp", "execle"]
    {
        let (done, errors) = run_compiled(&folder, &["--stacks", "off"], &["./ends", what]);
        assert_eq!(done.status.code(), Some(0), "{what}: {errors}");
        // Some arguments are on the stack.
        let words = match what {
            "execl" | "execlp" | "execle" => "a b c d e f g h\n",
            _ => "after\n",
        };
        assert_eq!(String::from_utf8_lossy(&done.stdout), words, "{what}");
        let found =
            ["error: missing order", "order check: "].map(|text| errors.matches(text).count());
        assert_eq!(found, [1, 0], "{what}: {errors}");
    }
}

const ENDS: &str = r#"
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL(name, types, values) \
    if (((int(*) types)dlsym(library, name))values) \
        return 1

static void own(void)
{
    if (write(1, "own", 3) != 3)
        abort();
}

int main(int count, char **words)
{
    void *context, *one, *two;
    unsigned long long memory;
    at_quick_exit(own);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 1;
    CALL("cuInit", (unsigned), (0));
    CALL("cuDevicePrimaryCtxRetain", (void **, int), (&context, 0));
    CALL("cuCtxSetCurrent", (void *), (context));
    CALL("cuStreamCreate", (void **, unsigned), (&one, 1));
    CALL("cuStreamCreate", (void **, unsigned), (&two, 1));
    CALL("cuMemAlloc_v2", (void *, size_t), (&memory, 256));
    CALL("cuMemsetD8Async", (unsigned long long, char, size_t, void *), (memory, 1, 256, one));
    CALL("cuMemsetD8Async", (unsigned long long, char, size_t, void *), (memory, 1, 256, two));
    char *then[] = { "echo", "after", 0 };
    if (!strcmp(words[1], "execve"))
        execve("/bin/echo", then, environ);
    if (!strcmp(words[1], "execv"))
        execv("/bin/echo", then);
    if (!strcmp(words[1], "execvp"))
        execvp("echo", then);
    if (!strcmp(words[1], "execvpe"))
        execvpe("echo", then, environ);
    if (!strcmp(words[1], "fexecve"))
        fexecve(open("/bin/echo", O_RDONLY), then, environ);
    if (!strcmp(words[1], "execveat"))
        ((int (*)(int, const char *, char **, char **, int))dlsym(RTLD_DEFAULT, "execveat"))(
            AT_FDCWD, "/bin/echo", then, environ, 0);
    if (!strcmp(words[1], "execl"))
        execl("/bin/echo", "echo", "a", "b", "c", "d", "e", "f", "g", "h", (char *)0);
    if (!strcmp(words[1], "execlp"))
        execlp("echo", "echo", "a", "b", "c", "d", "e", "f", "g", "h", (char *)0);
    if (!strcmp(words[1], "execle"))
        execle("/bin/echo", "echo", "a", "b", "c", "d", "e", "f", "g", "h", (char *)0, environ);
    if (!strcmp(words[1], "refused") && execv("/nowhere", then)
        && execl("/nowhere", "nowhere", (char *)0) && errno == ENOENT)
        _exit(0);
    if (!strcmp(words[1], "quick"))
        quick_exit(0);
    if (!strcmp(words[1], "_exit"))
        _exit(0);
    if (!strcmp(words[1], "_Exit"))
        _Exit(0);
    if (!strcmp(words[1], "abort"))
        abort();
    if (!strcmp(words[1], "perror"))
        assert_perror(count);
    assert(!library);
    return 0;
}
"#;

/// The C library's functions were looked up before: who calls them may have interrupted a thread
/// that has the loader's lock.
#[test]
fn another_program_begins_while_the_loader_is_locked() {
    let folder = Folder::new("locked");
    let library = ["-shared", "-fPIC", "-Wl,-z,now"];
    if !compiled(&folder, "libreplaces.so", REPLACES, &library) {
        return;
    }
    compiled(&folder, "opens", OPENS, &[]);
    for what in ["execv", "execl", "execlp", "execle"] {
        let (done, errors) = run_compiled(&folder, &[], &["./opens", what]);
        assert_eq!(done.status.code(), Some(0), "{what}: {errors}");
        assert_eq!(done.stdout, b"after\n", "{what}");
    }
}

/// Its constructor, which has the loader's lock, waits for a thread that starts another program.
const REPLACES: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *replace(void *what)
{
    char *then[] = { "echo", "after", 0 };
    if (!strcmp(what, "execv"))
        execv("/bin/echo", then);
    if (!strcmp(what, "execl"))
        execl("/bin/echo", "echo", "after", (char *)0);
    if (!strcmp(what, "execlp"))
        execlp("echo", "echo", "after", (char *)0);
    if (!strcmp(what, "execle"))
        execle("/bin/echo", "echo", "after", (char *)0, environ);
    abort();
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, replace, getenv("WHAT"));
    pthread_join(thread, 0);
}
"#;

const OPENS: &str = r#"
#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char **words)
{
    setenv("WHAT", words[1], 1);
    dlopen("./libreplaces.so", RTLD_NOW);
    return 1;
}
"#;

/// The library of AddressSanitizer does not start a program in which it does not come first.
#[test]
fn a_program_with_a_sanitizer_is_named() {
    let folder = Folder::new("sanitizer");
    // An empty library with the sanitizer's name stands in for it.
    let library = ["-shared", "-fPIC", "-Wl,-soname,libasan.so.8"];
    if !compiled(&folder, "libasan.so.8", "int asan;", &library) {
        return;
    }
    let linked = ["-Wl,--no-as-needed", "-L.", "-l:libasan.so.8", "-Wl,-rpath,$ORIGIN"];
    compiled(&folder, "sanitized", "int main(void) { return 0; }", &linked);
    for (options, lines) in [("", 2), ("verify_asan_link_order=0", 1)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-order-check"));
        command.args(["run", "--library"]).arg(shared_library()).args(["--", "./sanitized"]);
        command.current_dir(&folder.0).env("XDG_CACHE_HOME", folder.0.join("cache"));
        let done = command.env("ASAN_OPTIONS", options).output().expect("the command is there");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert_eq!((done.status.code(), errors.lines().count()), (Some(0), lines), "{errors}");
        let line = "cuda-order-check: ./sanitized has AddressSanitizer's library, ";
        assert_eq!(errors.contains(line), lines == 2, "{errors}");
    }
}

/// A library whose constructor comes before that of the stand-in, as the runtime's does.
const EARLY: &str = r#"
#include <dlfcn.h>

__attribute__((constructor)) static void early(void)
{
    dlopen("libcuda.so.1", RTLD_NOW);
}
"#;

/// A kernel that the checker cannot see writes what another stream and the host read.
const PROGRAM: &str = r#"
#include "cuda_order_check.h"
#include <stdlib.h>

static void *library;

static void good(int code)
{
    if (code)
        exit(1);
}

#define CALL(name, types, values) good(((int(*) types)dlsym(library, name))values)

/* As C++ names it. */
static void *_Z6streamv(void)
{
    void *made;
    CALL("cuStreamCreate", (void **, unsigned), (&made, 1));
    return made;
}

int main(void)
{
    void *context, *one, *two, *memory;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 1;
    CALL("cuInit", (unsigned), (0));
    CALL("cuDevicePrimaryCtxRetain", (void **, int), (&context, 0));
    CALL("cuCtxSetCurrent", (void *), (context));
    one = _Z6streamv();
    two = _Z6streamv();
    CALL("cuMemAllocHost_v2", (void **, size_t), (&memory, 4096));
    cuda_order_check_name_stream(one, "work");
    cuda_order_check_push("step");
    cuda_order_check_writes(one, memory, 64);
    cuda_order_check_pop();
    cuda_order_check_reads(two, memory, 64);
    cuda_order_check_host_reads(memory, 64);
    cuda_order_check_flush();
    return 0;
}
"#;
