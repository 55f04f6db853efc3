// The part of Trainer that computes with the weights between steps.

#include <optional>
#include <string>

#include "autograd/autocast.h"
#include "core/ops/factory/factory.h"
#include "dist/group/process_group.h"
#include "train/trainer.h"

namespace lockstep::train {

class Trainer::AveragedWeights {
 public:
  explicit AveragedWeights(Trainer& trainer)
      : trainer_(trainer), is_on_(trainer.settings_.evaluates_averages && trainer.has_averages()) {
    exchange();
  }
  ~AveragedWeights() { exchange(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  void exchange() {
    if (!is_on_) return;
    trainer_.announce_update();  // what is still copied for a checkpoint changes
    trainer_.scatter_weights();
    trainer_.optimizer_->exchange_averages();
    if (trainer_.sharded_ != nullptr) trainer_.sharded_->mark_changed();
  }

  Trainer& trainer_;
  bool is_on_;
};

std::optional<Evaluation> Trainer::evaluate(int64_t max_batches) {
  give_up_next();
  const SharedWeights shared(local_.get());
  const AveragedWeights averaged(*this);
  const AutocastGuard region = autocast_region(settings_.precision, settings_.device.type);
  const std::optional<Evaluation> result = task_->evaluate(
      {.max_batches = max_batches, .stop = stop_, .group = group_, .in_step = sharded_ != nullptr});
  if (sharded_ != nullptr) sharded_->end_forwards();
  return result;
}

std::string Trainer::sample_text(int64_t bytes, uint64_t seed, const StopRequest& stop) {
  give_up_next();
  const SharedWeights shared(local_.get());
  const AveragedWeights averaged(*this);
  if (sharded_ == nullptr) return task_->sample_text(bytes, seed, stop);
  sharded_->gather_casts(false);  // tokens are computed without autocast
  const std::string text = task_->sample_text(bytes, seed, [&] {
    // Every rank runs as many forwards as the others.
    const Tensor stops = full({1}, group_->rank() == 0 && stop && stop() ? 1 : 0, DType::kI64);
    group_->broadcast(stops, 0).wait();
    return stops.item<int64_t>() != 0;
  });
  sharded_->gather_casts(true);
  return text;
}

}  // namespace lockstep::train
