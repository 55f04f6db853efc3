#include "train/non_finite.h"

#include <algorithm>

namespace lockstep::train {

NonFinite NonFiniteGuard::after(int64_t step, bool finite) {
  if (finite) {
    // A rollback passes the same steps again, which is no progress.
    if (step > furthest_) failures_ = 0;
    return policy_;
  }
  furthest_ = std::max(furthest_, step);
  return ++failures_ > limit_ ? NonFinite::kStop : policy_;
}

}  // namespace lockstep::train
