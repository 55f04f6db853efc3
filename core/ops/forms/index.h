#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

/// Coordinates of the non-zero elements, one row each; nonzero by another name.
Tensor argwhere(const Tensor& self);
const Tensor& embedding_out(const Tensor& out, const Tensor& weight, const Tensor& indices,
                            int64_t padding_idx = -1, bool scale_grad_by_freq = false,
                            bool sparse = false);
const Tensor& gather_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                         bool sparse_grad = false);
const Tensor& index_out(const Tensor& out, const Tensor& self, OptionalTensorList indices);
const Tensor& index_add_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                            const Tensor& source, const Scalar& alpha = 1);
const Tensor& index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         const Scalar& alpha = 1);
const Tensor& index_copy_out(const Tensor& out, const Tensor& self, int64_t dim,
                             const Tensor& index, const Tensor& source);
const Tensor& index_copy_(const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& source);
const Tensor& index_fill_out(const Tensor& out, const Tensor& self, int64_t dim,
                             const Tensor& index, const Scalar& value);
const Tensor& index_fill_out(const Tensor& out, const Tensor& self, int64_t dim,
                             const Tensor& index, const Tensor& value);
const Tensor& index_fill_(const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value);
const Tensor& index_fill_(const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& value);
const Tensor& index_put_out(const Tensor& out, const Tensor& self, OptionalTensorList indices,
                            const Tensor& values, bool accumulate = false);
const Tensor& index_reduce_out(const Tensor& out, const Tensor& self, int64_t dim,
                               const Tensor& index, const Tensor& source, std::string_view reduce,
                               bool include_self = true);
const Tensor& index_reduce_(const Tensor& self, int64_t dim, const Tensor& index,
                            const Tensor& source, std::string_view reduce,
                            bool include_self = true);
const Tensor& index_select_out(const Tensor& out, const Tensor& self, int64_t dim,
                               const Tensor& index);
const Tensor& masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask,
                              const Tensor& value);
const Tensor& masked_fill_(const Tensor& self, const Tensor& mask, const Tensor& value);
const Tensor& masked_scatter_out(const Tensor& out, const Tensor& self, const Tensor& mask,
                                 const Tensor& source);
const Tensor& masked_scatter_(const Tensor& self, const Tensor& mask, const Tensor& source);
const Tensor& masked_select_out(const Tensor& out, const Tensor& self, const Tensor& mask);
const Tensor& nonzero_out(const Tensor& out, const Tensor& self);
/// Coordinates of the non-zero elements, one tensor per dimension; a 0-d tensor gives one.
std::vector<Tensor> nonzero_numpy(const Tensor& self);
/// A copy of self with the elements of source written, or added, at row-major positions.
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate = false);
const Tensor& put_out(const Tensor& out, const Tensor& self, const Tensor& index,
                      const Tensor& source, bool accumulate = false);
const Tensor& put_(const Tensor& self, const Tensor& index, const Tensor& source,
                   bool accumulate = false);
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
               std::string_view reduce);
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& src, std::string_view reduce);
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& src);
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value);
Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
               std::string_view reduce);
const Tensor& scatter_out(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                          const Scalar& value, std::string_view reduce);
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce);
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value);
const Tensor& scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                       std::string_view reduce);
const Tensor& scatter_add_out(const Tensor& out, const Tensor& self, int64_t dim,
                              const Tensor& index, const Tensor& src);
const Tensor& scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
const Tensor& scatter_reduce_out(const Tensor& out, const Tensor& self, int64_t dim,
                                 const Tensor& index, const Tensor& src, std::string_view reduce,
                                 bool include_self = true);
const Tensor& scatter_reduce_(const Tensor& self, int64_t dim, const Tensor& index,
                              const Tensor& src, std::string_view reduce, bool include_self = true);
/// The elements at row-major positions, in the index's shape.
Tensor take(const Tensor& self, const Tensor& index);
const Tensor& take_out(const Tensor& out, const Tensor& self, const Tensor& index);
const Tensor& take_along_dim_out(const Tensor& out, const Tensor& self, const Tensor& indices,
                                 std::optional<int64_t> dim = std::nullopt);
const Tensor& tril_out(const Tensor& out, const Tensor& self, int64_t diagonal = 0);
const Tensor& tril_(const Tensor& self, int64_t diagonal = 0);
const Tensor& triu_out(const Tensor& out, const Tensor& self, int64_t diagonal = 0);
const Tensor& triu_(const Tensor& self, int64_t diagonal = 0);
std::vector<Tensor> where(const Tensor& condition);

}  // namespace lockstep
