#include "core/ops/reduce/reduce_rules.h"

#include <cmath>

#include "core/base/check.h"

namespace lockstep::rules {

namespace {

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

/// A result of `dtype` that is also computed in that dtype.
Outputs computed(Dims sizes, DType dtype, const Tensor& self) {
  Outputs outputs = one(std::move(sizes), dtype);
  // Integers of any width are read as int64 by the kernel itself.
  const bool widens = dtype == DType::kI64 && !is_floating(self.dtype());
  if (!widens) outputs.compute = dtype;
  return outputs;
}

Outputs mean_of(const Tensor& self, IntList dims, bool keepdim, std::optional<DType> dtype) {
  const DType result = dtype.value_or(self.dtype());
  LS_CHECK(is_floating(result), DTypeError,
           "[mean] the mean of integers is not an integer: expected a floating dtype, got {}. Give "
           "dtype or cast with to(dtype).",
           to_string(result));
  return computed(reduced_sizes("mean", self, dims, keepdim), result, self);
}

/// Throws IndexError if a reduced dimension is empty, unless the result has no elements.
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

Outputs extreme(std::string_view op, const Tensor& self, IntList dims, bool keepdim) {
  check_not_empty(op, self, dims);
  return one(reduced_sizes(op, self, dims, keepdim), self.dtype());
}

Outputs extreme_index(std::string_view op, const Tensor& self, std::optional<int64_t> dim,
                      bool keepdim) {
  const Dims dims = dim ? Dims{*dim} : Dims{};
  check_not_empty(op, self, dims);
  return one(reduced_sizes(op, self, dims, keepdim), DType::kI64);
}

Outputs extreme_with_index(std::string_view op, const Tensor& self, int64_t dim, bool keepdim) {
  Outputs outputs = extreme(op, self, {dim}, keepdim);
  OutputSpec indices = outputs.specs[0];
  indices.dtype = DType::kI64;
  outputs.specs.push_back(std::move(indices));
  return outputs;
}

/// Rule of sum and prod: the result has the given dtype, by default int64 for bools and integers.
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

DType truth_dtype(const Tensor& self) {
  return self.dtype() == DType::kU8 ? DType::kU8 : DType::kBool;
}

}  // namespace

Outputs sum(const Tensor& self, std::optional<DType> dtype) {
  return total_of("sum", self, {}, false, dtype);
}
Outputs sum_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim,
                 std::optional<DType> dtype) {
  return total_of("sum", self, dims.value_or(IntList()), keepdim, dtype);
}
Outputs mean(const Tensor& self, std::optional<DType> dtype) {
  return mean_of(self, {}, false, dtype);
}
Outputs mean_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim,
                  std::optional<DType> dtype) {
  return mean_of(self, dims.value_or(IntList()), keepdim, dtype);
}

Outputs amax(const Tensor& self, IntList dims, bool keepdim) {
  return extreme("amax", self, dims, keepdim);
}
Outputs amin(const Tensor& self, IntList dims, bool keepdim) {
  return extreme("amin", self, dims, keepdim);
}
Outputs argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return extreme_index("argmax", self, dim, keepdim);
}
Outputs argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return extreme_index("argmin", self, dim, keepdim);
}
Outputs extreme_of_all(const Tensor& self) { return extreme("max/min", self, {}, false); }
Outputs max_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_with_index("max", self, dim, keepdim);
}
Outputs min_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return extreme_with_index("min", self, dim, keepdim);
}

Outputs truth(const Tensor& self) { return one({}, truth_dtype(self)); }
Outputs truth_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return one(reduced_sizes("any/all", self, {dim}, keepdim), truth_dtype(self));
}
Outputs truth_dims(const Tensor& self, std::optional<IntList> dims, bool keepdim) {
  if (dims && dims->empty()) return one(to_dims(self.sizes()), truth_dtype(self));
  return one(reduced_sizes("any/all", self, dims.value_or(IntList()), keepdim), truth_dtype(self));
}

Outputs cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return running("cumsum", self, dim, dtype);
}
Outputs cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return running("cumprod", self, dim, dtype);
}
Outputs linear_recurrence(const Tensor& decay, const Tensor& input, int64_t dim) {
  wrap_dim("_linear_recurrence", dim, input.dim());
  LS_CHECK(same(decay.sizes(), input.sizes()) && decay.dtype() == input.dtype() &&
               is_floating(input.dtype()),
           ShapeError,
           "[_linear_recurrence] expected decay and input of one shape and floating dtype, got {} "
           "and {}.",
           to_string(decay), to_string(input));
  return one(to_dims(input.sizes()), input.dtype());
}

Outputs prod(const Tensor& self, std::optional<DType> dtype) {
  return total_of("prod", self, {}, false, dtype);
}
Outputs prod_dim(const Tensor& self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return total_of("prod", self, {dim}, keepdim, dtype);
}

Outputs deviation(const Tensor& self, std::optional<IntList> dims, std::optional<Scalar>,
                  bool keepdim) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[std/var] expected a floating dtype, got {}. Cast it with to(dtype).", to_string(self));
  return one(reduced_sizes("std/var", self, dims.value_or(IntList()), keepdim), self.dtype());
}
Outputs var_mean(const Tensor& self, std::optional<IntList> dims, std::optional<Scalar> correction,
                 bool keepdim) {
  Outputs outputs = deviation(self, dims, correction, keepdim);
  const OutputSpec mean = outputs.specs[0];
  outputs.specs.push_back(mean);
  return outputs;
}

Outputs logcumsumexp(const Tensor& self, int64_t dim) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[logcumsumexp] expected a floating dtype, got {}. Cast it with to(dtype).",
           to_string(self));
  wrap_dim("logcumsumexp", dim, self.dim());
  return one(to_dims(self.sizes()), self.dtype());
}
Outputs logsumexp(const Tensor& self, IntList dims, bool keepdim) {
  const DType dtype = is_floating(self.dtype()) ? self.dtype() : DType::kF32;
  return one(reduced_sizes("logsumexp", self, dims, keepdim), dtype);
}

Outputs vector_norm(const Tensor& self, Scalar ord, std::optional<IntList> dims_or_all,
                    bool keepdim, std::optional<DType> dtype) {
  constexpr std::string_view kName = "linalg_vector_norm";
  const IntList dims = dims_or_all.value_or(IntList());
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[{}] expected a floating dtype, got {}. Cast it with to(dtype).", kName,
           to_string(self));
  const DType result = dtype.value_or(self.dtype());
  LS_CHECK(is_floating(result) && promote(self.dtype(), result) == result, DTypeError,
           "[{}] dtype must be floating and hold {} without loss, got {}.", kName,
           to_string(self.dtype()), to_string(result));
  if (ord.to_double() < 0 || ord.to_double() == INFINITY) check_not_empty(kName, self, dims);
  return one(reduced_sizes(kName, self, dims, keepdim), result);
}

}  // namespace lockstep::rules
