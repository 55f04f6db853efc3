#include "core/ops/factory/from_blob.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/device/waits.h"
#include "core/tensor/event.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {
namespace {

using Deleter = std::function<void(void*)>;

/// Waits for the work queued on `stream`. Polls: `synchronize` would consume a kernel's error that
/// is meant for the caller of its operator.
void wait_for_users(const Stream& stream) noexcept {
  constexpr std::chrono::microseconds kPause(20);
  try {
    Event event;
    event.record(stream);
    if (event.query()) return;
    count_hidden_wait("from_blob", stream, "foreign memory is let go of while work may use it");
    while (!event.query()) std::this_thread::sleep_for(kPause);
  } catch (const std::exception&) {
    // The stream was destroyed, after it was waited for.
  }
}

/// The owner of one block that somebody else allocated. It goes with its block.
class ForeignMemory final : public Allocator {
 public:
  ForeignMemory(void* data, Deleter deleter) : data_(data), deleter_(std::move(deleter)) {}
  ~ForeignMemory() override {
    for (const Stream& stream : users_) wait_for_users(stream);
    deleter_(data_);
  }

  /// Notes a stream whose work may use the memory.
  void add_user(const Stream& stream) {
    if (!is_asynchronous(stream.device.type)) return;
    const MutexLock lock(mutex_);
    if (std::ranges::find(users_, stream) == users_.end()) users_.push_back(stream);
  }

  Block allocate(size_t, const Stream&) override {
    throw DeviceError("[from_blob] the memory is its caller's and cannot grow. Copy the tensor.");
  }
  void free(const Block&) noexcept override { delete this; }
  void record_stream(const Block&, const Stream& stream) override { add_user(stream); }
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}

 private:
  void* data_;
  Deleter deleter_;
  Mutex mutex_;
  std::vector<Stream> users_ LS_GUARDED_BY(mutex_);
};

/// `of` makes the storage of that many bytes.
template <class StorageOf>
Tensor over(void* data, IntList sizes, IntList strides, const TensorOptions& options,
            const StorageOf& of) {
  const DType dtype = options.dtype.value_or(DType::kF32);
  const size_t bytes =
      storage_bytes("from_blob", storage_extent("from_blob", sizes, strides), dtype);
  LS_CHECK(data != nullptr || bytes == 0, DeviceError,
           "[from_blob] the address is null: expected memory of {} bytes for {}.", bytes,
           to_string(sizes));
  Tensor result(
      make_ref<TensorImpl>(of(bytes, options.device.value_or(kCPU)), sizes, strides, 0, dtype));
  if (options.requires_grad) result.set_requires_grad();
  return result;
}

Tensor owning(void* data, IntList sizes, IntList strides, Deleter deleter,
              const TensorOptions& options) {
  auto owner = std::make_unique<ForeignMemory>(data, std::move(deleter));
  return over(data, sizes, strides, options, [&](size_t bytes, Device device) {
    owner->add_user(current_stream(device));
    auto memory = make_ref<Storage>(Block{data, bytes, nullptr, owner.get()}, device);
    owner.release();  // NOLINT: the storage frees it
    // Tensors are over a window, which counts as borrowed memory: nobody may take it over.
    return make_ref<Storage>(std::move(memory), 0, bytes);
  });
}

}  // namespace

Tensor from_blob(void* data, IntList sizes, const TensorOptions& options) {
  return from_blob(data, sizes, contiguous_strides(sizes), options);
}
Tensor from_blob(void* data, IntList sizes, IntList strides, const TensorOptions& options) {
  return over(data, sizes, strides, options, [data](size_t bytes, Device device) {
    return make_ref<Storage>(data, bytes, device);
  });
}
Tensor from_blob(void* data, IntList sizes, Deleter deleter, const TensorOptions& options) {
  return owning(data, sizes, contiguous_strides(sizes), std::move(deleter), options);
}
Tensor from_blob(void* data, IntList sizes, IntList strides, Deleter deleter,
                 const TensorOptions& options) {
  return owning(data, sizes, strides, std::move(deleter), options);
}

}  // namespace lockstep
