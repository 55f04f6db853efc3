// A communicator over a library whose every answer the test decides.

#include "dist/nccl/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {

namespace {

using namespace std::chrono_literals;
using nccl::Result;
using testing::ElementsAre;
using testing::IsEmpty;

/// What the library was asked, and what it answers.
struct Script {
  std::vector<std::string> calls;
  std::string fails;   ///< function that fails
  int polls = 0;       ///< times that a communicator is not ready yet
  int polls_made = 0;  ///< polls until NCCL has set the communicator that it makes
  Result state = Result::kSuccess;
  char first = 0, second = 0;  ///< stand for communicators
  nccl::Comm** made = nullptr;
  std::vector<int> excluded;
};
Script* g_script = nullptr;

Result scripted_answer(const char* name) {
  g_script->calls.emplace_back(name);
  return g_script->fails == name ? Result::kSystemError : Result::kInProgress;
}
nccl::Comm* first_comm() { return reinterpret_cast<nccl::Comm*>(&g_script->first); }
nccl::Comm* second_comm() { return reinterpret_cast<nccl::Comm*>(&g_script->second); }
std::string number_of(const nccl::Comm* comm) { return comm == first_comm() ? " 1" : " 2"; }

std::shared_ptr<const NcclLibrary> scripted_library() {
  auto result = std::make_shared<NcclLibrary>();
  result->version = 22809;
  result->file = "scripted";
  nccl::Functions& f = result->functions;
  f.ncclGetErrorString = [](Result) { return "no luck"; };
  f.ncclGetLastError = [](nccl::Comm*) { return ""; };
  f.ncclCommInitRankConfig = [](nccl::Comm** comm, int, nccl::UniqueId, int, nccl::Config*) {
    const Result result = scripted_answer("init");
    if (result == Result::kInProgress) *comm = first_comm();
    return result;
  };
  f.ncclCommGetAsyncError = [](nccl::Comm*, Result* state) {
    if (g_script->fails == "poll") return Result::kSystemError;
    if (g_script->made != nullptr && --g_script->polls_made < 0) {
      *std::exchange(g_script->made, nullptr) = second_comm();
    }
    *state = g_script->polls-- > 0 ? Result::kInProgress : g_script->state;
    return Result::kSuccess;
  };
  f.ncclCommFinalize = [](nccl::Comm*) { return scripted_answer("finalize"); };
  f.ncclCommDestroy = [](nccl::Comm* comm) {
    return scripted_answer(("destroy" + number_of(comm)).c_str());
  };
  f.ncclCommAbort = [](nccl::Comm* comm) {
    return scripted_answer(("abort" + number_of(comm)).c_str());
  };
  f.ncclCommSplit = [](nccl::Comm*, int color, int, nccl::Comm** made, nccl::Config*) {
    if (color != nccl::kNoColor) g_script->made = made;
    return scripted_answer("split");
  };
  f.ncclCommShrink = [](nccl::Comm*, int* excluded, int count, nccl::Comm** made, nccl::Config*,
                        int flags) {
    EXPECT_EQ(flags, nccl::kShrinkAbort);
    g_script->excluded.assign(excluded, excluded + count);
    *made = second_comm();
    return scripted_answer("shrink");
  };
  f.ncclCommRegister = [](nccl::Comm*, void* data, size_t, void** handle) {
    *handle = data;
    return scripted_answer("register");
  };
  f.ncclCommDeregister = [](nccl::Comm*, void*) { return scripted_answer("deregister"); };
  f.ncclGroupStart = [] { return scripted_answer("start"); };
  f.ncclGroupEnd = [] { return scripted_answer("end"); };
  return result;
}

class NcclCommunicatorTest : public testing::Test {
 protected:
  NcclCommunicatorTest() { g_script = &script_; }

  static NcclCommunicator::Pointer create() {
    auto made = NcclCommunicator::create(scripted_library(), 2, 0, {nccl::UniqueId{}}, {});
    g_script->calls.clear();
    return made;
  }
  static NcclWait wait(NcclWait::Clock::duration limit = 10s) {
    return {"test", "group world", NcclWait::Clock::now() + limit, {}};
  }

  Script script_;
};

TEST_F(NcclCommunicatorTest, IsReadyWhenNcclSaysSo) {
  const auto comm = create();
  script_.polls = 3;
  EXPECT_FALSE(comm->is_ready());
  comm->wait_ready(wait());
  EXPECT_TRUE(comm->is_ready());
  script_.state = Result::kSystemError;
  expect_error<BackendError>([&] { comm->is_ready(); }, "an operation under way failed: no luck");
  script_.fails = "poll";
  expect_error<BackendError>([&] { comm->is_ready(); }, "ncclCommGetAsyncError failed");
}

TEST_F(NcclCommunicatorTest, WaitsNoLongerThanItMayOrIsWanted) {
  const auto comm = create();
  script_.polls = 1'000'000;
  expect_error<TimeoutError>([&] { comm->wait_ready(wait(0ms)); },
                             "[test] group world: NCCL did not get ready within the time limit. "
                             "Another rank did not come, or cannot be reached. NCCL_DEBUG=INFO "
                             "tells what NCCL tries.");
  NcclWait unwanted = wait();
  unwanted.still_wanted = [] { throw std::runtime_error("not any more"); };
  EXPECT_THROW(comm->wait_ready(unwanted), std::runtime_error);
}

TEST_F(NcclCommunicatorTest, ThatCannotBeMadeIsAnError) {
  script_.fails = "init";
  expect_error<BackendError>([] { (void)create(); }, "ncclCommInitRankConfig failed");
  EXPECT_THAT(script_.calls, ElementsAre("init"));
}

TEST_F(NcclCommunicatorTest, LaunchesCallsInAGroupThatAnErrorEndsToo) {
  const auto comm = create();
  comm->launch([&](nccl::Comm* native) {
    EXPECT_EQ(native, first_comm());
    script_.calls.emplace_back("body");
  });
  EXPECT_THAT(script_.calls, ElementsAre("start", "body", "end"));
  script_.calls.clear();
  EXPECT_THROW(comm->launch([](nccl::Comm*) { throw std::runtime_error("body"); }),
               std::runtime_error);
  EXPECT_THAT(script_.calls, ElementsAre("start", "end"));
  for (const char* function : {"start", "end"}) {
    script_.fails = function;
    EXPECT_THROW(comm->launch([](nccl::Comm*) {}), BackendError) << function;
  }
}

TEST_F(NcclCommunicatorTest, IsAbortedOnceAndThenOfNoUse) {
  auto comm = create();
  comm->abort();
  comm->abort();
  comm->finalize();
  comm->finish(wait());
  comm->deregister_buffer(&script_);
  const char* const text = "[nccl] the communicator was aborted";
  expect_error<DistError>([&] { comm->is_ready(); }, text);
  expect_error<DistError>([&] { comm->launch([](nccl::Comm*) {}); }, text);
  expect_error<DistError>([&] { comm->register_buffer(&script_, 1); }, text);
  comm.reset();
  EXPECT_THAT(script_.calls, ElementsAre("abort 1"));
}

TEST_F(NcclCommunicatorTest, IsAbortedIfItIsNotFinished) {
  create().reset();
  EXPECT_THAT(script_.calls, ElementsAre("abort 1"));
}

TEST_F(NcclCommunicatorTest, IsDestroyedWhenFinishedAndElseAborted) {
  auto comm = create();
  comm->finalize();
  script_.polls = 2;
  comm->finish(wait());
  comm.reset();
  EXPECT_THAT(script_.calls, ElementsAre("finalize", "destroy 1"));
  comm = create();
  script_.polls = 1'000'000;
  comm->finish(wait(0ms));
  EXPECT_THAT(script_.calls, ElementsAre("abort 1"));
}

TEST_F(NcclCommunicatorTest, ASplitIsTakenWhenNcclHasMadeIt) {
  auto comm = create();
  auto part = comm->split(0, 0, {}, wait());
  EXPECT_THAT(script_.calls, ElementsAre("split"));
  script_.calls.clear();
  part.reset();
  EXPECT_THAT(script_.calls, ElementsAre("abort 2"));
  EXPECT_EQ(comm->split(nccl::kNoColor, 0, {}, wait()), nullptr);
}

TEST_F(NcclCommunicatorTest, ASplitThatFailsEndsBothCommunicators) {
  auto comm = create();
  script_.fails = "split";
  expect_error<BackendError>([&] { (void)comm->split(0, 0, {}, wait()); }, "ncclCommSplit failed");
  EXPECT_THAT(script_.calls, ElementsAre("split", "abort 1"));
  script_.fails.clear();
  script_.made = nullptr;
  comm = create();
  // The new one is there, but this one does not get ready.
  script_.polls = 1'000'000;
  EXPECT_THROW((void)comm->split(0, 0, {}, wait(5ms)), TimeoutError);
  EXPECT_THAT(script_.calls, ElementsAre("split", "abort 1", "abort 2"));
  // Another thread that looks after it may be the first to tell the job of a failure.
  expect_error<TimeoutError>([&] { (void)comm->is_ready(); }, "NCCL did not get ready");
}

TEST_F(NcclCommunicatorTest, ACommunicatorThatNcclDoesNotGiveIsWaitedForNoLongerThanItMay) {
  const auto comm = create();
  script_.polls_made = 1'000'000;
  expect_error<TimeoutError>([&] { (void)comm->split(0, 0, {}, wait(5ms)); },
                             "[test] group world: NCCL gave no communicator within the time limit");
}

TEST_F(NcclCommunicatorTest, ShrinksWithoutTheExcludedRanksThoughItHasFailed) {
  const auto comm = create();
  const auto smaller = comm->shrink({1, 3}, {}, wait());
  EXPECT_NE(smaller, nullptr);
  EXPECT_THAT(script_.excluded, ElementsAre(1, 3));
  script_.fails = "shrink";
  expect_error<BackendError>([&] { (void)comm->shrink({1}, {}, wait()); }, "ncclCommShrink failed");
}

TEST_F(NcclCommunicatorTest, RegistersMemoryButNotOfZeroBytes) {
  const auto comm = create();
  EXPECT_EQ(comm->register_buffer(&script_, 0), nullptr);
  comm->deregister_buffer(nullptr);
  EXPECT_THAT(script_.calls, IsEmpty());
  EXPECT_EQ(comm->register_buffer(&script_, 1), &script_);
  comm->deregister_buffer(&script_);
  EXPECT_THAT(script_.calls, ElementsAre("register", "deregister"));
  script_.fails = "register";
  expect_error<BackendError>([&] { comm->register_buffer(&script_, 1); },
                             "ncclCommRegister failed");
}

TEST(NativeConfig, HasTheWantedValuesAndLeavesTheOthersUnset) {
  NcclConfig config;
  nccl::Config native = native_config(config);
  EXPECT_EQ(native.blocking, 0);
  for (const int value :
       {native.min_ctas, native.max_ctas, native.cga_cluster_size, native.traffic_class}) {
    EXPECT_EQ(value, nccl::kUnset);
  }
  EXPECT_EQ(native.net_name, nullptr);
  EXPECT_EQ(native.split_share, 0);
  config.net_name = "Socket";
  config.split_share = true;
  config.traffic_class = 3;
  native = native_config(config);
  EXPECT_STREQ(native.net_name, "Socket");
  EXPECT_EQ(native.split_share, 1);
  EXPECT_EQ(native.traffic_class, 3);
}

}  // namespace
}  // namespace lockstep::dist
