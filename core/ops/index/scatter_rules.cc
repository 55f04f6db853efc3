#include "core/ops/index/scatter_rules.h"

#include "core/base/check.h"
#include "core/ops/index/index_checks.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

namespace {

Outputs like_self(const Tensor& self) { return one(to_dims(self.sizes()), self.dtype()); }

void check_scatter(std::string_view op, const Tensor& self, int64_t dim, const Tensor& index,
                   const Tensor& src) {
  check_places(op, index);
  check_same_dtype(op, self, src);
  check_covers(op, "self", self, index, wrap_dim(op, dim, self.dim()));
  check_covers(op, "src", src, index, -1);
}

void check_vector(std::string_view op, const Tensor& index) {
  LS_CHECK(index.dtype() == DType::kI64, DTypeError,
           "[{}] an index must be int64, got {}. Cast it with to(DType::kI64).", op,
           to_string(index.dtype()));
  LS_CHECK(index.dim() <= 1, ShapeError,
           "[{}] the index must have one dimension, got shape {}. Use flatten().", op,
           index.shape());
}

}  // namespace

ScatterReduction scatter_reduction(std::string_view reduce) {
  constexpr std::pair<std::string_view, ScatterReduction> kNames[] = {
      {"sum", ScatterReduction::kSum},   {"prod", ScatterReduction::kProd},
      {"mean", ScatterReduction::kMean}, {"amax", ScatterReduction::kAmax},
      {"amin", ScatterReduction::kAmin}, {"max", ScatterReduction::kAmax},
      {"min", ScatterReduction::kAmin}};
  for (const auto& [name, reduction] : kNames) {
    if (name == reduce) return reduction;
  }
  throw Error(fmt::format(
      "[scatter_reduce] expected reduce to be sum, prod, mean, amax or amin, got \"{}\".", reduce));
}

Outputs scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter", self, dim, index, src);
  return like_self(self);
}

Outputs scatter_value(const Tensor& self, int64_t dim, const Tensor& index, Scalar) {
  check_places("scatter", index);
  check_covers("scatter", "self", self, index, wrap_dim("scatter", dim, self.dim()));
  return like_self(self);
}

Outputs scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce, bool) {
  check_scatter("scatter_reduce", self, dim, index, src);
  const bool mean = scatter_reduction(reduce) == ScatterReduction::kMean;
  LS_CHECK(!mean || self.dtype() != DType::kBool, DTypeError,
           "[scatter_reduce] bools have no mean. Cast them with to(dtype).");
  return like_self(self);
}

Outputs index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_vector("index_copy", index);
  check_same_dtype("index_copy", self, source);
  const int64_t d = wrap_dim("index_copy", dim, self.dim());
  Dims wanted = to_dims(self.sizes());
  if (self.dim() > 0) wanted[d] = index.numel();
  const bool one_each = self.dim() <= 1 && source.dim() == 0 && index.numel() == 1;
  const bool vector_of_one =
      self.dim() == 0 && source.dim() == 1 && source.numel() == 1 && index.numel() == 1;
  LS_CHECK(one_each || vector_of_one || (self.dim() > 0 && same(source.sizes(), wanted)),
           ShapeError, "[index_copy] the source does not fit: expected shape {}, got {}.",
           to_string(wanted), source.shape());
  return like_self(self);
}

Outputs index_fill(const Tensor& self, int64_t dim, const Tensor& index, Scalar) {
  check_vector("index_fill", index);
  wrap_dim("index_fill", dim, self.dim());
  Outputs outputs = like_self(self);
  keep_layout(outputs.specs[0], self);
  return outputs;
}

}  // namespace lockstep::rules
