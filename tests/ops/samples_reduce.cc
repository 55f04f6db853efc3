#include "tests/core/non_finite.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

OpSamples over_all() {
  return {
      .calls = {call("matrix", floats({3, 5})), call("0-d", floats({})),
                call("one element", floats({1, 1})), call("three dimensions", floats({2, 3, 4})),
                call("transposed", with_gaps(floats({4, 3})))},
      .large = {call("large", floats(large_sizes()))}};
}

/// Samples of operators with arguments (int[] dim, bool keepdim).
OpSamples over_dims() {
  return {.calls = {call("rows", floats({3, 5}), Dims{1}), call("columns", floats({3, 5}), Dims{0}),
                    call("kept", floats({3, 5}), Dims{-1}, true),
                    call("two of three", floats({2, 3, 4}), Dims{0, 2}, true),
                    call("middle", floats({2, 3, 4}), Dims{1}), call("0-d", floats({}), Dims{0}),
                    call("none means all", floats({2, 3}), Dims{}),
                    call("transposed", with_gaps(floats({4, 3})), Dims{1})},
          .large = {call("large rows", floats(large_sizes()), Dims{1}),
                    call("large columns", floats(large_sizes()), Dims{0}),
                    call("large all", floats(large_sizes()), Dims{0, 1})}};
}

/// Samples of operators with arguments (int dim, bool keepdim).
OpSamples over_dim() {
  return {.calls = {call("rows", floats({3, 5}), 1), call("columns", floats({3, 5}), 0),
                    call("kept", floats({3, 5}), -1, true), call("middle", floats({2, 3, 4}), 1),
                    call("0-d", floats({}), 0), call("transposed", with_gaps(floats({4, 3})), 1)},
          .large = {call("large rows", floats(large_sizes()), 1),
                    call("large columns", floats(large_sizes()), 0)}};
}

/// Floats with some zeros among them.
Tensor floats_with_zeros() {
  const Tensor tensor = floats({3, 4});
  for (int64_t i : {1, 5, 6}) tensor.data<float>()[i] = 0;
  return tensor;
}

void add_product_samples(SampleTable& table) {
  table["prod"] = over_all();
  table["prod.dim_int"] = over_dim();
  table["cumprod"] = table["cumsum"];
  for (const char* op : {"prod", "prod.dim_int", "cumprod"}) {
    table[op].calls.push_back(call("zeros", floats_with_zeros()));
    table[op].calls.push_back(call("integers", integers({2, 3}, -4, 5)));
    table[op].calls.push_back(call("bools", flags({2, 3})));
    table[op].calls.push_back(call("empty", floats({2, 0})));
    if (std::string_view(op) == "prod") continue;
    for (Sample& sample : table[op].calls) {
      if (sample.arguments.size() == 1) sample.arguments.push_back(owned_value(1));
    }
    table[op].calls.push_back(call("as float64", floats({2, 3}), 1).with("dtype", DType::kF64));
  }
  const auto recurrence = [](IntList sizes, int64_t dim) {
    return call("along " + std::to_string(dim), floats(sizes), floats(sizes, 2), dim);
  };
  table["_linear_recurrence"] = {
      .calls = {recurrence({3, 5}, 1), recurrence({3, 5}, 0), recurrence({}, 0),
                recurrence({0, 2}, 0), recurrence({2, 3, 2}, -2)},
      .large = {recurrence({67, 1031}, 1), recurrence({67, 1031}, 0)}};
}

void add_moment_samples(SampleTable& table) {
  table["var_mean"] = {.calls = {call("all", floats({3, 4})), call("biased", floats({3, 4}), false),
                                 call("transposed", with_gaps(floats({4, 3})))}};
  table["var_mean.dim"] = {.calls = {call("rows", floats({3, 4}), Dims{1}),
                                     call("columns", floats({3, 4}), Dims{0}, false, true),
                                     call("all", floats({3, 4}), std::nullopt)}};
  for (const char* op : {"var.correction", "std.correction", "var_mean.correction"}) {
    table[op] = over_dims();
    for (Sample& sample : table[op].calls) {
      if (sample.arguments.size() < 3) continue;
      sample.named.emplace_back("keepdim", sample.arguments[2]);
      sample.arguments.pop_back();
    }
    std::erase_if(table[op].calls, [](const Sample& sample) { return sample.what == "0-d"; });
    table[op].calls.push_back(
        call("corrected", floats({3, 5}), Dims{1}).with("correction", Scalar(0.5)));
    table[op].calls.push_back(call("all", floats({3, 5})).with("correction", Scalar(0)));
    table[op].calls.push_back(call("nothing", floats({0, 3}), Dims{0}));
    table[op].calls.push_back(
        call("no freedom", floats({2, 1}), Dims{1}).without_gradcheck("the result is NaN"));
  }
  for (const char* op : {"var", "std"}) {
    table[op] = {.calls = {call("matrix", floats({3, 5})), call("biased", floats({5}), false)}};
    const std::string along = std::string(op) + ".dim";
    table[along] = {.calls = {call("rows", floats({3, 5}), Dims{1}),
                              call("biased", floats({3, 5}), Dims{0}, false, true)}};
  }
}

void add_norm_samples_over(SampleTable& table) {
  table["logsumexp"] = over_dims();
  table["logsumexp"].calls.push_back(call("integers", integers({2, 3}, -4, 5), Dims{1}));
  table["logsumexp"].calls.push_back(call("nothing", floats({2, 0}), Dims{1}));
  OpSamples& norm = table["linalg_vector_norm"];
  for (const double p : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, kInfinity, -kInfinity}) {
    norm.calls.push_back(call("p = " + std::to_string(p), floats({3, 4}), Scalar(p), Dims{1}));
    norm.large.push_back(call("p = " + std::to_string(p), floats({3, 10007}), Scalar(p), Dims{1}));
  }
  norm.calls.push_back(call("all", floats({3, 4})));
  norm.calls.push_back(call("0-d", floats({}), 3));
  norm.calls.push_back(call("kept", floats({2, 3, 2}), Scalar(3), Dims{0, 2}, true));
  norm.calls.push_back(call("as float64", floats({3, 4})).with("dtype", DType::kF64));
  norm.calls.push_back(call("transposed", with_gaps(floats({4, 3})), Scalar(2), Dims{1}));
  norm.calls.push_back(call("nothing", floats({2, 0}), Scalar(2), Dims{1}));
  norm.large.push_back(call("large columns", floats(large_sizes()), Scalar(2), Dims{0}));
  table["norm.ScalarOpt_dim"] = {
      .calls = {call("p = 3", floats({3, 4}), Scalar(3), Dims{1}),
                call("default", floats({3, 4}), std::nullopt, Dims{0}, true)}};
  table["norm.ScalarOpt_dim_dtype"] = {
      .calls = {call("float64", floats({3, 4}), Scalar(2), Dims{1}, false, DType::kF64)}};
  table["norm.ScalarOpt_dtype"] = {
      .calls = {call("float64", floats({3, 4}), Scalar(2), DType::kF64),
                call("p by default", floats({3}), std::nullopt, DType::kF64)}};
  table["norm.Scalar"] = {.calls = {call("all", floats({3, 4})), call("p = 1", floats({4}), 1)}};
}

}  // namespace

void add_reduce_samples(SampleTable& table) {
  for (const char* op : {"sum", "mean", "max", "min", "any", "all"}) table[op] = over_all();
  for (const char* op : {"sum.dim_IntList", "mean.dim", "amax", "amin", "any.dims", "all.dims"}) {
    table[op] = over_dims();
  }
  for (const char* op : {"max.dim", "min.dim", "argmax", "argmin", "any.dim", "all.dim"}) {
    table[op] = over_dim();
  }
  for (const char* op : {"argmax", "argmin"}) {
    table[op].calls.push_back(call("flattened", floats({3, 5})));
    table[op].large.push_back(call("large flattened", floats(large_sizes())));
  }
  for (const char* op : {"max", "min", "sum", "any", "all"}) {
    table[op].calls.push_back(call("integers", integers({2, 3}, -4, 5)));
  }
  for (const char* op : {"any", "all"}) {
    table[op].calls.push_back(call("bools", flags({2, 3})));
    table[op].calls.push_back(call("empty", flags({0, 3})));
  }
  for (const char* op : {"sum", "mean"}) table[op].calls.push_back(call("empty", floats({0, 3})));
  table["sum"].calls.push_back(call("bools", flags({2, 3})));
  for (const char* op : {"sum.dim_IntList", "mean.dim"}) {
    table[op].calls.push_back(call("empty rows", floats({3, 0}), Dims{1}));
    table[op].calls.push_back(
        call("as float64", floats({3, 4}), Dims{1}).with("dtype", DType::kF64));
    table[op].calls.push_back(call("bfloat16", floats({3, 4}, 1, DType::kBF16), Dims{1}));
  }
  table["sum_to_size"] = {
      .calls = {call("row", floats({3, 4}), Dims{4}), call("column", floats({3, 4}), Dims{3, 1}),
                call("same", floats({3, 4}), Dims{3, 4}), call("0-d", floats({3, 4}), Dims{})}};
  table["cumsum"] = {
      .calls = {call("rows", floats({3, 5}), 1), call("columns", floats({3, 5}), 0),
                call("middle", floats({2, 3, 4}), -2), call("0-d", floats({}), 0),
                call("empty", floats({0, 2}), 0), call("integers", integers({2, 3}, -4, 5), 1),
                call("transposed", with_gaps(floats({4, 3})), 1)},
      .large = {call("large rows", floats(large_sizes()), 1),
                call("large columns", floats(large_sizes()), 0)}};
  add_product_samples(table);
  add_moment_samples(table);
  add_norm_samples_over(table);
  table["count_nonzero"] = {.calls = {call("all", floats_with_zeros()),
                                      call("rows", floats_with_zeros(), 1),
                                      call("bools", flags({2, 3}), 0)}};
  table["count_nonzero.dim_IntList"] = {.calls = {call("two", floats({2, 3, 2}), Dims{0, 2})}};
  table["equal"] = {.calls = {call("same", floats({3, 4}), floats({3, 4})),
                              call("different", floats({3, 4}), floats({3, 4}, 2)),
                              call("other shape", floats({3, 4}), floats({4, 3}))}};
  table["is_nonzero"] = {.calls = {call("true", floats({1})), call("0-d", integers({}, 0, 1))}};
  for (const char* op : {"item", "_local_scalar_dense"}) {
    table[op] = {.calls = {call("0-d", floats({})), call("one element", integers({1, 1}, 3, 4))}};
  }
  table["logcumsumexp"] = {
      .calls = {call("rows", floats({3, 5}), 1), call("columns", floats({3, 5}), 0),
                call("0-d", floats({}), 0), call("nothing", floats({2, 0}), 1),
                call("transposed", with_gaps(floats({4, 3})), -1)},
      .large = {call("large rows", floats({67, 1031}), 1),
                call("large columns", floats({67, 1031}), 0)}};
}

}  // namespace lockstep
