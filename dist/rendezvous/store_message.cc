#include "dist/rendezvous/store_message.h"

#include <bit>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

/// Reads values from the front; `take` returns false if too few bytes are left.
class Bytes {
 public:
  explicit Bytes(std::string_view left) : left_(left) {}

  template <class T>
  bool take(T& value) {
    if (left_.size() < sizeof value) return false;
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return true;
  }
  bool take(std::string& text, size_t bytes) {
    if (left_.size() < bytes) return false;
    text.assign(left_.substr(0, bytes));
    left_.remove_prefix(bytes);
    return true;
  }
  size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
};

bool is_kind(uint8_t kind) {
  using Kind = StoreMessage::Kind;
  return (kind >= static_cast<uint8_t>(Kind::kHello) &&
          kind <= static_cast<uint8_t>(Kind::kPost)) ||
         (kind >= static_cast<uint8_t>(Kind::kWelcome) &&
          kind <= static_cast<uint8_t>(Kind::kClosing));
}

}  // namespace

void throw_error(StoreStatus status, const std::string& text) {
  if (status == StoreStatus::kTimeoutError) throw TimeoutError(text);
  if (status == StoreStatus::kPeerLostError) throw PeerLostError(text);
  if (status == StoreStatus::kMismatchError) throw MismatchError(text);
  throw DistError(text);
}

std::string encode(const StoreMessage& message) {
  size_t bytes = sizeof(uint8_t) + sizeof message.id + sizeof(uint8_t) + sizeof(uint16_t) +
                 message.numbers.size() * sizeof(int64_t);
  for (const std::string& text : message.texts) bytes += sizeof(uint32_t) + text.size();
  LS_CHECK(bytes <= kLargestStoreMessage && message.texts.size() <= UINT16_MAX, DistError,
           "[store] {} bytes in {} keys and values are more than a message may have: {} bytes, {} "
           "texts. The store is for small values; send tensors with a process group.",
           bytes, message.texts.size(), kLargestStoreMessage, UINT16_MAX);
  LS_ASSERT(message.numbers.size() <= UINT8_MAX);
  std::string out;
  out.reserve(sizeof(uint32_t) + bytes);
  put(out, static_cast<uint32_t>(bytes));
  put(out, static_cast<uint8_t>(message.kind));
  put(out, message.id);
  put(out, static_cast<uint8_t>(message.numbers.size()));
  put(out, static_cast<uint16_t>(message.texts.size()));
  for (const int64_t number : message.numbers) put(out, number);
  for (const std::string& text : message.texts) {
    put(out, static_cast<uint32_t>(text.size()));
    out += text;
  }
  return out;
}

std::optional<StoreMessage> decode(std::string_view frame) {
  Bytes bytes(frame);
  StoreMessage message;
  uint8_t kind = 0;
  uint8_t numbers = 0;
  uint16_t texts = 0;
  if (!bytes.take(kind) || !is_kind(kind) || !bytes.take(message.id) || !bytes.take(numbers) ||
      !bytes.take(texts)) {
    return std::nullopt;
  }
  // Check the counts before allocating memory for them.
  if (bytes.left() < numbers * sizeof(int64_t) + texts * sizeof(uint32_t)) return std::nullopt;
  message.kind = static_cast<StoreMessage::Kind>(kind);
  message.numbers.resize(numbers);
  for (int64_t& number : message.numbers) bytes.take(number);
  message.texts.resize(texts);
  for (std::string& text : message.texts) {
    uint32_t length = 0;
    if (!bytes.take(length) || !bytes.take(text, length)) return std::nullopt;
  }
  if (bytes.left() != 0) return std::nullopt;
  return message;
}

bool has_form(const StoreMessage& message, size_t numbers, int texts) {
  return message.numbers.size() == numbers &&
         (texts < 0 ? !message.texts.empty() : message.texts.size() == static_cast<size_t>(texts));
}

}  // namespace lockstep::dist
