#pragma once

#include <string>
#include <vector>

#include "compile/graph/graph.h"
#include "compile/options.h"
#include "core/dispatch/autocast_state.h"

namespace lockstep::compiler {

/// What a recorded program depends on besides the elements of its arguments.
struct Guard {
  struct Input {
    ValueType type;
    bool defined = false;
    bool requires_grad = false;
    bool is_inference = false;
    friend bool operator==(const Input&, const Input&) = default;
  };
  static constexpr size_t kNone = ~size_t{0};
  /// Which of the inputs before an input and of the parameters is the first that is the same
  /// tensor, and which the first in the same memory; parameters are numbered behind all inputs.
  struct Sharing {
    size_t tensor = kNone;
    size_t memory = kNone;
    friend bool operator==(const Sharing&, const Sharing&) = default;
  };
  std::vector<Input> inputs;  ///< and parameters
  uint64_t variant = 0;
  std::vector<Sharing> sharing;  ///< by input, without parameters
  bool records = false;          ///< grad mode is on
  bool inference_mode = false;
  AutocastState autocast;  ///< whether casts are kept does not matter, and is left out
  Device default_device;

  /// Returns that of a call on this thread.
  static Guard of(const CompiledArguments& call);
  /// Whether it is that of the call: `of(call) == *this`, at less cost.
  bool holds(const CompiledArguments& call) const;
  /// Whether it differs from that of the call in sizes and strides of inputs at most, but not in
  /// their rank.
  bool holds_but_for_sizes(const CompiledArguments& call) const;
  friend bool operator==(const Guard&, const Guard&) = default;

 private:
  bool holds(const CompiledArguments& call, bool but_for_sizes) const;
};

/// The first difference in words: "input 1 is float32[4, 3], not float32[2, 3]"; empty if there is
/// none.
std::string difference(const Guard& got, const Guard& recorded);

}  // namespace lockstep::compiler
