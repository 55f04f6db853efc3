#include "train/run/plan.h"

#include <algorithm>
#include <optional>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/allocator.h"
#include "core/tensor/random_state_guard.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/group/planning_group.h"
#include "nn/initial_values.h"
#include "train/build.h"
#include "train/compiled_blocks.h"
#include "train/gradient_options.h"
#include "train/local_steps.h"
#include "train/offloaded_activations.h"
#include "train/precision.h"
#include "train/run/balance.h"
#include "train/step_share.h"

namespace lockstep::train {

namespace {

/// The rank that is planned.
struct PlannedRank {
  int rank = 0;
  StepShare share;
  dist::LeafDeal deal = {};  ///< where its sums are over a tree
  bool is_balanced = false;
};

/// The last rank, which has the most micro-batches; where leaves move between ranks the one that
/// needs the most memory.
PlannedRank planned_rank(const config::RunConfig& config, int64_t ranks) {
  LS_CHECK(ranks >= 1, ConfigError, "[plan] expected at least one rank, got {}.", ranks);
  const config::TrainConfig& train = config.train();
  const auto size = static_cast<int>(ranks);
  PlannedRank planned{.rank = size - 1, .share = share_of_step(train, ranks - 1, ranks)};
  if (config.reproducibility() != config::BITWISE || ranks > train.leaves()) return planned;
  planned.deal = dist::LeafDeal::even(train.leaves(), size);
  planned.is_balanced = config.parallel().balance() == config::ParallelConfig::SPEED && ranks > 1;
  if (!planned.is_balanced) return planned;
  const DealtRank most = rank_with_most_sums(train.leaves(), size);
  planned.rank = most.rank;
  planned.deal = most.deal;
  planned.share = share_of_deal(most.deal, most.rank, train.batch_size() / train.micro_batch_size(),
                                train.micro_batch_size());
  return planned;
}

RunPlan plan_of(const config::TrainConfig& train, int64_t ranks, const PlannedRank& planned) {
  const StepShare& share = planned.share;
  RunPlan plan;
  plan.batch_size = train.batch_size();
  plan.steps = train.steps();
  plan.ranks = ranks;
  plan.micro_batch_size = share.micro_batch_size;
  plan.micro_batches = share.micro_batches;
  plan.leaves = share.leaves;
  plan.is_balanced = planned.is_balanced;
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

/// Micro-batches per leaf that show all that a leaf needs: the first writes gradients, all later
/// ones add to them.
int64_t planned_micro_batches(const RunPlan& plan) {
  return std::clamp<int64_t>(plan.micro_batches / plan.leaves, 1, 2);
}

/// Allocates as Trainer::step does, without its numbers: loss, loss scale, norm, learning rate.
void run_step(const PlannedModel& planned, const std::vector<Tensor>& inputs, const RunPlan& plan,
              Precision precision, const std::optional<HostActivations>& host_activations,
              dist::GradientSync& sync, Optimizer& optimizer) {
  const int64_t micro_batches = planned_micro_batches(plan);
  sync.begin_step();
  for (int64_t leaf = 0; leaf < plan.leaves; ++leaf) {
    sync.begin_leaf();
    for (int64_t i = 0; i < micro_batches; ++i) {
      const Tensor loss = [&] {
        const std::optional<SavedTensorHooksGuard> guard = guard_of(host_activations);
        return loss_of(planned, inputs, precision);
      }();
      if (leaf + 1 == plan.leaves && i + 1 == micro_batches) sync.expect_last_backward();
      loss.backward();
    }
  }
  sync.finish();
  optimizer.step(sync.gradients(), 0, 1);
}

void run_evaluation(const PlannedModel& planned, const std::vector<Tensor>& inputs,
                    Precision precision) {
  const NoGradGuard no_grad;
  planned.model->eval();
  (void)loss_of(planned, inputs, precision);
}

/// Allocates as save_checkpoint does: tensors that files store transposed, and those that are
/// collected from the ranks, are copied, one at a time.
void run_checkpoint(const nn::Module& model, bool collects) {
  const NoGradGuard no_grad;
  for (const nn::StoredParameter& stored : model.stored_parameters()) {
    const Tensor whole =
        collects ? empty(stored.tensor.sizes(), stored.tensor.options()) : stored.tensor;
    if (stored.transposed) (void)whole.t().contiguous();
  }
}

/// Bytes of the optimizer's state of all ranks.
int64_t bytes_of_all_ranks(const Optimizer& optimizer, const dist::ShardedModel& sharded) {
  int64_t bytes = 0;
  for (const std::string& name : optimizer.state_names()) {
    for (size_t i = 0; i < sharded.trained_count(); ++i) {
      const dist::NamedTensor& each = sharded.trained(i);
      const nn::NamedParameter parameter{each.name, each.tensor};
      if (!optimizer.keeps_state(name, parameter)) continue;
      bytes += count_elements(optimizer.state_sizes(name, parameter)) *
               static_cast<int64_t>(size_of(each.tensor.dtype()));
    }
  }
  return bytes;
}

/// What a rank has sent so far.
using Sent = RunPlan::Communication;
Sent sent_by(const dist::PlanningGroup& group) {
  const auto of = [&](dist::OpKind kind) { return static_cast<int64_t>(group.bytes_sent(kind)); };
  return {.all_reduce = of(dist::OpKind::kAllReduce),
          .all_gather = of(dist::OpKind::kAllGather),
          .reduce_scatter = of(dist::OpKind::kReduceScatter),
          .all_to_all = of(dist::OpKind::kAllToAll),
          .broadcast = of(dist::OpKind::kBroadcast)};
}

/// What a step of all micro-batches sends, where one of those planned took `before` to `after`.
Sent in_a_step(const Sent& after, const Sent& before, const dist::ShardedModel& sharded,
               const RunPlan& plan) {
  Sent step{.all_reduce = after.all_reduce - before.all_reduce,
            .all_gather = after.all_gather - before.all_gather,
            .reduce_scatter = after.reduce_scatter - before.reduce_scatter,
            .all_to_all = after.all_to_all - before.all_to_all,
            .broadcast = after.broadcast - before.broadcast};
  const int64_t passes = plan.leaves * planned_micro_batches(plan);
  if (sharded.gathers_each_pass()) {
    step.all_gather = step.all_gather / passes * plan.micro_batches;
    step.broadcast = step.broadcast / passes * plan.micro_batches;
  }
  if (!sharded.accumulates()) {
    step.reduce_scatter = step.reduce_scatter / passes * plan.micro_batches;
  }
  return step;
}

/// What averages send in a step, on average, where those of all parameters sent from `before` to
/// `after`.
Sent of_averages(const Sent& after, const Sent& before, int64_t inner_steps) {
  return {.all_reduce = (after.all_reduce - before.all_reduce) / inner_steps,
          .all_gather = (after.all_gather - before.all_gather) / inner_steps,
          .all_to_all = (after.all_to_all - before.all_to_all) / inner_steps};
}

/// What a step of copies of the model sends. Sums of all buckets: each of the rank's sums to the
/// ranks that add them up, and its part of the result to all. The optimizer gathers what it shares.
Sent of_copies(const Sent& after, const Sent& before, int64_t bytes, int64_t ranks,
               const PlannedRank& planned) {
  const int64_t sums =
      planned.deal.is_empty() ? 1 : std::ssize(dist::subtrees(planned.deal.of(planned.rank)));
  return {.all_reduce = (sums + 1) * (ranks - 1) * bytes / ranks,
          .all_gather = after.all_gather - before.all_gather};
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
              [&language, loss = loss_options(config)](const std::vector<Tensor>& inputs) {
                return nn::sum_of_losses(language, inputs[0], inputs[1], loss);
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

/// Takes what parallel.cpu_offload keeps on the host out of the peak: the meta device that the plan
/// ran on has no host beside it.
void move_to_host(RunPlan& plan, const dist::ShardedModel& sharded) {
  const int64_t state = plan.gradient_bytes + plan.optimizer_bytes;
  const bool are_shards = sharded.gathers_each_pass();  // else the device keeps all parameters
  plan.host_bytes =
      state + (are_shards ? plan.parameter_bytes : plan.parameter_bytes / sharded.shard_size());
  plan.peak_bytes -= are_shards ? plan.host_bytes : state;
}

/// Counts what an asynchronous save copies, a rank's part or the whole model, and the four parts
/// that checkpoint.memory_every keeps.
void add_copies(RunPlan& plan, const config::RunConfig& config, const dist::ShardedModel* sharded,
                int64_t ranks) {
  const bool keeps_whole = sharded != nullptr && !sharded->gathers_each_pass();
  if (config.checkpoint().asynchronous()) {
    plan.copy_bytes +=
        plan.parameter_bytes / (keeps_whole ? sharded->shard_size() : 1) + plan.optimizer_bytes;
  }
  if (config.checkpoint().memory_every() > 0 && ranks > 1) {
    const int64_t of_state = sharded == nullptr ? ranks : ranks / sharded->shard_size();
    plan.copy_bytes += 4 * (plan.parameter_bytes / (keeps_whole ? ranks : of_state) +
                            plan.optimizer_bytes / of_state);
  }
  const bool is_on_device = is_asynchronous(parse_device(config.device()).type);
  (is_on_device ? plan.host_bytes : plan.peak_bytes) += plan.copy_bytes;
}

}  // namespace

PlannedModel planned_model(const config::RunConfig& config, int64_t rows) {
  return is_classifier(config) ? classifier(config, rows) : language_model(config, rows);
}

RunPlan plan_run(const config::RunConfig& config, int64_t ranks,
                 const std::function<PlannedModel(int64_t rows)>& build) {
  const PlannedRank planned_for = planned_rank(config, ranks);
  RunPlan plan = plan_of(config.train(), ranks, planned_for);
  const RandomStateGuard same_generator;
  const DefaultDeviceGuard on_meta(kMeta);
  Allocator& memory = allocator(kMeta);
  const int64_t before = memory.stats().allocated;
  // Evaluation uses the config's micro-batch size even if ranks train with smaller ones.
  const int64_t rows = config.train().micro_batch_size();
  const std::vector<Tensor> held_out =
      rows == plan.micro_batch_size ? std::vector<Tensor>() : build(rows).make_inputs();
  memory.reset_peak();

  std::optional<dist::PlanningGroup> group;
  if (ranks > 1) {
    group.emplace(planned_for.rank, static_cast<int>(ranks), dist::kReductionsUnderWay);
  }
  const PlannedModel planned = [&] {
    std::optional<nn::DeferValuesGuard> later;
    if (is_sharded(config, group ? &*group : nullptr)) later.emplace();
    return build(plan.micro_batch_size);
  }();
  const std::shared_ptr<CompiledBlocks> compiled = compile_blocks(config, *planned.model);
  const nn::Module& model = *planned.model;
  const std::vector<Tensor> inputs = planned.make_inputs();
  const StepShare& share = planned_for.share;
  const std::unique_ptr<dist::ShardedModel> sharded =
      make_sharded_model(config, share, *planned.model, group ? &*group : nullptr);
  const std::unique_ptr<Optimizer> optimizer =
      build_optimizer(config, updated_parameters(model, sharded.get()));
  share_updates(config, *optimizer, sharded.get(), group ? &*group : nullptr);
  const std::unique_ptr<dist::LocalSgd> local =
      make_local_sgd(config, model, group ? &*group : nullptr);
  const std::unique_ptr<dist::Reducer> reducer =
      sharded ? nullptr : make_reducer(config, share, model, nullptr);
  const int64_t arenas = dist::stack_depth({share.first_leaf, share.first_leaf + share.leaves});
  dist::GradientSync& sync = sharded ? static_cast<dist::GradientSync&>(*sharded)
                                     : static_cast<dist::GradientSync&>(*reducer);
  const Precision precision = precision_of(config);
  const std::optional<HostActivations> host_activations =
      offloaded_activations(config, model, kMeta);
  if (sharded) sharded->release_full_parameters(true);
  if (sharded && plan.is_balanced) sharded->deal_out(planned_for.deal);
  run_step(planned, inputs, plan, precision, host_activations, sync, *optimizer);
  if (group) group->complete();
  const Sent sent_before = group ? sent_by(*group) : Sent();
  // From the second step on blocks are found otherwise than in the first.
  run_step(planned, inputs, plan, precision, host_activations, sync, *optimizer);
  if (local) {
    local->finish(1);
    plan.communication =
        of_averages(sent_by(*group), sent_before, config.parallel().local_sgd().inner_steps());
  } else if (group) {
    group->complete();
    plan.communication = sharded ? in_a_step(sent_by(*group), sent_before, *sharded, plan)
                                 : of_copies(sent_by(*group), sent_before,
                                             reducer->bytes() / arenas, ranks, planned_for);
  }
  run_evaluation(planned, held_out.empty() ? planned.make_inputs() : held_out, precision);
  if (sharded) sharded->end_forwards();
  run_checkpoint(model, sharded != nullptr);

  plan.parameters = model.parameter_count();
  plan.flops_per_token = planned.flops_per_token;
  plan.tokens_per_sample = planned.tokens_per_sample;
  for (const Tensor& parameter : model.parameters()) {
    plan.parameter_bytes += static_cast<int64_t>(parameter.nbytes());
  }
  if (sharded) plan.parameter_bytes = sharded->parameter_bytes();
  plan.gradient_arenas = arenas;
  plan.gradient_bytes = sharded ? sharded->gradient_bytes() : reducer->bytes();
  plan.optimizer_bytes = bytes_of(optimizer->state()) + (local ? local->state_bytes() : 0);
  plan.peak_bytes = memory.stats().peak_allocated - before;
  plan.activation_bytes =
      plan.peak_bytes - plan.parameter_bytes - plan.gradient_bytes - plan.optimizer_bytes;
  if (sharded && config.parallel().cpu_offload()) move_to_host(plan, *sharded);
  if (host_activations) {
    // The host holds those of one micro-batch at a time.
    plan.host_bytes +=
        host_activations->copied_bytes() / (2 * plan.leaves * planned_micro_batches(plan));
  }
  add_copies(plan, config, sharded.get(), ranks);
  // A checkpoint holds the state of all ranks.
  const int64_t state_bytes =
      sharded ? bytes_of_all_ranks(*optimizer, *sharded) : plan.optimizer_bytes;
  plan.checkpoint_bytes =
      bytes_of(model.stored_parameters()) +
      (local ? bytes_of(LocalState(*local, optimizer->state()).shapes(static_cast<int>(ranks)))
             : state_bytes);
  return plan;
}

RunPlan plan_run(const config::RunConfig& config, int64_t ranks) {
  return plan_run(config, ranks, [&](int64_t rows) { return planned_model(config, rows); });
}

}  // namespace lockstep::train
