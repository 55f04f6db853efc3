#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "dist/transport/shm_ring.h"
#include "dist/transport/transfer.h"

namespace lockstep::dist {

/// Shared state of the messages from one rank to another.
struct ShmLink {
  RingPositions positions;
  /// Total bytes of eagerly sent messages that the receiver has matched with a receive.
  alignas(64) std::atomic<uint64_t> placed{0};
};

/// The messages between this rank and one peer, through a ring in each direction.
///
/// Eager protocol: a message goes into the ring at once, and if no receive is posted yet, the
/// receiver buffers it. The sender limits the bytes that may be buffered: beyond twice the ring's
/// size it uses rendezvous, that is, it only announces a message and sends it when the receiver,
/// once a receive is posted, grants it. So data in a ring can always be taken out, in whatever
/// order receives are posted: two ranks cannot block each other, and the memory for early messages
/// is bounded.
class ShmChannel {
 public:
  /// One direction.
  struct End {
    ShmLink* link = nullptr;
    std::byte* data = nullptr;  ///< memory of the ring
  };
  /// `make_ring` allocates the memory of the ring of `out`. It is called before the first message,
  /// and where it throws OutOfMemoryError the channel is closed with that error. `ring_peer` wakes
  /// the peer if it sleeps.
  ShmChannel(End out, End in, size_t ring_bytes, std::function<void()> make_ring,
             std::function<void()> ring_peer);

  // See Transport. Messages of a closed channel fail.
  void send(uint64_t tag, const void* data, size_t bytes, Message& message);
  void receive(uint64_t tag, void* data, size_t bytes, Message& message);
  /// Returns false if the message is not one of this channel. A message that is partly sent fails
  /// at the peer.
  bool cancel(Message& message);

  /// Moves what can be moved; returns whether a message has ended, now or in the calls above.
  bool progress();
  /// Reads what the peer has still sent, then fails pending messages. Later ones fail too, except
  /// receives of messages that have arrived.
  void close(const std::string& error);
  bool is_closed() const noexcept { return !error_.empty(); }

  /// Whether `progress` has something to do.
  bool is_ready() noexcept;
  /// Between these two calls the peer rings this rank's bell when it has freed ring space that
  /// sending waits for. Check `is_ready` after the first.
  void before_sleep() noexcept;
  void after_sleep() noexcept;
  /// Whether no message is pending.
  bool is_idle() const noexcept { return messages_.pending() == 0; }

 private:
  struct Record;
  enum class Kind : uint32_t;

  // The sending side.
  bool has_ring();
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

  RingWriter out_;
  RingReader in_;
  ShmLink& out_link_;
  ShmLink& in_link_;
  std::function<void()> make_ring_;  ///< null once it was called
  std::function<void()> ring_peer_;
  TransferPool pool_;
  std::string error_;  ///< why it is closed
  ChannelMessages messages_;

  uint64_t next_id_ = 0;
  uint64_t eager_bytes_ = 0;  ///< total bytes of messages sent eagerly
  size_t needs_ = 0;          ///< ring space that sending waits for; 0 if it does not wait
  TransferQueue control_;     ///< control records, sent before anything else; `tag` is the kind
  TransferQueue waiting_;
  TransferQueue announced_;
  TransferQueue granted_;
  Transfer* sending_ = nullptr;

  uint64_t placed_ = 0;
  TransferTable posted_;
  TransferTable early_;
  TransferQueue arriving_;         ///< granted messages whose first chunk has not come
  Transfer* receiving_ = nullptr;  ///< message that the chunks belong to; may be in early_, too
};

}  // namespace lockstep::dist
