#include "train/joining/part_giver.h"

#include <utility>

namespace lockstep::train {

PartGiver::PartGiver(Trainer& trainer, dist::Door& door, LiveState part, int processes,
                     std::chrono::milliseconds limit)
    : trainer_(trainer),
      door_(door),
      part_(std::move(part)),
      processes_(processes),
      until_(std::chrono::steady_clock::now() + limit) {}

StateGiver::Standing PartGiver::add(const StepResult& step) {
  using Standing = StateGiver::Standing;
  if (giver_) {
    const Standing standing = giver_->add(step);
    return giver_->processes() < processes_ ? Standing::kNobody : standing;
  }
  if (door_.ready() < processes_) {
    return std::chrono::steady_clock::now() < until_ ? Standing::kUnderWay : Standing::kTooSlow;
  }
  giver_.emplace(trainer_, door_, *std::exchange(part_, std::nullopt), processes_);
  return giver_->processes() < processes_ ? Standing::kNobody : Standing::kUnderWay;
}

void PartGiver::call() { (void)door_.call(processes_, 0, {}); }

}  // namespace lockstep::train
