#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/generator.h"
#include "train/bisect/rank_threads.h"
#include "train/bisect/recorded_run.h"
#include "train/trainer.h"

namespace lockstep::train {

/// How many ranks compute a run again: one where its bits do not depend on their number, otherwise
/// as many as computed it.
int replayed_ranks(const RecordedRun& run);

struct ReplayOptions {
  /// One rank does what the run's ranks did, also where its sums have other bits then.
  bool by_one_rank = false;
};

/// Computes steps of a recorded run again in this process: with as many ranks as `replayed_ranks`
/// says, which are threads. Two may live beside each other on one thread. Reads the run's directory
/// and changes nothing in it.
class Replay {
 public:
  /// Builds model and data. Throws what these throw, and ConfigError for a run whose bits depend on
  /// its ranks and on what threads do not do, or no longer know. `recompute_like`: whose
  /// model.recompute is used, which changes no bit, so that both replays make the same calls.
  Replay(const RecordedRun& run, const RecordedRun& recompute_like,
         const ReplayOptions& options = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Goes to where the run began; not after `save`, which forgets that.
  void restart();
  /// Goes to a checkpoint of the run, whose bytes are compared with its manifest.
  void restore_checkpoint(const std::filesystem::path& path);

  /// Makes the next step. `watches`: of each rank, or null; empty: none.
  StepResult step(const std::vector<StepWatch*>& watches = {});
  int64_t steps_done() const { return ranks_.front().trainer->steps_done(); }
  int ranks() const { return threads_->size(); }
  int64_t micro_batches() const { return micro_batches_; }
  /// Samples of a micro-batch; of all ranks alike.
  int64_t micro_batch_size() const { return ranks_.front().trainer->share().micro_batch_size; }
  int64_t leaves() const { return leaves_; }

  /// Remembers the state, in place of what was remembered before, and goes back to it.
  void save();
  void go_back();
  /// Takes the state of another replay, which may be on another device. Both must have one rank.
  void take_state_of(Replay& other);

  /// Where the states of two replays of as many ranks differ: "weight wte.weight", "the position in
  /// the data"; empty if they are the same, bit for bit.
  static std::string state_difference(Replay& a, Replay& b);
  ContentHash data() const { return ranks_.front().trainer->task().data_fingerprint(); }

 private:
  struct State {
    Position position;
    int64_t updates = 0;
    RandomKey random;
    std::optional<GradScalerState> scaler;
    std::vector<Tensor> tensors;
  };
  struct Rank {
    std::unique_ptr<Trainer> trainer;
    RandomKey random;  ///< the generator's state while the other replay uses it
    State begin;
    State saved;

    State state_now(int rank);
    void use(const State& state, int rank);
    /// Weights and the optimizer's state; of a sharded model this rank's parts.
    std::vector<nn::StoredParameter> tensors(int rank);
  };
  /// Calls `body` on every rank.
  void on_ranks(const std::function<void(Rank& rank, int number)>& body);

  const RecordedRun& run_;
  int64_t micro_batches_ = 0;
  int64_t leaves_ = 0;
  std::unique_ptr<RankThreads> threads_;  ///< must outlive the trainers
  std::vector<Rank> ranks_;
};

}  // namespace lockstep::train
