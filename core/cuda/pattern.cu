#include "core/cuda/pattern_word.h"

using lockstep::cuda::pattern_word;

namespace {

__device__ uint64_t first_word() { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ uint64_t all_threads() { return uint64_t{gridDim.x} * blockDim.x; }

}  // namespace

extern "C" __global__ void fill_pattern(uint64_t* words, uint64_t count, uint64_t seed) {
  for (uint64_t i = first_word(); i < count; i += all_threads()) words[i] = pattern_word(seed, i);
}

extern "C" __global__ void count_wrong(const uint64_t* words, uint64_t count, uint64_t seed,
                                       unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (uint64_t i = first_word(); i < count; i += all_threads()) {
    mine += words[i] != pattern_word(seed, i);
  }
  if (mine != 0) atomicAdd(wrong, mine);
}
