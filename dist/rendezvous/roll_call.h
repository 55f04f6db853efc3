#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "dist/rendezvous/open_port.h"

namespace lockstep::dist {

/// Finds which ranks of a job are left after some were lost, without the job's store, whose host
/// may be one of them.
///
/// Each rank listens at a port from the start on, and knows those of the others. To call the roll
/// every rank connects to all others: one whose port is closed is gone. The lowest rank that is not
/// gone waits until all that are not gone have come, as some still compute; then it decides for
/// all, and tells those that have come. A rank that does not come for so long as the roll may wait
/// is left out, such as one that is stopped; when it comes at last, the others are gone for it. Not
/// thread-safe.
///
/// Several ranks may take themselves for the lowest, on the two sides of a cut network: what they
/// decide must rest on something of which there is one, such as a lock.
class RollCall {
 public:
  /// A rank that came, and what it told of itself.
  struct Present {
    int rank = 0;
    std::string told;
  };
  struct Decision {
    bool goes_on = false;
    std::string text;  ///< for all ranks; why they do not go on, or what they need to know
  };
  struct Outcome {
    Decision decision;
    std::vector<Present> present;  ///< by rank, with this one; none where they do not go on
    std::string caller_host;  ///< address at which this rank has reached the lowest; empty on it
  };
  using Decide = std::function<Decision(const std::vector<Present>&)>;

  /// Listens, on loopback alone if `local`. `key` is a secret of the ranks, and one of this start
  /// of the job: others are shut out. Throws BackendError.
  RollCall(int rank, std::string key, bool local);
  /// Listens at `port`, for a process that has told its place before it knew `rank` and `key`.
  RollCall(int rank, std::string key, OpenPort port);

  /// What the other ranks need to find this one.
  std::string description() const { return port_.description(); }
  const std::string& key() const { return key_; }
  /// Descriptions by rank, with this one's; `near`, by rank: whether it is on this host. May be
  /// called again with more ranks. `order`, alike on all: all ranks, the one first that decides if
  /// it is left, and so on: it is "the lowest" then. Empty: by number.
  void find_others_at(std::vector<std::string> descriptions, std::vector<bool> near,
                      const std::vector<int>& order = {});

  /// Calls the roll; may be called again when what was decided has failed. `told` goes to all
  /// ranks. `decide` is called on the lowest rank alone. A rank that is not gone is waited for
  /// as long as `wait`. Returns within four times that and 10 s. Throws BackendError.
  Outcome call(const std::string& told, std::chrono::milliseconds wait, const Decide& decide);

  /// From now on this rank is gone for the others.
  void leave() { port_.close(); }

 private:
  class Round;

  int rank_;
  std::string key_;
  OpenPort port_;
  std::vector<std::string> descriptions_;
  std::vector<bool> near_;
  std::vector<size_t> turns_;  ///< by rank: its place in the order
};

}  // namespace lockstep::dist
