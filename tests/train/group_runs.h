#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dist/group/thread_group.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {

// Runs of which groups of two ranks keep a model together.

using RankGroups = std::vector<std::unique_ptr<dist::ProcessGroup>>;

inline constexpr const char* kHybrid =
    " parallel { strategy: HYBRID_SHARD shard_size: 2 elastic {} } reproducibility: BITWISE";

/// Calls `body` on `size` ranks, each on its own thread.
inline void on_rank_threads(int size, const std::function<void(size_t rank)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_first(errors);
}

inline std::unique_ptr<Trainer> rank_trainer(const config::RunConfig& config,
                                             dist::ProcessGroup& group) {
  return std::make_unique<Trainer>(
      Trainer::create(config, build_task(config, share_of_step(config.train(), &group)), &group));
}

/// What a process that joins brings along.
inline Trainer::Legacy legacy_without_state(const config::RunConfig& config) {
  Trainer::Legacy legacy;
  legacy.task = build_task(config, share_of_step(config.train(), 0, 2));
  legacy.micro_batch_size = config.train().micro_batch_size();
  return legacy;
}

/// Weights and optimizer state, of the rank that leads.
inline std::string collected_state(Trainer& trainer) {
  std::string bytes;
  const size_t count =
      trainer.task().model().stored_parameters().size() + trainer.optimizer_state_shapes().size();
  for (size_t i = 0; i < count; ++i) {
    const Tensor each = trainer.collect_state(i);
    if (each.defined()) bytes.append(static_cast<const char*>(each.data()), each.nbytes());
  }
  return bytes;
}

inline std::string state_of_one_rank(const config::RunConfig& config, int64_t steps) {
  Trainer trainer = Trainer::create(config);
  for (int64_t i = 0; i < steps; ++i) (void)trainer.step();
  return collected_state(trainer);
}

inline std::vector<const char*> hybrid_runs() {
  return bitwise_runs_and(
      {"train { batch_size: 8 micro_batch_size: 1 weight_average { decay: 0.9 } }"});
}

}  // namespace lockstep::train
