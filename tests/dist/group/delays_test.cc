// Messages about slow operations, and timeouts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "dist/group/communicator.h"
#include "dist/group/thread_control.h"
#include "dist/group/thread_group.h"
#include "dist/group/transport_group.h"
#include "dist/transport/thread_transport.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// Collects the messages of all ranks.
class DelayMessages {
 public:
  Communicator::Options options() {
    return {.flight_folder = {}, .on_delay = [this](const std::string& line) {
              const std::lock_guard guard(lock_);
              lines_.push_back(line);
            }};
  }
  std::vector<std::string> lines() const {
    const std::lock_guard guard(lock_);
    return lines_;
  }

 private:
  mutable std::mutex lock_;
  std::vector<std::string> lines_;
};

/// A transport whose end waits for others, as MPI_Finalize does.
class WaitsAtItsEnd final : public Transport {
 public:
  WaitsAtItsEnd(std::unique_ptr<Transport> base, std::shared_future<void> others)
      : base_(std::move(base)), others_(std::move(others)) {}
  ~WaitsAtItsEnd() override { others_.wait(); }

  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  size_t segment_bytes() const override { return base_->segment_bytes(); }
  int window() const override { return base_->window(); }
  uint64_t tag_limit() const override { return base_->tag_limit(); }
  void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) override {
    base_->send(to, tag, data, bytes, message);
  }
  void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) override {
    base_->receive(from, tag, data, bytes, message);
  }
  void cancel(Message& message) noexcept override { base_->cancel(message); }
  bool progress() override { return base_->progress(); }
  void sleep(std::chrono::microseconds limit) override { base_->sleep(limit); }
  void wake() noexcept override { base_->wake(); }

 private:
  std::unique_ptr<Transport> base_;
  std::shared_future<void> others_;
};

TEST(Delays, OfTheCommonEndAreToldAtItsLimitAndEndTheWait) {
  DelayMessages messages;
  std::promise<void> others;
  {
    ThreadJob job(1);
    const auto connections = std::make_shared<Connections>(
        Connections{std::make_unique<WaitsAtItsEnd>(std::move(thread_transports(1)[0]),
                                                    others.get_future().share()),
                    job.control(0), nullptr, "start"});
    Communicator communicator([connections] { return std::move(*connections); },
                              messages.options());
    communicator.set_end_limit(10ms);
  }
  ASSERT_THAT(messages.lines(), SizeIs(1));
  EXPECT_EQ(messages.lines()[0],
            "the end of all ranks takes more than 0.01 s: another rank is stopped or cut off. This "
            "rank ends without it");
  others.set_value();
}

/// Expects one rank to tell that `late` has not come, and the end.
void expect_told_once(int late, const std::vector<int>& hosts) {
  DelayMessages messages;
  expect_none(run_thread_ranks(
      static_cast<int>(hosts.size()),
      [&](ProcessGroup& group) {
        group.barrier().wait();
        while (group.rank() == late && messages.lines().empty()) std::this_thread::sleep_for(1ms);
        group.all_reduce(cpu_ones(64)).wait();
        group.all_reduce(cpu_ones(64)).wait();  // of which nothing is told
      },
      messages.options(), hosts));
  const std::vector<std::string> lines = messages.lines();
  ASSERT_THAT(lines, SizeIs(2)) << late;
  EXPECT_THAT(lines[0], HasSubstr("all_reduce #1 of 64 float32"));
  EXPECT_THAT(lines[0], HasSubstr("s so far; "));
  EXPECT_THAT(lines[0], HasSubstr("; rank " + std::to_string(late) +
                                  " has not come to it: the last it called is #0"));
  EXPECT_THAT(lines[1], HasSubstr("all_reduce #1 of 64 float32"));
  EXPECT_THAT(lines[1], HasSubstr("has ended after "));
}

TEST(Delays, AreToldOnceWithTheRankThatHasNotComeAndAgainAtTheirEnd) {
  for (const int late : {0, 1}) expect_told_once(late, {0, 0, 0});
}

TEST(Delays, AreToldOnceWithTheRankThatHasNotComeOnAnotherHost) {
  for (const int late : {0, 3}) expect_told_once(late, {0, 0, 1, 1});
}

TEST(Delays, AreNotToldOfOperationsThatMayTakeLong) {
  DelayMessages messages;
  expect_none(run_thread_ranks(
      2,
      [](ProcessGroup& group) {
        if (group.rank() == 1) std::this_thread::sleep_for(1500ms);
        group.barrier({.timeout = 1h}).wait();
      },
      messages.options()));
  EXPECT_THAT(messages.lines(), IsEmpty());
}

/// A rank's control that receives messages but sends none.
class Mute final : public JobControl {
 public:
  explicit Mute(std::unique_ptr<JobControl> control) : control_(std::move(control)) {}
  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  void fail(const std::string& text) noexcept override { control_->fail(text); }
  std::optional<Failure> failure() const override { return control_->failure(); }
  void leave() noexcept override { control_->leave(); }
  void post(int, std::string) noexcept override {}
  void listen(Listener listener) override { control_->listen(std::move(listener)); }

 private:
  std::unique_ptr<JobControl> control_;
};

/// Two ranks wait at a barrier with a timeout of an hour; rank 1 arrives `late` and uses a Control.
/// Returns the error of rank 0.
template <class Control>
std::exception_ptr wait_for_late_rank(std::chrono::milliseconds silence,
                                      std::chrono::milliseconds late, DelayMessages& messages) {
  ThreadJob job(2);
  auto transports = thread_transports(2);
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (size_t rank = 0; rank < 2; ++rank) {
    std::unique_ptr<JobControl> control = job.control(static_cast<int>(rank));
    if constexpr (!std::is_same_v<Control, JobControl>) {
      if (rank == 1) control = std::make_unique<Control>(std::move(control));
    }
    const auto connections = std::make_shared<Connections>(
        Connections{std::move(transports[rank]), std::move(control), nullptr});
    groups.push_back(
        transport_group(std::make_shared<Communicator>(
                            [connections] { return std::move(*connections); }, messages.options()),
                        "thread"));
    groups.back()->set_timeout(silence);
  }
  std::exception_ptr error;
  const auto come = [&](size_t rank) {
    try {
      groups[rank]->barrier({.timeout = 1h}).wait();
    } catch (const Error&) {
      if (rank == 0) error = std::current_exception();
    }
  };
  std::thread first([&] { come(0); });
  std::this_thread::sleep_for(late);
  come(1);
  first.join();
  return error;
}

TEST(Delays, ARankThatAnswersIsWaitedForAsLongAsTheOperationMayTake) {
  DelayMessages messages;
  EXPECT_FALSE(wait_for_late_rank<JobControl>(1s, 2s, messages));
}

TEST(Delays, ARankThatDoesNotAnswerEndsEvenAnOperationThatMayTakeLong) {
  DelayMessages messages;
  const std::exception_ptr error = wait_for_late_rank<Mute>(1500ms, 2500ms, messages);
  ASSERT_TRUE(error);
  expect_error<TimeoutError>([&] { std::rethrow_exception(error); }, "barrier #0",
                             "did not get an answer within 1.5 s", "rank 1 does not answer");
  ASSERT_THAT(messages.lines(), Not(IsEmpty()));
  EXPECT_THAT(messages.lines()[0], HasSubstr("rank 1 has not answered for "));
}

TEST(Delays, WhatIsKnownOfOneOperationIsNotToldOfTheNext) {
  DelayMessages messages;
  std::promise<void> over;
  const auto errors = run_thread_ranks(
      2,
      [&](ProcessGroup& group) {
        // Rank 0 asks where rank 1 is, and hears that it has not come.
        while (group.rank() == 1 && messages.lines().empty()) std::this_thread::sleep_for(1ms);
        group.barrier().wait();
        if (group.rank() == 1) return over.get_future().wait();
        try {
          group.barrier({.timeout = 50ms}).wait();  // not long enough to ask again
        } catch (...) {
          over.set_value();
          throw;
        }
      },
      messages.options());
  EXPECT_THAT(text_of(errors[0]), HasSubstr("within 0.05 s; rank 1 does not answer. Its time"));
}

/// A rank's control that does not send, and counts what it was to send.
class CountingMute final : public JobControl {
 public:
  CountingMute(std::unique_ptr<JobControl> control, std::atomic<int>& posts, bool mute)
      : control_(std::move(control)), posts_(posts), mute_(mute) {}
  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  void fail(const std::string& text) noexcept override { control_->fail(text); }
  std::optional<Failure> failure() const override { return control_->failure(); }
  void leave() noexcept override { control_->leave(); }
  void post(int to, std::string message) noexcept override {
    ++posts_;
    if (!mute_) control_->post(to, std::move(message));
  }
  void listen(Listener listener) override { control_->listen(std::move(listener)); }

 private:
  std::unique_ptr<JobControl> control_;
  std::atomic<int>& posts_;
  bool mute_;
};

TEST(Delays, AQuestionThatAnEarlierOperationAskedInVainDoesNotEndALaterOne) {
  constexpr auto kSilence = 1s;
  ThreadJob job(2);
  auto transports = thread_transports(2);
  std::atomic<int> questions = 0, answers = 0;
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (size_t rank = 0; rank < 2; ++rank) {
    const auto connections = std::make_shared<Connections>(
        Connections{std::move(transports[rank]),
                    std::make_unique<CountingMute>(job.control(static_cast<int>(rank)),
                                                   rank == 0 ? questions : answers, rank == 1),
                    nullptr});
    groups.push_back(transport_group(
        std::make_shared<Communicator>([connections] { return std::move(*connections); },
                                       Communicator::Options()),
        "thread"));
    groups.back()->set_timeout(kSilence);
  }
  std::atomic<bool> over = false;
  const auto wait_for_questions = [&](int count) {
    while (questions < count && !over) std::this_thread::sleep_for(1ms);
  };
  const auto meet = [&](size_t rank) {
    try {
      groups[rank]->barrier({.timeout = 1h}).wait();
    } catch (const Error& error) {
      over = true;
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
    }
  };
  std::thread first([&] {
    for (int i = 0; i < 2; ++i) {
      meet(0);
      // The first question is older than the limit when the second barrier begins.
      if (i == 0) std::this_thread::sleep_for(kSilence);
    }
  });
  wait_for_questions(1);
  meet(1);
  const int asked = questions;
  wait_for_questions(asked + 1);
  meet(1);
  first.join();
}

TEST(Delays, ATimeoutTellsForWhomTheAwaitedRanksWaitThemselves) {
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  const auto errors = run_thread_ranks(4, [&](ProcessGroup& group) {
    // Each rank waits for a part from rank 0, which does not come, and for those of the others.
    if (group.rank() == 0) return ended.wait();
    const Tensor data = cpu_ones(1 << 20);
    if (group.rank() != 3) return group.broadcast(data, 0, {.timeout = 1h}).wait();
    try {
      group.broadcast(data, 0, {.timeout = 1s}).wait();
    } catch (const TimeoutError&) {
      end.set_value();
      throw;
    }
  });
  EXPECT_THAT(text_of(errors[3]),
              HasSubstr("rank 1 has called it, and waits for rank 0, 2, 3 of world"));
}

TEST(Delays, AStartThatDoesNotEndIsLeftBehind) {
  std::promise<void> end;
  const auto held = std::make_shared<std::shared_future<void>>(end.get_future());
  const auto start = std::chrono::steady_clock::now();
  expect_error<TimeoutError>(
      [&] {
        const Communicator communicator(
            [held]() -> Connections {
              held->wait();
              throw BackendError("too late");
            },
            {.flight_folder = {}, .start_limit = 100ms});
      },
      "not connected with the others after 0.1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  end.set_value();
  while (held.use_count() > 1) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace lockstep::dist
