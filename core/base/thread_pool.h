#pragma once

#include <cstdint>

#include "core/base/function_ref.h"

/// The threads behind parallel_for.
///
/// Workers belong to the process and start on demand. There are never more than the largest call
/// asked for or, when several threads call at once, than the cores that the process may use.
/// Between calls they poll for a while and then sleep (core/base/adaptive_wait.h). They block all
/// signals but faults of their own, start with the default floating-point environment, and limit
/// libraries to one thread (LibraryOnOneThread). Workers that are idle when the main thread ends
/// the process are joined; a child made by fork() starts with none.
namespace lockstep::thread_pool {

/// Largest number of parts of one call; bounds the bit mask in the call's stack frame.
constexpr int64_t kMostParts = 4096;

/// Calls `body(part)` once for each part in [0, parts), parts <= kMostParts, on the calling thread
/// and on workers. Returns when all calls have returned, and rethrows the first exception.
///
/// Never waits for a worker to become free or to wake: the calling thread runs the parts that no
/// worker has begun. If the workers are in time, worker i runs part i + 1 of each call, so that
/// what it wrote in one call is in its core's cache in the next.
///
/// Thread-safe. Allocates nothing, and makes no system call while every thread still polls. Must
/// not be called inside a part; a process forked in a part must not return from it.
void run(int64_t parts, FunctionRef<void(int64_t)> body);

/// Whether the calling thread is running a part.
bool in_part();

/// Number of cores that the process may run on; at least 1.
int allowed_cores();

/// Number of workers started in this process, since its fork if it is a forked child.
int workers();

}  // namespace lockstep::thread_pool
