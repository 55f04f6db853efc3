// A backend that a plug-in brings, named in a config.

#include <gmock/gmock.h>

#include "tests/launcher/program.h"

#ifdef LOCKSTEP_TEST_PLUGINS
namespace lockstep::launcher {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLoad = " --load '" LOCKSTEP_TEST_PLUGINS "/libcellar.so' ";

class BackendPlugin : public Program {
 protected:
  void SetUp() override { put_config("run.txtpb", "device: \"cellar\"\n"); }
};

TEST_F(BackendPlugin, AConfigMayNameItsDeviceOnceItIsLoaded) {
  const Result without = run("config check run.txtpb");
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.errors, HasSubstr("device is \"cellar\": expected \"cpu\""));
  const Result loaded = run(std::string("config check run.txtpb") + kLoad);
  EXPECT_EQ(loaded.status, 0) << loaded.errors;
  const Result other = run(std::string("config check run.txtpb --set device=attic") + kLoad);
  EXPECT_THAT(other.errors, HasSubstr("\"cellar\" or \"cellar:N\""));
}

TEST_F(BackendPlugin, TrainsAndResumesWithTheLossesOfTheCpu) {
  ASSERT_EQ(run("train run.txtpb --run-dir cpu --set device=cpu").status, 0);
  const std::string train = std::string("train run.txtpb --run-dir cellar") + kLoad;
  const Result begun = run(train + "--set train.steps=3 --set schedule.decay_steps=6");
  ASSERT_EQ(begun.status, 0) << begun.errors;
  EXPECT_THAT(begun.output, HasSubstr("on loan at the peak, on cellar:0"));
  const Result resumed = run(train + "--set schedule.decay_steps=6");
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  const Result same = run("compare cpu cellar");
  EXPECT_EQ(same.status, 0) << same.output;
}

TEST_F(BackendPlugin, MemoryOptionsAreRefusedWhereItsAllocatorHasNone) {
  const Result result = run(std::string("train run.txtpb --set memory.planned=true") + kLoad);
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.errors, HasSubstr("the backend of cellar:0 brings an allocator of its own"));
}

}  // namespace
}  // namespace lockstep::launcher
#endif
