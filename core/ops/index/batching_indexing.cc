#include "core/ops/index/batching_indexing.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep::batching {

namespace {

/// Expands an index [batch, n] to an index for gather along `dim` of a tensor of `sizes`: it varies
/// along the batch and `dim` and is repeated along the other dimensions.
Tensor places_along(const Tensor& index, int64_t dim, IntList sizes) {
  Dims whole = to_dims(sizes);
  whole[static_cast<size_t>(dim)] = index.size(1);
  Dims lines(whole.size(), 1);
  lines[0] = whole[0];
  lines[static_cast<size_t>(dim)] = index.size(1);
  return index.to(DType::kI64).view(lines).expand(whole);
}

/// Indices [batch, ...] of rows as an index [batch, count, width] for gather along dimension 1.
Tensor places_of_rows(const Tensor& indices, int64_t width) {
  const int64_t batch = indices.size(0);
  const int64_t count = count_elements(indices.sizes().subspan(1));
  return indices.to(DType::kI64).reshape({batch, count, 1}).expand({batch, count, width});
}

/// Indices of index.Tensor or index_put for a whole batch: the batch gets an index of its own, and
/// the indexed dimensions are moved right after it.
class Places {
 public:
  Places(const BatchedCall& call, size_t self, size_t indices) : rank_(call.rank(self)) {
    const TensorList given = call.value(indices).tensors();
    const bool whole = call.is_batched(indices);
    int64_t index_rank = 0;
    for (const Tensor& index : given) {
      if (index.defined()) index_rank = std::max(index_rank, index.dim() - (whole ? 1 : 0));
    }
    index_rank_ = index_rank;
    Dims starts(static_cast<size_t>(index_rank + 1), 1);
    starts[0] = call.batch();
    places_.push_back(
        arange(Scalar(call.batch()), {DType::kI64, call.tensor(self).device()}).view(starts));
    order_.push_back(0);
    bool gap = false;
    for (int64_t i = 0; i < static_cast<int64_t>(given.size()); ++i) {
      const Tensor& index = given[static_cast<size_t>(i)];
      if (!index.defined()) {
        gap = gap || places_.size() > 1;
        continue;
      }
      if (places_.size() == 1) leading_ = i;
      apart_ = apart_ || gap;
      order_.push_back(i + 1);
      places_.push_back(whole ? aligned(index, index_rank) : index);
    }
    indexed_ = static_cast<int64_t>(places_.size()) - 1;
    if (apart_) leading_ = 0;
    for (int64_t i = 1; i <= rank_; ++i) {
      if (std::find(order_.begin(), order_.end(), i) == order_.end()) order_.push_back(i);
    }
  }

  const std::vector<Tensor>& indices() const { return places_; }
  /// [batch, dimensions...] -> [batch, indexed..., others...].
  Tensor arranged(const Tensor& front) const { return front.permute(order_); }
  /// Inverse of arranged.
  Tensor restored(const Tensor& tensor) const {
    Dims back(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      back[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
    }
    return tensor.permute(back);
  }
  /// Number of dimensions of one sample of the result of index.Tensor.
  int64_t read_rank() const { return rank_ - indexed_ + index_rank_; }
  /// [batch, places..., others...] with the dimensions of the indices moved to where index.Tensor
  /// puts them for a sample.
  Tensor as_read(const Tensor& tensor) const {
    Dims order{0};
    for (int64_t i = 0; i < leading_; ++i) order.push_back(1 + index_rank_ + i);
    for (int64_t i = 0; i < index_rank_; ++i) order.push_back(1 + i);
    for (int64_t i = 1 + index_rank_ + leading_; i < tensor.dim(); ++i) order.push_back(i);
    return tensor.permute(order);
  }
  /// Inverse of as_read.
  Tensor as_arranged(const Tensor& tensor) const {
    Dims order{0};
    for (int64_t i = 0; i < index_rank_; ++i) order.push_back(1 + leading_ + i);
    for (int64_t i = 0; i < leading_; ++i) order.push_back(1 + i);
    for (int64_t i = 1 + index_rank_ + leading_; i < tensor.dim(); ++i) order.push_back(i);
    return tensor.permute(order);
  }

 private:
  static Tensor aligned(const Tensor& index, int64_t rank) {
    Dims sizes{index.size(0)};
    sizes.resize(static_cast<size_t>(rank + 2 - index.dim()), 1);
    sizes.append(index.sizes().begin() + 1, index.sizes().end());
    return index.view(sizes);
  }

  int64_t rank_;
  int64_t index_rank_ = 0;
  int64_t indexed_ = 0;
  int64_t leading_ = 0;  ///< dimensions before those of the indices in the result
  bool apart_ = false;   ///< indexed dimensions are not adjacent: the indices' dimensions go first
  Dims order_;
  std::vector<Tensor> places_;
};

}  // namespace

void cat(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  call.set_front(0);
  std::vector<Tensor> tensors;
  int64_t rank = 1;
  for (const Tensor& tensor : call.value(0).tensors()) rank = std::max(rank, tensor.dim() - 1);
  for (const Tensor& tensor : call.value(0).tensors()) {
    const bool nothing = tensor.dim() == 2 && tensor.size(1) == 0 && rank > 1;
    if (!nothing) tensors.push_back(tensor);  // cat ignores an empty vector
  }
  call.set(0, Value(std::move(tensors)));
  call.set(1, Value(wrap_dim("cat", call.get<int64_t>(1), rank) + 1));
  call.forward();
}

void embedding(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (call.get<bool>(3) || call.get<bool>(4)) return per_sample(op, batched, stack);
  if (!call.is_batched(0)) return call.forward();
  LS_CHECK(call.rank(0) == 2, ShapeError, "[embedding] expected weight [rows, width], got {}.",
           to_string(call.sample_sizes(0)));
  const Tensor indices = call.front(1);
  const Tensor& weight = call.tensor(0);
  Dims sizes = to_dims(indices.sizes());
  sizes.push_back(weight.size(2));
  const Tensor rows =
      lockstep::gather(weight, 1, places_of_rows(indices, weight.size(2))).view(sizes);
  const int64_t padding = call.get<int64_t>(2);
  if (padding < 0) return call.give(rows);
  // Rows at padding_idx get no gradient.
  call.give(where(eq(indices, padding).unsqueeze(-1), rows.detach(), rows));
}

void embedding_dense_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (call.get<bool>(4)) return per_sample(op, batched, stack);
  const Tensor indices = call.front(1);
  Tensor grad = call.front(0);
  const int64_t width = grad.size(-1);
  const int64_t padding = call.get<int64_t>(3);
  if (padding >= 0) grad = masked_fill(grad, eq(indices, padding).unsqueeze(-1), 0);
  const Tensor places = places_of_rows(indices, width);
  call.give(scatter_add(zeros({call.batch(), call.get<int64_t>(2), width}, grad.options()), 1,
                        places, grad.reshape(places.sizes())));
}

void gather(const Operator& op, uint64_t batched, Stack& stack) {
  const BatchedCall call(op, batched, stack);
  for (size_t i = 0; i < call.count(); ++i) {
    if (!call.has_tensor(i)) continue;
    if (call.rank(i) == 0 || call.rank(i) != call.rank(0)) return per_sample(op, batched, stack);
  }
  along_dims(op, batched, stack);
}

void index_select(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  if (call.rank(0) == 0 || call.rank(2) != 1) return per_sample(op, batched, stack);
  const int64_t dim = wrap_dim("index_select", call.get<int64_t>(1), call.rank(0)) + 1;
  const Tensor self = call.front(0);
  if (call.is_batched(2)) {
    return call.give(lockstep::gather(self, dim, places_along(call.tensor(2), dim, self.sizes())));
  }
  call.set(0, self);
  call.set(1, Value(dim));
  call.forward();
}

void index_write(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const bool adds = op.schema().name.starts_with("index_add");
  const bool lines = call.rank(0) > 0 && call.rank(2) == 1;
  if (!lines || (call.is_batched(2) && !adds)) return per_sample(op, batched, stack);
  const int64_t dim = wrap_dim(op.name(), call.get<int64_t>(1), call.rank(0)) + 1;
  const Tensor self = call.front(0);
  if (call.is_batched(2)) {
    const Tensor source = lockstep::mul(call.front(3), call.get<Scalar>(4));
    LS_CHECK(source.dim() == self.dim(), ShapeError,
             "[index_add] source must have self's number of dimensions, got shapes {} and {}.",
             to_string(call.sample_sizes(0)), to_string(call.sample_sizes(3)));
    return call.give(
        scatter_add(self, dim, places_along(call.tensor(2), dim, source.sizes()), source));
  }
  call.set(0, self);
  call.set(1, Value(dim));
  if (call.has_tensor(3)) call.set(3, call.front(3));
  call.forward();
}

void index(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Places places(call, 0, 1);
  call.set(0, places.arranged(call.front(0)));
  call.set(1, Value(std::vector<Tensor>(places.indices())));
  call.give(places.as_read(call.call()[0].take_tensor()));
}

void index_put(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const Places places(call, 0, 1);
  const Tensor values = places.as_arranged(call.front(2, places.read_rank()));
  const Tensor self = places.arranged(call.front(0));
  const Value arguments[] = {Value(self), Value(TensorList(places.indices())), Value(values),
                             call.value(3)};
  // Calls the functional form; for the in-place form the caller copies the result into self.
  call.give(places.restored(call_values(op.root(), arguments)[0].take_tensor()));
}

void triangle(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  LS_CHECK(call.rank(0) >= 2, ShapeError, "[{}] expected at least two dimensions, got {}.",
           op.name(), to_string(call.sample_sizes(0)));
  call.forward();
}

void constant_pad(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const IntList pad = call.get<IntList>(1);
  LS_CHECK(static_cast<int64_t>(pad.size()) <= 2 * call.rank(0), ShapeError,
           "[constant_pad_nd] at most two numbers per dimension: got {} for shape {}.",
           to_string(pad), to_string(call.sample_sizes(0)));
  call.forward();
}

}  // namespace lockstep::batching
