#include "train/report/metrics_history.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

std::vector<int64_t> steps_in(const std::string& text) {
  const TemporaryDirectory folder;
  std::ofstream(folder / "metrics.jsonl") << text;
  std::vector<int64_t> steps;
  for (const MetricsRecord& record : read_records(folder / "metrics.jsonl")) {
    steps.push_back(record.step);
  }
  return steps;
}

TEST(MetricsHistory, ALineThatIsNotWholeIsLeftOut) {
  EXPECT_EQ(steps_in("{\"step\":1}\n{\"step\":2"), (std::vector<int64_t>{1}));
}

TEST(MetricsHistory, ZerosOfLinesThatAPowerCutKeptFromTheDiskAreLeftOut) {
  const std::string lost(20, '\0');
  EXPECT_EQ(steps_in(lost + "{\"step\":2}\n"), (std::vector<int64_t>{2}));
  EXPECT_EQ(steps_in("{\"step\":1}\n" + lost + "\n{\"step\":3}\n" + lost),
            (std::vector<int64_t>{1, 3}));
}

TEST(MetricsHistory, OtherLinesThatAreNoObjectsAreRefused) {
  EXPECT_THROW(steps_in("\n"), DataError);
  EXPECT_THROW(steps_in("{\"step\":1}\nnothing\n"), DataError);
  EXPECT_THROW(steps_in(std::string(3, '\0') + "[1]\n"), DataError);
}

}  // namespace
}  // namespace lockstep::train
