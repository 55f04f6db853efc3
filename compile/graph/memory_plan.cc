#include "compile/graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/check.h"
#include "core/memory/units.h"

namespace lockstep::compiler {

namespace {

/// When the memory of a result is in use: from the node that makes it up to and with the last one
/// that reads it, or a view of it. The nodes of a group run together.
struct Life {
  ValueId value = kAbsent;
  size_t bytes = 0;
  size_t first = 0;
  size_t last = 0;
  bool has_memory = false;  ///< not a view, nor something that stays within a group
  bool may_share = true;
};

/// Bytes as the device's allocator lends them (core/memory/caching_allocator.h).
size_t lent_bytes(const ValueType& type) {
  return round_up(static_cast<size_t>(bytes_of(type)), type.device == kCPU ? 64 : 512);
}

/// The first and the last node of the group of each node.
struct Together {
  explicit Together(const std::vector<Node>& nodes) : first(nodes.size()), last(nodes.size()) {
    const auto goes_on = [&](size_t i) {
      return nodes[i].group != -1 && nodes[i].group == nodes[i - 1].group;
    };
    for (size_t i = 0; i < nodes.size(); ++i) first[i] = i > 0 && goes_on(i) ? first[i - 1] : i;
    for (size_t i = nodes.size(); i-- > 0;) {
      last[i] = i + 1 < nodes.size() && goes_on(i + 1) ? last[i + 1] : i;
    }
  }

  std::vector<size_t> first, last;
};

/// Whether the node's kernels write and read nothing but the memory of results and operands, on the
/// current stream. Other operators may return an operand, or hand it to another stream.
bool runs_kernels_alone(const Node& node) {
  return node.group != -1 || node.op->kind() == OpKind::kStructured;
}

/// How many tensors the node writes that are arguments: their results come last.
size_t count_written(const Node& node) {
  size_t count = 0;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    if (node.op->schema().arguments[i].written) count += node.arguments[i].values.size();
  }
  return count;
}

/// Has the result of a node that writes an argument lie in its memory, as it may, and views in that
/// of what they are views of.
std::vector<ValueId> memory_of_values(const Graph& graph) {
  std::vector<ValueId> memory(graph.values.size());
  std::iota(memory.begin(), memory.end(), 0);
  for (const Node& node : graph.nodes) {
    follow_views({&node, 1}, memory);
    if (!node.op->schema().is_mutable()) continue;
    size_t next = node.results.size() - count_written(node);
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      if (!node.op->schema().arguments[i].written) continue;
      for (const ValueId id : node.arguments[i].values) {
        const ValueId result = node.results[next++];
        if (id == kAbsent || result == kAbsent) continue;
        memory[static_cast<size_t>(result)] = memory[static_cast<size_t>(id)];
      }
    }
  }
  return memory;
}

/// The lives of all results that have memory, in the order in which nodes make them.
std::vector<Life> lives_of(const Graph& graph) {
  const std::vector<ValueId> memory = memory_of_values(graph);
  const Together together(graph.nodes);
  std::vector<Life> by_value(graph.values.size());
  const auto life_of = [&](ValueId id) -> Life& {
    return by_value[static_cast<size_t>(memory[static_cast<size_t>(id)])];
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    each_read(node, [&](ValueId id) {
      Life& life = life_of(id);
      // What a group alone reads of its own results is there for a part of them at a time.
      life.has_memory = life.has_memory || (life.value != kAbsent && life.last < i);
      life.last = std::max(life.last, together.last[i]);
      life.may_share =
          life.may_share && (runs_kernels_alone(node) || node.op->kind() == OpKind::kView);
    });
    for (const ValueId id : node.results) {
      if (id == kAbsent || memory[static_cast<size_t>(id)] != id) continue;
      Life& life = life_of(id);
      life.value = id;
      life.bytes = lent_bytes(type_of(graph, id));
      life.first = together.first[i];
      life.last = together.last[i];
      life.has_memory = node.group == -1;
      life.may_share = runs_kernels_alone(node) && !node.runs_once && !node.op->allocates_only() &&
                       life.bytes > 0;
    }
  }
  const auto survives = [&](ValueId id) {
    if (id == kAbsent) return;
    Life& life = life_of(id);
    life.has_memory = true;
    life.may_share = false;
    life.last = graph.nodes.size();
  };
  for (const ValueId id : graph.outputs) survives(id);
  for (const Graph::Write& write : graph.writes) survives(write.value);
  std::erase_if(by_value, [](const Life& l) { return l.value == kAbsent || !l.has_memory; });
  std::ranges::sort(by_value, {}, &Life::first);
  return by_value;
}

/// How many bytes are in use while each node runs.
class Usage {
 public:
  Usage(const std::vector<Life>& lives, size_t nodes) : bytes_(nodes + 1) {
    for (const Life& life : lives) add(life.first, life.last, life.bytes);
    peak_ = std::ranges::max(bytes_);
  }

  /// Whether the peak stays where it is when that much more is in use from `first` to `last`.
  bool has_room(size_t first, size_t last, size_t more) const {
    return more == 0 || std::all_of(at(first), at(last) + 1,
                                    [&](size_t bytes) { return bytes + more <= peak_; });
  }
  void add(size_t first, size_t last, size_t more) {
    for (size_t i = first; i <= last; ++i) bytes_[i] += more;
  }

 private:
  std::vector<size_t>::const_iterator at(size_t node) const {
    return bytes_.begin() + static_cast<std::ptrdiff_t>(node);
  }

  std::vector<size_t> bytes_;
  size_t peak_ = 0;
};

/// A buffer while values are dealt out to it.
struct Shared {
  Device device;
  size_t bytes;
  size_t last;
  std::vector<ValueId> values;
};

/// The buffer that the value may have next, at the least waste; null if it needs one of its own.
Shared* find_buffer(std::vector<Shared>& buffers, Device device, const Life& life,
                    const Usage& usage) {
  Shared* found = nullptr;
  for (Shared& each : buffers) {
    const bool fits = each.device == device && each.last < life.first && each.bytes >= life.bytes &&
                      (found == nullptr || each.bytes < found->bytes);
    if (fits && usage.has_room(each.last + 1, life.first - 1, each.bytes) &&
        usage.has_room(life.first, life.last, each.bytes - life.bytes)) {
      found = &each;
    }
  }
  return found;
}

}  // namespace

Graph plan_memory(Graph graph) {
  graph.buffers.clear();
  const std::vector<Life> lives = lives_of(graph);
  Usage usage(lives, graph.nodes.size());
  std::vector<Shared> buffers;
  for (const Life& life : lives) {
    if (!life.may_share) continue;
    const Device device = type_of(graph, life.value).device;
    Shared* const found = find_buffer(buffers, device, life, usage);
    if (found == nullptr) {
      buffers.push_back({device, life.bytes, life.last, {life.value}});
      continue;
    }
    usage.add(found->last + 1, life.first - 1, found->bytes);
    usage.add(life.first, life.last, found->bytes - life.bytes);
    found->last = life.last;
    found->values.push_back(life.value);
  }
  std::erase_if(buffers, [](const Shared& buffer) { return buffer.values.size() < 2; });
  if (!buffers.empty()) graph.buffers.assign(graph.values.size(), kOwnMemory);
  for (size_t b = 0; b < buffers.size(); ++b) {
    for (const ValueId id : buffers[b].values) {
      graph.buffers[static_cast<size_t>(id)] = static_cast<int32_t>(b);
    }
  }
  return graph;
}

std::vector<PlannedBuffer> planned_buffers(const Graph& graph) {
  std::vector<PlannedBuffer> buffers;
  if (graph.buffers.empty()) return buffers;
  for (const Life& life : lives_of(graph)) {
    const int32_t number = graph.buffers[static_cast<size_t>(life.value)];
    if (number == kOwnMemory) continue;
    buffers.resize(std::max(buffers.size(), static_cast<size_t>(number) + 1));
    PlannedBuffer& buffer = buffers[static_cast<size_t>(number)];
    buffer.device = type_of(graph, life.value).device;
    buffer.bytes = std::max(buffer.bytes, life.bytes);
    buffer.last_node = std::max(buffer.last_node, life.last);
    ++buffer.values;
  }
  return buffers;
}

void check_buffers(const Graph& graph) {
  if (graph.buffers.empty()) return;
  LS_CHECK(graph.buffers.size() == graph.values.size(), Error,
           "[compile] {} numbers of buffers: expected one for each of {} values.",
           graph.buffers.size(), graph.values.size());
  const auto sharing =
      std::ranges::count_if(graph.buffers, [](int32_t b) { return b != kOwnMemory; });
  std::map<int32_t, Life> before;
  std::ptrdiff_t found = 0;
  for (const Life& life : lives_of(graph)) {
    const int32_t number = graph.buffers[static_cast<size_t>(life.value)];
    if (number == kOwnMemory) continue;
    ++found;
    LS_CHECK(life.may_share && number >= 0 && number < sharing, Error,
             "[compile] %{} cannot be in buffer {}: it lives on behind the run, or other operators "
             "than kernels make or read it.",
             life.value, number);
    const auto [last, is_first] = before.try_emplace(number, life);
    if (is_first) continue;
    LS_CHECK(type_of(graph, life.value).device == type_of(graph, last->second.value).device, Error,
             "[compile] %{} and %{} are in one buffer and on two devices.", last->second.value,
             life.value);
    LS_CHECK(last->second.last < life.first, Error,
             "[compile] %{} and %{} live at the same time in one buffer.", last->second.value,
             life.value);
    last->second = life;
  }
  LS_CHECK(found == sharing, Error,
           "[compile] {} values are in buffers and have no memory of their own: inputs, views, or "
           "what stays within a group.",
           sharing - found);
}

}  // namespace lockstep::compiler
