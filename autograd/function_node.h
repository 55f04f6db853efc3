#pragma once

#include <any>
#include <string>
#include <vector>

#include "autograd/function_call.h"
#include "autograd/saved_tensor.h"

namespace lockstep {

/// The node of one call of a Function. FunctionCall builds it.
class FunctionNode final : public Node {
 public:
  explicit FunctionNode(const detail::FunctionInfo& info) : info_(info) {}

  Gradients apply(std::span<Tensor> grads, const BackwardCall& call) override {
    return apply_as(this, grads, call);
  }
  /// The same; saved results get `owner` as their history.
  Gradients apply_as(Node* owner, std::span<Tensor> grads, const BackwardCall& call);
  /// The class's name without its scopes, and "Backward".
  std::string name() const override;
  void release_saved() override;
  std::vector<SavedTensorInfo> saved_tensors() const override;

 private:
  friend class FunctionContext;
  friend class detail::FunctionCall;

  std::vector<Tensor> unpack(Node* owner) const;
  /// The gradients with zeros in place of those that did not arrive.
  std::vector<Tensor> materialized(std::span<Tensor> grads) const;

  const detail::FunctionInfo& info_;
  std::vector<SavedTensor> saved_;
  std::vector<GradientMeta> results_;  ///< of every result, those without gradient included
  std::any data_;
  bool materialize_ = true;
  bool released_ = false;

  // Until forward is over.
  std::vector<Tensor> to_save_;
  std::vector<Tensor> dirty_;
  std::vector<Tensor> non_differentiable_;
};

/// "Cube" for ns::Cube.
std::string function_name(const std::type_info& type);

}  // namespace lockstep
