#pragma once

// What stands behind Function (autograd/function.h) and does not depend on types.

#include <any>
#include <cstdint>
#include <optional>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>

#include "autograd/batched_tensor.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"

namespace lockstep {

class FunctionNode;

/// What passes between the forward and the backward of one call of a Function. Not thread-safe.
class FunctionContext {
 public:
  // In forward.
  /// Keeps tensors for backward, as they are when forward returns; undefined ones are allowed. A
  /// later call replaces an earlier one. Second derivatives see arguments and results only; what
  /// else is saved is a constant to them.
  void save_for_backward(TensorList tensors);
  /// Declares arguments that forward changes in place. Each must also be returned. A leaf that
  /// requires grad cannot be among them, and a view only as the first tensor argument of a Function
  /// with one result.
  void mark_dirty(TensorList tensors);
  /// Declares results that carry no gradient; those of integer types never do.
  void mark_non_differentiable(TensorList tensors);
  /// Off: gradients that did not arrive come to backward undefined. On (the default): as zeros.
  void set_materialize_grads(bool on);

  // In backward.
  /// What forward saved. Throws AutogradError when one was changed in place since, or when an
  /// earlier backward without retain_graph let them go.
  const std::vector<Tensor>& saved_tensors();
  const Tensor& saved(size_t i) { return saved_tensors().at(i); }
  /// Evaluates one function per tensor argument, those whose gradient is wanted only.
  template <class... F>
  Gradients gradients(F&&... functions) const {
    Gradients result;
    size_t i = 0;
    (result.push_back(needs_input_grad(i++) ? functions() : Tensor()), ...);
    return result;
  }

  // In both.
  /// Whether the gradient of the i-th tensor argument (each of a list counts) is wanted.
  bool needs_input_grad(size_t i) const;
  /// Attaches a value of a copyable type, which lives as long as the graph. Tensors are better
  /// saved: in here they are not checked, and a result would never be freed.
  template <class T>
  void set_data(T value) {
    any_data() = std::move(value);
  }
  /// The attached value. Throws AutogradError when there is none of this type.
  template <class T>
  T& data() {
    T* found = std::any_cast<T>(&any_data());
    if (found == nullptr) throw_no_data();
    return *found;
  }

  /// For the call and for its node; `owner` is the node whose results the saved ones are.
  FunctionContext(FunctionNode& node, Node* owner, uint64_t needs)
      : node_(node), owner_(owner), needs_(needs) {}

 private:
  std::any& any_data();
  [[noreturn]] void throw_no_data() const;

  FunctionNode& node_;
  Node* owner_;
  uint64_t needs_;
  std::optional<std::vector<Tensor>> unpacked_;
};

/// What the vmap method of a Function is told of the batch.
struct FunctionBatch {
  int64_t size = 0;  ///< number of samples
  Randomness randomness = Randomness::kError;
  std::vector<bool> batched;  ///< for each tensor argument: it has the batch in front

  bool is_batched(size_t i) const { return batched.at(i); }
};

namespace detail {

using FunctionInputs = SmallVector<Tensor, 4>;
using FunctionResults = SmallVector<Tensor*, 4>;

/// What is known of a Function when it is compiled.
struct FunctionInfo {
  const std::type_info& type;
  Gradients (*backward)(FunctionContext&, TensorList grads);
  bool once_differentiable;
};

/// One call of a Function.
class FunctionCall {
 public:
  FunctionCall(const FunctionInfo& info, FunctionInputs inputs);
  ~FunctionCall();
  FunctionCall(const FunctionCall&) = delete;
  FunctionCall& operator=(const FunctionCall&) = delete;

  template <class Forward>
  auto run(Forward forward) {
    const NoGradGuard no_grad;
    return forward(context_);
  }
  /// Gives the results their history, and replaces those that are arguments by views.
  void finish(const FunctionResults& results);

 private:
  bool is_input(const Tensor& tensor) const;
  void check_marks(const FunctionResults& results) const;
  void count_change(const Tensor& dirty) const;
  void give(Tensor& result, bool again) const;
  void save(const FunctionResults& results) const;

  FunctionInputs inputs_;
  SmallVector<uint32_t, 4> versions_;  ///< of the inputs, before forward
  bool recording_;
  Ref<FunctionNode> node_;
  FunctionContext context_;
};

/// The innermost vmap for which an argument is one sample of many. Throws AutogradError when it
/// does not run any more.
std::optional<size_t> batched_depth(const FunctionInfo& info, const FunctionInputs& inputs);
FunctionBatch batch_of(const FunctionInputs& inputs, size_t depth);
/// The whole batch where the tensor is one of many at `depth`, else the tensor; to be called with
/// only the vmaps outside of that one running.
Tensor with_batch_in_front(const Tensor& tensor, size_t depth);
/// Makes what a vmap method returned, with the batch in front, results for one sample.
void give_samples(const FunctionInfo& info, const FunctionResults& results, size_t depth);
[[noreturn]] void throw_no_vmap(const FunctionInfo& info);

/// Throws AutogradError unless a backward that takes `expected` gradients gets as many.
void check_gradient_count(const std::type_info& type, size_t expected, size_t got);

}  // namespace detail

}  // namespace lockstep
