#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace lockstep::profile {

/// A profile in the trace format of Chrome and Perfetto, with the field names of PyTorch's
/// profiler: categories "cpu_op", "user_annotation", "kernel", arrows "fwdbwd" from forward calls
/// to their backward nodes, "External id", "Sequence number", "Input Dims", "distributedInfo".
/// Times are microseconds from "baseTimeNanoseconds", which is the wall clock's.
std::string trace_json(const Profile& profile);
/// Returns one trace of several ranks' profiles, which must have been aligned (profile/ranks.h):
/// each rank is a process, with its rank as number.
std::string merged_trace_json(const std::vector<Profile>& profiles);
/// Reads what `trace_json` wrote. Throws DataError naming `origin` for anything else.
Profile read_trace(std::string_view json, const std::string& origin);

/// Writes the trace, compressed with gzip, under its name complete or not at all. Throws DataError.
void write_trace(const std::string& path, const Profile& profile);
/// Reads a trace file, compressed or not. Throws DataError.
Profile read_trace_file(const std::string& path);

}  // namespace lockstep::profile
