#include "core/ops/forms/sort.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor argsort(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return form<Tensor(const Tensor&, bool, int64_t, bool), "argsort.stable">()(self, stable, dim, descending);
}
const Tensor& argsort_out(const Tensor& out, const Tensor& self, bool stable, int64_t dim,
                          bool descending) {
  return form<const Tensor&(const Tensor&, bool, int64_t, bool, const Tensor&), "argsort.stable_out">()(self, stable, dim, descending, out);
}
const Tensor& bincount_out(const Tensor& out, const Tensor& self, OptionalTensor weights,
                           int64_t minlength) {
  return form<const Tensor&(const Tensor&, OptionalTensor, int64_t, const Tensor&), "bincount.out">()(self, weights, minlength, out);
}
Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return form<Tensor(Scalar, const Tensor&, bool, bool), "bucketize.Scalar">()(self, boundaries, out_int32, right);
}
const Tensor& bucketize_out(const Tensor& out, const Scalar& self, const Tensor& boundaries,
                            bool out_int32, bool right) {
  return form<const Tensor&(Scalar, const Tensor&, bool, bool, const Tensor&), "bucketize.Scalar_out">()(self, boundaries, out_int32, right, out);
}
const Tensor& bucketize_out(const Tensor& out, const Tensor& self, const Tensor& boundaries,
                            bool out_int32, bool right) {
  return form<const Tensor&(const Tensor&, const Tensor&, bool, bool, const Tensor&), "bucketize.Tensor_out">()(self, boundaries, out_int32, right, out);
}
std::tuple<Tensor, Tensor> cummax_out(const Tensor& values, const Tensor& indices,
                                      const Tensor& self, int64_t dim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, const Tensor&, const Tensor&), "cummax.out">()(self, dim, values, indices);
}
std::tuple<Tensor, Tensor> cummin_out(const Tensor& values, const Tensor& indices,
                                      const Tensor& self, int64_t dim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, const Tensor&, const Tensor&), "cummin.out">()(self, dim, values, indices);
}
const Tensor& histc_out(const Tensor& out, const Tensor& self, int64_t bins, const Scalar& min,
                        const Scalar& max) {
  return form<const Tensor&(const Tensor&, int64_t, Scalar, Scalar, const Tensor&), "histc.out">()(self, bins, min, max, out);
}
Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique, bool invert) {
  return form<Tensor(Scalar, const Tensor&, bool, bool), "isin.Scalar_Tensor">()(element, test_elements, assume_unique, invert);
}
const Tensor& isin_out(const Tensor& out, const Scalar& element, const Tensor& test_elements,
                       bool assume_unique, bool invert) {
  return form<const Tensor&(Scalar, const Tensor&, bool, bool, const Tensor&), "isin.Scalar_Tensor_out">()(element, test_elements, assume_unique, invert, out);
}
Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique, bool invert) {
  return form<Tensor(const Tensor&, Scalar, bool, bool), "isin.Tensor_Scalar">()(elements, test_element, assume_unique, invert);
}
const Tensor& isin_out(const Tensor& out, const Tensor& elements, const Scalar& test_element,
                       bool assume_unique, bool invert) {
  return form<const Tensor&(const Tensor&, Scalar, bool, bool, const Tensor&), "isin.Tensor_Scalar_out">()(elements, test_element, assume_unique, invert, out);
}
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert) {
  return form<Tensor(const Tensor&, const Tensor&, bool, bool), "isin.Tensor_Tensor">()(elements, test_elements, assume_unique, invert);
}
const Tensor& isin_out(const Tensor& out, const Tensor& elements, const Tensor& test_elements,
                       bool assume_unique, bool invert) {
  return form<const Tensor&(const Tensor&, const Tensor&, bool, bool, const Tensor&), "isin.Tensor_Tensor_out">()(elements, test_elements, assume_unique, invert, out);
}
std::tuple<Tensor, Tensor> kthvalue_out(const Tensor& values, const Tensor& indices,
                                        const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, int64_t, bool, const Tensor&, const Tensor&), "kthvalue.values">()(self, k, dim, keepdim, values, indices);
}
std::tuple<Tensor, Tensor> median_out(const Tensor& values, const Tensor& indices,
                                      const Tensor& self, int64_t dim, bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool, const Tensor&, const Tensor&), "median.dim_values">()(self, dim, keepdim, values, indices);
}
const Tensor& median_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "median.out">()(self, out);
}
std::tuple<Tensor, Tensor> mode_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    int64_t dim, bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool, const Tensor&, const Tensor&), "mode.values">()(self, dim, keepdim, values, indices);
}
const Tensor& msort_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "msort.out">()(self, out);
}
std::tuple<Tensor, Tensor> nanmedian_out(const Tensor& values, const Tensor& indices,
                                         const Tensor& self, int64_t dim, bool keepdim) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool, const Tensor&, const Tensor&), "nanmedian.dim_values">()(self, dim, keepdim, values, indices);
}
const Tensor& nanmedian_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "nanmedian.out">()(self, out);
}
const Tensor& nanquantile_out(const Tensor& out, const Tensor& self, const Tensor& q,
                              std::optional<int64_t> dim, bool keepdim,
                              std::string_view interpolation) {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<int64_t>, bool, std::string_view, const Tensor&), "nanquantile.out">()(self, q, dim, keepdim, interpolation, out);
}
Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return form<Tensor(const Tensor&, double, std::optional<int64_t>, bool, std::string_view), "nanquantile.scalar">()(self, q, dim, keepdim, interpolation);
}
const Tensor& nanquantile_out(const Tensor& out, const Tensor& self, double q,
                              std::optional<int64_t> dim, bool keepdim,
                              std::string_view interpolation) {
  return form<const Tensor&(const Tensor&, double, std::optional<int64_t>, bool, std::string_view, const Tensor&), "nanquantile.scalar_out">()(self, q, dim, keepdim, interpolation, out);
}
const Tensor& quantile_out(const Tensor& out, const Tensor& self, const Tensor& q,
                           std::optional<int64_t> dim, bool keepdim,
                           std::string_view interpolation) {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<int64_t>, bool, std::string_view, const Tensor&), "quantile.out">()(self, q, dim, keepdim, interpolation, out);
}
Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return form<Tensor(const Tensor&, double, std::optional<int64_t>, bool, std::string_view), "quantile.scalar">()(self, q, dim, keepdim, interpolation);
}
const Tensor& quantile_out(const Tensor& out, const Tensor& self, double q,
                           std::optional<int64_t> dim, bool keepdim,
                           std::string_view interpolation) {
  return form<const Tensor&(const Tensor&, double, std::optional<int64_t>, bool, std::string_view, const Tensor&), "quantile.scalar_out">()(self, q, dim, keepdim, interpolation, out);
}
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, OptionalTensor sorter) {
  return form<Tensor(const Tensor&, Scalar, bool, bool, std::optional<std::string_view>, OptionalTensor), "searchsorted.Scalar">()(sorted_sequence, self, out_int32, right, side, sorter);
}
const Tensor& searchsorted_out(const Tensor& out, const Tensor& sorted_sequence, const Scalar& self,
                               bool out_int32, bool right, std::optional<std::string_view> side,
                               OptionalTensor sorter) {
  return form<const Tensor&(const Tensor&, Scalar, bool, bool, std::optional<std::string_view>, OptionalTensor, const Tensor&), "searchsorted.Scalar_out">()(sorted_sequence, self, out_int32, right, side, sorter, out);
}
const Tensor& searchsorted_out(const Tensor& out, const Tensor& sorted_sequence, const Tensor& self,
                               bool out_int32, bool right, std::optional<std::string_view> side,
                               OptionalTensor sorter) {
  return form<const Tensor&(const Tensor&, const Tensor&, bool, bool, std::optional<std::string_view>, OptionalTensor, const Tensor&), "searchsorted.Tensor_out">()(sorted_sequence, self, out_int32, right, side, sorter, out);
}
std::tuple<Tensor, Tensor> sort(const Tensor& self, std::optional<bool> stable, int64_t dim,
                                bool descending) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<bool>, int64_t, bool), "sort.stable">()(self, stable, dim, descending);
}
std::tuple<Tensor, Tensor> sort_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    int64_t dim, bool descending) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool, const Tensor&, const Tensor&), "sort.values">()(self, dim, descending, values, indices);
}
std::tuple<Tensor, Tensor> sort_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    std::optional<bool> stable, int64_t dim, bool descending) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<bool>, int64_t, bool, const Tensor&, const Tensor&), "sort.values_stable">()(self, stable, dim, descending, values, indices);
}
std::tuple<Tensor, Tensor> topk_out(const Tensor& values, const Tensor& indices, const Tensor& self,
                                    int64_t k, int64_t dim, bool largest, bool sorted) {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, int64_t, bool, bool, const Tensor&, const Tensor&), "topk.values">()(self, k, dim, largest, sorted, values, indices);
}
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse,
                                                      bool return_counts,
                                                      std::optional<int64_t> dim) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, bool, std::optional<int64_t>), "unique_consecutive">()(self, return_inverse, return_counts, dim);
}
std::tuple<Tensor, Tensor, Tensor> unique_consecutive_out(const Tensor& out0, const Tensor& out1,
                                                          const Tensor& out2, const Tensor& self,
                                                          bool return_inverse, bool return_counts,
                                                          std::optional<int64_t> dim) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, bool, std::optional<int64_t>, const Tensor&, const Tensor&, const Tensor&), "unique_consecutive.out">()(self, return_inverse, return_counts, dim, out0, out1, out2);
}
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool sorted,
                                              bool return_inverse, bool return_counts) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, int64_t, bool, bool, bool), "unique_dim">()(self, dim, sorted, return_inverse, return_counts);
}
std::tuple<Tensor, Tensor, Tensor> unique_dim_out(const Tensor& out0, const Tensor& out1,
                                                  const Tensor& out2, const Tensor& self,
                                                  int64_t dim, bool sorted, bool return_inverse,
                                                  bool return_counts) {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, int64_t, bool, bool, bool, const Tensor&, const Tensor&, const Tensor&), "unique_dim.out">()(self, dim, sorted, return_inverse, return_counts, out0, out1, out2);
}

}  // namespace lockstep
