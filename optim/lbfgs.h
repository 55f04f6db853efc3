#pragma once

#include "optim/optimizer.h"

namespace lockstep::optim {

struct LBFGSOptions {
  double learning_rate = 1;        ///< at least 0: length of a step, or the search's first trial
  int64_t max_iterations = 20;     ///< in one step; at least 1
  int64_t max_evaluations = 0;     ///< of the closure, in one step; 0 means 5/4 of max_iterations
  double tolerance_grad = 1e-7;    ///< done when no element of the gradient is larger
  double tolerance_change = 1e-9;  ///< done when loss and parameters change by less
  int64_t history_size = 100;      ///< pairs of differences that are kept; at least 1
  bool strong_wolfe = false;       ///< search each step's length (optim/wolfe_search.h)
  bool maximize = false;           ///< go up
};
std::vector<OptionField> fields_of(LBFGSOptions& options);
void check(const char* kind, LBFGSOptions options);

/// L-BFGS (Liu & Nocedal 1989), as torch.optim.LBFGS. For problems of which every step sees all
/// samples; a step calls the closure many times:
///
///   optimizer.step([&] { optimizer.zero_grad(); Tensor loss = f(); loss.backward(); return loss;
///   });
///
/// There is one group, whose parameters have one dtype and one device. Needs memory for
/// 2 * history_size + 2 copies of the parameters. Waits for the device several times in each
/// iteration.
class LBFGS final : public OptimizerWith<LBFGSOptions> {
 public:
  /// Throws ConfigError if an option is out of its range, DTypeError or DeviceError if parameters
  /// differ, and what Optimizer's constructors throw.
  explicit LBFGS(const ParameterList& parameters, const LBFGSOptions& options = {});

  /// Throws Error: there is no step without a closure.
  void step() override;
  /// Minimizes until a tolerance or a limit is reached. Returns the loss of the first evaluation.
  IgnorableTensor step(const Closure& closure) override;

 private:
  using OptimizerWith::add_group;  // there is one group

  /// A change of the parameters, and how the gradient changed with it.
  struct Pair {
    Tensor step;
    Tensor gradient_change;
    double inverse_product;  ///< 1 / (step * gradient_change)
  };
  /// All that one step hands to the next; tensors are flat.
  struct Memory {
    int64_t iterations = 0;
    int64_t evaluations = 0;
    Tensor direction;
    Tensor previous_gradient;
    double t = 0;
    double scale = 1;  ///< of the initial inverse Hessian
    double previous_loss = 0;
    std::vector<Pair> pairs;  ///< the oldest first
  };
  /// The loss, and the gradient of all parameters, zeros for those without; negated to maximize.
  struct Evaluation {
    double loss;
    Tensor gradient;
  };

  /// Never called: steps are taken by `step` alone.
  void update(ParameterStates, const LBFGSOptions&) override {}
  void save_extra(StateDict& state) const override;
  std::function<void()> load_extra(StateReader& reader) override;

  Evaluation evaluate(const Closure& closure) const;
  Tensor flat_gradient() const;
  /// Adds t times `direction` to the parameters.
  void move(double t, const Tensor& direction) const;
  /// Remembers the last change, and finds the next direction.
  void find_direction(const Tensor& gradient);
  /// Moves along the direction; returns the loss and gradient there.
  Evaluation search_line(const Closure& closure, const Evaluation& start, double slope);

  Memory memory_;
};

}  // namespace lockstep::optim
