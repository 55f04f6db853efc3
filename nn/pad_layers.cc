#include "nn/pad_layers.h"

#include "core/base/check.h"
#include "core/ops/image/pad.h"
#include "core/ops/view/shape.h"
#include "nn/padded.h"

namespace lockstep::nn {

namespace {

/// x with its other end before its beginning, and the other way round.
Tensor padded_around(const Tensor& x, IntList pairs) {
  Tensor result = x;
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    const int64_t dim = x.dim() - 1 - static_cast<int64_t>(i);
    const int64_t size = x.size(dim);
    const int64_t before = pairs[2 * i];
    const int64_t after = pairs[2 * i + 1];
    LS_CHECK(before >= 0 && before <= size && after >= 0 && after <= size, ShapeError,
             "[padding] circular: expected 0 to {} elements, the size of dimension {}, got {} and "
             "{}.",
             size, dim, before, after);
    if (before == 0 && after == 0) continue;
    result =
        cat({result.slice(dim, size - before, size), result, result.slice(dim, 0, after)}, dim);
  }
  return result;
}

}  // namespace

Tensor padded(const Tensor& x, IntList pairs, PaddingMode mode, double value) {
  LS_CHECK(2 * x.dim() >= static_cast<int64_t>(pairs.size()), ShapeError,
           "[padding] expected an input of at least {} dimensions, got {}.", pairs.size() / 2,
           x.shape());
  switch (mode) {
    case PaddingMode::kReflect:
      return reflection_pad(x, pairs);
    case PaddingMode::kReplicate:
      return replication_pad(x, pairs);
    case PaddingMode::kCircular:
      return padded_around(x, pairs);
    case PaddingMode::kZeros:
      break;
  }
  return constant_pad_nd(x, pairs, value);
}

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
