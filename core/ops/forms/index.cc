#include "core/ops/forms/index.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor argwhere(const Tensor& self) { return form<Tensor(const Tensor&), "argwhere">()(self); }
const Tensor& embedding_out(const Tensor& out, const Tensor& weight, const Tensor& indices,
                            int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, bool, bool, const Tensor&), "embedding.out">()(weight, indices, padding_idx, scale_grad_by_freq, sparse, out);
}
const Tensor& gather_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                         bool sparse_grad) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, bool, const Tensor&), "gather.out">()(self, dim, index, sparse_grad, out);
}
const Tensor& index_out(const Tensor& out, const Tensor& self, OptionalTensorList indices) {
  return form<const Tensor&(const Tensor&, OptionalTensorList, const Tensor&), "index.Tensor_out">()(self, indices, out);
}
const Tensor& index_add_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                            const Tensor& source, const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, Scalar, const Tensor&), "index_add.out">()(self, dim, index, source, alpha, out);
}
const Tensor& index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         const Scalar& alpha) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, Scalar), "index_add_">()(self, dim, index, source, alpha);
}
const Tensor& index_copy_out(const Tensor& out, const Tensor& self, int64_t dim,
                             const Tensor& index, const Tensor& source) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&), "index_copy.out">()(self, dim, index, source, out);
}
const Tensor& index_copy_(const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& source) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "index_copy_">()(self, dim, index, source);
}
const Tensor& index_fill_out(const Tensor& out, const Tensor& self, int64_t dim,
                             const Tensor& index, const Scalar& value) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar, const Tensor&), "index_fill.int_Scalar_out">()(self, dim, index, value, out);
}
const Tensor& index_fill_out(const Tensor& out, const Tensor& self, int64_t dim,
                             const Tensor& index, const Tensor& value) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&), "index_fill.int_Tensor_out">()(self, dim, index, value, out);
}
const Tensor& index_fill_(const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar), "index_fill_.int_Scalar">()(self, dim, index, value);
}
const Tensor& index_fill_(const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& value) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "index_fill_.int_Tensor">()(self, dim, index, value);
}
const Tensor& index_put_out(const Tensor& out, const Tensor& self, OptionalTensorList indices,
                            const Tensor& values, bool accumulate) {
  return form<const Tensor&(const Tensor&, OptionalTensorList, const Tensor&, bool, const Tensor&), "index_put.out">()(self, indices, values, accumulate, out);
}
const Tensor& index_reduce_out(const Tensor& out, const Tensor& self, int64_t dim,
                               const Tensor& index, const Tensor& source, std::string_view reduce,
                               bool include_self) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool, const Tensor&), "index_reduce.out">()(self, dim, index, source, reduce, include_self, out);
}
const Tensor& index_reduce_(const Tensor& self, int64_t dim, const Tensor& index,
                            const Tensor& source, std::string_view reduce, bool include_self) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool), "index_reduce_">()(self, dim, index, source, reduce, include_self);
}
const Tensor& index_select_out(const Tensor& out, const Tensor& self, int64_t dim,
                               const Tensor& index) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "index_select.out">()(self, dim, index, out);
}
const Tensor& masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask,
                              const Tensor& value) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, const Tensor&), "masked_fill.Tensor_out">()(self, mask, value, out);
}
const Tensor& masked_fill_(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "masked_fill_.Tensor">()(self, mask, value);
}
const Tensor& masked_scatter_out(const Tensor& out, const Tensor& self, const Tensor& mask,
                                 const Tensor& source) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, const Tensor&), "masked_scatter.out">()(self, mask, source, out);
}
const Tensor& masked_scatter_(const Tensor& self, const Tensor& mask, const Tensor& source) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "masked_scatter_">()(self, mask, source);
}
const Tensor& masked_select_out(const Tensor& out, const Tensor& self, const Tensor& mask) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "masked_select.out">()(self, mask, out);
}
const Tensor& nonzero_out(const Tensor& out, const Tensor& self) {
  return form<const Tensor&(const Tensor&, const Tensor&), "nonzero.out">()(self, out);
}
std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  return form<std::vector<Tensor>(const Tensor&), "nonzero_numpy">()(self);
}
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  return form<Tensor(const Tensor&, const Tensor&, const Tensor&, bool), "put">()(self, index, source, accumulate);
}
const Tensor& put_out(const Tensor& out, const Tensor& self, const Tensor& index,
                      const Tensor& source, bool accumulate) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, bool, const Tensor&), "put.out">()(self, index, source, accumulate, out);
}
const Tensor& put_(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&, bool), "put_">()(self, index, source, accumulate);
}
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
               std::string_view reduce) {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view), "scatter.reduce">()(self, dim, index, src, reduce);
}
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& src, std::string_view reduce) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, const Tensor&), "scatter.reduce_out">()(self, dim, index, src, reduce, out);
}
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& src) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&), "scatter.src_out">()(self, dim, index, src, out);
}
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar, const Tensor&), "scatter.value_out">()(self, dim, index, value, out);
}
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
               std::string_view reduce) {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view), "scatter.value_reduce">()(self, dim, index, value, reduce);
}
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value, std::string_view reduce) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view, const Tensor&), "scatter.value_reduce_out">()(self, dim, index, value, reduce, out);
}
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view), "scatter_.reduce">()(self, dim, index, src, reduce);
}
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "scatter_.src">()(self, dim, index, src);
}
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar), "scatter_.value">()(self, dim, index, value);
}
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                       std::string_view reduce) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, Scalar, std::string_view), "scatter_.value_reduce">()(self, dim, index, value, reduce);
}
const Tensor& scatter_add_out(const Tensor& out, const Tensor& self, int64_t dim,
                              const Tensor& index, const Tensor& src) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&), "scatter_add.out">()(self, dim, index, src, out);
}
const Tensor& scatter_add_(const Tensor& self, int64_t dim, const Tensor& index,
                           const Tensor& src) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&), "scatter_add_">()(self, dim, index, src);
}
const Tensor& scatter_reduce_out(const Tensor& out, const Tensor& self, int64_t dim,
                                 const Tensor& index, const Tensor& src, std::string_view reduce,
                                 bool include_self) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool, const Tensor&), "scatter_reduce.two_out">()(self, dim, index, src, reduce, include_self, out);
}
const Tensor& scatter_reduce_(const Tensor& self, int64_t dim, const Tensor& index,
                              const Tensor& src, std::string_view reduce, bool include_self) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&, const Tensor&, std::string_view, bool), "scatter_reduce_.two">()(self, dim, index, src, reduce, include_self);
}
Tensor take(const Tensor& self, const Tensor& index) {
  return form<Tensor(const Tensor&, const Tensor&), "take">()(self, index);
}
const Tensor& take_out(const Tensor& out, const Tensor& self, const Tensor& index) {
  return form<const Tensor&(const Tensor&, const Tensor&, const Tensor&), "take.out">()(self, index, out);
}
const Tensor& take_along_dim_out(const Tensor& out, const Tensor& self, const Tensor& indices,
                                 std::optional<int64_t> dim) {
  return form<const Tensor&(const Tensor&, const Tensor&, std::optional<int64_t>, const Tensor&), "take_along_dim.out">()(self, indices, dim, out);
}
const Tensor& tril_out(const Tensor& out, const Tensor& self, int64_t diagonal) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "tril.out">()(self, diagonal, out);
}
const Tensor& tril_(const Tensor& self, int64_t diagonal) {
  return form<const Tensor&(const Tensor&, int64_t), "tril_">()(self, diagonal);
}
const Tensor& triu_out(const Tensor& out, const Tensor& self, int64_t diagonal) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "triu.out">()(self, diagonal, out);
}
const Tensor& triu_(const Tensor& self, int64_t diagonal) {
  return form<const Tensor&(const Tensor&, int64_t), "triu_">()(self, diagonal);
}
std::vector<Tensor> where(const Tensor& condition) {
  return form<std::vector<Tensor>(const Tensor&), "where">()(condition);
}

}  // namespace lockstep
