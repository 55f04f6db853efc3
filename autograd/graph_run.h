#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "autograd/node.h"
#include "core/dispatch/thread_state.h"
#include "core/tensor/stream.h"

namespace lockstep {

struct ActiveCapture;

class DeviceWorker;

/// One backward through one graph: the engine's working memory and its loop.
///
/// Nodes are numbered in the order they are found, and everything about them lies in arrays by that
/// number, so a warm run neither hashes nor allocates. The numbers are stamped into the nodes only
/// while the arrays are made, under a lock of the process; runs of several threads, or nested in
/// one thread, do not disturb each other afterwards.
///
/// The thread that runs it executes the nodes of synchronous devices; those of an asynchronous
/// device go to that device's worker. Where there are none, nothing is locked.
///
/// On asynchronous devices a node runs on the stream of its forward. A gradient that comes from
/// another stream is waited for by an event, and its memory is kept for the stream that takes it.
/// The current streams of the thread that runs it wait for whatever ended in leaves and captures.
class GraphRun {
 public:
  /// What happens to a gradient that was asked for by `grad()`.
  struct Capture {
    Edge edge;
    Tensor result;  ///< undefined while nothing arrived
  };

  /// Adds a root's edge and the gradient that enters there, which must fit it.
  void add_root(Edge edge, Tensor gradient);
  /// Runs only what leads to `captures`; sinks among them do not accumulate.
  void capture(Edge edge) { captures_.push_back({std::move(edge), Tensor()}); }
  /// Runs only what leads to these sinks and to the captures.
  void limit_to(Ref<Node> sink) { targets_.push_back(std::move(sink)); }

  /// Runs everything. Whether the backward is recorded is the thread's grad mode.
  void run(bool retain_graph);
  /// Runs one node, on its worker's thread. What it throws, `run` rethrows.
  void execute_on_worker(uint32_t slot) noexcept;

  /// The run of which the calling thread executes a node. Throws AutogradError naming `op` where
  /// there is none.
  static GraphRun& of_this_thread(std::string_view op);
  /// The same, or null.
  static GraphRun* of_this_thread() noexcept;
  /// The backward that this one, nested in a hook or a derivative, is part of; itself where it is
  /// not nested.
  GraphRun& outermost() noexcept { return outer_ != nullptr ? outer_->outermost() : *this; }
  /// While alive, the thread is inside `run`, which waits for it; null is none.
  class Inside {
   public:
    explicit Inside(GraphRun* run) noexcept;
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    GraphRun* saved_run_;
    Node* saved_node_;
  };
  /// The node that the calling thread executes, or empty.
  static Ref<Node> node_of_this_thread();
  /// Different for every run of the process.
  uint64_t id() const noexcept { return run_; }
  /// Whether the node runs, or its gradient was asked for. May be called while the run goes on.
  bool will_execute(const Node* node) const;
  /// Has `callback` called by the thread of `run` after all nodes.
  void add_callback(std::function<void()> callback);

  Capture& captured(size_t i) { return captures_[i]; }
  /// Forgets the graph, keeps the memory.
  void clear() noexcept;

 private:
  static constexpr uint32_t kNowhere = ~uint32_t{0};

  /// State of one node. `first_*` index the arrays of all nodes' edges and gradients.
  struct Slot {
    Node* node;
    uint32_t first_edge;
    uint32_t first_gradient;
    uint32_t contributions;  ///< edges that lead here, and roots
    uint32_t waiting;        ///< edges over which nothing has come yet
    bool needed;             ///< leads to something asked for
    bool applies;            ///< false: its gradient is only captured
    bool on_stream;          ///< its device is asynchronous
    DeviceWorker* worker;    ///< whose thread runs it; null: the one of `run`
  };
  struct Ready {
    uint64_t sequence;
    uint32_t slot;
    friend bool operator<(const Ready& a, const Ready& b) { return a.sequence < b.sequence; }
  };

  /// A lock where workers take part, else nothing.
  class Lock;

  void number_nodes();
  uint32_t number(Node* node);
  void mark_needed();
  void count_contributions();
  void place_nodes();
  void seed_roots();
  void join_streams() const;
  void run_alone();
  void run_with_workers();
  void run_callbacks();
  uint32_t pop_ready();
  void execute(uint32_t slot);
  void execute_here(uint32_t slot);
  Gradients apply(const Slot& slot, std::span<Tensor> incoming);
  void capture_gradients(uint32_t slot);
  bool wants_beyond(const Slot& slot, size_t count) const;
  void finish(uint32_t slot, Gradients outgoing);
  void deliver(const Node& from, uint32_t edge_slot, uint32_t input_nr, Tensor gradient);
  Tensor destination_at(uint32_t slot) const;
  void make_ready(uint32_t slot);

  uint64_t run_ = 0;
  GraphRun* outer_ = nullptr;  ///< the run in which it was called
  std::vector<Slot> slots_;
  std::vector<uint32_t> edges_;    ///< slot that each edge leads to, or kNowhere
  std::vector<Tensor> gradients_;  ///< sums so far, one per output of each node
  std::vector<Ready> ready_;       ///< heap
  std::vector<Capture> captures_;
  std::vector<uint32_t> capture_slots_;
  std::vector<Ref<Node>> targets_;
  struct Root {
    Edge edge;
    Tensor gradient;
  };
  std::vector<Root> roots_;
  bool has_destinations_ = false;
  bool has_streams_ = false;  ///< some slot is `on_stream`
  bool retain_graph_ = false;
  std::vector<std::function<void()>> callbacks_;

  // While workers take part, mutex_ guards them, and of the above what changes while nodes run:
  // `waiting`, `gradients_` of nodes that are not ready yet, `ready_` and `callbacks_`.
  bool has_workers_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t at_workers_ = 0;       ///< nodes given to workers that have not come back
  std::exception_ptr error_;      ///< the first
  DeviceWorker* home_ = nullptr;  ///< the worker on whose thread `run` was called, if any
  ThreadState state_;
  const ActiveCapture* capture_ = nullptr;  ///< that the calling thread takes part in
  detail::AnomalyMode anomaly_;
};

/// `gradient` as the output `meta` of `node` needs it: summed to the shape it expands from, cast to
/// the dtype. Throws AutogradError, naming `from`, when it cannot fit.
Tensor fit_gradient(const GradientMeta& meta, Tensor gradient, const std::string& from);

}  // namespace lockstep
