#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/hooks.h"
#include "core/base/mutex.h"
#include "dist/collectives/leaf_deal.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/ddp/bucket_plan.h"
#include "dist/ddp/bucket_tuner.h"
#include "dist/ddp/communication_hook.h"
#include "dist/ddp/gradient_arena.h"
#include "dist/ddp/gradient_sync.h"
#include "dist/ddp/overlap.h"
#include "dist/ddp/step_times.h"
#include "dist/group/attendance.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

class HookRunner;

/// A parameter or buffer with its name for errors.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Returns a line for each tensor: "h.0.ln_1.weight float32 [64]".
std::string description(const std::vector<NamedTensor>& tensors);

struct ReducerOptions {
  /// Limits of 0 are chosen after the third step, from measurements in the second and third. On
  /// devices with streams the usual limits are used instead: the host does not know when gradients
  /// are ready there, and the library's sums may depend on bucket sizes.
  BucketLimits buckets = {};
  /// The leaves of a step that this rank adds up, each by one or several backwards.
  LeafRange leaves{0, 1};
  /// If not 0, the number of leaves of a step over all ranks. They are added in the order of their
  /// tree (dist/collectives/leaf_tree.h), so that sums do not depend on the number of ranks. If 0,
  /// the ranks' sums are added in the group's order. `leaves` must be this rank's of the even deal
  /// (dist/collectives/leaf_deal.h); `deal_out` changes it.
  int64_t tree_leaves = 0;
  /// Divides the sum by the number of ranks. Not with tree_leaves.
  bool average = false;
  /// Divides each sum after its reduction by the number of ranks with samples (`Present`), which is
  /// not known earlier. Not with average or tree_leaves.
  bool average_over_present = false;
  /// A parameter without a gradient counts as zeros instead of being an error; if no rank has a
  /// gradient for it, its `grad` stays undefined.
  bool find_unused_parameters = false;
  /// Called once a step for each bucket, in the order of the plan, when the sums of its parameters'
  /// gradients are there (of devices with streams: for work on the current stream): while backward
  /// still runs and later buckets are under way, on the thread that runs it; for the rest in
  /// `finish`, and for all in the first step. Gradients have come from everywhere then, so nothing
  /// that led to one still needs the parameters, and they may be changed in place. Code that
  /// used a parameter without its gradient (`detach`) gets an AutogradError if its backward comes
  /// later. `gradients` is one for each parameter of the reducer, in their order; those of
  /// `parameters` are complete. Must not call the reducer. Not with find_unused_parameters.
  std::function<void(std::span<const uint32_t> parameters, const std::vector<Tensor>& gradients)>
      on_reduced = {};
  /// Every step is as the first one: the same parameters have gradients, and on each rank the same
  /// number of them in the last backward. Another one is an error of that step, which names the
  /// parameter. With find_unused_parameters the ranks then agree only once on who uses what, and
  /// buckets leave during backward without waiting for parameters that get no gradient.
  bool static_graph = false;
  /// Reduces buckets in place of the all_reduce (dist/ddp/communication_hook.h); not called in a
  /// group of one rank. Not with tree_leaves.
  CommunicationHook communication_hook = {};
};

/// Sums the gradients of one model over a step's backwards and over the ranks of a group, while
/// backward still runs.
///
/// Backward writes gradients into one arena for each dtype and device. The arena is divided into
/// buckets in the order in which gradients become ready: the reverse order of parameters in the
/// first step, and from the second on the order that rank 0 observed in the first. In the last
/// backward of a step each bucket is reduced as soon as its gradients and the buckets before it are
/// complete; all ranks reduce in the order of the plan. If bucket sizes are to be chosen,
/// everything is reduced in `finish` until they are. No bit of a sum depends on the plan.
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
/// All ranks do the same. An exception on one rank within a step ends the group, because the other
/// ranks wait for data that it will not send. While the reducer exists, other code must not set
/// gradients or gradient destinations of the parameters. Not thread-safe, except for the hooks that
/// backward calls.
class Reducer final : public GradientSync {
 public:
  /// `group` may be null, for one rank, and must outlive this object. Throws AutogradError for
  /// parameters that do not require grad, and MismatchError on all ranks if names, shapes or dtypes
  /// of the parameters differ between ranks.
  Reducer(std::vector<NamedTensor> parameters, ProcessGroup* group,
          const ReducerOptions& options = {});
  ~Reducer() override;
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Marks all gradients as absent; their memory stays.
  void begin_step() override;
  void forget_step() override;
  void deal_out(const LeafDeal& deal) override;
  /// Called after `finish` in place of `begin_step`: continues with the current gradients, to which
  /// the next backwards add. Not for steps of several leaves (throws DistError).
  void go_on();
  /// Begins the next leaf. Throws AutogradError naming the first parameter that has received no
  /// gradient in the leaf before.
  void begin_leaf() override;
  /// Announces that the next backward is the last of the step, so that buckets are sent during it;
  /// without this call all of them are reduced in `finish`. false cancels the announcement.
  void expect_last_backward(bool expected = true) override;
  /// Reduces the remaining buckets and waits for all of them (on a device with streams, later work
  /// on the current stream waits; with a communication hook the calling thread does). Throws the
  /// errors of `begin_leaf` and of communication.
  /// `present` must be the same on all ranks; ranks without samples call `answer` instead.
  void finish(const Present& present);
  void finish() override { finish(Present{}); }
  /// Takes part, between steps and with zeros, in a step that the present ranks `finish`. Discards
  /// this rank's gradients. Not with tree_leaves or several leaves (throws DistError).
  void answer(const Present& present);

  /// The summed gradients after `finish`, one for each parameter in order.
  const std::vector<Tensor>& gradients() const override { return slots_.front(); }
  Tensor blocks_of_all(const Tensor& own) const override { return own; }
  const BucketPlan& plan() const { return plan_; }
  /// What the buckets hold, in the order of the plan.
  std::vector<BucketContent> contents() const;
  /// Whether buckets follow the order observed in the first step: from the second `begin_step` on.
  bool in_learnt_order() const { return in_learnt_order_; }
  /// The chosen bucket sizes, once they are chosen; in use from the following step on.
  const std::optional<BucketChoice>& choice() const { return choice_; }
  /// Whether the plan is final, so that buckets are sent while backward runs.
  bool is_settled() const;
  /// Bytes of gradients, over all rows.
  int64_t bytes() const;
  /// Times of the last step; valid from `finish` to the beginning of the next step.
  const StepTimes& times() const override { return times_; }
  /// Moves the times of the last step out, to be read later.
  StepTimes take_times() override { return std::exchange(times_, StepTimes(device_)); }
  /// For benchmarks: while off, nothing is sent and gradients are those of this rank alone. All
  /// ranks must change it in the same step.
  void set_communication(bool on) { communicates_ = on; }

 private:
  /// State of a bucket in this step.
  struct Filling {
    size_t missing = 0;           ///< number of gradients that have not arrived
    std::vector<Stream> streams;  ///< streams on which gradients were computed
  };

  void check_parameters() const;
  void watch_parameters();
  void lay_out(BucketPlan plan) LS_REQUIRES(mutex_);
  void follow_order(bool learnt) LS_REQUIRES(mutex_);
  void follow_deal(LeafDeal deal) LS_REQUIRES(mutex_);
  void reset_step() LS_REQUIRES(mutex_);
  void end_leaf() LS_REQUIRES(mutex_);
  void check_not_sent(uint32_t parameter);
  void gradient_arrived(uint32_t parameter);
  void launch_complete() LS_REQUIRES(mutex_);
  void launch(size_t bucket) LS_REQUIRES(mutex_);
  void hand_over_complete() LS_REQUIRES(mutex_);
  void hand_over() LS_REQUIRES(mutex_);
  void zero_absent(size_t bucket);
  void check_static_graph() const LS_REQUIRES(mutex_);
  void learn_counts() LS_REQUIRES(mutex_);
  void complete(const Present& present) LS_REQUIRES(mutex_);
  void agree_on_use() LS_REQUIRES(mutex_);
  Work reduce(size_t bucket);
  GradientBucket gradients_of(size_t bucket) const;
  void set_gradients();
  void learn_order(int root) LS_REQUIRES(mutex_);
  bool is_measuring() const { return tuner_ && tuner_->is_measuring(); }
  void measure() LS_REQUIRES(mutex_);
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

  LeafDeal deal_;                     ///< of the group's ranks; empty without a group or a tree
  std::optional<LeafDeal> new_deal_;  ///< for the next step
  LeafStack stack_;
  int64_t next_leaf_ = 0;
  bool in_leaf_ = false;
  int64_t last_row_ = 0;             ///< row of the step's last leaf
  int last_joins_ = 0;               ///< number of joins of rows after the last leaf
  std::vector<bool> used_;           ///< by parameter: it has had a gradient in this step
  std::vector<bool> used_anywhere_;  ///< static_graph: used_ of any rank in the first step
  std::vector<uint32_t> order_;      ///< agreed on in the first step; empty before
  bool in_learnt_order_ = false;
  std::optional<BucketPlan> next_plan_;  ///< with the chosen sizes, for the next step
  std::optional<BucketTuner> tuner_;     ///< if sizes are to be chosen
  std::optional<BucketChoice> choice_;
  Device device_;  ///< device of all parameters; cpu if they are on several, or without a group
  StepTimes times_;
  bool communicates_ = true;

  Mutex mutex_;  // held by the hooks of backward and, between backwards, by the steps' functions
  bool last_backward_ LS_GUARDED_BY(mutex_) = false;
  std::vector<Filling> filling_ LS_GUARDED_BY(mutex_);
  /// By parameter: gradients in this step's last backward.
  std::vector<uint32_t> arrivals_ LS_GUARDED_BY(mutex_);
  /// arrivals_ of the first step; empty until its end.
  std::vector<uint32_t> expected_ LS_GUARDED_BY(mutex_);
  /// Parameters in order of arrival, once for each gradient.
  std::vector<uint32_t> arrived_ LS_GUARDED_BY(mutex_);
  size_t launched_ LS_GUARDED_BY(mutex_) = 0;     ///< number of buckets launched
  size_t handed_over_ LS_GUARDED_BY(mutex_) = 0;  ///< number of buckets passed to on_reduced

  std::unique_ptr<HookRunner> runner_;  ///< null without a hook; must be destroyed first
};

}  // namespace lockstep::dist
