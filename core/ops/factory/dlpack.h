#pragma once

#include <memory>
#include <optional>

#include "core/ops/factory/dlpack_abi.h"
#include "core/tensor/tensor.h"

namespace lockstep {

// Exchange of tensors with other libraries through DLPack (github.com/dmlc/dlpack). Both sides use
// the same memory, which lives until the importer calls the exporter's deleter. Neither side sees
// the other's in-place changes in its version counters.

namespace dlpack {
/// Calls the deleter, if there is one.
struct Release {
  void operator()(DLManagedTensorVersioned* managed) const noexcept;
  void operator()(DLManagedTensor* managed) const noexcept;
};
using Managed = std::unique_ptr<DLManagedTensorVersioned, Release>;
using ManagedUnversioned = std::unique_ptr<DLManagedTensor, Release>;
}  // namespace dlpack

struct DLPackOptions {
  /// Exports a copy, flagged as one.
  bool copy = false;
  /// The device that the importer asks for: `cpu` or the tensor's own, which is the default.
  /// Another device than the tensor's is given a copy.
  std::optional<Device> device = std::nullopt;
  /// The stream on which the importer will use the memory: it is made to wait for the work that is
  /// queued on the current stream. Without one the caller orders the streams.
  std::optional<Stream> consumer = std::nullopt;
};

/// What is exported can be imported from any thread, and released on any. While it lives, do not
/// let `resize_` grow the tensor. Throws AutogradError for a tensor that requires grad (export its
/// `detach()`) and inside vmap, DeviceError for devices other than cpu and cuda, or than those that
/// `options.device` may name.
dlpack::Managed to_dlpack(const Tensor& self, const DLPackOptions& options = {});
/// The form before DLPack 1.0, for importers that know no other: it cannot say that it is a copy.
dlpack::ManagedUnversioned to_dlpack_unversioned(const Tensor& self,
                                                 const DLPackOptions& options = {});

/// What to do with foreign memory that is flagged as read-only. Tensors have no such flag, so who
/// shares it must not write into the tensor or its views.
enum class ReadOnlyMemory : uint8_t { kRefuse, kCopy, kShare };

/// A tensor over the memory of another library's. Takes ownership: the deleter is called once, when
/// the last tensor over the memory is gone, or before this throws or returns a copy. On a device
/// with streams the thread that lets go of it first waits for the work queued on the stream that
/// was current at the import and on those that `record_stream` named.
///
/// The exporter must have made this thread's current stream wait for its own work; Python's
/// `__dlpack__` does that with the stream that it is given.
///
/// Throws DTypeError for element types other than the ten of DType, ShapeError for negative sizes
/// and strides, DeviceError for devices other than cpu, pinned memory and cuda, for one that is not
/// there, and for memory that is null, not aligned to its elements, read-only (see
/// `ReadOnlyMemory`), or of another major version or unknown flags.
Tensor from_dlpack(dlpack::DLManagedTensorVersioned* foreign,
                   ReadOnlyMemory read_only = ReadOnlyMemory::kRefuse);
Tensor from_dlpack(dlpack::DLManagedTensor* foreign);

/// The device as DLPack names it; pinned memory is kDLCUDAHost if CUDA pinned it. Throws
/// DeviceError for devices other than cpu and cuda.
dlpack::DLDevice dlpack_device(const Tensor& self);

}  // namespace lockstep
