#include "core/ops/matmul/batching_products.h"

#include "core/base/check.h"
#include "core/ops/conv/conv.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"

namespace lockstep::batching {

namespace {

/// [batch, rows, k] -> [batch * rows, k].
Tensor rows_of(const Tensor& front) { return flatten(front, 0, 1); }
/// Inverse of rows_of: [batch * rows, k] -> [batch, rows, k].
Tensor of_rows(const Tensor& rows, int64_t batch) {
  return unflatten(rows, 0, {batch, batch == 0 ? 0 : rows.size(0) / batch});
}

void check_matrices(const BatchedCall& call, size_t first, int64_t rank) {
  LS_CHECK(call.rank(first) == rank && call.rank(first + 1) == rank, ShapeError,
           "[{}] expected factors of {} dimensions, got shapes {} and {}.", call.op().name(), rank,
           to_string(call.sample_sizes(first)), to_string(call.sample_sizes(first + 1)));
}

/// The product of each sample's matrices, which are arguments `first` and `first` + 1.
Tensor product(const BatchedCall& call, size_t first) {
  if (!call.is_batched(first + 1)) {
    return of_rows(lockstep::mm(rows_of(call.tensor(first)), call.tensor(first + 1)), call.batch());
  }
  return lockstep::bmm(call.front(first), call.front(first + 1));
}

/// The product of each sample's batches of matrices, arguments `first` and `first` + 1.
Tensor product_of_batches(const BatchedCall& call, size_t first) {
  const Tensor left = flatten(call.front(first), 0, 1);
  const Tensor right = flatten(call.front(first + 1), 0, 1);
  const Tensor joined = lockstep::bmm(left, right);
  return unflatten(joined, 0, {call.batch(), call.sample_sizes(first)[0]});
}

bool is_one(const Scalar& factor) { return factor.to_double() == 1.0; }

/// Returns beta * self + alpha * product from the rule; self has the batch in front or broadcasts
/// to a sample.
void give_sum(BatchedCall& call, int64_t rank, const Tensor& product) {
  const Scalar beta = call.get<Scalar>(3);
  const Scalar alpha = call.get<Scalar>(4);
  if (beta.to_double() == 0.0) {  // self is not read, so NaN does not spread from it
    Dims sizes{call.batch()};
    sizes.append(product.sizes().end() - rank, product.sizes().end());
    return call.give(lockstep::mul(product, alpha).expand(sizes));
  }
  Tensor self = call.is_batched(0) ? call.front(0, rank) : call.tensor(0);
  if (!is_one(beta)) self = lockstep::mul(self, beta);
  call.give(lockstep::add(self, product, alpha));
}

// --- convolutions --------------------------------------------------------------------------------

/// [batch, n, channels, ...] -> [n, batch * channels, ...].
Tensor into_channels(const Tensor& front) { return flatten(front.transpose(0, 1), 1, 2); }
/// Inverse of into_channels.
Tensor out_of_channels(const Tensor& joined, int64_t batch) {
  return unflatten(joined, 1, {batch, batch == 0 ? 0 : joined.size(1) / batch}).transpose(0, 1);
}

struct ConvOptions {
  IntList stride, padding, dilation;
  bool transposed;
  IntList output_padding;
  int64_t groups;

  ConvOptions(const BatchedCall& call, size_t first)
      : stride(call.get<IntList>(first)),
        padding(call.get<IntList>(first + 1)),
        dilation(call.get<IntList>(first + 2)),
        transposed(call.get<bool>(first + 3)),
        output_padding(call.get<IntList>(first + 4)),
        groups(call.get<int64_t>(first + 5)) {}

  Tensor operator()(const Tensor& input, const Tensor& weight, int64_t group_count) const {
    return lockstep::convolution(input, weight, {}, stride, padding, dilation, transposed,
                                 output_padding, group_count);
  }
};

/// Convolves one input with the weights of all samples in one call: their features are concatenated
/// within each group.
Tensor convolve_weights(const Tensor& input, const Tensor& weight, const ConvOptions& options) {
  const int64_t batch = weight.size(0);
  const int64_t groups = options.groups;
  Tensor joined;
  if (options.transposed) {  // [batch, channels, features / groups, ...]
    joined = flatten(weight.transpose(0, 1), 1, 2);
  } else {  // [batch, features, channels / groups, ...]
    joined = flatten(unflatten(weight, 1, {groups, weight.size(1) / groups}).transpose(0, 1), 0, 2);
  }
  const Tensor result = options(input, joined, groups);
  const int64_t features = batch == 0 ? 0 : result.size(1) / groups / batch;
  const Tensor parts = unflatten(result, 1, {groups, batch, features});  // [n, groups, batch, ...]
  return flatten(parts.transpose(1, 2).transpose(0, 1), 2, 3);
}

}  // namespace

void mm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  check_matrices(call, 0, 2);
  call.give(product(call, 0));
}

void addmm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  check_matrices(call, 1, 2);
  const Scalar beta = call.get<Scalar>(3);
  const Scalar alpha = call.get<Scalar>(4);
  if (call.is_batched(2)) {
    const Tensor self = call.is_batched(0) ? call.front(0, 2) : call.tensor(0);
    return call.give(lockstep::baddbmm(self, call.front(1), call.front(2), beta, alpha));
  }
  // A self that is one row, shared by all samples, is added to all rows of one addmm.
  const bool row = !call.is_batched(0) && (call.rank(0) < 2 || call.tensor(0).size(0) == 1);
  if (row && call.is_batched(1)) {
    return call.give(of_rows(
        lockstep::addmm(call.tensor(0), rows_of(call.tensor(1)), call.tensor(2), beta, alpha),
        call.batch()));
  }
  if (call.is_batched(1)) return give_sum(call, 2, product(call, 1));
  give_sum(call, 2, lockstep::mm(call.tensor(1), call.tensor(2)));
}

void bmm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  check_matrices(call, 0, 3);
  call.give(product_of_batches(call, 0));
}

void baddbmm(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  check_matrices(call, 1, 3);
  if (call.is_batched(1) || call.is_batched(2)) {
    return give_sum(call, 3, product_of_batches(call, 1));
  }
  give_sum(call, 3, lockstep::bmm(call.tensor(1), call.tensor(2)));
}

void convolution(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const ConvOptions options(call, 3);
  Tensor result;
  if (call.is_batched(0) && call.is_batched(1)) {
    result = out_of_channels(options(into_channels(call.tensor(0)), flatten(call.tensor(1), 0, 1),
                                     options.groups * call.batch()),
                             call.batch());
  } else if (call.is_batched(1)) {
    result = convolve_weights(call.tensor(0), call.tensor(1), options);
  } else if (call.is_batched(0)) {
    result =
        of_rows(options(rows_of(call.tensor(0)), call.tensor(1), options.groups), call.batch());
  } else {
    result = options(call.tensor(0), call.tensor(1), options.groups);  // only the bias is batched
  }
  if (!call.has_tensor(2)) return call.give(result);
  const int64_t spatial = call.rank(1) - 2;
  Dims sizes;  // of the bias: [batch, 1, features, 1, ...], or without the batch
  if (call.is_batched(2)) sizes = Dims{call.batch(), 1};
  sizes.push_back(call.sample_sizes(2)[0]);
  sizes.resize(sizes.size() + static_cast<size_t>(spatial), 1);
  call.give(lockstep::add(result, call.tensor(2).view(sizes)));
}

void convolution_backward(const Operator& op, uint64_t batched, Stack& stack) {
  BatchedCall call(op, batched, stack);
  const ConvOptions options(call, 4);
  const int64_t batch = call.batch();
  const Tensor grad = into_channels(call.front(0));
  Dims bias;
  const std::optional<IntList> bias_sizes = call.get<std::optional<IntList>>(3);
  if (bias_sizes) {
    bias = to_dims(*bias_sizes);
    bias[0] *= batch;
  }
  const auto [input, weight, sums] = lockstep::convolution_backward(
      grad, into_channels(call.front(1)), flatten(call.front(2), 0, 1),
      bias_sizes ? std::optional<IntList>(bias) : std::nullopt, options.stride, options.padding,
      options.dilation, options.transposed, options.output_padding, options.groups * batch,
      call.get<BoolList>(10));
  call.give(input.defined() ? out_of_channels(input, batch) : input);
  call.give(weight.defined() ? of_rows(weight, batch) : weight);
  call.give(sums.defined() ? of_rows(sums, batch) : sums);
}

}  // namespace lockstep::batching
