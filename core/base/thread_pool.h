#pragma once

#include <cstdint>

#include "core/base/function_ref.h"

/// The threads behind parallel_for.
///
/// Workers belong to the process. They start when a call first wants them: there are never more
/// than the largest call asked for or, where several threads call at once, than the cores that the
/// process may use. Between calls they poll for a while and then sleep (core/base/adaptive_wait.h).
/// They take no signals but those that a fault of their own raises, start with the default
/// floating-point environment, and libraries on them use one thread (LibraryOnOneThread). Those
/// that idle when the main thread ends the process are joined; a child made by fork() starts with
/// none.
namespace lockstep::thread_pool {

/// Parts that one call may have.
constexpr int64_t kMostParts = 4096;

/// Calls `body(part)` once for each part in [0, parts), parts <= kMostParts, on the calling thread
/// and on workers, and returns when all have returned. The first exception is rethrown then.
///
/// A call never waits for a worker to become free or to wake: parts that no worker has begun are
/// run by the calling thread. Where the workers are not late, worker i runs part i + 1 of each
/// call, so that what it wrote in one call is in its core's cache in the next.
///
/// Thread-safe. Nothing is allocated, and there is no system call where every thread still polls.
/// Must not be called in a part of another call; a process forked in a part must not return from
/// it.
void run(int64_t parts, FunctionRef<void(int64_t)> body);

/// Whether the calling thread is running a part.
bool in_part();

/// Cores that the process may run on; at least 1.
int allowed_cores();

/// Workers started in this process, or since it was forked.
int workers();

}  // namespace lockstep::thread_pool
