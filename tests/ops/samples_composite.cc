// Samples of operators made of others.

#include "tests/core/non_finite.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

void add_stacks(SampleTable& table) {
  for (const char* op : {"atleast_1d", "atleast_2d", "atleast_3d"}) {
    table[op] = {.calls = {call("0-d", floats({})), call("vector", floats({3})),
                           call("matrix", floats({2, 3})), call("three", floats({2, 3, 2})),
                           call("empty", floats({0}))}};
    table[std::string(op) + ".Sequence"] = {
        .calls = {call("two", Tensors{floats({}), floats({3}, 2)}),
                  call("one", Tensors{floats({2, 3})})}};
  }
  table["column_stack"] = {
      .calls = {call("vectors", Tensors{floats({3}), floats({3}, 2)}),
                call("vector and matrix", Tensors{floats({3}), floats({3, 2}, 2)}),
                call("0-d", Tensors{floats({}), floats({1, 2}, 2)})}};
  table["hsplit.int"] = {.calls = {call("vector", floats({4}), 2),
                                   call("matrix", floats({2, 6}), 3),
                                   call("empty", floats({2, 0}), 3)}};
  table["vsplit.int"] = {.calls = {call("matrix", floats({4, 3}), 2)}};
  table["dsplit.int"] = {.calls = {call("three", floats({2, 3, 4}), 2)}};
  table["hsplit.array"] = {
      .calls = {call("vector", floats({4}), Dims{1}), call("matrix", floats({2, 6}), Dims{-2, 9})}};
  table["vsplit.array"] = {.calls = {call("matrix", floats({4, 3}), Dims{1, 3})}};
  table["dsplit.array"] = {.calls = {call("three", floats({2, 3, 4}), Dims{1})}};
}

void add_views(SampleTable& table) {
  table["ravel"] = {.calls = {call("matrix", floats({2, 3})), call("0-d", floats({})),
                              call("transposed", with_gaps(floats({4, 3}))),
                              call("empty", floats({0, 2}))}};
  table["narrow_copy"] = {.calls = {call("rows", floats({4, 3}), 0, 1, 2),
                                    call("from the end", floats({2, 5}), -1, -3, 2),
                                    call("nothing", floats({2, 3}), 1, 0, 0)}};
  table["unfold_copy"] = {.calls = {call("overlapping", floats({6}), 0, 3, 2),
                                    call("columns", floats({2, 6}), -1, 2, 3),
                                    call("0-d", floats({}), 0, 1, 1)}};
  table["as_strided_scatter"] = {
      .calls = {call("transposed", floats({3, 4}), floats({2, 2}, 2), Dims{2, 2}, Dims{1, 4}),
                call("offset", floats({3, 4}), floats({2}, 2), Dims{2}, Dims{4}, 1),
                call("0-d", floats({4}), floats({}, 2), Dims{}, Dims{}, 2),
                call("nothing", floats({2, 2}), floats({0}, 2), Dims{0}, Dims{1})}};
  table["as_strided_scatter"].reads_strides = true;
  table["as_strided_scatter"].no_gradcheck = "as in PyTorch, self's is that of replaced elements";
  table["channel_shuffle"] = {.calls = {call("two groups", floats({2, 4, 3}), 2),
                                        call("three groups", floats({1, 6, 2, 2}), 3),
                                        call("empty batch", floats({0, 4, 2}), 2)}};
  table["combinations"] = {.calls = {call("pairs", floats({4})), call("three", floats({5}), 3),
                                     call("repeated", floats({3}), 3, true),
                                     call("too many", floats({2}), 3), call("none", floats({3}), 0),
                                     call("of nothing", floats({0}), 2)}};
  for (const char* op : {"tril_indices", "triu_indices"}) {
    table[op] = {.calls = {call("square", 3, 3), call("wide", 3, 5, 1), call("high", 5, 3, -2),
                           call("all", 2, 3, 9), call("far below", 2, 3, -9), call("nothing", 0, 4),
                           call("as int32", 3, 2).with("dtype", DType::kI32)}};
  }
  table["logspace"] = {.calls = {call("floats", 0.0, 1.0, 5), call("base 2", 2, -1, 4, 2.0),
                                 call("one", 1.5, 9, 1), call("none", 0, 1, 0),
                                 call("integers", 0, 3, 4).with("dtype", DType::kI64)}};
}

OpSamples floats_and_integers(Tensor (*make)(IntList, int)) {
  return {.calls = {call("matrices", make({3, 4}, 1), make({3, 4}, 2)),
                    call("broadcast", make({3, 1}, 1), make({4}, 2)),
                    call("0-d", make({}, 1), make({}, 2)),
                    call("empty", make({0, 4}, 1), make({4}, 2)),
                    call("transposed", with_gaps(make({4, 3}, 1)), make({4, 3}, 2)),
                    call("integers", integers({3, 4}, 1, 6), integers({4}, 1, 5, 2))}};
}

void add_pointwise(SampleTable& table) {
  const auto positive = [](IntList sizes, int seed) { return positives(sizes, seed); };
  for (const char* op :
       {"true_divide.Tensor", "floor_divide", "float_power.Tensor_Tensor", "ldexp.Tensor"}) {
    table[op] = floats_and_integers(positive);
  }
  for (const char* op :
       {"true_divide.Scalar", "floor_divide.Scalar", "float_power.Tensor_Scalar"}) {
    table[op] = {.calls = {call("matrix", positives({3, 4}), 1.5), call("0-d", positives({}), 2),
                           call("integers", integers({2, 3}, 1, 9), 2)}};
  }
  table["float_power.Scalar"] = {
      .calls = {call("matrix", 1.5, floats({3, 4})), call("integers", 3, integers({2, 3}, -4, 5))}};
  for (const DType half : {DType::kF16, DType::kBF16}) {
    table["ldexp.Tensor"].differs[half] = "as in ATen, powers of integer exponents are float32";
  }
  table["ldexp.Tensor"].calls.push_back(
      call("integer exponents", floats({2, 3}), integers({3}, -3, 4)));
}

void add_reductions(SampleTable& table) {
  table["aminmax"] = {
      .calls = {call("all", floats({3, 5})), call("rows", floats({3, 5})).with("dim", 1),
                call("kept", floats({3, 5})).with("dim", -2).with("keepdim", true),
                call("0-d", floats({})).with("dim", 0), call("integers", integers({3, 4}, -9, 9)),
                call("bools", flags({3, 4})).with("dim", 0)}};
  const auto with_nan = [] {
    const Tensor tensor = floats({3, 4});
    for (const int64_t i : {1, 5, 9}) tensor.data<float>()[i] = kNaNF32;
    return tensor;
  };
  for (const char* op : {"nansum", "nanmean"}) {
    table[op] = {
        .calls = {
            call("all", floats({3, 5})), call("rows", floats({3, 5}), Dims{1}),
            call("kept", floats({2, 3, 4}), Dims{0, -1}, true), call("0-d", floats({})),
            call("NaN", with_nan(), Dims{1}).without_gradcheck("NaN has no finite difference")}};
  }
  table["nansum"].calls.push_back(call("integers", integers({2, 3}, -4, 5)));
  table["allclose"] = {.calls = {call("same", floats({3, 4}), floats({3, 4})),
                                 call("different", floats({3, 4}), floats({3, 4}, 2)),
                                 call("near", floats({3, 4}), floats({3, 4}, 2), 9.0, 9.0)}};
  table["renorm"] = {.calls = {call("shrinks", floats({3, 4}), 2, 0, 1.0),
                               call("keeps", floats({3, 4}), 2, 1, 99),
                               call("some", floats({2, 3, 4}), 3.0, -1, 3.1),
                               call("1-norm", floats({3, 4}), 1, 0, 2)}};
  for (const char* op : {"std_mean", "std_mean.dim", "std_mean.correction"}) {
    OpSamples& samples = table[op];
    samples.calls = {call("rows", floats({3, 5}))};
  }
  table["std_mean.dim"].calls = {call("rows", floats({3, 5}), Dims{1}, false),
                                 call("kept", floats({3, 5}), Dims{0}, true, true)};
  table["std_mean"].calls.push_back(call("biased", floats({3, 5}), false));
  table["std_mean.correction"].calls.push_back(
      call("correction", floats({3, 5}), Dims{1}).with("correction", 0.5).with("keepdim", true));
}

void add_calculus(SampleTable& table) {
  for (const char* op : {"trapezoid.dx", "cumulative_trapezoid.dx"}) {
    table[op] = {.calls = {call("vector", floats({5})),
                           call("columns", floats({3, 4})).with("dx", 0.5).with("dim", 0),
                           call("integers", integers({2, 3}, -4, 5))}};
  }
  for (const char* op : {"trapezoid.x", "cumulative_trapezoid.x"}) {
    table[op] = {.calls = {call("vector", floats({5}), floats({5}, 2)),
                           call("points of rows", floats({3, 4}), floats({4}, 2)),
                           call("columns", floats({3, 4}), floats({3}, 2)).with("dim", 0),
                           call("own points", floats({2, 3, 4}), floats({3, 4}, 2)).with("dim", -1),
                           call("integers", integers({2, 3}, -4, 5), integers({3}, 0, 9))}};
  }
  for (const char* op :
       {"trapezoid.dx", "trapezoid.x", "cumulative_trapezoid.dx", "cumulative_trapezoid.x"}) {
    table[op].differs[DType::kU8] = "as in ATen, neighbours are added in their dtype";
  }
  table["gradient.scalarint"] = {
      .calls = {call("every dimension", floats({3, 4})),
                call("one", floats({3, 4})).with("spacing", 0.5).with("dim", -1),
                call("second order", floats({5})).with("edge_order", 2),
                call("two elements", floats({2})), call("integers", integers({3}, -4, 5))}};
  table["gradient.scalararray"] = {
      .calls = {call("two", floats({3, 2, 4})).with("spacing", 2).with("dim", Dims{2, 0})}};
  table["gradient.array"] = {.calls = {call("two", floats({3, 4})).with("dim", Dims{1, 0})}};
  for (const char* op : {"gradient.scalarint", "gradient.scalararray", "gradient.array"}) {
    table[op].refuses = {{DType::kU8, "slopes have a sign"}, {DType::kBool, "bools have no slope"}};
  }
}

void add_membership(SampleTable& table) {
  table["msort"] = {.calls = {call("vector", floats({5})), call("matrix", floats({4, 3})),
                              call("0-d", floats({})), call("integers", integers({6}, -9, 9))}};
  table["isin.Tensor_Tensor"] = {
      .calls = {
          call("integers", integers({3, 4}, 0, 9), integers({4}, 0, 9, 2)),
          call("floats", floats({5}), floats({3}, 1)),
          call("inverted", integers({6}, 0, 9), integers({2, 2}, 0, 9, 2)).with("invert", true),
          call("in nothing", floats({3}), floats({0})), call("bools", flags({4}), flags({1}, 2))}};
  table["isin.Tensor_Scalar"] = {.calls = {call("integers", integers({3, 4}, 0, 5), 3),
                                           call("float", integers({3}, 0, 5), 2.5)}};
  table["isin.Scalar_Tensor"] = {.calls = {call("integers", 3, integers({3, 4}, 0, 5))}};
}

}  // namespace

void add_composite_samples(SampleTable& table) {
  add_stacks(table);
  add_views(table);
  add_pointwise(table);
  add_reductions(table);
  add_calculus(table);
  add_membership(table);
}

}  // namespace lockstep
