// `lockstep bench allocator`, `lockstep stress` and `lockstep train --record-allocations`.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/memory/allocation_trace.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class MemoryVerbs : public Program {
 protected:
  void put_trace() const {
    std::string text = "# three steps\n";
    for (int step = 0; step < 3; ++step) {
      const int first = 10 * step;
      text += fmt::format("m step{}\na {} 3000000\na {} 100\nf {}\na {} 5000000\nf {}\nf {}\n",
                          step, first, first + 1, first, first + 2, first + 1, first + 2);
    }
    put_file(folder_ / "run.trace", text);
  }
};

TEST_F(MemoryVerbs, BenchAllocatorReportsEachPolicy) {
  put_trace();
  for (const std::string policy : {"native", "expandable", "planned"}) {
    for (const std::string device : {"cpu", "host:1"}) {
      const Result result = run("bench allocator --trace run.trace --json --policy " + policy +
                                " --device " + device);
      ASSERT_EQ(result.status, 0) << result.errors;
      const Json report = Json::parse(result.output);
      EXPECT_EQ(report["policy"], policy);
      EXPECT_EQ(report["device"], device);
      EXPECT_EQ(report["peak_live_bytes"], 5000100);
      EXPECT_GE(report["peak_reserved_bytes"].get<int64_t>(), 5000100);
      EXPECT_DOUBLE_EQ(report["ratio"].get<double>(),
                       report["peak_reserved_bytes"].get<double>() / 5000100);
      EXPECT_GT(report["driver_calls"].get<int64_t>(), 0);
      EXPECT_LT(report["driver_calls_after_first_step"].get<int64_t>(),
                report["driver_calls"].get<int64_t>());
      EXPECT_GT(report["ns_per_pair"].get<double>(), 0);
    }
  }
  const Result table = run("bench allocator --trace run.trace");
  EXPECT_EQ(table.status, 0) << table.errors;
  EXPECT_THAT(table.output, HasSubstr("peak reserved"));
}

TEST_F(MemoryVerbs, BenchAllocatorNamesWhatIsWrong) {
  put_file(folder_ / "bad.trace", "a 0 12\nf 1\n");
  const Result bad = run("bench allocator --trace bad.trace");
  EXPECT_EQ(bad.status, 3);
  EXPECT_THAT(bad.errors, HasSubstr("bad.trace:2:"));
  EXPECT_EQ(run("bench allocator --trace none.trace").status, 3);
  EXPECT_EQ(run("bench allocator").status, 2);
  put_trace();
  EXPECT_EQ(run("bench allocator --trace run.trace --policy best").status, 2);
  const Result none = run("bench allocator --trace run.trace --device host:15");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.errors, HasSubstr("DeviceError"));
}

TEST_F(MemoryVerbs, StressEndsWithAVerdict) {
  for (const std::string kind : {"allocator", "streams"}) {
    for (const std::string device : {"cpu", "host"}) {
      const Result result = run("stress " + kind + " --device " + device +
                                " --threads 2 --streams 3 --seconds 0 --seed 5");
      EXPECT_EQ(result.status, 0) << result.output << result.errors;
      EXPECT_THAT(result.output, HasSubstr("1 programs from seed 5"));
      EXPECT_THAT(result.output, HasSubstr("passed: everything verified"));
    }
  }
}

TEST_F(MemoryVerbs, StressTakesDeviceAndOptionsFromAConfig) {
  put_config("run.txtpb", "device: \"host:1\"\n");
  const Result result = run("stress streams --config run.txtpb --threads 1 --seconds 0");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("streams on host:1"));
}

TEST_F(MemoryVerbs, StressFailsWithStatusOneAndSaysHowToRepeat) {
  // This scenario cannot succeed with plain segments.
  const Result result = run("stress allocator --scenario huge-and-tiny --seed 4",
                            "LOCKSTEP_ALLOC_CONF=expandable_segments:False");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("FAILED"));
  EXPECT_THAT(result.output, HasSubstr("--scenario huge-and-tiny --seed 4"));
}

TEST_F(MemoryVerbs, StressScenariosRunByName) {
  const Result result = run("stress streams --scenario side-reductions");
  EXPECT_EQ(result.status, 0) << result.output << result.errors;
  EXPECT_THAT(result.output, HasSubstr("passed"));
  EXPECT_EQ(run("stress allocator --scenario none").status, 2);
}

TEST_F(MemoryVerbs, StressNeedsADeviceThatIsThere) {
  const Result result = run("stress allocator --device host:15");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("DeviceError"));
  EXPECT_EQ(run("stress").status, 2);
}

TEST_F(MemoryVerbs, TrainRecordsATraceThatBenchReads) {
  for (const std::string device : {"cpu", "host:0"}) {
    put_config("run.txtpb", fmt::format("device: \"{}\"\n", device));
    const Result trained =
        run("train run.txtpb --steps 4 --run-dir " + device + " --record-allocations run.trace");
    ASSERT_EQ(trained.status, 0) << trained.errors;
    const AllocationTrace trace = read_allocation_trace((folder_ / "run.trace").string());
    EXPECT_EQ(trace.labels, (std::vector<std::string>{"step0", "step1", "step2", "step3"}));
    EXPECT_GT(trace.blocks, 100);
    const Result bench = run("bench allocator --trace run.trace --json");
    ASSERT_EQ(bench.status, 0) << bench.errors;
    EXPECT_EQ(Json::parse(bench.output)["peak_live_bytes"], trace.peak_live_bytes());
  }
}

TEST_F(MemoryVerbs, TrainRefusesTwoUsesOfTheHistory) {
  put_config("run.txtpb", "memory { snapshot_step: 2 }\n");
  const Result result = run("train run.txtpb --run-dir r --record-allocations run.trace");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.errors, HasSubstr("memory.snapshot_step"));
}

}  // namespace
}  // namespace lockstep::launcher
