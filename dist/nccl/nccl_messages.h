#pragma once

#include <chrono>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/tensor/event.h"
#include "dist/collectives/operation.h"
#include "dist/group/process_group.h"
#include "dist/nccl/nccl_communicator.h"
#include "dist/nccl/nccl_device.h"
#include "dist/nccl/nccl_watch.h"

namespace lockstep::dist {

/// The sends and receives of a group. NCCL knows no tags, and matches messages by their order
/// alone; so those of one direction, peer and tag have a communicator of two ranks and a stream of
/// their own, made with the first of them, and wait for no others.
///
/// Each message is announced over the cpu's group first. So it is queued only when the receiver
/// knows what comes, sizes that differ are a MismatchError, and a rank that does not come is named.
class NcclMessages {
 public:
  struct Settings {
    std::shared_ptr<const NcclLibrary> library;
    std::shared_ptr<const NcclDevice> device;
    NcclConfig config;
    size_t chunk_bytes = 0;
  };
  /// `announcements` is used for nothing else.
  NcclMessages(Settings settings, std::unique_ptr<ProcessGroup> announcements);

  /// A message that its rank has come to. `queued` tells what it is and has its `work`; its events
  /// are recorded here. Any thread.
  void add(Operation operation, NcclQueued queued);
  /// Queues what can be queued, and gives it to `launched`. Whether anything moved; throws what is
  /// wrong. One thread.
  bool advance(const std::function<void(NcclQueued)>& launched);
  bool waits() const;

  /// Aborts the communicators, and gives back what has not been queued. Later `add`s throw `error`.
  std::vector<NcclQueued> fail(const std::exception_ptr& error);
  /// Ends the communicators with their other ranks. `wait` as NcclCommunicator::finish.
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
    Event ready;  ///< what was queued before it, on the caller's stream
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

  bool advance(Channel& channel, const std::function<void(NcclQueued)>& launched);
  void check_announcement(const Message& message) const;
  void launch(Channel& channel, Message& message);

  const Settings settings_;
  const std::unique_ptr<ProcessGroup> announcements_;
  mutable std::mutex lock_;  // of what follows
  std::map<Key, Channel> channels_;
  std::exception_ptr failure_;
};

}  // namespace lockstep::dist
