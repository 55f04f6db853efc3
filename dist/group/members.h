#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/group/tcp_group.h"
#include "dist/rendezvous/roll_call.h"

namespace lockstep::dist {

/// The ranks of a job that TCP connects, and that go on without those that are lost: after the loss
/// they call the roll (dist/rendezvous/roll_call.h), and those that are left meet at a new store,
/// which the lowest of them runs. Not thread-safe.
class Members {
 public:
  /// How the present ranks met.
  struct Start {
    Rendezvous where;
    std::function<Communicator::Options(int rank)> options;
    std::string alike = {};
    std::chrono::milliseconds silence{10'000};
  };
  /// Exchanges where each rank listens. Collective over `group`, of all the job's ranks.
  Members(Start start, const Communicator& communicator, ProcessGroup& group);

  struct Terms {
    std::string told;                   ///< what this rank tells the others of itself
    std::chrono::milliseconds wait{0};  ///< for a rank that is not gone
    /// Called on the lowest rank that is left: why those present may not go on; empty if they may.
    std::function<std::string(const std::vector<RollCall::Present>&)> obstacle;
  };
  /// Ranks that are connected again. The new number of each is its place in `present`.
  struct Met {
    std::vector<RollCall::Present> present;
    int rank = 0;                                ///< the new number of this one
    std::shared_ptr<Communicator> communicator;  ///< null where this rank is alone
    RankPlace place;
    Start start;  ///< for the next Members
  };
  struct Outcome {
    std::optional<Met> met;
    std::string why;  ///< they do not go on; empty if they do
  };
  /// After the group has failed: connects the ranks that are left. Collective over them; where one
  /// of them is lost meanwhile, the others try again. Returns within a few of the `wait`s. Throws
  /// nothing.
  Outcome meet(const Terms& terms);
  /// From now on the others need not wait for this rank.
  void leave() { roll_.leave(); }

  /// The hosts of the ranks, by rank.
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  Outcome try_to_meet(const Terms& terms);
  std::shared_ptr<StoreServer> serve(int size) const;
  Met connect(const RollCall::Outcome& outcome, std::shared_ptr<StoreServer> server) const;

  Start start_;
  int rank_;
  bool local_;  ///< all ranks are on one host
  std::vector<std::string> hosts_;
  RollCall roll_;
};

}  // namespace lockstep::dist
