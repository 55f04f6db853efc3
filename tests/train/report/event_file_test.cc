#include "train/report/event_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <set>
#include <string>

#include "core/base/error.h"
#include "tests/train/python.h"

namespace lockstep::train {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

TEST(EventFile, RecordsHaveTheFormatsBytes) {
  EXPECT_EQ(hex(events::framed(events::version(1.0))),
            "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
  const std::array one = {Scalar{"loss", 0.5}};
  EXPECT_EQ(hex(events::framed(events::scalars(2.0, 7, one))),
            "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a");
}

TEST(EventFile, StepsBeyondAByteAreVarints) {
  EXPECT_EQ(hex(events::scalars(0, 300, {})), "09000000000000000010ac022a00");
}

TEST(EventFile, EveryRecordIsOnDiskWhenTheCallReturns) {
  const TemporaryDirectory folder;
  EventFile file(folder.path());
  const std::string version = file_content(file.path());
  EXPECT_TRUE(says(version, "brain.Event:2"));
  EXPECT_TRUE(file.path().filename().string().starts_with("events.out.tfevents."));
  const std::array one = {Scalar{"loss", 0.5}};
  file.write(1, one);
  EXPECT_GT(file_content(file.path()).size(), version.size());
}

TEST(EventFile, TwoFilesOfOneProcessDoNotMeet) {
  const TemporaryDirectory folder;
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) names.insert(EventFile(folder.path()).path().string());
  EXPECT_EQ(names.size(), 3U);
}

TEST(EventFile, AMissingFolderIsNamed) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(says(message_of<DataError>([&] { EventFile file(folder / "absent"); }), "absent"));
}

/// Uses TensorBoard's own reader, where it is installed.
TEST(EventFile, TensorBoardReadsItBack) {
  const std::string lacking = python_lacks("tensorboard", "tensorboard");
  if (!lacking.empty()) GTEST_SKIP() << lacking;
  const TemporaryDirectory folder;
  {
    EventFile file(folder.path());
    for (int64_t step = 1; step <= 200; ++step) {
      const std::array values = {Scalar{"train/loss", 1.0 / static_cast<double>(step)},
                                 Scalar{"train/lr", 3e-4}};
      file.write(step, values);
    }
    file.close();
    // Training resumed from step 151 and got different losses.
    EventFile resumed(folder.path(), 151);
    const std::array values = {Scalar{"train/loss", 9}};
    resumed.write(151, values);
  }
  const std::string printed = run_python(folder, R"(
from tensorboard.backend.event_processing import event_accumulator as ea
a = ea.EventAccumulator(".", size_guidance={ea.SCALARS: 0})
a.Reload()
for tag in sorted(a.Tags()["scalars"]):
    events = a.Scalars(tag)
    print(tag, len(events), events[0].step, events[-1].step, *("%.9g" % e.value for e in (events[0], events[6], events[-1])))
)");
  EXPECT_EQ(printed,
            "train/loss 151 1 151 1 0.142857149 9\n"
            "train/lr 150 1 150 0.000300000014 0.000300000014 0.000300000014\n");
}

TEST(EventFile, AStartInTheMiddleOfARunTellsReadersToForgetLaterSteps) {
  EXPECT_EQ(hex(events::session_start(2.0, 7)), "09000000000000004010073a020801");
  const TemporaryDirectory folder;
  const auto has_start = [&](int64_t first_step) {
    const EventFile file(folder.path(), first_step);
    return says(file_content(file.path()), std::string("\x3a\x02\x08\x01", 4));
  };
  EXPECT_FALSE(has_start(1));
  EXPECT_TRUE(has_start(2));
}

TEST(EventFile, SeveralNumbersOfAStepAreOneSummary) {
  const std::array two = {Scalar{"a", 1}, Scalar{"bc", -2}};
  EXPECT_EQ(hex(events::scalars(0, 1, two)),
            "09000000000000000010012a15"
            "0a080a0161150000803f"
            "0a090a026263"
            "15000000c0");
  EXPECT_EQ(hex(events::scalars(0, 127, {})), "090000000000000000107f2a00");
  EXPECT_EQ(hex(events::scalars(0, 128, {})),
            "09000000000000000010"
            "80012a00");
}

}  // namespace
}  // namespace lockstep::train
