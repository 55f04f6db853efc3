#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

constexpr int kNoReduction = 0;
constexpr int kMean = 1;
constexpr int kSum = 2;
constexpr int kIgnore = -100;

OpSamples softmax() {
  return {.calls = {call("rows", floats({3, 5}), 1), call("columns", floats({3, 5}), 0),
                    call("middle", floats({2, 3, 4}), -2), call("0-d", floats({}), 0),
                    call("empty", floats({0, 3}), 1),
                    call("transposed", with_gaps(floats({4, 3})), 1)}};
}

OpSamples half_to_float(OpSamples samples) {
  for (Sample& sample : samples.calls) sample.arguments.push_back(owned_value(false));
  samples.large = {call("large rows", floats({67, 1031}), 1, false),
                   call("large columns", floats({67, 1031}), 0, false)};
  return samples;
}

OpSamples softmax_backward() {
  return {.calls = {call("rows", floats({3, 5}), floats({3, 5}, 2), 1, DType::kF32),
                    call("columns", floats({3, 5}), floats({3, 5}, 2), 0, DType::kF32),
                    call("0-d", floats({}), floats({}, 2), 0, DType::kF32)},
          .large = {call("large", floats({67, 1031}), floats({67, 1031}, 2), 1, DType::kF32)}};
}

OpSamples class_loss() {
  return {
      .calls = {call("mean", floats({4, 3}), integers({4}, 0, 3)),
                call("sum", floats({4, 3}), integers({4}, 0, 3), std::nullopt, kSum),
                call("each", floats({4, 3}), integers({4}, 0, 3), std::nullopt, kNoReduction),
                call("weighted", floats({4, 3}), integers({4}, 0, 3), positives({3}), kMean),
                call("ignored class", floats({4, 3}), integers({4}, 0, 3), std::nullopt, kMean, 1),
                call("one row", floats({3}), integers({}, 1, 2)),
                call("transposed", with_gaps(floats({4, 3})), integers({4}, 0, 3))},
      .constants = {"weight"}};
}

OpSamples pair_loss() {
  OpSamples samples;
  for (const int reduction : {kNoReduction, kMean, kSum}) {
    samples.calls.push_back(call("reduction " + std::to_string(reduction), floats({3, 4}),
                                 floats({3, 4}, 2), reduction));
  }
  samples.calls.push_back(call("broadcast", floats({3, 4}), floats({4}, 2)));
  samples.calls.push_back(call("0-d", floats({}), floats({}, 2)));
  samples.calls.push_back(call("transposed", with_gaps(floats({3, 4})), floats({3, 4}, 2)));
  return samples;
}

OpSamples pair_loss_backward(std::optional<double> width) {
  const auto sample = [width](std::string what, const Tensor& grad, int reduction) {
    Sample made = call(std::move(what), grad, floats({3, 4}), floats({3, 4}, 2), reduction);
    if (width) made.arguments.push_back(owned_value(*width));
    return made;
  };
  return {.calls = {sample("mean", floats({}), kMean),
                    sample("each", floats({3, 4}, 3), kNoReduction)}};
}

void add_regression_samples(SampleTable& table) {
  for (const char* op : {"l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss"}) {
    table[op] = pair_loss();
  }
  table["huber_loss"].calls.push_back(
      call("narrow", floats({3, 4}), floats({3, 4}, 2), kMean, 0.3));
  for (const double beta : {0.0, 0.3}) {
    table["smooth_l1_loss"].calls.push_back(
        call("beta " + std::to_string(beta), floats({3, 4}), floats({3, 4}, 2), kMean, beta));
  }
  table["mse_loss_backward"] = pair_loss_backward(std::nullopt);
  table["huber_loss_backward"] = pair_loss_backward(0.7);
  table["smooth_l1_loss_backward"] = pair_loss_backward(0.7);
  table["kl_div"] = {
      .calls = {
          call("probabilities", floats({3, 4}), positives({3, 4})),
          call("each", floats({3, 4}), positives({3, 4}), kNoReduction),
          call("logarithms", floats({3, 4}), floats({3, 4}, 2), kSum).with("log_target", true)}};
  table["binary_cross_entropy_with_logits"] = {
      .calls = {call("mean", floats({3, 4}), positives({3, 4})),
                call("weights", floats({3, 4}), positives({3, 4}), positives({4}, 2),
                     positives({4}, 3), kSum),
                call("each", floats({3, 4}), positives({3, 4}), positives({1, 4}, 2), std::nullopt,
                     kNoReduction)}};
}

void add_classifier_samples(SampleTable& table) {
  const auto sample = [](std::string what, int reduction, int ignored, int chunk_rows,
                         BoolList mask) {
    return call(std::move(what), floats({5, 3}), floats({4, 3}, 2), integers({5}, 0, 4), reduction,
                ignored, chunk_rows, mask);
  };
  table["_linear_cross_entropy"] = {
      .calls = {sample("mean", kMean, kIgnore, 5, {true, true}),
                sample("chunks", kSum, kIgnore, 2, {true, true}),
                sample("ignored class", kMean, 1, 3, {true, true}),
                sample("input alone", kSum, kIgnore, 2, {true, false}),
                sample("weight alone", kSum, kIgnore, 2, {false, true}),
                sample("loss alone", kMean, kIgnore, 2, {false, false}),
                sample("each", kNoReduction, kIgnore, 2, {false, false})},
      .large = {call("large", floats({515, 67}), floats({131, 67}, 2), integers({515}, 0, 131),
                     kMean, kIgnore, 192, BoolList{true, true})},
      .wide_result = true};
  table["linear_cross_entropy"] = {
      .calls = {call("mean", floats({5, 3}), floats({4, 3}, 2), integers({5}, 0, 4)),
                call("sum of a batch", floats({2, 3, 3}), floats({4, 3}, 2), integers({2, 3}, 0, 4),
                     kSum, 1),
                call("each", floats({2, 3, 3}), floats({4, 3}, 2), integers({2, 3}, 0, 4),
                     kNoReduction),
                call("one row", floats({3}), floats({4, 3}, 2), integers({}, 1, 2))},
      .wide_result = true};
}

}  // namespace

void add_loss_samples(SampleTable& table) {
  for (const char* op : {"softmax.int", "log_softmax.int"}) {
    table[op] = softmax();
    table[op].calls.push_back(call("as float64", floats({3, 4}), 1, DType::kF64));
  }
  for (const char* op : {"_softmax", "_log_softmax"}) table[op] = half_to_float(softmax());
  for (const char* op : {"_softmax_backward_data", "_log_softmax_backward_data"}) {
    table[op] = softmax_backward();
    table[op].no_gradcheck = "the input's dtype is an argument and stays float32";
  }
  for (const char* op : {"nll_loss", "nll_loss_nd", "cross_entropy_loss"}) table[op] = class_loss();
  for (const char* op : {"nll_loss_nd", "cross_entropy_loss"}) {
    table[op].calls.push_back(call("pixels", floats({2, 3, 4}), integers({2, 4}, 0, 3)));
  }
  auto& cross_entropy = table["cross_entropy_loss"].calls;
  cross_entropy.push_back(
      call("smoothed", floats({4, 3}), integers({4}, 0, 3)).with("label_smoothing", 0.1));
  cross_entropy.push_back(call("probabilities", floats({4, 3}), positives({4, 3})));

  table["nll_loss_forward"] = {
      .calls = {call("mean", floats({4, 3}), integers({4}, 0, 3), std::nullopt, kMean, kIgnore),
                call("sum", floats({4, 3}), integers({4}, 0, 3), positives({3}), kSum, kIgnore),
                call("each", floats({4, 3}), integers({4}, 0, 3), std::nullopt, kNoReduction,
                     kIgnore),
                call("one row", floats({3}), integers({}, 1, 2), std::nullopt, kMean, kIgnore)},
      .large = {call("large", floats({515, 131}), integers({515}, 0, 131), positives({131}), kMean,
                     kIgnore)},
      .constants = {"weight"}};
  table["nll_loss_backward"] = {
      .calls = {call("mean", floats({}), floats({4, 3}), integers({4}, 0, 3), std::nullopt, kMean,
                     kIgnore, integers({}, 4, 5, 1, DType::kF32)),
                call("each", floats({4}), floats({4, 3}), integers({4}, 0, 3), positives({3}),
                     kNoReduction, kIgnore, positives({}))},
      .large = {call("large", floats({}), floats({515, 131}), integers({515}, 0, 131),
                     positives({131}), kMean, kIgnore, positives({}))},
      .constants = {"self", "weight", "total_weight"}};
  table["_unfused_cross_entropy"] = {
      .calls = {call("weighted", floats({4, 3}), integers({4}, 0, 3), positives({3}), kMean,
                     kIgnore, 0.0),
                call("smoothed", floats({4, 3}), integers({4}, 0, 3), std::nullopt, kSum, kIgnore,
                     0.1),
                call("probabilities", floats({4, 3}), positives({4, 3}), std::nullopt, kNoReduction,
                     kIgnore, 0.0)},
      .constants = {"weight"}};
  table["_fused_cross_entropy"] = {
      .calls = {call("mean", floats({4, 3}), integers({4}, 0, 3), kMean, kIgnore),
                call("sum", floats({4, 3}), integers({4}, 0, 3), kSum, kIgnore),
                call("each", floats({4, 3}), integers({4}, 0, 3), kNoReduction, kIgnore),
                call("ignored class", floats({4, 3}), integers({4}, 0, 3), kMean, 1)},
      .large = {call("large", floats({515, 131}), integers({515}, 0, 131), kMean, kIgnore)},
      .wide_result = true};
  table["_fused_cross_entropy_backward"] = {
      .calls = {call("mean", floats({4, 3}), floats({}), integers({4}, 0, 3), positives({4}), kMean,
                     kIgnore),
                call("each", floats({4, 3}), floats({4}), integers({4}, 0, 3), positives({4}),
                     kNoReduction, kIgnore)},
      .large = {call("large", floats({515, 131}), floats({}), integers({515}, 0, 131),
                     positives({515}), kMean, kIgnore)},
      .no_gradcheck =
          "it takes logsumexp as that of the logits; gradgradcheck of _fused_cross_entropy sees "
          "it"};
  table["_fused_cross_entropy_backward"].statistics = {"grad_output", "logsumexp"};
  add_classifier_samples(table);
  add_regression_samples(table);
}

}  // namespace lockstep
