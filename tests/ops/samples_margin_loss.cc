// Samples of losses with a margin, of probabilities and of counts.

#include "tests/ops/samples_pointwise.h"

namespace lockstep {

namespace {

constexpr int kEach = 0;
constexpr int kAverage = 1;
constexpr int kTotal = 2;

/// -1 and 1.
Tensor signs(IntList sizes, int seed = 3) {
  return map_floats(floats(sizes, seed), [](double x) { return x < 0 ? -1.0 : 1.0; });
}

void add_probabilities(SampleTable& table) {
  table["_binary_cross_entropy"] = {
      .calls = {call("matrices", probabilities({3, 4}), probabilities({3, 4}, 2)),
                call("broadcast", probabilities({3, 4}), probabilities({4}, 2)),
                call("0-d", probabilities({}), probabilities({}, 2)),
                call("empty", probabilities({0}), probabilities({0}))},
      .large = {call("large", probabilities(large_sizes()), probabilities(large_sizes(), 2))}};
  table["binary_cross_entropy"] = {
      .calls = {
          call("mean", probabilities({3, 4}), probabilities({3, 4}, 2)),
          call("weighted sum", probabilities({3, 4}), probabilities({3, 4}, 2),
               positives({3, 4}, 3), kTotal),
          call("each", probabilities({3, 4}), probabilities({3, 4}, 2), positives({4}, 3), kEach)}};
  for (const bool log_input : {false, true}) {
    for (const int reduction : {kEach, kAverage, kTotal}) {
      const std::string what = std::string(log_input ? "logarithms" : "means") + ", reduction " +
                               std::to_string(reduction);
      table["poisson_nll_loss"].calls.push_back(call(what, positives({3, 4}), positives({3, 4}, 2),
                                                     log_input, reduction != kAverage, 1e-3,
                                                     reduction));
    }
  }
}

void add_pairs(SampleTable& table) {
  for (const int reduction : {kEach, kAverage, kTotal}) {
    const std::string what = "reduction " + std::to_string(reduction);
    table["cosine_embedding_loss"].calls.push_back(
        call(what, floats({4, 3}), floats({4, 3}, 2), signs({4}), 0.1, reduction));
    table["hinge_embedding_loss"].calls.push_back(
        call(what, floats({3, 4}), signs({3, 4}), 0.55, reduction));
    table["margin_ranking_loss"].calls.push_back(
        call(what, floats({3, 4}), floats({3, 4}, 2), signs({3, 4}), 0.55, reduction));
    table["triplet_margin_loss"].calls.push_back(call(what, floats({3, 4}), floats({3, 4}, 2),
                                                      floats({3, 4}, 3), 3.0, 2.0, 1e-6,
                                                      reduction == kTotal, reduction));
    table["soft_margin_loss"].calls.push_back(call(what, floats({3, 4}), signs({3, 4}), reduction));
  }
  table["cosine_embedding_loss"].calls.push_back(
      call("vectors", floats({4}), floats({4}, 2), signs({})));
  table["hinge_embedding_loss"].calls.push_back(call("0-d", floats({}), signs({})));
  table["margin_ranking_loss"].calls.push_back(
      call("broadcast", floats({3, 4}), floats({4}, 2), signs({3, 1})));
  table["triplet_margin_loss"].calls.push_back(
      call("1-norm", floats({3, 4}), floats({3, 4}, 2), floats({1, 4}, 3), 2.0, 1.0));
  table["soft_margin_loss"].calls.push_back(call("0-d", floats({}), signs({})));
}

void add_classes(SampleTable& table) {
  table["multi_margin_loss"] = {
      .calls = {call("mean", floats({4, 3}), integers({4}, 0, 3)),
                call("squares", floats({4, 3}), integers({4}, 0, 3), 2, 0.55),
                call("weighted sum", floats({4, 3}), integers({4}, 0, 3), 1, 1.2, positives({3}),
                     kTotal),
                call("each", floats({4, 3}), integers({4}, 0, 3), 1, 1.2, Value(), kEach),
                call("one row", floats({3}), integers({}, 1, 2)),
                call("one class", floats({}), integers({}, 0, 1))},
      .constants = {"weight"}};
  const auto labels = [](IntList sizes) {
    const Tensor tensor = integers(sizes, 0, sizes.back());
    // The targets of a row end at the first negative number.
    for (int64_t i = sizes.back() - 1; i < tensor.numel(); i += sizes.back()) {
      tensor.data<int64_t>()[i] = -1;
    }
    return tensor;
  };
  for (const int reduction : {kEach, kAverage, kTotal}) {
    const std::string what = "reduction " + std::to_string(reduction);
    table["multilabel_margin_loss"].calls.push_back(
        call(what, floats({3, 4}), labels({3, 4}), reduction));
    table["multilabel_margin_loss_forward"].calls.push_back(
        call(what, floats({3, 4}), labels({3, 4}), reduction));
  }
  table["multilabel_margin_loss"].calls.push_back(call("one row", floats({4}), labels({4})));
  for (const char* op :
       {"multi_margin_loss", "multilabel_margin_loss", "multilabel_margin_loss_forward"}) {
    for (const DType other : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32}) {
      table[op].refuses[other] = "as in ATen, targets are int64";
    }
  }
}

}  // namespace

void add_margin_loss_samples(SampleTable& table) {
  add_probabilities(table);
  add_pairs(table);
  add_classes(table);
}

}  // namespace lockstep
