#include "tests/ops/op_samples.h"

namespace lockstep {

void add_rearrange_samples(SampleTable& table) {
  table["repeat"] = {
      .calls = {call("rows", floats({2, 3}), Dims{2, 1}),
                call("new dimension", floats({2, 3}), Dims{2, 1, 2}),
                call("none", floats({2, 3}), Dims{0, 1}), call("once", floats({2, 3}), Dims{1, 1}),
                call("0-d", floats({}), Dims{3}), call("0-d alone", floats({}), Dims{})}};
  table["tile"] = {
      .calls = {call("short", floats({2, 3}), Dims{2}), call("long", floats({3}), Dims{2, 2})}};
  table["roll"] = {.calls = {call("flattened", floats({2, 3}), Dims{2}),
                             call("rows", floats({3, 2}), Dims{-1}, Dims{0}),
                             call("both", floats({3, 4}), Dims{5, -6}, Dims{0, -1}),
                             call("not at all", floats({3, 2}), Dims{3}, Dims{0}),
                             call("empty", floats({0, 2}), Dims{1}, Dims{1})}};
  table["diag_embed"] = {.calls = {call("vector", floats({3})),
                                   call("batch above", floats({2, 3}), 1),
                                   call("below, in front", floats({2, 2}), -1, 0, 2)}};
  table["diagonal_scatter"] = {
      .calls = {call("main", floats({3, 4}), floats({3}, 2)),
                call("above", floats({3, 4}), floats({2}, 2), 2),
                call("below", floats({2, 3, 2}), floats({3, 1}, 2), -1, 0, 2),
                call("outside", floats({2, 3}), floats({0}, 2), 7),
                call("transposed", with_gaps(floats({4, 3})), floats({3}, 2))},
      .large = {call("large", floats({40, 60, 30}), floats({30, 40}, 2), 0, 1, 0)}};
  table["diagonal_backward"] = {.calls = {call("main", floats({3}), Dims{3, 4}, 0, 0, 1),
                                          call("above", floats({2, 2}), Dims{2, 3, 3}, 1, 1, 2)}};
  table["select_scatter"] = {
      .calls = {call("row", floats({3, 4}), floats({4}, 2), 0, 1),
                call("last column", floats({3, 4}), floats({3}, 2), -1, -1)}};
  table["pixel_shuffle"] = {.calls = {call("image", floats({4, 2, 3}), 2),
                                      call("batch", floats({1, 8, 1, 2}), 2),
                                      call("empty batch", floats({0, 4, 2, 2}), 2)}};
  table["pixel_unshuffle"] = {
      .calls = {call("image", floats({1, 4, 6}), 2), call("batch", floats({2, 1, 2, 2}), 2)}};
  table["unsafe_split.Tensor"] = {
      .calls = {call("even", floats({4, 3}), 2), call("uneven", floats({3, 5}), 2, 1)}};
  table["unsafe_split_with_sizes"] = {.calls = {call("columns", floats({3, 5}), Dims{2, 0, 3}, 1)}};
  table["unsafe_chunk"] = {
      .calls = {call("uneven", floats({2, 5}), 3, 1), call("of nothing", floats({0, 2}), 3)}};
  table["one_hot"] = {
      .calls = {call("given", integers({2, 3}, 0, 4), 5), call("found", integers({4}, 0, 4)),
                call("0-d", integers({}, 2, 3), 4), call("empty", integers({0}, 0, 4), 3)}};
  for (const DType other : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32}) {
    table["one_hot"].refuses[other] = "as in ATen, classes are int64";
  }
  table["movedim.int"] = {.calls = {call("to the end", floats({2, 3, 4}), 0, -1),
                                    call("to the front", floats({2, 3}), 1, 0),
                                    call("0-d", floats({}), 0, 0)}};
  table["movedim.intlist"] = {.calls = {call("two", floats({2, 3, 4}), Dims{2, 0}, Dims{0, 1}),
                                        call("none", floats({2, 3}), Dims{}, Dims{})}};
  table["reshape_as"] = {.calls = {call("matrix", floats({2, 6}), floats({3, 4}, 2))}};
  table["reshape_as"].constants = {"other"};
  table["_unsafe_view"] = {.calls = {call("matrix", floats({2, 6}), Dims{3, -1})}};
  table["_unsafe_view"].reads_strides = true;
  for (const int k : {-1, 0, 1, 2, 7}) {
    table["rot90"].calls.push_back(call(std::to_string(k) + " times", floats({2, 3}), k));
  }
  table["rot90"].calls.push_back(call("other dimensions", floats({2, 3, 4}), 1, Dims{2, 0}));
  for (const char* op : {"fliplr", "flipud"}) {
    table[op] = {.calls = {call("matrix", floats({2, 3})), call("images", floats({2, 3, 2}))}};
  }
  table["diag"] = {.calls = {call("vector", floats({3})), call("above", floats({2}), 1),
                             call("matrix", floats({3, 4})), call("below", floats({3, 4}), -1),
                             call("outside", floats({2, 2}), 5)}};
  using Tensors = std::vector<Tensor>;
  for (const char* op : {"hstack", "vstack", "dstack"}) {
    table[op] = {.calls = {call("matrices", Tensors{floats({2, 3}), floats({2, 3}, 2)}),
                           call("vectors", Tensors{floats({3}), floats({3}, 2)}),
                           call("0-d", Tensors{floats({}), floats({}, 2)})}};
  }
  table["meshgrid"] = {
      .calls = {call("three", Tensors{floats({2}), floats({3}, 2), floats({2}, 3)}),
                call("with a number", Tensors{floats({2}), floats({}, 2)})}};
  for (const char* indexing : {"ij", "xy"}) {
    table["meshgrid.indexing"].calls.push_back(
        call(indexing, Tensors{floats({2}), floats({3}, 2), floats({2}, 3)})
            .with("indexing", indexing));
  }
  table["tensor_split.sections"] = {
      .calls = {call("uneven", floats({5, 2}), 3), call("more than parts", floats({2, 2}), 3, 1)}};
  table["tensor_split.indices"] = {.calls = {call("two", floats({5, 2}), Dims{1, 3}),
                                             call("from the end", floats({2, 5}), Dims{-2, 9}, 1)}};
  for (const bool again : {false, true}) {
    const std::string what = again ? "all results" : "elements only";
    table["_unique2"].calls.push_back(call(what, integers({3, 4}, 0, 5), true, again, again));
    table["_unique"].calls.push_back(call(what, integers({3, 4}, 0, 5), true, again));
    table["unique_dim"].calls.push_back(call(what, integers({6, 2}, 0, 2), 0, true, again, again));
    table["unique_consecutive"].calls.push_back(call(what, integers({9}, 0, 2), again, again));
  }
  table["_unique2"].calls.push_back(call("nothing", integers({0}, 0, 5), true, true, true));
  table["unique_dim"].calls.push_back(
      call("columns", integers({2, 6}, 0, 2), -1, true, true, true));
  table["unique_consecutive"].calls.push_back(
      call("columns", integers({2, 6}, 0, 2), true, true, 1));
}

}  // namespace lockstep
