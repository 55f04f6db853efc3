// Arguments of operations: what is refused, with which words, and the last that is taken.

#include "dist/group/process_group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

TEST(ProcessGroup, TensorsMustBeDenseAndOnADeviceThatIsThere) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor turned = cpu_ones(6).view({2, 3}).t();
    expect_error<ShapeError>([&] { group.all_reduce(turned); },
                             "[all_reduce] expected a dense, row-major tensor, got sizes [3, 2]",
                             "with strides [1, 3]. Pass contiguous(), and copy results back.");
    expect_error<ShapeError>([&] { group.broadcast(Tensor(), 0); },
                             "[broadcast] a tensor is undefined: expected one with memory.");
    expect_error<DeviceError>(
        [&] {
          group.reduce(empty({2}, {DType::kF32, kMeta}), 0);
        },
        "[reduce] expected tensors on the cpu or on a device with streams, got one on meta");
  });
}

TEST(ProcessGroup, OutputAndInputMustFitEachOther) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor host = empty({4}, {DType::kF32, parse_device("host:0")});
    expect_error<DTypeError>([&] { group.all_gather(cpu_ones(4, DType::kI32), cpu_ones(2)); },
                             "[all_gather] expected output and input of one dtype, got int32 and "
                             "float32");
    expect_error<DeviceError>([&] { group.reduce_scatter(cpu_ones(2), host); },
                              "[reduce_scatter] expected output and input on one device, got cpu");
    expect_error<DeviceError>(
        [&] {
          group.all_reduce(std::vector<Tensor>{cpu_ones(2), host});
        },
        "[all_reduce] expected the tensors of one call on one device, got cpu and host:0");
    expect_error<ShapeError>(
        [&] { group.all_gather(std::vector<Tensor>{cpu_ones(2)}, std::vector<Tensor>{}); },
        "[all_gather] expected as many outputs as inputs, got 1 and 0");
    expect_error<ShapeError>(
        [&] { group.reduce_scatter(std::vector<Tensor>{}, std::vector<Tensor>{cpu_ones(2)}); },
        "[reduce_scatter] expected as many outputs as inputs, got 0 and 1");
    expect_error<ShapeError>([&] { group.all_gather(cpu_ones(3), cpu_ones(2)); },
                             "output: expected 4 elements, 2 times the input's 2, got sizes [3]");
    expect_error<ShapeError>([&] { group.reduce_scatter(cpu_ones(3), cpu_ones(2)); },
                             "input: expected 6 elements, 2 times the output's 3, got sizes [2]");
  });
}

TEST(ProcessGroup, RanksAndTagsHaveBounds) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor tensor = cpu_ones(4);
    const int other = 1 - group.rank();
    for (const int root : {-1, 2}) {
      const std::string got = "root: expected a rank of 0 to 1, got " + std::to_string(root);
      expect_error<DistError>([&] { group.broadcast(tensor, root); }, "[broadcast] " + got);
      expect_error<DistError>([&] { group.reduce(tensor, root); }, "[reduce] " + got);
    }
    expect_error<DistError>([&] { group.send(tensor, 2); }, "[send] to: expected a rank of 0 to 1");
    expect_error<DistError>([&] { group.recv(tensor, -1); }, "[recv] from: expected a rank of 0");
    expect_error<DistError>(
        [&] { group.recv(tensor, group.rank()); },
        "[recv] expected another rank, got this one, " + std::to_string(group.rank()));
    for (const int tag : {-1, 65'536}) {
      expect_error<DistError>([&] { group.send(tensor, other, tag); },
                              "[send] tag: expected 0 to 65535, got " + std::to_string(tag));
    }
    const Work sent = group.send(tensor, other, 65'535);
    group.recv(cpu_ones(4), other, 65'535).wait();
    sent.wait();
  });
}

TEST(ProcessGroup, TimeoutsAreAtLeastAMillisecond) {
  all_ranks(1, [](ProcessGroup& group) {
    EXPECT_EQ(group.timeout(), 10min);
    expect_error<DistError>([&] { group.set_timeout(0ms); },
                            "[set_timeout] expected at least 1 ms, got 0");
    expect_error<DistError>([&] { group.barrier({.timeout = 0ms}); },
                            "[world] timeout: expected at least 1 ms, got 0");
    group.barrier({.timeout = 1ms}).wait();
    group.set_timeout(1ms);
    EXPECT_EQ(group.timeout(), 1ms);
  });
}

TEST(ProcessGroup, PartsOfAllToAllAreWholeRowsThatFit) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor four = cpu_ones(4);
    const auto exchange = [&](const std::vector<int64_t>& out, const std::vector<int64_t>& in) {
      return group.all_to_all(cpu_ones(4), four, out, in);
    };
    expect_error<ShapeError>([&] { group.all_to_all(four, cpu_ones(3)); },
                             "input: expected a first dimension that 2 ranks share evenly, got "
                             "sizes [3]. Pass input_splits for unequal parts");
    expect_error<ShapeError>([&] { group.all_to_all(cpu_ones(3), four); },
                             "output: expected a first dimension that 2 ranks share evenly");
    // Four elements, but one row.
    expect_error<ShapeError>(
        [&] {
          group.all_to_all(four, cpu_ones(4).view({1, 4}));
        },
        "input: expected a first dimension");
    const std::vector<std::vector<int64_t>> bad = {{4}, {1, 2}, {-1, 5}, {2, 1, 1}};
    for (const auto& splits : bad) {
      expect_error<ShapeError>(
          [&] {
            exchange({2, 2}, splits);
          },
          "input_splits: expected 2 numbers of rows that add up to 4, got");
      expect_error<ShapeError>(
          [&] {
            exchange(splits, {2, 2});
          },
          "output_splits: expected 2 numbers of rows that add up to 4, got");
    }
    expect_error<ShapeError>([&] { group.all_to_all(four, four); },
                             "[all_to_all] output and input: expected memory of their own");
    const std::vector<int64_t> most{3, 1}, least{1, 3};
    expect_error<ShapeError>([&] { exchange(most, least); },
                             "the part that rank " + std::to_string(group.rank()) + " keeps",
                             group.rank() == 0 ? "of output, got 1 and 3" : "of output, got 3 and");
    // Rows of several elements, and of none.
    const Tensor rows = empty({3, 2}, DType::kF32).fill_(5);
    const Tensor got = empty({3, 2}, DType::kF32).fill_(0);
    const std::vector<int64_t> splits{2 - group.rank(), 1 + group.rank()};
    group.all_to_all(got, rows, splits, splits).wait();
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(got.data<float>()[i], 5);
    const Tensor none = empty({0, 2}, DType::kF32);
    group.all_to_all(none, empty({0, 2}, DType::kF32), std::vector<int64_t>{0, 0}).wait();
  });
}

TEST(ProcessGroup, ATreesSumsHaveARowForEachSubtree) {
  all_ranks(2, [](ProcessGroup& group) {
    const Tensor output = cpu_ones(4);
    const Tensor sums = cpu_ones(8).view({2, 4});
    for (const int64_t leaves : {1, 4097}) {
      expect_error<DistError>([&] { group.tree_all_reduce(output, sums, leaves); },
                              "[tree_all_reduce] leaves: expected 2 to 4096, at least one for each "
                              "rank, got " +
                                  std::to_string(leaves));
    }
    for (const LeafDeal& deal : {LeafDeal(), LeafDeal::even(6, 3), LeafDeal::even(6, 1)}) {
      expect_error<DistError>(
          [&] { group.tree_all_reduce(output, sums, deal); },
          fmt::format("[tree_all_reduce] deal: expected leaves for each of the 2 ranks, got a deal "
                      "of {} ranks",
                      deal.ranks()));
    }
    expect_error<DistError>(
        [&] { group.tree_reduce_scatter(output, sums, LeafDeal::even(4097, 2)); },
        "[tree_reduce_scatter] deal: expected at most 4096 leaves, got 4097");
    // Three of six leaves are two subtrees, two of four are one.
    expect_error<ShapeError>([&] { group.tree_all_reduce(output, sums, 4); },
                             "[tree_all_reduce] sums: expected 1 rows, one for each subtree of "
                             "this rank's leaves, got sizes [2, 4]");
    expect_error<ShapeError>([&] { group.tree_reduce_scatter(output, Tensor(), 6); },
                             "[tree_reduce_scatter] sums: expected 2 rows", "of no tensor");
    expect_error<ShapeError>([&] { group.tree_all_reduce(output, cpu_ones(1).select(0, 0), 2); },
                             "expected 1 rows");
    expect_error<ShapeError>([&] { group.tree_all_reduce(cpu_ones(3), sums, 6); },
                             "[tree_all_reduce] sums: expected rows of 3 elements for an output of "
                             "3, got sizes [2, 4]");
    expect_error<ShapeError>([&] { group.tree_reduce_scatter(output, sums, 6); },
                             "expected rows of 8 elements for an output of 4, got sizes [2, 4]");
    const auto tree_of = [&](DType dtype) {
      return group.tree_all_reduce(cpu_ones(4, dtype), cpu_ones(4, dtype).view({1, 4}), 2);
    };
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      expect_error<DTypeError>([&] { tree_of(dtype); },
                               "[tree_all_reduce] sums of " + std::string(name(dtype)) +
                                   " would be rounded between the leaves of one rank, and not "
                                   "between those of two: expected float32 or float64");
    }
    expect_error<DTypeError>([&] { tree_of(DType::kBool); }, "tree_all_reduce");
    for (const DType dtype : {DType::kI16, DType::kF64}) tree_of(dtype).wait();
    group.tree_all_reduce(output, cpu_ones(4).view({1, 4}), 4096).wait();
    EXPECT_EQ(output.data<float>()[0], 2);
  });
}

TEST(ProcessGroup, SubgroupsAreOfDifferentRanksOfTheirs) {
  all_ranks(2, [](ProcessGroup& group) {
    const std::vector<std::vector<int>> bad = {{}, {0, 0}, {0, 2}, {-1, 0}};
    for (const auto& ranks : bad) {
      expect_error<DistError>([&] { (void)group.subgroup(ranks, "bad"); },
                              "[subgroup] ranks: expected different ranks of 0 to 1, at least one");
    }
    group.set_timeout(5s);
    const auto one = group.subgroup({1}, "one");
    EXPECT_EQ(one != nullptr, group.rank() == 1);
    if (one == nullptr) return;
    EXPECT_EQ(one->timeout(), 5s);
    EXPECT_STREQ(one->backend(), "thread");
    EXPECT_EQ(one->start_id(), group.start_id());
  });
}

TEST(ProcessGroup, AJobHas128Groups) {
  all_ranks(2, [](ProcessGroup& group) {
    // The world is the first.
    for (int i = 1; i < 128; ++i) (void)group.subgroup({0}, "many");
    expect_error<DistError>([&] { (void)group.subgroup({0}, "many"); },
                            "[subgroup] expected at most 128 groups in a job");
  });
}

TEST(ProcessGroup, CountsTheBytesItHasSent) {
  all_ranks(2, [](ProcessGroup& group) {
    EXPECT_EQ(group.bytes_sent(), 0u);
    group.all_gather(cpu_ones(20'000), cpu_ones(10'000)).wait();
    EXPECT_EQ(group.bytes_sent(), 40'000u);
  });
}

}  // namespace
}  // namespace lockstep::dist
