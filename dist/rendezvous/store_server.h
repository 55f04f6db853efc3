#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::dist {

struct StoreServerOptions {
  /// Address to listen at, "host:port"; port 0 lets the system choose. The host must be an address
  /// of this machine that the other ranks can reach: "0.0.0.0" stands for all of its addresses;
  /// beware that a machine's own name may resolve to its loopback (/etc/hosts).
  std::string address = "127.0.0.1:0";
  /// Name of the job: ranks of other jobs are refused.
  std::string job = {};
  /// Secret of the job's ranks. It prevents accidental connections, but not an attacker who can
  /// read the network traffic.
  std::string secret = {};
  int world_size = 1;
  /// Rank that the server runs in; -1 for none, as in a launcher.
  int rank = 0;
  /// Time without an answer of a rank's host after which the rank is lost; at least 1 s.
  std::chrono::milliseconds silence{10'000};
  /// Whether it listens no longer once all ranks have come (Rendezvous::frees_address).
  bool frees_address = false;
};

/// The server of a job's store (dist/rendezvous/store.h): its ranks rendezvous here and are told if
/// one of them ends. Has a thread, which sleeps while nothing happens.
///
/// A new connection has 10 s to identify itself as a rank of this job with a short message; others
/// are refused with the reason, without effect on the ranks. If no file descriptor is left,
/// unidentified connections are closed first, then new ones are refused. Thread-safe.
///
/// A rank whose connection ends is lost at once: its process was killed or crashed. If its host
/// vanishes or the network is cut, it is lost after `silence` without answers. A process that is
/// stopped (SIGSTOP, a debugger, a frozen container) is never lost: its host still answers, and it
/// may be continued. Until then, operations that wait for it wait until their own timeouts; if the
/// stopped process is that of the server, so do all requests to the store.
class StoreServer {
 public:
  /// Listens. Throws BackendError for a host that does not resolve or is not this machine and for a
  /// port in use, DistError for invalid options.
  explicit StoreServer(StoreServerOptions options);
  /// Ends all connections. That is a failure of the server's rank unless it has left.
  ~StoreServer();

  /// Address it listens at, with the actual port.
  const std::string& address() const;
  /// The last 16 refused connections, with the reasons.
  std::vector<std::string> refusals() const;
  /// Waits until all ranks have left; returns false after `timeout` or if the job has failed. With
  /// it, ranks can leave in any order as the server outlives them.
  bool wait_until_left(std::chrono::milliseconds timeout) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist
