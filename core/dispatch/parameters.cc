#include "core/dispatch/parameters.h"

#include "core/base/check.h"
#include "core/device/copies.h"
#include "core/device/transfer.h"
#include "core/dispatch/run_kernel.h"

namespace lockstep::structured {

namespace {

bool is_matrix_layout(const TensorImpl& impl) {
  const size_t rank = impl.sizes.size();
  if (rank < 2 || impl.contiguous) return impl.contiguous;
  const int64_t rows = impl.sizes[rank - 2];
  const int64_t columns = impl.sizes[rank - 1];
  const int64_t row = impl.strides[rank - 2];
  const int64_t column = impl.strides[rank - 1];
  const bool row_major = (column == 1 || columns == 1) && (row >= columns || rows == 1);
  const bool column_major = (row == 1 || rows == 1) && (column >= rows || columns == 1);
  return row_major || column_major;
}

/// True for memory that the kernel must not touch: only a call with a device option has it. On meta
/// there is none.
bool is_elsewhere(const Preparation& preparation, const TensorImpl& impl) {
  const Device device = impl.storage->device();
  return device != preparation.device && device != kMeta && preparation.device != kMeta;
}

}  // namespace

bool acceptable(const Preparation& preparation, const TensorImpl& impl,
                std::optional<DType> compute) {
  if (compute && impl.dtype != *compute) return false;
  if (is_elsewhere(preparation, impl)) [[unlikely]] {
    return false;
  }
  const Strides strides = preparation.strides;
  if (strides == Strides::kAny || impl.contiguous) return true;
  return strides == Strides::kMatrix && is_matrix_layout(impl);
}

Tensor converted(const Preparation& preparation, const Tensor& tensor, bool cast) {
  if (is_elsewhere(preparation, *tensor.impl())) {
    const Tensor here = transferred(tensor, preparation.device);
    const std::optional<DType> compute = cast ? preparation.compute : std::nullopt;
    return acceptable(preparation, *here.impl(), compute) ? here
                                                          : converted(preparation, here, cast);
  }
  const DType dtype = cast ? preparation.compute.value_or(tensor.dtype()) : tensor.dtype();
  Tensor copy = empty_tensor(tensor.sizes(), dtype, tensor.device());
  if (preparation.execution == Execution::kShapes) return copy;
  // A cast of a number or a small vector is not worth a warning.
  if (tensor.numel() > 1) {
    count_hidden_copy(preparation.op.name(), tensor,
                      dtype != tensor.dtype() ? "the kernel computes in another dtype"
                                              : "the kernel cannot read these strides");
  }
  copy_elements(preparation.backend, copy, tensor);
  return copy;
}

void check_other_device(const Operator& op, Device device, const Tensor& tensor) {
  if (!is_cpu_number(*tensor.impl())) throw_other_device(op, device, tensor);
}

void throw_other_device(const Operator& op, Device device, const Tensor& tensor) {
  throw DeviceError(fmt::format(
      "[{}] tensors are on different devices: expected {}, got {}. Move one with to(device).",
      op.name(), to_string(device), to_string(tensor.device())));
}

}  // namespace lockstep::structured
