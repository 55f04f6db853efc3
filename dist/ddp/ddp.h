#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "dist/ddp/reducer.h"
#include "dist/group/attendance.h"

namespace lockstep::dist {

/// Divisor of the ranks' sum when some ranks have no samples left.
enum class AverageOver : uint8_t {
  kPresentRanks,  ///< the number of ranks with samples: the mean of their gradients
  kAllRanks,      ///< the number of all ranks: each sample keeps its weight
};

struct DdpOptions {
  /// Same as in ReducerOptions: limits of 0 are chosen.
  BucketLimits buckets = {};
  /// false: gradients are summed over the ranks, not averaged.
  bool average = true;
  /// As in ReducerOptions.
  bool find_unused_parameters = false;
  /// As in ReducerOptions.
  bool static_graph = false;
  /// Ranks may run out of samples in different steps; each then calls `join`. Costs one number of
  /// each rank, gathered during each backward that is synchronised.
  bool uneven_inputs = false;
  /// Divisor of an average with uneven_inputs.
  AverageOver average_over = AverageOver::kPresentRanks;
  CommunicationHook communication_hook = {};
  /// All ranks begin with rank 0's parameters and buffers. false: they must be the same already,
  /// which is checked.
  bool broadcast_parameters = true;
  /// After each backward that is synchronised, buffers (running statistics) become rank 0's; with
  /// uneven_inputs, those of the lowest rank that has samples.
  bool broadcast_buffers = true;
};

/// Data-parallel training in a user's own loop, without the Trainer: each rank has a copy of the
/// module and runs forward and backward on its own samples; when backward returns, `grad` holds the
/// average over all ranks. Gradients are summed while backward still runs (dist/ddp/reducer.h).
///
///     dist::Ddp ddp(model, *group);
///     for (...) {
///       loss(model, my_samples()).backward();
///       optimizer.step(...);
///       ddp.zero_grad();
///     }
///
/// All ranks run the same backwards; with DdpOptions::uneven_inputs some may end earlier:
///
///     while (have_samples()) { ... a step as above ... }
///     ddp.join();
///
/// Gradients stay in memory of this object: `zero_grad` or resetting `grad` marks them as absent.
/// An exception in backward on one rank ends the group (see Reducer). The module and the group must
/// outlive this object. Not thread-safe, and backward must be called by one thread.
class Ddp {
 public:
  /// `module` has named_parameters() and named_buffers(), whose elements have members `name` and
  /// `tensor`. Throws the errors of Reducer, and MismatchError if values differ that must be equal.
  template <class Module>
  Ddp(const Module& module, ProcessGroup& group, const DdpOptions& options = {})
      : Ddp([&module] { return named(module.named_parameters()); },
            [&module] { return named(module.named_buffers()); }, group, options) {}
  /// Returns the parameters, or the buffers, of what is trained.
  using List = std::function<std::vector<NamedTensor>()>;
  /// Wraps any tensors. The lists are called again after each backward to check that they have not
  /// changed.
  Ddp(List parameters, List buffers, ProcessGroup& group, const DdpOptions& options = {});
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  /// Marks the gradients of all parameters as absent. Throws AutogradError if they were never
  /// summed over the ranks, because the last backward of the step ran under `no_sync`.
  void zero_grad();
  /// Marks gradients as absent without that check, to drop them. Collective.
  void discard_grad();

  /// While a guard is alive, backward adds to this rank's gradients and sends nothing: for all
  /// micro-batches of a step but the last. It must be alive when a backward's first gradient
  /// arrives; one that begins or ends later affects the next backward. Guards nest.
  class NoSync {
   public:
    explicit NoSync(Ddp& ddp) : ddp_(ddp) { ++ddp_.no_sync_; }
    ~NoSync() { --ddp_.no_sync_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Ddp& ddp_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(*this); }

  /// Requires uneven_inputs; called by a rank that has no samples left. Takes part in the backwards
  /// of the other ranks with zeros until all ranks have called it, then copies parameters and
  /// buffers of a rank that had samples in the last step to all ranks. Returns that rank, so that
  /// other values can be shared from it (the optimizer's state is not shared here: use
  /// broadcast_values in dist/group/agreement.h). Gradients are absent afterwards, and training may
  /// go on. Throws the errors of `zero_grad` and of communication.
  int join();

  /// Returns the summed gradients, one for each parameter in order. Throws AutogradError unless the
  /// last backward since `zero_grad` was synchronised.
  const std::vector<Tensor>& gradients() const;
  const Reducer& reducer() const { return *reducer_; }

 private:
  template <class Tensors>
  static std::vector<NamedTensor> named(const Tensors& list) {
    std::vector<NamedTensor> result;
    for (const auto& each : list) result.push_back({each.name, each.tensor});
    return result;
  }

  void share_values() const;
  void gradient_comes();
  void finish(bool synchronised);
  bool is_unfinished() const {
    const MutexLock lock(mutex_);
    return unfinished_;
  }
  void share_buffers() const;

  List list_parameters_;
  List list_buffers_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  ProcessGroup& group_;
  DdpOptions options_;
  std::unique_ptr<Reducer> reducer_;
  std::vector<HookHandle> hooks_;
  Attendance attendance_;
  Present present_;  ///< ranks with samples in the last synchronised backward

  int no_sync_ = 0;
  int not_summed_ = 0;   ///< backwards under no_sync since the last synchronised one
  bool summed_ = false;  ///< a backward was synchronised since zero_grad
  mutable Mutex mutex_;
  /// Expires with the backward in progress.
  std::weak_ptr<const bool> running_ LS_GUARDED_BY(mutex_);
  /// A backward is in progress or has failed.
  bool unfinished_ LS_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::dist
