#pragma once

// The part of Function (autograd/function.h) that does not depend on template parameters.

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

/// Passes data from the forward to the backward of one call of a Function. Not thread-safe.
class FunctionContext {
 public:
  // In forward.
  /// Saves tensors for backward in their state when forward returns; undefined ones are allowed. A
  /// later call replaces an earlier one. Second derivatives flow through saved arguments and
  /// results only; other saved tensors are constants.
  void save_for_backward(TensorList tensors);
  /// Declares arguments that forward changes in place. Each must also be returned. A leaf that
  /// requires grad cannot be among them, and a view only as the first tensor argument of a Function
  /// with one result.
  void mark_dirty(TensorList tensors);
  /// Declares results that carry no gradient; those of integer types never do.
  void mark_non_differentiable(TensorList tensors);
  /// Whether backward gets zeros (on, the default) or undefined tensors for gradients that did not
  /// arrive.
  void set_materialize_grads(bool on);

  // In backward.
  /// Returns the tensors that forward saved. Throws AutogradError when one was changed in place
  /// since, or when an earlier backward without retain_graph freed them.
  const std::vector<Tensor>& saved_tensors();
  const Tensor& saved(size_t i) { return saved_tensors().at(i); }
  /// Returns them as well, and lets go of them where this backward frees them, so that each is
  /// freed where backward drops it. Can be called once, and not after `saved_tensors`.
  std::vector<Tensor> take_saved_tensors();
  /// Where the gradient of the i-th tensor argument should be written, if backward can write there
  /// (`mm_out`); undefined: allocate it. Whatever backward returns counts.
  Tensor destination(size_t i) const;
  /// Takes one function per tensor argument and evaluates those with a needed gradient.
  template <class... F>
  Gradients gradients(F&&... functions) const {
    Gradients result;
    size_t i = 0;
    (result.push_back(needs_input_grad(i++) ? functions() : Tensor()), ...);
    return result;
  }

  // In both.
  /// Whether the gradient of the i-th tensor argument (each tensor of a list counts) is needed.
  bool needs_input_grad(size_t i) const;
  /// Attaches a value of a copyable type, which lives as long as the graph. Use save_for_backward
  /// for tensors: a tensor in here is not checked for in-place changes, and a result of this call
  /// would form a reference cycle and never be freed.
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

  /// Used by FunctionCall and FunctionNode; `owner` becomes the history of saved results.
  FunctionContext(FunctionNode& node, Node* owner, const BackwardCall& call = {})
      : node_(node), owner_(owner), call_(call) {}

 private:
  std::any& any_data();
  [[noreturn]] void throw_no_data() const;

  FunctionNode& node_;
  Node* owner_;
  BackwardCall call_;
  std::optional<std::vector<Tensor>> unpacked_;
};

/// Describes the batch to the vmap method of a Function.
struct FunctionBatch {
  int64_t size = 0;  ///< number of samples
  Randomness randomness = Randomness::kError;
  std::vector<bool> batched;  ///< for each tensor argument, whether it has the batch in front

  bool is_batched(size_t i) const { return batched.at(i); }
};

namespace detail {

using FunctionInputs = SmallVector<Tensor, 4>;
using FunctionResults = SmallVector<Tensor*, 4>;

/// Compile-time properties of a Function.
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
  /// Sets the history of the results, and replaces those that are arguments by views.
  void finish(const FunctionResults& results);

 private:
  bool is_input(const Tensor& tensor) const;
  void check_marks(const FunctionResults& results) const;
  void count_change(const Tensor& dirty) const;
  void give(Tensor& result, bool again) const;
  void save(const FunctionResults& results) const;

  FunctionInputs inputs_;
  SmallVector<uint32_t, 4> versions_;  ///< versions of the inputs before forward
  bool recording_;
  Ref<FunctionNode> node_;
  FunctionContext context_;
};

/// Returns the depth of the innermost vmap at which an argument is batched. Throws AutogradError
/// when that vmap has ended.
std::optional<size_t> batched_depth(const FunctionInfo& info, const FunctionInputs& inputs);
FunctionBatch batch_of(const FunctionInputs& inputs, size_t depth);
/// Returns the whole batch if the tensor is batched at `depth`, else the tensor. Must be called
/// with only the vmaps outside `depth` running.
Tensor with_batch_in_front(const Tensor& tensor, size_t depth);
/// Converts the results of a vmap method, which have the batch in front, to batched tensors.
void give_samples(const FunctionInfo& info, const FunctionResults& results, size_t depth);
[[noreturn]] void throw_no_vmap(const FunctionInfo& info);

/// Throws AutogradError unless `got` equals `expected`, the number of gradients that backward
/// takes.
void check_gradient_count(const std::type_info& type, size_t expected, size_t got);

}  // namespace detail

}  // namespace lockstep
