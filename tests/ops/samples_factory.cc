#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

OpSamples of_sizes() {
  return {.calls = {call("matrix", Dims{3, 4}), call("0-d", Dims{}), call("empty", Dims{0, 3}),
                    call("integers", Dims{3}).with("dtype", DType::kI64)},
          .large = {call("large", Dims{67, 1031})}};
}

OpSamples like() {
  return {.calls = {call("matrix", floats({3, 4})), call("0-d", floats({})),
                    call("transposed", floats({3, 4, 2})),
                    call("integers", floats({3})).with("dtype", DType::kI64)},
          .large = {call("large", floats({67, 1031}))}};
}

}  // namespace

void add_factory_samples(SampleTable& table) {
  for (const char* op : {"empty.memory_format", "zeros", "ones"}) table[op] = of_sizes();
  for (const char* op : {"empty_like", "zeros_like", "ones_like"}) table[op] = like();
  for (const char* op : {"empty.memory_format", "empty_like"}) table[op].unspecified_values = true;
  for (const char* op : {"new_empty", "new_zeros", "new_ones"}) {
    table[op] = {.calls = {call("matrix", integers({2}, 0, 9), Dims{3, 4}),
                           call("as float64", floats({2}), Dims{2}).with("dtype", DType::kF64)}};
  }
  table["new_full"] = {.calls = {call("matrix", floats({2}), Dims{3, 4}, 1.5)}};
  table["empty_strided"] = {
      .calls = {call("gaps", Dims{3, 4}, Dims{1, 5}), call("empty", Dims{0, 4}, Dims{4, 1})}};
  table["new_empty_strided"] = {.calls = {call("gaps", floats({2}), Dims{3, 4}, Dims{1, 5})}};
  table["empty_permuted"] = {.calls = {call("channels last", Dims{2, 3, 4, 5}, Dims{0, 2, 3, 1}),
                                       call("empty", Dims{0, 4}, Dims{1, 0}),
                                       call("0-d", Dims{}, Dims{})}};
  for (const char* op : {"new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}) {
    table[op].unspecified_values = true;
  }
  table["full"] = {.calls = {call("float", Dims{3, 4}, 1.5), call("integer", Dims{3}, 2),
                             call("bool", Dims{3}, true), call("0-d", Dims{}, 2.5),
                             call("as float64", Dims{2}, 1).with("dtype", DType::kF64)},
                   .large = {call("large", Dims{67, 1031}, 1.5)}};
  table["full_like"] = {.calls = {call("matrix", floats({3, 4}), 1.5), call("0-d", floats({}), 2),
                                  call("as bool", floats({3}), 1).with("dtype", DType::kBool)},
                        .large = {call("large", floats({67, 1031}), 1.5)}};
  table["scalar_tensor"] = {.calls = {call("float", 1.5), call("integer", 2),
                                      call("as int64", 2).with("dtype", DType::kI64)},
                            .large = {call("one element", 1.5)}};
  table["arange"] = {.calls = {call("integers", 5), call("floats", 3.5), call("nothing", 0)},
                     .large = {call("large", 70001.0)}};
  table["arange.start"] = {.calls = {call("integers", 2, 6), call("floats", 0.5, 3.0)},
                           .large = {call("large", 1, 70001.0)}};
  table["arange.start_step"] = {.calls = {call("integers", 2, 9, 3), call("backwards", 5, 0, -2),
                                          call("floats", 0.0, 1.0, 0.25),
                                          call("as float64", 0, 4, 1).with("dtype", DType::kF64)},
                                .large = {call("large", 0.0, 700.0, 0.01)}};
  table["linspace"] = {.calls = {call("floats", 0.0, 1.0, 5), call("backwards", 2, -1, 4),
                                 call("one", 3.5, 9, 1), call("none", 0, 1, 0),
                                 call("integers", 0, 7, 4).with("dtype", DType::kI64)}};
  table["eye"] = {.calls = {call("float", 3), call("integer", 2).with("dtype", DType::kI64),
                            call("nothing", 0)}};
  table["eye.m"] = {.calls = {call("wide", 2, 4), call("high", 3, 1)}};
}

}  // namespace lockstep
