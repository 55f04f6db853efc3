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
    /// "host:port" where the ranks met at first, and others may join them; empty: nobody may.
    std::string door = {};
    /// Consecutive ranks that keep parts of one model. The first ranks of such groups come first
    /// where it is asked which rank is the lowest, then the second ones, and so on.
    int shard_size = 1;
  };
  /// Exchanges where each rank listens. Collective over `group`, of all the job's ranks.
  Members(Start start, const Communicator& communicator, ProcessGroup& group);
  /// A rank that is alone, and may be joined.
  explicit Members(Start start);
  /// A process that the ranks have called, as number `rank` among them and those that are called
  /// with it. `invitation` is theirs, with the places of the latter; `port` that of its own place.
  Members(Start start, int rank, OpenPort port, std::vector<std::string> invitation);

  /// What processes need to know to meet these ranks, to which the places of all processes that are
  /// called must be added.
  std::vector<std::string> invitation() const;
  /// The place of a process that listens at `port`.
  static std::string place_of(const OpenPort& port);
  /// Whether processes that join `door` are on its host: then they listen on loopback alone.
  static bool is_local(const std::string& door);
  /// Where the door of each rank would be ("host:port"), were it to lead; none where all are on one
  /// host.
  std::vector<std::string> doors() const;
  /// Processes that have been called are waited for as well when these ranks meet. On all ranks.
  void expect(const std::vector<std::string>& places);

  struct Terms {
    std::string told;                   ///< what this rank tells the others of itself
    std::chrono::milliseconds wait{0};  ///< for a rank that is not gone
    /// Called on the lowest rank that is left: why those present may not go on; empty if they may.
    std::function<std::string(const std::vector<RollCall::Present>&)> obstacle;
    /// Called on all ranks, where they may go on: those that do, as places in the list, by their
    /// new numbers; the lowest first. Empty: all, in their order.
    std::function<std::vector<size_t>(const std::vector<RollCall::Present>&)> arrange = {};
  };
  /// Ranks that are connected again.
  struct Met {
    std::vector<RollCall::Present> present;      ///< those that go on; the place is the new number
    std::vector<RollCall::Present> left_out;     ///< came, and do not go on
    int rank = 0;                                ///< the new number of this one
    std::shared_ptr<Communicator> communicator;  ///< null where this rank is alone
    RankPlace place;
    Start start;  ///< for the next Members
  };
  struct Outcome {
    std::optional<Met> met;
    std::string why;           ///< they do not go on; empty if they do
    bool is_left_out = false;  ///< the others go on without this rank, which has come
  };
  /// After the group has failed, or all have agreed to leave it: connects the ranks that are left.
  /// Collective over them; where one of them is lost meanwhile, the others try again. Returns
  /// within a few of the `wait`s. Throws nothing.
  Outcome meet(const Terms& terms);
  /// From now on the others need not wait for this rank.
  void leave() { roll_.leave(); }

  /// The hosts of the ranks, by rank, and of the processes that are expected.
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// Number of the ranks, without those that are expected.
  int size() const { return size_; }
  const Start& start() const { return start_; }

 private:
  void find_all();
  std::vector<int> order() const;
  Outcome try_to_meet(const Terms& terms);
  std::shared_ptr<StoreServer> serve(int size) const;
  Met connect(Met met, const RollCall::Outcome& outcome, std::shared_ptr<StoreServer> server) const;

  Start start_;
  int rank_;
  bool local_;  ///< all ranks are on one host, and so are those that may join them
  int size_ = 1;
  std::vector<std::string> places_;  ///< host name and RollCall::description, by rank
  std::vector<bool> near_;           ///< by rank: whether it is known to be on this host
  std::vector<std::string> hosts_;
  RollCall roll_;
};

}  // namespace lockstep::dist
