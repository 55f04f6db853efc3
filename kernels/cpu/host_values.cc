#include <cstring>

#include "core/base/check.h"
#include "core/dispatch/kernel.h"
#include "core/ops/pointwise/promotion.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

Axes axes_of(const Tensor& tensor) {
  Axes axes;
  for (size_t i = 0; i < tensor.sizes().size(); ++i) {
    axes.push_back({tensor.sizes()[i], tensor.strides()[i]});
  }
  return axes;
}

bool equal(const Tensor& self, const Tensor& other) {
  if (!same(self.sizes(), other.sizes())) return false;
  if (self.dtype() != other.dtype()) {
    const DType common = result_type(self, other);
    return equal(self.to(common), other.to(common));
  }
  const Axes a = axes_of(self);
  const Axes b = axes_of(other);
  const bool contiguous = self.is_contiguous() && other.is_contiguous();
  return with_type(self.dtype(), [&]<class T>() {
    const T* x = self.data<T>();
    const T* y = other.data<T>();
    for (int64_t i = 0; i < self.numel(); ++i) {
      const T left = x[contiguous ? i : offset_at(i, a)];
      const T right = y[contiguous ? i : offset_at(i, b)];
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        if (static_cast<float>(left) != static_cast<float>(right)) return false;
      } else {
        if (left != right) return false;
      }
    }
    return true;
  });
}

Scalar local_scalar_dense(const Tensor& self) {
  LS_CHECK(self.numel() == 1, ShapeError,
           "[item] a tensor must have one element to be a number: expected 1 element, got {} "
           "(shape {}). "
           "Reduce or index it first.",
           self.numel(), self.shape());
  return with_type(self.dtype(), [&]<class T>() {
    const T value = *self.data<T>();
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return Scalar(static_cast<float>(value));
    } else {
      return Scalar(value);
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "equal", equal, Strides::kAny);
LS_KERNEL(CPU, "_local_scalar_dense", local_scalar_dense, Strides::kAny);

}  // namespace lockstep::cpu
