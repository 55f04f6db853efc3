#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

class Module;

/// Hears from a model what its forward passes in training find, while alive: they tell it here
/// instead of moving their running statistics, which stay as they are. A pass that is computed
/// again for a backward tells nothing. Must not outlive the model, which has one log at a time. Not
/// thread-safe.
class StatisticsLog {
 public:
  /// running = (1 - momentum) running + momentum found, in f64 with one rounding.
  struct Move {
    Tensor running;  ///< a buffer, f32 [n]
    Tensor found;    ///< f64 [n]
    double momentum = 0;
  };

  explicit StatisticsLog(Module& model);
  ~StatisticsLog();
  StatisticsLog(const StatisticsLog&) = delete;
  StatisticsLog& operator=(const StatisticsLog&) = delete;

  // By modules. `counter` is an integer buffer that the pass would have raised by one.
  void move(Tensor running, Tensor found, double momentum);
  void count(Tensor counter) { counters_.push_back(std::move(counter)); }

  /// In the order of the passes.
  const std::vector<Move>& moves() const { return moves_; }
  const std::vector<Tensor>& counters() const { return counters_; }

 private:
  Module& model_;
  std::vector<Move> moves_;
  std::vector<Tensor> counters_;
};

}  // namespace lockstep::nn
