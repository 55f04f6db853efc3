// Reads and draws a recording of memory.

#include "train/report/memory_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/memory/snapshot.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/train/report/well_formed_xml.h"
#include "train/report/memory_chart.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Action = TraceEntry::Action;

constexpr uintptr_t kBase = 1 << 20;

/// A recording: two blocks of together 1000 bytes allocated before it, then a step in which three
/// operators of two modules allocate 100, 500 and 50 bytes. The last block is never freed.
class Record {
 public:
  Record() {
    snapshot_.device = parse_device("host:0");
    happens(Action::kAlloc, 0, 700, "normal_", "");
    happens(Action::kAlloc, 700, 300, "normal_", "");
    mark("step 1");
    happens(Action::kAlloc, 7000, 4000, "before", "h.9");
    happens(Action::kFreeRequested, 7000, 4000, "before", "h.9");
    mark("step 2");
    happens(Action::kAlloc, 1000, 100, "mm", "h.0");
    happens(Action::kAlloc, 2000, 500, "add", "h.1");
    happens(Action::kFreeRequested, 1000, 100, "mm", "h.0");
    happens(Action::kFreeCompleted, 1000, 100, "mm", "h.0");
    happens(Action::kAlloc, 3000, 50, "mm", "");
    snapshot_.trace.back().context.phase = Phase::kBackward;
    happens(Action::kFreeRequested, 2000, 500, "add", "h.1");
    SegmentInfo segment;
    segment.address = kBase;
    segment.blocks = {block(0, 700, "normal_"),
                      block(700, 300, "normal_"),
                      block(3000, 50, "mm"),
                      {kBase + 4000, 96}};
    snapshot_.segments = {segment};
  }

  std::filesystem::path write() const {
    const std::filesystem::path file = folder_ / "memory.json";
    put_file(file, to_json(snapshot_));
    return file;
  }
  MemoryTimeline read(MemoryGrouping grouping, size_t most_groups = 10) const {
    return read_memory_timeline(write(), grouping, most_groups);
  }
  std::filesystem::path folder() const { return folder_.path(); }
  /// A mark in the recording, which "step N" begins a step with.
  void mark(const char* label) {
    happens(Action::kUserDefined, 0, 0, nullptr, "");
    snapshot_.trace.back().label = label;
  }

 private:
  static BlockInfo block(size_t offset, size_t size, const char* op) {
    BlockInfo block{kBase + offset, size, size, BlockInfo::State::kActiveAllocated, {}};
    block.context.op = op;
    return block;
  }
  void happens(Action action, size_t offset, size_t size, const char* op, std::string module) {
    TraceEntry entry;
    entry.action = action;
    entry.address = kBase + offset;
    entry.size = size;
    entry.time_us = 1'000'000 + 500 * static_cast<int64_t>(snapshot_.trace.size());
    entry.context.op = op;
    entry.context.module = std::move(module);
    snapshot_.trace.push_back(std::move(entry));
  }
  MemorySnapshot snapshot_;
  TemporaryDirectory folder_;
};

std::vector<int64_t> totals(const MemoryTimeline& timeline) {
  std::vector<int64_t> result;
  for (const auto& moment : timeline.moments) result.push_back(moment.total());
  return result;
}

TEST(MemoryTimeline, FollowsTheLastStepThatTheRecordNames) {
  const MemoryTimeline timeline = Record().read(MemoryGrouping::kOperator);
  EXPECT_EQ(timeline.device, "host:0");
  EXPECT_EQ(timeline.title, "step 2");
  EXPECT_THAT(totals(timeline), ElementsAre(1000, 1100, 1600, 1500, 1550, 1050));
  EXPECT_EQ(timeline.peak, 2u);
  EXPECT_DOUBLE_EQ(timeline.moments[0].ms, 0);
  EXPECT_DOUBLE_EQ(timeline.moments[2].ms, 1);
}

TEST(MemoryTimeline, MarksOfAUserBeginNoStep) {
  Record record;
  record.mark("evaluation");
  const MemoryTimeline timeline = record.read(MemoryGrouping::kOperator);
  EXPECT_EQ(timeline.title, "step 2");
  EXPECT_EQ(timeline.moments.front().total(), 1000);
}

TEST(MemoryTimeline, GroupsAreOrderedByTheirShareOfThePeak) {
  const MemoryTimeline timeline = Record().read(MemoryGrouping::kOperator);
  EXPECT_THAT(timeline.groups, ElementsAre("held when it began", "add", "mm"));
  EXPECT_THAT(timeline.moments[2].bytes, ElementsAre(1000, 500, 100));
  EXPECT_THAT(timeline.moments[5].bytes, ElementsAre(1000, 0, 50));
}

TEST(MemoryTimeline, ModulesAndPhasesTellMemoryApartToo) {
  EXPECT_THAT(Record().read(MemoryGrouping::kModule).groups,
              ElementsAre("held when it began", "h.1", "h.0", "outside modules, backward"));
  EXPECT_THAT(Record().read(MemoryGrouping::kPhase).groups,
              ElementsAre("held when it began", "forward", "backward"));
}

TEST(MemoryTimeline, SmallGroupsAreTakenTogether) {
  const MemoryTimeline timeline = Record().read(MemoryGrouping::kModule, 3);
  EXPECT_THAT(timeline.groups, ElementsAre("held when it began", "h.1", "others"));
  EXPECT_THAT(timeline.moments[1].bytes, ElementsAre(1000, 0, 100));
  EXPECT_THAT(timeline.moments[4].bytes, ElementsAre(1000, 500, 50));
}

TEST(MemoryTimeline, ARunDirectoryStandsForItsRecord) {
  const Record record;
  record.write();
  EXPECT_EQ(read_memory_timeline(record.folder(), MemoryGrouping::kPhase, 5).title, "step 2");
}

TEST(MemoryTimeline, WhatIsNoRecordIsRefused) {
  const TemporaryDirectory folder;
  const auto read = [&](const char* name) {
    return [&folder, name] {
      (void)read_memory_timeline(folder / name, MemoryGrouping::kOperator, 5);
    };
  };
  expect_error<DataError>(read("absent.json"), "absent.json", "memory.snapshot_step");
  put_file(folder / "broken.json", "{\"device\": ");
  expect_error<DataError>(read("broken.json"), "broken.json", "no record of memory");
  put_file(folder / "deep.json", std::string(1'000'000, '['));
  expect_error<DataError>(read("deep.json"), "deep.json", "nested deeper than 64");
  put_file(folder / "other.json", "{\"device\": \"cpu\"}");
  expect_error<DataError>(read("other.json"), "other.json", "no record of memory");
  put_file(folder / "empty.json", to_json({}));
  expect_error<DataError>(read("empty.json"), "records nothing");
  expect_error<ConfigError>([] { (void)parse_memory_grouping("colour"); }, "colour",
                            "operator, module or phase");
}

TEST(MemoryTimeline, OfManyGroupsTakesMemoryForTheNamedOnes) {
  // A row of all groups at each moment would take 20 GB.
  constexpr int kEvents = 50'000;
  std::string text = R"({"device": "host:0", "segments": [], "trace": [)";
  for (int i = 0; i < kEvents; ++i) {
    text += R"({"action": "alloc", "addr": )" + std::to_string(i + 1) +
            R"(, "size": 8, "op": "op)" + std::to_string(i) + R"(", "time_us": 1},)";
  }
  text.back() = ']';
  const MemoryTimeline timeline =
      parse_memory_timeline(text + "}", "many.json", MemoryGrouping::kOperator, 5);
  EXPECT_EQ(timeline.groups.size(), 5U);
  EXPECT_EQ(timeline.moments.size(), kEvents + 1U);
  EXPECT_EQ(timeline.moments.back().total(), int64_t{8} * kEvents);
}

TEST(MemoryTimeline, NumbersThatAreNoSizesAreRefused) {
  for (const char* size : {"1.9", "-8", "true", "1e300", "9223372036854775807", "\"8\""}) {
    const std::string text = std::string(R"({"device": "host:0", "segments": [], "trace": [)") +
                             R"({"action": "alloc", "addr": 1, "time_us": 1, "op": "a", "size": )" +
                             size + "}]}";
    expect_error<DataError>(
        [&] { (void)parse_memory_timeline(text, "a.json", MemoryGrouping::kOperator, 5); },
        "a.json is no record of memory", "\"size\" is no whole number");
  }
}

TEST(MemoryTimeline, TheTableOfThePeakHasALineForEachGroup) {
  const std::string table = peak_table(Record().read(MemoryGrouping::kOperator));
  EXPECT_THAT(table, HasSubstr("host:0, step 2: 1.6 KiB on loan at the peak, 1.0 ms after"));
  EXPECT_THAT(table, HasSubstr("    1000 B   62.5 %  held when it began\n"));
  EXPECT_THAT(table, HasSubstr("     500 B   31.2 %  add\n"));
  EXPECT_THAT(table, HasSubstr("     100 B    6.2 %  mm\n"));
}

TEST(MemoryChart, NamesGroupsAndMarksThePeak) {
  const std::string svg = memory_chart(Record().read(MemoryGrouping::kModule));
  EXPECT_THAT(svg, HasSubstr("peak 1.6 KiB"));
  EXPECT_THAT(svg, HasSubstr("Memory on loan, B: host:0, step 2"));
  EXPECT_THAT(svg, HasSubstr("<title>outside modules, backward</title>"));
  EXPECT_EQ(svg.find("href"), std::string::npos);
  // The areas begin at the left edge of the plot, and the peak reaches the top.
  EXPECT_THAT(svg, HasSubstr("d=\"M64.0 "));
}

TEST(MemoryChart, ManyMomentsDoNotMakeALargeFile) {
  MemoryTimeline timeline;
  timeline.device = "cpu";
  timeline.groups = {"held", "a", "b"};
  for (int i = 0; i < 50'000; ++i) {
    timeline.moments.push_back({i / 100.0, {1000, i % 300, i % 7}});
  }
  timeline.moments[31'337].bytes[1] = 100'000;
  timeline.peak = 31'337;
  const std::string svg = memory_chart(timeline);
  EXPECT_LT(svg.size(), 200'000u);
  EXPECT_THAT(svg, HasSubstr("peak 98.6 KiB"));
}

TEST(MemoryChart, IsWellFormedXml) {
  MemoryTimeline timeline = Record().read(MemoryGrouping::kOperator);
  timeline.groups[1] = "a<&>\x01";
  expect_well_formed_xml(memory_chart(timeline));
}

}  // namespace
}  // namespace lockstep::train
