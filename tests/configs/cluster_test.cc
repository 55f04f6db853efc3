#include "configs/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "configs/cluster.pb.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::config {
namespace {

const std::string kTwoHosts =
    "hosts: 2 ranks_per_host: 1 between { gbit_per_second: 1 } measured { step_ms: 100 }";

TEST(Cluster, HasDefaults) {
  const ClusterConfig cluster = load_cluster_text(kTwoHosts);
  EXPECT_EQ(cluster.links_per_host(), 1);
  EXPECT_EQ(cluster.collectives(), ClusterConfig::RING_OR_TREE);
  EXPECT_EQ(cluster.between().latency_us(), 0);
  EXPECT_EQ(cluster.between().efficiency(), 1);
  EXPECT_EQ(cluster.stragglers().slow_factor(), 1);
  EXPECT_EQ(cluster.memory_gib(), 0);
}

TEST(Cluster, NamesTheFirstErrorAndItsPlace) {
  const auto refuses = [](const std::string& text, const std::string& says) {
    expect_error<SourceError>([&] { load_cluster_text(text, "a.txtpb"); }, "a.txtpb", says);
  };
  refuses("hosts: 0 ranks_per_host: 1 measured { step_ms: 1 }", "hosts is 0");
  refuses("ranks_per_host: 1 measured { step_ms: 1 }", "hosts is required");
  refuses("hosts: 2 ranks_per_host: 1 measured { step_ms: 1 }",
          "between.gbit_per_second is required");
  refuses("hosts: 1 ranks_per_host: 2 measured { step_ms: 1 }",
          "inside.gbit_per_second is required");
  refuses("hosts: 1 ranks_per_host: 1", "compute");
  refuses("hosts: 1 ranks_per_host: 1 peak { tflops: 1 }", "peak.efficiency is required");
  refuses("hosts: 1 ranks_per_host: 1 measured { step_ms: 1 update_ms: 2 }", "update_ms");
  refuses("hosts: 1 ranks_per_host: 1 measured { step_ms: 9 first_ready_ms: 9 }", "first_ready_ms");
  refuses("hosts: 1 ranks_per_host: 1 measured { step_ms: -1 }", "step_ms");
  refuses(kTwoHosts + " oversubscription: 0.5", "oversubscription");
  refuses(kTwoHosts + " bandwidth: 3", "no field");
}

TEST(Cluster, TakesOverridesOverItsFile) {
  const train::TemporaryDirectory folder;
  train::put_file(folder / "c.txtpb", kTwoHosts);
  const std::string file = (folder / "c.txtpb").string();
  const std::string overrides[] = {"hosts=64", "between.gbit_per_second=10", "peak.tflops=10",
                                   "peak.efficiency=0.5"};
  const ClusterConfig cluster = load_cluster(file, overrides);
  EXPECT_EQ(cluster.hosts(), 64);
  EXPECT_EQ(cluster.between().gbit_per_second(), 10);
  EXPECT_TRUE(cluster.has_peak());
  const std::string wrong[] = {"host=64"};
  expect_error<SourceError>([&] { load_cluster(file, wrong); }, "--set cluster.host=64", "hosts");
}

TEST(Cluster, CheckedInFilesAreRight) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/configs/clusters")) {
    EXPECT_NO_THROW(load_cluster(entry.path().string())) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace lockstep::config
