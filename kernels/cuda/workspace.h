#pragma once

#include "core/device/kernel_scope.h"
#include "core/tensor/allocator.h"

namespace lockstep::cuda {

/// Memory of the device for what a kernel's host code queues while it lives, aligned to 512 bytes.
/// Its contents are whatever was there. It goes back to the allocator at once when this ends: the
/// stream's order keeps the next owner's work behind ours.
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
