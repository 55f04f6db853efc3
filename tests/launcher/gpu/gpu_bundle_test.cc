// The script of `./dev gpu-bundle`, on machines without a GPU: the programs of this build take the
// places of the bundle's own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GpuBundle : public Program {
 protected:
  static constexpr const char* kScripts = LOCKSTEP_SOURCE_DIR "/benchmarks/gpu";
  static constexpr const char* kEmulation = LOCKSTEP_BIN_DIR "/../lib/libcuda_emulation.so";

  void SetUp() override {
    std::filesystem::create_directories(bundle_ / "bin");
    std::filesystem::create_directories(bundle_ / "data");
    for (const char* name : {"run.sh", "checks.sh"}) {
      std::filesystem::copy_file(std::filesystem::path(kScripts) / name, bundle_ / name);
    }
    std::filesystem::create_directory_symlink(LOCKSTEP_SOURCE_DIR "/configs/examples",
                                              bundle_ / "configs");
    std::string text;
    for (int i = 0; i < 600; ++i) text += fmt::format("{} and {}. ", i, i % 7);
    put_file(bundle_ / "data/kjv.txt", text);
    put_file(bundle_ / "version", "lockstep of a test\n");
    put_program("");
  }

  /// Installs a wrapper of this build's program that runs `first` and sets `variables`.
  void put_program(const std::string& variables, const std::string& first = "") const {
    const std::filesystem::path program = bundle_ / "bin/lockstep";
    put_file(program, fmt::format("#!/bin/sh\n{}\nexec env {} '{}/lockstep' \"$@\"\n", first,
                                  variables, LOCKSTEP_BIN_DIR));
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  void use_emulated_gpu(const std::string& first = "") const {
    put_program(fmt::format("LD_PRELOAD='{}'", kEmulation), first);
  }

  Result run_script(const std::string& arguments) const {
    // Hides this machine's CUDA: unsets its variables, and HOME, which is searched for libraries.
    return shell(fmt::format("env -u LOCKSTEP_CUDA_LIBRARIES HOME=. CUDA_VISIBLE_DEVICES= '{}' {}",
                             (bundle_ / "run.sh").string(), arguments));
  }
  json report() const { return json::parse(file_content(folder_ / "out/report.json")); }

  std::filesystem::path bundle_ = folder_ / "bundle";
};

TEST_F(GpuBundle, OptionsThatCannotBeAreRefused) {
  const auto refused = [&](const std::string& arguments) {
    const Result result = run_script(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    return result.errors;
  };
  EXPECT_THAT(refused(""), HasSubstr("--out is missing"));
  EXPECT_THAT(refused("--out a --minutes soon"), HasSubstr("got \"soon\""));
  EXPECT_THAT(refused("--out a --only step_f32,speed"), HasSubstr("there is no check \"speed\""));
  EXPECT_THAT(refused("--fast"), HasSubstr("unknown argument \"--fast\""));
}

TEST_F(GpuBundle, WithoutADeviceItsChecksAreListed) {
  const Result result = run_script("--out out");
  if (result.status != 3) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(result.output, HasSubstr("no CUDA device: "));
  EXPECT_THAT(result.output, HasSubstr("\n  conformance "));
  EXPECT_THAT(result.output, HasSubstr("\n  torch_step "));
  EXPECT_EQ(file_content(folder_ / "out/report.txt"), result.output);
  EXPECT_TRUE(report()["device"].is_null());
  EXPECT_TRUE(report()["checks"].empty());
}

TEST_F(GpuBundle, ChecksRunOnTheEmulatedGpuAndLeaveAReport) {
  if (!std::filesystem::exists(kEmulation)) GTEST_SKIP() << "no emulated GPU in this build";
  use_emulated_gpu();
  const Result result = run_script(
      "--out out --small --torch no_python --only "
      "doctor,machine,conformance,cuda_tests,train,step_bf16,step_graphs,steady_memory,overlap,"
      "matmul,stress_streams,torch_step");
  EXPECT_EQ(result.status, 0) << result.output << file_content(folder_ / "out/report.txt");
  const json found = report();
  EXPECT_EQ(found["version"], "lockstep of a test");
  EXPECT_THAT(found["device"].get<std::string>(), HasSubstr("Emulated GPU"));
  std::map<std::string, json> checks;
  for (const json& each : found["checks"]) checks[each["name"]] = each;
  EXPECT_EQ(checks.size(), 12U);
  EXPECT_EQ(found["checks"].at(0)["name"], "doctor");
  for (const auto& [name, check] : checks) {
    const bool needs_more = name == "conformance" || name == "cuda_tests" || name == "torch_step";
    EXPECT_EQ(check["status"], needs_more ? "skipped" : "passed") << name;
    EXPECT_NE(check["summary"], "") << name;
  }
  EXPECT_EQ(checks["conformance"]["summary"], "no --conformance");
  const json step = checks["step_bf16"]["figures"].at(0);
  EXPECT_GT(step["tokens_per_s"], 0);
  EXPECT_GT(step["peak_memory_bytes"], 0);
  EXPECT_EQ(step["calls_on_cpu"], 0);
  EXPECT_FALSE(step.contains("mfu")) << "the peak of an emulated GPU is not known";
  EXPECT_EQ(checks["step_graphs"]["figures"].at(0)["replayed"], 2) << "both steps";
  EXPECT_EQ(checks["step_graphs"]["figures"].size(), 3U);
  EXPECT_EQ(checks["steady_memory"]["figures"].at(0)["driver_calls"], 0);
  const json overlap = checks["overlap"]["figures"].at(0);
  EXPECT_EQ(overlap["ranks"], 2);
  EXPECT_GT(overlap["buckets"].at(0)["done_ms"], overlap["buckets"].at(0)["ready_ms"]);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/overlap.svg"));
  EXPECT_EQ(checks["matmul"]["figures"].size(), 3U * (15 + 4));
  EXPECT_THAT(file_content(folder_ / "out/report.txt"),
              AllOf(HasSubstr("=== train"), HasSubstr("verdict")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/logs.tar.gz"));
}

TEST_F(GpuBundle, ACheckThatFailsIsReportedAndTheOthersGoOn) {
  if (!std::filesystem::exists(kEmulation)) GTEST_SKIP() << "no emulated GPU in this build";
  use_emulated_gpu();
  std::filesystem::remove(bundle_ / "configs");
  const Result result = run_script("--out out --small --only step_f32,stress_streams");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, Not(HasSubstr("Terminated")));
  const json checks = report()["checks"];
  EXPECT_EQ(checks.at(0)["status"], "failed");
  EXPECT_THAT(checks.at(0)["summary"].get<std::string>(), HasSubstr("exit status"));
  EXPECT_EQ(checks.at(1)["status"], "passed");
}

TEST_F(GpuBundle, ResultsAreKeptAfterEachCheckAndWhatPassedIsNotRunAgain) {
  if (!std::filesystem::exists(kEmulation)) GTEST_SKIP() << "no emulated GPU in this build";
  const std::string out = (folder_ / "out").string();
  const std::string meanwhile = (folder_ / "meanwhile.json").string();
  // The second check finds the report of the first, and fails.
  use_emulated_gpu(fmt::format("[ \"$1\" != stress ] || {{ cp '{}/report.json' '{}'; exit 1; }}",
                               out, meanwhile));
  const std::string arguments = "--out out --small --only machine,stress_streams";
  EXPECT_EQ(run_script(arguments).status, 1);
  const json first = json::parse(file_content(meanwhile))["checks"];
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first.at(0)["name"], "machine");
  EXPECT_EQ(first.at(0)["status"], "passed");

  put_file(folder_ / "out/logs/machine.log", "of the first run\n");
  use_emulated_gpu();
  const Result second = run_script(arguments + " --resume");
  EXPECT_EQ(second.status, 0) << second.output << second.errors;
  EXPECT_THAT(second.output,
              AllOf(HasSubstr("kept       machine\n"), HasSubstr("passed     stress")));
  EXPECT_EQ(report()["checks"].size(), 2U);
  EXPECT_THAT(file_content(folder_ / "out/report.txt"), HasSubstr("of the first run"));

  put_file(bundle_ / "version", "another bundle\n");
  const Result other = run_script(arguments + " --resume");
  EXPECT_THAT(other.errors, HasSubstr("are of another bundle or GPU"));
  EXPECT_THAT(other.output, AllOf(Not(HasSubstr("kept")), HasSubstr("passed     machine")));
}

TEST_F(GpuBundle, FiguresThatAProgramCouldNotFinishAreLeftOutOfTheReport) {
  if (!std::filesystem::exists(kEmulation)) GTEST_SKIP() << "no emulated GPU in this build";
  use_emulated_gpu(
      R"([ "$1" != bench ] || { printf '{"us": 1}\n\377 {"a": {"b": 2}\n{"a": {"b": 2}'; exit 1; })");
  EXPECT_EQ(run_script("--out out --only matmul").status, 1);
  const json check = report()["checks"].at(0);
  EXPECT_EQ(check["status"], "failed");
  EXPECT_EQ(check["figures"], json::array({{{"us", 1}}}));
}

}  // namespace
}  // namespace lockstep::launcher
