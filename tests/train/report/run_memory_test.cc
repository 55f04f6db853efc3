#include "train/report/run_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/core/memory/unpickle.h"
#include "tests/train/tiny_run.h"
#include "train/report/memory_timeline.h"
#include "train/run/training_run.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

class RunMemoryTest : public testing::Test {
 protected:
  RunDirectory train(const std::string& more) {
    const RunDirectory directory =
        RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse);
    TrainingRun run(tiny_run(folder_, "train { steps: 4 } " + more), directory, "{}");
    std::FILE* const terminal = std::tmpfile();
    run.run({.terminal = terminal});
    std::fclose(terminal);
    return directory;
  }

  TemporaryDirectory folder_;
};

TEST_F(RunMemoryTest, TheStepThatTheConfigNamesIsRecorded) {
  for (const char* device : {"cpu", "host:0"}) {
    SCOPED_TRACE(device);
    const RunDirectory directory = train(
        fmt::format("device: \"{}\" memory {{ snapshot_step: 2 history_stacks: false }}", device));
    const nlohmann::json record = nlohmann::json::parse(file_content(directory.memory()));
    EXPECT_EQ(record["device"], device);
    std::set<std::string> steps, modules, operators;
    for (const auto& entry : record["trace"]) {
      if (entry.contains("user_metadata")) steps.insert(entry["user_metadata"]);
      if (entry.contains("module")) modules.insert(entry["module"]);
      if (entry.contains("op")) operators.insert(entry["op"]);
    }
    EXPECT_EQ(steps, (std::set<std::string>{"step 1", "step 2"}));
    EXPECT_TRUE(modules.contains("h.1.mlp.c_fc"));
    EXPECT_TRUE(modules.contains("h.0"));
    EXPECT_TRUE(operators.contains("linear_gelu"));
    for (const auto& segment : record["segments"]) {
      int64_t end = segment["address"];
      for (const auto& block : segment["blocks"]) {
        EXPECT_EQ(block["address"], end);
        end += block["size"].get<int64_t>();
      }
      EXPECT_EQ(end, segment["address"].get<int64_t>() + segment["total_size"].get<int64_t>());
    }

    const nlohmann::json pickle = Unpickler(file_content(directory.memory_pickle())).read();
    EXPECT_EQ(pickle["device_traces"][0].size(), record["trace"].size());
    EXPECT_EQ(pickle["segments"].size(), record["segments"].size());

    const std::string text = file_content(directory.memory_text());
    EXPECT_THAT(text, HasSubstr(fmt::format("Memory of {}", device)));
    EXPECT_THAT(text, HasSubstr("h.1.mlp.c_fc"));

    const MemoryTimeline timeline =
        read_memory_timeline(directory.path(), MemoryGrouping::kOperator, 10);
    EXPECT_EQ(timeline.title, "step 2");
    EXPECT_GT(timeline.moments[timeline.peak].total(), timeline.moments[0].total());
    for (const auto& moment : timeline.moments) {
      for (const int64_t bytes : moment.bytes) ASSERT_GE(bytes, 0);
    }
    std::filesystem::remove_all(directory.path());
  }
}

TEST_F(RunMemoryTest, NothingIsRecordedUnlessItIsWanted) {
  const RunDirectory directory = train("");
  EXPECT_FALSE(std::filesystem::exists(directory.memory()));
  EXPECT_FALSE(std::filesystem::exists(directory.memory_pickle()));
  EXPECT_TRUE(caching_allocator(kCPU).snapshot().trace.empty());
}

TEST_F(RunMemoryTest, OptionsHoldForTheRunAndNoLonger) {
  CachingAllocator& allocator = caching_allocator(kCPU);
  const AllocatorOptions before = allocator.options();
  const config::RunConfig config =
      tiny_run(folder_, "memory { reserve_ratio: 2.5 roundup_power2_divisions: \"4\" }");
  {
    const RunMemory memory(
        config.memory(), kCPU,
        RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse));
    EXPECT_EQ(allocator.options().reserve_ratio, 2.5);
    EXPECT_EQ(allocator.options().roundup_power2_divisions, std::vector<int>{4});
  }
  EXPECT_EQ(allocator.options(), before);
}

TEST_F(RunMemoryTest, APlannedRunHasTheSameLosses) {
  const std::string plain = file_content(train("").metrics());
  std::filesystem::remove_all(folder_ / "run");
  const std::string planned = file_content(train("memory { planned: true }").metrics());
  const auto losses = [](const std::string& metrics) {
    std::vector<double> result;
    std::istringstream lines(metrics);
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.contains("step")) result.push_back(record.at("loss"));
    }
    return result;
  };
  EXPECT_EQ(losses(plain), losses(planned));
  EXPECT_EQ(losses(plain).size(), 4u);
}

TEST_F(RunMemoryTest, PlanningEndsWithTheRun) {
  CachingAllocator& allocator = caching_allocator(kCPU);
  const Stream stream(current_stream(kCPU));
  const auto take_steps = [&] {
    for (int step = 0; step < 3; ++step) {
      allocator.mark_step(stream);
      allocator.free(allocator.allocate(4096, stream));
    }
    return allocator.memory_stats().planned_peak_bytes;
  };
  {
    const RunMemory memory(
        tiny_run(folder_, "memory { planned: true }").memory(), kCPU,
        RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse));
    EXPECT_GT(take_steps(), 0);
  }
  EXPECT_EQ(take_steps(), 0);
}

/// What a backend's own allocator offers a run: nothing to configure.
class BackendMemory final : public Allocator {
 public:
  Block allocate(size_t, const Stream&) override { return {nullptr, 0, nullptr, this}; }
  void free(const Block&) noexcept override {}
  void record_stream(const Block&, const Stream&) override {}
  MemoryStats stats() const override { return {}; }
  void reset_peak() override {}
};

TEST_F(RunMemoryTest, OptionsAreRefusedWhereTheBackendBringsItsAllocator) {
  static BackendMemory& memory = *new BackendMemory;
  Allocator* const before = set_allocator(DeviceType::kPrivate1, &memory);
  const Device device(DeviceType::kPrivate1, 0);
  const RunDirectory directory =
      RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse);
  const auto with = [&](const std::string& options) {
    const config::RunConfig config = tiny_run(folder_, options);
    RunMemory run(config.memory(), device, directory);
    EXPECT_FALSE(run.wants_whole_steps());
    run.begin_step(1);
    run.end_step(1);
  };
  with("");
  for (const char* options : {"memory { reserve_ratio: 2.5 }", "memory { planned: true }",
                              "memory { snapshot_step: 1 }"}) {
    EXPECT_EQ(message_of<ConfigError>([&] { with(options); }),
              fmt::format("[memory] these options are of the caching allocator, but the backend of "
                          "{} brings an allocator of its own. Leave them out.",
                          to_string(device)))
        << options;
  }
  EXPECT_FALSE(std::filesystem::exists(directory.memory()));
  set_allocator(DeviceType::kPrivate1, before);
}

TEST_F(RunMemoryTest, WholeStepsAreWantedUntilTheRecordIsWritten) {
  const config::RunConfig config = tiny_run(folder_, "memory { snapshot_step: 2 }");
  RunMemory memory(config.memory(), kCPU,
                   RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse));
  memory.begin_step(1);
  memory.end_step(1);
  EXPECT_TRUE(memory.wants_whole_steps());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/memory.json"));
  memory.begin_step(2);
  memory.end_step(2);
  EXPECT_FALSE(memory.wants_whole_steps());
  for (const char* name : {"memory.json", "memory.txt", "memory.pickle"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / name)) << name;
  }
}

TEST_F(RunMemoryTest, AStepBeyondTheRecordedOneEndsTheRecordWithoutAFile) {
  const config::RunConfig config = tiny_run(folder_, "memory { snapshot_step: 2 }");
  RunMemory memory(config.memory(), kCPU,
                   RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse));
  memory.begin_step(3);
  memory.end_step(3);
  EXPECT_FALSE(memory.wants_whole_steps());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/memory.json"));
}

}  // namespace
}  // namespace lockstep::train
