// Factories that take their dtype and device from a tensor, and factories with given strides.

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/options_of.h"
#include "core/ops/view/batching_views.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {

namespace {

using DTypeOption = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;

/// Options that are not given are those of `self`.
TensorOptions options_like(const Tensor& self, DTypeOption dtype, DeviceOption device) {
  return options_of(dtype.value_or(self.dtype()), device.value_or(self.device()));
}

Tensor empty_with_strides(IntList size, IntList stride, const TensorOptions& options) {
  const Tensor room = empty({storage_extent("empty_strided", size, stride)}, options);
  return alias_tensor(room, to_dims(size), to_dims(stride), 0, room.dtype(), false);
}

/// Strides of a tensor without gaps; `order` lists the dimensions from outermost to innermost in
/// memory.
Dims strides_in_order(IntList size, IntList order) {
  const auto rank = static_cast<int64_t>(size.size());
  Dims sorted = to_dims(order);
  std::sort(sorted.begin(), sorted.end());
  bool permutation = order.size() == size.size();
  for (int64_t i = 0; permutation && i < rank; ++i) permutation = sorted[i] == i;
  LS_CHECK(permutation, ShapeError,
           "[empty_permuted] expected each of the dimensions of {} once, got {}.", to_string(size),
           to_string(order));
  count_elements(size);  // throws where the strides would overflow
  Dims strides(size.size(), 1);
  int64_t step = 1;
  for (int64_t i = rank - 1; i >= 0; --i) {
    strides[order[i]] = step;
    step *= std::max<int64_t>(size[order[i]], 1);
  }
  return strides;
}

}  // namespace

LS_OP(empty_strided, Tensor(IntList, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Uninitialised elements with the given strides.")
    .composite([](IntList size, IntList stride, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return empty_with_strides(size, stride, options_of(dtype, device)); });
Tensor empty_strided(IntList sizes, IntList strides, TensorOptions options) {
  Tensor result =
      op_empty_strided(sizes, strides, options.dtype, std::nullopt, options.device, std::nullopt);
  if (options.requires_grad) result.set_requires_grad();
  return result;
}

LS_OP(empty_permuted, Tensor(IntList, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Uninitialised elements without gaps, dimensions in memory in the order given.")
    .composite([](IntList size, IntList physical_layout, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag) {
      return empty_with_strides(size, strides_in_order(size, physical_layout),
                                options_of(dtype, device));
    });

LS_OP(new_empty_strided,
      Tensor(const Tensor&, IntList, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? "
      "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
      "Tensor")
    .doc("Uninitialised elements with the given strides, of self's dtype and on its device.")
    .composite([](const Tensor& self, IntList size, IntList stride, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag) {
      return empty_with_strides(size, stride, options_like(self, dtype, device));
    });

LS_OP(new_empty, Tensor(const Tensor&, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Uninitialised elements of self's dtype and on its device.")
    .batching(batching::new_sizes)
    .composite([](const Tensor& self, IntList size, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return empty(size, options_like(self, dtype, device)); });

LS_OP(new_zeros, Tensor(const Tensor&, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Zeros of self's dtype and on its device.")
    .batching(batching::new_sizes)
    .composite([](const Tensor& self, IntList size, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return zeros(size, options_like(self, dtype, device)); });

LS_OP(new_ones, Tensor(const Tensor&, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Ones of self's dtype and on its device.")
    .batching(batching::new_sizes)
    .composite([](const Tensor& self, IntList size, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return ones(size, options_like(self, dtype, device)); });

LS_OP(new_full,
      Tensor(const Tensor&, IntList, Scalar, DTypeOption, LayoutOption, DeviceOption, Flag),
      "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? "
      "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
      "Tensor")
    .doc("A number in every element, of self's dtype and on its device.")
    .batching(batching::new_sizes)
    .composite([](const Tensor& self, IntList size, Scalar value, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return full(size, value, options_like(self, dtype, device)); });

}  // namespace lockstep
