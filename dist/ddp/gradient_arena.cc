#include "dist/ddp/gradient_arena.h"

#include <array>
#include <utility>

#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep::dist {

namespace {

Tensor zeros_of(ProcessGroup* group, int64_t rows, int64_t elements, DType dtype, Device device) {
  const size_t bytes = static_cast<size_t>(rows * elements) * size_of(dtype);
  Ref<Storage> memory;
  if (group != nullptr && bytes != 0) memory = group->registered_memory(bytes, device);
  if (memory == nullptr) return zeros({rows, elements}, {dtype, device});
  const std::array<int64_t, 2> sizes{rows, elements};
  return Tensor(make_ref<TensorImpl>(std::move(memory), to_dims(sizes), contiguous_strides(sizes),
                                     0, dtype))
      .zero_();
}

}  // namespace

GradientArena::GradientArena(int64_t rows, int64_t elements, DType dtype, Device device,
                             ProcessGroup* group)
    : flat_(zeros_of(group, rows, elements, dtype, device)) {}

Tensor GradientArena::slot(int64_t row, int64_t offset, const Tensor& parameter) const {
  return window_like(flat_, row * elements() + offset, parameter);
}

Tensor GradientArena::range(int64_t row, int64_t first, int64_t end) const {
  return slice(select(flat_, 0, row), 0, first, end);
}

Tensor GradientArena::ranges(int64_t rows, int64_t first, int64_t end) const {
  return slice(slice(flat_, 0, 0, rows), 1, first, end);
}

Tensor window_like(const Tensor& flat, int64_t first, const Tensor& like) {
  const auto at = static_cast<size_t>(first) * size_of(flat.dtype());
  const IntList sizes = like.sizes();
  auto storage = make_ref<Storage>(flat.storage(), at, like.nbytes());
  return Tensor(make_ref<TensorImpl>(std::move(storage), to_dims(sizes), contiguous_strides(sizes),
                                     0, flat.dtype()));
}

int64_t GradientArena::bytes() const { return static_cast<int64_t>(flat_.nbytes()); }

}  // namespace lockstep::dist
