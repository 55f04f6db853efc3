#include "dist/simulate/collective_cost.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "dist/collectives/schedule.h"

namespace lockstep::dist {
namespace {

constexpr double kMB = 1e6;

Cluster cluster_with(Collectives collectives) {
  return {.hosts = 16,
          .ranks_per_host = 4,
          .inside = {.bytes_per_second = 100e9, .latency = 1e-6},
          .between = {.bytes_per_second = 10e9, .latency = 5e-6},
          .collectives = collectives};
}

constexpr Collectives kAll[] = {Collectives::kDirect, Collectives::kRing, Collectives::kRingOrTree,
                                Collectives::kHierarchical};
constexpr OpKind kKinds[] = {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter};

TEST(CollectiveCost, IsNothingForOneRank) {
  for (const Collectives each : kAll) {
    EXPECT_EQ(collective_cost(OpKind::kAllReduce, kMB, {}, cluster_with(each)).seconds(), 0);
  }
}

TEST(CollectiveCost, OfTwoHostsIsTheBytesThatEachSendsByTheRate) {
  Cluster cluster = cluster_with(Collectives::kDirect);
  cluster.between = {.bytes_per_second = 1e9};
  const GroupShape pair{.hosts = 2};
  for (const Collectives each : kAll) {
    cluster.collectives = each;
    // Each of two ranks sends half of the bytes, twice in an all_reduce.
    EXPECT_DOUBLE_EQ(collective_cost(OpKind::kAllGather, kMB, pair, cluster).seconds(), 0.5e-3);
    EXPECT_DOUBLE_EQ(collective_cost(OpKind::kAllReduce, kMB, pair, cluster).seconds(), 1e-3);
    EXPECT_DOUBLE_EQ(sent_bytes(OpKind::kAllReduce, kMB, pair), kMB);
  }
}

TEST(CollectiveCost, RingWaitsForEveryHopAndDirectForOne) {
  const GroupShape group{.hosts = 4, .ranks_per_host = 2};
  Cluster cluster = cluster_with(Collectives::kRing);
  const double hops = 3 * 5e-6 + 4 * 1e-6;
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::kReduceScatter, 0, group, cluster).seconds(), hops);
  cluster.collectives = Collectives::kDirect;
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::kReduceScatter, 0, group, cluster).seconds(), 5e-6);
}

TEST(CollectiveCost, RanksOfAHostShareItsLinkWhereEachSendsToEveryOther) {
  const Cluster direct = cluster_with(Collectives::kDirect);
  const double one = collective_cost(OpKind::kAllGather, kMB, {.hosts = 2}, direct).link;
  const double four =
      collective_cost(OpKind::kAllGather, kMB, {.hosts = 2, .ranks_per_host = 4}, direct).link;
  EXPECT_DOUBLE_EQ(four, 4 * one);
}

TEST(CollectiveCost, TreeIsTakenWhereLatencyOutweighsBytes) {
  const GroupShape group{.hosts = 16, .ranks_per_host = 4};
  const Cluster ring = cluster_with(Collectives::kRing);
  const Cluster best = cluster_with(Collectives::kRingOrTree);
  const auto seconds = [&](const Cluster& cluster, double bytes) {
    return collective_cost(OpKind::kAllReduce, bytes, group, cluster).seconds();
  };
  EXPECT_LT(seconds(best, 8), seconds(ring, 8));
  EXPECT_DOUBLE_EQ(seconds(best, 8), 16 / 10e9 + 6 * 1e-6 + 8 * 5e-6);
  EXPECT_DOUBLE_EQ(seconds(best, 1e12), seconds(ring, 1e12));
}

TEST(CollectiveCost, NeverGrowsWithBandwidthAndNeverShrinksWithBytes) {
  for (const Collectives each : kAll) {
    for (const OpKind kind : kKinds) {
      for (const GroupShape& group :
           {GroupShape{.hosts = 16, .ranks_per_host = 4}, GroupShape{.ranks_per_host = 4},
            GroupShape{.hosts = 4, .sharing = 4, .stride = 4}}) {
        Cluster cluster = cluster_with(each);
        double before = collective_cost(kind, kMB, group, cluster).seconds();
        for (int i = 0; i < 8; ++i) {
          cluster.between.bytes_per_second *= 2;
          const double now = collective_cost(kind, kMB, group, cluster).seconds();
          EXPECT_LE(now, before);
          EXPECT_GE(collective_cost(kind, 2 * kMB, group, cluster).seconds(), now);
          before = now;
        }
      }
    }
  }
}

TEST(CollectiveCost, OversubscriptionSlowsWhatLeavesThePod) {
  Cluster cluster = cluster_with(Collectives::kRing);
  cluster.hosts_per_pod = 4;
  cluster.oversubscription = 8;
  const GroupShape all{.hosts = 16, .ranks_per_host = 4};
  const GroupShape pod{.hosts = 4, .ranks_per_host = 4};
  const double rate = cluster.between.bytes_per_second;
  EXPECT_DOUBLE_EQ(rate_between(cluster, pod, true), rate) << "nothing leaves the pod";
  // Of a ring one host in four sends out of the pod.
  EXPECT_DOUBLE_EQ(rate_between(cluster, all, false), rate / 8 * 4);
  EXPECT_DOUBLE_EQ(rate_between(cluster, all, true), rate / 8 * 15 / 12);
  const GroupShape strided{.hosts = 4, .sharing = 4, .stride = 4};
  EXPECT_DOUBLE_EQ(rate_between(cluster, strided, false), rate / 8) << "all of it leaves the pod";
}

TEST(CollectiveCost, CongestionTakesAPartWithEachDoublingOfPods) {
  Cluster cluster = cluster_with(Collectives::kRing);
  cluster.hosts_per_pod = 4;
  cluster.congestion = 0.1;
  const GroupShape all{.hosts = 16, .ranks_per_host = 4};
  EXPECT_DOUBLE_EQ(rate_between(cluster, all, false), cluster.between.bytes_per_second * 0.9 * 0.9);
}

TEST(CollectiveCost, IsThatOfItsFormula) {
  Cluster cluster = cluster_with(Collectives::kDirect);
  cluster.per_operation = 7e-6;
  cluster.cpu_per_byte = 1e-9;
  const GroupShape group{.hosts = 4, .ranks_per_host = 2, .sharing = 2};
  const auto expect = [&](Collectives each, OpKind kind, double link, double latency) {
    cluster.collectives = each;
    const CollectiveCost cost = collective_cost(kind, kMB, group, cluster);
    EXPECT_NEAR(cost.link, link + 7e-6, 1e-12);
    EXPECT_NEAR(cost.latency, latency, 1e-12);
    // Each rank sends seven eighths, twice in an all_reduce.
    EXPECT_NEAR(cost.cpu, (kind == OpKind::kAllReduce ? 2 : 1) * 0.875e-3, 1e-12);
  };
  // Two groups share 10 GB/s between hosts: 0.2 ns a byte. Inside a byte takes 0.01 ns.
  const double direct = 2 * 1e6 * 3 / 4 * 0.2e-9;
  const double ring = 0.875e6 * 0.2e-9 + 3 * 5e-6 + 4 * 1e-6;
  const double hierarchical = 0.75e6 * 0.2e-9;
  expect(Collectives::kDirect, OpKind::kAllGather, direct, 5e-6);
  expect(Collectives::kDirect, OpKind::kAllReduce, 2 * direct, 10e-6);
  expect(Collectives::kRing, OpKind::kReduceScatter, ring, 0);
  expect(Collectives::kRingOrTree, OpKind::kReduceScatter, ring, 0);
  expect(Collectives::kRing, OpKind::kAllReduce, 2 * ring, 0);
  expect(Collectives::kHierarchical, OpKind::kAllGather, hierarchical, 6e-6);
  // The link inside hosts may be the slower one.
  cluster.inside.bytes_per_second = 1e6;
  expect(Collectives::kDirect, OpKind::kAllGather, 1e6 / 8 * 1e-6, 5e-6);
  expect(Collectives::kHierarchical, OpKind::kAllGather, 1e6 / 2 * 1e-6, 6e-6);
  expect(Collectives::kRing, OpKind::kAllGather, 0.875e6 * 1e-6 + 19e-6, 0);
}

TEST(CollectiveCost, HierarchicalIsDirectWithOneHostOrOneRankOnEach) {
  for (const OpKind kind : kKinds) {
    for (const GroupShape& group : {GroupShape{.ranks_per_host = 8}, GroupShape{.hosts = 8}}) {
      const auto seconds = [&](Collectives each) {
        return collective_cost(kind, kMB, group, cluster_with(each)).seconds();
      };
      EXPECT_DOUBLE_EQ(seconds(Collectives::kHierarchical), seconds(Collectives::kDirect));
    }
  }
}

/// The most bytes that a host sends to others in the plans of its ranks.
double bytes_between_hosts(OpKind kind, const GroupShape& group, int64_t count) {
  std::vector<int> hosts;
  for (int64_t rank = 0; rank < group.ranks(); ++rank) {
    hosts.push_back(static_cast<int>(rank / group.ranks_per_host));
  }
  const HostLayout layout(hosts);
  const Operation operation{.kind = kind, .dtype = DType::kF32, .count = count};
  uint64_t bytes = 0;
  for (const int rank : layout.ranks_of(0)) {
    for (const Step& step : plan(operation, rank, layout, Cut()).steps) {
      const bool leaves = step.kind == Step::Kind::kSend && layout.host_of(step.peer) != 0;
      bytes += leaves ? step.slice.bytes : 0;
    }
  }
  return static_cast<double>(bytes);
}

TEST(CollectiveCost, HierarchicalSendsBetweenHostsWhatPlansDo) {
  Cluster cluster = cluster_with(Collectives::kHierarchical);
  cluster.inside.bytes_per_second = std::numeric_limits<double>::infinity();
  cluster.between.bytes_per_second = 1;
  for (const GroupShape& group :
       {GroupShape{.hosts = 2, .ranks_per_host = 2}, GroupShape{.hosts = 4, .ranks_per_host = 8},
        GroupShape{.hosts = 8}}) {
    for (const OpKind kind : kKinds) {
      const int64_t count = int64_t{1} << 18;  // of the whole tensor
      const int64_t given = kind == OpKind::kAllReduce ? count : count / group.ranks();
      EXPECT_DOUBLE_EQ(collective_cost(kind, static_cast<double>(4 * count), group, cluster).link,
                       bytes_between_hosts(kind, group, given));
    }
  }
}

TEST(CollectiveCost, WithinAHostHasItsLatencyAndNoTree) {
  const GroupShape host{.hosts = 1, .ranks_per_host = 8};
  const Cluster direct = cluster_with(Collectives::kDirect);
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::kAllGather, 0, host, direct).seconds(), 1e-6);
  // A tree over eight ranks of a host would be a chain of as many hops as the ring.
  const Cluster best = cluster_with(Collectives::kRingOrTree);
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::kAllReduce, 8e6, host, best).seconds(),
                   2 * (7e6 / 100e9 + 7e-6));
}

}  // namespace
}  // namespace lockstep::dist
