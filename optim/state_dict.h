#pragma once

#include <map>
#include <string>

#include "core/tensor/tensor.h"
#include "nn/state_dict.h"

namespace lockstep::optim {

/// What an optimizer or a scheduler keeps between steps, as named tensors and numbers. Doubles hold
/// all of these numbers exactly, so that one which is loaded goes on with the same bits.
struct StateDict {
  std::map<std::string, Tensor> tensors = {};
  std::map<std::string, double> numbers = {};

  /// Adds all entries of `other`, with `prefix` before their names.
  void add(const std::string& prefix, const StateDict& other);
  /// The entries whose names begin with `prefix`, without it.
  StateDict part(const std::string& prefix) const;

  /// All of it as tensors, for files (train/weights/state_file.h): a number is f64 and 0-d, and its
  /// name begins with "number.".
  nn::StateDict as_tensors() const;
  /// The opposite of as_tensors.
  static StateDict from_tensors(const nn::StateDict& list);
};

}  // namespace lockstep::optim
