#include "tests/ops/op_samples.h"

namespace lockstep {

void add_index_samples(SampleTable& table) {
  table["embedding"] = {
      .calls = {call("matrix of indices", floats({5, 3}), integers({2, 4}, 0, 5)),
                call("0-d index", floats({5, 3}), integers({}, 2, 3)),
                call("no indices", floats({5, 3}), integers({0}, 0, 5)),
                call("int32", floats({5, 3}), integers({4}, 0, 5, 1, DType::kI32)),
                call("padded", floats({5, 3}), integers({6}, 0, 5), 2)
                    .without_gradcheck("the padding row is read, but gets no gradient")},
      .large = {call("large", floats({300, 65}), integers({4, 515}, 0, 300))}};
  table["embedding_dense_backward"] = {
      .calls = {call("repeated rows", floats({6, 3}), integers({6}, 0, 4), 5, -1, false),
                call("padded", floats({2, 3, 4}), integers({2, 3}, 0, 4), 5, 1, false),
                call("by frequency", floats({6, 3}), integers({6}, 0, 4), 5, -1, true)
                    .without_gradcheck("the second derivative leaves the scaling out, as ATen's"),
                call("no indices", floats({0, 3}), integers({0}, 0, 4), 5, -1, false)},
      .large = {call("large", floats({2060, 65}), integers({2060}, 0, 300), 300, -1, false)}};
  table["_embedding_gradient_added"] = {
      .calls = {call("repeated rows", floats({5, 3}), floats({6, 3}), integers({6}, 0, 4), -1,
                     false),
                call("padded", floats({5, 4}), floats({2, 3, 4}), integers({2, 3}, 0, 4), 1, true)},
      .large = {call("large", floats({300, 65}), floats({2060, 65}), integers({2060}, 0, 300), -1,
                     false)}};
  table["index_select"] = {
      .calls = {call("rows", floats({4, 3}), 0, longs({2, 0, 2})),
                call("columns", floats({4, 3}), -1, longs({1})),
                call("no indices", floats({4, 3}), 0, longs({})),
                call("0-d", floats({}), 0, longs({0})),
                call("transposed", with_gaps(floats({4, 3})), 1, longs({2, 1}))},
      .large = {call("large", floats({300, 131}), 0, integers({1031}, 0, 300))}};
  table["index_add"] = {
      .calls = {call("rows", floats({4, 3}), 0, longs({2, 0, 2}), floats({3, 3}, 2)),
                call("scaled columns", floats({4, 3}), 1, longs({1, 1}), floats({4, 2}, 2))
                    .with("alpha", 0.5),
                call("nothing", floats({4, 3}), 0, longs({}), floats({0, 3}, 2))},
      .large = {
          call("large", floats({300, 131}), 0, integers({1031}, 0, 300), floats({1031, 131}, 2))}};
  table["gather"] = {.calls = {call("rows", floats({3, 4}), 0, integers({2, 4}, 0, 3)),
                               call("columns", floats({3, 4}), 1, integers({3, 5}, 0, 4)),
                               call("smaller index", floats({3, 4}), 1, integers({2, 2}, 0, 4)),
                               call("0-d", floats({}), 0, integers({}, 0, 1))},
                     .large = {call("large", floats({300, 131}), 0, integers({515, 131}, 0, 300))}};
  table["scatter_add"] = {
      .calls = {call("rows", floats({3, 4}), 0, integers({2, 4}, 0, 3), floats({2, 4}, 2)),
                call("columns", floats({3, 4}), 1, integers({3, 5}, 0, 4), floats({3, 5}, 2)),
                call("larger source", floats({3, 4}), 1, integers({2, 2}, 0, 4),
                     floats({3, 5}, 2))},
      .large = {call("large", floats({300, 131}), 0, integers({515, 131}, 0, 300),
                     floats({515, 131}, 2))}};
  table["nonzero"] = {.calls = {call("floats", floats({3, 4})), call("bools", flags({3, 4})),
                                call("0-d", integers({}, 1, 2)), call("empty", floats({0, 2}))}};
  table["masked_select"] = {.calls = {call("matrix", floats({3, 4}), flags({3, 4})),
                                      call("broadcast mask", floats({3, 4}), flags({4})),
                                      call("empty", floats({0}), flags({0}))}};
  table["masked_scatter"] = {
      .calls = {call("matrix", floats({3, 4}), flags({3, 4}), floats({12}, 2)),
                call("broadcast mask", floats({3, 4}), flags({4}), floats({3, 4}, 2))},
      .large = {call("large", floats({67, 1031}), flags({67, 1031}), floats({67, 1031}, 2))}};
  for (const char* op : {"tril", "triu"}) {
    table[op] = {
        .calls = {call("square", floats({4, 4})), call("wide", floats({3, 5}), 1),
                  call("below", floats({5, 3}), -1), call("batches", floats({2, 3, 3})),
                  call("empty", floats({0, 3})), call("transposed", with_gaps(floats({4, 3})))},
        .large = {call("large", floats({130, 517}))}};
  }
}

}  // namespace lockstep
