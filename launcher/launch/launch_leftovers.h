#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// Removes the files that a killed mpirun leaves behind: its session folder in one of `folders`
/// (ompi.HOST.UID/pid.PID) and the shared memory of its ranks in `shared_memory`. Does not touch
/// files of other jobs and users. An mpirun that ended by itself leaves no files.
void remove_leftovers(pid_t mpirun, const std::vector<std::string>& folders,
                      const std::string& shared_memory = "/dev/shm");

/// Removes what jobs of this user on this host have left in `shared_memory` though no process has
/// it mapped any more: all their processes were killed, launch's too. What is younger than
/// `least_age` stays, as the process that makes it may not have mapped it yet.
void remove_stale_segments(const std::string& host, const std::string& shared_memory = "/dev/shm",
                           std::chrono::seconds least_age = std::chrono::seconds(3));

}  // namespace lockstep::launcher
