#include "core/device/transfer.h"

#include <cstring>
#include <vector>

#include "core/base/current_scope.h"
#include "core/device/device_runtime.h"
#include "core/device/pinned_allocator.h"
#include "core/device/waits.h"
#include "core/tensor/allocator.h"
#include "core/tensor/byte_range.h"

namespace lockstep {

namespace {

/// Largest copy staged through pinned memory: above it, the copy to pinned memory would take as
/// long as waiting for the device.
constexpr size_t kMostStaged = size_t{32} << 20;

std::string_view operator_name() {
  const OperatorName* const op = current_operator();
  return op == nullptr ? std::string_view("copy") : op->name();
}

void to_cpu(void* to, const void* from, Device device, size_t bytes, bool non_blocking) {
  if (find_runtime(device) == nullptr) {
    return allocator(device).copy(to, from, bytes, Transfer::kToCpu);
  }
  const Stream stream = current_stream(device);
  copy_async(stream, to, from, bytes, Transfer::kToCpu);
  if (non_blocking && pinned_allocator().owns(to)) {
    pinned_allocator().record_use(to, stream);
  } else {
    wait_hidden(operator_name(), stream, "the result is on the cpu");
  }
}

/// Owns a pinned block and frees it in its destructor.
class PinnedLoan {
 public:
  explicit PinnedLoan(size_t bytes) : block_(pinned_allocator().allocate(bytes)) {}
  ~PinnedLoan() { block_.owner->free(block_); }
  PinnedLoan(const PinnedLoan&) = delete;
  PinnedLoan& operator=(const PinnedLoan&) = delete;

  void* data() const { return block_.data; }

 private:
  Block block_;
};

void from_cpu(void* to, Device device, const void* from, size_t bytes, bool non_blocking) {
  if (find_runtime(device) == nullptr) {
    return allocator(device).copy(to, from, bytes, Transfer::kFromCpu);
  }
  const Stream stream = current_stream(device);
  if (non_blocking && pinned_allocator().owns(from)) {
    copy_async(stream, to, from, bytes, Transfer::kFromCpu);
    pinned_allocator().record_use(from, stream);
  } else if (bytes <= kMostStaged) {
    const PinnedLoan between(bytes);
    std::memcpy(between.data(), from, bytes);
    copy_async(stream, to, between.data(), bytes, Transfer::kFromCpu);
    pinned_allocator().record_use(between.data(), stream);
  } else {
    copy_async(stream, to, from, bytes, Transfer::kFromCpu);
    wait_hidden(operator_name(), stream, "the source is on the cpu and not pinned");
  }
}

void within(void* to, const void* from, Device device, size_t bytes) {
  if (find_runtime(device) == nullptr) {
    allocator(device).copy(to, from, bytes, Transfer::kWithin);
  } else {
    copy_async(current_stream(device), to, from, bytes, Transfer::kWithin);
  }
}

/// Copies between two devices of one runtime, on the source's stream, in order with the earlier and
/// later work of the target's stream.
void across(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  const Stream source = current_stream(from_device);
  const Stream target = current_stream(to_device);
  source.wait_stream(target);
  copy_between_async(source, to, to_device, from, from_device, bytes);
  target.wait_stream(source);
}

}  // namespace

void transfer_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                    bool non_blocking) {
  if (bytes == 0) return;
  if (to_device == from_device) {
    within(to, from, to_device, bytes);
  } else if (to_device == kCPU) {
    to_cpu(to, from, from_device, bytes, non_blocking);
  } else if (from_device == kCPU) {
    from_cpu(to, to_device, from, bytes, non_blocking);
  } else if (to_device.type == from_device.type && find_runtime(to_device) != nullptr) {
    across(to, to_device, from, from_device, bytes);
  } else {
    std::vector<std::byte> between(bytes);
    to_cpu(between.data(), from, from_device, bytes, false);
    from_cpu(to, to_device, between.data(), bytes, false);
  }
}

Tensor transferred(const Tensor& tensor, Device device, bool non_blocking) {
  const ByteRange range = byte_range(*tensor.impl());
  const size_t bytes = static_cast<size_t>(range.end - range.begin);
  const bool pinned =
      non_blocking && bytes != 0 && device == kCPU && find_runtime(tensor.device()) != nullptr;
  Ref<Storage> storage = pinned ? make_ref<Storage>(pinned_allocator().allocate(bytes), device)
                                : make_ref<Storage>(bytes, device);
  if (bytes != 0) {
    const std::byte* from = static_cast<const std::byte*>(tensor.storage()->data()) + range.begin;
    transfer_bytes(storage->data(), device, from, tensor.device(), bytes, non_blocking);
  }
  const int64_t element = static_cast<int64_t>(size_of(tensor.dtype()));
  const int64_t offset = range.empty() ? 0 : tensor.storage_offset() - range.begin / element;
  return Tensor(make_ref<TensorImpl>(std::move(storage), tensor.sizes(), tensor.strides(), offset,
                                     tensor.dtype()));
}

}  // namespace lockstep
