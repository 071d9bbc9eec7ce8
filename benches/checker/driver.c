/* A CUDA driver for tools/guard-checker: each function returns at once, so that of a call only what
 * is in front of the driver costs something. A function that is not here is one that it lacks. */
#include <stddef.h>
#include <stdlib.h>

typedef unsigned code;
typedef unsigned long long address;
typedef void *handle;

static unsigned long long created;
static char context;

/* Other numbers than those of memory. They only differ in their upper bits, so that one of an object
 * that was destroyed is like those of others. */
static handle new_handle(void) {
    return (handle)(0x100000000ULL + 0x100000 * ++created);
}

code cuInit(unsigned flags) { (void)flags; return 0; }
code cuDriverGetVersion(int *version) { *version = 13000; return 0; }
code cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
code cuDeviceGetCount(int *count) { *count = 1; return 0; }
code cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1;
    return 0;
}
code cuDevicePrimaryCtxRetain(handle *of, int device) { (void)device; *of = &context; return 0; }
code cuCtxGetCurrent(handle *of) { *of = &context; return 0; }
code cuCtxSetCurrent(handle of) { (void)of; return 0; }
code cuCtxGetDevice(int *device) { *device = 0; return 0; }
code cuCtxSynchronize(void) { return 0; }

code cuStreamCreate(handle *stream, unsigned flags) {
    (void)flags;
    *stream = new_handle();
    return 0;
}
code cuStreamSynchronize(handle stream) { (void)stream; return 0; }
code cuStreamWaitEvent(handle stream, handle event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    return 0;
}
code cuEventCreate(handle *event, unsigned flags) { (void)flags; *event = new_handle(); return 0; }
code cuEventDestroy_v2(handle event) { (void)event; return 0; }
code cuEventRecord(handle event, handle stream) { (void)event, (void)stream; return 0; }

code cuMemAlloc_v2(address *memory, size_t bytes) {
    static address next = 0x700000000000;
    *memory = next;
    next += (bytes + 0xfffff) / 0x100000 * 0x100000;
    return 0;
}
code cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    *memory = aligned_alloc(4096, bytes);
    return *memory ? 0 : 2;
}
code cuPointerGetAttribute(void *value, int attribute, address of) {
    (void)of;
    /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: CU_MEMORYTYPE_DEVICE. */
    *(unsigned *)value = attribute == 2 ? 2 : 0;
    return 0;
}
code cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, handle stream) {
    (void)to, (void)from, (void)bytes, (void)stream;
    return 0;
}
code cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, handle stream) {
    (void)to, (void)from, (void)bytes, (void)stream;
    return 0;
}
code cuMemsetD8Async(address to, unsigned char value, size_t bytes, handle stream) {
    (void)to, (void)value, (void)bytes, (void)stream;
    return 0;
}

/* A kernel has three addresses and an int, or one structure. */
code cuFuncGetName(const char **name, handle function) {
    (void)function;
    *name = "kernel";
    return 0;
}
code cuFuncGetParamInfo(handle function, size_t index, size_t *offset, size_t *bytes) {
    if ((size_t)function >= 0x9000) {
        *offset = 0, *bytes = 512;
        return index > 0;
    }
    if (index > 3)
        return 1;
    *offset = 8 * index;
    *bytes = index == 3 ? 4 : 8;
    return 0;
}
code cuFuncGetModule(handle *module, handle function) { *module = function; return 0; }
code cuLaunchKernel(handle function, unsigned x, unsigned y, unsigned z, unsigned wide,
                    unsigned high, unsigned deep, unsigned shared, handle stream,
                    void **parameters, void **extra) {
    (void)function, (void)x, (void)y, (void)z, (void)wide, (void)high, (void)deep, (void)shared;
    (void)stream, (void)parameters, (void)extra;
    return 0;
}

code cuStreamBeginCapture_v2(handle stream, unsigned mode) { (void)stream, (void)mode; return 0; }
code cuStreamEndCapture(handle stream, handle *graph) {
    (void)stream;
    *graph = new_handle();
    return 0;
}
code cuGraphInstantiateWithFlags(handle *exec, handle graph, unsigned long long flags) {
    (void)graph, (void)flags;
    *exec = new_handle();
    return 0;
}
code cuGraphLaunch(handle exec, handle stream) { (void)exec, (void)stream; return 0; }
