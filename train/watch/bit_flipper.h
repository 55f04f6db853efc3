#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/bit_flip.h"
#include "train/watch/operator_watch.h"

namespace lockstep::train {

/// Flips one bit of what one kernel of a run writes, in the rank that calls it (inject.flip). The
/// rest of the step computes with the wrong number.
class BitFlipper final : public OperatorWatch {
 public:
  /// Throws ConfigError for an operator that does not exist.
  explicit BitFlipper(config::BitFlip flip);

  /// Throws ConfigError if the part was this rank's and had no such call, listing what it had.
  void end_step() override;

 private:
  void begin_part() override;
  void after(const Call& call, const std::vector<Tensor>& written) override;
  void apply(const Tensor& tensor) const;
  void require_done();

  config::BitFlip flip_;
  /// What the fault's part has called, until the bit is flipped.
  std::optional<std::map<std::string, int64_t>> missing_;
};

}  // namespace lockstep::train
