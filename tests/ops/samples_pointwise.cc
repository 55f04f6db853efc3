#include "tests/ops/samples_pointwise.h"

namespace lockstep {

namespace {

/// Samples of binary operators that accept all numbers.
OpSamples binary() {
  return {.calls = {call("matrices", floats({3, 4}), floats({3, 4}, 2)),
                    call("row broadcast", floats({3, 4}), floats({4}, 2)),
                    call("both broadcast", floats({3, 1}), floats({1, 4}, 2)),
                    call("0-d", floats({}), floats({}, 2)),
                    call("0-d and matrix", floats({}), floats({2, 3}, 2)),
                    call("empty", floats({0, 4}), floats({4}, 2)),
                    call("transposed", with_gaps(floats({4, 3})), floats({4, 3}, 2)),
                    call("bfloat16", floats({2, 3}, 1, kBF16), floats({2, 3}, 2, kBF16)),
                    call("bfloat16 and float32", floats({2, 3}, 1, kBF16), floats({2, 3}, 2)),
                    call("integers", integers({2, 3}, -5, 5), integers({2, 3}, 1, 5, 2)),
                    call("integer and float", integers({2, 3}, -5, 5), floats({2, 3}, 2))},
          .large = {call("large", floats(large_sizes()), floats(large_sizes(), 2)),
                    call("large broadcast", floats(large_sizes()), floats({1031}, 2))}};
}

OpSamples with_scalar() {
  return {.calls = {call("float", floats({3, 4}), 1.5), call("integer", floats({3, 4}), 2),
                    call("0-d", floats({}), 0.5), call("empty", floats({0}), 0.5),
                    call("integers", integers({2, 3}, -5, 5), 2),
                    call("integers and float", integers({2, 3}, -5, 5), 0.5)},
          .large = {call("large", floats(large_sizes()), 1.5)}};
}

/// Samples of operators that take a gradient and a tensor of the same shape.
OpSamples pointwise_backward() {
  return {.calls = {call("matrix", floats({3, 4}), floats({3, 4}, 2)),
                    call("0-d", floats({}), floats({}, 2)),
                    call("empty", floats({0, 2}), floats({0, 2}, 2)),
                    call("transposed", with_gaps(floats({4, 3})), floats({4, 3}, 2))},
          .large = {call("large", floats(large_sizes()), floats(large_sizes(), 2))}};
}

/// The samples with `value` appended to the arguments of each call.
template <class T>
OpSamples with_last(OpSamples samples, T value) {
  for (auto* calls : {&samples.calls, &samples.large}) {
    for (Sample& sample : *calls) sample.arguments.push_back(owned_value(value));
  }
  return samples;
}

}  // namespace

void add_pointwise_samples(SampleTable& table) {
  for (const char* op : {"neg", "abs", "square", "exp", "sin", "cos", "sign", "tanh", "sigmoid",
                         "relu", "silu", "isnan", "isfinite", "logical_not"}) {
    table[op] = unary(any_float);
  }
  for (const char* op : {"neg", "abs", "square", "sign", "relu", "logical_not"}) {
    table[op].calls.push_back(call("integers", integers({2, 3}, -4, 5)));
  }
  for (const char* op : {"exp", "tanh", "sigmoid", "silu", "relu"}) {
    table[op].calls.push_back(call("bfloat16", floats({2, 3}, 1, kBF16)));
  }
  for (const char* op : {"log", "sqrt", "rsqrt", "reciprocal"}) table[op] = unary(positives);
  table["gelu"] = unary(any_float);
  for (Sample& sample : with_last(unary(any_float), "tanh").calls) {
    table["gelu"].calls.push_back(std::move(sample));
  }
  table["gelu"].large.push_back(call("large", floats(large_sizes()), "tanh"));

  for (const char* op :
       {"add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "maximum", "minimum", "eq.Tensor",
        "ne.Tensor", "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor"}) {
    table[op] = binary();
  }
  table["max.other"] = table["min.other"] = {.calls = binary().calls};
  for (const char* op :
       {"add.Scalar", "sub.Scalar", "rsub.Scalar", "mul.Scalar", "div.Scalar", "eq.Scalar",
        "ne.Scalar", "lt.Scalar", "le.Scalar", "gt.Scalar", "ge.Scalar"}) {
    table[op] = with_scalar();
  }
  for (const char* op : {"add.Tensor", "sub.Tensor"}) {
    table[op].calls.push_back(call("alpha", floats({2, 3}), floats({3}, 2)).with("alpha", 0.5));
  }
  for (const char* op : {"add.Scalar", "sub.Scalar", "rsub.Scalar"}) {
    table[op].calls.push_back(call("alpha", floats({2, 3}), 1.5, 0.5));
  }
  table["pow.Tensor_Scalar"] = {
      .calls = {call("square", floats({3, 4}), 2), call("cube", floats({3, 4}), 3),
                call("root", positives({3, 4}), 0.5), call("fraction", positives({2, 2}), 1.7),
                call("negative", positives({2, 2}), -2.0), call("one", floats({3}), 1),
                call("zero", floats({3}), 0), call("0-d", positives({}), 1.5),
                call("empty", floats({0}), 2), call("integers", integers({2, 3}, -4, 5), 3)},
      .large = {call("large", positives(large_sizes()), 1.7)}};

  for (const char* op : {"silu_backward", "tanh_backward", "sigmoid_backward", "gelu_backward"}) {
    table[op] = pointwise_backward();
  }
  for (Sample& sample : with_last(pointwise_backward(), "tanh").calls) {
    table["gelu_backward"].calls.push_back(std::move(sample));
  }
  table["swiglu"] = pointwise_backward();
  table["swiglu"].calls.push_back(call("broadcast", floats({3, 1}), floats({4}, 2)));
  table["swiglu_backward"] = {
      .calls = {call("matrix", floats({3, 4}), floats({3, 4}, 2), floats({3, 4}, 3)),
                call("0-d", floats({}), floats({}, 2), floats({}, 3)),
                call("empty", floats({0, 2}), floats({0, 2}, 2), floats({0, 2}, 3)),
                call("broadcast", floats({3, 4}), floats({4}, 2), floats({3, 1}, 3))},
      .large = {call("large", floats(large_sizes()), floats(large_sizes(), 2),
                     floats(large_sizes(), 3))}};
  table["swiglu_of_halves"] = {
      .calls = {call("matrix", floats({3, 8})), call("vector", floats({6})),
                call("three dimensions", floats({2, 3, 4})), call("empty", floats({0, 4})),
                call("no columns", floats({2, 0}))},
      .large = {call("large", floats({131, 260}))}};
  table["swiglu_of_halves_backward"] = {
      .calls = {call("matrix", floats({3, 4}), floats({3, 8}, 2)),
                call("vector", floats({3}), floats({6}, 2)),
                call("empty", floats({0, 2}), floats({0, 4}, 2))},
      .large = {call("large", floats({131, 130}), floats({131, 260}, 2))}};
  table["threshold_backward"] = with_last(pointwise_backward(), 0);

  table["where.self"] = {
      .calls = {call("matrices", flags({3, 4}), floats({3, 4}), floats({3, 4}, 2)),
                call("broadcast", flags({4}), floats({3, 1}), floats({}, 2)),
                call("0-d", flags({}), floats({}), floats({}, 2)),
                call("empty", flags({0, 4}), floats({4}), floats({0, 4}, 2)),
                call("integers", flags({2, 3}), integers({2, 3}, 0, 9), integers({3}, 0, 9, 2)),
                call("integer and float", flags({2, 3}), integers({2, 3}, 0, 9), floats({3}))},
      .large = {call("large", flags(large_sizes()), floats(large_sizes()), floats({1031}, 2))}};
  table["where.ScalarSelf"] = {
      .calls = {call("matrices", flags({3, 4}), 1.5, floats({3, 4})),
                call("broadcast", flags({3, 1}), -1, floats({4})),
                call("0-d", flags({}), 0.5, floats({})),
                call("empty", flags({0}), 0.5, floats({0})),
                call("integers", flags({2, 3}), 7, integers({2, 3}, 0, 9)),
                call("float and integers", flags({2, 3}), 0.5, integers({2, 3}, 0, 9))}};
  table["where.ScalarOther"] = table["where.ScalarSelf"];
  for (Sample& sample : table["where.ScalarOther"].calls) {
    std::swap(sample.arguments[1], sample.arguments[2]);
  }
  table["where.Scalar"] = {.calls = {call("floats", flags({3, 4}), 1.5, -2.5),
                                     call("integer and float", flags({3}), 1, 0.5),
                                     call("integers", flags({2, 3}), 1, 0),
                                     call("bools", flags({2, 3}), true, false),
                                     call("empty", flags({0}), 1, 0)}};
  table["masked_fill.Scalar"] = {
      .calls = {call("matrix", floats({3, 4}), flags({3, 4}), 0.5),
                call("broadcast mask", floats({3, 4}), flags({4}), -1),
                call("broadcast self", floats({4}), flags({3, 1}), 0.5),
                call("0-d", floats({}), flags({}), 2.5),
                call("empty", floats({0}), flags({0}), 2.5),
                call("integers", integers({2, 3}, 0, 9), flags({3}), 7)},
      .large = {call("large", floats(large_sizes()), flags(large_sizes()), -1.5)}};
}

}  // namespace lockstep
