#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/descriptor.h"
#include "dist/transport/transfer.h"

namespace lockstep::dist {

/// The messages between this rank and one peer, over a TCP connection.
///
/// The protocol is that of ShmChannel: a message is sent at once (eagerly), and buffered by the
/// receiver if no receive is posted yet. At most kEagerBytes may be buffered: beyond that a message
/// is only announced, and sent when the receiver, once a receive is posted, grants it. So what
/// arrives can always be read, in whatever order receives are posted, and two ranks cannot block
/// each other.
///
/// Bytes go from the sender's memory to the socket and from the socket to the receiver's memory
/// without copies in between, except for messages that come before their receives, and up to 4 KiB
/// of a message that arrive together with its header.
class TcpChannel {
 public:
  static constexpr size_t kEagerBytes = size_t{4} << 20;

  /// `socket`: connected, non-blocking, and not used before except for greetings.
  explicit TcpChannel(Descriptor socket);
  ~TcpChannel();
  TcpChannel(const TcpChannel&) = delete;
  TcpChannel& operator=(const TcpChannel&) = delete;

  // See Transport. Messages of a closed channel fail.
  void send(uint64_t tag, const void* data, size_t bytes, Message& message);
  void receive(uint64_t tag, void* data, size_t bytes, Message& message);
  /// Returns false if the message is not one of this channel. A message that is partly sent is
  /// copied and still arrives.
  bool cancel(Message& message);

  /// Sends what the system accepts.
  void push();
  /// Reads what has arrived, up to a bound. Returns false if nothing is left to read now.
  bool pull();
  /// Fails pending messages. Later ones fail too, except receives of messages that have arrived.
  void close(const std::string& error);
  bool is_closed() const noexcept { return !error_.empty(); }
  /// Why `pull` found the connection to have ended: a predicate, such as "has closed its
  /// connection"; empty while it has not.
  const std::string& end_of_peer() const noexcept { return end_of_peer_; }

  /// Returns the bytes of messages that have ended since the last call, and sets `ended` if there
  /// were any.
  size_t take_ended(bool& ended) noexcept;
  /// Whether `push` has something to send. If `is_blocked`, the system did not accept it last time.
  bool has_unsent() const noexcept;
  bool is_blocked() const noexcept { return blocked_; }
  int pending() const noexcept { return messages_.pending(); }
  int fd() const noexcept { return socket_.get(); }

 private:
  enum class Kind : uint32_t;
  struct Header;
  /// A header on its way out, with its payload.
  struct Outgoing;

  // The sending side.
  void fill();
  bool begin_next();
  void enqueue(Kind kind, uint64_t id, Transfer* transfer);
  void sent(size_t bytes);
  void order(Kind kind, uint64_t id);

  // The receiving side.
  void take_staged();
  void take(const Header& header);
  void take_message(const Header& header);
  void take_grant(uint64_t id);
  void take_abandoned(uint64_t id);
  void begin_payload(Transfer* transfer);
  void payload_moved(size_t bytes);
  void place(Transfer* transfer, void* data, size_t room, Message& message);
  void arrived(Transfer* transfer);

  Descriptor socket_;
  TransferPool pool_;
  std::string error_;  ///< why it is closed
  std::string end_of_peer_;
  ChannelMessages messages_;

  uint64_t next_id_ = 0;
  uint64_t eager_bytes_ = 0;   ///< total bytes of messages sent eagerly
  uint64_t placed_there_ = 0;  ///< of those, bytes that the peer has matched with a receive
  bool blocked_ = false;
  bool broken_ = false;    ///< sending has failed: what has arrived is still to be read
  TransferQueue control_;  ///< sent before anything else; `tag` is the kind
  TransferQueue waiting_;
  TransferQueue announced_;
  TransferQueue granted_;
  std::unique_ptr<Outgoing[]> out_;  ///< ring of what is being sent
  size_t out_first_ = 0;
  size_t out_count_ = 0;

  uint64_t placed_ = 0;       ///< total bytes of eager messages matched with a receive here
  uint64_t placed_told_ = 0;  ///< of those, as far as the peer was told
  TransferTable posted_;
  TransferTable early_;
  TransferQueue arriving_;               ///< granted messages that have not begun to arrive
  Transfer* receiving_ = nullptr;        ///< message whose bytes come next; may be in early_, too
  std::unique_ptr<std::byte[]> staged_;  ///< bytes read beyond the memory of a message
  size_t staged_first_ = 0;
  size_t staged_end_ = 0;
  std::unique_ptr<std::byte[]> waste_;  ///< takes the bytes of cancelled messages
};

}  // namespace lockstep::dist
