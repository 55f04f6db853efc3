#include <exception>
#include <memory>
#include <thread>

#include "autograd/anomaly_mode.h"
#include "autograd/autograd.h"
#include "autograd/device_worker.h"
#include "autograd/grad_mode.h"
#include "autograd/gradient_delivery.h"
#include "autograd/graph_run.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/base/scoped_value.h"
#include "core/base/service_thread.h"
#include "core/memory/capture_scope.h"

namespace lockstep {

namespace {

/// Borrows a GraphRun from the thread's spare ones, which are kept so that their arrays stay
/// allocated; a nested backward takes another one.
class RunOnLoan {
 public:
  RunOnLoan() {
    if (!spare().empty()) {
      run_ = std::move(spare().back());
      spare().pop_back();
    } else {
      run_ = std::make_unique<GraphRun>();
    }
  }
  ~RunOnLoan() {
    run_->clear();
    if (spare().size() < kKept) spare().push_back(std::move(run_));
  }
  RunOnLoan(const RunOnLoan&) = delete;
  RunOnLoan& operator=(const RunOnLoan&) = delete;

  GraphRun* operator->() { return run_.get(); }
  GraphRun& operator*() { return *run_; }

 private:
  static constexpr size_t kKept = 4;
  static std::vector<std::unique_ptr<GraphRun>>& spare() {
    thread_local std::vector<std::unique_ptr<GraphRun>> runs;
    return runs;
  }

  std::unique_ptr<GraphRun> run_;
};

/// Backwards may be nested to any depth, but a thread's stack is limited: past this depth a new
/// thread continues, in the state of the thread that waits for it. Larger values need fewer threads
/// but more stack.
constexpr int kMostNested = 48;
thread_local constinit int t_nested = 0;

void run_nested(FunctionRef<void()> backward) {
  if (t_nested < kMostNested) {
    const ScopedValue<int> nested(t_nested, t_nested + 1);
    return backward();
  }
  std::exception_ptr thrown;
  start_thread("of a nested backward", [&, state = ThreadState::capture(),
                                        anomaly = detail::anomaly_mode,
                                        worker = DeviceWorker::of_this_thread(),
                                        outer = GraphRun::of_this_thread(),
                                        capture = active_capture()] {
    const ThreadStateGuard guard(state);
    const CaptureScope capturing(capture);
    const DeviceWorker::StandIn stand_in(worker);
    const GraphRun::Inside inside(outer);
    const AnomalyModeGuard anomaly_mode(anomaly.enabled, anomaly.check_nan);
    try {
      run_nested(backward);
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

/// The gradient that enters at a root: the given one fitted to its shape and dtype, or 1.
Tensor root_gradient(std::string_view op, const Tensor& root, const Tensor& given) {
  if (given.defined()) {
    return fit_gradient(GradientMeta(*root.impl()), given, std::string(op));
  }
  LS_CHECK(root.numel() == 1, AutogradError,
           "[{}] a root of several elements needs a gradient: expected one of shape {}, got none. "
           "Pass it, or reduce the root to a number first (sum() or mean()).",
           op, root.shape());
  Tensor one = empty_tensor(root.sizes(), root.dtype(), root.device());
  one.fill_(1);
  return one;
}

void add_roots(GraphRun& run, std::string_view op, TensorList roots, TensorList gradients) {
  LS_CHECK(!roots.empty(), AutogradError,
           "[{}] there is nothing to differentiate: expected at least one tensor, got none.", op);
  LS_CHECK(gradients.empty() || gradients.size() == roots.size(), AutogradError,
           "[{}] wrong number of gradients: expected {}, one per root, got {}.", op, roots.size(),
           gradients.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    LS_CHECK(
        roots[i].requires_grad(), AutogradError,
        "[{}] tensor {} ({}) does not require grad and has no grad_fn, so nothing leads from it "
        "to a leaf. Was it computed under a NoGradGuard, or detached?",
        op, i, to_string(roots[i]));
    run.add_root(gradient_edge(roots[i]),
                 root_gradient(op, roots[i], gradients.empty() ? Tensor() : gradients[i]));
  }
}

/// Implements `grad` for edges; `describe(i)` names input i in errors. `destinations` has a tensor
/// for each input, which may be undefined, or is empty.
std::vector<Tensor> gradients_at(TensorList outputs, std::span<const Edge> inputs,
                                 TensorList grad_outputs, const GradOptions& options,
                                 FunctionRef<std::string(size_t)> describe,
                                 TensorList destinations = {}) {
  LS_CHECK(!inputs.empty(), AutogradError,
           "[grad] there is nothing to differentiate with respect to: expected inputs, got none.");
  RunOnLoan run;
  add_roots(*run, "grad", outputs, grad_outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    run->capture(inputs[i], destinations.empty() ? Tensor() : destinations[i]);
  }
  run_nested([&] {
    const SetGradEnabled mode(options.create_graph);
    run->run(options.retain_graph || options.create_graph);
  });
  std::vector<Tensor> results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& result = run->captured(i).result;
    if (!result.defined() && options.materialize_grads) {
      const GradientMeta& meta = inputs[i].node->outputs()[inputs[i].input_nr];
      result = empty_tensor(meta.sizes, meta.dtype, meta.device);
      result.zero_();
    }
    LS_CHECK(options.allow_unused || result.defined(), AutogradError,
             "[grad] input {} ({}) was not used to compute the outputs, so it has no gradient. Set "
             "allow_unused to get an undefined tensor for it, or materialize_grads to get zeros.",
             i, describe(i));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

void backward(TensorList roots, TensorList gradients, const BackwardOptions& options) {
  RunOnLoan run;
  add_roots(*run, "backward", roots, gradients);
  std::vector<Tensor> computed;
  for (const Tensor& input : options.inputs) {
    LS_CHECK(input.requires_grad(), AutogradError,
             "[backward] inputs: expected tensors that require grad, got {}. Call "
             "set_requires_grad() before it is used.",
             to_string(input));
    if (input.is_leaf()) {
      run->limit_to(gradient_edge(input).node);
    } else {
      run->capture(gradient_edge(input));
      computed.push_back(input);
    }
  }
  run_nested([&] {
    const SetGradEnabled mode(options.create_graph);
    run->run(options.retain_graph || options.create_graph);
  });
  for (size_t i = 0; i < computed.size(); ++i) {
    Tensor& grad = run->captured(i).result;
    if (!grad.defined()) continue;
    Tensor& sum = meta_of(*computed[i].impl()).grad;
    sum = sum.defined() ? sum.add(grad) : std::move(grad);
  }
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                         const GradOptions& options) {
  return grad_into(outputs, inputs, {}, grad_outputs, options);
}

std::vector<Tensor> grad_into(TensorList outputs, TensorList inputs, TensorList destinations,
                              TensorList grad_outputs, const GradOptions& options) {
  LS_CHECK(destinations.empty() || destinations.size() == inputs.size(), AutogradError,
           "[grad_into] wrong number of destinations: expected {}, one per input, got {}.",
           inputs.size(), destinations.size());
  std::vector<Edge> edges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    LS_CHECK(inputs[i].requires_grad(), AutogradError,
             "[grad] input {} ({}) does not require grad. Call set_requires_grad() before it is "
             "used.",
             i, to_string(inputs[i]));
    edges.push_back(gradient_edge(inputs[i]));
  }
  return gradients_at(
      outputs, edges, grad_outputs, options, [&](size_t i) { return to_string(inputs[i]); },
      destinations);
}

std::vector<Tensor> grad(TensorList outputs, std::span<const Edge> inputs, TensorList grad_outputs,
                         const GradOptions& options) {
  return gradients_at(outputs, inputs, grad_outputs, options, [&](size_t i) {
    return fmt::format("gradient {} of {}", inputs[i].input_nr, inputs[i].node->name());
  });
}

}  // namespace lockstep
