/* What a program can report to the software driver, and have it do, beyond the driver's own functions.
 * Include it after cuda.h or without it: a CUresult is an int here, a CUstream a pointer, and a
 * CUdeviceptr a uint64_t. A program that must also run on a GPU looks the functions up by name. */
#ifndef CUDA_SOFT_DRIVER_H
#define CUDA_SOFT_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- For the order checker */

/* At this point of the stream these bytes are read, or written: by a kernel, for example. */
int cuda_soft_driver_reads(void *stream, uint64_t address, size_t bytes);
int cuda_soft_driver_writes(void *stream, uint64_t address, size_t bytes);
/* The calling thread reads, or writes, these bytes now. */
int cuda_soft_driver_host_reads(const void *memory, size_t bytes);
int cuda_soft_driver_host_writes(const void *memory, size_t bytes);
/* A thread that takes over a number comes after what the thread that handed it over had done. */
int cuda_soft_driver_hand_over(uint64_t token);
int cuda_soft_driver_take_over(uint64_t token);
/* The host has read this value of 4 or 8 bytes, which a stream writes. */
int cuda_soft_driver_host_saw(const void *memory, uint64_t value, size_t bytes);
/* Findings name the stream so. */
int cuda_soft_driver_name_stream(void *stream, const char *name);

/* ---- Work */

/* Keeps the stream busy, as a kernel does. */
int cuda_soft_driver_busy(void *stream, uint64_t nanoseconds);

/* A launch. With all parameters in one buffer (`extra`), each parameter is aligned to the largest
 * power of two that divides its size, up to 16. A structure may have a smaller alignment: launch such
 * a kernel with an array of parameters. */
typedef struct {
    uint32_t grid[3], block[3], shared_bytes, parameter_count;
    const void *const *parameters; /* where the bytes of each parameter are */
    /* more fields, for the driver */
} cuda_soft_driver_launch;

typedef int (*cuda_soft_driver_function)(const cuda_soft_driver_launch *launch, void *user);

/* Registers a kernel. The driver calls `run` when it executes a launch, and `accesses`, which may be
 * NULL, in the call that launches or captures the kernel: it tells the order checker what the launch
 * reads and writes. An error from `run` fails the context with that code; an error from `accesses` is
 * the result of the call that launches. NULL as `run` removes the kernel. No C++ exception may leave
 * the two. */
int cuda_soft_driver_kernel(const char *name, const size_t *parameter_sizes, size_t count,
                            cuda_soft_driver_function run, cuda_soft_driver_function accesses,
                            void *user);
/* Within `run`. They check the bounds. */
int cuda_soft_driver_kernel_load(const cuda_soft_driver_launch *launch, uint64_t address, void *to,
                                 size_t bytes);
int cuda_soft_driver_kernel_store(const cuda_soft_driver_launch *launch, uint64_t address,
                                  const void *from, size_t bytes);
/* Within `accesses`. */
int cuda_soft_driver_kernel_reads(const cuda_soft_driver_launch *launch, uint64_t address,
                                  size_t bytes);
int cuda_soft_driver_kernel_writes(const cuda_soft_driver_launch *launch, uint64_t address,
                                   size_t bytes);

/* ---- In place of other parts of a system */

/* Stands in for a graphics API that shares an external semaphore (Linux). The first makes a
 * semaphore, a timeline or a binary one, and returns its descriptor, which an import takes over, or
 * -1. The second signals it, and returns CUDA_ERROR_INVALID_VALUE if the descriptor belongs to no
 * semaphore, or if a graphics API forbids the signal. */
int cuda_soft_driver_external_semaphore(int timeline);
int cuda_soft_driver_signal_external_semaphore(int descriptor, uint64_t value);

/* A GPU does not notice when a program protects pages of pinned memory. To get the same here, call
 * this right after the memory was allocated or registered. It returns 0 if that is not possible:
 * registered memory must be a shared mapping. */
int cuda_soft_driver_alias(const void *memory);

/* Executes a text command, to inject faults and to read the log and the leaks: SoftDriver::control of
 * the crate cuda-soft-driver lists the commands. Returns 0, or 1 if it cannot. `answer`, which may be
 * NULL, gets the result or the reason, cut to `room` bytes with the zero at its end. */
int cuda_soft_driver_control(const char *command, char *answer, size_t room);

#ifdef __cplusplus
}
#endif

#endif
