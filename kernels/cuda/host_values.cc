#include <cstddef>

#include "core/base/check.h"
#include "core/device/transfer.h"
#include "core/dispatch/kernel.h"

namespace lockstep::cuda {

namespace {

/// Reads an element of `dtype` at `at` as a number.
Scalar number_at(DType dtype, const void* at) {
  switch (dtype) {
    case DType::kBool:
      return Scalar(*static_cast<const bool*>(at));
    case DType::kU8:
      return Scalar(*static_cast<const uint8_t*>(at));
    case DType::kI8:
      return Scalar(*static_cast<const int8_t*>(at));
    case DType::kI16:
      return Scalar(*static_cast<const int16_t*>(at));
    case DType::kI32:
      return Scalar(*static_cast<const int32_t*>(at));
    case DType::kI64:
      return Scalar(*static_cast<const int64_t*>(at));
    case DType::kF16:
      return Scalar(static_cast<float>(*static_cast<const Half*>(at)));
    case DType::kBF16:
      return Scalar(static_cast<float>(*static_cast<const BFloat16*>(at)));
    case DType::kF32:
      return Scalar(*static_cast<const float*>(at));
    case DType::kF64:
      return Scalar(*static_cast<const double*>(at));
  }
  throw InternalError("[internal] unknown dtype.");
}

Scalar local_scalar_dense(const Tensor& self) {
  LS_CHECK(self.numel() == 1, ShapeError,
           "[item] a tensor must have one element to be a number: expected 1 element, got {} "
           "(shape {}). "
           "Reduce or index it first.",
           self.numel(), self.shape());
  // The operator that errors and statistics attribute the wait to.
  static const Operator& op = dispatcher().find("_local_scalar_dense");
  const OperatorScope scope(op);
  alignas(8) std::byte element[8];
  transfer_bytes(element, kCPU, self.data(), self.device(), size_of(self.dtype()));
  return number_at(self.dtype(), element);
}

}  // namespace

LS_KERNEL(CUDA, "_local_scalar_dense", local_scalar_dense, Strides::kAny);

}  // namespace lockstep::cuda
