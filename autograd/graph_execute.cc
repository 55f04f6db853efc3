// How a GraphRun executes its nodes, once graph_run.cc has numbered them.

#include <algorithm>
#include <optional>
#include <utility>

#include "autograd/anomaly_mode.h"
#include "autograd/device_worker.h"
#include "autograd/grad_mode.h"
#include "autograd/gradient_delivery.h"
#include "autograd/graph_run.h"
#include "autograd/graph_run_lock.h"
#include "autograd/meta.h"
#include "autograd/op_node.h"
#include "autograd/ownership.h"
#include "autograd/worker_observer.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/scoped_value.h"
#include "core/base/spans/span.h"
#include "core/dispatch/arrived_gradient.h"
#include "core/memory/capture_scope.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace {

thread_local constinit CurrentNode t_current{};

/// Throws AutogradError unless what a hook made of a gradient can take the gradient's place.
void check_replacement(const Node& node, const char* hook, const Tensor& before,
                       const Tensor& after) {
  LS_CHECK(same(before.sizes(), after.sizes()) && before.dtype() == after.dtype() &&
               before.device() == after.device(),
           AutogradError,
           "[{}] a {} hook gave another kind of gradient than it took: expected {}, got {}.",
           node.name(), hook, to_string(before), to_string(after));
}

void run_tensor_hooks(const Node& node, const NodeHooks& hooks, std::span<Tensor> grads) {
  hooks.tensor.each([&](const NodeHooks::OnGradient& hook) {
    Tensor& grad = grads[hook.output_nr];
    if (!grad.defined()) return;
    Tensor replacement = hook.call(grad);
    if (!replacement.defined()) return;
    check_replacement(node, "tensor", grad, replacement);
    grad = std::move(replacement);
  });
  for (const NodeHooks::Retained& entry : hooks.retained) {
    const Tensor& grad = grads[entry.output_nr];
    if (!grad.defined()) continue;
    Tensor& kept = static_cast<Meta*>(entry.meta)->grad;
    kept = kept.defined() ? kept.add(grad) : grad.clone();
  }
}

void run_prehooks(const Node& node, const NodeHooks& hooks, std::span<Tensor> grads) {
  hooks.before.each([&](const auto& hook) {
    const std::vector<Tensor> given(grads.begin(), grads.end());
    hook(grads);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (given[i].defined() && grads[i].defined()) {
        check_replacement(node, "pre-", given[i], grads[i]);
      }
    }
  });
}

/// Throws AutogradError, naming the node, when one of its gradients has a NaN.
void check_nan(const Node& node, const Gradients& gradients) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& grad = gradients[i];
    if (!grad.defined() || grad.device() == kMeta) continue;
    LS_CHECK(!any(isnan(grad)).item<bool>(), AutogradError,
             "[{}] made the first NaN: gradient {} ({}) of this node has one, and what it took had "
             "none.",
             node.name(), i, to_string(grad));
  }
}

/// Records for a profile that the engine runs `node`. The name of an operator's node is made of its
/// operator's when the profile is read, because making it takes memory.
class NodeSpan {
 public:
  explicit NodeSpan(const Node& node) {
    if (!is_recording_spans()) [[likely]]
      return;
    if (const auto* const of_op = dynamic_cast<const OpNode*>(&node)) {
      span_.emplace(SpanKind::kNode, of_op->op().name(), node.sequence(), 0, "operator");
    } else {
      span_.emplace(SpanKind::kNode, node.name(), node.next_edges().empty() ? 0 : node.sequence());
    }
  }

 private:
  std::optional<Span> span_;
};

void note_forward_site(Error& error, const Node& node) {
  if (node.forward_site() == nullptr) return;
  error.add_note("The forward call behind " + node.name() + " was made here:\n" +
                 node.forward_site()->describe());
}

}  // namespace

GraphRun& GraphRun::of_this_thread(std::string_view op) {
  LS_CHECK(t_current.run != nullptr, AutogradError,
           "[{}] this thread is in no backward: expected a call from a hook or a derivative.", op);
  return *t_current.run;
}

GraphRun* GraphRun::of_this_thread() noexcept { return t_current.run; }

GraphRun::Inside::Inside(GraphRun* run) noexcept : current_(t_current, {run, nullptr}) {}

Ref<Node> GraphRun::node_of_this_thread() { return Ref<Node>::share(t_current.node); }

bool GraphRun::will_execute(const Node* node) const {
  return std::any_of(slots_.begin(), slots_.end(), [node](const Slot& slot) {
    return slot.node == node && slot.needed && slot.contributions > 0;
  });
}

void GraphRun::add_callback(std::function<void()> callback) {
  const MutexLock lock(mutex_);
  callbacks_.push_back(std::move(callback));
}

void GraphRun::run_callbacks() {
  const ScopedValue<CurrentNode> current(t_current, {this, nullptr});
  for (size_t i = 0;; ++i) {  // callbacks may add callbacks
    std::function<void()> callback;
    {
      const MutexLock lock(mutex_);
      if (i == callbacks_.size()) return;
      callback = std::move(callbacks_[i]);
    }
    callback();
  }
}

void GraphRun::make_ready(uint32_t at) {
  const Slot& slot = slots_[at];
  if (!slot.needed || error_ != nullptr) return;
  if (slot.worker != nullptr) [[unlikely]] {
    ++at_workers_;
    slot.worker->submit({slot.node->sequence(), this, at});
    return;
  }
  ready_.push_back({slot.node->sequence(), at});
  std::push_heap(ready_.begin(), ready_.end());
}

uint32_t GraphRun::pop_ready() {
  std::pop_heap(ready_.begin(), ready_.end());
  const uint32_t slot = ready_.back().slot;
  ready_.pop_back();
  return slot;
}

void GraphRun::run_alone() {
  mutex_.assert_held();  // as a Lock without workers
  while (!ready_.empty()) execute(pop_ready());
}

void GraphRun::run_with_workers() {
  UniqueLock lock(mutex_);
  while (true) {
    if (!ready_.empty() && error_ == nullptr) {
      const uint32_t slot = pop_ready();
      lock.unlock();
      try {
        execute(slot);
        lock.lock();
      } catch (...) {
        lock.lock();
        if (error_ == nullptr) error_ = std::current_exception();
      }
      continue;
    }
    if (at_workers_ == 0) break;
    const auto something_to_do = [this]() LS_REQUIRES(mutex_) {
      return at_workers_ == 0 || (!ready_.empty() && error_ == nullptr);
    };
    if (home_ == nullptr) {
      changed_.wait(lock, something_to_do);
      continue;
    }
    // Runs tasks of other backwards, which may have to finish before this one can continue.
    lock.unlock();
    home_->run_until([&] {
      const MutexLock guard(mutex_);
      return something_to_do();
    });
    lock.lock();
  }
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void GraphRun::execute_on_worker(uint32_t slot) noexcept {
  std::exception_ptr thrown;
  bool wanted;
  {
    const MutexLock lock(mutex_);
    wanted = error_ == nullptr;
  }
  if (wanted) {
    const ThreadStateGuard state(state_);
    const AnomalyModeGuard anomaly(anomaly_.enabled, anomaly_.check_nan);
    const CaptureScope capture(capture_);
    std::optional<ObserverGuard> observed;
    if (CallObserver* const observer = worker_observer()) observed.emplace(*observer);
    try {
      execute(slot);
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  // The run may be over as soon as the lock is free.
  const MutexLock lock(mutex_);
  if (thrown != nullptr && error_ == nullptr) error_ = std::move(thrown);
  --at_workers_;
  changed_.notify_all();
  if (home_ != nullptr) home_->notify();
}

void GraphRun::capture_gradients(const Slot& slot) {
  for (uint32_t i = slot.first_capture; i != kNowhere; i = captures_[i].next_of_node) {
    captures_[i].result = gradients_[slot.first_gradient + captures_[i].edge.input_nr];
  }
}

Tensor GraphRun::destination_of(const Slot& sink) const {
  if (sink.applies) return sink.node->destination();
  return sink.first_capture == kNowhere ? Tensor() : captures_[sink.first_capture].destination;
}

Tensor GraphRun::destination_at(uint32_t at, uint32_t& sink) const {
  const Slot& slot = slots_[at];
  if (slot.node->edges_.empty()) {
    sink = at;
    return slot.placed ? Tensor() : destination_of(slot);
  }
  if (!slot.applies) return {};
  if (slot.contributions != 1 || slot.node->edges_.size() != 1 ||
      edges_[slot.first_edge] == kNowhere) {
    return {};
  }
  const Tensor place = destination_at(edges_[slot.first_edge], sink);
  return place.defined() ? slot.node->destination_through(place) : Tensor();
}

Tensor GraphRun::take_destination(uint32_t at) {
  const Lock lock(*this);
  uint32_t sink = kNowhere;
  Tensor place = destination_at(at, sink);
  if (place.defined()) slots_[sink].placed = true;
  return place;
}

/// What the derivative of one node may take.
class GraphRun::Arrived final : public detail::ArrivedGradients {
 public:
  Arrived(GraphRun& run, const Slot& slot) : run_(run), slot_(slot) {}
  ArrivedSum take(size_t i) override { return run_.take_arrived(slot_, i); }

 private:
  GraphRun& run_;
  const Slot& slot_;
};

ArrivedSum GraphRun::take_arrived(const Slot& slot, size_t edge) {
  const Node& node = *slot.node;
  if (edge >= node.edges_.size()) return {};
  const uint32_t to = edges_[slot.first_edge + edge];
  if (to == kNowhere) return {};
  const uint32_t input_nr = node.edges_[edge].input_nr;
  if (slots_[to].on_stream) [[unlikely]] {
    const GradientMeta& there = slots_[to].node->outputs_[input_nr];
    const Stream stream = {there.device, there.stream};
    if (!(current_stream(there.device) == stream)) return {};
  }
  const Lock lock(*this);
  Tensor sum = std::exchange(gradients_[slots_[to].first_gradient + input_nr], Tensor());
  if (!sum.defined() || is_grad_enabled()) return {std::move(sum), false};
  const Tensor place = place_in_use(slots_[to]);
  const bool writable = is_exclusive(sum) || (place.defined() && same_place(sum, place));
  return {std::move(sum), writable};
}

/// What one node may send before it returns.
class GraphRun::Early final : public detail::EarlyGradients {
 public:
  Early(GraphRun& run, const Slot& slot) : run_(run), slot_(slot) {}
  bool send(size_t i, Tensor& gradient) override { return run_.send_early(slot_, i, gradient); }

 private:
  GraphRun& run_;
  const Slot& slot_;
};

bool GraphRun::send_early(const Slot& slot, size_t edge, Tensor& gradient) {
  const Node& node = *slot.node;
  if (edge >= node.edges_.size()) return false;
  const Lock lock(*this);
  uint32_t& to = edges_[slot.first_edge + edge];
  if (to == kNowhere) {
    gradient = Tensor();
    return true;
  }
  const auto is_sink = [&](uint32_t at) {
    return at == kNowhere || slots_[at].node->edges_.empty();
  };
  const Slot& target = slots_[to];
  for (size_t i = 0; i < target.node->edges_.size(); ++i) {
    if (!is_sink(edges_[target.first_edge + i])) return false;
  }
  if (target.waiting != 1 || !target.needed) return false;
  deliver(node, to, node.edges_[edge].input_nr, std::move(gradient));
  gradient = Tensor();
  const uint32_t ready = std::exchange(to, kNowhere);  // `finish` passes the edge over
  slots_[ready].waiting = 0;
  execute(ready);
  while (!ready_.empty() && slots_[ready_.front().slot].node->edges_.empty()) execute(pop_ready());
  return true;
}

Gradients GraphRun::apply(const Slot& slot, std::span<Tensor> incoming) {
  Node& node = *slot.node;
  const std::span<const uint32_t> edges(edges_.data() + slot.first_edge, node.edges_.size());
  BackwardCall call{.needs = 0, .destinations = {}, .frees_saved = !retain_graph_};
  for (size_t i = 0; i < edges.size() && i < 64; ++i) {
    call.needs |= static_cast<uint64_t>(edges[i] != kNowhere) << i;
  }
  SmallVector<Tensor, 4> destinations;
  if (has_destinations_) {
    for (const uint32_t to : edges) {
      destinations.push_back(to == kNowhere ? Tensor() : take_destination(to));
    }
    call.destinations = destinations;
  }
  const NodeHooks* const hooks = node.hooks();
  Early early(*this, slot);
  const bool may_send = !has_workers_ && !is_grad_enabled() && !detail::anomaly_mode.enabled &&
                        (hooks == nullptr || hooks->after.empty());
  const ScopedValue<detail::EarlyGradients*> sending(detail::early_gradients,
                                                     may_send ? &early : nullptr);
  if (hooks == nullptr) [[likely]] {
    Arrived arrived(*this, slot);
    const ScopedValue<detail::ArrivedGradients*> offered(detail::arrived_gradients, &arrived);
    return node.apply(incoming, call);
  }
  const ScopedValue<detail::ArrivedGradients*> none(detail::arrived_gradients, nullptr);
  const Ref<NodeHooks> kept = Ref<NodeHooks>::share(node.hooks());
  run_prehooks(node, *hooks, incoming);
  std::vector<Tensor> taken;
  if (!hooks->after.empty()) taken.assign(incoming.begin(), incoming.end());
  Gradients outgoing = node.apply(incoming, call);
  hooks->after.each([&](const auto& hook) { hook({outgoing.data(), outgoing.size()}, taken); });
  return outgoing;
}

void GraphRun::execute(uint32_t at) {
  if (!slots_[at].on_stream) [[likely]] {
    return execute_here(at);
  }
  const GradientMeta& meta = slots_[at].node->outputs_[0];
  const StreamGuard guard({meta.device, meta.stream});
  execute_here(at);
}

void GraphRun::execute_here(uint32_t at) {
  const Slot slot = slots_[at];
  Node& node = *slot.node;
  const NodeSpan span(node);
  const ScopedValue<CurrentNode> current(t_current, {this, &node});
  // No lock needed: no other thread accesses the gradients of a node that is ready.
  const std::span<Tensor> incoming(gradients_.data() + slot.first_gradient, node.outputs_.size());
  try {
    if (node.hooks() != nullptr) [[unlikely]] {
      run_tensor_hooks(node, *Ref<NodeHooks>::share(node.hooks()), incoming);
    }
    capture_gradients(slot);
    if (!slot.applies) return;
    Gradients outgoing;
    if (std::any_of(incoming.begin(), incoming.end(),
                    [](const Tensor& t) { return t.defined(); })) {
      outgoing = apply(slot, incoming);
      LS_CHECK(outgoing.size() <= node.edges_.size(), AutogradError,
               "[{}] returned too many gradients: expected {}, one per tensor argument, got {}.",
               node.name(), node.edges_.size(), outgoing.size());
      LS_CHECK(outgoing.size() == node.edges_.size() || outgoing.empty() ||
                   !wants_beyond(slot, outgoing.size()),
               AutogradError,
               "[{}] returned too few gradients: expected {}, one per tensor argument, got {}.",
               node.name(), node.edges_.size(), outgoing.size());
      if (detail::anomaly_mode.check_nan) [[unlikely]] {
        check_nan(node, outgoing);
      }
    }
    for (Tensor& gradient : incoming) gradient = Tensor();
    if (!retain_graph_) node.release_saved();
    finish(at, std::move(outgoing));
  } catch (Error& error) {
    note_forward_site(error, node);
    throw;
  }
}

bool GraphRun::wants_beyond(const Slot& slot, size_t count) const {
  for (size_t i = count; i < slot.node->edges_.size(); ++i) {
    if (edges_[slot.first_edge + i] != kNowhere) return true;
  }
  return false;
}

void GraphRun::finish(uint32_t at, Gradients outgoing) {
  const Slot& slot = slots_[at];
  const Node& node = *slot.node;
  const Lock lock(*this);
  for (size_t i = 0; i < node.edges_.size(); ++i) {
    const uint32_t to = edges_[slot.first_edge + i];
    if (to == kNowhere) continue;
    if (i < outgoing.size() && outgoing[i].defined()) {
      deliver(node, to, node.edges_[i].input_nr, std::move(outgoing[i]));
    }
    if (--slots_[to].waiting == 0) make_ready(to);
  }
}

}  // namespace lockstep
