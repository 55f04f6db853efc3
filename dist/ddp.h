#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/reducer.h"

namespace lockstep::dist {

struct DdpOptions {
  BucketLimits buckets;
  /// false: gradients are summed over the ranks, not averaged.
  bool average = true;
  /// As in ReducerOptions.
  bool find_unused_parameters = false;
  /// All ranks begin with rank 0's parameters and buffers. false: they must be the same already,
  /// which is checked.
  bool broadcast_parameters = true;
  /// After each backward that is synchronised, buffers (running statistics) become rank 0's.
  bool broadcast_buffers = true;
};

/// Data-parallel training in a loop of one's own: each rank has a copy of the module, runs forward
/// and backward on its own samples, and finds the average of all ranks' gradients in `grad` when
/// backward returns. Gradients are summed while backward still runs (dist/reducer.h).
///
///     dist::Ddp ddp(model, *group);
///     for (...) {
///       loss(model, my_samples()).backward();
///       optimizer.step(...);
///       ddp.zero_grad();
///     }
///
/// All ranks run the same backwards. Gradients stay in memory of this object: `zero_grad`, here or
/// setting `grad` to nothing, marks them as absent. What backward throws on one rank ends the group
/// (see Reducer). Neither the module nor the group may go before this object does. Not thread-safe,
/// and backward is called by one thread.
class Ddp {
 public:
  /// `module` has named_parameters() and named_buffers() of members `name` and `tensor`. Throws as
  /// Reducer, and MismatchError where values differ that should be the same.
  template <class Module>
  Ddp(const Module& module, ProcessGroup& group, const DdpOptions& options = {})
      : Ddp([&module] { return named(module.named_parameters()); }, named(module.named_buffers()),
            group, options) {}
  /// The same for any tensors; `parameters` is called after each backward, to see that they are
  /// still the same.
  Ddp(std::function<std::vector<NamedTensor>()> parameters, std::vector<NamedTensor> buffers,
      ProcessGroup& group, const DdpOptions& options = {});
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  /// Marks the gradients of all parameters as absent.
  void zero_grad();

  /// While one is alive, backward adds to this rank's gradients and nothing is sent: for all
  /// micro-batches of a step but the last. What matters is when backward runs.
  class NoSync {
   public:
    explicit NoSync(Ddp& ddp) : ddp_(ddp) { ddp_.change_no_sync(1); }
    ~NoSync() { ddp_.change_no_sync(-1); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    Ddp& ddp_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(*this); }

  /// After a backward that was synchronised: one for each parameter, in their order.
  const std::vector<Tensor>& gradients() const { return reducer_->gradients(); }
  const Reducer& reducer() const { return *reducer_; }

 private:
  template <class List>
  static std::vector<NamedTensor> named(const List& list) {
    std::vector<NamedTensor> result;
    for (const auto& each : list) result.push_back({each.name, each.tensor});
    return result;
  }

  void share_values(const DdpOptions& options);
  void change_no_sync(int by);
  void gradient_arrived();
  void finish();
  void check_parameters() const;

  std::function<std::vector<NamedTensor>()> list_parameters_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  ProcessGroup& group_;
  bool broadcasts_buffers_;
  std::unique_ptr<Reducer> reducer_;
  std::vector<HookHandle> hooks_;
  int no_sync_ = 0;
  std::atomic<bool> in_backward_{false};
};

}  // namespace lockstep::dist
