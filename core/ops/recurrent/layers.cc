#include "core/ops/recurrent/layers.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/random/random.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep::recurrent {

namespace {

void check_parameter(std::string_view op, const char* name, const Tensor& tensor, DType dtype,
                     IntList sizes) {
  LS_CHECK(same(tensor.sizes(), sizes), ShapeError, "[{}] expected {} of shape {}, got {}.", op,
           name, to_string(sizes), tensor.shape());
  LS_CHECK(tensor.dtype() == dtype, DTypeError,
           "[{}] expected {} in the dtype of the input, {}, got {}. Cast it with to(dtype).", op,
           name, to_string(dtype), to_string(tensor));
}

/// Sizes of one direction of a layer.
struct Widths {
  int64_t features, hidden, output;
};

void check_weights(std::string_view op, int64_t gates, const Weights& weights, DType dtype,
                   const Widths& widths) {
  const int64_t rows = gates * widths.hidden;
  check_parameter(op, "w_ih", weights.w_ih, dtype, Dims{rows, widths.features});
  check_parameter(op, "w_hh", weights.w_hh, dtype, Dims{rows, widths.output});
  if (weights.b_ih.defined()) check_parameter(op, "b_ih", weights.b_ih, dtype, Dims{rows});
  if (weights.b_hh.defined()) check_parameter(op, "b_hh", weights.b_hh, dtype, Dims{rows});
  if (weights.w_hr.defined()) {
    check_parameter(op, "w_hr", weights.w_hr, dtype, Dims{widths.output, widths.hidden});
  }
}

void check_input(std::string_view op, const Tensor& input, int64_t rank) {
  LS_CHECK(input.dim() == rank, ShapeError,
           "[{}] expected an input of {} dimensions, got shape {}.", op, rank, input.shape());
  LS_CHECK(is_floating(input.dtype()), DTypeError,
           "[{}] expected an input of a floating dtype, got {}. Cast it with to(dtype).", op,
           to_string(input));
}

/// Cuts the list of parameters into those of each direction of each layer.
std::vector<Weights> weights_of(const Call& call, TensorList params, bool projected) {
  const size_t each = (call.has_biases ? 4U : 2U) + (projected ? 1U : 0U);
  const int64_t directions = call.bidirectional ? 2 : 1;
  LS_CHECK(call.num_layers >= 1 && call.num_layers <= static_cast<int64_t>(params.size()) &&
               params.size() == each * static_cast<size_t>(call.num_layers * directions),
           ShapeError,
           "[{}] expected {} parameters for each of {} directions of at least one layer, got {} "
           "tensors for {} layers.",
           call.op, each, directions, params.size(), call.num_layers);
  std::vector<Weights> all;
  for (size_t at = 0; at < params.size(); at += each) {
    Weights& weights = all.emplace_back();
    weights.w_ih = params[at];
    weights.w_hh = params[at + 1];
    if (call.has_biases) {
      weights.b_ih = params[at + 2];
      weights.b_hh = params[at + 3];
    }
    if (projected) weights.w_hr = params[at + each - 1];
  }
  return all;
}

/// Outputs of one direction in the order of the input, and the state after its last step.
struct Direction {
  Tensor output;
  State last;
};

Direction run_direction(Step step, const Tensor& input, const State& first, const Weights& weights,
                        bool reverse) {
  const int64_t steps = input.size(0);
  // The input's share of all steps in one product.
  const Tensor from_input = linear(input, weights.w_ih, weights.b_ih);
  std::vector<Tensor> outputs(static_cast<size_t>(steps));
  State state = first;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t at = reverse ? steps - 1 - i : i;
    state = step(from_input.select(0, at), state, weights);
    outputs[static_cast<size_t>(at)] = state.h;
  }
  return {stack(outputs, 0), state};
}

}  // namespace

Result run(const Call& call, Step step, const Tensor& input, const Tensor& h, const Tensor& c,
           TensorList params, bool projected) {
  check_input(call.op, input, 3);
  LS_CHECK(call.dropout >= 0 && call.dropout <= 1, Error,
           "[{}] dropout must be a probability in [0, 1], got {}.", call.op, call.dropout);
  const std::vector<Weights> weights = weights_of(call, params, projected);
  const int64_t directions = call.bidirectional ? 2 : 1;
  Tensor below = call.batch_first ? input.transpose(0, 1) : input;
  const int64_t batch = below.size(1), count = static_cast<int64_t>(weights.size());
  LS_CHECK(below.size(0) >= 1, ShapeError, "[{}] expected at least one step, got shape {}.",
           call.op, input.shape());
  LS_CHECK(h.dim() == 3, ShapeError, "[{}] expected a state [{}, {}, hidden], got shape {}.",
           call.op, count, batch, h.shape());
  const int64_t output = h.size(2), hidden = c.defined() && c.dim() == 3 ? c.size(2) : output;
  check_parameter(call.op, "the state h", h, input.dtype(), Dims{count, batch, output});
  if (c.defined()) {
    check_parameter(call.op, "the state c", c, input.dtype(), Dims{count, batch, hidden});
  }

  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < call.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    const Widths widths{below.size(2), hidden, output};
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t at = layer * directions + direction;
      const Weights& own = weights[static_cast<size_t>(at)];
      check_weights(call.op, call.gates, own, input.dtype(), widths);
      const State first{h.select(0, at), c.defined() ? c.select(0, at) : Tensor()};
      const Direction result = run_direction(step, below, first, own, direction == 1);
      outputs.push_back(result.output);
      last_h.push_back(result.last.h);
      if (c.defined()) last_c.push_back(result.last.c);
    }
    below = directions == 2 ? cat(outputs, 2) : outputs[0];
    const bool drops = call.train && call.dropout > 0 && layer + 1 < call.num_layers;
    if (drops) below = dropout(below, call.dropout, true);
  }
  return {call.batch_first ? below.transpose(0, 1) : below, stack(last_h, 0),
          c.defined() ? stack(last_c, 0) : Tensor()};
}

State run_cell(std::string_view op, int64_t gates, Step step, const Tensor& input,
               const State& state, const Weights& weights) {
  check_input(op, input, 2);
  LS_CHECK(state.h.dim() == 2, ShapeError, "[{}] expected a state [batch, hidden], got shape {}.",
           op, state.h.shape());
  const int64_t hidden = state.h.size(1);
  const Dims sizes{input.size(0), hidden};
  check_parameter(op, "the state h", state.h, input.dtype(), sizes);
  if (state.c.defined()) check_parameter(op, "the state c", state.c, input.dtype(), sizes);
  check_weights(op, gates, weights, input.dtype(), {input.size(1), hidden, hidden});
  return step(linear(input, weights.w_ih, weights.b_ih), state, weights);
}

}  // namespace lockstep::recurrent
