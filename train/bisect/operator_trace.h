#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/content_hash.h"
#include "core/base/phase.h"
#include "core/dispatch/operator.h"
#include "train/bisect/module_names.h"
#include "train/watch/operator_watch.h"

namespace lockstep::train {

/// One call of an operator in a part of a step.
struct TracedCall {
  const Operator* op = nullptr;
  Phase phase = Phase::kForward;
  std::string module;   ///< path of the module whose pass it belongs to; may be empty
  int64_t call = 0;     ///< number among the operator's calls in the part, from 1
  ContentHash written;  ///< of dtypes, sizes and bits of all that it wrote
};

/// A part with its calls in the order in which they were made.
struct TracedPart {
  StepPart part;
  std::vector<TracedCall> calls;
};

/// Hashes what every operator of a step writes. Elements are hashed in row-major order, so that
/// strides and devices do not matter.
class OperatorTrace final : public OperatorWatch {
 public:
  /// The parts since the last `take`.
  std::vector<TracedPart> take();

 private:
  void begin_part() override;
  void before(const Call& call, const Stack& stack) override;
  void after(const Call& call, const std::vector<Tensor>& written) override;

  std::vector<TracedPart> parts_;
  ModuleNames modules_;
};

/// Hash of a list of tensors, wherever they are.
ContentHash hash_of(const std::vector<Tensor>& tensors);

/// The first call in which two steps differ.
struct CallPlace {
  size_t part = 0;  ///< index in both lists
  size_t call = 0;
  bool same_operator = true;  ///< false: one calls another operator there, or none
};
/// Compares two steps call by call. Returns nothing if all is the same.
std::optional<CallPlace> first_difference(const std::vector<TracedPart>& a,
                                          const std::vector<TracedPart>& b);

}  // namespace lockstep::train
