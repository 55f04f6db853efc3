#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "dist/group/members.h"
#include "dist/rendezvous/door.h"
#include "train/report/run_lock.h"
#include "train/run/arrangement.h"
#include "train/run/held_out_watch.h"
#include "train/trainer.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

class Successor;

/// The loss of ranks after which the others go on, or that processes have joined them.
struct WorldChange {
  std::vector<int> lost;                  ///< by their numbers before it
  std::vector<std::string> hosts;         ///< of `lost`
  std::vector<std::string> joined_hosts;  ///< of those that have joined, one for each
  std::vector<int> waiting;               ///< ranks that wait until their group is whole again
  int ranks = 0;                          ///< there were before it
  int left = 0;                           ///< there are after it
  int64_t state_sent = 0;  ///< bytes of state that the ranks sent while nobody trained
  std::string at;          ///< time of day
  std::chrono::steady_clock::time_point noticed = std::chrono::steady_clock::now();
};
/// "rank 2 on host lsh1 is lost", "ranks 1, 2 on hosts lsh0, lsh1 are lost", "1 rank on host lsh1
/// has joined"
std::string change_text(const WorldChange& loss);

/// Thrown on all ranks between two steps: they leave their group, and meet again with the processes
/// that have been called to join them.
class JoinRequest : public DistError {
 public:
  explicit JoinRequest(std::vector<std::string> places);
  /// Where the processes listen, as dist::Door tells it.
  const std::vector<std::string>& places() const { return places_; }

 private:
  std::vector<std::string> places_;
};

/// What a rank takes along when it goes on with other ranks than before.
struct CarriedRun {
  std::filesystem::path directory;
  std::unique_ptr<RunLock> lock;  ///< of the directory, on the rank that leads from now on
  Trainer::Legacy trainer;
  std::optional<StepResult> last;  ///< the last step that this rank has finished
  std::optional<HeldOutMemory> held_out;
  int64_t steps = 0;  ///< that the state of this rank has done; -1: that is not whole
  /// The rank whose state all take, by its new number; -1: all have done the same steps. Of a model
  /// that is spread over groups of ranks what each rank has of it is told by `part_sources`.
  int source = -1;
  std::vector<int> part_sources;  ///< Arrangement::sources; empty where all have all state
  /// What this rank knows of the leader that it followed, whose lock it can take if that one is
  /// lost again before it has told the ranks of itself.
  std::shared_ptr<Successor> successor;
  WorldChange change;
  /// When training began in this process.
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

/// A run that goes on without ranks that are lost, and with processes that join it
/// (parallel.elastic). The program makes one, and sets `members`, while the ranks train together;
/// TrainingRun and follow_training then return RunEnd::kRegrouped after a loss, or between two
/// steps when processes wait at the leader's door, and the program calls one of them again, with
/// the group of `met`. A process that joins has `met` and `carried` from join_run
/// (train/run/joining.h).
///
/// With DDP every rank has all state, and the ranks have done the same number of steps or one more:
/// all take the state of one that has done most. With HYBRID_SHARD ranks form groups that have all
/// of it together (train/run/arrangement.h), and those that are left over wait at the leader's door
/// as processes do that join: `is_spare` tells the program so, and `carried` has the task. Who
/// leads holds the lock of the run's directory: rank 0 as long as it is left, otherwise the lowest
/// rank that is, if it gets the lock as a Successor does. Otherwise, and where too few are left,
/// the run ends as one that is not elastic.
struct ElasticRun {
  std::unique_ptr<dist::Members> members;  ///< null: this rank is alone, and nobody can join it
  std::unique_ptr<dist::Door> door;        ///< of the leader, once it trains
  /// Where this rank has given its part of the model, the last one last. Processes that have been
  /// called take the rest there while the ranks meet.
  std::vector<std::unique_ptr<dist::Door>> part_doors;
  int most = 0;  ///< ranks that the run may have
  std::optional<dist::Members::Met> met;
  std::vector<std::string>
      doors;              ///< where a spare may find who leads, besides Members::Start::door
  bool is_spare = false;  ///< the others go on without this rank: it is to join them by join_run
  std::optional<CarriedRun> carried;  ///< for what trains next, which takes it
};

/// What a rank that has lost others knows of itself.
struct Survivor {
  const config::RunConfig& config;
  StateTold state;
  int64_t micro_batch_size = 1;  ///< Trainer::Legacy::micro_batch_size
  /// Makes the update after which the state has done StateTold::finishes steps.
  std::function<void()> finish_step = {};
  /// Takes the lead, where this rank has not led before; returns why it cannot, or "". `most`: the
  /// steps of the rank that has done most.
  std::function<std::string(int64_t most)> take_lead;
};
/// After `error`: whether it is the loss of ranks or a JoinRequest, and those that are left are
/// connected again: then `elastic->met` is set, and `steps`, `source`, `part_sources` and `change`
/// of `carried`; or `elastic->is_spare`.
/// Otherwise says why they are not, and no rank waits for this one. `elastic` may be null. Returns
/// within a few times parallel.elastic.wait_seconds.
bool meet_again(ElasticRun* elastic, const Survivor& survivor, const std::exception& error,
                CarriedRun& carried) noexcept;
/// Does the same where ranks are lost before what was carried could be taken.
bool meet_again(ElasticRun& elastic, const config::RunConfig& config,
                const std::exception& error) noexcept;

/// Survivor::take_lead of a rank that has `carried`, whose `lock` is there once it leads.
std::string take_lead(CarriedRun& carried, int64_t most);

/// Fills in who of `hosts`, of which the first `ranks` were ranks, was not there, who waits, and
/// who has joined.
void add_present(WorldChange& change, int ranks, const std::vector<std::string>& hosts,
                 const dist::Members::Met& met);
/// Ranks that keep one model together (parallel.strategy HYBRID_SHARD), or 1.
int ranks_of_a_model(const config::RunConfig& config);
/// How ranks and processes, the first `ranks` of them those that trained, go on together.
class Regrouping {
 public:
  Regrouping(const config::RunConfig& config, int64_t micro_batch_size, int ranks)
      : config_(config), micro_batch_size_(micro_batch_size), ranks_(ranks) {}

  /// dist::Members::Terms::arrange.
  std::function<std::vector<size_t>(const std::vector<dist::RollCall::Present>&)> arrange() const;
  /// Why those that came cannot go on, or "", and the most steps that one of them has done.
  std::pair<std::string, int64_t> obstacle(const std::vector<dist::RollCall::Present>& came) const;
  /// Fills in `steps`, `source` and `part_sources` of a rank that is one of `met`, with its own
  /// state. Returns whether it has to make its update (StateTold::finishes).
  bool add_sources(CarriedRun& carried, const StateTold& own, const dist::Members::Met& met) const;

 private:
  Arrangement arrangement(const std::vector<dist::RollCall::Present>& came) const;

  const config::RunConfig& config_;
  int64_t micro_batch_size_;
  int ranks_;
};
/// The rank whose state all take, by its place in `present`; -1: all have done the same steps.
int source_of(const std::vector<dist::RollCall::Present>& present);
/// How many of `ready` processes can join `ranks` ranks: with them, the ranks can share the steps
/// as now, in micro-batches of that size, form whole groups, and are not more than `most`.
int count_to_call(const config::RunConfig& config, int ranks, int most, int ready,
                  int64_t micro_batch_size);

/// Adds a line to restarts.jsonl of a run, with the members of those that `lockstep launch` writes
/// and `restart` 0; `state_sent` is told where processes have joined. `step`: the last that was
/// recorded before the loss; `resumed_from`: the step after which training goes on; `seconds` from
/// the loss to the first step after it, if there was one. Errors of writing are ignored.
void note_change(const RunDirectory& directory, const WorldChange& change, int64_t step,
                 int64_t resumed_from, std::optional<double> seconds) noexcept;

}  // namespace lockstep::train
