// ppl.cv 135: without a border, copyMakeBorder copies in the legacy stream, not in the caller's.
#include "crowd.h"

#ifdef MENDED
// The copy in the stream of the call.
#define cudaMemcpy(to, from, size, kind) cudaMemcpyAsync(to, from, size, kind, stream)
#endif
#include "src/ppl/cv/cuda/copymakeborder.cu"
#undef cudaMemcpy

__global__ void fill(float* data, int size, float value, long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) data[i] = value;
}

int main(int count, char** values) {
  options(count, values);
  const int rows = 1024, columns = 1024, size = rows * columns, rounds = 20;
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float *from, *to, *host;
  int wrong = 0;
  MUST(cudaMalloc(&from, size * sizeof(float)));
  MUST(cudaMalloc(&to, size * sizeof(float)));
  MUST(cudaMallocHost(&host, size * sizeof(float)));
  for (int round = 1; round <= rounds; ++round) {
    MUST(cudaDeviceSynchronize());
    fill<<<size / 256, 256, 0, stream>>>(from, size, float(round), held_back ? 2000000 : 20000);
    ppl::cv::cuda::CopyMakeBorder<float, 1>(stream, rows, columns, columns, from, columns, to, 0, 0,
                                            0, 0, ppl::cv::BORDER_CONSTANT, 0.f);
    MUST(cudaMemcpyAsync(host, to, size * sizeof(float), cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    bool right = true;
    for (int i = 0; i < size; i += 1021) right &= host[i] == float(round);
    wrong += !right;
  }
  MUST(cudaDeviceSynchronize());
  printf("wrong: %d of %d\n", wrong, rounds);
}
