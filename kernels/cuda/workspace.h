#pragma once

#include "core/device/kernel_scope.h"
#include "core/tensor/allocator.h"

namespace lockstep::cuda {

/// Temporary device memory for the kernels that an operator queues, aligned to 512 bytes and
/// uninitialised. The destructor frees it without waiting: stream order keeps the next owner's work
/// behind ours.
class Workspace {
 public:
  /// Throws OutOfMemoryError.
  explicit Workspace(size_t bytes)
      : block_(allocator(kernel_stream().device).allocate(bytes, kernel_stream())) {}
  ~Workspace() {
    if (block_.owner != nullptr) block_.owner->free(block_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  template <class T = void>
  T* data() const {
    return static_cast<T*>(block_.data);
  }

 private:
  Block block_;
};

}  // namespace lockstep::cuda
