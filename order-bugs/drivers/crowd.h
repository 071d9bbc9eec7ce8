// What the native drivers share: how a late end of a blocking upload is made to show.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef MENDED
static const bool mended = true;
#else
static const bool mended = false;
#endif
static bool held_back = false;

static void options(int count, char** values) {
  for (int i = 1; i < count; ++i) held_back |= !strcmp(values[i], "--delay");
}

static int not_run(const char* why) {
  printf("NOT RUN: %s\n", why);
  fflush(stdout);
  _Exit(3);
}

#define MUST(call)                                                        \
  do {                                                                    \
    cudaError_t status_ = (call);                                         \
    if (status_ != cudaSuccess) not_run(cudaGetErrorString(status_));     \
  } while (0)

// Fills the copy engines with uploads of another stream, so that what is queued there arrives late.
static void crowd() {
  static cudaStream_t streams[4];
  static char *host, *device;
  const size_t size = size_t(256) << 20;
  if (!host) {
    MUST(cudaMallocHost(&host, size));
    MUST(cudaMalloc(&device, size));
    for (auto& stream : streams) MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  for (int i = 0; i < 16; ++i)
    MUST(cudaMemcpyAsync(device, host, size, cudaMemcpyHostToDevice, streams[i % 4]));
}

// cudaMemcpy, with the wait that is missing after it.
static cudaError_t upload(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  if (held_back && kind == cudaMemcpyHostToDevice) crowd();
  cudaError_t status = cudaMemcpy(to, from, size, kind);
  if (mended && kind == cudaMemcpyHostToDevice) cudaStreamSynchronize(cudaStreamLegacy);
  return status;
}
