#pragma once

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// The ranks that have samples in a step; the others answer with zeros (Reducer::answer).
struct Present {
  int ranks = 0;   ///< number of ranks with samples; 0: all of the group
  int lowest = 0;  ///< lowest rank with samples: decides and broadcasts for all
  /// Whether their buckets follow the order observed in the first step.
  bool learnt_order = false;
};

/// Lets the ranks of a group know, before each step whose gradients are summed, which of them have
/// samples: an asynchronous all_gather of one number of each rank. Not thread-safe.
class Attendance {
 public:
  explicit Attendance(ProcessGroup& group);

  /// Starts the exchange. Collective; ranks without samples (`present` false) call it to take part
  /// in the step of the others.
  void call(bool present, bool learnt_order);
  /// Waits until all ranks have called `call`. Returns `ranks` 0 if none is present. Throws
  /// MismatchError on all ranks if the present ones follow different orders of buckets.
  Present wait();

 private:
  ProcessGroup& group_;
  Tensor own_;  ///< this rank's Answer
  Tensor all_;  ///< by rank
  Work work_;
};

}  // namespace lockstep::dist
