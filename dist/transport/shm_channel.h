#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "dist/transport/shm_ring.h"
#include "dist/transport/transfer.h"

namespace lockstep::dist {

/// What two ranks share for the messages from one of them to the other.
struct ShmLink {
  RingPositions positions;
  /// Bytes of messages sent unasked that the receiver has found a place for, in all.
  alignas(64) std::atomic<uint64_t> placed{0};
};

/// The messages between this rank and one peer, through a ring each way.
///
/// A message goes into the ring at once, and where nobody asks for it yet, the receiver puts it
/// aside. The sender keeps count of what may lie there: beyond twice the ring's bytes, a message is
/// only announced, and sent when the receiver, having been asked for it, grants it. So what is in a
/// ring always finds a place, whatever the order in which messages are asked for: two ranks cannot
/// block each other, and the memory for early messages is bounded.
class ShmChannel {
 public:
  /// One direction.
  struct End {
    ShmLink* link = nullptr;
    std::byte* data = nullptr;  ///< the ring's
  };
  /// `ring_peer` wakes the peer where it sleeps.
  ShmChannel(End out, End in, size_t ring_bytes, std::function<void()> ring_peer);

  // As Transport's; of a closed channel, messages fail.
  void send(uint64_t tag, const void* data, size_t bytes, Message& message);
  void receive(uint64_t tag, void* data, size_t bytes, Message& message);
  /// Whether the message was one of this channel's. One that is half sent fails at the peer.
  bool cancel(Message& message);

  /// Moves what can be moved; whether a message came to an end, now or in the calls above.
  bool progress();
  /// Takes what the peer had still sent, then fails what is pending, and what comes later unless it
  /// asks for a message that has arrived.
  void close(const std::string& error);
  bool is_closed() const noexcept { return !error_.empty(); }

  /// Whether `progress` has something to do.
  bool is_ready() noexcept;
  /// Between these two, the peer rings this rank's bell when it has made room for what waits to be
  /// sent. Look at `is_ready` after the first.
  void before_sleep() noexcept;
  void after_sleep() noexcept;
  /// Whether no message is pending.
  bool is_idle() const noexcept { return pending_ == 0; }

 private:
  struct Record;
  enum class Kind : uint32_t;

  // The sending side.
  void push();
  bool begin_next();
  bool push_chunk();
  bool has_room(size_t bytes) noexcept;
  void write(const Record& record, const void* data) noexcept;
  void publish() noexcept;
  void order(Kind kind, uint64_t id);
  void take_grant(uint64_t id);

  // The receiving side.
  void pull();
  void take(const Record& record);
  void take_message(const Record& record);
  void take_chunk(const Record& record);
  void take_abandoned(uint64_t id);
  void place(Transfer* transfer, void* data, size_t room, Message& message);
  void arrived(Transfer* transfer);
  void count_placed(uint64_t bytes) noexcept;

  void end(Message& message, size_t bytes);
  void fail(Message& message, std::string error);
  void fail_and_drop(Transfer* transfer, const std::string& error);
  void fail_all(TransferQueue& queue, const std::string& error);

  RingWriter out_;
  RingReader in_;
  ShmLink& out_link_;
  ShmLink& in_link_;
  std::function<void()> ring_peer_;
  TransferPool pool_;
  std::string error_;  ///< why it is closed
  int pending_ = 0;
  bool ended_ = false;  ///< a message did, since `progress` last told

  uint64_t next_id_ = 0;
  uint64_t unasked_ = 0;  ///< bytes sent so, in all
  size_t needs_ = 0;      ///< room that sending waits for; 0: it does not wait
  TransferQueue orders_;  ///< to be sent before anything else; `tag` is the kind
  TransferQueue waiting_;
  TransferQueue announced_;
  TransferQueue granted_;
  Transfer* sending_ = nullptr;

  uint64_t placed_ = 0;
  TransferTable posted_;
  TransferTable early_;
  TransferQueue arriving_;         ///< granted
  Transfer* receiving_ = nullptr;  ///< what the chunks belong to; it may be among the early ones
};

}  // namespace lockstep::dist
