/*
 * The control of events-churn: retains and releases the primary context again and again from C,
 * without the crate, and fits a line through the resident memory. What grows here is the driver's.
 *
 * Each part runs in a process of its own, with the same threads in all generations, as churn's are.
 * A part does one kind of churn's work in each generation, `all` does all of them. `all, a tenth`
 * does a tenth of that: memory that grows as much there grows with generations, not with work.
 *
 * churn has no stream-ordered memory, so there is none here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USAGE \
    "usage: churn-control [--generations N] [--threads N] [--repeat N] [--driver LIBRARY]\n" \
    "                     [--seconds N] [--part NAME] [--each]\n" \
    "\n" \
    "Retains and releases the primary context N times (60), with N threads (16) that do each\n" \
    "kind of work N times (100) in a generation, and prints the growth of resident memory. Each\n" \
    "of the nine parts ends after N seconds (20) with fewer generations. LIBRARY is\n" \
    "libcuda.so.1 or that of CUDA_EVENTS_DRIVER. --part runs one part, --each prints each\n" \
    "generation.\n"

typedef void *handle;

struct ipc_handle {
    unsigned char bytes[64];
};

/* The driver's functions: own declarations, by the names of their symbols. */
#define FUNCTIONS(of) \
    of(cuInit, (unsigned flags)) \
    of(cuDriverGetVersion, (int *version)) \
    of(cuDeviceGet, (int *device, int ordinal)) \
    of(cuDeviceGetName, (char *name, int length, int device)) \
    of(cuDevicePrimaryCtxRetain, (handle *context, int device)) \
    of(cuDevicePrimaryCtxRelease_v2, (int device)) \
    of(cuCtxPushCurrent_v2, (handle context)) \
    of(cuCtxPopCurrent_v2, (handle *context)) \
    of(cuCtxSynchronize, (void)) \
    of(cuStreamCreateWithPriority, (handle *stream, unsigned flags, int priority)) \
    of(cuStreamDestroy_v2, (handle stream)) \
    of(cuStreamSynchronize, (handle stream)) \
    of(cuStreamWaitEvent, (handle stream, handle event, unsigned flags)) \
    of(cuStreamBeginCapture_v2, (handle stream, int mode)) \
    of(cuStreamEndCapture, (handle stream, handle *graph)) \
    of(cuGraphInstantiateWithFlags, (handle *executable, handle graph, uint64_t flags)) \
    of(cuGraphLaunch, (handle executable, handle stream)) \
    of(cuGraphExecDestroy, (handle executable)) \
    of(cuGraphDestroy, (handle graph)) \
    of(cuEventCreate, (handle *event, unsigned flags)) \
    of(cuEventRecord, (handle event, handle stream)) \
    of(cuEventSynchronize, (handle event)) \
    of(cuEventDestroy_v2, (handle event)) \
    of(cuIpcGetEventHandle, (struct ipc_handle *out, handle event)) \
    of(cuIpcOpenEventHandle, (handle *event, struct ipc_handle in)) \
    of(cuLaunchHostFunc, (handle stream, void (*function)(void *), void *data)) \
    of(cuMemAlloc_v2, (uint64_t *address, size_t bytes)) \
    of(cuMemFree_v2, (uint64_t address)) \
    of(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags)) \
    of(cuMemFreeHost, (void *memory)) \
    of(cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags)) \
    of(cuMemHostUnregister, (void *memory)) \
    of(cuMemsetD32Async, (uint64_t address, unsigned value, size_t words, handle stream)) \
    of(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, handle stream))

#define DECLARE(name, arguments) static int(*name) arguments;
FUNCTIONS(DECLARE)

#define NON_BLOCKING 1
#define CAPTURE_RELAXED 2
#define TIMING 0
#define BLOCKING_SYNC 1
#define DISABLE_TIMING 2
#define INTERPROCESS 6
#define PAGE 4096
#define WORDS 64

static void fail(const char *what, int code) {
    fprintf(stderr, "churn-control: %s: %d\n", what, code);
    exit(1);
}

/* Makes a call, and ends the process if it fails. */
#define TRY(function, ...) \
    do { \
        int code = function(__VA_ARGS__); \
        if (code != 0) \
            fail(#function, code); \
    } while (0)

static void load(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "churn-control: %s\n", dlerror());
        exit(1);
    }
#define RESOLVE(name, arguments) \
    *(void **)&name = dlsym(library, #name); \
    if (name == NULL) \
        fail("the driver has no " #name, 0);
    FUNCTIONS(RESOLVE)
}

/* One kind of work of a generation, done by each thread. */

static handle new_stream(int priority) {
    handle stream;
    TRY(cuStreamCreateWithPriority, &stream, NON_BLOCKING, priority);
    return stream;
}

static handle new_event(unsigned flags) {
    handle event;
    TRY(cuEventCreate, &event, flags);
    return event;
}

static void streams(int number) {
    handle stream = new_stream(-(number % 3)), other = new_stream(0);
    handle event = new_event(DISABLE_TIMING);
    TRY(cuEventRecord, event, other);
    TRY(cuStreamWaitEvent, stream, event, 0);
    TRY(cuStreamSynchronize, stream);
    TRY(cuEventDestroy_v2, event);
    TRY(cuStreamDestroy_v2, stream);
    TRY(cuStreamDestroy_v2, other);
}

static __thread handle own_stream;

static void events(int number) {
    static const unsigned flags[] = { TIMING, DISABLE_TIMING, DISABLE_TIMING | BLOCKING_SYNC };
    for (int nth = 0; nth < 4; nth++) {
        handle event = new_event(flags[(number + nth) % 3]);
        TRY(cuEventRecord, event, own_stream);
        TRY(cuEventSynchronize, event);
        TRY(cuEventDestroy_v2, event);
    }
}

static void memory(int number) {
    uint64_t device;
    void *host, *page;
    TRY(cuMemAlloc_v2, &device, 4 * WORDS);
    TRY(cuMemHostAlloc, &host, 4 * WORDS, 0);
    TRY(cuMemsetD32Async, device, (unsigned)number, WORDS, own_stream);
    TRY(cuMemcpyDtoHAsync_v2, host, device, 4 * WORDS, own_stream);
    TRY(cuStreamSynchronize, own_stream);
    if (((volatile unsigned *)host)[WORDS - 1] != (unsigned)number)
        fail("wrong data", number);
    TRY(cuMemFree_v2, device);
    TRY(cuMemFreeHost, host);
    /* As timelines do. */
    if (posix_memalign(&page, PAGE, PAGE) != 0)
        fail("posix_memalign", errno);
    TRY(cuMemHostRegister_v2, page, PAGE, 2);
    TRY(cuMemHostUnregister, page);
    free(page);
}

static void graphs(int number) {
    handle graph, executable, event = new_event(DISABLE_TIMING), other = new_stream(0);
    (void)number;
    TRY(cuStreamBeginCapture_v2, own_stream, CAPTURE_RELAXED);
    TRY(cuEventRecord, event, own_stream);
    TRY(cuStreamWaitEvent, other, event, 0);
    TRY(cuEventRecord, event, other);
    TRY(cuStreamWaitEvent, own_stream, event, 0);
    TRY(cuStreamEndCapture, own_stream, &graph);
    TRY(cuGraphInstantiateWithFlags, &executable, graph, 0);
    TRY(cuGraphLaunch, executable, own_stream);
    TRY(cuStreamSynchronize, own_stream);
    TRY(cuGraphExecDestroy, executable);
    TRY(cuGraphDestroy, graph);
    TRY(cuEventDestroy_v2, event);
    TRY(cuStreamDestroy_v2, other);
}

static void add_one(void *count) {
    __atomic_fetch_add((int *)count, 1, __ATOMIC_RELAXED);
}

static void functions(int number) {
    int count = 0;
    (void)number;
    for (int nth = 0; nth < 4; nth++)
        TRY(cuLaunchHostFunc, own_stream, add_one, &count);
    TRY(cuStreamSynchronize, own_stream);
    if (__atomic_load_n(&count, __ATOMIC_RELAXED) != 4)
        fail("host functions did not run", count);
}

/* What another process exports. */
static struct ipc_handle exported;

static void exports(int number) {
    struct ipc_handle out;
    handle event = new_event(INTERPROCESS), imported;
    (void)number;
    TRY(cuIpcGetEventHandle, &out, event);
    TRY(cuEventRecord, event, own_stream);
    TRY(cuIpcOpenEventHandle, &imported, exported);
    TRY(cuStreamWaitEvent, own_stream, imported, 0);
    TRY(cuStreamSynchronize, own_stream);
    TRY(cuEventDestroy_v2, imported);
    TRY(cuEventDestroy_v2, event);
}

#define STREAMS 1
#define EVENTS 2
#define MEMORY 4
#define GRAPHS 8
#define HOST 16
#define EXPORTS 32

static const struct {
    unsigned kind;
    void (*work)(int number);
} KINDS[] = {
    { STREAMS, streams }, { EVENTS, events }, { MEMORY, memory },
    { GRAPHS, graphs }, { HOST, functions }, { EXPORTS, exports },
};

static const struct part {
    const char *name;
    unsigned kinds;
    /* The work is divided by this. */
    int less;
} PARTS[] = {
    { "context alone", 0, 1 },
    { "streams", STREAMS, 1 },
    { "events", EVENTS, 1 },
    { "memory", MEMORY, 1 },
    { "graphs", GRAPHS, 1 },
    { "host functions", HOST, 1 },
    { "events of processes", EXPORTS, 1 },
    { "all", 63, 1 },
    { "all, a tenth", 63, 10 },
};

#define PARTS_COUNT (sizeof PARTS / sizeof *PARTS)

static int generations = 60, threads = 16, repeat = 100, limit = 20, each;
static const char *library = "libcuda.so.1";

/* What the threads share. */
static const struct part *running;
static handle context;
static int ends;
static pthread_barrier_t begin, end;

static void *worker(void *argument) {
    (void)argument;
    for (;;) {
        pthread_barrier_wait(&begin);
        if (ends)
            return NULL;
        handle popped;
        TRY(cuCtxPushCurrent_v2, context);
        own_stream = new_stream(0);
        int times = repeat / running->less > 0 ? repeat / running->less : 1;
        for (int number = 0; number < times; number++) {
            for (size_t kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++) {
                if (running->kinds & KINDS[kind].kind)
                    KINDS[kind].work(number);
            }
        }
        TRY(cuStreamDestroy_v2, own_stream);
        TRY(cuCtxPopCurrent_v2, &popped);
        pthread_barrier_wait(&end);
    }
}

static double resident_kib(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        fail("/proc/self/statm cannot be read", errno);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024.0);
}

/* What malloc has given out, if this C library says it. */
static double heap_kib(void) {
    struct info {
        size_t arena, blocks, small, maps, mapped, unused[2], given, free, keep;
    };
    static struct info (*info)(void);
    if (info == NULL)
        *(void **)&info = dlsym(RTLD_DEFAULT, "mallinfo2");
    if (info == NULL)
        return 0.0 / 0.0;
    struct info now = info();
    return (now.given + now.mapped) / 1024.0;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

/* The slope of a line through the samples. */
static double slope(const double *samples, int from, int to) {
    double mean_at = (from + to - 1) / 2.0, mean = 0, square = 0, product = 0;
    for (int at = from; at < to; at++)
        mean += samples[at] / (to - from);
    for (int at = from; at < to; at++) {
        square += (at - mean_at) * (at - mean_at);
        product += (at - mean_at) * (samples[at] - mean);
    }
    return square > 0 ? product / square : 0;
}

/* Another process, which exports an event until its input ends. */
static void export_event(void) {
    int device;
    handle own;
    struct ipc_handle out;
    TRY(cuInit, 0);
    TRY(cuDeviceGet, &device, 0);
    TRY(cuDevicePrimaryCtxRetain, &own, device);
    TRY(cuCtxPushCurrent_v2, own);
    handle event = new_event(INTERPROCESS);
    TRY(cuEventRecord, event, NULL);
    TRY(cuEventSynchronize, event);
    TRY(cuIpcGetEventHandle, &out, event);
    if (write(1, &out, sizeof out) != sizeof out)
        fail("write", errno);
    while (read(0, &out, 1) > 0)
        ;
}

static pid_t exporter;
static int exporter_input;

static void start_exporter(char *program) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0 || (exporter = fork()) < 0)
        fail("no process can be started", errno);
    if (exporter == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        execl("/proc/self/exe", program, "--export", library, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    exporter_input = to[1];
    for (size_t have = 0; have < sizeof exported;) {
        ssize_t some = read(from[0], exported.bytes + have, sizeof exported - have);
        if (some <= 0)
            fail("the exporter ended", errno);
        have += (size_t)some;
    }
    close(from[0]);
}

static void run_part(const struct part *part, char *program) {
    pthread_t pool[threads];
    double *resident = calloc((size_t)generations, sizeof *resident);
    double *heap = calloc((size_t)generations, sizeof *heap);
    int device;
    if (resident == NULL || heap == NULL)
        fail("no memory", errno);
    if (part->kinds & EXPORTS)
        start_exporter(program);
    load(library);
    running = part;
    TRY(cuInit, 0);
    TRY(cuDeviceGet, &device, 0);
    pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
    for (int thread = 0; thread < threads; thread++) {
        if (pthread_create(&pool[thread], NULL, worker, NULL) != 0)
            fail("no thread can be started", errno);
    }
    double started = seconds();
    int done = 0;
    while (done < generations && (done < 4 || seconds() - started < limit)) {
        TRY(cuDevicePrimaryCtxRetain, &context, device);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        TRY(cuDevicePrimaryCtxRelease_v2, device);
        resident[done] = resident_kib();
        heap[done] = heap_kib();
        if (each)
            fprintf(stderr, "%s, generation %d: %.0f KiB resident, %.0f KiB of malloc\n",
                part->name, done + 1, resident[done], heap[done]);
        done++;
    }
    /* The first quarter warms up. */
    int from = done / 4;
    printf("| %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f |\n", part->name, done,
        slope(resident, from, done), slope(heap, from, done), resident[from] / 1024,
        resident[done - 1] / 1024, seconds() - started);
    fflush(stdout);
    ends = 1;
    pthread_barrier_wait(&begin);
    for (int thread = 0; thread < threads; thread++)
        pthread_join(pool[thread], NULL);
    if (part->kinds & EXPORTS) {
        close(exporter_input);
        waitpid(exporter, NULL, 0);
    }
}

/* Runs each part in a process of its own; returns how many of them failed. */
static int run_all(char **arguments, int count) {
    int failed = 0;
    for (size_t part = 0; part < PARTS_COUNT; part++) {
        char *words[count + 3];
        memcpy(words, arguments, (size_t)count * sizeof *words);
        words[count] = "--part";
        words[count + 1] = (char *)PARTS[part].name;
        words[count + 2] = NULL;
        pid_t child = fork();
        if (child == 0) {
            execv("/proc/self/exe", words);
            _exit(127);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            printf("| %s | did not end: status %d |\n", PARTS[part].name, status);
            fflush(stdout);
            failed++;
        }
    }
    return failed;
}

/* The head of the table, made in a process of its own: this one never opens the driver. */
static void head(void) {
    char name[128] = "";
    int device, version;
    pid_t child = fork();
    if (child != 0) {
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0)
            exit(1);
        return;
    }
    load(library);
    TRY(cuInit, 0);
    TRY(cuDriverGetVersion, &version);
    TRY(cuDeviceGet, &device, 0);
    TRY(cuDeviceGetName, name, sizeof name - 1, device);
    printf("%s, CUDA %d.%d; at most %d generations, %d threads, each kind of work %d times a "
           "thread\n\n",
        name, version / 1000, version % 1000 / 10, generations, threads, repeat);
    printf("| in each generation | generations | growth of each, KiB | of that in malloc, KiB "
           "| MiB from | MiB to | seconds |\n");
    printf("|---|---|---|---|---|---|---|\n");
    fflush(stdout);
    _exit(0);
}

int main(int count, char **arguments) {
    const char *only = NULL, *named = getenv("CUDA_EVENTS_DRIVER");
    if (named != NULL && *named != 0)
        library = named;
    if (count == 3 && strcmp(arguments[1], "--export") == 0) {
        load(arguments[2]);
        export_event();
        return 0;
    }
    for (int at = 1; at < count; at++) {
        const char *name = arguments[at], *value = at + 1 < count ? arguments[at + 1] : NULL;
        int *number = strcmp(name, "--generations") == 0 ? &generations
            : strcmp(name, "--threads") == 0             ? &threads
            : strcmp(name, "--repeat") == 0              ? &repeat
            : strcmp(name, "--seconds") == 0             ? &limit
                                                         : NULL;
        if (strcmp(name, "--each") == 0) {
            each = 1;
            continue;
        }
        at++;
        if (value != NULL && number != NULL && (*number = atoi(value)) > 0)
            continue;
        if (value != NULL && strcmp(name, "--driver") == 0) {
            library = value;
            continue;
        }
        if (value != NULL && strcmp(name, "--part") == 0) {
            only = value;
            continue;
        }
        fputs(USAGE, stderr);
        return 2;
    }
    if (only != NULL) {
        for (size_t part = 0; part < PARTS_COUNT; part++) {
            if (strcmp(PARTS[part].name, only) == 0) {
                /* A part that hangs is stopped. */
                alarm(240);
                run_part(&PARTS[part], arguments[0]);
                return 0;
            }
        }
        fprintf(stderr, "churn-control: there is no part \"%s\"; the parts are:\n", only);
        for (size_t part = 0; part < PARTS_COUNT; part++)
            fprintf(stderr, "  %s\n", PARTS[part].name);
        return 2;
    }
    head();
    return run_all(arguments, count) == 0 ? 0 : 1;
}
