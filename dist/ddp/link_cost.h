#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Cost model of reductions over a group. Concurrent reductions use the link one after the other; a
/// result arrives `latency` after its bytes have been transferred, during which the next reduction
/// uses the link.
struct LinkCost {
  double latency = 0;        ///< seconds from the last byte to the result
  double per_operation = 0;  ///< seconds of link time, in addition to that of the bytes
  double per_byte = 0;       ///< seconds of link time
  /// Seconds of processor time of this process.
  double cpu_per_operation = 0;
  double cpu_per_byte = 0;

  double seconds(int64_t bytes) const {
    return per_operation + per_byte * static_cast<double>(bytes);
  }
  double cpu(int64_t bytes) const {
    return cpu_per_operation + cpu_per_byte * static_cast<double>(bytes);
  }
};

/// Measured reductions: seconds from the first call to the last result.
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

/// Returns "12.5 GB/s and 40 µs an operation", in the units that people use; without the part that
/// the measurement could not tell.
std::string describe(const LinkCost& link);

/// Fits the cost model to measured times; no cost is negative.
LinkCost link_cost(const LinkTimes& times);

/// Starts the reduction of one tensor: of `sums`, [rows, elements] f32, into its first row.
using StartReduction = std::function<Work(const Tensor& sums)>;

/// Times reductions of `rows` rows on `device` by `start`: of 16 KiB, alone and 16 at once, and
/// four of up to 1 MiB (16 MiB on a GPU) at once, of about `most_bytes` together at most. Each
/// figure is the minimum of several rounds, as disturbances only add time. Collective; nothing else
/// should use the link meanwhile.
LinkTimes measure_link(ProcessGroup& group, Device device, int64_t rows, int64_t most_bytes,
                       const StartReduction& start);

}  // namespace lockstep::dist
