/* Stands in for what a program's kernels and NVIDIA's compiler do, so that the suites of tools/suites
 * can launch on the software driver. It registers a function for each kernel that they launch, and
 * is a libnvrtc as well: a "compiled" program is its source, which the driver does not look at. */

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    uint32_t grid[3], block[3], shared_bytes, parameter_count;
    const void *const *parameters;
} Launch;

typedef int (*Function)(const Launch *, void *);
typedef int (*Register)(const char *, const size_t *, size_t, Function, Function, void *);
typedef int (*Load)(const Launch *, uint64_t, void *, size_t);
typedef int (*Store)(const Launch *, uint64_t, const void *, size_t);

static Load load;
static Store store;

enum { FAILED_ASSERTION = 710 };

#define PARAMETER(type, index) (*(const type *)launch->parameters[index])
#define KERNEL(name) static int name(const Launch *launch, void *user)
#define ASSERT(condition) \
    if (!(condition)) return FAILED_ASSERTION

/* cudarc: void sin_kernel(float *out, const float *inp, size_t numel) */
KERNEL(sin_kernel) {
    uint64_t out = PARAMETER(uint64_t, 0), in = PARAMETER(uint64_t, 1), count = PARAMETER(uint64_t, 2);
    for (uint64_t i = 0; i < count; i++) {
        float value;
        int code = load(launch, in + 4 * i, &value, 4);
        /* For 1 a card has the next larger number, which the test expects. */
        value = nextafterf(sinf(value), 2);
        if (code || (code = store(launch, out + 4 * i, &value, 4))) return code;
    }
    return 0;
}

/* cudarc: four extreme integers of a width. */
KERNEL(int_8bit) {
    ASSERT(PARAMETER(int8_t, 0) == INT8_MIN && PARAMETER(int8_t, 1) == INT8_MAX);
    ASSERT(PARAMETER(uint8_t, 2) == 0 && PARAMETER(uint8_t, 3) == UINT8_MAX);
    return 0;
}
KERNEL(int_16bit) {
    ASSERT(PARAMETER(int16_t, 0) == INT16_MIN && PARAMETER(int16_t, 1) == INT16_MAX);
    ASSERT(PARAMETER(uint16_t, 2) == 0 && PARAMETER(uint16_t, 3) == UINT16_MAX);
    return 0;
}
KERNEL(int_32bit) {
    ASSERT(PARAMETER(int32_t, 0) == INT32_MIN && PARAMETER(int32_t, 1) == INT32_MAX);
    ASSERT(PARAMETER(uint32_t, 2) == 0 && PARAMETER(uint32_t, 3) == UINT32_MAX);
    return 0;
}
KERNEL(int_64bit) {
    ASSERT(PARAMETER(int64_t, 0) == INT64_MIN && PARAMETER(int64_t, 1) == INT64_MAX);
    ASSERT(PARAMETER(uint64_t, 2) == 0 && PARAMETER(uint64_t, 3) == UINT64_MAX);
    return 0;
}
KERNEL(floating) {
    ASSERT(fabs(PARAMETER(float, 0) - 1.2345678) <= 1e-7);
    ASSERT(fabs(PARAMETER(double, 1) - -10.123456789876543) <= 1e-16);
    return 0;
}

/* cudarc: void slow_worker(const float *data, const size_t len, float *out). It takes its time. */
KERNEL(slow_worker) {
    float value = 0, sum = 0;
    struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    for (uint64_t i = 0; i < PARAMETER(uint64_t, 1); i++) {
        int code = load(launch, PARAMETER(uint64_t, 0) + 4 * i, &value, 4);
        if (code) return code;
        sum += value * 1000;
    }
    nanosleep(&pause, NULL);
    return store(launch, PARAMETER(uint64_t, 2), &sum, 4);
}

/* cudarc, two kernels of this name: one gets a structure whose first member is 128, and the other
 * one the address of 100 numbers. */
KERNEL(kernel) {
    uint64_t first = PARAMETER(uint64_t, 0);
    for (int i = 0; first != 128 && i < 100; i++) {
        float value;
        int code = load(launch, first + 4 * i, &value, 4);
        if (code) return code;
        ASSERT(value == (float)i);
    }
    return 0;
}

/* cust: void sum(const float *x, const float *y, float *out, int count) */
KERNEL(sum) {
    for (uint64_t i = 0; i < PARAMETER(uint32_t, 3); i++) {
        float x, y;
        int code = load(launch, PARAMETER(uint64_t, 0) + 4 * i, &x, 4);
        if (code || (code = load(launch, PARAMETER(uint64_t, 1) + 4 * i, &y, 4))) return code;
        x += y;
        if ((code = store(launch, PARAMETER(uint64_t, 2) + 4 * i, &x, 4))) return code;
    }
    return 0;
}

/* numba-cuda: void helloworld(int *numbers), each thread writes its own. */
KERNEL(helloworld) {
    for (uint32_t i = 0; i < launch->block[0]; i++) {
        int code = store(launch, PARAMETER(uint64_t, 0) + 4 * i, &i, 4);
        if (code) return code;
    }
    return 0;
}

/* cuda.core: void latch(int *open, unsigned long long timeout_cycles) */
KERNEL(latch) {
    struct timespec pause = {.tv_nsec = 1000 * 1000};
    for (int open = 0; !open; nanosleep(&pause, NULL)) {
        int code = load(launch, PARAMETER(uint64_t, 0), &open, 4);
        if (code) return code;
    }
    return 0;
}

/* cuda.core: nothing for 20 ms. */
KERNEL(nanosleep_kernel) {
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    nanosleep(&pause, NULL);
    return 0;
}

__attribute__((constructor)) static void register_all(void) {
    static const struct {
        const char *name;
        Function run;
        size_t count, sizes[4];
    } all[] = {
        {"sin_kernel", sin_kernel, 3, {8, 8, 8}},
        {"int_8bit", int_8bit, 4, {1, 1, 1, 1}},
        {"int_16bit", int_16bit, 4, {2, 2, 2, 2}},
        {"int_32bit", int_32bit, 4, {4, 4, 4, 4}},
        {"int_64bit", int_64bit, 4, {8, 8, 8, 8}},
        {"floating", floating, 2, {4, 8}},
        {"slow_worker", slow_worker, 3, {8, 8, 8}},
        {"kernel", kernel, 1, {8}},
        {"sum", sum, 4, {8, 8, 8, 4}},
        {"_Z10helloworldPi", helloworld, 1, {8}},
        {"latch", latch, 2, {8, 8}},
        {"nanosleep_kernel", nanosleep_kernel, 0, {0}},
    };
    // Its own path, as another library may be in front of it under the usual name.
    const char *path = getenv("FOREIGN_LIBRARY");
    void *driver = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    Register add = driver ? (Register)dlsym(driver, "cuda_soft_driver_kernel") : NULL;
    if (!add) {
        fprintf(stderr, "libcuda.so.1 is not the software driver\n");
        return;
    }
    load = (Load)dlsym(driver, "cuda_soft_driver_kernel_load");
    store = (Store)dlsym(driver, "cuda_soft_driver_kernel_store");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (add(all[i].name, all[i].sizes, all[i].count, all[i].run, NULL, NULL))
            fprintf(stderr, "the kernel %s could not be registered\n", all[i].name);
}

/* The compiler: a program is its source. */

int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, 0; }

int nvrtcCreateProgram(char **program, const char *source, const char *name, int count, const char *const *headers,
                       const char *const *names) {
    return (*program = strdup(source)) ? 0 : 1;
}

int nvrtcDestroyProgram(char **program) { return free(*program), *program = NULL, 0; }

int nvrtcCompileProgram(char *program, int count, const char *const *options) { return 0; }

static int size_of(char *program, size_t *size) { return *size = strlen(program) + 1, 0; }
static int copy_of(char *program, char *to) { return strcpy(to, program), 0; }

int nvrtcGetPTXSize(char *program, size_t *size) { return size_of(program, size); }
int nvrtcGetPTX(char *program, char *to) { return copy_of(program, to); }
int nvrtcGetCUBINSize(char *program, size_t *size) { return size_of(program, size); }
int nvrtcGetCUBIN(char *program, char *to) { return copy_of(program, to); }
int nvrtcGetProgramLogSize(char *program, size_t *size) { return *size = 1, 0; }
int nvrtcGetProgramLog(char *program, char *to) { return *to = 0, 0; }
