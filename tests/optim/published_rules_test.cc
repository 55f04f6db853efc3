// Lion and Adafactor take the steps of their papers, written plainly in f64.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "optim/adafactor.h"
#include "optim/lion.h"
#include "tests/core/expect_error.h"

namespace lockstep::optim {
namespace {

constexpr int kSteps = 50;

/// A matrix and a vector, with gradients that differ in every step.
struct Problem {
  explicit Problem(DType dtype) {
    Generator generator(7);
    for (const Dims& sizes : {Dims{4, 6}, Dims{5}}) {
      parameters.push_back(randn(sizes, dtype, &generator).set_requires_grad());
      gradients.push_back(randn(sizes, dtype, &generator));
    }
  }

  template <class T>
  void take(Optimizer& optimizer) {
    for (int step = 1; step <= kSteps; ++step) {
      for (size_t i = 0; i < parameters.size(); ++i) {
        const Tensor gradient = empty(gradients[i].sizes(), gradients[i].dtype());
        for (int64_t e = 0; e < gradient.numel(); ++e) {
          gradient.data<T>()[e] = static_cast<T>(gradients[i].data<T>()[e] * factor(step, e));
        }
        parameters[i].set_grad(gradient);
      }
      optimizer.step();
    }
  }
  static double factor(int step, int64_t element) {
    return std::cos(0.4 * step + 0.7 * static_cast<double>(element));
  }

  std::vector<Tensor> parameters, gradients;
};

std::vector<double> doubles(const Tensor& tensor) {
  const Tensor wide = tensor.detach().to(DType::kF64);
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

template <class T>
void expect_lion() {
  Problem problem(sizeof(T) == 8 ? DType::kF64 : DType::kF32);
  std::vector<std::vector<double>> values, gradients;
  for (const Tensor& each : problem.parameters) values.push_back(doubles(each));
  for (const Tensor& each : problem.gradients) gradients.push_back(doubles(each));
  Lion optimizer(problem.parameters,
                 {.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.2});
  problem.take<T>(optimizer);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::vector<double> got = doubles(problem.parameters[i]);
    for (size_t e = 0; e < got.size(); ++e) {
      double p = values[i][e], m = 0;
      for (int step = 1; step <= kSteps; ++step) {
        const double g = gradients[i][e] * Problem::factor(step, static_cast<int64_t>(e));
        const double c = 0.8 * m + 0.2 * g;
        p -= 0.01 * ((c > 0 ? 1 : c < 0 ? -1 : 0) + 0.2 * p);
        m = 0.95 * m + 0.05 * g;
      }
      EXPECT_NEAR(got[e], p, sizeof(T) == 8 ? 1e-13 : 1e-5);
    }
  }
}

TEST(Lion, FollowsThePaperOver50Steps) {
  expect_lion<double>();
  expect_lion<float>();
}

/// Expects that maximizing takes the steps that minimizing takes with the gradients' opposites.
template <class T, class Options>
void expect_opposite_steps(const Options& options, DType dtype) {
  Options maximizing = options;
  maximizing.maximize = true;
  Problem up(dtype), down(dtype);
  T ascent(up.parameters, maximizing), descent(down.parameters, options);
  for (int step = 0; step < 5; ++step) {
    for (size_t i = 0; i < up.parameters.size(); ++i) {
      up.parameters[i].set_grad(up.gradients[i]);
      down.parameters[i].set_grad(down.gradients[i].neg());
    }
    ascent.step();
    descent.step();
  }
  for (size_t i = 0; i < up.parameters.size(); ++i) {
    EXPECT_EQ(doubles(up.parameters[i]), doubles(down.parameters[i])) << i;
  }
}

TEST(Lion, MaximizingTakesTheStepsOfTheOppositeGradients) {
  // f32 is updated by the fused operator, bf16 by one operator after the other.
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    expect_opposite_steps<Lion>(LionOptions{.learning_rate = 0.01, .weight_decay = 0.2}, dtype);
  }
}

TEST(Adafactor, MaximizingTakesTheStepsOfTheOppositeGradients) {
  expect_opposite_steps<Adafactor>(AdafactorOptions{.learning_rate = 0.05, .weight_decay = 0.1},
                                   DType::kF32);
}

double rms(const std::vector<double>& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

struct Rule {
  double lr = 0.05, decay = 0.1, epsilon1 = 1e-30, epsilon2 = 1e-3, clip = 1;
};

/// Algorithm 4 of the paper on a matrix of `rows` rows; of a vector, 0, algorithm 5.
std::vector<double> adafactor(std::vector<double> p, const std::vector<double>& gradient,
                              size_t rows, const Rule& rule) {
  const size_t columns = rows == 0 ? p.size() : p.size() / rows;
  std::vector<double> row(rows), column(columns), square(p.size());
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<double> g(p.size()), u(p.size());
    for (size_t e = 0; e < p.size(); ++e) {
      g[e] = gradient[e] * Problem::factor(step, static_cast<int64_t>(e));
    }
    const double fresh = std::pow(step, -0.8);
    const auto squared = [&](size_t e) { return g[e] * g[e] + rule.epsilon1; };
    if (rows == 0) {
      for (size_t e = 0; e < p.size(); ++e) {
        square[e] = (1 - fresh) * square[e] + fresh * squared(e);
        u[e] = g[e] / std::sqrt(square[e]);
      }
    } else {
      for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (size_t c = 0; c < columns; ++c) sum += squared(r * columns + c);
        row[r] = (1 - fresh) * row[r] + fresh * sum;
      }
      for (size_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (size_t r = 0; r < rows; ++r) sum += squared(r * columns + c);
        column[c] = (1 - fresh) * column[c] + fresh * sum;
      }
      double all = 0;
      for (const double each : row) all += each;
      for (size_t e = 0; e < p.size(); ++e) {
        u[e] = g[e] / std::sqrt(row[e / columns] * column[e % columns] / all);
      }
    }
    const double clipped = std::max(1.0, rms(u) / rule.clip);
    const double rate = std::max(rule.epsilon2, rms(p)) * std::min(rule.lr, 1 / std::sqrt(step));
    for (size_t e = 0; e < p.size(); ++e) {
      p[e] = p[e] * (1 - rule.lr * rule.decay) - rate * u[e] / clipped;
    }
  }
  return p;
}

template <class T>
void expect_adafactor(const Rule& rule) {
  Problem problem(sizeof(T) == 8 ? DType::kF64 : DType::kF32);
  std::vector<std::vector<double>> want;
  for (size_t i = 0; i < 2; ++i) {
    want.push_back(adafactor(doubles(problem.parameters[i]), doubles(problem.gradients[i]),
                             i == 0 ? 4 : 0, rule));
  }
  Adafactor optimizer(problem.parameters, {.learning_rate = rule.lr,
                                           .epsilon1 = rule.epsilon1,
                                           .epsilon2 = rule.epsilon2,
                                           .clip = rule.clip,
                                           .weight_decay = rule.decay});
  problem.take<T>(optimizer);
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<double> got = doubles(problem.parameters[i]);
    for (size_t e = 0; e < got.size(); ++e) {
      EXPECT_NEAR(got[e], want[i][e], sizeof(T) == 8 ? 1e-12 : 2e-5) << i << " " << e;
    }
  }
}

TEST(Adafactor, FollowsThePaperOver50Steps) {
  for (const Rule& rule : {Rule{}, Rule{.lr = 1, .decay = 0}, Rule{.clip = 0.3},
                           Rule{.epsilon1 = 0.1, .epsilon2 = 2}}) {
    expect_adafactor<double>(rule);
    expect_adafactor<float>(rule);
  }
}

TEST(Adafactor, KeepsRowsAndColumnsOfAMatrixOnly) {
  Problem problem(DType::kF32);
  Adafactor optimizer(problem.parameters);
  problem.take<float>(optimizer);
  const StateDict state = optimizer.state_dict();
  EXPECT_EQ(state.tensors.at("exp_avg_sq_row.0").numel(), 4);
  EXPECT_EQ(state.tensors.at("exp_avg_sq_col.0").numel(), 6);
  EXPECT_EQ(state.tensors.at("exp_avg_sq_row.1").numel(), 5);
  EXPECT_FALSE(state.tensors.contains("exp_avg_sq_col.1"));
}

TEST(Adafactor, RefusesOptionsOutOfTheirRanges) {
  Problem problem(DType::kF32);
  expect_error<ConfigError>([&] { Adafactor(problem.parameters, {.beta2_decay = 0.5}); },
                            "[optim.Adafactor] beta2_decay is 0.5: expected 0 or less");
  EXPECT_THROW(Adafactor(problem.parameters, {.epsilon1 = 0}), ConfigError);
  EXPECT_THROW(Lion(problem.parameters, {.beta1 = 1}), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
