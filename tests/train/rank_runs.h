#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/stream.h"
#include "dist/group/thread_group.h"
#include "tests/train/tiny_run.h"
#include "train/build.h"
#include "train/run/training_run.h"
#include "train/step_share.h"

namespace lockstep::train {

inline void rethrow_first(const std::vector<std::exception_ptr>& errors) {
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// Calls `train` with the trainer of each rank, on one thread per rank. Returns the results.
template <class Train>
auto trained_on_ranks(const config::RunConfig& config, int size, const Train& train) {
  std::vector<decltype(train(std::declval<Trainer&>()))> result(static_cast<size_t>(size));
  rethrow_first(dist::run_thread_ranks(size, [&](dist::ProcessGroup& group) {
    // Ranks that share a stream would wait for work that the other rank has queued.
    const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
    Trainer trainer =
        Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group);
    result[static_cast<size_t>(group.rank())] = train(trainer);
  }));
  return result;
}

/// Losses, norms and weights of every rank after `steps` steps.
inline std::vector<Trace> traces(const config::RunConfig& config, int size, int steps) {
  return trained_on_ranks(config, size, [&](Trainer& trainer) { return trace(trainer, steps); });
}

/// Runs training on `size` ranks in `folder`/run. Returns their errors: rank 0 throws DataError if
/// the run is asked to stop.
inline std::vector<std::exception_ptr> run_on_ranks(const config::RunConfig& config,
                                                    const TemporaryDirectory& folder, int size,
                                                    const StopRequest& stop_of_the_last = {}) {
  return dist::run_thread_ranks(size, [&](dist::ProcessGroup& group) {
    const StreamGuard own_stream(get_stream_from_pool(parse_device(config.device())));
    const bool last = group.rank() == size - 1;
    const StopRequest stop = last ? stop_of_the_last : StopRequest();
    if (group.rank() != 0) {
      follow_training(config, group, stop);
      return;
    }
    TrainingRun run(config,
                    RunDirectory::create_at(folder / "run", RunDirectory::Existing::kContinue),
                    "{}", nullptr, &group);
    std::FILE* const nowhere = std::fopen("/dev/null", "w");
    const RunSummary summary = run.run({.terminal = nowhere, .stop = stop});
    std::fclose(nowhere);
    if (summary.end == RunEnd::kStopped) throw DataError("stopped");
  });
}

/// Runs of which BITWISE keeps every bit: what is added to `tiny_run`. Small micro-batches, so that
/// there are leaves for 8 ranks.
inline const std::vector<const char*> kBitwiseRuns = {
    "train { batch_size: 16 micro_batch_size: 1 }",
    "train { batch_size: 8 micro_batch_size: 1 } model { gpt2 { dropout: 0.2 } }",
    "train { batch_size: 16 micro_batch_size: 2 } precision: BF16_MIXED",
    "train { batch_size: 8 micro_batch_size: 1 } optimizer { clip_grad_norm: 0.1 }",
    "train { batch_size: 16 micro_batch_size: 1 leaves: 16 } optimizer { sgd {} }"};

/// These and `more`.
inline std::vector<const char*> bitwise_runs_and(std::vector<const char*> more) {
  more.insert(more.begin(), kBitwiseRuns.begin(), kBitwiseRuns.end());
  return more;
}

inline std::string weights_of(const TemporaryDirectory& folder) {
  std::ifstream file(folder / "run" / "model.safetensors", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Expects that a `layered_run` on `ranks` ranks which is stopped after some of its steps, and
/// started again, ends with the weights of one that was not stopped.
inline void expect_exact_resume(const std::string& more, int ranks) {
  const TemporaryDirectory straight, stopped;
  rethrow_first(run_on_ranks(layered_run(straight, more), straight, ranks));
  int asked = 0;
  const auto errors =
      run_on_ranks(layered_run(stopped, more), stopped, ranks, [&] { return ++asked > 4; });
  EXPECT_TRUE(errors.front());
  rethrow_first(run_on_ranks(layered_run(stopped, more), stopped, ranks));
  EXPECT_EQ(weights_of(stopped), weights_of(straight)) << more << ", " << ranks;
}

}  // namespace lockstep::train
