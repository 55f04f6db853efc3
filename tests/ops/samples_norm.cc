#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// Mean and 1 / standard deviation need only have the right shape and be positive.
Sample layer_norm_backward(std::string what, BoolList mask) {
  return call(std::move(what), floats({3, 8}), floats({3, 8}, 2), Dims{8}, floats({3, 1}, 3),
              positives({3, 1}), positives({8}, 2), floats({8}, 4), mask);
}

/// `sizes` is [n, channels, positions].
Sample group_norm_backward(std::string what, Dims sizes, int64_t groups, BoolList mask) {
  const Dims statistics{sizes[0], groups};
  return call(std::move(what), floats(sizes), floats(sizes, 2), floats(statistics, 3),
              positives(statistics), positives({sizes[1]}, 2), sizes[0], sizes[1], sizes[2], groups,
              mask);
}

void add_group_norm_samples(SampleTable& table) {
  table["group_norm"] = {
      .calls = {call("images", floats({2, 4, 2, 3}), 2, positives({4}), floats({4}, 2)),
                call("without weight", floats({2, 4, 3}), 4), call("rows", floats({3, 4}), 2),
                call("transposed", with_gaps(floats({2, 4, 3})), 2, positives({4}))}};
  table["_fused_group_norm"] = {
      .calls =
          {call("parameters", floats({2, 4, 3}), positives({4}), floats({4}, 2), 2, 4, 3, 2, kEps),
           call("without weight", floats({2, 4, 3}), std::nullopt, std::nullopt, 2, 4, 3, 1, kEps),
           call("nothing", floats({0, 4, 3}), positives({4}), floats({4}, 2), 0, 4, 3, 2, kEps)},
      .large = {call("large", floats({7, 12, 1031}), positives({12}), floats({12}, 2), 7, 12, 1031,
                     3, kEps)}};
  table["native_group_norm"] = {.calls = {call("parameters", floats({2, 4, 3}), positives({4}),
                                               floats({4}, 2), 2, 4, 3, 2, kEps)}};
  table["native_group_norm_backward"] = {
      .calls = {group_norm_backward("all", {2, 4, 3}, 2, {true, true, true}),
                group_norm_backward("input only", {2, 4, 3}, 1, {true, false, false}),
                group_norm_backward("parameters", {2, 4, 3}, 4, {false, true, true})},
      .large = {group_norm_backward("large", {7, 12, 1031}, 3, {true, true, true})}};
}

const std::map<DType, std::string> kWideStreams = {
    {DType::kBF16, "a stream is at least as wide as float32"},
    {DType::kF16, "a stream is at least as wide as float32"}};

void add_stream_norm_samples(SampleTable& table) {
  table["stream_norm"] = {
      .calls =
          {call("layer norm", floats({3, 8}), Dims{8}, positives({8}), floats({8}, 2), kEps, true),
           call("RMS norm", floats({2, 3, 4}), Dims{3, 4}, positives({3, 4}), kNone, kEps, false),
           call("without parameters", floats({3, 8}), Dims{8}, kNone, kNone, kEps, true),
           call("no rows", floats({0, 8}), Dims{8}, positives({8}), floats({8}, 2), kEps, true)},
      .large = {call("large", floats({515, 131}), Dims{131}, positives({131}), floats({131}, 2),
                     kEps, true)},
      .refuses = kWideStreams};
  table["stream_sum_norm"] = {
      .calls = {call("layer norm", floats({3, 8}), floats({3, 8}, 3), Dims{8}, positives({8}),
                     floats({8}, 2), kEps, true),
                call("RMS norm", floats({2, 3, 4}), floats({2, 3, 4}, 3), Dims{3, 4},
                     positives({3, 4}), kNone, kEps, false),
                call("without parameters", floats({3, 8}), floats({3, 8}, 3), Dims{8}, kNone, kNone,
                     kEps, true)},
      .large = {call("large", floats({515, 131}), floats({515, 131}, 3), Dims{131},
                     positives({131}), floats({131}, 2), kEps, true)},
      .refuses = kWideStreams};
  const auto backward = [](std::string what, Value carried, Value mean, Value weight,
                           BoolList mask) {
    return call(std::move(what), floats({3, 8}), carried, floats({3, 8}, 2), Dims{8}, mean,
                positives({3, 1}), weight, kNone, mask);
  };
  const Value absent;
  table["stream_norm_backward"] = {
      .calls = {backward("layer norm", Value(floats({3, 8}, 5)), Value(floats({3, 1}, 3)),
                         Value(positives({8}, 2)), {true, false, true, true}),
                backward("RMS norm", Value(floats({3, 8}, 5)), absent, Value(positives({8}, 2)),
                         {true, false, true, false}),
                backward("branch too", absent, Value(floats({3, 1}, 3)), absent,
                         {true, true, false, false}),
                backward("parameters", absent, Value(floats({3, 1}, 3)), Value(positives({8}, 2)),
                         {false, false, true, true})},
      .large = {call("large", floats({515, 131}), floats({515, 131}, 5), floats({515, 131}, 2),
                     Dims{131}, floats({515, 1}, 3), positives({515, 1}), positives({131}, 2),
                     kNone, BoolList{true, true, true, true})},
      .no_gradcheck =
          "it takes mean and rstd as functions of the input; gradgradcheck of stream_norm sees it",
      .refuses = kWideStreams};
}

}  // namespace

void add_norm_samples(SampleTable& table) {
  table["layer_norm"] = {
      .calls = {call("rows", floats({3, 8}), Dims{8}, positives({8}), floats({8}, 2)),
                call("two dimensions", floats({2, 3, 4}), Dims{3, 4}, positives({3, 4}),
                     floats({3, 4}, 2)),
                call("without weight", floats({3, 8}), Dims{8}),
                call("without bias", floats({3, 8}), Dims{8}, positives({8})),
                call("transposed", with_gaps(floats({3, 8})), Dims{8}, positives({8}))}};
  table["native_layer_norm"] = {
      .calls = {call("rows", floats({3, 8}), Dims{8}, positives({8}), floats({8}, 2), kEps),
                call("two dimensions", floats({2, 3, 4}), Dims{3, 4}, positives({3, 4}),
                     floats({3, 4}, 2), kEps),
                call("without weight", floats({3, 8}), Dims{8}, std::nullopt, std::nullopt, kEps),
                call("no rows", floats({0, 8}), Dims{8}, positives({8}), floats({8}, 2), kEps)},
      .large = {
          call("large", floats({515, 131}), Dims{131}, positives({131}), floats({131}, 2), kEps)}};
  table["native_layer_norm_backward"] = {
      .calls = {layer_norm_backward("all", {true, true, true}),
                layer_norm_backward("input only", {true, false, false}),
                layer_norm_backward("weight and bias", {false, true, true})},
      .large = {call("large", floats({515, 131}), floats({515, 131}, 2), Dims{131},
                     floats({515, 1}, 3), positives({515, 1}), positives({131}, 2),
                     floats({131}, 4), BoolList{true, true, true})}};
  table["native_layer_norm_backward"].no_gradcheck =
      "it takes mean and rstd as functions of the input; gradgradcheck of native_layer_norm sees "
      "it";
  table["rms_norm"] = {.calls = {call("rows", floats({3, 8}), Dims{8}, positives({8}), kEps),
                                 call("two dimensions", floats({2, 3, 4}), Dims{3, 4}),
                                 call("default eps", floats({3, 8}), Dims{8}, positives({8}))}};
  table["_fused_rms_norm"] = {
      .calls = {call("rows", floats({3, 8}), Dims{8}, positives({8}), kEps),
                call("without weight", floats({3, 8}), Dims{8}, std::nullopt, kEps),
                call("no rows", floats({0, 8}), Dims{8}, positives({8}), kEps)},
      .large = {call("large", floats({515, 131}), Dims{131}, positives({131}), kEps)}};
  table["_fused_rms_norm_backward"] = {
      .calls = {call("both", floats({3, 8}), floats({3, 8}, 2), Dims{8}, positives({3, 1}),
                     positives({8}, 2), BoolList{true, true}),
                call("input only", floats({3, 8}), floats({3, 8}, 2), Dims{8}, positives({3, 1}),
                     positives({8}, 2), BoolList{true, false})},
      .large = {call("large", floats({515, 131}), floats({515, 131}, 2), Dims{131},
                     positives({515, 1}), positives({131}, 2), BoolList{true, true})},
      .no_gradcheck =
          "it takes rstd as a function of the input; gradgradcheck of _fused_rms_norm sees it"};
  table["_fused_rms_norm_backward"].statistics = {"rstd"};
  add_group_norm_samples(table);
  add_stream_norm_samples(table);
}

}  // namespace lockstep
