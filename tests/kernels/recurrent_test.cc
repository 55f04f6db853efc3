#include "core/ops/recurrent/recurrent.h"

#include <vector>

#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 4, kBatch = 3, kFeatures = 2, kUnits = 5;

using Tensors = std::vector<Tensor>;

/// Parameters of one direction.
Tensors weights(int64_t gates, int64_t features, uint64_t seed) {
  return {random_tensor({gates * kUnits, features}, DType::kF64, seed),
          random_tensor({gates * kUnits, kUnits}, DType::kF64, seed + 1),
          random_tensor({gates * kUnits}, DType::kF64, seed + 2),
          random_tensor({gates * kUnits}, DType::kF64, seed + 3)};
}

Tensors joined(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Tensor input() { return random_tensor({kSteps, kBatch, kFeatures}, DType::kF64, 7); }
Tensor state(int64_t count, uint64_t seed = 8) {
  return random_tensor({count, kBatch, kUnits}, DType::kF64, seed);
}

double squashed(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Lstm, ComputesItsEquations) {
  // One feature and one hidden unit: every matrix is a number.
  const Tensor x = tensor_from({0.5, -1.0}, {2, 1, 1});
  const Tensor w = tensor_from({0.1, -0.2, 0.3, 0.4}, {4, 1});
  const Tensor u = tensor_from({0.5, 0.6, -0.7, 0.8}, {4, 1});
  const Tensor b = tensor_from({0.01, 0.02, 0.03, 0.04}, {4});
  double h = 0.25, c = -0.5;
  const Tensors start{full({1, 1, 1}, h, DType::kF64), full({1, 1, 1}, c, DType::kF64)};
  const auto [output, last_h, last_c] =
      lstm(x, start, Tensors{w, u, b, b * 2}, true, 1, 0, false, false, false);
  for (int64_t t = 0; t < 2; ++t) {
    const auto gate = [&](int64_t k) {
      return values(x)[t] * values(w)[k] + h * values(u)[k] + 3 * values(b)[k];
    };
    c = squashed(gate(1)) * c + squashed(gate(0)) * std::tanh(gate(2));
    h = squashed(gate(3)) * std::tanh(c);
    EXPECT_NEAR(values(output)[t], h, 1e-13);
  }
  EXPECT_NEAR(values(last_h)[0], h, 1e-13);
  EXPECT_NEAR(values(last_c)[0], c, 1e-13);
}

TEST(Gru, ComputesItsEquations) {
  const Tensor x = tensor_from({0.5}, {1, 1});
  const Tensor w = tensor_from({0.1, -0.2, 0.3}, {3, 1}), u = tensor_from({0.5, 0.6, -0.7}, {3, 1});
  const Tensor b = tensor_from({0.1, 0.2, 0.3}, {3});
  const double h = 0.25;
  const double reset = squashed(0.5 * 0.1 + 0.1 + h * 0.5 + 0.2);
  const double update = squashed(0.5 * -0.2 + 0.2 + h * 0.6 + 0.4);
  const double candidate = std::tanh(0.5 * 0.3 + 0.3 + reset * (h * -0.7 + 0.6));
  const Tensor next = gru_cell(x, full({1, 1}, h, DType::kF64), w, u, b, b * 2);
  EXPECT_NEAR(values(next)[0], (1 - update) * candidate + update * h, 1e-13);
}

TEST(Recurrent, LayersAreStepsOfTheirCells) {
  const Tensors w = weights(3, kFeatures, 1);
  const auto [output, last] = gru(input(), state(1), w, true, 1, 0, false, false, false);
  Tensor h = state(1).select(0, 0);
  for (int64_t t = 0; t < kSteps; ++t) {
    h = gru_cell(input().select(0, t), h, w[0], w[1], w[2], w[3]);
    expect_near(output.select(0, t), h, 1e-14, 0);
  }
  expect_near(last.select(0, 0), h, 1e-14, 0);
}

TEST(Recurrent, TheSecondDirectionReadsBackwards) {
  const Tensors forward = weights(1, kFeatures, 1), backward = weights(1, kFeatures, 11);
  const auto [output, last] =
      rnn_tanh(input(), state(2), joined(forward, backward), true, 1, 0, false, true, false);
  const auto [a, a_last] =
      rnn_tanh(input(), state(2).slice(0, 0, 1), forward, true, 1, 0, false, false, false);
  const auto [b, b_last] = rnn_tanh(flip(input(), {0}), state(2).slice(0, 1, 2), backward, true, 1,
                                    0, false, false, false);
  expect_near(output, cat({a, flip(b, {0})}, 2), 1e-14, 0);
  expect_near(last, cat({a_last, b_last}, 0), 1e-14, 0);
}

TEST(Recurrent, ASecondLayerReadsTheFirst) {
  const Tensors below = weights(1, kFeatures, 1), above = weights(1, kUnits, 11);
  const auto [output, last] =
      rnn_relu(input(), state(2), joined(below, above), true, 2, 0, false, false, false);
  const auto [a, a_last] =
      rnn_relu(input(), state(2).slice(0, 0, 1), below, true, 1, 0, false, false, false);
  const auto [b, b_last] =
      rnn_relu(a, state(2).slice(0, 1, 2), above, true, 1, 0, false, false, false);
  expect_near(output, b, 1e-14, 0);
  expect_near(last, cat({a_last, b_last}, 0), 1e-14, 0);
}

TEST(Recurrent, BatchFirstExchangesTwoDimensions) {
  const Tensors w = weights(4, kFeatures, 1), start{state(1), state(1, 9)};
  const auto [output, h, c] = lstm(input(), start, w, true, 1, 0, false, false, false);
  const auto [turned, h2, c2] =
      lstm(input().transpose(0, 1), start, w, true, 1, 0, false, false, true);
  expect_near(turned.transpose(0, 1), output, 0, 0);
  expect_near(h2, h, 0, 0);
  expect_near(c2, c, 0, 0);
}

TEST(Lstm, ProjectsItsOutputWhereTheStateIsNarrower) {
  constexpr int64_t kNarrow = 3;
  const Tensor project = random_tensor({kNarrow, kUnits}, DType::kF64, 5);
  const Tensors w{random_tensor({4 * kUnits, kFeatures}, DType::kF64, 1),
                  random_tensor({4 * kUnits, kNarrow}, DType::kF64, 2), project};
  const Tensors start{zeros({1, kBatch, kNarrow}, DType::kF64), state(1)};
  const Tensor x = input().slice(0, 0, 1);
  const auto [output, h, c] = lstm(x, start, w, false, 1, 0, false, false, false);
  // Without the projection and with a state of zeros, the first step is the same.
  const Tensors plain{w[0], zeros({4 * kUnits, kUnits}, DType::kF64)};
  const auto [whole, h2, c2] = lstm(x, Tensors{zeros({1, kBatch, kUnits}, DType::kF64), state(1)},
                                    plain, false, 1, 0, false, false, false);
  expect_near(output, matmul(whole, project.t()), 1e-14, 0);
  expect_near(c, c2, 1e-14, 0);
}

TEST(Recurrent, DropoutZeroesBetweenLayersWhileTraining) {
  const Tensors w = joined(weights(1, kFeatures, 1), weights(1, kUnits, 11));
  const auto run = [&](double p, bool train) {
    return std::get<0>(rnn_relu(input(), state(2), w, true, 2, p, train, false, false));
  };
  expect_near(run(0.5, false), run(0, true), 0, 0);
  // With everything dropped the second layer sees zeros.
  const Tensor nothing = zeros({kSteps, kBatch, kUnits}, DType::kF64);
  const Tensors above = weights(1, kUnits, 11);
  expect_near(run(1, true),
              std::get<0>(rnn_relu(nothing, state(2).slice(0, 1, 2), above, true, 1, 0, false,
                                   false, false)),
              1e-14, 0);
}

TEST(Recurrent, RefusesTensorsThatDoNotFit) {
  const Tensors w = weights(3, kFeatures, 1);
  const auto call = [&](const Tensor& x, const Tensor& h, const Tensors& params, int64_t layers) {
    gru(x, h, params, true, layers, 0, false, false, false);
  };
  expect_error<ShapeError>([&] { call(input(), state(2), w, 1); }, "[gru]", "state h");
  expect_error<ShapeError>([&] { call(input(), state(1), {w[0], w[1]}, 1); }, "4 parameters");
  expect_error<ShapeError>([&] { call(input(), state(1), w, 2); }, "2 layers");
  expect_error<ShapeError>([&] { call(input(), state(1), weights(4, kFeatures, 1), 1); }, "w_ih");
  expect_error<ShapeError>([&] { call(input().slice(0, 0, 0), state(1), w, 1); }, "one step");
  expect_error<DTypeError>([&] { call(input(), state(1).to(DType::kF32), w, 1); }, "float32");
}

}  // namespace
}  // namespace lockstep
