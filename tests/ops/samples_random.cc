#include "tests/ops/op_samples.h"

namespace lockstep {

void add_random_samples(SampleTable& table) {
  for (const char* op : {"rand.generator", "randn.generator"}) {
    table[op] = {.calls = {call("matrix", Dims{3, 5}, std::nullopt),
                           call("0-d", Dims{}, std::nullopt),
                           call("empty", Dims{0, 3}, std::nullopt),
                           call("float64", Dims{5}, std::nullopt).with("dtype", DType::kF64)}};
  }
  table["randperm"] = {.calls = {call("ten", 10), call("one", 1), call("none", 0)},
                       .large = {call("large", 70001)}};
  for (const char* op : {"uniform", "normal"}) {
    table[op] = {.calls = {call("matrix", floats({3, 5})), call("0-d", floats({})),
                           call("scaled", floats({7}), 1.0, 3.0),
                           call("transposed", with_gaps(floats({4, 3})))},
                 .large = {call("large", floats({67, 1031}))}};
  }
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
}

}  // namespace lockstep
