#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::launcher {

/// Removes what an mpirun that was killed leaves behind: its session folder in one of `folders`
/// (ompi.HOST.UID/pid.PID) and the shared memory of its ranks in `shared_memory`. Files of other
/// jobs and other users stay. One that ended by itself has left nothing.
void remove_leftovers(pid_t mpirun, const std::vector<std::string>& folders,
                      const std::string& shared_memory = "/dev/shm");

}  // namespace lockstep::launcher
