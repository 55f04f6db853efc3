#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::recurrent {

// What recurrent operators have in common: they differ in the gates of one step.

/// The parameters of one direction of a layer; biases and the projection may be undefined.
struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

/// The state of one direction: the output h, and for lstm the memory c.
struct State {
  Tensor h, c;
};

/// One step: the next state, given the input's share of the gates, x w_ih^T + b_ih.
using Step = State (*)(const Tensor& from_input, const State& state, const Weights& weights);

/// How an operator was called.
struct Call {
  std::string_view op;
  int64_t gates;  ///< rows of w_ih and w_hh for each hidden unit
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train;
  bool bidirectional;
  bool batch_first;
};

struct Result {
  Tensor output, h, c;
};

/// Checks the arguments and runs all layers. `c` and `projected` are lstm's.
Result run(const Call& call, Step step, const Tensor& input, const Tensor& h, const Tensor& c,
           TensorList params, bool projected);

/// Checks the arguments of one step, and runs it.
State run_cell(std::string_view op, int64_t gates, Step step, const Tensor& input,
               const State& state, const Weights& weights);

}  // namespace lockstep::recurrent
