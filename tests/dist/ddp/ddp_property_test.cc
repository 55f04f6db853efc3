// For every training loop that Ddp allows, gradients equal those of one rank with all samples.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "dist/ddp/ddp.h"
#include "tests/dist/ddp/small_model.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

constexpr size_t kParameters = 6;

/// A loop of three steps. Gradients are whole numbers, so that sums are exact in any order, and so
/// are averages over a power of two ranks.
struct Loop {
  int ranks = 2;
  DdpOptions options;
  bool keeps_gradients = false;  ///< no zero_grad between steps
  int no_sync = 0;               ///< number of backwards before the last one of a step
  int forwards = 1;              ///< number of forwards before one backward
  uint32_t seed = 0;             ///< determines which parameters are used, and in which order

  static constexpr int kSteps = 3;

  bool uses(int step, int rank, size_t parameter) const {
    // At least one parameter is used, as backward needs a gradient.
    if (!options.find_unused_parameters || parameter == 0) return true;
    const int of_step = options.static_graph ? 0 : step;
    std::mt19937 random(seed + static_cast<uint32_t>(64 * of_step + 8 * rank) +
                        static_cast<uint32_t>(parameter));
    return random() % 2 == 0;
  }
  static double gradient(int step, int rank, int backward, int forward, size_t parameter) {
    return 1 +
           (7 * step + 5 * rank + 3 * backward + 2 * forward + static_cast<int>(parameter)) % 11;
  }
  std::vector<size_t> order(int step, int rank, int backward) const {
    std::vector<size_t> result(kParameters);
    std::iota(result.begin(), result.end(), 0U);
    std::mt19937 random(seed + static_cast<uint32_t>(100 + 49 * step + 7 * rank + backward));
    std::ranges::shuffle(result, random);
    return result;
  }
};

Loop any_loop() {
  Loop loop;
  loop.ranks = *rc::gen::element(1, 2, 4);
  loop.options.static_graph = *rc::gen::arbitrary<bool>();
  loop.options.find_unused_parameters = *rc::gen::arbitrary<bool>();
  loop.options.average = *rc::gen::arbitrary<bool>();
  loop.options.uneven_inputs = *rc::gen::arbitrary<bool>();
  loop.options.buckets.first_bytes = loop.options.buckets.bytes = *rc::gen::element(1, 50, 1 << 20);
  loop.keeps_gradients = loop.options.average && *rc::gen::arbitrary<bool>();
  loop.no_sync = *rc::gen::inRange(0, 3);
  loop.forwards = *rc::gen::inRange(1, 3);
  loop.seed = *rc::gen::arbitrary<uint16_t>();
  return loop;
}

struct Weights {
  std::vector<Tensor> tensors;

  Weights() {
    for (size_t i = 0; i < kParameters; ++i) {
      tensors.push_back(ones({static_cast<int64_t>(2 * i + 1)}).set_requires_grad());
    }
  }
  std::vector<NamedTensor> named_parameters() const {
    std::vector<NamedTensor> list;
    for (size_t i = 0; i < tensors.size(); ++i) list.push_back({std::to_string(i), tensors[i]});
    return list;
  }
  std::vector<NamedTensor> named_buffers() const { return {}; }

  Tensor loss(const Loop& loop, int step, int rank, int backward) const {
    Tensor result;
    for (int forward = 0; forward < loop.forwards; ++forward) {
      for (const size_t each : loop.order(step, rank, backward)) {
        if (!loop.uses(step, rank, each)) continue;
        const Tensor term =
            sum(tensors[each]) * Loop::gradient(step, rank, backward, forward, each);
        result = result.defined() ? result + term : term;
      }
    }
    return result;
  }
};

/// Value of each parameter's gradient after a step; nullopt where it has none.
using Values = std::vector<std::optional<float>>;

std::vector<Values> expected_values(const Loop& loop) {
  std::vector<Values> result;
  Values values(kParameters);
  for (int step = 0; step < Loop::kSteps; ++step) {
    if (!loop.keeps_gradients) values.assign(kParameters, std::nullopt);
    for (size_t i = 0; i < kParameters; ++i) {
      double sum = 0;
      bool used = false;
      for (int rank = 0; rank < loop.ranks; ++rank) {
        if (!loop.uses(step, rank, i)) continue;
        used = true;
        for (int backward = 0; backward <= loop.no_sync; ++backward) {
          for (int forward = 0; forward < loop.forwards; ++forward) {
            sum += Loop::gradient(step, rank, backward, forward, i);
          }
        }
      }
      if (loop.options.average) sum /= loop.ranks;
      if (used) values[i] = values[i].value_or(0) + static_cast<float>(sum);
    }
    result.push_back(values);
  }
  return result;
}

Values values_of(const Weights& weights) {
  Values result;
  for (const Tensor& each : weights.tensors) {
    if (!each.grad().defined()) {
      result.push_back(std::nullopt);
      continue;
    }
    const std::vector<float> elements = numbers(each.grad());
    EXPECT_EQ(elements, std::vector<float>(elements.size(), elements[0]));
    result.push_back(elements[0]);
  }
  return result;
}

std::vector<uint32_t> planned_order(const BucketPlan& plan) {
  std::vector<uint32_t> result;
  for (const Bucket& bucket : plan.buckets) {
    result.insert(result.end(), bucket.parameters.begin(), bucket.parameters.end());
  }
  return result;
}

/// Observations of one rank.
struct Seen {
  std::vector<Values> values;      ///< by step
  std::vector<uint32_t> arrivals;  ///< parameters in the order of the first step's last backward
  std::vector<BucketPlan> plans;   ///< by step
};

Seen run_loop(const Loop& loop, ProcessGroup& group) {
  const Weights weights;
  Ddp ddp(weights, group, loop.options);
  Seen seen;
  bool listening = false;
  for (uint32_t i = 0; i < kParameters; ++i) {
    register_post_accumulate_grad_hook(weights.tensors[i], [&, i](const Tensor&) {
      if (listening) seen.arrivals.push_back(i);
    });
  }
  for (int step = 0; step < Loop::kSteps; ++step) {
    if (!loop.keeps_gradients) ddp.zero_grad();
    seen.plans.push_back(ddp.reducer().plan());
    for (int backward = 0; backward < loop.no_sync; ++backward) {
      const auto no_sync = ddp.no_sync();
      weights.loss(loop, step, group.rank(), backward).backward();
    }
    listening = step == 0;
    weights.loss(loop, step, group.rank(), loop.no_sync).backward();
    listening = false;
    seen.values.push_back(values_of(weights));
  }
  ddp.zero_grad();
  seen.plans.push_back(ddp.reducer().plan());
  if (loop.options.uneven_inputs) ddp.join();
  return seen;
}

std::vector<Seen> seen_by_ranks(const Loop& loop) {
  std::vector<Seen> seen(static_cast<size_t>(loop.ranks));
  all_ranks(loop.ranks, [&](ProcessGroup& group) {
    seen[static_cast<size_t>(group.rank())] = run_loop(loop, group);
  });
  return seen;
}

RC_GTEST_PROP(DdpProperty, AnyLoopHasTheGradientsOfOneRankWithAllSamples, ()) {
  const Loop loop = any_loop();
  RC_TAG(loop.options.static_graph, loop.no_sync > 0, loop.options.find_unused_parameters);
  const std::vector<Values> expected = expected_values(loop);
  for (const Seen& seen : seen_by_ranks(loop)) {
    for (size_t step = 0; step < expected.size() && step < seen.values.size(); ++step) {
      RC_ASSERT(seen.values[step] == expected[step]);
    }
  }
  RC_ASSERT(!testing::Test::HasFailure());
}

// Gradients arrive in a different order on each rank and in each step.
RC_GTEST_PROP(DdpProperty, BucketsFollowWhatRankZeroSawFirstOnAllRanks, ()) {
  const Loop loop = any_loop();
  const std::vector<Seen> seen = seen_by_ranks(loop);
  RC_ASSERT(!testing::Test::HasFailure());
  for (const Seen& each : seen) {
    RC_ASSERT(each.plans == seen[0].plans);
    RC_ASSERT(each.plans[0].bucket_of.size() == kParameters);
  }
  if (loop.ranks == 1) return;
  // Parameters without a gradient in that step come last.
  const std::vector<uint32_t> order = planned_order(seen[0].plans.back());
  const std::vector<uint32_t>& arrivals = seen[0].arrivals;
  RC_ASSERT(std::vector<uint32_t>(order.begin(), order.begin() + std::ssize(arrivals)) == arrivals);
}

}  // namespace
}  // namespace lockstep::dist
