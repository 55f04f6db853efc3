#pragma once

#include <utility>
#include <vector>

#include "dist/group/process_group.h"
#include "nn/module.h"
#include "nn/statistics_log.h"

namespace lockstep::train {

/// Synchronizes a model's running statistics among ranks that train copies of it. The statistics of
/// all forward passes of a step, from all ranks, are applied on every rank in the order of
/// micro-batches, so that the result has the bits of a single rank computing the whole step.
/// Without a group, forward passes update the running statistics directly and this class does
/// nothing.
///
/// A step:
///
///     for each micro-batch of this rank: loss = statistics.observe([&] { return forward(...); });
///     statistics.send();     // any time after the last forward pass
///     statistics.apply();
///
/// Collective: all ranks make the same calls. Not thread-safe.
class RankStatistics {
 public:
  /// `group` may be null; it and the model must outlive this object. `micro_batches`: their number
  /// per step for each rank; micro-batches are numbered in rank order.
  RankStatistics(nn::Module& model, dist::ProcessGroup* group, std::vector<int64_t> micro_batches);

  /// From the next step on ranks do so many micro-batches. Between steps; the same on all ranks.
  void set_micro_batches(std::vector<int64_t> micro_batches) {
    micro_batches_ = std::move(micro_batches);
  }
  /// Calls `forward`, the forward pass of one micro-batch, and returns its result. Throws
  /// ConfigError if the model updates a running statistic twice in one pass, or others than in the
  /// previous pass.
  template <class F>
  auto observe(F&& forward) {
    if (group_ == nullptr) return forward();
    const nn::StatisticsLog log(model_);
    auto result = forward();
    add(log);
    return result;
  }
  /// Starts exchanging the step's statistics in the background.
  void send();
  /// Waits for the exchange and updates the running statistics.
  void apply();

 private:
  void add(const nn::StatisticsLog& log);
  void learn_layout(const nn::StatisticsLog& log);

  nn::Module& model_;
  dist::ProcessGroup* group_;
  std::vector<int64_t> micro_batches_;
  // What a row of statistics holds, the same in every pass.
  std::vector<Tensor> running_;
  std::vector<Tensor> counters_;
  Tensor momentum_;  ///< f64, by element of a row
  Tensor rest_;      ///< 1 - momentum
  std::vector<Tensor> rows_;
  Tensor of_all_;  ///< f64 [ranks, most micro-batches of a rank, elements]
  dist::Work work_;
};

}  // namespace lockstep::train
