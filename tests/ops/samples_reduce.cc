#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

Dims large_sizes() { return {67, 1031}; }

OpSamples over_all() {
  return {
      .calls = {call("matrix", floats({3, 5})), call("0-d", floats({})),
                call("one element", floats({1, 1})), call("three dimensions", floats({2, 3, 4})),
                call("transposed", with_gaps(floats({4, 3})))},
      .large = {call("large", floats(large_sizes()))}};
}

/// Operators with arguments (int[] dim, bool keepdim).
OpSamples over_dims() {
  return {.calls = {call("rows", floats({3, 5}), Dims{1}), call("columns", floats({3, 5}), Dims{0}),
                    call("kept", floats({3, 5}), Dims{-1}, true),
                    call("two of three", floats({2, 3, 4}), Dims{0, 2}, true),
                    call("middle", floats({2, 3, 4}), Dims{1}), call("0-d", floats({}), Dims{0}),
                    call("none means all", floats({2, 3}), Dims{}),
                    call("transposed", with_gaps(floats({4, 3})), Dims{1})},
          .large = {call("large rows", floats(large_sizes()), Dims{1}),
                    call("large columns", floats(large_sizes()), Dims{0}),
                    call("large all", floats(large_sizes()), Dims{0, 1})}};
}

/// Operators with arguments (int dim, bool keepdim).
OpSamples over_dim() {
  return {.calls = {call("rows", floats({3, 5}), 1), call("columns", floats({3, 5}), 0),
                    call("kept", floats({3, 5}), -1, true), call("middle", floats({2, 3, 4}), 1),
                    call("0-d", floats({}), 0), call("transposed", with_gaps(floats({4, 3})), 1)},
          .large = {call("large rows", floats(large_sizes()), 1),
                    call("large columns", floats(large_sizes()), 0)}};
}

}  // namespace

void add_reduce_samples(SampleTable& table) {
  for (const char* op : {"sum", "mean", "max", "min", "any", "all"}) table[op] = over_all();
  for (const char* op : {"sum.dim_IntList", "mean.dim", "amax", "amin", "any.dims", "all.dims"}) {
    table[op] = over_dims();
  }
  for (const char* op : {"max.dim", "min.dim", "argmax", "argmin", "any.dim", "all.dim"}) {
    table[op] = over_dim();
  }
  for (const char* op : {"argmax", "argmin"}) {
    table[op].calls.push_back(call("flattened", floats({3, 5})));
    table[op].large.push_back(call("large flattened", floats(large_sizes())));
  }
  for (const char* op : {"max", "min", "sum", "any", "all"}) {
    table[op].calls.push_back(call("integers", integers({2, 3}, -4, 5)));
  }
  for (const char* op : {"any", "all"}) {
    table[op].calls.push_back(call("bools", flags({2, 3})));
    table[op].calls.push_back(call("empty", flags({0, 3})));
  }
  for (const char* op : {"sum", "mean"}) table[op].calls.push_back(call("empty", floats({0, 3})));
  table["sum"].calls.push_back(call("bools", flags({2, 3})));
  for (const char* op : {"sum.dim_IntList", "mean.dim"}) {
    table[op].calls.push_back(call("empty rows", floats({3, 0}), Dims{1}));
    table[op].calls.push_back(
        call("as float64", floats({3, 4}), Dims{1}).with("dtype", DType::kF64));
    table[op].calls.push_back(call("bfloat16", floats({3, 4}, 1, DType::kBF16), Dims{1}));
  }
  table["sum_to_size"] = {
      .calls = {call("row", floats({3, 4}), Dims{4}), call("column", floats({3, 4}), Dims{3, 1}),
                call("same", floats({3, 4}), Dims{3, 4}), call("0-d", floats({3, 4}), Dims{})}};
  table["cumsum"] = {
      .calls = {call("rows", floats({3, 5}), 1), call("columns", floats({3, 5}), 0),
                call("middle", floats({2, 3, 4}), -2), call("0-d", floats({}), 0),
                call("empty", floats({0, 2}), 0), call("integers", integers({2, 3}, -4, 5), 1),
                call("transposed", with_gaps(floats({4, 3})), 1)},
      .large = {call("large rows", floats(large_sizes()), 1),
                call("large columns", floats(large_sizes()), 0)}};
  table["equal"] = {.calls = {call("same", floats({3, 4}), floats({3, 4})),
                              call("different", floats({3, 4}), floats({3, 4}, 2)),
                              call("other shape", floats({3, 4}), floats({4, 3}))}};
  table["is_nonzero"] = {.calls = {call("true", floats({1})), call("0-d", integers({}, 0, 1))}};
  for (const char* op : {"item", "_local_scalar_dense"}) {
    table[op] = {.calls = {call("0-d", floats({})), call("one element", integers({1, 1}, 3, 4))}};
  }
}

}  // namespace lockstep
