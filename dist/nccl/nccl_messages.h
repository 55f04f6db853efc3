#pragma once

#include <chrono>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/event.h"
#include "dist/collectives/operation.h"
#include "dist/group/process_group.h"
#include "dist/nccl/nccl_communicator.h"
#include "dist/nccl/nccl_device.h"
#include "dist/nccl/nccl_watch.h"

namespace lockstep::dist {

/// The sends and receives of a group. NCCL has no tags and matches messages by order only; so each
/// combination of direction, peer and tag has its own two-rank communicator and stream, made with
/// the first message, and its messages do not wait for others.
///
/// The sender announces each message over the cpu's group first. So it is queued only when both
/// sides know its size, differing sizes are a MismatchError, and a missing rank is named.
class NcclMessages {
 public:
  struct Settings {
    std::shared_ptr<const NcclLibrary> library;
    std::shared_ptr<const NcclDevice> device;
    NcclConfig config;
    size_t chunk_bytes = 0;
  };
  /// `announcements` must not be used for anything else.
  NcclMessages(Settings settings, std::unique_ptr<ProcessGroup> announcements);

  /// Adds a message that this rank called. `queued` describes it and holds its `work`; its events
  /// are recorded here. Any thread.
  void add(Operation operation, NcclQueued queued);
  /// Queues the messages that are ready and passes them to `launched`. Returns whether there was
  /// progress; throws errors. Only one thread.
  bool advance(const std::function<void(NcclQueued)>& launched);
  /// Whether messages are waiting to be queued.
  bool waits() const;

  /// Aborts the communicators and returns the messages not queued. Later `add`s throw `error`.
  std::vector<NcclQueued> fail(const std::exception_ptr& error);
  /// End the communicators together with their other ranks; see NcclCommunicator.
  void finalize() noexcept;
  void finish(const NcclWait& wait) noexcept;

 private:
  struct Key {
    OpKind direction;
    int peer;
    uint32_t tag;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Message {
    Operation operation;
    NcclQueued queued;
    Event ready;  ///< end of the work queued before it on the caller's stream
    Tensor announcement;
    Work announced;
    std::chrono::steady_clock::time_point since;
    bool launched = false;
  };
  struct Channel {
    NcclCommunicator::Pointer communicator;
    std::unique_ptr<OwnedStream> stream;
    std::deque<Message> waiting;
  };

  bool advance(Channel& channel, const std::function<void(NcclQueued)>& launched)
      LS_REQUIRES(lock_);
  void check_announcement(const Message& message) const;
  void launch(Channel& channel, Message& message) LS_REQUIRES(lock_);

  const Settings settings_;
  const std::unique_ptr<ProcessGroup> announcements_;
  mutable Mutex lock_;
  std::map<Key, Channel> channels_ LS_GUARDED_BY(lock_);
  std::exception_ptr failure_ LS_GUARDED_BY(lock_);
};

}  // namespace lockstep::dist
