#include "optim/lbfgs.h"

#include <gtest/gtest.h>

#include <map>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "optim/wolfe_search.h"
#include "tests/core/expect_error.h"
#include "tests/optim/reference.h"

namespace lockstep::optim {
namespace {

using Function = std::function<Tensor(const Tensor& x)>;

Tensor rosenbrock(const Tensor& x) {
  const Tensor a = x.slice(0, 0, x.numel() - 1);
  const Tensor b = x.slice(0, 1);
  return sum(square(b - a * a) * 100 + square(1 - a));
}

Tensor bowl(const Tensor& x) {
  const Tensor weights = arange(1, x.numel() + 1, TensorOptions{DType::kF64});
  return sum(weights * square(x - 1) / 2 + square(square(x - 1)) / 10);
}

/// Parameters whose elements, put together, are what `function` takes.
struct Minimized {
  Function function;
  double sign = 1;
  std::vector<Tensor> parameters = start(DType::kF64);

  Tensor step(LBFGS& optimizer) const {
    return optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor x = cat({parameters[0].reshape({-1}), parameters[1]});
      const Tensor loss = function(x) * sign;
      loss.backward();
      return loss;
    });
  }
};

void expect_recorded(const std::string& name, const Minimized& problem, const LBFGSOptions& options,
                     double tolerance) {
  LBFGS optimizer(problem.parameters, options);
  int number = 0;
  for (const nlohmann::json& want : reference()["lbfgs"].at(name)) {
    const double loss = problem.step(optimizer).item<double>();
    const std::string place = name + ", step " + std::to_string(++number);
    expect_near({loss}, {want["loss"].get<double>()}, tolerance, place + ", loss");
    expect_near(elements(problem.parameters), want["values"].get<std::vector<double>>(), tolerance,
                place);
  }
  EXPECT_EQ(number, 12);
}

TEST(LBFGS, StepsArePyTorchs) {
  expect_recorded("fixed_steps", {bowl},
                  {.learning_rate = 0.5, .max_iterations = 5, .history_size = 3}, 1e-9);
  expect_recorded("strong_wolfe", {rosenbrock}, {.max_iterations = 5, .strong_wolfe = true}, 1e-7);
  expect_recorded(
      "short_history", {rosenbrock},
      {.max_iterations = 4, .max_evaluations = 9, .history_size = 2, .strong_wolfe = true}, 1e-7);
  expect_recorded("maximize", {bowl, -1},
                  {.max_iterations = 5, .strong_wolfe = true, .maximize = true}, 1e-9);
}

TEST(LBFGS, GoesOnFromItsStateWithTheSameBits) {
  const LBFGSOptions options{.max_iterations = 3, .history_size = 4, .strong_wolfe = true};
  const Minimized want{rosenbrock};
  LBFGS straight(want.parameters, options);
  for (int step = 0; step < 4; ++step) (void)want.step(straight);

  const Minimized got{rosenbrock};
  LBFGS resumed(got.parameters, {});
  for (size_t i = 0; i < 2; ++i) {
    const NoGradGuard no_grad;
    got.parameters[i].copy_(want.parameters[i]);
  }
  resumed.load_state_dict(straight.state_dict());
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(want.step(straight).item<double>(), got.step(resumed).item<double>()) << step;
    EXPECT_EQ(elements(got.parameters), elements(want.parameters)) << step;
  }
}

TEST(LBFGS, AGradientOfZeroChangesNothing) {
  const Minimized flat{[](const Tensor& x) { return sum(x * 0); }};
  const std::vector<double> before = elements(flat.parameters);
  LBFGS optimizer(flat.parameters);
  EXPECT_EQ(flat.step(optimizer).item<double>(), 0);
  EXPECT_EQ(elements(flat.parameters), before);
}

TEST(LBFGS, AParameterWithoutAGradientStays) {
  const Minimized half{[](const Tensor& x) { return bowl(x); }};
  LBFGS optimizer(half.parameters);
  const std::vector<double> before = elements({half.parameters[1]});
  optimizer.step([&] {
    optimizer.zero_grad();
    const Tensor loss = bowl(half.parameters[0].reshape({-1}));
    loss.backward();
    return loss;
  });
  EXPECT_EQ(elements({half.parameters[1]}), before);
  expect_near(elements({half.parameters[0]}), std::vector<double>(6, 1.0), 1e-3, "minimum");
}

TEST(LBFGS, AStepWithoutAClosureIsAnError) {
  const Minimized problem{bowl};
  LBFGS optimizer(problem.parameters);
  expect_error<Error>([&] { optimizer.step(); }, "[optim.LBFGS]", "closure");
}

TEST(LBFGS, ParametersOfDifferentDtypesAreRefused) {
  const Tensor wide = zeros({2}, {DType::kF64}).set_requires_grad();
  const Tensor narrow = zeros({2}, {DType::kF32}).set_requires_grad();
  expect_error<DTypeError>([&] { LBFGS({wide, narrow}); }, "parameter 1", "float64", "float32");
}

TEST(LBFGS, LimitsAreChecked) {
  const Tensor x = zeros({2}).set_requires_grad();
  expect_error<ConfigError>([&] { LBFGS({x}, {.learning_rate = -1}); }, "learning_rate", "-1");
  expect_error<ConfigError>([&] { LBFGS({x}, {.max_iterations = 0}); }, "max_iterations");
  expect_error<ConfigError>([&] { LBFGS({x}, {.history_size = 0}); }, "history_size");
}

/// A function of a step, and its slope.
struct Line {
  double (*value)(double t);
  double (*slope)(double t);
};

double power(double x, int n) { return std::pow(x, n); }

/// `lines` of record_reference.py.
const std::map<std::string, Line>& recorded_lines() {
  static const std::map<std::string, Line> kLines = {
      {"quartic",
       {[](double t) { return power(t - 3, 4) - 2 * t; },
        [](double t) { return 4 * power(t - 3, 3) - 2; }}},
      {"rational",
       {[](double t) { return -t / (t * t + 2); },
        [](double t) { return (t * t - 2) / power(t * t + 2, 2); }}},
      {"quintic",
       {[](double t) { return power(t + 0.004, 5) - 2 * power(t + 0.004, 4); },
        [](double t) { return 5 * power(t + 0.004, 4) - 8 * power(t + 0.004, 3); }}},
      {"waves",
       {[](double t) { return t * t / 10 - 2 * t + 0.4 * std::sin(4 * t); },
        [](double t) { return t / 5 - 2 + 1.6 * std::cos(4 * t); }}},
  };
  return kLines;
}

TEST(WolfeSearch, TriesThePointsThatPyTorchTries) {
  ASSERT_EQ(reference()["line_searches"].size(), recorded_lines().size());
  for (const auto& [name, line] : recorded_lines()) {
    const auto at = [&line = line](double t) {
      return LinePoint{t, line.value(t), {}, line.slope(t)};
    };
    for (const nlohmann::json& want : reference()["line_searches"].at(name)) {
      const double first = want["first"];
      const WolfeResult got = search_strong_wolfe(at, at(0), first, 1, 1e-9);
      const std::string place = name + " from " + std::to_string(first);
      EXPECT_EQ(got.evaluations, want["evaluations"].get<int64_t>()) << place;
      expect_near({got.point.t, got.point.loss},
                  {want["t"].get<double>(), want["loss"].get<double>()}, 1e-7, place);
    }
  }
}

TEST(WolfeSearch, FindsAPointThatSatisfiesBothConditions) {
  // f(t) = (t - 3)^4 - 2 t, from 0; its minimum is at 3 + 0.5^(1/3).
  const auto at = [](double t) {
    const double d = t - 3;
    return LinePoint{t, d * d * d * d - 2 * t, {}, 4 * d * d * d - 2};
  };
  const LinePoint first = at(0);
  for (const double t : {1e-3, 0.5, 4.0, 100.0}) {
    const WolfeResult found = search_strong_wolfe(at, first, t, 1, 1e-9);
    EXPECT_LE(found.point.loss, first.loss + 1e-4 * found.point.t * first.slope) << t;
    EXPECT_LE(std::abs(found.point.slope), 0.9 * std::abs(first.slope)) << t;
    EXPECT_GE(found.evaluations, 1) << t;
    EXPECT_LE(found.evaluations, 26) << t;
  }
}

}  // namespace
}  // namespace lockstep::optim
