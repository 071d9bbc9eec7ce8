//! What reports and the summary say of records, of calls that failed, and of orders that are assumed.

use std::process::Command;

use super::Folder;
use super::compiled::run_compiled;
use super::hostile::program;

use cuda_test_harness::shared_library;

/// Runs a case of a program in C, on three devices.
fn run(folder: &Folder, name: &str, case: &str) -> String {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_cuda-order-check"), "run", "--library"]);
    command.arg(shared_library()).args([name, case]).arg(shared_library());
    command.current_dir(&folder.0);
    command.env("XDG_CACHE_HOME", folder.0.join("cache")).env("CUDA_SOFT_DRIVER", "devices=3");
    let output = command.output().expect("the command is there");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{case}: {:?} {errors}", output.status);
    errors
}

/// An event is recorded again although a waiter may mean its record before.
#[test]
fn records_that_are_lost_are_reported() {
    let Some(folder) = program("records", RECORDS) else { return };
    let late = "a thread that means call #";
    let lost = "does not wait for the work before call #";
    for (case, part) in [
        ("other thread", Some(late)),
        ("other stream", Some(lost)),
        ("other thread, held", Some(late)),
        ("same thread", None),
        ("same thread, held", None),
        ("waited for", None),
        ("two events", None),
    ] {
        let errors = run(&folder, "./records", case);
        let count = usize::from(part.is_some());
        assert!(errors.contains(&format!("order check: {count} finding")), "{case}: {errors}");
        let lines = errors.matches("cuda-order-check: warning: ").count();
        assert_eq!(lines, count, "{case}: {errors}");
        assert!(part.is_none_or(|part| errors.contains(part)), "{case}: {errors}");
        assert_eq!(errors.matches("  class    records\n").count(), count, "{case}: {errors}");
    }
    let (_, errors) =
        run_compiled(&folder, &["--class", "-records"], &["./records", "other stream"]);
    assert!(errors.contains("order check: 0 findings in"), "{errors}");
}

const RECORDS: &str = r#"
static void *events[2];

static atomic_int go;

static void hold(void *nothing)
{
    while (!go)
        usleep(1000);
}

static void *output(void *nothing)
{
    GOOD("cuCtxSetCurrent", (void *), (context));
    GOOD("cuEventSynchronize", (void *), (events[0]));
    return 0;
}

int main(int count, char **words)
{
    void *other, *chosen;
    pthread_t thread;
    unsigned long long memory;
    const char *wanted = words[1];
    begin();
    GOOD("cuStreamCreate", (void **, unsigned), (&other, 1));
    GOOD("cuMemAlloc_v2", (void *, size_t), (&memory, 64));
    for (int at = 0; at < 2; at++)
        GOOD("cuEventCreate", (void **, unsigned), (&events[at], 2));
    for (int step = 0; step < 2; step++) {
        if (strstr(wanted, "held"))
            GOOD("cuLaunchHostFunc", (void *, void (*)(void *), void *), (stream, hold, 0));
        chosen = step && !strcmp(wanted, "other stream") ? other : stream;
        GOOD("cuMemsetD8Async", (unsigned long long, char, size_t, void *),
             (memory + 32 * step, 0, 32, chosen));
        int own = step && !strcmp(wanted, "two events");
        GOOD("cuEventRecord", (void *, void *), (events[own], chosen));
        if (!step && !strcmp(wanted, "waited for"))
            GOOD("cuEventSynchronize", (void *), (events[0]));
    }
    go = 1;
    if (strstr(wanted, "same thread"))
        return output(0) != 0;
    pthread_create(&thread, 0, output, 0);
    return pthread_join(thread, 0);
}
"#;

/// A program that goes on after a call that has failed does not need the advice to make that call.
#[test]
fn reports_name_the_call_that_failed() {
    let Some(folder) = program("failed", FAILED) else { return };
    for (case, name) in [
        ("record", Some("cuEventRecord")),
        ("wait", Some("cuStreamWaitEvent")),
        ("synchronize", Some("cuEventSynchronize")),
        ("before", None),
        ("other stream", None),
    ] {
        let errors = run(&folder, "./failed", case);
        assert!(errors.contains("order check: 1 finding in"), "{case}: {errors}");
        let line = errors.lines().find_map(|line| line.strip_prefix("  to mend  "));
        let line = line.expect("a report has it");
        match name {
            Some(name) => assert!(
                line.contains(&format!("{name}) failed with error 400, so it ordered nothing")),
                "{case}: {errors}"
            ),
            None => assert!(line.contains(": cuEventRecord(event, <stream 0x"), "{case}: {errors}"),
        }
    }
}

const FAILED: &str = r#"
typedef unsigned long long address;

int main(int count, char **words)
{
    void *other, *third, *second, *event, *foreign, *pinned;
    address memory;
    const char *wanted = words[1];
    begin();
    GOOD("cuStreamCreate", (void **, unsigned), (&other, 1));
    GOOD("cuStreamCreate", (void **, unsigned), (&third, 1));
    GOOD("cuMemAlloc_v2", (void *, size_t), (&memory, 8192));
    GOOD("cuMemAllocHost_v2", (void **, size_t), (&pinned, 8192));
    GOOD("cuEventCreate", (void **, unsigned), (&event, 2));
    GOOD("cuDevicePrimaryCtxRetain", (void **, int), (&second, 1));
    GOOD("cuCtxSetCurrent", (void *), (second));
    GOOD("cuEventCreate", (void **, unsigned), (&foreign, 2));
    GOOD("cuCtxSetCurrent", (void *), (context));
    if (!strcmp(wanted, "before"))
        CALL("cuEventRecord", (void *, void *), (foreign, stream));
    GOOD("cuMemcpyHtoDAsync_v2", (address, void *, size_t, void *), (memory, pinned, 8192, stream));
    if (!strcmp(wanted, "record"))
        CALL("cuEventRecord", (void *, void *), (foreign, stream));
    if (!strcmp(wanted, "other stream"))
        CALL("cuEventRecord", (void *, void *), (foreign, third));
    if (!strcmp(wanted, "wait")) {
        GOOD("cuEventRecord", (void *, void *), (event, stream));
        CALL("cuStreamWaitEvent", (void *, void *, unsigned), (other, 0, 0));
    }
    if (!strcmp(wanted, "synchronize")) {
        GOOD("cuEventRecord", (void *, void *), (event, stream));
        CALL("cuEventSynchronize", (void *), (0));
        *(volatile char *)pinned = 1;
        return 0;
    }
    GOOD("cuMemsetD8Async", (address, char, size_t, void *), (memory, 0, 64, other));
    return 0;
}
"#;

/// Where an order is not known but counts as one, the summary says so.
#[test]
fn the_summary_has_the_orders_that_are_assumed() {
    let Some(folder) = program("assumed", ASSUMED) else { return };
    let waits = "an access of the host is before a copy that waits";
    for (case, all) in [
        ("nothing", &[][..]),
        (
            "host function",
            &[
                "a host function has waited for all calls before its end: cuLaunchHostFunc 1 time",
                "an access of the host is before a copy that waits: cuLaunchHostFunc 1 time",
            ],
        ),
        (
            "value",
            &[
                "an access of the host is before a copy that waits: cuStreamWaitValue32_v2 1",
                "a value that no known write set is after all work so far: cuStreamWaitValue32_v2 1",
            ],
        ),
        (
            "flag",
            &["the host has seen what a stream writes for it: cuStreamWriteValue32_v2 2 times"],
        ),
        ("two devices", &["it waits for the work of all devices: cuMemFree_v2 1 time"]),
        (
            "two devices, a graph",
            &["a launch of a graph is work of all devices: cuGraphLaunch 1 time"],
        ),
        // What it waits for is of its own device, or was waited for.
        ("two devices, a load", &[]),
        (
            "two devices, a load beside work",
            &["it waits for the work of all devices: cuModuleLoadData 1 time"],
        ),
        // The order of a copy between devices was measured on two H200s, so nothing is assumed.
        ("two devices, a copy", &[]),
        (
            "two devices, a copy of a pool",
            &["a copy is work of the other device, too: cuMemcpyDtoDAsync_v2 1 time"],
        ),
        (
            "two devices, a copy in a third",
            &["a copy is work of the other device, too: cuMemcpyDtoDAsync_v2 1 time"],
        ),
        (
            "two devices, peers",
            &["it is after all work of its contexts, and before their later work: cuMemcpyPeer 1"],
        ),
        ("unload", &["it orders everything: cuModuleUnload 1 time"]),
        ("unload, waited for", &[]),
        ("release", &["it orders everything: cuDevicePrimaryCtxRelease_v2 1 time"]),
        ("release, waited for", &[]),
        (
            "exported event",
            &[
                "the host has seen what a stream writes for it: cuIpcGetEventHandle 1 time",
                "the records of other processes are before a wait: cuStreamWaitEvent 1 time",
            ],
        ),
    ] {
        let errors = run(&folder, "./assumed", case);
        assert!(errors.contains("order check: 0 findings in"), "{case}: {errors}");
        let begin = "order check: assumed, so an error may be missed: ";
        for part in all {
            assert!(errors.contains(&format!("{begin}{part}")), "{case}: {part}: {errors}");
        }
        assert_eq!(errors.matches(begin).count(), all.len(), "{case}: {errors}");
        assert_eq!(errors.contains(waits), case == "host function" || case == "value", "{case}");
    }
}

const ASSUMED: &str = r#"
typedef unsigned long long address;
static atomic_int go;

static void hold(void *nothing)
{
    while (!go)
        usleep(1000);
}

static void run(void *nothing)
{
}

/// The software driver loads modules once it has a kernel.
static void load(const char *driver, void **module)
{
    size_t size = 8;
    void *soft = dlopen(driver, RTLD_NOW);
    int (*add)(const char *, size_t *, size_t, void (*)(void *), void *, void *) =
        dlsym(soft, "cuda_soft_driver_kernel");
    if (add("own", &size, 1, run, 0, 0))
        exit(92);
    GOOD("cuModuleLoadData", (void **, const char *), (module, "code"));
}

int main(int count, char **words)
{
    void *first, *second, *context2, *other, *graph, *pinned, *module, *event;
    address memory, managed, there;
    char descriptor[64];
    const char *wanted = words[1];
    begin();
    GOOD("cuCtxGetCurrent", (void **), (&first));
    GOOD("cuMemAlloc_v2", (void *, size_t), (&memory, 8192));
    GOOD("cuMemAllocHost_v2", (void **, size_t), (&pinned, 16384));
    GOOD("cuMemAllocManaged", (void *, size_t, unsigned), (&managed, 64, 1));
    atomic_uint *flag = (atomic_uint *)((char *)pinned + 12288);
    *flag = 0;
    if (!strcmp(wanted, "host function"))
        GOOD("cuLaunchHostFunc", (void *, void (*)(void *), void *), (stream, hold, 0));
    if (!strcmp(wanted, "value"))
        GOOD("cuStreamWaitValue32_v2", (void *, address, unsigned, unsigned),
             (stream, (address)flag, 1, 0));
    if (!strcmp(wanted, "host function") || !strcmp(wanted, "value")) {
        GOOD("cuMemcpyHtoDAsync_v2", (address, void *, size_t, void *),
             (memory, pinned, 8192, stream));
        *(volatile char *)pinned = 1;
        *flag = 1;
        go = 1;
    }
    if (!strcmp(wanted, "flag"))
        for (int value = 1; value < 3; value++)
            GOOD("cuStreamWriteValue32_v2", (void *, address, unsigned, unsigned),
                 (stream, managed, value, 0));
    if (!strcmp(wanted, "exported event")) {
        GOOD("cuEventCreate", (void **, unsigned), (&event, 6));
        GOOD("cuEventRecord", (void *, void *), (event, stream));
        GOOD("cuIpcGetEventHandle", (void *, void *), (descriptor, event));
        GOOD("cuStreamWaitEvent", (void *, void *, unsigned), (stream, event, 0));
    }
    GOOD("cuStreamSynchronize", (void *), (stream));
    if (!strncmp(wanted, "unload", 6))
        load(words[2], &module);
    if (!strncmp(wanted, "unload", 6) || !strncmp(wanted, "release", 7)) {
        GOOD("cuMemsetD8Async", (address, unsigned char, size_t, void *), (memory, 1, 64, stream));
        if (strstr(wanted, "waited for"))
            GOOD("cuStreamSynchronize", (void *), (stream));
        if (!strncmp(wanted, "unload", 6)) {
            GOOD("cuModuleUnload", (void *), (module));
        } else {
            GOOD("cuDevicePrimaryCtxRetain", (void **, int), (&first, 0));
            GOOD("cuDevicePrimaryCtxRelease_v2", (int), (0));
        }
    }
    if (!strncmp(wanted, "two devices", 11)) {
        GOOD("cuDevicePrimaryCtxRetain", (void **, int), (&context2, 1));
        GOOD("cuCtxSetCurrent", (void *), (context2));
        GOOD("cuStreamCreate", (void **, unsigned), (&second, 1));
        GOOD("cuMemAlloc_v2", (void *, size_t), (&there, 8192));
        if (strstr(wanted, "a pool")) {
            GOOD("cuCtxSetCurrent", (void *), (first));
            GOOD("cuMemAllocAsync", (void *, size_t, void *), (&memory, 8192, stream));
            GOOD("cuStreamSynchronize", (void *), (stream));
            GOOD("cuCtxSetCurrent", (void *), (context2));
        }
        if (strstr(wanted, "a third")) {
            GOOD("cuDevicePrimaryCtxRetain", (void **, int), (&other, 2));
            GOOD("cuCtxSetCurrent", (void *), (other));
            GOOD("cuStreamCreate", (void **, unsigned), (&second, 1));
        }
        if (strstr(wanted, "a copy")) {
            GOOD("cuMemcpyDtoDAsync_v2", (address, address, size_t, void *),
                 (there, memory, 64, second));
            GOOD("cuStreamSynchronize", (void *), (second));
        } else if (strstr(wanted, "peers")) {
            GOOD("cuMemcpyPeer", (address, void *, address, void *, size_t),
                 (there, context2, memory, first, 64));
            GOOD("cuStreamSynchronize", (void *), (second));
            GOOD("cuCtxSynchronize", (void), ());
        } else if (strstr(wanted, "a load")) {
            other = strstr(wanted, "beside") ? stream : second;
            GOOD("cuCtxSetCurrent", (void *), (other == stream ? first : context2));
            GOOD("cuMemsetD8Async", (address, unsigned char, size_t, void *),
                 (other == stream ? memory : there, 1, 64, other));
            GOOD("cuCtxSetCurrent", (void *), (context2));
            load(words[2], &module);
        } else
        if (!strcmp(wanted, "two devices")) {
            GOOD("cuMemFree_v2", (address), (managed));
        } else {
            GOOD("cuStreamBeginCapture_v2", (void *, int), (second, 2));
            GOOD("cuMemsetD8Async", (address, unsigned char, size_t, void *),
                 (memory, 1, 64, second));
            GOOD("cuStreamEndCapture", (void *, void **), (second, &graph));
            GOOD("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long),
                 (&graph, graph, 0));
            GOOD("cuGraphLaunch", (void *, void *), (graph, second));
            GOOD("cuStreamSynchronize", (void *), (second));
        }
        GOOD("cuCtxSetCurrent", (void *), (first));
        GOOD("cuMemFree_v2", (address), (memory));
    }
    return 0;
}
"#;
