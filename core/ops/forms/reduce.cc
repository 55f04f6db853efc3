#include "core/ops/forms/reduce.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& all_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "all.all_out">()(self, out);
}
Tensor all(const Tensor& self, OptionalIntList dim, bool keepdim) {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool), "all.dims">()(self, dim, keepdim);
}
const Tensor& all_out(const Tensor& out, const Tensor& self, OptionalIntList dim, bool keepdim) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, bool, const Tensor&), "all.dims_out">()(self, dim, keepdim, out);
}
const Tensor& all_out(const Tensor& out, const Tensor& self, int64_t dim, bool keepdim) {
  return form<const Tensor&(const Tensor&, int64_t, bool, const Tensor&), "all.out">()(self, dim, keepdim, out);
}
const Tensor& amax_out(const Tensor& out, const Tensor& self, IntList dim, bool keepdim) {
  return form<const Tensor&(const Tensor&, IntList, bool, const Tensor&), "amax.out">()(self, dim, keepdim, out);
}
const Tensor& amin_out(const Tensor& out, const Tensor& self, IntList dim, bool keepdim) {
  return form<const Tensor&(const Tensor&, IntList, bool, const Tensor&), "amin.out">()(self, dim, keepdim, out);
}
std::tuple<Tensor, Tensor> aminmax_out(const Tensor& min, const Tensor& max, const Tensor& self,
                                       std::optional<int64_t> dim, bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<int64_t>, bool, const Tensor&, const Tensor&), "aminmax.out">()(self, dim, keepdim, min, max);
}
const Tensor& any_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "any.all_out">()(self, out);
}
Tensor any(const Tensor& self, OptionalIntList dim, bool keepdim) {
  return form<Tensor(const Tensor&, std::optional<IntList>, bool), "any.dims">()(self, dim, keepdim);
}
const Tensor& any_out(const Tensor& out, const Tensor& self, OptionalIntList dim, bool keepdim) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, bool, const Tensor&), "any.dims_out">()(self, dim, keepdim, out);
}
const Tensor& any_out(const Tensor& out, const Tensor& self, int64_t dim, bool keepdim) {
  return form<const Tensor&(const Tensor&, int64_t, bool, const Tensor&), "any.out">()(self, dim, keepdim, out);
}
const Tensor& argmax_out(const Tensor& out, const Tensor& self, std::optional<int64_t> dim,
                         bool keepdim) {
  return form<const Tensor&(const Tensor&, std::optional<int64_t>, bool, const Tensor&), "argmax.out">()(self, dim, keepdim, out);
}
const Tensor& argmin_out(const Tensor& out, const Tensor& self, std::optional<int64_t> dim,
                         bool keepdim) {
  return form<const Tensor&(const Tensor&, std::optional<int64_t>, bool, const Tensor&), "argmin.out">()(self, dim, keepdim, out);
}
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  return form<Tensor(const Tensor&, std::optional<int64_t>), "count_nonzero">()(self, dim);
}
const Tensor& count_nonzero_out(const Tensor& out, const Tensor& self, IntList dim) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "count_nonzero.dim_IntList_out">()(self, dim, out);
}
const Tensor& count_nonzero_out(const Tensor& out, const Tensor& self, std::optional<int64_t> dim) {
  return form<const Tensor&(const Tensor&, std::optional<int64_t>, const Tensor&), "count_nonzero.out">()(self, dim, out);
}
const Tensor& cumprod_out(const Tensor& out, const Tensor& self, int64_t dim,
                          std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>, const Tensor&), "cumprod.out">()(self, dim, dtype, out);
}
const Tensor& cumprod_(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>), "cumprod_">()(self, dim, dtype);
}
const Tensor& cumsum_out(const Tensor& out, const Tensor& self, int64_t dim,
                         std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>, const Tensor&), "cumsum.out">()(self, dim, dtype, out);
}
const Tensor& cumsum_(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, int64_t, std::optional<DType>), "cumsum_">()(self, dim, dtype);
}
std::vector<Tensor> gradient(const Tensor& self, IntList dim, int64_t edge_order) {
  return form<std::vector<Tensor>(const Tensor&, IntList, int64_t), "gradient.array">()(self, dim, edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, std::optional<Scalar> spacing,
                             std::optional<int64_t> dim, int64_t edge_order) {
  return form<std::vector<Tensor>(const Tensor&, std::optional<Scalar>, std::optional<int64_t>, int64_t), "gradient.scalarint">()(self, spacing, dim, edge_order);
}
Scalar item(const Tensor& self) { return form<Scalar(const Tensor&), "item">()(self); }
const Tensor& linalg_vector_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord,
                                     OptionalIntList dim, bool keepdim,
                                     std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, Scalar, std::optional<IntList>, bool, std::optional<DType>, const Tensor&), "linalg_vector_norm.out">()(self, ord, dim, keepdim, dtype, out);
}
const Tensor& logcumsumexp_out(const Tensor& out, const Tensor& self, int64_t dim) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "logcumsumexp.out">()(self, dim, out);
}
const Tensor& logsumexp_out(const Tensor& out, const Tensor& self, IntList dim, bool keepdim) {
  return form<const Tensor&(const Tensor&, IntList, bool, const Tensor&), "logsumexp.out">()(self, dim, keepdim, out);
}
std::tuple<Tensor, Tensor> max_out(const Tensor& max, const Tensor& max_values, const Tensor& self,
                                   int64_t dim, bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool, const Tensor&, const Tensor&), "max.dim_max">()(self, dim, keepdim, max, max_values);
}
const Tensor& max_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "max.unary_out">()(self, out);
}
Tensor mean(const Tensor& self, std::optional<DType> dtype) {
  return form<Tensor(const Tensor&, std::optional<DType>), "mean">()(self, dtype);
}
const Tensor& mean_out(const Tensor& out, const Tensor& self, std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::optional<DType>, const Tensor&), "mean.dtype_out">()(self, dtype, out);
}
const Tensor& mean_out(const Tensor& out, const Tensor& self, OptionalIntList dim, bool keepdim,
                       std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, bool, std::optional<DType>, const Tensor&), "mean.out">()(self, dim, keepdim, dtype, out);
}
std::tuple<Tensor, Tensor> min_out(const Tensor& min, const Tensor& min_indices, const Tensor& self,
                                   int64_t dim, bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool, const Tensor&, const Tensor&), "min.dim_min">()(self, dim, keepdim, min, min_indices);
}
const Tensor& min_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "min.unary_out">()(self, out);
}
const Tensor& nanmean_out(const Tensor& out, const Tensor& self, OptionalIntList dim, bool keepdim,
                          std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, bool, std::optional<DType>, const Tensor&), "nanmean.out">()(self, dim, keepdim, dtype, out);
}
const Tensor& nansum_out(const Tensor& out, const Tensor& self, OptionalIntList dim, bool keepdim,
                         std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, bool, std::optional<DType>, const Tensor&), "nansum.out">()(self, dim, keepdim, dtype, out);
}
Tensor norm(const Tensor& self, const Scalar& p) {
  return form<Tensor(const Tensor&, Scalar), "norm.Scalar">()(self, p);
}
Tensor norm(const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim) {
  return form<Tensor(const Tensor&, std::optional<Scalar>, IntList, bool), "norm.ScalarOpt_dim">()(self, p, dim, keepdim);
}
Tensor norm(const Tensor& self, std::optional<Scalar> p, IntList dim, bool keepdim, DType dtype) {
  return form<Tensor(const Tensor&, std::optional<Scalar>, IntList, bool, DType), "norm.ScalarOpt_dim_dtype">()(self, p, dim, keepdim, dtype);
}
Tensor norm(const Tensor& self, std::optional<Scalar> p, DType dtype) {
  return form<Tensor(const Tensor&, std::optional<Scalar>, DType), "norm.ScalarOpt_dtype">()(self, p, dtype);
}
const Tensor& norm_out(const Tensor& out, const Tensor& self, std::optional<Scalar> p,
                       DType dtype) {
  return form<const Tensor&(const Tensor&, std::optional<Scalar>, DType, const Tensor&), "norm.ScalarOpt_dtype_out">()(self, p, dtype, out);
}
const Tensor& norm_out(const Tensor& out, const Tensor& self, const Scalar& p) {
  return form<const Tensor&(const Tensor&, Scalar, const Tensor&), "norm.Scalar_out">()(self, p, out);
}
const Tensor& norm_out(const Tensor& out, const Tensor& self, std::optional<Scalar> p, IntList dim,
                       bool keepdim, DType dtype) {
  return form<const Tensor&(const Tensor&, std::optional<Scalar>, IntList, bool, DType, const Tensor&), "norm.dtype_out">()(self, p, dim, keepdim, dtype, out);
}
const Tensor& norm_out(const Tensor& out, const Tensor& self, std::optional<Scalar> p, IntList dim,
                       bool keepdim) {
  return form<const Tensor&(const Tensor&, std::optional<Scalar>, IntList, bool, const Tensor&), "norm.out">()(self, p, dim, keepdim, out);
}
Tensor prod(const Tensor& self, std::optional<DType> dtype) {
  return form<Tensor(const Tensor&, std::optional<DType>), "prod">()(self, dtype);
}
const Tensor& prod_out(const Tensor& out, const Tensor& self, int64_t dim, bool keepdim,
                       std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, int64_t, bool, std::optional<DType>, const Tensor&), "prod.int_out">()(self, dim, keepdim, dtype, out);
}
const Tensor& prod_out(const Tensor& out, const Tensor& self, std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::optional<DType>, const Tensor&), "prod.out">()(self, dtype, out);
}
const Tensor& renorm_out(const Tensor& out, const Tensor& self, const Scalar& p, int64_t dim,
                         const Scalar& maxnorm) {
  return form<const Tensor&(const Tensor&, Scalar, int64_t, Scalar, const Tensor&), "renorm.out">()(self, p, dim, maxnorm, out);
}
const Tensor& renorm_(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  return form<const Tensor&(const Tensor&, Scalar, int64_t, Scalar), "renorm_">()(self, p, dim, maxnorm);
}
const Tensor& std_out(const Tensor& out, const Tensor& self, OptionalIntList dim,
                      std::optional<Scalar> correction, bool keepdim) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool, const Tensor&), "std.correction_out">()(self, dim, correction, keepdim, out);
}
std::tuple<Tensor, Tensor> std_mean_out(const Tensor& out0, const Tensor& out1, const Tensor& self,
                                        OptionalIntList dim, std::optional<Scalar> correction,
                                        bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool, const Tensor&, const Tensor&), "std_mean.correction_out">()(self, dim, correction, keepdim, out0, out1);
}
Tensor sum(const Tensor& self, std::optional<DType> dtype) {
  return form<Tensor(const Tensor&, std::optional<DType>), "sum">()(self, dtype);
}
const Tensor& sum_out(const Tensor& out, const Tensor& self, OptionalIntList dim, bool keepdim,
                      std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, bool, std::optional<DType>, const Tensor&), "sum.IntList_out">()(self, dim, keepdim, dtype, out);
}
const Tensor& sum_out(const Tensor& out, const Tensor& self, std::optional<DType> dtype) {
  return form<const Tensor&(const Tensor&, std::optional<DType>, const Tensor&), "sum.out">()(self, dtype, out);
}
const Tensor& var_out(const Tensor& out, const Tensor& self, OptionalIntList dim,
                      std::optional<Scalar> correction, bool keepdim) {
  return form<const Tensor&(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool, const Tensor&), "var.correction_out">()(self, dim, correction, keepdim, out);
}
std::tuple<Tensor, Tensor> var_mean_out(const Tensor& out0, const Tensor& out1, const Tensor& self,
                                        OptionalIntList dim, std::optional<Scalar> correction,
                                        bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<IntList>, std::optional<Scalar>, bool, const Tensor&, const Tensor&), "var_mean.correction_out">()(self, dim, correction, keepdim, out0, out1);
}

}  // namespace lockstep
