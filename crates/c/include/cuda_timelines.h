// Counters that CUDA streams advance, and that hosts and other processes read.
// Made by cbindgen from the Rust source: do not edit.
//
// * Link with -lcuda_timelines. The driver is loaded at run time; cuda.h is not needed, and can be
//   included as well.
// * Every function may be called from any thread. None unwinds or throws, and none ends the process,
//   except where memory for Rust's own objects runs out. A NULL or destroyed handle is an error.
// * A handle belongs to the caller until it is destroyed; it is a number, and no address. The thread
//   that destroys one may be another than the one that made it, and others may still be in a call
//   with it. An `out` is written only if CUTL_OK is returned.
// * In a forked child every function returns CUTL_ERROR_FORKED, and a destroy does nothing.
// * Times are in nanoseconds. What is called a driver call is documented by NVIDIA.


#ifndef CUDA_TIMELINES_H
#define CUDA_TIMELINES_H

#include <stddef.h>
#include <stdint.h>

// The length of the descriptor of an event.
#define CUTL_EVENT_BYTES 128

// No limit, for the waits.
#define CUTL_FOREVER 18446744073709551615ull

// The length of the descriptor of a timeline in a file.
#define CUTL_FILE_TIMELINE_BYTES 20

// The length of the descriptor of a timeline in memory.
#define CUTL_MEMORY_TIMELINE_BYTES 136

// The result of a call. 0 and 1 are no errors; errors are negative. cutl_error_text has the
// reason of an error and what to do.
enum cutl_result
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The call has succeeded. For a query or a wait: the work is done.
    CUTL_OK = 0,
    // The work is not done. For a wait: the time is up.
    CUTL_PENDING = 1,
    // An argument is NULL or has a wrong value. Nothing was done.
    CUTL_ERROR_ARGUMENT = -1,
    // The handle is destroyed, belongs to an object of another kind, or never was a handle.
    CUTL_ERROR_HANDLE = -2,
    // The point was not made in this process.
    CUTL_ERROR_POINT = -3,
    // The CUDA driver cannot be loaded or initialised.
    CUTL_ERROR_NO_DRIVER = -4,
    // A driver call failed: cutl_error_driver_code has its code.
    CUTL_ERROR_DRIVER = -5,
    // The driver, the device or the system does not have what the call needs.
    CUTL_ERROR_UNSUPPORTED = -6,
    // The process was forked after the driver was initialised.
    CUTL_ERROR_FORKED = -7,
    // Two objects belong to different contexts, devices or drivers, or no context is current.
    CUTL_ERROR_CONTEXT = -8,
    // The last share of the timeline's context is gone before the point was reached.
    CUTL_ERROR_CONTEXT_DROPPED = -9,
    // The stream captures, and the call cannot be captured.
    CUTL_ERROR_CAPTURE = -10,
    // A timeline cannot belong to the per-thread default stream.
    CUTL_ERROR_PER_THREAD_STREAM = -11,
    // The timeline was poisoned or destroyed before it reached the value.
    CUTL_ERROR_POISONED = -12,
    // The process that had to signal has ended.
    CUTL_ERROR_EXPORTER_GONE = -13,
    // The system starts no thread.
    CUTL_ERROR_NO_THREAD = -14,
    // The descriptor's bytes are refused.
    CUTL_ERROR_DESCRIPTOR = -15,
    // The file or the memory is not the one that the descriptor belongs to, or none of timelines.
    CUTL_ERROR_FILE = -16,
    // The file or the memory has no place left for a timeline.
    CUTL_ERROR_FULL = -17,
    // The operating system refused a file.
    CUTL_ERROR_SYSTEM = -18,
    // A fault of this library. The call may have been made in part.
    CUTL_ERROR_INTERNAL = -19,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cutl_result cutl_result;
#else
typedef int32_t cutl_result;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The state of the process that made an imported timeline.
enum cutl_exporter
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // It runs, as far as this process sees.
    CUTL_EXPORTER_RUNNING = 0,
    // It has ended.
    CUTL_EXPORTER_ENDED = 1,
    // This process cannot see it. Wait with a limit.
    CUTL_EXPORTER_UNKNOWN = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum cutl_exporter cutl_exporter;
#else
typedef int32_t cutl_exporter;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The driver's context: CUcontext is a pointer to it.
struct CUctx_st;

// The driver's event: CUevent is a pointer to it.
struct CUevent_st;

// The driver's stream: CUstream is a pointer to it.
struct CUstream_st;

// An event that other code owns, or one that another process exported.
struct cutl_event;

// A memory file with room for 63 timelines. A process that has its file descriptor sees them.
struct cutl_file;

// Device memory with room for 63 timelines. A process that has a timeline's bytes can open it.
struct cutl_memory;

// A stream that other code owns.
struct cutl_stream;

// A counter that a stream, the host or another process advances.
struct cutl_timeline;

// A place in a timeline: all work that was in the stream when it was signalled. A plain value of
// this process: copy it, share it between threads, keep as many as you like. It keeps nothing
// alive and needs no destruction; it may outlive its timeline. To another process send its value.
//
// The fields are private. A point that is zero, or of another process, is CUTL_ERROR_POINT.
struct cutl_point {
    const void *words[3];
    uint64_t check;
};

// A function that is called once for each call that was given it: with `user`, with CUTL_OK or an
// error, and with the error's text, which is empty for CUTL_OK and valid until the function
// returns. After CUTL_ERROR_DRIVER cutl_error_driver_code returns the driver's code there.
//
// It is called on a thread of the library, never on the calling one, and one at a time: one that
// takes long delays the others. It may call any function of this library, and of the driver. It
// must not throw, longjmp or end the thread. `user` must stay valid until then; the library does
// nothing else with it. A forked child calls none.
typedef void (*cutl_callback)(void *user, cutl_result result, const char *text);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Loads the CUDA driver, libcuda.so.1 or the library that the environment variable
// CUDA_EVENTS_DRIVER names. The calls that need the driver load it as well; this one reports early
// that there is none. It does not initialise the driver. It may be called often.
//
// Errors: CUTL_ERROR_NO_DRIVER, with each library that was tried.
cutl_result cutl_init(void);

// Adopts a stream that other code owns and destroys, such as a CUstream or a cudaStream_t. All
// calls take the stream as this handle. `context` is the stream's context; with NULL the driver is
// asked for it. A default stream (NULL, CU_STREAM_LEGACY) is that of `context` or, if this is
// NULL, of the context that is current on the calling thread.
//
// The stream is not owned. If its context is the primary one of its device, as with the CUDA
// runtime and PyTorch, that is retained until all objects made with this handle are gone.
//
// Errors: CUTL_ERROR_NO_DRIVER; CUTL_ERROR_CONTEXT if the stream is of another context, or no
// context is current; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// `stream` and its context must live until the handle, the timelines made from it and the waits
// submitted to it are gone: the driver does not detect a destroyed stream. While the stream is
// captured, only the capturing thread may use the handle.
cutl_result cutl_stream_adopt(struct CUctx_st *context,
                              struct CUstream_st *stream,
                              struct cutl_stream **out);

// Makes all work that is submitted to the stream later wait until the point is reached. The stream
// may be of any context and device. One driver call, and none if the point is reached. A program
// that waits only for points whose signals were submitted cannot deadlock.
//
// If the timeline can no longer reach the point, the stream goes on as if it were reached: query
// the point on the host before you trust the results.
//
// Errors: CUTL_ERROR_POISONED, CUTL_ERROR_EXPORTER_GONE and CUTL_ERROR_CONTEXT_DROPPED if the
// point cannot be reached; CUTL_ERROR_CAPTURE in a capture, for a point of another context;
// CUTL_ERROR_NO_THREAD; CUTL_ERROR_DRIVER; CUTL_ERROR_POINT; CUTL_ERROR_HANDLE. After an error the
// stream does not wait.
cutl_result cutl_stream_wait(const struct cutl_stream *stream, const struct cutl_point *point);

// Has `callback` called once, when all work that is in the stream now is done or has failed. See
// cutl_callback. It records an event of its own, after it asked whether the stream captures.
//
// Errors, after which the callback is not called: CUTL_ERROR_CAPTURE, and the capture goes on;
// CUTL_ERROR_DRIVER; CUTL_ERROR_NO_THREAD; CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// As for cutl_callback.
cutl_result cutl_stream_on_done(const struct cutl_stream *stream,
                                cutl_callback callback,
                                void *user);

// Destroys the handle, not the stream. Timelines made from it stay.
//
// Errors: CUTL_ERROR_HANDLE.
cutl_result cutl_stream_destroy(struct cutl_stream *stream);

// Adopts an event that other code owns and destroys, to export it or to wait for it. `flags` are
// those of its cuEventCreate. A NULL context is the current one.
//
// Errors: CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// `event` must be a live event of `context`, created with `flags`. Both must live until the handle
// is destroyed, all callbacks for it were called, and all importers are done.
cutl_result cutl_event_adopt(struct CUctx_st *context,
                             struct CUevent_st *event,
                             unsigned int flags,
                             struct cutl_event **out);

// Opens an event that another process exported, in a context of its device; NULL is the current
// one.
//
// Errors: CUTL_ERROR_DESCRIPTOR; CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER;
// CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// `context` and `bytes` as for cutl_timeline_open. The bytes must come from a process that you
// trust, and that keeps the event until this one is destroyed: the driver does not detect a forged
// descriptor.
cutl_result cutl_event_import(struct CUctx_st *context,
                              const uint8_t *bytes,
                              size_t length,
                              struct cutl_event **out);

// Copies the descriptor of an adopted event, CUTL_EVENT_BYTES bytes, to `buffer`, and its length to
// `length`. Each export gives the same bytes.
//
// Errors: CUTL_ERROR_ARGUMENT if the event was created without CU_EVENT_INTERPROCESS, was
// imported, or `capacity` is too small (`length` is written); CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE.
//
// # Safety
//
// As for cutl_timeline_descriptor.
cutl_result cutl_event_export(const struct cutl_event *event,
                              uint8_t *buffer,
                              size_t capacity,
                              size_t *length);

// Writes the driver's handle to `out`, for cuEventRecord and cuStreamWaitEvent. An imported event
// stays the library's: do not destroy it, and do not use it after this handle is destroyed.
//
// Errors: CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
cutl_result cutl_event_raw(const struct cutl_event *event, struct CUevent_st **out);

// Waits until the last record is done, for at most `nanoseconds`; 0 queries, CUTL_FOREVER has no
// limit. CUTL_PENDING if the time is up. For an imported event it also looks for the exporter's
// end, first at once and then ten times a second.
//
// Errors: CUTL_ERROR_EXPORTER_GONE; CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE.
cutl_result cutl_event_wait(const struct cutl_event *event, uint64_t nanoseconds);

// Has `callback` called once, when the last record of an adopted event is done or has failed. See
// cutl_callback.
//
// Errors, after which the callback is not called: CUTL_ERROR_NO_THREAD; CUTL_ERROR_HANDLE, also for
// an imported event, whose exporter may end; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// As for cutl_callback. The event must live until the callback was called.
cutl_result cutl_event_on_done(const struct cutl_event *event, cutl_callback callback, void *user);

// Destroys the handle, and an imported event with it. An adopted event stays.
//
// Errors: CUTL_ERROR_HANDLE.
cutl_result cutl_event_destroy(struct cutl_event *event);

// Writes the point's value to `out`: the number to send to other processes. The values of one
// timeline rise.
//
// Errors: CUTL_ERROR_POINT; CUTL_ERROR_ARGUMENT.
cutl_result cutl_point_value(const struct cutl_point *point, uint64_t *out);

// Returns whether the point is reached: CUTL_OK or CUTL_PENDING. One load, without a driver call
// and without a lock. After CUTL_OK the caller sees the writes of the work before the point. A
// point that stays pending may never be reached: cutl_point_query returns the failure.
//
// Errors: CUTL_ERROR_POINT; CUTL_ERROR_ARGUMENT; CUTL_ERROR_FORKED.
cutl_result cutl_point_is_done(const struct cutl_point *point);

// Returns whether the point is reached, CUTL_OK or CUTL_PENDING, or why it never will be. If it is
// not reached, the driver is queried. It does not wait.
//
// Errors: CUTL_ERROR_POISONED, CUTL_ERROR_EXPORTER_GONE, CUTL_ERROR_CONTEXT_DROPPED or
// CUTL_ERROR_DRIVER, if the point cannot be reached; CUTL_ERROR_POINT; CUTL_ERROR_ARGUMENT.
cutl_result cutl_point_query(const struct cutl_point *point);

// Waits until the point is reached, for at most `nanoseconds`. CUTL_PENDING if the time is up;
// with CUTL_FOREVER it never is. The thread sleeps between checks. An error that ends the wait is
// found within 5 ms and a driver call.
//
// Errors: those of cutl_point_query.
cutl_result cutl_point_wait(const struct cutl_point *point, uint64_t nanoseconds);

// The same as cutl_point_wait, but it spins: it returns earlier, and uses a core.
//
// Errors: those of cutl_point_query.
cutl_result cutl_point_spin(const struct cutl_point *point, uint64_t nanoseconds);

// Has `callback` called once, when the point is reached or cannot be reached any more. See
// cutl_callback. The result is CUTL_OK or an error of cutl_point_query.
//
// Errors, after which the callback is not called: CUTL_ERROR_NO_THREAD; CUTL_ERROR_POINT;
// CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// As for cutl_callback.
cutl_result cutl_point_on_done(const struct cutl_point *point, cutl_callback callback, void *user);

// Returns the text of the last error of the calling thread: which driver call failed, its code,
// and what to do. An empty text if no call of this thread has failed. Calls that succeed leave it.
//
// The library owns the text. It is valid until the next error of this thread.
const char *cutl_error_text(void);

// Returns the driver's code (CUresult) of the last error of the calling thread; 0 if that was not
// an error of a driver call.
int32_t cutl_error_driver_code(void);

// Returns the name of a code, such as "CUTL_ERROR_HANDLE". It never fails, and the text is
// valid forever.
const char *cutl_result_name(int32_t result);

// Makes a file in a context; NULL is the current one. With `writable` 0 only this process can
// write it: the kernel refuses others. Otherwise importers can write it, and their streams wait
// for it directly, which is faster: choose that only for importers that you trust as yourself.
//
// Errors: CUTL_ERROR_SYSTEM; CUTL_ERROR_UNSUPPORTED; CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER;
// CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// `context` must be NULL or a context that lives until the file and its timelines are destroyed.
cutl_result cutl_file_create(struct CUctx_st *context, int32_t writable, struct cutl_file **out);

// Writes the file descriptor to `out` (on Windows the HANDLE), to be sent with SCM_RIGHTS or
// inherited. It stays the library's, and is open until the file is destroyed: do not close it.
//
// Errors: CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT; CUTL_ERROR_UNSUPPORTED.
cutl_result cutl_file_descriptor(const struct cutl_file *file, ptrdiff_t *out);

// Destroys the handle. The file lives until its timelines are destroyed as well.
//
// Errors: CUTL_ERROR_HANDLE.
cutl_result cutl_file_destroy(struct cutl_file *file);

// Makes device memory for timelines that other processes open by bytes alone. Prefer a file where
// a file descriptor can be sent: it guarantees more.
//
// Errors: CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// As for cutl_file_create.
cutl_result cutl_memory_create(struct CUctx_st *context, struct cutl_memory **out);

// Destroys the handle. Keep it until no process uses its timelines. The memory serves the next
// cutl_memory of the context, and is freed with the context.
//
// Errors: CUTL_ERROR_HANDLE.
cutl_result cutl_memory_destroy(struct cutl_memory *memory);

// Makes a timeline that the stream advances. A stream may have several.
//
// Errors: CUTL_ERROR_PER_THREAD_STREAM; CUTL_ERROR_UNSUPPORTED; CUTL_ERROR_DRIVER;
// CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
cutl_result cutl_timeline_create(const struct cutl_stream *stream, struct cutl_timeline **out);

// Makes a timeline of the stream that every process with the file sees. The file may be destroyed
// before it.
//
// Errors: those of cutl_timeline_create; CUTL_ERROR_FULL; CUTL_ERROR_CONTEXT if the file is of
// another context than the stream; CUTL_ERROR_NO_THREAD.
cutl_result cutl_timeline_create_in_file(const struct cutl_stream *stream,
                                         const struct cutl_file *file,
                                         struct cutl_timeline **out);

// Makes a timeline of the stream in device memory, which other processes of the same user on the
// same device open by the bytes of its descriptor.
//
// Errors: those of cutl_timeline_create; CUTL_ERROR_FULL; CUTL_ERROR_CONTEXT if the memory is of
// another context than the stream.
cutl_result cutl_timeline_create_in_memory(const struct cutl_stream *stream,
                                           const struct cutl_memory *memory,
                                           struct cutl_timeline **out);

// Makes a timeline that the host advances, in a context; NULL is the current one.
//
// Errors: CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// `context` must be NULL or a context that lives until the timeline is destroyed.
cutl_result cutl_timeline_create_host(struct CUctx_st *context, struct cutl_timeline **out);

// Makes a timeline that the host advances and that every process with the file sees.
//
// Errors: CUTL_ERROR_FULL; CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
cutl_result cutl_timeline_create_host_in_file(const struct cutl_file *file,
                                              struct cutl_timeline **out);

// Opens a timeline of another process by its file: `file` is the file descriptor that was received
// (on Windows the HANDLE), `bytes` the timeline's descriptor. Streams of `context`, and of others,
// can wait for it; NULL is the current context. The file descriptor stays the caller's, who may
// close it at once. Any bytes and any file are refused or harmless.
//
// Errors: CUTL_ERROR_DESCRIPTOR; CUTL_ERROR_FILE; CUTL_ERROR_SYSTEM; CUTL_ERROR_CONTEXT;
// CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_UNSUPPORTED; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// `context` as for cutl_timeline_create_host. `bytes` must be NULL or have `length` bytes.
cutl_result cutl_timeline_open(struct CUctx_st *context,
                               ptrdiff_t file,
                               const uint8_t *bytes,
                               size_t length,
                               struct cutl_timeline **out);

// Opens a timeline of another process by the bytes of its descriptor alone, in a context of its
// device; NULL is the current one.
//
// Errors: CUTL_ERROR_DESCRIPTOR, also for a timeline of this process; CUTL_ERROR_FILE if the memory
// was freed; CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
//
// # Safety
//
// `context` and `bytes` as for cutl_timeline_open. The bytes must come from a process that you
// trust, and that keeps its cutl_memory until this timeline is destroyed or that process ends: the
// driver does not detect a forged descriptor.
cutl_result cutl_timeline_open_memory(struct CUctx_st *context,
                                      const uint8_t *bytes,
                                      size_t length,
                                      struct cutl_timeline **out);

// Signals the next value, and writes its point to `out`: a timeline of a stream after all work that
// is in the stream now, a timeline of the host at once. Any thread may signal.
//
// Errors: CUTL_ERROR_CAPTURE if the stream captures; CUTL_ERROR_POISONED beside
// cutl_timeline_poison; CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE, also for an imported timeline;
// CUTL_ERROR_ARGUMENT.
cutl_result cutl_timeline_signal(const struct cutl_timeline *timeline, struct cutl_point *out);

// Writes the point of a value to `out`, for an imported timeline. The value is one that the other
// process has sent after its signal; a wait for a value that it never signals ends when that
// process ends or destroys the timeline. By memory the call submits work, and blocks while 256
// points are pending.
//
// Errors: CUTL_ERROR_EXPORTER_GONE and CUTL_ERROR_POISONED (by memory); CUTL_ERROR_NO_THREAD;
// CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE, also for a timeline of this process; CUTL_ERROR_ARGUMENT.
cutl_result cutl_timeline_point(const struct cutl_timeline *timeline,
                                uint64_t value,
                                struct cutl_point *out);

// Writes the value of the last point that was reached to `out`, with one load.
//
// Errors: CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
cutl_result cutl_timeline_completed(const struct cutl_timeline *timeline, uint64_t *out);

// Makes all later work in the stream wait for a value of a timeline of this process that may not be
// signalled yet. It can deadlock: streams share hardware channels, and work that must run before
// the signal may be queued after this wait. For most uses cutl_stream_wait is right.
//
// Errors: those of cutl_stream_wait; CUTL_ERROR_HANDLE also for an imported timeline.
cutl_result cutl_timeline_wait_ahead(const struct cutl_timeline *timeline,
                                     const struct cutl_stream *stream,
                                     uint64_t value);

// Copies the descriptor, which names the timeline in other processes, to `buffer`, and its length
// to `length`: CUTL_FILE_TIMELINE_BYTES or CUTL_MEMORY_TIMELINE_BYTES. It holds no pointers.
//
// Errors: CUTL_ERROR_ARGUMENT if `capacity` is too small (`length` is written), or if the timeline
// is not shared; CUTL_ERROR_HANDLE.
//
// # Safety
//
// `buffer` must be NULL or have room for `capacity` bytes.
cutl_result cutl_timeline_descriptor(const struct cutl_timeline *timeline,
                                     uint8_t *buffer,
                                     size_t capacity,
                                     size_t *length);

// Writes the state of the process that made an imported timeline to `out`. Waits look for its end
// by themselves.
//
// Errors: CUTL_ERROR_HANDLE, also for a timeline of this process; CUTL_ERROR_ARGUMENT.
cutl_result cutl_timeline_exporter(const struct cutl_timeline *timeline, cutl_exporter *out);

// Reports that the process which made an imported timeline has ended, and releases all waits. For
// timelines opened by memory in another pid namespace, where the end cannot be seen. It releases
// other importers as well: call it only after that end.
//
// Errors: CUTL_ERROR_HANDLE, also for a timeline of this process.
cutl_result cutl_timeline_exporter_ended(const struct cutl_timeline *timeline);

// Ends a timeline of this process now, releases all waits for values that are not reached with
// CUTL_ERROR_POISONED, and destroys the handle, also if an error is returned. A signal of another
// thread may be under way, even one that the driver blocks until this call releases a stream.
//
// Errors: CUTL_ERROR_HANDLE, also for an imported timeline, which stays; CUTL_ERROR_DRIVER.
cutl_result cutl_timeline_poison(struct cutl_timeline *timeline);

// Destroys a timeline. It never waits for work. Points with a pending signal are reached when the
// stream gets there; waits ahead, and waits in other processes, end after the last signal. If it
// holds the last share of a primary context, the driver destroys that, which waits for its work.
//
// Errors: CUTL_ERROR_HANDLE.
cutl_result cutl_timeline_destroy(struct cutl_timeline *timeline);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CUDA_TIMELINES_H */
