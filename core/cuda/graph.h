#pragma once

#include <functional>
#include <memory>

#include "core/memory/caching_allocator.h"
#include "core/tensor/stream.h"

namespace lockstep {

/// Work of one GPU that is recorded once and then queued as a whole, any number of times: the
/// kernels are the same, with the same addresses, and read what is there at that time.
///
///   Tensor out;
///   CudaGraph graph(device);
///   graph.capture([&] { out = model(in); });
///   in.copy_(batch);   // new contents, the same memory
///   graph.replay();    // out is computed anew
///
/// What lies outside must outlive the graph: tensors that it reads and did not make. What is
/// allocated while it is captured comes from a pool of its own, which serves nobody else while the
/// graph lives; results stay valid until the next replay, and their memory after the graph until
/// they go: what reads them then must be done before. Numbers on the host are those of the capture:
/// seeds of random operators, too, learning rates, versions of tensors. Not thread-safe.
class CudaGraph {
 public:
  /// Throws DeviceError when there is no such device.
  explicit CudaGraph(Device device);
  /// Waits for the replays.
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  /// Calls `work`, once, and records what it queues on this thread's current stream of the device,
  /// which is one of the graph's meanwhile, and on streams that wait for that one and that it waits
  /// for in the end. A backward in it is recorded whole. Nothing runs before `replay`.
  ///
  /// Whatever would wait for the device, or read or write the cpu's memory, throws a DeviceError
  /// that names the operator; so does everything that the driver cannot record. After an error
  /// there is no graph, and `capture` may be called again.
  void capture(const std::function<void()>& work);
  bool is_captured() const noexcept;

  /// Queues the work on this thread's current stream. Throws DeviceError before `capture`.
  void replay();

  /// Where the memory of the work is.
  PoolId pool() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
