#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Memory of a device's allocator that records what is done with it. Thread-safe; must outlive its
/// tensors.
class WatchedMemory final : public Allocator {
 public:
  explicit WatchedMemory(Device device) : device_(device), inner_(allocator(device)) {}

  /// An uninitialised float32 vector in this memory.
  Tensor vector(int64_t count) {
    const Block block =
        allocate(static_cast<size_t>(count) * sizeof(float), current_stream(device_));
    const Dims sizes{count};
    return Tensor(
        make_ref<TensorImpl>(make_ref<Storage>(block, device_), sizes, Dims{1}, 0, DType::kF32));
  }

  /// Streams of `record_stream` and `record_use`, in the order of the calls.
  std::vector<Stream> uses() const {
    const std::lock_guard guard(mutex_);
    return uses_;
  }
  /// Number of blocks that were freed.
  int freed() const {
    const std::lock_guard guard(mutex_);
    return freed_;
  }
  /// Called with each block before it is freed.
  std::function<void(const Block&)> before_free;

  Block allocate(size_t bytes, const Stream& stream) override {
    Block block = inner_.allocate(bytes, stream);
    block.owner = this;
    return block;
  }
  void free(const Block& block) noexcept override {
    if (before_free) before_free(block);
    inner_.free(block);
    const std::lock_guard guard(mutex_);
    ++freed_;
  }
  void record_stream(const Block& block, const Stream& stream) override {
    inner_.record_stream(block, stream);
    const std::lock_guard guard(mutex_);
    uses_.push_back(stream);
  }
  void record_use(const Block& block, const Stream& stream) override {
    inner_.record_use(block, stream);
    const std::lock_guard guard(mutex_);
    uses_.push_back(stream);
  }
  MemoryStats stats() const override { return inner_.stats(); }
  void reset_peak() override { inner_.reset_peak(); }

 private:
  const Device device_;
  Allocator& inner_;
  mutable std::mutex mutex_;
  std::vector<Stream> uses_;
  int freed_ = 0;
};

}  // namespace lockstep
