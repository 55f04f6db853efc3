#include "kernels/cuda/walk_plan.h"

#include "core/base/check.h"

namespace lockstep::cuda {

template <int kOperands>
Walk<kOperands> plan_walk(IntList sizes, const IntList (&strides)[kOperands]) {
  Walk<kOperands> walk{};
  const int64_t largest = count_elements(sizes);
  int64_t joined[Walk<kOperands>::kMaxRank] = {};
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    const int last = walk.rank - 1;
    bool joins = walk.rank > 0;
    for (int o = 0; joins && o < kOperands; ++o) {
      joins = strides[o][d] == walk.strides[o][last] * joined[last];
    }
    if (joins) {
      joined[last] *= sizes[d];
      continue;
    }
    LS_CHECK(walk.rank < Walk<kOperands>::kMaxRank, ShapeError,
             "[kernel] too many dimensions that are not neighbours in memory: expected at most {} "
             "on cuda. Reshape the tensors to fewer.",
             Walk<kOperands>::kMaxRank);
    joined[walk.rank] = sizes[d];
    for (int o = 0; o < kOperands; ++o) walk.strides[o][walk.rank] = strides[o][d];
    ++walk.rank;
  }
  for (int d = 0; d < walk.rank; ++d) {
    walk.sizes[d] = AnyDivider(joined[d] > 0 ? joined[d] : 1, largest);
  }
  return walk;
}

template Walk<1> plan_walk(IntList, const IntList (&)[1]);
template Walk<2> plan_walk(IntList, const IntList (&)[2]);

}  // namespace lockstep::cuda
