// Groups over a fake NCCL: what they leave as it was, when their memory is freed, and whose error
// it is if several ranks fail.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/stream.h"
#include "dist/collectives/leaf_deal.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/ddp/gradient_arena.h"
#include "dist/flight/flight_log.h"
#include "dist/group/thread_group.h"
#include "dist/nccl/nccl_group.h"
#include "dist/nccl/nccl_watch.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl_job.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;

std::vector<float> floats_of(const Tensor& tensor) {
  const Tensor here = tensor.to(DType::kF32).to(kCPU).contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

TEST(NcclValues, ATreeLeavesTheSumsThatItAddsUpAsTheyWere) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    const auto rows =
        static_cast<int64_t>(subtrees(LeafDeal::even(8, group.size()).of(group.rank())).size());
    const Tensor sums = empty({rows, 30}, {DType::kF32, kHostDevice}).fill_(1);
    const Tensor result = empty({30}, {DType::kF32, kHostDevice});
    group.tree_all_reduce(result, sums, 8).wait();
    // Subtrees of 2 leaves, of 2 and 1, and of 1 and 2, by rank.
    EXPECT_EQ(floats_of(result), std::vector<float>(30, 5));
    EXPECT_EQ(floats_of(sums), std::vector<float>(static_cast<size_t>(rows * 30), 1));
  });
}

TEST(NcclValues, AReduceChangesNoOtherRanksTensorWhateverItsDtype) {
  FakeNccl fake;
  all_nccl_ranks(fake, {.size = 3}, [](NcclGroup& group) {
    for (const DType dtype : {DType::kI16, DType::kI32, DType::kF32}) {
      const Tensor tensor = host_ones(5, dtype);
      group.reduce(tensor, 1).wait();
      const float expected = group.rank() == 1 ? 3 : 1;
      EXPECT_EQ(floats_of(tensor), std::vector<float>(5, expected)) << name(dtype);
    }
  });
}

TEST(NcclValues, AMessageOfAnotherDtypeIsAMismatchThoughItHasAsManyElements) {
  FakeNccl fake;
  const auto errors = run_nccl_ranks(fake, {.size = 2}, [](NcclGroup& group) {
    if (group.rank() == 0) group.send(host_ones(10), 1).wait();
    if (group.rank() == 1) group.recv(host_ones(10, DType::kI32), 0).wait();
  });
  expect_error<MismatchError>([&] { std::rethrow_exception(errors[1]); },
                              "rank 0 sends 10 elements of float32. Both sides must name one size "
                              "and dtype.");
}

TEST(NcclValues, RegisteredMemoryStaysUntilTheStreamsThatUseItAreThrough) {
  FakeNccl fake;
  FakeNcclJob job{.size = 1};
  job.options.user_buffers = true;
  all_nccl_ranks(fake, job, [&](NcclGroup& group) {
    const OwnedStream side(kHostDevice);
    for (const bool is_current : {true, false}) {
      const OwnedStream main(kHostDevice);
      const StreamGuard guard(main.get());
      const Stream user = is_current ? main.get() : side.get();
      std::atomic<bool> open = false;
      auto arena = std::make_unique<GradientArena>(1, 1000, DType::kF32, kHostDevice, &group);
      main.get().synchronize();
      EXPECT_EQ(fake.blocks(), 1);
      user.add_callback([&] { open.wait(false); });
      arena->range(0, 0, 1000).record_use(user);
      std::thread frees([&] { arena.reset(); });
      std::this_thread::sleep_for(20ms);  // the other thread waits for the stream
      EXPECT_EQ(fake.blocks(), 1) << is_current;
      open = true;
      open.notify_all();
      frees.join();
      EXPECT_EQ(fake.blocks(), 0) << is_current;
    }
  });
}

TEST(NcclValues, OperationsThatFailedAreRecordedSo) {
  for (const bool is_refused : {true, false}) {
    const train::TemporaryDirectory folder;
    FakeNccl fake;
    const auto errors = run_nccl_ranks(fake, {.size = 1}, [&](NcclGroup& group) {
      group.set_timeout(200ms);
      if (is_refused) fake.fail_next("ncclAllReduce", nccl::Result::kInvalidUsage);
      if (!is_refused) fake.hold_operations(true);
      try {
        group.all_reduce(host_ones(4)).synchronize();
      } catch (const DistError&) {
        group.set_flight_folder(folder.path());  // which has the record at once
        throw;
      }
    });
    ASSERT_TRUE(errors[0]);
    const FlightLog log = read_flight_log(folder / "flight.rank0.json");
    int found = 0;
    for (const FlightRecord& record : log.records) {
      if (std::string(record.group_name) != "world (nccl)") continue;
      EXPECT_EQ(record.state, FlightRecord::State::kFailed) << is_refused;
      ++found;
    }
    EXPECT_EQ(found, 1);
  }
}

TEST(NcclValues, OfSeveralFailuresTheFirstOfTheJobIsThatOfAllRanks) {
  std::vector<std::shared_ptr<Communicator>> communicators = thread_communicators(2);
  communicators[1]->abort("no luck");
  while (!communicators[0]->failure()) std::this_thread::sleep_for(1ms);
  const std::exception_ptr error = fail_job(*communicators[0], BackendError("what follows"));
  expect_error<PeerLostError>([&] { std::rethrow_exception(error); },
                              "[dist] rank 1 failed: no luck");
  std::thread other([&] { communicators[1].reset(); });
  communicators[0].reset();
  other.join();
}

}  // namespace
}  // namespace lockstep::dist
