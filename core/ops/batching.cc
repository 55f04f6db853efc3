#include "core/ops/batching.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/call_op.h"
#include "core/ops/pointwise/promotion.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// Sizes [batch, 1, ..., 1, rest...] with as many 1s as needed for samples of `rank` dimensions.
Dims padded(IntList sizes, int64_t rank) {
  Dims padded{sizes[0]};
  padded.resize(
      static_cast<size_t>(std::max<int64_t>(1, 2 + rank - static_cast<int64_t>(sizes.size()))), 1);
  padded.append(sizes.begin() + 1, sizes.end());
  return padded;
}

bool is_tensor(const Argument& argument) { return argument.type.base == BaseType::kTensor; }

bool is_dimension(const Argument& argument) {
  return argument.type.base == BaseType::kInt &&
         (argument.name == "dim" || argument.name == "dims" || argument.name == "dim0" ||
          argument.name == "dim1" || argument.name == "dim2" || argument.name == "dimension");
}

}  // namespace

BatchedCall::BatchedCall(const Operator& op, uint64_t batched, Stack& stack)
    : op_(op), batched_(batched), stack_(stack) {
  for (const Value& value : stack.arguments()) values_.push_back(value);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!is_batched(i)) continue;
    if (values_[i].is_tensor()) {
      batch_ = tensor(i).size(0);
    } else {
      for (const Tensor& each : values_[i].tensors()) {
        if (each.defined()) batch_ = each.size(0);
      }
    }
  }
}

bool BatchedCall::has_tensor(size_t i) const {
  return values_[i].is_tensor() && values_[i].tensor().defined();
}

Tensor BatchedCall::front(size_t i) const {
  if (is_batched(i)) return tensor(i);
  Dims sizes{batch_};
  sizes.append(tensor(i).sizes().begin(), tensor(i).sizes().end());
  return tensor(i).expand(sizes);
}

Tensor BatchedCall::front(size_t i, int64_t rank) const {
  Tensor whole = front(i);
  return whole.dim() > rank ? whole : whole.view(padded(whole.sizes(), rank));
}

std::vector<Tensor> BatchedCall::front_of_list(size_t i) const {
  std::vector<Tensor> list;
  for (const Tensor& each : values_[i].tensors()) {
    if (is_batched(i) || !each.defined()) {
      list.push_back(each);
      continue;
    }
    Dims sizes{batch_};
    sizes.append(each.sizes().begin(), each.sizes().end());
    list.push_back(each.expand(sizes));
  }
  return list;
}

void BatchedCall::set(size_t i, Value value) { values_[i] = std::move(value); }

void BatchedCall::set_front(size_t i) {
  if (i >= 64 || is_batched(i)) return;
  if (values_[i].is_tensor_list()) {
    set(i, Value(front_of_list(i)));
  } else if (has_tensor(i)) {
    set(i, front(i));
  } else {
    return;
  }
  batched_ |= uint64_t{1} << i;
}

SmallVector<Value, 4> BatchedCall::call() {
  Stack inner(std::span<Value>(values_.data(), values_.size()));
  op_.call_boxed(inner);
  SmallVector<Value, 4> results;
  for (Value& result : inner.results()) results.push_back(result.own());
  return results;
}

void BatchedCall::forward() {
  for (Value& result : call()) stack_.results().push_back(std::move(result));
}

void BatchedCall::give(Tensor result) {
  if (result.defined()) {
    stack_.results().emplace_back(std::move(result));
  } else {
    stack_.results().emplace_back();
  }
}

void BatchedCall::give(std::vector<Tensor> results) {
  stack_.results().emplace_back(std::move(results));
}

namespace batching {

namespace {

const std::vector<Argument>& arguments_of(const BatchedCall& call) {
  return call.op().schema().arguments;
}

/// The largest number of dimensions that a sample of a tensor argument has.
int64_t largest_rank(const BatchedCall& call) {
  int64_t rank = 0;
  for (size_t i = 0; i < call.count(); ++i) {
    if (call.has_tensor(i)) rank = std::max(rank, call.rank(i));
  }
  return rank;
}

int kind_of(DType dtype) { return is_floating(dtype) ? 2 : dtype == DType::kBool ? 0 : 1; }

/// Keeps the result dtype that the call of a single sample would have (see Promotion). A batched
/// 0-d sample has one dimension, so it would count as a tensor with dimensions: if it has the same
/// kind as those it is cast to their dtype. If it has a higher kind it sets the result's dtype
/// anyway; an unbatched 0-d tensor of a higher kind gets a dimension so that it counts as much.
void keep_promotion(BatchedCall& call) {
  Promotion with_dimensions;
  bool any = false;
  bool lifts = false;
  for (size_t i = 0; i < call.count(); ++i) {
    if (!call.has_tensor(i)) continue;
    if (call.rank(i) == 0) {
      lifts |= call.is_batched(i);
    } else {
      with_dimensions.add(call.tensor(i));
      any = true;
    }
  }
  if (!lifts) return;
  for (size_t i = 0; i < call.count(); ++i) {
    if (!call.has_tensor(i) || call.rank(i) != 0) continue;
    const DType own = call.tensor(i).dtype();
    const bool decides = !any || kind_of(own) > kind_of(with_dimensions.result());
    if (decides && !call.is_batched(i)) {
      call.set(i, call.tensor(i).view({1}));
    } else if (!decides && call.is_batched(i) && own != with_dimensions.result() &&
               kind_of(own) == kind_of(with_dimensions.result())) {
      call.set(i, call.tensor(i).to(with_dimensions.result()));
    }
  }
}

/// Drops channels-last memory formats: they describe a sample, and the batch adds a dimension.
void drop_memory_format(BatchedCall& call) {
  for (size_t i = 0; i < call.count(); ++i) {
    if (call.value(i).tag() != Value::Tag::kMemoryFormat) continue;
    const MemoryFormat format = call.value(i).to_memory_format();
    if (format == MemoryFormat::kPreserve || format == MemoryFormat::kContiguous) continue;
    call.set(i, arguments_of(call)[i].type.optional ? Value() : Value(MemoryFormat::kContiguous));
  }
}

void align(BatchedCall& call, int64_t rank) {
  for (size_t i = 0; i < call.count(); ++i) {
    if (call.has_tensor(i) && call.is_batched(i) && call.rank(i) < rank) {
      call.set(i, call.front(i, rank));
    }
  }
}

/// Shifts dimension arguments, which refer to samples of `rank` dimensions, past the batch.
void shift_dims(BatchedCall& call, int64_t rank) {
  for (size_t i = 0; i < call.count(); ++i) {
    if (!is_dimension(arguments_of(call)[i]) || call.value(i).is_none()) continue;
    if (!arguments_of(call)[i].type.list) {
      call.set(i, Value(wrap_dim(call.op().name(), call.value(i).to_int(), rank) + 1));
      continue;
    }
    Dims dims;
    for (const int64_t dim : call.value(i).to_int_list()) {
      dims.push_back(wrap_dim(call.op().name(), dim, rank) + 1);
    }
    call.set(i, dims);
  }
}

/// Puts the batch in front of every tensor argument. Returns the rank of one sample of the first.
int64_t all_in_front(BatchedCall& call) {
  int64_t rank = -1;
  for (size_t i = 0; i < call.count(); ++i) {
    if (!is_tensor(arguments_of(call)[i])) continue;
    call.set_front(i);
    if (rank < 0 && call.has_tensor(i)) rank = call.rank(i);
    if (rank < 0 && call.value(i).is_tensor_list() && !call.value(i).tensors().empty()) {
      rank = call.value(i).tensors()[0].dim() - 1;
    }
  }
  return rank;
}

/// Calls an operator on 0-d samples, which accept dimension 0: adds that dimension and removes it
/// from the results.
void call_on_lines(BatchedCall& call) {
  for (size_t i = 0; i < call.count(); ++i) {
    if (call.has_tensor(i) && call.rank(i) == 0) call.set(i, call.tensor(i).unsqueeze(1));
  }
  shift_dims(call, 1);
  for (Value& result : call.call()) {
    if (result.is_none()) {
      call.give(Tensor());
    } else if (result.is_tensor_list()) {
      call.give(result.take_tensors());
    } else {
      const Tensor tensor = result.take_tensor();
      call.give(tensor.dim() == 2 ? tensor.squeeze(1) : tensor);
    }
  }
}

void call_along(BatchedCall& call, int64_t rank) {
  if (rank == 0) return call_on_lines(call);
  shift_dims(call, rank);
  call.forward();
}

/// Flattens each sample: [batch, ...] -> [batch, elements].
Tensor flat(const Tensor& front) {
  const int64_t batch = front.size(0);
  return front.reshape({batch, count_elements(front.sizes().subspan(1))});
}

/// Whether `dims` selects dimensions. For `int[1]?` both None and an empty list mean all
/// dimensions; for `int[]?` an empty list means none.
bool reduces_some(const Argument& argument, const Value& dims) {
  return !dims.is_none() && (argument.list_size == 0 || !dims.to_int_list().empty());
}

/// argmax and argmin without a dimension: the index in the flattened sample.
void place_of_extreme(BatchedCall& call, size_t dim) {
  const Tensor self = call.tensor(0);
  call.set(0, flat(self));
  call.set(dim, Value(int64_t{1}));
  const int keepdim = call.op().schema().find("keepdim");
  const bool keeps = keepdim >= 0 && call.get<bool>(static_cast<size_t>(keepdim));
  if (keeps) call.set(static_cast<size_t>(keepdim), Value(false));
  Tensor result = call.call()[0].take_tensor();
  if (keeps) result = result.view(padded(result.sizes(), self.dim() - 1));
  call.give(result);
}

void images(BatchedCall& call, int64_t spatial) {
  all_in_front(call);
  const int64_t folded = spatial + 2;
  int64_t samples = -1;
  for (size_t i = 0; i < call.count(); ++i) {
    if (!call.has_tensor(i) || call.rank(i) != folded) continue;
    samples = call.sample_sizes(i)[0];
    call.set(i, flatten(call.tensor(i), 0, 1));
  }
  const int sizes = call.op().schema().find("input_size");
  if (sizes >= 0) {
    const size_t at = static_cast<size_t>(sizes);
    Dims input = to_dims(call.get<IntList>(at));
    input[0] *= call.batch();
    call.set(at, input);
  }
  for (Value& result : call.call()) {
    Tensor tensor = result.take_tensor();
    if (samples >= 0 && tensor.defined()) {
      Dims unfolded{call.batch(), samples};
      unfolded.append(tensor.sizes().begin() + 1, tensor.sizes().end());
      tensor = tensor.view(unfolded);
    }
    call.give(tensor);
  }
}

/// Name of the overload with a dimension argument for an operator that reduces all elements; its
/// first result is used.
const char* with_dimensions(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kForms[] = {
      {"sum", "sum.dim_IntList"},
      {"mean", "mean.dim"},
      {"prod", "prod.dim_int"},
      {"max", "amax"},
      {"min", "amin"},
      {"any", "any.dim"},
      {"all", "all.dim"},
      {"median", "median.dim"},
      {"nanmedian", "nanmedian.dim"},
  };
  for (const auto& [all, dims] : kForms) {
    if (all == name) return dims;
  }
  return nullptr;
}

}  // namespace

void elementwise(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const int64_t rank = largest_rank(call);
  keep_promotion(call);
  drop_memory_format(call);
  align(call, rank);
  call.forward();
}

void into_first(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const int64_t rank = call.rank(0);
  call.set_front(0);
  align(call, rank);
  call.forward();
}

void along_dims(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  call_along(call, all_in_front(call));
}

void reduction(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const int64_t rank = all_in_front(call);
  for (size_t i = 0; i < call.count(); ++i) {
    if (!is_dimension(arguments_of(call)[i])) continue;
    const bool list = arguments_of(call)[i].type.list;
    if (!list && call.value(i).is_none()) return place_of_extreme(call, i);
    if (!list || reduces_some(arguments_of(call)[i], call.value(i))) continue;
    Dims all;
    for (int64_t dim = 0; dim < std::max<int64_t>(rank, 1); ++dim) all.push_back(dim);
    call.set(i, all);
  }
  call_along(call, rank);
}

void reduce_all(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const char* form = with_dimensions(op.schema().name);
  LS_ASSERT(form != nullptr);
  const Tensor self = flat(call.front(0));
  const bool picks = op.schema().name.ends_with("median");
  if (picks && self.numel() == 0) return per_sample(op, batched, stack);  // NaN, not an error
  std::vector<NamedValue> named;
  const int dtype = op.schema().find("dtype");
  if (dtype >= 0) named.push_back({"dtype", call.value(static_cast<size_t>(dtype))});
  const Value arguments[] = {Value(self), Value(int64_t{1})};
  call.give(call_values(dispatcher().find(form), arguments, named)[0].take_tensor());
}

void images_1d(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  images(call, 1);
}
void images_2d(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  images(call, 2);
}
void images_3d(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  images(call, 3);
}

}  // namespace batching

}  // namespace lockstep
