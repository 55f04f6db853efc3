#include "core/tensor/storage.h"

#include <algorithm>
#include <utility>

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

void Storage::place_window(Ref<Storage> parent, size_t offset) noexcept {
  parent_ = std::move(parent);
  block_ = {parent_->place(offset), bytes_, nullptr, nullptr};
}

void Storage::take_window_away(const std::string& why) {
  if (!why_away_) why_away_ = std::make_unique<const std::string>(why);
  block_ = {nullptr, bytes_, nullptr, nullptr};
  parent_ = {};
}

void* Storage::no_address() const {
  LS_CHECK(!why_away_ || bytes_ == 0 || device_.type == DeviceType::kMeta, DeviceError, "{}",
           *why_away_);
  return nullptr;
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
