#include <cstring>

#include "core/check.h"
#include "core/library.h"
#include "kernels/cpu/elements.h"
#include "kernels/reduce_plan.h"

namespace lockstep::cpu {

namespace {

/// The geometry of a tensor read as `sizes`.
Axes axes_as(IntList from_sizes, IntList from_strides, IntList sizes) {
  const Dims strides = broadcast_strides(from_sizes, from_strides, sizes);
  Axes axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({sizes[i], strides[i]});
  return axes;
}

Tensor nonzero(const Tensor& self) {
  const int64_t rank = self.dim();
  const Axes axes = axes_as(self.sizes(), self.strides(), self.sizes());
  std::vector<int64_t> found;
  with_type(self.dtype(), [&]<class T>() {
    const T* x = self.data<T>();
    for (int64_t i = 0; i < self.numel(); ++i) {
      if (convert<bool>(x[self.is_contiguous() ? i : offset_at(i, axes)])) found.push_back(i);
    }
  });
  Tensor result = empty_tensor({static_cast<int64_t>(found.size()), rank}, DType::kI64);
  int64_t* to = result.data<int64_t>();
  for (size_t row = 0; row < found.size(); ++row) {
    int64_t rest = found[row];
    for (int64_t d = rank; d-- > 0;) {
      to[static_cast<int64_t>(row) * rank + d] = rest % self.sizes()[d];
      rest /= self.sizes()[d];
    }
  }
  return result;
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[masked_select] expected a bool mask, got {}.", to_string(mask.dtype()));
  const Dims sizes = broadcast("masked_select", self.sizes(), mask.sizes());
  const int64_t numel = count_elements(sizes);
  const Axes from = axes_as(self.sizes(), self.strides(), sizes);
  const Axes where = axes_as(mask.sizes(), mask.strides(), sizes);
  const bool* chosen = mask.data<bool>();
  int64_t count = 0;
  for (int64_t i = 0; i < numel; ++i) count += chosen[offset_at(i, where)] ? 1 : 0;
  Tensor result = empty_tensor({count}, self.dtype());
  with_bits(self.dtype(), [&]<class T>() {
    const T* x = static_cast<const T*>(self.data());
    T* y = static_cast<T*>(result.data());
    for (int64_t i = 0; i < numel; ++i) {
      if (chosen[offset_at(i, where)]) *y++ = x[offset_at(i, from)];
    }
  });
  return result;
}

void masked_scatter(const Out& out, const In& self, const In& mask, const In& source) {
  const Axes from = axes_as(self.sizes(), self.strides(), out.sizes());
  const Axes where = axes_as(mask.sizes(), mask.strides(), out.sizes());
  const bool* chosen = mask.data<bool>();
  with_bits(out.dtype, [&]<class T>() {
    const T* x = self.data<T>();
    const T* next = source.data<T>();
    const T* end = next + source.numel;
    T* y = out.data<T>();
    for (int64_t i = 0; i < out.numel; ++i) {
      const bool taken = chosen[offset_at(i, where)];
      LS_CHECK(!taken || next != end, ShapeError,
               "[masked_scatter] the source is too short: its {} elements do not fill the mask.",
               source.numel);
      y[i] = taken ? *next++ : x[offset_at(i, from)];
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "nonzero", nonzero, Strides::kAny);
LS_KERNEL(CPU, "masked_select", masked_select, Strides::kAny);
LS_KERNEL(CPU, "masked_scatter", masked_scatter, Strides::kContiguous);

}  // namespace lockstep::cpu
