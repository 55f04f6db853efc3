#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

class Module;

/// While alive, collects the statistics of a model's forward passes in training, which are written
/// here instead of updating the running statistics. A pass recomputed for backward writes nothing.
/// Must not outlive the model, which has at most one log at a time. Not thread-safe.
class StatisticsLog {
 public:
  /// A pending update: running = (1 - momentum) running + momentum found, in f64, rounded once.
  struct Move {
    Tensor running;  ///< a buffer, f32 [n]
    Tensor found;    ///< f64 [n]
    double momentum = 0;
  };

  explicit StatisticsLog(Module& model);
  ~StatisticsLog();
  StatisticsLog(const StatisticsLog&) = delete;
  StatisticsLog& operator=(const StatisticsLog&) = delete;

  // Called by modules. `counter` is an integer buffer that the pass would have incremented by one.
  void move(Tensor running, Tensor found, double momentum);
  void count(Tensor counter) { counters_.push_back(std::move(counter)); }

  /// The pending updates in the order of the passes.
  const std::vector<Move>& moves() const { return moves_; }
  const std::vector<Tensor>& counters() const { return counters_; }

 private:
  Module& model_;
  std::vector<Move> moves_;
  std::vector<Tensor> counters_;
};

}  // namespace lockstep::nn
