#pragma once

#include <map>
#include <string>

namespace lockstep::emulation {

/// Counts what programs queue on emulated GPUs while it is alive: kernels by their names, matrix
/// products of the fake cuBLASLt as "product", copies and fills of memory as "copy" and "fill",
/// whole graphs as "graph". One at a time.
class QueuedWork {
 public:
  using Counts = std::map<std::string, int>;

  QueuedWork();
  ~QueuedWork();
  QueuedWork(const QueuedWork&) = delete;
  QueuedWork& operator=(const QueuedWork&) = delete;

  Counts take();
};

/// Called by the emulation when work is queued.
void note_queued(const std::string& what);

}  // namespace lockstep::emulation
