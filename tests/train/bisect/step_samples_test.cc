#include "train/bisect/step_samples.h"

#include <gtest/gtest.h>

#include "tests/train/bisect/recorded_runs.h"
#include "train/build.h"

namespace lockstep::train {
namespace {

TEST(StepSamples, AreWhatTheStepWasTrainedOn) {
  const TemporaryDirectory folder;
  const config::RunConfig config = six_steps(folder);
  const RecordedRun run = recorded(folder, "run", config);
  const StepSamples samples = samples_of_step(run.directory, 4);
  EXPECT_EQ(samples.batch, 3);
  EXPECT_TRUE(samples.is_certain);
  EXPECT_EQ(samples.length, 16);
  ASSERT_EQ(samples.origins.size(), 8u);
  EXPECT_EQ(samples.origins, build_task(config)->origins(3, 8));
  const std::string text = file_content(folder / "text.txt");
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(samples.texts[i], text.substr(static_cast<size_t>(samples.origins[i].first), 16));
  }
  EXPECT_TRUE(says(describe(samples), "step 4: batch 3, 8 samples of 16 tokens\n"));
}

TEST(StepSamples, OfAMixtureNameTheFileOfItsSource) {
  const TemporaryDirectory folder;
  std::string lines, text;
  for (int i = 0; i < 60; ++i) {
    lines += fmt::format("{{\"text\": \"line number {} of some\"}}\n", i);
    text += fmt::format("{} words of a text. ", i);
  }
  put_file(folder / "a.jsonl", lines);
  put_file(folder / "b.txt", text);
  const config::RunConfig config =
      six_steps(folder, fmt::format("data {{ mixture {{ cache_dir: ''\n"
                                    "source {{ text {{ path: '{0}/a.jsonl' }} }}\n"
                                    "source {{ text {{ path: '{0}/b.txt' }} weight: 3 }} }} }}",
                                    folder.path().string()));
  const RecordedRun run = recorded(folder, "run", config);
  const StepSamples samples = samples_of_step(run.directory, 5);
  ASSERT_EQ(samples.origins.size(), 8U);
  int from_lines = 0;
  for (size_t i = 0; i < 8; ++i) {
    const SampleOrigin& origin = samples.origins[i];
    const std::string start = samples.texts[i].substr(0, 4);
    if (origin.file.ends_with("a.jsonl")) {
      ++from_lines;
      const std::string line = fmt::format("line number {} of some\n", origin.line - 1) + "line";
      EXPECT_EQ(line.substr(static_cast<size_t>(origin.first), 4), start);
    } else {
      EXPECT_EQ(text.substr(static_cast<size_t>(origin.first), 4), start);
    }
  }
  EXPECT_GE(from_lines, 1);
  EXPECT_LE(from_lines, 4);
}

TEST(StepSamples, OfJsonLinesNameFileAndLine) {
  StepSamples samples{.step = 1};
  samples.origins = {{.file = "a.txt", .first = 5}, {.file = "b.jsonl", .first = 7, .line = 12}};
  const std::string text = describe(samples);
  EXPECT_TRUE(says(text, "  a.txt       5\n"));
  EXPECT_TRUE(says(text, "  b.jsonl:12  7\n"));
}

TEST(StepSamples, RefusesAStepThatWasNotMade) {
  const TemporaryDirectory folder;
  const RecordedRun run = recorded(folder, "run", six_steps(folder));
  EXPECT_TRUE(says(message_of<DataError>([&] { (void)samples_of_step(run.directory, 7); }),
                   "has not made step 7: expected one of its 6 steps"));
}

TEST(StepSamples, RefusesDataOfNoFile) {
  const TemporaryDirectory folder;
  const RecordedRun run = recorded(folder, "run", six_steps(folder, "data { random {} }"));
  EXPECT_TRUE(says(message_of<DataError>([&] { (void)samples_of_step(run.directory, 2); }),
                   "come from no file"));
}

TEST(StepSamples, FollowsBatchesThatWereLeftOut) {
  const TemporaryDirectory folder;
  const RecordedRun run = recorded(folder, "run", six_steps(folder));
  // As if the run had gone back from step 3 to step 2 once, and left out a batch.
  for (const int step : {4, 6}) {
    const std::filesystem::path path =
        run.directory.checkpoints() / fmt::format("step-{:08}/checkpoint.json", step);
    CheckpointManifest manifest = parse_manifest(file_content(path), path.string());
    ++manifest.position.batch;
    put_file(path, format_manifest(manifest));
  }
  EXPECT_EQ(samples_of_step(run.directory, 2).batch, 1);
  EXPECT_EQ(samples_of_step(run.directory, 5).batch, 5);
  EXPECT_TRUE(samples_of_step(run.directory, 5).is_certain);
  EXPECT_FALSE(samples_of_step(run.directory, 4).is_certain);
}

TEST(StepSamples, AreShownInATable) {
  StepSamples samples{.step = 4};
  samples.batch = 3;
  samples.length = 16;
  samples.micro_batch_size = 2;
  samples.origins = {{"a.txt", "token", 7}, {"longer.txt", "token", 1234}, {"a.txt", "token", 0}};
  samples.texts = {"x\n", std::string(41, 'y')};
  EXPECT_EQ(describe(samples),
            "step 4: batch 3, 3 samples of 16 tokens\n"
            "sample  micro-batch  file        token\n"
            "     0            0  a.txt       7             \"x\\n\"\n"
            "     1            0  longer.txt  1234          \"" +
                std::string(40, 'y') +
                "\"\n"
                "     2            1  a.txt       0\n");
  samples.length = 1;
  samples.is_certain = false;
  EXPECT_TRUE(describe(samples).starts_with(
      "step 4: batch 3, 3 samples of 1 row\n"
      "batches were left out between the checkpoints around this step: it may have been an "
      "earlier batch\n"));
}

TEST(StepSamples, OfARunOnOneBatchAreThoseOfTheFirst) {
  const TemporaryDirectory folder;
  config::RunConfig config = six_steps(folder);
  config.mutable_train()->set_overfit_one_batch(true);
  const RecordedRun run = recorded(folder, "run", config);
  const StepSamples samples = samples_of_step(run.directory, 4);
  EXPECT_EQ(samples.batch, 0);
  EXPECT_EQ(samples.micro_batch_size, 2);
  EXPECT_EQ(samples.origins, build_task(config)->origins(0, 8));
}

}  // namespace
}  // namespace lockstep::train
