#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/function_ref.h"
#include "core/dispatch/operator.h"

namespace lockstep {

// Batching rules for vmap: an operator's block passes one to `.batching(...)` to compute a batch in
// one call. Tensor arguments with a bit set in `batched` have the batch dimension in front (in a
// list all tensors have), and so must every result. The dimensions of a sample follow in order.
//
// A rule is called with the form that the user called. An in-place form's first argument is then
// batched, and the rule may write into it or return a result that the caller copies there.

/// One call of a batching rule: gives access to the arguments, which the rule may replace, and
/// takes the results.
class BatchedCall {
 public:
  BatchedCall(const Operator& op, uint64_t batched, Stack& stack);

  const Operator& op() const { return op_; }
  /// Number of samples.
  int64_t batch() const { return batch_; }
  size_t count() const { return values_.size(); }
  /// Whether the argument has the batch dimension in front.
  bool is_batched(size_t i) const { return i < 64 && ((batched_ >> i) & 1) != 0; }
  /// Whether the argument is a tensor and not absent.
  bool has_tensor(size_t i) const;

  const Value& value(size_t i) const { return values_[i]; }
  const Tensor& tensor(size_t i) const { return values_[i].tensor(); }
  /// The tensor, or an undefined one where the argument is absent.
  Tensor tensor_or_undefined(size_t i) const { return has_tensor(i) ? tensor(i) : Tensor(); }
  template <class T>
  T get(size_t i) const {
    return FromValue<T>::get(values_[i]);
  }
  /// Dimensions of one sample of a tensor argument.
  int64_t rank(size_t i) const { return tensor(i).dim() - (is_batched(i) ? 1 : 0); }
  /// Sizes of one sample of a tensor argument.
  IntList sample_sizes(size_t i) const { return tensor(i).sizes().subspan(is_batched(i) ? 1 : 0); }

  /// The tensor with the batch in front: expanded over it when the argument is not batched.
  Tensor front(size_t i) const;
  /// `front(i)` with dimensions of size 1 inserted after the batch until a sample has `rank`.
  Tensor front(size_t i, int64_t rank) const;
  /// A tensor list's tensors with the batch in front; undefined ones stay undefined.
  std::vector<Tensor> front_of_list(size_t i) const;

  void set(size_t i, Value value);
  void set(size_t i, Tensor tensor) { set(i, Value(std::move(tensor))); }
  void set(size_t i, const Dims& dims) { set(i, Value(IntList(dims)).own()); }
  /// Puts the batch in front of argument `i`.
  void set_front(size_t i);

  /// Calls the operator with the current arguments and returns its results, owned.
  SmallVector<Value, 4> call();
  /// Calls the operator with the current arguments and returns its results from the rule.
  void forward();
  /// Adds one result of the rule; undefined means absent.
  void give(Tensor result);
  void give(std::vector<Tensor> results);

 private:
  const Operator& op_;
  uint64_t batched_;
  Stack& stack_;
  SmallVector<Value, 8> values_;
  int64_t batch_ = 0;
};

namespace batching {

/// For operators that compute each element from the same element of their arguments, and for
/// factories that take shape and dtype from an argument (`zeros_like`).
void elementwise(const Operator& op, uint64_t batched, Stack& stack);
/// For elementwise operators with a result of the first argument's shape, to which the others
/// broadcast.
void into_first(const Operator& op, uint64_t batched, Stack& stack);
/// For operators with dimension arguments ("dim", "dims", "dim0", ...), which count from the
/// sample's first dimension. All tensors must have the same number of dimensions.
void along_dims(const Operator& op, uint64_t batched, Stack& stack);
/// For reductions: as `along_dims`, and an absent or empty dimension argument means all dimensions.
void reduction(const Operator& op, uint64_t batched, Stack& stack);
/// For operators that reduce all elements to one: sum, mean, max, ...
void reduce_all(const Operator& op, uint64_t batched, Stack& stack);
/// For image operators on [N, C, spatial...] or [C, spatial...]: the batch is folded into N, and
/// into the first number of an argument `input_size`.
void images_1d(const Operator& op, uint64_t batched, Stack& stack);
void images_2d(const Operator& op, uint64_t batched, Stack& stack);
void images_3d(const Operator& op, uint64_t batched, Stack& stack);

/// Calls the operator once per sample and stacks the results. vmap uses it for operators without a
/// rule, and a rule may use it for a case it does not handle. Recorded, see
/// `operators_run_per_sample`.
void per_sample(const Operator& op, uint64_t batched, Stack& stack);
/// Calls the operator once per sample like `per_sample`, without recording it, and calls `before`
/// before each sample.
void each_sample(const Operator& op, uint64_t batched, Stack& stack, FunctionRef<void()> before);

}  // namespace batching

/// Names of the operators that this process ran once per sample, in alphabetical order. With
/// LOCKSTEP_WARN_VMAP=1 the first such call of each also writes a line to standard error.
/// Thread-safe.
std::vector<std::string> operators_run_per_sample();
/// Clears the list of operators_run_per_sample. Thread-safe.
void forget_operators_run_per_sample();

}  // namespace lockstep
