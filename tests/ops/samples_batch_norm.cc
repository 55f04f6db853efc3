#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

constexpr double kMomentum = 0.3;

/// Statistics need only have the right shape and be positive.
Sample batch_norm_backward(std::string what, bool train, BoolList mask) {
  const Value mean = floats({3}, 3), deviation = positives({3}, 4);
  return call(std::move(what), floats({2, 3, 4}), floats({2, 3, 4}, 2), positives({3}, 2),
              train ? Value() : mean, train ? Value() : deviation, train ? mean : Value(),
              train ? deviation : Value(), train, kEps, mask);
}

}  // namespace

void add_batch_norm_samples(SampleTable& table) {
  table["_fused_batch_norm"] = {
      .calls = {call("images", floats({2, 3, 2, 3}), positives({3}), floats({3}, 2), floats({3}, 3),
                     positives({3}, 4), kMomentum, kEps),
                call("rows", floats({5, 4}), positives({4}), floats({4}, 2), kNone, kNone,
                     kMomentum, kEps),
                call("without weight", floats({2, 3, 4}), kNone, kNone, floats({3}, 3),
                     positives({3}, 4), kMomentum, kEps),
                call("nothing", floats({0, 3, 2}), positives({3}), floats({3}, 2), floats({3}, 3),
                     positives({3}, 4), kMomentum, kEps),
                call("bfloat16", floats({2, 3, 4}, 1, DType::kBF16), positives({3}), floats({3}, 2),
                     floats({3}, 3), positives({3}, 4), kMomentum, kEps)},
      .large = {call("large images", floats({17, 37, 13, 11}), positives({37}), floats({37}, 2),
                     floats({37}, 3), positives({37}, 4), kMomentum, kEps),
                call("large rows", floats({515, 131}), positives({131}), floats({131}, 2),
                     floats({131}, 3), positives({131}, 4), kMomentum, kEps)},
      .constants = {"running_mean", "running_var"}};
  table["_native_batch_norm_legit_no_training"] = {
      .calls = {call("images", floats({2, 3, 2, 3}), positives({3}), floats({3}, 2), floats({3}, 3),
                     positives({3}, 4), kMomentum, kEps),
                call("rows without weight", floats({5, 4}), kNone, kNone, floats({4}, 3),
                     positives({4}, 4), kMomentum, kEps)},
      .large = {call("large", floats({17, 37, 13, 11}), positives({37}), floats({37}, 2),
                     floats({37}, 3), positives({37}, 4), kMomentum, kEps)},
      .constants = {"running_mean", "running_var"}};
  table["native_batch_norm_backward"] = {
      .calls = {batch_norm_backward("training", true, {true, true, true}),
                batch_norm_backward("input only", true, {true, false, false}),
                batch_norm_backward("weight and bias", true, {false, true, true}),
                batch_norm_backward("running statistics", false, {true, true, true})},
      .large = {call("large images", floats({17, 37, 13, 11}), floats({17, 37, 13, 11}, 2),
                     positives({37}, 2), kNone, kNone, floats({37}, 3), positives({37}, 4), true,
                     kEps, BoolList{true, true, true}),
                call("large rows", floats({515, 131}), floats({515, 131}, 2), positives({131}, 2),
                     kNone, kNone, floats({131}, 3), positives({131}, 4), true, kEps,
                     BoolList{true, true, true})},
      .no_gradcheck =
          "it takes the statistics as functions of the input; gradgradcheck of _fused_batch_norm "
          "sees it"};
  table["native_batch_norm_backward"].no_half_gradients =
      "it is made of many operators, each of which rounds";
  table["_native_batch_norm_legit"] = {
      .calls = {call("training", floats({2, 3, 2, 3}), positives({3}), floats({3}, 2),
                     floats({3}, 3), positives({3}, 4), true, kMomentum, kEps),
                call("running statistics", floats({2, 3, 4}), kNone, kNone, floats({3}, 3),
                     positives({3}, 4), false, kMomentum, kEps)}};
  table["_native_batch_norm_legit.no_stats"] = {
      .calls = {call("training", floats({2, 3, 4}), positives({3}), floats({3}, 2), true, kMomentum,
                     kEps)}};
  // Training would write the running statistics, which these schemas do not declare: omitted there.
  table["native_batch_norm"] = {
      .calls = {call("training", floats({2, 3, 4}), positives({3}), floats({3}, 2), kNone, kNone,
                     true, kMomentum, kEps),
                call("running statistics", floats({2, 3, 4}), positives({3}), floats({3}, 2),
                     floats({3}, 3), positives({3}, 4), false, kMomentum, kEps)},
      .constants = {"running_mean", "running_var"}};
  table["batch_norm"] = {
      .calls = {call("training", floats({2, 3, 2, 3}), positives({3}), floats({3}, 2), kNone, kNone,
                     true, kMomentum, kEps, true),
                call("running statistics", floats({4, 3}), kNone, kNone, floats({3}, 3),
                     positives({3}, 4), false, kMomentum, kEps, true)},
      .constants = {"running_mean", "running_var"}};
}

}  // namespace lockstep
