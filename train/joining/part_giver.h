#pragma once

#include <chrono>
#include <optional>

#include "dist/rendezvous/door.h"
#include "train/joining/state_giver.h"

namespace lockstep::train {

/// Gives this rank's part of the state of a model that is spread over groups of ranks, as
/// StateGiver gives a whole state, to processes that come to a door of this rank's own for it. Not
/// thread-safe.
class PartGiver {
 public:
  /// So many come, within `limit`, while the ranks train. All must outlive this object.
  PartGiver(Trainer& trainer, dist::Door& door, LiveState part, int processes,
            std::chrono::milliseconds limit = std::chrono::seconds(30));

  /// As StateGiver::add. Nobody is given the part any more where one of the processes is lost;
  /// where one has not come in time, it is too slow.
  StateGiver::Standing add(const StepResult& step);
  /// Calls the processes once they have taken what was given.
  void call();

 private:
  Trainer& trainer_;
  dist::Door& door_;
  std::optional<LiveState> part_;  ///< until it is given
  int processes_;
  std::chrono::steady_clock::time_point until_;
  std::optional<StateGiver> giver_;  ///< once all have come
};

}  // namespace lockstep::train
