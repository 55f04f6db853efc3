#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// Declares that results differ by dtype: each draws as many random bits as the dtype holds.
void draw_by_dtype(OpSamples& samples) {
  for (int i = 0; i < kDTypeCount; ++i) {
    samples.differs[static_cast<DType>(i)] = "draws as many random bits as it holds";
  }
}

}  // namespace

void add_random_samples(SampleTable& table) {
  for (const char* op : {"rand.generator", "randn.generator"}) {
    table[op] = {.calls = {call("matrix", Dims{3, 5}, std::nullopt),
                           call("0-d", Dims{}, std::nullopt),
                           call("empty", Dims{0, 3}, std::nullopt),
                           call("float64", Dims{5}, std::nullopt).with("dtype", DType::kF64)}};
  }
  for (const char* op : {"rand", "randn"}) {
    table[op] = {.calls = {call("matrix", Dims{3, 5}), call("0-d", Dims{})}};
  }
  for (const char* op : {"rand_like", "randn_like"}) {
    table[op] = {.calls = {call("matrix", floats({3, 5})),
                           call("float64", floats({4})).with("dtype", DType::kF64)}};
  }
  table["random.from"] = {
      .calls = {call("some", integers({3, 5}, 0, 9), 2, 7), call("negative", floats({3, 5}), -3, 7),
                call("one", floats({4}), 2, 3), call("all", integers({4}, 0, 9), 0, std::nullopt)},
      .large = {call("large", integers({67, 1031}, 0, 9), -100, 1000)}};
  table["randint"] = {.calls = {call("matrix", 9, Dims{3, 5})}};
  table["randint.low"] = {.calls = {call("matrix", -2, 9, Dims{3, 5}),
                                    call("floats", 2, 9, Dims{4}).with("dtype", DType::kF32)}};
  table["randint.generator"] = {.calls = {call("matrix", 9, Dims{3, 5}, std::nullopt)}};
  table["randint.low_generator"] = {.calls = {call("matrix", 1, 9, Dims{3, 5}, std::nullopt)}};
  table["randint_like"] = {.calls = {call("matrix", integers({3, 5}, 0, 2), 9)}};
  table["randint_like.low_dtype"] = {.calls = {call("matrix", floats({3, 5}), -3, 9)}};
  table["randint_like.Tensor"] = {
      .calls = {
          call("integers", integers({3, 5}, 0, 2), integers({}, 9, 10)),
          call("float bound", floats({3, 5}), map_floats(floats({}), [](double) { return 2.7; }))}};
  table["randint_like.Tensor_generator"] = {
      .calls = {call("matrix", floats({3, 5}), integers({}, 9, 10), std::nullopt)}};
  table["randperm"] = {.calls = {call("ten", 10), call("one", 1), call("none", 0)},
                       .large = {call("large", 70001)}};
  for (const char* op : {"uniform", "normal"}) {
    table[op] = {.calls = {call("matrix", floats({3, 5})), call("0-d", floats({})),
                           call("scaled", floats({7}), 1.0, 3.0),
                           call("transposed", with_gaps(floats({4, 3})))},
                 .large = {call("large", floats({67, 1031}))}};
  }
  table["exponential"] = {.calls = {call("matrix", floats({3, 5})), call("0-d", floats({})),
                                    call("rate", floats({7}), 3.0)}};
  table["multinomial"] = {.calls = {call("one", positives({5}), 1),
                                    call("some", positives({2, 5}), 3),
                                    call("with replacement", positives({2, 3}), 7, true)}};
  table["bernoulli.p"] = {
      .calls = {call("matrix", floats({3, 5}), 0.3), call("never", floats({4}), 0.0),
                call("always", floats({4}), 1.0),
                call("transposed", with_gaps(floats({4, 3})), 0.5)},
      .large = {call("large", floats({67, 1031}), 0.3)}};
  table["dropout"] = {.calls = {call("training", floats({3, 5}), 0.4, true),
                                call("evaluating", floats({3, 5}), 0.4, false),
                                call("all", floats({4}), 1.0, true)}};
  table["native_dropout"] = {.calls = {call("training", floats({3, 5}), 0.4, true),
                                       call("evaluating", floats({3, 5}), 0.4, false),
                                       call("empty", floats({0}), 0.4, true)},
                             .large = {call("large", floats({67, 1031}), 0.4, true)}};
  table["native_dropout_backward"] = {
      .calls = {call("matrix", floats({3, 5}), flags({3, 5}), 1.5),
                call("0-d", floats({}), flags({}), 2.0)},
      .large = {call("large", floats({67, 1031}), flags({67, 1031}), 1.5)}};
  const Tensor chances = map_floats(positives({3, 5}), [](double x) { return x / 2.5; });
  table["bernoulli"] = {.calls = {call("matrix", chances), call("empty", floats({0}))}};
  table["bernoulli.Tensor"] = {.calls = {call("matrix", floats({3, 5}), chances)}};
  table["random"] = {.calls = {call("floats", floats({3, 5})), call("integers", longs({1, 2}))}};
  table["random.to"] = {.calls = {call("floats", floats({3, 5}), 7)}};
  table["randperm.generator"] = {.calls = {call("ten", 10, std::nullopt)},
                                 .large = {call("large", 70001, std::nullopt)}};
  for (const char* op : {"rand_like.generator", "randn_like.generator"}) {
    table[op] = {.calls = {call("matrix", floats({3, 5}), std::nullopt)}};
  }
  table["randint_like.generator"] = {.calls = {call("matrix", floats({3, 5}), 9, std::nullopt)}};
  table["randint_like.low_generator_dtype"] = {
      .calls = {call("matrix", floats({3, 5}), -3, 9, std::nullopt)}};
  table["normal.Tensor_Tensor"] = {.calls = {call("matrices", floats({3, 5}), positives({3, 5})),
                                             call("broadcast", floats({3, 1}), positives({5}))}};
  table["normal.Tensor_float"] = {.calls = {call("matrix", floats({3, 5}), 0.5)}};
  table["normal.float_Tensor"] = {.calls = {call("matrix", 1.5, positives({3, 5}))}};
  table["normal.float_float"] = {.calls = {call("matrix", 1.5, 0.5, Dims{3, 5})}};
  for (const char* op :
       {"rand", "rand.generator", "randn", "randn.generator", "rand_like", "randn_like",
        "rand_like.generator", "randn_like.generator", "uniform", "normal", "normal.Tensor_Tensor",
        "normal.Tensor_float", "normal.float_Tensor", "normal.float_float", "random", "bernoulli",
        "bernoulli.Tensor", "exponential"}) {
    draw_by_dtype(table[op]);
  }
}

}  // namespace lockstep
