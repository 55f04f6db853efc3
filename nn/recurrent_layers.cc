#include "nn/recurrent_layers.h"

#include <cmath>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/recurrent/recurrent.h"

namespace lockstep::nn {

namespace {

FillValues uniform_of_hidden(int64_t hidden) {
  return fill_uniform(hidden > 0 ? 1 / std::sqrt(static_cast<double>(hidden)) : 0);
}

}  // namespace

RecurrentLayer::RecurrentLayer(int64_t gates, int64_t features, int64_t hidden,
                               RecurrentOptions options, int64_t projected)
    : options_(options) {
  LS_CHECK(
      options.num_layers > 0 && hidden > 0 && projected >= 0 && projected < hidden, ShapeError,
      "[recurrent] expected at least one layer, a state, and a narrower projection, got {}, {} "
      "and {}.",
      options.num_layers, hidden, projected);
  const int64_t directions = options.bidirectional ? 2 : 1;
  const int64_t width = projected > 0 ? projected : hidden;
  const auto add = [&](std::string name, IntList sizes) {
    parameters_.push_back(
        register_parameter(name, initial_values(sizes, uniform_of_hidden(hidden))));
  };
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const int64_t in = layer == 0 ? features : directions * width;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = fmt::format("_l{}{}", layer, direction == 0 ? "" : "_reverse");
      add("weight_ih" + suffix, {gates * hidden, in});
      add("weight_hh" + suffix, {gates * hidden, width});
      if (options.bias) {
        add("bias_ih" + suffix, {gates * hidden});
        add("bias_hh" + suffix, {gates * hidden});
      }
      if (projected > 0) add("weight_hr" + suffix, {projected, hidden});
    }
  }
}

Tensor RecurrentLayer::with_batch(const Tensor& x) const {
  LS_CHECK(x.dim() == 2 || x.dim() == 3, ShapeError,
           "[recurrent] expected an input of two or three dimensions, got {}.", x.shape());
  return x.dim() == 3 ? x : x.unsqueeze(options_.batch_first ? 0 : 1);
}

Tensor RecurrentLayer::like_input(const Tensor& result, const Tensor& x) const {
  return x.dim() == 3 ? result : result.squeeze(options_.batch_first ? 0 : 1);
}

Tensor RecurrentLayer::state_or_zeros(const Tensor& given, const Tensor& x, int64_t width) const {
  if (given.defined()) return given.dim() == 3 ? given : given.unsqueeze(1);
  const int64_t rows = options_.num_layers * (options_.bidirectional ? 2 : 1);
  return zeros({rows, x.size(options_.batch_first ? 0 : 1), width}, x.options());
}

Tensor RecurrentLayer::state_like_input(const Tensor& state, const Tensor& x) {
  return x.dim() == 3 ? state : state.squeeze(1);
}

Tensor RecurrentLayer::packed_state(const Tensor& given, const PackedSequence& x,
                                    int64_t width) const {
  LS_CHECK(!x.batch_sizes.empty(), ShapeError,
           "[recurrent] the packed sequence is empty: expected one of pack_padded_sequence.");
  if (!given.defined()) {
    const int64_t rows = options_.num_layers * (options_.bidirectional ? 2 : 1);
    return zeros({rows, x.batch_sizes.front(), width}, x.data.options());
  }
  return x.sorted_indices.defined() ? index_select(given, 1, x.sorted_indices) : given;
}

std::vector<Tensor> RecurrentLayer::run_on_packed(const RunSteps& run, const PackedSequence& x,
                                                  const Tensor& data,
                                                  std::span<const Tensor> states) const {
  const PackedRun how{.num_layers = options_.num_layers,
                      .bidirectional = options_.bidirectional,
                      .dropout = is_training() ? options_.dropout : 0,
                      .run = run};
  std::vector<Tensor> results = run_packed(how, data, x.batch_sizes, states, parameters_);
  if (x.unsorted_indices.defined()) {
    for (size_t i = 1; i < results.size(); ++i) {
      results[i] = index_select(results[i], 1, x.unsorted_indices);
    }
  }
  return results;
}

namespace {

/// Another sequence's data in the places of `like`.
PackedSequence packed_like(const PackedSequence& like, Tensor data) {
  return {std::move(data), like.batch_sizes, like.sorted_indices, like.unsorted_indices};
}

/// One of the operators with a single state, as run_packed calls it.
template <class Op>
RunSteps steps_of(const Op& op, bool bias) {
  return [op, bias](const Tensor& steps, std::span<const Tensor> states,
                    std::span<const Tensor> parameters) -> std::vector<Tensor> {
    const auto [output, after] = op(steps, states[0], parameters, bias, 1, 0, false, false, false);
    return {output, after};
  };
}

}  // namespace

RNN::RNN(int64_t features, int64_t hidden, RecurrentOptions options, Nonlinearity nonlinearity)
    : RecurrentLayer(1, features, hidden, options), hidden_(hidden), nonlinearity_(nonlinearity) {}

RecurrentOutput RNN::forward(const Tensor& x, const Tensor& state) const {
  const Tensor sequence = with_batch(x);
  const auto run = nonlinearity_ == Nonlinearity::kTanh ? rnn_tanh : rnn_relu;
  return run_forward(
      [&](const Tensor& input, const Tensor& before) -> RecurrentOutput {
        const auto [output, after] =
            run(input, before, parameters_in_order(), options().bias, options().num_layers,
                options().dropout, is_training(), options().bidirectional, options().batch_first);
        return {like_input(output, x), state_like_input(after, x)};
      },
      sequence, state_or_zeros(state, sequence, hidden_));
}

PackedOutput RNN::forward(const PackedSequence& x, const Tensor& state) const {
  const auto op = nonlinearity_ == Nonlinearity::kTanh ? rnn_tanh : rnn_relu;
  RecurrentOutput result = run_forward(
      [&](const Tensor& data, const Tensor& before) -> RecurrentOutput {
        const std::vector<Tensor> results =
            run_on_packed(steps_of(op, options().bias), x, data, {&before, 1});
        return {results[0], results[1]};
      },
      x.data, packed_state(state, x, hidden_));
  return {packed_like(x, result.output), result.state};
}

GRU::GRU(int64_t features, int64_t hidden, RecurrentOptions options)
    : RecurrentLayer(3, features, hidden, options), hidden_(hidden) {}

RecurrentOutput GRU::forward(const Tensor& x, const Tensor& state) const {
  const Tensor sequence = with_batch(x);
  return run_forward(
      [&](const Tensor& input, const Tensor& before) -> RecurrentOutput {
        const auto [output, after] =
            gru(input, before, parameters_in_order(), options().bias, options().num_layers,
                options().dropout, is_training(), options().bidirectional, options().batch_first);
        return {like_input(output, x), state_like_input(after, x)};
      },
      sequence, state_or_zeros(state, sequence, hidden_));
}

PackedOutput GRU::forward(const PackedSequence& x, const Tensor& state) const {
  RecurrentOutput result = run_forward(
      [&](const Tensor& data, const Tensor& before) -> RecurrentOutput {
        const std::vector<Tensor> results =
            run_on_packed(steps_of(gru, options().bias), x, data, {&before, 1});
        return {results[0], results[1]};
      },
      x.data, packed_state(state, x, hidden_));
  return {packed_like(x, result.output), result.state};
}

LSTM::LSTM(int64_t features, int64_t hidden, RecurrentOptions options, int64_t projection)
    : RecurrentLayer(4, features, hidden, options, projection),
      hidden_(hidden),
      width_(projection > 0 ? projection : hidden) {}

LstmOutput LSTM::forward(const Tensor& x, const LstmState& state) const {
  const Tensor sequence = with_batch(x);
  return run_forward(
      [&](const Tensor& input, const Tensor& h_before, const Tensor& c_before) -> LstmOutput {
        const auto [output, h, c] =
            lstm(input, {h_before, c_before}, parameters_in_order(), options().bias,
                 options().num_layers, options().dropout, is_training(), options().bidirectional,
                 options().batch_first);
        return {like_input(output, x), {state_like_input(h, x), state_like_input(c, x)}};
      },
      sequence, state_or_zeros(state.h, sequence, width_),
      state_or_zeros(state.c, sequence, hidden_));
}

PackedLstmOutput LSTM::forward(const PackedSequence& x, const LstmState& state) const {
  const RunSteps run = [bias = options().bias](
                           const Tensor& steps, std::span<const Tensor> states,
                           std::span<const Tensor> parameters) -> std::vector<Tensor> {
    const auto [output, h, c] = lstm(steps, states, parameters, bias, 1, 0, false, false, false);
    return {output, h, c};
  };
  LstmOutput result = run_forward(
      [&](const Tensor& data, const Tensor& h_before, const Tensor& c_before) -> LstmOutput {
        const Tensor before[] = {h_before, c_before};
        const std::vector<Tensor> results = run_on_packed(run, x, data, before);
        return {results[0], {results[1], results[2]}};
      },
      x.data, packed_state(state.h, x, width_), packed_state(state.c, x, hidden_));
  return {packed_like(x, result.output), result.state};
}

RecurrentCell::RecurrentCell(int64_t gates, int64_t features, int64_t hidden, bool bias) {
  const auto parameter = [&](const char* name, IntList sizes) {
    return register_parameter(name, initial_values(sizes, uniform_of_hidden(hidden)));
  };
  weight_ih = parameter("weight_ih", {gates * hidden, features});
  weight_hh = parameter("weight_hh", {gates * hidden, hidden});
  if (!bias) return;
  bias_ih = parameter("bias_ih", {gates * hidden});
  bias_hh = parameter("bias_hh", {gates * hidden});
}

Tensor RecurrentCell::state_or_zeros(const Tensor& given, const Tensor& x) const {
  if (given.defined()) return given.dim() == 2 ? given : given.unsqueeze(0);
  return zeros({x.size(0), weight_hh.size(1)}, x.options());
}

namespace {

/// x [features] as a batch of one.
Tensor batch_of(const Tensor& x) {
  LS_CHECK(x.dim() == 1 || x.dim() == 2, ShapeError,
           "[recurrent] expected an input of one or two dimensions, got {}.", x.shape());
  return x.dim() == 2 ? x : x.unsqueeze(0);
}

Tensor rows_like(const Tensor& result, const Tensor& x) {
  return x.dim() == 2 ? result : result.squeeze(0);
}

}  // namespace

Tensor RNNCell::forward(const Tensor& x, const Tensor& state) const {
  const Tensor rows = batch_of(x);
  const auto step = nonlinearity_ == Nonlinearity::kTanh ? rnn_tanh_cell : rnn_relu_cell;
  return run_forward(
      [&](const Tensor& input, const Tensor& before) {
        return rows_like(step(input, before, weight_ih, weight_hh, bias_ih, bias_hh), x);
      },
      rows, state_or_zeros(state, rows));
}

Tensor GRUCell::forward(const Tensor& x, const Tensor& state) const {
  const Tensor rows = batch_of(x);
  return run_forward(
      [&](const Tensor& input, const Tensor& before) {
        return rows_like(gru_cell(input, before, weight_ih, weight_hh, bias_ih, bias_hh), x);
      },
      rows, state_or_zeros(state, rows));
}

LstmState LSTMCell::forward(const Tensor& x, const LstmState& state) const {
  const Tensor rows = batch_of(x);
  return run_forward(
      [&](const Tensor& input, const Tensor& h_before, const Tensor& c_before) -> LstmState {
        const auto [h, c] =
            lstm_cell(input, {h_before, c_before}, weight_ih, weight_hh, bias_ih, bias_hh);
        return {rows_like(h, x), rows_like(c, x)};
      },
      rows, state_or_zeros(state.h, rows), state_or_zeros(state.c, rows));
}

}  // namespace lockstep::nn
