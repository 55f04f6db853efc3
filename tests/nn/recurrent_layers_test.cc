#include "nn/recurrent_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/core/expect_error.h"
#include "tests/nn/names.h"
#include "tests/nn/pytorch_case.h"

namespace lockstep::nn {
namespace {

Tensors both(const RecurrentOutput& result) { return {result.output, result.state}; }
Tensors all(const LstmOutput& result) { return {result.output, result.state.h, result.state.c}; }

TEST(RecurrentLayers, AreLikePytorch) {
  const auto from_zeros = [](auto& m, const Tensors& in) { return both(m.forward(in[0])); };
  const auto from_state = [](auto& m, const Tensors& in) { return both(m.forward(in[0], in[1])); };
  expect_like_pytorch("rnn", RNN(3, 4, {.num_layers = 2}), from_state);
  expect_like_pytorch("rnn_relu", RNN(3, 4, {.bias = false}, Nonlinearity::kReLU), from_zeros);
  expect_like_pytorch(
      "gru", GRU(3, 4, {.num_layers = 2, .batch_first = true, .bidirectional = true}), from_zeros);
  expect_like_pytorch("gru_unbatched", GRU(3, 4), from_state);
  const auto lstm = [](LSTM& m, const Tensors& in) { return all(m.forward(in[0])); };
  expect_like_pytorch("lstm", LSTM(3, 4, {.num_layers = 2, .bidirectional = true}),
                      [](LSTM& m, const Tensors& in) {
                        return all(m.forward(in[0], {in[1], in[2]}));
                      });
  expect_like_pytorch("lstm_projected", LSTM(3, 4, {.batch_first = true}, 2), lstm);
  expect_like_pytorch("lstm_unbatched", LSTM(3, 4, {.batch_first = true}), lstm);
}

TEST(RecurrentCells, AreLikePytorch) {
  expect_like_pytorch("rnn_cell", RNNCell(3, 4), [](RNNCell& m, const Tensors& in) -> Tensors {
    return {m.forward(in[0], in[1])};
  });
  expect_like_pytorch("rnn_relu_cell", RNNCell(3, 4, true, Nonlinearity::kReLU));
  expect_like_pytorch(
      "gru_cell", GRUCell(3, 4, false),
      [](GRUCell& m, const Tensors& in) -> Tensors { return {m.forward(in[0], in[1])}; });
  expect_like_pytorch("lstm_cell", LSTMCell(3, 4), [](LSTMCell& m, const Tensors& in) -> Tensors {
    const LstmState next = m.forward(in[0], {in[1], in[2]});
    return {next.h, next.c};
  });
}

TEST(RecurrentLayers, StartWithinOneByTheRootOfTheirWidth) {
  manual_seed(1);
  const LSTM layer(20, 64);
  EXPECT_EQ(names(layer.named_parameters()),
            (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}));
  for (const Tensor& parameter : layer.parameters()) {
    const Numbers numbers = values(parameter);
    const double most = *std::max_element(numbers.begin(), numbers.end());
    EXPECT_LE(most, 1.0 / 8);
    EXPECT_GE(most, 0.9 / 8);
  }
}

TEST(RecurrentLayers, HooksSeeOutputAndStates) {
  LSTM layer(2, 3);
  size_t outputs = 0;
  layer.register_forward_hook([&](const Module&, std::span<const Tensor>,
                                  std::span<Tensor> results) { outputs = results.size(); });
  const LstmOutput result = layer.forward(ones({4, 1, 2}));
  EXPECT_EQ(outputs, 3u);
  EXPECT_EQ(result.state.c.shape(), "[1, 1, 3]");
}

TEST(RecurrentLayers, DropBetweenLayersInTrainingOnly) {
  manual_seed(1);
  GRU layer(2, 8, {.num_layers = 2, .dropout = 0.5});
  const Tensor x = random_tensor({4, 3, 2});
  EXPECT_NE(values(layer.forward(x).output), values(layer.forward(x).output));
  layer.eval();
  EXPECT_EQ(values(layer.forward(x).output), values(layer.forward(x).output));
}

TEST(RecurrentLayers, RefuseShapesThatAreNone) {
  expect_error<ShapeError>([] { GRU(2, 3, {.num_layers = 0}); }, "[recurrent]", "0");
  expect_error<ShapeError>([] { LSTM(2, 3, {}, 3); }, "[recurrent]", "3");
  expect_error<ShapeError>([] { GRU(2, 3).forward(ones({2})); }, "[recurrent]", "[2]");
}

}  // namespace
}  // namespace lockstep::nn
