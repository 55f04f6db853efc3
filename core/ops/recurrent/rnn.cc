// Recurrent layers of one gate.

#include "core/dispatch/op.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/recurrent/layers.h"
#include "core/ops/recurrent/recurrent.h"

namespace lockstep {

namespace {

using recurrent::State;
using recurrent::Weights;
using TwoTensors = std::tuple<Tensor, Tensor>;

State tanh_step(const Tensor& from_input, const State& state, const Weights& weights) {
  return {tanh(from_input + linear(state.h, weights.w_hh, weights.b_hh)), {}};
}

State relu_step(const Tensor& from_input, const State& state, const Weights& weights) {
  return {relu(from_input + linear(state.h, weights.w_hh, weights.b_hh)), {}};
}

}  // namespace

LS_OP(rnn_tanh,
      TwoTensors(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool),
      "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
      "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)")
    .doc("Recurrent layers with tanh over sequences.")
    .composite([](const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                  int64_t num_layers, double dropout, bool train, bool bidirectional,
                  bool batch_first) {
      const recurrent::Result result = recurrent::run(
          {"rnn_tanh", 1, has_biases, num_layers, dropout, train, bidirectional, batch_first},
          tanh_step, input, hx, {}, params, false);
      return TwoTensors(result.output, result.h);
    });
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params,
                                    bool has_biases, int64_t num_layers, double dropout, bool train,
                                    bool bidirectional, bool batch_first) {
  return op_rnn_tanh(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                     batch_first);
}

LS_OP(rnn_relu,
      TwoTensors(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool),
      "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
      "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)")
    .doc("Recurrent layers with relu over sequences.")
    .composite([](const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                  int64_t num_layers, double dropout, bool train, bool bidirectional,
                  bool batch_first) {
      const recurrent::Result result = recurrent::run(
          {"rnn_relu", 1, has_biases, num_layers, dropout, train, bidirectional, batch_first},
          relu_step, input, hx, {}, params, false);
      return TwoTensors(result.output, result.h);
    });
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params,
                                    bool has_biases, int64_t num_layers, double dropout, bool train,
                                    bool bidirectional, bool batch_first) {
  return op_rnn_relu(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                     batch_first);
}

LS_OP(rnn_tanh_cell,
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, OptionalTensor,
             OptionalTensor),
      "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
      "b_hh=None) -> Tensor")
    .doc("One step of a recurrent layer with tanh.")
    .composite([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                  OptionalTensor b_ih, OptionalTensor b_hh) {
      return recurrent::run_cell(
                 "rnn_tanh_cell", 1, tanh_step, input, {hx, {}},
                 {w_ih, w_hh, b_ih.value_or_undefined(), b_hh.value_or_undefined(), {}})
          .h;
    });
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     OptionalTensor b_ih, OptionalTensor b_hh) {
  return op_rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
}

LS_OP(rnn_relu_cell,
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, OptionalTensor,
             OptionalTensor),
      "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
      "b_hh=None) -> Tensor")
    .doc("One step of a recurrent layer with relu.")
    .composite([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                  OptionalTensor b_ih, OptionalTensor b_hh) {
      return recurrent::run_cell(
                 "rnn_relu_cell", 1, relu_step, input, {hx, {}},
                 {w_ih, w_hh, b_ih.value_or_undefined(), b_hh.value_or_undefined(), {}})
          .h;
    });
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     OptionalTensor b_ih, OptionalTensor b_hh) {
  return op_rnn_relu_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
}

}  // namespace lockstep
