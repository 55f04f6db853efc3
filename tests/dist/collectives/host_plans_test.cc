// Plans for groups of several hosts: what goes between the hosts. That results are right is tested
// with all other plans (schedule_run_test.cc).

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "tests/dist/group/random_operation.h"

namespace lockstep::dist {
namespace {

/// What a host sends to others and receives from them.
struct HostTraffic {
  uint64_t sent = 0;
  uint64_t received = 0;
  int messages = 0;  ///< sent
};

std::vector<HostTraffic> traffic(const Collective& collective, const HostLayout& plans_for) {
  const HostLayout layout = collective.layout();
  std::vector<HostTraffic> hosts(static_cast<size_t>(layout.hosts()));
  for (int rank = 0; rank < collective.size; ++rank) {
    const Schedule schedule = plan(collective.operation(rank), rank, plans_for, collective.cut);
    for (const Step& step : schedule.steps) {
      if (step.kind != Step::Kind::kSend) continue;
      const int from = layout.host_of(rank), to = layout.host_of(step.peer);
      if (from == to) continue;
      hosts[static_cast<size_t>(from)].sent += step.slice.bytes;
      hosts[static_cast<size_t>(to)].received += step.slice.bytes;
      ++hosts[static_cast<size_t>(from)].messages;
    }
  }
  return hosts;
}

std::vector<HostTraffic> traffic(const Collective& collective) {
  return traffic(collective, collective.layout());
}

uint64_t busiest(const std::vector<HostTraffic>& hosts) {
  uint64_t most = 0;
  for (const HostTraffic& each : hosts) most = std::max({most, each.sent, each.received});
  return most;
}

/// `hosts` hosts with `local` ranks each, one host's after the other's.
std::vector<int> even_hosts(int hosts, int local) {
  std::vector<int> result;
  for (int rank = 0; rank < hosts * local; ++rank) result.push_back(rank / local);
  return result;
}

Collective on_hosts(OpKind kind, const std::vector<int>& hosts, int64_t count,
                    DType dtype = DType::kF32) {
  Collective result = collective(kind, static_cast<int>(hosts.size()), count, dtype);
  result.hosts = hosts;
  return result;
}

void expect_each(const std::vector<HostTraffic>& hosts, uint64_t sent, uint64_t received) {
  for (size_t host = 0; host < hosts.size(); ++host) {
    EXPECT_EQ(hosts[host].sent, sent) << "host " << host;
    EXPECT_EQ(hosts[host].received, received) << "host " << host;
  }
}

constexpr uint64_t kMiB = 1 << 20;

TEST(HostPlans, AHostSendsAndReceivesTheLeastPossible) {
  for (const int count : {2, 3, 4, 6}) {
    for (const int local : {2, 3, 8}) {
      const std::vector<int> hosts = even_hosts(count, local);
      const auto h = static_cast<uint64_t>(count);
      const uint64_t bytes = h * static_cast<uint64_t>(local) * kMiB / 4;
      const auto elements = static_cast<int64_t>(bytes / 4);
      const uint64_t half = bytes / h * (h - 1);
      expect_each(traffic(on_hosts(OpKind::kAllReduce, hosts, elements)), 2 * half, 2 * half);
      const int64_t part = elements / std::ssize(hosts);
      expect_each(traffic(on_hosts(OpKind::kReduceScatter, hosts, part)), half, half);
      // Gathered parts go to all other hosts.
      expect_each(traffic(on_hosts(OpKind::kAllGather, hosts, part)), half, half);
      // Directly, each of the ranks of a host would.
      const auto one_host = HostLayout::one_host(count * local);
      const uint64_t direct = static_cast<uint64_t>(local) * half;
      expect_each(traffic(on_hosts(OpKind::kReduceScatter, hosts, part), one_host), direct, direct);
    }
  }
}

TEST(HostPlans, SixteenBitsTravelAsPartialSumsOf32) {
  const std::vector<int> hosts = even_hosts(2, 4);
  const int64_t elements = kMiB;
  const uint64_t half = kMiB;  // of 2 MiB
  expect_each(traffic(on_hosts(OpKind::kAllReduce, hosts, elements, DType::kBF16)), 3 * half,
              3 * half);
  Collective largest = on_hosts(OpKind::kAllReduce, hosts, elements, DType::kBF16);
  for (Operation& operation : largest.operations) operation.reduction = {ReduceOp::kMax};
  expect_each(traffic(largest), 2 * half, 2 * half);
}

TEST(HostPlans, SumsOverLeavesLeaveAHostAsWholeSubtrees) {
  // Eight leaves: each host has four, which are one subtree.
  Collective tree = on_hosts(OpKind::kAllReduce, even_hosts(2, 4), kMiB);
  for (Operation& operation : tree.operations) {
    operation.deal = LeafDeal::even(8, 8);
    operation.reduction = {.leaves = 8};
    operation.input_stride = bytes_of(operation);
  }
  expect_each(traffic(tree), 4 * kMiB, 4 * kMiB);
  // With the ranks in turn on the hosts no subtree is whole, and only results go once.
  tree.hosts = {0, 1, 0, 1, 0, 1, 0, 1};
  expect_each(traffic(tree), (4 + 1) * 2 * kMiB, (4 + 1) * 2 * kMiB);
}

TEST(HostPlans, ABroadcastLeavesTheRootsHostOnce) {
  for (const std::vector<int>& hosts :
       {std::vector{0, 0, 1, 1}, std::vector{0, 0, 0, 1, 1, 2}, std::vector{0, 1, 1, 1}}) {
    Collective broadcast = on_hosts(OpKind::kBroadcast, hosts, kMiB);
    const std::vector<HostTraffic> each = traffic(broadcast);
    EXPECT_EQ(each[0].sent, 4 * kMiB);
    EXPECT_EQ(each[0].received, 0u);
    for (size_t host = 1; host < each.size(); ++host) {
      EXPECT_EQ(each[host].received, 4 * kMiB);
      EXPECT_LE(each[host].sent, 4 * kMiB);
    }
  }
}

RC_GTEST_PROP(HostPlans, NoLinkCarriesMoreThanWithoutHosts, ()) {
  Collective collective = *random_collective();
  // Whole parts of 64 bytes for every rank: else those of some are longer.
  for (Operation& operation : collective.operations) {
    if (operation.kind != OpKind::kAllToAll) operation.count = 64 * 840;
    operation.input_stride = bytes_of(operation);
  }
  const auto direct = HostLayout::one_host(collective.size);
  RC_ASSERT(busiest(traffic(collective)) <= busiest(traffic(collective, direct)));
}

TEST(HostPlans, NothingIsSentOfNoElements) {
  for (const OpKind kind :
       {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kBroadcast}) {
    for (const int hosts : {2, 64}) {
      const Collective nothing = on_hosts(kind, even_hosts(hosts, 2), 0);
      for (int rank = 0; rank < nothing.size; ++rank) {
        EXPECT_TRUE(nothing.plan(rank).steps.empty()) << name(kind) << " of " << hosts << " hosts";
      }
    }
  }
}

TEST(HostPlans, OfASmallTensorAHostSendsOneMessageToEachOther) {
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kBarrier}) {
    for (const HostTraffic& host : traffic(on_hosts(kind, even_hosts(8, 4), 100))) {
      EXPECT_EQ(host.messages, 7) << name(kind);
    }
  }
}

TEST(HostPlans, AmongManyHostsSmallTensorsTakeATree) {
  for (const int count : {100, 128, 300}) {
    for (const int local : {1, 2}) {
      const std::vector<HostTraffic> hosts =
          traffic(on_hosts(OpKind::kAllReduce, even_hosts(count, local), 100));
      int sum = 0;
      for (const HostTraffic& host : hosts) {
        sum += host.messages;
        EXPECT_LE(host.messages, std::bit_width(static_cast<unsigned>(count)));
      }
      // To the parent and back.
      EXPECT_EQ(sum, 2 * (count - 1));
    }
  }
}

TEST(HostPlans, Of4096RanksFitInMemoryAndSendTheLeast) {
  const HostLayout layout(even_hosts(512, 8));
  const auto plan_of = [&](OpKind kind, int rank, int64_t count) {
    return plan({.kind = kind, .dtype = DType::kF32, .count = count}, rank, layout, Cut());
  };
  const auto leaving = [&](const Schedule& schedule, int host) {
    HostTraffic traffic;
    for (const Step& step : schedule.steps) {
      if (step.kind != Step::Kind::kSend || layout.host_of(step.peer) == host) continue;
      traffic.sent += step.slice.bytes;
      ++traffic.messages;
    }
    return traffic;
  };
  const uint64_t bytes = 64 * kMiB;
  const Schedule large = plan_of(OpKind::kAllReduce, 9, static_cast<int64_t>(bytes / 4));
  EXPECT_EQ(leaving(large, 1).sent, 2 * bytes / 512 * 511 / 8);
  EXPECT_EQ(leaving(large, 1).messages, 2 * 511);
  EXPECT_LT(large.scratch_bytes, 2 * bytes);
  EXPECT_EQ(leaving(plan_of(OpKind::kBarrier, 0, 0), 0).messages, 9) << "the root of the tree";
  EXPECT_EQ(leaving(plan_of(OpKind::kBarrier, 8, 0), 1).messages, 1) << "a leaf of the tree";
}

TEST(HostPlans, AllRanksOfAHostShareItsWorkBetweenHosts) {
  const Collective all_reduce = on_hosts(OpKind::kAllReduce, even_hosts(3, 4), 12 * kMiB);
  const HostLayout layout = all_reduce.layout();
  for (int rank = 0; rank < all_reduce.size; ++rank) {
    uint64_t sent = 0;
    for (const Step& step : all_reduce.plan(rank).steps) {
      const bool leaves =
          step.kind == Step::Kind::kSend && layout.host_of(step.peer) != layout.host_of(rank);
      sent += leaves ? step.slice.bytes : 0;
    }
    EXPECT_EQ(sent, 2 * 48 * kMiB / 3 * 2 / 4) << "rank " << rank;
  }
}

}  // namespace
}  // namespace lockstep::dist
