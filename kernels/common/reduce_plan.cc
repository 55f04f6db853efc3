#include "kernels/common/reduce_plan.h"

#include <utility>

namespace lockstep {

namespace {

/// Merges neighbouring axes that a single stride can walk.
void coalesce(Axes& axes) {
  Axes joined;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    if (!joined.empty() && joined.back().stride == axis.size * axis.stride) {
      joined.back() = {joined.back().size * axis.size, axis.stride};
    } else {
      joined.push_back(axis);
    }
  }
  axes = std::move(joined);
}

}  // namespace

ReducePlan plan_reduction(const In& self, uint64_t mask) {
  ReducePlan plan;
  for (int i = 0; i < self.rank; ++i) {
    const Axis axis{self.size(i), self.stride(i)};
    const bool reduced = (mask >> i) & 1;
    (reduced ? plan.reduced : plan.kept).push_back(axis);
    (reduced ? plan.count : plan.outputs) *= axis.size;
  }
  coalesce(plan.kept);
  // Insertion sort: std::stable_sort would allocate.
  for (size_t i = 1; i < plan.reduced.size(); ++i) {
    for (size_t j = i; j > 0 && plan.reduced[j - 1].stride < plan.reduced[j].stride; --j) {
      std::swap(plan.reduced[j - 1], plan.reduced[j]);
    }
  }
  coalesce(plan.reduced);
  if (plan.reduced.empty()) plan.reduced.push_back({1, 1});
  return plan;
}

}  // namespace lockstep
