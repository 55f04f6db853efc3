#include "kernels/cpu/loss/class_targets.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::cpu {

std::vector<int64_t> read_targets(std::string_view op, const In& target, int64_t classes,
                                  int64_t ignore_index) {
  std::vector<int64_t> targets(static_cast<size_t>(target.numel));
  for (int64_t i = 0; i < target.numel; ++i) {
    const int64_t value = target.dtype == DType::kI64   ? target.data<int64_t>()[i]
                          : target.dtype == DType::kI32 ? target.data<int32_t>()[i]
                                                        : target.data<uint8_t>()[i];
    const bool ignored = value == ignore_index;
    LS_CHECK(ignored || (value >= 0 && value < classes), IndexError,
             "[{}] target out of range: expected a class in [0, {}) or ignore_index {}, got {} at "
             "position {}.",
             op, classes, ignore_index, value, i);
    targets[static_cast<size_t>(i)] = ignored ? kIgnoredClass : value;
  }
  return targets;
}

int64_t count_used(const std::vector<int64_t>& targets) {
  return static_cast<int64_t>(targets.size()) -
         std::count(targets.begin(), targets.end(), kIgnoredClass);
}

}  // namespace lockstep::cpu
