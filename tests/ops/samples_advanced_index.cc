#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

Tensor rows(Tensor tensor, int64_t count) {
  const int64_t columns = tensor.numel() / count;
  return alias_tensor(tensor, {count, columns}, {columns, 1}, 0, tensor.dtype(), false);
}

}  // namespace

void add_advanced_index_samples(SampleTable& table) {
  const Tensor nothing;
  const std::vector<Sample> by_integers = {
      call("rows", floats({4, 3}), Tensors{longs({2, 0, 3})}),
      call("columns", floats({4, 3}), Tensors{nothing, longs({-1, 0})}),
      call("pairs", floats({4, 3}), Tensors{longs({2, 0, 3}), longs({1, 1, -3})}),
      call("broadcast pairs", floats({4, 3}), Tensors{rows(longs({2, 0, 3}), 3), longs({1, 2})}),
      call("neighbours behind", floats({2, 4, 3}), Tensors{nothing, longs({3, 1}), longs({0, 2})}),
      call("apart", floats({2, 4, 3, 2}), Tensors{longs({1, 0}), nothing, longs({0, 2})}),
      call("apart behind", floats({2, 2, 2, 3}),
           Tensors{nothing, longs({1, 0, 1}), nothing, longs({0, 2, 1})}),
      call("int32", floats({4, 3}), Tensors{integers({2}, 0, 4, 1, DType::kI32)}),
      call("0-d index", floats({4, 3}), Tensors{integers({}, 2, 3)}),
      call("no indices", floats({4, 3}), Tensors{longs({})}),
      call("transposed", with_gaps(floats({4, 3})), Tensors{nothing, longs({2, 1})})};
  table["_unsafe_index.Tensor"] = {
      .calls = by_integers,
      .large = {call("large", floats({300, 131}), Tensors{integers({1031}, 0, 300)}),
                call("large apart", floats({30, 40, 31}),
                     Tensors{integers({515}, 0, 30), nothing, integers({515}, 0, 31)})}};
  table["index.Tensor"] = {.calls = by_integers};
  table["index.Tensor"].calls.push_back(call("mask", floats({4, 3}), Tensors{flags({4, 3})}));
  table["index.Tensor"].calls.push_back(
      call("mask of columns", floats({4, 3}), Tensors{nothing, flags({3})}));
  table["index.Tensor"].calls.push_back(
      call("mask and integers", floats({3, 2, 4}), Tensors{flags({3, 2}), longs({1})}));

  const std::vector<Sample> puts = {
      call("rows", floats({4, 3}), Tensors{longs({2, 0})}, floats({2, 3}, 2)),
      call("one value", floats({4, 3}), Tensors{longs({2, 0}), longs({1, 1})}, floats({}, 2)),
      call("columns", floats({4, 3}), Tensors{nothing, longs({-1, 0})}, floats({4, 2}, 2)),
      call("broadcast values", floats({4, 3}), Tensors{nothing, longs({-1, 0})}, floats({4, 1}, 2)),
      call("added twice", floats({4, 3}), Tensors{longs({2, 0, 2})}, floats({3, 3}, 2), true),
      call("added apart", floats({2, 4, 3, 2}), Tensors{longs({1, 1}), nothing, longs({2, 2})},
           floats({2, 4, 2}, 2), true),
      call("nothing", floats({4, 3}), Tensors{longs({})}, floats({0, 3}, 2)),
      call("int32", floats({4, 3}), Tensors{integers({1}, 0, 4, 1, DType::kI32)},
           floats({1, 3}, 2))};
  table["_unsafe_index_put"] = {
      .calls = puts,
      .large = {call("large", floats({300, 131}), Tensors{integers({1031}, 0, 300)},
                     floats({1031, 131}, 2), true)}};
  for (const char* op : {"index_put", "index_put_"}) {
    table[op] = {.calls = puts};
    table[op].calls.push_back(call("mask", floats({4, 3}), Tensors{flags({4, 3})}, floats({}, 2)));
    table[op].calls.push_back(
        call("mask of rows, added", floats({4, 3}), Tensors{flags({4})}, floats({1, 3}, 2), true));
  }
}

}  // namespace lockstep
