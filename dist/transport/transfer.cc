#include "dist/transport/transfer.h"

#include <algorithm>
#include <bit>

namespace lockstep::dist {

SpareBuffer TransferPool::make_buffer(size_t bytes) {
  constexpr size_t kLeast = 256;
  const size_t capacity = std::bit_ceil(std::max(bytes, kLeast));
  auto& spares = buffers_[static_cast<size_t>(std::countr_zero(capacity))];
  if (spares.empty()) {
    return {std::make_unique_for_overwrite<std::byte[]>(capacity), capacity};
  }
  SpareBuffer buffer = std::move(spares.back());
  spares.pop_back();
  return buffer;
}

void TransferPool::drop(SpareBuffer buffer) {
  if (buffer.data == nullptr) return;
  auto& spares = buffers_[static_cast<size_t>(std::countr_zero(buffer.capacity))];
  spares.push_back(std::move(buffer));
}

}  // namespace lockstep::dist
