// What `./dev gpu-bundle` makes, on machines without a GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

class GpuBundle : public Program {
 protected:
  static constexpr const char* kScript = LOCKSTEP_SOURCE_DIR "/benchmarks/gpu/run.sh";
};

TEST_F(GpuBundle, OptionsThatCannotBeAreRefused) {
  const auto refused = [&](const std::string& arguments) {
    const Result result = shell(fmt::format("'{}' {}", kScript, arguments));
    EXPECT_EQ(result.status, 2) << arguments;
    return result.errors;
  };
  EXPECT_THAT(refused(""), HasSubstr("--out is missing"));
  EXPECT_THAT(refused("--out a --minutes soon"), HasSubstr("got \"soon\""));
  EXPECT_THAT(refused("--out a --only step_f32,speed"), HasSubstr("there is no check \"speed\""));
  EXPECT_THAT(refused("--fast"), HasSubstr("unknown argument \"--fast\""));
}

TEST_F(GpuBundle, WithoutADeviceItsChecksAreListed) {
  const std::string script = LOCKSTEP_SOURCE_DIR "/build/gpu/run.sh";
  if (!std::filesystem::exists(script)) GTEST_SKIP() << "`./dev gpu-bundle` was not called";
  const Result result =
      shell(fmt::format("env -i PATH=\"$PATH\" HOME=. CUDA_VISIBLE_DEVICES= '{}' --out .", script));
  EXPECT_EQ(result.status, 3) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("no CUDA device: "));
  EXPECT_THAT(result.output, HasSubstr("\n  conformance "));
  EXPECT_EQ(file_content(folder_ / "report.txt"), result.output);
  EXPECT_THAT(file_content(folder_ / "report.json"), HasSubstr("\"device\": null"));
}

}  // namespace
}  // namespace lockstep::launcher
