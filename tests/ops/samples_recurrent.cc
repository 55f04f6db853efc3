// Samples of core/ops/recurrent and of the loss of sequences.

#include <cmath>

#include "core/ops/loss/loss.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

constexpr int64_t kFeatures = 2;
constexpr int64_t kHidden = 2;

/// Parameters of each direction of each layer.
Tensors parameters(int64_t gates, bool biases, int64_t layers, bool bidirectional) {
  Tensors all;
  const int64_t directions = bidirectional ? 2 : 1;
  int seed = 3;
  for (int64_t i = 0; i < layers * directions; ++i) {
    const int64_t features = i < directions ? kFeatures : kHidden * directions;
    all.push_back(floats({gates * kHidden, features}, ++seed));
    all.push_back(floats({gates * kHidden, kHidden}, ++seed));
    if (!biases) continue;
    all.push_back(floats({gates * kHidden}, ++seed));
    all.push_back(floats({gates * kHidden}, ++seed));
  }
  return all;
}

/// Calls with one state, or with a list of two.
template <class State>
std::vector<Sample> layer_calls(int64_t gates, State (*state)(IntList)) {
  return {call("one layer", floats({2, 2, kFeatures}), state(Dims{1, 2, kHidden}),
               parameters(gates, true, 1, false), true, 1, 0.0, false, false, false),
          call("two directions", floats({2, 1, kFeatures}), state(Dims{2, 1, kHidden}),
               parameters(gates, false, 1, true), false, 1, 0.0, false, true, false),
          call("two layers", floats({1, 2, kFeatures}), state(Dims{2, 1, kHidden}),
               parameters(gates, true, 2, false), true, 2, 0.5, false, false, true)};
}

Tensor one_state(IntList sizes) { return floats(sizes, 2); }
Tensors two_states(IntList sizes) { return {floats(sizes, 2), floats(sizes, 3)}; }

void add_ctc_samples(SampleTable& table) {
  const Tensor scores = log_softmax(floats({4, 2, 3}), 2);
  const Tensor targets = integers({2, 2}, 1, 3);
  const char* normalized = "the gradient is that of log_softmax's argument";
  OpSamples& forward = table["_ctc_loss"];
  forward.calls = {call("rows", scores, targets, Dims{4, 3}, Dims{2, 1}),
                   call("one after the other", scores, longs({1, 2, 2}), Dims{4, 4}, Dims{2, 1}),
                   call("impossible", scores, longs({1, 1}), Dims{2, 4}, Dims{2, 0}, 0, true),
                   call("no steps", scores, longs({0}), Dims{0, 2}, Dims{0, 1}, 2)};
  forward.large = {call("large", log_softmax(floats({31, 17, 5}), 2), integers({17, 9}, 1, 5),
                        Dims(17, 31), Dims(17, 9))};
  forward.no_gradcheck = normalized;
  forward.no_half_gradients = "losses of rounded probabilities differ";
  OpSamples& backward = table["_ctc_loss_backward"];
  const Tensor unused = floats({2, 4, 5});
  backward.calls = {
      call("rows", floats({2}), scores, targets, Dims{4, 3}, Dims{2, 1}, floats({2}), unused, 0)};
  backward.large = {call("large", floats({17}), log_softmax(floats({31, 17, 5}), 2),
                         integers({17, 9}, 1, 5), Dims(17, 31), Dims(17, 9), floats({17}),
                         floats({17, 31, 19}), 0)};
  table["ctc_loss.IntList"] = {
      .calls = {call("mean", scores, targets, Dims{4, 3}, Dims{2, 1}),
                call("each", scores, targets, Dims{4, 3}, Dims{2, 1}, 0, 0),
                call("no batch", log_softmax(floats({4, 3}), 1), longs({1, 2}), Dims{4}, Dims{2}),
                call("impossible", scores, longs({1, 1, 1}), Dims{2, 4}, Dims{2, 1}, 0, 2, true)},
      .no_gradcheck = normalized};
  table["ctc_loss.Tensor"] = {
      .calls = {call("sum", scores, targets, longs({4, 3}), longs({2, 1}), 0, 2)},
      .no_gradcheck = normalized};
  for (const char* op :
       {"_ctc_loss", "_ctc_loss_backward", "ctc_loss.IntList", "ctc_loss.Tensor"}) {
    for (const DType dtype : {DType::kU8, DType::kI8, DType::kI16}) {
      table[op].refuses[dtype] = "targets are int64 or int32, as in ATen";
    }
    table[op].no_half_gradients = "losses of rounded probabilities differ";
  }
}

}  // namespace

void add_recurrent_samples(SampleTable& table) {
  table["lstm.input"] = {.calls = layer_calls(4, two_states)};
  table["gru.input"] = {.calls = layer_calls(3, one_state)};
  table["rnn_tanh.input"] = {.calls = layer_calls(1, one_state)};
  table["rnn_relu.input"] = {.calls = layer_calls(1, one_state)};
  table["lstm_cell"] = {
      .calls = {call("biases", floats({2, 3}), Tensors{floats({2, 2}, 2), floats({2, 2}, 3)},
                     floats({8, 3}, 4), floats({8, 2}, 5), floats({8}, 6), floats({8}, 7))}};
  table["gru_cell"] = {.calls = {call("no biases", floats({2, 3}), floats({2, 2}, 2),
                                      floats({6, 3}, 4), floats({6, 2}, 5))}};
  for (const char* op : {"rnn_tanh_cell", "rnn_relu_cell"}) {
    table[op] = {.calls = {call("biases", floats({2, 3}), floats({2, 2}, 2), floats({2, 3}, 4),
                                floats({2, 2}, 5), floats({2}, 6), floats({2}, 7))}};
  }
  add_ctc_samples(table);
}

}  // namespace lockstep
