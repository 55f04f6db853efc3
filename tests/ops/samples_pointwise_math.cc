#include "tests/ops/samples_pointwise.h"

namespace lockstep {

namespace {

OpSamples floating_binary(Tensor (*make)(IntList, int)) {
  return {
      .calls = {call("matrices", make({3, 4}, 1), make({3, 4}, 2)),
                call("row broadcast", make({3, 4}, 1), make({4}, 2)),
                call("both broadcast", make({3, 1}, 1), make({1, 4}, 2)),
                call("0-d", make({}, 1), make({}, 2)), call("empty", make({0, 4}, 1), make({4}, 2)),
                call("transposed", with_gaps(make({4, 3}, 1)), make({4, 3}, 2)),
                call("two dtypes", make({2, 3}, 1).to(kBF16), make({2, 3}, 2))},
      .large = {call("large", make(large_sizes(), 1), make({1031}, 2))}};
}
OpSamples integral_binary(int64_t low, int64_t high) {
  return {.calls = {call("matrices", integers({3, 4}, -9, 9), integers({3, 4}, low, high, 2)),
                    call("broadcast", integers({3, 1}, -9, 9), integers({4}, low, high, 2)),
                    call("0-d", integers({}, -9, 9), integers({}, low, high, 2)),
                    call("two dtypes", integers({2, 3}, 0, 9, 1, DType::kU8),
                         integers({2, 3}, low, high, 2, DType::kI32))},
          .large = {call("large", integers(large_sizes(), -9, 9),
                         integers(large_sizes(), low, high, 2))}};
}
OpSamples integral_with_number(int64_t number) {
  return {.calls = {call("matrix", integers({3, 4}, -9, 9), number),
                    call("narrow", integers({3}, -9, 9, 1, DType::kI8), number)},
          .large = {call("large", integers(large_sizes(), -9, 9), number)}};
}
OpSamples number_with_integral(int64_t number) {
  return {.calls = {call("matrix", number, integers({3, 4}, 0, 9)),
                    call("narrow", number, integers({3}, 0, 9, 1, DType::kI8)),
                    call("0-d", number, integers({}, 0, 9, 1, DType::kI32))}};
}

void add_special(SampleTable& table) {
  for (const char* op : {"exp2", "expm1", "tan", "atan", "sinh", "cosh", "asinh", "erf", "erfc",
                         "rad2deg", "deg2rad"}) {
    table[op] = unary(any_float);
  }
  table["tan"] = unary(fractions);
  for (const char* op : {"log1p", "log2", "log10", "lgamma", "digamma"}) {
    table[op] = unary(positives);
  }
  for (const char* op : {"asin", "acos", "atanh"}) table[op] = unary(fractions);
  table["acosh"] = unary(above_one);
  for (const char* op : {"exp2", "log2", "erf", "lgamma"}) {
    table[op].calls.push_back(call("integers", integers({2, 3}, 1, 5)));
  }
  for (const char* op : {"exp2", "erf"}) {
    table[op].calls.push_back(call("bfloat16", floats({2, 3}, 1, kBF16)));
  }
  table["polygamma"] = {
      .calls = {call("digamma", 0, positives({3, 4})), call("first", 1, positives({3, 4})),
                call("second", 2, positives({2, 3})), call("empty", 1, positives({0}))},
      .large = {call("large", 1, positives(large_sizes()))}};
  table["polygamma_"] = {.calls = {call("digamma", positives({3, 4}), 0),
                                   call("second", positives({2, 3}), 2),
                                   call("transposed", with_gaps(positives({4, 3})), 1)}};
}

void add_rounding(SampleTable& table) {
  for (const char* op : {"floor", "ceil", "trunc", "round", "frac", "sgn", "positive", "isinf"}) {
    table[op] = unary(any_float);
    if (std::string_view(op) != "frac") {
      table[op].calls.push_back(call("integers", integers({2, 3}, -4, 5)));
    }
  }
  table["round.decimals"] = {
      .calls = {call("two", floats({3, 4}), 2), call("none", floats({3, 4}), 0),
                call("before the point", floats({3, 4}), -1), call("empty", floats({0}), 1)},
      .large = {call("large", floats(large_sizes()), 1)}};
  table["nan_to_num"] = unary(any_float);
  table["nan_to_num"].calls.push_back(call("replacements", floats({3, 4}), 1.0, 2.0, -2.0));
  table["nan_to_num"].calls.push_back(call("integers", integers({3}, -4, 5)));

  table["clamp"] = {
      .calls = {call("both", floats({3, 4}), -0.55, 0.85),
                call("below", floats({3, 4}), Value(), 0.85), call("above", floats({3, 4}), -0.55),
                call("crossed", floats({3, 4}), 0.7, -0.7), call("0-d", floats({}), -0.5, 0.5),
                call("empty", floats({0}), 0.5), call("integers", integers({2, 3}, -9, 9), -2, 5),
                call("integers and floats", integers({2, 3}, -9, 9), -2.5, 5.5)},
      .large = {call("large", floats(large_sizes()), -0.55, 0.85)}};
  table["clamp.Tensor"] = {
      .calls = {call("both", floats({3, 4}), floats({3, 4}, 2), floats({3, 4}, 3)),
                call("broadcast", floats({3, 1}), floats({4}, 2), floats({}, 3)),
                call("below", floats({3, 4}), Value(), floats({4}, 3)),
                call("above", floats({3, 4}), floats({4}, 2)),
                call("0-d", floats({}), floats({}, 2), floats({}, 3)),
                call("integers", integers({2, 3}, -9, 9), integers({3}, -2, 1, 2),
                     integers({3}, 2, 5, 3))},
      .large = {call("large", floats(large_sizes()), floats({1031}, 2), floats(large_sizes(), 3))}};
  for (const char* op : {"clamp_min", "clamp_max"}) {
    table[op] = {
        .calls = {call("float", floats({3, 4}), 0.15), call("0-d", floats({}), 0.5),
                  call("empty", floats({0}), 0.5), call("integers", integers({2, 3}, -9, 9), 2)},
        .large = {call("large", floats(large_sizes()), 0.15)}};
    table[std::string(op) + ".Tensor"] = floating_binary(any_float);
  }
}

void add_logic(SampleTable& table) {
  for (const char* op : {"logical_and", "logical_or", "logical_xor"}) {
    table[op] = floating_binary(any_float);
    table[op].calls.push_back(call("bools", flags({3, 4}), flags({4}, 2)));
    table[op].calls.push_back(call("bool and integer", flags({3, 4}), integers({4}, 0, 2, 2)));
    table[op].large.push_back(call("large bools", flags(large_sizes()), flags(large_sizes(), 2)));
  }
  for (const std::string op : {"bitwise_and", "bitwise_or", "bitwise_xor"}) {
    table[op + ".Tensor"] = integral_binary(-9, 9);
    table[op + ".Tensor"].calls.push_back(call("bools", flags({3, 4}), flags({4}, 2)));
    table[op + ".Scalar"] = integral_with_number(5);
    table[op + ".Scalar_Tensor"] = number_with_integral(5);
  }
  for (const std::string op : {"bitwise_left_shift", "bitwise_right_shift"}) {
    table[op + ".Tensor"] = integral_binary(-2, 70);
    table[op + ".Tensor_Scalar"] = integral_with_number(2);
    table[op + ".Scalar_Tensor"] = number_with_integral(9);
  }
  table["bitwise_not"] = {.calls = {call("integers", integers({3, 4}, -9, 9)),
                                    call("bytes", integers({3}, 0, 200, 1, DType::kU8)),
                                    call("bools", flags({3, 4})), call("0-d", flags({}))},
                          .large = {call("large", integers(large_sizes(), -9, 9))}};
  table["bitwise_not"].differs[DType::kBool] = "it is the logical not";
  table["isclose"] = {
      .calls = {call("matrices", floats({3, 4}), floats({3, 4}, 2), 0.3, 0.1, false),
                call("broadcast", floats({3, 1}), floats({4}, 2)),
                call("integers", integers({3, 4}, 0, 9), integers({4}, 0, 9, 2), 0.5, 0.0, true),
                call("0-d", floats({}), floats({}, 2)), call("empty", floats({0}), floats({0}))},
      .large = {call("large", floats(large_sizes()), floats(large_sizes(), 2), 0.3, 0.1, false)}};
}

/// Samples for floats and integers, with no 0 among the divisors.
OpSamples division() {
  OpSamples samples = floating_binary(any_float);
  for (Sample& sample : integral_binary(1, 5).calls) samples.calls.push_back(std::move(sample));
  samples.calls.push_back(call("negative", integers({3, 4}, -9, 9), integers({4}, -5, 0, 2)));
  samples.large.push_back(
      call("large integers", integers(large_sizes(), -99, 99), integers({1031}, 1, 9)));
  return samples;
}
OpSamples division_by_number() {
  return {.calls = {call("float", floats({3, 4}), 0.7), call("negative", floats({3, 4}), -0.7),
                    call("0-d", floats({}), 0.3), call("empty", floats({0}), 0.3),
                    call("integers", integers({2, 3}, -9, 9), 4),
                    call("integers and float", integers({2, 3}, -9, 9), -2.5)},
          .large = {call("large", floats(large_sizes()), 0.7)}};
}
OpSamples with_mode(const OpSamples& samples, Value mode) {
  OpSamples result = samples;
  for (auto* calls : {&result.calls, &result.large}) {
    for (Sample& sample : *calls) sample.arguments.push_back(mode);
  }
  return result;
}

void add_division(SampleTable& table) {
  for (const char* op : {"fmod.Tensor", "remainder.Tensor"}) table[op] = division();
  for (const char* op : {"fmod.Scalar", "remainder.Scalar"}) table[op] = division_by_number();
  table["remainder.Scalar_Tensor"] = {
      .calls = {call("float", 1.5, floats({3, 4})), call("integers", -7, integers({3, 4}, 1, 5)),
                call("0-d", 1.5, floats({})), call("empty", 1.5, floats({0}))},
      .large = {call("large", 1.5, floats(large_sizes()))}};
  for (const auto& [op, samples] :
       {std::pair<const char*, OpSamples>{"div.Tensor_mode", division()},
        {"div.Scalar_mode", division_by_number()}}) {
    for (const Value& mode : {owned_value("floor"), owned_value("trunc"), Value()}) {
      OpSamples more = with_mode(samples, mode);
      OpSamples& all = table[op];
      for (Sample& sample : more.calls) all.calls.push_back(std::move(sample));
      for (Sample& sample : more.large) all.large.push_back(std::move(sample));
    }
  }
}

/// Samples of operators that take self and two more tensors.
OpSamples ternary(Tensor (*make)(IntList, int)) {
  return {
      .calls = {call("matrices", make({3, 4}, 1), make({3, 4}, 2), make({3, 4}, 3)),
                call("broadcast", make({3, 1}, 1), make({4}, 2), make({3, 4}, 3)),
                call("0-d", make({}, 1), make({}, 2), make({}, 3)),
                call("empty", make({0, 4}, 1), make({4}, 2), make({0, 4}, 3)),
                call("transposed", with_gaps(make({4, 3}, 1)), make({4, 3}, 2), make({4, 3}, 3))},
      .large = {call("large", make(large_sizes(), 1), make({1031}, 2), make(large_sizes(), 3))}};
}

void add_formulas(SampleTable& table) {
  table["rsub.Tensor"] = floating_binary(any_float);
  table["rsub.Tensor"].calls.push_back(
      call("alpha", floats({2, 3}), floats({3}, 2)).with("alpha", 0.5));
  for (const char* op : {"addcmul", "addcdiv"}) {
    table[op] = ternary(positives);
    table[op].calls.push_back(
        call("value", floats({2, 3}), floats({3}, 2), floats({2, 1}, 3)).with("value", 0.5));
  }
  table["addcmul"].calls.push_back(
      call("integers", integers({3}, -5, 5), integers({3}, -5, 5, 2), integers({3}, -5, 5, 3)));
  table["lerp.Tensor"] = ternary(any_float);
  table["lerp.Scalar"] = {.calls = {call("matrices", floats({3, 4}), floats({3, 4}, 2), 0.3),
                                    call("broadcast", floats({3, 1}), floats({4}, 2), 0.8),
                                    call("0-d", floats({}), floats({}, 2), 0.3),
                                    call("empty", floats({0}), floats({0}), 0.3)},
                          .large = {call("large", floats(large_sizes()), floats({1031}, 2), 0.3)}};
  for (const char* op : {"hypot", "atan2", "logaddexp"}) table[op] = floating_binary(any_float);
  table["atan2"].calls.push_back(call("integers", integers({3}, -5, 5), integers({3}, 1, 5, 2)));
  table["xlogy.Tensor"] = floating_binary(positives);
  table["xlogy.Scalar_Other"] = {
      .calls = {call("matrix", positives({3, 4}), 1.5), call("0-d", positives({}), 2),
                call("empty", positives({0}), 0.5), call("integers", integers({2, 3}, 0, 5), 2)}};
  table["xlogy.Scalar_Self"] = {
      .calls = {call("matrix", 1.5, positives({3, 4})), call("0-d", 2, positives({})),
                call("empty", 0.5, positives({0})), call("zero", 0, positives({3})),
                call("integers", 2, integers({2, 3}, 1, 5))}};
  table["pow.Tensor_Tensor"] = floating_binary(positives);
  table["pow.Tensor_Tensor"].calls.push_back(
      call("integers", integers({3, 4}, -4, 5), integers({4}, -2, 4, 2)));
  table["pow.Scalar"] = {
      .calls = {call("matrix", 1.7, floats({3, 4})), call("integer", 2, floats({3, 4})),
                call("0-d", 0.6, floats({})), call("empty", 2, floats({0})),
                call("one", 1, floats({3})), call("integers", 3, integers({3}, -2, 4))},
      .large = {call("large", 1.7, floats(large_sizes()))}};
}

}  // namespace

void add_pointwise_math_samples(SampleTable& table) {
  add_special(table);
  add_rounding(table);
  add_logic(table);
  add_division(table);
  add_formulas(table);
}

}  // namespace lockstep
