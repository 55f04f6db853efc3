#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::dist {

/// One send or receive in flight. It is owned by the caller, who must not move it until it is done,
/// failed or cancelled.
struct Message {
  enum class State : uint8_t { kIdle, kPending, kDone, kFailed };
  State state = State::kIdle;
  /// Bytes moved, once done. For a receive that failed because the message was too large, the size
  /// of the message.
  size_t bytes = 0;
  std::string error;  ///< why it failed
};

/// Moves bytes between the ranks of a job. One per rank; all calls except `wake` come from the
/// rank's communication thread.
///
/// Between two ranks, messages with the same tag arrive in the order sent; messages with different
/// tags are never matched with each other and may overtake each other. Nothing blocks.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Tags must be below this; at least 2^30.
  virtual uint64_t tag_limit() const = 0;
  /// Posts a send. `data` must not change until it is done. If the peer has ended, the message
  /// fails, now or later; the call never throws.
  virtual void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) = 0;
  /// Posts a receive of at most `bytes` bytes. A shorter message is fine, a longer one makes it
  /// fail.
  virtual void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) = 0;
  /// Cancels a message, whose memory is not touched afterwards.
  virtual void cancel(Message& message) noexcept = 0;

  /// Moves what can be moved now; returns whether a message has ended.
  virtual bool progress() = 0;
  /// Sleeps until something may have happened or `limit` has passed, without occupying a core. May
  /// return early.
  virtual void sleep(std::chrono::microseconds limit) = 0;
  /// Ends the current or next `sleep`. May be called from any thread.
  virtual void wake() noexcept = 0;

  /// Called after the job has failed: the destructor must not wait for other ranks.
  virtual void abandon() noexcept {}

  /// Best message size for large transfers, in bytes, and how many messages to have in flight to
  /// one peer.
  virtual size_t segment_bytes() const = 0;
  virtual int window() const = 0;
};

}  // namespace lockstep::dist
