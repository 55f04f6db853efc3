#include "compile/recomputation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "compile/alternatives.h"
#include "compile/min_cut.h"
#include "compile/passes.h"
#include "core/dispatch/op_counter.h"

namespace lockstep::compiler {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// So many floating-point operations take as long as to move a byte: 250 GFLOP/s beside 25 GB/s, as
/// of a few cores. On a GPU it is some hundred, where products are even cheaper to do again.
constexpr double kOperationsPerByte = 10;
/// A call costs as much besides as to move so many bytes: a few microseconds.
constexpr double kBytesPerCall = 64 * 1024;
/// A value of at most so many bytes that depends on constants alone is made once by fold_constants
/// (compile/passes.h).
constexpr int64_t kSmallConstantBytes = int64_t{1} << 20;
/// The price of a byte is looked for between these powers of two. At the lowest nothing is called
/// again but what costs nothing.
constexpr double kLowestPower = -20;
constexpr double kHighestPower = 40;

/// Returns a tensor of the value's type without memory.
Tensor shape_of(const Graph& graph, ValueId id) {
  if (id == kAbsent) return {};
  const ValueType& type = type_of(graph, id);
  return empty_strided_tensor(type.sizes, type.strides, type.dtype, kMeta);
}

/// Returns what a call of the node costs, in bytes moved.
double cost_of(const Graph& graph, const Node& node) {
  std::vector<Tensor> tensors;
  for (const NodeArgument& argument : node.arguments) {
    for (const ValueId id : argument.values) tensors.push_back(shape_of(graph, id));
  }
  std::vector<Value> arguments = argument_values(node.arguments, tensors);
  Stack stack(arguments);
  for (const ValueId id : node.results) {
    if (id != kAbsent) stack.results().push_back(Value(shape_of(graph, id)));
  }
  const OpCount count = count_call(*node.op, stack);
  return kBytesPerCall + static_cast<double>(count.bytes) +
         static_cast<double>(count.flops) / kOperationsPerByte;
}

/// What a cut keeps, and the calls that it makes again, by their number in Choice.
struct Cut {
  std::vector<ValueId> kept;
  std::vector<size_t> calls;
  double cost = 0;    ///< of the calls
  int64_t bytes = 0;  ///< of what is kept
};

/// The values and calls of forward, and what each costs. Calls are its nodes, and behind them the
/// alternatives to these.
class Choice {
 public:
  Choice(const Graph& forward, const std::vector<ValueId>& needs,
         const std::vector<ValueId>& lives_on)
      : forward_(forward),
        needs_(needs),
        calls_(forward.nodes),
        replaces_(forward.nodes.size(), kNone),
        maker_(forward.values.size(), kNone),
        memory_(forward.values.size()),
        bytes_(forward.values.size(), 0),
        may_keep_(forward.values.size(), true),
        is_constant_(forward.values.size(), false) {
    std::iota(memory_.begin(), memory_.end(), 0);
    follow_views(forward.nodes, memory_);
    for (size_t i = 0; i < forward.nodes.size(); ++i) add_node(i);
    for (size_t i = 0; i < forward.nodes.size(); ++i) add_alternative(i);
    for (size_t id = 0; id < bytes_.size(); ++id) {
      const bool costs = std::ranges::find(lives_on, memory_[id]) == lives_on.end();
      if (costs) bytes_[id] = bytes_of(type_of(forward, memory_[id]));
    }
    for (const Graph::Write& write : forward.writes) {
      may_keep_[static_cast<size_t>(write.input)] = false;
    }
    // The caller may change what it gets.
    const std::vector<bool> reaches_caller = reach_the_caller(forward);
    for (size_t id = 0; id < may_keep_.size(); ++id) {
      if (reaches_caller[id]) may_keep_[id] = false;
    }
    for (const ValueId id : needs) may_keep_[static_cast<size_t>(id)] = true;
  }

  /// The least cost where a byte that is kept costs `price` bytes moved, and the `always` are kept.
  Cut at(double price, const std::vector<ValueId>& always = {}) const {
    // Nodes of the network: calls, values, source and sink. What is on the source's side is done
    // again, or must be there in backward.
    const size_t values = calls_.size();
    const size_t source = values + forward_.values.size();
    const size_t sink = source + 1;
    FlowNetwork network(sink + 1);
    for (size_t i = 0; i < calls_.size(); ++i) {
      network.add_arc(i, sink, cost_[i]);
      each_read(calls_[i], [&](ValueId id) {
        network.add_arc(i, values + static_cast<size_t>(id), kInfinite);
      });
    }
    for (size_t id = 0; id < forward_.values.size(); ++id) {
      const bool is_kept = std::ranges::find(always, static_cast<ValueId>(id)) != always.end();
      const double cost = is_kept ? 0 : price * static_cast<double>(bytes_[id]);
      network.add_arc(values + id, maker_[id] == kNone ? sink : maker_[id],
                      may_keep_[id] ? cost : kInfinite);
    }
    for (const ValueId id : needs_) {
      network.add_arc(source, values + static_cast<size_t>(id), kInfinite);
    }
    const std::vector<bool> side = network.source_side(source, sink);
    Cut cut;
    for (size_t i = 0; i < calls_.size(); ++i) {
      // What the node itself makes needs no alternative.
      if (!side[i] || (replaces_[i] != kNone && side[replaces_[i]])) continue;
      cut.calls.push_back(i);
      cut.cost += cost_[i];
    }
    for (size_t id = 0; id < forward_.values.size(); ++id) {
      const auto is_called = [&](size_t call) { return call != kNone && side[call]; };
      const size_t maker = maker_[id];
      const bool is_made = is_called(maker) || (maker != kNone && is_called(replaces_[maker]));
      if (side[values + id] && !is_made) cut.kept.push_back(static_cast<ValueId>(id));
    }
    cut.bytes = memory_bytes(cut.kept);
    return cut;
  }

  /// Returns those results of calls that are made again that may be kept; those of the dearest
  /// calls come first.
  std::vector<ValueId> made_again(const Cut& cut) const {
    std::vector<size_t> dearest = cut.calls;
    std::ranges::stable_sort(dearest, std::greater(), [&](size_t call) { return cost_[call]; });
    std::vector<ValueId> made;
    for (const size_t i : dearest) {
      for (const ValueId id : calls_[i].results) {
        if (id != kAbsent && may_keep_[static_cast<size_t>(id)]) made.push_back(id);
      }
    }
    return made;
  }

  Recomputation recomputation(const Cut& cut) const {
    Recomputation chosen{
        .kept = cut.kept, .bytes = cut.bytes, .bytes_of_needed = bytes_of_needed()};
    for (const size_t i : cut.calls) chosen.nodes.push_back(calls_[i]);
    return chosen;
  }
  int64_t bytes_of_needed() const { return memory_bytes(needs_); }

 private:
  static constexpr size_t kNone = ~size_t{0};

  void add_node(size_t i) {
    const Node& node = forward_.nodes[i];
    const bool is_view = node.op->kind() == OpKind::kView;
    const bool is_constant = is_small_constant(node);
    cost_.push_back(node.draws_random_numbers() ? kInfinite
                    : is_constant               ? 0
                                                : cost_of(forward_, node));
    for (const ValueId id : node.results) {
      if (id == kAbsent) continue;
      const auto at = static_cast<size_t>(id);
      maker_[at] = i;
      is_constant_[at] = is_constant;
      if (is_view) may_keep_[at] = false;  // what it is a view of is kept instead
    }
  }

  void add_alternative(size_t node) {
    std::optional<Node> alternative = alternative_of(forward_.nodes[node]);
    if (!alternative || cost_[node] == 0) return;
    maker_[static_cast<size_t>(alternative->results[0])] = calls_.size();
    replaces_.push_back(node);
    cost_.push_back(cost_of(forward_, *alternative));
    calls_.push_back(std::move(*alternative));
  }

  bool is_small_constant(const Node& node) const {
    bool is_constant = !node.draws_random_numbers() && !node.op->schema().is_mutable();
    each_read(node, [&](ValueId id) {
      is_constant = is_constant && is_constant_[static_cast<size_t>(id)];
    });
    return is_constant && std::ranges::all_of(node.results, [&](ValueId id) {
             return id != kAbsent && bytes_of(type_of(forward_, id)) <= kSmallConstantBytes;
           });
  }

  int64_t memory_bytes(const std::vector<ValueId>& ids) const {
    std::vector<ValueId> memories;
    for (const ValueId id : ids) memories.push_back(memory_[static_cast<size_t>(id)]);
    std::ranges::sort(memories);
    const auto repeated = std::ranges::unique(memories);
    memories.erase(repeated.begin(), repeated.end());
    int64_t bytes = 0;
    for (const ValueId id : memories) bytes += bytes_[static_cast<size_t>(id)];
    return bytes;
  }

  const Graph& forward_;
  const std::vector<ValueId>& needs_;
  std::vector<Node> calls_;
  std::vector<size_t> replaces_;   ///< by call: the node to which it is the alternative
  std::vector<double> cost_;       ///< by call
  std::vector<size_t> maker_;      ///< by value: the call that makes it for the least
  std::vector<ValueId> memory_;    ///< by value: that of which it is a view
  std::vector<int64_t> bytes_;     ///< by value: of its memory
  std::vector<bool> may_keep_;     ///< by value
  std::vector<bool> is_constant_;  ///< by value
};

/// Keeps more than the cut does where the budget allows it: a price has no values between those of
/// two cuts. The results of the dearest calls come first.
Cut fill(const Choice& choice, double price, Cut cut, int64_t most) {
  constexpr size_t kMostTries = 64;  // each is a cut
  std::vector<ValueId> made = choice.made_again(cut);
  made.resize(std::min(made.size(), kMostTries));
  std::vector<ValueId> always;
  for (const ValueId id : made) {
    always.push_back(id);
    Cut tried = choice.at(price, always);
    if (tried.bytes <= most && tried.cost < cut.cost) {
      cut = std::move(tried);
    } else {
      always.pop_back();
    }
  }
  return cut;
}

}  // namespace

Recomputation choose_recomputed(const Graph& forward, const std::vector<ValueId>& needs,
                                const std::vector<ValueId>& lives_on, double budget) {
  const Choice choice(forward, needs, lives_on);
  const auto most = static_cast<int64_t>(budget * static_cast<double>(choice.bytes_of_needed()));
  double low = kLowestPower, high = kHighestPower;
  while (budget < 1 && high - low > 0.1) {
    const double middle = (low + high) / 2;
    (choice.at(std::exp2(middle)).bytes <= most ? high : low) = middle;
  }
  const double price = std::exp2(budget < 1 ? high : low);
  return choice.recomputation(fill(choice, price, choice.at(price), most));
}

std::vector<Node> with_recomputed(const std::vector<Node>& again, std::vector<Node> nodes,
                                  const std::vector<ValueId>& results) {
  std::unordered_map<ValueId, size_t> maker;
  for (size_t i = 0; i < again.size(); ++i) {
    for (const ValueId id : again[i].results) maker[id] = i;
  }
  std::vector<Node> all;
  std::vector<bool> is_placed(again.size(), false);
  const auto place = [&](auto& self, ValueId id) -> void {
    const auto made = maker.find(id);
    if (id == kAbsent || made == maker.end() || is_placed[made->second]) return;
    is_placed[made->second] = true;
    const Node& node = again[made->second];
    each_read(node, [&](ValueId read) { self(self, read); });
    all.push_back(node);
  };
  for (Node& node : nodes) {
    each_read(node, [&](ValueId id) { place(place, id); });
    all.push_back(std::move(node));
  }
  for (const ValueId id : results) place(place, id);
  return all;
}

}  // namespace lockstep::compiler
