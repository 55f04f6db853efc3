#pragma once

#include "autograd/node.h"
#include "autograd/saved_tensor.h"
#include "core/base/object_pool.h"
#include "core/dispatch/operator.h"

namespace lockstep {

/// The node of an operator that declares a derivative in its block: it keeps the tensors and
/// arguments that the derivative reads, and calls it. Built by the tape kernel.
class OpNode final : public Node, public Pooled<OpNode> {
 public:
  /// `op` is the functional form.
  explicit OpNode(const Operator& op) : op_(op) {}

  // Building, in the order of the schema.
  /// One tensor argument (or one tensor of a list): its edge and geometry. Undefined is allowed.
  void add_tensor(const Tensor& tensor);
  void add_tensor(Edge edge, const InputMeta& meta);
  /// Keeps argument `i` of another type.
  void keep_argument(size_t i, const Value& value);
  /// Keeps a tensor for backward. Returns its index.
  size_t save(SavedTensor tensor) {
    saved_.push_back(std::move(tensor));
    return saved_.size() - 1;
  }
  void set_saved(size_t place, SavedTensor tensor) { saved_[place] = std::move(tensor); }

  /// The functional form of the operator whose derivative this is.
  const Operator& op() const noexcept { return op_; }
  /// Whether tensor argument `first` or one behind it requires grad.
  bool has_edge_from(size_t first) const noexcept;
  size_t tensor_count() const noexcept { return inputs_.size(); }

  Gradients apply(std::span<Tensor> grads, const BackwardCall& call) override {
    return apply_as(this, grads, call);
  }
  /// `apply` with `owner` as the history of saved results.
  Gradients apply_as(Node* owner, std::span<Tensor> grads, const BackwardCall& call);
  std::string name() const override { return backward_name(op_); }
  void release_saved() override;
  std::vector<SavedTensorInfo> saved_tensors() const override;
  Tensor destination_through(const Tensor& place) const override;

 private:
  /// Gives away saved tensors during `apply`.
  class Memory;

  InputMeta& add_input(Edge edge);

  const Operator& op_;
  uint64_t needs_ = 0;  ///< bit i: the i-th tensor argument, of the first 64, requires grad
  bool released_ = false;
  SmallVector<InputMeta, 3> inputs_;
  SmallVector<SavedTensor, 3> saved_;
  SmallVector<Value, 4> arguments_;
};

}  // namespace lockstep
