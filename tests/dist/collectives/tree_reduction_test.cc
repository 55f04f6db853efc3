#include "dist/collectives/tree_reduction.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "dist/collectives/sum_order.h"
#include "tests/dist/collectives/naive_reduction.h"

namespace lockstep::dist {
namespace {

Bytes random_values(DType dtype, int64_t count, std::mt19937_64& random) {
  return with_element_type(dtype, [&]<class T>() {
    std::uniform_real_distribution<float> number(0.5, 2);
    Bytes result(static_cast<size_t>(count) * sizeof(T));
    for (size_t at = 0; at < result.size(); at += sizeof(T)) {
      const T element = static_cast<T>(number(random));
      std::memcpy(result.data() + at, &element, sizeof(T));
    }
    return result;
  });
}

std::vector<const void*> addresses(const std::vector<Bytes>& memories) {
  std::vector<const void*> result;
  for (const Bytes& each : memories) result.push_back(each.data());
  return result;
}

/// A random number of sources on each of some hosts, and their reduction in one go.
struct Case {
  DType dtype = *rc::gen::element(DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32,
                                  DType::kU8);
  Reduction reduction;
  std::vector<int> counts = *rc::gen::container<std::vector<int>>(
      static_cast<size_t>(*rc::gen::inRange(1, 5)), rc::gen::inRange(1, 4));
  int64_t count = *rc::gen::inRange<int64_t>(0, 2100);
  std::vector<Bytes> sources;
  Bytes expected;

  Case() {
    const bool may_scale = is_floating(dtype);
    reduction = *rc::gen::element(
        Reduction{}, Reduction{ReduceOp::kProduct}, Reduction{ReduceOp::kMax},
        may_scale ? Reduction{ReduceOp::kPremultipliedSum, 0.3} : Reduction{ReduceOp::kMin});
    std::mt19937_64 random(*rc::gen::arbitrary<uint64_t>());
    std::vector<std::vector<const void*>> hosts;
    size_t all = 0;
    for (const int each : counts) all += static_cast<size_t>(each);
    sources.reserve(all);
    for (const int each : counts) {
      hosts.emplace_back();
      for (int i = 0; i < each; ++i) {
        sources.push_back(random_values(dtype, count, random));
        hosts.back().push_back(sources.back().data());
      }
    }
    expected = naive_reduction_over_hosts(dtype, reduction, hosts, count);
  }
  std::vector<int> host_of_sources() const {
    std::vector<int> hosts;
    for (size_t host = 0; host < counts.size(); ++host) {
      hosts.insert(hosts.end(), static_cast<size_t>(counts[host]), static_cast<int>(host));
    }
    return hosts;
  }
};

RC_GTEST_PROP(TreeReduction, OfAllSourcesAtOnceAgreesWithALoopOverElements, ()) {
  const Case one;
  const SumOrder order = sum_order(HostLayout(one.host_of_sources()), {});
  Bytes result(one.expected.size());
  reduce_in_order({one.dtype, one.dtype, one.reduction, order.joins}, addresses(one.sources),
                  result.data(), one.count);
  RC_ASSERT(result == one.expected);
}

RC_GTEST_PROP(TreeReduction, ByWayOfPartialSumsHasTheSameBits, ()) {
  const Case one;
  const SumOrder order = sum_order(HostLayout(one.host_of_sources()), {});
  if (order.partials.empty()) return;
  const DType kept = partial_dtype(one.dtype, one.reduction.op);
  const auto sources = addresses(one.sources);
  std::vector<Bytes> partials;
  for (const SumOrder::Partial& partial : order.partials) {
    partials.emplace_back(static_cast<size_t>(one.count) * size_of(kept));
    reduce_in_order({one.dtype, kept, one.reduction, partial.joins},
                    std::span(sources).subspan(partial.first, partial.joins.size()),
                    partials.back().data(), one.count);
  }
  Bytes result(one.expected.size());
  reduce_in_order({kept, one.dtype, reduction_of_partials(one.reduction), order.partial_joins},
                  addresses(partials), result.data(), one.count);
  RC_ASSERT(result == one.expected);
}

RC_GTEST_PROP(TreeReduction, MayBeWrittenOverAnyOfItsSources, ()) {
  Case one;
  const SumOrder order = sum_order(HostLayout(one.host_of_sources()), {});
  const size_t place = *rc::gen::inRange<size_t>(0, one.sources.size());
  const auto sources = addresses(one.sources);
  reduce_in_order({one.dtype, one.dtype, one.reduction, order.joins}, sources,
                  one.sources[place].data(), one.count);
  RC_ASSERT(one.sources[place] == one.expected);
}

TEST(TreeReduction, SixteenBitsAreRoundedOnceAfterAllHosts) {
  // Rounded by itself the sum of the first two would be 1, and 2^-8 more would be lost.
  const std::vector<BFloat16> one(3, BFloat16(1.0F)), small(3, BFloat16(0x1p-9F));
  const std::vector<const void*> sources{one.data(), small.data(), small.data(), small.data()};
  std::vector<BFloat16> result(3);
  reduce_in_order({DType::kBF16, DType::kBF16, {}, {0, 1, 0, 2}}, sources, result.data(), 3);
  for (const BFloat16 each : result) EXPECT_EQ(static_cast<float>(each), 1 + 0x1p-7F);
}

TEST(TreeReduction, PartialResultsOf16BitsAreF32UnlessTheyAreExact) {
  EXPECT_EQ(partial_dtype(DType::kBF16, ReduceOp::kSum), DType::kF32);
  EXPECT_EQ(partial_dtype(DType::kF16, ReduceOp::kPremultipliedSum), DType::kF32);
  EXPECT_EQ(partial_dtype(DType::kF16, ReduceOp::kMax), DType::kF16);
  EXPECT_EQ(partial_dtype(DType::kF64, ReduceOp::kSum), DType::kF64);
  EXPECT_EQ(partial_growth(DType::kBF16, ReduceOp::kSum), 2u);
  EXPECT_EQ(partial_growth(DType::kI8, ReduceOp::kSum), 1u);
}

}  // namespace
}  // namespace lockstep::dist
