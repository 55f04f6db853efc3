#include "core/tensor/memory_overlap.h"

#include <algorithm>
#include <span>

namespace lockstep {

Footprint::Footprint(const void* address, size_t bytes)
    : begin_(reinterpret_cast<uintptr_t>(address)), end_(begin_ + bytes) {
  if (bytes > 0) steps_.push_back({1, static_cast<int64_t>(bytes)});
}

Footprint::Footprint(const TensorArg& tensor) {
  if (tensor.numel == 0) return;
  const int64_t item = static_cast<int64_t>(size_of(tensor.dtype));
  int64_t begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.address));
  SmallVector<Steps, 8> rising;
  for (int i = 0; i < tensor.rank; ++i) {
    Steps steps{tensor.stride(i) * item, tensor.size(i)};
    if (steps.count == 1 || steps.stride == 0) continue;
    if (steps.stride < 0) {
      begin += steps.reach();
      steps.stride = -steps.stride;
    }
    rising.push_back(steps);
  }
  std::sort(rising.begin(), rising.end(),
            [](const Steps& x, const Steps& y) { return x.stride < y.stride; });
  // From the element outwards: a stride that leaves no gap extends the contiguous run, and one that
  // continues the previous steps extends those.
  SmallVector<Steps, 8> merged{{1, item}};
  for (const Steps& next : rising) {
    Steps& last = merged.back();
    if (merged.size() == 1 && next.stride <= last.count) {
      last.count += next.reach();
    } else if (merged.size() > 1 && next.stride == last.stride * last.count) {
      last.count *= next.count;
    } else {
      merged.push_back(next);
    }
  }
  int64_t reach = 0;
  for (size_t i = merged.size(); i-- > 0;) {
    steps_.push_back(merged[i]);
    reach += merged[i].reach();
  }
  begin_ = static_cast<uintptr_t>(begin);
  end_ = begin_ + static_cast<uintptr_t>(reach) + 1;
}

struct FootprintOverlap {
  using Steps = Footprint::Steps;

  /// Whether `target` is a sum of one place of each of `steps`, which are sorted by falling stride.
  /// Decrements `budget` for each place it tries.
  static Overlap reachable(std::span<const Steps> steps, int64_t target, int& budget) {
    if (steps.empty()) return target == 0 ? Overlap::kYes : Overlap::kNo;
    int64_t rest = 0;
    for (const Steps& inner : steps.subspan(1)) rest += inner.reach();
    const int64_t stride = steps[0].stride;
    if (target < 0 || target > rest + steps[0].reach()) return Overlap::kNo;
    const int64_t first = target > rest ? (target - rest + stride - 1) / stride : 0;
    const int64_t last = std::min(steps[0].count - 1, target / stride);
    for (int64_t i = first; i <= last; ++i) {
      if (--budget < 0) return Overlap::kUnknown;
      const Overlap found = reachable(steps.subspan(1), target - i * stride, budget);
      if (found != Overlap::kNo) return found;
    }
    return Overlap::kNo;
  }

  static Overlap of(const Footprint& a, const Footprint& b) {
    // A place of a equals one of b if a sum of a's steps minus a sum of b's is the distance between
    // their begins. Counting b's places from its far end turns this into one sum.
    SmallVector<Steps, 12> steps;
    for (const Steps& each : a.steps_) steps.push_back(each);
    for (const Steps& each : b.steps_) steps.push_back(each);
    std::sort(steps.begin(), steps.end(),
              [](const Steps& x, const Steps& y) { return x.stride > y.stride; });
    SmallVector<Steps, 12> merged;
    for (const Steps& next : steps) {
      if (!merged.empty() && merged.back().stride == next.stride) {
        merged.back().count += next.count - 1;
      } else {
        merged.push_back(next);
      }
    }
    int budget = 10000;
    const int64_t target = static_cast<int64_t>(b.end_ - 1) - static_cast<int64_t>(a.begin_);
    return reachable(std::span<const Steps>(merged.data(), merged.size()), target, budget);
  }
};

Overlap overlap(const Footprint& a, const Footprint& b) {
  if (a.empty() || b.empty() || a.end() <= b.begin() || b.end() <= a.begin()) return Overlap::kNo;
  if (!a.has_gaps() && !b.has_gaps()) return Overlap::kYes;
  return FootprintOverlap::of(a, b);
}

}  // namespace lockstep
