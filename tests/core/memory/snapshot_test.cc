#include "core/memory/snapshot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/check.h"
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

TEST(MemorySnapshot, ActionsAndStatesHavePyTorchsNames) {
  using Action = TraceEntry::Action;
  const std::pair<Action, const char*> actions[] = {{Action::kAlloc, "alloc"},
                                                    {Action::kFreeRequested, "free_requested"},
                                                    {Action::kFreeCompleted, "free_completed"},
                                                    {Action::kSegmentAlloc, "segment_alloc"},
                                                    {Action::kSegmentFree, "segment_free"},
                                                    {Action::kSegmentMap, "segment_map"},
                                                    {Action::kSegmentUnmap, "segment_unmap"},
                                                    {Action::kSnapshot, "snapshot"},
                                                    {Action::kOom, "oom"},
                                                    {Action::kUserDefined, "user_defined"}};
  for (const auto& [action, expected] : actions) EXPECT_STREQ(name(action), expected);
  using State = BlockInfo::State;
  EXPECT_STREQ(name(State::kActiveAllocated), "active_allocated");
  EXPECT_STREQ(name(State::kActivePendingFree), "active_pending_free");
  EXPECT_STREQ(name(State::kInactive), "inactive");
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

/// Two segments and a history without call stacks, whose texts are the same everywhere.
MemorySnapshot plain_snapshot() {
  const AllocationContext mm{"mm", "h.0", {}, Phase::kBackward};
  const AllocationContext of_module{nullptr, "h.1", {}, Phase::kForward};
  MemorySnapshot snapshot;
  snapshot.device = parse_device("host:1");
  SegmentInfo& small = snapshot.segments.emplace_back();
  small.device = snapshot.device;
  small.address = 4096;
  small.total_size = 2048;
  small.allocated_size = 512;
  small.active_size = 1024;
  small.requested_size = 300;
  small.stream = 3;
  small.is_expandable = true;
  small.pool = 7;
  small.blocks = {{4096, 512, 300, BlockInfo::State::kActiveAllocated, mm},
                  {4608, 1536, 0, BlockInfo::State::kInactive, of_module}};
  SegmentInfo& large = snapshot.segments.emplace_back();
  large.device = snapshot.device;
  large.address = 8192;
  large.total_size = 2 << 20;
  large.is_large = true;
  TraceEntry alloc = entry(Action::kAlloc, 4096, 512, mm);
  alloc.stream = 3;
  TraceEntry oom = entry(Action::kOom, 77, 1 << 20);
  oom.stream = 2;
  TraceEntry note = entry(Action::kUserDefined, 0, 0);
  note.label = "step";
  snapshot.trace = {alloc, oom, note};
  snapshot.options.max_split_size = size_t{64} << 20;
  snapshot.options.garbage_collection_threshold = 0.5;
  snapshot.options.expandable_segments = false;
  snapshot.options.roundup_power2_divisions = {1, 2, 4};
  return snapshot;
}

TEST(MemorySnapshot, JsonHasALineForEachEntry) {
  EXPECT_EQ(
      to_json(plain_snapshot()),
      R"({"device": "host:1",
"allocator_settings": "expandable_segments:False,max_split_size_mb:64,)"
      R"(roundup_power2_divisions:[1:1,2:2,>:4],garbage_collection_threshold:0.5,)"
      R"(per_process_memory_fraction:1,large_segment_size_mb:20,stream_reuse:wait,)"
      R"(reserve_ratio:1.02,record_call_sites:False",
"segments": [
{"address":4096,"total_size":2048,"allocated_size":512,"active_size":1024,)"
      R"("requested_size":300,"stream":3,"segment_type":"small","segment_pool_id":7,)"
      R"("is_expandable":true,"blocks":[{"address":4096,"size":512,"requested_size":300,)"
      R"("state":"active_allocated","op":"mm","module":"h.0","phase":"backward"},)"
      R"({"address":4608,"size":1536,"requested_size":0,"state":"inactive","module":"h.1"}]},
{"address":8192,"total_size":2097152,"allocated_size":0,"active_size":0,"requested_size":0,)"
      R"("stream":0,"segment_type":"large","segment_pool_id":0,"is_expandable":false,"blocks":[]}
],
"trace": [
{"action":"alloc","addr":4096,"size":512,"stream":3,"time_us":1700000000000000,"op":"mm",)"
      R"("module":"h.0","phase":"backward"},
{"action":"oom","device_free":77,"size":1048576,"stream":2,"time_us":1700000000000000},
{"action":"user_defined","addr":0,"size":0,"stream":0,"time_us":1700000000000000,)"
      R"("user_metadata":"step"}
],
"stacks": []}
)");
}

TEST(MemorySnapshot, PickleHasEachFieldOfPyTorchs) {
  const json frames = json::parse(R"([{"name": "mm", "filename": "operator", "line": 0},
                                      {"name": "h.0", "filename": "module", "line": 0},
                                      {"name": "backward", "filename": "phase", "line": 0}])");
  const json of_module = json::parse(R"([{"name": "h.1", "filename": "module", "line": 0}])");
  json expected = json::parse(R"({
    "segments": [
      {"device": 1, "address": 4096, "total_size": 2048, "allocated_size": 512, "active_size": 1024,
       "requested_size": 300, "stream": 3, "segment_type": "small", "segment_pool_id": [0, 7],
       "is_expandable": true, "frames": [], "blocks": [
         {"address": 4096, "size": 512, "requested_size": 300, "state": "active_allocated"},
         {"address": 4608, "size": 1536, "requested_size": 0, "state": "inactive"}]},
      {"device": 1, "address": 8192, "total_size": 2097152, "allocated_size": 0, "active_size": 0,
       "requested_size": 0, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0],
       "is_expandable": false, "frames": [], "blocks": []}],
    "device_traces": [[], [
      {"action": "alloc", "addr": 4096, "size": 512, "stream": 3, "time_us": 1700000000000000},
      {"action": "oom", "device_free": 77, "size": 1048576, "stream": 2,
       "time_us": 1700000000000000, "frames": []},
      {"action": "user_defined", "addr": 0, "size": 0, "stream": 0, "time_us": 1700000000000000,
       "frames": [], "user_metadata": "step"}]],
    "allocator_settings": {
      "max_split_size": 67108864, "garbage_collection_threshold": 0.5, "expandable_segments": false,
      "roundup_power2_divisions": {"1": 1, "2": 2, ">": 4}},
    "external_annotations": []})");
  expected["segments"][0]["blocks"][0]["frames"] = frames;
  expected["segments"][0]["blocks"][1]["frames"] = of_module;
  expected["device_traces"][1][0]["frames"] = frames;
  const MemorySnapshot snapshot = plain_snapshot();
  expected["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = to_string(snapshot.options);
  EXPECT_EQ(Unpickler(to_pickle(snapshot)).read(), expected);
}

TEST(MemorySnapshot, FramesOfAStackAreItsFunctionsAndTheirPlacesInTheirFiles) {
  const MemorySnapshot snapshot = sample_snapshot();
  const json read = Unpickler(to_pickle(snapshot)).read();
  const CallStack::Frame first = snapshot.trace[1].context.stack.frames()[0];
  const json& frame = read["device_traces"][1][1]["frames"][3];
  EXPECT_EQ(frame["name"], first.function);
  const std::string file = frame["filename"];
  EXPECT_EQ(file.find('/'), std::string::npos) << file;
  EXPECT_NE(file.find(fmt::format("+{:#x}", first.offset)), std::string::npos) << file;
  // A stack of other frames gets a number of its own.
  MemorySnapshot two = sample_snapshot();
  two.trace[2].context.stack = [] { return CallStack::capture(); }();
  const json stacks = json::parse(to_json(two));
  ASSERT_EQ(stacks["stacks"].size(), 2u);
  EXPECT_EQ(stacks["trace"][2]["stack"], 1);
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
