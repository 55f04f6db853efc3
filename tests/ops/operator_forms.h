#pragma once

#include <optional>
#include <vector>

#include "tests/ops/operator_call.h"

namespace lockstep {

/// An operator that writes what another one returns: into its first argument (`add_.Tensor`), or
/// into the `out` arguments behind the others (`add.out`). Some are made by `.in_place()` and
/// `.out()`, some are blocks of their own; these say the same by their schemas.
struct WritingForm {
  const Operator* op;
  bool in_place;
  /// For each of its arguments the functional operator's with the same name, -1 for an output.
  std::vector<int> places;

  /// Arguments of the form for those of the functional operator; the outputs are to be set.
  /// Nothing when the call uses an argument that the form has not.
  std::optional<Arguments> arguments(const Operator& functional, const Arguments& given) const;
  /// Where its outputs stand, in the order of the results.
  std::vector<size_t> outputs() const;
};

/// The forms of a functional operator.
const std::vector<WritingForm>& writing_forms(const Operator& functional);
/// Whether `op` is a form of some functional operator, whose samples it is then tested with.
bool is_writing_form(const Operator& op);

}  // namespace lockstep
