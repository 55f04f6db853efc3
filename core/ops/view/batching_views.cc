#include "core/ops/view/batching_views.h"

#include "core/base/check.h"
#include "core/ops/view/view.h"

namespace lockstep::batching {

namespace {

Dims behind_batch(int64_t batch, IntList sizes) {
  Dims whole{batch};
  whole.append(sizes.begin(), sizes.end());
  return whole;
}

/// The dimension of the batched tensor that is dimension `dim` of a sample of `rank` dimensions.
int64_t shifted(const BatchedCall& call, int64_t dim, int64_t rank) {
  return wrap_dim(call.op().name(), dim, rank) + 1;
}

}  // namespace

void as_strided(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Tensor& self = call.tensor(0);
  call.set(1, behind_batch(call.batch(), call.get<IntList>(1)));
  call.set(2, behind_batch(self.strides()[0], call.get<IntList>(2)));
  call.forward();
}

void expand(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const IntList sizes = call.get<IntList>(1);
  const int64_t rank = static_cast<int64_t>(sizes.size());
  LS_CHECK(call.rank(0) <= rank, ShapeError,
           "[expand] a shape of {} dimensions cannot be expanded to {}: expected at least as many.",
           call.rank(0), to_string(sizes));
  const Dims whole = behind_batch(call.batch(), sizes);
  call.set(0, call.front(0, rank));
  call.set(1, whole);
  call.forward();
}

void permute(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  Dims order{0};
  for (const int64_t dim : call.get<IntList>(1)) {
    order.push_back(shifted(call, dim, call.rank(0)));
  }
  call.set(1, order);
  call.forward();
}

void squeeze_all(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Tensor& self = call.tensor(0);
  Dims dims;
  for (int64_t i = 1; i < self.dim(); ++i) {
    if (self.sizes()[static_cast<size_t>(i)] == 1) dims.push_back(i);
  }
  call.give(dims.empty() ? alias(self) : squeeze(self, dims));
}

void view_dims(const Operator& op, uint64_t batched, Stack& stack) {
  const BatchedCall call(op, batched, stack);
  if (call.rank(0) > 0) return along_dims(op, batched, stack);
  for (size_t i = 1; i < call.count(); ++i) {  // a 0-d sample accepts only dimensions 0 and -1
    const Value& value = call.value(i);
    if (value.tag() == Value::Tag::kInt) wrap_dim(op.name(), value.to_int(), 0);
  }
  BatchedCall(op, batched, stack).give(alias(call.tensor(0)));
}

void part(const Operator& op, uint64_t batched, Stack& stack) {
  const BatchedCall call(op, batched, stack);
  LS_CHECK(call.rank(0) > 0, IndexError, "[{}] a 0-d tensor has no dimension to take parts of.",
           op.name());
  along_dims(op, batched, stack);
}

void t(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  LS_CHECK(call.rank(0) <= 2, ShapeError,
           "[t] expected at most two dimensions, got {}. Use transpose(dim0, dim1).",
           to_string(call.sample_sizes(0)));
  call.give(call.rank(0) == 2 ? transpose(call.tensor(0), 1, 2) : alias(call.tensor(0)));
}

void unfold(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (call.rank(0) > 0) return along_dims(op, batched, stack);
  wrap_dim("unfold", call.get<int64_t>(1), 0);
  const Tensor lines = call.tensor(0).unsqueeze(1);  // a 0-d sample is one window of one element
  call.give(lockstep::unfold(lines, 1, call.get<int64_t>(2), call.get<int64_t>(3)).select(1, 0));
}

void unsqueeze(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  call.set(1, Value(shifted(call, call.get<int64_t>(1), call.rank(0) + 1)));
  call.forward();
}

void view(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const int64_t elements = count_elements(call.sample_sizes(0));
  call.set(1, behind_batch(call.batch(), infer_size("view", call.get<IntList>(1), elements)));
  call.forward();
}

void view_dtype(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  LS_CHECK(call.rank(0) > 0 || size_of(call.get<DType>(1)) == size_of(call.tensor(0).dtype()),
           ShapeError, "[view] a 0-d tensor can only be read as a dtype of its size, got {}.",
           to_string(call.get<DType>(1)));
  call.forward();
}

void new_sizes(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  call.set(1, behind_batch(call.batch(), call.get<IntList>(1)));
  call.forward();
}

}  // namespace lockstep::batching
