#include "data/token_source.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::train {
namespace {

int64_t rows(int64_t length, std::span<int64_t> inputs, std::span<int64_t> targets) {
  LS_CHECK(length > 0 && inputs.size() == targets.size() &&
               inputs.size() % static_cast<size_t>(length) == 0,
           DataError,
           "[data] buffers of {} inputs and {} targets do not hold whole sequences of length {}.",
           inputs.size(), targets.size(), length);
  return static_cast<int64_t>(inputs.size()) / length;
}

std::span<int64_t> row(std::span<int64_t> buffer, int64_t index, int64_t length) {
  return buffer.subspan(static_cast<size_t>(index * length), static_cast<size_t>(length));
}

}  // namespace

int64_t fill_validation(const TokenSource& source, int64_t first, int64_t length,
                        std::span<int64_t> inputs, std::span<int64_t> targets) {
  const int64_t count = rows(length, inputs, targets);
  const int64_t windows = source.validation_windows(length);
  int64_t real = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto input_row = row(inputs, i, length);
    const auto target_row = row(targets, i, length);
    if (first + i < windows) {
      real += source.validation_window(first + i, input_row, target_row);
    } else {
      std::ranges::fill(input_row, 0);
      std::ranges::fill(target_row, kIgnoredTarget);
    }
  }
  return real;
}

}  // namespace lockstep::train
