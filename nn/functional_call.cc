#include "nn/functional_call.h"

#include <unordered_map>

#include "core/base/check.h"
#include "core/dispatch/mode.h"

namespace lockstep::nn {

namespace {

/// Replaces tensors in the arguments of all calls.
class Substitution final : public FunctionMode {
 public:
  void add(const Tensor& from, const Tensor& to) { replacements_.emplace(from.impl(), to); }

  void call(const Operator& op, Stack& stack) override {
    SmallVector<Value, 8> values;
    for (const Value& value : stack.arguments()) values.push_back(replaced(value));
    Stack inner(std::span<Value>(values.data(), values.size()));
    op.call_boxed(inner);
    for (const Value& result : inner.results()) stack.results().push_back(result.own());
  }

 private:
  const Tensor& replacement(const Tensor& tensor) const {
    const auto found = replacements_.find(tensor.impl());
    return found != replacements_.end() ? found->second : tensor;
  }
  Value replaced(const Value& value) const {
    if (value.is_tensor()) return Value(replacement(value.tensor()));
    if (!value.is_tensor_list()) return value;
    std::vector<Tensor> list;
    for (const Tensor& tensor : value.tensors()) list.push_back(replacement(tensor));
    return Value(std::move(list));
  }

  std::unordered_map<const TensorImpl*, Tensor> replacements_;
};

}  // namespace

Tensor functional_call(const Module& module, TensorList parameters,
                       const std::function<Tensor()>& forward) {
  const std::vector<NamedParameter> own = module.named_parameters();
  LS_CHECK(own.size() == parameters.size(), ShapeError,
           "[functional_call] expected one tensor for each of the module's {} parameters, got {}.",
           own.size(), parameters.size());
  Substitution substitution;
  for (size_t i = 0; i < own.size(); ++i) {
    LS_CHECK(same(own[i].tensor.sizes(), parameters[i].sizes()), ShapeError,
             "[functional_call] {} has the wrong shape: expected {}, got {}.", own[i].name,
             own[i].tensor.shape(), parameters[i].shape());
    substitution.add(own[i].tensor, parameters[i]);
  }
  const ModeGuard on(substitution);
  return forward();
}

}  // namespace lockstep::nn
