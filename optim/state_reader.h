#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/tensor/tensor.h"
#include "optim/state_dict.h"

namespace lockstep::optim {

/// Reads a StateDict that must have been saved by an object of the same kind.
class StateReader {
 public:
  /// `kind` is how errors call who loads: "SGD". `state` must live as long as the reader.
  StateReader(std::string kind, const StateDict& state);

  /// Throws CheckpointError if there is no such number.
  double number(const std::string& name);
  /// The number, or `otherwise`.
  double number_or(const std::string& name, double otherwise);
  std::optional<double> find_number(const std::string& name);
  /// The tensor, or an undefined one.
  Tensor find_tensor(const std::string& name);
  /// Throws CheckpointError if there is an entry that nothing has asked for.
  void expect_end() const;

 private:
  std::string kind_;
  const StateDict& state_;
  std::set<std::string> asked_;
};

}  // namespace lockstep::optim
