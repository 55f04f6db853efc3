#include "train/bisect/step_samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "data/tokenizers/tokenizer.h"
#include "train/build.h"
#include "train/report/metrics_history.h"
#include "train/run/checkpoint_state.h"

namespace lockstep::train {
namespace {

/// How far the batch is ahead of the step in a checkpoint.
int64_t left_out(const CheckpointEntry& checkpoint) {
  const std::filesystem::path path = checkpoint.path / "checkpoint.json";
  const CheckpointManifest manifest = parse_manifest(read_whole_file(path), path.string());
  return manifest.position.batch - manifest.position.step;
}

/// Finds the batch of a step from the checkpoints before and after it.
void find_batch(const RunDirectory& run, StepSamples& samples) {
  std::optional<int64_t> before, after;
  for (const CheckpointEntry& each : list_checkpoints(run.checkpoints())) {
    if (!each.complete) continue;
    if (each.step < samples.step) {
      before = left_out(each);
    } else if (!after) {
      after = left_out(each);
    }
  }
  const int64_t ahead = after.value_or(before.value_or(0));
  samples.batch = samples.step - 1 + ahead;
  samples.is_certain = before.value_or(0) == ahead;
}

void add_sequences(const config::RunConfig& config, StepSamples& samples) {
  const std::unique_ptr<TokenSource> source = build_source(config);
  samples.length = sequence_length(config);
  samples.origins = source->origins(samples.batch, config.train().batch_size(), samples.length);
  if (source->tokenizer() == nullptr) return;
  std::vector<int64_t> inputs(static_cast<size_t>(samples.length)), targets(inputs.size());
  for (size_t i = 0; i < samples.origins.size(); ++i) {
    source->sequence(samples.batch, static_cast<int64_t>(i), inputs, targets);
    samples.texts.push_back(
        decode(*source->tokenizer(), std::vector<uint32_t>(inputs.begin(), inputs.end())));
  }
}

}  // namespace

StepSamples samples_of_step(const RunDirectory& run, int64_t step) {
  const std::vector<std::string> files = {run.config().string()};
  const config::RunConfig config = config::load(files);
  const std::vector<MetricsRecord> records = read_metrics(run.metrics());
  LS_CHECK(std::ranges::find(records, step, &MetricsRecord::step) != records.end(), DataError,
           "[data] {} has not made step {}: expected one of its {} steps, up to {}.",
           run.path().string(), step, records.size(), records.back().step);
  StepSamples samples{.step = step};
  samples.micro_batch_size = config.train().micro_batch_size();
  find_batch(run, samples);
  if (config.train().overfit_one_batch()) samples.batch = 0;
  if (is_classifier(config)) {
    samples.origins = build_task(config)->origins(samples.batch, config.train().batch_size());
  } else {
    add_sequences(config, samples);
  }
  LS_CHECK(!samples.origins.empty(), DataError,
           "[data] the samples of {} come from no file: expected data.text, data.shards, "
           "data.mixture, data.examples or data.table in its config.",
           run.path().string());
  return samples;
}

std::string describe(const StepSamples& samples) {
  constexpr size_t kShown = 40;  // bytes of a sample's text
  std::string text =
      fmt::format("step {}: batch {}, {} samples of {} {}\n", samples.step, samples.batch,
                  samples.origins.size(), samples.length, samples.length == 1 ? "row" : "tokens");
  if (!samples.is_certain) {
    text +=
        "batches were left out between the checkpoints around this step: it may have been an "
        "earlier batch\n";
  }
  size_t width = 0;
  for (const SampleOrigin& each : samples.origins)
    width = std::max(width, file_and_line(each).size());
  text += fmt::format("{:>6}  {:>11}  {:<{}}  {}\n", "sample", "micro-batch", "file", width,
                      samples.origins.front().unit);
  for (size_t i = 0; i < samples.origins.size(); ++i) {
    const SampleOrigin& origin = samples.origins[i];
    std::string line = fmt::format("{:>6}  {:>11}  {:<{}}  {:<12}", i,
                                   static_cast<int64_t>(i) / samples.micro_batch_size,
                                   file_and_line(origin), width, origin.first);
    if (i < samples.texts.size()) line += fmt::format("  {:?}", samples.texts[i].substr(0, kShown));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace lockstep::train
