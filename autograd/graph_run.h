#pragma once

#include <functional>
#include <vector>

#include "autograd/node.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/scoped_value.h"
#include "core/dispatch/arrived_gradient.h"
#include "core/dispatch/thread_state.h"
#include "core/tensor/stream.h"

namespace lockstep {

struct ActiveCapture;

class DeviceWorker;
class GraphRun;

/// The run and node that a thread executes; nested backwards form a chain.
struct CurrentNode {
  GraphRun* run = nullptr;
  Node* node = nullptr;
};

namespace detail {
inline thread_local constinit bool backward_stays = false;
}  // namespace detail

/// While alive, backwards that this thread calls run on it alone, whatever their devices are: for
/// modes, which see the calls of their thread.
class BackwardStaysGuard {
 public:
  BackwardStaysGuard() : stays_(detail::backward_stays, true) {}

 private:
  ScopedValue<bool> stays_;
};

/// One backward through one graph: the engine's working memory and its loop.
///
/// Nodes are numbered in the order they are found, and their state lies in arrays indexed by that
/// number, so a run with arrays that are large enough neither hashes nor allocates. The numbers are
/// stored in the nodes only while the arrays are built, under a process-wide lock; afterwards runs
/// of several threads, or nested in one thread, are independent of each other.
///
/// The thread that calls `run` executes the nodes of synchronous devices; those of an asynchronous
/// device go to that device's worker, unless there is a BackwardStaysGuard. Without asynchronous
/// devices only callbacks are locked.
///
/// On asynchronous devices a node runs on the stream of its forward. If a gradient comes from
/// another stream, the node's stream waits for an event, and the gradient's memory is recorded as
/// used on it. The current streams of the calling thread wait for the gradients of leaves and
/// captures.
class GraphRun {
 public:
  /// A gradient requested by `grad()`.
  struct Capture {
    Edge edge;
    Tensor destination;         ///< of a leaf's: where a derivative may compute it, or undefined
    Tensor result;              ///< undefined until a gradient arrives
    uint32_t next_of_node = 0;  ///< the next capture at its node, or kNowhere
  };

  /// Adds a root's edge and the gradient that enters there, which must match its metadata.
  void add_root(Edge edge, Tensor gradient);
  /// Requests the gradient at `edge` and limits the run to nodes that lead to captures; a sink that
  /// is captured does not accumulate.
  void capture(Edge edge, Tensor destination = {}) {
    captures_.push_back({std::move(edge), std::move(destination), {}});
  }
  /// Limits the run to nodes that lead to such sinks or to captures.
  void limit_to(Ref<Node> sink) { targets_.push_back(std::move(sink)); }

  /// Runs the backward. It is recorded if grad mode is on.
  void run(bool retain_graph);
  /// Runs one node on its worker's thread. Its exceptions are rethrown by `run`.
  void execute_on_worker(uint32_t slot) noexcept;

  /// Returns the run of which the calling thread executes a node. Throws AutogradError naming `op`
  /// when there is none.
  static GraphRun& of_this_thread(std::string_view op);
  /// Returns the run of which the calling thread executes a node, or null.
  static GraphRun* of_this_thread() noexcept;
  /// Returns the outermost of the backwards that this one is nested in, or this one.
  GraphRun& outermost() noexcept { return outer_ != nullptr ? outer_->outermost() : *this; }
  /// While alive, the thread counts as executing inside `run`, which waits for it; may be null.
  class Inside {
   public:
    explicit Inside(GraphRun* run) noexcept;

   private:
    ScopedValue<CurrentNode> current_;
  };
  /// Returns the node that the calling thread executes, or an empty reference.
  static Ref<Node> node_of_this_thread();
  /// Unique number of the run within the process.
  uint64_t id() const noexcept { return run_; }
  /// Whether the node runs, or its gradient is captured. May be called during the run.
  bool will_execute(const Node* node) const;
  /// Queues `callback`, which the thread that called `run` calls after all nodes.
  void add_callback(std::function<void()> callback);

  Capture& captured(size_t i) { return captures_[i]; }
  /// Drops all references to the graph, keeps the allocated arrays.
  void clear() noexcept;

 private:
  static constexpr uint32_t kNowhere = ~uint32_t{0};

  /// State of one node. `first_*` index the arrays of all nodes' edges and gradients.
  struct Slot {
    Node* node;
    uint32_t first_edge;
    uint32_t first_gradient;
    uint32_t contributions;  ///< edges that lead here, and roots
    uint32_t waiting;        ///< edges from which no gradient has arrived yet
    uint32_t first_capture;  ///< of its gradients, in captures_; kNowhere if there is none
    bool needed;             ///< leads to a capture or an accumulating sink
    bool applies;            ///< false: its gradient is only captured
    bool placed;             ///< a derivative has been given the destination of its gradient
    bool on_stream;          ///< its device is asynchronous
    DeviceWorker* worker;    ///< worker that runs it; null: the thread that called `run`
  };
  struct Ready {
    uint64_t sequence;
    uint32_t slot;
    friend bool operator<(const Ready& a, const Ready& b) { return a.sequence < b.sequence; }
  };

  /// Locks the mutex if workers take part, else does nothing.
  class Lock;

  void number_nodes();
  uint32_t number(Node* node);
  void mark_needed();
  void count_contributions();
  void place_nodes();
  void seed_roots() LS_REQUIRES(mutex_);
  void join_streams() const;
  void run_alone();
  void run_with_workers();
  void run_callbacks();
  uint32_t pop_ready() LS_REQUIRES(mutex_);
  void execute(uint32_t slot);
  void execute_here(uint32_t slot);
  Gradients apply(const Slot& slot, std::span<Tensor> incoming);
  class Arrived;
  class Early;
  bool send_early(const Slot& slot, size_t edge, Tensor& gradient);
  ArrivedSum take_arrived(const Slot& slot, size_t edge);
  void capture_gradients(const Slot& slot);
  bool wants_beyond(const Slot& slot, size_t count) const;
  void finish(uint32_t slot, Gradients outgoing);
  void deliver(const Node& from, uint32_t edge_slot, uint32_t input_nr, Tensor gradient);
  /// The place for the gradient that arrives at a slot, where the sink at the end of its only edges
  /// has one that no derivative was given yet.
  Tensor destination_at(uint32_t slot, uint32_t& sink) const;
  /// Returns it once: of several contributions to a sink the first is computed there, and deliver()
  /// adds the others to it.
  Tensor take_destination(uint32_t slot);
  /// Returns the destination of a sink's gradient that a derivative has been given, or undefined.
  Tensor place_in_use(const Slot& slot) const;
  /// The destination of a sink's gradient, whether it accumulates or is captured; may be undefined.
  Tensor destination_of(const Slot& sink) const;
  void make_ready(uint32_t slot) LS_REQUIRES(mutex_);

  uint64_t run_ = 0;
  GraphRun* outer_ = nullptr;  ///< the run that this one is nested in, or null
  std::vector<Slot> slots_;
  std::vector<uint32_t> edges_;    ///< slot that each edge leads to, or kNowhere
  std::vector<Tensor> gradients_;  ///< sums so far, one per output of each node
  std::vector<Capture> captures_;
  std::vector<Ref<Node>> targets_;
  struct Root {
    Edge edge;
    Tensor gradient;
  };
  std::vector<Root> roots_;
  bool has_destinations_ = false;
  bool has_streams_ = false;  ///< some slot is `on_stream`
  bool retain_graph_ = false;

  // See Lock. Of the above the mutex guards `waiting`, and `gradients_` of nodes that are not ready
  // yet.
  Mutex mutex_;
  CondVar changed_;
  bool has_workers_ = false;                        ///< does not change while nodes run
  std::vector<Ready> ready_ LS_GUARDED_BY(mutex_);  ///< heap
  uint32_t at_workers_ LS_GUARDED_BY(mutex_) = 0;   ///< given to workers and not come back
  std::exception_ptr error_ LS_GUARDED_BY(mutex_);  ///< the first
  /// Guarded without workers as well: those of a nested run add to the outermost one's.
  std::vector<std::function<void()>> callbacks_ LS_GUARDED_BY(mutex_);

  DeviceWorker* home_ = nullptr;  ///< the worker on whose thread `run` was called, if any
  ThreadState state_;
  const ActiveCapture* capture_ = nullptr;  ///< the calling thread's graph capture
  detail::AnomalyMode anomaly_;
};

/// Fits `gradient` to the metadata of an output: sums it to the shape it was expanded from and
/// casts it to the dtype. Throws AutogradError, naming `from`, when it cannot fit.
Tensor fit_gradient(const GradientMeta& meta, Tensor gradient, const std::string& from);

}  // namespace lockstep
