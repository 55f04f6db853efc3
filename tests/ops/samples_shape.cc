#include "tests/ops/op_samples.h"

namespace lockstep {

void add_shape_samples(SampleTable& table) {
  table["cat"] = {
      .calls = {call("rows", Tensors{floats({2, 3}), floats({1, 3}, 2), floats({3, 3}, 3)}),
                call("columns", Tensors{floats({2, 3}), floats({2, 1}, 2)}, 1),
                call("one", Tensors{floats({2, 3})}, -1),
                call("with an empty one", Tensors{floats({0, 3}), floats({2, 3})}),
                call("promoted", Tensors{integers({2}, 0, 9), floats({3})}),
                call("transposed", Tensors{with_gaps(floats({4, 3})), floats({4, 2}, 2)}, 1)},
      .large = {call("large", Tensors{floats({67, 1031}), floats({40, 1031}, 2)}),
                call("large columns", Tensors{floats({67, 1031}), floats({67, 13}, 2)}, 1)}};
  table["stack"] = {.calls = {call("front", Tensors{floats({2, 3}), floats({2, 3}, 2)}),
                              call("back", Tensors{floats({3}), floats({3}, 2)}, -1),
                              call("0-d", Tensors{floats({}), floats({}, 2)})},
                    .large = {call("large", Tensors{floats({67, 515}), floats({67, 515}, 2)}, 1)}};
  table["slice_scatter"] = {
      .calls = {call("rows", floats({5, 3}), floats({2, 3}, 2), 0, 1, 3),
                call("steps", floats({2, 5}), floats({2, 2}, 2), 1, 0, 4, 2),
                call("nothing", floats({3}), floats({0}), 0, 2, 2),
                call("all", floats({2, 3}), floats({2, 3}, 2))},
      .large = {call("large", floats({67, 1031}), floats({30, 1031}, 2), 0, 10, 40)}};
  table["as_strided_backward"] = {.calls = {call("transposed", floats({4, 3}), Dims{3, 4},
                                                 Dims{4, 1}, 0, Dims{4, 3}, Dims{1, 4}, 0),
                                            call("overlapping", floats({3, 4}), Dims{6}, Dims{1}, 0,
                                                 Dims{3, 4}, Dims{1, 1}, 0)},
                                  .large = {call("large", floats({1000, 40}), Dims{1039}, Dims{1},
                                                 0, Dims{1000, 40}, Dims{1, 1}, 0)}};
  table["repeat_interleave.self_int"] = {
      .calls = {call("rows", floats({2, 3}), 2, 0), call("columns", floats({2, 3}), 3, -1),
                call("flattened", floats({2, 3}), 2), call("none", floats({2, 3}), 0, 1)}};
  table["flip"] = {
      .calls = {call("rows", floats({3, 4}), Dims{0}), call("both", floats({3, 4}), Dims{0, -1}),
                call("0-d", floats({}), Dims{}),
                call("transposed", with_gaps(floats({4, 3})), Dims{1})},
      .large = {call("large", floats({67, 1031}), Dims{1})}};
  table["repeat_interleave.Tensor"] = {
      .calls = {call("places", longs({2, 0, 3})), call("size given", longs({2, 0, 3}), 5)}};
  table["repeat_interleave.self_Tensor"] = {
      .calls = {call("columns", floats({2, 3}), longs({2, 0, 3}), 1),
                call("flattened", floats({3}), longs({2, 0, 3})),
                call("one number for all", floats({2, 3}), longs({2}), 0)}};
  table["narrow.Tensor"] = {.calls = {call("rows", floats({5, 3}), 0, integers({}, 1, 2), 3)}};
  table["narrow"] = {.calls = {call("rows", floats({5, 3}), 0, 1, 3),
                               call("columns", floats({2, 5}), -1, 2, 2),
                               call("nothing", floats({3}), 0, 3, 0)}};
  table["unbind.int"] = {.calls = {call("rows", floats({3, 4})), call("columns", floats({3, 2}), 1),
                                   call("vector", floats({3}))}};
  table["chunk"] = {.calls = {call("even", floats({4, 3}), 2), call("uneven", floats({2, 5}), 3, 1),
                              call("more than there are", floats({2}), 5)}};
}

}  // namespace lockstep
