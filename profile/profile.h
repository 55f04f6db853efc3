#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/phase.h"
#include "core/base/spans/span_recorder.h"
#include "core/device/device_activity.h"
#include "core/tensor/dtype.h"
#include "profile/argument_record.h"

namespace lockstep::profile {

/// One span of a profile.
struct ProfileSpan {
  static constexpr int64_t kNone = -1;

  SpanKind kind = SpanKind::kRange;
  Phase phase = Phase::kForward;
  DType dtype = DType::kF32;
  bool cut = false;        ///< it was open at the end, which is taken for its own
  size_t thread = 0;       ///< place in Profile::threads
  int64_t parent = kNone;  ///< place in Profile::spans of the span that it is inside
  /// Place of the span that caused it: of a backward node the call that made it, of a kernel its
  /// launch.
  int64_t cause = kNone;
  int64_t begin_ns = 0;  ///< from the beginning of the profile
  int64_t duration_ns = 0;
  int64_t self_ns = 0;    ///< of the duration, what no span inside it took
  int64_t step = kNone;   ///< the training step that it began in
  uint64_t sequence = 0;  ///< 0: none
  int64_t flops = 0;
  int64_t bytes = 0;
  std::string name;   ///< "addmm", "AddmmBackward0", ...
  std::string note;   ///< of waits and copies: why; of collectives: the group
  std::string label;  ///< of collectives: what for: "bucket 3", "unit h.0"
  /// Path of the module: in backward that of the forward call.
  std::string module;
  std::vector<ArgumentInfo> arguments;
};

struct ProfileThread {
  uint64_t id = 0;  ///< the system's number
  std::string name;
  uint64_t lost = 0;  ///< spans that did not fit
  int device = -1;    ///< of a thread that is a stream of a device: the device's number
  int stream = -1;    ///< and the stream's
};

/// Which rank of a run a profile is of.
struct ProfileRank {
  int rank = 0;
  int size = 1;
  std::string host;
  std::string backend;          ///< of the group of ranks: "mpi", "nccl"; empty alone
  int64_t clock_offset_ns = 0;  ///< of the host's wall clock, above that of rank 0's host
};

/// What a device's allocator said at both ends of a profile, in bytes on loan.
struct ProfileMemory {
  std::string device;
  int64_t begin_bytes = 0;
  int64_t end_bytes = 0;
};

/// What one rank did in some steps.
struct Profile {
  ProfileRank rank;
  std::optional<ProfileMemory> memory;  ///< where requests and frees were recorded
  int64_t process = 0;                  ///< the system's number
  int64_t begin_unix_ns = 0;            ///< of the wall clock
  int64_t duration_ns = 0;
  std::vector<ProfileThread> threads;
  std::vector<ProfileSpan> spans;  ///< of a thread in the order of their beginnings
  std::vector<int64_t> steps;      ///< numbers of the steps, in order
  uint64_t threads_without_buffer = 0;
  uint64_t lost_work = 0;       ///< kernels and copies of a device whose records did not fit
  std::string no_device_times;  ///< why what a device ran is missing; empty if it is not

  uint64_t lost() const;
};

/// Makes a profile of a recording, with what devices' drivers recorded meanwhile: names, modules of
/// backward, steps, times.
Profile read_recording(const SpanRecording& recording, const DeviceActivities& activities = {});

/// What a reader must know of spans that are missing: "3,210 spans did not fit ...", or "".
std::string losses_text(const Profile& profile);

}  // namespace lockstep::profile
