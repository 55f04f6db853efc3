#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

void add_average_samples(SampleTable& table) {
  table["avg_pool2d"] = {
      .calls = {call("2x2", floats({1, 2, 4, 5}), Dims{2, 2}),
                call("overlapping", floats({2, 5, 4}), Dims{3, 2}, Dims{2, 1}, Dims{1, 1}),
                call("without padding", floats({1, 1, 5, 5}), Dims{3}, Dims{2}, Dims{1}, true,
                     false),
                call("ceil", floats({1, 1, 4, 4}), Dims{3}, Dims{2}, Dims{0}, true),
                call("own divisor", floats({1, 1, 4, 4}), Dims{2}, Dims{1}, Dims{0}, false, true,
                     3),
                call("no batch", floats({0, 2, 4, 4}), Dims{2}),
                call("integers", integers({1, 1, 4, 4}, -9, 10), Dims{2}, Dims{1}, Dims{1}),
                call("bfloat16", floats({1, 1, 4, 4}, 1, DType::kBF16), Dims{2})},
      .large = {call("large", floats({13, 7, 33, 21}), Dims{3}, Dims{2}, Dims{1})}};
  table["avg_pool2d_backward"] = {
      .calls = {call("2x2", floats({1, 2, 2, 2}), floats({1, 2, 4, 5}, 2), Dims{2, 2}, Dims{},
                     Dims{0}, false, true, kNone),
                call("overlapping", floats({1, 1, 3, 3}), floats({1, 1, 5, 5}, 2), Dims{3}, Dims{2},
                     Dims{1}, true, false, kNone)},
      .large = {call("large", floats({13, 7, 17, 11}), floats({13, 7, 33, 21}, 2), Dims{3}, Dims{2},
                     Dims{1}, false, true, kNone)}};
  table["avg_pool3d"] = {
      .calls = {call("2x2x2", floats({1, 1, 4, 2, 5}), Dims{2}),
                call("padded", floats({1, 3, 4, 3}), Dims{2, 3, 1}, Dims{1, 2, 1}, Dims{1, 1, 0},
                     true, false, -2)},
      .large = {call("large", floats({7, 5, 9, 13, 11}), Dims{2, 3, 3}, Dims{1}, Dims{1})}};
  table["avg_pool3d_backward"] = {
      .calls = {call("2x2x2", floats({1, 1, 2, 1, 2}), floats({1, 1, 4, 2, 5}, 2), Dims{2}, Dims{},
                     Dims{0}, false, true, kNone)},
      .large = {call("large", floats({7, 5, 4, 6, 5}), floats({7, 5, 9, 13, 11}, 2), Dims{2},
                     Dims{}, Dims{0}, false, true, kNone)}};
  table["avg_pool1d"] = {
      .calls = {call("batch", floats({2, 2, 7}), Dims{3}, Dims{2}, Dims{1}, true, false),
                call("no batch", floats({2, 6}), Dims{2})}};
}

void add_adaptive_samples(SampleTable& table) {
  table["_adaptive_avg_pool2d"] = {.calls = {call("to one", floats({2, 3, 3, 3}), Dims{1, 1}),
                                             call("uneven", floats({1, 2, 5, 4}), Dims{3, 3}),
                                             call("larger", floats({2, 2, 3}), Dims{3, 5}),
                                             call("no batch", floats({0, 2, 3, 3}), Dims{2})},
                                   .large = {call("large", floats({13, 7, 33, 21}), Dims{7, 5})}};
  table["_adaptive_avg_pool2d_backward"] = {
      .calls = {call("to one", floats({2, 3, 1, 1}), floats({2, 3, 3, 3}, 2)),
                call("uneven", floats({1, 2, 3, 3}), floats({1, 2, 5, 4}, 2))},
      .large = {call("large", floats({13, 7, 7, 5}), floats({13, 7, 33, 21}, 2))}};
  table["_adaptive_avg_pool3d"] = {
      .calls = {call("uneven", floats({1, 1, 3, 4, 5}), Dims{2, 3, 2}),
                call("no batch", floats({2, 3, 2, 4}), Dims{1})},
      .large = {call("large", floats({7, 5, 9, 13, 11}), Dims{4, 3, 2})}};
  table["_adaptive_avg_pool3d_backward"] = {
      .calls = {call("uneven", floats({1, 1, 2, 3, 2}), floats({1, 1, 3, 4, 5}, 2))},
      .large = {call("large", floats({7, 5, 4, 3, 2}), floats({7, 5, 9, 13, 11}, 2))}};
  table["adaptive_avg_pool1d"] = {.calls = {call("uneven", floats({2, 2, 7}), Dims{3})}};
  table["adaptive_avg_pool2d"] = {.calls = {call("uneven", floats({1, 2, 5, 4}), Dims{3, 3})}};
  table["adaptive_avg_pool3d"] = {.calls = {call("uneven", floats({1, 2, 3, 2, 4}), Dims{2})}};
}

void add_max_samples(SampleTable& table) {
  table["max_pool2d_with_indices"] = {
      .calls = {call("2x2", floats({1, 2, 4, 5}), Dims{2, 2}),
                call("overlapping", floats({2, 5, 5}), Dims{3}, Dims{2}, Dims{1}),
                call("dilated", floats({1, 1, 6, 6}), Dims{3, 2}, Dims{1}, Dims{1, 0}, Dims{2, 3}),
                call("ceil", floats({1, 1, 4, 4}), Dims{3}, Dims{2}, Dims{0}, Dims{1}, true),
                call("no batch", floats({0, 2, 4, 4}), Dims{2}),
                call("integers", integers({1, 1, 4, 4}, -9, 10), Dims{2}, Dims{1}, Dims{1}),
                call("bfloat16", floats({1, 1, 4, 4}, 1, DType::kBF16), Dims{2})},
      .large = {call("large", floats({13, 7, 33, 21}), Dims{3}, Dims{2}, Dims{1})}};
  table["max_pool2d_with_indices_backward"] = {
      .calls = {call("2x2", floats({1, 2, 2, 2}), floats({1, 2, 4, 5}, 2), Dims{2, 2}, Dims{},
                     Dims{0}, Dims{1}, false, integers({1, 2, 2, 2}, 0, 20)),
                call("overlapping", floats({2, 3, 3}), floats({2, 5, 5}, 2), Dims{3}, Dims{2},
                     Dims{1}, Dims{1}, false, integers({2, 3, 3}, 0, 25))},
      .large = {call("large", floats({13, 7, 17, 11}), floats({13, 7, 33, 21}, 2), Dims{3}, Dims{2},
                     Dims{1}, Dims{1}, false, integers({13, 7, 17, 11}, 0, 33 * 21))}};
  table["max_pool3d_with_indices"] = {
      .calls = {call("2x2x2", floats({1, 1, 4, 2, 5}), Dims{2}),
                call("padded", floats({1, 3, 4, 3}), Dims{2, 3, 1}, Dims{1, 2, 1}, Dims{1, 1, 0})},
      .large = {call("large", floats({7, 5, 9, 13, 11}), Dims{2, 3, 3}, Dims{1}, Dims{1})}};
  table["max_pool3d_with_indices_backward"] = {
      .calls = {call("2x2x2", floats({1, 1, 2, 1, 2}), floats({1, 1, 4, 2, 5}, 2), Dims{2}, Dims{},
                     Dims{0}, Dims{1}, false, integers({1, 1, 2, 1, 2}, 0, 40))},
      .large = {call("large", floats({7, 5, 4, 6, 5}), floats({7, 5, 9, 13, 11}, 2), Dims{2},
                     Dims{}, Dims{0}, Dims{1}, false, integers({7, 5, 4, 6, 5}, 0, 9 * 13 * 11))}};
  table["max_pool1d"] = {
      .calls = {call("batch", floats({2, 2, 7}), Dims{3}, Dims{2}, Dims{1}, Dims{1}, true),
                call("no batch", floats({2, 6}), Dims{2})}};
  table["max_pool2d"] = {.calls = {call("2x2", floats({1, 2, 4, 5}), Dims{2, 2})}};
  table["max_pool3d"] = {.calls = {call("2x2x2", floats({1, 1, 4, 2, 5}), Dims{2})}};
}

void add_even_and_random_windows(SampleTable& table) {
  table["adaptive_max_pool1d"] = {.calls = {call("batch", floats({2, 2, 7}), Dims{3}),
                                            call("no batch", floats({2, 6}), Dims{4})}};
  table["adaptive_max_pool2d"] = {
      .calls = {call("smaller", floats({1, 2, 4, 5}), Dims{2, 3}),
                call("larger", floats({2, 3, 2}), Dims{4}),
                call("no batch", floats({0, 2, 4, 4}), Dims{2}),
                call("integers", integers({1, 1, 4, 4}, -9, 10), Dims{2})},
      .large = {call("large", floats({13, 7, 33, 21}), Dims{5, 4})}};
  table["adaptive_max_pool3d"] = {
      .calls = {call("smaller", floats({1, 1, 4, 2, 5}), Dims{2, 1, 3}),
                call("no batch", floats({2, 3, 2, 4}), Dims{2})},
      .large = {call("large", floats({7, 5, 9, 13, 11}), Dims{3, 4, 2})}};
  const auto samples = [](IntList sizes) {
    return map_floats(floats(sizes, 3), [](double x) { return 0.5 + x / 4.3; });
  };
  table["fractional_max_pool2d"] = {
      .calls = {call("batch", floats({1, 2, 4, 5}), Dims{2}, Dims{2, 3}, samples({1, 2, 2})),
                call("no batch", floats({2, 5, 4}), Dims{2, 1}, Dims{3, 3}, samples({1, 2, 2})),
                call("one window", floats({1, 1, 3, 4}), Dims{3, 2}, Dims{1}, samples({1, 1, 2}))},
      .large = {call("large", floats({13, 7, 33, 21}), Dims{3, 2}, Dims{9, 7},
                     samples({13, 7, 2}))},
      .constants = {"random_samples"}};
  const auto places = [](IntList sizes, std::vector<int64_t> values) {
    const Tensor tensor = integers(sizes, 0, 1);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      tensor.data<int64_t>()[i] = values[static_cast<size_t>(i) % values.size()];
    }
    return tensor;
  };
  table["max_unpool2d"] = {
      .calls = {
          call("batch", floats({1, 2, 2, 2}), places({1, 2, 2, 2}, {0, 3, 8, 10}), Dims{3, 4}),
          call("no batch", floats({2, 1, 2}), places({2, 1, 2}, {1, 5}), Dims{2, 3})}};
  table["max_unpool3d"] = {
      .calls = {call("batch", floats({1, 1, 2, 1, 2}), places({1, 1, 2, 1, 2}, {0, 3, 8, 10}),
                     Dims{2, 2, 3}, Dims{2}, Dims{0}),
                call("no batch", floats({2, 1, 1, 2}), places({2, 1, 1, 2}, {1, 5}), Dims{1, 2, 3},
                     Dims{1, 2, 2}, Dims{0})}};
}

}  // namespace

void add_pool_samples(SampleTable& table) {
  add_average_samples(table);
  add_adaptive_samples(table);
  add_max_samples(table);
  add_even_and_random_windows(table);
}

}  // namespace lockstep
