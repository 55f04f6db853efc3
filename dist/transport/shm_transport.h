#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/transport/bell.h"
#include "dist/transport/process_watch.h"
#include "dist/transport/shared_memory.h"
#include "dist/transport/transport.h"

namespace lockstep::dist {

class ShmChannel;
struct ShmInbox;

/// Collective function that returns every rank's text, in the order of ranks.
using AllGatherBytes = std::function<std::vector<std::string>(std::string)>;

/// Messages between ranks of one machine through ring buffers in shared memory: each rank's memory
/// has one ring for each of the other ranks to write to, which takes memory from its first message
/// on. Ranks are processes or threads.
///
/// A message is copied twice; a send is done when it is in the receiver's ring. Messages without a
/// posted receive are buffered, at most twice a ring's bytes from each peer. A message that is
/// cancelled when partly sent fails at the receiver.
///
/// When a peer's process ends for any reason, messages pending with it fail within about 0.1 s;
/// when its transport is destroyed, they fail at once. Data that it had sent is still received.
class ShmTransport final : public Transport {
 public:
  struct Options {
    /// Size of each ring, a power of two, at least 16 KiB. 0: 1 MiB, less with many ranks.
    size_t ring_bytes = 0;
    /// Rank numbers used in error texts: those of a job that spans several machines.
    std::vector<int> names;
  };

  /// Collective; calls `all_gather` twice. Throws OutOfMemoryError or BackendError on all ranks if
  /// one of them fails. Later a lack of memory for a ring fails the messages to its rank.
  ShmTransport(int rank, int size, const AllGatherBytes& all_gather, Options options);
  ShmTransport(int rank, int size, const AllGatherBytes& all_gather)
      : ShmTransport(rank, size, all_gather, Options{}) {}
  ~ShmTransport() override;
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  uint64_t tag_limit() const override { return uint64_t{1} << 63; }
  void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) override;
  void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) override;
  void cancel(Message& message) noexcept override;
  bool progress() override;
  void sleep(std::chrono::microseconds limit) override;
  /// Sleeps also until one of `files` is ready for its `events`, as reported in `revents`. The
  /// first element is used by this class.
  void sleep(std::chrono::microseconds limit, std::span<pollfd> files);
  void wake() noexcept override;
  size_t segment_bytes() const override;
  int window() const override;

 private:
  struct Peer {
    SharedMemory memory;  ///< the peer's memory, with its ring for this rank
    ShmInbox* inbox = nullptr;
    OwnedFd bell;
    std::unique_ptr<ShmChannel> channel;
    std::string text;  ///< "rank 3 (process 4711)"
    bool left = false;
  };

  void make_inbox(std::string& description);
  void open_inboxes(const std::vector<std::string>& descriptions, const std::vector<int>& names);
  void poll(std::chrono::nanoseconds limit) noexcept;
  bool is_ready() noexcept;
  bool is_idle() const noexcept;
  void look_after_peers();

  int rank_;
  int pid_;
  size_t ring_bytes_;
  SharedMemory memory_;  ///< this rank's memory: its bell and the rings that it reads
  ShmInbox* inbox_ = nullptr;
  Bell bell_;
  std::vector<Peer> peers_;  ///< by rank; this rank's is unused
  ProcessWatch watch_;
  std::vector<size_t> watched_;
  std::chrono::steady_clock::time_point last_look_;
  uint32_t calls_ = 0;
  std::atomic<bool> woken_{false};
};

}  // namespace lockstep::dist
