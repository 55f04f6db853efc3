#include "core/ops/sort/sort_rules.h"

#include <limits>

#include "core/base/check.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

namespace {

/// Size of a dimension; 1 for a 0-d tensor.
int64_t size_at(const Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.sizes()[static_cast<size_t>(dim)];
}

Outputs values_and_indices(const Tensor& self, const Dims& sizes) {
  Outputs outputs = one(sizes, self.dtype());
  outputs.specs.push_back(one(sizes, DType::kI64).specs[0]);
  return outputs;
}

/// The shape of one element selected along `dim`.
Dims without(const Tensor& self, int64_t dim, bool keepdim) {
  Dims sizes = to_dims(self.sizes());
  if (self.dim() == 0) return sizes;
  if (keepdim) {
    sizes[static_cast<size_t>(dim)] = 1;
  } else {
    sizes.erase(static_cast<size_t>(dim));
  }
  return sizes;
}

/// Rule for selecting one element along `dim`. Throws IndexError if the dimension is empty.
Outputs one_along(std::string_view op, const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(op, dim, self.dim());
  LS_CHECK(size_at(self, d) > 0, IndexError,
           "[{}] cannot choose from dimension {} of size 0: expected at least one element, got "
           "shape {}.",
           op, d, self.shape());
  return values_and_indices(self, without(self, d, keepdim));
}

void refuse_bool(std::string_view op, const Tensor& self) {
  LS_CHECK(self.dtype() != DType::kBool, DTypeError,
           "[{}] a bool tensor is not accepted: expected numbers, got {}. Cast it with to(dtype).",
           op, to_string(self));
}

}  // namespace

Outputs sort(const Tensor& self, int64_t dim, bool) {
  wrap_dim("sort", dim, self.dim());
  Outputs outputs = values_and_indices(self, to_dims(self.sizes()));
  for (OutputSpec& spec : outputs.specs) keep_layout(spec, self);
  return outputs;
}

Outputs topk(const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  refuse_bool("topk", self);
  const int64_t d = wrap_dim("topk", dim, self.dim());
  LS_CHECK(k >= 0 && k <= size_at(self, d), IndexError,
           "[topk] k is out of range: expected one in [0, {}] for dimension {} of shape {}, got "
           "{}.",
           size_at(self, d), d, self.shape(), k);
  Dims sizes = to_dims(self.sizes());
  if (!sizes.empty()) sizes[static_cast<size_t>(d)] = k;
  return values_and_indices(self, sizes);
}

Outputs kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  refuse_bool("kthvalue", self);
  const int64_t d = wrap_dim("kthvalue", dim, self.dim());
  LS_CHECK(k >= 1 && k <= size_at(self, d), IndexError,
           "[kthvalue] k is out of range: expected one in [1, {}] for dimension {} of shape {}, "
           "got {}.",
           size_at(self, d), d, self.shape(), k);
  return values_and_indices(self, without(self, d, keepdim));
}

Outputs median(const Tensor& self) {
  refuse_bool("median", self);
  return one({}, self.dtype());
}

Outputs median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  refuse_bool("median", self);
  return one_along("median", self, dim, keepdim);
}
Outputs mode(const Tensor& self, int64_t dim, bool keepdim) {
  return one_along("mode", self, dim, keepdim);
}

Outputs searchsorted(const Tensor& sequence, const Tensor& self, bool out_int32, bool right,
                     std::optional<std::string_view> side, OptionalTensor sorter) {
  LS_CHECK(!side || *side == "left" || *side == "right", Error,
           "[searchsorted] unknown side: expected \"left\" or \"right\", got \"{}\".", *side);
  LS_CHECK(!(side == "left" && right), Error,
           "[searchsorted] side \"left\" contradicts right = true. Give one of them.");
  const DType common = promote(sequence.dtype(), self.dtype());
  LS_CHECK(common != DType::kBool, DTypeError,
           "[searchsorted] bools are not looked up. Cast them with to(dtype).");
  bool fits = sequence.dim() > 0;
  if (sequence.dim() > 1) fits = sequence.dim() == self.dim();
  for (int64_t i = 0; fits && sequence.dim() > 1 && i + 1 < self.dim(); ++i) {
    fits = sequence.sizes()[static_cast<size_t>(i)] == self.sizes()[static_cast<size_t>(i)];
  }
  LS_CHECK(fits, ShapeError,
           "[searchsorted] expected a sequence of one dimension, or with the leading sizes of the "
           "values; got shapes {} and {}.",
           sequence.shape(), self.shape());
  if (sorter) {
    LS_CHECK(same(sorter->sizes(), sequence.sizes()), ShapeError,
             "[searchsorted] the sorter needs the shape of the sequence: expected {}, got {}.",
             sequence.shape(), sorter->shape());
    LS_CHECK(sorter->dtype() == DType::kI64, DTypeError,
             "[searchsorted] the sorter must be int64, got {}.", to_string(sorter->dtype()));
  }
  LS_CHECK(!out_int32 || sequence.size(-1) < std::numeric_limits<int32_t>::max(), ShapeError,
           "[searchsorted] a sequence of {} elements is too long for int32 indices.",
           sequence.size(-1));
  Outputs outputs = one(to_dims(self.sizes()), out_int32 ? DType::kI32 : DType::kI64);
  if (sequence.dtype() != self.dtype()) {
    outputs.compute = common;
    outputs.cast_mask = 0b11;  // not the sorter
  }
  return outputs;
}

}  // namespace lockstep::rules
