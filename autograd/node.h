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
  Tensor tensor;     ///< undefined where hooks keep it
  size_t bytes = 0;  ///< of its elements; 0 where hooks keep it
};

/// Where a gradient goes: the `input_nr`-th gradient that `node` takes. Empty for a tensor that
/// does not require grad.
struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;

  explicit operator bool() const noexcept { return static_cast<bool>(node); }
};

/// What the gradient of one result must look like.
struct GradientMeta {
  Dims sizes;
  DType dtype = DType::kF32;
  Device device;
  int32_t stream = 0;    ///< of the device, on which the result was made and backward runs
  bool defined = false;  ///< false: that result carries no gradient

  GradientMeta() = default;
  explicit GradientMeta(const TensorImpl& impl)
      : sizes(impl.sizes),
        dtype(impl.dtype),
        device(impl.storage->device()),
        stream(current_stream(device).id),
        defined(true) {}
};

/// What the engine asks of a node in one backward.
struct BackwardCall {
  uint64_t needs = ~uint64_t{0};  ///< bit i: the gradient for next edge i is wanted
  std::span<const Tensor>
      destinations;  ///< per next edge, where the gradient must end; may be empty
};

/// One step of a recorded computation, run backwards: takes the gradients of a forward operator's
/// results and gives those of its arguments, which travel along `next_edges`.
///
/// Edges and metadata do not change once the node is reachable from a tensor. The engine never
/// applies one node twice at a time within one backward; two threads may apply one node at once
/// when both keep the graph. Graphs of any depth are freed without recursion.
class Node : public RefCounted {
 public:
  Node() : Node(next_sequence()) {}
  virtual ~Node();

  /// `grads` holds one gradient per result, undefined where none arrived, at least one defined; the
  /// node may move them out. Returns one per next edge, undefined meaning zero; trailing ones that
  /// nobody needs may be missing.
  virtual Gradients apply(std::span<Tensor> grads, const BackwardCall& call) = 0;
  /// "AddmmBackward0", "AccumulateGrad", ...: the field's names.
  virtual std::string name() const = 0;
  /// Drops the tensors kept from forward; a later `apply` that needs them is an AutogradError.
  virtual void release_saved() {}
  /// What the node keeps, for those who look at graphs.
  virtual std::vector<SavedTensorInfo> saved_tensors() const { return {}; }
  /// For a sink: the tensor that its gradient must end in, if it can be written at once.
  virtual Tensor destination() const { return {}; }
  /// For a node whose derivative only changes the geometry: given where the gradient of its
  /// argument must end, a view of that place with the geometry of its result; else undefined.
  virtual Tensor destination_through([[maybe_unused]] const Tensor& place) const { return {}; }

  std::span<const Edge> next_edges() const noexcept { return edges_; }
  /// One per gradient that `apply` takes.
  std::span<const GradientMeta> outputs() const noexcept { return outputs_; }
  /// Grows with every node of the process, so a node's number is above those of its next edges;
  /// sinks have the highest, because they should run as soon as they can.
  uint64_t sequence() const noexcept { return sequence_; }

  /// Null where there are none.
  NodeHooks* hooks() const noexcept { return hooks_.get(); }
  Ref<NodeHooks> make_hooks();
  /// Null unless it was recorded in anomaly mode.
  const ForwardSite* forward_site() const noexcept { return site_.get(); }

  // While a node is built; see the class comment.
  void add_edge(Edge edge) { edges_.push_back(std::move(edge)); }
  /// Adds a result whose gradient must look like `of` (a tensor), or that carries none. Returns its
  /// number.
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
  // Place of this node in the run that is being prepared; guarded by the engine's lock.
  uint64_t run_ = 0;
  uint32_t slot_ = 0;
};

/// Releases a node and whatever hangs below it without recursion.
void drop(Ref<Node> node) noexcept;

/// A class name from an operator's: "addmm" -> "AddmmBackward0", "_softmax" -> "SoftmaxBackward0".
/// Overloads of one name are numbered.
std::string backward_name(const class Operator& op);

}  // namespace lockstep
