#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::dist {

struct StoreServerOptions {
  /// Where to listen, "host:port"; port 0 lets the system choose. The host must be an address of
  /// this machine that the others reach: "0.0.0.0" is all of them, and a machine's own name may
  /// stand for its loopback (/etc/hosts).
  std::string address = "127.0.0.1:0";
  /// Which job this is: a rank that asks for another is refused.
  std::string job;
  /// What only the job's ranks know. It keeps out accidents, not those who read the network.
  std::string secret;
  int world_size = 1;
  /// The rank that the server runs in; -1 for none, as in a launcher.
  int rank = 0;
  /// After so long without a sign of a rank's host the rank counts as lost; at least 1 s.
  std::chrono::milliseconds silence{10'000};
};

/// The store of a job (dist/rendezvous/store.h), where its ranks meet and learn of each other's
/// end, with a thread of its own that sleeps while nothing happens.
///
/// Whoever connects has 10 s to say that he is a rank of this job, in few bytes; who is not is told
/// why and sent away, and the others do not notice. Where no file descriptor is left, those that
/// have not said who they are make way, then newcomers are told so. Thread-safe.
///
/// A rank whose connection ends is lost at once: its process was killed or crashed. One whose host
/// vanishes, or whose network is cut, is lost after `silence`: its system no longer answers. A
/// process that is stopped (SIGSTOP, a debugger, a frozen container) is not lost, however long: its
/// host answers for it, and it goes on when it is continued. Until then what waits for it waits, to
/// its own timeout. Where the stopped process is that of the server, so does all that asks the
/// store.
class StoreServer {
 public:
  /// Listens. Throws BackendError for a host that does not resolve or is not this machine and for a
  /// port in use, DistError for options that cannot be right.
  explicit StoreServer(StoreServerOptions options);
  /// Ends all connections. It is the failure of the server's rank unless that has left.
  ~StoreServer();

  /// Where it listens, with the port that the system chose.
  const std::string& address() const;
  /// The last 16 that were not let in, and why.
  std::vector<std::string> refusals() const;
  /// Waits until all ranks have left; false after `timeout`, and once the job has failed. Ranks
  /// that the server outlives can leave in any order.
  bool wait_until_left(std::chrono::milliseconds timeout) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist
