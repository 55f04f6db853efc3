#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/current_scope.h"
#include "core/tensor/tensor.h"
#include "nn/block_runner.h"
#include "nn/forward_hooks.h"
#include "nn/initial_values.h"
#include "nn/state_dict.h"

namespace lockstep::nn {

class StatisticsLog;

/// A parameter, or a buffer, as files store it.
struct StoredParameter {
  std::string name;
  Tensor tensor;
  bool transposed = false;  ///< the file holds the transpose (GPT-2's projections are [in, out])
};

/// A part of a model that holds parameters, and buffers: tensors that belong to the model and are
/// saved with it but are not trained, such as running statistics. Modules own both and point to
/// their children, which are members of the derived class. A module cannot be copied. It can be
/// moved, with its children, until something else refers to it or to its children: an optimizer or
/// a tensor of its own may, a StatisticsLog, a sharded model or a captured `this` may not. What it
/// was moved from can only be destroyed. Not thread-safe.
class Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// Takes the place of `other` in the modules that have registered it.
  Module(Module&& other) noexcept;

  /// Every parameter once, in the order of registration; a shared one under its first name.
  std::vector<NamedParameter> named_parameters() const;
  std::vector<Tensor> parameters() const;
  /// Dotted path from the root module: "h.3.attn.c_proj"; "" for the root. Memory that `forward`
  /// allocates is attributed to it (core/base/current_scope.h).
  const std::string& path() const { return path_; }
  /// Device of the first parameter; default_device() without parameters.
  Device device() const;
  /// Elements in all parameters.
  int64_t parameter_count() const;
  /// Elements in those that require grad.
  int64_t trained_parameter_count() const;
  /// Every buffer once, in the order of registration; a shared one under its first name. None
  /// requires grad.
  std::vector<NamedParameter> named_buffers() const;
  /// The tensors of a weight file, each once, under the names that other programs use: parameters,
  /// then buffers.
  virtual std::vector<StoredParameter> stored_parameters() const;

  /// Writes to `into`, of the shape of `parameter`, the values that a parameter of this module or
  /// of one below would have got when it was made (nn/initial_values.h). The generator's state
  /// stays. Throws Error for a parameter whose values were not deferred.
  void fill_parameter(const Tensor& parameter, const Tensor& into) const;
  /// From now on it writes those of `fill`, if the parameter's values were deferred. Returns
  /// whether they were.
  bool fill_later(const Tensor& parameter, const FillValues& fill);

  /// Removes the gradients of all parameters; with `set_to_none` false fills existing gradients
  /// with zeros instead.
  void zero_grad(bool set_to_none = true) const;

  /// Sets training mode (on by default), in which dropout is active and batch norm uses the
  /// statistics of the batch.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  /// Calls `visit` with this module and all below, in the order of registration.
  void for_each(const std::function<void(Module&)>& visit);
  void for_each(const std::function<void(const Module&)>& visit) const;
  /// Calls `visit` with all modules below and then with this one, as PyTorch's apply: to initialise
  /// parts that `visit` recognises by dynamic_cast. Returns this module.
  Module& apply(const std::function<void(Module&)>& visit);

  /// Moves parameters and buffers to a device, or gives the floating ones another dtype. They stay
  /// the same tensors, so that other references to them follow, and gradients move along; the
  /// states of optimizers do not. Throws AutogradError, before anything has moved, for parameters
  /// that a reducer or hooks refer to.
  void to(const TensorOptions& options);
  void to(Device device) { to(TensorOptions(device)); }
  void to(DType dtype) { to(TensorOptions(dtype)); }

  /// Parameters stop requiring grad, or require it again; optimizers skip those without a gradient.
  void freeze() { set_requires_grad(false); }
  void unfreeze() { set_requires_grad(true); }
  void set_requires_grad(bool requires_grad);

  /// Parameters and buffers under their paths, in PyTorch's order: of a module, then of its
  /// children. The tensors share the module's memory and do not require grad; a shared one is
  /// listed under each of its names.
  StateDict state_dict() const;
  /// Copies the tensors of `state` into the parameters and buffers of their names, cast to their
  /// dtype and device. With `strict` throws CheckpointError, listing them, if there are missing,
  /// unexpected or misshapen tensors, and nothing is copied then; otherwise copies those that fit
  /// and returns the rest. Optimizers' states stay.
  StateMismatch load_state_dict(const StateDict& state, bool strict = true);

  // Forward hooks run on the thread that calls forward, in the order they were added, also when an
  // activation checkpoint recomputes the pass (autograd/checkpoint.h: is_recomputing()). An
  // exception of a hook reaches the caller of forward; so does AutogradError if a hook replaces a
  // tensor by an undefined one. Hooks of a language model run around `features`.

  /// Calls `hook` before each forward pass of this module.
  ForwardHookHandle register_forward_pre_hook(ForwardPreHook hook) const;
  /// Calls `hook` after each forward pass of this module.
  ForwardHookHandle register_forward_hook(ForwardHook hook) const;

  /// Whether a forward hook was ever registered.
  bool has_forward_hooks() const { return static_cast<bool>(hooks_); }

  /// Lets `runner` run the forward passes of this module that are passes of a block (`run_block`);
  /// null turns that off. Called by BlockModel::set_runner.
  void set_runner(std::shared_ptr<BlockRunner> runner) { runner_ = std::move(runner); }
  /// What a forward pass of this module reads of its own. The hooks of this module itself, which
  /// run around the pass, do not count.
  PassState pass_state() const;

  /// Makes forward passes in training write their statistics to `log` instead of updating the
  /// running ones; null turns that off. Called by StatisticsLog (nn/statistics_log.h).
  void log_statistics(StatisticsLog* log);

 protected:
  /// Returns body(inputs...), a tensor or a struct of two: every forward pass of a module is such a
  /// call. Attributes memory to the module and calls its hooks.
  template <class Body, class... Inputs>
  auto run_forward(const Body& body, const Inputs&... inputs) const {
    const ModuleScope scope(path_);
    if (!hooks_) [[likely]]
      return body(inputs...);
    std::array<Tensor, sizeof...(Inputs)> given{inputs...};
    call_pre_hooks(given);
    auto result = std::apply(body, given);
    call_hooks(given, outputs_of(result));
    return result;
  }
  /// Returns body(inputs...), a tensor, through the runner of this module where it has one: what
  /// the forward pass of a block calls inside `run_forward`. The result must be a function of the
  /// inputs, of `pass_state()` and of the options.
  template <class Body, class... Inputs>
  Tensor run_block(const BlockOptions& options, const Body& body, const Inputs&... inputs) const {
    if (!runner_) return body(inputs...);
    const std::function<Tensor(TensorList)> of_list = [&body](TensorList given) {
      return [&]<size_t... I>(std::index_sequence<I...>) { return body(given[I]...); }
      (std::index_sequence_for<Inputs...>());
    };
    const std::array<Tensor, sizeof...(Inputs)> given{inputs...};
    return runner_->run({*this, of_list, given, options});
  }
  // A name must be new among the module's parameters, buffers and children, and not empty;
  // otherwise these throw Error.

  /// Makes `tensor` a parameter, which requires grad.
  Tensor register_parameter(std::string_view name, Tensor tensor);
  /// Makes `tensor` a buffer. Throws AutogradError if it requires grad. A buffer that forward
  /// passes change differs between ranks unless they write to `statistics_log()` instead.
  Tensor register_buffer(std::string_view name, Tensor tensor);
  /// Adds `child`, a member of this module, with its parameters and buffers under `name`.
  void register_module(std::string_view name, Module& child);
  /// The log for the statistics of a forward pass in training, or null: update the running ones.
  StatisticsLog* statistics_log() const { return statistics_log_; }

 private:
  using Tensors = std::vector<NamedParameter>;
  void call_pre_hooks(std::span<Tensor> inputs) const;
  void call_hooks(std::span<const Tensor> inputs, std::span<Tensor* const> outputs) const;
  /// The hooks, which are made when the first is added.
  ForwardHooks& hooks() const;
  const DeferredValues* find_deferred(const Tensor& parameter) const;
  struct Collection;
  /// Adds the tensors of member `own` of this module and of all modules below to `found`.
  void collect(Tensors Module::*own, const std::string& prefix, Collection& found) const;
  void add_pass_state(PassState& state) const;
  void collect_state(const std::string& prefix, StateDict& state) const;
  void check_new_name(std::string_view name) const;
  /// Prepends `prefix` to the paths of this module and of all modules below.
  void move_under(const std::string& prefix);

  struct Child {
    std::string name;
    Module* module;
  };
  Tensors own_parameters_;
  Tensors own_buffers_;
  std::vector<DeferredValues> deferred_;  ///< of parameters of this module
  std::vector<Child> children_;
  std::vector<Module*> parents_;  ///< the modules that have this one among their children
  std::string path_;
  bool training_ = true;
  StatisticsLog* statistics_log_ = nullptr;
  mutable Ref<ForwardHooks> hooks_;      ///< null if there never was one
  std::shared_ptr<BlockRunner> runner_;  ///< null: forward passes are run by being called
};

}  // namespace lockstep::nn
