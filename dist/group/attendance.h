#pragma once

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// The ranks that have samples in a step; the others answer with zeros (Reducer::answer).
struct Present {
  int ranks = 0;   ///< how many; 0: all of the group
  int lowest = 0;  ///< the lowest of them: what one rank decides or gives to all is this one's
  /// Whether their buckets follow the order that the first step showed.
  bool learnt_order = false;
};

/// Tells the ranks of a group, before each step that they sum, which of them have samples: one
/// number of each rank, gathered in the background. Not thread-safe.
class Attendance {
 public:
  explicit Attendance(ProcessGroup& group);

  /// All ranks call it as often, those without samples (`present` false) to take part in the step
  /// of the others.
  void call(bool present, bool learnt_order);
  /// After `call`: waits until all ranks have called; `ranks` 0 where none is present. Throws
  /// MismatchError on all ranks where those present follow different orders.
  Present wait();

 private:
  ProcessGroup& group_;
  Tensor own_;  ///< one Answer
  Tensor all_;  ///< by rank
  Work work_;
};

}  // namespace lockstep::dist
