#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/generator.h"
#include "train/bisect/recorded_run.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Computes steps of a recorded run again, as one rank in this process. Two may live beside each
/// other on one thread. Reads the run's directory and changes nothing in it.
class Replay {
 public:
  /// Builds model and data. Throws what these throw, and ConfigError for a run whose bits depend on
  /// a number of ranks other than one. `recompute_like`: whose model.recompute is used, which
  /// changes no bit, so that both replays make the same calls.
  Replay(const RecordedRun& run, const RecordedRun& recompute_like);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Goes to where the run began; not after `save`, which forgets that.
  void restart();
  /// Goes to a checkpoint of the run, whose bytes are compared with its manifest.
  void restore_checkpoint(const std::filesystem::path& path);

  /// Makes the next step; `watch` may be null.
  StepResult step(StepWatch* watch);
  int64_t steps_done() const { return trainer_->steps_done(); }
  int64_t micro_batches() const { return micro_batches_; }
  int64_t leaves() const { return leaves_; }

  /// Remembers the state, in place of what was remembered before, and goes back to it.
  void save();
  void go_back();
  /// Takes the state of another replay, which may be on another device.
  void take_state_of(Replay& other) { use(other.state_now()); }

  /// Where the states of two replays differ: "weight wte.weight", "the position in the data"; empty
  /// if they are the same, bit for bit.
  static std::string state_difference(Replay& a, Replay& b);
  ContentHash data() const { return trainer_->task().data_fingerprint(); }

 private:
  struct State {
    Position position;
    int64_t updates = 0;
    RandomKey random;
    std::optional<GradScalerState> scaler;
    std::vector<Tensor> tensors;
  };
  State state_now();
  void use(const State& state);
  std::vector<nn::StoredParameter> tensors();

  const RecordedRun& run_;
  std::unique_ptr<Trainer> trainer_;
  int64_t micro_batches_;
  int64_t leaves_;
  RandomKey random_;  ///< the generator's state while the other replay uses it
  State begin_;
  State saved_;
};

}  // namespace lockstep::train
