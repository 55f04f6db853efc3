#pragma once

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/tensor/tensor.h"

namespace lockstep {

const Tensor& as_strided_(const Tensor& self, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset = std::nullopt);
const Tensor& as_strided_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                     IntList size, IntList stride,
                                     std::optional<int64_t> storage_offset = std::nullopt);
std::vector<Tensor> atleast_1d(TensorList tensors);
std::vector<Tensor> atleast_2d(TensorList tensors);
std::vector<Tensor> atleast_3d(TensorList tensors);
const Tensor& cat_out(const Tensor& out, TensorList tensors, int64_t dim = 0);
const Tensor& column_stack_out(const Tensor& out, TensorList tensors);
const Tensor& detach_(const Tensor& self);
/// A matrix with the vector self on a diagonal, or the diagonal of the matrix self.
Tensor diag(const Tensor& self, int64_t diagonal = 0);
const Tensor& diag_out(const Tensor& out, const Tensor& self, int64_t diagonal = 0);
const Tensor& diag_embed_out(const Tensor& out, const Tensor& self, int64_t offset = 0,
                             int64_t dim1 = -2, int64_t dim2 = -1);
const Tensor& diagonal_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                   int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
/// Splits the third dimension at indices.
std::vector<Tensor> dsplit(const Tensor& self, IntList indices);
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections);
/// Joins tensors along the third dimension.
Tensor dstack(TensorList tensors);
const Tensor& dstack_out(const Tensor& out, TensorList tensors);
Tensor expand(const Tensor& self, IntList size, bool implicit);
const Tensor& flip_out(const Tensor& out, const Tensor& self, IntList dims);
/// The columns in the opposite order.
Tensor fliplr(const Tensor& self);
/// The rows in the opposite order.
Tensor flipud(const Tensor& self);
/// Splits the second dimension, of a vector the only one, at indices.
std::vector<Tensor> hsplit(const Tensor& self, IntList indices);
std::vector<Tensor> hsplit(const Tensor& self, int64_t sections);
/// Joins tensors side by side: along the second dimension, vectors along their only one.
Tensor hstack(TensorList tensors);
const Tensor& hstack_out(const Tensor& out, TensorList tensors);
/// alias under ATen's name for tensors just made from numbers.
Tensor lift_fresh(const Tensor& self);
/// Grids of coordinates: result i holds vector i along dimension i, expanded along the others.
std::vector<Tensor> meshgrid(TensorList tensors);
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing);
/// A dimension moved to another position; the rest keep their order.
Tensor movedim(const Tensor& self, int64_t source, int64_t destination);
Tensor movedim(const Tensor& self, IntList source, IntList destination);
Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length);
const Tensor& narrow_copy_out(const Tensor& out, const Tensor& self, int64_t dim, int64_t start,
                              int64_t length);
const Tensor& pixel_shuffle_out(const Tensor& out, const Tensor& self, int64_t upscale_factor);
const Tensor& pixel_unshuffle_out(const Tensor& out, const Tensor& self, int64_t downscale_factor);
const Tensor& repeat_out(const Tensor& out, const Tensor& self, IntList repeats);
const Tensor& repeat_interleave_out(const Tensor& out, const Tensor& repeats,
                                    std::optional<int64_t> output_size = std::nullopt);
Tensor repeat_interleave(const Tensor& self, const Tensor& repeats,
                         std::optional<int64_t> dim = std::nullopt,
                         std::optional<int64_t> output_size = std::nullopt);
Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size);
/// self reshaped to other's shape.
Tensor reshape_as(const Tensor& self, const Tensor& other);
const Tensor& roll_out(const Tensor& out, const Tensor& self, IntList shifts, IntList dims = {});
/// Rotates k times by 90 degrees, from the first dimension towards the second.
Tensor rot90(const Tensor& self, int64_t k = 1, IntList dims = {0, 1});
const Tensor& rot90_out(const Tensor& out, const Tensor& self, int64_t k = 1,
                        IntList dims = {0, 1});
const Tensor& select_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                 int64_t dim, int64_t index);
const Tensor& slice_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                int64_t dim = 0, std::optional<int64_t> start = std::nullopt,
                                std::optional<int64_t> end = std::nullopt, int64_t step = 1);
std::vector<Tensor> split(const Tensor& self, IntList split_size, int64_t dim = 0);
Tensor squeeze(const Tensor& self);
const Tensor& squeeze_(const Tensor& self);
const Tensor& squeeze_(const Tensor& self, int64_t dim);
const Tensor& squeeze_(const Tensor& self, IntList dim);
const Tensor& stack_out(const Tensor& out, TensorList tensors, int64_t dim = 0);
const Tensor& t_(const Tensor& self);
const Tensor& transpose_(const Tensor& self, int64_t dim0, int64_t dim1);
const Tensor& unfold_copy_out(const Tensor& out, const Tensor& self, int64_t dimension,
                              int64_t size, int64_t step);
void unsafe_split_out(MutableTensorList out, const Tensor& self, int64_t split_size,
                      int64_t dim = 0);
void unsafe_split_with_sizes_out(MutableTensorList out, const Tensor& self, IntList split_sizes,
                                 int64_t dim = 0);
const Tensor& unsqueeze_(const Tensor& self, int64_t dim);
/// Splits the first dimension at indices.
std::vector<Tensor> vsplit(const Tensor& self, IntList indices);
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections);
/// Joins tensors along the first dimension; vectors are rows.
Tensor vstack(TensorList tensors);
const Tensor& vstack_out(const Tensor& out, TensorList tensors);

}  // namespace lockstep
