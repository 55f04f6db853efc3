#pragma once

#include <vector>

#include "dist/group/process_group.h"
#include "nn/module.h"
#include "nn/statistics_log.h"

namespace lockstep::train {

/// Running statistics of a model that ranks train copies of. Those that the forward passes of a
/// step find, on all ranks, are applied to every rank's in the order of micro-batches, so that they
/// have the bits of one rank that computes the whole step. Without a group forward passes move them
/// as ever, and nothing here does anything.
///
/// A step:
///
///     for each micro-batch of this rank: loss = statistics.observe([&] { return forward(...); });
///     statistics.send();     // any time after the last forward pass
///     statistics.apply();
///
/// All ranks do the same. Not thread-safe.
class RankStatistics {
 public:
  /// `group` may be null; it and the model must outlive this object. `micro_batches`: how many each
  /// rank does in a step, which are numbered in the order of ranks.
  RankStatistics(nn::Module& model, dist::ProcessGroup* group, std::vector<int64_t> micro_batches);

  /// Calls `forward`, the pass of one micro-batch, and returns what it does. Throws ConfigError for
  /// models that move a running statistic twice in one pass, or others than in the pass before.
  template <class F>
  auto observe(F&& forward) {
    if (group_ == nullptr) return forward();
    const nn::StatisticsLog log(model_);
    auto result = forward();
    add(log);
    return result;
  }
  /// Begins to exchange what was found, in the background.
  void send();
  /// Moves the running statistics.
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
  Tensor momentum_;  ///< of each element, f64
  Tensor rest_;      ///< 1 - momentum
  std::vector<Tensor> rows_;
  Tensor of_all_;  ///< f64 [ranks, most micro-batches of a rank, elements]
  dist::Work work_;
};

}  // namespace lockstep::train
