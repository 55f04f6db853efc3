#include "kernels/pointwise/backend.h"

namespace LS_POINTWISE_NAMESPACE {

namespace {

using Type = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;
using Format = std::optional<MemoryFormat>;

void copy(const Out& out, const In&, const In& src, bool) { copy_elements(out, src); }
void clone(const Out& out, const In& self, Format) { copy_elements(out, self); }
void to_copy(const Out& out, const In& self, Type, LayoutOption, DeviceOption, Flag, bool, Format) {
  copy_elements(out, self);
}

void fill(const Out& out, const In&, Scalar value) { fill_elements(out, value); }
void zero(const Out& out, const In&) { fill_elements(out, 0); }
template <int kValue>
void filled(const Out& out, IntList, Type, LayoutOption, DeviceOption, Flag) {
  fill_elements(out, kValue);
}
template <int kValue>
void filled_like(const Out& out, const In&, Type, LayoutOption, DeviceOption, Flag, Format) {
  fill_elements(out, kValue);
}
void full(const Out& out, IntList, Scalar value, Type, LayoutOption, DeviceOption, Flag) {
  fill_elements(out, value);
}
void full_like(const Out& out, const In&, Scalar value, Type, LayoutOption, DeviceOption, Flag,
               Format) {
  fill_elements(out, value);
}
void scalar_tensor(const Out& out, Scalar value, Type, LayoutOption, DeviceOption, Flag) {
  fill_elements(out, value);
}

LS_POINTWISE_KERNEL("copy", copy);
LS_POINTWISE_KERNEL("clone", clone);
LS_POINTWISE_KERNEL("_to_copy", to_copy);
LS_POINTWISE_KERNEL("fill.Scalar", fill);
LS_POINTWISE_KERNEL("zero", zero);
LS_BACKEND_KERNEL("zeros", filled<0>, Strides::kContiguous);
LS_BACKEND_KERNEL("ones", filled<1>, Strides::kContiguous);
LS_BACKEND_KERNEL("full", full, Strides::kContiguous);
LS_BACKEND_KERNEL("scalar_tensor", scalar_tensor, Strides::kContiguous);
LS_POINTWISE_KERNEL("zeros_like", filled_like<0>);
LS_POINTWISE_KERNEL("ones_like", filled_like<1>);
LS_POINTWISE_KERNEL("full_like", full_like);

}  // namespace

}  // namespace LS_POINTWISE_NAMESPACE
