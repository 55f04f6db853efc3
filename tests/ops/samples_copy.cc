#include "tests/ops/op_samples.h"

namespace lockstep {

void add_copy_samples(SampleTable& table) {
  table["copy"] = {
      .calls = {call("matrix", floats({3, 4}), floats({3, 4}, 2)),
                call("broadcast", floats({3, 4}), floats({4}, 2)),
                call("cast", floats({3, 4}), integers({3, 4}, -4, 5)),
                call("to integers", integers({3, 4}, 0, 1), floats({3, 4})),
                call("bfloat16", floats({3, 4}, 1, DType::kBF16), floats({3, 4})),
                call("0-d", floats({}), floats({}, 2)),
                call("empty", floats({0, 4}), floats({4}, 2)),
                call("transposed", with_gaps(floats({4, 3})), floats({4, 3}, 2))},
      .large = {call("large", floats({67, 1031}), floats({67, 1031}, 2)),
                call("large transposed", floats({67, 1031}), with_gaps(floats({67, 1031}, 2)))}};
  table["copy"].differs[DType::kBool] = "0.5 becomes true, but no other integer than 0";
  table["clone"] = {
      .calls = {call("matrix", floats({3, 4})), call("0-d", floats({})),
                call("empty", floats({0, 3})), call("transposed", with_gaps(floats({4, 3}))),
                call("row-major", with_gaps(floats({4, 3})))
                    .with("memory_format", MemoryFormat::kContiguous)},
      .large = {call("large", with_gaps(floats({67, 1031})))}};
  table["contiguous"] = {
      .calls = {call("already", floats({3, 4})), call("transposed", with_gaps(floats({4, 3})))}};
  table["_to_copy"] = {
      .calls = {call("same", floats({3, 4})),
                call("float64", floats({3, 4})).with("dtype", DType::kF64),
                call("bfloat16", floats({3, 4})).with("dtype", DType::kBF16),
                call("integers", floats({3, 4})).with("dtype", DType::kI64),
                call("from bools", flags({3, 4})).with("dtype", DType::kF32),
                call("transposed", with_gaps(floats({4, 3}))).with("dtype", DType::kF64)},
      .large = {call("large", floats({67, 1031})).with("dtype", DType::kF64)}};
  table["lift_fresh"] = {.calls = {call("matrix", floats({3, 4})), call("0-d", floats({}))}};
  table["fill.Tensor"] = {.calls = {call("matrix", floats({3, 4}), floats({}, 2)),
                                    call("integers", integers({3}, 0, 9), integers({}, 2, 3))}};
  table["fill.Scalar"] = {
      .calls = {call("matrix", floats({3, 4}), 1.5), call("0-d", floats({}), 2),
                call("empty", floats({0}), 2), call("integers", integers({3}, 0, 9), 7),
                call("transposed", with_gaps(floats({4, 3})), 0.5)},
      .large = {call("large", floats({67, 1031}), 1.5)}};
  table["zero"] = {.calls = {call("matrix", floats({3, 4})), call("integers", integers({3}, 1, 9)),
                             call("transposed", with_gaps(floats({4, 3})))},
                   .large = {call("large", floats({67, 1031}))}};
}

}  // namespace lockstep
