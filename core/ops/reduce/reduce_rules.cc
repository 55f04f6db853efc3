#include "core/ops/reduce/reduce_rules.h"

#include "core/base/check.h"

namespace lockstep::rules {

Dims reduced_sizes(std::string_view op, const Tensor& self, IntList dims, bool keepdim) {
  const uint64_t mask = dim_mask(op, dims, self.dim());
  Dims sizes;
  for (int64_t i = 0; i < self.dim(); ++i) {
    const bool reduced = (mask >> i) & 1;
    if (!reduced) sizes.push_back(self.sizes()[i]);
    if (reduced && keepdim) sizes.push_back(1);
  }
  return sizes;
}

void check_not_empty(std::string_view op, const Tensor& self, IntList dims) {
  const uint64_t mask = dim_mask(op, dims, self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) {
    const bool reduced = (mask >> i) & 1;
    LS_CHECK(!reduced || self.sizes()[i] > 0, IndexError,
             "[{}] cannot choose from dimension {} of size 0: expected at least one element, got "
             "shape {}.",
             op, i, self.shape());
  }
}

Outputs computed(Dims sizes, DType dtype, const Tensor& self) {
  Outputs outputs = one(std::move(sizes), dtype);
  // Integers of any width are read as int64 by the kernel itself.
  const bool widens = dtype == DType::kI64 && !is_floating(self.dtype());
  if (!widens) outputs.compute = dtype;
  return outputs;
}

Outputs total_of(std::string_view op, const Tensor& self, IntList dims, bool keepdim,
                 std::optional<DType> dtype) {
  const DType natural = is_floating(self.dtype()) ? self.dtype() : DType::kI64;
  return computed(reduced_sizes(op, self, dims, keepdim), dtype.value_or(natural), self);
}

Outputs running(std::string_view op, const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  wrap_dim(op, dim, self.dim());
  const DType natural = is_floating(self.dtype()) ? self.dtype() : DType::kI64;
  Outputs outputs = one(to_dims(self.sizes()), dtype.value_or(natural));
  outputs.compute = outputs.specs[0].dtype;
  return outputs;
}

}  // namespace lockstep::rules
