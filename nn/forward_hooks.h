#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "autograd/node_hooks.h"
#include "core/tensor/tensor.h"

namespace lockstep::nn {

class Module;

/// Called before a module's forward pass with the tensors that it is called with, which it may
/// replace.
using ForwardPreHook = std::function<void(const Module& module, std::span<Tensor> inputs)>;
/// Called after a module's forward pass with those inputs and its results, which it may replace.
using ForwardHook = std::function<void(const Module& module, std::span<const Tensor> inputs,
                                       std::span<Tensor> outputs)>;

/// The forward hooks of one module. Shared with the handles, so it may outlive the module.
struct ForwardHooks : RefCounted {
  HookList<ForwardPreHook> before;
  HookList<ForwardHook> after;
  uint64_t next_id = 0;
};

/// Handle that removes a forward hook. Destroying the handle does not: a hook lives as long as its
/// module.
class ForwardHookHandle {
 public:
  ForwardHookHandle() = default;
  ForwardHookHandle(Ref<ForwardHooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  /// Removes the hook; further calls do nothing. May be called by a hook.
  void remove();

 private:
  Ref<ForwardHooks> hooks_;
  uint64_t id_ = 0;
};

/// The tensors of what a forward pass returns: a tensor, or a struct of two.
inline std::array<Tensor*, 1> outputs_of(Tensor& result) { return {&result}; }
template <class Pair>
std::array<Tensor*, 2> outputs_of(Pair& result) {
  auto& [first, second] = result;
  return {&first, &second};
}

}  // namespace lockstep::nn
