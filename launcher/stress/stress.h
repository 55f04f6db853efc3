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
  int threads = 4;
  int streams = 4;       ///< at most kMostStressStreams; 1 where the device has one
  double seconds = 10;   ///< after which no new program starts
  int64_t programs = 0;  ///< exactly so many, whatever the time; 0: as many as there is time for
  uint64_t seed = 0;     ///< of the first program; the next one's is larger by 1
  int64_t operations = 2000;              ///< of each thread in a program
  size_t live_bytes = size_t{192} << 20;  ///< on loan at once, over all threads
  size_t largest_block = size_t{8} << 20;
};
/// The default stream and the pooled ones of both priorities.
inline constexpr int kMostStressStreams = 1 + 2 * kPoolStreams;

struct StressReport {
  int64_t programs = 0;  ///< exactly so many, whatever the time; 0: as many as there is time for
  StressProgram::Counts counts;
  double seconds = 0;
  int64_t findings = 0;
  std::vector<std::string> first_findings;
  std::optional<uint64_t> failing_seed;  ///< of the first program that found something
  int64_t peak_allocated_bytes = 0;      ///< the highest seen between programs' ends
  int64_t reserved_bytes = 0;            ///< at the end of the last program
  int64_t live_bytes = 0;                ///< not given back; 0 where all is well
  int64_t kept_bytes = 0;                ///< reserved in the end, without what is cached

  bool passed() const { return findings == 0; }
};

/// Runs random programs on several threads and streams through `allocator`, which serves the
/// device, and which nobody else should use meanwhile. A finding is memory with wrong contents, an
/// exception, a block that is lost, memory that stays reserved though nothing is on loan, and a
/// cache that grows and grows. Stops after the first program with findings. Throws DeviceError when
/// there is no such device.
StressReport run_stress(Allocator& allocator, const StressOptions& options);

}  // namespace lockstep
