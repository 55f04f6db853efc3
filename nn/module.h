#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace lockstep::nn {

/// A parameter and its dotted path from the root module.
struct NamedParameter {
  std::string name;
  Tensor tensor;
};

/// A part of a model that holds parameters. Modules own their parameters and refer to their
/// children, which are members of the derived class; so a module neither copies nor moves.
/// Not thread-safe.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Every parameter once, in the order of registration; a tied one under its first name.
  std::vector<NamedParameter> named_parameters() const;
  std::vector<Tensor> parameters() const;
  /// Elements in all parameters.
  int64_t parameter_count() const;

  /// Training mode (the default) turns dropout on.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

 protected:
  /// Makes `tensor` a parameter: it requires grad from now on.
  Tensor register_parameter(std::string_view name, Tensor tensor);
  /// Makes the parameters of `child`, a member of this module, its own under `name`.
  void register_module(std::string_view name, Module& child);

 private:
  void collect(const std::string& prefix, std::vector<NamedParameter>& found) const;

  struct Child {
    std::string name;
    Module* module;
  };
  std::vector<NamedParameter> own_;
  std::vector<Child> children_;
  bool training_ = true;
};

}  // namespace lockstep::nn
