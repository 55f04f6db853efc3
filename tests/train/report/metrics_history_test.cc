#include "train/report/metrics_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

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

TEST(MetricsHistory, HasTheNumbersOfEachStepAsTheyWereWritten) {
  const TemporaryDirectory folder;
  put_file(folder / "metrics.jsonl",
           "{\"step\":1,\"loss\":2.5,\"grad_norm\":\"NaN\",\"val_loss\":\"Infinity\"}\n"
           "{\"note\":1}\n{\"step\":1.5,\"loss\":1}\n"
           "{\"step\":2,\"loss\":\"-Infinity\",\"grad_norm\":\"many\"}\n");
  const std::vector<MetricsRecord> records = read_metrics(folder.path());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].loss, 2.5);
  EXPECT_TRUE(std::isnan(records[0].grad_norm.value()));
  EXPECT_EQ(records[0].val_loss, std::numeric_limits<double>::infinity());
  EXPECT_EQ(records[1].loss, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(records[1].grad_norm, std::nullopt);
  EXPECT_EQ(records[1].val_loss, std::nullopt);
}

TEST(MetricsHistory, ARollbackTakesBackWhatComesAfterItsStep) {
  const std::string steps = "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n";
  EXPECT_EQ(steps_in(steps + "{\"rollback_to\":2}\n"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(steps_in(steps + "{\"rollback_to\":1,\"step\":7}\n"), (std::vector<int64_t>{1, 7}));
}

TEST(MetricsHistory, ALineThatIsRefusedIsNamed) {
  const TemporaryDirectory folder;
  const std::string file = (folder / "metrics.jsonl").string();
  const auto problem = [&](const std::string& line) {
    put_file(file, "{\"step\":1}\n" + line + "\n");
    return message_of<DataError>([&] { (void)read_records(file); });
  };
  EXPECT_EQ(problem("nothing"),
            "[metrics] " + file + ":2: expected a JSON object on each line, got \"nothing\".");
  EXPECT_EQ(problem("{\"rollback_to\":1.5}"),
            "[metrics] " + file +
                ":2: rollback_to: expected the step that training returned to, an integer, got "
                "\"{\"rollback_to\":1.5}\".");
  EXPECT_TRUE(says(problem("{\"a\":" + std::string(100, '[')), file + ":2: "));
  put_file(file, "{\"note\":1}\n");
  EXPECT_TRUE(read_records(file).empty());
  EXPECT_EQ(message_of<DataError>([&] { (void)read_metrics(folder.path()); }),
            "[metrics] " + file + " holds no step.");
}

}  // namespace
}  // namespace lockstep::train
