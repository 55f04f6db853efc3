// Operators that read and write at the storage positions of a view; declared in shape.h and
// view_copies.h.

#include <algorithm>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/index/scatter.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/ops/view/view_copies.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {

namespace {

/// Storage positions of the elements of (sizes, strides, offset), int64, with shape `sizes`.
Tensor places(IntList sizes, IntList strides, int64_t offset, Device device) {
  const TensorOptions options{DType::kI64, device};
  Tensor result = full({}, Scalar(offset), options);
  for (size_t i = 0; i < sizes.size(); ++i) {
    result = result.unsqueeze(-1) + arange(Scalar(sizes[i]), options) * Scalar(strides[i]);
  }
  return result.reshape({count_elements(sizes)});
}

/// Number of storage elements up to and including the last element of (sizes, strides, offset).
int64_t reach(std::string_view op, IntList sizes, IntList strides, int64_t offset) {
  LS_CHECK(offset >= 0, ShapeError, "[{}] offsets must not be negative, got {}.", op, offset);
  const int64_t extent = storage_extent(op, sizes, strides);
  return extent == 0 ? 0 : (CheckedInt(op, offset) + extent).value();
}

/// The first elements of self's storage, up to the last that self reads.
Tensor storage_of(std::string_view op, const Tensor& self) {
  const int64_t length = reach(op, self.sizes(), self.strides(), self.storage_offset());
  return as_strided(self, {length}, {1}, 0);
}

/// Zeros through which gradients pass to x.
Tensor zero_with_gradient(const Tensor& x) {
  const Tensor finite = masked_fill(x, logical_not(isfinite(x)), 0);
  return finite - finite.detach();
}

}  // namespace

LS_OP(
    as_strided_backward,
    Tensor(const Tensor&, IntList, IntList, int64_t, IntList, IntList, std::optional<int64_t>),
    "as_strided_backward(Tensor grad_output, SymInt[] input_sizes, SymInt[] input_strides, SymInt "
    "input_offset, SymInt[] size, SymInt[] stride, SymInt? storage_offset) -> Tensor")
    .doc(
        "The derivative of as_strided: gradients added at the storage positions that the view "
        "read.")
    .composite([](const Tensor& grad, IntList input_sizes, IntList input_strides,
                  int64_t input_offset, IntList sizes, IntList strides,
                  std::optional<int64_t> storage_offset) {
      const int64_t offset = storage_offset.value_or(input_offset);
      constexpr std::string_view kName = "as_strided_backward";
      const int64_t length = std::max(reach(kName, input_sizes, input_strides, input_offset),
                                      reach(kName, sizes, strides, offset));
      Tensor storage = zeros({length}, grad.options());
      if (grad.numel() > 0) {
        storage = index_add(storage, 0, places(sizes, strides, offset, grad.device()),
                            grad.reshape({grad.numel()}));
      }
      const Tensor read = places(input_sizes, input_strides, input_offset, grad.device());
      if (may_self_overlap(input_sizes, input_strides) && length > 0) {
        // Elements of the input at the same storage position share its gradient.
        const Tensor zero = zeros({length}, grad.options());
        storage = storage / maximum(index_add(zero, 0, read, ones({read.numel()}, grad.options())),
                                    ones({}, grad.options()));
      }
      return index_select(storage, 0, read).reshape(input_sizes);
    });
Tensor as_strided_backward(const Tensor& grad, IntList input_sizes, IntList input_strides,
                           int64_t input_offset, IntList sizes, IntList strides,
                           std::optional<int64_t> storage_offset) {
  return op_as_strided_backward(grad, input_sizes, input_strides, input_offset, sizes, strides,
                                storage_offset);
}

LS_OP(as_strided_scatter,
      Tensor(const Tensor&, const Tensor&, IntList, IntList, std::optional<int64_t>),
      "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
      "storage_offset=None) -> Tensor")
    .doc(
        "A copy of self, of its strides, with src written where as_strided would read it. The "
        "gradient of self is PyTorch's: that of the elements that src replaces.")
    .composite([](const Tensor& self, const Tensor& src, IntList size, IntList stride,
                  std::optional<int64_t> storage_offset) {
      constexpr std::string_view kName = "as_strided_scatter";
      LS_CHECK(same(src.sizes(), size), ShapeError,
               "[{}] src does not fit the view: expected shape {}, got {}.", kName, to_string(size),
               src.shape());
      const Tensor storage = storage_of(kName, self);
      const int64_t offset = storage_offset.value_or(self.storage_offset());
      LS_CHECK(reach(kName, size, stride, offset) <= storage.numel(), ShapeError,
               "[{}] the view leaves self, whose last element is number {} of its storage: got "
               "size {}, stride {} and storage_offset {}.",
               kName, storage.numel(), to_string(size), to_string(stride), offset);
      const Tensor read = places(size, stride, offset, self.device());
      Tensor source = src.reshape({src.numel()}).to(self.dtype());
      // Under vmap the tensor that self stands for may require a gradient.
      if (self.requires_grad() || self.key_set().has(Key::kVmap)) {
        source = source + zero_with_gradient(index_select(storage, 0, read));
      }
      const Tensor written = index_copy(storage.detach(), 0, read, source);
      return as_strided(written, self.sizes(), self.strides(), self.storage_offset());
    });
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset) {
  return op_as_strided_scatter(self, src, size, stride, storage_offset);
}
LS_OP(as_strided_scatter_out,
      const Tensor&(const Tensor&, const Tensor&, IntList, IntList, std::optional<int64_t>,
                    const Tensor&),
      "as_strided_scatter.out(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, "
      "SymInt? storage_offset=None, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("as_strided_scatter, written into out.")
    .composite([](const Tensor& self, const Tensor& src, IntList size, IntList stride,
                  std::optional<int64_t> storage_offset, const Tensor& out) -> const Tensor& {
      return clone_out(out, op_as_strided_scatter(self, src, size, stride, storage_offset));
    });

}  // namespace lockstep
