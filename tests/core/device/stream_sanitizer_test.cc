#include "core/device/stream_sanitizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/core/device/stream_program.h"

namespace lockstep {
namespace {

using namespace stream_program;
using testing::HasSubstr;

class StreamSanitizer : public testing::Test {
 protected:
  void SetUp() override {
    was_on_ = sanitizer::enabled();
    sanitizer::enable(true);
  }
  void TearDown() override {
    sanitizer::set_report_handler({});
    sanitizer::enable(was_on_);
  }

  static std::string error_of(const Step& step) {
    try {
      play(step);
      return "";
    } catch (const DeviceError& error) {
      return error.what();
    }
  }

 private:
  bool was_on_ = false;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kShare = 10;  // sanitizers are slow and check the code, not its results
#else
constexpr uint32_t kShare = 1;
#endif

TEST_F(StreamSanitizer, TenThousandCorrectProgramsGiveNoReport) {
  for (uint32_t seed = 0; seed < 10'000 / kShare; ++seed) {
    sanitizer::enable(true);
    for (const Step& step : ProgramMaker(seed).make(30)) {
      ASSERT_EQ(error_of(step), "") << "seed " << seed;
    }
  }
}

TEST_F(StreamSanitizer, AProgramWithOneActDroppedIsReportedExactlyWhereItBreaks) {
  std::map<Step::Kind, uint32_t> broken;  // by the first step of the dropped act
  uint32_t harmless = 0;
  for (uint32_t seed = 0; seed < 700 / kShare; ++seed) {
    const Program whole = ProgramMaker(seed).make(40);
    int acts = 0;
    for (const Step& step : whole) acts = std::max(acts, step.act + 1);
    for (int dropped = 0; dropped < acts; ++dropped) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " without act " + std::to_string(dropped));
      sanitizer::enable(true);
      Oracle oracle;
      bool found = false;
      Step::Kind kind = Step::Kind::kUse;
      for (const Step& step : whole) {
        if (step.act == dropped) {
          if (kind == Step::Kind::kUse) kind = step.kind;
          continue;
        }
        const std::string report = error_of(step);
        if (step.kind != Step::Kind::kUse) {
          ASSERT_EQ(report, "");
          oracle.follow(step);
          continue;
        }
        const std::vector<size_t> races = oracle.races(step);
        ASSERT_EQ(report.empty(), races.empty()) << report;
        if (!races.empty()) {
          const bool named = std::ranges::any_of(races, [&](size_t use) {
            const std::string first =
                "[" + std::string(op_name(step.use)) + "] on " + to_string(stream_of(step.stream));
            const std::string second = "`" + std::string(op_name(use)) + "` on " +
                                       to_string(stream_of(oracle.stream(use)));
            return report.starts_with(first) && report.find(second) != std::string::npos &&
                   report.find(oracle.remedy(step, use)) != std::string::npos;
          });
          ASSERT_TRUE(named) << report;
          found = true;
          break;
        }
        oracle.follow(step);
      }
      found ? ++broken[kind] : ++harmless;
    }
  }
  // Every kind of act was needed in some program.
  EXPECT_GT(broken[Step::Kind::kRecord], 500 / kShare);
  EXPECT_GT(broken[Step::Kind::kRecordStream], 100 / kShare);
  EXPECT_GT(broken[Step::Kind::kStreamDone], 100 / kShare);
  EXPECT_GT(broken[Step::Kind::kDeviceDone], 100 / kShare);
  EXPECT_GT(harmless, 50 / kShare);
}

Step whole_block(int stream, size_t use, bool written) {
  return {.stream = stream,
          .use = use,
          .accesses = {{.rows = 1, .columns = 64, .stride = 64, .written = written}}};
}

TEST_F(StreamSanitizer, TheReportNamesBothUsesTheBytesAndTheMissingEvent) {
  play({.kind = Step::Kind::kAllocate, .stream = 1, .bytes = 128});
  play(whole_block(1, 0, true));
  const std::string report = error_of(whole_block(2, 1, false));
  EXPECT_THAT(report, HasSubstr("[relu] on host:0 stream 2 reads memory that `exp` on host:0 "
                                "stream 1 may not have written yet"));
  EXPECT_THAT(report, HasSubstr("64 bytes at 0x7f0012340000, 0 bytes into a block of 128 of "
                                "host:0 stream 1"));
  EXPECT_THAT(report, HasSubstr("No event orders them: record one on host:0 stream 1 after `exp` "
                                "and let host:0 stream 2 wait for it."));
  EXPECT_EQ(sanitizer::reports(), 1);
}

TEST_F(StreamSanitizer, AKernelWhoseReportWasThrownIsNotInTheBooks) {
  play(whole_block(1, 0, true));
  EXPECT_NE(error_of(whole_block(2, 1, true)), "");
  EXPECT_EQ(error_of(whole_block(1, 2, true)), "") << "the kernel on stream 2 was never queued";
}

TEST_F(StreamSanitizer, AHandlerThatReturnsLetsTheProgramGoOn) {
  std::vector<std::string> reports;
  sanitizer::set_report_handler([&](const std::string& report) { reports.push_back(report); });
  play(whole_block(1, 0, true));
  play(whole_block(2, 1, true));
  play(whole_block(1, 2, true));
  ASSERT_EQ(reports.size(), 2u) << "the second kernel was queued all the same";
  EXPECT_THAT(reports[1], HasSubstr("`relu` on host:0 stream 2"));
  EXPECT_EQ(sanitizer::reports(), 2);
}

TEST_F(StreamSanitizer, TwoReadersNeedNoOrder) {
  play(whole_block(1, 0, false));
  EXPECT_EQ(error_of(whole_block(2, 1, false)), "");
  const std::string report = error_of(whole_block(3, 2, true));
  EXPECT_THAT(report, HasSubstr("may not have read yet"));
}

TEST_F(StreamSanitizer, AnEventIsWhatWasQueuedWhenItWasRecorded) {
  play(whole_block(1, 0, true));
  play({.kind = Step::Kind::kRecord, .stream = 1, .event = 1});
  play({.kind = Step::Kind::kWait, .stream = 2, .event = 1});
  EXPECT_EQ(error_of(whole_block(2, 1, false)), "");
  play({.kind = Step::Kind::kRecord, .stream = 2, .event = 2});
  play({.kind = Step::Kind::kWait, .stream = 1, .event = 2});
  play(whole_block(1, 2, true));
  play({.kind = Step::Kind::kWait, .stream = 2, .event = 1});
  EXPECT_NE(error_of(whole_block(2, 3, false)), "") << "the event is older than the second write";
}

TEST_F(StreamSanitizer, OrderGoesThroughAThirdStream) {
  play(whole_block(1, 0, true));
  play({.kind = Step::Kind::kRecord, .stream = 1, .event = 1});
  play({.kind = Step::Kind::kWait, .stream = 3, .event = 1});
  play({.kind = Step::Kind::kRecord, .stream = 3, .event = 2});
  play({.kind = Step::Kind::kWait, .stream = 2, .event = 2});
  EXPECT_EQ(error_of(whole_block(2, 1, true)), "");
}

TEST_F(StreamSanitizer, AColumnOfAMatrixIsApartFromTheOthers) {
  const auto column = [](int stream, size_t use, size_t offset) {
    return Step{
        .stream = stream,
        .use = use,
        .accesses = {{.offset = offset, .rows = 8, .columns = 2, .stride = 8, .written = true}}};
  };
  play(column(1, 0, 0));
  EXPECT_EQ(error_of(column(2, 1, 2)), "");
  EXPECT_EQ(error_of(column(3, 2, 4)), "");
  EXPECT_NE(error_of(column(2, 3, 5)), "") << "one byte of each row is stream 3's";
  EXPECT_NE(error_of(whole_block(2, 4, false)), "");
}

TEST_F(StreamSanitizer, AFreedBlocksSuccessorRacesWithTheOldUseUnlessItWasRecorded) {
  const Step allocate{.kind = Step::Kind::kAllocate, .stream = 1, .bytes = 64};
  const Step free{.kind = Step::Kind::kFree, .stream = 1, .bytes = 64};
  for (const bool recorded : {false, true}) {
    sanitizer::enable(true);
    play(allocate);
    play(whole_block(2, 0, false));
    if (recorded) play({.kind = Step::Kind::kRecord, .stream = 2, .event = 1});
    play(free);
    if (recorded) play({.kind = Step::Kind::kWait, .stream = 1, .event = 1});
    play(allocate);
    const std::string report = error_of(whole_block(1, 1, true));
    if (recorded) {
      EXPECT_EQ(report, "");
    } else {
      EXPECT_THAT(report, HasSubstr("The block was freed while host:0 stream 2 used it: call "
                                    "record_stream with host:0 stream 2"));
    }
  }
}

TEST_F(StreamSanitizer, AKernelThatCameAfterTheFreeIsToldSo) {
  const Step allocate{.kind = Step::Kind::kAllocate, .stream = 1, .bytes = 64};
  play(allocate);
  play({.kind = Step::Kind::kFree, .stream = 1, .bytes = 64});
  play(whole_block(2, 0, true));
  play(allocate);
  EXPECT_THAT(error_of(whole_block(1, 1, true)),
              HasSubstr("The block had been freed when `exp` was queued"));
}

TEST_F(StreamSanitizer, UsesThatAreNoKernelsAreCheckedToo) {
  sanitizer::on_use(stream_of(1), "copy", arena(), 16, true);
  EXPECT_EQ(error_of({.stream = 2, .use = 0, .accesses = {{.offset = 16, .columns = 4}}}), "");
  const std::string report = error_of(whole_block(2, 0, false));
  EXPECT_THAT(report, HasSubstr("`copy` on host:0 stream 1"));
  EXPECT_THAT(report, HasSubstr("16 bytes at"));
}

TEST_F(StreamSanitizer, ThreadsMayUseItAtOnce) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      const size_t offset = static_cast<size_t>(thread) * 64;
      for (size_t i = 0; i < 300; ++i) {
        const Step use{.stream = thread,
                       .use = i,
                       .accesses = {{.offset = offset, .columns = 64, .written = true}}};
        EXPECT_EQ(error_of(use), "");
        play({.kind = Step::Kind::kRecord, .stream = thread, .event = thread});
        play({.kind = Step::Kind::kEventDone, .event = thread});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sanitizer::reports(), 0);
}

}  // namespace
}  // namespace lockstep
