#include "core/ops/forms/view.h"

// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

const Tensor& as_strided_(const Tensor& self, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset) {
  return form<const Tensor&(const Tensor&, IntList, IntList, std::optional<int64_t>), "as_strided_">()(self, size, stride, storage_offset);
}
const Tensor& as_strided_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                     IntList size, IntList stride,
                                     std::optional<int64_t> storage_offset) {
  return form<const Tensor&(const Tensor&, const Tensor&, IntList, IntList, std::optional<int64_t>, const Tensor&), "as_strided_scatter.out">()(self, src, size, stride, storage_offset, out);
}
std::vector<Tensor> atleast_1d(TensorList tensors) {
  return form<std::vector<Tensor>(TensorList), "atleast_1d.Sequence">()(tensors);
}
std::vector<Tensor> atleast_2d(TensorList tensors) {
  return form<std::vector<Tensor>(TensorList), "atleast_2d.Sequence">()(tensors);
}
std::vector<Tensor> atleast_3d(TensorList tensors) {
  return form<std::vector<Tensor>(TensorList), "atleast_3d.Sequence">()(tensors);
}
const Tensor& cat_out(const Tensor& out, TensorList tensors, int64_t dim) {
  return form<const Tensor&(TensorList, int64_t, const Tensor&), "cat.out">()(tensors, dim, out);
}
const Tensor& column_stack_out(const Tensor& out, TensorList tensors) {
  return form<const Tensor&(TensorList, const Tensor&), "column_stack.out">()(tensors, out);
}
const Tensor& detach_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "detach_">()(self);
}
Tensor diag(const Tensor& self, int64_t diagonal) {
  return form<Tensor(const Tensor&, int64_t), "diag">()(self, diagonal);
}
const Tensor& diag_out(const Tensor& out, const Tensor& self, int64_t diagonal) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "diag.out">()(self, diagonal, out);
}
const Tensor& diag_embed_out(const Tensor& out, const Tensor& self, int64_t offset, int64_t dim1,
                             int64_t dim2) {
  return form<const Tensor&(const Tensor&, int64_t, int64_t, int64_t, const Tensor&), "diag_embed.out">()(self, offset, dim1, dim2, out);
}
const Tensor& diagonal_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                   int64_t offset, int64_t dim1, int64_t dim2) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, int64_t, int64_t, const Tensor&), "diagonal_scatter.out">()(self, src, offset, dim1, dim2, out);
}
std::vector<Tensor> dsplit(const Tensor& self, IntList indices) {
  return form<std::vector<Tensor>(const Tensor&, IntList), "dsplit.array">()(self, indices);
}
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections) {
  return form<std::vector<Tensor>(const Tensor&, int64_t), "dsplit.int">()(self, sections);
}
Tensor dstack(TensorList tensors) { return form<Tensor(TensorList), "dstack">()(tensors); }
const Tensor& dstack_out(const Tensor& out, TensorList tensors) {
  return form<const Tensor&(TensorList, const Tensor&), "dstack.out">()(tensors, out);
}
Tensor expand(const Tensor& self, IntList size, bool implicit) {
  return form<Tensor(const Tensor&, IntList, bool), "expand">()(self, size, implicit);
}
const Tensor& flip_out(const Tensor& out, const Tensor& self, IntList dims) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "flip.out">()(self, dims, out);
}
Tensor fliplr(const Tensor& self) { return form<Tensor(const Tensor&), "fliplr">()(self); }
Tensor flipud(const Tensor& self) { return form<Tensor(const Tensor&), "flipud">()(self); }
std::vector<Tensor> hsplit(const Tensor& self, IntList indices) {
  return form<std::vector<Tensor>(const Tensor&, IntList), "hsplit.array">()(self, indices);
}
std::vector<Tensor> hsplit(const Tensor& self, int64_t sections) {
  return form<std::vector<Tensor>(const Tensor&, int64_t), "hsplit.int">()(self, sections);
}
Tensor hstack(TensorList tensors) { return form<Tensor(TensorList), "hstack">()(tensors); }
const Tensor& hstack_out(const Tensor& out, TensorList tensors) {
  return form<const Tensor&(TensorList, const Tensor&), "hstack.out">()(tensors, out);
}
Tensor lift_fresh(const Tensor& self) { return form<Tensor(const Tensor&), "lift_fresh">()(self); }
std::vector<Tensor> meshgrid(TensorList tensors) {
  return form<std::vector<Tensor>(TensorList), "meshgrid">()(tensors);
}
std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  return form<std::vector<Tensor>(TensorList, std::string_view), "meshgrid.indexing">()(tensors, indexing);
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return form<Tensor(const Tensor&, int64_t, int64_t), "movedim.int">()(self, source, destination);
}
Tensor movedim(const Tensor& self, IntList source, IntList destination) {
  return form<Tensor(const Tensor&, IntList, IntList), "movedim.intlist">()(self, source, destination);
}
Tensor narrow(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, int64_t), "narrow.Tensor">()(self, dim, start, length);
}
const Tensor& narrow_copy_out(const Tensor& out, const Tensor& self, int64_t dim, int64_t start,
                              int64_t length) {
  return form<const Tensor&(const Tensor&, int64_t, int64_t, int64_t, const Tensor&), "narrow_copy.out">()(self, dim, start, length, out);
}
const Tensor& pixel_shuffle_out(const Tensor& out, const Tensor& self, int64_t upscale_factor) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "pixel_shuffle.out">()(self, upscale_factor, out);
}
const Tensor& pixel_unshuffle_out(const Tensor& out, const Tensor& self, int64_t downscale_factor) {
  return form<const Tensor&(const Tensor&, int64_t, const Tensor&), "pixel_unshuffle.out">()(self, downscale_factor, out);
}
const Tensor& repeat_out(const Tensor& out, const Tensor& self, IntList repeats) {
  return form<const Tensor&(const Tensor&, IntList, const Tensor&), "repeat.out">()(self, repeats, out);
}
const Tensor& repeat_interleave_out(const Tensor& out, const Tensor& repeats,
                                    std::optional<int64_t> output_size) {
  return form<const Tensor&(const Tensor&, std::optional<int64_t>, const Tensor&), "repeat_interleave.Tensor_out">()(repeats, output_size, out);
}
Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  return form<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>, std::optional<int64_t>), "repeat_interleave.self_Tensor">()(self, repeats, dim, output_size);
}
Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  return form<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>), "repeat_interleave.self_int">()(self, repeats, dim, output_size);
}
Tensor reshape_as(const Tensor& self, const Tensor& other) {
  return form<Tensor(const Tensor&, const Tensor&), "reshape_as">()(self, other);
}
const Tensor& roll_out(const Tensor& out, const Tensor& self, IntList shifts, IntList dims) {
  return form<const Tensor&(const Tensor&, IntList, IntList, const Tensor&), "roll.out">()(self, shifts, dims, out);
}
Tensor rot90(const Tensor& self, int64_t k, IntList dims) {
  return form<Tensor(const Tensor&, int64_t, IntList), "rot90">()(self, k, dims);
}
const Tensor& rot90_out(const Tensor& out, const Tensor& self, int64_t k, IntList dims) {
  return form<const Tensor&(const Tensor&, int64_t, IntList, const Tensor&), "rot90.out">()(self, k, dims, out);
}
const Tensor& select_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                 int64_t dim, int64_t index) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, int64_t, const Tensor&), "select_scatter.out">()(self, src, dim, index, out);
}
const Tensor& slice_scatter_out(const Tensor& out, const Tensor& self, const Tensor& src,
                                int64_t dim, std::optional<int64_t> start,
                                std::optional<int64_t> end, int64_t step) {
  return form<const Tensor&(const Tensor&, const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>, int64_t, const Tensor&), "slice_scatter.out">()(self, src, dim, start, end, step, out);
}
std::vector<Tensor> split(const Tensor& self, IntList split_size, int64_t dim) {
  return form<std::vector<Tensor>(const Tensor&, IntList, int64_t), "split.sizes">()(self, split_size, dim);
}
Tensor squeeze(const Tensor& self) { return form<Tensor(const Tensor&), "squeeze">()(self); }
const Tensor& squeeze_(const Tensor& self) {
  return form<const Tensor&(const Tensor&), "squeeze_">()(self);
}
const Tensor& squeeze_(const Tensor& self, int64_t dim) {
  return form<const Tensor&(const Tensor&, int64_t), "squeeze_.dim">()(self, dim);
}
const Tensor& squeeze_(const Tensor& self, IntList dim) {
  return form<const Tensor&(const Tensor&, IntList), "squeeze_.dims">()(self, dim);
}
const Tensor& stack_out(const Tensor& out, TensorList tensors, int64_t dim) {
  return form<const Tensor&(TensorList, int64_t, const Tensor&), "stack.out">()(tensors, dim, out);
}
const Tensor& t_(const Tensor& self) { return form<const Tensor&(const Tensor&), "t_">()(self); }
const Tensor& transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  return form<const Tensor&(const Tensor&, int64_t, int64_t), "transpose_">()(self, dim0, dim1);
}
const Tensor& unfold_copy_out(const Tensor& out, const Tensor& self, int64_t dimension,
                              int64_t size, int64_t step) {
  return form<const Tensor&(const Tensor&, int64_t, int64_t, int64_t, const Tensor&), "unfold_copy.out">()(self, dimension, size, step, out);
}
void unsafe_split_out(MutableTensorList out, const Tensor& self, int64_t split_size, int64_t dim) {
  return form<void(const Tensor&, int64_t, int64_t, MutableTensorList), "unsafe_split.Tensor_out">()(self, split_size, dim, out);
}
void unsafe_split_with_sizes_out(MutableTensorList out, const Tensor& self, IntList split_sizes,
                                 int64_t dim) {
  return form<void(const Tensor&, IntList, int64_t, MutableTensorList), "unsafe_split_with_sizes.out">()(self, split_sizes, dim, out);
}
const Tensor& unsqueeze_(const Tensor& self, int64_t dim) {
  return form<const Tensor&(const Tensor&, int64_t), "unsqueeze_">()(self, dim);
}
std::vector<Tensor> vsplit(const Tensor& self, IntList indices) {
  return form<std::vector<Tensor>(const Tensor&, IntList), "vsplit.array">()(self, indices);
}
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections) {
  return form<std::vector<Tensor>(const Tensor&, int64_t), "vsplit.int">()(self, sections);
}
Tensor vstack(TensorList tensors) { return form<Tensor(TensorList), "vstack">()(tensors); }
const Tensor& vstack_out(const Tensor& out, TensorList tensors) {
  return form<const Tensor&(TensorList, const Tensor&), "vstack.out">()(tensors, out);
}

}  // namespace lockstep
