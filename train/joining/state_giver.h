#pragma once

#include <cstddef>
#include <cstdint>

#include "dist/rendezvous/door.h"
#include "train/joining/live_state.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Gives the state of a run to processes that wait to join it, while its ranks train on. For the
/// leader, which has all state, and for a rank that gives its part of it (PartGiver).
///
/// Between two steps the rank copies some parameters with what the optimizer keeps for them, at
/// most a quarter of the state, and from then on the gradients of each step of all that it has
/// given, with which the processes make the same updates (StateTaker). The door sends the copies
/// while the next step is computed. Once all is given, and nearly all of it taken, the processes
/// are called: nobody then waits for more than the gradients of the last step.
///
/// What waits in memory is at most as much as that, and the gradients of a few steps: where these
/// are not sent as fast as steps are done, `kTooSlow` says that the state is to be given while the
/// ranks stand still. Not thread-safe.
class StateGiver {
 public:
  /// Begins to give the trainer's state, `state`, to up to `most` of the processes that are ready
  /// at the door. All must outlive this object.
  StateGiver(Trainer& trainer, dist::Door& door, LiveState state, int most);
  /// Those that have not been called wait as before.
  ~StateGiver() { door_.end_giving(); }
  StateGiver(const StateGiver&) = delete;
  StateGiver& operator=(const StateGiver&) = delete;

  /// That are given the state, and still there.
  int processes() const { return door_.given().processes; }

  enum class Standing {
    kNobody,    ///< is given the state any more, or it did not follow from the step before
    kUnderWay,  ///< it will be whole after some more steps
    kWhole,     ///< the processes can be called now
    kTooSlow    ///< they can be called, and have to be given the state once more
  };
  /// Gives what the trainer's last step has changed, and more of the state. Call after each step
  /// that is not done again.
  Standing add(const StepResult& step);

  /// Bytes of the state that one call has copied, at most.
  size_t most_copied() const { return most_copied_; }

 private:
  void give_units(size_t room);
  void give();

  Trainer& trainer_;
  dist::Door& door_;
  LiveState state_;
  StateWriter writer_;
  size_t next_unit_ = 0;
  int64_t next_step_;
  size_t at_once_;     ///< bytes of the state that may wait to be sent
  size_t most_left_;   ///< bytes that may wait to be taken
  size_t most_given_;  ///< bytes of a state that is given fast enough
  size_t given_ = 0;   ///< bytes so far
  size_t most_copied_ = 0;
};

}  // namespace lockstep::train
