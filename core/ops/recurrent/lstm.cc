#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/recurrent/layers.h"
#include "core/ops/recurrent/recurrent.h"
#include "core/ops/view/shape.h"

namespace lockstep {

namespace {

using recurrent::State;
using recurrent::Weights;
using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

constexpr int64_t kLstmGates = 4;

State lstm_step(const Tensor& from_input, const State& state, const Weights& weights) {
  const std::vector<Tensor> gates =
      chunk(from_input + linear(state.h, weights.w_hh, weights.b_hh), kLstmGates, 1);
  const Tensor c = sigmoid(gates[1]) * state.c + sigmoid(gates[0]) * tanh(gates[2]);
  const Tensor h = sigmoid(gates[3]) * tanh(c);
  return {weights.w_hr.defined() ? linear(h, weights.w_hr) : h, c};
}

void check_states(std::string_view op, TensorList hx) {
  LS_CHECK(hx.size() == 2, ShapeError, "[{}] expected two states, h and c, got {}.", op, hx.size());
}

}  // namespace

LS_OP(lstm,
      ThreeTensors(const Tensor&, TensorList, TensorList, bool, int64_t, double, bool, bool, bool),
      "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
      "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, "
      "Tensor)")
    .doc("Layers of long short-term memory over sequences.")
    .composite([](const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                  int64_t num_layers, double dropout, bool train, bool bidirectional,
                  bool batch_first) {
      check_states("lstm", hx);
      const bool projected = hx[0].dim() == 3 && hx[1].dim() == 3 && hx[0].size(2) != hx[1].size(2);
      const recurrent::Result result = recurrent::run(
          {"lstm", kLstmGates, has_biases, num_layers, dropout, train, bidirectional, batch_first},
          lstm_step, input, hx[0], hx[1], params, projected);
      return ThreeTensors(result.output, result.h, result.c);
    });
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout,
                                        bool train, bool bidirectional, bool batch_first) {
  return op_lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                 batch_first);
}

LS_OP(lstm_cell,
      TwoTensors(const Tensor&, TensorList, const Tensor&, const Tensor&, OptionalTensor,
                 OptionalTensor),
      "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
      "b_hh=None) -> (Tensor, Tensor)")
    .doc("One step of long short-term memory.")
    .composite([](const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                  OptionalTensor b_ih, OptionalTensor b_hh) {
      check_states("lstm_cell", hx);
      const State next = recurrent::run_cell(
          "lstm_cell", kLstmGates, lstm_step, input, {hx[0], hx[1]},
          {w_ih, w_hh, b_ih.value_or_undefined(), b_hh.value_or_undefined(), {}});
      return TwoTensors(next.h, next.c);
    });
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, OptionalTensor b_ih, OptionalTensor b_hh) {
  return op_lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
}

}  // namespace lockstep
