#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

/// Samples of operators that take one tensor and the given numbers.
template <class... A>
OpSamples activation(A... numbers) {
  return {.calls = {call("matrix", floats({3, 5}), numbers...), call("0-d", floats({}), numbers...),
                    call("empty", floats({2, 0}), numbers...),
                    call("transposed", with_gaps(floats({4, 3}, 3)), numbers...),
                    call("bfloat16", floats({2, 3}, 1, DType::kBF16), numbers...)},
          .large = {call("large", floats(large_sizes()), numbers...)}};
}

}  // namespace

void add_pointwise_piecewise_samples(SampleTable& table) {
  for (const char* op :
       {"elu", "celu", "selu", "leaky_relu", "hardtanh", "relu6", "hardshrink", "softshrink",
        "hardsigmoid", "hardswish", "softplus", "log_sigmoid", "mish"}) {
    table[op] = activation();
  }
  table["elu"].calls.push_back(call("all numbers", floats({3, 4}), 0.7, 1.3, 1.6));
  table["celu"].calls.push_back(call("alpha", floats({3, 4}), 0.7));
  table["leaky_relu"].calls.push_back(call("slope", floats({3, 4}), 0.3));
  table["hardtanh"].calls.push_back(call("bounds", floats({3, 4}), -0.55, 0.15));
  table["hardtanh"].calls.push_back(call("integers", integers({3, 4}, -9, 9), -2.5, 4.5));
  table["hardtanh"].refuses = {{DType::kU8, "the lower bound of a sample is negative"}};
  table["hardshrink"].calls.push_back(call("negative", floats({3, 4}), -0.5));
  table["softshrink"].calls.push_back(call("bound", floats({3, 4}), 1.05));
  table["softplus"].calls.push_back(call("straight", floats({3, 4}), 3, 0.21));
  table["threshold"] = activation(0.15, -3.0);
  table["threshold"].calls.push_back(call("integers", integers({3, 4}, -9, 9), 2, 7));

  table["elu_backward"] = {
      .calls = {call("argument", floats({3, 4}), 0.7, 1.3, 1.6, false, floats({3, 4}, 2)),
                call("result", floats({3, 4}), 1.8, 1.3, 1.6, true, floats({3, 4}, 2)),
                call("0-d", floats({}), 1, 1, 1, false, floats({}, 2)),
                call("empty", floats({0}), 1, 1, 1, false, floats({0}))},
      .large = {
          call("large", floats(large_sizes()), 0.7, 1.3, 1.6, false, floats(large_sizes(), 2))}};

  table["prelu"] = {.calls = {call("one weight", floats({3, 4}), positives({1}, 2)),
                              call("0-d weight", floats({3, 4}), positives({}, 2)),
                              call("channels", floats({2, 3, 2}), positives({3}, 2)),
                              call("vector", floats({5}), positives({1}, 2)),
                              call("0-d", floats({}), positives({1}, 2)),
                              call("empty", floats({0, 3}), positives({3}, 2))}};
  table["_prelu_kernel"] = {
      .calls = {call("matrix", floats({3, 4}), positives({1, 4}, 2)),
                call("0-d", floats({}), positives({}, 2))},
      .large = {call("large", floats(large_sizes()), positives({1, 1031}, 2))}};

  const auto probability = [](IntList sizes) {
    return map_floats(positives(sizes), [](double x) { return (x - 0.4) / 2.3; });
  };
  table["logit"] = {
      .calls = {call("matrix", probability({3, 4})), call("eps", probability({3, 4}), 0.2213),
                call("0-d", probability({})), call("empty", probability({0})),
                call("integers", integers({3}, 0, 2))},
      .large = {call("large", probability(large_sizes()))}};
}

}  // namespace lockstep
