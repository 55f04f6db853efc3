#include "data/sample_source.h"

#include <algorithm>

#include "core/base/check.h"
#include "data/token_source.h"

namespace lockstep::train {
namespace {

std::span<float> row_of(const SampleSource& source, std::span<float> inputs, size_t row) {
  const auto width = static_cast<size_t>(source.features());
  return inputs.subspan(row * width, width);
}

}  // namespace

void fill_samples(const SampleSource& source, int64_t step, int64_t first, std::span<float> inputs,
                  std::span<int64_t> labels) {
  LS_ASSERT(std::ssize(inputs) == std::ssize(labels) * source.features());
  for (size_t row = 0; row < labels.size(); ++row) {
    labels[row] =
        source.sample(step, first + static_cast<int64_t>(row), row_of(source, inputs, row));
  }
}

int64_t fill_held_out(const SampleSource& source, int64_t first, std::span<float> inputs,
                      std::span<int64_t> labels) {
  LS_ASSERT(std::ssize(inputs) == std::ssize(labels) * source.features());
  int64_t real = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const int64_t index = first + static_cast<int64_t>(row);
    const std::span<float> features = row_of(source, inputs, row);
    if (index < source.held_out_samples()) {
      labels[row] = source.held_out_sample(index, features);
      ++real;
    } else {
      std::ranges::fill(features, 0.0F);
      labels[row] = kIgnoredTarget;
    }
  }
  return real;
}

}  // namespace lockstep::train
