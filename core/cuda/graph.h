#pragma once

#include <functional>
#include <memory>

#include "core/memory/caching_allocator.h"
#include "core/tensor/stream.h"

namespace lockstep {

/// Work of one GPU that is recorded once and then queued as a whole any number of times. A replay
/// runs the same kernels on the same addresses, with the contents that they have at that time.
///
///   Tensor out;
///   CudaGraph graph(device);
///   graph.capture([&] { out = model(in); });
///   in.copy_(batch);   // new contents, the same memory
///   graph.replay();    // out is computed anew
///
/// Tensors that the graph reads and did not allocate must outlive it. Allocations during the
/// capture come from a private pool, which is not used for anything else while the graph exists.
/// Results stay valid until the next replay. They may outlive the graph; replays that write them
/// and work that reads them must be done before it is destroyed. Values on the host are those of
/// the capture: learning rates, versions of tensors.
///
/// A replay draws the random numbers that the same calls would draw now, from the default generator
/// of the thread that replays, which moves on as they would move it; a capture draws none. Numbers
/// of other generators are the same in every replay. Not thread-safe.
class CudaGraph {
 public:
  /// Throws DeviceError if there is no such device.
  explicit CudaGraph(Device device);
  /// Waits for the replays to finish.
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  /// Calls `work` once and records the work that it queues on this thread's current stream of the
  /// device, which is a stream of the graph meanwhile, and on streams that fork from that one by
  /// events and join it again. A backward pass inside is recorded completely. Nothing runs before
  /// `replay`.
  ///
  /// Throws a DeviceError naming the operator for anything that would wait for the device, or read
  /// or write the cpu's memory, or that the driver cannot record. After an error there is no graph,
  /// and `capture` may be called again.
  void capture(const std::function<void()>& work);
  bool is_captured() const noexcept;

  /// Queues the recorded work on this thread's current stream. Throws DeviceError before `capture`.
  void replay();

  /// The pool that holds the graph's memory.
  PoolId pool() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
