#pragma once

#include <optional>
#include <string>

#include "core/base/error.h"
#include "train/report/rank_times.h"

namespace lockstep::train {

/// Ends a run whose state is saved, on all ranks, so that its job goes on without one of them.
class SlowRankError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "SlowRankError"; }
};

/// A rank that holds up the others.
struct SlowRank {
  int rank = 0;
  double work_ms = 0;    ///< RankTimes::work_ms of it
  double others_ms = 0;  ///< the longest of the others

  friend bool operator==(const SlowRank&, const SlowRank&) = default;
};

/// Looks for a rank that works longer than every other one by more than
/// parallel.leave_out_slower allows. For the rank that leads. Not thread-safe.
class SlowRankWatch {
 public:
  /// Comparisons in a row with the same rank, so that what holds up a rank once does not count.
  static constexpr int kInARow = 3;

  /// `limit`: of a rank's work by the longest of the others; 0: no rank is too slow.
  explicit SlowRankWatch(double limit) : limit_(limit) {}

  bool is_on() const { return limit_ > 0; }
  /// Takes the times of all ranks. Returns the rank that is too slow, from the last comparison of
  /// the row on.
  std::optional<SlowRank> add(const RankComparison& comparison);
  /// Says what was found, after the rank's number and host: "works 212 ms in a step, ...".
  std::string text(const SlowRank& found) const;

 private:
  double limit_;
  int suspect_ = -1;
  int in_a_row_ = 0;
};

}  // namespace lockstep::train
