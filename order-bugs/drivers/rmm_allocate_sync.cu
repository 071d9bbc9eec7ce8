// rmm 2156: allocate_sync returns memory whose allocation the legacy stream has not come to yet.
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>

#include "crowd.h"

__global__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

__global__ void add(int* data, int size, int number) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) data[i] += number;
}

int main(int count, char** values) {
  options(count, values);
  const int size = 1 << 20, rounds = 20;
  const size_t bytes = size * sizeof(int);
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  rmm::mr::cuda_async_memory_resource resource;
  int *kept, wrong = 0;
  MUST(cudaMallocHost(&kept, bytes));
  for (int round = 0; round < rounds; ++round) {
    // Memory that the legacy stream still works with, and frees behind that.
    void* old = resource.allocate_sync(bytes);
    MUST(cudaMemsetAsync(old, 0, bytes, cudaStreamLegacy));
    MUST(cudaDeviceSynchronize());
    if (held_back) spin<<<1, 1, 0, cudaStreamLegacy>>>(40000000);
    add<<<size / 256, 256, 0, cudaStreamLegacy>>>(static_cast<int*>(old), size, 7);
    MUST(cudaMemcpyAsync(kept, old, bytes, cudaMemcpyDeviceToHost, cudaStreamLegacy));
    resource.deallocate(rmm::cuda_stream_view{cudaStreamLegacy}, old, bytes);
    // The pool gives the same memory, in the legacy stream's order.
    void* data = resource.allocate_sync(bytes);
    MUST(cudaMemsetAsync(data, 1, bytes, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < size; i += 1021) right &= kept[i] == 7;
    wrong += !right;
    resource.deallocate(rmm::cuda_stream_view{stream}, data, bytes);
    MUST(cudaDeviceSynchronize());
  }
  printf("wrong: %d of %d\n", wrong, rounds);
}
