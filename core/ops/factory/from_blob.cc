#include "core/ops/factory/from_blob.h"

#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {
namespace {

using Deleter = std::function<void(void*)>;

/// The owner of one block that somebody else allocated. It goes with its block.
class ForeignMemory final : public Allocator {
 public:
  ForeignMemory(void* data, Deleter deleter) : data_(data), deleter_(std::move(deleter)) {}
  ~ForeignMemory() override { deleter_(data_); }

  Block allocate(size_t, const Stream&) override {
    throw DeviceError("[from_blob] the memory is its caller's and cannot grow. Copy the tensor.");
  }
  void free(const Block&) noexcept override { delete this; }
  void record_stream(const Block&, const Stream&) override {}
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}

 private:
  void* data_;
  Deleter deleter_;
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
