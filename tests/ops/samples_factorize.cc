// Samples of core/ops/linalg. Matrices are well-conditioned, with distinct eigenvalues.

#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/view.h"
#include "tests/core/non_finite.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

constexpr const char* kTriangle = "the gradient is that of a symmetric change of the matrix";
constexpr const char* kRoundedFactors = "derivatives solve equations with rounded factors";

/// The matrices with multiples of 2 added to the diagonal.
Tensor dominant(IntList sizes, int seed = 1) {
  const Tensor x = floats(sizes, seed);
  const int64_t n = x.size(-1);
  return x * 0.5 + diag_embed(arange(Scalar(2), Scalar(2 * n + 1), Scalar(2)));
}

Tensor positive_definite(IntList sizes, int seed = 1) {
  const Tensor x = dominant(sizes, seed);
  return matmul(x, x.transpose(-1, -2)) * 0.25;
}

/// Pivots of a batch of factorizations.
Tensor pivots(std::vector<int64_t> values, IntList sizes) {
  return longs(std::move(values)).to(DType::kI32).view(sizes);
}

void add_cholesky(SampleTable& table) {
  OpSamples& ex = table["linalg_cholesky_ex"];
  ex.calls = {call("matrix", positive_definite({3, 3})),
              call("batch", positive_definite({2, 2, 3, 3})),
              call("upper", positive_definite({3, 3})).with("upper", true),
              call("not positive definite", floats({2, 2})),
              call("nothing", floats({0, 3, 3})),
              call("empty matrices", floats({2, 0, 0}))};
  ex.large = {call("large", positive_definite({17, 13, 13}))};
  ex.no_gradcheck = kTriangle;
  ex.no_half_gradients = kRoundedFactors;
  table["linalg_cholesky"] = {
      .calls = {call("matrix", positive_definite({3, 3})),
                call("upper", positive_definite({2, 3, 3})).with("upper", true)},
      .no_gradcheck = kTriangle,
      .no_half_gradients = kRoundedFactors};
  OpSamples& solve = table["cholesky_solve"];
  solve.calls = {call("matrix", floats({3, 2}), dominant({3, 3})),
                 call("broadcast", floats({2, 1, 3, 2}), dominant({2, 3, 3})),
                 call("upper", floats({3, 2}), dominant({3, 3}), true),
                 call("nothing", floats({2, 0, 3}), floats({0, 0}))};
  solve.large = {call("large", floats({17, 13, 5}), dominant({17, 13, 13}))};
  OpSamples& inverse = table["cholesky_inverse"];
  inverse.calls = {call("matrix", dominant({3, 3})), call("upper", dominant({2, 3, 3}), true),
                   call("nothing", floats({0, 3, 3}))};
  inverse.large = {call("large", dominant({17, 13, 13}))};
  for (OpSamples* samples : {&solve, &inverse}) {
    samples->no_gradcheck = "the gradient has a part for the triangle that is not read";
    samples->no_half_gradients = kRoundedFactors;
  }
}

void add_lu(SampleTable& table) {
  OpSamples& factor = table["linalg_lu_factor_ex"];
  factor.calls = {call("square", dominant({3, 3})),   call("batch", floats({2, 2, 2})),
                  call("tall", floats({2, 4, 3})),    call("wide", floats({3, 4})),
                  call("nothing", floats({0, 3, 4})), call("no columns", floats({2, 3, 0}))};
  factor.large = {call("large", floats({17, 13, 11}))};
  factor.no_half_gradients = kRoundedFactors;
  OpSamples& unpack = table["lu_unpack"];
  unpack.calls = {call("square", dominant({3, 3}), pivots({2, 3, 3}, {3})),
                  call("tall", floats({2, 3, 2}), pivots({3, 2, 1, 2}, {2, 2})),
                  call("wide", floats({2, 4}), pivots({2, 2}, {2})),
                  call("data alone", floats({2, 4}), pivots({2, 2}, {2}), true, false),
                  call("pivots alone", floats({2, 4}), pivots({2, 2}, {2}), false, true)};
  unpack.large = {
      call("large", floats({31, 37, 37}), pivots(std::vector<int64_t>(31 * 37, 37), {31, 37}))};
  for (const char* op : {"linalg_lu_factor", "linalg_lu"}) {
    table[op] = {.calls = {call("square", dominant({3, 3})), call("tall", floats({2, 3, 2})),
                           call("wide", floats({2, 3}))},
                 .no_half_gradients = kRoundedFactors};
  }
}

void add_spectra(SampleTable& table) {
  OpSamples& qr = table["linalg_qr"];
  qr.calls = {call("square", dominant({3, 3})),   call("tall", floats({2, 4, 2})),
              call("wide", floats({2, 4})),       call("complete", floats({2, 3}), "complete"),
              call("nothing", floats({0, 3, 2})), call("no rows", floats({2, 0, 3}))};
  qr.large = {call("large", floats({17, 13, 11})), call("r", floats({17, 13, 11}), "r")};
  qr.no_half_gradients = kRoundedFactors;

  OpSamples& eigh = table["_linalg_eigh"];
  eigh.calls = {call("matrix", positive_definite({3, 3})),
                call("upper", positive_definite({2, 3, 3}), "U"),
                call("values alone", positive_definite({2, 3, 3}), "L", false)
                    .without_gradcheck("the derivative needs the vectors"),
                call("nothing", floats({0, 3, 3})), call("empty matrices", floats({2, 0, 0}))};
  eigh.large = {call("large", positive_definite({17, 13, 13}))};
  table["linalg_eigh"] = {.calls = {call("matrix", positive_definite({3, 3}))}};
  table["linalg_eigvalsh"] = {.calls = {call("batch", positive_definite({2, 3, 3}))}};
  for (const char* op : {"_linalg_eigh", "linalg_eigh", "linalg_eigvalsh"}) {
    table[op].no_gradcheck = kTriangle;
    table[op].no_half_gradients = kRoundedFactors;
  }

  OpSamples& svd = table["_linalg_svd"];
  svd.calls = {call("square", dominant({3, 3})),
               call("tall", dominant({2, 3, 3}).slice(2, 0, 2)),
               call("wide", dominant({3, 3}).slice(0, 0, 2)),
               call("values alone", dominant({3, 3}), false, false)
                   .without_gradcheck("the derivative needs the vectors"),
               call("all vectors", dominant({3, 3}).slice(0, 0, 2), true)
                   .without_gradcheck("vectors of the null space are not unique"),
               call("no rows", floats({2, 0, 3}), true)
                   .without_gradcheck("vectors of the null space are not unique"),
               call("nothing", floats({0, 3, 2}))};
  svd.large = {call("large", floats({17, 13, 11}))};
  table["linalg_svd"] = {.calls = {call("square", dominant({3, 3})),
                                   call("reduced", dominant({3, 3}).slice(1, 0, 2), false)}};
  table["linalg_svdvals"] = {.calls = {call("wide", floats({2, 2, 3}))}};
  for (const char* op : {"_linalg_svd", "linalg_svd", "linalg_svdvals"}) {
    table[op].no_half_gradients = kRoundedFactors;
  }
}

void add_systems(SampleTable& table) {
  OpSamples& solve = table["_linalg_solve_ex"];
  solve.calls = {call("matrix", dominant({3, 3}), floats({3, 2})),
                 call("broadcast", dominant({2, 1, 3, 3}), floats({2, 3, 2})),
                 call("right", dominant({2, 3, 3}), floats({2, 3})).with("left", false),
                 call("nothing", floats({2, 0, 0}), floats({2, 0, 3}))};
  solve.large = {call("large", dominant({17, 13, 13}), floats({17, 13, 5}))};
  for (const char* op : {"linalg_solve", "linalg_solve_ex"}) {
    table[op] = {.calls = {call("matrix", dominant({3, 3}), floats({3, 2})),
                           call("vector", dominant({2, 3, 3}), floats({3})),
                           call("vectors", dominant({2, 3, 3}), floats({2, 3})),
                           call("right", dominant({3, 3}), floats({2, 3})).with("left", false)}};
  }
  OpSamples& triangular = table["linalg_solve_triangular"];
  triangular.calls = {
      call("upper", dominant({3, 3}), floats({3, 2})).with("upper", true),
      call("lower", dominant({2, 1, 3, 3}), floats({2, 3, 2})).with("upper", false),
      call("right", dominant({3, 3}), floats({2, 3})).with("upper", true).with("left", false),
      call("unit", floats({3, 3}), floats({3, 2})).with("upper", false).with("unitriangular", true),
      call("nothing", floats({0, 0}), floats({2, 0, 3})).with("upper", true)};
  triangular.large = {
      call("large", dominant({17, 13, 13}), floats({17, 13, 11})).with("upper", true)};
  table["triangular_solve"] = {
      .calls = {call("upper", floats({3, 2}), dominant({3, 3})),
                call("transposed", floats({2, 3, 2}), dominant({3, 3}), false, true),
                call("unit", floats({3, 2}), floats({3, 3}), true, false, true)}};
  OpSamples& inverse = table["linalg_inv_ex"];
  inverse.calls = {call("matrix", dominant({3, 3})), call("batch", dominant({2, 2, 2})),
                   call("nothing", floats({0, 3, 3})), call("empty matrices", floats({2, 0, 0}))};
  inverse.large = {call("large", dominant({17, 13, 13}))};
  for (const char* op : {"linalg_inv", "inverse"}) {
    table[op] = {.calls = {call("matrix", dominant({3, 3}))}};
  }
  for (const char* op :
       {"_linalg_solve_ex", "linalg_solve", "linalg_solve_ex", "linalg_solve_triangular",
        "triangular_solve", "linalg_inv_ex", "linalg_inv", "inverse"}) {
    table[op].no_half_gradients = kRoundedFactors;
  }
}

void add_determinants(SampleTable& table) {
  for (const char* op : {"_linalg_det", "_linalg_slogdet", "_linalg_cofactors"}) {
    OpSamples& samples = table[op];
    samples.calls = {call("matrix", dominant({3, 3})), call("batch", dominant({2, 2, 2})),
                     call("one element", floats({2, 1, 1})), call("nothing", floats({0, 3, 3})),
                     call("empty matrices", floats({2, 0, 0}))};
    samples.large = {call("large", dominant({17, 13, 13}) * 0.2)};
  }
  for (const char* op : {"linalg_det", "det", "linalg_slogdet", "logdet"}) {
    table[op] = {.calls = {call("matrix", dominant({3, 3})), call("batch", dominant({2, 2, 2}))}};
  }
  for (const char* op : {"_linalg_det", "_linalg_slogdet", "_linalg_cofactors", "linalg_det", "det",
                         "linalg_slogdet", "logdet"}) {
    table[op].no_half_gradients = kRoundedFactors;
  }
}

}  // namespace

void add_factorize_samples(SampleTable& table) {
  add_cholesky(table);
  add_lu(table);
  add_spectra(table);
  add_systems(table);
  add_determinants(table);
}

void add_matrix_function_samples(SampleTable& table) {
  table["linalg_matrix_norm"] = {
      .calls = {call("columns", floats({2, 3, 4}), 1), call("rows", floats({3, 4}), kInfinity),
                call("smallest", floats({2, 3, 2}), -1, Dims{2, 0}, true),
                call("singular value", floats({2, 3, 2}), 2, Dims{0, -1}),
                call("smallest singular value", dominant({3, 3}), -2, Dims{-2, -1}, true)},
      .no_half_gradients = kRoundedFactors};
  table["linalg_matrix_norm.str_ord"] = {
      .calls = {call("Frobenius", floats({2, 3, 4})),
                call("nuclear", floats({3, 2, 3}), "nuc", Dims{0, 1}, true)},
      .no_half_gradients = kRoundedFactors};
  table["linalg_cond"] = {
      .calls = {call("default", dominant({3, 3})), call("wide", floats({2, 3}), -2),
                call("columns", dominant({2, 3, 3}), 1),
                call("singular", zeros({2, 2}), kInfinity).without_gradcheck("it is infinite"),
                call("empty matrices", floats({2, 0, 0}))},
      .no_half_gradients = kRoundedFactors};
  table["linalg_cond.p_str"] = {.calls = {call("Frobenius", dominant({3, 3}), "fro"),
                                          call("nuclear", dominant({2, 2}), "nuc")},
                                .no_half_gradients = kRoundedFactors};
  table["linalg_matrix_power"] = {
      .calls = {call("none", floats({2, 3, 3}), 0), call("one", floats({3, 3}), 1),
                call("three", floats({2, 2, 2}), 3), call("inverse", dominant({3, 3}), -2),
                call("integers", integers({2, 2}, -2, 3), 3)},
      .no_half_gradients = kRoundedFactors};
  OpSamples& exponential = table["linalg_matrix_exp"];
  exponential.calls = {call("matrix", floats({3, 3})), call("batch", floats({2, 2, 2})),
                       call("zeros", zeros({2, 2})), call("empty matrices", floats({2, 0, 0}))};
  exponential.large = {call("large", floats({17, 13, 13}) * 0.25)};
  table["linalg_multi_dot"] = {
      .calls = {call("matrices", Tensors{floats({2, 3}), floats({3, 4}, 2), floats({4, 2}, 3)}),
                call("vectors", Tensors{floats({3}), floats({3, 2}, 2), floats({2}, 3)}),
                call("integers", Tensors{integers({2, 3}, -4, 5), integers({3, 2}, -4, 5)})}};
  table["inner"] = {.calls = {call("vectors", floats({3}), floats({3}, 2)),
                              call("matrices", floats({2, 3}), floats({2, 2, 3}, 2)),
                              call("0-d", floats({}), floats({2, 3}, 2)),
                              call("nothing", floats({2, 0}), floats({3, 0}))}};
  table["vdot"] = {.calls = {call("vectors", floats({3}), floats({3}, 2))}};
  table["kron"] = {.calls = {call("matrices", floats({2, 3}), floats({3, 2}, 2)),
                             call("ranks", floats({2}), floats({2, 1, 3}, 2)),
                             call("0-d", floats({}), floats({2, 3}, 2))}};
  table["bilinear"] = {.calls = {call("vectors", floats({3}), floats({2}, 2), floats({4, 3, 2}, 3)),
                                 call("batch", floats({2, 2, 3}), floats({2, 2, 2}, 2),
                                      floats({4, 3, 2}, 3), floats({4}, 4))}};
  table["cov"] = {.calls = {call("matrix", floats({2, 4})), call("vector", floats({4})),
                            call("often", floats({2, 3})).with("fweights", longs({1, 2, 3})),
                            call("weighted", floats({2, 3})).with("aweights", positives({3})),
                            call("both", floats({2, 3}))
                                .with("correction", 0)
                                .with("fweights", longs({1, 0, 3}))
                                .with("aweights", positives({3}))}};
  table["corrcoef"] = {.calls = {call("matrix", floats({2, 4}))
                                     .without_gradcheck("a row's own coefficient is at its bound"),
                                 call("vector", floats({4}))}};
  table["mvlgamma"] = {
      .calls = {call("two", positives({2, 3}) + 2, 2), call("one", positives({}), 1)}};
  table["dist"] = {.calls = {call("vectors", floats({4}), floats({4}, 2)),
                             call("broadcast", floats({2, 3}), floats({3}, 2), 3)}};
  table["pairwise_distance"] = {
      .calls = {call("rows", floats({2, 3}), floats({2, 3}, 2)),
                call("broadcast", floats({2, 3}), floats({3}, 2), 1.0, 1e-3, true)}};
}

}  // namespace lockstep
