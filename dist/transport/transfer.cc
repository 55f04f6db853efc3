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

void ChannelMessages::end(Message& message, size_t bytes) {
  message.bytes = bytes;
  message.state = Message::State::kDone;
  --pending_;
  ended_ = true;
  ended_bytes_ += bytes;
}

void ChannelMessages::fail(Message& message, std::string error) {
  message.error = std::move(error);
  message.state = Message::State::kFailed;
  --pending_;
  ended_ = true;
}

void ChannelMessages::forget(Message& message) {
  message.state = Message::State::kIdle;
  --pending_;
}

void ChannelMessages::fail_and_drop(TransferPool& pool, Transfer* transfer,
                                    const std::string& error) {
  if (transfer->message != nullptr) fail(*transfer->message, error);
  pool.drop(transfer);
}

void ChannelMessages::fail_all(TransferPool& pool, TransferQueue& queue, const std::string& error) {
  while (Transfer* const transfer = queue.pop()) fail_and_drop(pool, transfer, error);
}

}  // namespace lockstep::dist
