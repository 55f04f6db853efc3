#pragma once

#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::train {

/// Copies of tensors in memory of the cpu, pinned where they come from a device with streams, that
/// are written to files while training goes on. The memory is taken by the first copies and used
/// again by all later ones of the same sizes. Not thread-safe, but `wait` and the copies may be
/// used by another thread until the next `begin`.
class StateCopies {
 public:
  /// Begins copies of a list of tensors: what was copied before is void.
  void begin() { next_ = 0; }
  /// Copies a tensor, dense, behind the work queued on the current stream of its device.
  void add(const Tensor& tensor);
  /// After the last copy of a list; later work on the stream may change the tensors.
  void end();

  /// Blocks until the copies have arrived.
  void wait() const { arrived_.synchronize(); }
  /// In the order of `add`.
  const std::vector<Tensor>& tensors() const { return copies_; }
  /// Bytes of all copies.
  int64_t bytes() const;

 private:
  std::vector<Tensor> copies_;
  size_t next_ = 0;
  Device device_ = kCPU;
  Event arrived_;
};

}  // namespace lockstep::train
