#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dist {

/// A message between a rank and the store's server. Wire format, little-endian: length of the rest
/// (u32), kind (u8), id (u64), count of numbers (u8) and of texts (u16), numbers (i64), texts (u32
/// length and bytes).
struct StoreMessage {
  enum class Kind : uint8_t {
    // From a rank. If there is an answer, it has the id that the rank chose for the request.
    // Listed after each kind: numbers; texts.
    kHello = 1,   ///< protocol, rank or kAnyRank, world size, pid; kStoreMagic, job, secret, host
    kSet,         ///< ; key, value
    kGet,         ///< timeout in ms; key
    kAdd,         ///< amount; key
    kCheck,       ///< ; keys
    kWait,        ///< timeout in ms; keys
    kCompareSet,  ///< ; key, expected, desired
    kErase,       ///< ; key
    kJoin,        ///< timeout in ms
    kBarrier,     ///< timeout in ms; name
    kLeave,
    kFail,  ///< no answer; text
    kPost,  ///< no answer; to; text. From the server: from; text
    // From the server.
    kWelcome = 64,  ///< rank or -1, pid, the client's rank; kStoreMagic, host: of the server
    kRefusal,       ///< StoreStatus; text
    kAnswer,        ///< StoreStatus; value or text of the error
    kFailure,       ///< rank; text
    kClosing,       ///< the server ends normally
  };
  Kind kind = Kind::kHello;
  uint64_t id = 0;
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;

  friend bool operator==(const StoreMessage&, const StoreMessage&) = default;
};

/// Result of a request: success, or the type of the error.
enum class StoreStatus : int64_t { kOk, kDistError, kTimeoutError, kPeerLostError, kMismatchError };
/// Throws the error of a status that is not kOk.
[[noreturn]] void throw_error(StoreStatus status, const std::string& text);

inline constexpr int64_t kStoreProtocol = 2;
/// Number of a rank that leaves it to the server to give it one.
inline constexpr int kAnyRank = -1;
inline constexpr const char* kStoreMagic = "lockstep-store";
/// Largest messages on the wire, after the length: of ranks, and of senders not identified yet.
inline constexpr size_t kLargestStoreMessage = size_t{17} << 20;
inline constexpr size_t kLargestHello = 4096;

/// Encodes a message including its length. Throws DistError if it is larger than
/// kLargestStoreMessage.
std::string encode(const StoreMessage& message);
/// Decodes the bytes after the length; nullopt if they are not a message.
std::optional<StoreMessage> decode(std::string_view bytes);

/// Whether the message has exactly that many numbers and texts (negative `texts`: at least one).
bool has_form(const StoreMessage& message, size_t numbers, int texts);

}  // namespace lockstep::dist
