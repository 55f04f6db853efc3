#pragma once

#include <optional>
#include <tuple>

#include "core/tensor/tensor.h"

namespace lockstep {

// Recurrent layers on sequences: input [steps, batch, features], or [batch, steps, features] with
// `batch_first`; at least one step. A layer reads the output of the one below it, both directions
// side by side when `bidirectional`, and while training `dropout` zeroes elements between layers
// with that probability. States are [layers * directions, batch, hidden].
//
// `params` are, for each layer and in it for each direction, w_ih [gates * hidden, features], w_hh
// [gates * hidden, hidden], and with `has_biases` b_ih and b_hh [gates * hidden]. Results are the
// output of the last layer in the layout of the input and the states after the last step.
// One floating dtype; ShapeError for tensors that do not fit.

/// Long short-term memory with gates in the order i, f, g, o: c = f c + i g, h = o tanh(c). `hx` is
/// {h, c}. Returns (output, h, c). If h is narrower than c, each direction's parameters end with
/// a projection w_hr [narrow, hidden] that h goes through.
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout,
                                        bool train, bool bidirectional, bool batch_first);
/// Gated recurrent units with gates in the order r, z, n: n = tanh(x + r h'), h = (1 - z) n + z h,
/// where h' is h w_hh^T + b_hh. Returns (output, h).
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params,
                               bool has_biases, int64_t num_layers, double dropout, bool train,
                               bool bidirectional, bool batch_first);
/// h = tanh(x w_ih^T + b_ih + h w_hh^T + b_hh). Returns (output, h).
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params,
                                    bool has_biases, int64_t num_layers, double dropout, bool train,
                                    bool bidirectional, bool batch_first);
/// rnn_tanh with relu in place of tanh.
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params,
                                    bool has_biases, int64_t num_layers, double dropout, bool train,
                                    bool bidirectional, bool batch_first);

// One step of a layer on input [batch, features] and states [batch, hidden].

/// The next (h, c); `hx` is {h, c}.
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, OptionalTensor b_ih = {},
                                     OptionalTensor b_hh = {});
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                OptionalTensor b_ih = {}, OptionalTensor b_hh = {});
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     OptionalTensor b_ih = {}, OptionalTensor b_hh = {});
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     OptionalTensor b_ih = {}, OptionalTensor b_hh = {});

}  // namespace lockstep
