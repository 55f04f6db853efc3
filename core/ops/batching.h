#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/function_ref.h"
#include "core/dispatch/operator.h"

namespace lockstep {

// What an operator's block may give to `.batching(...)`: how a batch is computed in one call. A
// rule's tensor arguments whose bit is set have the batch dimension in front, and for a list all
// its tensors have; so must every result. Sample dimensions keep their order behind it.
//
// A rule is called with the form that the user called. An in-place form's first argument is then
// batched, and the rule may write into it or leave a result that the caller copies there.

/// One call of a rule: reads arguments, changes them, calls operators, leaves results.
class BatchedCall {
 public:
  BatchedCall(const Operator& op, uint64_t batched, Stack& stack);

  const Operator& op() const { return op_; }
  /// Number of samples.
  int64_t batch() const { return batch_; }
  size_t count() const { return values_.size(); }
  /// Whether the argument has the batch in front.
  bool is_batched(size_t i) const { return i < 64 && ((batched_ >> i) & 1) != 0; }
  /// Whether the argument is a tensor, and there.
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
  /// The same with dimensions of size 1 behind the batch, up to `rank` of one sample.
  Tensor front(size_t i, int64_t rank) const;
  /// A tensor list's tensors with the batch in front; undefined ones stay so.
  std::vector<Tensor> front_of_list(size_t i) const;

  void set(size_t i, Value value);
  void set(size_t i, Tensor tensor) { set(i, Value(std::move(tensor))); }
  void set(size_t i, const Dims& dims) { set(i, Value(IntList(dims)).own()); }
  /// Puts the batch in front of argument `i`.
  void set_front(size_t i);

  /// Calls the operator with the arguments as they are now, and takes its results.
  SmallVector<Value, 4> call();
  /// Leaves the operator's results as the rule's.
  void forward();
  /// Leaves one result; undefined means absent.
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

/// Operators that compute each element from the same element of their arguments, and factories that
/// imitate their argument.
void elementwise(const Operator& op, uint64_t batched, Stack& stack);
/// The same where the first argument's shape is the result's: the others broadcast to it.
void into_first(const Operator& op, uint64_t batched, Stack& stack);
/// Arguments that are dimensions, whatever their name ("dim", "dims", "dim0", ...), count from the
/// sample's first; all tensors have the sample's dimensions in common.
void along_dims(const Operator& op, uint64_t batched, Stack& stack);
/// The same where no dimension means all of them.
void reduction(const Operator& op, uint64_t batched, Stack& stack);
/// Operators that reduce all elements to one: sum, mean, max, ...
void reduce_all(const Operator& op, uint64_t batched, Stack& stack);
/// Image operators: tensors are [N, C, spatial...] or [C, spatial...]; N takes the batch in, and so
/// does the first number of an argument `input_size`.
void images_1d(const Operator& op, uint64_t batched, Stack& stack);
void images_2d(const Operator& op, uint64_t batched, Stack& stack);
void images_3d(const Operator& op, uint64_t batched, Stack& stack);

/// Calls the operator once per sample and stacks what it returns. What vmap does without a rule,
/// and what a rule may fall back on in a case that it does not treat; counted, see below.
void per_sample(const Operator& op, uint64_t batched, Stack& stack);
/// The same, not counted, and with `before` called before each sample.
void each_sample(const Operator& op, uint64_t batched, Stack& stack, FunctionRef<void()> before);

}  // namespace batching

/// Operators that this process ran once per sample, in alphabetical order. With
/// LOCKSTEP_WARN_VMAP=1 each also wrote a line to standard error, the first time. Thread-safe.
std::vector<std::string> operators_run_per_sample();
/// Forgets them. Thread-safe.
void forget_operators_run_per_sample();

}  // namespace lockstep
