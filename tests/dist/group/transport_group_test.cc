// What a group does with tensors on a device with streams: what it reports to the stream sanitizer
// about them, and that their values are those of the cpu.

#include "dist/group/transport_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/device/stream_sanitizer.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/stream.h"
#include "dist/collectives/leaf_deal.h"
#include "dist/collectives/leaf_tree.h"
#include "tests/core/device/watched_memory.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

/// Tensors on a host device, with this thread's current stream and a second stream.
struct OnDevice {
  explicit OnDevice(const ProcessGroup& group)
      : ranks(group.size()),
        rank(group.rank()),
        device(parse_device("host:0")),
        main(device, 0),
        side(device, 0),
        own(main.get()),
        single(empty({5'000}, {DType::kF32, device}).fill_(1)),
        output(empty({5'000}, {DType::kF32, device}).fill_(1)),
        many(empty({group.size(), 5'000}, {DType::kF32, device}).fill_(1)),
        many_more(empty({group.size(), 5'000}, {DType::kF32, device}).fill_(1)) {}

  /// Modifies `tensor` on the second stream. Returns the sanitizer's report, or "".
  std::string change_beside(const Tensor& tensor) const {
    const StreamGuard there(side.get());
    try {
      tensor.fill_(2);
      return "";
    } catch (const DeviceError& error) {
      return error.what();
    }
  }
  std::string read_beside(const Tensor& tensor) const {
    const StreamGuard there(side.get());
    try {
      (void)relu(tensor);
      return "";
    } catch (const DeviceError& error) {
      return error.what();
    }
  }

  int ranks;
  int rank;
  Device device;
  OwnedStream main;
  OwnedStream side;
  StreamGuard own;
  Tensor single;
  Tensor output;
  Tensor many;
  Tensor many_more;
};

class TransportGroupStreams : public testing::Test {
 protected:
  void SetUp() override {
    was_on_ = stream_sanitizer::enabled();
    stream_sanitizer::enable(true);
  }
  void TearDown() override { stream_sanitizer::enable(was_on_); }

 private:
  bool was_on_ = false;
};

TEST_F(TransportGroupStreams, AReadOnAnotherStreamThatDidNotWaitForTheWorkIsReported) {
  all_ranks(2, [](ProcessGroup& group) {
    const OnDevice on(group);
    const Work work = group.all_reduce(on.single);
    const std::string report = on.read_beside(on.single);
    EXPECT_THAT(report, HasSubstr("[relu] on " + to_string(on.side.get()) +
                                  " reads memory that `all_reduce` on "));
    EXPECT_THAT(report, HasSubstr("may not have written yet"));
    work.synchronize();
  });
  EXPECT_EQ(stream_sanitizer::reports(), 2) << "one on each rank";
}

TEST_F(TransportGroupStreams, AnOperationOnWhatAnotherStreamStillWritesIsReportedAndNotBegun) {
  all_ranks(2, [](ProcessGroup& group) {
    const OnDevice on(group);
    {
      const StreamGuard there(on.side.get());
      on.side.get().wait_stream(on.main.get());
      on.single.fill_(3);
    }
    std::string report;
    try {
      group.all_reduce(on.single);
    } catch (const DeviceError& error) {
      report = error.what();
    }
    EXPECT_THAT(report, HasSubstr("[all_reduce] on "));
    EXPECT_THAT(report, HasSubstr("writes memory that `fill_.Scalar` on " +
                                  to_string(on.side.get()) + " may not have written yet"));
    // The refused operation was not counted: this one is the first on all ranks.
    on.main.get().wait_stream(on.side.get());
    const Work work = group.all_reduce(on.single);
    work.wait();
    EXPECT_EQ(on.single.to(kCPU).data<float>()[4'999], 6);
  });
}

TEST_F(TransportGroupStreams, WhoWaitedInAnyWayIsNotReported) {
  all_ranks(3, [](ProcessGroup& group) {
    const OnDevice on(group);
    const Work on_stream = group.all_reduce(on.single);
    {
      const StreamGuard there(on.side.get());
      on_stream.wait();
      EXPECT_EQ(on.read_beside(on.single), "");
    }
    on.main.get().wait_stream(on.side.get());
    group.all_reduce(on.single).synchronize();
    EXPECT_EQ(on.change_beside(on.single), "");
    on.main.get().wait_stream(on.side.get());
    const Work polled = group.all_reduce(on.single);
    while (!polled.is_completed()) std::this_thread::yield();
    EXPECT_EQ(on.change_beside(on.single), "");
  });
  EXPECT_EQ(stream_sanitizer::reports(), 0);
}

TEST_F(TransportGroupStreams, MemoryOfTensorsThatGoFirstIsMarkedAsUsedByTheOperation) {
  all_ranks(2, [](ProcessGroup& group) {
    const OnDevice on(group);
    WatchedMemory memory(on.device);
    group.all_reduce(memory.vector(5'000).fill_(1)).synchronize();
    EXPECT_EQ(memory.freed(), 1);
    ASSERT_EQ(memory.uses().size(), 1u);
    EXPECT_NE(memory.uses()[0], on.main.get());
    const Stream side = memory.uses()[0];
    {
      const Tensor output = memory.vector(10'000).fill_(1), input = memory.vector(5'000).fill_(1);
      group.all_gather(output, input).synchronize();
    }
    EXPECT_EQ(memory.uses(), (std::vector<Stream>{side, side, side}));
  });
}

TEST_F(TransportGroupStreams, EveryOperationSaysWhatItReadsAndWrites) {
  struct Case {
    const char* name;
    std::function<Work(ProcessGroup&, const OnDevice&)> start;
    std::function<Tensor(const OnDevice&)> read;     ///< undefined: nothing on this rank
    std::function<Tensor(const OnDevice&)> written;  ///< undefined: nothing on this rank
  };
  const auto none = [](const OnDevice&) { return Tensor(); };
  const auto single = [](const OnDevice& on) { return on.single; };
  const auto output = [](const OnDevice& on) { return on.output; };
  // Checks the last row only: the reported range must include it.
  const auto many = [](const OnDevice& on) { return on.many.select(0, on.ranks - 1); };
  const auto many_more = [](const OnDevice& on) { return on.many_more.select(0, on.ranks - 1); };
  const auto on_root = [single](const OnDevice& on) {
    return on.rank == 1 ? single(on) : Tensor();
  };
  const auto on_others = [single](const OnDevice& on) {
    return on.rank == 1 ? Tensor() : single(on);
  };
  const std::vector<Case> cases = {
      {"all_reduce", [](auto& group, auto& on) { return group.all_reduce(on.single); }, none,
       single},
      {"all_reduce",
       [](auto& group, auto& on) {
         return group.all_reduce(std::vector<Tensor>{on.output, on.single});
       },
       none, single},
      // Each rank has three of six leaves, hence the sums of two subtrees.
      {"all_reduce",
       [](auto& group, auto& on) { return group.tree_all_reduce(on.output, on.many, 6); }, many,
       output},
      {"reduce_scatter",
       [](auto& group, auto& on) { return group.reduce_scatter(on.output, on.many); }, many,
       output},
      {"all_gather", [](auto& group, auto& on) { return group.all_gather(on.many, on.single); },
       single, many},
      {"broadcast", [](auto& group, auto& on) { return group.broadcast(on.single, 1); }, on_root,
       on_others},
      {"reduce", [](auto& group, auto& on) { return group.reduce(on.single, 1); }, on_others,
       on_root},
      {"all_to_all", [](auto& group, auto& on) { return group.all_to_all(on.many_more, on.many); },
       many, many_more},
      {"send",
       [](auto& group, auto& on) {
         return on.rank == 0 ? group.send(on.single, 1) : group.recv(on.output, 0);
       },
       [single](const OnDevice& on) { return on.rank == 0 ? single(on) : Tensor(); }, none},
      {"recv",
       [](auto& group, auto& on) {
         if (on.rank == 0) group.send(on.output, 1);
         return on.rank == 1 ? group.recv(on.single, 0) : Work();
       },
       none, [single](const OnDevice& on) { return on.rank == 1 ? single(on) : Tensor(); }},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    all_ranks(2, [&](ProcessGroup& group) {
      const OnDevice on(group);
      on.side.get().wait_stream(on.main.get());
      const Work work = each.start(group, on);
      const std::string operation = std::string("`") + each.name + "`";
      if (const Tensor tensor = each.read(on); tensor.defined()) {
        EXPECT_EQ(on.read_beside(tensor), "") << "two may read";
        EXPECT_THAT(on.change_beside(tensor), HasSubstr(operation));
      }
      if (const Tensor tensor = each.written(on); tensor.defined()) {
        EXPECT_THAT(on.read_beside(tensor), HasSubstr(operation));
      }
      work.synchronize();
    });
  }
}

/// Calls every operation of `group` with tensors on `device`; returns what each rank then has, on
/// the cpu.
std::vector<Tensor> every_operation(ProcessGroup& group, Device device) {
  const int n = group.size(), rank = group.rank();
  const auto values = [&](int64_t count) {
    const Tensor tensor = empty({count}, DType::kF32);
    std::iota(tensor.data<float>(), tensor.data<float>() + count,
              100.0F * static_cast<float>(rank));
    return tensor.to(device);
  };
  const auto room = [&](int64_t count) { return empty({count}, {DType::kF32, device}).fill_(-1); };
  std::vector<Tensor> results;
  const auto keep = [&](const Tensor& tensor, Work work) {
    work.synchronize();
    results.push_back(tensor.to(kCPU));
  };
  const Tensor summed = values(7), reduced = values(5), sent = values(6);
  keep(summed, group.all_reduce(summed));
  keep(reduced, group.reduce(reduced, 1));
  keep(sent, group.broadcast(sent, 2));
  const Tensor part = room(4), whole = room(4 * n), own = values(4);
  keep(part, group.reduce_scatter(part, values(4 * n)));
  keep(whole, group.all_gather(whole, own));
  // Rank r sends r + i rows to rank i.
  std::vector<int64_t> to, from;
  for (int i = 0; i < n; ++i) to.push_back(rank + i);
  from = to;  // what i sends to this rank is i + rank rows as well
  const int64_t rows = std::accumulate(to.begin(), to.end(), int64_t{0});
  const Tensor exchanged = room(rows);
  keep(exchanged, group.all_to_all(exchanged, values(rows), from, to));
  // Around the ring, begun by rank 0: on a device a message waits for the one before.
  const Tensor received = room(3), message = values(3);
  if (rank == 0) group.send(message, 1).synchronize();
  keep(received, group.recv(received, (rank + n - 1) % n));
  if (rank != 0) group.send(message, (rank + 1) % n).synchronize();
  const auto deal = LeafDeal::even(2 * n, n);
  const auto trees = static_cast<int64_t>(subtrees(deal.of(rank)).size());
  const Tensor tree = room(8), tree_part = room(2);
  keep(tree, group.tree_all_reduce(tree, values(trees * 8).view({trees, 8}), deal));
  keep(tree_part,
       group.tree_reduce_scatter(tree_part, values(trees * 2 * n).view({trees, 2 * n}), deal));
  group.barrier().synchronize();
  return results;
}

TEST(TransportGroup, EveryOperationOnADeviceGivesWhatItGivesOnTheCpu) {
  all_ranks(3, [](ProcessGroup& group) {
    const std::vector<Tensor> expected = every_operation(group, kCPU);
    const std::vector<Tensor> actual = every_operation(group, parse_device("host:0"));
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_TRUE(equal(actual[i], expected[i])) << "operation " << i;
    }
  });
}

}  // namespace
}  // namespace lockstep::dist
