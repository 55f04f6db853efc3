#include "core/tensor/storage.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/device/transfer.h"

namespace lockstep {

void Storage::record_stream(const Stream& stream) const {
  recorded_.store(true, std::memory_order_relaxed);
  if (parent_) return parent_->record_stream(stream);
  if (block_.owner != nullptr) block_.owner->record_stream(block_, stream);
}

void Storage::record_use(const Stream& stream) const {
  recorded_.store(true, std::memory_order_relaxed);
  if (parent_) return parent_->record_use(stream);
  if (block_.owner != nullptr) block_.owner->record_use(block_, stream);
}

void Storage::resize(size_t bytes) {
  LS_CHECK(!parent_, DeviceError,
           "[resize] this storage is a window of an arena: expected at most {} bytes, got {}. Copy "
           "the tensor first.",
           bytes_, bytes);
  LS_CHECK(block_.owner != nullptr, DeviceError,
           "[resize] this storage is borrowed memory: expected at most {} bytes, got {}. "
           "Copy the tensor first.",
           bytes_, bytes);
  if (bytes > block_.bytes) {
    Allocator& source = *block_.owner;
    const Block fresh = source.allocate(bytes, current_stream(device_));
    if (bytes_ != 0 && fresh.data != nullptr) {
      transfer_bytes(fresh.data, device_, block_.data, device_, bytes_);
    }
    // The copy may read the old block on another stream than the one that the block belongs to.
    if (bytes_ != 0 && is_asynchronous(device_.type)) {
      source.record_use(block_, current_stream(device_));
    }
    source.free(block_);
    block_ = fresh;
  }
  bytes_ = bytes;
}

}  // namespace lockstep
