#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// An index tensor of the given sizes. Rows without repeats write no element twice.
Tensor different(std::vector<int64_t> values, Dims sizes) {
  const Tensor flat = longs(std::move(values));
  return alias_tensor(flat, sizes, contiguous_strides(sizes), 0, DType::kI64, false);
}

}  // namespace

void add_scatter_samples(SampleTable& table) {
  const Tensor columns = different({2, 0, 1, 3, 2, 1}, {3, 2});
  const Tensor few = different({2, 0, 1, 3}, {2, 2});
  table["scatter.src"] = {
      .calls = {call("columns", floats({3, 4}), 1, columns, floats({3, 2}, 2)),
                call("rows", floats({3, 2}), 0, different({2, 1, 0, 2}, {2, 2}), floats({2, 2}, 2)),
                call("larger source", floats({3, 4}), -1, few, floats({3, 5}, 2)),
                call("no index", floats({3, 4}), 1, longs({}), floats({3, 4}, 2)),
                call("0-d", floats({}), 0, integers({}, 0, 1), floats({}, 2))},
      .large = {call("large", floats({300, 131}), 0, integers({515, 131}, 0, 300),
                     floats({515, 131}, 2))}};
  table["scatter.value"] = {
      .calls = {call("columns", floats({3, 4}), 1, columns, 2.5),
                call("smaller index", floats({3, 4}), 1, few, 1),
                call("integers", integers({3, 4}, 0, 9), 1, columns, 2.5),
                call("0-d", floats({}), 0, integers({}, 0, 1), 1.5)},
      .large = {call("large", floats({300, 131}), 0, integers({515, 131}, 0, 300), 1.5)}};
  const Tensor shared = different({2, 2, 1, 3, 3, 3}, {2, 3});
  OpSamples reductions;
  for (const char* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
    for (const bool include_self : {true, false}) {
      const std::string what = std::string(reduce) + (include_self ? " with self" : "");
      reductions.calls.push_back(call(what, floats({2, 4}), 1, shared, floats({2, 3}, 2), reduce)
                                     .with("include_self", include_self));
      reductions.calls.push_back(call(what + " of integers", integers({2, 4}, -9, 9), 1, shared,
                                      integers({2, 3}, -9, 9, 2), reduce)
                                     .with("include_self", include_self));
      reductions.large.push_back(call(what, floats({300, 31}), 0, integers({515, 31}, 0, 300),
                                      floats({515, 31}, 2), reduce)
                                     .with("include_self", include_self));
    }
  }
  reductions.calls.push_back(
      call("larger source", floats({3, 4}), -1, few, floats({3, 5}, 2), "sum"));
  reductions.calls.push_back(
      call("no index", floats({3, 4}), 1, longs({}), floats({3, 4}, 2), "mean"));
  // Products with one, two and three zero factors, from self and from the source.
  const auto zero_at = [](const Tensor& tensor, std::initializer_list<int64_t> places) {
    for (const int64_t place : places) tensor.view({-1}).select(0, place).fill_(0);
    return tensor;
  };
  for (const bool include_self : {true, false}) {
    reductions.calls.push_back(call("products of zeros", zero_at(floats({2, 3}), {0, 5}), 1,
                                    integers({2, 5}, 0, 2),
                                    zero_at(floats({2, 5}, 2), {0, 2, 4, 7}), "prod")
                                   .with("include_self", include_self));
  }
  table["scatter_reduce.two"] = reductions;
  for (const char* reduce : {"prod", "mean", "amax", "amin"}) {
    for (const bool include_self : {true, false}) {
      table["index_reduce"].calls.push_back(
          call(reduce, floats({3, 4}), 1, longs({2, 0, 2, 1, 0}), floats({3, 5}, 2), reduce)
              .with("include_self", include_self));
    }
  }
  table["index_reduce"].calls.push_back(
      call("0-d", floats({}), 0, longs({0}), floats({}, 2), "amax"));
  table["index_reduce"].calls.push_back(
      call("vector", floats({4}), 0, longs({3, 3}), floats({2}, 2), "prod"));
  table["scatter_reduce.two"].differs[DType::kU8] = "a mean divides what is left of 256s";
  table["scatter.reduce"] = {
      .calls = {call("add", floats({2, 4}), 1, shared, floats({2, 3}, 2)).with("reduce", "add"),
                call("multiply", floats({2, 4}), 1, shared, floats({2, 3}, 2))
                    .with("reduce", "multiply")}};
  table["scatter.value_reduce"] = {
      .calls = {call("add", floats({2, 4}), 1, shared, 1.5).with("reduce", "add"),
                call("multiply", floats({2, 4}), 1, shared, 1.5).with("reduce", "multiply")}};
  table["index_copy"] = {
      .calls = {call("rows", floats({4, 3}), 0, longs({2, 0}), floats({2, 3}, 2)),
                call("columns", floats({4, 3}), -1, longs({1}), floats({4, 1}, 2)),
                call("nothing", floats({4, 3}), 0, longs({}), floats({0, 3}, 2)),
                call("0-d source", floats({4}), 0, integers({}, 2, 3), floats({}, 2)),
                call("0-d", floats({}), 0, longs({0}), floats({}, 2))},
      .large = {
          call("large", floats({300, 131}), 0, integers({1031}, 0, 300), floats({1031, 131}, 2))}};
  table["index_fill.int_Scalar"] = {
      .calls = {call("rows", floats({4, 3}), 0, longs({2, 0, -1}), 1.5),
                call("columns", floats({4, 3}), -1, longs({1}), 2),
                call("integers", integers({4, 3}, 0, 9), 0, longs({1}), 2.5),
                call("nothing", floats({4, 3}), 0, longs({}), 1.5),
                call("0-d", floats({}), 0, longs({0}), 1.5)},
      .large = {call("large", floats({300, 131}), 1, integers({70}, 0, 131), 1.5)}};
  table["index_fill.int_Tensor"] = {
      .calls = {call("rows", floats({4, 3}), 0, longs({2, -1}), floats({}, 2)),
                call("nothing", floats({4, 3}), 0, longs({}), floats({}, 2)),
                call("0-d", floats({}), 0, longs({0}), floats({}, 2))}};
  for (const char* op : {"masked_fill.Tensor", "masked_fill_.Tensor"}) {
    table[op] = {
        .calls = {call("matrix", floats({3, 4}), flags({3, 4}), floats({}, 2)),
                  call("broadcast mask", floats({3, 4}), flags({4}), floats({}, 2)),
                  call("integers", integers({3, 4}, 0, 9), flags({3, 4}), integers({}, 3, 4))}};
  }
  table["take_along_dim"] = {
      .calls = {call("columns", floats({3, 4}), integers({3, 2}, -4, 4), 1),
                call("broadcast", floats({3, 4}), integers({1, 2}, 0, 4), -1),
                call("flattened", floats({3, 4}), integers({2, 3}, 0, 12)),
                call("0-d", floats({}), integers({}, 0, 1), 0)}};
  table["take"] = {.calls = {call("matrix", floats({3, 4}), integers({2, 2}, -12, 12)),
                             call("0-d", floats({3}), integers({}, 0, 3)),
                             call("nothing", floats({3}), longs({}))}};
  for (const char* op : {"put", "put_"}) {
    table[op] = {.calls = {call("matrix", floats({3, 4}), different({0, 5, -1, 7}, {2, 2}),
                                floats({2, 2}, 2)),
                           call("added", floats({3, 4}), longs({1, 1, 3}), floats({3}, 2), true)}};
  }
  for (const char* op : {"argwhere", "nonzero_numpy", "where"}) {
    table[op] = {.calls = {call("flags", flags({3, 4})), call("0-d", integers({}, 1, 2))}};
  }
}

}  // namespace lockstep
