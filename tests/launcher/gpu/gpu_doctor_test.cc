// `lockstep doctor --gpu` on emulated GPUs, with a library in the place of NVML's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class GpuDoctor : public Program {
 protected:
  static constexpr const char* kEmulation = LOCKSTEP_BIN_DIR "/../lib/libcuda_emulation.so";
  static constexpr const char* kNvml = LOCKSTEP_BIN_DIR "/../fake_nvml";

  void SetUp() override {
    if (!std::filesystem::exists(kEmulation)) GTEST_SKIP() << "no emulated GPU in this build";
  }

  /// `wrong`: words for the fake NVML.
  Result doctor(const std::string& wrong, int gpus = 1,
                const std::string& arguments = "--time-limit 280") const {
    return run("doctor --gpu --json " + arguments,
               fmt::format("LD_PRELOAD='{}' LOCKSTEP_EMULATED_GPUS={} LOCKSTEP_CUDA_LIBRARIES='{}' "
                           "FAKE_NVML='{}'",
                           kEmulation, gpus, kNvml, wrong));
  }
  static json check(const Result& result, const std::string& subject) {
    const json report = json::parse(result.output);
    for (const json& each : report.at("checks")) {
      if (each.at("subject") == subject) return each;
    }
    ADD_FAILURE() << "no " << subject << " in\n" << result.output;
    return {{"health", ""}, {"found", ""}, {"advice", ""}};
  }
  static std::string text(const json& check, const char* field) {
    return check.at(field).get<std::string>();
  }
};

TEST_F(GpuDoctor, FindsAHealthyDeviceSound) {
  const Result result = doctor("");
  ASSERT_EQ(result.status, 0) << result.output << result.errors;
  EXPECT_THAT(text(check(result, "cuda:0"), "found"),
              AllOf(HasSubstr("Emulated GPU, 2.0 GiB, compute capability 9.0"),
                    HasSubstr("driver 580.65.06")));
  for (const char* const subject :
       {"ECC", "temperature", "processes", "NVLink", "memory", "products f32", "products bf16",
        "clocks", "from the cpu", "to the cpu"}) {
    EXPECT_EQ(check(result, fmt::format("cuda:0 {}", subject)).at("health"), "ok") << subject;
  }
  EXPECT_THAT(text(check(result, "cuda:0 clocks"), "found"),
              HasSubstr("processors 1,755 of 1,980 MHz"));
  EXPECT_THAT(text(check(result, "cuda:0 products bf16"), "found"), HasSubstr(" TFLOP/s (side "));
  EXPECT_THAT(result.output, Not(HasSubstr("peers"))) << "there is one device";
}

TEST_F(GpuDoctor, TellsWhatGoesASlowWay) {
  const json ways = check(doctor(""), "cuda:0 fast ways");
  EXPECT_EQ(ways.at("health"), "warn");
  // The emulation has a cuBLASLt with every epilogue, and no cuDNN.
  EXPECT_EQ(text(ways, "found"), "not taken: attention and convolutions on cuda without cuDNN");
  EXPECT_THAT(text(ways, "advice"), HasSubstr("the emulated GPU has none"));
}

TEST_F(GpuDoctor, TellsWhatIsWrongWithADevice) {
  const Result result = doctor("throttled,errors,occupied");
  EXPECT_EQ(result.status, 1);
  const json clocks = check(result, "cuda:0 clocks");
  EXPECT_EQ(clocks.at("health"), "fail");
  EXPECT_THAT(text(clocks, "found"), AllOf(HasSubstr("510 of 1,980"), HasSubstr("held back by")));
  EXPECT_EQ(check(result, "cuda:0 ECC").at("health"), "fail");
  EXPECT_THAT(text(check(result, "cuda:0 ECC"), "found"),
              AllOf(HasSubstr("2 uncorrected errors"), HasSubstr("waits to be replaced")));
  EXPECT_EQ(check(result, "cuda:0 temperature").at("health"), "warn");
  EXPECT_EQ(text(check(result, "cuda:0 processes"), "found"), "process 4121 holds 30.0 GiB");
}

TEST_F(GpuDoctor, MeasuresCopiesBetweenTwoDevices) {
  const Result result = doctor("slice,riser,unplugged", 2);
  EXPECT_EQ(result.status, 0) << result.output << result.errors;
  EXPECT_THAT(text(check(result, "cuda:0 peers"), "found"), HasSubstr(" GB/s to cuda:1"));
  EXPECT_THAT(text(check(result, "cuda:1 peers"), "found"), HasSubstr(" GB/s to cuda:0"));
  // A slice has a UUID of its own, and the clocks of the whole.
  EXPECT_THAT(text(check(result, "cuda:0"), "found"), HasSubstr("a slice (MIG)"));
  EXPECT_EQ(check(result, "cuda:0 clocks").at("health"), "ok");
  EXPECT_EQ(text(check(result, "cuda:1 PCIe"), "found"), "8 of 16 lanes");
  EXPECT_EQ(text(check(result, "cuda:1 NVLink"), "found"), "12 of 18 links are up");
  EXPECT_THAT(text(check(result, "NCCL"), "found"), HasSubstr("NVLS possible, PXN possible"));
}

TEST_F(GpuDoctor, MeasuresWithoutNvmlAndSaysWhyThereIsNone) {
  const Result result = doctor("mismatch");
  EXPECT_EQ(result.status, 0) << result.output << result.errors;
  const json state = check(result, "cuda:0 state");
  EXPECT_EQ(state.at("health"), "warn");
  EXPECT_THAT(text(state, "found"), HasSubstr("Driver/library version mismatch"));
  EXPECT_EQ(check(result, "cuda:0 products bf16").at("health"), "ok");
  EXPECT_THAT(result.output, Not(HasSubstr("cuda:0 clocks")));
}

TEST_F(GpuDoctor, SaysThatThereIsNoNvmlOrThatItDoesNotKnowTheDevice) {
  const Result result =
      run("doctor --gpu --json --time-limit 280", fmt::format("LD_PRELOAD='{}'", kEmulation));
  EXPECT_EQ(result.status, 0) << result.output << result.errors;
  const json state = check(result, "cuda:0 state");
  EXPECT_EQ(state.at("health"), "warn");
  // On a machine with a GPU there is one, which knows nothing of emulated GPUs.
  EXPECT_THAT(text(state, "found"),
              AnyOf(HasSubstr("libnvidia-ml.so.1"), HasSubstr("does not give the GPU")));
  EXPECT_THAT(text(state, "advice"), HasSubstr("comes with the driver"));
}

TEST_F(GpuDoctor, SaysWhichDeviceIsLost) {
  const Result result = doctor("lost");
  EXPECT_EQ(result.status, 1);
  const json state = check(result, "cuda:0 state");
  EXPECT_EQ(state.at("health"), "fail");
  EXPECT_THAT(text(state, "found"), AllOf(HasSubstr("e0000000-0000"), HasSubstr("GPU is lost")));
}

TEST_F(GpuDoctor, EndsInTimeIfTheDriverHangsAndSaysWhatItDidNotReach) {
  const Result result = doctor("hangs", 1, "--time-limit 0.5");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(check(result, "cuda:0").at("health"), "fail");
  EXPECT_THAT(text(check(result, "cuda:0"), "found"), HasSubstr("no answer within"));
  EXPECT_THAT(text(check(result, "cuda:0 copies"), "found"), HasSubstr("not reached"));
}

TEST_F(GpuDoctor, FailsWithoutADevice) {
  const Result result = run("doctor --gpu", "CUDA_VISIBLE_DEVICES=");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("training would fail: GPU: "));
  EXPECT_EQ(run("doctor --time-limit 3").status, 2) << "without --gpu there is nothing to limit";
}

}  // namespace
}  // namespace lockstep::launcher
