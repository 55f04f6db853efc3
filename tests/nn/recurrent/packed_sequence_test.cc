#include "nn/recurrent/packed_sequence.h"

#include <gtest/gtest.h>

#include "core/ops/factory/literal.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "nn/recurrent_layers.h"
#include "tests/core/expect_error.h"
#include "tests/nn/pytorch_case.h"

namespace lockstep::nn {
namespace {

/// What a layer gives for the first input with these lengths, padded again, and its states.
template <class Layer, class... State>
Tensors run_packed_case(Layer& layer, const Tensor& x, const std::vector<int64_t>& lengths,
                        bool batch_first, bool enforce_sorted, std::optional<int64_t> total_length,
                        const State&... state) {
  const auto result =
      layer.forward(pack_padded_sequence(x, lengths, batch_first, enforce_sorted), state...);
  const PaddedSequences padded = pad_packed_sequence(result.output, batch_first, 0, total_length);
  EXPECT_EQ(padded.lengths, lengths);
  if constexpr (std::is_same_v<Layer, LSTM>) {
    return {padded.sequences, result.state.h, result.state.c};
  } else {
    return {padded.sequences, result.state};
  }
}

TEST(PackedSequences, GoThroughRecurrentLayersAsInPytorch) {
  expect_like_pytorch("packed_rnn", RNN(3, 4, {.num_layers = 2}), [](RNN& m, const Tensors& in) {
    return run_packed_case(m, in[0], {5, 5, 2}, false, true, std::nullopt, in[1]);
  });
  expect_like_pytorch("packed_gru",
                      GRU(3, 4, {.num_layers = 2, .batch_first = true, .bidirectional = true}),
                      [](GRU& m, const Tensors& in) {
                        return run_packed_case(m, in[0], {2, 5, 1, 5}, true, false, 6, in[1]);
                      });
  expect_like_pytorch("packed_lstm", LSTM(3, 4, {.num_layers = 2, .bidirectional = true}),
                      [](LSTM& m, const Tensors& in) {
                        return run_packed_case(m, in[0], {1, 5, 3}, false, false, std::nullopt,
                                               LstmState{in[1], in[2]});
                      });
  expect_like_pytorch("packed_lstm_projected", LSTM(3, 4, {.bias = false, .batch_first = true}, 2),
                      [](LSTM& m, const Tensors& in) {
                        return run_packed_case(m, in[0], {4, 2}, true, true, std::nullopt);
                      });
}

TEST(PackedSequences, OfOneLengthGiveWhatTheLayerGivesForThemUnpacked) {
  manual_seed(1);
  const LSTM layer(2, 3, {.num_layers = 2, .bidirectional = true});
  const Tensor x = randn({4, 3, 2});
  const LstmOutput whole = layer.forward(x);
  const PackedLstmOutput packed = layer.forward(pack_padded_sequence(x, {4, 4, 4}));
  expect_near(pad_packed_sequence(packed.output).sequences, whole.output, 1e-6, 1e-6);
  expect_near(packed.state.h, whole.state.h, 1e-6, 1e-6);
  expect_near(packed.state.c, whole.state.c, 1e-6, 1e-6);
}

TEST(PackedSequences, HoldTheStepsOfAllSequencesStepByStep) {
  const Tensor x = tensor({{1, 2, 3}, {4, 0, 0}, {5, 6, 0}});
  const PackedSequence packed = pack_padded_sequence(x, {3, 1, 2}, true, false);
  EXPECT_EQ(packed.batch_sizes, (std::vector<int64_t>{3, 2, 1}));
  EXPECT_TRUE(equal(packed.data, tensor({1, 5, 4, 2, 6, 3})));
  EXPECT_TRUE(equal(packed.sorted_indices, tensor({0, 2, 1})));
  EXPECT_TRUE(equal(packed.unsorted_indices, tensor({0, 2, 1})));
  const PaddedSequences padded = pad_packed_sequence(packed, true);
  EXPECT_TRUE(equal(padded.sequences, x));
  EXPECT_EQ(padded.lengths, (std::vector<int64_t>{3, 1, 2}));
}

TEST(PackedSequences, ArePaddedToTheLengthAndWithTheValueAskedFor) {
  const PackedSequence packed = pack_sequence({tensor({1, 2}), tensor({3})});
  EXPECT_FALSE(packed.sorted_indices.defined());
  EXPECT_TRUE(
      equal(pad_packed_sequence(packed, true, -1, 3).sequences, tensor({{1, 2, -1}, {3, -1, -1}})));
}

TEST(PackedSequences, PaddingGetsNoGradient) {
  const Tensor x = ones({3, 2, 1}).set_requires_grad();
  GRU layer(1, 2);
  const PackedOutput result = layer.forward(pack_padded_sequence(x, {3, 1}));
  sum(result.output.data).backward();
  EXPECT_NE(x.grad().select(0, 2).select(0, 0).item<float>(), 0);
  EXPECT_EQ(x.grad().select(0, 1).select(0, 1).item<float>(), 0);
  EXPECT_EQ(x.grad().select(0, 2).select(0, 1).item<float>(), 0);
}

TEST(PadSequence, PutsThePaddingBehindShorterSequences) {
  const std::vector<Tensor> sequences = {tensor({1}), tensor({2, 3})};
  EXPECT_TRUE(equal(pad_sequence(sequences), tensor({{1, 2}, {0, 3}})));
  EXPECT_TRUE(equal(pad_sequence(sequences, true, 9), tensor({{1, 9}, {2, 3}})));
}

TEST(PackedSequences, WhatDoesNotFitIsRefused) {
  const Tensor x = ones({3, 2, 1});
  expect_error<ShapeError>([&] { pack_padded_sequence(x, {1, 3}); }, "enforce_sorted = false");
  expect_error<ShapeError>([&] { pack_padded_sequence(x, {4, 1}); }, "length 4 of sequence 0");
  expect_error<ShapeError>([&] { pack_padded_sequence(x, {3, 0}); }, "length 0 of sequence 1");
  expect_error<ShapeError>([&] { pack_padded_sequence(x, {3, 3, 3}); }, "batch_first");
  const PackedSequence packed = pack_padded_sequence(x, {3, 1});
  expect_error<ShapeError>([&] { pad_packed_sequence(packed, false, 0, 2); }, "total_length is 2");
  expect_error<ShapeError>([] { pad_packed_sequence({}); }, "empty");
  expect_error<ShapeError>([] { pad_sequence({}); }, "at least one sequence");
  const GRU layer(1, 2);
  expect_error<ShapeError>([&] { layer.forward(packed, zeros({1, 3, 2})); }, "a state is");
  PackedSequence wrong = packed;
  wrong.batch_sizes = {1, 2};
  expect_error<ShapeError>([&] { layer.forward(wrong); }, "no more than");
}

}  // namespace
}  // namespace lockstep::nn
