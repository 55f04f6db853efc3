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

constexpr int64_t kGruGates = 3;

State gru_step(const Tensor& from_input, const State& state, const Weights& weights) {
  const std::vector<Tensor> x = chunk(from_input, kGruGates, 1);
  const std::vector<Tensor> h = chunk(linear(state.h, weights.w_hh, weights.b_hh), kGruGates, 1);
  const Tensor reset = sigmoid(x[0] + h[0]), update = sigmoid(x[1] + h[1]);
  const Tensor candidate = tanh(x[2] + reset * h[2]);
  return {(state.h - candidate) * update + candidate, {}};
}

}  // namespace

LS_OP(gru,
      TwoTensors(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool),
      "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
      "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)")
    .doc("Layers of gated recurrent units over sequences.")
    .composite([](const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                  int64_t num_layers, double dropout, bool train, bool bidirectional,
                  bool batch_first) {
      const recurrent::Result result = recurrent::run(
          {"gru", kGruGates, has_biases, num_layers, dropout, train, bidirectional, batch_first},
          gru_step, input, hx, {}, params, false);
      return TwoTensors(result.output, result.h);
    });
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params,
                               bool has_biases, int64_t num_layers, double dropout, bool train,
                               bool bidirectional, bool batch_first) {
  return op_gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                batch_first);
}

LS_OP(gru_cell,
      Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, OptionalTensor,
             OptionalTensor),
      "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
      "b_hh=None) -> Tensor")
    .doc("One step of gated recurrent units.")
    .composite([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                  OptionalTensor b_ih, OptionalTensor b_hh) {
      return recurrent::run_cell(
                 "gru_cell", kGruGates, gru_step, input, {hx, {}},
                 {w_ih, w_hh, b_ih.value_or_undefined(), b_hh.value_or_undefined(), {}})
          .h;
    });
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                OptionalTensor b_ih, OptionalTensor b_hh) {
  return op_gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh);
}

}  // namespace lockstep
