#pragma once

#include "core/tensor.h"

namespace lockstep {

/// Bytes of a storage, from `begin` up to `end`.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin == end; }
};
/// The bytes between the first and the last that elements of `tensor` occupy, in its storage.
ByteRange byte_range(const Tensor& tensor);

/// Copies `bytes` between two devices' memory, through the cpu when neither is the cpu. Neither may
/// be meta.
void transfer_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes);

/// A copy of `tensor` on `device` with the same sizes and strides, made without the dispatcher.
/// Neither device may be meta.
Tensor transferred(const Tensor& tensor, Device device);

}  // namespace lockstep
