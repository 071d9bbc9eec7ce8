/*
 * A round trip as a program in C makes it: a CUDA stream signals, a Vulkan queue waits and signals,
 * the stream waits, the host synchronises. The functions and all that they take come from the
 * caller, so that no header of either is needed; `wait_value` and `signal_value` lie in what
 * `submit` names.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int (*queue_submit_fn)(void *queue, uint32_t count, const void *submits, uint64_t fence);
typedef int (*semaphores_fn)(const void *semaphores, const void *params, unsigned count,
                             void *stream);
typedef int (*synchronize_fn)(void *stream);

struct loop {
    queue_submit_fn queue_submit;
    semaphores_fn signal;
    semaphores_fn wait;
    synchronize_fn synchronize;
    void *queue;
    const void *submit;
    uint64_t *wait_value;
    uint64_t *signal_value;
    /* A CUexternalSemaphore, and the parameters with the value in their first eight bytes. */
    void *semaphore;
    uint64_t *signal_params;
    uint64_t *wait_params;
    void *stream;
};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Makes `count` round trips from the value `value` on, and gives the nanoseconds of each. */
int vulkan_round_trips(const struct loop *loop, uint64_t value, size_t count, uint64_t *times) {
    for (size_t at = 0; at < count; at++, value += 2) {
        uint64_t started = now();
        int code;
        *loop->signal_params = value + 1;
        code = loop->signal(&loop->semaphore, loop->signal_params, 1, loop->stream);
        if (code != 0) return code;
        *loop->wait_value = value + 1;
        *loop->signal_value = value + 2;
        code = loop->queue_submit(loop->queue, 1, loop->submit, 0);
        if (code != 0) return code;
        *loop->wait_params = value + 2;
        code = loop->wait(&loop->semaphore, loop->wait_params, 1, loop->stream);
        if (code != 0) return code;
        code = loop->synchronize(loop->stream);
        if (code != 0) return code;
        times[at] = now() - started;
    }
    return 0;
}
