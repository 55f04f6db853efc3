#include "train/gradient_options.h"

#include <gtest/gtest.h>

#include "configs/load.h"
#include "dist/nccl/nccl_group.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/expect_error.h"
#include "tests/train/tiny_run.h"

namespace lockstep::train {
namespace {

dist::NcclOptions options_of(const std::string& nccl) {
  const TemporaryDirectory folder;
  return nccl_options(tiny_run(folder, nccl));
}

TEST(NcclOptionsOfARun, AreNcclsWhereNothingIsSet) {
  for (const char* config : {"", "parallel { nccl {} }"}) {
    const dist::NcclOptions options = options_of(config);
    EXPECT_FALSE(options.config.min_ctas);
    EXPECT_FALSE(options.config.max_ctas);
    EXPECT_FALSE(options.config.cga_cluster_size);
    EXPECT_FALSE(options.config.traffic_class);
    EXPECT_TRUE(options.config.net_name.empty());
    EXPECT_FALSE(options.compare_calls);
    EXPECT_FALSE(options.user_buffers);
    EXPECT_EQ(options.spared_processors, 0);
    EXPECT_TRUE(options.connect_at_start);
    EXPECT_FALSE(options.check_values);
  }
}

TEST(NcclOptionsOfARun, AreThoseOfTheConfig) {
  const dist::NcclOptions options = options_of(
      "parallel { nccl { min_ctas: 2 max_ctas: 8 cluster_size: 0 net: \"IB\" traffic_class: 3 "
      "compare_calls: true user_buffers: true spared_processors: 8 } }");
  EXPECT_EQ(options.config.min_ctas, 2);
  EXPECT_EQ(options.config.max_ctas, 8);
  EXPECT_EQ(options.config.cga_cluster_size, 0);
  EXPECT_EQ(options.config.traffic_class, 3);
  EXPECT_EQ(options.config.net_name, "IB");
  EXPECT_TRUE(options.compare_calls);
  EXPECT_TRUE(options.user_buffers);
  EXPECT_EQ(options.spared_processors, 8);
}

TEST(NcclOptionsOfARun, FewestBlocksMayNotBeMoreThanMost) {
  expect_error<config::SourceError>(
      [] { options_of("parallel { nccl { min_ctas: 9 max_ctas: 8 } }"); },
      "parallel.nccl.min_ctas is 9: expected at most max_ctas, which is 8.");
}

TEST(NcclOptionsOfARun, ValuesAreCheckedWhereTheVariableAsksForIt) {
  const EnvironmentVariable variable("LOCKSTEP_NCCL_CHECK_VALUES", "1");
  EXPECT_TRUE(options_of("").check_values);
  EXPECT_TRUE(options_of("parallel { nccl { max_ctas: 8 } }").check_values);
}

}  // namespace
}  // namespace lockstep::train
