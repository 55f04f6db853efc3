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
  /// `apply` with `owner` as the history of saved results.
  Gradients apply_as(Node* owner, std::span<Tensor> grads, const BackwardCall& call);
  /// The class name without namespaces, followed by "Backward".
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
  std::vector<GradientMeta> results_;  ///< one per result, including those without gradient
  std::any data_;
  bool materialize_ = true;
  bool released_ = false;

  // Only used until forward has finished.
  std::vector<Tensor> to_save_;
  std::vector<Tensor> dirty_;
  std::vector<Tensor> non_differentiable_;
};

/// "Cube" for ns::Cube. Thread-safe; the text lives as long as the process.
const std::string& function_name(const std::type_info& type);

}  // namespace lockstep
