// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::argsort(int64_t dim, bool descending) const {
  return form<Tensor(const Tensor&, int64_t, bool), "argsort">()(*this, dim, descending);
}
Tensor Tensor::argsort(bool stable, int64_t dim, bool descending) const {
  return form<Tensor(const Tensor&, bool, int64_t, bool), "argsort.stable">()(*this, stable, dim, descending);
}
Tensor Tensor::bincount(OptionalTensor weights, int64_t minlength) const {
  return form<Tensor(const Tensor&, OptionalTensor, int64_t), "bincount">()(*this, weights, minlength);
}
Tensor Tensor::bucketize(const Tensor& boundaries, bool out_int32, bool right) const {
  return form<Tensor(const Tensor&, const Tensor&, bool, bool), "bucketize.Tensor">()(*this, boundaries, out_int32, right);
}
std::tuple<Tensor, Tensor> Tensor::cummax(int64_t dim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t), "cummax">()(*this, dim);
}
std::tuple<Tensor, Tensor> Tensor::cummin(int64_t dim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t), "cummin">()(*this, dim);
}
Tensor Tensor::histc(int64_t bins, const Scalar& min, const Scalar& max) const {
  return form<Tensor(const Tensor&, int64_t, Scalar, Scalar), "histc">()(*this, bins, min, max);
}
std::tuple<Tensor, Tensor> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, int64_t, bool), "kthvalue">()(*this, k, dim, keepdim);
}
Tensor Tensor::median() const { return form<Tensor(const Tensor&), "median">()(*this); }
std::tuple<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool), "median.dim">()(*this, dim, keepdim);
}
std::tuple<Tensor, Tensor> Tensor::mode(int64_t dim, bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool), "mode">()(*this, dim, keepdim);
}
Tensor Tensor::msort() const { return form<Tensor(const Tensor&), "msort">()(*this); }
Tensor Tensor::nanmedian() const { return form<Tensor(const Tensor&), "nanmedian">()(*this); }
std::tuple<Tensor, Tensor> Tensor::nanmedian(int64_t dim, bool keepdim) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool), "nanmedian.dim">()(*this, dim, keepdim);
}
Tensor Tensor::nanquantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                           std::string_view interpolation) const {
  return form<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>, bool, std::string_view), "nanquantile">()(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::nanquantile(double q, std::optional<int64_t> dim, bool keepdim,
                           std::string_view interpolation) const {
  return form<Tensor(const Tensor&, double, std::optional<int64_t>, bool, std::string_view), "nanquantile.scalar">()(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::quantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                        std::string_view interpolation) const {
  return form<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>, bool, std::string_view), "quantile">()(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::quantile(double q, std::optional<int64_t> dim, bool keepdim,
                        std::string_view interpolation) const {
  return form<Tensor(const Tensor&, double, std::optional<int64_t>, bool, std::string_view), "quantile.scalar">()(*this, q, dim, keepdim, interpolation);
}
std::tuple<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, bool), "sort">()(*this, dim, descending);
}
std::tuple<Tensor, Tensor> Tensor::sort(std::optional<bool> stable, int64_t dim,
                                        bool descending) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, std::optional<bool>, int64_t, bool), "sort.stable">()(*this, stable, dim, descending);
}
std::tuple<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return form<std::tuple<Tensor, Tensor>(const Tensor&, int64_t, int64_t, bool, bool), "topk">()(*this, k, dim, largest, sorted);
}
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_consecutive(bool return_inverse,
                                                            bool return_counts,
                                                            std::optional<int64_t> dim) const {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, bool, bool, std::optional<int64_t>), "unique_consecutive">()(*this, return_inverse, return_counts, dim);
}
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim(int64_t dim, bool sorted, bool return_inverse,
                                                      bool return_counts) const {
  return form<std::tuple<Tensor, Tensor, Tensor>(const Tensor&, int64_t, bool, bool, bool), "unique_dim">()(*this, dim, sorted, return_inverse, return_counts);
}

}  // namespace lockstep
