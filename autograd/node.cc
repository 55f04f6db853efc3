#include "autograd/node.h"

#include <atomic>
#include <cctype>

#include "core/dispatch/dispatcher.h"

namespace lockstep {

namespace {

using Pending = SmallVector<Ref<Node>, 16>;

// Nodes waiting to be released by the outermost `drop` of this thread.
thread_local constinit Pending* t_pending = nullptr;

// Rank of an overload in PyTorch's list of derivatives, which numbers the overloads of a name.
int overload_rank(std::string_view overload) {
  if (overload.empty()) return 0;
  if (overload == "Tensor") return 1;
  if (overload == "Tensor_Scalar" || overload == "Tensor_Tensor") return 2;
  return overload == "Scalar" ? 3 : 4;
}

bool overload_before(std::string_view a, std::string_view b) {
  const int rank_a = overload_rank(a);
  const int rank_b = overload_rank(b);
  return rank_a != rank_b ? rank_a < rank_b : a < b;
}

}  // namespace

uint64_t Node::next_sequence() noexcept {
  static constinit std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Node::~Node() {
  for (Edge& edge : edges_) drop(std::move(edge.node));
}

Ref<NodeHooks> Node::make_hooks() {
  if (!hooks_) hooks_ = make_ref<NodeHooks>();
  return hooks_;
}

void drop(Ref<Node> node) noexcept {
  if (!node) return;
  if (node->use_count() > 1) return;  // not the last reference: nothing below is freed
  if (t_pending != nullptr) {
    t_pending->push_back(std::move(node));
    return;
  }
  Pending pending;
  t_pending = &pending;
  pending.push_back(std::move(node));
  while (!pending.empty()) {
    Ref<Node> next = std::move(pending.back());
    pending.pop_back();
    next.reset();  // ~Node moves its edges to `pending`
  }
  t_pending = nullptr;
}

std::string backward_name(const Operator& op) {
  const Schema& schema = op.root().schema();
  std::string name;
  bool start = true;
  for (const char c : schema.name) {
    if (c == '_') {
      start = true;
      continue;
    }
    name += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    start = std::isalpha(static_cast<unsigned char>(c)) == 0;
  }
  if (name.ends_with("Forward")) name.resize(name.size() - 7);
  int number = 0;
  for (const Operator* other : dispatcher().operators()) {
    const bool sibling = &other->root() == other && other->schema().name == schema.name;
    if (sibling && other->derivative().exists() &&
        overload_before(other->schema().overload, schema.overload)) {
      ++number;
    }
  }
  return name + "Backward" + std::to_string(number);
}

}  // namespace lockstep
