// Samples of special functions and of functions of two operands.

#include "tests/ops/samples_pointwise.h"

namespace lockstep {

namespace {

OpSamples pair(Tensor (*make)(IntList, int)) {
  return {
      .calls = {call("matrices", make({3, 4}, 1), make({3, 4}, 2)),
                call("both broadcast", make({3, 1}, 1), make({1, 4}, 2)),
                call("0-d", make({}, 1), make({}, 2)), call("empty", make({0, 4}, 1), make({4}, 2)),
                call("transposed", with_gaps(make({4, 3}, 1)), make({4, 3}, 2))},
      .large = {call("large", make(large_sizes(), 1), make({1031}, 2))}};
}

OpSamples whole_pair(int64_t low, int64_t high) {
  return {.calls = {call("matrices", integers({3, 4}, low, high), integers({3, 4}, low, high, 2)),
                    call("broadcast", integers({3, 1}, low, high), integers({4}, low, high, 2)),
                    call("0-d", integers({}, low, high), integers({}, low, high, 2)),
                    call("two dtypes", integers({3}, 0, 9, 1, DType::kU8),
                         integers({3}, low, high, 2, DType::kI32))},
          .large = {call("large", integers(large_sizes(), low, high),
                         integers(large_sizes(), low, high, 2))}};
}

void add_unary(SampleTable& table) {
  for (const char* op :
       {"i0", "special_i0e", "special_i1", "special_i1e", "special_bessel_j0", "special_bessel_j1",
        "special_erfcx", "special_ndtr", "special_log_ndtr", "sinc", "signbit"}) {
    table[op] = unary(any_float);
    table[op].calls.push_back(call("integers", integers({2, 3}, -4, 5)));
    table[op].calls.push_back(call("bools", flags({4})));
  }
  table["erfinv"] = unary(fractions);
  table["special_ndtri"] =
      unary([](IntList sizes, int seed) { return probabilities(sizes, seed); });
  table["special_entr"] = unary(positives);
}

void add_functions_of_two(SampleTable& table) {
  for (const char* op : {"copysign.Tensor", "fmax", "fmin"}) {
    table[op] = pair(any_float);
    table[op].calls.push_back(call("integers", integers({3, 4}, -9, 9), integers({4}, -9, 9, 2)));
    table[op].calls.push_back(call("bools", flags({3, 4}), flags({4}, 2)));
    table[op].calls.push_back(call("two dtypes", floats({2, 3}, 1, kBF16), floats({2, 3}, 2)));
  }
  for (const char* op : {"logaddexp2", "nextafter"}) table[op] = pair(any_float);
  table["copysign.Scalar"] = {.calls = {call("negative", floats({3, 4}), -2.5),
                                        call("0-d", floats({}), 1),
                                        call("integers", integers({2, 3}, -4, 5), -1)}};
  table["heaviside"] = pair(any_float);
  table["heaviside"].calls.push_back(
      call("integers", integers({3, 4}, -2, 3), integers({4}, -9, 9, 2)));
  table["heaviside"].calls.push_back(call("bools", flags({3, 4}), flags({4}, 2)));
  for (const char* op : {"gcd", "lcm"}) table[op] = whole_pair(-30, 31);
  table["special_xlog1py"] = pair(positives);
  table["special_xlog1py"].calls.push_back(
      call("integers", integers({3, 4}, 0, 5), integers({4}, 0, 5, 2)));
  table["special_zeta"] = pair(above_one);
  table["special_zeta"].constants = {"self"};
  for (const std::string op : {"special_xlog1py", "special_zeta"}) {
    table[op + ".other_scalar"] = {.calls = {call("matrix", above_one({3, 4}, 1), 1.5),
                                             call("integers", integers({2, 3}, 2, 5), 2)}};
    table[op + ".self_scalar"] = {.calls = {call("matrix", 1.5, above_one({3, 4}, 1)),
                                            call("integers", 2, integers({2, 3}, 1, 5))}};
  }
  table["special_zeta.other_scalar"].constants = {"self"};
  for (const char* op : {"special_zeta", "special_zeta.other_scalar"}) {
    table[op].no_half_gradients = "the derivative by self throws";
  }
}

}  // namespace

void add_special_samples(SampleTable& table) {
  add_unary(table);
  add_functions_of_two(table);
}

}  // namespace lockstep
