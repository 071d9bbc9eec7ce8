/*
 * What a C program does that has the driver's function pointers: call, and look at the result.
 *
 * HIDE makes the compiler forget what it knows of a variable, at the cost of no instruction, so that nothing is moved
 * out of the loop that a program with work between the calls could not have moved. The Rust loops have the same.
 */
#include <stddef.h>
#include <stdint.h>

#define HIDE(variable) __asm__ volatile("" : "+r"(variable))
#define NOT_READY 600
#define DISABLE_TIMING 2

typedef void *handle;

struct ipc_handle {
    unsigned char bytes[64];
};

/* In the order of `Calls` in src/rig.rs. */
struct calls {
    int (*record)(handle event, handle stream);
    int (*query)(handle event);
    int (*synchronize)(handle event);
    int (*elapsed)(float *milliseconds, handle start, handle end);
    int (*create)(handle *event, unsigned flags);
    int (*destroy)(handle event);
    int (*wait)(handle stream, handle event, unsigned flags);
    int (*stream_query)(handle stream);
    int (*stream_synchronize)(handle stream);
    int (*export_event)(struct ipc_handle *out, handle event);
    int (*import_event)(handle *event, struct ipc_handle in);
};

/* In the order of `Handles` in src/rig.rs. */
struct handles {
    const struct calls *calls;
    handle stream, other, event, join, start, end, shared;
    struct ipc_handle imported;
};

uint64_t c_record(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event, stream = h->stream;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(event); HIDE(stream);
        failed += calls->record(event, stream) != 0;
    }
    return failed;
}

uint64_t c_record_timing(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->end, stream = h->stream;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(event); HIDE(stream);
        failed += calls->record(event, stream) != 0;
    }
    return failed;
}

uint64_t c_record_default(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event, stream = (handle)1;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(event); HIDE(stream);
        failed += calls->record(event, stream) != 0;
    }
    return failed;
}

uint64_t c_query(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(event);
        int code = calls->query(event);
        failed += code != 0 && code != NOT_READY;
    }
    return failed;
}

uint64_t c_synchronize(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(event);
        failed += calls->synchronize(event) != 0;
    }
    return failed;
}

uint64_t c_wait(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event, stream = h->other;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(event); HIDE(stream);
        failed += calls->wait(stream, event, 0) != 0;
    }
    return failed;
}

uint64_t c_elapsed(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle start = h->start, end = h->end;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        float milliseconds;
        HIDE(calls); HIDE(start); HIDE(end);
        int code = calls->elapsed(&milliseconds, start, end);
        failed += code != 0 || !(milliseconds >= 0);
    }
    return failed;
}

uint64_t c_stream_query(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(stream);
        int code = calls->stream_query(stream);
        failed += code != 0 && code != NOT_READY;
    }
    return failed;
}

uint64_t c_stream_synchronize(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(stream);
        failed += calls->stream_synchronize(stream) != 0;
    }
    return failed;
}

uint64_t c_create_drop(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        handle event = NULL;
        HIDE(calls);
        if (calls->create(&event, DISABLE_TIMING) != 0) {
            failed++;
            continue;
        }
        HIDE(event);
        failed += calls->destroy(event) != 0;
    }
    return failed;
}

uint64_t c_record_event(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        handle event = NULL;
        HIDE(calls); HIDE(stream);
        if (calls->create(&event, DISABLE_TIMING) != 0) {
            failed++;
            continue;
        }
        failed += calls->record(event, stream) != 0;
        HIDE(event);
        failed += calls->destroy(event) != 0;
    }
    return failed;
}

uint64_t c_wait_stream(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream, other = h->other, join = h->join;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        HIDE(calls); HIDE(stream); HIDE(other); HIDE(join);
        int code = calls->record(join, other);
        if (code == 0)
            code = calls->wait(stream, join, 0);
        failed += code != 0;
    }
    return failed;
}

uint64_t c_export(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->shared;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct ipc_handle out;
        const unsigned char *bytes = out.bytes;
        HIDE(calls); HIDE(event);
        failed += calls->export_event(&out, event) != 0;
        HIDE(bytes);
    }
    return failed;
}

uint64_t c_import_close(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        handle event = NULL;
        HIDE(calls);
        if (calls->import_event(&event, h->imported) != 0) {
            failed++;
            continue;
        }
        HIDE(event);
        failed += calls->destroy(event) != 0;
    }
    return failed;
}
