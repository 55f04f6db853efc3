#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/exact_rows.h"
#include "train/joining/live_state.h"
#include "train/trainer.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// Takes the state of a run that trains on meanwhile (StateGiver), for a process that waits to join
/// it: writes each part as it comes, and from then on makes the updates of the steps by their
/// gradients, which have the bits of the ranks' own where these have the same arithmetic. Not
/// thread-safe.
class StateTaker {
 public:
  /// Writes to `legacy`, which must outlive this object and keep its model and optimizer.
  StateTaker(const config::RunConfig& config, Trainer::Legacy& legacy);
  /// Writes to `state`, which `optimizer` updates and which may be that of a part, and what is no
  /// tensor to `legacy`. Both must outlive this object.
  StateTaker(const config::RunConfig& config, std::optional<LiveState> state, Optimizer& optimizer,
             Trainer::Legacy& legacy);

  /// Takes the next part. Throws DataError for one that does not fit the model.
  void take(const std::string& part);
  /// After how many steps the state is that `legacy` has; -1 while it is not whole.
  int64_t steps() const { return steps_; }
  /// The last of these, as the ranks have it; nothing while the state is not whole.
  const std::optional<StepResult>& last() const { return last_; }

 private:
  void forget();
  void take(const StateRecord& record);
  void write(const Tensor& tensor, const StateRecord& record) const;
  void add_gradient(const StateRecord& record);
  void follow(const StepFacts& facts);

  Trainer::Legacy& legacy_;
  Optimizer& optimizer_;
  std::optional<LiveState> state_;
  std::optional<ExactRows> exact_rows_;
  std::vector<bool> is_there_;     ///< by unit
  std::vector<Tensor> gradients_;  ///< by trained parameter; those of others are undefined
  std::vector<size_t> arrived_;    ///< bytes of those of the next step
  int64_t steps_ = -1;
  std::optional<StepResult> last_;
};

}  // namespace lockstep::train
