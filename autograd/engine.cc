#include <memory>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/graph_run.h"
#include "autograd/meta.h"
#include "core/check.h"

namespace lockstep {

namespace {

/// A GraphRun on loan: runs are kept per thread so that their arrays stay warm; nested backwards
/// take another one.
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

/// The gradient that enters at a root: the given one made to fit, or 1.
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

}  // namespace

void backward(TensorList roots, TensorList gradients, const BackwardOptions& options) {
  RunOnLoan run;
  add_roots(*run, "backward", roots, gradients);
  for (const Tensor& input : options.inputs) {
    LS_CHECK(input.requires_grad() && input.is_leaf(), AutogradError,
             "[backward] inputs: expected leaves that require grad, got {}. Use grad() for the "
             "gradient of an intermediate tensor.",
             to_string(input));
    run->limit_to(gradient_edge(input).node);
  }
  const SetGradEnabled mode(options.create_graph);
  run->run(options.retain_graph || options.create_graph);
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                         const GradOptions& options) {
  LS_CHECK(!inputs.empty(), AutogradError,
           "[grad] there is nothing to differentiate with respect to: expected inputs, got none.");
  RunOnLoan run;
  add_roots(*run, "grad", outputs, grad_outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    LS_CHECK(inputs[i].requires_grad(), AutogradError,
             "[grad] input {} ({}) does not require grad. Call set_requires_grad() before it is "
             "used.",
             i, to_string(inputs[i]));
    run->capture(gradient_edge(inputs[i]));
  }
  const SetGradEnabled mode(options.create_graph);
  run->run(options.retain_graph || options.create_graph);
  std::vector<Tensor> results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    LS_CHECK(options.allow_unused || run->captured(i).result.defined(), AutogradError,
             "[grad] input {} ({}) was not used to compute the outputs, so it has no gradient. Set "
             "allow_unused to get an undefined tensor for it.",
             i, to_string(inputs[i]));
    results.push_back(std::move(run->captured(i).result));
  }
  return results;
}

}  // namespace lockstep
