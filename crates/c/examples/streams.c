/* Two streams and the host, in C: a stream advances a timeline, another one waits for it, the host
 * looks without a driver call, and a callback comes. README.md has the commands. */
#include <cuda_timelines.h>
#include "driver.h"

#define CUTL(call)                                                                                 \
    do {                                                                                           \
        if ((call) < 0) {                                                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cutl_error_text());                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void stage(void *user) { *(int *)user += 1; }

/* On a thread of the library: it signals the host's timeline, which the main thread waits for. */
static void done(void *user, cutl_result result, const char *text) {
    struct cutl_point point;
    printf("callback: %s%s\n", cutl_result_name(result), text);
    CUTL(cutl_timeline_signal((struct cutl_timeline *)user, &point));
}

int main(void) {
    CUdevice device;
    CUcontext context;
    CUstream producer, consumer;
    CUTL(cutl_init());
    CU(cuInit(0));
    CU(cuDeviceGet(&device, 0));
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuStreamCreate(&producer, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&consumer, CU_STREAM_NON_BLOCKING));

    struct cutl_stream *produces, *consumes;
    struct cutl_timeline *produced, *called;
    CUTL(cutl_stream_adopt(NULL, producer, &produces));
    CUTL(cutl_stream_adopt(NULL, consumer, &consumes));
    CUTL(cutl_timeline_create(produces, &produced));
    CUTL(cutl_timeline_create_host(NULL, &called));

    int stages = 0;
    uint64_t before, after;
    struct cutl_point point;
    CUTL(cutl_timeline_completed(called, &before));
    CU(cuLaunchHostFunc(producer, stage, &stages));
    CUTL(cutl_timeline_signal(produced, &point));
    CUTL(cutl_stream_wait(consumes, &point));
    CU(cuLaunchHostFunc(consumer, stage, &stages));
    CUTL(cutl_point_on_done(&point, done, called));

    cutl_result waited = cutl_point_wait(&point, 10ull * 1000 * 1000 * 1000);
    CUTL(waited);
    if (waited == CUTL_PENDING) return fprintf(stderr, "not in ten seconds\n"), 1;
    CU(cuStreamSynchronize(consumer));
    printf("stages: %d, is done: %s\n", stages, cutl_result_name(cutl_point_is_done(&point)));
    do {
        CUTL(cutl_timeline_completed(called, &after));
    } while (after == before);

    CUTL(cutl_timeline_destroy(produced));
    /* A dead handle is an error with advice, and no access. */
    cutl_result dead = cutl_timeline_signal(produced, &point);
    printf("%s: %s\n", cutl_result_name(dead), cutl_error_text());
    CUTL(cutl_timeline_destroy(called));
    CUTL(cutl_stream_destroy(produces));
    CUTL(cutl_stream_destroy(consumes));
    CU(cuStreamDestroy_v2(producer));
    CU(cuStreamDestroy_v2(consumer));
    return 0;
}
