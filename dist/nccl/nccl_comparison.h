#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dist/group/communicator.h"

namespace lockstep::dist {

/// Finds operations of a group that do not match between ranks. NCCL does not compare calls: ranks
/// that differ hang, or end with wrong data.
///
/// If an operation has not ended a second after its call, its signature is sent to other ranks of
/// the group over the job's control channel, and again with growing intervals while it is pending.
/// A rank that called a different operation with that number fails the job with MismatchError
/// (Communicator::compare); a rank that is late is no mismatch. Reads the flight recorder only, so
/// that operations pay nothing, and those that block the calling thread are seen too. Not
/// thread-safe: `look` is called by one thread.
class NcclComparison {
 public:
  using Clock = std::chrono::steady_clock;

  /// `ranks` are ranks of the job, of which the one at `rank` is this one.
  NcclComparison(std::shared_ptr<Communicator> communicator, uint64_t group,
                 const std::vector<int>& ranks, int rank);

  /// Called often; does nothing most of the time.
  void look(Clock::time_point now = Clock::now());

 private:
  const std::shared_ptr<Communicator> communicator_;
  const uint64_t group_;
  std::vector<int> others_;  ///< ranks of the job that are asked
  Clock::time_point next_look_{};
  Clock::time_point next_question_{};
  Clock::duration between_questions_{};
  /// Sequence number of the oldest pending operation at the last look.
  std::optional<uint64_t> oldest_;
};

/// Returns the ranks of a group that rank `rank` asks: all up to 16 ranks; in larger groups the
/// next 8 and those at distances that double, so that messages stay few. Of two ranks, one asking
/// the other is enough, and differing ranks far apart have differing neighbours in between.
std::vector<int> ranks_to_compare(int rank, int size);

}  // namespace lockstep::dist
