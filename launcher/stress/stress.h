#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/allocator.h"
#include "launcher/stress/stress_program.h"

namespace lockstep {

struct StressOptions {
  Device device{DeviceType::kHost, 0};
  StressKind kind = StressKind::kAllocator;
  /// A mistake that programs make; all but kFlippedByte need a device with streams.
  StressFault fault = StressFault::kNone;
  int threads = 4;
  int streams = 4;            ///< at most kMostStressStreams; 1 for devices with a single stream
  double seconds = 10;        ///< time after which no new program starts
  int64_t programs = 0;       ///< number of programs, ignoring `seconds`; 0: as many as time allows
  uint64_t seed = 0;          ///< seed of the first program; each later one adds 1
  int64_t operations = 2000;  ///< per thread and program
  size_t live_bytes = size_t{192} << 20;  ///< allocated at once, over all threads
  size_t largest_block = size_t{8} << 20;
};
/// Maximum number of streams: the default stream and the pooled ones of both priorities.
inline constexpr int kMostStressStreams = 1 + 2 * kPoolStreams;

struct StressReport {
  int64_t programs = 0;  ///< number of programs run
  StressProgram::Counts counts;
  double seconds = 0;
  int64_t findings = 0;
  std::vector<std::string> first_findings;
  std::optional<uint64_t> failing_seed;  ///< seed of the first program with findings
  int64_t peak_allocated_bytes = 0;      ///< peak seen at the ends of programs
  int64_t reserved_bytes = 0;            ///< reserved at the end of the last program
  int64_t live_bytes = 0;                ///< still allocated after all frees; should be 0
  int64_t kept_bytes = 0;                ///< still reserved after the cache was emptied

  bool passed() const { return findings == 0; }
};

/// Runs random programs on several threads and streams through `allocator`, which must serve the
/// device and must not be used by other code meanwhile. Findings are: memory with wrong contents,
/// exceptions, leaked blocks, memory that stays reserved with nothing allocated, a cache that
/// keeps growing, and a run that verified nothing. Stops after the first program with findings.
/// Throws DeviceError if there is no such device.
StressReport run_stress(Allocator& allocator, const StressOptions& options);

}  // namespace lockstep
