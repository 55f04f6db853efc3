#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// Bytes of a storage, from `begin` up to `end`.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin == end; }
};
/// The bytes between the first and the last that elements of `tensor` occupy, in its storage.
ByteRange byte_range(const Tensor& tensor);

/// Copies `bytes` bytes between two devices' memory, in order with the work on their current
/// streams; neither may be meta, and the two ranges may not overlap.
///
/// Between devices with streams the copy is queued. From the cpu it is, too, after the bytes were
/// read: large ones that are not pinned are waited for. To the cpu it is waited for. With
/// `non_blocking`, what is pinned on the cpu (core/device/pinned_allocator.h) is left to the
/// device: it must not be changed, or not be read, before the copy is done. Waits are counted
/// (core/device/waits.h).
void transfer_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                    bool non_blocking = false);

/// A copy of `tensor` on `device` with the same sizes and strides, made without the dispatcher.
/// Neither device may be meta. With `non_blocking`, a copy to the cpu is in pinned memory and only
/// queued: it may be read after the current stream of the tensor's device.
Tensor transferred(const Tensor& tensor, Device device, bool non_blocking = false);

}  // namespace lockstep
