#pragma once

#include <optional>
#include <vector>

#include "tests/ops/operator_call.h"

namespace lockstep {

/// An operator that writes the results of another one: into its first argument (`add_.Tensor`) or
/// into trailing `out` arguments (`add.out`). Created by `.in_place()` and `.out()`, or declared
/// separately and recognized by its schema.
struct WritingForm {
  const Operator* op;
  bool in_place;
  /// For each argument of the form, the index of the functional operator's argument, -1 for an
  /// output.
  std::vector<int> places;

  /// Arguments of the form for a call of the functional operator; outputs are still to be set.
  /// Nothing when the call uses an argument that the form lacks.
  std::optional<Arguments> arguments(const Operator& functional, const Arguments& given) const;
  /// Indices of its outputs, in the order of the results.
  std::vector<size_t> outputs() const;
};

/// The forms of a functional operator.
const std::vector<WritingForm>& writing_forms(const Operator& functional);
/// Whether `op` is a form of some functional operator, and so tested with the samples of that
/// operator.
bool is_writing_form(const Operator& op);

}  // namespace lockstep
