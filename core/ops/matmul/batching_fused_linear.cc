#include "core/ops/matmul/batching_fused_linear.h"

#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep::batching {

namespace {

/// [batch, ..., n] -> [batch, rows, n].
Tensor batch_of_rows(const Tensor& front) {
  const IntList between = front.sizes().subspan(1, static_cast<size_t>(front.dim()) - 2);
  return front.reshape({front.size(0), count_elements(between), front.size(-1)});
}
/// A product [batch, rows, m] of such rows viewed as [batch, ..., m], with the sizes of `front`.
Tensor like_rows_of(const Tensor& front, const Tensor& product) {
  Dims sizes = to_dims(front.sizes());
  sizes.back() = product.size(-1);
  return product.view(sizes);
}

bool has_weights(const BatchedCall& call, size_t weight, size_t bias) {
  return call.is_batched(weight) || (call.has_tensor(bias) && call.is_batched(bias));
}

/// `input` [batch, ..., in] times the transpose of each sample's weight, plus each sample's bias.
Tensor linear_of_samples(const BatchedCall& call, const Tensor& input, size_t weight, size_t bias) {
  const Tensor rows = batch_of_rows(input);
  const Tensor turned = call.front(weight).transpose(1, 2);
  if (!call.has_tensor(bias)) return like_rows_of(input, lockstep::bmm(rows, turned));
  const Tensor row = call.front(bias).to(rows.dtype()).unsqueeze(1);
  return like_rows_of(input, lockstep::baddbmm(row, rows, turned));
}

/// Calls the operator once for all samples, with the batch in front of these arguments.
void forward_with_fronts(BatchedCall& call, std::initializer_list<size_t> arguments) {
  for (const size_t i : arguments) {
    if (call.has_tensor(i)) call.set_front(i);
  }
  call.forward();
}

}  // namespace

void linear_gelu(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!has_weights(call, 1, 2)) return forward_with_fronts(call, {0});
  const Tensor of = linear_of_samples(call, call.front(0), 1, 2);
  call.give(lockstep::gelu(of, "tanh"));
  call.give(of);
}

void linear_add(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!has_weights(call, 2, 3)) return forward_with_fronts(call, {0, 1});
  call.give(lockstep::add(call.front(0), linear_of_samples(call, call.front(1), 2, 3)));
}

void linear_of_gelu(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!has_weights(call, 2, 3)) return forward_with_fronts(call, {0, 1, 4});
  const Tensor product = linear_of_samples(call, lockstep::gelu(call.front(1), "tanh"), 2, 3);
  call.give(call.has_tensor(4) ? lockstep::add(call.front(4), product) : product);
}

void linear_of_gelu_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!call.is_batched(1)) return forward_with_fronts(call, {0, 2});
  const Tensor grad = call.front(0);
  const Tensor product = lockstep::bmm(batch_of_rows(grad), call.front(1));
  call.give(lockstep::gelu_backward(like_rows_of(grad, product), call.front(2), "tanh"));
}

void linear_parameters_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Tensor grad = call.front(0);
  call.give(lockstep::bmm(grad.transpose(1, 2), call.front(1)));
  call.give(lockstep::sum(grad, {1}));
}

void linear_of_parts(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!call.is_batched(1)) return forward_with_fronts(call, {0});
  const Tensor input = call.front(0);
  const Tensor weights = lockstep::cat(call.front_of_list(1), 1);
  call.give(like_rows_of(input, lockstep::bmm(batch_of_rows(input), weights.transpose(1, 2))));
}

void linear_of_parts_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (!call.is_batched(1)) return forward_with_fronts(call, {0});
  const Tensor grad = call.front(0);
  const Tensor weights = lockstep::cat(call.front_of_list(1), 1);
  call.give(like_rows_of(grad, lockstep::bmm(batch_of_rows(grad), weights)));
}

}  // namespace lockstep::batching
