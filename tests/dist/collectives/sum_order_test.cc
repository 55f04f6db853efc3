#include "dist/collectives/sum_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::dist {
namespace {

/// Writes what a stack of sums becomes as text: "((a+b)+c)".
std::string added(const std::vector<std::string>& terms, const std::vector<uint8_t>& joins) {
  std::vector<std::string> stack;
  for (size_t i = 0; i < terms.size(); ++i) {
    stack.push_back(terms[i]);
    for (int join = 0; join < joins[i]; ++join) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + right + ")";
    }
  }
  return stack.size() == 1 ? stack[0] : "not one sum";
}

std::vector<std::string> texts_of(const SumOrder& order) {
  std::vector<std::string> texts;
  for (const auto& [rank, sum] : order.terms) {
    texts.push_back(std::to_string(rank) +
                    (sum > 0 ? std::string(static_cast<size_t>(sum), '\'') : std::string()));
  }
  return texts;
}

std::string at_once(const SumOrder& order) { return added(texts_of(order), order.joins); }

/// The same by way of the hosts' partial sums.
std::string by_hosts(const SumOrder& order) {
  const std::vector<std::string> texts = texts_of(order);
  std::vector<std::string> partials;
  for (const SumOrder::Partial& partial : order.partials) {
    const auto first = texts.begin() + static_cast<std::ptrdiff_t>(partial.first);
    const auto count = static_cast<std::ptrdiff_t>(partial.joins.size());
    partials.push_back(added({first, first + count}, partial.joins));
  }
  return added(partials, order.partial_joins);
}

SumOrder order_on(const std::vector<int>& hosts, const LeafDeal& deal = {}) {
  return sum_order(HostLayout(hosts), deal);
}

TEST(SumOrder, RanksOfOneHostAreAddedOneAfterTheOther) {
  const SumOrder order = sum_order(HostLayout::one_host(3), {});
  EXPECT_EQ(texts_of(order), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_TRUE(order.joins.empty());
  EXPECT_TRUE(order.partials.empty());
}

TEST(SumOrder, HostsAreAddedInATreeAndTheirRanksInOrder) {
  EXPECT_EQ(at_once(order_on({0, 0, 0, 1, 1, 1})), "(((0+1)+2)+((3+4)+5))");
  EXPECT_EQ(at_once(order_on({7, 3, 7, 3})), "((0+2)+(1+3))");
  EXPECT_EQ(at_once(order_on({0, 1, 2, 3, 4})), "(((0+1)+(2+3))+4)");
  EXPECT_EQ(at_once(order_on({0, 1, 1, 2, 2})), "((0+(1+2))+(3+4))");
}

TEST(SumOrder, AHostSendsTheLargestSubtreesThatItHas) {
  const LeafDeal even = LeafDeal::even(8, 4);
  EXPECT_EQ(order_on({0, 0, 1, 1}, even).partials.size(), 2u);
  EXPECT_EQ(at_once(order_on({0, 0, 1, 1}, even)), "((0+1)+(2+3))");
  // Ranks in turn on two hosts have no neighbours to add.
  EXPECT_EQ(order_on({0, 1, 0, 1}, even).partials.size(), 4u);
  // Leaves 0 to 2 and 3 to 7 of eight: the second host has leaf 3 and a subtree of four.
  const std::vector<int64_t> counts{1, 2, 2, 3};
  const SumOrder uneven = order_on({0, 0, 1, 1}, LeafDeal::of_counts(counts));
  EXPECT_EQ(by_hosts(uneven), "(((0+1)+(1'+2))+((2'+3)+3'))");
  EXPECT_EQ(uneven.partials.size(), 4u);
}

RC_GTEST_PROP(SumOrder, PartialSumsOfHostsLeadToTheSameSum, ()) {
  const auto hosts = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, *rc::gen::inRange(1, 6))));
  LeafDeal deal;
  if (*rc::gen::arbitrary<bool>()) {
    deal = LeafDeal::of_counts(
        *rc::gen::container<std::vector<int64_t>>(hosts.size(), rc::gen::inRange<int64_t>(1, 9)));
  }
  const SumOrder order = order_on(hosts, deal);
  const HostLayout layout(hosts);
  if (layout.hosts() > 1) RC_ASSERT(by_hosts(order) == at_once(order));
  // No layout of hosts changes the order over leaves.
  if (!deal.is_empty()) {
    const auto one = HostLayout::one_host(static_cast<int>(hosts.size()));
    RC_ASSERT(at_once(order) == at_once(sum_order(one, deal)));
  }
  for (const SumOrder::Partial& partial : order.partials) {
    for (size_t i = 0; i < partial.joins.size(); ++i) {
      RC_ASSERT(layout.host_of(order.terms[partial.first + i].rank) == partial.host);
    }
  }
}

}  // namespace
}  // namespace lockstep::dist
