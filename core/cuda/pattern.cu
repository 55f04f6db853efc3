#include "core/cuda/kernel.cuh"
#include "core/cuda/pattern_word.h"

using lockstep::cuda::Pattern;
using lockstep::cuda::pattern_word;
using lockstep::cuda::PatternCheck;

namespace {

__device__ uint64_t first_word() { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ uint64_t all_threads() { return uint64_t{gridDim.x} * blockDim.x; }

}  // namespace

LS_CUDA_KERNEL(fill_pattern, Pattern, 256) {
  for (uint64_t i = first_word(); i < p.count; i += all_threads()) {
    p.words[i] = pattern_word(p.seed, i);
  }
}

LS_CUDA_KERNEL(count_wrong, PatternCheck, 256) {
  unsigned long long mine = 0;
  for (uint64_t i = first_word(); i < p.count; i += all_threads()) {
    mine += p.words[i] != pattern_word(p.seed, i);
  }
  if (mine != 0) atomicAdd(p.wrong, mine);
}
