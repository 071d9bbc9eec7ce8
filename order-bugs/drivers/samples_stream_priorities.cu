// cuda-samples, StreamPriorities: kernels of non-blocking streams read what cudaMemcpy may not have
// brought yet. The sample compares the results itself. With --delay it has 4 MiB in place of 256,
// its memory is there before, and other uploads fill the copy engines.
#include "crowd.h"
#include <helper_cuda.h>

static void* blocks[4];
static int used = 0;

template <typename T>
static cudaError_t allocate(T** pointer, size_t size) {
  if (!held_back) return cudaMalloc(pointer, size);
  *pointer = static_cast<T*>(blocks[used++]);
  return cudaSuccess;
}

#define exit(code) throw int(code)
#define cudaMalloc allocate
#define cudaMemcpy upload
#define main upstream_main
namespace whole {
#include "StreamPriorities.cu"
}
namespace small {
#undef ERR_EQ
#undef ERR_NE
#include "small.cu"
}
#undef main
#undef cudaMalloc
#undef exit

static int code_of(int (*run)(int, char**), char* name) {
  char* none[] = {name, nullptr};
  try {
    return run(1, none);
  } catch (int ended) {
    return ended;
  }
}

int main(int count, char** values) {
  options(count, values);
  const size_t size = size_t(4) << 20;
  const int rounds = held_back ? 20 : 1;
  int wrong = 0;
  for (auto& block : blocks) MUST(cudaMalloc(&block, size));
  for (int round = 0; round < rounds; ++round) {
    used = 0;
    for (auto& block : blocks) MUST(cudaMemset(block, 0, size));
    MUST(cudaDeviceSynchronize());
    wrong += code_of(held_back ? small::upstream_main : whole::upstream_main, values[0]) != 0;
    MUST(cudaDeviceSynchronize());
  }
  printf("wrong: %d of %d\n", wrong, rounds);
}
