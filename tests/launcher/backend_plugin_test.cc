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

}  // namespace
}  // namespace lockstep::launcher
#endif
