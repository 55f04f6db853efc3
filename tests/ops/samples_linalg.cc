#include "tests/core/non_finite.h"
#include "tests/ops/op_samples.h"

namespace lockstep {

namespace {

Sample einsum(std::string equation, std::vector<Tensor> operands) {
  return call(equation, equation, std::move(operands));
}

void add_distance_samples(SampleTable& table) {
  OpSamples& cdist = table["_cdist_forward"];
  OpSamples& pdist = table["_pdist_forward"];
  for (const double p : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, kInfinity}) {
    const std::string what = "p = " + std::to_string(p);
    cdist.calls.push_back(call(what, floats({3, 4}), floats({2, 4}, 2), p, std::nullopt));
    // Distinct differences within each pair, so that only one element is the largest.
    pdist.calls.push_back(
        call(what, map_floats(floats({4, 3}), [](double x) { return x * x * x; }), p));
  }
  cdist.no_half_gradients = "rounded differences can both be the largest";
  cdist.calls.push_back(call("batch", floats({2, 3, 2}), floats({4, 2}, 2), 2.0, 1));
  cdist.calls.push_back(call("none", floats({3, 2}), floats({0, 2}), 2.0, std::nullopt));
  cdist.calls.push_back(
      call("transposed", with_gaps(floats({3, 2})), floats({4, 2}, 2), 2.0, std::nullopt));
  cdist.large = {call("large", floats({97, 31}), floats({103, 31}, 2), 2.0, std::nullopt)};
  pdist.calls.push_back(call("one row", floats({1, 3})));
  pdist.large = {call("large", floats({127, 31}))};
  table["cdist"] = {.calls = {call("default", floats({3, 4}), floats({2, 4}, 2))}};
  table["pdist"] = {.calls = {call("default", floats({3, 4}))}};
  table["_cdist_backward"] = {.calls = {call("p = 3", floats({3, 2}), floats({3, 4}),
                                             floats({2, 4}, 2), 3.0, positives({3, 2}))}};
  table["_pdist_backward"] = {
      .calls = {call("p = 3", floats({3}), floats({3, 4}), 3.0, positives({3}))}};
  table["cosine_similarity"] = {
      .calls = {call("rows", floats({3, 4}), floats({3, 4}, 2)),
                call("broadcast", floats({2, 3}), floats({2, 1, 3}, 2), -1),
                call("0-d", floats({}), floats({}, 2), 0),
                call("small", floats({3}), floats({3}, 2), 0, 9.0)
                    .without_gradcheck("the bound counts as a constant")}};
}

}  // namespace

void add_linalg_samples(SampleTable& table) {
  table["trace"] = {.calls = {call("square", floats({3, 3})), call("wide", floats({2, 4})),
                              call("integers", integers({3, 2}, -4, 5))}};
  table["outer"] = {.calls = {call("vectors", floats({3}), floats({4}, 2))}};
  table["addr"] = {.calls = {call("matrix", floats({3, 4}, 3), floats({3}), floats({4}, 2)),
                             call("scaled", floats({4}, 3), floats({3}), floats({4}, 2))
                                 .with("beta", Scalar(0.5))
                                 .with("alpha", Scalar(2))}};
  table["addbmm"] = {
      .calls = {call("matrix", floats({3, 2}, 3), floats({2, 3, 4}), floats({2, 4, 2}, 2)),
                call("scaled", floats({2}, 3), floats({2, 3, 4}), floats({2, 4, 2}, 2))
                    .with("beta", Scalar(0.5))
                    .with("alpha", Scalar(2)),
                call("integers", integers({3, 2}, -4, 5), integers({2, 3, 4}, -4, 5),
                     integers({2, 4, 2}, -4, 5)),
                call("nothing", floats({3, 2}, 3), floats({0, 3, 4}), floats({0, 4, 2}))}};
  table["linalg_cross"] = {
      .calls = {call("rows", floats({2, 3}), floats({2, 3}, 2)),
                call("broadcast", floats({3, 2}), floats({3, 1}, 2)).with("dim", 0)}};
  table["cross"] = {.calls = {call("found", floats({2, 3}), floats({2, 3}, 2)),
                              call("columns", floats({3, 3}), floats({3, 3}, 2), 0)}};
  table["diff"] = {
      .calls = {call("vector", floats({5})), call("twice", floats({2, 5}), 2, 1),
                call("joined", floats({2, 3}), 1, 0, floats({1, 3}, 2), floats({2, 3}, 3)),
                call("copy", floats({3}), 0), call("bools", flags({5})),
                call("to nothing", floats({2, 3}), 5, 1)}};
  table["einsum"] = {
      .calls = {einsum("ij,jk->ik", {floats({2, 3}), floats({3, 4}, 2)}),
                einsum("ij,jk", {floats({2, 3}), floats({3, 4}, 2)}),
                einsum("ii->i", {floats({3, 3})}), einsum("iji->j", {floats({2, 3, 2})}),
                einsum("ii", {floats({3, 3})}), einsum("ji", {floats({2, 3})}),
                einsum("...ij,...jk->...ik", {floats({2, 2, 3}), floats({3, 2}, 2)}),
                einsum("i...,i...", {floats({2, 3}), floats({2, 3}, 2)}),
                einsum("...ik, ...j -> ij", {floats({2, 3, 2}), floats({2, 4}, 2)}),
                einsum("bi,bj,bk->ijk", {floats({2, 2}), floats({2, 3}, 2), floats({2, 2}, 3)}),
                einsum("ij,ij->", {floats({2, 3}), floats({2, 1}, 2)}),
                call("path", "ij,jk,kl->il",
                     std::vector<Tensor>{floats({2, 3}), floats({3, 2}, 2), floats({2, 2}, 3)})
                    .with("path", Dims{1, 2, 0, 1})}};
  add_distance_samples(table);
  table["glu"] = {.calls = {call("last", floats({3, 4})), call("columns", floats({4, 3}), 0),
                            call("nothing", floats({0, 2}), 1)}};
  table["glu_backward"] = {.calls = {call("last", floats({3, 2}), floats({3, 4}, 2), 1)}};
}

}  // namespace lockstep
