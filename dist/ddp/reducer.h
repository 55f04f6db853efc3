#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/hooks.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/ddp/bucket_plan.h"
#include "dist/ddp/bucket_tuner.h"
#include "dist/ddp/communication_hook.h"
#include "dist/ddp/gradient_arena.h"
#include "dist/ddp/overlap.h"
#include "dist/ddp/step_times.h"
#include "dist/group/attendance.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

class HookRunner;

/// A parameter, or a buffer, of what is trained, and what it is called in errors.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A line for each: "h.0.ln_1.weight float32 [64]".
std::string description(const std::vector<NamedTensor>& tensors);

struct ReducerOptions {
  /// Those of 0 are chosen after the third step, from what was measured in it and the one before;
  /// for tensors of devices with streams, whose times the host does not know and whose libraries'
  /// sums may depend on their sizes, they are the usual ones.
  BucketLimits buckets;
  /// The leaves of a step that this rank adds up, by one backward or several each.
  LeafRange leaves{0, 1};
  /// Not 0: a step has so many leaves over all ranks, which are added in the order of their tree
  /// (dist/collectives/leaf_tree.h), so that sums do not depend on the number of ranks. 0: the
  /// ranks' sums are added in the order of ranks.
  int64_t tree_leaves = 0;
  /// Divides the sum by the number of ranks. Not with tree_leaves.
  bool average = false;
  /// Divides each sum, when it is there, by the number of ranks that were present (`Present`),
  /// which is not known before. Not with average, nor with tree_leaves.
  bool average_over_present = false;
  /// A parameter without a gradient counts as one with zeros, instead of being an error; where it
  /// has none on any rank, its `grad` stays undefined.
  bool find_unused_parameters = false;
  /// Called once a step for each bucket, in the order of the plan, when the sums of its parameters'
  /// gradients are there (of devices with streams: for work on the current stream): while backward
  /// still runs and later buckets are under way, on the thread that runs it; for the rest in
  /// `finish`, and for all in the first step. Gradients have come from everywhere then, so nothing
  /// that led to one still needs the parameters, and they may be changed in place. Who used a
  /// parameter without its gradient (`detach`) where backward comes later gets an AutogradError
  /// from it. Must not call the reducer, but for `gradients`. Not with find_unused_parameters.
  std::function<void(std::span<const uint32_t> parameters)> on_reduced;
  /// Every step is as the first one: the same parameters have gradients, and on each rank the same
  /// number of them in the last backward. Another one is an error of that step, which names the
  /// parameter. With find_unused_parameters the ranks then agree only once on who uses what, and
  /// buckets leave during backward without waiting for parameters that get no gradient.
  bool static_graph = false;
  /// What is done with a bucket instead of an all_reduce (dist/ddp/communication_hook.h); not asked
  /// where a rank is alone. Not with tree_leaves.
  CommunicationHook communication_hook = {};
};

/// Sums the gradients of one model over a step's backwards and over the ranks of a group, while
/// backward still runs.
///
/// Gradients lie in one stretch of memory for each dtype and device, where backward puts them. It
/// is cut into buckets in the order in which gradients become ready: the reverse of the order of
/// parameters at first, what rank 0 saw in the first step from the second one on. In the last
/// backward of a step each bucket is reduced as soon as its gradients and the buckets before it are
/// there; all ranks reduce in the order of the plan. Until the sizes of buckets are chosen, where
/// that is asked for, everything is reduced in `finish`. No bit of a sum depends on the plan.
///
/// A step:
///
///     reducer.begin_step();
///     for each leaf of this rank:
///       reducer.begin_leaf();
///       for each micro-batch:
///         if it is the last one of all: reducer.expect_last_backward();
///         backward(loss);
///     reducer.finish();
///     ... reducer.gradients() ...
///
/// All ranks do the same. What a rank throws in the midst of a step is the end of the group: others
/// wait for what it will not send. While it exists, nobody else may set gradients or destinations
/// of the parameters. Not thread-safe, but for the hooks that backward calls.
class Reducer {
 public:
  /// `group` may be null, for one rank, and must outlive this object. Throws AutogradError for
  /// parameters that do not require grad, and MismatchError on all ranks where the ranks'
  /// parameters have other names, shapes or dtypes.
  Reducer(std::vector<NamedTensor> parameters, ProcessGroup* group,
          const ReducerOptions& options = {});
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Marks all gradients as absent; their memory stays.
  void begin_step();
  /// After `finish`, instead of the next step's beginning: its one leaf goes on with the gradients
  /// that there are, and backward adds to them. Not for steps of several leaves.
  void go_on();
  /// Throws AutogradError naming the first parameter that has received no gradient in the leaf
  /// before.
  void begin_leaf();
  /// The next backward is the last of the step. Without it, all is reduced in `finish`. false takes
  /// it back.
  void expect_last_backward(bool expected = true);
  /// Reduces what is not yet, and waits for all of it (on a device with streams, later work on the
  /// current stream waits; for a communication hook this thread). Throws as `begin_leaf`, and what
  /// communication failed with.
  /// `present`, the same on all ranks: the others call `answer`.
  void finish(const Present& present = {});
  /// Between steps: the part of a rank without samples in a step that those present `finish`. It
  /// sends zeros; gradients are lost. Not with tree_leaves or several leaves (throws DistError).
  void answer(const Present& present);

  /// After `finish`: one for each parameter, in their order.
  const std::vector<Tensor>& gradients() const { return slots_.front(); }
  const BucketPlan& plan() const { return plan_; }
  /// Whether buckets follow the order that the first step showed: from the second `begin_step` on.
  bool in_learnt_order() const { return in_learnt_order_; }
  /// What was chosen, once it is; in use from the step after.
  const std::optional<BucketChoice>& choice() const { return choice_; }
  /// Whether the plan stays as it is, and buckets leave while backward runs.
  bool is_settled() const;
  /// Bytes of gradients, over all rows.
  int64_t bytes() const;
  /// Of the last step; between `finish` and the next one's beginning.
  const StepTimes& times() const { return times_; }
  /// The same, for who reads them later.
  StepTimes take_times() { return std::exchange(times_, StepTimes(device_)); }
  /// For measuring: while off, nothing is sent, and gradients are those of this rank. All ranks
  /// must change it in the same step.
  void set_communication(bool on) { communicates_ = on; }

 private:
  /// A bucket in this step.
  struct Filling {
    size_t missing = 0;           ///< gradients that are not there
    std::vector<Stream> streams;  ///< where gradients were made
  };

  void check_parameters() const;
  void lay_out(BucketPlan plan);
  void follow_order(bool learnt);
  void reset_step();
  void end_leaf();
  void check_not_sent(uint32_t parameter);
  void gradient_arrived(uint32_t parameter);
  void launch_complete();
  void launch(size_t bucket);
  void hand_over_complete();
  void hand_over();
  void zero_absent(size_t bucket);
  void check_static_graph() const;
  void learn_counts();
  void complete(const Present& present);
  void agree_on_use();
  Work reduce(size_t bucket);
  GradientBucket gradients_of(size_t bucket) const;
  void set_gradients();
  void learn_order(int root);
  bool is_measuring() const { return tuner_ && tuner_->is_measuring(); }
  void measure();
  int64_t rows_sent() const;
  Work add_over_ranks(const Tensor& output, const Tensor& sums);

  std::vector<NamedTensor> parameters_;
  ProcessGroup* group_;
  ReducerOptions options_;
  std::vector<PlannedParameter> planned_;
  BucketPlan plan_;
  std::vector<GradientArena> arenas_;
  std::vector<std::vector<Tensor>> slots_;  ///< by row, by parameter
  std::vector<HookHandle> hooks_;

  LeafStack stack_;
  int64_t next_leaf_ = 0;
  bool in_leaf_ = false;
  int64_t last_row_ = 0;             ///< of the step's last leaf
  int last_joins_ = 0;               ///< with the rows before it
  std::vector<bool> used_;           ///< by parameter: it has had a gradient in this step
  std::vector<bool> used_anywhere_;  ///< of a static graph: on any rank, in the first step
  std::vector<uint32_t> order_;      ///< agreed on in the first step; empty before
  bool in_learnt_order_ = false;
  std::optional<BucketPlan> next_plan_;  ///< of the sizes that were chosen, not yet in use
  std::optional<BucketTuner> tuner_;     ///< where sizes are to be chosen
  std::optional<BucketChoice> choice_;
  Device device_;  ///< of all parameters; the cpu where they are on several, or nobody asks
  StepTimes times_;
  bool communicates_ = true;

  std::mutex mutex_;  // of what hooks change
  bool last_backward_ = false;
  std::vector<Filling> filling_;
  std::vector<uint32_t> arrivals_;  ///< by parameter: in this step's last backward
  std::vector<uint32_t> expected_;  ///< the same in this rank's first; empty while that is not over
  std::vector<uint32_t> arrived_;   ///< parameters in the order in which they came last
  size_t launched_ = 0;             ///< buckets
  size_t handed_over_ = 0;          ///< buckets, to on_reduced

  std::unique_ptr<HookRunner> runner_;  ///< null where there is no hook; goes first
};

}  // namespace lockstep::dist
