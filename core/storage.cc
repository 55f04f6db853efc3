#include "core/storage.h"

#include <algorithm>

#include "core/check.h"

namespace lockstep {

void Storage::resize(size_t bytes) {
  LS_CHECK(!parent_, DeviceError,
           "[resize] this storage is a window of an arena: expected at most {} bytes, got {}. Copy "
           "the tensor first.",
           bytes_, bytes);
  if (bytes > block_.bytes) {
    Allocator& source = lockstep::allocator(device_);
    const Block fresh = source.allocate(bytes, current_stream(device_));
    if (bytes_ != 0 && fresh.data != nullptr) {
      source.copy(fresh.data, block_.data, bytes_, Transfer::kWithin);
    }
    source.free(block_);
    block_ = fresh;
  }
  bytes_ = bytes;
}

}  // namespace lockstep
