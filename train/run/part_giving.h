#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dist/group/process_group.h"
#include "train/joining/part_giver.h"
#include "train/joining/part_taker.h"
#include "train/run/elastic.h"

namespace lockstep::train {

/// How the ranks of a model that is spread over groups of ranks give its state to processes that
/// wait to join them, while they train: each rank of the leader's group gives its part, at a door
/// of its own. Collective over all ranks: where one is lost, the calls throw as all operations of
/// the group do. Not thread-safe.
class PartGiving {
 public:
  using Standing = StateGiver::Standing;

  /// `group` and `elastic` may be null; all must outlive this object.
  PartGiving(Trainer& trainer, dist::ProcessGroup* group, ElasticRun* elastic)
      : trainer_(trainer), group_(group), elastic_(elastic) {}
  ~PartGiving() { end(false); }
  PartGiving(const PartGiving&) = delete;
  PartGiving& operator=(const PartGiving&) = delete;

  /// Begins to give each part to so many processes. Returns where, by part; nothing where the parts
  /// cannot be given while the ranks train.
  std::vector<PartSource> begin(int processes);
  bool is_under_way() const { return is_under_way_; }
  /// After a step: as StateGiver::add, of all parts together. Ends where the parts are not given
  /// any more.
  Standing add(const StepResult& step);
  /// Ends giving. `calls`: the processes are called by the ranks that give, once they have taken
  /// everything; otherwise what they have is of no use. Not collective.
  void end(bool calls);

 private:
  std::string open_door(int processes);

  Trainer& trainer_;
  dist::ProcessGroup* group_;
  ElasticRun* elastic_;
  bool is_under_way_ = false;
  std::optional<PartGiver> giver_;  ///< where this rank gives its part
};

}  // namespace lockstep::train
