// Programs of several ranks, started by mpirun.

#include "tests/launcher/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "tests/data/table_file.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::HasSubstr;

TEST_F(RanksTest, TrainWithTheLossesOfOne) {
  put_config("run.txtpb");
  const std::string more = "--set train.steps=20 --set train.batch_size=12";
  const Result alone = run("train run.txtpb --run-dir one " + more);
  ASSERT_EQ(alone.status, 0);
  EXPECT_FALSE(says(alone.output, "overlap"));
  for (const int ranks : {2, 3}) {
    const std::string folder = fmt::format("of{}", ranks);
    const Result result = train(ranks, folder, more);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("{} ranks of", ranks)));
    EXPECT_THAT(result.output, ContainsRegex("\noverlap +[0-9.]+ of [0-9.]+ ms a step waited"));
    EXPECT_THAT(file_content(folder_ / (folder + "/overlap.json")),
                HasSubstr(fmt::format("\"ranks\":{},\"steps\":", ranks)));
    EXPECT_THAT(file_content(folder_ / (folder + "/overlap.svg")),
                HasSubstr(fmt::format("{} ranks", ranks)));
    const std::vector<double> one = losses("one");
    const std::vector<double> many = losses(folder);
    ASSERT_EQ(one.size(), 20U);
    ASSERT_EQ(many.size(), 20U);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], many[i], 1e-5) << "step " << i;
  }
}

#ifdef LOCKSTEP_TEST_PLUGINS
TEST_F(RanksTest, AreComparedInTheMetricsTheTerminalAndThePage) {
  put_config("run.txtpb");
  const Result result =
      train(2, "run", "--set train.steps=20 --set train.batch_size=12 --set train.log_every=5");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(file_content(folder_ / "run/metrics.jsonl"),
              ContainsRegex("\"rank_steps\":5,\"rank_compute_ms\":\\[[0-9.e-]+,[0-9.e-]+\\],"));
  EXPECT_THAT(run("watch run --once").output, HasSubstr("of a step, ms; mean of 5\n"));
  EXPECT_THAT(file_content(folder_ / "run/report.html"), HasSubstr("In the newest comparison "));
}

TEST_F(RanksTest, TrainWithAPluginsOperatorUnderMixedPrecision) {
  train::put_table(folder_ / "table.csv", 200, 6, 3);
  put_file(folder_ / "run.txtpb",
           "precision: BF16_MIXED\n"
           "model { mlp { inputs: 6 classes: 3 activation_operator: \"test::scale_clamp\" } }\n"
           "data { table { path: \"table.csv\" held_out_rows: 40 } }\n"
           "train { steps: 5 batch_size: 8 }\n");
  const std::string load = "--load " LOCKSTEP_TEST_PLUGINS "/libelementwise.so";
  ASSERT_EQ(run("train run.txtpb --run-dir one " + load).status, 0);
  const Result two = train(2, "two", load);
  ASSERT_EQ(two.status, 0) << two.errors;
  const std::vector<double> one = losses("one");
  const std::vector<double> many = losses("two");
  ASSERT_EQ(one.size(), 5U);
  ASSERT_EQ(many.size(), 5U);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], many[i], 1e-2) << "step " << i;
}
#endif

TEST_F(RanksTest, AreRefusedWithTheFieldInWhichTheirConfigsDiffer) {
  put_config("a.txtpb", "name: \"run\" seed: 1");
  put_config("b.txtpb", "name: \"run\" seed: 2");
  const std::string program = fmt::format("'{}/lockstep'", LOCKSTEP_BIN_DIR);
  const Result result = shell(mpirun() + fmt::format(" -np 1 {0} train a.txtpb --run-dir run : -np "
                                                     "1 {0} train b.txtpb --run-dir run",
                                                     program));
  EXPECT_EQ(result.status, 5) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("rank 1 has another config than rank 0"));
  EXPECT_THAT(result.errors, HasSubstr("\"seed: 1\", got \"seed: 2\""));
}

TEST_F(RanksTest, TellOfOneThatWasKilledAndDoNotHang) {
  put_config("run.txtpb");
  const auto start = std::chrono::steady_clock::now();
  const Result result =
      train(3, "run", "--steps 1000000 --set train.batch_size=6", rank_1("kill -9 $$"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.errors, HasSubstr("PeerLostError"));
  EXPECT_THAT(result.errors, HasSubstr("rank 1"));
  const Result traced = run("trace run");
  EXPECT_EQ(traced.status, 0) << traced.errors;
  EXPECT_THAT(traced.output, HasSubstr("none of rank 1"));
}

TEST_F(RanksTest, AStopSignalToOneStopsAllAndTrainingGoesOn) {
  put_config("run.txtpb");
  const Result stopped = train(2, "run", "--steps 1000000", rank_1("kill -TERM $$"));
  EXPECT_EQ(stopped.status, 75) << stopped.errors;
  EXPECT_THAT(stopped.errors, HasSubstr("everything is saved"));
  const size_t done = losses("run").size();
  const Result result = train(2, "run", fmt::format("--steps {}", done + 5));
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(losses("run").size(), done + 5);
}

TEST_F(RanksTest, VariablesThatContradictEachOtherAreToldWithBothValues) {
  put_config("run.txtpb");
  const Result result = on_ranks(2, "exec \"$0\" train run.txtpb", "RANK=3 WORLD_SIZE=4");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.errors, HasSubstr("RANK=3 and OMPI_COMM_WORLD_RANK="));
  EXPECT_THAT(result.errors, HasSubstr("contradict each other"));
}

TEST_F(RanksTest, ASingleRankOfTorchrunsVariablesNeedsNoMpi) {
  put_config("run.txtpb");
  EXPECT_EQ(run("train run.txtpb --run-dir run", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0").status, 0);
  const Result alone = run("train run.txtpb", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0");
  EXPECT_EQ(alone.status, 2) << alone.errors;
  EXPECT_THAT(alone.errors, HasSubstr("does not know where rank 0 is"));
}

TEST_F(RanksTest, AnErrorThatAllShareIsToldOnce) {
  put_config("run.txtpb");
  const auto times = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++found;
    return found;
  };
  const Result config = on_ranks(3, "exec \"$0\" train run.txtpb --set train.step=3");
  EXPECT_EQ(times(config.errors, "train has no field"), 1) << config.errors;
  const Result usage = on_ranks(3, "exec \"$0\" train run.txtpb --step 3");
  EXPECT_EQ(times(usage.errors, "train has no option"), 1) << usage.errors;
}

TEST_F(RanksTest, MeasureEveryCollectiveAndFindNothingWrong) {
  const Result result =
      on_ranks(3, "exec \"$0\" bench collectives --op all -b 12 -e 1m -f 64 --seconds 0.01 --json");
  EXPECT_EQ(result.status, 0) << result.errors;
  for (const char* op :
       {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce"}) {
    EXPECT_THAT(result.output, HasSubstr(fmt::format("\"op\":\"{}\"", op)));
  }
  EXPECT_THAT(result.output, HasSubstr("\"wrong\":0"));
  EXPECT_THAT(result.output, HasSubstr("\"busbw_gbs\":"));
  EXPECT_FALSE(std::regex_search(result.output, std::regex("\"wrong\":[1-9]")));
}

TEST_F(RanksTest, MeasureCollectivesByNcclTestsOptions) {
  const Result table =
      run("bench collectives --op all -b 1k -e 3k -i 1k -g 3 -n 4 -w 1 -c 2 -d int32 -o max -p 1");
  ASSERT_EQ(table.status, 0) << table.errors;
  EXPECT_THAT(table.output, HasSubstr("out of place"));
  EXPECT_THAT(table.output, HasSubstr("# wrong elements: 0\n# average bus bandwidth: "));
  EXPECT_TRUE(std::regex_search(table.output, std::regex("all_reduce +2048 +512 +max")));
  // all_to_all has no form in place.
  EXPECT_TRUE(std::regex_search(table.output, std::regex("all_to_all .* - +- +- +-\n")));
  for (const char* reduction : {"sum", "prod", "min", "avg"}) {
    const Result result =
        run(fmt::format("bench collectives --op all_reduce,reduce,reduce_scatter -b 64 -e 64 -g 4 "
                        "-n 2 -d double -o {} --json",
                        reduction));
    EXPECT_EQ(result.status, 0) << reduction << result.output;
    EXPECT_THAT(result.output, HasSubstr("\"in_place\":false"));
  }
  EXPECT_EQ(run("bench collectives -b 2k -e 1k").status, 2);
  EXPECT_EQ(run("bench collectives -i 1k -f 2").status, 2);
  EXPECT_EQ(run("bench collectives -d int32 -o avg").status, 2);
  EXPECT_EQ(run("bench collectives -f 1").status, 2);
}

}  // namespace
}  // namespace lockstep::launcher
