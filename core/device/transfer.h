#pragma once

#include "core/tensor/tensor.h"

namespace lockstep {

/// Copies `bytes` bytes between two devices' memory, in order with the work on their current
/// streams; neither may be meta, and the two ranges may not overlap.
///
/// Between devices with streams the copy is queued. From the cpu the source may be changed on
/// return: it is copied to pinned memory first, or, if it is large and not pinned, the call waits.
/// To the cpu the call waits. With `non_blocking`, pinned cpu memory
/// (core/device/pinned_allocator.h) is used by the device directly: do not change the source, or
/// read the result, before the copy is done. Waits are counted (core/device/waits.h).
void transfer_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                    bool non_blocking = false);

/// Copies `tensor` to `device` with the same sizes and strides, without the dispatcher. Neither
/// device may be meta. With `non_blocking`, a copy to the cpu goes to pinned memory and is only
/// queued: it may be read after the work on the current stream of the tensor's device is done.
Tensor transferred(const Tensor& tensor, Device device, bool non_blocking = false);

}  // namespace lockstep
