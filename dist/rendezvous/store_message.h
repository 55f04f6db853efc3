#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::dist {

/// What a rank and the store's server say to each other. On the wire: length of the rest (u32),
/// kind (u8), id (u64), how many numbers (u8) and texts (u16), numbers (i64), texts (u32 length and
/// bytes); little-endian.
struct StoreMessage {
  enum class Kind : uint8_t {
    // A rank's. Those with an answer have an id of the rank's choice, which the answer bears.
    kHello = 1,   ///< protocol, rank, world size, pid; kStoreMagic, job, secret, host
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
    // The server's.
    kWelcome = 64,  ///< rank or -1, pid; kStoreMagic, host: of the server
    kRefusal,       ///< StoreStatus; text
    kAnswer,        ///< StoreStatus; value or text of the error
    kFailure,       ///< rank; text
    kClosing,       ///< the server ends as it should
  };
  Kind kind = Kind::kHello;
  uint64_t id = 0;
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;

  friend bool operator==(const StoreMessage&, const StoreMessage&) = default;
};

/// What came of a request, and which error it is otherwise.
enum class StoreStatus : int64_t { kOk, kDistError, kTimeoutError, kPeerLostError, kMismatchError };
/// Throws the error of a status that is not kOk.
[[noreturn]] void throw_error(StoreStatus status, const std::string& text);

inline constexpr int64_t kStoreProtocol = 1;
inline constexpr const char* kStoreMagic = "lockstep-store";
/// Bytes of a message on the wire after its length; of one from who has not yet said who he is.
inline constexpr size_t kLargestStoreMessage = size_t{17} << 20;
inline constexpr size_t kLargestHello = 4096;

/// With its length in front. Throws DistError where it is larger than kLargestStoreMessage.
std::string encode(const StoreMessage& message);
/// Of what follows the length; none for bytes that are no message.
std::optional<StoreMessage> decode(std::string_view bytes);

/// Whether it has exactly so many numbers, and texts (negative: at least one).
bool has_form(const StoreMessage& message, size_t numbers, int texts);

}  // namespace lockstep::dist
