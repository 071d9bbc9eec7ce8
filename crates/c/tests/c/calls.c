/* Every function of the library, with good input and with bad input, in C. */
#include <cuda_timelines.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/driver.h"

/* The binary interface. */
_Static_assert(sizeof(struct cutl_point) == 32, "a point");
_Static_assert(_Alignof(struct cutl_point) == 8, "a point");
_Static_assert(sizeof(cutl_result) == 4 && sizeof(cutl_exporter) == 4, "the enums");
_Static_assert(CUTL_OK == 0 && CUTL_PENDING == 1, "the results");
_Static_assert(CUTL_ERROR_ARGUMENT == -1 && CUTL_ERROR_INTERNAL == -19, "the errors");
_Static_assert(CUTL_EXPORTER_RUNNING == 0 && CUTL_EXPORTER_UNKNOWN == 2, "the states");
_Static_assert(CUTL_FOREVER == UINT64_MAX, "the limit");
_Static_assert(CUTL_FILE_TIMELINE_BYTES == 20 && CUTL_MEMORY_TIMELINE_BYTES == 136, "descriptors");
_Static_assert(CUTL_EVENT_BYTES == 128, "descriptors");

/* The result, and a part of the text of an error. */
#define IS(expected, part, call)                                                                   \
    do {                                                                                           \
        cutl_result found_ = (call);                                                               \
        if (found_ != (expected) || (found_ < 0 && !strstr(cutl_error_text(), part))) {            \
            fprintf(stderr, "%d: %s: %s (%s)\n", __LINE__, #call, cutl_result_name(found_),        \
                    cutl_error_text());                                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) IS(CUTL_OK, "", call)
#define TRUE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%d: %s\n", __LINE__, #what);                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const uint64_t SECONDS = 1000000000;

static void wait_for(void *gate) {
    while (!__atomic_load_n((int *)gate, __ATOMIC_ACQUIRE)) usleep(100);
}

static void open_gate(int *gate) { __atomic_store_n(gate, 1, __ATOMIC_RELEASE); }

struct called {
    int count;
    cutl_result result;
    int driver_code;
    char text[200];
};

static void on_done(void *user, cutl_result result, const char *text) {
    struct called *called = user;
    called->result = result;
    called->driver_code = cutl_error_driver_code();
    strncpy(called->text, text, sizeof called->text - 1);
    __atomic_fetch_add(&called->count, 1, __ATOMIC_RELEASE);
}

static void await(struct called *called) {
    while (__atomic_load_n(&called->count, __ATOMIC_ACQUIRE) == 0) usleep(100);
    TRUE(called->count == 1);
}

static void null_is_an_error(void) {
    struct cutl_point point;
    uint64_t value;
    size_t length;
    ptrdiff_t file;
    cutl_exporter state;
    struct cutl_stream *stream;
    struct cutl_timeline *timeline;
    struct cutl_event *event;
    CUevent raw;
    IS(CUTL_ERROR_ARGUMENT, "out is NULL", cutl_stream_adopt(NULL, NULL, NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_stream is NULL", cutl_stream_wait(NULL, NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_stream is NULL", cutl_stream_on_done(NULL, on_done, NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_stream is NULL", cutl_stream_destroy(NULL));
    IS(CUTL_ERROR_ARGUMENT, "out is NULL", cutl_file_create(NULL, 0, NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_file is NULL", cutl_file_descriptor(NULL, &file));
    IS(CUTL_ERROR_HANDLE, "cutl_file is NULL", cutl_file_destroy(NULL));
    IS(CUTL_ERROR_ARGUMENT, "out is NULL", cutl_memory_create(NULL, NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_memory is NULL", cutl_memory_destroy(NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_stream is NULL", cutl_timeline_create(NULL, &timeline));
    IS(CUTL_ERROR_HANDLE, "cutl_file is NULL", cutl_timeline_create_in_file(NULL, NULL, &timeline));
    IS(CUTL_ERROR_HANDLE, "cutl_memory is NULL", cutl_timeline_create_in_memory(NULL, NULL, &timeline));
    IS(CUTL_ERROR_ARGUMENT, "out is NULL", cutl_timeline_create_host(NULL, NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_file is NULL", cutl_timeline_create_host_in_file(NULL, &timeline));
    IS(CUTL_ERROR_ARGUMENT, "the descriptor is NULL", cutl_timeline_open(NULL, 0, NULL, 20, &timeline));
    IS(CUTL_ERROR_ARGUMENT, "the descriptor is NULL", cutl_timeline_open_memory(NULL, NULL, 20, &timeline));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_signal(NULL, &point));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_point(NULL, 1, &point));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_completed(NULL, &value));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_wait_ahead(NULL, NULL, 1));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_descriptor(NULL, NULL, 0, &length));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_exporter(NULL, &state));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_exporter_ended(NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_poison(NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_timeline is NULL", cutl_timeline_destroy(NULL));
    IS(CUTL_ERROR_ARGUMENT, "the point is NULL", cutl_point_value(NULL, &value));
    IS(CUTL_ERROR_ARGUMENT, "the point is NULL", cutl_point_is_done(NULL));
    IS(CUTL_ERROR_ARGUMENT, "the point is NULL", cutl_point_query(NULL));
    IS(CUTL_ERROR_ARGUMENT, "the point is NULL", cutl_point_wait(NULL, 0));
    IS(CUTL_ERROR_ARGUMENT, "the point is NULL", cutl_point_spin(NULL, 0));
    IS(CUTL_ERROR_ARGUMENT, "the point is NULL", cutl_point_on_done(NULL, on_done, NULL));
    IS(CUTL_ERROR_ARGUMENT, "the event is NULL", cutl_event_adopt(NULL, NULL, 0, &event));
    IS(CUTL_ERROR_ARGUMENT, "the descriptor is NULL", cutl_event_import(NULL, NULL, 128, &event));
    IS(CUTL_ERROR_HANDLE, "cutl_event is NULL", cutl_event_export(NULL, NULL, 0, &length));
    IS(CUTL_ERROR_HANDLE, "cutl_event is NULL", cutl_event_raw(NULL, &raw));
    IS(CUTL_ERROR_HANDLE, "cutl_event is NULL", cutl_event_wait(NULL, 0));
    IS(CUTL_ERROR_HANDLE, "cutl_event is NULL", cutl_event_on_done(NULL, on_done, NULL));
    IS(CUTL_ERROR_HANDLE, "cutl_event is NULL", cutl_event_destroy(NULL));
    /* No context is current yet. */
    IS(CUTL_ERROR_CONTEXT, "no context is current", cutl_timeline_create_host(NULL, &timeline));
    IS(CUTL_ERROR_DRIVER, "cuStreamGetCtx", cutl_stream_adopt(NULL, NULL, &stream));
    TRUE(cutl_error_driver_code() == 201);
}

static void timelines(CUstream a, CUstream b) {
    struct cutl_stream *first, *second;
    struct cutl_timeline *timeline, *host, *other;
    struct cutl_point point, zero, damaged;
    struct called called = {0}, stream_called = {0}, failed = {0};
    uint64_t value, completed;
    size_t length;
    cutl_exporter state;
    int gate = 0;
    OK(cutl_stream_adopt(NULL, a, &first));
    OK(cutl_stream_adopt(NULL, b, &second));
    OK(cutl_timeline_create(first, &timeline));
    CU(cuLaunchHostFunc(a, wait_for, &gate));
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_point_value(&point, &value));
    OK(cutl_timeline_completed(timeline, &completed));
    TRUE(completed == value - 1);
    IS(CUTL_PENDING, "", cutl_point_is_done(&point));
    IS(CUTL_PENDING, "", cutl_point_query(&point));
    IS(CUTL_PENDING, "", cutl_point_wait(&point, 1000));
    IS(CUTL_PENDING, "", cutl_point_spin(&point, 1000));
    OK(cutl_stream_wait(second, &point));
    OK(cutl_point_on_done(&point, on_done, &called));
    OK(cutl_stream_on_done(first, on_done, &stream_called));
    IS(CUTL_ERROR_ARGUMENT, "callback is NULL", cutl_point_on_done(&point, NULL, &called));
    IS(CUTL_ERROR_ARGUMENT, "callback is NULL", cutl_stream_on_done(first, NULL, &called));
    TRUE(__atomic_load_n(&called.count, __ATOMIC_ACQUIRE) == 0);
    open_gate(&gate);
    OK(cutl_point_wait(&point, CUTL_FOREVER));
    OK(cutl_point_spin(&point, CUTL_FOREVER));
    OK(cutl_point_is_done(&point));
    OK(cutl_point_query(&point));
    CU(cuStreamSynchronize(b));
    await(&called);
    TRUE(called.result == CUTL_OK && called.text[0] == 0);
    await(&stream_called);
    TRUE(stream_called.result == CUTL_OK);

    /* Points that are none. */
    memset(&zero, 0, sizeof zero);
    IS(CUTL_ERROR_POINT, "no point of this process", cutl_point_is_done(&zero));
    IS(CUTL_ERROR_POINT, "no point of this process", cutl_stream_wait(second, &zero));
    for (size_t at = 0; at < sizeof point; at++) {
        damaged = point;
        ((unsigned char *)&damaged)[at] ^= 4;
        IS(CUTL_ERROR_POINT, "no point of this process", cutl_point_wait(&damaged, 0));
    }

    /* Handles of other kinds, and what only some timelines can do. */
    IS(CUTL_ERROR_HANDLE, "of an object of another kind", cutl_timeline_signal((void *)first, &point));
    IS(CUTL_ERROR_HANDLE, "of an object of another kind", cutl_stream_destroy((void *)timeline));
    IS(CUTL_ERROR_HANDLE, "never was a handle", cutl_timeline_signal((void *)&point, &point));
    IS(CUTL_ERROR_ARGUMENT, "out is NULL", cutl_timeline_signal(timeline, NULL));
    IS(CUTL_ERROR_HANDLE, "only an imported timeline", cutl_timeline_point(timeline, 1, &point));
    IS(CUTL_ERROR_HANDLE, "only an imported timeline", cutl_timeline_exporter(timeline, &state));
    IS(CUTL_ERROR_HANDLE, "only an imported timeline", cutl_timeline_exporter_ended(timeline));
    IS(CUTL_ERROR_ARGUMENT, "not shared", cutl_timeline_descriptor(timeline, NULL, 0, &length));
    /* CU_STREAM_PER_THREAD. */
    OK(cutl_stream_destroy(second));
    OK(cutl_stream_adopt(NULL, (CUstream)2, &second));
    IS(CUTL_ERROR_PER_THREAD_STREAM, "create a stream for it", cutl_timeline_create(second, &other));
    OK(cutl_stream_destroy(second));
    OK(cutl_stream_adopt(NULL, b, &second));

    /* The host's. The stream waits for a value that comes later. */
    OK(cutl_timeline_create_host(NULL, &host));
    OK(cutl_timeline_completed(host, &value));
    OK(cutl_timeline_wait_ahead(host, second, value + 1));
    OK(cutl_timeline_signal(host, &point));
    OK(cutl_point_is_done(&point));
    CU(cuStreamSynchronize(b));
    /* Poison releases a stream, and is an error for a callback and a host. */
    gate = 0;
    CU(cuLaunchHostFunc(a, wait_for, &gate));
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_point_on_done(&point, on_done, &failed));
    OK(cutl_timeline_wait_ahead(host, second, value + 2));
    OK(cutl_timeline_poison(host));
    OK(cutl_timeline_poison(timeline));
    CU(cuStreamSynchronize(b));
    await(&failed);
    TRUE(failed.result == CUTL_ERROR_POISONED && strstr(failed.text, "poisoned"));
    IS(CUTL_ERROR_POISONED, "poisoned", cutl_point_wait(&point, 10 * SECONDS));
    IS(CUTL_ERROR_POISONED, "poisoned", cutl_point_spin(&point, 10 * SECONDS));
    IS(CUTL_ERROR_POISONED, "poisoned", cutl_point_query(&point));
    IS(CUTL_ERROR_POISONED, "poisoned", cutl_stream_wait(second, &point));
    IS(CUTL_PENDING, "", cutl_point_is_done(&point));
    IS(CUTL_ERROR_HANDLE, "was destroyed", cutl_timeline_poison(timeline));
    IS(CUTL_ERROR_HANDLE, "was destroyed", cutl_timeline_destroy(host));
    open_gate(&gate);
    CU(cuStreamSynchronize(a));
    OK(cutl_stream_destroy(first));
    OK(cutl_stream_destroy(second));
    IS(CUTL_ERROR_HANDLE, "was destroyed", cutl_stream_wait(second, &point));
}

static void sharing(CUstream raw) {
    struct cutl_stream *stream;
    struct cutl_file *file, *writable;
    struct cutl_memory *memory;
    struct cutl_timeline *timeline, *host, *in_memory, *imported;
    struct cutl_point point;
    unsigned char bytes[CUTL_MEMORY_TIMELINE_BYTES], of_memory[CUTL_MEMORY_TIMELINE_BYTES];
    size_t length;
    ptrdiff_t descriptor;
    uint64_t value, reached;
    cutl_exporter state;
    OK(cutl_stream_adopt(NULL, raw, &stream));
    OK(cutl_file_create(NULL, 0, &file));
    OK(cutl_file_create(NULL, 1, &writable));
    OK(cutl_file_descriptor(writable, &descriptor));
    void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)descriptor, 0);
    TRUE(mapped != MAP_FAILED && munmap(mapped, 4096) == 0);
    OK(cutl_file_descriptor(file, &descriptor));
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)descriptor, 0);
    TRUE(mapped == MAP_FAILED);
    OK(cutl_timeline_create_in_file(stream, file, &timeline));
    OK(cutl_timeline_create_host_in_file(writable, &host));
    IS(CUTL_ERROR_ARGUMENT, "has 20 bytes, and there is room for 19", cutl_timeline_descriptor(timeline, bytes, 19, &length));
    TRUE(length == 20);
    IS(CUTL_ERROR_ARGUMENT, "room for 0", cutl_timeline_descriptor(timeline, NULL, 200, &length));
    IS(CUTL_ERROR_ARGUMENT, "length is NULL", cutl_timeline_descriptor(timeline, bytes, sizeof bytes, NULL));
    OK(cutl_timeline_descriptor(timeline, bytes, sizeof bytes, &length));
    TRUE(length == CUTL_FILE_TIMELINE_BYTES);
    OK(cutl_timeline_descriptor(host, of_memory, sizeof of_memory, &length));
    TRUE(length == CUTL_FILE_TIMELINE_BYTES && memcmp(bytes, of_memory, length) != 0);

    IS(CUTL_ERROR_DESCRIPTOR, "19 bytes", cutl_timeline_open(NULL, descriptor, bytes, 19, &imported));
    IS(CUTL_ERROR_DESCRIPTOR, "more than any", cutl_timeline_open(NULL, descriptor, bytes, (size_t)-1, &imported));
    bytes[9] ^= 1;
    IS(CUTL_ERROR_DESCRIPTOR, "damaged", cutl_timeline_open(NULL, descriptor, bytes, length, &imported));
    bytes[9] ^= 1;
    IS(CUTL_ERROR_ARGUMENT, "no file descriptor", cutl_timeline_open(NULL, -1, bytes, length, &imported));
    IS(CUTL_ERROR_SYSTEM, "file descriptor 9999", cutl_timeline_open(NULL, 9999, bytes, length, &imported));
    IS(CUTL_ERROR_FILE, "not belong to a file of memory", cutl_timeline_open(NULL, 2, bytes, length, &imported));
    IS(CUTL_ERROR_DESCRIPTOR, "in a file", cutl_timeline_open_memory(NULL, bytes, length, &imported));
    OK(cutl_timeline_open(NULL, descriptor, bytes, length, &imported));
    OK(cutl_timeline_exporter(imported, &state));
    TRUE(state == CUTL_EXPORTER_RUNNING);
    OK(cutl_timeline_exporter_ended(imported));
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_point_value(&point, &value));
    OK(cutl_timeline_point(imported, value, &point));
    OK(cutl_stream_wait(stream, &point));
    OK(cutl_point_wait(&point, 10 * SECONDS));
    OK(cutl_timeline_completed(imported, &reached));
    TRUE(reached == value);
    IS(CUTL_ERROR_HANDLE, "only a timeline of this process", cutl_timeline_signal(imported, &point));
    IS(CUTL_ERROR_HANDLE, "only a timeline of this process", cutl_timeline_wait_ahead(imported, stream, 1));
    IS(CUTL_ERROR_HANDLE, "only a timeline of this process", cutl_timeline_poison(imported));
    IS(CUTL_ERROR_ARGUMENT, "not shared", cutl_timeline_descriptor(imported, bytes, sizeof bytes, &length));
    OK(cutl_timeline_destroy(imported));

    OK(cutl_memory_create(NULL, &memory));
    OK(cutl_timeline_create_in_memory(stream, memory, &in_memory));
    OK(cutl_timeline_descriptor(in_memory, of_memory, sizeof of_memory, &length));
    TRUE(length == CUTL_MEMORY_TIMELINE_BYTES);
    IS(CUTL_ERROR_DESCRIPTOR, "probably this process", cutl_timeline_open_memory(NULL, of_memory, length, &imported));
    TRUE(cutl_error_driver_code() == 201);
    IS(CUTL_ERROR_DESCRIPTOR, "in device memory", cutl_timeline_open(NULL, descriptor, of_memory, length, &imported));
    OK(cutl_timeline_signal(in_memory, &point));
    OK(cutl_point_wait(&point, 10 * SECONDS));

    /* In any order. */
    OK(cutl_file_destroy(file));
    OK(cutl_file_destroy(writable));
    OK(cutl_timeline_destroy(host));
    OK(cutl_timeline_destroy(timeline));
    CU(cuStreamSynchronize(raw));
    OK(cutl_timeline_destroy(in_memory));
    OK(cutl_memory_destroy(memory));
    IS(CUTL_ERROR_HANDLE, "was destroyed", cutl_file_descriptor(file, &descriptor));
    IS(CUTL_ERROR_HANDLE, "was destroyed", cutl_timeline_create_in_memory(stream, memory, &timeline));
    OK(cutl_stream_destroy(stream));
}

static void events(CUstream stream) {
    CUevent raw, plain, same;
    CUgraph graph;
    struct cutl_event *event, *other, *imported;
    unsigned char bytes[CUTL_EVENT_BYTES], blocking[CUTL_EVENT_BYTES];
    struct called called = {0}, failed = {0};
    size_t length;
    int gate = 0;
    CU(cuEventCreate(&raw, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    CU(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    for (unsigned flag = 8; flag != 0; flag <<= 1)
        IS(CUTL_ERROR_ARGUMENT, "are no flags", cutl_event_adopt(NULL, raw, flag, &event));
    /* The bytes name the flags of the event that an importer gets. */
    OK(cutl_event_adopt(NULL, raw, 1 | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, &event));
    OK(cutl_event_export(event, blocking, sizeof blocking, &length));
    OK(cutl_event_destroy(event));
    OK(cutl_event_adopt(NULL, raw, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, &event));
    OK(cutl_event_adopt(NULL, plain, CU_EVENT_DISABLE_TIMING, &other));
    OK(cutl_event_raw(event, &same));
    TRUE(same == raw);
    IS(CUTL_ERROR_ARGUMENT, "INTERPROCESS", cutl_event_export(other, bytes, sizeof bytes, &length));
    IS(CUTL_ERROR_ARGUMENT, "room for 127", cutl_event_export(event, bytes, 127, &length));
    OK(cutl_event_export(event, bytes, sizeof bytes, &length));
    TRUE(length == CUTL_EVENT_BYTES && memcmp(bytes, blocking, length) != 0);
    CU(cuLaunchHostFunc(stream, wait_for, &gate));
    CU(cuEventRecord(raw, stream));
    IS(CUTL_PENDING, "", cutl_event_wait(event, 0));
    OK(cutl_event_on_done(event, on_done, &called));
    open_gate(&gate);
    OK(cutl_event_wait(event, CUTL_FOREVER));
    await(&called);
    TRUE(called.result == CUTL_OK);
    /* A captured event cannot be queried, and the query ends the capture. */
    CU(cuStreamBeginCapture_v2(stream, 2));
    CU(cuEventRecord(plain, stream));
    OK(cutl_event_on_done(other, on_done, &failed));
    await(&failed);
    TRUE(failed.result == CUTL_ERROR_DRIVER && failed.driver_code == 907);
    TRUE(cuStreamEndCapture(stream, &graph) == 901);
    IS(CUTL_ERROR_DESCRIPTOR, "", cutl_event_import(NULL, bytes, length, &imported));
    bytes[100] ^= 1;
    IS(CUTL_ERROR_DESCRIPTOR, "damaged", cutl_event_import(NULL, bytes, length, &imported));
    IS(CUTL_ERROR_DESCRIPTOR, "3 bytes", cutl_event_import(NULL, bytes, 3, &imported));
    OK(cutl_event_destroy(event));
    OK(cutl_event_destroy(other));
    IS(CUTL_ERROR_HANDLE, "was destroyed", cutl_event_wait(event, 0));
    CU(cuEventDestroy_v2(raw));
    CU(cuEventDestroy_v2(plain));
}

/* A context that is not the primary one, default streams, and a capture. */
static void contexts(CUdevice device, CUcontext primary, CUstream raw) {
    CUcontext context;
    CUstream theirs;
    CUgraph graph;
    struct cutl_stream *stream, *other, *fallback;
    struct cutl_file *file;
    struct cutl_timeline *timeline, *none;
    struct cutl_point point;
    struct called called = {0};
    CU(cuCtxCreate_v2(&context, 0, device));
    CU(cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
    CU(cuCtxSetCurrent(primary));
    IS(CUTL_ERROR_CONTEXT, "context", cutl_stream_adopt(primary, theirs, &other));
    OK(cutl_stream_adopt(context, theirs, &other));
    OK(cutl_stream_adopt(primary, raw, &stream));
    /* The legacy default stream of the current context. */
    OK(cutl_stream_adopt(NULL, NULL, &fallback));
    OK(cutl_file_create(primary, 0, &file));
    IS(CUTL_ERROR_CONTEXT, "two contexts", cutl_timeline_create_in_file(other, file, &none));
    OK(cutl_timeline_create(other, &timeline));
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_stream_wait(stream, &point));
    OK(cutl_stream_wait(fallback, &point));
    CU(cuStreamSynchronize(raw));
    OK(cutl_point_wait(&point, 10 * SECONDS));
    /* Each launch would signal the same value, and captured work has no end. Neither call ends the
     * capture. */
    CU(cuStreamBeginCapture_v2(theirs, 2));
    IS(CUTL_ERROR_CAPTURE, "the stream captures", cutl_timeline_signal(timeline, &point));
    IS(CUTL_ERROR_CAPTURE, "the stream captures", cutl_stream_on_done(other, on_done, &called));
    CU(cuStreamEndCapture(theirs, &graph));
    if (graph != NULL) CU(cuGraphDestroy(graph));
    OK(cutl_stream_on_done(other, on_done, &called));
    await(&called);
    TRUE(called.result == CUTL_OK);
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_point_wait(&point, 10 * SECONDS));
    OK(cutl_timeline_destroy(timeline));
    OK(cutl_file_destroy(file));
    OK(cutl_stream_destroy(fallback));
    OK(cutl_stream_destroy(other));
    OK(cutl_stream_destroy(stream));
    CU(cuStreamDestroy_v2(theirs));
    CU(cuCtxDestroy_v2(context));
}

enum { THREADS = 4, ROUNDS = 500 };

struct shared {
    struct cutl_timeline *timeline;
    int signalled, refused, called;
};

static void count(void *user, cutl_result result, const char *text) {
    TRUE(result == CUTL_OK && text[0] == 0);
    __atomic_fetch_add((int *)user, 1, __ATOMIC_RELEASE);
}

/* Signals until the handle is dead, and beyond. */
static void *use(void *user) {
    struct shared *shared = user;
    struct cutl_point point;
    for (int round = 0; round < ROUNDS;) {
        cutl_result result = cutl_timeline_signal(shared->timeline, &point);
        if (result == CUTL_OK) {
            OK(cutl_point_on_done(&point, count, &shared->called));
            OK(cutl_point_wait(&point, CUTL_FOREVER));
            __atomic_fetch_add(&shared->signalled, 1, __ATOMIC_RELEASE);
        } else {
            IS(CUTL_ERROR_HANDLE, "was destroyed", result);
            /* The text is that of this thread. */
            TRUE(strstr(cutl_error_text(), "cutl_timeline"));
            __atomic_fetch_add(&shared->refused, 1, __ATOMIC_RELEASE);
            round++;
        }
    }
    return NULL;
}

/* One thread destroys what the others use. Each callback comes once. */
static void threads(CUstream raw) {
    struct shared shared = {0};
    struct cutl_stream *stream;
    pthread_t users[THREADS];
    OK(cutl_stream_adopt(NULL, raw, &stream));
    OK(cutl_timeline_create(stream, &shared.timeline));
    for (int i = 0; i < THREADS; i++) TRUE(pthread_create(&users[i], NULL, use, &shared) == 0);
    while (__atomic_load_n(&shared.signalled, __ATOMIC_ACQUIRE) < ROUNDS) usleep(100);
    OK(cutl_timeline_destroy(shared.timeline));
    for (int i = 0; i < THREADS; i++) TRUE(pthread_join(users[i], NULL) == 0);
    TRUE(shared.refused == THREADS * ROUNDS);
    while (__atomic_load_n(&shared.called, __ATOMIC_ACQUIRE) < shared.signalled) usleep(100);
    TRUE(shared.called == shared.signalled);
    OK(cutl_stream_destroy(stream));
}

/* CUDA does not work there, and nothing is destroyed. */
static void forked_child(CUstream raw) {
    struct cutl_stream *stream;
    struct cutl_timeline *timeline;
    struct cutl_point point;
    uint64_t value;
    int status;
    OK(cutl_stream_adopt(NULL, raw, &stream));
    OK(cutl_timeline_create(stream, &timeline));
    pid_t child = fork();
    if (child == 0) {
        IS(CUTL_ERROR_FORKED, "fork", cutl_timeline_signal(timeline, &point));
        IS(CUTL_ERROR_FORKED, "fork", cutl_timeline_completed(timeline, &value));
        IS(CUTL_ERROR_FORKED, "fork", cutl_timeline_destroy(timeline));
        _exit(0);
    }
    TRUE(waitpid(child, &status, 0) == child && status == 0);
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_timeline_destroy(timeline));
    OK(cutl_stream_destroy(stream));
}

/* A forked process that then initialises the driver by itself gets the parent's point. */
static void point_of_another_process(const int *channel) {
    struct cutl_point point;
    uint64_t value;
    TRUE(read(channel[0], &point, sizeof point) == sizeof point);
    IS(CUTL_ERROR_POINT, "no point of this process", cutl_point_value(&point, &value));
    IS(CUTL_ERROR_POINT, "no point of this process", cutl_point_is_done(&point));
    _exit(0);
}

static void send_a_point(pid_t child, const int *channel) {
    struct cutl_timeline *timeline;
    struct cutl_point point;
    int status;
    OK(cutl_timeline_create_host(NULL, &timeline));
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_point_is_done(&point));
    TRUE(write(channel[1], &point, sizeof point) == sizeof point);
    TRUE(waitpid(child, &status, 0) == child && status == 0);
    OK(cutl_timeline_destroy(timeline));
}

struct signals {
    struct cutl_timeline *timeline;
    int count;
};

static void *signal_all(void *user) {
    struct signals *signals = user;
    struct cutl_point point;
    while (cutl_timeline_signal(signals->timeline, &point) == CUTL_OK)
        __atomic_fetch_add(&signals->count, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* The stream waits ahead for its own timeline and is full, so that a signal is blocked. */
static void poison_ends_a_blocked_signal(void) {
    struct cutl_stream *stream;
    struct signals signals = {0};
    uint64_t value;
    pthread_t thread;
    CUstream raw;
    CU(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    OK(cutl_stream_adopt(NULL, raw, &stream));
    OK(cutl_timeline_create(stream, &signals.timeline));
    OK(cutl_timeline_completed(signals.timeline, &value));
    OK(cutl_timeline_wait_ahead(signals.timeline, stream, value + 1000000));
    TRUE(pthread_create(&thread, NULL, signal_all, &signals) == 0);
    for (int before = -1, now = 0; now < 500 || now != before; usleep(100000)) {
        before = now;
        now = __atomic_load_n(&signals.count, __ATOMIC_ACQUIRE);
    }
    OK(cutl_timeline_poison(signals.timeline));
    TRUE(pthread_join(thread, NULL) == 0);
    CU(cuStreamSynchronize(raw));
    OK(cutl_stream_destroy(stream));
    CU(cuStreamDestroy_v2(raw));
}

static int is_active(CUdevice device) {
    unsigned flags;
    int active;
    CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
    return active;
}

/* The caller releases the primary context first: a timeline has its own share of it. */
static void context_lives(CUdevice device) {
    struct cutl_timeline *timeline;
    struct cutl_point point;
    OK(cutl_timeline_create_host(NULL, &timeline));
    CU(cuDevicePrimaryCtxRelease_v2(device));
    TRUE(is_active(device));
    OK(cutl_timeline_signal(timeline, &point));
    OK(cutl_timeline_destroy(timeline));
    /* The library's thread may still hold a share, for a moment. */
    for (int i = 0; i < 1000 && is_active(device); i++) usleep(10000);
    TRUE(!is_active(device));
    OK(cutl_point_is_done(&point));
    /* So has a stream that is adopted, whether the context is named or not. */
    for (int named = 0; named < 2; named++) {
        struct cutl_stream *stream;
        CUcontext context;
        CUstream raw;
        CU(cuDevicePrimaryCtxRetain(&context, device));
        CU(cuCtxSetCurrent(context));
        CU(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
        OK(cutl_stream_adopt(named ? context : NULL, raw, &stream));
        CU(cuDevicePrimaryCtxRelease_v2(device));
        TRUE(is_active(device));
        OK(cutl_stream_destroy(stream));
        for (int i = 0; i < 1000 && is_active(device); i++) usleep(10000);
        TRUE(!is_active(device));
    }
}

/* With CUDA_EVENTS_DRIVER=/nowhere/libcuda.so.1. */
static int no_driver(void) {
    const unsigned char bytes[CUTL_EVENT_BYTES] = {0};
    struct cutl_stream *stream;
    struct cutl_file *file;
    struct cutl_timeline *timeline;
    IS(CUTL_ERROR_NO_DRIVER, "/nowhere/libcuda.so.1", cutl_init());
    IS(CUTL_ERROR_NO_DRIVER, "/nowhere/libcuda.so.1", cutl_stream_adopt(NULL, NULL, &stream));
    IS(CUTL_ERROR_NO_DRIVER, "/nowhere/libcuda.so.1", cutl_file_create(NULL, 0, &file));
    IS(CUTL_ERROR_NO_DRIVER, "/nowhere/libcuda.so.1", cutl_timeline_create_host(NULL, &timeline));
    IS(CUTL_ERROR_NO_DRIVER, "/nowhere/libcuda.so.1", cutl_timeline_open(NULL, 0, bytes, 20, &timeline));
    puts("there is no driver");
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "no-driver") == 0) return no_driver();
    CUdevice device;
    CUcontext context;
    CUstream a, b;
    OK(cutl_init());
    TRUE(cutl_error_text()[0] == 0 && cutl_error_driver_code() == 0);
    /* After a look at a point. */
    const struct cutl_point none = {0};
    IS(CUTL_ERROR_POINT, "no point of this process", cutl_point_is_done(&none));
    int channel[2];
    TRUE(pipe(channel) == 0);
    pid_t child = fork();
    if (child == 0) point_of_another_process(channel);
    CU(cuInit(0));
    null_is_an_error();
    CU(cuDeviceGet(&device, 0));
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    send_a_point(child, channel);
    timelines(a, b);
    poison_ends_a_blocked_signal();
    sharing(a);
    events(a);
    contexts(device, context, a);
    threads(a);
    forked_child(a);
    CU(cuStreamDestroy_v2(a));
    CU(cuStreamDestroy_v2(b));
    context_lives(device);
    puts("all calls are right");
    return 0;
}
