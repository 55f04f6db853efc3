#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using Json = nlohmann::json;

class Plan : public Program {
 protected:
  Json json(const std::string& arguments) const {
    const Result result = run("plan --json " + arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return Json::parse(result.output);
  }
};

TEST_F(Plan, SaysHowFarTheBaseModelOfMupIs) {
  put_config("run.txtpb");
  const Result result = run("plan run.txtpb --set model.mup.base_width=2");
  EXPECT_TRUE(says(result.output,
                   "muP: the model is 4 times as wide as its base model, its heads 4 times\n"))
      << result.output << result.errors;
}

TEST_F(Plan, JsonSaysWhatTheRunNeeds) {
  put_config("run.txtpb");
  const Json plan = json("run.txtpb --set train.steps=5");
  EXPECT_EQ(plan["config"], "run");
  // wte 256 x 8, wpe 8 x 8, one block, the last norm.
  const int64_t block = 2 * 16 + (8 * 24 + 24) + (8 * 8 + 8) + (8 * 32 + 32) + (32 * 8 + 8);
  const int64_t parameters = 256 * 8 + 8 * 8 + block + 16;
  EXPECT_EQ(plan["parameters"], parameters);
  EXPECT_EQ(plan["parameter_bytes"], 4 * parameters);
  EXPECT_EQ(plan["optimizer_bytes"], 8 * parameters);
  EXPECT_EQ(plan["checkpoint_bytes"], 12 * parameters);
  const auto bytes = [&](const char* name) { return plan[name].get<int64_t>(); };
  EXPECT_EQ(bytes("parameter_bytes") + bytes("gradient_bytes") + bytes("optimizer_bytes") +
                bytes("activation_bytes"),
            bytes("peak_bytes"));
  EXPECT_EQ(plan["flops_per_token"], 6.0 * static_cast<double>(parameters) + 12.0 * 8 * 8);
  EXPECT_EQ(plan["flops_per_step"], plan["flops_per_token"].get<double>() * 16);
  EXPECT_EQ(plan["total_flops"], plan["flops_per_token"].get<double>() * 80);
  EXPECT_EQ(plan["tokens_per_step"], 16);
  EXPECT_EQ(plan["steps"], 5);
  EXPECT_EQ(plan["total_tokens"], 80);
  EXPECT_EQ(plan["batch_size"], 2);
  EXPECT_EQ(plan["micro_batch_size"], 2);
  EXPECT_EQ(plan["micro_batches_per_rank"], 1);
  EXPECT_EQ(plan["leaves_per_rank"], 1);
  EXPECT_EQ(plan["gradient_arenas"], 1);
  EXPECT_EQ(plan["ranks"], 1);
}

TEST_F(Plan, RanksShareTheBatch) {
  put_config("run.txtpb");
  put_file(folder_ / "batch.txtpb", "train { batch_size: 32 micro_batch_size: 2 leaves: 8 }");
  const Json one = json("run.txtpb batch.txtpb");
  const Json two = json("run.txtpb batch.txtpb --ranks 2");
  EXPECT_EQ(one["gradient_arenas"], 4);
  EXPECT_EQ(two["gradient_arenas"], 3);
  EXPECT_EQ(two["ranks"], 2);
  EXPECT_EQ(two["micro_batches_per_rank"], 8);
  EXPECT_EQ(two["tokens_per_step"], one["tokens_per_step"]);
  EXPECT_EQ(two["parameter_bytes"], one["parameter_bytes"]);
  EXPECT_LT(two["peak_bytes"], one["peak_bytes"]);
}

TEST_F(Plan, TextHasTheSameNumbersInMebibytes) {
  put_config("run.txtpb");
  const Result result = run("plan run.txtpb --set model.gpt2.width=128");
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json plan = json("run.txtpb --set model.gpt2.width=128");
  EXPECT_TRUE(says(result.output, "run: 232,320 parameters\n")) << result.output;
  EXPECT_TRUE(says(result.output, "a step: 2 sequences of 8 tokens = 16 tokens\n"))
      << result.output;
  for (const char* what : {"parameter", "gradient", "optimizer", "activation", "peak"}) {
    const double bytes = plan[fmt::format("{}_bytes", what)].get<double>();
    EXPECT_TRUE(says(result.output, fmt::format("{:.1f} MiB", bytes / 1048576))) << what;
  }
}

TEST_F(Plan, WrongConfigsAndRanksEndWithTwo) {
  put_config("wrong.txtpb", "optimizer { learning_rat: 1 }\n");
  const Result wrong = run("plan wrong.txtpb");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(says(wrong.errors, "wrong.txtpb:4:13: ConfigError: "));
  put_config("run.txtpb");
  const Result ranks = run("plan run.txtpb --ranks 3");
  EXPECT_EQ(ranks.status, 2);
  EXPECT_TRUE(says(ranks.errors, "ConfigError: [train] 3 ranks cannot share a step"));
  EXPECT_EQ(ranks.output, "");
  EXPECT_EQ(run("plan run.txtpb --ranks 0").status, 2);
  EXPECT_EQ(run("plan").status, 2);
}

/// Runs `lockstep plan` without a shell, so that the resource usage is its own.
rusage usage_of(const std::string& config, const std::string& output) {
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0) _exit(126);
    execl(LOCKSTEP_BIN_DIR "/lockstep", "lockstep", "plan", config.c_str(), "--json", nullptr);
    _exit(127);
  }
  int status = -1;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return usage;
}

TEST_F(Plan, OfAHundredMillionParametersTakesLittleTimeAndMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
  const std::string output = (folder_ / "plan.json").string();
  const rusage usage = usage_of(LOCKSTEP_SOURCE_DIR "/configs/examples/gpt2_124m.txtpb", output);
  const Json plan = Json::parse(file_content(output));
  EXPECT_EQ(plan["parameters"], 124475904);
  EXPECT_GT(plan["peak_bytes"].get<int64_t>(), int64_t{4} << 30);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  EXPECT_LT(seconds(usage.ru_utime) + seconds(usage.ru_stime), 2);
  EXPECT_LT(usage.ru_maxrss, 300 * 1024) << "KiB";
}

TEST_F(Plan, SimulatesEveryStrategyOnACluster) {
  put_config("run.txtpb");
  put_file(folder_ / "cluster.txtpb",
           "hosts: 4 ranks_per_host: 2 inside { gbit_per_second: 100 } "
           "between { gbit_per_second: 10 latency_us: 5 } measured { step_ms: 20 }");
  const Json all = json("run.txtpb --set train.batch_size=8 --simulate cluster.txtpb");
  EXPECT_EQ(all["ranks"], 8);
  EXPECT_EQ(all["hosts"], 4);
  ASSERT_EQ(all["strategies"].size(), 5U);
  for (const Json& each : all["strategies"]) {
    EXPECT_EQ(each["compute_ms"], 20) << each;
    EXPECT_NEAR(each["step_ms"].get<double>(), 20 + each["exposed_comm_ms"].get<double>(), 1e-9);
    EXPECT_TRUE(each["fits"]);
    EXPECT_GT(each["memory_bytes"], 0);
  }
  const Json two = json("run.txtpb --simulate cluster.txtpb --ranks 2");
  EXPECT_EQ(two["hosts"], 1);
  const Json slow = json(
      "run.txtpb --set train.batch_size=8 --simulate cluster.txtpb "
      "--set cluster.between.gbit_per_second=0.001");
  EXPECT_EQ(slow["strategies"][0]["limit"], "link between hosts");
  const Result table = run("plan run.txtpb --simulate cluster.txtpb --ranks 2");
  EXPECT_EQ(table.status, 0) << table.errors;
  EXPECT_TRUE(says(table.output, "FULL_SHARD")) << table.output;
  EXPECT_TRUE(says(table.output, "not measured")) << table.output;
  const auto milliseconds = [](const Json& of, const char* name) { return of[name].get<double>(); };
  for (const Json& each : two["strategies"]) {
    EXPECT_TRUE(
        says(table.output,
             fmt::format(" {:>10.2f} {:>10.2f} {:>10.2f} ", milliseconds(each, "step_ms"),
                         milliseconds(each, "compute_ms"), milliseconds(each, "exposed_comm_ms"))))
        << each << table.output;
  }
}

TEST_F(Plan, SaysWhatIsWrongWithACluster) {
  put_config("run.txtpb");
  const auto refuses = [&](const std::string& arguments, const std::string& problem) {
    const Result result = run("plan run.txtpb --simulate " + arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_TRUE(says(result.errors, problem)) << result.errors;
    EXPECT_EQ(result.output, "");
  };
  put_file(folder_ / "none.txtpb", "hosts: 0 ranks_per_host: 2 measured { step_ms: 1 }");
  refuses("none.txtpb", "none.txtpb:1:1: ConfigError: hosts is 0");
  put_file(folder_ / "rate.txtpb", "hosts: 2 ranks_per_host: 1 measured { step_ms: 1 }");
  refuses("rate.txtpb", "between.gbit_per_second is required");
  put_file(folder_ / "one.txtpb", "hosts: 1 ranks_per_host: 1 measured { step_ms: 1 }");
  refuses("one.txtpb --ranks 2", "expected 1 to 1, the ranks of the cluster");
  refuses("one.txtpb --set cluster.host=2", "Did you mean \"hosts\"?");
  refuses("missing.txtpb", "missing.txtpb");
}

}  // namespace
}  // namespace lockstep::launcher
