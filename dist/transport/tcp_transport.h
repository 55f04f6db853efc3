#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/descriptor.h"
#include "dist/transport/pacing.h"
#include "dist/transport/shm_transport.h"
#include "dist/transport/tcp_channel.h"
#include "dist/transport/transport.h"

namespace lockstep::dist {

/// Transport between ranks that are processes or threads of any hosts: shared memory (ShmTransport)
/// within a host, and a TCP connection between each two ranks of different hosts.
///
/// If a peer's process ends, messages pending with it fail; what it had sent is still received. A
/// host that vanishes is not noticed. A message that is cancelled when partly sent still arrives.
class TcpTransport final : public Transport {
 public:
  struct Options {
    /// Whether ranks of one host use shared memory; else TCP, for comparison or if the system
    /// refuses shared memory. Alike on all ranks.
    bool shared_memory = true;
    /// Connects this rank with `peers`, those that share no memory with it, and returns connected,
    /// non-blocking sockets by rank. `near`, by rank: whether the rank shares this one's loopback.
    /// Collective; not called if all ranks share memory.
    std::function<std::vector<Descriptor>(const std::vector<int>& peers,
                                          const std::vector<bool>& near)>
        connect;
    /// Ranks with the same name are on one host. Empty: found out (`host_identity`).
    std::string host;
  };

  /// Collective; calls `all_gather` several times. Throws BackendError, OutOfMemoryError and the
  /// errors of `connect`.
  TcpTransport(int rank, int size, const AllGatherBytes& all_gather, const Options& options);
  ~TcpTransport() override;

  /// Rank and number of ranks on this host.
  int local_rank() const noexcept { return local_rank_; }
  int local_size() const noexcept { return local_size_; }
  /// Number of hosts, and this host's among them, in the order of their first ranks.
  int host_count() const noexcept { return host_count_; }
  int host_rank() const noexcept { return host_rank_; }
  /// By rank: the number of its host.
  const std::vector<int>& hosts() const noexcept { return hosts_; }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(channels_.size()); }
  uint64_t tag_limit() const override { return uint64_t{1} << 63; }
  void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) override;
  void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) override;
  void cancel(Message& message) noexcept override;
  bool progress() override;
  void sleep(std::chrono::microseconds limit) override;
  void wake() noexcept override { shm_->wake(); }
  size_t segment_bytes() const override;
  int window() const override;

 private:
  void find_hosts(const std::vector<std::string>& hosts);
  void ask_for_events() noexcept;
  void look();
  void note_events();
  void close_if_ended(size_t peer);

  int rank_;
  int local_rank_ = 0;
  int local_size_ = 1;
  int host_count_ = 1;
  int host_rank_ = 0;
  std::vector<int> hosts_;  ///< by rank
  std::vector<int> local_;  ///< by rank: its number in `shm_`, or -1
  std::unique_ptr<ShmTransport> shm_;
  std::vector<std::unique_ptr<TcpChannel>> channels_;  ///< by rank; null for those in `shm_`
  std::vector<size_t> peers_;                          ///< ranks with channels
  std::vector<pollfd> files_;                          ///< the bell, then a socket of each peer
  std::vector<bool> readable_;                         ///< by peer: whether it may have bytes
  RestPolicy rest_policy_;
  uint32_t calls_ = 0;  ///< of `progress`, since the sockets were looked at
};

/// Names the host and its namespaces: processes with the same name can open each other's files in
/// /proc, and have the same network.
std::string host_identity();

}  // namespace lockstep::dist
