#include "core/ops/pointwise/pointwise.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// Samples of operators whose second argument is a dimension.
OpSamples along_dim() {
  return {.calls = {call("rows", floats({3, 5}), 1), call("columns", floats({3, 5}), 0),
                    call("middle", floats({2, 3, 4}), -2), call("0-d", floats({}), 0),
                    call("integers", integers({3, 5}, -4, 5), 1),
                    call("transposed", with_gaps(floats({4, 3})), 1)},
          .large = {call("large rows", floats({67, 1031}), 1),
                    call("large columns", floats({67, 1031}), 0)}};
}

OpSamples chosen(int64_t k) {
  OpSamples samples = along_dim();
  for (auto* calls : {&samples.calls, &samples.large}) {
    for (Sample& sample : *calls) {
      const bool one = sample.what == "0-d";
      sample.arguments.insert(sample.arguments.begin() + 1, owned_value(one ? 1 : k));
    }
  }
  return samples;
}

/// A vector q of three quantiles; no rank is near an integer.
Tensor three_quantiles() {
  return map_floats(floats({3}), [](double x) { return 0.5 + x / 4.1; });
}

void add_extremes_and_quantiles(SampleTable& table) {
  for (const char* op : {"cummax", "cummin"}) {
    table[op] = along_dim();
    table[op].calls.push_back(call("bools", flags({7}), 0));
    table[op].calls.push_back(call("nothing", floats({2, 0}), 1));
  }
  for (const std::string op : {"quantile", "nanquantile"}) {
    for (const char* interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}) {
      table[op].calls.push_back(call(interpolation, floats({3, 5}), three_quantiles(), 1)
                                    .with("interpolation", interpolation));
    }
    table[op].calls.push_back(call("all", floats({3, 5}), floats({}, 1) * 0.1 + 0.4));
    table[op].calls.push_back(call("kept", floats({2, 3, 4}), three_quantiles(), 1, true));
    table[op].calls.push_back(call("all kept", floats({3, 4}), three_quantiles(), Value(), true));
    table[op].calls.push_back(call("0-d", floats({}), three_quantiles(), 0));
    table[op + ".scalar"] = {
        .calls = {call("all", floats({3, 5}), 0.3), call("columns", floats({3, 5}), 0.7, 0, true)}};
  }
  table["histc"] = {.calls = {call("range of elements", floats({3, 5}), 4),
                              call("given", floats({3, 5}), 3, -1, 1), call("0-d", floats({}), 3),
                              call("empty", floats({0}), 5)},
                    .large = {call("large", floats({67, 1031}), 50)}};
}

}  // namespace

void add_sort_samples(SampleTable& table) {
  for (const char* op : {"sort", "median.dim", "nanmedian.dim", "mode"}) table[op] = along_dim();
  table["sort"].calls.push_back(call("descending", floats({3, 5}), 1, true));
  table["sort"].calls.push_back(call("bools", flags({7}), 0));
  table["sort"].calls.push_back(call("nothing", floats({0}), 0));
  table["sort.stable"] = {
      .calls = {call("rows", floats({3, 5}), true, 1), call("unsaid", floats({5}), std::nullopt)}};
  table["argsort"] = {.calls = {call("rows", floats({3, 5}), 1),
                                call("descending", integers({3, 5}, 0, 3), 0, true)}};
  table["argsort.stable"] = {.calls = {call("rows", floats({3, 5}), true, 1)}};
  table["topk"] = chosen(2);
  table["topk"].calls.push_back(call("smallest", floats({3, 5}), 3, 1, false));
  table["topk"].calls.push_back(call("unsorted", floats({3, 5}), 3, 1, true, false));
  table["topk"].calls.push_back(call("none", floats({3, 5}), 0));
  table["kthvalue"] = chosen(2);
  table["kthvalue"].calls.push_back(call("kept", floats({3, 5}), 4, -1, true));
  for (const char* op : {"median", "nanmedian"}) {
    table[op] = {.calls = {call("matrix", floats({3, 5})), call("even", floats({4})),
                           call("0-d", floats({})), call("integers", integers({5}, -4, 5)),
                           call("nothing", floats({0})).without_gradcheck("the result is NaN"),
                           call("transposed", with_gaps(floats({4, 3})))},
                 .large = {call("large", floats({67, 1031}))}};
  }
  const Tensor sequence = longs({1, 3, 5, 5, 9});
  table["searchsorted.Tensor"] = {
      .calls = {call("left", sequence, integers({3, 4}, 0, 11)),
                call("right", sequence, integers({3, 4}, 0, 11)).with("right", true),
                call("side", sequence, integers({4}, 0, 11)).with("side", "right"),
                call("int32", sequence, integers({4}, 0, 11)).with("out_int32", true),
                call("sorter", longs({5, 1, 9}), integers({4}, 0, 11))
                    .with("sorter", longs({1, 0, 2})),
                call("0-d", sequence, integers({}, 3, 4)),
                call("rows", with_gaps(integers({1, 5}, 0, 1)), integers({1, 3}, -1, 2))},
      .large = {call("large", sequence, integers({67, 1031}, 0, 11))}};
  table["searchsorted.Scalar"] = {
      .calls = {call("number", sequence, Scalar(5)), call("fraction", sequence, Scalar(2.5))}};
  table["bucketize.Tensor"] = {
      .calls = {call("left", integers({3, 4}, 0, 11), sequence),
                call("right", integers({4}, 0, 11), sequence, true, true)}};
  table["bucketize.Scalar"] = {
      .calls = {call("number", Scalar(5), sequence), call("fraction", Scalar(2.5), sequence)}};
  table["bincount"] = {
      .calls = {call("counts", integers({12}, 0, 5)), call("nothing", integers({0}, 0, 5)),
                call("weights", integers({12}, 0, 5), floats({12})),
                call("integer weights", integers({12}, 0, 5), integers({12}, 0, 5)),
                call("longer", integers({4}, 0, 5), std::nullopt, 9)}};
  for (const DType half : {DType::kF16, DType::kBF16}) {
    table["bincount"].differs[half] = "as in ATen, sums of half floats are float64";
  }
  add_extremes_and_quantiles(table);
}

}  // namespace lockstep
