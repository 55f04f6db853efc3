#include "autograd/graph_run.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/device_worker.h"
#include "autograd/grad_mode.h"
#include "autograd/graph_run_lock.h"
#include "autograd/ownership.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/phase.h"
#include "core/device/active_capture.h"
#include "core/device/copies.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/event.h"
#include "core/tensor/memory_format.h"

namespace lockstep {

namespace {

/// Guards the stamps in the nodes of every graph.
constinit Mutex g_stamps;
uint64_t g_last_run LS_GUARDED_BY(g_stamps) = 0;

// A fork while another thread numbers its nodes must not leave the child a locked mutex.
[[maybe_unused]] const bool kStampsPreparedForFork =
    pthread_atfork([]() LS_ACQUIRE(g_stamps) { g_stamps.lock(); },
                   []() LS_RELEASE(g_stamps) { g_stamps.unlock(); },
                   []() LS_RELEASE(g_stamps) { g_stamps.unlock(); }) == 0;

bool expands_to(IntList from, IntList to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[lead + i] && from[i] != 1) return false;
  }
  return true;
}

Stream stream_of(const GradientMeta& meta) { return {meta.device, meta.stream}; }

/// Makes a gradient of this thread's current stream usable on the stream of `meta`, which may be
/// the gradient itself or a copy. If it is shared, another owner may be the only one before that
/// stream has read it, and then adds to it in place: the stream gets a copy, unless the gradient is
/// at `destination`, which may be undefined.
Tensor hand_over(const GradientMeta& meta, Tensor gradient, const Tensor& destination = {}) {
  const Stream made_on = current_stream(meta.device);
  const Stream taken_on = stream_of(meta);
  if (made_on == taken_on) return gradient;
  const bool stays =
      is_grad_enabled() || (destination.defined() && same_place(gradient, destination));
  if (!stays && !is_exclusive(gradient)) {
    count_hidden_copy("backward", gradient, "two streams take it, and one may add to it in place");
    gradient = gradient.clone();
  }
  taken_on.wait_stream(made_on);
  gradient.record_stream(taken_on);
  return gradient;
}

/// Whether a + b, computed elsewhere, lies in memory as `into` does, one of the two. Who owns them
/// must not decide that: sums of it go along memory, and a record owns what eager backward does
/// not.
bool has_layout_of_sum(const Tensor& into, const Tensor& a, const Tensor& b) {
  if (same(a.strides(), b.strides())) return true;
  const IntList strides[] = {a.strides(), b.strides()};
  return same(into.strides(), dense_strides(into.sizes(), strides));
}

/// Returns a + b, computed in place in whichever of the two is at `destination`, which may be
/// undefined, or has no other owner and the layout of the sum.
Tensor sum_of(Tensor a, Tensor b, const Tensor& destination = {}) {
  if (!is_grad_enabled()) {
    const auto writable = [&](const Tensor& into) {
      return (destination.defined() && same_place(into, destination)) ||
             (is_exclusive(into) && is_dense(into.sizes(), into.strides()) &&
              has_layout_of_sum(into, a, b));
    };
    if (writable(a)) {
      a.add_(b);
      return a;
    }
    if (writable(b)) {
      b.add_(a);
      return b;
    }
  }
  return a.add(b);
}

}  // namespace

Tensor fit_gradient(const GradientMeta& meta, Tensor gradient, const std::string& from) {
  if (!same(gradient.sizes(), meta.sizes)) {
    LS_CHECK(expands_to(meta.sizes, gradient.sizes()), AutogradError,
             "[{}] a gradient has the wrong shape: expected {}, got {}.", from,
             to_string(meta.sizes), gradient.shape());
    gradient = sum_to_size(gradient, meta.sizes);
  }
  LS_CHECK(is_floating(gradient.dtype()), AutogradError,
           "[{}] a gradient has the wrong dtype: expected {}, got {}.", from, to_string(meta.dtype),
           to_string(gradient.dtype()));
  LS_CHECK(gradient.device() == meta.device, AutogradError,
           "[{}] a gradient is on the wrong device: expected {}, got {}.", from,
           to_string(meta.device), to_string(gradient.device()));
  return gradient.dtype() == meta.dtype ? gradient : gradient.to(meta.dtype);
}

void GraphRun::add_root(Edge edge, Tensor gradient) {
  roots_.push_back({std::move(edge), std::move(gradient)});
}

void GraphRun::clear() noexcept {
  mutex_.assert_held();  // no thread is in the run
  slots_.clear();
  edges_.clear();
  gradients_.clear();
  ready_.clear();
  captures_.clear();
  targets_.clear();
  roots_.clear();
  callbacks_.clear();
  has_destinations_ = false;
  has_workers_ = has_streams_ = false;
  error_ = nullptr;
}

uint32_t GraphRun::number(Node* node) {
  if (node->run_ != run_) {
    node->run_ = run_;
    node->slot_ = static_cast<uint32_t>(slots_.size());
    slots_.push_back({node, 0, 0, 0, 0, kNowhere, true, true, false, false, nullptr});
  }
  return node->slot_;
}

void GraphRun::number_nodes() {
  const MutexLock lock(g_stamps);
  run_ = ++g_last_run;
  uint32_t gradients = 0;
  for (const Root& root : roots_) number(root.edge.node.get());
  for (size_t i = 0; i < slots_.size(); ++i) {  // `slots_` grows in the loop
    Node& node = *slots_[i].node;
    slots_[i].first_edge = static_cast<uint32_t>(edges_.size());
    slots_[i].first_gradient = gradients;
    gradients += static_cast<uint32_t>(node.outputs_.size());
    for (const Edge& edge : node.edges_) {
      edges_.push_back(edge ? number(edge.node.get()) : kNowhere);
    }
  }
  gradients_.resize(gradients);
  const auto find = [this](const Node* node) {
    return node->run_ == run_ ? node->slot_ : kNowhere;
  };
  for (uint32_t i = 0; i < captures_.size(); ++i) {
    const uint32_t slot = find(captures_[i].edge.node.get());
    if (slot == kNowhere) continue;
    captures_[i].next_of_node = std::exchange(slots_[slot].first_capture, i);
  }
  if (captures_.empty() && targets_.empty()) return;
  for (Slot& slot : slots_) slot.needed = slot.applies = false;
  for (const Ref<Node>& target : targets_) {
    if (const uint32_t slot = find(target.get()); slot != kNowhere) {
      slots_[slot].needed = slots_[slot].applies = true;
    }
  }
  for (Slot& slot : slots_) slot.needed |= slot.first_capture != kNowhere;
}

void GraphRun::mark_needed() {
  if (captures_.empty() && targets_.empty()) return;
  // A node's edges lead to lower sequence numbers or to sinks, so in ascending order the nodes that
  // it leads to are decided first.
  std::vector<uint32_t> order(slots_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return slots_[a].node->sequence() < slots_[b].node->sequence();
  });
  for (const uint32_t i : order) {
    Slot& slot = slots_[i];
    const size_t count = slot.node->next_edges().size();
    for (size_t e = 0; e < count; ++e) {
      const uint32_t to = edges_[slot.first_edge + e];
      if (to != kNowhere && slots_[to].needed) slot.needed = slot.applies = true;
    }
  }
}

void GraphRun::count_contributions() {
  for (const Slot& slot : slots_) {
    if (!slot.applies) continue;
    const size_t count = slot.node->next_edges().size();
    for (size_t e = 0; e < count; ++e) {
      uint32_t& to = edges_[slot.first_edge + e];
      if (to == kNowhere) continue;
      if (!slots_[to].needed) {
        to = kNowhere;
      } else {
        ++slots_[to].contributions;
      }
    }
  }
  for (Slot& slot : slots_) slot.waiting = slot.contributions;
}

void GraphRun::seed_roots() {
  // The slot numbers in the nodes may belong to another run by now, so the roots are searched in
  // the first slots, which are the roots in order without repetitions.
  uint32_t known = 0;
  for (Root& root : roots_) {
    uint32_t at = 0;
    while (at < known && slots_[at].node != root.edge.node.get()) ++at;
    if (at == known) ++known;
    ++slots_[at].contributions;
    Tensor& sum = gradients_[slots_[at].first_gradient + root.edge.input_nr];
    const GradientMeta& meta = root.edge.node->outputs_[root.edge.input_nr];
    std::optional<StreamGuard> guard;
    if (is_asynchronous(meta.device.type)) [[unlikely]] {
      root.gradient = hand_over(meta, std::move(root.gradient));
      guard.emplace(stream_of(meta));
    }
    sum =
        sum.defined() ? sum_of(std::move(sum), std::move(root.gradient)) : std::move(root.gradient);
  }
  for (uint32_t slot = 0; slot < known; ++slot) {
    if (slots_[slot].waiting == 0) make_ready(slot);
  }
}

void GraphRun::deliver(const Node& from, uint32_t to, uint32_t input_nr, Tensor gradient) {
  const GradientMeta& meta = slots_[to].node->outputs_[input_nr];
  const TensorImpl& impl = *gradient.impl();
  if (!(impl.sizes == meta.sizes) || impl.dtype != meta.dtype ||
      !(impl.storage->device() == meta.device)) [[unlikely]] {
    gradient = fit_gradient(meta, std::move(gradient), from.name());
  }
  Tensor& sum = gradients_[slots_[to].first_gradient + input_nr];
  std::optional<StreamGuard> guard;
  if (slots_[to].on_stream) [[unlikely]] {
    gradient = hand_over(meta, std::move(gradient), place_in_use(slots_[to]));
    guard.emplace(stream_of(meta));
  }
  if (!sum.defined()) {
    sum = std::move(gradient);
    return;
  }
  sum = sum_of(std::move(sum), std::move(gradient), place_in_use(slots_[to]));
}

Tensor GraphRun::place_in_use(const Slot& slot) const {
  return slot.placed ? destination_of(slot) : Tensor();
}

void GraphRun::place_nodes() {
  home_ = DeviceWorker::of_this_thread();
  for (Slot& slot : slots_) {
    const std::span<const GradientMeta> outputs = slot.node->outputs();
    if (outputs.empty() || !slot.needed) continue;
    const Device device = outputs[0].device;
    if (!is_asynchronous(device.type)) [[likely]] {
      continue;
    }
    slot.on_stream = has_streams_ = true;
    if (!slot.applies) continue;
    if (detail::backward_stays || (home_ != nullptr && home_->device() == device)) continue;
    slot.worker = &DeviceWorker::of(device);
    has_workers_ = true;
  }
  if (!has_workers_) return;
  state_ = ThreadState::capture().without_modes();
  anomaly_ = detail::anomaly_mode;
  capture_ = active_capture();
}

void GraphRun::join_streams() const {
  SmallVector<Stream, 4> joined;
  for (const Slot& slot : slots_) {
    if (!slot.on_stream) continue;
    const Stream used = stream_of(slot.node->outputs()[0]);
    if (std::find(joined.begin(), joined.end(), used) != joined.end()) continue;
    joined.push_back(used);
    const Stream current = current_stream(used.device);
    if (!(current == used)) current.wait_stream(used);
  }
}

void GraphRun::run(bool retain_graph) {
  const PhaseGuard phase(Phase::kBackward);
  const AutocastStateGuard no_autocast({});  // the casts of forward are part of the graph
  retain_graph_ = retain_graph;
  outer_ = of_this_thread();
  number_nodes();
  mark_needed();
  count_contributions();
  if (!is_grad_enabled()) {
    for (const Slot& slot : slots_) {
      has_destinations_ |= slot.node->edges_.empty() && destination_of(slot).defined();
    }
  }
  place_nodes();
  {
    const Lock lock(*this);  // workers start as soon as the first root is seeded
    seed_roots();
  }
  has_workers_ ? run_with_workers() : run_alone();
  if (has_streams_) join_streams();
  run_callbacks();
}

}  // namespace lockstep
