// cuda-samples, StreamPriorities: kernels of non-blocking streams read what cudaMemcpy may not have
// brought yet. The sample compares the results itself.
#include "crowd.h"
#include <helper_cuda.h>

#define exit(code) throw int(code)
#define cudaMemcpy upload
#define main upstream_main
#include "StreamPriorities.cu"
#undef main
#undef exit

int main(int count, char** values) {
  options(count, values);
  int code = 0;
  char* none[] = {values[0], nullptr};
  try {
    code = upstream_main(1, none);
  } catch (int ended) {
    code = ended;
  }
  printf("wrong: %d of 1\n", code != 0);
}
