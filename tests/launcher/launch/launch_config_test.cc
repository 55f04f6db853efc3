#include "launcher/launch/launch_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "configs/launch.pb.h"
#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

LaunchOptions applied(const config::LaunchConfig& config, const std::vector<std::string>& words) {
  LaunchOptions options = parse_launch_options(words);
  apply_launch_config(config, options);
  return options;
}

config::LaunchConfig full() {
  config::LaunchConfig config;
  config.set_np(4);
  config.add_hosts("a:2");
  config.add_hosts("b:2,c");
  config.set_map_by("node");
  config.set_bind_to("core");
  config.add_env("A=1");
  config.add_env("B");
  config.add_mca("btl=self");
  config.set_timeout_seconds(60);
  config.set_max_restarts(3);
  config.set_output_folder("logs");
  return config;
}

TEST(LaunchConfig, SetsWhatTheCommandLineDoesNot) {
  const LaunchOptions options = applied(full(), {"prog"});
  EXPECT_EQ(options.contexts[0].ranks, 4);
  EXPECT_THAT(options.contexts[0].hosts,
              ElementsAre(LaunchHost{"a", 2}, LaunchHost{"b", 2}, LaunchHost{"c", 1}));
  EXPECT_THAT(options.contexts[0].variables, ElementsAre("A=1", "B"));
  EXPECT_THAT(options.mca, ElementsAre(Pair("btl", "self")));
  EXPECT_EQ(options.map_by, "node");
  EXPECT_EQ(options.bind_to, "core");
  EXPECT_EQ(options.timeout_seconds, 60);
  EXPECT_EQ(options.max_restarts, 3);
  EXPECT_EQ(options.output_folder, "logs");
}

TEST(LaunchConfig, GivesWayToTheCommandLine) {
  const LaunchOptions options = applied(
      full(),
      {"-np", "1",         "-H",   "z",         "-x",   "A=2",       "--mca", "btl",
       "tcp", "--map-by",  "slot", "--bind-to", "none", "--timeout", "5",     "--max-restarts",
       "0",   "--log-dir", "mine", "prog"});
  EXPECT_EQ(options.contexts[0].ranks, 1);
  EXPECT_THAT(options.contexts[0].hosts, ElementsAre(LaunchHost{"z", 1}));
  EXPECT_THAT(options.contexts[0].variables, ElementsAre("A=2", "B"));
  EXPECT_THAT(options.mca, ElementsAre(Pair("btl", "tcp")));
  EXPECT_EQ(options.map_by, "slot");
  EXPECT_EQ(options.bind_to, "none");
  EXPECT_EQ(options.timeout_seconds, 5);
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.output_folder, "mine");
  const LaunchOptions alone = applied(full(), {"--standalone", "-N", "2", "prog"});
  EXPECT_EQ(alone.contexts[0].ranks, 0);
  EXPECT_THAT(alone.contexts[0].hosts, IsEmpty());
}

TEST(LaunchConfig, ThatIsWrongNamesTheField) {
  const auto problem = [](auto change) {
    config::LaunchConfig config;
    change(config);
    return train::message_of<ConfigError>([&] { applied(config, {"prog"}); });
  };
  using Config = config::LaunchConfig;
  EXPECT_TRUE(train::says(problem([](Config& c) { c.add_hosts("a:0"); }), "launch.hosts: "));
  EXPECT_TRUE(train::says(problem([](Config& c) { c.set_bind_to("cor"); }), "launch.bind_to: "));
  EXPECT_TRUE(train::says(problem([](Config& c) { c.set_map_by("x"); }), "launch.map_by: "));
  EXPECT_TRUE(train::says(problem([](Config& c) { c.add_env("=1"); }), "launch.env: "));
  EXPECT_TRUE(train::says(problem([](Config& c) { c.add_mca("btl"); }), "launch.mca: "));
  EXPECT_TRUE(train::says(problem([](Config& c) {
                            c.add_hosts("a");
                            c.set_hostfile("f");
                          }),
                          "launch.hostfile: "));
}

}  // namespace
}  // namespace lockstep::launcher
