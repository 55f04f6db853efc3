// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::argwhere() const { return form<Tensor(const Tensor&), "argwhere">()(*this); }
Tensor Tensor::combinations(int64_t r, bool with_replacement) const {
  return form<Tensor(const Tensor&, int64_t, bool), "combinations">()(*this, r, with_replacement);
}
Tensor Tensor::gather(int64_t dim, const Tensor& index, bool sparse_grad) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, bool), "gather">()(*this, dim, index, sparse_grad);
}
Tensor Tensor::index(OptionalTensorList indices) const {
  return form<Tensor(const Tensor&, OptionalTensorList), "index.Tensor">()(*this, indices);
}
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source,
                         const Scalar& alpha) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, Scalar), "index_add">()(*this, dim, index, source, alpha);
}
const Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source,
                                 const Scalar& alpha) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, Scalar), "index_add_">()(*this, dim, index, source, alpha);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&), "index_copy">()(*this, dim, index, source);
}
const Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "index_copy_">()(*this, dim, index, source);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Scalar& value) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, Scalar), "index_fill.int_Scalar">()(*this, dim, index, value);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&), "index_fill.int_Tensor">()(*this, dim, index, value);
}
const Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Scalar& value) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar), "index_fill_.int_Scalar">()(*this, dim, index, value);
}
const Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "index_fill_.int_Tensor">()(*this, dim, index, value);
}
Tensor Tensor::index_put(OptionalTensorList indices, const Tensor& values, bool accumulate) const {
  return form<Tensor(const Tensor&, OptionalTensorList, const Tensor&, bool), "index_put">()(*this, indices, values, accumulate);
}
const Tensor& Tensor::index_put_(OptionalTensorList indices, const Tensor& values,
                                 bool accumulate) const {
  return form<const Tensor&(const Tensor&, OptionalTensorList, const Tensor&, bool), "index_put_">()(*this, indices, values, accumulate);
}
Tensor Tensor::index_reduce(int64_t dim, const Tensor& index, const Tensor& source,
                            std::string_view reduce, bool include_self) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool), "index_reduce">()(*this, dim, index, source, reduce, include_self);
}
const Tensor& Tensor::index_reduce_(int64_t dim, const Tensor& index, const Tensor& source,
                                    std::string_view reduce, bool include_self) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool), "index_reduce_">()(*this, dim, index, source, reduce, include_self);
}
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&), "index_select">()(*this, dim, index);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&), "masked_fill.Tensor">()(*this, mask, value);
}
const Tensor& Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "masked_fill_.Tensor">()(*this, mask, value);
}
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&), "masked_scatter">()(*this, mask, source);
}
const Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "masked_scatter_">()(*this, mask, source);
}
Tensor Tensor::masked_select(const Tensor& mask) const {
  return form<Tensor(const Tensor&, const Tensor&), "masked_select">()(*this, mask);
}
Tensor Tensor::nonzero() const { return form<Tensor(const Tensor&), "nonzero">()(*this); }
std::vector<Tensor> Tensor::nonzero_numpy() const {
  return form<std::vector<Tensor>(const Tensor&), "nonzero_numpy">()(*this);
}
Tensor Tensor::put(const Tensor& index, const Tensor& source, bool accumulate) const {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, bool), "put">()(*this, index, source, accumulate);
}
const Tensor& Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate) const {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, bool), "put_">()(*this, index, source, accumulate);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view), "scatter.reduce">()(*this, dim, index, src, reduce);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&), "scatter.src">()(*this, dim, index, src);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, Scalar), "scatter.value">()(*this, dim, index, value);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value,
                       std::string_view reduce) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view), "scatter.value_reduce">()(*this, dim, index, value, reduce);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src,
                               std::string_view reduce) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view), "scatter_.reduce">()(*this, dim, index, src, reduce);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "scatter_.src">()(*this, dim, index, src);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar), "scatter_.value">()(*this, dim, index, value);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value,
                               std::string_view reduce) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view), "scatter_.value_reduce">()(*this, dim, index, value, reduce);
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&), "scatter_add">()(*this, dim, index, src);
}
const Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "scatter_add_">()(*this, dim, index, src);
}
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                              std::string_view reduce, bool include_self) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool), "scatter_reduce.two">()(*this, dim, index, src, reduce, include_self);
}
const Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src,
                                      std::string_view reduce, bool include_self) const {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool), "scatter_reduce_.two">()(*this, dim, index, src, reduce, include_self);
}
Tensor Tensor::take(const Tensor& index) const {
  return form<Tensor(const Tensor&, const Tensor&), "take">()(*this, index);
}
Tensor Tensor::take_along_dim(const Tensor& indices, std::optional<int64_t> dim) const {
  return form<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>), "take_along_dim">()(*this, indices, dim);
}
Tensor Tensor::tril(int64_t diagonal) const {
  return form<Tensor(const Tensor&, int64_t), "tril">()(*this, diagonal);
}
const Tensor& Tensor::tril_(int64_t diagonal) const {
  return form<const Tensor&(const Tensor&, int64_t), "tril_">()(*this, diagonal);
}
Tensor Tensor::triu(int64_t diagonal) const {
  return form<Tensor(const Tensor&, int64_t), "triu">()(*this, diagonal);
}
const Tensor& Tensor::triu_(int64_t diagonal) const {
  return form<const Tensor&(const Tensor&, int64_t), "triu_">()(*this, diagonal);
}

}  // namespace lockstep
