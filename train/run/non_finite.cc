#include "train/run/non_finite.h"

#include <algorithm>

namespace lockstep::train {

NonFinite NonFiniteGuard::after(int64_t step, bool finite) {
  if (finite) {
    // After a rollback the same steps run again: only later ones are progress.
    if (step > furthest_) failures_ = 0;
    return policy_;
  }
  furthest_ = std::max(furthest_, step);
  return ++failures_ > limit_ ? NonFinite::kStop : policy_;
}

}  // namespace lockstep::train
