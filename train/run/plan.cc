#include "train/run/plan.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/allocator.h"
#include "core/tensor/random_state_guard.h"
#include "train/build.h"
#include "train/gradient_options.h"
#include "train/precision.h"
#include "train/step_share.h"

namespace lockstep::train {

namespace {

/// Fills in the share of the last rank, which has the most micro-batches.
RunPlan plan_of(const config::TrainConfig& train, int64_t ranks) {
  LS_CHECK(ranks >= 1, ConfigError, "[plan] expected at least one rank, got {}.", ranks);
  const StepShare share = share_of_step(train, ranks - 1, ranks);
  RunPlan plan;
  plan.batch_size = train.batch_size();
  plan.steps = train.steps();
  plan.ranks = ranks;
  plan.micro_batch_size = share.micro_batch_size;
  plan.micro_batches = share.micro_batches;
  plan.leaves = share.leaves;
  return plan;
}

int64_t bytes_of(const std::vector<nn::StoredParameter>& stored) {
  int64_t bytes = 0;
  for (const nn::StoredParameter& each : stored)
    bytes += static_cast<int64_t>(each.tensor.nbytes());
  return bytes;
}

Tensor loss_of(const PlannedModel& planned, const std::vector<Tensor>& inputs,
               Precision precision) {
  const AutocastGuard region = autocast_region(precision, DeviceType::kMeta);
  return planned.loss(inputs);
}

/// Allocates as Trainer::step does, without its numbers: loss, loss scale, norm, learning rate.
void run_step(const PlannedModel& planned, const std::vector<Tensor>& inputs, const RunPlan& plan,
              Precision precision, dist::Reducer& reducer, Optimizer& optimizer) {
  // Two micro-batches per leaf suffice: the first writes gradients, all later ones add to them.
  const int64_t micro_batches = std::clamp<int64_t>(plan.micro_batches / plan.leaves, 1, 2);
  reducer.begin_step();
  for (int64_t leaf = 0; leaf < plan.leaves; ++leaf) {
    reducer.begin_leaf();
    for (int64_t i = 0; i < micro_batches; ++i) {
      loss_of(planned, inputs, precision).backward();
    }
  }
  reducer.finish();
  optimizer.step(reducer.gradients(), 0, 1);
}

void run_evaluation(const PlannedModel& planned, const std::vector<Tensor>& inputs,
                    Precision precision) {
  const NoGradGuard no_grad;
  planned.model->eval();
  loss_of(planned, inputs, precision);
}

/// Allocates as save_checkpoint does: tensors that files store transposed are copied, one at a
/// time.
void run_checkpoint(const nn::Module& model) {
  const NoGradGuard no_grad;
  for (const nn::StoredParameter& stored : model.stored_parameters()) {
    if (stored.transposed) stored.tensor.t().contiguous();
  }
}

PlannedModel language_model(const config::RunConfig& config, int64_t rows) {
  config::RunConfig shapes = config;
  shapes.mutable_model()->clear_weights();
  std::unique_ptr<nn::LanguageModel> model = build_model(shapes);
  nn::LanguageModel& language = *model;
  const int64_t length = sequence_length(config);
  return {.model = std::move(model),
          .make_inputs =
              [rows, length] {
                return std::vector<Tensor>{empty({rows, length}, DType::kI64),
                                           empty({rows, length}, DType::kI64)};
              },
          .loss =
              [&language](const std::vector<Tensor>& inputs) {
                return nn::sum_of_losses(language, inputs[0], inputs[1]);
              },
          .tokens_per_sample = length,
          .flops_per_token = nn::training_flops_per_token(language, length)};
}

PlannedModel classifier(const config::RunConfig& config, int64_t rows) {
  config::RunConfig shapes = config;
  shapes.mutable_model()->clear_weights();
  std::unique_ptr<nn::Classifier> model = build_classifier(shapes);
  nn::Classifier& planned = *model;
  const double flops = 3 * planned.forward_flops();
  const int64_t features = nn::input_size(planned);
  return {.model = std::move(model),
          .make_inputs =
              [rows, features] {
                return std::vector<Tensor>{empty({rows, features}, DType::kF32),
                                           empty({rows}, DType::kI64)};
              },
          .loss =
              [&planned](const std::vector<Tensor>& inputs) {
                return nn::sum_of_losses(planned, inputs[0], inputs[1]);
              },
          .tokens_per_sample = 1,
          .flops_per_token = flops};
}

}  // namespace

PlannedModel planned_model(const config::RunConfig& config, int64_t rows) {
  return is_classifier(config) ? classifier(config, rows) : language_model(config, rows);
}

RunPlan plan_run(const config::RunConfig& config, int64_t ranks,
                 const std::function<PlannedModel(int64_t rows)>& build) {
  RunPlan plan = plan_of(config.train(), ranks);
  const RandomStateGuard same_generator;
  const DefaultDeviceGuard on_meta(kMeta);
  Allocator& memory = allocator(kMeta);
  const int64_t before = memory.stats().allocated;
  // Evaluation uses the config's micro-batch size even if ranks train with smaller ones.
  const int64_t rows = config.train().micro_batch_size();
  const std::vector<Tensor> held_out =
      rows == plan.micro_batch_size ? std::vector<Tensor>() : build(rows).make_inputs();
  memory.reset_peak();

  const PlannedModel planned = build(plan.micro_batch_size);
  const nn::Module& model = *planned.model;
  const std::vector<Tensor> inputs = planned.make_inputs();
  const std::unique_ptr<Optimizer> optimizer = build_optimizer(config, model.named_parameters());
  const StepShare share = share_of_step(config.train(), ranks - 1, ranks);
  const std::unique_ptr<dist::Reducer> reducer = make_reducer(config, share, model, nullptr);
  const Precision precision = precision_of(config);
  run_step(planned, inputs, plan, precision, *reducer, *optimizer);
  // From the second step on blocks are found otherwise than in the first.
  run_step(planned, inputs, plan, precision, *reducer, *optimizer);
  run_evaluation(planned, held_out.empty() ? planned.make_inputs() : held_out, precision);
  run_checkpoint(model);

  plan.parameters = model.parameter_count();
  plan.flops_per_token = planned.flops_per_token;
  plan.tokens_per_sample = planned.tokens_per_sample;
  for (const Tensor& parameter : model.parameters()) {
    plan.parameter_bytes += static_cast<int64_t>(parameter.nbytes());
  }
  plan.gradient_arenas = dist::stack_depth({share.first_leaf, share.first_leaf + share.leaves});
  plan.gradient_bytes = reducer->bytes();
  plan.optimizer_bytes = bytes_of(optimizer->state());
  plan.peak_bytes = memory.stats().peak_allocated - before;
  plan.activation_bytes =
      plan.peak_bytes - plan.parameter_bytes - plan.gradient_bytes - plan.optimizer_bytes;
  plan.checkpoint_bytes = bytes_of(model.stored_parameters()) + plan.optimizer_bytes;
  return plan;
}

RunPlan plan_run(const config::RunConfig& config, int64_t ranks) {
  return plan_run(config, ranks, [&](int64_t rows) { return planned_model(config, rows); });
}

}  // namespace lockstep::train
