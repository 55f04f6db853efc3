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

/// Every rank calls it with a text of its own, and gets all ranks' texts, in the order of ranks.
using AllGatherBytes = std::function<std::vector<std::string>(std::string)>;

/// Messages between ranks of one machine, through rings in memory that they share: a ring for each
/// of the others to write to, in each rank's own memory. Ranks are processes, or threads of some.
///
/// A message is copied twice; a send is done when it is in the receiver's ring. Messages that are
/// not asked for yet take at most twice a ring's bytes from each peer. A message that is cancelled
/// when half of it was sent fails at the receiver.
///
/// When a peer's process ends, however it does, what is pending with it fails within some 0.1 s;
/// likewise at once when its transport is destroyed. What it had sent is still received.
class ShmTransport final : public Transport {
 public:
  struct Options {
    /// Of each ring, a power of two, at least 16 KiB. 0: 1 MiB, less with many ranks.
    size_t ring_bytes = 0;
    /// What the ranks are called in texts of errors: numbers within a job of several machines.
    std::vector<int> names;
  };

  /// All ranks call it; it uses `all_gather` twice. Throws OutOfMemoryError or BackendError on all
  /// of them where one of them fails.
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
  /// As `sleep`, but also until one of `files` is ready for what its `events` ask; `revents` tell.
  /// The first is used by this class.
  void sleep(std::chrono::microseconds limit, std::span<pollfd> files);
  void wake() noexcept override;
  size_t segment_bytes() const override;
  int window() const override;

 private:
  struct Peer {
    SharedMemory memory;  ///< where its ring for this rank is
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
  SharedMemory memory_;  ///< its own: the bell, and the rings that it reads
  ShmInbox* inbox_ = nullptr;
  Bell bell_;
  std::vector<Peer> peers_;  ///< by rank; that of this rank is empty
  ProcessWatch watch_;
  std::vector<size_t> watched_;
  std::chrono::steady_clock::time_point last_look_;
  uint32_t calls_ = 0;
  std::atomic<bool> woken_{false};
};

}  // namespace lockstep::dist
