#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/node_hooks.h"
#include "core/dispatch/vjp.h"
#include "core/tensor/tensor.h"

namespace lockstep {

class Node;
struct ForwardSite;

namespace detail {
/// Set by AnomalyModeGuard (autograd/anomaly_mode.h).
struct AnomalyMode {
  bool enabled = false;
  bool check_nan = false;
};
inline thread_local constinit AnomalyMode anomaly_mode{};
}  // namespace detail

/// A tensor that a node keeps for backward.
struct SavedTensorInfo {
  std::string name;  ///< "self", "mat2", "result", ...
  Tensor tensor;     ///< undefined if saved-tensor hooks keep it
  size_t bytes = 0;  ///< bytes of its elements; 0 if saved-tensor hooks keep it
};

/// Destination of a gradient: the `input_nr`-th gradient that `node` takes. Empty for a tensor that
/// does not require grad.
struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;

  explicit operator bool() const noexcept { return static_cast<bool>(node); }
};

/// Shape, dtype, device and stream that the gradient of one result must have.
struct GradientMeta {
  Dims sizes;
  DType dtype = DType::kF32;
  Device device;
  int32_t stream = 0;  ///< id of the stream on which the result was made; backward runs there, too
  bool defined = false;  ///< false if the result carries no gradient

  GradientMeta() = default;
  explicit GradientMeta(const TensorImpl& impl)
      : sizes(impl.sizes),
        dtype(impl.dtype),
        device(impl.storage->device()),
        stream(current_stream(device).id),
        defined(true) {}
};

/// Says which gradients the engine requests from a node in one backward.
struct BackwardCall {
  uint64_t needs =
      ~uint64_t{0};  ///< bit i: the gradient for next edge i, of the first 64, is needed
  std::span<const Tensor>
      destinations;          ///< per next edge, memory for the gradient or undefined; may be empty
  bool frees_saved = false;  ///< the engine releases the saved tensors behind this call
};

/// One step of a recorded computation, run backwards: takes the gradients of a forward operator's
/// results and computes those of its arguments, which are passed along `next_edges`.
///
/// Edges and metadata do not change once the node is reachable from a tensor. The engine applies a
/// node once in a backward; two threads may apply one node at the same time when both retain the
/// graph. Graphs of any depth are freed without recursion.
class Node : public RefCounted {
 public:
  Node() : Node(next_sequence()) {}
  virtual ~Node();

  /// `grads` holds one gradient per result, undefined where none arrived, at least one defined; the
  /// node may move them out. Returns one per next edge, undefined meaning zero; unneeded ones at
  /// the end may be missing.
  virtual Gradients apply(std::span<Tensor> grads, const BackwardCall& call) = 0;
  /// PyTorch's name of the node: "AddmmBackward0", "AccumulateGrad", ...
  virtual std::string name() const = 0;
  /// Frees the tensors saved by forward; a later `apply` that needs them throws AutogradError.
  virtual void release_saved() {}
  /// The saved tensors, for inspection of graphs.
  virtual std::vector<SavedTensorInfo> saved_tensors() const { return {}; }
  /// For a sink: the tensor to write its gradient to, if that can be written directly.
  virtual Tensor destination() const { return {}; }
  /// For a node with a derivative that only changes the geometry: given the destination `place` of
  /// its argument's gradient, returns the view of it that is the destination of its result's
  /// gradient. Undefined for other nodes.
  virtual Tensor destination_through([[maybe_unused]] const Tensor& place) const { return {}; }

  std::span<const Edge> next_edges() const noexcept { return edges_; }
  /// Metadata of the gradients that `apply` takes, one per result.
  std::span<const GradientMeta> outputs() const noexcept { return outputs_; }
  /// Grows with every node of the process, so a node's number is above those of its next edges;
  /// sinks have the highest, because they should run as soon as they can.
  uint64_t sequence() const noexcept { return sequence_; }

  /// Null if the node has no hooks.
  NodeHooks* hooks() const noexcept { return hooks_.get(); }
  Ref<NodeHooks> make_hooks();
  /// Null unless it was recorded in anomaly mode.
  const ForwardSite* forward_site() const noexcept { return site_.get(); }

  // Only to be called while the node is built; see the class comment.
  void add_edge(Edge edge) { edges_.push_back(std::move(edge)); }
  /// Adds a result with the gradient metadata of `of` (a tensor), or, without argument, one
  /// that carries no gradient. Returns its number.
  template <class... T>
  uint32_t add_output(const T&... of) {
    outputs_.emplace_back(of...);
    return static_cast<uint32_t>(outputs_.size() - 1);
  }

 protected:
  static constexpr uint64_t kSinkSequence = ~uint64_t{0};
  explicit Node(uint64_t sequence) : sequence_(sequence) {
    if (detail::anomaly_mode.enabled) [[unlikely]]
      note_site();
  }

 private:
  friend class GraphRun;
  static uint64_t next_sequence() noexcept;
  void note_site();

  SmallVector<Edge, 3> edges_;
  SmallVector<GradientMeta, 1> outputs_;
  uint64_t sequence_;
  Ref<NodeHooks> hooks_;
  std::shared_ptr<const ForwardSite> site_;
  // Slot of this node in the run that is being prepared; guarded by the engine's lock.
  uint64_t run_ = 0;
  uint32_t slot_ = 0;
};

/// Releases a node, and the nodes that only it keeps alive, without recursion.
void drop(Ref<Node> node) noexcept;

/// A class name from an operator's: "addmm" -> "AddmmBackward0", "_softmax" -> "SoftmaxBackward0".
/// Overloads of one name are numbered.
std::string backward_name(const class Operator& op);

}  // namespace lockstep
