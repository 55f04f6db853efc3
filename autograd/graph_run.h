#pragma once

#include <vector>

#include "autograd/node.h"

namespace lockstep {

/// One backward through one graph: the engine's working memory and its loop.
///
/// Nodes are numbered in the order they are found, and everything about them lies in arrays by that
/// number, so a warm run neither hashes nor allocates. The numbers are stamped into the nodes only
/// while the arrays are made, under a lock of the process; runs of several threads, or nested in
/// one thread, do not disturb each other afterwards. Not thread-safe itself.
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
  };
  struct Ready {
    uint64_t sequence;
    uint32_t slot;
    friend bool operator<(const Ready& a, const Ready& b) { return a.sequence < b.sequence; }
  };

  void number_nodes();
  uint32_t number(Node* node);
  void mark_needed();
  void count_contributions();
  void seed_roots();
  void execute(uint32_t slot, bool retain_graph);
  void capture_gradients(uint32_t slot);
  void deliver(const Node& from, uint32_t edge_slot, uint32_t input_nr, Tensor gradient);
  Tensor destination_at(uint32_t slot) const;
  void make_ready(uint32_t slot);

  uint64_t run_ = 0;
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
};

/// `gradient` as the output `meta` of `node` needs it: summed to the shape it expands from, cast to
/// the dtype. Throws AutogradError, naming `from`, when it cannot fit.
Tensor fit_gradient(const GradientMeta& meta, Tensor gradient, const std::string& from);

}  // namespace lockstep
