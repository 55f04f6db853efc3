#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dist/ddp/reducer.h"
#include "dist/group/attendance.h"

namespace lockstep::dist {

/// What the ranks' sums are divided by where some ranks have no samples left.
enum class AverageOver : uint8_t {
  kPresentRanks,  ///< those that have: the mean over the ranks' gradients that there are
  kAllRanks,      ///< all: each sample counts as much as before
};

struct DdpOptions {
  /// As in ReducerOptions: those of 0 are chosen.
  BucketLimits buckets;
  /// false: gradients are summed over the ranks, not averaged.
  bool average = true;
  /// As in ReducerOptions.
  bool find_unused_parameters = false;
  /// As in ReducerOptions.
  bool static_graph = false;
  /// Ranks may run out of samples in different steps; each then calls `join`. Costs one number of
  /// each rank, gathered during each backward that is synchronised.
  bool uneven_inputs = false;
  /// Of an average with uneven_inputs.
  AverageOver average_over = AverageOver::kPresentRanks;
  CommunicationHook communication_hook = {};
  /// All ranks begin with rank 0's parameters and buffers. false: they must be the same already,
  /// which is checked.
  bool broadcast_parameters = true;
  /// After each backward that is synchronised, buffers (running statistics) become rank 0's; with
  /// uneven_inputs, those of the lowest rank that has samples.
  bool broadcast_buffers = true;
};

/// Data-parallel training in a loop of one's own: each rank has a copy of the module, runs forward
/// and backward on its own samples, and finds the average of all ranks' gradients in `grad` when
/// backward returns. Gradients are summed while backward still runs (dist/ddp/reducer.h).
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
/// Gradients stay in memory of this object: `zero_grad`, here or setting `grad` to nothing, marks
/// them as absent. What backward throws on one rank ends the group (see Reducer). Neither the
/// module nor the group may go before this object does. Not thread-safe, and backward is called by
/// one thread.
class Ddp {
 public:
  /// `module` has named_parameters() and named_buffers() of members `name` and `tensor`. Throws as
  /// Reducer, and MismatchError where values differ that should be the same.
  template <class Module>
  Ddp(const Module& module, ProcessGroup& group, const DdpOptions& options = {})
      : Ddp([&module] { return named(module.named_parameters()); },
            [&module] { return named(module.named_buffers()); }, group, options) {}
  /// What there is to train, and what goes with it.
  using List = std::function<std::vector<NamedTensor>()>;
  /// The same for any tensors; the lists are asked for after each backward, to see that they are
  /// still the same.
  Ddp(List parameters, List buffers, ProcessGroup& group, const DdpOptions& options = {});
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  /// Marks the gradients of all parameters as absent. Throws AutogradError for gradients that were
  /// never summed over the ranks: the last backward of a step ran under `no_sync`.
  void zero_grad();
  /// The same for gradients that are meant to be lost, of any backwards. All ranks call it alike.
  void discard_grad();

  /// While one is alive, backward adds to this rank's gradients and nothing is sent: for all
  /// micro-batches of a step but the last. What matters is when a backward's first gradient comes:
  /// guards that begin or end inside of it are for the next one. They nest.
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

  /// With uneven_inputs, on a rank whose samples are over: takes part in the backwards of the
  /// others with zeros, until all ranks have called it. Parameters and buffers are those of a rank
  /// that had samples in the last step then, on all ranks; its number is the result, so that others
  /// of its values can be shared (an optimizer's state is not: broadcast_values in
  /// dist/group/agreement.h). Gradients are absent, and training may go on. Throws as `zero_grad`,
  /// and what communication failed with.
  int join();

  /// After a backward that was synchronised: one for each parameter, in their order. Throws
  /// AutogradError where none was since `zero_grad`, or others came under `no_sync` after it.
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
  Present present_;  ///< in the last backward that was synchronised

  int no_sync_ = 0;
  int not_summed_ = 0;   ///< backwards under no_sync since the last that was synchronised
  bool summed_ = false;  ///< a backward was synchronised since zero_grad
  std::mutex mutex_;     // of what the first gradient of a backward changes
  std::weak_ptr<const bool> running_;  ///< gone with the backward that it is of
  bool unfinished_ = false;            ///< a backward has begun, and did not end well so far
};

}  // namespace lockstep::dist
