/*
 * What a C program does that has the driver's function pointers: call, and look at the
 * result. The handles are in registers, the pointers in a table.
 */
#include <stddef.h>
#include <stdint.h>

#define NOT_READY 600
#define DISABLE_TIMING 2
#define LEGACY_DEFAULT_STREAM ((handle)1)

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
    int (*get_current)(handle *context);
    int (*write_value)(handle stream, uint64_t address, uint64_t value, unsigned flags);
};

/* In the order of `Handles` in src/rig.rs. */
struct handles {
    const struct calls *calls;
    handle stream, other, event, join, start, end, shared;
    struct ipc_handle imported;
};

/* Each makes its call `n` times, stops at the first failure, and says how many were not made. */

uint64_t c_record(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event, stream = h->stream;
    for (; n != 0; n--) {
        if (calls->record(event, stream) != 0)
            break;
    }
    return n;
}

uint64_t c_record_timing(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->end, stream = h->stream;
    for (; n != 0; n--) {
        if (calls->record(event, stream) != 0)
            break;
    }
    return n;
}

uint64_t c_record_shared(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->shared, stream = h->stream;
    for (; n != 0; n--) {
        if (calls->record(event, stream) != 0)
            break;
    }
    return n;
}

uint64_t c_get_current(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    for (; n != 0; n--) {
        handle context;
        if (calls->get_current(&context) != 0)
            break;
    }
    return n;
}

uint64_t c_record_default(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event, stream = LEGACY_DEFAULT_STREAM;
    for (; n != 0; n--) {
        if (calls->record(event, stream) != 0)
            break;
    }
    return n;
}

uint64_t c_query(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event;
    for (; n != 0; n--) {
        int code = calls->query(event);
        if (code != 0 && code != NOT_READY)
            break;
    }
    return n;
}

uint64_t c_synchronize(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event;
    for (; n != 0; n--) {
        if (calls->synchronize(event) != 0)
            break;
    }
    return n;
}

uint64_t c_wait(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->event, stream = h->other;
    for (; n != 0; n--) {
        if (calls->wait(stream, event, 0) != 0)
            break;
    }
    return n;
}

uint64_t c_elapsed(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle start = h->start, end = h->end;
    for (; n != 0; n--) {
        float milliseconds;
        if (calls->elapsed(&milliseconds, start, end) != 0 || !(milliseconds >= 0))
            break;
    }
    return n;
}

uint64_t c_stream_query(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream;
    for (; n != 0; n--) {
        int code = calls->stream_query(stream);
        if (code != 0 && code != NOT_READY)
            break;
    }
    return n;
}

uint64_t c_stream_synchronize(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream;
    for (; n != 0; n--) {
        if (calls->stream_synchronize(stream) != 0)
            break;
    }
    return n;
}

uint64_t c_create_drop(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    for (; n != 0; n--) {
        handle event = NULL;
        if (calls->create(&event, DISABLE_TIMING) != 0 || calls->destroy(event) != 0)
            break;
    }
    return n;
}

uint64_t c_record_event(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream;
    for (; n != 0; n--) {
        handle event = NULL;
        if (calls->create(&event, DISABLE_TIMING) != 0 || calls->record(event, stream) != 0 ||
            calls->destroy(event) != 0)
            break;
    }
    return n;
}

uint64_t c_wait_stream(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle stream = h->stream, other = h->other, join = h->join;
    for (; n != 0; n--) {
        if (calls->record(join, other) != 0 || calls->wait(stream, join, 0) != 0)
            break;
    }
    return n;
}

uint64_t c_export(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle event = h->shared;
    for (; n != 0; n--) {
        struct ipc_handle out;
        if (calls->export_event(&out, event) != 0)
            break;
    }
    return n;
}

uint64_t c_import_close(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    for (; n != 0; n--) {
        handle event = NULL;
        if (calls->import_event(&event, h->imported) != 0 || calls->destroy(event) != 0)
            break;
    }
    return n;
}

/* Values in memory: a write, and a wait that is greater-or-equal (0). */

typedef int (*value_call)(handle stream, uint64_t address, uint64_t value, unsigned flags);

uint64_t c_write_value(value_call write, handle stream, uint64_t address, uint64_t value,
    uint64_t n) {
    for (; n != 0; n--) {
        if (write(stream, address, ++value, 0) != 0)
            break;
    }
    return n;
}

/* One word, for c_signal and c_look. */
static volatile uint64_t word;

uint64_t c_signal(const struct handles *h, uint64_t n) {
    value_call write = (value_call)h->calls->write_value;
    handle stream = h->stream;
    uint64_t value = 0;
    for (; n != 0; n--) {
        if (write(stream, (uint64_t)&word, ++value, 0) != 0)
            break;
    }
    return n;
}

uint64_t c_look(const struct handles *h, uint64_t n) {
    (void)h;
    for (; n != 0; n--) {
        if (word == UINT64_MAX)
            break;
    }
    return n;
}

uint64_t c_wait_value(value_call wait, handle stream, uint64_t address, uint64_t value,
    uint64_t n) {
    for (; n != 0; n--) {
        if (wait(stream, address, value, 0) != 0)
            break;
    }
    return n;
}

/* Spans: work between two timing records. */

uint64_t c_span(const struct handles *h, uint64_t n) {
    const struct calls *calls = h->calls;
    handle start = h->start, end = h->end, stream = h->stream;
    for (; n != 0; n--) {
        if (calls->record(start, stream) != 0 || calls->record(end, stream) != 0)
            break;
    }
    return n;
}

uint64_t c_span_drained(const struct handles *h, uint64_t n) {
    uint64_t left = c_span(h, n);
    if (left != 0)
        return left;
    const struct calls *calls = h->calls;
    handle start = h->start, end = h->end;
    for (; n != 0; n--) {
        float duration, since;
        if (calls->elapsed(&duration, start, end) != 0 || !(duration >= 0) ||
            calls->elapsed(&since, start, start) != 0 || !(since >= 0))
            break;
    }
    return n;
}
