#include "nn/pad_layers.h"

#include "core/base/check.h"
#include "nn/padded.h"

namespace lockstep::nn {

Padding::Padding(size_t spatial, std::initializer_list<int64_t> padding, PaddingMode mode,
                 double value)
    : pairs_(padding), mode_(mode), value_(value) {
  LS_CHECK(padding.size() == 1 || padding.size() == 2 * spatial, ShapeError,
           "[padding] expected one number or {}, got {}.", 2 * spatial, padding.size());
  while (pairs_.size() < 2 * spatial) pairs_.push_back(pairs_[0]);
}

Tensor Padding::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return padded(input, pairs_, mode_, value_); },
                     x);
}

}  // namespace lockstep::nn
