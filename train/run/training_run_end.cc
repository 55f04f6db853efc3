// The part of TrainingRun that decides when a run ends, and writes its model.

#include <unordered_map>

#include "train/run/final_model.h"
#include "train/run/training_run.h"

namespace lockstep::train {

Retention TrainingRun::retention() const {
  Retention retention = settings_.retention;
  retention.best = held_out_.best_step();
  return retention;
}

bool TrainingRun::compare(const EvaluationReport& evaluated) {
  if (!settings_.held_out.compares()) return false;
  const bool is_lowest = held_out_.add(evaluated.step, evaluated.loss);
  tell_held_out();
  return is_lowest && settings_.held_out.keep_best;
}

void TrainingRun::tell_held_out() {
  if (settings_.held_out.compares()) replicas_.announce_held_out(held_out_.memory());
}

RunEnd TrainingRun::end_after(int64_t steps) const {
  return held_out_.is_over() && !settings_.stop.all_steps_done(steps)
             ? RunEnd::kNoProgress
             : settings_.stop.end_after(steps);
}

bool TrainingRun::is_finished() const {
  if (!nothing_to_train_) return false;
  return restored_weights_ ? holds_model(directory_, *restored_weights_)
                           : holds_model(directory_, saved_step_);
}

/// Reads the state of a sharded model from the ranks.
std::function<Tensor(size_t)> TrainingRun::collect_state() {
  if (!trainer_.is_sharded()) return {};
  return [this](size_t number) { return replicas_.announce_collect(trainer_, number); };
}

std::function<Tensor(size_t)> TrainingRun::final_weights() {
  std::function<Tensor(size_t)> state = collect_state();
  if (!settings_.exports_averages || !trainer_.has_averages()) return state;
  if (!state) state = [this](size_t number) { return trainer_.collect_state(number); };
  const nn::Module& model = trainer_.task().model();
  const std::vector<nn::StoredParameter> weights = model.stored_parameters();
  std::unordered_map<std::string, size_t> number_of;  // of the state, by its name
  for (const nn::StoredParameter& each : trainer_.optimizer_state_shapes()) {
    number_of.emplace(each.name, weights.size() + number_of.size());
  }
  std::unordered_map<const TensorImpl*, size_t> average_of;
  for (const nn::NamedParameter& each : model.named_parameters()) {
    const auto found = number_of.find("average." + each.name);
    if (found != number_of.end()) average_of.emplace(each.tensor.impl(), found->second);
  }
  std::vector<size_t> numbers;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto found = average_of.find(weights[i].tensor.impl());
    numbers.push_back(found == average_of.end() ? i : found->second);
  }
  return [state, numbers](size_t i) { return state(numbers[i]); };
}

void TrainingRun::export_model() {
  if (is_finished()) return;
  const SharedWeights shared = trainer_.with_shared_weights();
  train::export_model(trainer_.task(), directory_, trainer_.steps_done(), final_weights());
}

}  // namespace lockstep::train
