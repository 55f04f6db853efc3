// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::all() const { return form<Tensor(const Tensor&), "all">()(*this); }
Tensor Tensor::all(int64_t dim, bool keepdim) const {
  return form<Tensor(const Tensor&, int64_t, bool), "all.dim">()(*this, dim, keepdim);
}
Tensor Tensor::all(OptionalIntList dim, bool keepdim) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool), "all.dims">()(*this, dim, keepdim);
}
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return form<bool(const Tensor&, const Tensor&, double, double, bool), "allclose">()(*this, other, rtol, atol, equal_nan);
}
Tensor Tensor::amax(IntList dim, bool keepdim) const {
  return form<Tensor(const Tensor&, IntList, bool), "amax">()(*this, dim, keepdim);
}
Tensor Tensor::amin(IntList dim, bool keepdim) const {
  return form<Tensor(const Tensor&, IntList, bool), "amin">()(*this, dim, keepdim);
}
std::tuple<Tensor, Tensor> Tensor::aminmax(std::optional<int64_t> dim, bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<int64_t>, bool), "aminmax">()(*this, dim, keepdim);
}
Tensor Tensor::any() const { return form<Tensor(const Tensor&), "any">()(*this); }
Tensor Tensor::any(int64_t dim, bool keepdim) const {
  return form<Tensor(const Tensor&, int64_t, bool), "any.dim">()(*this, dim, keepdim);
}
Tensor Tensor::any(OptionalIntList dim, bool keepdim) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool), "any.dims">()(*this, dim, keepdim);
}
Tensor Tensor::argmax(std::optional<int64_t> dim, bool keepdim) const {
  return form<Tensor(const Tensor&, std::optional<int64_t>, bool), "argmax">()(*this, dim, keepdim);
}
Tensor Tensor::argmin(std::optional<int64_t> dim, bool keepdim) const {
  return form<Tensor(const Tensor&, std::optional<int64_t>, bool), "argmin">()(*this, dim, keepdim);
}
Tensor Tensor::count_nonzero(std::optional<int64_t> dim) const {
  return form<Tensor(const Tensor&, std::optional<int64_t>), "count_nonzero">()(*this, dim);
}
Tensor Tensor::count_nonzero(IntList dim) const {
  return form<Tensor(const Tensor&, IntList), "count_nonzero.dim_IntList">()(*this, dim);
}
Tensor Tensor::cumprod(int64_t dim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, int64_t, std::optional<DType>), "cumprod">()(*this, dim, dtype);
}
const Tensor& Tensor::cumprod_(int64_t dim, std::optional<DType> dtype) const {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>), "cumprod_">()(*this, dim, dtype);
}
Tensor Tensor::cumsum(int64_t dim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, int64_t, std::optional<DType>), "cumsum">()(*this, dim, dtype);
}
const Tensor& Tensor::cumsum_(int64_t dim, std::optional<DType> dtype) const {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>), "cumsum_">()(*this, dim, dtype);
}
bool Tensor::equal(const Tensor& other) const {
  return form<bool(const Tensor&, const Tensor&), "equal">()(*this, other);
}
std::vector<Tensor> Tensor::gradient(IntList dim, int64_t edge_order) const {
  return form<std::vector<Tensor>(const Tensor&, IntList, int64_t), "gradient.array">()(*this, dim, edge_order);
}
std::vector<Tensor> Tensor::gradient(const Scalar& spacing, IntList dim, int64_t edge_order) const {
  return form<std::vector<Tensor>(const Tensor&, Scalar, IntList, int64_t), "gradient.scalararray">()(*this, spacing, dim, edge_order);
}
std::vector<Tensor> Tensor::gradient(std::optional<Scalar> spacing, std::optional<int64_t> dim,
                                     int64_t edge_order) const {
  return form<std::vector<Tensor>(const Tensor&, std::optional<Scalar>, std::optional<int64_t>, int64_t), "gradient.scalarint">()(*this, spacing, dim, edge_order);
}
bool Tensor::is_nonzero() const { return form<bool(const Tensor&), "is_nonzero">()(*this); }
Tensor Tensor::linalg_vector_norm(const Scalar& ord, OptionalIntList dim, bool keepdim,
                                  std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, Scalar, std::optional<IntList>, bool, std::optional<DType>), "linalg_vector_norm">()(*this, ord, dim, keepdim, dtype);
}
Tensor Tensor::logcumsumexp(int64_t dim) const {
  return form<Tensor(const Tensor&, int64_t), "logcumsumexp">()(*this, dim);
}
Tensor Tensor::logsumexp(IntList dim, bool keepdim) const {
  return form<Tensor(const Tensor&, IntList, bool), "logsumexp">()(*this, dim, keepdim);
}
Tensor Tensor::max() const { return form<Tensor(const Tensor&), "max">()(*this); }
std::tuple<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool), "max.dim">()(*this, dim, keepdim);
}
Tensor Tensor::mean(std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::optional<DType>), "mean">()(*this, dtype);
}
Tensor Tensor::mean(OptionalIntList dim, bool keepdim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DType>), "mean.dim">()(*this, dim, keepdim, dtype);
}
Tensor Tensor::min() const { return form<Tensor(const Tensor&), "min">()(*this); }
std::tuple<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool), "min.dim">()(*this, dim, keepdim);
}
Tensor Tensor::nanmean(OptionalIntList dim, bool keepdim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DType>), "nanmean">()(*this, dim, keepdim, dtype);
}
Tensor Tensor::nansum(OptionalIntList dim, bool keepdim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DType>), "nansum">()(*this, dim, keepdim, dtype);
}
Tensor Tensor::norm(const Scalar& p) const {
  return form<Tensor(const Tensor&, Scalar), "norm.Scalar">()(*this, p);
}
Tensor Tensor::norm(std::optional<Scalar> p, IntList dim, bool keepdim) const {
  return form<Tensor(const Tensor&, std::optional<Scalar>, IntList, bool), "norm.ScalarOpt_dim">()(*this, p, dim, keepdim);
}
Tensor Tensor::norm(std::optional<Scalar> p, IntList dim, bool keepdim, DType dtype) const {
  return form<Tensor(const Tensor&, std::optional<Scalar>, IntList, bool, DType), "norm.ScalarOpt_dim_dtype">()(*this, p, dim, keepdim, dtype);
}
Tensor Tensor::norm(std::optional<Scalar> p, DType dtype) const {
  return form<Tensor(const Tensor&, std::optional<Scalar>, DType), "norm.ScalarOpt_dtype">()(*this, p, dtype);
}
Tensor Tensor::prod(std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::optional<DType>), "prod">()(*this, dtype);
}
Tensor Tensor::prod(int64_t dim, bool keepdim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, int64_t, bool, std::optional<DType>), "prod.dim_int">()(*this, dim, keepdim, dtype);
}
Tensor Tensor::renorm(const Scalar& p, int64_t dim, const Scalar& maxnorm) const {
  return form<Tensor(const Tensor&, Scalar, int64_t, Scalar), "renorm">()(*this, p, dim, maxnorm);
}
const Tensor& Tensor::renorm_(const Scalar& p, int64_t dim, const Scalar& maxnorm) const {
  return form<const Tensor&(const Tensor&, Scalar, int64_t, Scalar), "renorm_">()(*this, p, dim, maxnorm);
}
Tensor Tensor::std(OptionalIntList dim, std::optional<Scalar> correction, bool keepdim) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool), "std.correction">()(*this, dim, correction, keepdim);
}
std::tuple<Tensor, Tensor> Tensor::std_mean(OptionalIntList dim, std::optional<Scalar> correction,
                                            bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool), "std_mean.correction">()(*this, dim, correction, keepdim);
}
Tensor Tensor::sum(std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::optional<DType>), "sum">()(*this, dtype);
}
Tensor Tensor::sum(OptionalIntList dim, bool keepdim, std::optional<DType> dtype) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool, std::optional<DType>), "sum.dim_IntList">()(*this, dim, keepdim, dtype);
}
Tensor Tensor::sum_to_size(IntList size) const {
  return form<Tensor(const Tensor&, IntList), "sum_to_size">()(*this, size);
}
Tensor Tensor::var(OptionalIntList dim, std::optional<Scalar> correction, bool keepdim) const {
  return form<Tensor(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool), "var.correction">()(*this, dim, correction, keepdim);
}
std::tuple<Tensor, Tensor> Tensor::var_mean(OptionalIntList dim, std::optional<Scalar> correction,
                                            bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool), "var_mean.correction">()(*this, dim, correction, keepdim);
}

}  // namespace lockstep
