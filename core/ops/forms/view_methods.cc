// Written by `./dev forms` from the operators' declarations; do not edit.
// clang-format off

#include "core/ops/forms/form.h"

namespace lockstep {

Tensor Tensor::alias() const { return form<Tensor(const Tensor&), "alias">()(*this); }
Tensor Tensor::as_strided(IntList size, IntList stride,
                          std::optional<int64_t> storage_offset) const {
  return form<Tensor(const Tensor&, IntList, IntList, std::optional<int64_t>), "as_strided">()(*this, size, stride, storage_offset);
}
const Tensor& Tensor::as_strided_(IntList size, IntList stride,
                                  std::optional<int64_t> storage_offset) const {
  return form<const Tensor&(const Tensor&, IntList, IntList, std::optional<int64_t>), "as_strided_">()(*this, size, stride, storage_offset);
}
Tensor Tensor::as_strided_scatter(const Tensor& src, IntList size, IntList stride,
                                  std::optional<int64_t> storage_offset) const {
  return form<Tensor(const Tensor&, const Tensor&, IntList, IntList, std::optional<int64_t>), "as_strided_scatter">()(*this, src, size, stride, storage_offset);
}
Tensor Tensor::atleast_1d() const { return form<Tensor(const Tensor&), "atleast_1d">()(*this); }
Tensor Tensor::atleast_2d() const { return form<Tensor(const Tensor&), "atleast_2d">()(*this); }
Tensor Tensor::atleast_3d() const { return form<Tensor(const Tensor&), "atleast_3d">()(*this); }
Tensor Tensor::broadcast_to(IntList size) const {
  return form<Tensor(const Tensor&, IntList), "broadcast_to">()(*this, size);
}
Tensor Tensor::channel_shuffle(int64_t groups) const {
  return form<Tensor(const Tensor&, int64_t), "channel_shuffle">()(*this, groups);
}
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t, int64_t), "chunk">()(*this, chunks, dim);
}
Tensor Tensor::detach() const { return form<Tensor(const Tensor&), "detach">()(*this); }
const Tensor& Tensor::detach_() const {
  return form<const Tensor&(const Tensor&), "detach_">()(*this);
}
Tensor Tensor::diag(int64_t diagonal) const {
  return form<Tensor(const Tensor&, int64_t), "diag">()(*this, diagonal);
}
Tensor Tensor::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  return form<Tensor(const Tensor&, int64_t, int64_t, int64_t), "diag_embed">()(*this, offset, dim1, dim2);
}
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return form<Tensor(const Tensor&, int64_t, int64_t, int64_t), "diagonal">()(*this, offset, dim1, dim2);
}
Tensor Tensor::diagonal_scatter(const Tensor& src, int64_t offset, int64_t dim1,
                                int64_t dim2) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, int64_t, int64_t), "diagonal_scatter">()(*this, src, offset, dim1, dim2);
}
std::vector<Tensor> Tensor::dsplit(IntList indices) const {
  return form<std::vector<Tensor>(const Tensor&, IntList), "dsplit.array">()(*this, indices);
}
std::vector<Tensor> Tensor::dsplit(int64_t sections) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t), "dsplit.int">()(*this, sections);
}
Tensor Tensor::expand(IntList size, bool implicit) const {
  return form<Tensor(const Tensor&, IntList, bool), "expand">()(*this, size, implicit);
}
Tensor Tensor::expand_as(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "expand_as">()(*this, other);
}
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  return form<Tensor(const Tensor&, int64_t, int64_t), "flatten.using_ints">()(*this, start_dim, end_dim);
}
Tensor Tensor::flip(IntList dims) const {
  return form<Tensor(const Tensor&, IntList), "flip">()(*this, dims);
}
Tensor Tensor::fliplr() const { return form<Tensor(const Tensor&), "fliplr">()(*this); }
Tensor Tensor::flipud() const { return form<Tensor(const Tensor&), "flipud">()(*this); }
std::vector<Tensor> Tensor::hsplit(IntList indices) const {
  return form<std::vector<Tensor>(const Tensor&, IntList), "hsplit.array">()(*this, indices);
}
std::vector<Tensor> Tensor::hsplit(int64_t sections) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t), "hsplit.int">()(*this, sections);
}
Tensor Tensor::lift_fresh() const { return form<Tensor(const Tensor&), "lift_fresh">()(*this); }
Tensor Tensor::movedim(int64_t source, int64_t destination) const {
  return form<Tensor(const Tensor&, int64_t, int64_t), "movedim.int">()(*this, source, destination);
}
Tensor Tensor::movedim(IntList source, IntList destination) const {
  return form<Tensor(const Tensor&, IntList, IntList), "movedim.intlist">()(*this, source, destination);
}
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return form<Tensor(const Tensor&, int64_t, int64_t, int64_t), "narrow">()(*this, dim, start, length);
}
Tensor Tensor::narrow(int64_t dim, const Tensor& start, int64_t length) const {
  return form<Tensor(const Tensor&, int64_t, const Tensor&, int64_t), "narrow.Tensor">()(*this, dim, start, length);
}
Tensor Tensor::narrow_copy(int64_t dim, int64_t start, int64_t length) const {
  return form<Tensor(const Tensor&, int64_t, int64_t, int64_t), "narrow_copy">()(*this, dim, start, length);
}
Tensor Tensor::one_hot(int64_t num_classes) const {
  return form<Tensor(const Tensor&, int64_t), "one_hot">()(*this, num_classes);
}
Tensor Tensor::permute(IntList dims) const {
  return form<Tensor(const Tensor&, IntList), "permute">()(*this, dims);
}
Tensor Tensor::pixel_shuffle(int64_t upscale_factor) const {
  return form<Tensor(const Tensor&, int64_t), "pixel_shuffle">()(*this, upscale_factor);
}
Tensor Tensor::pixel_unshuffle(int64_t downscale_factor) const {
  return form<Tensor(const Tensor&, int64_t), "pixel_unshuffle">()(*this, downscale_factor);
}
Tensor Tensor::ravel() const { return form<Tensor(const Tensor&), "ravel">()(*this); }
Tensor Tensor::repeat(IntList repeats) const {
  return form<Tensor(const Tensor&, IntList), "repeat">()(*this, repeats);
}
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim,
                                 std::optional<int64_t> output_size) const {
  return form<Tensor(const Tensor&, const Tensor&, std::optional<int64_t>, std::optional<int64_t>), "repeat_interleave.self_Tensor">()(*this, repeats, dim, output_size);
}
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim,
                                 std::optional<int64_t> output_size) const {
  return form<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>), "repeat_interleave.self_int">()(*this, repeats, dim, output_size);
}
Tensor Tensor::reshape(IntList shape) const {
  return form<Tensor(const Tensor&, IntList), "reshape">()(*this, shape);
}
Tensor Tensor::reshape_as(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "reshape_as">()(*this, other);
}
Tensor Tensor::roll(IntList shifts, IntList dims) const {
  return form<Tensor(const Tensor&, IntList, IntList), "roll">()(*this, shifts, dims);
}
Tensor Tensor::rot90(int64_t k, IntList dims) const {
  return form<Tensor(const Tensor&, int64_t, IntList), "rot90">()(*this, k, dims);
}
Tensor Tensor::select(int64_t dim, int64_t index) const {
  return form<Tensor(const Tensor&, int64_t, int64_t), "select.int">()(*this, dim, index);
}
Tensor Tensor::select_scatter(const Tensor& src, int64_t dim, int64_t index) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, int64_t), "select_scatter">()(*this, src, dim, index);
}
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) const {
  return form<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>, int64_t), "slice.Tensor">()(*this, dim, start, end, step);
}
Tensor Tensor::slice_scatter(const Tensor& src, int64_t dim, std::optional<int64_t> start,
                             std::optional<int64_t> end, int64_t step) const {
  return form<Tensor(const Tensor&, const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>, int64_t), "slice_scatter">()(*this, src, dim, start, end, step);
}
std::vector<Tensor> Tensor::split(int64_t split_size, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t, int64_t), "split.Tensor">()(*this, split_size, dim);
}
std::vector<Tensor> Tensor::split(IntList split_size, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, IntList, int64_t), "split.sizes">()(*this, split_size, dim);
}
std::vector<Tensor> Tensor::split_with_sizes(IntList split_sizes, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, IntList, int64_t), "split_with_sizes">()(*this, split_sizes, dim);
}
Tensor Tensor::squeeze() const { return form<Tensor(const Tensor&), "squeeze">()(*this); }
Tensor Tensor::squeeze(int64_t dim) const {
  return form<Tensor(const Tensor&, int64_t), "squeeze.dim">()(*this, dim);
}
Tensor Tensor::squeeze(IntList dim) const {
  return form<Tensor(const Tensor&, IntList), "squeeze.dims">()(*this, dim);
}
const Tensor& Tensor::squeeze_() const {
  return form<const Tensor&(const Tensor&), "squeeze_">()(*this);
}
const Tensor& Tensor::squeeze_(int64_t dim) const {
  return form<const Tensor&(const Tensor&, int64_t), "squeeze_.dim">()(*this, dim);
}
const Tensor& Tensor::squeeze_(IntList dim) const {
  return form<const Tensor&(const Tensor&, IntList), "squeeze_.dims">()(*this, dim);
}
Tensor Tensor::t() const { return form<Tensor(const Tensor&), "t">()(*this); }
const Tensor& Tensor::t_() const { return form<const Tensor&(const Tensor&), "t_">()(*this); }
std::vector<Tensor> Tensor::tensor_split(IntList indices, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, IntList, int64_t), "tensor_split.indices">()(*this, indices, dim);
}
std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t, int64_t), "tensor_split.sections">()(*this, sections, dim);
}
Tensor Tensor::tile(IntList dims) const {
  return form<Tensor(const Tensor&, IntList), "tile">()(*this, dims);
}
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const {
  return form<Tensor(const Tensor&, int64_t, int64_t), "transpose.int">()(*this, dim0, dim1);
}
const Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1) const {
  return form<const Tensor&(const Tensor&, int64_t, int64_t), "transpose_">()(*this, dim0, dim1);
}
std::vector<Tensor> Tensor::unbind(int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t), "unbind.int">()(*this, dim);
}
Tensor Tensor::unflatten(int64_t dim, IntList sizes) const {
  return form<Tensor(const Tensor&, int64_t, IntList), "unflatten.int">()(*this, dim, sizes);
}
Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const {
  return form<Tensor(const Tensor&, int64_t, int64_t, int64_t), "unfold">()(*this, dimension, size, step);
}
Tensor Tensor::unfold_copy(int64_t dimension, int64_t size, int64_t step) const {
  return form<Tensor(const Tensor&, int64_t, int64_t, int64_t), "unfold_copy">()(*this, dimension, size, step);
}
std::vector<Tensor> Tensor::unsafe_chunk(int64_t chunks, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t, int64_t), "unsafe_chunk">()(*this, chunks, dim);
}
std::vector<Tensor> Tensor::unsafe_split(int64_t split_size, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t, int64_t), "unsafe_split.Tensor">()(*this, split_size, dim);
}
std::vector<Tensor> Tensor::unsafe_split_with_sizes(IntList split_sizes, int64_t dim) const {
  return form<std::vector<Tensor>(const Tensor&, IntList, int64_t), "unsafe_split_with_sizes">()(*this, split_sizes, dim);
}
Tensor Tensor::unsqueeze(int64_t dim) const {
  return form<Tensor(const Tensor&, int64_t), "unsqueeze">()(*this, dim);
}
const Tensor& Tensor::unsqueeze_(int64_t dim) const {
  return form<const Tensor&(const Tensor&, int64_t), "unsqueeze_">()(*this, dim);
}
Tensor Tensor::view(IntList size) const {
  return form<Tensor(const Tensor&, IntList), "view">()(*this, size);
}
Tensor Tensor::view(DType dtype) const {
  return form<Tensor(const Tensor&, DType), "view.dtype">()(*this, dtype);
}
Tensor Tensor::view_as(const Tensor& other) const {
  return form<Tensor(const Tensor&, const Tensor&), "view_as">()(*this, other);
}
std::vector<Tensor> Tensor::vsplit(IntList indices) const {
  return form<std::vector<Tensor>(const Tensor&, IntList), "vsplit.array">()(*this, indices);
}
std::vector<Tensor> Tensor::vsplit(int64_t sections) const {
  return form<std::vector<Tensor>(const Tensor&, int64_t), "vsplit.int">()(*this, sections);
}

}  // namespace lockstep
