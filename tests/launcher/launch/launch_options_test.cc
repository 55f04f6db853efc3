#include "launcher/launch/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "launcher/launch/hostfile.h"
#include "tests/launcher/words.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Words = std::vector<std::string>;

LaunchOptions parse(const std::string& line) { return parse_launch_options(words(line)); }

std::string problem(const std::function<void()>& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string problem(const std::string& line) {
  return problem([&] { parse(line); });
}

struct Spelling {
  const char* line;
  std::function<bool(const LaunchOptions&)> holds;
};

TEST(LaunchOptions, TakeEverySpelling) {
  const auto ranks = [](int n) {
    return [n](const LaunchOptions& o) { return o.contexts[0].ranks == n; };
  };
  const auto per_node = [](int n) {
    return [n](const LaunchOptions& o) { return o.ranks_per_node == n; };
  };
  const auto folder = [](const LaunchOptions& o) { return o.output_folder == "out"; };
  const auto wdir = [](const LaunchOptions& o) { return o.contexts[0].working_folder == "/w"; };
  const auto file = [](const LaunchOptions& o) { return o.contexts[0].hostfile == "hf"; };
  const auto hosts = [](const LaunchOptions& o) {
    return o.contexts[0].hosts == std::vector<LaunchHost>{{"a", 4}, {"b", 1}};
  };
  const std::vector<Spelling> spellings = {
      {"-np 4 prog", ranks(4)},
      {"--np 4 prog", ranks(4)},
      {"-n 4 prog", ranks(4)},
      {"--n 4 prog", ranks(4)},
      {"-c 4 prog", ranks(4)},
      {"-np=4 prog", ranks(4)},
      {"-n4 prog", ranks(4)},
      {"-np4 prog", ranks(4)},
      {"-c4 prog", ranks(4)},
      {"-N2 prog", per_node(2)},
      {"--np=4 prog", ranks(4)},
      {"-N 2 prog", per_node(2)},
      {"-npernode 2 prog", per_node(2)},
      {"--npernode 2 prog", per_node(2)},
      {"--nproc-per-node 2 prog", per_node(2)},
      {"--nproc_per_node 2 prog", per_node(2)},
      {"--nproc_per_node=2 prog", per_node(2)},
      {"--nproc-per-node auto prog", per_node(-1)},
      {"--nnodes 3 prog", [](const auto& o) { return o.nodes == 3; }},
      {"--standalone prog", [](const auto& o) { return o.nodes == 1; }},
      {"-H a:4,b prog", hosts},
      {"--host a:4,b prog", hosts},
      {"-host a:4,b prog", hosts},
      {"-H a:4 -H b prog", hosts},
      {"-H a,a,a,a,b prog", hosts},
      {"--hostfile hf prog", file},
      {"-hostfile hf prog", file},
      {"-machinefile hf prog", file},
      {"--machinefile=hf prog", file},
      {"--map-by ppr:2:node prog", [](const auto& o) { return o.map_by == "ppr:2:node"; }},
      {"-map_by numa:PE=2 prog", [](const auto& o) { return o.map_by == "numa:PE=2"; }},
      {"--map-by :OVERSUBSCRIBE p", [](const auto& o) { return o.map_by == ":OVERSUBSCRIBE"; }},
      {"--bind-to core:overload-allowed prog",
       [](const auto& o) { return o.bind_to == "core:overload-allowed"; }},
      {"-bind-to none prog", [](const auto& o) { return o.bind_to == "none"; }},
      {"--rank_by node prog", [](const auto& o) { return o.rank_by == "node"; }},
      {"-oversubscribe prog", [](const auto& o) { return o.oversubscribe; }},
      {"--report-bindings prog", [](const auto& o) { return o.report_bindings; }},
      {"-wdir /w prog", wdir},
      {"--wdir /w prog", wdir},
      {"-wd /w prog", wdir},
      {"-tag-output prog", [](const auto& o) { return o.tag_output; }},
      {"--tag_output prog", [](const auto& o) { return o.tag_output; }},
      {"-timestamp-output prog", [](const auto& o) { return o.timestamp_output; }},
      {"-merge-stderr-to-stdout prog", [](const auto& o) { return o.merge_stderr; }},
      {"--output-filename out prog", folder},
      {"-output-filename out prog", folder},
      {"--log-dir out prog", folder},
      {"--log_dir=out prog", folder},
      {"--output-filename out:nocopy prog",
       [&](const auto& o) { return folder(o) && !o.show_stdout && !o.show_stderr; }},
      {"--log-dir out --tee 1 prog", [](const auto& o) { return o.show_stdout && !o.show_stderr; }},
      {"-t 2 --log-dir out prog", [](const auto& o) { return !o.show_stdout && o.show_stderr; }},
      {"--timeout 90 prog", [](const auto& o) { return o.timeout_seconds == 90; }},
      {"--timeout 1:30:00 prog", [](const auto& o) { return o.timeout_seconds == 5400; }},
      {"--max-restarts 3 prog", [](const auto& o) { return o.max_restarts == 3; }},
      {"--max_restarts=0 prog", [](const auto& o) { return o.max_restarts == 0; }},
      {"--restart-backoff 0.1 prog", [](const auto& o) { return o.restart_delay_seconds == 0.1; }},
      {"--restart-delay 2 prog", [](const auto& o) { return o.restart_delay_seconds == 2; }},
      {"--min-ranks 2 prog", [](const auto& o) { return o.min_ranks == 2; }},
      {"--transport tcp prog", [](const auto& o) { return o.transport == "tcp"; }},
      {"--grace 5 prog", [](const auto& o) { return o.grace_seconds == 5; }},
      {"--prefix /opt/mpi prog", [](const auto& o) { return o.prefix == "/opt/mpi"; }},
      {"--allow-run-as-root prog", [](const auto& o) { return o.allow_run_as_root; }},
      {"--use-hwthread-cpus prog",
       [](const auto& o) { return o.passed == Words{"--use-hwthread-cpus"}; }},
      {"--cpu-set 0-3 prog",
       [](const auto& o) {
         return o.passed == Words{"--cpu-set", "0-3"};
       }},
      {"--tune f.conf prog",
       [](const auto& o) {
         return o.passed == Words{"--tune", "f.conf"};
       }},
      {"--display map,bindings prog",
       [](const auto& o) { return o.passed == Words{"--display-map"} && o.report_bindings; }},
      {"--output tag,merge prog", [](const auto& o) { return o.tag_output && o.merge_stderr; }},
      {"--output timestamp,dir=out prog",
       [&](const auto& o) { return o.timestamp_output && folder(o); }},
      {"-q prog", [](const auto& o) { return o.quiet; }},
      {"--verbose prog", [](const auto& o) { return o.verbose; }},
      {"-v prog", [](const auto& o) { return o.verbose; }},
      {"--role trainer -n 4 prog", ranks(4)},
      {"--monitor-interval=5 -n 4 prog", ranks(4)},
      {"--start-method spawn -n 4 prog", ranks(4)},
      {"--no-python -n 4 prog", ranks(4)},
      {"--dry-run prog", [](const auto& o) { return o.dry_run; }},
      {"--exec prog", [](const auto& o) { return o.exec; }},
      {"-- prog", ranks(0)},
      {"-h", [](const auto& o) { return o.help; }},
      {"--help prog", [](const auto& o) { return o.help; }},
  };
  for (const Spelling& spelling : spellings) {
    EXPECT_TRUE(spelling.holds(parse(spelling.line))) << spelling.line;
  }
}

TEST(LaunchOptions, OfTheProgramBelongToIt) {
  const LaunchOptions options = parse("-np 2 prog -np 3 --tag-output --help -- x");
  EXPECT_EQ(options.contexts[0].ranks, 2);
  EXPECT_FALSE(options.tag_output);
  EXPECT_FALSE(options.help);
  EXPECT_EQ(options.contexts[0].command, words("prog -np 3 --tag-output --help -- x"));
}

TEST(LaunchOptions, OfSeveralValuesAndTimesAdd) {
  const LaunchOptions options = parse("--mca btl tcp,self -mca a b -x A -x B=1 prog");
  EXPECT_THAT(options.mca, ElementsAre(Pair("btl", "tcp,self"), Pair("a", "b")));
  EXPECT_THAT(options.contexts[0].variables, ElementsAre("A", "B=1"));
}

TEST(LaunchOptions, HaveAContextForEachProgram) {
  const LaunchOptions options =
      parse("-np 1 -x A=1 -H a master --flag : -np 3 --wdir /w -H b:3 worker : last");
  ASSERT_EQ(options.contexts.size(), 3);
  EXPECT_EQ(options.contexts[0].command, words("master --flag"));
  EXPECT_THAT(options.contexts[0].variables, ElementsAre("A=1"));
  EXPECT_EQ(options.contexts[1].ranks, 3);
  EXPECT_EQ(options.contexts[1].working_folder, "/w");
  EXPECT_EQ(options.contexts[1].hosts, (std::vector<LaunchHost>{{"b", 3}}));
  EXPECT_TRUE(options.contexts[1].variables.empty());
  EXPECT_EQ(options.contexts[2].command, words("last"));
}

TEST(LaunchOptions, ThatAreUnknownAreNamedWithTheNearest) {
  EXPECT_THAT(problem("--bindto none prog"), HasSubstr("--bindto. Did you mean --bind-to?"));
  EXPECT_THAT(problem("--max-restart 3 prog"), HasSubstr("Did you mean --max-restarts?"));
  EXPECT_THAT(problem("--hostfle=x prog"), HasSubstr("Did you mean --hostfile?"));
  EXPECT_THAT(problem("--quite-something prog"), HasSubstr("lockstep launch --help"));
}

TEST(LaunchOptions, ThatMakeNoSenseAreRefused) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"", "no program given"},
      {"-np 2", "no program given"},
      {"prog :", "no program after \":\""},
      {": prog", "no program before \":\""},
      {"-np", "-np needs N"},
      {"-np 0 prog", "from 1 to"},
      {"-np two prog", "got \"two\""},
      {"-np -1 prog", "got \"-1\""},
      {"--mca btl", "--mca needs VALUE"},
      {"--tag-output=yes prog", "takes no value"},
      {"--timeout soon prog", "seconds or H:MM:SS"},
      {"-H a,,b prog", "empty name"},
      {"-H a:0 prog", "got \"0\""},
      {"-x =1 prog", "NAME or NAME=VALUE"},
      {"--bind-to cores prog", "Did you mean core?"},
      {"--map-by nodes prog", "Did you mean node?"},
      {"--rank-by ppr:2:node prog", "is no policy"},
      {"--nnodes 1:4 prog", "changing number of nodes"},
      {"--nproc-per-node gpu prog", "number of GPUs"},
      {"--tee 3 prog", "--log-dir"},
      {"--tee 4 --log-dir d prog", "expected 0, 1"},
      {"--exec --max-restarts 2 prog", "nobody who could restart"},
      {"--rdzv-backend c10d prog", "--host a:4"},
      {"--rdzv_endpoint=h:1 prog", "--hostfile"},
      {"--master-addr h prog", "--host a:4"},
      {"--node_rank 0 prog", "--host a:4"},
      {"--display maps prog", "Did you mean map?"},
      {"--output tags prog", "Did you mean tag?"},
      {"--start-method thread prog", "expected one of spawn, fork, forkserver"},
      {"-x4 prog", "unknown option -x4"},
      {"--app f", "\":\""},
      {"-m module", "python3 -m MODULE"},
  };
  for (const auto& [line, expected] : rows) {
    EXPECT_THAT(problem(line), HasSubstr(expected)) << line;
  }
}

TEST(LaunchOptions, OfHelpAreAllUnderstood) {
  for (const LaunchOptionHelp& option : launch_option_help()) {
    std::istringstream names(option.names);
    for (std::string name; std::getline(names, name, ',');) {
      const std::string message = problem(name);
      EXPECT_THAT(message, Not(HasSubstr("unknown"))) << name;
    }
  }
}

TEST(Hostfile, GivesHostsWithSlots) {
  const std::string text =
      "# nodes\n\nlsh0 slots=4\nlsh1 slots = 2 max_slots=8   # big\nuser@lsh2\nlsh0 slots=1\r\n";
  EXPECT_THAT(parse_hostfile("a slots=2\f\n\f\nb\v\fslots\v=\f3\n", "hf"),
              ElementsAre(LaunchHost{"a", 2}, LaunchHost{"b", 3}));
  EXPECT_THAT(parse_hostfile(text, "hf"), ElementsAre(LaunchHost{"lsh0", 5}, LaunchHost{"lsh1", 2},
                                                      LaunchHost{"user@lsh2", 0}));
}

TEST(Hostfile, NamesTheLineThatIsWrong) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"a slots=2\nb slot=2\n", "hf:2: \"slot=2\""},
      {"a\nb\nc four\n", "hf:3: \"four\""},
      {"a slots=none\n", "hf:1: slots needs a number"},
      {"a slots=0\n", "hf:1: slots needs a number"},
      {"[{\"ssh\": 1}]\n", "hf:1: \"[{\\\"ssh\\\":\" is no host name"},
      {"# nothing\n\n", "hf:2: no host"},
      {"", "hf:1: no host"},
  };
  for (const auto& [text, expected] : rows) {
    EXPECT_THAT(problem([&, text = text] { parse_hostfile(text, "hf"); }), HasSubstr(expected));
  }
}

}  // namespace
}  // namespace lockstep::launcher
