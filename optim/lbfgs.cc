#include "optim/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/phase.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "optim/state_reader.h"
#include "optim/wolfe_search.h"

namespace lockstep::optim {

namespace {

/// Pairs with a smaller product of step and change of the gradient are not remembered.
constexpr double kSmallestProduct = 1e-10;

double product(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }
double largest_element(const Tensor& x) { return amax(abs(x)).item<double>(); }

}  // namespace

std::vector<OptionField> fields_of(LBFGSOptions& options) {
  return {{"learning_rate", &options.learning_rate, OptionRange::kNotNegative},
          {"max_iterations", &options.max_iterations, OptionRange::kPositive},
          {"max_evaluations", &options.max_evaluations, OptionRange::kNotNegative},
          {"tolerance_grad", &options.tolerance_grad},
          {"tolerance_change", &options.tolerance_change},
          {"history_size", &options.history_size, OptionRange::kPositive},
          {"strong_wolfe", &options.strong_wolfe},
          {"maximize", &options.maximize}};
}

void check(const char* kind, LBFGSOptions options) { check_ranges(kind, fields_of(options)); }

LBFGS::LBFGS(const ParameterList& parameters, const LBFGSOptions& options)
    : OptimizerWith({.name = "LBFGS"}, parameters, options) {
  const Tensor& first = parameters[0];
  for (size_t i = 1; i < parameters.size(); ++i) {
    LS_CHECK(parameters[i].dtype() == first.dtype(), DTypeError,
             "[optim.LBFGS] {} has another dtype than the first: expected {}, got {}.",
             parameters.describe(i), to_string(first.dtype()), to_string(parameters[i].dtype()));
    LS_CHECK(parameters[i].device() == first.device(), DeviceError,
             "[optim.LBFGS] {} is on another device than the first: expected {}, got {}.",
             parameters.describe(i), to_string(first.device()), to_string(parameters[i].device()));
  }
}

void LBFGS::step() {
  throw Error(
      "[optim.LBFGS] a step needs a closure, which computes the loss and its gradients: expected "
      "step(closure), got step().");
}

Tensor LBFGS::flat_gradient() const {
  std::vector<Tensor> parts;
  for (const Tensor& parameter : parameters()) {
    const Tensor& grad = parameter.grad();
    parts.push_back(grad.defined() ? grad.detach().reshape({-1})
                                   : zeros({parameter.numel()}, parameter.options()));
  }
  return options().maximize ? neg(cat(parts)) : cat(parts);
}

LBFGS::Evaluation LBFGS::evaluate(const Closure& closure) const {
  Tensor loss;
  {
    const EnableGradGuard enable_grad;
    loss = closure();
  }
  const double value = loss.item<double>();
  return {options().maximize ? -value : value, flat_gradient()};
}

void LBFGS::move(double t, const Tensor& direction) const {
  int64_t first = 0;
  for (const Tensor& parameter : parameters()) {
    const int64_t last = first + parameter.numel();
    parameter.add_(direction.slice(0, first, last).reshape(parameter.sizes()), t);
    first = last;
  }
}

void LBFGS::find_direction(const Tensor& gradient) {
  Memory& memory = memory_;
  if (memory.iterations == 1) {
    memory.pairs.clear();
    memory.scale = 1;
    memory.direction = neg(gradient);
    return;
  }
  const Tensor change = sub(gradient, memory.previous_gradient);
  const Tensor step = mul(memory.direction, memory.t);
  const double along = product(change, step);
  if (along > kSmallestProduct) {
    const auto most = static_cast<size_t>(options().history_size);
    if (memory.pairs.size() >= most) memory.pairs.erase(memory.pairs.begin());
    memory.pairs.push_back({step, change, 1 / along});
    memory.scale = along / product(change, change);
  }
  // The two loops of L-BFGS: the inverse Hessian times the gradient.
  std::vector<double> factors(memory.pairs.size());
  const Tensor q = neg(gradient);
  for (size_t i = memory.pairs.size(); i-- > 0;) {
    const Pair& pair = memory.pairs[i];
    factors[i] = product(pair.step, q) * pair.inverse_product;
    q.add_(pair.gradient_change, -factors[i]);
  }
  mul_(q, memory.scale);
  for (size_t i = 0; i < memory.pairs.size(); ++i) {
    const Pair& pair = memory.pairs[i];
    const double beta = product(pair.gradient_change, q) * pair.inverse_product;
    q.add_(pair.step, factors[i] - beta);
  }
  memory.direction = q;
}

LBFGS::Evaluation LBFGS::search_line(const Closure& closure, const Evaluation& start,
                                     double slope) {
  const Tensor& direction = memory_.direction;
  std::vector<Tensor> origin;
  for (const Tensor& parameter : parameters()) origin.push_back(clone(parameter.detach()));
  const auto at = [&](double t) {
    move(t, direction);
    const Evaluation found = evaluate(closure);
    const std::vector<Tensor> list = parameters();
    for (size_t i = 0; i < list.size(); ++i) list[i].copy_(origin[i]);
    return LinePoint{t, found.loss, found.gradient, product(found.gradient, direction)};
  };
  const WolfeResult result =
      search_strong_wolfe(at, {0, start.loss, start.gradient, slope}, memory_.t,
                          largest_element(direction), options().tolerance_change);
  memory_.t = result.point.t;
  memory_.evaluations += result.evaluations;
  move(memory_.t, direction);
  return {result.point.loss, result.point.gradient};
}

IgnorableTensor LBFGS::step(const Closure& closure) {
  const PhaseGuard phase(Phase::kOptimizer);
  const NoGradGuard no_grad;
  const LBFGSOptions& limits = options();
  const int64_t before = memory_.evaluations;
  const int64_t most_evaluations =
      limits.max_evaluations > 0 ? limits.max_evaluations : limits.max_iterations * 5 / 4;

  Tensor first_loss;
  Evaluation now = evaluate([&] { return first_loss = closure(); });
  ++memory_.evaluations;
  if (largest_element(now.gradient) <= limits.tolerance_grad) return first_loss;

  for (int64_t iteration = 1; iteration <= limits.max_iterations; ++iteration) {
    ++memory_.iterations;
    find_direction(now.gradient);
    memory_.previous_gradient = now.gradient;
    memory_.previous_loss = now.loss;
    const double rate = limits.learning_rate;
    memory_.t = memory_.iterations == 1
                    ? std::min(1.0, 1 / sum(abs(now.gradient)).item<double>()) * rate
                    : rate;
    const double slope = product(now.gradient, memory_.direction);
    if (slope > -limits.tolerance_change) break;

    if (limits.strong_wolfe) {
      now = search_line(closure, now, slope);
    } else {
      move(memory_.t, memory_.direction);
      if (iteration == limits.max_iterations) break;
      now = evaluate(closure);
      ++memory_.evaluations;
    }
    if (memory_.evaluations - before >= most_evaluations) break;
    if (largest_element(now.gradient) <= limits.tolerance_grad) break;
    if (largest_element(memory_.direction) * std::abs(memory_.t) <= limits.tolerance_change) break;
    if (std::abs(now.loss - memory_.previous_loss) < limits.tolerance_change) break;
  }
  return first_loss;
}

void LBFGS::save_extra(StateDict& state) const {
  state.numbers["iterations"] = static_cast<double>(memory_.iterations);
  state.numbers["evaluations"] = static_cast<double>(memory_.evaluations);
  if (memory_.iterations == 0) return;
  state.numbers["t"] = memory_.t;
  state.numbers["scale"] = memory_.scale;
  state.numbers["previous_loss"] = memory_.previous_loss;
  state.tensors["direction"] = memory_.direction;
  state.tensors["previous_gradient"] = memory_.previous_gradient;
  for (size_t i = 0; i < memory_.pairs.size(); ++i) {
    const std::string number = "." + std::to_string(i);
    state.tensors["step" + number] = memory_.pairs[i].step;
    state.tensors["gradient_change" + number] = memory_.pairs[i].gradient_change;
    state.numbers["inverse_product" + number] = memory_.pairs[i].inverse_product;
  }
}

std::function<void()> LBFGS::load_extra(StateReader& reader) {
  const Tensor like = flat_gradient();
  const auto read = [&](const std::string& name) {
    const Tensor tensor = reader.find_tensor(name);
    LS_CHECK(tensor.defined() && same(tensor.sizes(), like.sizes()), CheckpointError,
             "[optim.LBFGS] the state does not fit: expected \"{}\" with {} elements.", name,
             like.numel());
    return copy(like, tensor);
  };
  Memory loaded;
  loaded.iterations = static_cast<int64_t>(reader.number("iterations"));
  loaded.evaluations = static_cast<int64_t>(reader.number("evaluations"));
  if (loaded.iterations > 0) {
    loaded.t = reader.number("t");
    loaded.scale = reader.number("scale");
    loaded.previous_loss = reader.number("previous_loss");
    loaded.direction = read("direction");
    loaded.previous_gradient = read("previous_gradient");
    for (size_t i = 0;; ++i) {
      const std::string number = "." + std::to_string(i);
      const std::optional<double> inverse = reader.find_number("inverse_product" + number);
      if (!inverse) break;
      loaded.pairs.push_back({read("step" + number), read("gradient_change" + number), *inverse});
    }
  }
  return [this, loaded = std::move(loaded)] { memory_ = loaded; };
}

}  // namespace lockstep::optim
