#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

class StatisticsLog;

/// A parameter, or a buffer, and its dotted path from the root module.
struct NamedParameter {
  std::string name;
  Tensor tensor;
};

/// A parameter, or a buffer, as files store it.
struct StoredParameter {
  std::string name;
  Tensor tensor;
  bool transposed = false;  ///< the file holds the transpose (GPT-2's projections are [in, out])
};

/// A part of a model that holds parameters, and buffers: tensors that belong to the model and are
/// saved with it but are not trained, such as running statistics. Modules own both and refer to
/// their children, which are members of the derived class; so a module neither copies nor moves.
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
  /// Where it is in the module that it belongs to: "h.3.attn.c_proj"; "" for the outermost. What
  /// `forward` allocates is attributed to it (core/base/current_scope.h).
  const std::string& path() const { return path_; }
  /// Where the first parameter is; default_device() without any.
  Device device() const;
  /// Elements in all parameters.
  int64_t parameter_count() const;
  /// Every buffer once, in the same order and under the same rules. None requires grad.
  std::vector<NamedParameter> named_buffers() const;
  /// What a file of weights holds, each tensor once, under the names that other programs use:
  /// parameters, then buffers.
  virtual std::vector<StoredParameter> stored_parameters() const;

  /// Takes every parameter's gradient away, which frees it, or writes zeros into those there are.
  void zero_grad(bool set_to_none = true) const;

  /// Training mode (the default) turns dropout on, and batch norm to the batch's own statistics.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  /// Calls `visit` with this module and all below, in the order of registration.
  void for_each(const std::function<void(Module&)>& visit);

  /// Forward passes in training tell `log` what they find instead of moving running statistics;
  /// null ends that. StatisticsLog (nn/statistics_log.h) calls it.
  void log_statistics(StatisticsLog* log);

 protected:
  /// Makes `tensor` a parameter: it requires grad from now on.
  Tensor register_parameter(std::string_view name, Tensor tensor);
  /// Makes `tensor` a buffer. Throws AutogradError if it requires grad. One that forward passes
  /// change differs between ranks unless they heed `statistics_log()`.
  Tensor register_buffer(std::string_view name, Tensor tensor);
  /// Makes the parameters and buffers of `child`, a member of this module, its own under `name`.
  void register_module(std::string_view name, Module& child);
  /// Where to put what a forward pass in training finds; null: into the running statistics.
  StatisticsLog* statistics_log() const { return statistics_log_; }

 private:
  using Tensors = std::vector<NamedParameter>;
  /// Adds what `own` holds in this module and below.
  void collect(Tensors Module::*own, const std::string& prefix, Tensors& found) const;
  /// Puts `prefix` before its own path and those below.
  void move_under(const std::string& prefix);

  struct Child {
    std::string name;
    Module* module;
  };
  Tensors own_parameters_;
  Tensors own_buffers_;
  std::vector<Child> children_;
  std::string path_;
  bool training_ = true;
  StatisticsLog* statistics_log_ = nullptr;
};

}  // namespace lockstep::nn
