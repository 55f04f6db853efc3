#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::dist {

/// One send or receive in flight. It belongs to who posted it and must stay where it is until it is
/// done, failed or cancelled.
struct Message {
  enum class State : uint8_t { kIdle, kPending, kDone, kFailed };
  State state = State::kIdle;
  /// That were moved, once done; of a receive that failed because it was sent more, how many.
  size_t bytes = 0;
  std::string error;  ///< of a failed one
};

/// Moves bytes between the ranks of a job. One per rank; all calls but `wake` come from the one
/// thread that communicates for the rank.
///
/// Between two ranks, messages with the same tag arrive in the order sent; messages with different
/// tags never meet, and may overtake each other. Nothing blocks.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Tags are below this; at least 2^30.
  virtual uint64_t tag_limit() const = 0;
  /// Posts a message. `data` must stay as it is until it is done. A peer that is gone makes the
  /// message fail, now or later; it never throws.
  virtual void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) = 0;
  /// The other side. One that is sent fewer bytes is done with those; more make it fail.
  virtual void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) = 0;
  /// Forgets a message; what it had pending in memory is not touched afterwards.
  virtual void cancel(Message& message) noexcept = 0;

  /// Moves what can be moved now; whether a message came to an end.
  virtual bool progress() = 0;
  /// Sleeps until something may have happened or `limit` has passed, without occupying a core. May
  /// return early.
  virtual void sleep(std::chrono::microseconds limit) = 0;
  /// Ends the present or next `sleep`. From any thread.
  virtual void wake() noexcept = 0;

  /// The job has failed, and its ranks will not come to the end together.
  virtual void abandon() noexcept {}

  /// Bytes of the messages that large transfers are best cut into, and how many of them to have
  /// in flight to one peer.
  virtual size_t segment_bytes() const = 0;
  virtual int window() const = 0;
};

}  // namespace lockstep::dist
