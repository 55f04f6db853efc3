#include "core/memory/snapshot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/core/base/temporary_directory.h"
#include "tests/core/memory/unpickle.h"

namespace lockstep {
namespace {

using nlohmann::json;
using Action = TraceEntry::Action;

constexpr uintptr_t kBase = 0x7f0012000000;

TraceEntry entry(Action action, uintptr_t address, size_t size, AllocationContext context = {}) {
  TraceEntry entry;
  entry.action = action;
  entry.address = address;
  entry.size = size;
  entry.time_us = 1'700'000'000'000'000;
  entry.context = std::move(context);
  return entry;
}

/// One segment of three blocks on host:1, with its history.
MemorySnapshot sample_snapshot() {
  const AllocationContext mm{"mm", "h.0.attn", CallStack::capture(), Phase::kBackward};
  SegmentInfo segment;
  segment.device = parse_device("host:1");
  segment.address = kBase;
  segment.total_size = 2 << 20;
  segment.allocated_size = 1024;
  segment.active_size = 1536;
  segment.requested_size = 1000;
  segment.stream = 3;
  segment.is_expandable = true;
  segment.pool = 7;
  segment.blocks = {
      {kBase, 1024, 1000, BlockInfo::State::kActiveAllocated, mm},
      {kBase + 1024, 512, 512, BlockInfo::State::kActivePendingFree, {}},
      {kBase + 1536, (2 << 20) - 1536, 0, BlockInfo::State::kInactive, {}},
  };
  MemorySnapshot snapshot;
  snapshot.device = segment.device;
  snapshot.segments = {segment};
  snapshot.options.roundup_power2_divisions = {1, 4};
  snapshot.trace = {entry(Action::kSegmentMap, kBase, 2 << 20),
                    entry(Action::kAlloc, kBase, 1024, mm),
                    entry(Action::kAlloc, kBase + 1024, 512, mm),
                    entry(Action::kFreeRequested, kBase + 1024, 512),
                    entry(Action::kOom, 4096, size_t{1} << 62),
                    entry(Action::kUserDefined, 0, 0)};
  snapshot.trace.back().label = "epoch \"2\"";
  return snapshot;
}

TEST(MemorySnapshot, JsonHasSegmentsTraceAndEachStackOnce) {
  const json read = json::parse(to_json(sample_snapshot()));
  EXPECT_EQ(read["device"], "host:1");
  const json& segment = read["segments"].at(0);
  EXPECT_EQ(segment["address"], kBase);
  EXPECT_EQ(segment["segment_type"], "small");
  EXPECT_EQ(segment["stream"], 3);
  EXPECT_EQ(segment["segment_pool_id"], 7);
  ASSERT_EQ(segment["blocks"].size(), 3u);
  EXPECT_EQ(segment["blocks"][0]["op"], "mm");
  EXPECT_EQ(segment["blocks"][0]["module"], "h.0.attn");
  EXPECT_EQ(segment["blocks"][0]["phase"], "backward");
  EXPECT_EQ(segment["blocks"][1]["state"], "active_pending_free");
  EXPECT_FALSE(segment["blocks"][2].contains("op"));
  ASSERT_EQ(read["trace"].size(), 6u);
  EXPECT_EQ(read["trace"][0]["action"], "segment_map");
  EXPECT_EQ(read["trace"][4]["device_free"], 4096);
  EXPECT_EQ(read["trace"][4]["size"], size_t{1} << 62);
  EXPECT_EQ(read["trace"][5]["user_metadata"], "epoch \"2\"");
  ASSERT_EQ(read["stacks"].size(), 1u) << "three entries share it";
  EXPECT_EQ(read["trace"][1]["stack"], 0);
  EXPECT_EQ(read["stacks"][0][0], to_string(sample_snapshot().trace[1].context.stack.frames()[0]));
}

TEST(MemorySnapshot, AnEmptyOneIsStillAnObject) {
  EXPECT_EQ(json::parse(to_json({}))["segments"], json::array());
  EXPECT_EQ(Unpickler(to_pickle({})).read()["device_traces"], json::parse("[[]]"));
}

TEST(MemorySnapshot, PickleHasTheFormOfPyTorchs) {
  const MemorySnapshot snapshot = sample_snapshot();
  const json read = Unpickler(to_pickle(snapshot)).read();
  const json& segment = read.at("segments").at(0);
  EXPECT_EQ(segment["device"], 1);
  EXPECT_EQ(segment["segment_pool_id"], json::parse("[0, 7]"));
  EXPECT_EQ(segment["is_expandable"], true);
  EXPECT_EQ(segment["frames"], json::array());
  size_t sum = 0;
  for (const json& block : segment["blocks"]) {
    EXPECT_EQ(block["address"], kBase + sum);
    sum += block["size"].get<size_t>();
    EXPECT_TRUE(block["frames"].is_array());
  }
  EXPECT_EQ(sum, segment["total_size"]);

  ASSERT_EQ(read["device_traces"].size(), 2u) << "the viewer takes the device as an index";
  EXPECT_EQ(read["device_traces"][0], json::array());
  const json& trace = read["device_traces"][1];
  ASSERT_EQ(trace.size(), snapshot.trace.size());
  EXPECT_EQ(trace[1]["action"], "alloc");
  EXPECT_EQ(trace[1]["addr"], kBase);
  EXPECT_EQ(trace[1]["time_us"], 1'700'000'000'000'000);
  EXPECT_FALSE(trace[4].contains("addr"));
  EXPECT_EQ(trace[4]["device_free"], 4096);
  EXPECT_EQ(trace[5]["user_metadata"], "epoch \"2\"");

  const json& frames = trace[1]["frames"];
  ASSERT_EQ(frames.size(), 3u + static_cast<size_t>(snapshot.trace[1].context.stack.size()));
  EXPECT_EQ(frames[0], json::parse(R"({"name": "mm", "filename": "operator", "line": 0})"));
  EXPECT_EQ(frames[1], json::parse(R"({"name": "h.0.attn", "filename": "module", "line": 0})"));
  EXPECT_EQ(frames[2], json::parse(R"({"name": "backward", "filename": "phase", "line": 0})"));

  const json& settings = read["allocator_settings"];
  EXPECT_EQ(settings["PYTORCH_CUDA_ALLOC_CONF"], to_string(snapshot.options));
  EXPECT_EQ(settings["max_split_size"], -1);
  EXPECT_EQ(settings["roundup_power2_divisions"], json::parse(R"({"1": 1, ">": 4})"));
}

TEST(MemorySnapshot, PythonReadsThePickle) {
  if (std::system("python3 -c 'import json, pickle' > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no python3";
  }
  MemorySnapshot snapshot = sample_snapshot();
  // More entries than one batch of a pickled list, and more strings than a one-byte memo index.
  for (size_t i = 0; i < 2500; ++i) {
    TraceEntry note = entry(Action::kUserDefined, 0, i);
    note.label = "note " + std::to_string(i % 500) + " \xff \xe2\x82\xac";
    snapshot.trace.push_back(note);
  }
  const train::TemporaryDirectory folder;
  const std::string pickle = to_pickle(snapshot);
  train::put_file(folder / "memory.pickle", pickle);
  const std::string program =
      "import json, pickle, sys; "
      "json.dump(pickle.load(open(sys.argv[1], 'rb')), open(sys.argv[2], 'w'))";
  const std::string command = "python3 -c \"" + program + "\" " +
                              (folder / "memory.pickle").string() + " " +
                              (folder / "memory.json").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(json::parse(train::file_content(folder / "memory.json")), Unpickler(pickle).read());
}

}  // namespace
}  // namespace lockstep
