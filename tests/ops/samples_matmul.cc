#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// Numbers so far from 0 that the gelu of each, and of its multiples, is the number itself or 0.
Tensor far_floats(IntList sizes) {
  return map_floats(floats(sizes), [](double x) { return x < 0 ? 40 * x - 40 : 40 * x + 40; });
}
Tensor gelu_of_far(const Tensor& far) {
  return map_floats(far, [](double x) { return x < 0 ? 0 : x; });
}

void add_fused_linear_samples(SampleTable& table) {
  table["linear_gelu"] = {
      .calls = {call("matrix", floats({3, 4}), floats({5, 4}, 2), floats({5}, 3)),
                call("without bias", floats({3, 4}), floats({8, 4}, 2)),
                call("three dimensions", floats({2, 3, 4}), floats({5, 4}, 2), floats({5}, 3)),
                call("vector", floats({4}), floats({5, 4}, 2), floats({5}, 3)),
                call("no rows", floats({0, 4}), floats({5, 4}, 2), floats({5}, 3)),
                call("no inner size", floats({2, 0}), floats({3, 0}), floats({3}, 2))},
      .large = {call("large", floats({131, 260}), floats({190, 260}, 2), floats({190}, 3))}};
  table["_linear_factors"] = {.calls = {call("both", floats({3, 4}), floats({5, 4}, 2))}};
  table["_linear_add"] = {
      .calls = {call("matrix", floats({3, 5}, 4), floats({3, 4}), floats({5, 4}, 2),
                     floats({5}, 3)),
                call("without bias", floats({3, 5}, 4), floats({3, 4}), floats({5, 4}, 2)),
                call("three dimensions", floats({2, 3, 5}, 4), floats({2, 3, 4}), floats({5, 4}, 2),
                     floats({5}, 3)),
                call("no inner size", floats({2, 3}, 2), floats({2, 0}), floats({3, 0}),
                     floats({3}))},
      .large = {call("large", floats({131, 190}, 4), floats({131, 260}), floats({190, 260}, 2),
                     floats({190}, 3))}};
  table["linear_add"] = {.calls = table["_linear_add"].calls};
  const Tensor of = far_floats({3, 4});
  const Tensor batch_of = far_floats({2, 3, 4});
  table["_linear_of_gelu"] = {
      .calls = {call("matrix", gelu_of_far(of), of, floats({5, 4}, 2), floats({5}, 3),
                     floats({3, 5}, 4)),
                call("without bias", gelu_of_far(of), of, floats({5, 4}, 2), std::nullopt,
                     floats({3, 5}, 4)),
                call("product alone", gelu_of_far(of), of, floats({5, 4}, 2)),
                call("three dimensions", gelu_of_far(batch_of), batch_of, floats({5, 4}, 2),
                     floats({5}, 3))},
      .large = {call("large", floats({131, 260}), floats({131, 260}), floats({190, 260}, 2),
                     floats({190}, 3), floats({131, 190}, 4))},
      .no_gradcheck = "it takes value as a function of `of`; FusedOperators see it"};
  table["linear_of_gelu"] = {.calls = table["_linear_of_gelu"].calls,
                             .no_gradcheck = table["_linear_of_gelu"].no_gradcheck};
  using List = std::vector<Tensor>;
  table["linear_of_parts"] = {
      .calls = {call("matrix", floats({3, 4}),
                     List{floats({5, 4}, 2), floats({2, 4}, 3), floats({1, 4}, 4)}),
                call("three dimensions", floats({2, 3, 4}),
                     List{floats({5, 4}, 2), floats({2, 4}, 3)}),
                call("vector", floats({4}), List{floats({5, 4}, 2)}),
                call("no rows", floats({0, 4}), List{floats({5, 4}, 2), floats({2, 4}, 3)}),
                call("no outputs", floats({3, 4}), List{floats({0, 4}), floats({2, 4}, 3)}),
                call("no inner size", floats({2, 0}), List{floats({3, 0}), floats({1, 0})})},
      .large = {
          call("large", floats({131, 260}), List{floats({190, 260}, 2), floats({70, 260}, 3)})}};
  table["linear_of_parts_backward"] = {
      .calls = {call("matrix", floats({3, 8}),
                     List{floats({5, 4}, 2), floats({2, 4}, 3), floats({1, 4}, 4)}),
                call("three dimensions", floats({2, 3, 7}),
                     List{floats({5, 4}, 2), floats({2, 4}, 3)}),
                call("no rows", floats({0, 7}), List{floats({5, 4}, 2), floats({2, 4}, 3)})},
      .large = {
          call("large", floats({131, 260}), List{floats({190, 131}, 2), floats({70, 131}, 3)})}};
  table["linear_parameters_backward"] = {
      .calls = {call("matrix", floats({3, 5}), floats({3, 4}, 2)),
                call("no rows", floats({0, 5}), floats({0, 4})),
                call("no inputs", floats({3, 5}), floats({3, 0})),
                call("with gaps", with_gaps(floats({3, 5})), with_gaps(floats({3, 4}, 2)))},
      .large = {call("large", floats({260, 190}), floats({260, 131}, 2))}};
  table["linear_of_gelu_backward"] = {
      .calls = {call("matrix", floats({3, 5}), floats({5, 4}, 2), floats({3, 4}, 3)),
                call("three dimensions", floats({2, 3, 5}), floats({5, 4}, 2),
                     floats({2, 3, 4}, 3))},
      .large = {call("large", floats({131, 190}), floats({190, 260}, 2), floats({131, 260}, 3))}};
}

}  // namespace

void add_matmul_samples(SampleTable& table) {
  table["mm"] = {
      .calls = {call("matrices", floats({3, 4}), floats({4, 5}, 2)),
                call("transposed left", with_gaps(floats({3, 4})), floats({4, 2}, 2)),
                call("no rows", floats({0, 4}), floats({4, 2}, 2)),
                call("no inner size", floats({2, 0}), floats({0, 3}, 2)),
                call("integers", integers({2, 3}, -4, 5), integers({3, 2}, -4, 5, 2)),
                call("bfloat16", floats({3, 4}, 1, DType::kBF16), floats({4, 5}, 2, DType::kBF16))},
      .large = {call("large", floats({131, 260}), floats({260, 190}, 2))}};
  table["addmm"] = {
      .calls = {call("matrix", floats({3, 5}), floats({3, 4}, 2), floats({4, 5}, 3)),
                call("row", floats({5}), floats({3, 4}, 2), floats({4, 5}, 3)),
                call("0-d", floats({}), floats({3, 4}, 2), floats({4, 5}, 3)),
                call("scaled", floats({5}), floats({3, 4}, 2), floats({4, 5}, 3))
                    .with("beta", 0.5)
                    .with("alpha", -2),
                call("not read", floats({5}), floats({3, 4}, 2), floats({4, 5}, 3)).with("beta", 0),
                call("no inner size", floats({2, 3}), floats({2, 0}), floats({0, 3}))},
      .large = {call("large", floats({190}), floats({131, 260}, 2), floats({260, 190}, 3))}};
  table["bmm"] = {.calls = {call("batches", floats({2, 3, 4}), floats({2, 4, 2}, 2)),
                            call("transposed", with_gaps(floats({2, 3, 4})), floats({2, 4, 2}, 2)),
                            call("no batch", floats({0, 3, 4}), floats({0, 4, 2}, 2)),
                            call("no inner size", floats({2, 3, 0}), floats({2, 0, 2}, 2))},
                  .large = {call("large", floats({6, 65, 70}), floats({6, 70, 33}, 2))}};
  table["baddbmm"] = {
      .calls = {call("batches", floats({2, 3, 2}), floats({2, 3, 4}, 2), floats({2, 4, 2}, 3)),
                call("scaled row", floats({2}), floats({2, 3, 4}, 2), floats({2, 4, 2}, 3))
                    .with("beta", 0.5)
                    .with("alpha", 2)},
      .large = {call("large", floats({33}), floats({6, 65, 70}, 2), floats({6, 70, 33}, 3))}};
  table["mv"] = {.calls = {call("matrix", floats({3, 4}), floats({4}, 2)),
                           call("transposed", with_gaps(floats({3, 4})), floats({4}, 2)),
                           call("no columns", floats({3, 0}), floats({0}, 2))},
                 .large = {call("large", floats({515, 260}), floats({260}, 2))}};
  table["addmv"] = {
      .calls = {call("vector", floats({3}), floats({3, 4}, 2), floats({4}, 3)),
                call("scaled 0-d", floats({}), floats({3, 4}, 2), floats({4}, 3))
                    .with("beta", 0.5)
                    .with("alpha", 2)},
      .large = {call("large", floats({515}), floats({515, 260}, 2), floats({260}, 3))}};
  table["dot"] = {.calls = {call("vectors", floats({5}), floats({5}, 2)),
                            call("nothing", floats({0}), floats({0}, 2)),
                            call("strided", with_gaps(floats({4})), floats({4}, 2))},
                  .large = {call("large", floats({70000}), floats({70000}, 2))}};
  table["matmul"] = {
      .calls = {call("vectors", floats({4}), floats({4}, 2)),
                call("row", floats({4}), floats({4, 3}, 2)),
                call("column", floats({3, 4}), floats({4}, 2)),
                call("matrices", floats({3, 4}), floats({4, 2}, 2)),
                call("batch and matrix", floats({2, 3, 4}), floats({4, 2}, 2)),
                call("matrix and batch", floats({3, 4}), floats({2, 4, 2}, 2)),
                call("broadcast batches", floats({2, 1, 2, 3}), floats({2, 3, 2}, 2)),
                call("batch and vector", floats({2, 3, 4}), floats({4}, 2)),
                call("vector and batch", floats({3}), floats({2, 3, 2}, 2))}};
  table["linear"] = {
      .calls = {call("matrix", floats({3, 4}), floats({5, 4}, 2), floats({5}, 3)),
                call("without bias", floats({3, 4}), floats({5, 4}, 2)),
                call("three dimensions", floats({2, 3, 4}), floats({5, 4}, 2), floats({5}, 3)),
                call("vector", floats({4}), floats({5, 4}, 2), floats({5}, 3)),
                call("transposed weight", floats({3, 4}), with_gaps(floats({5, 4})))}};
  add_fused_linear_samples(table);
}

}  // namespace lockstep
