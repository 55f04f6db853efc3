#include "train/report/metrics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

TEST(JsonLine, KeepsOrderAndTypes) {
  EXPECT_EQ(JsonLine()
                .add("step", 3)
                .add("loss", 2.5)
                .add("done", false)
                .add("name", "a\"b\n")
                .add_null("val_loss")
                .text(),
            R"({"step":3,"loss":2.5,"done":false,"name":"a\"b\n","val_loss":null})");
  EXPECT_EQ(JsonLine().text(), "{}");
}

TEST(JsonLine, NumbersRoundTrip) {
  for (uint32_t i = 0; i < 20000; ++i) {
    const auto words = philox({i, 0, 0, 0}, {1, 2});
    const double value = std::bit_cast<double>((uint64_t{words[0]} << 32) | words[1]);
    if (!std::isfinite(value)) continue;
    const auto parsed = nlohmann::json::parse(JsonLine().add("x", value).text());
    EXPECT_EQ(std::bit_cast<uint64_t>(parsed["x"].get<double>()), std::bit_cast<uint64_t>(value));
  }
  EXPECT_EQ(JsonLine().add("x", 0.1).text(), R"({"x":0.1})");
  EXPECT_EQ(JsonLine().add("x", 0.1f).text(), R"({"x":0.10000000149011612})");
  EXPECT_EQ(JsonLine().add("x", std::numeric_limits<int64_t>::min()).text(),
            R"({"x":-9223372036854775808})");
  EXPECT_EQ(JsonLine().add("x", std::numeric_limits<uint64_t>::max()).text(),
            R"({"x":18446744073709551615})");
}

TEST(JsonLine, NonFiniteValuesStayValidJson) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string text =
      JsonLine().add("a", std::nan("")).add("b", infinity).add("c", -infinity).text();
  EXPECT_EQ(text, R"({"a":"NaN","b":"Infinity","c":"-Infinity"})");
  EXPECT_TRUE(nlohmann::json::accept(text));
}

TEST(JsonLine, BytesThatAreNotUtf8DoNotBreakTheLine) {
  EXPECT_TRUE(nlohmann::json::accept(JsonLine().add("x", "\xff\xfe").text()));
}

TEST(Metrics, EveryRecordIsALineThatIsThereAtOnce) {
  const TemporaryDirectory folder;
  MetricsWriter writer(folder / "metrics.jsonl");
  writer.write(JsonLine().add("step", 1));
  EXPECT_EQ(file_content(folder / "metrics.jsonl"), "{\"step\":1}\n");
  writer.write(JsonLine().add("step", 2));
  EXPECT_EQ(file_content(folder / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(Metrics, ALastLineWithoutAnEndIsCutOffBeforeGoingOn) {
  const TemporaryDirectory folder;
  for (const char* half : {"{\"step\":2,\"lo", "{", ""}) {
    put_file(folder / "m", std::string("{\"step\":1}\n") + half);
    MetricsWriter(folder / "m").write(JsonLine().add("step", 2));
    EXPECT_EQ(file_content(folder / "m"), "{\"step\":1}\n{\"step\":2}\n");
  }
  put_file(folder / "m", "{\"st");
  MetricsWriter(folder / "m").write(JsonLine().add("step", 1));
  EXPECT_EQ(file_content(folder / "m"), "{\"step\":1}\n");
}

TEST(Metrics, AnExistingFileIsContinued) {
  const TemporaryDirectory folder;
  MetricsWriter(folder / "m").write(JsonLine().add("step", 1));
  MetricsWriter(folder / "m").write(JsonLine().add("step", 2));
  EXPECT_EQ(file_content(folder / "m"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(Metrics, AFullDiskIsReportedWithPathAndReason) {
  MetricsWriter writer("/dev/full");
  const std::string message =
      message_of<DataError>([&] { writer.write(JsonLine().add("step", 1)); });
  EXPECT_TRUE(says(message, "/dev/full"));
  EXPECT_TRUE(says(message, "No space left on device"));
}

TEST(Metrics, AMissingFolderIsReportedWithPathAndReason) {
  const TemporaryDirectory folder;
  const std::string message =
      message_of<DataError>([&] { MetricsWriter writer(folder / "no/metrics.jsonl"); });
  EXPECT_TRUE(says(message, "no/metrics.jsonl: No such file or directory"));
}

TEST(DropSteps, RemovesTheStepsAfterOneAndWhatFollowsThem) {
  const TemporaryDirectory folder;
  const std::string head = "{\"step\":1}\n{\"step\":2,\"loss\":3}\n";
  const std::string tail = "{\"step\":3}\n{\"note\":1}\n{\"step\":4}\n";
  const auto left = [&](const std::string& text, int64_t step) {
    put_file(folder / "m", text);
    drop_steps_after(folder / "m", step);
    return file_content(folder / "m");
  };
  EXPECT_EQ(left(head + tail, 2), head);
  EXPECT_EQ(left(head + tail, 1), "{\"step\":1}\n");
  EXPECT_EQ(left(head + tail, 0), "");
  EXPECT_EQ(left(head + tail, 4), head + tail);
  EXPECT_EQ(left(head + tail, 9), head + tail);
  EXPECT_EQ(left(head + "{\"note\":1}\n", 2), head + "{\"note\":1}\n") << "after no such step";
  EXPECT_EQ(left(head + "{\"note\":1}\n{\"step\":3}\n", 2), head + "{\"note\":1}\n");
  EXPECT_EQ(left("{\"note\":1}\nno json\n{\"step\":x}\n", 0),
            "{\"note\":1}\nno json\n{\"step\":x}\n")
      << "lines that tell no step stay";
  EXPECT_EQ(left("{\"step\":7}\n{\"step\":3}\n{\"step\":9}\n", 3), "{\"step\":7}\n{\"step\":3}\n")
      << "a step that was made again ends the search";
  EXPECT_EQ(left("{\"step\":12}", 2), "");
  EXPECT_EQ(left("", 2), "");
  drop_steps_after(folder / "none", 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

}  // namespace
}  // namespace lockstep::train
