#include "core/transfer.h"

#include <vector>

#include "core/allocator.h"

namespace lockstep {

ByteRange byte_range(const Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  const int64_t element = static_cast<int64_t>(size_of(tensor.dtype()));
  int64_t first = tensor.storage_offset();
  int64_t last = first;
  for (size_t i = 0; i < tensor.sizes().size(); ++i) {
    const int64_t reach = (tensor.sizes()[i] - 1) * tensor.strides()[i];
    (reach < 0 ? first : last) += reach;
  }
  return {first * element, (last + 1) * element};
}

void transfer_bytes(void* to, Device to_device, const void* from, Device from_device,
                    size_t bytes) {
  if (bytes == 0) return;
  if (to_device == from_device) {
    allocator(to_device).copy(to, from, bytes, Transfer::kWithin);
  } else if (to_device == kCPU) {
    allocator(from_device).copy(to, from, bytes, Transfer::kToCpu);
  } else if (from_device == kCPU) {
    allocator(to_device).copy(to, from, bytes, Transfer::kFromCpu);
  } else {
    std::vector<std::byte> between(bytes);
    allocator(from_device).copy(between.data(), from, bytes, Transfer::kToCpu);
    allocator(to_device).copy(to, between.data(), bytes, Transfer::kFromCpu);
  }
}

Tensor transferred(const Tensor& tensor, Device device) {
  const ByteRange range = byte_range(tensor);
  const size_t bytes = static_cast<size_t>(range.end - range.begin);
  Ref<Storage> storage = make_ref<Storage>(bytes, device);
  if (bytes != 0) {
    const std::byte* from = static_cast<const std::byte*>(tensor.storage()->data()) + range.begin;
    transfer_bytes(storage->data(), device, from, tensor.device(), bytes);
  }
  const int64_t element = static_cast<int64_t>(size_of(tensor.dtype()));
  const int64_t offset = range.empty() ? 0 : tensor.storage_offset() - range.begin / element;
  return Tensor(make_ref<TensorImpl>(std::move(storage), tensor.sizes(), tensor.strides(), offset,
                                     tensor.dtype()));
}

}  // namespace lockstep
