// Verbs that report on runs, configs and the machine.

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using Compare = Program;
using Plot = Program;
using Config = Program;
using Convert = Program;
using Start = Program;
using Doctor = Program;

TEST_F(Compare, StatusSaysWhetherTheRunsAreIdentical) {
  put_run("a", 20);
  put_run("b", 20);
  put_run("c", 20, 1e-15);
  const Result same = run("compare a b/metrics.jsonl");
  EXPECT_EQ(same.status, 0) << same.errors;
  EXPECT_EQ(same.output, "identical: 20 steps, bit for bit\n");
  const Result other = run("compare a c");
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(other.output.starts_with("first differing step: 4\nstep 4: loss differs"));
  EXPECT_EQ(other.errors, "");
}

TEST_F(Compare, AShorterRunIsNotIdentical) {
  put_run("a", 20);
  put_run("b", 12);
  const Result result = run("compare a b");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(says(result.output, "first differing step: 13\nstep 13: b does not have it"));
}

TEST_F(Compare, WrongUseIsTwoAndUnreadableIsThree) {
  put_run("a", 20);
  EXPECT_EQ(run("compare a").status, 2);
  const Result missing = run("compare a absent");
  EXPECT_EQ(missing.status, 3);
  EXPECT_TRUE(says(missing.errors, "DataError: "));
  EXPECT_TRUE(says(missing.errors, "absent"));
}

TEST_F(Plot, DrawsInTheTerminalInItsWidth) {
  put_run("first", 20);
  put_run("second", 30, 0.5);
  const Result result = run("plot first second/", "COLUMNS=50");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "1 ⠤⠤⠤ first train  2.1500"));
  EXPECT_TRUE(says(result.output, "2 ⠤⠤⠤ second train  2.6000"));
  EXPECT_EQ(result.output.find('\x1b'), std::string::npos);
  // A metrics file has the name of its run.
  EXPECT_EQ(run("plot first/metrics.jsonl second", "COLUMNS=50").output, result.output);
}

TEST_F(Plot, WritesAnImage) {
  put_run("first", 20);
  const Result result = run("plot first --log-x -o curve.svg");
  EXPECT_EQ(result.output, "wrote curve.svg\n") << result.errors;
  EXPECT_TRUE(says(file_content(folder_ / "curve.svg"), "<svg xmlns="));
  EXPECT_TRUE(says(file_content(folder_ / "curve.svg"), "Step, logarithmic"));
}

TEST_F(Plot, OtherFormatsAreWrittenOrRefused) {
  put_run("first", 20);
  const Result unknown = run("plot first -o curve.gif");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(says(unknown.errors, "expected FILE.svg, FILE.png or FILE.pdf"));
  // Without the converter on PATH.
  const Result refused = run("plot first -o curve.png", "PATH=/nowhere");
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(says(refused.errors, "librsvg2-bin"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "curve.png"));
  // With a converter that says what it was asked for.
  std::filesystem::create_directories(folder_ / "bin");
  put_file(folder_ / "bin/rsvg-convert", "#!/bin/sh\necho \"$@\" > \"$6\"\n");
  std::filesystem::permissions(folder_ / "bin/rsvg-convert", std::filesystem::perms::owner_all);
  const Result drawn = run("plot first -o curve.png", "PATH=\"$PWD/bin:$PATH\"");
  EXPECT_EQ(drawn.status, 0) << drawn.errors;
  EXPECT_EQ(file_content(folder_ / "curve.png"),
            "--format png --zoom 2 --output curve.png curve.png.svg\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "curve.png.svg"));
}

TEST_F(Plot, ShowsWhatHeldMemoryInTheStepThatARunRecorded) {
  put_config("run.txtpb");
  const Result trained =
      run("train run.txtpb --steps 3 --set memory.snapshot_step=2 --run-dir recorded");
  ASSERT_EQ(trained.status, 0) << trained.errors;
  const Result result = run("plot --memory recorded --by module -o memory.svg");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "cpu, step 2: "));
  EXPECT_TRUE(says(result.output, "held when it began"));
  EXPECT_TRUE(says(result.output, "h.0"));
  EXPECT_TRUE(says(result.output, "wrote memory.svg\n"));
  EXPECT_TRUE(says(file_content(folder_ / "memory.svg"), "Memory on loan"));
  EXPECT_TRUE(says(file_content(folder_ / "recorded" / "memory.txt"), "by module"));

  EXPECT_EQ(run("plot --memory absent").status, 3);
  EXPECT_EQ(run("plot --memory recorded --by colour").status, 2);
  EXPECT_EQ(run("plot --memory recorded recorded").status, 2);
  EXPECT_EQ(run("plot recorded --by module").status, 2);
}

TEST_F(Plot, RunsWithoutMetricsEndWithThree) { EXPECT_EQ(run("plot absent").status, 3); }

TEST_F(Convert, TakesTheNewestCheckpointOfARunThatIsNotFinished) {
  put_config("run.txtpb");
  ASSERT_EQ(run("train run.txtpb --run-dir out --set checkpoint.every_steps=3").status, 0);
  ASSERT_EQ(run("checkpoint convert out whole --to hf").status, 0);
  shell("rm out/model.safetensors out/model.manifest.json out/config.json");
  const Result result = run("checkpoint convert out newest --to hf");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(file_content(folder_ / "newest/model.safetensors"),
            file_content(folder_ / "whole/model.safetensors"));
}

TEST_F(Start, ThatFailsLeavesNoDirectory) {
  put_config("run.txtpb");
  EXPECT_EQ(run("train run.txtpb --set data.text.path=absent").status, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  EXPECT_EQ(run("train run.txtpb --set data.text.path=absent --run-dir a/b").status, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
}

TEST_F(Config, PrintShowsTheOriginOfEveryValue) {
  put_config("run.txtpb");
  const Result result = run("config print run.txtpb --set seed=4", "LOCKSTEP_TRAIN_STEPS=9");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "# --set seed=4"));
  EXPECT_TRUE(says(result.output, "# LOCKSTEP_TRAIN_STEPS=9"));
  EXPECT_TRUE(says(result.output, "# run.txtpb:3:18"));
  EXPECT_TRUE(says(result.output, "# default"));
  put_file(folder_ / "again.txtpb", result.output);
  EXPECT_EQ(run("config check again.txtpb").output, "run: ok\n");
  EXPECT_EQ(run("config diff run.txtpb again.txtpb").output,
            "schedule.decay_steps  6 -> 9\nseed                  1337 -> 4\ntrain.steps           "
            "6 -> 9\n");
}

TEST_F(Config, CheckSaysWhetherTrainingWouldAcceptIt) {
  put_config("run.txtpb");
  put_config("wrong.txtpb", "optimizer { learning_rat: 1 }\n");
  EXPECT_EQ(run("config check run.txtpb").status, 0);
  const Result wrong = run("config check wrong.txtpb");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(says(wrong.errors, "wrong.txtpb:4:13: ConfigError: "));
  const Result variable = run("config check run.txtpb", "LOCKSTEP_TRAIN_STEP=9");
  EXPECT_EQ(variable.status, 2);
  EXPECT_TRUE(says(variable.errors, "Did you mean LOCKSTEP_TRAIN_STEPS?"));
}

TEST_F(Config, PrintWithoutAFileShowsDefaultsAndWhatIsRequired) {
  const Result result = run("config print --set seed=4");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "seed: 4"));
  EXPECT_TRUE(says(result.output, "beta2: 0.95"));
  EXPECT_TRUE(says(result.output, "#   train.steps: an integer from 1 to 10^12\n"));
  EXPECT_TRUE(says(result.output, "#   model: gpt2 {} or llama {}"));
  EXPECT_EQ(run("config print --set train.steps=x").status, 2);
}

TEST_F(Config, CheckRefusesWhatTrainingWouldRefuse) {
  put_config("run.txtpb");
  EXPECT_EQ(run("config check run.txtpb --ranks 2").output, "run: ok, on 2 ranks\n");
  const Result ranks = run("config check run.txtpb --ranks 3");
  EXPECT_EQ(ranks.status, 2) << ranks.output;
  const Result text = run("config check run.txtpb --set data.text.path=absent.txt");
  EXPECT_EQ(text.status, 3) << text.output;
  EXPECT_TRUE(says(text.errors, "absent.txt"));
  put_file(folder_ / "short.bin", "ab");
  const Result shard =
      run("config check run.txtpb --set data.shards.train=short.bin --set "
          "data.shards.format=NANOGPT");
  EXPECT_EQ(shard.status, 3) << shard.output;
  const Result weights = run("config check run.txtpb --set model.weights=absent");
  EXPECT_EQ(weights.status, 4) << weights.output;
  const Result memory =
      run("config check run.txtpb --set model.gpt2.width=262144 --set model.gpt2.heads=1");
  EXPECT_EQ(memory.status, 6) << memory.output;
  const Result device = run("config check run.txtpb --set device=cuda:63");
  EXPECT_EQ(device.status, 2) << device.output;
}

TEST_F(Config, FieldsAreFoundByPathAndByWord) {
  const Result one = run("config fields train.sample_bytes");
  EXPECT_EQ(one.status, 0) << one.errors;
  EXPECT_EQ(one.output,
            "train.sample_bytes: integer from 0 to 1000000, in bytes; default 400\n"
            "    Bytes of text generated and shown after the last step of a run on text.\n"
            "    Default 400; 0 = none.\n");
  const Result group = run("config fields optimizer.adamw");
  EXPECT_TRUE(
      says(group.output, "optimizer.adamw: { ... }, one of adamw, sgd, muon, lion, adafactor; "));
  EXPECT_TRUE(says(group.output, "optimizer.adamw.beta1: number"));
  EXPECT_FALSE(says(group.output, "optimizer.sgd"));
  const Result word = run("config fields --search newton --search MUON");
  EXPECT_EQ(word.output.find("optimizer.muon"), 0U) << word.output;
  EXPECT_EQ(run("config fields --search gibberish").status, 1);
  const Result wrong = run("config fields train.step");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(says(wrong.errors, "Did you mean \"train.steps\"?"));
}

TEST_F(Config, DiffComparesFilesAndRunDirectoriesAlone) {
  put_config("a.txtpb");
  put_config("b.txtpb", "seed: 7\n");
  std::filesystem::create_directories(folder_ / "run");
  put_config("run/config.txtpb", "seed: 7\n");
  EXPECT_EQ(run("config diff a.txtpb a.txtpb").status, 0);
  const Result other = run("config diff a.txtpb b.txtpb", "LOCKSTEP_SEED=7");
  EXPECT_EQ(other.status, 1);
  EXPECT_EQ(other.output, "seed  1337 -> 7\n");
  EXPECT_EQ(run("config diff b.txtpb run").status, 0);
  EXPECT_EQ(run("config diff a.txtpb absent.txtpb").status, 2);
}

TEST_F(Doctor, FindsNothingThatWouldFailWhereTheTestsRun) {
  const Result result = run("doctor");
  EXPECT_EQ(result.status, 0) << result.output;
  for (const char* subject :
       {"backends", "processor", "cores", "memory", "open files", "run folder"}) {
    EXPECT_TRUE(says(result.output, subject));
  }
  EXPECT_TRUE(says(result.output, "CPU "));
}

TEST_F(Doctor, SaysWhatThereIsOfCudaOrWhyThereIsNone) {
  const std::string output = run("doctor").output;
  const size_t at = output.find("CUDA  ");
  ASSERT_NE(at, std::string::npos) << output;
  const std::string line = output.substr(at, output.find('\n', at) - at);
  EXPECT_TRUE(says(line, "not built in") || says(line, "no device can be used: ") ||
              says(line, "driver for CUDA "))
      << line;
  // The reason must not be empty.
  EXPECT_FALSE(line.ends_with(": ")) << line;
}

TEST_F(Doctor, SaysWhyTrainingWouldFail) {
  const Result result = run("doctor --run-dir /proc/runs");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(says(result.output, "training would fail: run folder: "));
  const Result variable = run("doctor --json", "LOCKSTEP_TRAIN_STEP=9");
  EXPECT_EQ(variable.status, 1);
  EXPECT_TRUE(says(variable.output, "\"ok\": false"));
  EXPECT_TRUE(says(variable.output, "Did you mean LOCKSTEP_TRAIN_STEPS?"));
}

}  // namespace
}  // namespace lockstep::launcher
