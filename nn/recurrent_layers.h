#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/module.h"
#include "nn/recurrent/packed_sequence.h"
#include "nn/recurrent/packed_steps.h"

namespace lockstep::nn {

// Recurrent layers (core/ops/recurrent/recurrent.h) with PyTorch's options, parameter names
// ("weight_ih_l0", "bias_hh_l1_reverse", ...) and initialisation: all uniform within
// +-1 / sqrt(hidden). x [steps, batch, features], [batch, steps, features] with batch_first, or
// [steps, features]; the output has the layout of x. States are [layers * directions, batch,
// hidden], without a batch [layers * directions, hidden]; undefined ones are zeros. Sequences of
// several lengths are packed (nn/recurrent/packed_sequence.h): the output is packed alike, and
// states, in the order before packing, are those after each sequence's own last step.

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  ///< between layers, in training
  bool bidirectional = false;
};

/// The output of all steps, and the state after the last.
struct RecurrentOutput {
  Tensor output;
  Tensor state;
};

/// The output of all steps of packed sequences, and the state after the last of each.
struct PackedOutput {
  PackedSequence output;
  Tensor state;
};

/// What recurrent layers have in common. Their parameters are read by name, from
/// named_parameters().
class RecurrentLayer : public Module {
 protected:
  /// `gates` weights per state; `projected`: width of the output, 0 for `hidden`.
  RecurrentLayer(int64_t gates, int64_t features, int64_t hidden, RecurrentOptions options,
                 int64_t projected = 0);
  RecurrentLayer(RecurrentLayer&&) noexcept = default;

  const RecurrentOptions& options() const { return options_; }
  const std::vector<Tensor>& parameters_in_order() const { return parameters_; }
  /// x with a batch, if it has none.
  Tensor with_batch(const Tensor& x) const;
  /// The result for x: without a batch, if x has none.
  Tensor like_input(const Tensor& result, const Tensor& x) const;
  /// `given`, or zeros, with a batch. `x` has one.
  Tensor state_or_zeros(const Tensor& given, const Tensor& x, int64_t width) const;
  /// `state` without a batch if `x` has none.
  static Tensor state_like_input(const Tensor& state, const Tensor& x);
  /// `given` in the packed order, or zeros.
  Tensor packed_state(const Tensor& given, const PackedSequence& x, int64_t width) const;
  /// Runs all layers on packed sequences: returns the packed data followed by the states, in the
  /// order before packing.
  std::vector<Tensor> run_on_packed(const RunSteps& run, const PackedSequence& x,
                                    const Tensor& data, std::span<const Tensor> states) const;

 private:
  RecurrentOptions options_;
  std::vector<Tensor> parameters_;
};

/// Function of a plain recurrent layer.
enum class Nonlinearity : uint8_t { kTanh, kReLU };

/// h = tanh(W_ih x + b_ih + W_hh h + b_hh).
class RNN : public RecurrentLayer {
 public:
  RNN(int64_t features, int64_t hidden, RecurrentOptions options = {},
      Nonlinearity nonlinearity = Nonlinearity::kTanh);
  RecurrentOutput forward(const Tensor& x, const Tensor& state = {}) const;
  PackedOutput forward(const PackedSequence& x, const Tensor& state = {}) const;

 private:
  int64_t hidden_;
  Nonlinearity nonlinearity_;
};

/// Gated recurrent units.
class GRU : public RecurrentLayer {
 public:
  GRU(int64_t features, int64_t hidden, RecurrentOptions options = {});
  RecurrentOutput forward(const Tensor& x, const Tensor& state = {}) const;
  PackedOutput forward(const PackedSequence& x, const Tensor& state = {}) const;

 private:
  int64_t hidden_;
};

/// Output h and memory c of an LSTM.
struct LstmState {
  Tensor h;
  Tensor c;
};

/// The output of all steps, and the state after the last.
struct LstmOutput {
  Tensor output;
  LstmState state;
};
struct PackedLstmOutput {
  PackedSequence output;
  LstmState state;
};
/// For forward hooks, which see the output, h and c.
inline std::array<Tensor*, 3> outputs_of(LstmOutput& result) {
  return {&result.output, &result.state.h, &result.state.c};
}

/// Long short-term memory. With a `projection`, h is projected to so many features.
class LSTM : public RecurrentLayer {
 public:
  LSTM(int64_t features, int64_t hidden, RecurrentOptions options = {}, int64_t projection = 0);
  LstmOutput forward(const Tensor& x, const LstmState& state = {}) const;
  PackedLstmOutput forward(const PackedSequence& x, const LstmState& state = {}) const;

 private:
  int64_t hidden_;
  int64_t width_;  ///< of h
};

/// One step of a recurrent layer on x [batch, features] or [features]; what cells have in common.
class RecurrentCell : public Module {
 public:
  Tensor weight_ih;  ///< [gates * hidden, features]
  Tensor weight_hh;  ///< [gates * hidden, hidden]
  Tensor bias_ih;    ///< [gates * hidden]; this and bias_hh are undefined without biases
  Tensor bias_hh;

 protected:
  RecurrentCell(int64_t gates, int64_t features, int64_t hidden, bool bias);
  RecurrentCell(RecurrentCell&&) noexcept = default;
  /// `given`, or zeros, [batch, hidden]. `x` has a batch.
  Tensor state_or_zeros(const Tensor& given, const Tensor& x) const;
};

class RNNCell : public RecurrentCell {
 public:
  RNNCell(int64_t features, int64_t hidden, bool bias = true,
          Nonlinearity nonlinearity = Nonlinearity::kTanh)
      : RecurrentCell(1, features, hidden, bias), nonlinearity_(nonlinearity) {}
  Tensor forward(const Tensor& x, const Tensor& state = {}) const;

 private:
  Nonlinearity nonlinearity_;
};

class GRUCell : public RecurrentCell {
 public:
  GRUCell(int64_t features, int64_t hidden, bool bias = true)
      : RecurrentCell(3, features, hidden, bias) {}
  Tensor forward(const Tensor& x, const Tensor& state = {}) const;
};

class LSTMCell : public RecurrentCell {
 public:
  LSTMCell(int64_t features, int64_t hidden, bool bias = true)
      : RecurrentCell(4, features, hidden, bias) {}
  LstmState forward(const Tensor& x, const LstmState& state = {}) const;
};

}  // namespace lockstep::nn
