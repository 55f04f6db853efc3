#pragma once

#include <cstdint>
#include <functional>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// What reductions over a group take. Those under way at once have the link one after the other; a
/// result is there some time after its bytes have crossed, in which the next one's cross.
struct LinkCost {
  double latency = 0;        ///< seconds from the last byte to the result
  double per_operation = 0;  ///< seconds of the link, beside its bytes
  double per_byte = 0;       ///< seconds of the link
  /// Seconds of this process's processor time.
  double cpu_per_operation = 0;
  double cpu_per_byte = 0;

  double seconds(int64_t bytes) const {
    return per_operation + per_byte * static_cast<double>(bytes);
  }
  double cpu(int64_t bytes) const {
    return cpu_per_operation + cpu_per_byte * static_cast<double>(bytes);
  }
};

/// Reductions that were timed, in seconds from the call to the last result.
struct LinkTimes {
  int64_t small_bytes = 0;
  int64_t large_bytes = 0;
  int small_count = 0;
  int large_count = 0;
  double one_small = 0;  ///< one small reduction by itself
  double small = 0;      ///< `small_count` together
  double large = 0;      ///< `large_count` together
  double small_cpu = 0;  ///< processor time of `small`
  double large_cpu = 0;
};

/// The costs by which reductions take what was measured; none is negative.
LinkCost link_cost(const LinkTimes& times);

/// Starts the reduction of one tensor: of `sums`, [rows, elements] f32, into its first row.
using StartReduction = std::function<Work(const Tensor& sums)>;

/// Times reductions of `rows` rows by `start`: some of 16 KiB, alone and together, and four of up
/// to 1 MiB, but not of more than `most_bytes` in all. Each figure is the least of several rounds,
/// as whatever disturbs one makes it longer. All ranks of the group call it together; the link is
/// theirs meanwhile.
LinkTimes measure_link(ProcessGroup& group, int64_t rows, int64_t most_bytes,
                       const StartReduction& start);

}  // namespace lockstep::dist
