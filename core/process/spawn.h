#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/process/process_environment.h"

namespace lockstep {

/// What the standard streams of a new program are: descriptors of this process, or -1 for those of
/// this process.
struct SpawnStreams {
  int input = -1;
  int output = -1;
  int error = -1;
};

/// A program that was started.
struct Spawned {
  pid_t process = 0;
  int error = 0;  ///< errno's reason why it was not; 0 if it was
};

/// Starts a program, `command[0]` found by PATH, in a process group of its own, so that a
/// terminal's interrupt is not for it, and with default signals. The caller waits for it.
/// Thread-safe.
Spawned spawn(const std::vector<std::string>& command, const SpawnStreams& streams,
              const ProcessEnvironment& environment = {});

/// Says how a program that was waited for has ended: "it has ended with status 3", "it was ended by
/// signal 9 (Killed)".
std::string ending_of(int wait_status);

}  // namespace lockstep
