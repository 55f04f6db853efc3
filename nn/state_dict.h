#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// A parameter, or a buffer, and its dotted path from the root module.
struct NamedParameter {
  std::string name;
  Tensor tensor;
};

/// Tensors by name, in order: the values of a model (Module::state_dict), or of a file
/// (train/weights/state_file.h).
class StateDict {
 public:
  /// Appends a tensor. Throws Error if the name is taken.
  void add(std::string_view name, Tensor tensor);
  /// The tensor of that name, or null.
  const Tensor* find(std::string_view name) const;
  /// The tensor of that name. Throws Error that lists the names there are.
  const Tensor& at(std::string_view name) const;

  size_t size() const { return tensors_.size(); }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }

 private:
  std::vector<NamedParameter> tensors_;
};

/// What kept the tensors of a StateDict from being exactly those of a module.
struct StateMismatch {
  std::vector<std::string> missing;     ///< tensors of the module only
  std::vector<std::string> unexpected;  ///< tensors of the dict only
  std::vector<std::string> misshapen;   ///< tensors of another shape in the dict

  bool empty() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
};

}  // namespace lockstep::nn
