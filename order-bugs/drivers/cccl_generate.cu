// CCCL 5889: thrust::generate returns before it has ended, and the host reads managed memory.
#include <thrust/execution_policy.h>
#include <thrust/generate.h>

#include "crowd.h"

struct Seven {
  long long cycles;
  __host__ __device__ int operator()() const {
#ifdef __CUDA_ARCH__
    long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
#endif
    return 7;
  }
};

int main(int count, char** values) {
  options(count, values);
  const int rounds = 20, size = 1 << 20;
  int *data, wrong = 0;
  MUST(cudaMallocManaged(&data, size * sizeof(int)));
  for (int round = 0; round < rounds; ++round) {
    MUST(cudaMemset(data, 0, size * sizeof(int)));
    MUST(cudaDeviceSynchronize());
    Seven seven{held_back ? 200000 : 0};
    thrust::generate(thrust::device, data, data + size, seven);
    wrong += data[size - 1] != 7;
    MUST(cudaDeviceSynchronize());
  }
  printf("wrong: %d of %d\n", wrong, rounds);
}
