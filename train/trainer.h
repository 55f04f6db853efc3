#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/function_ref.h"
#include "core/device/exact_rows.h"
#include "core/tensor/generator.h"
#include "dist/collectives/leaf_deal.h"
#include "dist/ddp/reducer.h"
#include "dist/fsdp/sharded_model.h"
#include "train/captured_step.h"
#include "train/compiled_blocks.h"
#include "train/local_steps.h"
#include "train/loss_spike.h"
#include "train/offloaded_activations.h"
#include "train/optimizer/early_update.h"
#include "train/optimizer/grad_scaler.h"
#include "train/optimizer/learning_rate.h"
#include "train/optimizer/optimizer.h"
#include "train/optimizer/read_back.h"
#include "train/precision.h"
#include "train/rank_statistics.h"
#include "train/report/step_overlap.h"
#include "train/step_in_flight.h"
#include "train/step_outcome.h"
#include "train/step_result.h"
#include "train/step_share.h"
#include "train/task.h"
#include "train/watch/audit.h"
#include "train/watch/step_watch.h"
#include "train/weights/rank_reading.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Files that hold the state of a model whose ranks keep parts of it; empty paths are not read.
struct StateFiles {
  std::filesystem::path weights;    ///< as load_weights takes it (train/weights.h)
  std::filesystem::path optimizer;  ///< the optimizer's state as a checkpoint holds it, in one file
                                    ///< or, named by the checkpoint's folder, in shards
  int ranks = 0;  ///< that took local steps and wrote the optimizer's state; 0: none did

  bool empty() const { return weights.empty() && optimizer.empty(); }
};

/// How far a run has come; weights and optimizer state are kept elsewhere.
struct Position {
  int64_t step = 0;   ///< the next step, from 0
  int64_t batch = 0;  ///< the next training batch; ahead of the step where batches were left out
  friend bool operator==(const Position&, const Position&) = default;
};

/// Trains one model: micro-batches, leaves, clipping, the optimizer's step. The caller
/// decides where results go (files, terminal).
///
/// With a group each of its ranks trains a copy of the model on its share of every step
/// (train/step_share.h); gradients are summed over the ranks while backward runs
/// (dist/ddp/reducer.h), and all ranks make the same update, as long as they began with the same
/// weights and state. With a parallel.strategy that shards, parameters, gradients and optimizer
/// state are spread over the ranks instead (dist/fsdp/sharded_model.h). Running statistics are
/// those of all ranks' micro-batches (train/rank_statistics.h). With
/// optimizer.optimizer_in_backward parameters are updated while backward runs
/// (train/optimizer/early_update.h).
///
/// On an asynchronous device clipping, the loss scale and whether a step is left out are decided
/// there. What `step` returns must come from it; with `another` the next step's forward and
/// backward passes are queued before that is waited for, so that the device goes on meanwhile. No
/// bit changes: the next step's update is queued only when the outcome of this one is known.
///
/// A step is a function of (config, position, weights, optimizer state, number of ranks); with
/// reproducibility BITWISE the number of ranks does not change its bits. The number of kernel
/// threads never does. Not thread-safe.
class Trainer {
 public:
  /// `config` must be resolved. Throws DataError when the data cannot be read, and ConfigError
  /// where BITWISE is asked for with more ranks than leaves.
  static Trainer create(const config::RunConfig& config);
  /// Trains `task` as `config` says, whatever model and data it names. `group` may be null for a
  /// single rank, and must outlive the trainer.
  static Trainer create(const config::RunConfig& config, std::unique_ptr<Task> task,
                        dist::ProcessGroup* group = nullptr);

  /// What a trainer leaves to the next one of its run, whose group has other ranks.
  struct Legacy {
    std::unique_ptr<Task> task;            ///< with the model
    std::unique_ptr<Optimizer> optimizer;  ///< null where the model is spread over ranks
    GradScalerState scale;
    SpikeMemory spikes;
    Position position;
    int64_t micro_batch_size = 1;  ///< samples
    std::optional<ScheduleEnd> early_end;
    // If the model is spread over ranks, these are what `own_parts` was, and the part's number.
    int part = -1;
    std::vector<Tensor> parts;
    int64_t updates = 0;  ///< Optimizer::steps
  };
  /// Trains on from there, in micro-batches of that size. Takes nothing of `legacy` if it throws.
  /// A model may be spread over as many ranks as before: then a rank that keeps another part than
  /// it did has no values until they are written to `own_parts`. Throws
  /// ConfigError where the ranks of `group` cannot share steps so.
  static Trainer create(const config::RunConfig& config, Legacy& legacy, dist::ProcessGroup* group);
  /// Ends this trainer, whose group may have failed; nothing of it may be used afterwards.
  Legacy leave();

  /// Runs the next step; on all ranks together. When loss or norm is not finite the batch is spent,
  /// weights and optimizer stay as they were, and the result says so and why: for that each rank
  /// computes its micro-batches once more by itself, in time that `seconds` leaves out.
  ///
  /// `another`, the same on all ranks: one more step is meant to follow, with nothing in between.
  /// On asynchronous devices it is begun (not with optimizer.optimizer_in_backward, which updates
  /// weights as it runs, and has its gradients looked at where they are not finite). Until the next
  /// `step`, which also throws what it throws, or `give_up_next`, `gradients`, running statistics
  /// and random state are then its own.
  StepResult step(bool another = false);
  /// Discards a step that was begun ahead. Call it before state is saved, restored or used; the
  /// next `step` begins again, with the same bits. `evaluate` and `set_position` call it
  /// themselves.
  void give_up_next();
  int64_t steps_done() const { return position_.step; }
  /// After `step`, `evaluate` or `sample_text` has thrown: whether this rank alone still has all
  /// state as `steps_done()` steps left it, to be saved. Not where the state is spread over the
  /// ranks, or where the step that threw has changed weights or running statistics; on asynchronous
  /// devices that is not known. Takes back what else it has changed, so that nothing but saving may
  /// follow.
  bool keeps_steps_done();
  /// Tells the same about the part that this rank keeps of a model that is spread over groups of
  /// ranks (parallel.strategy HYBRID_SHARD), and about other models what `keeps_steps_done` does.
  bool keeps_own_state();
  /// How many steps will be done after `finish_step`, where the last `step` of such a model has
  /// thrown because a rank was lost after this one had all that its update needs; else -1. No rank
  /// makes the update before all have come so far: where one has made it, all others can.
  int64_t steps_if_finished() const { return ready_ ? position_.step + 1 : -1; }
  /// Makes that update, which takes no other rank. Call once.
  StepResult finish_step();
  /// Whether there are averages of the weights (train.weight_average), which takes a step.
  bool has_averages() const { return optimizer_->keeps_averages() && optimizer_->steps() > 0; }
  /// From the next step on `watch`, which may be null and must outlive the trainer or be replaced,
  /// sees the operators of this rank's steps, with the bits that a planted fault left.
  void set_watch(StepWatch* watch) {
    give_up_next();
    watch_ = watch;
  }
  /// Which leaves of a step each rank computes; empty without a group, and outside of BITWISE. An
  /// even deal after `create`.
  const dist::LeafDeal& deal() const { return settings_.deal; }
  /// From the next step on ranks compute the leaves that `deal` gives them. On all ranks alike; of
  /// a sharded model only with SHARD_OPTIMIZER and parallel.balance SPEED. Changes no bit. Throws
  /// DistError for a deal of other leaves or ranks, and outside of BITWISE.
  void deal_out(const dist::LeafDeal& deal);
  /// The part of every step that this rank computes.
  const StepShare& share() const { return settings_.share; }
  /// Number of samples in a batch, over all ranks.
  int64_t samples_per_batch() const { return settings_.batch_size; }
  /// Asked in every step and evaluation; the results of all ranks say whether one of them was asked
  /// to stop.
  void set_stop_request(StopRequest stop) { stop_ = std::move(stop); }

  /// Gradients of the last step, valid until the next: for each parameter, or part of one that is
  /// this rank's, the sum over all ranks' targets, without the loss scale and before clipping.
  const std::vector<Tensor>& gradients() const { return sync_->gradients(); }
  /// What the last update multiplied gradients by, as Optimizer::step takes it.
  struct GradientFactors {
    double mean = 1;
    Tensor clip;  ///< DeviceScalars::grad_factor
  };
  /// Returns those of the last step that updated after backward.
  const GradientFactors& gradient_factors() const { return factors_; }
  /// Sums the gradients where every rank has a copy of the model; for its reports. Null where the
  /// model is sharded.
  dist::Reducer* reducer() { return reducer_; }
  const dist::Reducer* reducer() const { return reducer_; }
  /// Keeps the parts of a sharded model, or null.
  dist::ShardedModel* sharded() { return sharded_; }
  const dist::ShardedModel* sharded() const { return sharded_; }

  // State that is spread over the ranks: after `create` every rank has its parts, or, of a task
  // whose weights have memory, all weights until the first step. Of a model that is not sharded
  // every rank has all state, and the functions that return nothing do nothing.

  bool is_sharded() const { return sharded_ != nullptr; }
  /// This rank's number among those that keep the parts of one model; -1: it is not spread.
  int part() const { return sharded_ == nullptr ? -1 : group_->rank() % sharded_->shard_size(); }
  /// Returns what this rank keeps of a spread model's parameters and of the optimizer's state, in
  /// the order of every rank with the same part. Call `parts_written` on all ranks after values
  /// were written to it.
  std::vector<Tensor> own_parts();
  /// What of the parameters this rank keeps of a sharded model.
  std::vector<dist::ShardRun> own_runs() const { return sharded_->runs(group_->rank()); }
  void parts_written() { sharded_->mark_changed(); }
  /// Whether ranks have state of their own: of a sharded model, or by parallel.local_sgd.
  bool spreads_state() const { return is_sharded() || local_ != nullptr; }
  /// Whether the ranks take steps of their own. Their weights are then those that they share while
  /// the model is evaluated or sampled, and in checkpoints.
  bool takes_local_steps() const { return local_ != nullptr; }
  SharedWeights with_shared_weights() { return SharedWeights(local_.get()); }
  /// Takes the model's weights, equal on all ranks, as those that a run begins with.
  void begin_from_weights() {
    if (local_) local_->begin_anew();
  }
  /// Whether this rank has all weights.
  bool has_whole_weights() const { return sharded_ == nullptr || sharded_->is_summoned(); }
  /// Gathers the weights on all ranks, to be read or changed in place, until the next `step`.
  /// Collective.
  void gather_weights();
  /// Makes each rank's part of gathered weights its own again, changed or not. `step` does it
  /// first.
  void scatter_weights();
  /// Names and shapes of the optimizer's state as checkpoints hold it, whole; of a sharded model on
  /// meta.
  std::vector<nn::StoredParameter> optimizer_state_shapes() const;
  /// Tensor `number` of the state as checkpoints hold it, first the model's stored_parameters(),
  /// then `optimizer_state_shapes()`; on rank 0, undefined on the others. Collective.
  Tensor collect_state(size_t number);
  /// What rank `rank` writes of the state into a checkpoint in shards: runs of the tensors that
  /// `collect_state` numbers, of all ranks together each element once. With values, flat, on this
  /// rank for its own, which the next step changes. Weights must not be gathered.
  std::vector<KeptRun> state_runs(int rank);
  /// Calls `before` once, in the next step that changes parameters or the optimizer's state, just
  /// before it does; an empty function takes that back. Buffers may change earlier.
  void before_next_update(std::function<void()> before) { before_update_ = std::move(before); }
  /// Checks that the files fit state that is spread, and keeps their names for `read_state`. Throws
  /// CheckpointError as `load_weights` and `load_tensors`.
  void read_later(const StateFiles& files);
  /// The names kept since the last `read_state`.
  const StateFiles& files_to_read() const { return files_to_read_; }
  /// Reads state that is spread from rank 0's `files`, each rank its own parts. Collective; the
  /// position must be that of the files.
  void read_state(const StateFiles& files);
  /// How communication went in the last finite steps; empty for a rank alone, and on devices with
  /// streams, whose times are not known.
  const RecentOverlap& overlap() const { return overlap_; }
  /// What runs the model's blocks as compiled functions; null unless compile.enabled.
  const CompiledBlocks* compiled_blocks() const { return settings_.compiled.get(); }
  /// The passes as a CUDA graph; null unless compile.cuda_graphs.
  const CapturedStep* captured_step() const { return captured_.get(); }
  /// Whether steps will become CUDA graphs that are none yet.
  bool may_capture() const {
    return captured_ != nullptr && !captured_->has_passes() && captured_->refusal().empty();
  }
  /// Why blocks of the model were recorded again or called, and why passes are not replayed, each
  /// once.
  std::vector<std::string> compile_reasons() const;
  /// Where the model is.
  Device device() const { return settings_.device; }
  Position position() const { return position_; }
  /// Goes on from here; weights and optimizer state are the caller's to restore.
  void set_position(Position position) {
    give_up_next();
    if (captured_) captured_->drop();
    position_ = position;
    updates_.reset();
  }

  const LearningRateSchedule& schedule() const { return settings_.schedule; }
  /// Where the schedule, and the run, end earlier than the config says; unset: as it says.
  const std::optional<ScheduleEnd>& early_end() const { return early_end_; }
  /// Ends them there; between two steps, on all ranks alike.
  void end_early(ScheduleEnd end) {
    give_up_next();
    settings_.schedule.decay_steps = settings_.steps = end.steps;
    settings_.schedule.cooldown_steps = end.cooldown_steps;
    early_end_ = end;
  }

  /// Task::evaluate in the run's precision, by all ranks together, until one of them is asked to
  /// stop. `max_batches`: 0 for all held-out data. A sharded model's units are gathered one by one.
  std::optional<Evaluation> evaluate(int64_t max_batches);
  /// Task::sample_text. Of a sharded model by all ranks together, which gather its units for each
  /// token and return the same text; rank 0's `stop` counts.
  std::string sample_text(int64_t bytes, uint64_t seed, const StopRequest& stop = {});

  Task& task() { return *task_; }
  const Task& task() const { return *task_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  /// Enabled in F16_MIXED runs alone.
  GradScaler& scaler() { return scaler_; }
  const GradScaler& scaler() const { return scaler_; }
  /// Knows the numbers of the last steps, the same on all ranks.
  SpikeWatch& spikes() { return spikes_; }
  const SpikeWatch& spikes() const { return spikes_; }

 private:
  /// What steps read of the config.
  struct Settings {
    int64_t batch_size = 0;  ///< samples, of all ranks
    dist::LeafDeal deal;     ///< with a group and BITWISE
    StepShare share;
    /// How many micro-batches less this rank does in a step than the one that does most.
    int64_t idle_passes = 0;
    Device device;
    Precision precision = Precision::kF32;
    bool overfit_one_batch = false;
    bool updates_together = false;  ///< no rank updates before all ranks can
    double clip_grad_norm = 0;
    LearningRateSchedule schedule;
    OutcomeRule outcome;
    SpikeRule spikes;
    int64_t audit_every = 0;  ///< steps; 0: never
    int64_t steps = 0;        ///< of the run
    std::vector<MicroBatches> micro_batches_of_ranks;
    std::optional<HostActivations> host_activations;
    bool evaluates_averages = false;           ///< where the optimizer keeps any
    std::optional<ExactRows> exact_rows;       ///< with BITWISE
    std::shared_ptr<CompiledBlocks> compiled;  ///< null unless compile.enabled

    /// Takes rank `rank`'s of the shares of all ranks.
    void take_shares(std::span<const StepShare> shares, int rank);
  };
  static Settings settings_of(const config::RunConfig& config, const dist::ProcessGroup* group,
                              Task& task);
  /// Without an optimizer a new one is built. Takes both only if it does not throw. `fills`: of a
  /// model that is spread over ranks, parameters without memory get their first values.
  static Trainer create(const config::RunConfig& config, std::unique_ptr<Task>& task,
                        std::unique_ptr<Optimizer>& optimizer, dist::ProcessGroup* group,
                        bool fills);
  void take_parts(Legacy& legacy);
  static std::unique_ptr<CapturedStep> captured_step_of(const config::RunConfig& config, Task& task,
                                                        const dist::ProcessGroup* group,
                                                        const dist::ShardedModel* sharded,
                                                        const Settings& settings,
                                                        const Optimizer& optimizer);
  static std::string capture_refusal(const config::RunConfig& config, Task& task,
                                     const dist::ProcessGroup* group, const Settings& settings);

  Trainer(dist::ProcessGroup* group, Settings settings, std::unique_ptr<Task> task,
          std::unique_ptr<Optimizer> optimizer, GradScaler scaler,
          std::unique_ptr<EarlyUpdate> early_update, std::unique_ptr<dist::Reducer> reducer,
          std::unique_ptr<dist::ShardedModel> sharded, std::unique_ptr<dist::LocalSgd> local,
          RankStatistics statistics, std::unique_ptr<StepWatch> fault,
          std::unique_ptr<CapturedStep> captured);

  /// While alive, the fault's and the caller's watches see this thread's operators.
  class Watching;
  /// While alive, the model computes with the averages of its weights, where evaluations are to.
  class AveragedWeights;
  void begin_part(std::optional<int64_t> micro_batch, int64_t step);
  /// The next step with its forward and backward passes queued, begun ahead or now.
  StepInFlight forward_and_backward();
  /// Queues the passes; `ahead`: the step may have to be given up.
  void forward_and_backward(StepInFlight& step, bool ahead);
  /// Queues them one by one.
  void run_passes(StepInFlight& step);
  /// Queues them as one CUDA graph, which it captures first where there is none. Returns false,
  /// with nothing queued, where they have to run one by one.
  bool replay_passes(StepInFlight& step);
  /// All micro-batches, forward by `forward_of`, and backward. `after_forwards` is called before
  /// the last backward.
  void pass(StepInFlight& step, FunctionRef<SummedLoss(int64_t)> forward_of,
            FunctionRef<void()> after_forwards);
  bool all_captured(StepInFlight& step);
  void hear_votes(const StepInFlight& step);
  void backward(const SummedLoss& loss, int64_t micro_batch, StepInFlight& step);
  /// The audit of the next step, where one is due.
  std::optional<Audit> due_audit() const;
  /// Compares what the step's audit asks for, on all ranks; see StepResult::audit.
  std::string audit(const StepInFlight& step);
  /// Gives buffers and random numbers the values from before the step.
  void undo(const StepInFlight& step);
  /// The losses of one micro-batch, counted from this rank's first; its random numbers begin anew.
  SummedLoss forward(int64_t batch, int64_t micro_batch);
  /// Calls `model` in the state in which a forward pass runs.
  SummedLoss forward(int64_t batch, int64_t micro_batch, FunctionRef<SummedLoss()> model);
  /// Adds a micro-batch's losses to the step's.
  void keep(const SummedLoss& loss, int64_t micro_batch, StepInFlight& step);
  /// After the last forward pass of the step: begins to exchange, before the first bucket of
  /// gradients, what the ranks count.
  void exchange_counts(StepInFlight& step);
  /// Queues the sums over the ranks and the update.
  StepSums sum_and_update(StepInFlight& step);
  /// Queues the sum of losses over the ranks, and waits for that of what they count.
  void sum_losses(const StepInFlight& step);
  /// The numbers that the host knows then.
  void take_numbers(StepInFlight& step, StepSums& sums);
  /// Queues StepSums::norm_of_sums.
  Tensor norm_of_gradients();
  /// Queues what the losses and gradients of a step come to besides that.
  void add_up(const StepInFlight& step, StepSums& sums);
  /// Replays `norm_of_gradients`, `add_up`, `update` and `told_of` as a CUDA graph. Returns false,
  /// with the norm alone queued, where they have to run.
  bool replay_update(StepInFlight& step, StepSums& sums);
  /// Waits until all ranks have what they need to update. If it throws, `finish_step` can go on
  /// with `step`, of which nothing is left.
  void wait_for_all(StepInFlight& step, const StepSums& sums);
  /// Queues the optimizer's step, which the device leaves out where loss or norm is not finite, or
  /// a spike that is to be left out.
  void update(StepInFlight& step, const StepSums& sums);
  void queue_update(const StepInFlight& step, const StepSums& sums);
  /// What `read` is told.
  Tensor told_of(const StepSums& sums) const;
  /// Queues the copy of what there is to tell, and moves on to the next step's position.
  void close(StepInFlight& step, const StepSums& sums);
  bool has_statistics() const { return !task_->model().named_buffers().empty(); }
  /// Whether a step changes state before its update.
  bool changes_early() const;
  /// Whether the next step may begin while this one's numbers are waited for.
  bool can_begin_ahead() const;
  void begin_ahead();
  /// Waits for what there is to tell.
  void read(StepInFlight& step);
  /// Adds to an outcome that is finite whether it is a spike.
  void look_for_spike(StepResult& result);
  double learning_rate();
  void announce_update();
  void average_steps();
  // Of a sharded model:
  /// One tensor of the optimizer's state.
  struct SpreadState {
    std::string name;               ///< of Optimizer::state_names
    size_t parameter = 0;           ///< number of the trained parameter that it is kept for
    std::optional<int> owner = {};  ///< the only rank of sharded_->shards() that has any of it
  };
  /// Lists all, in the order of checkpoints.
  std::vector<SpreadState> spread_state() const;
  /// What this rank has of them, by the name in checkpoints.
  using OwnState = std::unordered_map<std::string, Tensor>;
  OwnState own_state() const;
  std::string stored_name(const SpreadState& spread) const;
  /// What rank `shard` of sharded_->shards() has of tensor `number` of the list, without values.
  std::optional<KeptRun> run_of(size_t number, const SpreadState& spread, int shard) const;
  /// The whole tensor on rank 0, undefined on the others. Collective.
  Tensor collect(const SpreadState& spread, const Tensor& own) const;
  std::vector<KeptRun> equal_runs(int rank);
  std::vector<KeptRun> sharded_runs(int rank);
  std::vector<KeptRun> weight_runs(int rank) const;
  std::vector<KeptRun> optimizer_runs(int rank) const;
  std::vector<KeptRun> local_runs(int rank);
  void read_local_state(const StateFiles& files);
  void read_weights(const std::filesystem::path& path);
  /// Changes weights that were read from `path` into ones for the multipliers of the model.
  void convert_multipliers(const std::filesystem::path& path);
  void read_optimizer_state(const std::filesystem::path& path);
  /// What `collect_state` chooses from, listed once for all of its calls between two steps.
  struct CollectedState {
    std::vector<nn::StoredParameter> weights;
    std::vector<nn::StoredParameter> optimizer;  ///< of a model that is not sharded
    std::vector<SpreadState> spread;             ///< of a sharded one
    OwnState own;
  };
  const CollectedState& collected_state();
  /// Why a step is not finite. Leaves everything as it was.
  std::string find_non_finite(const StepInFlight& step);
  /// Says so of a step that updated parameters as their gradients came. All ranks get the same
  /// text.
  std::string find_non_finite_sums();
  /// The samples of a batch with the largest losses, the same text on all ranks. Collective.
  std::string samples_of_spike(int64_t batch);

  dist::ProcessGroup* group_;
  Settings settings_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<int64_t> updates_;  ///< the optimizer's steps, where they are known here
  GradientFactors factors_;
  GradScaler scaler_;
  SpikeWatch spikes_;
  std::unique_ptr<EarlyUpdate> early_update_;  ///< where the config wants it
  dist::Reducer* reducer_;                     ///< sync_, or null
  dist::ShardedModel* sharded_;                ///< sync_, or null
  std::unique_ptr<dist::GradientSync> sync_;   ///< sums the gradients
  std::unique_ptr<dist::LocalSgd> local_;      ///< where ranks take steps of their own
  std::unique_ptr<CapturedStep> captured_;     ///< null unless compile.cuda_graphs
  StepSums captured_sums_;                     ///< of its update
  StateFiles files_to_read_;
  std::optional<CollectedState> collected_;  ///< from the first `collect_state` to the next step
  RankStatistics statistics_;
  RecentOverlap overlap_;
  int64_t sent_by_last_step_ = -1;     ///< bytes, when the last step had ended; -1: not known
  std::optional<StepInFlight> begun_;  ///< the next step, where it is
  std::optional<OpenStep> open_;
  std::function<void()> before_update_;
  std::unique_ptr<StepWatch> fault_;  ///< where the config plants one
  StepWatch* watch_ = nullptr;
  Position position_;
  std::optional<ScheduleEnd> early_end_;
  StopRequest stop_;
  /// A step of which this rank had everything when others were lost.
  struct ReadyStep {
    StepInFlight step;
    StepSums sums;
  };
  std::optional<ReadyStep> ready_;
};

}  // namespace lockstep::train
