#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::launcher {

/// Removes the files that a killed mpirun leaves behind: its session folder in one of `folders`
/// (ompi.HOST.UID/pid.PID) and the shared memory of its ranks in `shared_memory`. Does not touch
/// files of other jobs and users. An mpirun that ended by itself leaves no files.
void remove_leftovers(pid_t mpirun, const std::vector<std::string>& folders,
                      const std::string& shared_memory = "/dev/shm");

}  // namespace lockstep::launcher
