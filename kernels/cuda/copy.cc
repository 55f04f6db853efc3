#include "kernels/cuda/copy.h"

#include <cmath>

#include "core/device_runtime.h"
#include "core/library.h"
#include "kernels/cuda/fill.h"
#include "kernels/cuda/pointwise.h"

namespace lockstep::cuda {

namespace {

using namespace functors;

/// An integer dtype of the element's size: elements that keep their dtype are moved as bits.
DType bits_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kI16;
    case 4:
      return DType::kI32;
    default:
      return DType::kI64;
  }
}

void move_bits(const Out& out, const In& src) {
  Out to = out;
  In from = src;
  to.dtype = from.dtype = bits_of(out.dtype);
  elementwise<int64_t, int64_t>(to, Same(), from);
}

}  // namespace

void copy_elements(const Out& out, const In& src) {
  if (out.numel == 0 || (out.address == src.address && out.dtype == src.dtype)) return;
  if (out.dtype == src.dtype && out.contiguous && src.contiguous && out.numel == src.numel) {
    const Stream stream = kernel_stream();
    require_runtime(stream.device)
        .copy(stream, out.address, src.address, static_cast<size_t>(out.numel) * size_of(out.dtype),
              Transfer::kWithin);
  } else if (out.dtype == src.dtype) {
    move_bits(out, src);
  } else {
    with_lane(src.dtype, [&]<class T>() { elementwise<T, T>(out, Same(), src); });
  }
}

void fill_elements(const Out& out, const Scalar& value) {
  const double number = value.to_double();
  if (out.contiguous && number == 0 && !std::signbit(number)) {
    zero_bytes(out.address, out.numel * static_cast<int64_t>(size_of(out.dtype)));
  } else if (value.is_floating()) {
    elementwise<double>(out, Constant<double>{value.to_double()});
  } else {
    elementwise<int64_t>(out, Constant<int64_t>{value.to_int()});
  }
}

namespace {

void copy(const Out& out, const In&, const In& src, bool) { copy_elements(out, src); }
void clone(const Out& out, const In& self, std::optional<MemoryFormat>) {
  copy_elements(out, self);
}
void to_copy(const Out& out, const In& self, std::optional<DType>, std::optional<Layout>,
             std::optional<Device>, std::optional<bool>, bool, std::optional<MemoryFormat>) {
  copy_elements(out, self);
}
void fill(const Out& out, const In&, Scalar value) { fill_elements(out, value); }
void zero(const Out& out, const In&) { fill_elements(out, 0); }

LS_KERNEL(CUDA, "copy", copy, Strides::kAny);
LS_KERNEL(CUDA, "clone", clone, Strides::kAny);
LS_KERNEL(CUDA, "_to_copy", to_copy, Strides::kAny);
LS_KERNEL(CUDA, "fill.Scalar", fill, Strides::kAny);
LS_KERNEL(CUDA, "zero", zero, Strides::kAny);

}  // namespace

}  // namespace lockstep::cuda
