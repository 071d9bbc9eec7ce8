/* What a program can say to the order checker that no driver sees. The functions do nothing when the
 * program runs without `cuda-order-check`. Linux; link with -ldl if the C library is older than
 * glibc 2.34. From other languages, look the names up in `libcuda.so.1`: there are none of them in
 * the driver's own. */
#ifndef CUDA_ORDER_CHECK_H
#define CUDA_ORDER_CHECK_H

#include <dlfcn.h>
#include <stddef.h>

static inline void *cuda_order_check_find(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

#define CUDA_ORDER_CHECK_CALL(name, types, values)                                                 \
    do {                                                                                           \
        void(*function) types = (void(*) types)cuda_order_check_find("cuda_order_check_" name);    \
        if (function)                                                                              \
            function values;                                                                       \
    } while (0)

/* Reports name the stream (a CUstream or a cudaStream_t) so. */
static inline void cuda_order_check_name_stream(void *stream, const char *name)
{
    CUDA_ORDER_CHECK_CALL("name_stream", (void *, const char *), (stream, name));
}

/* At this point of the stream these bytes are read, or written: by a kernel, for example. */
static inline void cuda_order_check_reads(void *stream, const void *address, size_t bytes)
{
    CUDA_ORDER_CHECK_CALL("reads", (void *, const void *, size_t), (stream, address, bytes));
}

static inline void cuda_order_check_writes(void *stream, const void *address, size_t bytes)
{
    CUDA_ORDER_CHECK_CALL("writes", (void *, const void *, size_t), (stream, address, bytes));
}

/* The calling thread reads, or writes, these bytes now. */
static inline void cuda_order_check_host_reads(const void *address, size_t bytes)
{
    CUDA_ORDER_CHECK_CALL("host_reads", (const void *, size_t), (address, bytes));
}

static inline void cuda_order_check_host_writes(const void *address, size_t bytes)
{
    CUDA_ORDER_CHECK_CALL("host_writes", (const void *, size_t), (address, bytes));
}

/* Calls of this thread are in a region with this name, until the pop. Regions nest. */
static inline void cuda_order_check_push(const char *name)
{
    CUDA_ORDER_CHECK_CALL("push", (const char *), (name));
}

static inline void cuda_order_check_pop(void)
{
    CUDA_ORDER_CHECK_CALL("pop", (void), ());
}

/* The findings so far are in the files when this returns. Without it, one about a kernel may wait for the
 * kernel's next launch, which shows where that is: so launches have stacks from the first call on. */
static inline void cuda_order_check_flush(void)
{
    CUDA_ORDER_CHECK_CALL("flush", (void), ());
}

#endif
